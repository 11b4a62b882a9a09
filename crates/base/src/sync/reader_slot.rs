//! A slot in which a thread announces that it reads ([`super::brlock`]) or is inside
//! ([`super::door`]).

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::thread::{self, fast_tls};
use std::cell::Cell;
use std::ops::Deref;

pub(super) const DOORS: usize = 2;

#[derive(Debug)]
#[repr(align(64))]
pub(super) struct ReaderSlot {
    pub depth: AtomicU32,
    /// By door.
    pub inside: [AtomicU32; DOORS],
    taken: AtomicBool,
}

static SLOTS: Mutex<Vec<&'static ReaderSlot>> = Mutex::new(Vec::new());

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
    /// The first thread never releases its slot; a later first thread inherits it.
    static SLOT: Option<&'static ReaderSlot> = None;
}

#[inline]
pub(super) fn mine() -> &'static ReaderSlot {
    SLOT.get().unwrap_or_else(new)
}

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
            inside: [const { AtomicU32::new(0) }; DOORS],
            taken: AtomicBool::new(true),
        }));
        slots.push(new);
        new
    });
    SLOT.set(Some(slot));
    if thread::is_first() {
        return slot;
    }
    // If this thread's destructors have already run, the slot is never released.
    let _ = LEASE.try_with(|lease| lease.set(Some(Lease(slot))));
    slot
}

/// Returns all slots. None is created while the result is held.
pub(super) fn all() -> impl Deref<Target = Vec<&'static ReaderSlot>> {
    SLOTS.lock()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::brlock::BrLock;

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
