//! Accumulates and read-modify-writes through the shared mapping of the node.
//!
//! An operation is complete when it returns, at the target too: x86 and the release ordering of the
//! locks make its stores visible in program order, and a fence drains them. The target does not
//! take part.
//!
//! Scales are passed by reference. A copy of a `Scale` that was just built loads as a whole what
//! was stored in parts, and that stall of the processor costs more than taking a lock.

use super::kernel::{self, Scale};
use super::lock_stripe;
use super::ops::Rmw;
use crate::layout::Shape;

/// Computes `region[offset..] += scale * local` along `shape`, atomically for each element.
///
/// # Safety
/// `region` must be the mapping of a region that contains the remote extent of the shape at
/// `offset`. `local` must be valid for reads of the local extent.
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
        // SAFETY: the caller guarantees both extents, and each row lies in them.
        unsafe { row(region, at, local.wrapping_offset(l), shape.block(), scale, &mut held) };
    });
}

/// Like [`accumulate`], for contiguous bytes.
///
/// # Safety
/// The requirements of [`accumulate`] apply, for `bytes` bytes on both sides.
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

/// Like [`accumulate`], for one `f64`.
///
/// # Safety
/// The requirements of [`accumulate`] apply, for 8 bytes on both sides.
#[inline]
pub(crate) unsafe fn accumulate_one(region: *mut u8, offset: usize, local: *const f64, scale: f64) {
    // SAFETY: the caller guarantees the mapped region and the number on both sides.
    unsafe {
        if lock_stripe::holds(offset, 8) {
            let _held = lock_stripe::take(region, lock_stripe::of(offset));
            kernel::accumulate_one(local, region.add(offset).cast(), scale);
        } else {
            accumulate_row(region, offset, local.cast(), 8, &Scale::Double(scale));
        }
    }
}

/// Accumulates one row, taking the lock stripes that it covers one after the other. `held` is the
/// stripe still held from the previous row, if any. An element that is not aligned may lie in two
/// stripes; then both are held.
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
        // Process whole elements up to the end of the stripe.
        let mut n = (room - room % element).min(end - at);
        if n == 0 {
            n = element;
            *held = None;
            // SAFETY: the caller guarantees the mapped region and both extents.
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
            // SAFETY: the caller guarantees both extents.
            unsafe { kernel::accumulate(source, region.add(at), n, scale) };
        }
        at += n;
        source = source.wrapping_add(n);
    }
}

/// Combines the number at `region[offset..]` with the operand of `op`, and returns the old value.
/// Stores nothing if the number does not change, so that a load and a failed compare-and-swap undo
/// no put.
///
/// # Safety
/// `region` must be the mapping of a region that contains the aligned number at `offset`.
#[inline]
pub unsafe fn rmw(region: *mut u8, offset: usize, op: Rmw) -> i64 {
    let at = region.wrapping_add(offset);
    // SAFETY: the caller guarantees the mapped region and the number. The lock stripe makes the
    // read and the write one step for all ranks of the domain. The accesses are volatile because
    // other processes change the number.
    unsafe {
        let _held = lock_stripe::take(region, lock_stripe::of(offset));
        if op.operand().is_wide() {
            let p = at.cast::<i64>();
            let old = p.read_volatile();
            let new = op.apply(old);
            if new != old {
                p.write_volatile(new);
            }
            old
        } else {
            let p = at.cast::<i32>();
            let old = p.read_volatile();
            let new = op.apply(old.into()) as i32;
            if new != old {
                p.write_volatile(new);
            }
            old.into()
        }
    }
}
