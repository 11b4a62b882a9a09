//! The locks of the native atomicity domain.
//!
//! A slice begins with [`STRIPES`] spin locks, one a cache line. A byte at
//! offset `o` belongs to the stripe of its [`SPAN`]-byte part of the slice. An
//! operation on a longer extent takes the stripes one after the other, so that
//! each element is combined atomically, as the interfaces ask.
//!
//! **Invariant.** A thread that changes a byte holds its stripe, so that also elements that
//! overlap in part, or are not aligned, are combined one after the other. An element that
//! lies in two stripes is the one case in which two are held: the one with the lower number
//! is taken first, and no other is held then, so that there is no circle of waits.

use crate::wait::Turns;
use std::sync::atomic::{AtomicU32, Ordering};

/// Locks per slice.
pub(crate) const STRIPES: usize = 64;
/// Bytes that share a lock with their neighbours.
pub(crate) const SPAN: usize = 16 << 10;

/// Bytes of a lock's line, of which the lock uses the first four.
pub(crate) const LINE: usize = 64;
const SPIN: u32 = 128;

const _: () = assert!(STRIPES * LINE <= crate::memory::slab::HEADER);

/// The stripe that the byte at `offset` belongs to.
#[inline]
pub(crate) fn of(offset: usize) -> usize {
    (offset / SPAN) % STRIPES
}

/// Whether `bytes` bytes at `offset` lie in one stripe.
#[inline]
pub(crate) fn holds(offset: usize, bytes: usize) -> bool {
    offset % SPAN + bytes <= SPAN
}

/// A held stripe; released on drop.
#[derive(Debug)]
pub(crate) struct StripeGuard {
    lock: *const AtomicU32,
}

/// Takes a stripe of the slice that is mapped at `slice`.
///
/// # Safety
/// `slice` must be the mapping of a slice, and stay mapped while the guard lives.
#[inline]
pub(crate) unsafe fn take(slice: *mut u8, stripe: usize) -> StripeGuard {
    let word = slice.wrapping_add(stripe * LINE).cast::<AtomicU32>();
    // SAFETY: the header of a mapped slice holds STRIPES aligned words that are
    // only used as these atomics; a new file reads as zeros, which is free.
    let lock = unsafe { &*word };
    if lock.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
        contended(lock);
    }
    StripeGuard { lock }
}

/// Takes the stripe that `offset` lies in and the next one. The caller holds none.
///
/// # Safety
/// As for [`take`].
#[cold]
pub(crate) unsafe fn take_two(slice: *mut u8, offset: usize) -> [StripeGuard; 2] {
    let (a, b) = (of(offset), of(offset + SPAN));
    // SAFETY: passed on from the caller.
    unsafe { [take(slice, a.min(b)), take(slice, a.max(b))] }
}

#[cold]
fn contended(lock: &AtomicU32) {
    let (mut tries, mut turns) = (0u32, None);
    loop {
        // Look before trying: only then does the holder keep its cache line.
        while lock.load(Ordering::Relaxed) != 0 {
            tries += 1;
            if tries.is_multiple_of(SPIN) {
                // The holder may have lost its core, or be stopped.
                std::thread::yield_now();
                let turns = turns.get_or_insert_with(Turns::begin);
                if let Some(standing) =
                    turns.look((), "a lock of shared memory, which another rank holds")
                {
                    standing.report(&crate::process::pending().unwrap_or_default());
                }
            } else {
                std::hint::spin_loop();
            }
        }
        if lock.compare_exchange_weak(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            return;
        }
    }
}

impl Drop for StripeGuard {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the slice is mapped while the guard lives.
        unsafe { (*self.lock).store(0, Ordering::Release) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_exclude_each_other() {
        #[repr(align(64))]
        struct Slice([u8; 4096]);
        let mut slice = Box::new(Slice([0; 4096]));
        let base = slice.0.as_mut_ptr() as usize;
        let mut total = 0u64;
        let shared = &raw mut total as usize;
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(move || {
                    for _ in 0..20_000 {
                        // SAFETY: `slice` and `total` outlive the scope; the
                        // lock makes the increments exclusive.
                        unsafe {
                            let _held = take(base as *mut u8, 5);
                            *(shared as *mut u64) += 1;
                        }
                    }
                });
            }
        });
        assert_eq!(total, 60_000);
        assert_eq!(of(SPAN * STRIPES + 1), 0);
    }

    #[test]
    fn neighbours_are_taken_in_order() {
        #[repr(align(64))]
        struct Slice([u8; 4096]);
        let mut slice = Box::new(Slice([0; 4096]));
        let base = slice.0.as_mut_ptr() as usize;
        assert!(holds(SPAN - 8, 8) && !holds(SPAN - 7, 8));
        let mut total = 0u64;
        let shared = &raw mut total as usize;
        std::thread::scope(|scope| {
            // 62 and 63, 63 and 0, 0 and 1: in a circle, were they taken as they lie.
            for stripe in [62, 63, 64] {
                scope.spawn(move || {
                    for _ in 0..20_000 {
                        // SAFETY: `slice` and `total` outlive the scope; the number is
                        // changed under stripe 63 or 0, by those who hold both as well.
                        unsafe {
                            let _both = take_two(base as *mut u8, stripe * SPAN);
                            if stripe == 63 {
                                *(shared as *mut u64) += 1;
                            }
                        }
                    }
                });
            }
        });
        assert_eq!(total, 20_000);
    }
}
