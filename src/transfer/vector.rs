//! Vector transfers: blocks of one length at any pairs of addresses.
//!
//! All addresses are checked before any byte moves. Neighbours that continue
//! each other on both sides are joined. Where one segment has all blocks, as it mostly does, it is
//! looked up once; else they may take different paths.

use super::{TransferKind, check_local};
use crate::error::{ErrorKind, Result, fail};
use crate::layout::{Shape, Vector};
use crate::memory::slab::Slab;
use crate::ops::Ops;
use crate::ops::told::call_of;
use crate::path::kernel::{self, Scale};
use crate::path::two_sided::blocks::Batch;
use crate::path::{Path, shm_atomics};
use crate::peer::CompletionCounter;
use crate::trace::{Awaited, Cause};
use crate::wait;
use std::sync::Arc;

impl Ops {
    /// Checks a vector transfer: lengths, local and remote addresses.
    pub(crate) fn check_vector(
        &self,
        kind: TransferKind,
        target: usize,
        vector: &Vector<'_>,
    ) -> Result<()> {
        self.check_rank(target)?;
        if vector.local.len() != vector.remote.len() {
            fail!(
                Argument,
                "{} local and {} remote addresses",
                vector.local.len(),
                vector.remote.len()
            );
        }
        if vector.block == 0 {
            return Ok(());
        }
        if let TransferKind::Accumulate(scale) = kind {
            super::check_elements(scale, vector.block)?;
        }
        for &local in vector.local {
            check_local(local as *const u8)?;
        }
        if self.stretch(target, vector).is_none() {
            for &remote in vector.remote {
                drop(self.memory.registry.find(target, remote, vector.block)?);
            }
        }
        Ok(())
    }

    /// Where all blocks lie in one segment: the bytes from the first to the last one.
    fn stretch(&self, target: usize, vector: &Vector<'_>) -> Option<(usize, usize)> {
        let widen = |(lo, hi): (usize, usize), at: &usize| (lo.min(*at), hi.max(*at));
        let (lo, hi) = vector.remote.iter().fold((usize::MAX, 0), widen);
        let bytes = hi.checked_sub(lo)?.checked_add(vector.block)?;
        self.memory.registry.lookup(target, lo, bytes).map(|_| (lo, bytes))
    }

    /// Carries out a vector transfer of which all blocks lie in one segment that this rank loads and
    /// stores, with one look-up for all; false where they do not, and nothing has moved.
    ///
    /// # Safety
    /// As for [`Ops::vector`].
    unsafe fn vector_direct(
        &self,
        kind: TransferKind,
        target: usize,
        vector: Vector<'_>,
    ) -> Result<bool> {
        let Some((first, bytes)) = self.stretch(target, &vector) else { return Ok(false) };
        // As for aligned elements: in MPI's domain each takes a path of its own.
        let path = |slab: &Slab, slice| super::path_of(&kind, slab, slice, 0);
        self.at_direct(target, (first, bytes), path, |slice, offset| {
            for (local, remote, bytes) in vector.joined() {
                let (here, at) = (local as *mut u8, offset + (remote - first));
                let there = slice.wrapping_add(at);
                // SAFETY: the block lies in the stretch, which lies in the slice; the caller
                // vouches for the local one.
                unsafe {
                    match &kind {
                        TransferKind::Put => kernel::copy_block(here, there, bytes),
                        TransferKind::Get => kernel::copy_block(there, here, bytes),
                        TransferKind::Accumulate(Scale::Double(scale)) if bytes == 8 => {
                            shm_atomics::accumulate_one(slice, at, here.cast(), *scale);
                        }
                        TransferKind::Accumulate(scale) => {
                            shm_atomics::accumulate_row(slice, at, here, bytes, scale);
                        }
                    }
                }
            }
        })
    }

    /// Issues a vector transfer that [`Ops::check_vector`] accepted; what is
    /// not complete on return is counted by `counter`.
    ///
    /// # Safety
    /// The local blocks must stay valid until the counter is done: for writes in a
    /// get, else for reads.
    pub(crate) unsafe fn issue_vector(
        &self,
        kind: TransferKind,
        target: usize,
        vector: Vector<'_>,
        counter: &Arc<CompletionCounter>,
    ) -> Result<()> {
        // SAFETY: passed on from the caller.
        if vector.block == 0 || unsafe { self.vector_direct(kind, target, vector) }? {
            return Ok(());
        }
        let rows = vector.joined().flat_map(|(local, remote, bytes)| {
            // A row of blocks may go on from one segment into the next one.
            let whole = bytes == vector.block
                || self.memory.registry.lookup(target, remote, bytes).is_some();
            let step = if whole { bytes } else { vector.block };
            (0..bytes).step_by(step).map(move |at| (local + at, remote + at, step))
        });
        // SAFETY: passed on from the caller.
        unsafe { self.issue_blocks(kind, target, rows, counter) }
    }

    /// Issues blocks `(local, remote, bytes)` that were checked. Small ones that
    /// go by message share messages.
    ///
    /// # Safety
    /// As for [`Ops::issue_vector`].
    pub(crate) unsafe fn issue_blocks(
        &self,
        kind: TransferKind,
        target: usize,
        blocks: impl Iterator<Item = (usize, usize, usize)>,
        counter: &Arc<CompletionCounter>,
    ) -> Result<()> {
        let mut batch = Batch::new(kind, target);
        for (local, remote, bytes) in blocks {
            // SAFETY: passed on from the caller.
            if unsafe { self.block_direct(kind, target, local, remote, bytes) }? {
                continue;
            }
            if bytes <= Batch::LONGEST && self.goes_by_message(kind, target, remote, bytes) {
                if !batch.has_room(bytes, self.config.chunk_bytes) {
                    // SAFETY: passed on from the caller.
                    unsafe { self.send_batch(&mut batch, target, counter) }?;
                }
                batch.push(local, remote, bytes);
                continue;
            }
            // In the order in which they were given.
            // SAFETY: passed on from the caller.
            unsafe {
                self.send_batch(&mut batch, target, counter)?;
                let shape = Shape::contiguous(bytes);
                self.issue_by_path(kind, target, remote, local as *mut u8, &shape, Some(counter))?;
            }
        }
        // SAFETY: passed on from the caller.
        unsafe { self.send_batch(&mut batch, target, counter) }
    }

    /// # Safety
    /// As for [`Ops::issue_vector`].
    unsafe fn send_batch(
        &self,
        batch: &mut Batch,
        target: usize,
        counter: &Arc<CompletionCounter>,
    ) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        self.order_before(target, Path::Message)?;
        // SAFETY: passed on from the caller.
        unsafe { batch.send(self, counter) }
    }

    fn goes_by_message(
        &self,
        kind: TransferKind,
        target: usize,
        remote: usize,
        bytes: usize,
    ) -> bool {
        self.memory.registry.lookup(target, remote, bytes).is_some_and(|hit| {
            super::path_of(&kind, hit.slab(), hit.slice(), remote) == Path::Message
        })
    }

    /// Moves one block if its path is direct; false if it is not.
    ///
    /// # Safety
    /// `local` must be valid for `bytes` bytes.
    #[inline]
    unsafe fn block_direct(
        &self,
        kind: TransferKind,
        target: usize,
        local: usize,
        remote: usize,
        bytes: usize,
    ) -> Result<bool> {
        // Joined neighbours may lie in two segments that touch: `issue` says what is wrong.
        // SAFETY: passed on from the caller.
        match unsafe { self.move_direct(&kind, target, remote, local as *mut u8, bytes) } {
            Err(error) if error.kind() == ErrorKind::Address => Ok(false),
            tried => tried,
        }
    }

    /// Carries a list of vector transfers out and completes them on this side.
    ///
    /// # Errors
    /// As for the contiguous forms; where one descriptor is bad, nothing of any
    /// has moved.
    ///
    /// # Safety
    /// The local blocks must be valid: for writes in a get, else for reads.
    pub unsafe fn vector(
        &self,
        kind: TransferKind,
        target: usize,
        vectors: &[Vector<'_>],
    ) -> Result<()> {
        let counter = Arc::new(CompletionCounter::default());
        let what = || format!("vector {kind:?} with rank {target}");
        self.observed(
            || self.about_blocks(call_of(kind, true), kind, target, vectors),
            || {
                // SAFETY: passed on; the wait below lasts until the blocks are free.
                unsafe { self.issue_list(kind, target, vectors, &counter) }?;
                wait::until(self, Awaited::of(Cause::Answer, target), &what, || counter.check())
            },
        )
    }

    /// As [`Ops::vector`], completed by a counter.
    ///
    /// # Safety
    /// As for [`Ops::vector`], until the counter is done.
    pub(crate) unsafe fn issue_vectors(
        &self,
        kind: TransferKind,
        target: usize,
        vectors: &[Vector<'_>],
        counter: &Arc<CompletionCounter>,
    ) -> Result<()> {
        self.observed(
            || self.about_blocks(call_of(kind, false), kind, target, vectors),
            // SAFETY: passed on from the caller.
            || unsafe { self.issue_list(kind, target, vectors, counter) },
        )
    }

    /// # Safety
    /// As for [`Ops::issue_vectors`].
    unsafe fn issue_list(
        &self,
        kind: TransferKind,
        target: usize,
        vectors: &[Vector<'_>],
        counter: &Arc<CompletionCounter>,
    ) -> Result<()> {
        for vector in vectors {
            self.check_vector(kind, target, vector)?;
        }
        self.order_before_all(target)?;
        for &vector in vectors {
            // SAFETY: passed on from the caller.
            unsafe { self.issue_vector(kind, target, vector, counter) }?;
        }
        Ok(())
    }

    /// Completes what would have to be settled block by block.
    pub(super) fn order_before_all(&self, target: usize) -> Result<()> {
        if self.reaches_directly(target, self.rank()) {
            self.order_before(target, Path::Direct)?;
        }
        Ok(())
    }
}
