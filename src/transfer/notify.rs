//! Puts with a flag: a number that is set after the elements have arrived.

use crate::in_call::InCall;
use crate::transfer::Block;
use crate::{Element, Segment};
use portolan_base::error::{Result, fail};
use portolan_base::layout::Shape;

struct Flag {
    world: usize,
    address: usize,
}

impl Segment<'_, i32> {
    fn flag(&self, world: usize, index: usize) -> Result<Flag> {
        let Some(rank) = self.group().rank_of(world) else {
            fail!(Rank, "rank {world} of the world has no flags: it is not in their group");
        };
        Ok(Flag { world, address: self.place(rank, index, 1)?.address })
    }

    /// Waits until element `index` of this rank's own part equals `value`, and serves other ranks
    /// meanwhile. On return, elements that were put before the flag are visible here.
    ///
    /// The wait is for the exact value. If a sender may set the next value before this rank has
    /// seen the current one, use another flag for the next value.
    ///
    /// # Errors
    /// Returns `Address` if `index` is outside the part.
    pub fn wait_notify(&self, index: usize, value: i32) -> Result<()> {
        const CALL: &str = "Segment::wait_notify";
        self.place(self.group().rank(), index, 1).in_call(CALL)?;
        let flag = self.local().as_ptr().wrapping_add(index);
        // SAFETY: the index lies in this rank's part, which is aligned and stays mapped while
        // `self` is borrowed. Other ranks write it only through the engine.
        unsafe { self.engine().wait_flag(flag, value) }.in_call(CALL)
    }
}

impl<T: Element> Segment<'_, T> {
    /// Puts `source` into the part of `rank`, from element `offset` on, and then sets element
    /// `index` of `flags` at the same rank to `value`. A rank that sees the flag
    /// ([`Segment::wait_notify`]) also sees the elements. On return `source` may be reused.
    ///
    /// # Errors
    /// Returns `Rank` if `rank` is outside the group or outside the group of `flags`, or `Address`
    /// if the elements or the flag do not lie in their parts. No data moves in either case.
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
        // SAFETY: `source` stays borrowed until the call returns.
        unsafe {
            self.engine().put_flag(flag.world, place.address, from, &shape, flag.address, value)
        }
        .in_call(CALL)
    }

    /// Puts a block as [`Segment::put_block`] does, and then sets the flag as
    /// [`Segment::put_notify`] does.
    ///
    /// # Errors
    /// Fails as [`Segment::put_block`] and [`Segment::put_notify`] do.
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
        // SAFETY: the local extent of the plan lies in `source`, borrowed until the call returns.
        unsafe {
            self.engine().put_flag(flag.world, plan.address, from, &plan.shape, flag.address, value)
        }
        .in_call(CALL)
    }
}
