//! One axis of a distribution: which coordinate of the grid of ranks owns an index.
//!
//! Every coordinate numbers what it owns along the axis from 0, in ascending order of the indices:
//! these are its *local* indices. The module is pure.

use crate::error::{Result, fail};
use smallvec::SmallVec;
use std::ops::Range;

/// How an axis is cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AxisMap {
    /// Coordinate `c` owns `bounds[c]..bounds[c + 1]`.
    Blocks(Vec<usize>),
    /// Block `b` of `block` indices belongs to coordinate `b % parts`.
    Cyclic { n: usize, block: usize, parts: usize },
}

/// Indices of a patch along one axis that one coordinate owns: `n` of them, and that `repeat` times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    /// The owner.
    pub coord: usize,
    /// The first one's number in the patch.
    pub at: usize,
    /// The first one's local index.
    pub local: usize,
    pub n: usize,
    /// Local indices from one to the next.
    pub step: usize,
    pub repeat: usize,
    /// From one repetition to the next: numbers in the patch, and local indices.
    pub at_stride: usize,
    pub local_stride: usize,
}

pub(super) type Runs = SmallVec<[Run; 2]>;

impl AxisMap {
    /// `parts` blocks of nearly equal length.
    pub(super) fn even(n: usize, parts: usize) -> AxisMap {
        let (each, more) = (n / parts, n % parts);
        AxisMap::Blocks((0..=parts).map(|c| c * each + c.min(more)).collect())
    }

    /// Blocks that begin at `starts`.
    pub(super) fn irregular(n: usize, starts: &[usize]) -> Result<AxisMap> {
        if starts.first() != Some(&0) {
            fail!(Argument, "the first block begins at {:?}, and not at 0", starts.first());
        }
        if !starts.is_sorted() || starts.last().is_some_and(|last| *last > n) {
            fail!(Argument, "blocks that begin at {starts:?} on an axis of {n}: not ascending");
        }
        Ok(AxisMap::Blocks(starts.iter().copied().chain([n]).collect()))
    }

    /// Coordinates along the axis.
    pub(super) fn parts(&self) -> usize {
        match self {
            AxisMap::Blocks(bounds) => bounds.len() - 1,
            AxisMap::Cyclic { parts, .. } => *parts,
        }
    }

    /// Indices that a coordinate owns.
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

    /// The indices of a coordinate, where they are one range; `None` where they may not be.
    pub(super) fn range(&self, coord: usize) -> Option<Range<usize>> {
        match self {
            AxisMap::Blocks(bounds) => Some(bounds[coord]..bounds[coord + 1]),
            AxisMap::Cyclic { n, parts: 1, .. } => Some(0..*n),
            AxisMap::Cyclic { .. } => None,
        }
    }

    /// The coordinate that owns an index, and its local index there.
    #[inline]
    pub(super) fn owner(&self, index: usize) -> (usize, usize) {
        match self {
            AxisMap::Blocks(bounds) => {
                // Blocks without indices begin where the next one does.
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

    /// The index of a local index of a coordinate.
    pub(super) fn global(&self, coord: usize, local: usize) -> usize {
        match self {
            AxisMap::Blocks(bounds) => bounds[coord] + local,
            AxisMap::Cyclic { block, parts, .. } => {
                (local / block * parts + coord) * block + local % block
            }
        }
    }

    /// The blocks of a coordinate, which has indices: their global and their local indices.
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

    /// Where the block that holds an index ends.
    fn block_end(&self, coord: usize, index: usize) -> usize {
        match self {
            AxisMap::Blocks(bounds) => bounds[coord + 1],
            AxisMap::Cyclic { n, block, .. } => (index / block + 1).saturating_mul(*block).min(*n),
        }
    }

    /// Adds the runs of `count` indices from `start` on, `step` apart, whose first has the number
    /// `at` in the patch. All indices must lie on the axis.
    pub(super) fn runs(&self, start: usize, count: usize, step: usize, at: usize, runs: &mut Runs) {
        let first = runs.len();
        let mut done = 0;
        while done < count {
            let index = start + done * step;
            let (coord, local) = self.owner(index);
            let rest = self.block_end(coord, index) - index;
            let n = if step == 1 { rest } else { rest.div_ceil(step) }.min(count - done);
            let run = Run {
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
            // Only blocks that are dealt out in turns come back to a coordinate.
            let cyclic = matches!(self, AxisMap::Cyclic { .. });
            let earlier = if cyclic { runs[first..].iter_mut() } else { [].iter_mut() };
            if !earlier.rev().find(|r| r.coord == coord).is_some_and(|r| r.continues(&run)) {
                runs.push(run);
            }
        }
    }
}

impl Run {
    /// Its repetitions, each a run.
    pub(super) fn apart(&self) -> impl Iterator<Item = Run> + use<> {
        let run = *self;
        (0..run.repeat).map(move |i| Run {
            at: run.at + i * run.at_stride,
            local: run.local + i * run.local_stride,
            repeat: 1,
            ..run
        })
    }

    /// Takes a later run of the same coordinate in, if it repeats this one.
    fn continues(&mut self, next: &Run) -> bool {
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
