//! Blocking MPI calls, recorded so that another thread notices if one hangs. Such a call cannot
//! check the clock itself, so the thread stores the call in a slot of its own before, and clears
//! the slot afterwards. The watchdog's thread reads the slots.

use parking_lot::Mutex;
use std::cell::Cell;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// Milliseconds of a clock that costs little to read.
pub(crate) fn coarse_ms() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid structure, which the call overwrites.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut now) };
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}

#[derive(Debug)]
struct ThreadSlot {
    /// Start of the call in milliseconds of the coarse clock, or 0 if in no call.
    since: AtomicU64,
    /// The name of the call.
    call: AtomicPtr<&'static str>,
    /// The rank in the window or communicator, or `usize::MAX` for all.
    rank: AtomicUsize,
}

static SLOTS: Mutex<Vec<&'static ThreadSlot>> = Mutex::new(Vec::new());

thread_local! {
    static SLOT: Cell<Option<&'static ThreadSlot>> = const { Cell::new(None) };
}

#[cold]
fn new_slot() -> &'static ThreadSlot {
    // Never freed. Slots are small, and few threads block in MPI.
    let slot: &'static ThreadSlot = Box::leak(Box::new(ThreadSlot {
        since: AtomicU64::new(0),
        call: AtomicPtr::default(),
        rank: AtomicUsize::new(0),
    }));
    SLOTS.lock().push(slot);
    SLOT.set(Some(slot));
    slot
}

#[derive(Debug)]
pub struct InMpi(&'static ThreadSlot);

impl InMpi {
    /// The calling thread enters a call that concerns `rank`, or all ranks.
    #[inline]
    pub fn enter(call: &'static &'static str, rank: Option<usize>) -> InMpi {
        let slot = SLOT.get().unwrap_or_else(new_slot);
        slot.call.store(std::ptr::from_ref(call).cast_mut(), Ordering::Relaxed);
        slot.rank.store(rank.unwrap_or(usize::MAX), Ordering::Relaxed);
        slot.since.store(coarse_ms().max(1), Ordering::Release);
        InMpi(slot)
    }
}

impl Drop for InMpi {
    #[inline]
    fn drop(&mut self) {
        self.0.since.store(0, Ordering::Release);
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stuck {
    /// The name of the call, and the rank that it concerns.
    pub what: String,
    /// In milliseconds of the coarse clock.
    pub since: u64,
}

/// The oldest first.
pub(crate) fn all() -> Vec<Stuck> {
    let mut all = Vec::new();
    for slot in SLOTS.lock().iter() {
        let since = slot.since.load(Ordering::Acquire);
        if since == 0 {
            continue;
        }
        // SAFETY: `enter` has stored the address of a constant before `since`.
        let name = unsafe { *slot.call.load(Ordering::Relaxed) };
        let whom = match slot.rank.load(Ordering::Relaxed) {
            usize::MAX => String::from("of all ranks of a group"),
            rank => format!("towards rank {rank} of its group"),
        };
        all.push(Stuck { what: format!("{name} {whom}"), since });
    }
    all.sort_by_key(|stuck| stuck.since);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_seen_while_it_lasts() {
        let mine = |all: Vec<Stuck>| all.iter().any(|s| s.what.contains("rank 4711"));
        assert!(!mine(all()));
        let inside = InMpi::enter(&"MPI_Win_flush", Some(4711));
        assert!(mine(all()));
        assert!(all()[0].what.starts_with("MPI_Win_flush towards"));
        drop(inside);
        assert!(!mine(all()));
    }
}
