//! Accumulates of contiguous elements: of one number, the commonest, and of any.

use super::TransferKind;
use crate::error::Result;
use crate::layout::Shape;
use crate::memory::slab::Slab;
use crate::ops::Ops;
use crate::ops::told::call_of;
use crate::path::kernel::Scale;
use crate::path::{self, Path, shm_atomics};

impl Ops {
    /// Accumulates contiguous elements. On return the source may be reused.
    ///
    /// # Errors
    /// As for [`Ops::put`]; `Type` where the bytes are no whole number of
    /// elements.
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
        // SAFETY: passed on from the caller.
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

    /// Adds one number, the commonest accumulate, where the path is direct; else false.
    ///
    /// # Errors
    /// As for [`Ops::move_direct`].
    ///
    /// # Safety
    /// `local` must be valid for a read; it need not be aligned.
    #[inline(always)]
    unsafe fn add_one(
        &self,
        target: usize,
        remote: usize,
        local: *const f64,
        scale: f64,
    ) -> Result<bool> {
        let aligned = remote.is_multiple_of(align_of::<f64>());
        let path = |slab: &Slab, slice| path::for_accumulate(slab, slice, aligned);
        // SAFETY: the number lies in the slice; the caller vouches for `local`.
        self.at_direct(target, (remote, 8), path, |slice, offset| unsafe {
            shm_atomics::accumulate_one(slice, offset, local, scale);
        })
    }

    /// [`Ops::accumulate`] of any bytes.
    ///
    /// # Safety
    /// As there.
    #[inline(never)]
    unsafe fn accumulate_some(
        &self,
        kind: &TransferKind,
        target: usize,
        remote: usize,
        local: *const u8,
        bytes: usize,
    ) -> Result<()> {
        // SAFETY: passed on from the caller; an accumulate only reads.
        unsafe {
            if self.is_observed() {
                return self.accumulate_told(kind, target, remote, local, bytes);
            }
            if self.accumulate_direct(kind, target, remote, local, bytes)? {
                return Ok(());
            }
            self.blocking(*kind, target, remote, local.cast_mut(), &Shape::contiguous(bytes))
        }
    }

    /// Accumulates where the path is direct; else false, as where there is nothing to add, or an argument is wrong.
    ///
    /// # Safety
    /// As for [`Ops::accumulate`].
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
        // SAFETY: passed on from the caller; an accumulate only reads.
        Ok(whole && unsafe { self.move_direct(kind, target, remote, local.cast_mut(), bytes) }?)
    }

    /// [`Ops::accumulate`], told of to the observer.
    ///
    /// # Safety
    /// As there.
    #[cold]
    #[inline(never)]
    unsafe fn accumulate_told(
        &self,
        kind: &TransferKind,
        target: usize,
        remote: usize,
        local: *const u8,
        bytes: usize,
    ) -> Result<()> {
        let shape = Shape::contiguous(bytes);
        // SAFETY: passed on from the caller; an accumulate only reads.
        let body = || unsafe {
            let direct = match (bytes, kind) {
                (8, TransferKind::Accumulate(Scale::Double(scale))) if !local.is_null() => {
                    self.add_one(target, remote, local.cast(), *scale)?
                }
                _ => self.accumulate_direct(kind, target, remote, local, bytes)?,
            };
            if direct {
                return Ok(Some(Path::Direct));
            }
            self.issue_and_wait(*kind, target, remote, local.cast_mut(), &shape)
        };
        self.tell(call_of(*kind, true), (target, remote), &shape, body)
    }
}
