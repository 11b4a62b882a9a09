//! Accumulates and read-modify-writes through the shared mapping of the node.
//!
//! An operation is complete at the target when it returns: x86 and the release ordering of the
//! locks make its stores visible in program order, and a fence drains them. [`lock_stripe`]
//! describes how accumulates and read-modify-writes exclude each other.
//!
//! Scales are passed by reference: copying a `Scale` that was just built in parts loads it as a
//! whole, and that stall costs more than taking a lock.

use super::kernel::{self, Scale};
use super::lock_stripe;
use super::ops::{Combine, Rmw};
use portolan_base::layout::Shape;
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering, fence};

/// Computes `region[offset..] += scale * local` along `shape`, atomically for each element.
///
/// # Safety
/// `region` must be a mapped region that contains the remote extent of the shape at `offset`.
/// `local` must be valid for reads of the local extent.
pub unsafe fn accumulate(
    region: *mut u8,
    offset: usize,
    local: *const u8,
    shape: &Shape,
    scale: &Scale,
) {
    let mut held = None;
    shape.for_each(&mut |l, r| {
        let at = offset.wrapping_add_signed(r);
        // SAFETY: the row lies in the extents that the caller guarantees.
        unsafe { row(region, at, local.wrapping_offset(l), shape.block(), scale, &mut held) };
    });
}

/// # Safety
/// See [`accumulate`], for `bytes` contiguous bytes.
pub(crate) unsafe fn accumulate_row(
    region: *mut u8,
    offset: usize,
    local: *const u8,
    bytes: usize,
    scale: &Scale,
) {
    // SAFETY: the caller guarantees both rows.
    unsafe { row(region, offset, local, bytes, scale, &mut None) }
}

/// # Safety
/// See [`accumulate`], for 8 bytes on both sides.
#[inline]
pub(crate) unsafe fn accumulate_one(region: *mut u8, offset: usize, local: *const f64, scale: f64) {
    // SAFETY: the caller guarantees the region and the number on both sides.
    unsafe {
        if lock_stripe::holds(offset, 8) {
            let _held = lock_stripe::take(region, lock_stripe::of(offset));
            kernel::accumulate_one(local, region.add(offset).cast(), scale);
        } else {
            accumulate_row(region, offset, local.cast(), 8, &Scale::Double(scale));
        }
    }
}

/// Takes stripes one after the other; `held` is the previous row's. An element may need two.
#[inline]
unsafe fn row(
    region: *mut u8,
    mut at: usize,
    mut source: *const u8,
    bytes: usize,
    scale: &Scale,
    held: &mut Option<(usize, lock_stripe::LockStripeGuard)>,
) {
    let element = scale.element();
    let end = at + bytes;
    while at < end {
        let room = lock_stripe::SPAN - at % lock_stripe::SPAN;
        let mut n = (room - room % element).min(end - at);
        if n == 0 {
            n = element;
            *held = None;
            // SAFETY: the caller guarantees the region and both extents.
            unsafe {
                let _both = lock_stripe::take_two(region, at);
                kernel::accumulate(source, region.add(at), n, scale);
            }
        } else {
            let mine = lock_stripe::of(at);
            if held.as_ref().is_none_or(|(s, _)| *s != mine) {
                *held = None; // releases the stripe of the previous row
                // SAFETY: the caller guarantees the mapped region.
                *held = Some((mine, unsafe { lock_stripe::take(region, mine) }));
            }
            // SAFETY: the caller guarantees both extents, and this thread holds the stripe.
            unsafe {
                if scale.is_integer() && at.is_multiple_of(element) {
                    integers(region, at, source, n, scale);
                } else {
                    kernel::accumulate(source, region.add(at), n, scale);
                }
            }
        }
        at += n;
        source = source.wrapping_add(n);
    }
}

/// # Safety
/// See [`accumulate`], for `bytes` aligned bytes of one stripe, which the caller holds.
unsafe fn integers(
    region: *mut u8,
    mut at: usize,
    mut source: *const u8,
    mut bytes: usize,
    scale: &Scale,
) {
    while bytes > 0 {
        // SAFETY: the caller guarantees the region and both extents.
        let n = unsafe {
            let (marked, n) = lock_stripe::marked_alike(region, at, bytes);
            if marked {
                kernel::accumulate_atomically(source, region.add(at), n, scale);
            } else {
                kernel::accumulate(source, region.add(at), n, scale);
            }
            n
        };
        (at, source, bytes) = (at + n, source.wrapping_add(n), bytes - n);
    }
}

/// Returns the old value. Also a fence between the caller's earlier and later accesses.
macro_rules! combine {
    ($number:expr, $ty:ty, $op:expr) => {{
        let (number, op) = ($number, $op);
        let operand = op.operand().value() as $ty;
        match op.combine() {
            Combine::Load => {
                fence(Ordering::SeqCst);
                number.load(Ordering::SeqCst)
            }
            Combine::Add => number.fetch_add(operand, Ordering::SeqCst),
            Combine::Swap => number.swap(operand, Ordering::SeqCst),
            _ => {
                let mut old = number.load(Ordering::Relaxed);
                loop {
                    let new = op.apply(i64::from(old)) as $ty;
                    match number.compare_exchange_weak(
                        old,
                        new,
                        Ordering::SeqCst,
                        Ordering::Relaxed,
                    ) {
                        Ok(_) => break old,
                        Err(now) => old = now,
                    }
                }
            }
        }
    }};
}

/// # Safety
/// `region` must be a mapped region that contains the aligned number at `offset`.
#[inline]
pub unsafe fn rmw(region: *mut u8, offset: usize, op: Rmw) -> i64 {
    let at = region.wrapping_add(offset);
    // SAFETY: the caller guarantees the number. After the line is marked, all ranks change it
    // by atomic instructions.
    unsafe {
        if !lock_stripe::is_marked(region, offset) {
            lock_stripe::set_mark(region, offset);
        }
        if op.operand().is_wide() {
            combine!(&*at.cast::<AtomicI64>(), i64, op)
        } else {
            combine!(&*at.cast::<AtomicI32>(), i32, op).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::arena::HEADER;
    use std::sync::atomic::AtomicPtr;

    #[repr(align(64))]
    struct Region([u8; 3 * lock_stripe::SPAN]);

    #[test]
    fn integers_are_combined_by_accumulates_and_read_modify_writes_at_once() {
        const TIMES: i64 = if cfg!(miri) { 20 } else { 20_000 };
        const N: usize = 14;
        const COUNTER: usize = 9;
        let mut region = Box::new(Region([0; 3 * lock_stripe::SPAN]));
        let base = &AtomicPtr::new(region.0.as_mut_ptr());
        // The first elements lie in an unmarked line, and the last in another stripe.
        let at = 2 * lock_stripe::SPAN - 8 * (N - 2);
        assert!(at > HEADER);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(move || {
                    for _ in 0..TIMES {
                        // SAFETY: the region outlives the scope and contains the numbers.
                        unsafe {
                            rmw(base.load(Ordering::Relaxed), at + 8 * COUNTER, Rmw::add(1i64))
                        };
                    }
                });
            }
            scope.spawn(move || {
                let ones = [1i64; N];
                for _ in 0..TIMES {
                    // SAFETY: the region outlives the scope and contains the numbers.
                    unsafe {
                        accumulate_row(
                            base.load(Ordering::Relaxed),
                            at,
                            ones.as_ptr().cast(),
                            8 * N,
                            &Scale::Long(2),
                        );
                    }
                }
            });
        });
        // SAFETY: the region contains the numbers.
        let sums: Vec<i64> = (0..N)
            .map(|i| unsafe { rmw(base.load(Ordering::Relaxed), at + 8 * i, Rmw::load::<i64>()) })
            .collect();
        let expected: Vec<i64> =
            (0..N).map(|i| if i == COUNTER { 4 * TIMES } else { 2 * TIMES }).collect();
        assert_eq!(sums, expected);
    }

    #[test]
    fn each_operation_returns_the_old_value() {
        let mut region = Box::new(Region([0; 3 * lock_stripe::SPAN]));
        let base = region.0.as_mut_ptr();
        let mut at = HEADER;
        // SAFETY: the region contains the numbers.
        let mut check = |op: Rmw, from: i64, to: i64| unsafe {
            let set = if op.size() == 8 { Rmw::swap(from) } else { Rmw::swap(from as i32) };
            rmw(base, at, set);
            assert_eq!(rmw(base, at, op), from, "{op:?}");
            let load = if op.size() == 8 { Rmw::load::<i64>() } else { Rmw::load::<i32>() };
            assert_eq!(rmw(base, at, load), to, "{op:?}");
            at += 8;
        };
        check(Rmw::add(-3i64), 1, -2);
        check(Rmw::add(i64::MAX), i64::MAX, -2);
        check(Rmw::add(1i32), i32::MAX.into(), i32::MIN.into());
        check(Rmw::new(Combine::Xor, 6i64), 3, 5);
        check(Rmw::new(Combine::And, 6i32), 3, 2);
        check(Rmw::new(Combine::Or, 6i64), 3, 7);
        check(Rmw::new(Combine::Min, -1i64), 1, -1);
        check(Rmw::new(Combine::Min, u64::MAX), 1, 1);
        check(Rmw::new(Combine::Max, u32::MAX), 1, -1);
        check(Rmw::compare_swap(4i64, 9i64), 4, 9);
        check(Rmw::compare_swap(5i32, 9i32), 4, 4);
    }
}
