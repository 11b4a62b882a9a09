//! A door that threads pass all the time, and that one thread shuts at last.
//!
//! A thread that passes counts itself in its own slot and then checks the door, as readers of
//! [`super::brlock`] do: two plain memory accesses. The thread that shuts the door pays for both
//! sides ([`super::membarrier`]). Afterwards it finds every thread that is inside, and no other
//! comes in.
//!
//! A thread that is inside may pass again, shut or not: it is waited for anyway. The counts are the
//! threads', not the door's, so a process has one door.

use super::membarrier::{heavy, light};
use super::reader_slot::{self, ReaderSlot};
use crate::sync::atomic::{AtomicBool, Ordering};
use std::marker::PhantomData;

/// The door.
#[derive(Debug)]
pub(crate) struct Door {
    shut: AtomicBool,
}

/// A thread is inside until this is dropped.
#[derive(Debug)]
pub(crate) struct Inside {
    slot: &'static ReaderSlot,
    /// The slot is this thread's.
    _here: PhantomData<*const ()>,
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        let inside = self.slot.inside.load(Ordering::Relaxed);
        self.slot.inside.store(inside - 1, Ordering::Release);
    }
}

impl Door {
    /// A door that is shut yet.
    pub(crate) const fn new() -> Door {
        Door { shut: AtomicBool::new(true) }
    }

    /// Goes in; `None` where the door is shut and the thread is not inside already.
    #[inline]
    pub(crate) fn pass(&self) -> Option<Inside> {
        let inside = self.pass_anyway();
        // The count must be visible before the check.
        light();
        let outermost = inside.slot.inside.load(Ordering::Relaxed) == 1;
        if outermost && self.shut.load(Ordering::Acquire) { None } else { Some(inside) }
    }

    /// Goes in whether the door is shut or not: for a thread that is known to be waited for.
    #[inline]
    pub(crate) fn pass_anyway(&self) -> Inside {
        let slot = reader_slot::mine();
        slot.inside.store(slot.inside.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        Inside { slot, _here: PhantomData }
    }

    /// Threads may pass from now on. What they are to see was stored before.
    pub(crate) fn open(&self) {
        self.shut.store(false, Ordering::Release);
    }

    /// No thread passes from now on, but those that are inside.
    pub(crate) fn shut(&self) {
        self.shut.store(true, Ordering::SeqCst);
        heavy();
    }

    /// Whether it is shut.
    #[inline]
    pub(crate) fn is_shut(&self) -> bool {
        self.shut.load(Ordering::Acquire)
    }

    /// Whether the calling thread is inside.
    pub(crate) fn am_inside(&self) -> bool {
        reader_slot::mine().inside.load(Ordering::Relaxed) > 0
    }

    /// How many other threads are inside.
    pub(crate) fn others_inside(&self) -> usize {
        let mine = reader_slot::mine();
        let all = reader_slot::all();
        // A slot made later is that of a thread that finds the door shut: it was made under the
        // lock of the list.
        let others = all.iter().filter(|slot| !std::ptr::eq(**slot, mine));
        others.filter(|slot| slot.inside.load(Ordering::Acquire) > 0).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn nobody_is_inside_when_the_last_has_left() {
        // The slots are the process's, so no other test may use a door.
        let (door, value, passed) = (Door::new(), AtomicU64::new(1), AtomicU64::new(0));
        assert!(door.pass().is_none());
        for _ in 0..if cfg!(miri) { 2 } else { 200 } {
            value.store(1, Ordering::Relaxed);
            door.open();
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        while let Some(_inside) = door.pass() {
                            assert_eq!(value.load(Ordering::Relaxed), 1);
                            let again = door.pass().expect("a thread that is inside may pass");
                            drop(again);
                            assert_eq!(value.load(Ordering::Relaxed), 1);
                            passed.fetch_add(1, Ordering::Relaxed);
                        }
                    });
                }
                let before = passed.load(Ordering::Relaxed);
                while passed.load(Ordering::Relaxed) < before + 10 {
                    std::thread::yield_now();
                }
                door.shut();
                while door.others_inside() > 0 {
                    std::thread::yield_now();
                }
                value.store(0, Ordering::Relaxed);
            });
            assert!(door.is_shut() && !door.am_inside());
        }
    }
}
