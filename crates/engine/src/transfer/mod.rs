//! Put, get and accumulate: blocking, with or without handles; contiguous, strided and vector.
//!
//! A call checks the rank, finds the remote extent in the registry (before any byte moves), chooses
//! the path, issues the transfer, and completes it. Blocking puts and accumulates return when their
//! source may be reused, blocking gets when the bytes have arrived. Non-blocking transfers complete
//! in a [`Handle`], or in the target's implicit counter. A transfer of zero bytes is valid for any
//! addresses.

mod handle;
mod issue;
mod vector;

pub use crate::path::ops::{Transfer, TransferKind};
pub use handle::Handle;

use crate::core::peer::CompletionCounter;
use crate::memory::arena::Arena;
use crate::memory::registry::Hit;
use crate::ops::traced::{call_of, path_taken};
use crate::ops::{Ops, check_local};
use crate::path::kernel::{self, Scale};
use crate::path::{self, Path, shm_atomics};
use portolan_base::error::{Result, fail};
use portolan_base::layout::Shape;
use portolan_base::mutation::{self, Fault};
use portolan_base::trace::Entered;
use std::sync::Arc;

/// The statistics time only some of the transfers of up to this many bytes.
const SHORT: usize = 4096;

#[inline]
fn check_elements(scale: Scale, block: usize) -> Result<()> {
    let element = scale.element();
    if !block.is_multiple_of(element) {
        fail!(Type, "{block} contiguous bytes are not a multiple of the {element}-byte elements");
    }
    Ok(())
}

impl Ops {
    /// On return the source may be reused. Fails with `Rank` for an invalid target, `Address` if
    /// the remote bytes are not all in one segment, and `Argument` if the source is null. No byte
    /// has moved then.
    ///
    /// # Safety
    /// `local` must be valid for reads of `bytes` bytes.
    #[inline(always)]
    pub unsafe fn put(
        &self,
        target: usize,
        remote: usize,
        local: *const u8,
        bytes: usize,
    ) -> Result<()> {
        // SAFETY: the caller guarantees the readable bytes, which a put only reads.
        unsafe { self.contiguous(&TransferKind::Put, target, remote, local.cast_mut(), bytes) }
    }

    /// The bytes have arrived on return. Fails as [`Ops::put`].
    ///
    /// # Safety
    /// `local` must be valid for writes of `bytes` bytes.
    #[inline(always)]
    pub unsafe fn get(
        &self,
        target: usize,
        remote: usize,
        local: *mut u8,
        bytes: usize,
    ) -> Result<()> {
        // SAFETY: the caller guarantees the writable bytes.
        unsafe { self.contiguous(&TransferKind::Get, target, remote, local, bytes) }
    }

    /// On return the source may be reused. Fails as [`Ops::put`], and with `Type` if `bytes` is not
    /// a multiple of the element size. A single `f64`, the most frequent case, has a fast path.
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
        let local = local.cast_mut();
        // SAFETY: the caller guarantees the readable bytes, which an accumulate only reads.
        unsafe {
            match (bytes, scale) {
                (8, Scale::Double(one)) => {
                    let kind = TransferKind::Accumulate(Scale::Double(one));
                    self.contiguous(&kind, target, remote, local, 8)
                }
                _ => {
                    let kind = TransferKind::Accumulate(scale);
                    self.accumulate_some(&kind, target, remote, local, bytes)
                }
            }
        }
    }

    /// # Safety
    /// See [`Ops::accumulate`].
    #[inline(never)]
    unsafe fn accumulate_some(
        &self,
        kind: &TransferKind,
        target: usize,
        remote: usize,
        local: *mut u8,
        bytes: usize,
    ) -> Result<()> {
        // SAFETY: the caller upholds the same requirements.
        unsafe { self.contiguous(kind, target, remote, local, bytes) }
    }

    /// The kind is a reference, because the compiler knows what a constant refers to.
    ///
    /// # Safety
    /// `local` must be valid for `bytes` bytes: for writes in a get, else for reads.
    #[inline(always)]
    unsafe fn contiguous(
        &self,
        kind: &TransferKind,
        target: usize,
        remote: usize,
        local: *mut u8,
        bytes: usize,
    ) -> Result<()> {
        // SAFETY: the caller upholds the same requirements.
        unsafe {
            // An observed call is recorded when it is issued.
            if !self.is_observed() && self.try_direct(kind, target, remote, local, bytes)? {
                return Ok(());
            }
            let shape = &Shape::contiguous(bytes);
            self.blocking(&Transfer { kind: *kind, target, remote, local, shape })
        }
    }

    /// # Safety
    /// See [`Ops::observe`].
    #[cold]
    #[inline(never)]
    unsafe fn observed_transfer(
        &self,
        transfer: &Transfer<'_>,
        counter: Option<&Arc<CompletionCounter>>,
    ) -> Result<()> {
        // SAFETY: the caller upholds the same requirements.
        unsafe { self.observe(transfer, counter) }
    }

    /// Performs a transfer that is counted or traced. With `counter`, only issues it. Its caller
    /// is cold, so that the branch to it is unlikely. This function is not, because a cold
    /// function is optimised for size.
    ///
    /// # Safety
    /// See [`Ops::issue_by_path`].
    #[inline(never)]
    unsafe fn observe(
        &self,
        transfer: &Transfer<'_>,
        counter: Option<&Arc<CompletionCounter>>,
    ) -> Result<()> {
        let &Transfer { kind, target, remote, local, shape } = transfer;
        let (call, bytes) = (call_of(kind, counter.is_none()), shape.bytes());
        let leave = |entered: Entered<'_>, &path: &Option<Path>| {
            entered.leave_by(call, path_taken(path), bytes, |entered| {
                self.call_info_of_shape(entered, call, transfer, path)
            });
        };
        // SAFETY: the caller guarantees the bytes at `local` until the counter is done.
        let body = || unsafe {
            if shape.is_contiguous() && self.try_direct(&kind, target, remote, local, bytes)? {
                return Ok(Some(Path::Direct));
            }
            self.issue_by_path(transfer, counter)
        };
        // A message takes microseconds, and its time varies too much for samples.
        let short = || bytes <= SHORT && self.reaches_directly(target, self.rank());
        self.record(short, leave, body).map(drop)
    }

    /// Performs a transfer if the path is direct. Else returns false, and no byte has moved. Fails
    /// as [`Ops::put`] and [`Ops::accumulate`].
    ///
    /// # Safety
    /// `local` must be valid for `bytes` bytes: for writes in a get, else for reads.
    #[inline(always)]
    pub unsafe fn try_direct(
        &self,
        kind: &TransferKind,
        target: usize,
        remote: usize,
        local: *mut u8,
        bytes: usize,
    ) -> Result<bool> {
        self.check_rank(target)?;
        if bytes == 0 {
            return Ok(true);
        }
        check_local(local)?;
        if let TransferKind::Accumulate(scale) = kind {
            check_elements(*scale, bytes)?;
        }
        // SAFETY: the caller guarantees `local`.
        unsafe { self.move_direct(kind, target, remote, local, bytes) }
    }

    /// Performs a transfer of whole elements if the path is direct. Else returns false, and no byte
    /// has moved.
    ///
    /// # Safety
    /// See [`Ops::try_direct`].
    #[inline(always)]
    unsafe fn move_direct(
        &self,
        kind: &TransferKind,
        target: usize,
        remote: usize,
        local: *mut u8,
        bytes: usize,
    ) -> Result<bool> {
        let path = |arena: &Arena, region| path::for_kind(kind, arena, region);
        let remote = (remote, bytes);
        // Each kind has its own copy of the code, short enough to need no arguments in memory.
        match kind {
            TransferKind::Put => self.at_direct(target, remote, path, move |region, offset| {
                // SAFETY: the registry has checked the region; the caller guarantees `local`.
                unsafe { kernel::copy_block(local, region.wrapping_add(offset), bytes) }
            }),
            TransferKind::Get => self.at_direct(target, remote, path, move |region, offset| {
                // SAFETY: the registry has checked the region; the caller guarantees `local`.
                unsafe { kernel::copy_block(region.wrapping_add(offset), local, bytes) }
            }),
            TransferKind::Accumulate(Scale::Double(scale)) if bytes == 8 => {
                self.at_direct(target, remote, path, |region, offset| {
                    // SAFETY: the registry checked the region; the caller guarantees `local`.
                    unsafe { shm_atomics::accumulate_one(region, offset, local.cast(), *scale) }
                })
            }
            TransferKind::Accumulate(scale) => {
                self.at_direct(target, remote, path, |region, offset| {
                    // SAFETY: the registry checked the region; the caller ensures whole elements.
                    unsafe { shm_atomics::accumulate_row(region, offset, local, bytes, scale) }
                })
            }
        }
    }

    /// `work` gets the region, which stays mapped, and the offset. Returns false if not direct.
    #[inline(always)]
    fn at_direct(
        &self,
        target: usize,
        (remote, bytes): (usize, usize),
        path: impl FnOnce(&Arena, *mut u8) -> Path,
        work: impl FnOnce(*mut u8, usize),
    ) -> Result<bool> {
        let hit = self.memory.registry.find(target, remote, bytes)?;
        let region = hit.region();
        if path(hit.arena(), region) != Path::Direct {
            return Ok(false);
        }
        let hit = self.in_order(target, hit, (remote, bytes))?;
        work(region, hit.offset);
        Ok(true)
    }

    /// Waits until a direct operation may access the range of `hit`, and finds it again if it must
    /// wait.
    #[inline(always)]
    fn in_order<'a>(
        &'a self,
        target: usize,
        hit: Hit<'a>,
        range: (usize, usize),
    ) -> Result<Hit<'a>> {
        if !self.is_out_of_order(target) {
            return Ok(hit);
        }
        if mutation::is(Fault::ReadsOn) {
            self.order_before(target, Path::Direct)?;
            return Ok(hit);
        }
        let region = hit.region();
        drop(hit);
        self.find_in_order(target, region, range)
    }

    /// # Safety
    /// See [`Ops::blocking`]; this must hold until [`Ops::wait_implicit_to`] returns.
    pub unsafe fn implicit(&self, transfer: &Transfer<'_>) -> Result<()> {
        self.check_rank(transfer.target)?;
        let counter = self.peer(transfer.target).implicit();
        // SAFETY: the caller keeps the local bytes valid until the transfer was waited for.
        unsafe { self.issue(transfer, counter) }
    }

    /// `counter` counts the transfer if it is not complete on return.
    ///
    /// # Safety
    /// See [`Ops::blocking`]; this must hold until the counter is done.
    pub unsafe fn issue(
        &self,
        transfer: &Transfer<'_>,
        counter: &Arc<CompletionCounter>,
    ) -> Result<()> {
        // SAFETY: the caller keeps the local bytes valid until the counter is done.
        unsafe {
            if self.is_observed() {
                return self.observed_transfer(transfer, Some(counter));
            }
            self.issue_by_path(transfer, Some(counter)).map(drop)
        }
    }

    /// # Safety
    /// See [`Ops::implicit`].
    pub unsafe fn implicit_vectors(
        &self,
        kind: TransferKind,
        target: usize,
        list: &[portolan_base::layout::Vector<'_>],
    ) -> Result<()> {
        self.check_rank(target)?;
        // SAFETY: the caller keeps the blocks valid until the transfers were waited for.
        unsafe { self.issue_vectors(kind, target, list, self.peer(target).implicit()) }
    }

    /// Issues a transfer and waits until it is complete locally. Fails as [`Ops::put`], and with
    /// `Type` if the block of an accumulate is not a multiple of the element size. Not inlined, so
    /// that callers keep a short code path for direct transfers.
    ///
    /// # Safety
    /// The local extent must be valid: for writes in a get, else for reads.
    #[inline(never)]
    pub unsafe fn blocking(&self, transfer: &Transfer<'_>) -> Result<()> {
        // SAFETY: the caller guarantees the local extent during the call.
        unsafe {
            if self.is_observed() {
                return self.observed_transfer(transfer, None);
            }
            self.issue_by_path(transfer, None).map(drop)
        }
    }
}
