//! Put, get and accumulate: blocking, with handles, without; contiguous,
//! strided, vector.
//!
//! A call goes: check the rank; find the remote extent in the registry (or get
//! an error, before any byte moves); choose the path; issue; complete. Blocking
//! puts and accumulates return when their source may be reused, blocking gets
//! when the bytes are here. Non-blocking ones complete in a [`Handle`] or, for
//! none, in the target's implicit counter.
//!
//! A transfer of no bytes is legal whatever its addresses are, and does nothing.

mod accumulate;
mod handle;
mod issue;
mod vector;

pub use crate::path::ops::TransferKind;
pub use handle::Handle;

use crate::error::{Result, fail, unless_forked};
use crate::layout::Shape;
use crate::memory::slab::Slab;
use crate::mutation::{self, Fault};
use crate::ops::Ops;
use crate::ops::told::{call_of, path_taken};
use crate::path::kernel::{self, Scale};
use crate::path::{self, Path, shm_atomics};
use crate::peer::CompletionCounter;
use crate::trace::{Awaited, Call, Cause};
use crate::wait;
use std::sync::Arc;

/// Of transfers up to this length the statistics time some only.
const SHORT: usize = 4096;

fn check_local(local: *const u8) -> Result<()> {
    if local.is_null() {
        fail!(Argument, "the local address is null, but there are bytes to move");
    }
    Ok(())
}

/// An accumulate's blocks must consist of whole elements.
fn check_elements(scale: Scale, block: usize) -> Result<()> {
    let element = scale.element();
    if !block.is_multiple_of(element) {
        fail!(Type, "{block} contiguous bytes are no whole number of {element}-byte elements");
    }
    Ok(())
}

/// The path of a transfer of contiguous bytes, or of one all of whose rows are aligned alike.
#[inline]
fn path_of(kind: &TransferKind, slab: &Slab, slice: *mut u8, remote: usize) -> Path {
    match kind {
        TransferKind::Put | TransferKind::Get => path::for_transfer(slab, slice),
        TransferKind::Accumulate(scale) => {
            path::for_accumulate(slab, slice, remote.is_multiple_of(scale.alignment()))
        }
    }
}

/// Whether an accumulate's rows are aligned differently, so that in MPI's domain they take
/// different paths.
fn differs_by_row(kind: TransferKind, shape: &Shape) -> bool {
    let TransferKind::Accumulate(scale) = kind else {
        return false;
    };
    shape.dims().iter().any(|d| !d.remote.unsigned_abs().is_multiple_of(scale.alignment()))
}

impl Ops {
    /// Puts `bytes` contiguous bytes. On return the source may be reused.
    ///
    /// # Errors
    /// `Rank`, `Address` (the remote bytes are not all in one segment),
    /// `Argument` (null source); nothing has moved then.
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
        // SAFETY: passed on from the caller; a put only reads.
        unsafe { self.contiguous::<true>(target, remote, local.cast_mut(), bytes) }
    }

    /// Gets `bytes` contiguous bytes. On return they are here.
    ///
    /// # Errors
    /// As for [`Ops::put`].
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
        // SAFETY: passed on from the caller.
        unsafe { self.contiguous::<false>(target, remote, local, bytes) }
    }

    /// Puts or gets contiguous bytes.
    ///
    /// # Safety
    /// As for [`Ops::put`] or [`Ops::get`].
    #[inline(always)]
    unsafe fn contiguous<const PUTS: bool>(
        &self,
        target: usize,
        remote: usize,
        local: *mut u8,
        bytes: usize,
    ) -> Result<()> {
        let kind = if PUTS { TransferKind::Put } else { TransferKind::Get };
        // SAFETY: passed on from the caller.
        unsafe {
            if self.is_observed() {
                return self.contiguous_told::<PUTS>(target, remote, local, bytes);
            }
            if self.try_direct(kind, target, remote, local, bytes)? {
                return Ok(());
            }
            self.blocking(kind, target, remote, local, &Shape::contiguous(bytes))
        }
    }

    /// [`Ops::contiguous`], told of to the observer: a put, or a get, each with a copy of the code, as without it.
    ///
    /// # Safety
    /// As there.
    #[cold]
    #[inline(never)]
    unsafe fn contiguous_told<const PUTS: bool>(
        &self,
        target: usize,
        remote: usize,
        local: *mut u8,
        bytes: usize,
    ) -> Result<()> {
        let kind = if PUTS { TransferKind::Put } else { TransferKind::Get };
        let shape = Shape::contiguous(bytes);
        // SAFETY: passed on from the caller.
        let body = || unsafe {
            if self.try_direct(kind, target, remote, local, bytes)? {
                return Ok(Some(Path::Direct));
            }
            self.issue_and_wait(kind, target, remote, local, &shape)
        };
        self.tell(call_of(kind, true), (target, remote), &shape, body)
    }

    /// Carries a transfer out, which says its path, and tells the observer of it.
    #[inline(always)]
    fn tell(
        &self,
        call: Call,
        (target, remote): (usize, usize),
        shape: &Shape,
        body: impl FnOnce() -> Result<Option<Path>>,
    ) -> Result<()> {
        let bytes = shape.bytes();
        unless_forked()?;
        let entered = self.observer().enter(bytes <= SHORT);
        let path = body()?;
        if let Some(entered) = entered {
            entered.leave_by(call, path_taken(path), bytes, |entered| {
                self.about_shape(entered, call, target, remote, shape, path)
            });
        }
        Ok(())
    }

    /// Moves contiguous bytes if their path is direct; false if it is not, and
    /// nothing has moved.
    ///
    /// # Errors
    /// As for [`Ops::put`].
    ///
    /// # Safety
    /// `local` must be valid for `bytes` bytes.
    #[inline(always)]
    pub unsafe fn try_direct(
        &self,
        kind: TransferKind,
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
        if matches!(kind, TransferKind::Accumulate(_)) {
            return Ok(false);
        }
        // SAFETY: passed on from the caller.
        unsafe { self.move_direct(&kind, target, remote, local, bytes) }
    }

    /// Carries out a transfer of contiguous bytes whose path is direct; false where it is
    /// another one, and nothing has moved. This is where the path of such a transfer is chosen,
    /// whatever call it comes from.
    ///
    /// # Errors
    /// `Address` where the remote bytes are not all in one segment.
    ///
    /// # Safety
    /// `local` must be valid for `bytes` bytes, which are whole elements: for writes in a get,
    /// else for reads.
    #[inline(always)]
    unsafe fn move_direct(
        &self,
        kind: &TransferKind,
        target: usize,
        remote: usize,
        local: *mut u8,
        bytes: usize,
    ) -> Result<bool> {
        let path = |slab: &Slab, slice| path_of(kind, slab, slice, remote);
        let remote = (remote, bytes);
        // Each kind has a copy of the code, which is short enough then to need no arguments in memory.
        match kind {
            TransferKind::Put => self.at_direct(target, remote, path, move |slice, offset| {
                // SAFETY: the bytes lie in the slice; the caller vouches for `local`.
                unsafe { kernel::copy_block(local, slice.wrapping_add(offset), bytes) }
            }),
            TransferKind::Get => self.at_direct(target, remote, path, move |slice, offset| {
                // SAFETY: as above.
                unsafe { kernel::copy_block(slice.wrapping_add(offset), local, bytes) }
            }),
            TransferKind::Accumulate(scale) => {
                self.at_direct(target, remote, path, |slice, offset| {
                    // SAFETY: as above.
                    unsafe { shm_atomics::accumulate_row(slice, offset, local, bytes, scale) }
                })
            }
        }
    }

    /// Works on bytes that this rank may load and store, given by the slice, which stays mapped
    /// meanwhile, and where they begin in it; false where their path is another one.
    ///
    /// # Errors
    /// As for [`Ops::move_direct`].
    #[inline(always)]
    fn at_direct(
        &self,
        target: usize,
        (remote, bytes): (usize, usize),
        path: impl FnOnce(&Slab, *mut u8) -> Path,
        work: impl FnOnce(*mut u8, usize),
    ) -> Result<bool> {
        let mut hit = self.memory.registry.find(target, remote, bytes)?;
        let slice = hit.slice();
        if path(hit.slab(), slice) != Path::Direct {
            return Ok(false);
        }
        if self.is_out_of_order(target) {
            if mutation::is(Fault::ReadsOn) {
                self.order_before(target, Path::Direct)?;
            } else {
                drop(hit);
                hit = self.find_in_order(target, slice, (remote, bytes))?;
            }
        }
        work(slice, hit.offset);
        Ok(true)
    }

    /// Issues a transfer without a handle: [`Ops::wait_implicit_to`] waits for
    /// it.
    ///
    /// # Safety
    /// As for [`Ops::blocking`], until it was waited for.
    pub unsafe fn implicit(
        &self,
        kind: TransferKind,
        target: usize,
        remote: usize,
        local: *mut u8,
        shape: &Shape,
    ) -> Result<()> {
        self.check_rank(target)?;
        let counter = self.peer(target).implicit();
        // SAFETY: passed on from the caller.
        unsafe { self.issue(kind, target, remote, local, shape, counter) }
    }

    /// Issues a transfer; what is not complete on return is counted by the counter.
    ///
    /// # Errors
    /// As for [`Ops::blocking`].
    ///
    /// # Safety
    /// As for [`Ops::blocking`], until the counter is done.
    pub(crate) unsafe fn issue(
        &self,
        kind: TransferKind,
        target: usize,
        remote: usize,
        local: *mut u8,
        shape: &Shape,
        counter: &Arc<CompletionCounter>,
    ) -> Result<()> {
        // SAFETY: passed on from the caller.
        let by_path =
            || unsafe { self.issue_by_path(kind, target, remote, local, shape, Some(counter)) };
        if !self.is_observed() {
            return by_path().map(drop);
        }
        let body = || {
            let bytes = shape.block();
            if shape.is_contiguous() {
                // SAFETY: passed on from the caller.
                let direct = unsafe { self.try_direct(kind, target, remote, local, bytes) }?;
                if direct {
                    return Ok(Some(Path::Direct));
                }
            }
            Ok(by_path()?.path)
        };
        self.tell(call_of(kind, false), (target, remote), shape, body)
    }

    /// Vector transfers without a handle.
    ///
    /// # Safety
    /// As for [`Ops::implicit`].
    pub unsafe fn implicit_vectors(
        &self,
        kind: TransferKind,
        target: usize,
        list: &[crate::layout::Vector<'_>],
    ) -> Result<()> {
        self.check_rank(target)?;
        // SAFETY: passed on from the caller.
        unsafe { self.issue_vectors(kind, target, list, self.peer(target).implicit()) }
    }

    /// Puts along a shape. On return the source may be reused.
    ///
    /// # Safety
    /// `local` must be valid for reads of the shape's local extent.
    pub unsafe fn put_shape(
        &self,
        target: usize,
        remote: usize,
        local: *const u8,
        shape: &Shape,
    ) -> Result<()> {
        // SAFETY: passed on; a put only reads.
        unsafe { self.blocking(TransferKind::Put, target, remote, local.cast_mut(), shape) }
    }

    /// Issues a transfer and completes it on this side.
    ///
    /// # Errors
    /// As for [`Ops::put`]; `Type` for an accumulate whose block is no whole
    /// number of elements.
    ///
    /// # Safety
    /// `local` must be valid for the shape's local extent: for writes in a get,
    /// else for reads.
    // Not a part of the callers, in which it would be beside the way of direct transfers.
    #[inline(never)]
    pub unsafe fn blocking(
        &self,
        kind: TransferKind,
        target: usize,
        remote: usize,
        local: *mut u8,
        shape: &Shape,
    ) -> Result<()> {
        // SAFETY: passed on from the caller.
        let body = || unsafe { self.issue_and_wait(kind, target, remote, local, shape) };
        if self.is_observed() {
            self.tell(call_of(kind, true), (target, remote), shape, body)
        } else {
            body().map(drop)
        }
    }

    /// The body of [`Ops::blocking`]; says which path the bytes took.
    ///
    /// # Safety
    /// As there.
    unsafe fn issue_and_wait(
        &self,
        kind: TransferKind,
        target: usize,
        remote: usize,
        local: *mut u8,
        shape: &Shape,
    ) -> Result<Option<Path>> {
        // SAFETY: passed on; the wait below lasts until `local` is free.
        let issued = unsafe { self.issue_by_path(kind, target, remote, local, shape, None) }?;
        if let Some(counter) = issued.counter {
            let what = || format!("{kind:?} with rank {target}");
            let done =
                wait::until(self, Awaited::of(Cause::Answer, target), &what, || counter.check());
            if let Err(error) = &done
                && counter.outstanding() > 0
            {
                // MPI may still touch the caller's memory: there is no way to
                // return from this that is safe.
                log::error!("{kind:?} with rank {target} cannot be completed: {error:#}");
                crate::process::end_job(error.kind().code());
            }
            done?;
        }
        Ok(issued.path)
    }
}
