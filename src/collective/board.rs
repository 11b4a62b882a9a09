//! Shared memory on which the ranks of a group that share a node meet.
//!
//! Ranks that share memory need no messages to wait for each other or to combine values. They
//! take *steps*, all the same ones in the same order, which each rank counts for itself. A step
//! uses one of [`TURNS`] sets of slots. In some steps all arrive and wait until all have; the
//! last one to arrive combines what all have given, so that nobody else need be woken
//! for it. In others one rank gives and goes on (a broadcast), or all give and only one waits (a
//! reduction to one rank). Between arrival and release one rank, the *representative*, may
//! exchange what was combined with other nodes.
//!
//! **Invariant.** No rank writes a slot while another may still read it. Each rank notes the step
//! that it has done with, and a slot is written in a step only when all have done with the one
//! that used it last, [`TURNS`] steps before. So a rank is never further ahead than that.
//!
//! Values longer than a line of memory lie in an area whose memory is taken when it is first
//! needed: by the step in which all ranks see that they have such values. Where there is none,
//! such values travel a line at a time.

use super::mark::reached;
use super::slots::{LONG_SLOT, SLOT, Slots, TURNS};
use super::{Element, Operator};
use crate::error::Result;
use crate::shm::SharedFile;
use crate::wait::Progress;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The board, as one of its ranks sees it.
#[derive(Debug)]
pub(super) struct Board {
    slots: Slots,
    me: usize,
    /// World ranks.
    members: Vec<usize>,
    /// Steps that this rank has begun.
    step: AtomicU32,
    /// A step that all ranks are known to have done with.
    settled: AtomicU32,
    long_tried: AtomicBool,
    long: AtomicBool,
}

/// Who does what between the arrival of all and their release.
pub(super) struct Representative<'a> {
    /// Its place on the node.
    pub place: usize,
    /// What it does with what was combined, in place.
    pub work: &'a dyn Fn(&mut [u8]),
}

/// A list of ranks, not too long.
fn some(ranks: &[usize]) -> String {
    const MOST: usize = 16;
    let mut texts: Vec<String> = ranks.iter().take(MOST).map(usize::to_string).collect();
    if ranks.len() > MOST {
        texts.push("...".into());
    }
    texts.join(", ")
}

impl Board {
    /// A board on a file of zeros that all of these ranks have mapped.
    pub(super) fn on(file: SharedFile, me: usize, members: Vec<usize>, crowded: bool) -> Board {
        Board {
            slots: Slots::on(file, members.len(), crowded),
            me,
            members,
            step: AtomicU32::new(0),
            settled: AtomicU32::new(0),
            long_tried: AtomicBool::new(false),
            long: AtomicBool::new(false),
        }
    }

    fn size(&self) -> usize {
        self.members.len()
    }

    /// The longest piece of values of `len` bytes that a step takes. All ranks call with the same.
    pub(super) fn piece_len<P: Progress + ?Sized>(
        &self,
        progress: &P,
        what: &dyn Fn() -> String,
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
            self.broadcast(progress, what, &mut there, 0)?;
            self.long.store(there[0] != 0, Ordering::Relaxed);
            self.long_tried.store(true, Ordering::Relaxed);
        }
        Ok(if self.long.load(Ordering::Relaxed) { LONG_SLOT } else { SLOT })
    }

    /// Begins a step: its slots are free.
    fn begin<P: Progress + ?Sized>(&self, progress: &P, what: &dyn Fn() -> String) -> Result<u32> {
        let step = self.step.load(Ordering::Relaxed).wrapping_add(1);
        self.step.store(step, Ordering::Relaxed);
        let before = step.wrapping_sub(TURNS as u32);
        if !reached(self.settled.load(Ordering::Relaxed), before) {
            for place in 0..self.size() {
                let what = || format!("{}: rank {} is behind", what(), self.members[place]);
                self.slots.done(place).wait_for(progress, &what, before)?;
            }
            let all = (0..self.size()).map(|place| self.slots.has_done(place));
            let least = all.min_by_key(|done| done.wrapping_sub(before)).unwrap_or(before);
            self.settled.store(least, Ordering::Relaxed);
        }
        Ok(step)
    }

    /// Ends a step of which all have arrived: nobody sleeps until this rank has done with it.
    fn finish(&self, step: u32) {
        self.slots.done(self.me).number.store(step, Ordering::Release);
    }

    /// Counts the caller among those that have arrived; the last one runs `combine`.
    fn arrive(&self, step: u32, combine: impl FnOnce()) -> bool {
        self.slots.seen(self.me).store(step, Ordering::Relaxed);
        let arrived = self.slots.arrived(step as usize % TURNS);
        let last = arrived.fetch_add(1, Ordering::AcqRel) as usize + 1 == self.size();
        if last {
            arrived.store(0, Ordering::Relaxed);
            combine();
        }
        last
    }

    fn missing(&self, what: &dyn Fn() -> String, step: u32) -> String {
        let seen = |place: usize| self.slots.seen(place).load(Ordering::Relaxed);
        let missing: Vec<usize> = (0..self.size())
            .filter(|&place| !reached(seen(place), step))
            .map(|place| self.members[place])
            .collect();
        let here = self.size() - missing.len();
        match missing.len() {
            0 => format!("{} at which the {here} ranks of the node have arrived", what()),
            n => format!(
                "{} at which {here} of {} ranks have arrived, without {} {}",
                what(),
                self.size(),
                if n == 1 { "rank" } else { "ranks" },
                some(&missing)
            ),
        }
    }

    /// A step at which all arrive and wait for all; the last one combines, and the
    /// representative, where there is one, works on the result of `len` bytes before all go on.
    fn all<P: Progress + ?Sized>(
        &self,
        progress: &P,
        what: &dyn Fn() -> String,
        step: u32,
        combine: impl FnOnce(),
        (representative, len): (Option<&Representative<'_>>, usize),
    ) -> Result<()> {
        let last = self.arrive(step, combine);
        let missing = || self.missing(what, step);
        match representative {
            Some(one) if one.place == self.me => {
                if !last {
                    self.slots.full().wait_for(progress, &missing, step)?;
                }
                let mut result = vec![0; len];
                self.slots.read(None, step, &mut result);
                (one.work)(&mut result);
                self.slots.write(None, step, &result);
                self.slots.released().set(step);
            }
            None if last => self.slots.released().set(step),
            _ => {
                if last {
                    self.slots.full().set(step);
                }
                self.slots.released().wait_for(progress, &missing, step)?;
            }
        }
        // All have arrived, so they have done with all before.
        self.settled.store(step.wrapping_sub(1), Ordering::Relaxed);
        Ok(())
    }

    /// Waits until all ranks have called, and the representative has done its work.
    pub(super) fn barrier<P: Progress + ?Sized>(
        &self,
        progress: &P,
        what: &dyn Fn() -> String,
        representative: Option<&Representative<'_>>,
    ) -> Result<()> {
        let step = self.begin(progress, what)?;
        self.all(progress, what, step, || (), (representative, 0))?;
        self.finish(step);
        Ok(())
    }

    /// Everyone's bytes, one after the other; each has as many, which fit a piece. What
    /// `representative` makes of no bytes is nothing: it works when all have arrived.
    pub(super) fn allgather<P: Progress + ?Sized>(
        &self,
        progress: &P,
        what: &dyn Fn() -> String,
        own: &[u8],
    ) -> Result<Vec<u8>> {
        let step = self.begin(progress, what)?;
        self.slots.write(Some(self.me), step, own);
        self.all(progress, what, step, || (), (None, 0))?;
        let mut all = vec![0; own.len() * self.size()];
        if !own.is_empty() {
            for (place, item) in all.chunks_exact_mut(own.len()).enumerate() {
                self.slots.read(Some(place), step, item);
            }
        }
        self.finish(step);
        Ok(all)
    }

    /// Copies the bytes of one rank to all, which need not wait for each other.
    pub(super) fn broadcast<P: Progress + ?Sized>(
        &self,
        progress: &P,
        what: &dyn Fn() -> String,
        data: &mut [u8],
        root: usize,
    ) -> Result<()> {
        let piece_len = self.piece_len(progress, what, data.len())?;
        for piece in data.chunks_mut(piece_len) {
            let step = self.begin(progress, what)?;
            self.slots.seen(self.me).store(step, Ordering::Relaxed);
            if self.me == root {
                self.slots.write(Some(root), step, piece);
                self.slots.given(root).set(step);
            } else {
                let missing = || format!("{} from rank {}", what(), self.members[root]);
                self.slots.given(root).wait_for(progress, &missing, step)?;
                self.slots.read(Some(root), step, piece);
            }
            self.slots.done(self.me).set(step);
        }
        Ok(())
    }

    /// Combines `data` of all, everywhere. The representative may only be where it fits a piece.
    pub(super) fn all_reduce<T: Element, P: Progress + ?Sized>(
        &self,
        progress: &P,
        what: &dyn Fn() -> String,
        (data, operator): (&mut [T], Operator),
        representative: Option<&Representative<'_>>,
    ) -> Result<()> {
        let piece_len = self.piece_len(progress, what, size_of_val(data))?;
        for piece in data.chunks_mut(piece_len / size_of::<T>()) {
            let step = self.begin(progress, what)?;
            self.slots.write(Some(self.me), step, bytemuck::cast_slice(piece));
            let combine = || self.slots.combine::<T>(step, piece.len(), operator);
            let len = size_of_val(piece);
            self.all(progress, what, step, combine, (representative, len))?;
            self.slots.read(None, step, bytemuck::cast_slice_mut(piece));
            self.finish(step);
        }
        Ok(())
    }

    /// Combines `data` of all at the root; nobody else waits.
    pub(super) fn reduce<T: Element, P: Progress + ?Sized>(
        &self,
        progress: &P,
        what: &dyn Fn() -> String,
        (data, operator): (&mut [T], Operator),
        root: usize,
    ) -> Result<()> {
        let piece_len = self.piece_len(progress, what, size_of_val(data))?;
        for piece in data.chunks_mut(piece_len / size_of::<T>()) {
            let step = self.begin(progress, what)?;
            self.slots.write(Some(self.me), step, bytemuck::cast_slice(piece));
            let last = self.arrive(step, || self.slots.combine::<T>(step, piece.len(), operator));
            if self.me == root {
                if !last {
                    let missing = || self.missing(what, step);
                    self.slots.full().wait_for(progress, &missing, step)?;
                }
                self.slots.read(None, step, bytemuck::cast_slice_mut(piece));
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
    use crate::wait::Boot;

    const RANKS: usize = 3;

    /// Ranks on threads, each with a mapping of its own.
    fn ranks(body: impl Fn(usize, &Board) + Sync) {
        let dir = std::env::temp_dir();
        let len = Slots::file_len(RANKS);
        let mut file = SharedFile::create(dir.to_str().unwrap(), len, true).unwrap();
        file.reserve(0, Slots::reserved_len(RANKS)).unwrap();
        std::thread::scope(|scope| {
            for me in 0..RANKS {
                let (file, body) = (SharedFile::open(&file.descriptor().unwrap(), len), &body);
                scope.spawn(move || body(me, &Board::on(file.unwrap(), me, vec![5, 6, 7], me > 0)));
            }
        });
        file.unlink();
    }

    fn what() -> String {
        "a test".into()
    }

    /// Steps of every kind one after the other: what each gets, however far ahead the others are.
    #[test]
    fn steps_of_all_kinds_follow_each_other() {
        const ROUNDS: u64 = if cfg!(miri) { 5 } else { 2000 };
        ranks(|me, board| {
            for round in 0..ROUNDS {
                let root = round as usize % RANKS;
                let n = [1, 8, 9, 700, 3000][round as usize / 7 % 5];
                let of = |rank: usize| -> Vec<i64> {
                    (0..n).map(|i| (i * (rank + 1)) as i64 + round as i64).collect()
                };
                let sum: Vec<i64> = (0..n as i64).map(|i| i * 6 + 3 * round as i64).collect();
                let mut data = of(me);
                match round / 3 % 5 {
                    0 => board.barrier(&Boot, &what, None).unwrap(),
                    1 => {
                        let one = Representative { place: root, work: &|r| r.fill(r[0] ^ 1) };
                        let mut data = [0i64; 2];
                        let given = (&mut data[..], Operator::Sum);
                        board.all_reduce(&Boot, &what, given, Some(&one)).unwrap();
                        assert_eq!(data, [0x0101_0101_0101_0101; 2]);
                    }
                    2 => {
                        board
                            .broadcast(&Boot, &what, bytemuck::cast_slice_mut(&mut data), root)
                            .unwrap();
                        assert_eq!(data, of(root));
                    }
                    3 => {
                        let given = (&mut data[..], Operator::Sum);
                        board.reduce(&Boot, &what, given, root).unwrap();
                        assert!(me != root || data == sum);
                    }
                    _ => {
                        let given = (&mut data[..], Operator::Sum);
                        board.all_reduce(&Boot, &what, given, None).unwrap();
                        assert_eq!(data, sum);
                    }
                }
                let all = board.allgather(&Boot, &what, &[me as u8, round as u8]).unwrap();
                let want = |rank: usize| [rank as u8, round as u8];
                assert!(all.chunks(2).enumerate().all(|(rank, got)| got == want(rank)));
            }
        });
    }

    /// A rank that gives goes on, but never so far that it would overwrite what was not read.
    #[test]
    fn a_root_is_not_too_far_ahead() {
        ranks(|me, board| {
            for round in 0..200u32 {
                if me == 2 && round % 20 == 0 {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
                let mut data = round.to_ne_bytes();
                if me != 0 {
                    data.fill(0);
                }
                board.broadcast(&Boot, &what, &mut data, 0).unwrap();
                assert_eq!(u32::from_ne_bytes(data), round);
            }
            let ahead = board.step.load(Ordering::Relaxed);
            assert!(
                (0..RANKS).all(|rank| reached(
                    board.slots.has_done(rank),
                    ahead.wrapping_sub(TURNS as u32)
                ))
            );
        });
    }
}
