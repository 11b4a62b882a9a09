//! Flags: elements, and then a number that says that they are there.

use super::in_call::InCall;
use super::{Block, Element, Segment};
use crate::error::{Result, fail};
use crate::layout::Shape;

/// A flag in another rank's memory.
struct Flag {
    world: usize,
    address: usize,
}

impl Segment<'_, i32> {
    /// The flag `index` of the rank `world` of the world.
    fn flag(&self, world: usize, index: usize) -> Result<Flag> {
        let Some(rank) = self.group().rank_of(world) else {
            fail!(Rank, "rank {world} of the world has no flags: it is not in their group");
        };
        Ok(Flag { world, address: self.place(rank, index, 1)?.address })
    }

    /// Waits until element `index` of this rank's own part is `value`, and serves
    /// other ranks meanwhile. What was put before the flag is then visible here.
    ///
    /// The wait is for the very value: a sender that may go on to the next one
    /// before this rank has looked needs another flag for that.
    ///
    /// # Errors
    /// `Address` outside the part.
    pub fn wait_notify(&self, index: usize, value: i32) -> Result<()> {
        const CALL: &str = "Segment::wait_notify";
        self.place(self.group().rank(), index, 1).in_call(CALL)?;
        let flag = self.local().as_ptr().wrapping_add(index);
        // SAFETY: the index is inside our part, which is aligned and stays mapped
        // while `self` is borrowed; others write it through the engine.
        unsafe { self.engine().wait_flag(flag, value) }.in_call(CALL)
    }
}

impl<T: Element> Segment<'_, T> {
    /// Puts `source` to `offset` of `rank`, and then sets element `index` of
    /// `flags` at the same rank to `value`: a rank that sees the flag
    /// ([`Segment::wait_notify`]) sees the elements. On return the source may be
    /// reused.
    ///
    /// # Errors
    /// `Rank`, or `Address` where the elements or the flag do not lie in their
    /// parts; nothing has moved then.
    pub fn put_notify(
        &self,
        rank: usize,
        offset: usize,
        source: &[T],
        flags: &Segment<'_, i32>,
        index: usize,
        value: i32,
    ) -> Result<()> {
        const CALL: &str = "Segment::put_notify";
        let place = self.place(rank, offset, source.len()).in_call(CALL)?;
        let flag = flags.flag(place.world, index).in_call(CALL)?;
        let shape = Shape::contiguous(size_of_val(source));
        let from = source.as_ptr().cast();
        // SAFETY: the source is a live slice, read until the call returns.
        unsafe {
            self.engine().put_flag(flag.world, place.address, from, &shape, flag.address, value)
        }
        .in_call(CALL)
    }

    /// [`Segment::put_block`], and then the flag.
    ///
    /// # Errors
    /// As for [`Segment::put_block`] and [`Segment::put_notify`].
    #[expect(clippy::too_many_arguments, reason = "a block on each side, and a flag")]
    pub fn put_block_notify(
        &self,
        rank: usize,
        remote: &Block,
        source: &[T],
        local: &Block,
        flags: &Segment<'_, i32>,
        index: usize,
        value: i32,
    ) -> Result<()> {
        const CALL: &str = "Segment::put_block_notify";
        let plan = self.plan(rank, remote, source.len(), local).in_call(CALL)?;
        let flag = flags.flag(plan.world, index).in_call(CALL)?;
        let from = source.as_ptr().wrapping_add(plan.start).cast();
        // SAFETY: the plan's local extent lies in the source, which is borrowed
        // until the call returns.
        unsafe {
            self.engine().put_flag(flag.world, plan.address, from, &plan.shape, flag.address, value)
        }
        .in_call(CALL)
    }
}
