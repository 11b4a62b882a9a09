//! A door that many threads pass frequently and that one thread shuts.
//!
//! A thread that enters increments the count in its own slot and then checks the door: two plain
//! memory accesses. The thread that shuts the door pays for both sides ([`super::membarrier`]) and
//! can then count the threads inside.
//!
//! A thread that is inside may enter again even if the door is shut. The counts belong to the
//! threads, so a process has a fixed number of doors ([`reader_slot::DOORS`]).

use super::membarrier::{heavy, light};
use super::reader_slot::{self, DOORS};
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::marker::PhantomData;

#[derive(Debug)]
pub struct Door {
    shut: AtomicBool,
    number: usize,
}

#[derive(Debug)]
pub struct InsideDoor {
    count: &'static AtomicU32,
    /// `!Send`: `count` belongs to this thread.
    _here: PhantomData<*const ()>,
}

impl Drop for InsideDoor {
    #[inline]
    fn drop(&mut self) {
        self.count.store(self.count.load(Ordering::Relaxed) - 1, Ordering::Release);
    }
}

impl Door {
    /// Each door of the process needs its own number below [`DOORS`].
    pub const fn new(number: usize) -> Door {
        assert!(number < DOORS);
        Door { shut: AtomicBool::new(true), number }
    }

    /// Enters. Returns `None` if the door is shut and the thread is not inside already.
    #[inline]
    pub fn pass(&self) -> Option<InsideDoor> {
        let inside = self.announce();
        let outermost = inside.count.load(Ordering::Relaxed) == 1;
        if outermost && self.shut.load(Ordering::Acquire) { None } else { Some(inside) }
    }

    /// Enters even if the door is shut, for threads that are certain to be waited for.
    #[inline]
    pub fn pass_anyway(&self) -> InsideDoor {
        let count = self.mine();
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        InsideDoor { count, _here: PhantomData }
    }

    /// Enters even if the door is shut, for threads that then load a pointer to what they use. The
    /// thread that shuts the door clears the pointer first. It then sees the count of each thread
    /// that has loaded the pointer before.
    #[inline]
    pub fn announce(&self) -> InsideDoor {
        let inside = self.pass_anyway();
        light();
        inside
    }

    #[inline]
    fn mine(&self) -> &'static AtomicU32 {
        &reader_slot::mine().inside[self.number]
    }

    /// Opens the door. Threads that pass see all stores made before this call.
    pub fn open(&self) {
        self.shut.store(false, Ordering::Release);
    }

    pub fn shut(&self) {
        self.shut.store(true, Ordering::SeqCst);
        heavy();
    }

    #[inline]
    pub fn is_shut(&self) -> bool {
        self.shut.load(Ordering::Acquire)
    }

    pub fn am_inside(&self) -> bool {
        self.depth() > 0
    }

    /// The number of times that this thread has entered and not left.
    pub fn depth(&self) -> u32 {
        self.mine().load(Ordering::Relaxed)
    }

    pub fn others_inside(&self) -> usize {
        let mine = self.mine();
        let all = reader_slot::all();
        // A thread whose slot is created later, under the lock of the list, finds the door shut.
        let counts = all.iter().map(|slot| &slot.inside[self.number]);
        let others = counts.filter(|count| !std::ptr::eq(*count, mine));
        others.filter(|count| count.load(Ordering::Acquire) > 0).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn nobody_is_inside_when_the_last_has_left() {
        // All doors of the process share the slots, so no other test may use a door.
        let (door, value, passed) = (Door::new(0), AtomicU64::new(1), AtomicU64::new(0));
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
