//! The shared-memory collective area of the ranks of a group on one node.
//!
//! Ranks that share memory need no messages to wait for each other or to combine values. They
//! perform *steps*, all in the same order, and each rank counts the steps itself. A step uses one
//! of [`TURNS`] sets of slots. In some steps all ranks arrive and wait until all have arrived. The
//! last rank combines the values of all ranks, so no other rank must be woken for that. In other
//! steps one rank provides a value and continues (a broadcast), or all ranks provide values and
//! only one waits (a reduction to one rank). Between arrival and release the *leader*, which is the
//! first rank of the node, may exchange the combined value with other nodes.
//!
//! **Checks.** Each rank has a digest of its [calls](super::call) so far. An arriving rank adds the
//! digest to the word that counts arrivals. The sum of `n` ranks with the same calls is `n` times
//! their digest, so the word alone shows each arriving rank whether all calls are equal. If they
//! differ, the rank raises the group's [alarm](super::alarm), which ends the waits of the other
//! ranks. The ranks of a broadcast count no arrivals. They compare the root's digest with their
//! own. A rank that took part in another broadcast has a different digest from then on, so the next
//! step shows the difference. Ranks that provide a value and continue compare digests when they
//! check which steps the other ranks have finished. A difference is therefore at most [`TURNS`]
//! steps old when it is found. The most recent calls are stored beside each rank's slots, and the
//! report names the first ones that differ. A rank in a longer wait compares them with its own
//! calls, because other ranks may be ahead in calls that do not wait.
//!
//! **Invariant.** No rank writes a slot while another rank may still read it. Each rank stores the
//! last step that it has finished. A slot is written in a step only after all ranks have finished
//! the step that used the slot before, [`TURNS`] steps earlier. No rank is ever further ahead than
//! that.
//!
//! Values that are longer than a cache line lie in a separate part of the file. Its memory is
//! reserved when it is first needed, in a step that all ranks take because all have long values. If
//! the reservation fails, long values are exchanged one cache line at a time.

mod check;

use super::circle::Running;
use super::mark::reached;
use super::slots::{LONG_SLOT, SLOT, Slots, TURNS};
use super::wire::Wire;
use super::{Operator, Reducible};
use crate::error::Result;
use crate::shm::SharedFile;
use crate::wait::Progress;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The collective area, as one of its ranks sees it.
#[derive(Debug)]
pub(super) struct SharedArea {
    slots: Arc<Slots>,
    me: usize,
    /// World ranks of the node's members of the group.
    members: Vec<usize>,
    /// Number of steps that this rank has begun, and the digest of its calls in all of them.
    step: AtomicU32,
    chain: AtomicU64,
    /// A step that all ranks are known to have finished.
    settled: AtomicU32,
    long_tried: AtomicBool,
    long: AtomicBool,
    /// Source of information about ranks that have not arrived.
    whereabouts: Option<Arc<Wire>>,
}

/// The work of the leader on the combined bytes, in place, after all ranks have arrived.
pub(super) type LeaderWork<'a> = &'a dyn Fn(&mut [u8]) -> Result<()>;

/// Returns the digest of a call appended to a chain of calls: 48 bits.
fn chained(before: u64, call: u64) -> u64 {
    (before.rotate_left(17) ^ call).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16
}

/// Number of bits in the word of arrivals that count ranks.
const COUNT_BITS: u32 = 16;

impl SharedArea {
    /// Creates the area on a zeroed file that all of these ranks have mapped.
    pub(super) fn on(
        file: SharedFile,
        me: usize,
        members: Vec<usize>,
        crowded: bool,
        whereabouts: Option<Arc<Wire>>,
    ) -> SharedArea {
        SharedArea {
            slots: Arc::new(Slots::on(file, members.len(), crowded)),
            me,
            members,
            step: AtomicU32::new(0),
            chain: AtomicU64::new(0),
            settled: AtomicU32::new(0),
            long_tried: AtomicBool::new(false),
            long: AtomicBool::new(false),
            whereabouts,
        }
    }

    /// Returns the memory of the area, which holds the alarm of the node.
    pub(super) fn slots(&self) -> &Arc<Slots> {
        &self.slots
    }

    fn size(&self) -> usize {
        self.members.len()
    }

    /// Returns the maximum number of bytes of a value of `len` bytes that one step exchanges. The
    /// first call with long values reserves their memory. All ranks call with the same length.
    pub(super) fn block_len<P: Progress + ?Sized>(
        &self,
        running: &Running<'_, P>,
        len: usize,
    ) -> Result<usize> {
        if len <= SLOT {
            return Ok(SLOT);
        }
        if !self.long_tried.load(Ordering::Relaxed) {
            let mut there = [0u8];
            if self.me == 0 {
                there[0] = u8::from(self.slots.reserve_long());
            }
            self.broadcast(running, &mut there, 0)?;
            self.long.store(there[0] != 0, Ordering::Relaxed);
            self.long_tried.store(true, Ordering::Relaxed);
        }
        Ok(if self.long.load(Ordering::Relaxed) { LONG_SLOT } else { SLOT })
    }

    /// Begins a step. Waits until the slots of the step are free, and returns the number of the
    /// step.
    fn begin<P: Progress + ?Sized>(&self, running: &Running<'_, P>) -> Result<u32> {
        running.alarm.check()?;
        let step = self.step.load(Ordering::Relaxed).wrapping_add(1);
        self.step.store(step, Ordering::Relaxed);
        let before = step.wrapping_sub(TURNS as u32);
        if !reached(self.settled.load(Ordering::Relaxed), before) {
            for place in 0..self.size() {
                let behind = self.members[place];
                let what = || format!("{}: rank {behind} is behind", (running.what)());
                let check_others = || running.alarm.check_others();
                self.slots.done(place).wait_for(running, &what, before, &check_others)?;
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

    /// Ends a step at which all ranks have arrived. This wakes no rank. Only a rank that is
    /// [`TURNS`] steps ahead waits for this mark, and it checks the mark after each nap.
    fn finish(&self, step: u32) {
        self.slots.done(self.me).number.store(step, Ordering::Release);
    }

    /// Adds the caller to the arrived ranks. The last rank runs `combine`. Returns whether the
    /// caller is the last.
    ///
    /// # Errors
    /// Returns `Mismatch` if a rank that arrived earlier made a different call.
    #[inline]
    fn arrive<P: Progress + ?Sized>(
        &self,
        running: &Running<'_, P>,
        step: u32,
        combine: impl FnOnce(),
    ) -> Result<bool> {
        let digest = self.appear(running, step);
        let arrived = self.slots.arrived(step as usize % TURNS);
        let mine = (digest << COUNT_BITS) + 1;
        let sum = arrived.fetch_add(mine, Ordering::AcqRel).wrapping_add(mine);
        let count = sum & ((1 << COUNT_BITS) - 1);
        // Both sides are modulo 2^48, because the sum of the digests overflows.
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
    fn appear<P: Progress + ?Sized>(&self, running: &Running<'_, P>, step: u32) -> u64 {
        let digest = chained(self.chain.load(Ordering::Relaxed), running.call.digest());
        self.chain.store(digest, Ordering::Relaxed);
        self.slots.write_call(self.me, step, running.call);
        self.slots.digest(self.me, step).store(digest as u32, Ordering::Relaxed);
        self.slots.seen(self.me).store(step, Ordering::Release);
        digest
    }

    /// Returns whether no rank with a lower place has arrived at the caller's step.
    pub(super) fn is_first_here(&self) -> bool {
        let step = self.step.load(Ordering::Relaxed);
        let arrived = |place: usize| reached(self.slots.seen(place).load(Ordering::Relaxed), step);
        !(0..self.me).any(arrived)
    }

    /// Performs a step at which all ranks arrive and wait for all. The last one runs `combine`. If
    /// there is `work`, the leader performs it on the result of `len` bytes before the ranks
    /// continue.
    fn all<P: Progress + ?Sized>(
        &self,
        running: &Running<'_, P>,
        step: u32,
        combine: impl FnOnce(),
        (work, len): (Option<LeaderWork<'_>>, usize),
    ) -> Result<()> {
        let last = self.arrive(running, step, combine)?;
        let missing = || self.missing(running, step);
        let check_others = || self.check_others(running, step);
        match work {
            Some(work) if self.me == 0 => {
                if !last {
                    self.slots.full().wait_for(running, &missing, step, &check_others)?;
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
                self.slots.released().wait_for(running, &missing, step, &check_others)?;
            }
        }
        // All ranks have arrived at this step, so they have finished all earlier steps.
        self.settled.store(step.wrapping_sub(1), Ordering::Relaxed);
        Ok(())
    }

    /// Waits until all ranks have called and the leader has done its work.
    pub(super) fn barrier<P: Progress + ?Sized>(
        &self,
        running: &Running<'_, P>,
        work: Option<LeaderWork<'_>>,
    ) -> Result<()> {
        let step = self.begin(running)?;
        self.all(running, step, || (), (work, 0))?;
        self.finish(step);
        Ok(())
    }

    /// Returns the bytes of all ranks, concatenated in rank order. Each rank passes the same number
    /// of bytes, at most [`SharedArea::block_len`].
    pub(super) fn allgather<P: Progress + ?Sized>(
        &self,
        running: &Running<'_, P>,
        own: &[u8],
    ) -> Result<Vec<u8>> {
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

    /// Copies the bytes of one rank to all ranks. The ranks do not wait for each other.
    pub(super) fn broadcast<P: Progress + ?Sized>(
        &self,
        running: &Running<'_, P>,
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
                self.slots.given(root).wait_for(running, &missing, step, &check_others)?;
                if self.slots.digest(root, step).load(Ordering::Relaxed) != digest as u32 {
                    return Err(self.disagree(running, step));
                }
                self.slots.read(Some(root), step, fragment);
            }
            self.slots.done(self.me).set(step);
        }
        Ok(())
    }

    /// Combines `data` of all ranks. All ranks receive the result. `work` is allowed only if `data`
    /// is not longer than [`SharedArea::block_len`].
    pub(super) fn all_reduce<T: Reducible, P: Progress + ?Sized>(
        &self,
        running: &Running<'_, P>,
        (data, operator): (&mut [T], Operator),
        work: Option<LeaderWork<'_>>,
    ) -> Result<()> {
        let block_len = self.block_len(running, size_of_val(data))?;
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

    /// Combines `data` of all ranks at the root. No other rank waits.
    pub(super) fn reduce<T: Reducible, P: Progress + ?Sized>(
        &self,
        running: &Running<'_, P>,
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
                    let missing = || self.missing(running, step);
                    let check_others = || self.check_others(running, step);
                    self.slots.full().wait_for(running, &missing, step, &check_others)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::alarm::{Alarm, Key};
    use crate::collective::call::Call;
    use crate::collective::call::{ElementType, Kind, Signature};
    use crate::error::ErrorKind;
    use crate::wait::Boot;

    const RANKS: usize = 3;

    /// Runs ranks on threads, each with its own mapping of the file.
    fn ranks(body: impl Fn(usize, &SharedArea) + Sync) {
        let dir = std::env::temp_dir();
        let len = Slots::file_len(RANKS);
        let mut file = SharedFile::create(dir.to_str().unwrap(), len, true).unwrap();
        file.reserve(0, Slots::reserved_len(RANKS)).unwrap();
        std::thread::scope(|scope| {
            for me in 0..RANKS {
                let (file, body) = (SharedFile::open(&file.descriptor().unwrap(), len), &body);
                scope.spawn(move || {
                    body(me, &SharedArea::on(file.unwrap(), me, vec![5, 6, 7], me > 0, None))
                });
            }
        });
        file.unlink();
    }

    fn what() -> String {
        "a test".into()
    }

    /// Returns the alarm of the group of `shared_area`.
    fn alarm_of(shared_area: &SharedArea) -> Alarm {
        let alarm = Alarm::new(None, Key::Group(0), Arc::from([5, 6, 7]));
        alarm.set_slots(shared_area.slots().clone());
        alarm
    }

    fn running(alarm: &Alarm, call: Signature) -> Running<'_, Boot> {
        Running { progress: &Boot, what: &what, call, alarm, warns: &|| true }
    }

    /// Steps of all kinds follow each other. Each rank gets correct results, however far ahead
    /// other ranks are.
    #[test]
    fn steps_of_all_kinds_follow_each_other() {
        const ROUNDS: u64 = if cfg!(miri) { 5 } else { 2000 };
        ranks(|me, shared_area| {
            let alarm = alarm_of(shared_area);
            for round in 0..ROUNDS {
                let it = running(&alarm, Signature::here(Kind::Barrier).rooted(round as usize));
                let root = round as usize % RANKS;
                let n = [1, 8, 9, 700, 3000][round as usize / 7 % 5];
                let of = |rank: usize| -> Vec<i64> {
                    (0..n).map(|i| (i * (rank + 1)) as i64 + round as i64).collect()
                };
                let sum: Vec<i64> = (0..n as i64).map(|i| i * 6 + 3 * round as i64).collect();
                let mut data = of(me);
                match round / 3 % 5 {
                    0 => shared_area.barrier(&it, None).unwrap(),
                    1 => {
                        let work = |r: &mut [u8]| {
                            r.fill(r[0] ^ 1);
                            Ok(())
                        };
                        let mut data = [0i64; 2];
                        let given = (&mut data[..], Operator::Sum);
                        shared_area.all_reduce(&it, given, Some(&work)).unwrap();
                        assert_eq!(data, [0x0101_0101_0101_0101; 2]);
                    }
                    2 => {
                        let bytes = bytemuck::cast_slice_mut(&mut data);
                        shared_area.broadcast(&it, bytes, root).unwrap();
                        assert_eq!(data, of(root));
                    }
                    3 => {
                        let given = (&mut data[..], Operator::Sum);
                        shared_area.reduce(&it, given, root).unwrap();
                        assert!(me != root || data == sum);
                    }
                    _ => {
                        let given = (&mut data[..], Operator::Sum);
                        shared_area.all_reduce(&it, given, None).unwrap();
                        assert_eq!(data, sum);
                    }
                }
                let all = shared_area.allgather(&it, &[me as u8, round as u8]).unwrap();
                let want = |rank: usize| [rank as u8, round as u8];
                assert!(all.chunks(2).enumerate().all(|(rank, got)| got == want(rank)));
            }
        });
    }

    /// A rank that provides a value continues, but never overwrites a value that was not read yet.
    #[test]
    fn a_root_is_not_too_far_ahead() {
        ranks(|me, shared_area| {
            let alarm = alarm_of(shared_area);
            let it = running(&alarm, Signature::here(Kind::Broadcast));
            for round in 0..200u32 {
                if me == 2 && round % 20 == 0 {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
                let mut data = round.to_ne_bytes();
                if me != 0 {
                    data.fill(0);
                }
                shared_area.broadcast(&it, &mut data, 0).unwrap();
                assert_eq!(u32::from_ne_bytes(data), round);
            }
            let ahead = shared_area.step.load(Ordering::Relaxed);
            assert!((0..RANKS).all(|rank| reached(
                shared_area.slots.has_done(rank),
                ahead.wrapping_sub(TURNS as u32)
            )));
        });
    }

    /// Ranks that only provide values take several steps before they wait. The error names the
    /// first calls that differ.
    #[test]
    fn the_first_different_calls_are_named() {
        for steps in 1..2 * TURNS {
            ranks(|me, shared_area| {
                let alarm = alarm_of(shared_area);
                for _ in 0..3 {
                    shared_area
                        .barrier(&running(&alarm, Signature::here(Kind::Barrier)), None)
                        .unwrap();
                }
                let step = |n: usize| {
                    let kind = if me == 0 { Kind::Broadcast } else { Kind::Reduce };
                    let call = Signature::here(kind).of(ElementType::of::<i64>(), n).rooted(0);
                    let it = running(&alarm, call);
                    match me {
                        0 => shared_area.broadcast(&it, &mut [0; 8], 0),
                        _ => shared_area.reduce(&it, (&mut [1i64], Operator::Sum), 0),
                    }
                };
                let given = (1..=steps).try_for_each(step);
                let barrier = running(&alarm, Signature::here(Kind::Barrier));
                let error = given.and_then(|()| shared_area.barrier(&barrier, None)).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Mismatch);
                for text in ["rank 5: broadcast of 1 i64", "reduce of 1 i64"] {
                    assert!(error.detail().contains(text), "{steps} steps: {error}");
                }
            });
        }
    }

    /// For every pair of different steps, each rank fails with the same text, at once or in its
    /// next step.
    #[test]
    fn different_calls_raise_the_alarm() {
        let sum =
            Signature::here(Kind::AllReduce).of(ElementType::of::<i64>(), 2).by(Operator::Sum);
        let calls = [
            Signature::here(Kind::Barrier),
            sum,
            sum.of(ElementType::of::<i64>(), 700),
            Signature::here(Kind::Broadcast).of(ElementType::BYTES, 8).rooted(1),
            Signature::here(Kind::Reduce)
                .of(ElementType::of::<i64>(), 2)
                .by(Operator::Sum)
                .rooted(2),
        ];
        let make = |shared_area: &SharedArea, it: &Running<'_, Boot>, which: usize| match which {
            0 => shared_area.barrier(it, None),
            1 => shared_area.all_reduce(it, (&mut [1i64; 2], Operator::Sum), None),
            2 => shared_area.all_reduce(it, (&mut [1i64; 700], Operator::Sum), None),
            3 => shared_area.broadcast(it, &mut [0; 8], 1),
            _ => shared_area.reduce(it, (&mut [1i64; 2], Operator::Sum), 2),
        };
        for (mine, others) in (0..25).map(|n| (n / 5, n % 5)).filter(|(a, b)| a != b) {
            ranks(|me, shared_area| {
                let alarm = alarm_of(shared_area);
                for _ in 0..3 {
                    shared_area.barrier(&running(&alarm, calls[0]), None).unwrap();
                }
                let which = if me == 0 { mine } else { others };
                let first = make(shared_area, &running(&alarm, calls[which]), which);
                // A further barrier, for a rank that provided its value and continued.
                let failed =
                    first.and_then(|()| shared_area.barrier(&running(&alarm, calls[0]), None));
                let error = failed.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Mismatch);
                let text = Call::here(calls[mine]).describe(true, &[5, 6, 7]);
                assert!(error.detail().contains(&format!("rank 5: {text}")), "{error}");
            });
        }
    }
}
