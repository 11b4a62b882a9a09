//! Transfers of blocks: strided on either side.
#![warn(clippy::arithmetic_side_effects)]

use super::in_call::InCall;
use super::pending::Order;
use super::{Accumulate, Block, Element, Segment, block};
use crate::error::{Result, fail};
use crate::layout::Shape;
use crate::transfer::TransferKind;

/// A block transfer that was checked on both sides.
#[derive(Debug)]
pub(super) struct Plan {
    /// Rank of the world.
    pub world: usize,
    /// Address of the remote block's first element.
    pub address: usize,
    /// Position of the local block's first element in its slice.
    pub start: usize,
    /// What moves, in bytes.
    pub shape: Shape,
}

impl Plan {
    /// Where the local block begins, and the transfer.
    pub(super) fn order(self, kind: TransferKind) -> (usize, Order) {
        let Plan { world, address, start, shape } = self;
        (start, Order { kind, world, address, shape })
    }
}

impl<T: Element> Segment<'_, T> {
    /// Checks a transfer between `remote` in the part of `rank` and `local` in a
    /// slice of `local_len` elements.
    pub(super) fn plan(
        &self,
        rank: usize,
        remote: &Block,
        local_len: usize,
        local: &Block,
    ) -> Result<Plan> {
        let len = self.len_at(rank)?;
        remote.check(len, &|| format!("the part of rank {rank}"))?;
        local.check(local_len, &|| "the slice".to_string())?;
        // More would take elements of both sides repeatedly: 2^60 of them as easily as two.
        if local.len() > len.max(local_len) {
            fail!(
                Argument,
                "a block of {} elements, where the slice has {local_len} and the part of rank {rank} \
                 {len}",
                local.len()
            );
        }
        let shape = block::pair(local, remote, size_of::<T>())?;
        // An empty block may start anywhere, also where no address is.
        let (start, first) =
            if shape.is_empty() { (0, 0) } else { (local.start(), remote.start()) };
        Ok(Plan {
            world: self.group().members()[rank],
            address: self.part_address(rank).wrapping_add(first.wrapping_mul(size_of::<T>())),
            start,
            shape,
        })
    }

    /// Puts the block `local` of `source` to the block `remote` of `rank`'s part.
    /// On return the source may be reused.
    ///
    /// ```no_run
    /// # use portolan::{Block, Segment};
    /// /// Puts column 1 of a 10 by 10 array as column 9 of a neighbour's.
    /// fn edge(array: &[f64], segment: &Segment<'_, f64>, left: usize) -> portolan::Result<()> {
    ///     let column = |j| Block::of(&[10, 10], &[0..10, j..j + 1]);
    ///     segment.put_block(left, &column(9)?, array, &column(1)?)
    /// }
    /// ```
    ///
    /// # Errors
    /// `Rank`; `Address` where a block leaves the slice or the part; `Argument`
    /// where the blocks' counts differ and neither is contiguous. Nothing has
    /// moved then.
    pub fn put_block(
        &self,
        rank: usize,
        remote: &Block,
        source: &[T],
        local: &Block,
    ) -> Result<()> {
        const CALL: &str = "Segment::put_block";
        let plan = self.plan(rank, remote, source.len(), local).in_call(CALL)?;
        // The pointer is the whole slice's, because a block with negative strides
        // reaches back from its start.
        let from = source.as_ptr().wrapping_add(plan.start).cast();
        // SAFETY: the plan's local extent lies in the source, which is borrowed
        // until the call returns.
        unsafe { self.engine().put_shape(plan.world, plan.address, from, &plan.shape) }
            .in_call(CALL)
    }

    /// Gets the block `remote` of `rank`'s part into the block `local` of
    /// `target`. The elements are there on return.
    ///
    /// # Errors
    /// As for [`Segment::put_block`].
    pub fn get_block(
        &self,
        rank: usize,
        remote: &Block,
        target: &mut [T],
        local: &Block,
    ) -> Result<()> {
        const CALL: &str = "Segment::get_block";
        let plan = self.plan(rank, remote, target.len(), local).in_call(CALL)?;
        let to = target.as_mut_ptr().wrapping_add(plan.start).cast();
        // SAFETY: the plan's local extent lies in the target, which is borrowed
        // exclusively until the call returns; any bytes are values.
        unsafe {
            self.engine().blocking(TransferKind::Get, plan.world, plan.address, to, &plan.shape)
        }
        .in_call(CALL)
    }
}

impl<T: Accumulate> Segment<'_, T> {
    /// Adds `scale` times the block `local` of `source` to the block `remote` of
    /// `rank`'s part, each element atomically. On return the source may be
    /// reused.
    ///
    /// # Errors
    /// As for [`Segment::put_block`].
    pub fn accumulate_block(
        &self,
        rank: usize,
        remote: &Block,
        scale: T,
        source: &[T],
        local: &Block,
    ) -> Result<()> {
        const CALL: &str = "Segment::accumulate_block";
        let plan = self.plan(rank, remote, source.len(), local).in_call(CALL)?;
        let from = source.as_ptr().wrapping_add(plan.start).cast_mut().cast();
        let kind = TransferKind::Accumulate(scale.scale());
        // SAFETY: the plan's local extent lies in the source, which is borrowed
        // until the call returns and only read.
        unsafe { self.engine().blocking(kind, plan.world, plan.address, from, &plan.shape) }
            .in_call(CALL)
    }
}
