//! Work sharing: each tile of an array is handed out once.
//!
//! Each rank has a counter of its own tiles. A rank takes tiles from its own counter first, so most
//! of its tiles are its own. Then it takes tiles of the next ranks, one at a time.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

use super::dist_array::DistArray;
use super::distribution::{Layout, OwnBox};
use super::patch::Patch;
use crate::in_call::public;
use crate::{Element, Segment};
use ndarray::Dimension;
use portolan_base::error::{Result, fail};
use portolan_engine::collective::{self, Kind};
use std::ops::Range;

/// A tile that was handed out to this rank and to no other.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "no other rank receives this tile"]
pub struct Tile {
    /// The global indices, for each axis.
    pub ranges: Vec<Range<usize>>,
    /// The rank that owns the elements.
    pub owner: usize,
}

impl From<&Tile> for Patch {
    fn from(tile: &Tile) -> Patch {
        Patch::from(&tile.ranges[..])
    }
}

/// Hands out tiles that the ranks of a group share; created by [`DistArray::tiles`].
///
/// In a program that uses [`run`](crate::run), an error or a panic of a rank that works on a tile
/// ends the whole job, so no result lacks a tile.
///
/// ```no_run
/// # fn work(a: &portolan::array::DistArray<'_, f64, ndarray::Ix2>) -> portolan::Result<()> {
/// let mut tiles = a.tiles([64, 64])?;
/// while let Some(tile) = tiles.take()? {
///     let mut block = a.get(&tile)?;
///     block.mapv_inplace(f64::sqrt);
///     a.put(&tile, &block)?;
/// }
/// tiles.free()?; // collective: all tiles of all ranks are done
/// a.sync()
/// # }
/// ```
#[derive(Debug)]
#[must_use = "tiles are freed by `Tiles::free`, which is collective"]
pub struct Tiles<'rt> {
    counters: Segment<'rt, i64>,
    layout: Layout,
    tile: Vec<usize>,
    /// Number of ranks whose tiles are known to be used up.
    passed: usize,
    /// The rank whose tiles are being taken, and its boxes.
    boxes: Option<(usize, Vec<OwnBox>)>,
}

impl<'rt, T: Element, D: Dimension> DistArray<'rt, T, D> {
    /// Creates tiles of at most the given shape that cover the array. Collective.
    ///
    /// # Errors
    /// Returns `Argument` if the shape is empty or has another number of axes, and `Memory` on all
    /// ranks if the counters cannot be allocated.
    #[track_caller]
    pub fn tiles(&self, shape: impl Into<Vec<usize>>) -> Result<Tiles<'rt>> {
        public("DistArray::tiles", || self.tiles_inner(shape.into()))
    }

    pub(super) fn tiles_inner(&self, tile: Vec<usize>) -> Result<Tiles<'rt>> {
        if tile.len() != self.ndim() || tile.contains(&0) {
            fail!(
                Argument,
                "array \"{}\" of shape {:?}: tiles of shape {tile:?}",
                self.name(),
                self.shape()
            );
        }
        let number = self.inner.part.segment().number();
        let text = format!("{tile:?} of the array \"{}\" (number {number})", self.name());
        let counters = collective::scope_of(Kind::CreateTiles, &text, || {
            self.group().allocate_internal(1, true)
        })?;
        let layout = self.inner.layout.clone();
        Ok(Tiles { counters, layout, tile, passed: 0, boxes: None })
    }
}

impl Tiles<'_> {
    /// Returns the next tile for this rank, or `None` if all tiles were handed out.
    ///
    /// # Errors
    /// Returns `Mpi` if the access to a counter fails.
    #[track_caller]
    pub fn take(&mut self) -> Result<Option<Tile>> {
        public("Tiles::take", || self.take_inner())
    }

    fn take_inner(&mut self) -> Result<Option<Tile>> {
        let (me, n) = (self.counters.group().rank(), self.counters.group().size());
        while self.passed < n {
            let owner = me.saturating_add(self.passed).checked_rem(n).unwrap_or(0);
            if self.boxes.as_ref().is_none_or(|(rank, _)| *rank != owner) {
                self.boxes = Some((owner, self.layout.own_boxes(owner)));
            }
            let boxes = self.boxes.as_ref().map_or(&[][..], |(_, boxes)| boxes);
            if !boxes.is_empty() {
                let number = self.counters.fetch_add(owner, 0, 1)? as usize;
                if let Some(ranges) = numbered(boxes, &self.tile, number) {
                    return Ok(Some(Tile { ranges, owner }));
                }
            }
            self.passed = self.passed.saturating_add(1);
        }
        Ok(None)
    }

    /// Starts over: all tiles will be handed out again. Collective.
    ///
    /// # Errors
    /// Returns `Mpi` if a barrier fails.
    #[track_caller]
    pub fn reset(&mut self) -> Result<()> {
        self.passed = 0;
        public("Tiles::reset", || {
            collective::scope(Kind::ResetTiles, self.counters.number(), || {
                self.counters.group().barrier()?;
                self.counters.local().fill(0);
                self.counters.group().barrier()
            })
        })
    }

    /// Frees the counters. Collective: on return, all ranks have finished the tiles that they took.
    ///
    /// # Errors
    /// Returns `Mpi` if the counters cannot be freed.
    #[track_caller]
    pub fn free(self) -> Result<()> {
        public("Tiles::free", || self.counters.free())
    }
}

/// Returns the tile with the given number in the boxes, or `None` after the last.
fn numbered(boxes: &[OwnBox], tile: &[usize], number: usize) -> Option<Vec<Range<usize>>> {
    let mut rest = number;
    for OwnBox { global, .. } in boxes {
        let counts: Vec<usize> =
            global.iter().zip(tile).map(|(r, t)| r.len().div_ceil(*t)).collect();
        let all: usize = counts.iter().product();
        if rest >= all {
            rest = rest.saturating_sub(all);
            continue;
        }
        let mut ranges = global.clone();
        for (axis, n) in counts.iter().enumerate().rev() {
            let at = rest.checked_rem(*n).unwrap_or(0).saturating_mul(tile[axis]);
            let start = global[axis].start.saturating_add(at);
            ranges[axis] = start..start.saturating_add(tile[axis]).min(global[axis].end);
            rest = rest.checked_div(*n).unwrap_or(0);
        }
        return Some(ranges);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Distribution;
    use std::collections::BTreeSet;

    #[test]
    fn tiles_cover_an_array_once() {
        for distribution in [Distribution::Block, Distribution::block_cyclic([3, 2])] {
            let layout = Layout::new(&[10, 13], 8, 6, &distribution, &[0, 0]).expect("a layout");
            let mut seen = BTreeSet::new();
            for rank in 0..6 {
                let boxes = layout.own_boxes(rank);
                for number in 0.. {
                    let Some(ranges) = numbered(&boxes, &[4, 5], number) else {
                        break;
                    };
                    for i in ranges[0].clone() {
                        for j in ranges[1].clone() {
                            assert_eq!(layout.locate(&[i, j]).0, rank);
                            assert!(seen.insert((i, j)), "{i}, {j} twice");
                        }
                    }
                }
            }
            assert_eq!(seen.len(), 130);
        }
    }
}
