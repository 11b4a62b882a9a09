//! Asyncs in batches: one [`Aggregator`] for each function, number of arguments and handle.
//!
//! A batch is one message. Its header is the function's [`Name`] and the number of items; its data
//! is the arguments of all items, stored contiguously. An item finds its aggregator in a small hash
//! table that is read without a lock. Entries live until the end of X10Lib, when no call runs. If
//! the index of a function is registered anew, its key gets a new entry.

use super::function::{self, Name};
use super::handler_ids::BATCHES;
use super::{code, environment, refs, spawn};
use crate::boundary::export;
use parking_lot::Mutex;
use portolan_base::error::{Result, fail};
use portolan_engine::am::Am;
use portolan_engine::am::aggregate::Aggregator;
use portolan_engine::am::{Accept, Arrival, Destination, Handler, Then};
use portolan_engine::runtime::Engine;
use std::os::raw::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    f: usize,
    n: usize,
    handle: c_int,
}

struct Entry {
    key: Key,
    name: Name,
    /// The value of [`function::generation`] at the last check of the name.
    generation: AtomicU32,
    aggregator: Arc<Aggregator>,
}

/// Boxed, because slots point to the entries.
#[allow(clippy::vec_box)]
static ENTRIES: Mutex<Vec<Box<Entry>>> = Mutex::new(Vec::new());

const SLOTS: usize = 64;
static RECENT: [AtomicPtr<Entry>; SLOTS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; SLOTS];

impl Key {
    #[inline]
    fn slot(self) -> &'static AtomicPtr<Entry> {
        let mixed = (self.f >> 4) ^ self.n.wrapping_mul(7) ^ (self.handle as usize).wrapping_mul(5);
        &RECENT[(mixed ^ mixed >> 6) % SLOTS]
    }
}

/// Removes all entries. No other call may run.
pub(super) fn clear() {
    for slot in &RECENT {
        slot.store(std::ptr::null_mut(), Ordering::Release);
    }
    ENTRIES.lock().clear();
}

/// Returns the entry of a key, from its slot if possible.
#[inline]
fn entry(engine: &Engine, key: Key) -> Result<&'static Entry> {
    let recent = key.slot().load(Ordering::Acquire);
    if !recent.is_null() {
        // SAFETY: slots point to boxed entries. They live until `clear`, which runs alone.
        let recent = unsafe { &*recent };
        if recent.key == key && recent.generation.load(Ordering::Relaxed) == function::generation()
        {
            return Ok(recent);
        }
    }
    find(engine, key)
}

#[cold]
fn find(engine: &Engine, key: Key) -> Result<&'static Entry> {
    let generation = function::generation();
    let name = function::name(key.f, key.n as u32)?;
    let mut entries = ENTRIES.lock();
    if entries.iter().any(|e| e.key == key && e.name != name) {
        // The index of the function was registered anew. Send items of the old names first.
        parking_lot::MutexGuard::unlocked(&mut entries, || flush(engine, |other| *other == key))?;
    }
    // Another thread may have added the entry meanwhile.
    let at = match entries.iter().position(|e| e.key == key && e.name == name) {
        Some(at) => {
            entries[at].generation.store(generation, Ordering::Relaxed);
            at
        }
        None => {
            let item = key.n * 8;
            let limit = environment::aggregate_limit() * item.max(8);
            let header = bytemuck::bytes_of(&name);
            let aggregator = Aggregator::new(engine, BATCHES.id()?, header, item, limit)?;
            let generation = AtomicU32::new(generation);
            entries.push(Box::new(Entry { key, name, generation, aggregator }));
            entries.len() - 1
        }
    };
    let found = &raw mut *entries[at];
    key.slot().store(found, Ordering::Release);
    // SAFETY: `found` points to a boxed entry. It lives until `clear`, which runs alone.
    Ok(unsafe { &*found })
}

fn aggregators(which: impl Fn(&Key) -> bool) -> Vec<Arc<Aggregator>> {
    let entries = ENTRIES.lock();
    entries.iter().filter(|e| which(&e.key)).map(|e| e.aggregator.clone()).collect()
}

/// Sends the items that are collected under matching keys, with the table unlocked.
fn flush(engine: &Engine, which: impl Fn(&Key) -> bool) -> Result<()> {
    aggregators(which).iter().try_for_each(|a| a.flush(engine))
}

pub(super) fn flush_all(engine: &Engine) -> Result<()> {
    flush(engine, |_| true)
}

pub(super) struct Batches;

fn run(name: &Name, count: u64, items: &[u8]) -> Result<()> {
    let n = name.n as usize;
    if items.len() as u64 != count * n as u64 * 8 {
        fail!(Internal, "{} bytes for {count} items of {n} arguments", items.len());
    }
    spawn::run(function::resolve(name)?, n, count, items);
    environment::count_batch();
    Ok(())
}

impl Handler for Batches {
    fn arrive(&self, _engine: &Am, message: &Arrival<'_>) -> Result<Accept> {
        let (name, count) = spawn::read_name(message.header)?;
        let Ok(count) = count.try_into().map(u64::from_ne_bytes) else {
            fail!(Internal, "the header of a batch has {} bytes", message.header.len());
        };
        match message.data {
            Some(items) => run(&name, count, items)?,
            None if message.len == 0 => run(&name, count, &[])?,
            None => {
                let then = move |_: &Am, items: Vec<u8>| {
                    if let Err(error) = run(&name, count, &items) {
                        crate::boundary::abort(&error.to_string(), error.kind().code());
                    }
                };
                return Ok(Accept { to: Destination::Buffer, then: Then::Inline(Box::new(then)) });
            }
        }
        Ok(Accept::DONE)
    }
}

export! {
    x10_async_spawn_agg_packed(
        dest: i32, n: c_int, f: usize, handle: c_int, given: c_int, args: *const i64,
    ) -> c_int {
        code("x10_asyncSpawnInlineAgg", |engine| {
            // SAFETY: the caller guarantees that `args` is null or valid for `given` elements.
            let args = unsafe { spawn::arguments(n, given, args)? };
            let target = refs::rank(engine, dest)?;
            let entry = entry(engine, Key { f, n: args.len(), handle })?;
            match args {
                // A constant for the usual number of arguments lets the compiler specialise the
                // call.
                [arg] => entry.aggregator.push(engine, target, &arg.to_ne_bytes()),
                args => entry.aggregator.push(engine, target, bytemuck::cast_slice(args)),
            }
        })
    }
}

fn flush_checked(engine: &Engine, n: c_int, which: impl Fn(&Key) -> bool) -> Result<()> {
    let n = refs::count(n, "the number of arguments")?;
    flush(engine, |key| key.n == n && which(key))
}

export! {
    x10_flush(n: c_int, handle: c_int) -> c_int =
        code(|engine| flush_checked(engine, n, |key| key.handle == handle));

    x10_flush_func(n: c_int, f: usize, handle: c_int) -> c_int = code(|engine| {
        flush_checked(engine, n, |key| key.handle == handle && key.f == f)
    });
}
