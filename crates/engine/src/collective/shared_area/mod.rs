//! The shared-memory collective area of the ranks of a group on one node.
//!
//! The ranks perform *steps*, all in the same order, and each rank counts the steps itself. A step
//! uses one of [`TURNS`] sets of slots. In some steps all ranks arrive and wait until all have
//! arrived. The last rank combines the values of all, so no other rank must be woken for that. Of a
//! long value, each rank combines a share instead, which takes a further step. In other steps one
//! rank provides a value and continues (a broadcast), or all provide values and only one waits (a
//! reduction to one rank). Between arrival and release the *leader*, the first rank of the node,
//! may exchange the combined value with other nodes.
//!
//! **Checks.** Each rank has a digest of its [calls](super::call) so far. An arriving rank adds it
//! to the word that counts arrivals. The sum of `n` ranks with the same calls is `n` times their
//! digest, so the word alone shows each arriving rank whether all calls are equal. If not, the rank
//! raises the group's [alarm](super::alarm). The ranks of a broadcast count no arrivals: they
//! compare the root's digest with their own. A rank that took part in another broadcast has a
//! different digest from then on, so the next step shows the difference. Ranks that provide a value
//! and continue compare digests when they check which steps the others have finished, so a
//! difference is found within [`TURNS`] steps. The most recent calls are stored beside each rank's
//! slots, and the report names the first ones that differ. A rank in a longer wait compares them
//! with its own, because other ranks may be ahead in calls that do not wait.
//!
//! **Invariant.** No rank writes a slot while another rank may still read it. Each rank stores the
//! last step that it has finished. A slot is written only after all ranks have finished the step
//! that used it before, [`TURNS`] steps earlier, so no rank is ever further ahead than that.
//!
//! Values longer than a cache line lie in a separate part of the file, reserved when it is first
//! needed, in a step that all ranks take. If that fails, they are exchanged by cache lines.

mod check;
#[cfg(test)]
mod tests;

use super::message_group::Running;
use super::shared_counter::{SharedCounter, reached};
use super::slots::{BLOCK, SLOT, Slots, TURNS};
use super::wire::Wire;
use super::{Operator, Reducible};
use portolan_base::error::Result;
use portolan_base::shm::SharedFile;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

#[derive(Debug)]
pub(super) struct SharedArea {
    slots: Arc<Slots>,
    secret: u64,
    me: usize,
    members: Vec<usize>,
    /// The number of steps that this rank has begun, and the digest of all their calls.
    step: AtomicU32,
    chain: AtomicU64,
    /// A step that all ranks are known to have finished.
    settled: AtomicU32,
    /// Whether memory for long values could be reserved, once this was tried.
    long: OnceLock<bool>,
    whereabouts: Option<Arc<Wire>>,
}

/// The work of the leader on the combined bytes, in place, after all ranks have arrived.
pub(super) type LeaderWork<'a> = &'a dyn Fn(&mut [u8]) -> Result<()>;

fn chained(before: u64, call: u64) -> u64 {
    (before.rotate_left(17) ^ call).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16
}

const COUNT_BITS: u32 = 16;

impl SharedArea {
    pub(super) fn on(
        file: SharedFile,
        me: usize,
        members: Vec<usize>,
        crowded: bool,
        whereabouts: Option<Arc<Wire>>,
    ) -> SharedArea {
        let slots = Arc::new(Slots::on(file, members.len(), crowded));
        SharedArea {
            secret: slots.secret(),
            slots,
            me,
            members,
            step: AtomicU32::new(0),
            chain: AtomicU64::new(0),
            settled: AtomicU32::new(0),
            long: OnceLock::new(),
            whereabouts,
        }
    }

    pub(super) fn slots(&self) -> &Arc<Slots> {
        &self.slots
    }

    fn size(&self) -> usize {
        self.members.len()
    }

    /// Bytes of a value of `len` bytes that one step exchanges. All ranks pass the same length.
    pub(super) fn block_len(&self, running: &Running<'_>, len: usize) -> Result<usize> {
        if len <= SLOT {
            return Ok(SLOT);
        }
        let long = match self.long.get() {
            Some(&long) => long,
            None => {
                let mut there = [0u8];
                if self.me == 0 {
                    there[0] = u8::from(self.slots.reserve_long());
                }
                self.broadcast(running, &mut there, 0)?;
                *self.long.get_or_init(|| there[0] != 0)
            }
        };
        Ok(if long { BLOCK } else { SLOT })
    }

    /// Waits until the slots of the step are free. Returns its number.
    fn begin(&self, running: &Running<'_>) -> Result<u32> {
        running.alarm.check()?;
        let step = self.step.load(Ordering::Relaxed).wrapping_add(1);
        self.step.store(step, Ordering::Relaxed);
        let before = step.wrapping_sub(TURNS as u32);
        if !reached(self.settled.load(Ordering::Relaxed), before) {
            for place in 0..self.size() {
                let behind = self.members[place];
                let what = || format!("{}: rank {behind} is behind", (running.what)());
                let check_others = || running.alarm.check_others();
                running.wait_for(self.slots.done(place), &what, before, &check_others)?;
            }
            let all = (0..self.size()).map(|place| self.slots.has_done(place));
            let least = all.min_by_key(|done| done.wrapping_sub(before)).unwrap_or(before);
            let digest = |place| self.slots.digest(place, least).load(Ordering::Relaxed);
            if (0..self.size()).any(|place| digest(place) != digest(self.me)) {
                return Err(self.disagree(running, step.wrapping_sub(1)));
            }
            self.settled.store(least, Ordering::Relaxed);
        }
        Ok(step)
    }

    /// Ends a step at which all ranks have arrived. Wakes no rank: only a rank that is [`TURNS`]
    /// steps ahead waits for this mark, and it checks the mark after each nap.
    fn finish(&self, step: u32) {
        self.slots.done(self.me).number.store(step, Ordering::Release);
    }

    /// Adds the caller to the arrived ranks. The last rank runs `combine`. Returns whether the
    /// caller is the last, or `Mismatch` if a rank that arrived earlier made a different call.
    #[inline]
    fn arrive(&self, running: &Running<'_>, step: u32, combine: impl FnOnce()) -> Result<bool> {
        let digest = self.appear(running, step);
        let arrived = self.slots.arrived(step as usize % TURNS);
        let mine = (digest << COUNT_BITS) + 1;
        let sum = arrived.fetch_add(mine, Ordering::AcqRel).wrapping_add(mine);
        let count = sum & ((1 << COUNT_BITS) - 1);
        // The sum of the digests overflows, so both sides are modulo 2^48.
        if sum >> COUNT_BITS != digest.wrapping_mul(count) << COUNT_BITS >> COUNT_BITS {
            return Err(self.disagree(running, step));
        }
        let last = count as usize == self.size();
        if last {
            arrived.store(0, Ordering::Relaxed);
            combine();
        }
        Ok(last)
    }

    /// Publishes the caller's call of a step. Returns the digest of its calls so far.
    #[inline]
    fn appear(&self, running: &Running<'_>, step: u32) -> u64 {
        let digest = chained(self.chain.load(Ordering::Relaxed), running.call.digest(self.secret));
        self.chain.store(digest, Ordering::Relaxed);
        self.slots.write_call(self.me, step, running.call);
        self.slots.digest(self.me, step).store(digest as u32, Ordering::Relaxed);
        self.slots.seen(self.me).store(step, Ordering::Release);
        digest
    }

    /// Whether no rank with a lower place has arrived at the caller's step.
    pub(super) fn is_first_here(&self) -> bool {
        let step = self.step.load(Ordering::Relaxed);
        let arrived = |place: usize| reached(self.slots.seen(place).load(Ordering::Relaxed), step);
        !(0..self.me).any(arrived)
    }

    /// Performs a step at which all ranks wait for all. The last one runs `combine`. Then the
    /// leader performs `work`, if any, on the result of `len` bytes.
    fn all(
        &self,
        running: &Running<'_>,
        step: u32,
        combine: impl FnOnce(),
        (work, len): (Option<LeaderWork<'_>>, usize),
    ) -> Result<()> {
        let last = self.arrive(running, step, combine)?;
        match work {
            Some(work) if self.me == 0 => {
                if !last {
                    self.wait_for_all(running, self.slots.full(), step)?;
                }
                let mut result = vec![0; len];
                self.slots.read(None, step, &mut result);
                work(&mut result)?;
                self.slots.write(None, step, &result);
                self.slots.released().set(step);
            }
            None if last => self.slots.released().set(step),
            _ => {
                if last {
                    self.slots.full().set(step);
                }
                self.wait_for_all(running, self.slots.released(), step)?;
            }
        }
        // All ranks have arrived at this step, so they have finished all earlier steps.
        self.settled.store(step.wrapping_sub(1), Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn barrier(
        &self,
        running: &Running<'_>,
        work: Option<LeaderWork<'_>>,
    ) -> Result<()> {
        let step = self.begin(running)?;
        self.all(running, step, || (), (work, 0))?;
        self.finish(step);
        Ok(())
    }

    /// Each rank passes the same number of bytes, at most [`SharedArea::block_len`].
    pub(super) fn allgather(&self, running: &Running<'_>, own: &[u8]) -> Result<Vec<u8>> {
        let step = self.begin(running)?;
        self.slots.write(Some(self.me), step, own);
        self.all(running, step, || (), (None, 0))?;
        let mut all = vec![0; own.len() * self.size()];
        if !own.is_empty() {
            for (place, item) in all.chunks_exact_mut(own.len()).enumerate() {
                self.slots.read(Some(place), step, item);
            }
        }
        self.finish(step);
        Ok(all)
    }

    /// The ranks do not wait for each other.
    pub(super) fn broadcast(
        &self,
        running: &Running<'_>,
        data: &mut [u8],
        root: usize,
    ) -> Result<()> {
        let block_len = self.block_len(running, data.len())?;
        for fragment in data.chunks_mut(block_len) {
            let step = self.begin(running)?;
            let digest = self.appear(running, step);
            if self.me == root {
                self.slots.write(Some(root), step, fragment);
                self.slots.given(root).set(step);
            } else {
                let missing = || format!("{} from rank {}", (running.what)(), self.members[root]);
                let check_others = || self.check_others(running, step);
                running.wait_for(self.slots.given(root), &missing, step, &check_others)?;
                if self.slots.digest(root, step).load(Ordering::Relaxed) != digest as u32 {
                    return Err(self.disagree(running, step));
                }
                self.slots.read(Some(root), step, fragment);
            }
            self.slots.done(self.me).set(step);
        }
        Ok(())
    }

    /// Combines `data` of all ranks for all. With `work`, it must fit in [`SharedArea::block_len`].
    pub(super) fn all_reduce<T: Reducible>(
        &self,
        running: &Running<'_>,
        (data, operator): (&mut [T], Operator),
        work: Option<LeaderWork<'_>>,
    ) -> Result<()> {
        let block_len = self.block_len(running, size_of_val(data))?;
        if block_len > SLOT && size_of_val(data) > block_len {
            return self.all_reduce_long(running, data, operator);
        }
        for fragment in data.chunks_mut(block_len / size_of::<T>()) {
            let step = self.begin(running)?;
            self.slots.write(Some(self.me), step, bytemuck::cast_slice(fragment));
            let combine = || self.slots.combine::<T>(step, fragment.len(), operator);
            let len = size_of_val(fragment);
            self.all(running, step, combine, (work, len))?;
            self.slots.read(None, step, bytemuck::cast_slice_mut(fragment));
            self.finish(step);
        }
        Ok(())
    }

    /// Each rank combines its share of each block. The blocks form a pipeline: in one step, a rank
    /// writes a block, combines its share of the previous one, and reads the result of the one
    /// before. Ranks that proceed alike do not wait.
    fn all_reduce_long<T: Reducible>(
        &self,
        running: &Running<'_>,
        data: &mut [T],
        operator: Operator,
    ) -> Result<()> {
        let elements = |bytes: usize| bytes / size_of::<T>();
        // At least four blocks, so that there is a pipeline.
        let quarter = (size_of_val(data) / 4).next_multiple_of(BLOCK);
        let mut blocks = data.chunks_mut(elements(quarter.min(self.slots.long_slot())));
        // Whole cache lines, so that ranks do not write to the same one.
        let share = |block: &[T]| {
            let count = block.len().div_ceil(self.size()).next_multiple_of(elements(SLOT));
            let end = |place: usize| block.len().min(place * count);
            end(self.me)..end(self.me + 1)
        };
        let read = |(of, block): (u32, &mut [T])| {
            let share = share(block);
            self.slots.read_around(of, block, &share);
            self.slots.done(self.me).set(of);
        };
        let (mut written, mut combined) = (None, None);
        loop {
            let block = blocks.next();
            let step = self.begin(running)?;
            if let Some(block) = &block {
                self.slots.write_around(self.me, step, block, &share(block));
            }
            let mut previous: Option<(u32, &mut [T])> = written.take();
            if let Some((of, block)) = &mut previous {
                self.wait_for_all(running, self.slots.released(), *of)?;
                let share = share(block);
                self.slots.combine_share(self.me, *of, (block, &share), operator);
            }
            if self.arrive(running, step, || ())? {
                self.slots.released().set(step);
            }
            combined.take().into_iter().for_each(read);
            (written, combined) = (block.map(|block| (step, block)), previous);
            if written.is_none() {
                self.wait_for_all(running, self.slots.released(), step)?;
                combined.into_iter().for_each(read);
                self.slots.done(self.me).set(step);
                return Ok(());
            }
        }
    }

    /// Waits for a mark that is set when all ranks have arrived at the step.
    fn wait_for_all(
        &self,
        running: &Running<'_>,
        mark: SharedCounter<'_>,
        step: u32,
    ) -> Result<()> {
        let missing = || self.missing(running, step);
        let check_others = || self.check_others(running, step);
        running.wait_for(mark, &missing, step, &check_others)
    }

    /// Combines `data` of all ranks at the root. No other rank waits.
    pub(super) fn reduce<T: Reducible>(
        &self,
        running: &Running<'_>,
        (data, operator): (&mut [T], Operator),
        root: usize,
    ) -> Result<()> {
        let block_len = self.block_len(running, size_of_val(data))?;
        for fragment in data.chunks_mut(block_len / size_of::<T>()) {
            let step = self.begin(running)?;
            self.slots.write(Some(self.me), step, bytemuck::cast_slice(fragment));
            let combine = || self.slots.combine::<T>(step, fragment.len(), operator);
            let last = self.arrive(running, step, combine)?;
            if self.me == root {
                if !last {
                    self.wait_for_all(running, self.slots.full(), step)?;
                }
                self.slots.read(None, step, bytemuck::cast_slice_mut(fragment));
            } else if last {
                self.slots.full().set(step);
            }
            self.slots.done(self.me).set(step);
        }
        Ok(())
    }
}
