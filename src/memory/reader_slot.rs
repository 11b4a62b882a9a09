//! A slot for each thread, in which the thread announces that it reads
//! ([`super::brlock`]), or that it is inside ([`super::door`]).

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::thread::{self, fast_tls};
use std::cell::Cell;
use std::ops::Deref;

/// What one thread announces to writers.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct ReaderSlot {
    /// How many readings of the thread are open.
    pub depth: AtomicU32,
    /// How often the thread has passed the door and not left.
    pub inside: AtomicU32,
    taken: AtomicBool,
}

static SLOTS: Mutex<Vec<&'static ReaderSlot>> = Mutex::new(Vec::new());

/// Gives the slot back when the thread ends.
struct Lease(&'static ReaderSlot);

impl Drop for Lease {
    fn drop(&mut self) {
        SLOT.set(None);
        self.0.taken.store(false, Ordering::Release);
    }
}

thread_local! {
    static LEASE: Cell<Option<Lease>> = const { Cell::new(None) };
}

fast_tls! {
    /// The first thread keeps its slot for ever; a thread that takes its place takes the slot.
    static SLOT: Option<&'static ReaderSlot> = None;
}

/// The calling thread's.
#[inline]
pub(super) fn mine() -> &'static ReaderSlot {
    SLOT.get().unwrap_or_else(new)
}

/// Whether the calling thread reads.
pub(super) fn is_reading() -> bool {
    SLOT.get().is_some_and(|slot| slot.depth.load(Ordering::Relaxed) > 0)
}

#[cold]
fn new() -> &'static ReaderSlot {
    let mut slots = SLOTS.lock();
    let free = slots.iter().find(|s| !s.taken.swap(true, Ordering::Acquire)).copied();
    let slot = free.unwrap_or_else(|| {
        let new: &'static ReaderSlot = Box::leak(Box::new(ReaderSlot {
            depth: AtomicU32::new(0),
            inside: AtomicU32::new(0),
            taken: AtomicBool::new(true),
        }));
        slots.push(new);
        new
    });
    SLOT.set(Some(slot));
    if thread::is_first() {
        return slot;
    }
    // A thread that is past its destructors keeps the slot for ever.
    let _ = LEASE.try_with(|lease| lease.set(Some(Lease(slot))));
    slot
}

/// All slots. No new one is made while they are held.
pub(super) fn all() -> impl Deref<Target = Vec<&'static ReaderSlot>> {
    SLOTS.lock()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::brlock::BrLock;

    #[test]
    fn slots_are_used_again() {
        let value = BrLock::new(1);
        for _ in 0..50 {
            std::thread::scope(|scope| {
                scope.spawn(|| assert_eq!(*value.read(), 1));
            });
        }
        assert!(all().len() < 40);
    }
}
