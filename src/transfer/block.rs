//! Blocks of multi-dimensional arrays, in units of elements. This module does not communicate: it
//! checks blocks and converts a pair of them into the engine's [`Shape`], in bytes.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

use portolan_base::error::{Result, fail};
use portolan_base::layout::{MAX_LEVELS, Shape};
use smallvec::SmallVec;
use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Axis {
    n: usize,
    stride: isize,
}

/// A block of a multi-dimensional array that is stored in a slice of elements.
///
/// It has a start position and, for each axis from the outermost to the innermost, a count and a
/// stride, all in elements.
///
/// ```
/// use portolan::transfer::Block;
/// // Rows 1 and 2, columns 3 to 5, of a 4 by 10 array.
/// let block = Block::of(&[4, 10], &[1..3, 3..6])?;
/// assert_eq!(block.len(), 6);
/// assert_eq!(block.indices().collect::<Vec<_>>(), [13, 14, 15, 23, 24, 25]);
/// // The same block, described by strides.
/// assert_eq!(block, Block::strided(13, &[2, 3], &[10, 1])?);
/// # Ok::<(), portolan::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a block moves no data; pass it to a transfer"]
pub struct Block {
    start: usize,
    len: usize,
    axes: SmallVec<[Axis; 4]>,
}

impl Block {
    /// Returns the block of the elements at the positions in `range`. A range that ends before its
    /// start gives an empty block.
    pub fn contiguous(range: Range<usize>) -> Block {
        let len = range.end.saturating_sub(range.start);
        Block { start: range.start, len, axes: [Axis { n: len, stride: 1 }].into_iter().collect() }
    }

    /// Returns the block that covers the index ranges `part` of an array of shape `shape`. The
    /// array begins at the first element of the slice and is stored in row-major order: the last
    /// index varies fastest.
    ///
    /// # Errors
    /// Returns `Argument` if a range is inverted or leaves its axis, if `shape` and `part` have
    /// different numbers of axes, if the array exceeds the address space, or if there are more axes
    /// than a transfer supports.
    pub fn of(shape: &[usize], part: &[Range<usize>]) -> Result<Block> {
        if shape.len() != part.len() {
            fail!(Argument, "{} ranges for an array of {} axes", part.len(), shape.len());
        }
        let mut strides = vec![1isize; shape.len()];
        let mut row = Some(1usize);
        for (stride, &n) in strides.iter_mut().zip(shape).rev() {
            match row.and_then(|r| isize::try_from(r).ok()) {
                Some(r) => *stride = r,
                None => {
                    fail!(Argument, "an array of {shape:?} exceeds the address space")
                }
            }
            row = row.and_then(|r| r.checked_mul(n.max(1)));
        }
        let mut start = 0usize;
        let mut counts = Vec::with_capacity(part.len());
        for (axis, (range, (&n, &stride))) in
            part.iter().zip(shape.iter().zip(&strides)).enumerate()
        {
            if range.start > range.end || range.end > n {
                fail!(
                    Argument,
                    "{range:?} is out of range for axis {axis}, which has {n} elements"
                );
            }
            counts.push(range.len());
            match range.start.checked_mul(stride.unsigned_abs()).and_then(|s| s.checked_add(start))
            {
                Some(sum) => start = sum,
                None => {
                    fail!(Argument, "an array of {shape:?} exceeds the address space")
                }
            }
        }
        Block::strided(start, &counts, &strides)
    }

    /// Returns the block of `counts[i]` elements at a distance of `strides[i]` elements along each
    /// axis `i`, starting at position `start`. The outermost axis comes first.
    ///
    /// Strides may be zero or negative. If several positions of a transfer's target coincide, an
    /// accumulate adds to that element several times; a put or get leaves an unspecified one of the
    /// values there. A transfer fails if it would move more elements than the longer of its two
    /// sides has.
    ///
    /// # Errors
    /// Returns `Argument` if `counts` and `strides` have different lengths, or if there are more
    /// axes or elements than a transfer supports. Axes of one element do not count towards the
    /// limit.
    pub fn strided(start: usize, counts: &[usize], strides: &[isize]) -> Result<Block> {
        if counts.len() != strides.len() {
            fail!(Argument, "{} strides for {} axes", strides.len(), counts.len());
        }
        let len = if counts.contains(&0) {
            Some(0)
        } else {
            counts.iter().try_fold(1usize, |len, &n| len.checked_mul(n))
        };
        let Some(len) = len else {
            fail!(Argument, "a block of {counts:?} exceeds the address space");
        };
        let axes: SmallVec<[Axis; 4]> =
            counts.iter().zip(strides).map(|(&n, &stride)| Axis { n, stride }).collect();
        // A contiguous innermost axis needs no stride level of the transfer, hence one more axis.
        let levels = axes.iter().filter(|a| a.n != 1).count();
        if levels > MAX_LEVELS.saturating_add(1) {
            fail!(Argument, "a block of {levels} axes exceeds the limit of {MAX_LEVELS} strides");
        }
        Ok(Block { start, len, axes })
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the block is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the position of the first element in the slice.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Returns the number of elements along each axis, the outermost axis first.
    pub fn counts(&self) -> impl Iterator<Item = usize> + '_ {
        self.axes.iter().map(|a| a.n)
    }

    /// Returns the positions of the elements in the slice, in transfer order. Positions beyond the
    /// range of `isize` are clamped to its limits, which lie outside every slice.
    pub fn indices(&self) -> impl Iterator<Item = isize> + '_ {
        let signed = |n: usize| isize::try_from(n).unwrap_or(isize::MAX);
        (0..self.len).map(move |i| {
            let (mut i, mut at) = (i, signed(self.start));
            for axis in self.axes.iter().rev() {
                // A block with elements has no empty axis, so the divisions succeed.
                let (outer, k) = (i.checked_div(axis.n), i.checked_rem(axis.n));
                at = at.saturating_add(signed(k.unwrap_or(0)).saturating_mul(axis.stride));
                i = outer.unwrap_or(0);
            }
            at
        })
    }

    /// Checks that all elements lie in a slice of `len` elements, which `whose` names in the error.
    pub(super) fn check(&self, len: usize, whose: &dyn Fn() -> String) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        // The product of a 64-bit count and a 64-bit stride fits in an `i128`. A sum of products
        // saturates far outside any slice.
        let (mut lo, mut hi) = (self.start as i128, self.start as i128);
        for axis in &self.axes {
            let far = (axis.n as i128).saturating_sub(1).saturating_mul(axis.stride as i128);
            if far < 0 {
                lo = lo.saturating_add(far);
            } else {
                hi = hi.saturating_add(far);
            }
        }
        if lo < 0 || hi >= len as i128 {
            fail!(Address, "a block from element {lo} to {hi} leaves {}, which has {len}", whose());
        }
        Ok(())
    }

    /// Returns the axes whose count is not 1.
    fn wide(&self) -> SmallVec<[Axis; 4]> {
        self.axes.iter().copied().filter(|a| a.n != 1).collect()
    }
}

impl From<Range<usize>> for Block {
    fn from(range: Range<usize>) -> Block {
        Block::contiguous(range)
    }
}

/// Returns the axes of a contiguous row of elements with the counts of `other`.
fn packed_as(other: &[Axis]) -> SmallVec<[Axis; 4]> {
    let mut row = 1isize;
    let mut axes: SmallVec<[Axis; 4]> = other.into();
    for axis in axes.iter_mut().rev() {
        axis.stride = row;
        row = row.saturating_mul(isize::try_from(axis.n).unwrap_or(isize::MAX));
    }
    axes
}

fn is_row(axes: &[Axis]) -> bool {
    packed_as(axes).as_slice() == axes
}

/// Returns the shape, in bytes, of a transfer of `size`-byte elements between two blocks, which
/// must have been checked against their slices. Apart from axes of one element, either both have
/// the same counts, or one of them is contiguous and takes the counts of the other.
pub(super) fn pair(local: &Block, remote: &Block, size: usize) -> Result<Shape> {
    if local.len != remote.len {
        fail!(Argument, "{} elements here, {} at the target", local.len, remote.len);
    }
    if local.is_empty() {
        return Ok(Shape::contiguous(0));
    }
    let (mut here, mut there) = (local.wide(), remote.wide());
    if !here.iter().map(|a| a.n).eq(there.iter().map(|a| a.n)) {
        if is_row(&here) {
            here = packed_as(&there);
        } else if is_row(&there) {
            there = packed_as(&here);
        } else {
            let counts = |axes: &[Axis]| axes.iter().map(|a| a.n).collect::<Vec<_>>();
            fail!(
                Argument,
                "a block of {:?} here, of {:?} at the target; their counts must agree, unless one \
                 is contiguous",
                counts(&here),
                counts(&there)
            );
        }
    }
    let bytes = |stride: isize| match stride.checked_mul(size as isize) {
        Some(bytes) => Ok(bytes),
        None => fail!(Argument, "a stride of {stride} elements exceeds the address space"),
    };
    let mut counts = vec![size];
    let (mut l, mut r) = (Vec::new(), Vec::new());
    for (a, b) in here.iter().zip(&there).rev() {
        if counts.len() == 1 && counts[0] == size && l.is_empty() && (a.stride, b.stride) == (1, 1)
        {
            match size.checked_mul(a.n) {
                Some(bytes) => counts[0] = bytes,
                None => fail!(Argument, "{} elements exceed the address space", a.n),
            }
            continue;
        }
        counts.push(a.n);
        l.push(bytes(a.stride)?);
        r.push(bytes(b.stride)?);
    }
    Shape::strided(&counts, &l, &r)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{cases, extreme, list};

    fn pairs(shape: &Shape) -> Vec<(isize, isize)> {
        let mut all = Vec::new();
        shape.for_each(&mut |l, r| {
            for i in 0..shape.block() as isize {
                all.push((l + i, r + i));
            }
        });
        all
    }

    fn expected(local: &Block, remote: &Block, size: isize) -> Vec<(isize, isize)> {
        let (l0, r0) = (local.start as isize, remote.start as isize);
        let each = |(l, r): (isize, isize)| {
            (0..size).map(move |i| ((l - l0) * size + i, (r - r0) * size + i))
        };
        local.indices().zip(remote.indices()).flat_map(each).collect()
    }

    #[test]
    fn parts_of_arrays() {
        let b = Block::of(&[3, 4, 5], &[1..3, 0..2, 2..5]).unwrap();
        assert_eq!(
            b.indices().collect::<Vec<_>>(),
            [22, 23, 24, 27, 28, 29, 42, 43, 44, 47, 48, 49]
        );
        assert!(b.check(50, &String::new).is_ok());
        assert!(b.check(49, &String::new).is_err());
        assert!(Block::of(&[3, 1], &[2..4, 0..1]).is_err());
        assert!(Block::of(&[3, 3, 3], &[0..1, 0..1]).is_err());
        assert!(Block::of(&[usize::MAX, usize::MAX], &[0..1, 0..1]).is_err());
        assert!(Block::of(&[0, 7], &[0..0, 0..7]).unwrap().is_empty());
        assert_eq!(Block::of(&[], &[]).unwrap().len(), 1);
    }

    #[test]
    fn pairs_of_blocks_move_what_they_name() {
        let column = Block::of(&[6, 10], &[1..5, 3..4]).unwrap();
        let row = Block::contiguous(20..24);
        let back = Block::strided(9, &[4], &[-2]).unwrap();
        let square = Block::of(&[5, 5], &[1..3, 2..4]).unwrap();
        let cube = Block::strided(0, &[2, 1, 2], &[100, 7, 1]).unwrap();
        for (l, r) in [
            (&column, &row),
            (&row, &column),
            (&back, &column),
            (&square, &cube),
            (&row, &cube),
            (&square, &row),
            (&row, &row),
        ] {
            for size in [1, 4, 16] {
                let shape = pair(l, r, size).unwrap();
                assert_eq!(pairs(&shape), expected(l, r, size as isize), "{l:?} {r:?}");
            }
        }
        assert!(pair(&row, &row, 8).unwrap().is_contiguous());
        assert!(pair(&column, &square, 8).is_err());
        assert!(pair(&row, &Block::contiguous(0..5), 8).is_err());
    }

    #[test]
    fn bounds_hold_for_any_stride() {
        let whose = || "the slice".to_string();
        assert!(Block::strided(6, &[4], &[-2]).unwrap().check(7, &whose).is_ok());
        assert!(Block::strided(5, &[4], &[-2]).unwrap().check(7, &whose).is_err());
        assert!(Block::strided(0, &[2; 7], &[isize::MAX; 7]).unwrap().check(7, &whose).is_err());
        assert!(Block::strided(0, &[2; 7], &[isize::MIN; 7]).unwrap().check(7, &whose).is_err());
        assert!(Block::strided(usize::MAX, &[1], &[1]).unwrap().check(7, &whose).is_err());
        assert!(Block::strided(9, &[0], &[1]).unwrap().check(7, &whose).is_ok());
        assert!(Block::strided(0, &[usize::MAX, 2], &[0, 0]).is_err());
    }

    #[test]
    fn any_numbers_make_a_block_or_an_error() {
        cases(1000, |rng| {
            let ndim = rng.usize(0..4);
            let (start, len) = (extreme(rng), extreme(rng));
            let counts = list(rng, ndim, extreme);
            let strides = list(rng, ndim, |rng| extreme(rng) as isize);
            let ranges: Vec<Range<usize>> = counts.iter().map(|&n| n / 2..n).collect();
            let of = Block::of(&counts, &ranges);
            for block in [of, Block::strided(start, &counts, &strides)].into_iter().flatten() {
                block.indices().take(9).for_each(drop);
                if block.check(len, &String::new).is_ok() {
                    let inside = |at| usize::try_from(at).is_ok_and(|at| at < len);
                    assert!(block.indices().take(99).all(inside));
                    let _ = pair(&block, &Block::contiguous(0..block.len()), 8);
                    let _ = pair(&block, &block, 16);
                }
            }
        });
    }

    #[test]
    fn the_most_axes_need_a_contiguous_one() {
        let wide = |axes: u32, inner| {
            let strides: Vec<isize> = (0..axes).rev().map(|i| inner * 3isize.pow(i)).collect();
            Block::strided(0, &vec![2; axes as usize], &strides)
        };
        let most = MAX_LEVELS as u32 + 1;
        let (contiguous, gaps) = (wide(most, 1).unwrap(), wide(most, 2).unwrap());
        assert!(pair(&contiguous, &contiguous, 8).is_ok());
        assert!(pair(&gaps, &gaps, 8).is_err());
        let fewer = wide(most - 1, 2).unwrap();
        assert!(pair(&fewer, &fewer, 8).is_ok());
        assert!(wide(most + 1, 1).is_err());
    }
}
