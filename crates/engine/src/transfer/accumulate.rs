//! Accumulates of contiguous elements. A single `f64`, the most frequent case, has its own fast
//! path.

use super::TransferKind;
use crate::error::Result;
use crate::layout::Shape;
use crate::memory::arena::Arena;
use crate::ops::Ops;
use crate::ops::traced::call_of;
use crate::path::kernel::Scale;
use crate::path::{self, Path, shm_atomics};

impl Ops {
    /// Accumulates `bytes` contiguous bytes. On return the source may be reused.
    ///
    /// # Errors
    /// Returns the errors of [`Ops::put`], and `Type` if `bytes` is not a multiple of the element
    /// size.
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
        // SAFETY: the caller guarantees that `local` is readable for `bytes` bytes.
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

    /// Adds a single `f64`, the most frequent accumulate, if the path is direct. Else returns
    /// false.
    ///
    /// # Errors
    /// Returns the errors of [`Ops::move_direct`].
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
        // SAFETY: the registry has checked that the number lies in the region, and the caller
        // guarantees that `local` is readable.
        self.at_direct(target, (remote, 8), path, |region, offset| unsafe {
            shm_atomics::accumulate_one(region, offset, local, scale);
        })
    }

    /// Implements [`Ops::accumulate`] for any number of bytes.
    ///
    /// # Safety
    /// The requirements of [`Ops::accumulate`] apply.
    #[inline(never)]
    unsafe fn accumulate_some(
        &self,
        kind: &TransferKind,
        target: usize,
        remote: usize,
        local: *const u8,
        bytes: usize,
    ) -> Result<()> {
        // SAFETY: the caller guarantees that `local` is readable for `bytes` bytes. An accumulate
        // only reads it.
        unsafe {
            if self.is_observed() {
                return self.accumulate_traced(kind, target, remote, local, bytes);
            }
            if self.accumulate_direct(kind, target, remote, local, bytes)? {
                return Ok(());
            }
            self.blocking(*kind, target, remote, local.cast_mut(), &Shape::contiguous(bytes))
        }
    }

    /// Accumulates if the path is direct. Returns false if it is not, if there is nothing to add,
    /// or if an argument is invalid.
    ///
    /// # Safety
    /// The requirements of [`Ops::accumulate`] apply.
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
        // SAFETY: the caller guarantees that `local` is readable for `bytes` bytes. An accumulate
        // only reads it.
        Ok(whole && unsafe { self.move_direct(kind, target, remote, local.cast_mut(), bytes) }?)
    }

    /// The traced variant of [`Ops::accumulate`].
    ///
    /// # Safety
    /// The requirements of [`Ops::accumulate`] apply.
    #[cold]
    #[inline(never)]
    unsafe fn accumulate_traced(
        &self,
        kind: &TransferKind,
        target: usize,
        remote: usize,
        local: *const u8,
        bytes: usize,
    ) -> Result<()> {
        let shape = Shape::contiguous(bytes);
        // SAFETY: the caller guarantees that `local` is readable for `bytes` bytes. An accumulate
        // only reads it.
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
        self.record(call_of(*kind, true), (target, remote), &shape, body)
    }
}
