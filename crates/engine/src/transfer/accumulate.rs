//! Accumulates of contiguous elements, with a fast path for a single `f64`, the most frequent case.

use super::TransferKind;
use crate::error::Result;
use crate::layout::Shape;
use crate::memory::arena::Arena;
use crate::ops::Ops;
use crate::path::kernel::Scale;
use crate::path::{self, shm_atomics};

impl Ops {
    /// On return the source may be reused. Fails as [`Ops::put`], and with `Type` if `bytes` is not
    /// a multiple of the element size.
    ///
    /// # Safety
    /// `local` must be valid for reads of `bytes` bytes.
    #[inline(always)]
    pub unsafe fn accumulate(
        &self,
        target: usize,
        remote: usize,
        local: *const u8,
        bytes: usize,
        scale: Scale,
    ) -> Result<()> {
        self.check_rank(target)?;
        // SAFETY: the caller guarantees the readable bytes.
        unsafe {
            if let (8, Scale::Double(scale)) = (bytes, scale)
                && !local.is_null()
                && !self.is_observed()
                && self.add_one(target, remote, local.cast(), scale)?
            {
                return Ok(());
            }
            self.accumulate_some(&TransferKind::Accumulate(scale), target, remote, local, bytes)
        }
    }

    /// Adds a single `f64` if the path is direct. Else returns false.
    ///
    /// # Safety
    /// `local` must be valid for a read. It need not be aligned.
    #[inline(always)]
    unsafe fn add_one(
        &self,
        target: usize,
        remote: usize,
        local: *const f64,
        scale: f64,
    ) -> Result<bool> {
        let aligned = remote.is_multiple_of(align_of::<f64>());
        let path = |arena: &Arena, region| path::for_accumulate(arena, region, aligned);
        // SAFETY: the registry has checked the number in the region; the caller guarantees `local`.
        self.at_direct(target, (remote, 8), path, |region, offset| unsafe {
            shm_atomics::accumulate_one(region, offset, local, scale);
        })
    }

    /// # Safety
    /// See [`Ops::accumulate`].
    #[inline(never)]
    unsafe fn accumulate_some(
        &self,
        kind: &TransferKind,
        target: usize,
        remote: usize,
        local: *const u8,
        bytes: usize,
    ) -> Result<()> {
        // SAFETY: the caller guarantees the readable bytes, which an accumulate only reads.
        unsafe {
            if self.is_observed() {
                let (local, shape) = (local.cast_mut(), Shape::contiguous(bytes));
                return self.observed_transfer(*kind, target, remote, local, &shape, None);
            }
            if self.accumulate_direct(kind, target, remote, local, bytes)? {
                return Ok(());
            }
            self.blocking(*kind, target, remote, local.cast_mut(), &Shape::contiguous(bytes))
        }
    }

    /// # Safety
    /// See [`Ops::accumulate`].
    #[inline(always)]
    unsafe fn accumulate_direct(
        &self,
        kind: &TransferKind,
        target: usize,
        remote: usize,
        local: *const u8,
        bytes: usize,
    ) -> Result<bool> {
        let whole = bytes > 0 && !local.is_null() && bytes.is_multiple_of(kind.unit());
        // SAFETY: the caller guarantees the readable bytes, which an accumulate only reads.
        Ok(whole && unsafe { self.move_direct(kind, target, remote, local.cast_mut(), bytes) }?)
    }

    /// Returns false, and moves no byte, if the path is not direct.
    ///
    /// # Safety
    /// `local` must be valid for `bytes` bytes.
    #[inline(always)]
    pub(super) unsafe fn contiguous_direct(
        &self,
        kind: TransferKind,
        target: usize,
        remote: usize,
        local: *mut u8,
        bytes: usize,
    ) -> Result<bool> {
        self.check_rank(target)?;
        // SAFETY: the caller guarantees `local`.
        unsafe {
            match kind {
                TransferKind::Accumulate(Scale::Double(scale))
                    if bytes == 8 && !local.is_null() =>
                {
                    self.add_one(target, remote, local.cast(), scale)
                }
                TransferKind::Accumulate(_) => {
                    self.accumulate_direct(&kind, target, remote, local, bytes)
                }
                _ => self.try_direct(kind, target, remote, local, bytes),
            }
        }
    }
}
