//! Barriers that one side pays for both, and a lock that is almost free for its owner.
//!
//! Where one thread does something all the time and others rarely, the frequent side
//! can do without locked instructions: the rare side lets the kernel put a memory
//! barrier into every thread of the process (`membarrier(2)`). Where the kernel has
//! no such call, the frequent side uses a barrier of its own. So it does under Miri and in the
//! models, which know nothing of the call: what is checked there is the protocol with a
//! sequentially consistent fence on both sides, which the call gives to both.

use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering, compiler_fence, fence};
use crate::sync::{MEMBARRIER, Mutex, spin_loop, this_thread, yield_now};
use std::cell::UnsafeCell;
use std::sync::OnceLock;

/// Whether the rare side puts the barrier into the frequent one.
#[inline]
fn asymmetric() -> bool {
    if !MEMBARRIER {
        return false;
    }
    static ASYMMETRIC: OnceLock<bool> = OnceLock::new();
    *ASYMMETRIC.get_or_init(|| membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
}

fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: the call touches no memory of ours; commands that the kernel does
    // not know are refused.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// The frequent side's barrier: what it stored before is seen by a thread that calls
/// [`heavy`], or what it loads afterwards is seen as that thread left it.
#[inline]
pub fn light() {
    if asymmetric() {
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

/// The rare side's: a barrier in every thread of the process.
pub fn heavy() {
    fence(Ordering::SeqCst);
    if !asymmetric() {
        return;
    }
    let done = membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
        // A process made by fork has to say again that it will use it.
        || membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
            && membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
        || membarrier(libc::MEMBARRIER_CMD_GLOBAL);
    assert!(done, "membarrier was there and is there no more");
}

/// A lock that costs its owner, the first thread that takes it, two plain stores, and
/// everybody else a system call.
#[derive(Debug, Default)]
pub struct Biased<T> {
    owner: AtomicUsize,
    /// The owner is inside.
    busy: AtomicBool,
    /// Another thread is inside, or about to be.
    wanted: AtomicBool,
    others: Mutex<()>,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time gets to the value, by the protocol below.
unsafe impl<T: Send> Sync for Biased<T> {}

impl<T> Biased<T> {
    /// Holds `value`; nobody owns it yet.
    pub fn new(value: T) -> Biased<T> {
        Biased {
            owner: AtomicUsize::new(0),
            busy: AtomicBool::new(false),
            wanted: AtomicBool::new(false),
            others: Mutex::new(()),
            value: UnsafeCell::new(value),
        }
    }

    /// Runs `f` with the value. `f` must not use the lock again, nor panic.
    #[inline]
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        if self.owner.load(Ordering::Relaxed) == this_thread() {
            self.busy.store(true, Ordering::Relaxed);
            light();
            if !self.wanted.load(Ordering::Acquire) {
                // SAFETY: any other thread that sets `wanted` from here on waits
                // until `busy` is false again.
                let result = f(unsafe { &mut *self.value.get() });
                self.busy.store(false, Ordering::Release);
                return result;
            }
            self.busy.store(false, Ordering::Release);
        }
        self.with_others(f)
    }

    #[cold]
    fn with_others<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        let _one = self.others.lock();
        let me = this_thread();
        let _ = self.owner.compare_exchange(0, me, Ordering::Relaxed, Ordering::Relaxed);
        self.wanted.store(true, Ordering::Relaxed);
        heavy();
        let mut tries = 0u32;
        while self.busy.load(Ordering::Acquire) {
            tries += 1;
            if tries.is_multiple_of(64) {
                yield_now();
            } else {
                spin_loop();
            }
        }
        // SAFETY: the owner is outside and stays there while `wanted` is set; others
        // wait for the lock.
        let result = f(unsafe { &mut *self.value.get() });
        self.wanted.store(false, Ordering::Release);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_and_others_exclude_each_other() {
        let (own, others) = if cfg!(miri) { (40, 5) } else { (200_000, 500) };
        let biased = Biased::new(vec![0u64; 8]);
        let step = |n: u64| {
            biased.with(|v| {
                let before = v[0];
                assert!(v.iter().all(|x| *x == before));
                v.iter_mut().for_each(|x| *x += n);
            });
        };
        step(1); // this thread owns it
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..others).for_each(|_| step(1)));
            }
            (0..own).for_each(|_| step(1));
        });
        assert_eq!(biased.with(|v| v[7]), 1 + own + 2 * others);
    }
}
