//! Asyncs that are sent as one message each.
//!
//! The header of a message is the function's [`Name`] and the arguments. Functions run under the
//! rules of handlers ([`portolan_engine::am`]): one at a time at each place.

use super::function::{self, Function, Name};
use super::handler_ids::SPAWN;
use super::refs;
use super::{code, environment, lock};
use crate::boundary::{array, export};
use portolan_base::error::{Result, fail};
use portolan_engine::am::Am;
use portolan_engine::am::{Accept, Arrival, Handler};
use portolan_engine::core::handler;
use portolan_engine::runtime::Engine;
use std::os::raw::c_int;

pub(crate) const MAX_ARGS: usize = 32;

const NAME_BYTES: usize = size_of::<Name>();

/// Returns the arguments of a call. Fails if their number `given` is not `n`.
///
/// # Safety
/// `args` must be null or valid for reads of `given` elements.
#[inline]
pub(super) unsafe fn arguments<'a>(n: c_int, given: c_int, args: *const i64) -> Result<&'a [i64]> {
    if n != given {
        fail!(Argument, "n is {n}, but {given} arguments follow");
    }
    let n = refs::count(n, "the number of arguments")?;
    if n > MAX_ARGS {
        fail!(Argument, "{n} arguments, but at most {MAX_ARGS} are possible");
    }
    // SAFETY: `n` equals `given`; by contract, `args` is null or has `given` elements.
    unsafe { array(args, n, "the array of arguments") }
}

/// Runs a function on `count` items of `n` arguments each, stored contiguously in `items`.
pub(super) fn run(f: Function, n: usize, count: u64, items: &[u8]) {
    if n == 1 {
        for item in items.chunks_exact(8) {
            let mut arg = i64::from_ne_bytes([0; 8]);
            bytemuck::bytes_of_mut(&mut arg).copy_from_slice(item);
            // SAFETY: the program passed `f` as an `async_func_t`, and `arg` is its one argument.
            unsafe { f(&mut arg, 1) };
        }
    } else {
        let mut args = [0i64; MAX_ARGS];
        for i in 0..count as usize {
            if n > 0 {
                let item = &items[i * n * 8..(i + 1) * n * 8];
                bytemuck::cast_slice_mut(&mut args[..n]).copy_from_slice(item);
            }
            // SAFETY: the program passed `f` as an `async_func_t`; `args` has its `n` arguments.
            unsafe { f(args.as_mut_ptr(), n as c_int) };
        }
    }
    environment::count_runs(count);
}

pub(super) fn read_name(header: &[u8]) -> Result<(Name, &[u8])> {
    match header.split_at_checked(NAME_BYTES) {
        Some((name, rest)) => {
            let name: Name = bytemuck::pod_read_unaligned(name);
            if name.n as usize > MAX_ARGS {
                fail!(Internal, "an async of {} arguments has arrived", name.n);
            }
            Ok((name, rest))
        }
        None => fail!(Internal, "the header of an async has {} bytes", header.len()),
    }
}

pub(super) struct Spawn;

impl Handler for Spawn {
    fn arrive(&self, _engine: &Am, message: &Arrival<'_>) -> Result<Accept> {
        let (name, args) = read_name(message.header)?;
        if args.len() != name.n as usize * 8 {
            fail!(Internal, "{} bytes of arguments for {}", args.len(), name.n);
        }
        run(function::resolve(&name)?, name.n as usize, 1, args);
        Ok(Accept::DONE)
    }
}

fn spawn(engine: &Engine, dest: i32, f: usize, args: &[i64]) -> Result<()> {
    let target = refs::rank(engine, dest)?;
    let name = function::name(f, args.len() as u32)?;
    let bytes: &[u8] = bytemuck::cast_slice(args);
    if target == engine.rank() {
        let f = function::resolve(&name)?; // returns an error to the caller
        if handler::running().is_some() || lock::is_held() {
            // A message would wait until the handler returns or the lock is released.
            run(f, args.len(), 1, bytes);
            return Ok(());
        }
    }
    send(engine, target, &name, bytes)
}

/// A function of its own, because asyncs at the own place nest in [`spawn`].
#[inline(never)]
fn send(engine: &Engine, target: usize, name: &Name, bytes: &[u8]) -> Result<()> {
    let mut header = [0u8; NAME_BYTES + MAX_ARGS * 8];
    let len = NAME_BYTES + bytes.len();
    header[..NAME_BYTES].copy_from_slice(bytemuck::bytes_of(name));
    header[NAME_BYTES..len].copy_from_slice(bytes);
    engine.send_message(target, SPAWN.id()?, &header[..len], &[])?;
    environment::count_spawn();
    Ok(())
}

export! {
    /// `args` must be null or readable for `given` elements, and `f` an `async_func_t` or an index.
    x10_async_spawn_packed(dest: i32, n: c_int, f: usize, given: c_int, args: *const i64) -> c_int {
        code("x10_asyncSpawnInline", |engine| {
            // SAFETY: the caller guarantees that `args` is null or valid for `given` elements.
            spawn(engine, dest, f, unsafe { arguments(n, given, args)? })
        })
    }
}
