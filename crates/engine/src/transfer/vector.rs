//! Vector transfers: blocks of equal length at arbitrary pairs of addresses. All addresses are
//! checked before any byte moves. If one segment contains all blocks, one lookup serves all.
//! Otherwise blocks that are adjacent on both sides are joined, and may take different paths.

use super::{Transfer, TransferKind};
use crate::core::peer::CompletionCounter;
use crate::memory::arena::Arena;
use crate::ops::traced::call_of;
use crate::ops::{Ops, check_local};
use crate::path::kernel::{self, Scale};
use crate::path::{self, Batch, Path, RemotePlace, shm_atomics};
use portolan_base::error::{ErrorKind, Result, fail};
use portolan_base::layout::{Shape, Vector};
use portolan_base::trace::{Awaited, Cause};
use portolan_base::wait::Progress as _;
use smallvec::SmallVec;
use std::sync::Arc;

impl Ops {
    /// Returns address and length of the range of all blocks, if it lies in one segment.
    fn check_vector(
        &self,
        kind: TransferKind,
        target: usize,
        vector: &Vector<'_>,
    ) -> Result<Option<(usize, usize)>> {
        if vector.local.len() != vector.remote.len() {
            fail!(
                Argument,
                "{} local and {} remote addresses",
                vector.local.len(),
                vector.remote.len()
            );
        }
        if vector.block == 0 {
            return Ok(None);
        }
        if let TransferKind::Accumulate(scale) = kind {
            super::check_elements(scale, vector.block)?;
        }
        if vector.local.contains(&0) {
            check_local(std::ptr::null())?;
        }
        let widen = |(lo, hi): (usize, usize), at: &usize| (lo.min(*at), hi.max(*at));
        let (lo, hi) = vector.remote.iter().fold((usize::MAX, 0), widen);
        let bytes = hi.checked_sub(lo).and_then(|bytes| bytes.checked_add(vector.block));
        let range = bytes.map(|bytes| (lo, bytes));
        let range = range.filter(|&(lo, n)| self.memory.registry.lookup(target, lo, n).is_some());
        if range.is_none() {
            for &remote in vector.remote {
                drop(self.memory.registry.find(target, remote, vector.block)?);
            }
        }
        Ok(range)
    }

    /// Performs a transfer with one lookup, if this rank can load and store the `range` of all
    /// blocks. Else returns false, and no byte has moved.
    ///
    /// # Safety
    /// See [`Ops::vector`].
    unsafe fn vector_direct(
        &self,
        kind: TransferKind,
        target: usize,
        vector: Vector<'_>,
        range: (usize, usize),
    ) -> Result<bool> {
        let (block, first) = (vector.block, range.0);
        let path = |arena: &Arena, region| path::for_kind(&kind, arena, region);
        self.at_direct(target, range, path, |region, offset| {
            let pairs = vector.local.iter().zip(vector.remote);
            let pairs =
                pairs.map(|(&local, &remote)| (local as *mut u8, offset + (remote - first)));
            let at = |offset| region.wrapping_add(offset);
            // SAFETY: the blocks lie in the range, so in the region; the caller checks `local`.
            unsafe {
                match &kind {
                    TransferKind::Put => kernel::copy_blocks(
                        block,
                        pairs.map(|(local, offset)| (local.cast_const(), at(offset))),
                    ),
                    TransferKind::Get => kernel::copy_blocks(
                        block,
                        pairs.map(|(local, offset)| (at(offset).cast_const(), local)),
                    ),
                    TransferKind::Accumulate(Scale::Double(scale)) if block == 8 => {
                        pairs.for_each(|(local, offset)| {
                            shm_atomics::accumulate_one(region, offset, local.cast(), *scale);
                        });
                    }
                    TransferKind::Accumulate(scale) => pairs.for_each(|(local, offset)| {
                        shm_atomics::accumulate_row(region, offset, local, block, scale);
                    }),
                }
            }
        })
    }

    /// Performs a transfer as one, if the transport to the `range` of all blocks can. Else returns
    /// false, and no byte has moved.
    ///
    /// # Safety
    /// See [`Ops::vector`].
    unsafe fn vector_whole(
        &self,
        kind: TransferKind,
        target: usize,
        vector: Vector<'_>,
        (first, bytes): (usize, usize),
    ) -> Result<bool> {
        let hit = self.memory.registry.find(target, first, bytes)?;
        let path = path::for_kind(&kind, hit.arena(), hit.region());
        if path == Path::Direct || vector.local.len() < 2 {
            return Ok(false);
        }
        let transport = self.transport(path)?;
        if !transport.takes_vectors() {
            return Ok(false);
        }
        let offset = hit.offset;
        let place = RemotePlace::of(hit, target, offset, first);
        if kind == TransferKind::Get {
            self.may_wait()?;
        }
        self.order_before(target, path)?;
        // SAFETY: the registry has checked the range; the caller guarantees the local blocks.
        let done = unsafe { transport.vector(self, kind, &place, vector) };
        done.or_else(|error| self.abort_partial(kind, target, &error))
    }

    /// `range` is the result of [`Ops::check_vector`]. `counter` counts the incomplete parts.
    ///
    /// # Safety
    /// The local blocks must stay valid until the counter is done: for writes in a get, else for
    /// reads.
    unsafe fn issue_vector(
        &self,
        kind: TransferKind,
        target: usize,
        vector: Vector<'_>,
        range: Option<(usize, usize)>,
        counter: &Arc<CompletionCounter>,
    ) -> Result<()> {
        if vector.block == 0 {
            return Ok(());
        }
        if let Some(range) = range
            // SAFETY: the caller keeps the blocks valid until the counter is done.
            && unsafe {
                self.vector_direct(kind, target, vector, range)?
                    || self.vector_whole(kind, target, vector, range)?
            }
        {
            return Ok(());
        }
        let rows = vector.joined().flat_map(|(local, remote, bytes)| {
            // A row of joined blocks may continue from one segment into the next.
            let whole = bytes == vector.block
                || self.memory.registry.lookup(target, remote, bytes).is_some();
            let step = if whole { bytes } else { vector.block };
            (0..bytes).step_by(step).map(move |at| (local + at, remote + at, step))
        });
        let by_message = range.is_some_and(|(first, n)| self.is_by_message(kind, target, first, n));
        // SAFETY: the caller keeps the blocks valid until the counter is done.
        unsafe { self.issue_blocks(kind, target, rows, by_message, counter) }
    }

    /// Issues checked blocks `(local, remote, bytes)`. Small blocks share messages if possible. With
    /// `by_message`, all blocks go by message. Otherwise each chooses its own path.
    ///
    /// # Safety
    /// See [`Ops::issue_vector`].
    pub(crate) unsafe fn issue_blocks(
        &self,
        kind: TransferKind,
        target: usize,
        blocks: impl Iterator<Item = (usize, usize, usize)>,
        by_message: bool,
        counter: &Arc<CompletionCounter>,
    ) -> Result<()> {
        let mut batch = Batch::new(kind, target);
        for (local, remote, bytes) in blocks {
            if !by_message {
                // SAFETY: the caller keeps the block valid until the counter is done.
                match unsafe { self.move_direct(&kind, target, remote, local as *mut u8, bytes) } {
                    Ok(true) => continue,
                    Ok(false) => {}
                    // Joined neighbours may lie in two segments. `issue_by_path` reports a bad
                    // address.
                    Err(error) if error.kind() == ErrorKind::Address => {}
                    Err(error) => return Err(error),
                }
            }
            if bytes <= Batch::MAX_BLOCK
                && (by_message || self.is_by_message(kind, target, remote, bytes))
            {
                if !batch.takes(remote, bytes, self.config.chunk_bytes) {
                    // SAFETY: the caller keeps the blocks valid until the counter is done.
                    unsafe { self.send_batch(&mut batch, target, counter) }?;
                }
                batch.push(local, remote, bytes);
                continue;
            }
            // Send the batch first, so that blocks are issued in the given order.
            // SAFETY: the caller keeps the blocks valid until the counter is done.
            unsafe {
                self.send_batch(&mut batch, target, counter)?;
                let (local, shape) = (local as *mut u8, &Shape::contiguous(bytes));
                let transfer = Transfer { kind, target, remote, local, shape };
                self.issue_by_path(&transfer, Some(counter))?;
            }
        }
        // SAFETY: the caller keeps the blocks valid until the counter is done.
        unsafe { self.send_batch(&mut batch, target, counter) }
    }

    /// # Safety
    /// See [`Ops::issue_vector`].
    unsafe fn send_batch(
        &self,
        batch: &mut Batch,
        target: usize,
        counter: &Arc<CompletionCounter>,
    ) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        counter.toward(target);
        self.order_before(target, Path::Message)?;
        // SAFETY: the caller keeps the blocks valid until the counter is done.
        unsafe { self.two_sided()?.send_blocks(self, batch, counter, None) }.map(drop)
    }

    fn is_by_message(
        &self,
        kind: TransferKind,
        target: usize,
        remote: usize,
        bytes: usize,
    ) -> bool {
        let hit = self.memory.registry.lookup(target, remote, bytes);
        let path = hit.map(|hit| path::for_kind(&kind, hit.arena(), hit.region()));
        path == Some(Path::Message)
    }

    /// Performs vector transfers and waits until they are complete locally. Fails as the contiguous
    /// calls. If one descriptor is invalid, no byte of any descriptor has moved.
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
            || self.call_info_of_blocks(call_of(kind, true), kind, target, vectors),
            || {
                // SAFETY: the caller guarantees the blocks during this call, which waits.
                unsafe { self.issue_list(kind, target, vectors, &counter) }?;
                self.complete(Awaited::of(Cause::Answer, target), &what, &counter)
            },
        )
    }

    /// # Safety
    /// See [`Ops::vector`]; this must hold until the counter is done.
    pub unsafe fn issue_vectors(
        &self,
        kind: TransferKind,
        target: usize,
        vectors: &[Vector<'_>],
        counter: &Arc<CompletionCounter>,
    ) -> Result<()> {
        self.observed(
            || self.call_info_of_blocks(call_of(kind, false), kind, target, vectors),
            // SAFETY: the caller keeps the blocks valid until the counter is done.
            || unsafe { self.issue_list(kind, target, vectors, counter) },
        )
    }

    /// # Safety
    /// See [`Ops::issue_vectors`].
    unsafe fn issue_list(
        &self,
        kind: TransferKind,
        target: usize,
        vectors: &[Vector<'_>],
        counter: &Arc<CompletionCounter>,
    ) -> Result<()> {
        self.check_rank(target)?; // `vectors` may be empty
        let ranges = vectors.iter().map(|vector| self.check_vector(kind, target, vector));
        let ranges: SmallVec<[_; 4]> = ranges.collect::<Result<_>>()?;
        self.order_before_all(target)?;
        for (&vector, range) in vectors.iter().zip(ranges) {
            // SAFETY: the caller keeps the blocks valid until the counter is done.
            unsafe { self.issue_vector(kind, target, vector, range, counter) }?;
        }
        Ok(())
    }

    /// Completes operations on other paths once for all blocks, if the target is reached directly.
    pub(super) fn order_before_all(&self, target: usize) -> Result<()> {
        if self.reaches_directly(target, self.rank()) {
            self.order_before(target, Path::Direct)?;
        }
        Ok(())
    }
}
