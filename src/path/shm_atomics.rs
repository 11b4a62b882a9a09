//! Load and store through the node's shared mapping.
//!
//! An operation is complete, at the target too, when it returns: x86 and the
//! release ordering of the locks make its stores visible in program order, and a
//! fence drains them. Nothing of the target is needed.
//!
//! Scales go by reference: a copy right after one was made reads as a whole what was written in
//! parts, and for that the processor waits longer than for a lock.

use super::kernel::{self, Scale};
use super::ops::Rmw;
use super::stripe;
use crate::layout::Shape;

/// `slice[offset..] += scale * local` along `shape`, atomically for each
/// element.
///
/// # Safety
/// `slice` must be a mapped slice in which the shape's remote extent at `offset`
/// lies, and `local` valid for reads of its local extent.
pub(crate) unsafe fn accumulate(
    slice: *mut u8,
    offset: usize,
    local: *const u8,
    shape: &Shape,
    scale: &Scale,
) {
    let mut held = None;
    shape.for_each(&mut |l, r| {
        let at = offset.wrapping_add_signed(r);
        // SAFETY: passed on from the caller.
        unsafe { row(slice, at, local.wrapping_offset(l), shape.block(), scale, &mut held) };
    });
}

/// As [`accumulate`], for contiguous bytes.
///
/// # Safety
/// As for [`accumulate`].
pub(crate) unsafe fn accumulate_row(
    slice: *mut u8,
    offset: usize,
    local: *const u8,
    bytes: usize,
    scale: &Scale,
) {
    // SAFETY: passed on from the caller.
    unsafe { row(slice, offset, local, bytes, scale, &mut None) }
}

/// As [`accumulate`], for one number.
///
/// # Safety
/// As there.
#[inline]
pub(crate) unsafe fn accumulate_one(slice: *mut u8, offset: usize, local: *const f64, scale: f64) {
    // SAFETY: passed on from the caller.
    unsafe {
        if stripe::holds(offset, 8) {
            let _held = stripe::take(slice, stripe::of(offset));
            kernel::accumulate_one(local, slice.add(offset).cast(), scale);
        } else {
            accumulate_row(slice, offset, local.cast(), 8, &Scale::Double(scale));
        }
    }
}

/// Accumulates one row, taking the stripes that it lies in one after the other;
/// `held` is the stripe held from the row before, if any. For an element that lies in two
/// stripes, as one that is not aligned may, both are held.
#[inline]
unsafe fn row(
    slice: *mut u8,
    mut at: usize,
    mut source: *const u8,
    bytes: usize,
    scale: &Scale,
    held: &mut Option<(usize, stripe::StripeGuard)>,
) {
    let element = scale.element();
    let end = at + bytes;
    while at < end {
        let room = stripe::SPAN - at % stripe::SPAN;
        // To the end of the stripe, in whole elements.
        let mut n = (room - room % element).min(end - at);
        if n == 0 {
            n = element;
            *held = None;
            // SAFETY: the caller vouches for the slice and both extents.
            unsafe {
                let _both = stripe::take_two(slice, at);
                kernel::accumulate(source, slice.add(at), n, scale);
            }
        } else {
            let mine = stripe::of(at);
            if held.as_ref().is_none_or(|(s, _)| *s != mine) {
                *held = None; // that of the row before
                // SAFETY: the caller vouches for the slice.
                *held = Some((mine, unsafe { stripe::take(slice, mine) }));
            }
            // SAFETY: the caller vouches for both extents.
            unsafe { kernel::accumulate(source, slice.add(at), n, scale) };
        }
        at += n;
        source = source.wrapping_add(n);
    }
}

/// Combines the number at `slice[offset..]` and returns what was there.
///
/// # Safety
/// `slice` must be a mapped slice that holds the aligned number at `offset`.
#[inline]
pub(crate) unsafe fn rmw(slice: *mut u8, offset: usize, op: Rmw) -> i64 {
    let at = slice.wrapping_add(offset);
    // SAFETY: the caller vouches for the slice; the stripe lock makes the
    // read and write one step for everyone in the domain. Volatile, because
    // other processes change the number.
    unsafe {
        let _held = stripe::take(slice, stripe::of(offset));
        match op {
            Rmw::AddInt(v) => {
                let p = at.cast::<i32>();
                let old = p.read_volatile();
                p.write_volatile(old.wrapping_add(v));
                i64::from(old)
            }
            Rmw::AddLong(v) => {
                let p = at.cast::<i64>();
                let old = p.read_volatile();
                p.write_volatile(old.wrapping_add(v));
                old
            }
            Rmw::SwapInt(v) => {
                let p = at.cast::<i32>();
                let old = p.read_volatile();
                p.write_volatile(v);
                i64::from(old)
            }
            Rmw::SwapLong(v) => {
                let p = at.cast::<i64>();
                let old = p.read_volatile();
                p.write_volatile(v);
                old
            }
        }
    }
}
