//! A big-reader lock, for a value that is read very often and changed rarely.
//!
//! A reader announces itself in a slot of its own thread and then checks for a writer: two plain
//! memory accesses, and no cache line that readers on other cores share. The writer pays for both
//! sides ([`super::membarrier`]): it announces the change and waits until no thread reads.
//!
//! Reads of the same lock may nest. An inner read skips the check, because the writer waits for the
//! outer one. All locks share the slots, so a nested read of a different lock, which would skip it
//! too, is not allowed. A reader must neither write nor wait for a writer, even indirectly.

use super::membarrier::{heavy, light};
use super::reader_slot::{self, ReaderSlot};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering, fence};
use crate::wait::while_held;
use std::cell::UnsafeCell;
use std::ops::Deref;

/// Returns whether the calling thread holds a read guard, and so must not wait for other ranks.
pub fn is_reading() -> bool {
    reader_slot::is_reading()
}

#[derive(Debug, Default)]
pub struct BrLock<T> {
    value: UnsafeCell<T>,
    changing: AtomicBool,
    changer: Mutex<()>,
}

// SAFETY: as in `RwLock`, shared references exist only while no thread writes, and an exclusive one
// only while no thread reads.
unsafe impl<T: Send + Sync> Sync for BrLock<T> {}

#[derive(Debug)]
pub struct BrReadGuard<'a, T> {
    value: &'a T,
    slot: &'static ReaderSlot,
    /// `!Send`: `slot` belongs to this thread.
    _here: std::marker::PhantomData<*const ()>,
}

impl<'a, T> BrReadGuard<'a, T> {
    /// # Safety
    /// The caller must not use the value after the guard is dropped.
    #[inline]
    pub unsafe fn value(&self) -> &'a T {
        self.value
    }
}

impl<T> Deref for BrReadGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        self.value
    }
}

impl<T> Drop for BrReadGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let depth = self.slot.depth.load(Ordering::Relaxed);
        self.slot.depth.store(depth - 1, Ordering::Release);
    }
}

impl<T> BrLock<T> {
    pub fn new(value: T) -> BrLock<T> {
        BrLock {
            value: UnsafeCell::new(value),
            changing: AtomicBool::new(false),
            changer: Mutex::new(()),
        }
    }

    /// Waits while another thread changes the value.
    #[inline]
    pub fn read(&self) -> BrReadGuard<'_, T> {
        let slot = reader_slot::mine();
        let depth = slot.depth.load(Ordering::Relaxed);
        slot.depth.store(depth + 1, Ordering::Relaxed);
        // The announcement above must be visible before the check below.
        light();
        if self.changing.load(Ordering::Acquire) && depth == 0 {
            self.after_change(slot);
        }
        // SAFETY: no thread writes while this thread is announced. Either it announced itself
        // first, and the writer waits for its slot, or it waited for the writer. In a nested read,
        // the writer waits for the outer one.
        let value = unsafe { &*self.value.get() };
        BrReadGuard { value, slot, _here: std::marker::PhantomData }
    }

    #[cold]
    fn after_change(&self, slot: &ReaderSlot) {
        while self.changing.load(Ordering::Acquire) {
            slot.depth.store(0, Ordering::Release);
            drop(self.changer.lock());
            slot.depth.store(1, Ordering::Relaxed);
            fence(Ordering::SeqCst);
        }
    }

    /// Changes the value while no thread reads it. Panics if the calling thread reads a value of
    /// any lock of this kind.
    pub fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        struct Announced<'a>(&'a AtomicBool);
        impl Drop for Announced<'_> {
            fn drop(&mut self) {
                self.0.store(false, Ordering::Release);
            }
        }
        assert_eq!(
            reader_slot::mine().depth.load(Ordering::Relaxed),
            0,
            "a thread that reads would change"
        );
        let _one = self.changer.lock();
        self.changing.store(true, Ordering::Relaxed);
        let _announced = Announced(&self.changing);
        heavy();
        // A thread whose slot is created later, under the lock of the list, sees the announcement.
        for slot in reader_slot::all().iter() {
            while_held(|| slot.depth.load(Ordering::Acquire) != 0, || ());
        }
        // SAFETY: no thread reads until `_announced` drops, and other writers wait for `changer`.
        change(unsafe { &mut *self.value.get() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUNDS: u64 = if cfg!(miri) { 12 } else { 2000 };

    #[test]
    fn readers_see_whole_changes() {
        let pair = BrLock::new(vec![0u64; 64]);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut last = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let seen = pair.read();
                        let inner = pair.read();
                        assert!(inner.iter().all(|v| *v == seen[0]));
                        assert!(seen[0] >= last);
                        last = seen[0];
                    }
                });
            }
            for round in 1..ROUNDS {
                pair.change(|values| {
                    if round % 7 == 0 {
                        *values = vec![0; 64];
                    }
                    values.fill(round);
                });
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert_eq!(pair.read()[63], ROUNDS - 1);
    }

    #[test]
    #[should_panic(expected = "a thread that reads would change")]
    fn changing_while_reading_is_refused() {
        let value = BrLock::new(1);
        let _reading = value.read();
        value.change(|v| *v = 2);
    }
}
