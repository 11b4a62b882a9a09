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

mod handle;
mod vector;

pub use crate::path::ops::TransferKind;
pub use handle::Handle;

use crate::error::{Result, fail};
use crate::layout::{Shape, Side};
use crate::memory::slab::{Domain, Slab};
use crate::mutation::{self, Fault};
use crate::ops::Ops;
use crate::path::kernel::{self, Scale};
use crate::path::rma::Completion;
use crate::path::{self, Path, rma, shm_atomics};
use crate::peer::CompletionCounter;
use crate::wait;
use std::sync::Arc;

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
fn path_of(kind: TransferKind, slab: &Slab, slice: *mut u8, remote: usize) -> Path {
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
    #[inline]
    pub unsafe fn put(
        &self,
        target: usize,
        remote: usize,
        local: *const u8,
        bytes: usize,
    ) -> Result<()> {
        // SAFETY: passed on from the caller; a put only reads.
        unsafe { self.contiguous(TransferKind::Put, target, remote, local.cast_mut(), bytes) }
    }

    /// Gets `bytes` contiguous bytes. On return they are here.
    ///
    /// # Errors
    /// As for [`Ops::put`].
    ///
    /// # Safety
    /// `local` must be valid for writes of `bytes` bytes.
    #[inline]
    pub unsafe fn get(
        &self,
        target: usize,
        remote: usize,
        local: *mut u8,
        bytes: usize,
    ) -> Result<()> {
        // SAFETY: passed on from the caller.
        unsafe { self.contiguous(TransferKind::Get, target, remote, local, bytes) }
    }

    /// Puts or gets contiguous bytes.
    ///
    /// # Safety
    /// As for [`Ops::put`] or [`Ops::get`].
    #[inline(always)]
    unsafe fn contiguous(
        &self,
        kind: TransferKind,
        target: usize,
        remote: usize,
        local: *mut u8,
        bytes: usize,
    ) -> Result<()> {
        // SAFETY: passed on from the caller.
        unsafe {
            if self.try_direct(kind, target, remote, local, bytes)? {
                return Ok(());
            }
            self.blocking(kind, target, remote, local, &Shape::contiguous(bytes))
        }
    }

    /// Accumulates contiguous elements. On return the source may be reused.
    ///
    /// # Errors
    /// As for [`Ops::put`]; `Type` where the bytes are no whole number of
    /// elements.
    ///
    /// # Safety
    /// `local` must be valid for reads of `bytes` bytes.
    #[inline]
    pub unsafe fn accumulate(
        &self,
        target: usize,
        remote: usize,
        local: *const u8,
        bytes: usize,
        scale: Scale,
    ) -> Result<()> {
        self.check_rank(target)?;
        let kind = TransferKind::Accumulate(scale);
        let local = local.cast_mut();
        let whole = bytes > 0 && !local.is_null() && bytes.is_multiple_of(kind.unit());
        // SAFETY: passed on from the caller; an accumulate only reads.
        unsafe {
            if whole && self.move_direct(kind, target, remote, local, bytes)? {
                return Ok(());
            }
            self.blocking(kind, target, remote, local, &Shape::contiguous(bytes))
        }
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
        unsafe { self.move_direct(kind, target, remote, local, bytes) }
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
        kind: TransferKind,
        target: usize,
        remote: usize,
        local: *mut u8,
        bytes: usize,
    ) -> Result<bool> {
        let mut hit = self.memory.registry.find(target, remote, bytes)?;
        let slice = hit.slice();
        if path_of(kind, hit.slab(), slice, remote) != Path::Direct {
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
        let at = slice.wrapping_add(hit.offset);
        // SAFETY: the registry says that the bytes lie in the slice, which stays
        // mapped while `hit` is held; the caller vouches for `local`.
        unsafe {
            match kind {
                TransferKind::Put => kernel::copy_block(local, at, bytes),
                TransferKind::Get => kernel::copy_block(at, local, bytes),
                TransferKind::Accumulate(scale) => {
                    shm_atomics::accumulate_row(slice, hit.offset, local, bytes, scale);
                }
            }
        }
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
        unsafe { self.issue(kind, target, remote, local, shape, Some(counter)) }?;
        Ok(())
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
        unsafe { self.vector_counted(kind, target, list, self.peer(target).implicit()) }
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
    pub unsafe fn blocking(
        &self,
        kind: TransferKind,
        target: usize,
        remote: usize,
        local: *mut u8,
        shape: &Shape,
    ) -> Result<()> {
        // SAFETY: passed on; the wait below lasts until `local` is free.
        let counter = unsafe { self.issue(kind, target, remote, local, shape, None) }?;
        if let Some(counter) = counter {
            let done =
                wait::until(self, &|| format!("{kind:?} with rank {target}"), || counter.check());
            if done.is_err() && counter.outstanding() > 0 {
                // MPI may still touch the caller's memory: there is no way to
                // return from this that is safe.
                log::error!("{kind:?} with rank {target} cannot be completed: {done:?}");
                crate::process::end_job(crate::error::ErrorKind::Mpi.code());
            }
            done?;
        }
        Ok(())
    }

    /// Issues a transfer. What is not complete on return is counted by `counter`,
    /// or by a fresh counter that is returned where none is given and one is
    /// needed.
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
        counter: Option<&Arc<CompletionCounter>>,
    ) -> Result<Option<Arc<CompletionCounter>>> {
        self.check_rank(target)?;
        if shape.is_empty() {
            return Ok(None);
        }
        check_local(local)?;
        if let TransferKind::Accumulate(scale) = kind {
            check_elements(scale, shape.block())?;
        }
        let (lo, hi) = shape.extent(Side::Remote);
        let first = remote.wrapping_add_signed(lo);
        let extent = hi.wrapping_sub(lo) as usize;
        let mut hit = self.memory.registry.find(target, first, extent)?;
        let slice = hit.slice();
        let offset = hit.offset.wrapping_sub(lo as usize);
        if hit.slab().domain() == Domain::Mpi && differs_by_row(kind, shape) {
            drop(hit);
            // SAFETY: passed on from the caller.
            return unsafe { self.issue_rows(kind, target, remote, local, shape, counter) };
        }
        let path = path_of(kind, hit.slab(), slice, remote);
        if path == Path::Direct {
            if self.is_out_of_order(target) {
                drop(hit);
                hit = self.find_in_order(target, slice, (first, extent))?;
            }
            let _open = hit;
            // SAFETY: the registry says that the remote extent lies in the
            // slice, which stays mapped while `_open` is held; the caller vouches
            // for the local one.
            unsafe {
                match kind {
                    TransferKind::Put => {
                        kernel::copy(local, slice.wrapping_add(offset), shape, true)
                    }
                    TransferKind::Get => {
                        kernel::copy(slice.wrapping_add(offset), local, shape, false)
                    }
                    TransferKind::Accumulate(s) => {
                        shm_atomics::accumulate(slice, offset, local, shape, s)
                    }
                }
            }
            return Ok(None);
        }
        let place = rma::RmaTarget {
            slab: hit.slab().clone(),
            world: target,
            rank: hit.group_rank(),
            offset,
        };
        drop(hit);
        self.order_before(target, path)?;
        // SAFETY: passed on from the caller.
        unsafe {
            if path == Path::Rma {
                self.issue_rma(kind, &place, local, shape, counter)
            } else {
                self.issue_message(kind, target, remote, local, shape, counter)
            }
        }
    }

    /// All arguments were checked, so that a failure here is MPI's, perhaps with
    /// half of the transfer under way and MPI still using the caller's memory:
    /// the job ends.
    fn whole_or_fatal(&self, kind: TransferKind, target: usize, issued: Result<()>) {
        if let Err(error) = issued {
            log::error!("{kind:?} with rank {target} cannot be completed: {error}");
            crate::process::end_job(error.kind().code());
        }
    }

    /// Issues each row of a shape by itself; the remote extent was checked.
    ///
    /// # Safety
    /// As for [`Ops::issue`].
    unsafe fn issue_rows(
        &self,
        kind: TransferKind,
        target: usize,
        remote: usize,
        local: *mut u8,
        shape: &Shape,
        counter: Option<&Arc<CompletionCounter>>,
    ) -> Result<Option<Arc<CompletionCounter>>> {
        let mut rows = Vec::with_capacity(shape.bytes() / shape.block());
        shape.for_each(&mut |l, r| {
            let from = local.wrapping_offset(l) as usize;
            rows.push((from, remote.wrapping_add_signed(r), shape.block()));
        });
        let fresh = counter.is_none().then(Arc::<CompletionCounter>::default);
        let counted = counter.or(fresh.as_ref()).expect("one of the two is there");
        self.order_before_all(target)?;
        // SAFETY: passed on from the caller.
        unsafe { self.issue_blocks(kind, target, rows.into_iter(), counted) }?;
        Ok(fresh)
    }

    unsafe fn issue_rma(
        &self,
        kind: TransferKind,
        place: &rma::RmaTarget,
        local: *mut u8,
        shape: &Shape,
        counter: Option<&Arc<CompletionCounter>>,
    ) -> Result<Option<Arc<CompletionCounter>>> {
        let completion = match counter {
            Some(counter) => Completion::Counted(counter),
            None => Completion::Local,
        };
        // SAFETY: passed on from `issue`.
        let issued = unsafe {
            match kind {
                TransferKind::Put => rma::put(self, place, local, shape, completion),
                TransferKind::Get => rma::get(self, place, local, shape, completion),
                TransferKind::Accumulate(scale) => {
                    rma::accumulate(self, place, local, shape, scale, completion)
                }
            }
        };
        self.whole_or_fatal(kind, place.world, issued);
        Ok(None)
    }

    unsafe fn issue_message(
        &self,
        kind: TransferKind,
        target: usize,
        remote: usize,
        local: *mut u8,
        shape: &Shape,
        counter: Option<&Arc<CompletionCounter>>,
    ) -> Result<Option<Arc<CompletionCounter>>> {
        let two_sided = self.two_sided()?;
        let fresh = match counter {
            Some(_) => None,
            None => Some(Arc::new(CompletionCounter::default())),
        };
        let counted = counter.or(fresh.as_ref()).expect("one of the two is there");
        // SAFETY: passed on from `issue`.
        let issued = unsafe {
            match kind {
                TransferKind::Put => two_sided.put(self, target, remote, local, shape, counted),
                TransferKind::Get => two_sided.get(self, target, remote, local, shape, counted),
                TransferKind::Accumulate(scale) => {
                    two_sided.accumulate(self, target, remote, local, shape, scale)
                }
            }
        };
        self.whole_or_fatal(kind, target, issued);
        Ok(fresh)
    }
}
