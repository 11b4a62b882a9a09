//! The locks of accumulates.
//!
//! A region begins with [`LOCK_STRIPES`] spin locks, one per cache line. The byte at offset `o`
//! belongs to the lock stripe of its [`SPAN`]-byte part of the region. An operation on a longer
//! extent takes the stripes one after the other, because only single elements must be atomic.
//!
//! **Invariant.** A thread that accumulates holds the stripe of each byte that it changes, also for
//! elements that overlap in part or are not aligned. It holds two stripes only for an element that
//! lies in both, takes the lower number first, and holds no other, so no deadlock is possible.
//!
//! A read-modify-write is one atomic instruction without a stripe, so that ranks that use different
//! counters of an array do not wait for each other. Accumulates of integers must not change such a
//! number by plain stores meanwhile. The first read-modify-write in a cache line of the region
//! therefore *marks* the line for good, under its stripe. An accumulate looks for marks under the
//! same stripe, so it either ends before the mark is set, or sees the mark and adds each integer of
//! the line by an atomic instruction too. Other types have no read-modify-writes.

use crate::memory::arena::HEADER;
use portolan_base::wait::{self, RepeatedWait};
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) const LOCK_STRIPES: usize = 64;
/// Number of consecutive bytes that share a lock.
pub(crate) const SPAN: usize = 16 << 10;

pub const LINE: usize = 64;

const MARKS: usize = LOCK_STRIPES * LINE;
/// Number of marks. Lines at a multiple of this distance share a mark, which costs only time: they
/// share the stripe under which it is set.
const MARKED_LINES: usize = 8 * (HEADER - MARKS);
const WORD_SPAN: usize = 32 * LINE;

const _: () = assert!((MARKED_LINES * LINE).is_multiple_of(LOCK_STRIPES * SPAN));

#[inline]
pub fn of(offset: usize) -> usize {
    (offset / SPAN) % LOCK_STRIPES
}

#[inline]
pub fn holds(offset: usize, bytes: usize) -> bool {
    offset % SPAN + bytes <= SPAN
}

/// # Safety
/// `region` must be the mapping of a region during `'a`.
#[inline]
unsafe fn mark<'a>(region: *mut u8, offset: usize) -> (&'a AtomicU32, u32) {
    let at = offset / LINE % MARKED_LINES;
    // SAFETY: the marks lie behind the locks in the header, accessed only as atomics.
    let word = unsafe { &*region.wrapping_add(MARKS).cast::<AtomicU32>().wrapping_add(at / 32) };
    (word, 1 << (at % 32))
}

/// Returns whether only atomic instructions may change integers in the line of `offset`.
///
/// # Safety
/// See [`take`].
#[inline]
pub(crate) unsafe fn is_marked(region: *mut u8, offset: usize) -> bool {
    // SAFETY: the caller guarantees the mapped region.
    let (word, bit) = unsafe { mark(region, offset) };
    word.load(Ordering::Acquire) & bit != 0
}

/// Marks the line of `offset` for atomic changes only. The caller must hold no stripe.
///
/// # Safety
/// See [`take`].
#[cold]
pub(crate) unsafe fn set_mark(region: *mut u8, offset: usize) {
    // SAFETY: the caller guarantees the mapped region.
    unsafe {
        let _held = take(region, of(offset));
        let (word, bit) = mark(region, offset);
        word.fetch_or(bit, Ordering::Release);
    }
}

/// Returns whether the first of `bytes` bytes at `offset` is in a marked line, and the number of
/// bytes up to a line of the other kind. The caller holds the stripe of all of them.
///
/// # Safety
/// See [`take`].
#[inline]
pub(crate) unsafe fn marked_alike(region: *mut u8, offset: usize, bytes: usize) -> (bool, usize) {
    let limit = offset + bytes;
    // SAFETY: the caller guarantees the mapped region.
    let marked = unsafe { is_marked(region, offset) };
    let mut end = offset - offset % LINE + LINE;
    while end < limit {
        // SAFETY: the caller guarantees the mapped region.
        let (word, bit) = unsafe { mark(region, end) };
        let word = word.load(Ordering::Acquire);
        if word == 0 && !marked {
            end = end - end % WORD_SPAN + WORD_SPAN;
        } else if (word & bit != 0) == marked {
            end += LINE;
        } else {
            break;
        }
    }
    (marked, end.min(limit) - offset)
}

#[derive(Debug)]
pub(crate) struct LockStripeGuard {
    lock: *const AtomicU32,
}

/// # Safety
/// `region` must be the mapping of a region while the guard lives.
#[inline]
pub unsafe fn take(region: *mut u8, lock_stripe: usize) -> LockStripeGuard {
    let word = region.wrapping_add(lock_stripe * LINE).cast::<AtomicU32>();
    // SAFETY: the header has `LOCK_STRIPES` aligned words, accessed only as atomics. A new file
    // contains zeros, the unlocked state.
    let lock = unsafe { &*word };
    if lock.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
        contended(lock);
    }
    LockStripeGuard { lock }
}

/// Takes the stripe of `offset` and the next one. The caller must hold no stripe.
///
/// # Safety
/// See [`take`].
#[cold]
pub(crate) unsafe fn take_two(region: *mut u8, offset: usize) -> [LockStripeGuard; 2] {
    let (a, b) = (of(offset), of(offset + SPAN));
    // SAFETY: the caller keeps the region mapped.
    unsafe { [take(region, a.min(b)), take(region, a.max(b))] }
}

#[cold]
fn contended(lock: &AtomicU32) {
    // Loads do not take the cache line away from the holder.
    let held = || {
        lock.load(Ordering::Relaxed) != 0
            || lock.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err()
    };
    let mut turns = None;
    wait::while_held(held, || {
        let turns = turns.get_or_insert_with(RepeatedWait::begin);
        if let Some(standing) = turns.check((), "a lock of shared memory, which another rank holds")
        {
            standing.report(&portolan_base::process::pending().unwrap_or_default());
        }
    });
}

impl Drop for LockStripeGuard {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the caller of `take` keeps the region mapped.
        unsafe { (*self.lock).store(0, Ordering::Release) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: u64 = if cfg!(miri) { 20 } else { 20_000 };

    #[test]
    fn threads_exclude_each_other() {
        #[repr(align(64))]
        struct Region([u8; 4096]);
        let mut region = Box::new(Region([0; 4096]));
        let base = region.0.as_mut_ptr() as usize;
        let mut total = 0u64;
        let shared = &raw mut total as usize;
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(move || {
                    for _ in 0..TIMES {
                        // SAFETY: both outlive the scope. The lock serializes increments.
                        unsafe {
                            let _held = take(base as *mut u8, 5);
                            *(shared as *mut u64) += 1;
                        }
                    }
                });
            }
        });
        assert_eq!(total, 3 * TIMES);
        assert_eq!(of(SPAN * LOCK_STRIPES + 1), 0);
    }

    #[test]
    fn neighbours_are_taken_in_order() {
        #[repr(align(64))]
        struct Region([u8; 4096]);
        let mut region = Box::new(Region([0; 4096]));
        let base = region.0.as_mut_ptr() as usize;
        assert!(holds(SPAN - 8, 8) && !holds(SPAN - 7, 8));
        let mut total = 0u64;
        let shared = &raw mut total as usize;
        std::thread::scope(|scope| {
            // Stripes 62, 63; 63, 0; 0, 1: deadlock if each thread took its lower offset first.
            for lock_stripe in [62, 63, 64] {
                scope.spawn(move || {
                    for _ in 0..TIMES {
                        // SAFETY: `region` and `total` outlive the scope. Both stripes guard it.
                        unsafe {
                            let _both = take_two(base as *mut u8, lock_stripe * SPAN);
                            if lock_stripe == 63 {
                                *(shared as *mut u64) += 1;
                            }
                        }
                    }
                });
            }
        });
        assert_eq!(total, TIMES);
    }
}
