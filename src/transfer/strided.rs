//! Transfers of blocks, which may be strided on either side.
#![warn(clippy::arithmetic_side_effects)]

use super::block;
use super::pending::Order;
use crate::in_call::InCall;
use crate::transfer::Block;
use crate::{Accumulate, Element, Segment};
use portolan_base::error::{Result, fail};
use portolan_base::layout::Shape;
use portolan_engine::transfer::TransferKind;

/// A block transfer that was checked on both sides.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The world rank of the target.
    pub world: usize,
    /// The address of the first element of the remote block.
    pub address: usize,
    /// The position of the first element of the local block in its slice.
    pub start: usize,
    /// The shape of the transfer, in bytes.
    pub shape: Shape,
}

impl Plan {
    /// Returns the position at which the local block starts, and the transfer.
    pub(super) fn order(self, kind: TransferKind) -> (usize, Order) {
        let Plan { world, address, start, shape } = self;
        (start, Order { kind, world, address, shape })
    }
}

impl<T: Element> Segment<'_, T> {
    /// Checks a transfer between the block `remote` of the part of `rank` and the block `local` of
    /// a slice of `local_len` elements.
    pub(crate) fn plan(
        &self,
        rank: usize,
        remote: &Block,
        local_len: usize,
        local: &Block,
    ) -> Result<Plan> {
        let len = self.len_at(rank)?;
        remote.check(len, &|| format!("the part of rank {rank}"))?;
        local.check(local_len, &|| "the slice".to_string())?;
        // A larger block would repeat elements on both sides, and 2^60 is easily written.
        if local.len() > len.max(local_len) {
            fail!(
                Argument,
                "a block of {} elements, where the slice has {local_len} and the part of rank {rank} \
                 {len}",
                local.len()
            );
        }
        let shape = block::pair(local, remote, size_of::<T>())?;
        // An empty block may start anywhere, even at a position without an address.
        let (start, first) =
            if shape.is_empty() { (0, 0) } else { (local.start(), remote.start()) };
        Ok(Plan {
            world: self.group().members()[rank],
            address: self.part_address(rank).wrapping_add(first.wrapping_mul(size_of::<T>())),
            start,
            shape,
        })
    }

    /// Puts the block `local` of `source` into the block `remote` of the part of `rank`. On return
    /// `source` may be reused.
    ///
    /// ```no_run
    /// # use portolan::Segment;
    /// # use portolan::transfer::Block;
    /// /// Puts column 1 of a 10 by 10 array as column 9 of a neighbour's.
    /// fn edge(array: &[f64], segment: &Segment<'_, f64>, left: usize) -> portolan::Result<()> {
    ///     let column = |j| Block::of(&[10, 10], &[0..10, j..j + 1]);
    ///     segment.put_block(left, &column(9)?, array, &column(1)?)
    /// }
    /// ```
    ///
    /// # Errors
    /// Returns `Rank` if `rank` is outside the group, or `Address` if a block leaves the slice or
    /// the part. Returns `Argument` if the blocks have different numbers of elements, or if their
    /// counts differ and neither block is contiguous. No data moves in these cases.
    pub fn put_block(
        &self,
        rank: usize,
        remote: &Block,
        source: &[T],
        local: &Block,
    ) -> Result<()> {
        const CALL: &str = "Segment::put_block";
        let plan = self.plan(rank, remote, source.len(), local).in_call(CALL)?;
        let (start, order) = plan.order(TransferKind::Put);
        // From the whole slice, because a block with negative strides reaches back from its start.
        let from = source.as_ptr().wrapping_add(start).cast_mut().cast();
        // SAFETY: the local extent of the plan lies in `source`, which stays borrowed until the
        // call returns, and a put only reads it.
        unsafe { self.engine().blocking(&order.transfer(from)) }.in_call(CALL)
    }

    /// Gets the block `remote` of the part of `rank` into the block `local` of `target`. The
    /// elements are in `target` on return.
    ///
    /// # Errors
    /// Fails as [`Segment::put_block`] does.
    pub fn get_block(
        &self,
        rank: usize,
        remote: &Block,
        target: &mut [T],
        local: &Block,
    ) -> Result<()> {
        const CALL: &str = "Segment::get_block";
        let plan = self.plan(rank, remote, target.len(), local).in_call(CALL)?;
        let (start, order) = plan.order(TransferKind::Get);
        let to = target.as_mut_ptr().wrapping_add(start).cast();
        // SAFETY: the local extent of the plan lies in `target`, which is borrowed exclusively
        // until the call returns, and any bytes are valid values of its elements.
        unsafe { self.engine().blocking(&order.transfer(to)) }.in_call(CALL)
    }
}

impl<T: Accumulate> Segment<'_, T> {
    /// Adds `scale` times the block `local` of `source` to the block `remote` of the part of
    /// `rank`. Each element is updated atomically. On return `source` may be reused.
    ///
    /// # Errors
    /// Fails as [`Segment::put_block`] does.
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
        let (start, order) = plan.order(TransferKind::Accumulate(scale.scale()));
        let from = source.as_ptr().wrapping_add(start).cast_mut().cast();
        // SAFETY: the local extent of the plan lies in `source`, which stays borrowed until the
        // call returns, and an accumulate only reads it.
        unsafe { self.engine().blocking(&order.transfer(from)) }.in_call(CALL)
    }
}
