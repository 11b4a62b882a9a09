//! Asyncs, one message each.
//!
//! A message's header is the function's [`Name`] and the arguments. Functions run
//! under the rules of handlers ([`crate::am`]): one at a time at each place.

use super::function::{self, Function, Name};
use super::handler_ids::SPAWN;
use super::refs;
use super::{code, environment, lock};
use crate::am::Am;
use crate::am::{Accept, Arrival, Handler};
use crate::capi::boundary::array;
use crate::core::handler;
use crate::error::{Result, fail};
use crate::runtime::Engine;
use std::os::raw::c_int;

/// Most arguments of one async.
pub(crate) const MAX_ARGS: usize = 32;

const NAME_BYTES: usize = size_of::<Name>();

/// The arguments of a call that gives `n` and a number of its own.
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
    // SAFETY: passed on from the caller.
    unsafe { array(args, n, "the array of arguments") }
}

/// Runs a function on `count` items of `n` arguments, which lie bare in `items`.
pub(super) fn run(f: Function, n: usize, count: u64, items: &[u8]) {
    if n == 1 {
        for item in items.chunks_exact(8) {
            let mut arg = i64::from_ne_bytes([0; 8]);
            bytemuck::bytes_of_mut(&mut arg).copy_from_slice(item);
            // SAFETY: the function is one that the program gave for this, and the
            // argument is its own.
            unsafe { f(&mut arg, 1) };
        }
    } else {
        let mut args = [0i64; MAX_ARGS];
        for i in 0..count as usize {
            if n > 0 {
                let item = &items[i * n * 8..(i + 1) * n * 8];
                bytemuck::cast_slice_mut(&mut args[..n]).copy_from_slice(item);
            }
            // SAFETY: as above.
            unsafe { f(args.as_mut_ptr(), n as c_int) };
        }
    }
    environment::count_runs(count);
}

/// The name at the front of a header, and what is behind it.
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

/// Runs the function of a message.
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
        let f = function::resolve(&name)?; // an error here is the caller's own
        if handler::running().is_some() || lock::is_held() {
            // As a message it would wait for the end of the handler, or of the lock.
            run(f, args.len(), 1, bytes);
            return Ok(());
        }
    }
    let mut header = [0u8; NAME_BYTES + MAX_ARGS * 8];
    let len = NAME_BYTES + bytes.len();
    header[..NAME_BYTES].copy_from_slice(bytemuck::bytes_of(&name));
    header[NAME_BYTES..len].copy_from_slice(bytes);
    engine.send_message(target, SPAWN.id()?, &header[..len], &[])?;
    environment::count_spawn();
    Ok(())
}

/// Runs `f` at `dest` with `n` arguments; returns when they were handed over.
///
/// # Safety
/// `args` must be valid for reads of `given` elements; `f` must be an
/// `async_func_t` or an index.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn x10_async_spawn_packed(
    dest: i32,
    n: c_int,
    f: usize,
    given: c_int,
    args: *const i64,
) -> c_int {
    code("x10_asyncSpawnInline", |engine| {
        // SAFETY: passed on from the caller.
        spawn(engine, dest, f, unsafe { arguments(n, given, args)? })
    })
}
