//! A lock that is almost free for its owner.
//!
//! The owner, the first thread that takes the lock, pays two plain stores; another thread
//! pays a system call ([`super::membarrier`]), as much as some hundred uses of the owner
//! save. So where other threads take the lock very often and the owner does not, the bias is
//! given up, and the lock is a plain one for all threads from then on.
//!
//! Invariants: the owner is inside only if, after it has marked itself busy, no other thread
//! wanted the lock; another thread is inside only while it holds the mutex, after it has
//! marked the lock as wanted and has seen the owner outside. Where the bias is given up, the
//! lock stays wanted for ever, so that the owner takes the mutex too.

use super::membarrier::{heavy, light};
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use crate::sync::{BIAS_DOUBTED, Instant, Mutex, MutexGuard, spin_loop, this_thread, yield_now};
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

/// A lock with an owner.
#[derive(Debug, Default)]
pub struct BiasedLock<T> {
    owner: AtomicUsize,
    /// Incremented when the owner enters without the mutex, and when it leaves: odd while it
    /// is inside.
    turns: AtomicU32,
    /// Another thread is inside, or about to be.
    wanted: AtomicBool,
    others: Mutex<Others>,
    value: UnsafeCell<T>,
}

/// [`BIAS_DOUBTED`] uses by others within this time make the bias doubtful.
const SOON: Duration = Duration::from_millis(3);
/// The bias is given up unless the owner has entered this many times as often meanwhile.
const WORTH: u32 = 128;

/// What the threads that are not the owner know.
#[derive(Debug, Default)]
struct Others {
    /// How often they took the lock since `then`, and the owner's count at that time.
    count: u32,
    then: Option<Instant>,
    entries: u32,
    /// There is no bias any more.
    plain: bool,
}

// SAFETY: one thread at a time gets to the value, by the protocol above.
unsafe impl<T: Send> Sync for BiasedLock<T> {}

/// The owner is inside, and leaves when this is dropped.
#[derive(Debug)]
struct Inside<'a> {
    turns: &'a AtomicU32,
    /// The count on leaving.
    leaving: u32,
}

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        self.turns.store(self.leaving, Ordering::Release);
    }
}

#[derive(Debug)]
enum Holder<'a> {
    Owner(#[expect(dead_code, reason = "leaves when it is dropped")] Inside<'a>),
    Other(MutexGuard<'a, Others>),
}

/// The lock, held.
#[derive(Debug)]
pub struct BiasedGuard<'a, T> {
    lock: &'a BiasedLock<T>,
    way: Holder<'a>,
    /// The thread that took it gives it back.
    _here: PhantomData<*const ()>,
}

impl<T> BiasedLock<T> {
    /// Holds `value`; no thread owns it yet.
    pub fn new(value: T) -> BiasedLock<T> {
        BiasedLock {
            owner: AtomicUsize::new(0),
            turns: AtomicU32::new(0),
            wanted: AtomicBool::new(false),
            others: Mutex::new(Others::default()),
            value: UnsafeCell::new(value),
        }
    }

    /// Takes the lock, which the thread must not hold already.
    #[inline]
    pub fn lock(&self) -> BiasedGuard<'_, T> {
        let way = match self.enter() {
            Some(inside) => Holder::Owner(inside),
            None => Holder::Other(self.lock_as_another()),
        };
        BiasedGuard { lock: self, way, _here: PhantomData }
    }

    /// Enters without the mutex; `None` where the thread is not the owner, or another thread
    /// wants the lock.
    #[inline]
    fn enter(&self) -> Option<Inside<'_>> {
        if self.owner.load(Ordering::Relaxed) != this_thread() {
            return None;
        }
        // Only the owner writes it.
        let turns = self.turns.load(Ordering::Relaxed);
        assert!(turns & 1 == 0, "a lock is taken twice by one thread");
        self.turns.store(turns.wrapping_add(1), Ordering::Relaxed);
        light();
        let inside = Inside { turns: &self.turns, leaving: turns.wrapping_add(2) };
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
            let mut tries = 0u32;
            while self.turns.load(Ordering::Acquire) & 1 == 1 {
                tries += 1;
                if tries.is_multiple_of(64) {
                    yield_now();
                } else {
                    spin_loop();
                }
            }
            if self.owner.load(Ordering::Relaxed) != me {
                others.came(self.turns.load(Ordering::Relaxed) / 2);
            }
        }
        others
    }

    /// Runs `f` with the value if the thread is the owner and enters without the mutex: a way
    /// without a guard, for work of a few instructions.
    #[inline]
    pub fn owned<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        let _inside = self.enter()?;
        // SAFETY: as in `BiasedGuard::deref`: the owner is inside until the end.
        Some(f(unsafe { &mut *self.value.get() }))
    }

    /// Runs `f` once with the value: as [`BiasedLock::owned`] where that is possible, else with
    /// the lock.
    #[inline]
    pub fn with<R>(&self, mut f: impl FnMut(&mut T) -> R) -> R {
        match self.owned(&mut f) {
            Some(result) => result,
            None => f(&mut self.lock()),
        }
    }
}

impl Others {
    /// Another thread has taken the lock, when the owner had this count.
    fn came(&mut self, entries: u32) {
        self.count += 1;
        if self.count < BIAS_DOUBTED {
            return;
        }
        let now = Instant::now();
        let soon = self.then.is_some_and(|then| now - then < SOON);
        let worth = entries.wrapping_sub(self.entries) / WORTH >= self.count;
        self.plain = soon && !worth;
        (self.count, self.then, self.entries) = (0, Some(now), entries);
    }
}

impl<T> Deref for BiasedGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the lock is held: the owner entered while no thread wanted it, and a thread
        // that wants it from then on waits until the owner is not busy; or another thread
        // holds the mutex, and the owner stays outside while the lock is wanted.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for BiasedGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`.
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
        step(1); // this thread owns it
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
        *biased.lock() += 1; // this thread owns it
        let mut others = Others::default();
        let mut come = |entries: &mut u32, owner: u32, pause: Duration| {
            *entries = entries.wrapping_add(owner);
            others.then = others.then.map(|then| then - pause);
            (0..BIAS_DOUBTED).for_each(|_| others.came(*entries));
            others.plain
        };
        let (entries, long) = (&mut (u32::MAX - 100), 2 * SOON);
        assert!(!come(entries, 0, Duration::ZERO), "the first");
        for _ in 0..10 {
            assert!(!come(entries, 0, long), "seldom");
            assert!(!come(entries, WORTH * BIAS_DOUBTED, Duration::ZERO), "the owner more often");
        }
        assert!(come(entries, WORTH, Duration::ZERO));
        // So do threads, and all goes on.
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
        drop(biased.lock()); // this thread owns it
        let _held = biased.lock();
        drop(biased.lock());
    }
}
