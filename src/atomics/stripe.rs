//! The locks of the native atomicity domain.
//!
//! A slice begins with [`STRIPES`] spin locks, one a cache line. A byte at
//! offset `o` belongs to the stripe of its [`SPAN`]-byte part of the slice. An
//! operation on a longer extent takes the stripes one after the other, so that
//! each element is combined atomically, as the interfaces ask, and no two locks
//! are ever held together.

use std::sync::atomic::{AtomicU32, Ordering};

/// Locks per slice.
pub const STRIPES: usize = 64;
/// Bytes that share a lock with their neighbours.
pub const SPAN: usize = 16 << 10;

const LINE: usize = 64;
const SPIN: u32 = 128;

const _: () = assert!(STRIPES * LINE <= crate::memory::slab::HEADER);

/// The stripe that the byte at `offset` belongs to.
#[inline]
pub fn of(offset: usize) -> usize {
    (offset / SPAN) % STRIPES
}

/// A held stripe; released on drop.
#[derive(Debug)]
pub struct Held {
    lock: *const AtomicU32,
}

/// Takes a stripe of the slice that is mapped at `slice`.
///
/// # Safety
/// `slice` must be the mapping of a slice, and stay mapped while the guard lives.
#[inline]
pub unsafe fn take(slice: *mut u8, stripe: usize) -> Held {
    let word = slice.wrapping_add(stripe * LINE).cast::<AtomicU32>();
    // SAFETY: the header of a mapped slice holds STRIPES aligned words that are
    // only used as these atomics; a new file reads as zeros, which is free.
    let lock = unsafe { &*word };
    if lock.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
        contended(lock);
    }
    Held { lock }
}

#[cold]
fn contended(lock: &AtomicU32) {
    let mut tries = 0u32;
    loop {
        // Look before trying: only then does the holder keep its cache line.
        while lock.load(Ordering::Relaxed) != 0 {
            tries += 1;
            if tries.is_multiple_of(SPIN) {
                // The holder may have lost its core.
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
        if lock.compare_exchange_weak(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            return;
        }
    }
}

impl Drop for Held {
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
}
