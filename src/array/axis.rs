//! The distribution of one axis: the mapping from indices to coordinates of the grid of ranks.
//!
//! Each coordinate numbers the indices that it owns from 0, in ascending order: its *local*
//! indices. The module does not communicate.

use portolan_base::error::{Result, fail};
use smallvec::SmallVec;
use std::ops::Range;

/// Numbers, one for each axis.
pub(super) type Dims = SmallVec<[usize; 6]>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AxisMap {
    /// Coordinate `c` owns `bounds[c]..bounds[c + 1]`.
    Blocks(Vec<usize>),
    /// Block `b` of `block` indices belongs to coordinate `b % parts`.
    Cyclic { n: usize, block: usize, parts: usize },
}

/// Indices of a patch along one axis that one coordinate owns: `n` indices, `repeat` times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AxisRun {
    pub coord: usize,
    /// Position of the first index in the patch.
    pub at: usize,
    pub local: usize,
    pub n: usize,
    /// Distance between consecutive indices, in local indices.
    pub step: usize,
    pub repeat: usize,
    /// Distance between repetitions in positions of the patch, and in local indices.
    pub at_stride: usize,
    pub local_stride: usize,
}

pub(super) type Runs = SmallVec<[AxisRun; 2]>;

impl AxisMap {
    pub(super) fn even(n: usize, parts: usize) -> AxisMap {
        let (each, more) = (n / parts, n % parts);
        AxisMap::Blocks((0..=parts).map(|c| c * each + c.min(more)).collect())
    }

    pub(super) fn irregular(n: usize, starts: &[usize]) -> Result<AxisMap> {
        match starts.first() {
            Some(0) => (),
            Some(first) => fail!(Argument, "the first block begins at {first}, and not at 0"),
            None => fail!(Argument, "an axis without blocks; the first block begins at 0"),
        }
        if !starts.is_sorted() || starts.last().is_some_and(|last| *last > n) {
            fail!(Argument, "blocks that begin at {starts:?} on an axis of {n}: not ascending");
        }
        Ok(AxisMap::Blocks(starts.iter().copied().chain([n]).collect()))
    }

    pub(super) fn parts(&self) -> usize {
        match self {
            AxisMap::Blocks(bounds) => bounds.len() - 1,
            AxisMap::Cyclic { parts, .. } => *parts,
        }
    }

    pub(super) fn extent(&self, coord: usize) -> usize {
        match self {
            AxisMap::Blocks(bounds) => bounds[coord + 1] - bounds[coord],
            AxisMap::Cyclic { n, block, parts } => {
                let (full, tail) = (n / block, n % block);
                let own = full / parts + usize::from(coord < full % parts);
                own * block + if full % parts == coord { tail } else { 0 }
            }
        }
    }

    /// Returns the indices of a coordinate, or `None` for a cyclic axis with several coordinates.
    pub(super) fn range(&self, coord: usize) -> Option<Range<usize>> {
        match self {
            AxisMap::Blocks(bounds) => Some(bounds[coord]..bounds[coord + 1]),
            AxisMap::Cyclic { n, parts: 1, .. } => Some(0..*n),
            AxisMap::Cyclic { .. } => None,
        }
    }

    /// Returns the coordinate that owns an index, and the local index there.
    #[inline]
    pub(super) fn owner(&self, index: usize) -> (usize, usize) {
        match self {
            AxisMap::Blocks(bounds) => {
                // An empty block has the start of the next block, so the last block that starts at
                // or before the index owns it.
                let coord = match bounds.len() {
                    2 => 0,
                    _ => bounds.partition_point(|start| *start <= index) - 1,
                };
                (coord, index - bounds[coord])
            }
            AxisMap::Cyclic { block, parts, .. } => {
                let b = index / block;
                (b % parts, b / parts * block + index % block)
            }
        }
    }

    pub(super) fn global(&self, coord: usize, local: usize) -> usize {
        match self {
            AxisMap::Blocks(bounds) => bounds[coord] + local,
            AxisMap::Cyclic { block, parts, .. } => {
                (local / block * parts + coord) * block + local % block
            }
        }
    }

    /// Returns the global and local indices of each block of a coordinate with at least one index.
    pub(super) fn blocks(&self, coord: usize) -> Vec<(Range<usize>, Range<usize>)> {
        match self {
            AxisMap::Blocks(bounds) => {
                vec![(bounds[coord]..bounds[coord + 1], 0..self.extent(coord))]
            }
            AxisMap::Cyclic { n, block, parts } => (coord.saturating_mul(*block)..*n)
                .step_by(block.saturating_mul(*parts))
                .enumerate()
                .map(|(i, start)| {
                    let len = (*block).min(n - start);
                    (start..start + len, i * block..i * block + len)
                })
                .collect(),
        }
    }

    /// Returns the end of the block that holds an index.
    pub(super) fn block_end(&self, coord: usize, index: usize) -> usize {
        match self {
            AxisMap::Blocks(bounds) => bounds[coord + 1],
            AxisMap::Cyclic { n, block, .. } => (index / block + 1).saturating_mul(*block).min(*n),
        }
    }

    /// Appends to `runs` the runs of `count` indices from `start` on, `step` apart. `at` is the
    /// position of the first index in the patch. All indices must lie on the axis.
    pub(super) fn runs(&self, start: usize, count: usize, step: usize, at: usize, runs: &mut Runs) {
        let first = runs.len();
        let mut done = 0;
        while done < count {
            let index = start + done * step;
            let (coord, local) = self.owner(index);
            let rest = self.block_end(coord, index) - index;
            let n = if step == 1 { rest } else { rest.div_ceil(step) }.min(count - done);
            let run = AxisRun {
                coord,
                at: at + done,
                local,
                n,
                step,
                repeat: 1,
                at_stride: 0,
                local_stride: 0,
            };
            done += n;
            // Only on a cyclic axis can a run repeat an earlier one of the same coordinate.
            let cyclic = matches!(self, AxisMap::Cyclic { .. });
            let earlier = if cyclic { runs[first..].iter_mut() } else { [].iter_mut() };
            if !earlier.rev().find(|r| r.coord == coord).is_some_and(|r| r.continues(&run)) {
                runs.push(run);
            }
        }
    }
}

impl AxisRun {
    /// The repetitions of the run, as separate runs.
    pub(super) fn apart(&self) -> impl Iterator<Item = AxisRun> + use<> {
        let run = *self;
        (0..run.repeat).map(move |i| AxisRun {
            at: run.at + i * run.at_stride,
            local: run.local + i * run.local_stride,
            repeat: 1,
            ..run
        })
    }

    /// Extends this run by `next`, a later run of the same coordinate, if `next` repeats it.
    /// Returns whether it does.
    fn continues(&mut self, next: &AxisRun) -> bool {
        let (at, local) = if self.repeat == 1 {
            (next.at - self.at, next.local - self.local)
        } else {
            (self.at_stride, self.local_stride)
        };
        let fits = next.n == self.n
            && next.at == self.at + self.repeat * at
            && next.local == self.local + self.repeat * local;
        if fits {
            (self.repeat, self.at_stride, self.local_stride) = (self.repeat + 1, at, local);
        }
        fits
    }
}
