//! Calls of MPI that block, so that a thread that hangs in one is seen by another.
//!
//! A wait of the engine looks at the clock itself. A call such as `MPI_Win_flush` does
//! not come back to do so: the thread notes it in a slot of its own before, and clears
//! the slot afterwards, which are plain stores; the watchdog's thread reads the slots.

use parking_lot::Mutex;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The calls.
const NAMES: [&str; 7] = [
    "MPI_Win_flush",
    "MPI_Win_flush_local",
    "MPI_Win_create",
    "MPI_Win_free",
    "MPI_Comm_dup",
    "MPI_Comm_create_group",
    "MPI_Comm_free",
];

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// `MPI_Win_flush`
    WinFlush,
    /// `MPI_Win_flush_local`
    WinFlushLocal,
    /// `MPI_Win_create`
    WinCreate,
    /// `MPI_Win_free`
    WinFree,
    /// `MPI_Comm_dup`
    CommDup,
    /// `MPI_Comm_create_group`
    CommCreate,
    /// `MPI_Comm_free`
    CommFree,
}

/// The blocking call that one thread is in.
#[derive(Debug)]
struct ThreadSlot {
    /// Milliseconds of the coarse clock at which the call began; 0 is none.
    since: AtomicU64,
    call: AtomicUsize,
    /// The rank of the window or communicator; `usize::MAX` is all.
    rank: AtomicUsize,
}

static SLOTS: Mutex<Vec<&'static ThreadSlot>> = Mutex::new(Vec::new());

thread_local! {
    static SLOT: Cell<Option<&'static ThreadSlot>> = const { Cell::new(None) };
}

#[cold]
fn new_slot() -> &'static ThreadSlot {
    // Threads that block in MPI are few, and their slots small: they are kept.
    let slot: &'static ThreadSlot = Box::leak(Box::new(ThreadSlot {
        since: AtomicU64::new(0),
        call: AtomicUsize::new(0),
        rank: AtomicUsize::new(0),
    }));
    SLOTS.lock().push(slot);
    SLOT.set(Some(slot));
    slot
}

/// Notes a call until it is dropped.
#[derive(Debug)]
pub(crate) struct Inside(&'static ThreadSlot);

impl Inside {
    /// The calling thread is about to call; `None` concerns all ranks.
    #[inline]
    pub(crate) fn enter(call: Call, rank: Option<usize>) -> Inside {
        let slot = SLOT.get().unwrap_or_else(new_slot);
        slot.call.store(call as usize, Ordering::Relaxed);
        slot.rank.store(rank.unwrap_or(usize::MAX), Ordering::Relaxed);
        slot.since.store(super::coarse_ms().max(1), Ordering::Release);
        Inside(slot)
    }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        self.0.since.store(0, Ordering::Release);
    }
}

/// A call that some thread is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stuck {
    /// Its name and whom it concerns.
    pub what: String,
    /// When it began, in milliseconds of the coarse clock.
    pub since: u64,
}

/// The calls that threads are in now, the oldest first.
pub(super) fn all() -> Vec<Stuck> {
    let mut all = Vec::new();
    for slot in SLOTS.lock().iter() {
        let since = slot.since.load(Ordering::Acquire);
        if since == 0 {
            continue;
        }
        let name = NAMES[slot.call.load(Ordering::Relaxed) % NAMES.len()];
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
        let inside = Inside::enter(Call::WinFlush, Some(4711));
        assert!(mine(all()));
        assert!(all()[0].what.starts_with("MPI_Win_flush towards"));
        drop(inside);
        assert!(!mine(all()));
    }
}
