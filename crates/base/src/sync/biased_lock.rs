//! A lock that is almost free for its owner.
//!
//! The first thread that takes the lock becomes its owner and pays two plain stores for each use.
//! Any other thread pays a system call ([`super::membarrier`]), which costs about what a hundred
//! uses by the owner save. The lock becomes a plain mutex if the owner does not take it much more
//! often than the other threads do.
//!
//! Invariants:
//!
//! - The owner is inside only if it marked itself busy and then found the lock not wanted.
//! - Another thread is inside only while it holds the mutex, after it marked the lock as wanted and
//!   then found the owner outside.
//! - After the bias is given up, the lock stays wanted, so that the owner takes the mutex too.

use super::membarrier::{heavy, light};
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use crate::sync::{BIAS_DOUBTED, Mutex, MutexGuard, this_thread};
use crate::wait::while_held;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

#[derive(Debug, Default)]
pub struct BiasedLock<T> {
    owner: AtomicUsize,
    /// Odd while the owner is inside without the mutex.
    turns: AtomicU32,
    /// A thread other than the owner is inside or about to enter.
    wanted: AtomicBool,
    others: Mutex<Others>,
    value: UnsafeCell<T>,
}

/// The bias is kept if the owner entered at least this often per use by another thread. This is
/// checked after every [`BIAS_DOUBTED`] uses by others.
const WORTH: u32 = 128;

#[derive(Debug, Default)]
struct Others {
    /// Uses by other threads since the owner's count was `entries`.
    count: u32,
    entries: u32,
    plain: bool,
}

// SAFETY: the protocol of the module documentation gives one thread at a time access to the value.
unsafe impl<T: Send> Sync for BiasedLock<T> {}

#[derive(Debug)]
struct InsideRead<'a> {
    turns: &'a AtomicU32,
    leaving: u32,
}

impl Drop for InsideRead<'_> {
    #[inline]
    fn drop(&mut self) {
        self.turns.store(self.leaving, Ordering::Release);
    }
}

#[derive(Debug)]
enum Holder<'a> {
    Owner(#[expect(dead_code, reason = "leaves when it is dropped")] InsideRead<'a>),
    Other(MutexGuard<'a, Others>),
}

#[derive(Debug)]
pub struct BiasedGuard<'a, T> {
    lock: &'a BiasedLock<T>,
    way: Holder<'a>,
    /// `!Send`: the thread that took the lock must release it.
    _here: PhantomData<*const ()>,
}

impl<T> BiasedLock<T> {
    pub fn new(value: T) -> BiasedLock<T> {
        BiasedLock {
            owner: AtomicUsize::new(0),
            turns: AtomicU32::new(0),
            wanted: AtomicBool::new(false),
            others: Mutex::new(Others::default()),
            value: UnsafeCell::new(value),
        }
    }

    /// If this thread holds the lock, panics (entered as the owner) or deadlocks.
    #[inline]
    pub fn lock(&self) -> BiasedGuard<'_, T> {
        let way = match self.enter() {
            Some(inside) => Holder::Owner(inside),
            None => Holder::Other(self.lock_as_another()),
        };
        BiasedGuard { lock: self, way, _here: PhantomData }
    }

    #[inline]
    fn enter(&self) -> Option<InsideRead<'_>> {
        if self.owner.load(Ordering::Relaxed) != this_thread() {
            return None;
        }
        // Only the owner writes `turns`, so a plain load and store suffice.
        let turns = self.turns.load(Ordering::Relaxed);
        assert!(turns & 1 == 0, "a lock is taken twice by one thread");
        self.turns.store(turns.wrapping_add(1), Ordering::Relaxed);
        light();
        let inside = InsideRead { turns: &self.turns, leaving: turns.wrapping_add(2) };
        (!self.wanted.load(Ordering::Acquire)).then_some(inside)
    }

    #[cold]
    fn lock_as_another(&self) -> MutexGuard<'_, Others> {
        let mut others = self.others.lock();
        if !others.plain {
            let me = this_thread();
            let _ = self.owner.compare_exchange(0, me, Ordering::Relaxed, Ordering::Relaxed);
            self.wanted.store(true, Ordering::Relaxed);
            heavy();
            while_held(|| self.turns.load(Ordering::Acquire) & 1 == 1, || ());
            if self.owner.load(Ordering::Relaxed) != me {
                others.came(self.turns.load(Ordering::Relaxed) / 2);
            }
        }
        others
    }

    /// Only for the owner, without the mutex or a guard.
    #[inline]
    fn owned<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        let _inside = self.enter()?;
        // SAFETY: the owner entered, so no other thread has the lock until `_inside` is dropped.
        Some(f(unsafe { &mut *self.value.get() }))
    }

    /// Runs `f` once, like [`BiasedLock::owned`] if possible, otherwise with the lock.
    #[inline]
    pub fn with<R>(&self, mut f: impl FnMut(&mut T) -> R) -> R {
        match self.owned(&mut f) {
            Some(result) => result,
            None => f(&mut self.lock()),
        }
    }
}

impl Others {
    /// Counts a use by another thread and decides about the bias. `entries` counts the owner's.
    fn came(&mut self, entries: u32) {
        self.count += 1;
        if self.count < BIAS_DOUBTED {
            return;
        }
        self.plain = entries.wrapping_sub(self.entries) / WORTH < self.count;
        (self.count, self.entries) = (0, entries);
    }
}

impl<T> Deref for BiasedGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard holds the lock alone. A thread that wants the lock waits until the
        // owner is outside, and the owner stays outside while another thread holds the mutex.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for BiasedGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard holds the lock, as explained in `deref`, and is borrowed exclusively.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for BiasedGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if let Holder::Other(others) = &self.way
            && !others.plain
        {
            self.lock.wanted.store(false, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_and_others_exclude_each_other() {
        let (own, others) = if cfg!(miri) { (40, 5) } else { (200_000, 500) };
        let biased = BiasedLock::new(vec![0u64; 8]);
        let step = |n: u64| {
            let add = |v: &mut Vec<u64>| {
                let before = v[0];
                assert!(v.iter().all(|x| *x == before));
                v.iter_mut().for_each(|x| *x += n);
            };
            biased.with(add);
        };
        step(1); // this thread becomes the owner
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..others).for_each(|_| step(1)));
            }
            (0..own).for_each(|_| step(1));
        });
        assert_eq!(biased.lock()[7], 1 + own + 2 * others);
    }

    #[test]
    fn the_bias_is_given_up_where_others_come_too_often() {
        let biased = BiasedLock::new(0u32);
        *biased.lock() += 1; // this thread becomes the owner
        let (mut others, mut entries) = (Others::default(), u32::MAX - 100);
        others.entries = entries;
        let mut come = |owner: u32| {
            entries = entries.wrapping_add(owner);
            (0..BIAS_DOUBTED).for_each(|_| others.came(entries));
            others.plain
        };
        for _ in 0..10 {
            assert!(!come(WORTH * BIAS_DOUBTED), "the owner more often");
        }
        assert!(come(WORTH * BIAS_DOUBTED - 1));
        // The lock works whether or not these threads give up the bias.
        let often = 100 * BIAS_DOUBTED;
        std::thread::scope(|scope| {
            scope.spawn(|| (0..often).for_each(|_| *biased.lock() += 1));
        });
        (0..10).for_each(|_| *biased.lock() += 1);
        assert_eq!(*biased.lock(), 11 + often);
    }

    #[test]
    #[should_panic(expected = "taken twice")]
    fn taking_it_twice_is_found() {
        let biased = BiasedLock::new(1);
        drop(biased.lock()); // this thread becomes the owner
        let _held = biased.lock();
        drop(biased.lock());
    }
}
