//! Shapes of contiguous, strided and vector transfers, as pairs of blocks. A [`Shape`] describes
//! the layout of a strided transfer on both sides: a contiguous block, repeated along up to
//! [`MAX_LEVELS`] dimensions, each with a local and a remote stride. Dimensions that continue each
//! other on both sides are joined when the shape is made. Strides may be negative, and need not be
//! multiples of the inner strides.

use crate::error::{Error, ErrorKind, Result, fail};
use smallvec::SmallVec;

pub mod array;
pub mod pairs;
mod vector;
pub use vector::Vector;

pub const MAX_LEVELS: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dim {
    pub n: usize,
    /// On the calling rank, in bytes.
    pub local: isize,
    /// On the target, in bytes.
    pub remote: isize,
}

impl Dim {
    #[inline]
    pub fn stride(&self, side: Side) -> isize {
        match side {
            Side::Local => self.local,
            Side::Remote => self.remote,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Local,
    Remote,
}

/// A block of bytes, repeated along dimensions, the innermost first.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Shape {
    block: usize,
    dims: SmallVec<[Dim; 3]>,
}

impl Shape {
    #[inline]
    pub fn contiguous(bytes: usize) -> Shape {
        Shape { block: bytes, dims: SmallVec::new() }
    }

    /// Returns a block of `counts[0]` bytes, repeated `counts[i + 1]` times with the strides
    /// `local[i]` and `remote[i]`, in bytes. Fails with `Argument` if `counts` is empty, for more
    /// than [`MAX_LEVELS`] or too few strides, or if the shape exceeds the address space.
    #[inline]
    pub fn strided(counts: &[usize], local: &[isize], remote: &[isize]) -> Result<Shape> {
        let mut shape = Shape::contiguous(0);
        shape.set_strided(counts, local, remote)?;
        Ok(shape)
    }

    /// Like [`Shape::strided`], in place on a contiguous shape: moving shapes takes time.
    pub fn set_strided(
        &mut self,
        counts: &[usize],
        local: &[isize],
        remote: &[isize],
    ) -> Result<()> {
        let Some((&block, repeats)) = counts.split_first() else {
            fail!(Argument, "a strided transfer needs at least the count of contiguous bytes");
        };
        if repeats.len() > MAX_LEVELS {
            fail!(
                Argument,
                "{} stride levels given, at most {MAX_LEVELS} are possible",
                repeats.len()
            );
        }
        if local.len() < repeats.len() || remote.len() < repeats.len() {
            fail!(
                Argument,
                "{} stride levels need the same number of strides on both sides",
                repeats.len()
            );
        }
        let dims = repeats.iter().zip(local).zip(remote);
        self.set_repeated(block, dims.map(|((&n, &local), &remote)| Dim { n, local, remote }))
    }

    /// Returns a block of `block` bytes, repeated along at most [`MAX_LEVELS`] dimensions, the
    /// innermost first. Fails with `Argument` if the shape exceeds the address space.
    #[inline(always)] // moving shapes takes time
    pub fn repeated(block: usize, dims: impl Iterator<Item = Dim>) -> Result<Shape> {
        let mut shape = Shape::contiguous(0);
        shape.set_repeated(block, dims)?;
        Ok(shape)
    }

    #[inline(always)]
    fn set_repeated(&mut self, block: usize, dims: impl Iterator<Item = Dim>) -> Result<()> {
        self.block = block;
        let mut is_empty = block == 0;
        for dim in dims {
            is_empty |= dim.n == 0;
            self.push(dim);
        }
        if is_empty {
            *self = Shape::contiguous(0);
            return Ok(());
        }
        if self.fits() { Ok(()) } else { Err(self.too_large()) }
    }

    /// Returns whether the bytes and the extents of a shape that is not empty are representable.
    #[inline]
    fn fits(&self) -> bool {
        let widen = |(lo, hi): (isize, isize), n: usize, stride: isize| {
            let (far, mut wrong) = (n as isize).wrapping_sub(1).overflowing_mul(stride);
            let (lo, below) = lo.overflowing_add(far.min(0));
            let (hi, above) = hi.overflowing_add(far.max(0));
            wrong |= below | above | hi.overflowing_sub(lo).1;
            ((lo, hi), wrong)
        };
        let (mut bytes, mut wrong) = (self.block as isize, self.block > isize::MAX as usize);
        let (mut local, mut remote) = ((0, bytes), (0, bytes));
        for dim in &self.dims {
            wrong |= dim.n > isize::MAX as usize;
            let (product, too_long) = bytes.overflowing_mul(dim.n as isize);
            let (on_local, too_far) = widen(local, dim.n, dim.local);
            let (on_remote, too_far_there) = widen(remote, dim.n, dim.remote);
            wrong |= too_long | too_far | too_far_there;
            (bytes, local, remote) = (product, on_local, on_remote);
        }
        !wrong
    }

    #[cold]
    #[inline(never)]
    fn too_large(&self) -> Error {
        let Shape { block, dims } = self;
        let detail = format!("{block} bytes, repeated along {dims:?}, exceed the address space");
        Error::new(ErrorKind::Argument, detail)
    }

    #[inline]
    fn push(&mut self, dim: Dim) {
        if dim.n == 1 {
            return;
        }
        let row = |n: usize, stride: isize| stride.checked_mul(isize::try_from(n).ok()?);
        match self.dims.last_mut() {
            None => {
                let block = self.block as isize;
                if dim.local == block
                    && dim.remote == block
                    && let Some(joined) = self.block.checked_mul(dim.n)
                {
                    self.block = joined;
                    return;
                }
            }
            Some(inner) => {
                if row(inner.n, inner.local) == Some(dim.local)
                    && row(inner.n, inner.remote) == Some(dim.remote)
                    && let Some(joined) = inner.n.checked_mul(dim.n)
                {
                    inner.n = joined;
                    return;
                }
            }
        }
        self.dims.push(dim);
    }

    #[inline]
    pub fn bytes(&self) -> usize {
        self.dims.iter().fold(self.block, |b, d| b * d.n)
    }

    pub fn is_empty(&self) -> bool {
        self.block == 0
    }

    pub fn block(&self) -> usize {
        self.block
    }

    #[inline]
    pub fn dims(&self) -> &[Dim] {
        &self.dims
    }

    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.dims.is_empty()
    }

    #[inline]
    pub fn is_contiguous_on(&self, side: Side) -> bool {
        let mut row = self.block as isize;
        self.dims.iter().all(|d| {
            let fits = d.stride(side) == row;
            row = row.saturating_mul(d.n as isize);
            fits
        })
    }

    /// Range of bytes that `side` spans, as offsets. The first is negative only if a stride is.
    #[inline]
    pub fn extent(&self, side: Side) -> (isize, isize) {
        self.dims.iter().fold((0, self.block as isize), |(lo, hi), dim| {
            let far = (dim.n as isize - 1) * dim.stride(side);
            (lo + far.min(0), hi + far.max(0))
        })
    }

    pub fn packed_local(&self) -> Shape {
        self.packed(|dim, row| Dim { local: row, ..*dim })
    }

    pub fn packed_remote(&self) -> Shape {
        self.packed(|dim, row| Dim { remote: row, ..*dim })
    }

    /// `dim` makes the new dimensions, given the bytes of a row.
    #[inline]
    fn packed(&self, dim: impl Fn(&Dim, isize) -> Dim) -> Shape {
        let mut row = self.block as isize;
        let mut shape = Shape::contiguous(self.block);
        for d in &self.dims {
            shape.push(dim(d, row));
            row *= d.n as isize;
        }
        shape
    }

    /// Returns whether [`Shape::split`] divides the shape at the same bytes if its local side is
    /// packed. Otherwise packing joins dimensions.
    pub fn splits_alike_packed(&self) -> bool {
        self.packed_local().dims.len() == self.dims.len()
    }

    /// Splits the shape into parts of at most `max` bytes, or `unit` bytes if that is more, and
    /// calls `piece(local offset, remote offset, part)` for each in order. A part ends between
    /// blocks, or inside a block after a multiple of `unit` bytes of it.
    #[inline]
    pub fn split(
        &self,
        max: usize,
        unit: usize,
        piece: &mut dyn FnMut(isize, isize, &Shape) -> Result<()>,
    ) -> Result<()> {
        let max = max.max(unit);
        if self.bytes() <= max {
            return piece(0, 0, self);
        }
        self.split_at(0, 0, max, unit, piece)
    }

    fn split_at(
        &self,
        local: isize,
        remote: isize,
        max: usize,
        unit: usize,
        piece: &mut dyn FnMut(isize, isize, &Shape) -> Result<()>,
    ) -> Result<()> {
        if self.bytes() <= max {
            return piece(local, remote, self);
        }
        let Some((outer, inner)) = self.dims.split_last() else {
            let step = max / unit * unit;
            let mut at = 0;
            while at < self.block {
                let n = step.min(self.block - at);
                piece(local + at as isize, remote + at as isize, &Shape::contiguous(n))?;
                at += n;
            }
            return Ok(());
        };
        let inner = Shape { block: self.block, dims: inner.into() };
        let rows = (max / inner.bytes()).max(1);
        let mut at = 0;
        while at < outer.n {
            let n = rows.min(outer.n - at);
            let (l, r) = (local + outer.local * at as isize, remote + outer.remote * at as isize);
            if n == 1 {
                inner.split_at(l, r, max, unit, piece)?;
            } else {
                let mut part = inner.clone();
                part.push(Dim { n, ..*outer });
                piece(l, r, &part)?;
            }
            at += n;
        }
        Ok(())
    }

    /// Calls `block(local offset, remote offset)` for every block in order.
    pub fn for_each(&self, block: &mut impl FnMut(isize, isize)) {
        if !self.is_empty() {
            for_each_in(&self.dims, 0, 0, block);
        }
    }
}

fn for_each_in(dims: &[Dim], local: isize, remote: isize, block: &mut impl FnMut(isize, isize)) {
    match dims.split_last() {
        None => block(local, remote),
        Some((outer, inner)) => {
            for i in 0..outer.n as isize {
                for_each_in(inner, local + i * outer.local, remote + i * outer.remote, block);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contiguous_dimensions_join() {
        let s = Shape::strided(&[8, 4, 5], &[8, 32], &[8, 32]).unwrap();
        assert_eq!(s, Shape::contiguous(160));
        let s = Shape::strided(&[8, 4, 5], &[8, 32], &[16, 64]).unwrap();
        assert_eq!(s.dims(), &[Dim { n: 20, local: 8, remote: 16 }]);
        assert!(s.is_contiguous_on(Side::Local));
        assert!(!s.is_contiguous_on(Side::Remote));
    }

    #[test]
    fn ends_that_are_too_far_apart_are_refused() {
        // Each end is representable, but not their distance of 2^63 bytes.
        let (up, down) = (1590206855732505302, -7633165181122270505);
        for strides in [[up, down], [down, up]] {
            assert!(Shape::strided(&[1, 2, 2], &strides, &[0, 0]).is_err());
            assert!(Shape::strided(&[1, 2, 2], &[0, 0], &strides).is_err());
        }
        let shape = Shape::strided(&[1, 2, 2], &[up, down + 1], &[0, 0]).unwrap();
        assert_eq!(shape.extent(Side::Local), (down + 1, up + 1));
    }

    #[test]
    fn empty_and_bad_shapes() {
        assert!(Shape::strided(&[8, 0], &[8], &[8]).unwrap().is_empty());
        assert!(Shape::strided(&[0], &[], &[]).unwrap().is_empty());
        assert!(Shape::strided(&[1; 10], &[1; 9], &[1; 9]).is_err());
        assert!(Shape::strided(&[8, 2], &[], &[8]).is_err());
        assert!(Shape::strided(&[usize::MAX, 3], &[1], &[1]).is_err());
        assert!(Shape::strided(&[8, 3], &[isize::MAX], &[8]).is_err());
    }

    #[test]
    fn a_packed_side_is_split_at_the_same_bytes_unless_it_joins_dimensions() {
        for (counts, local, remote, alike) in [
            (vec![8, 5, 7, 3], vec![16, 100, 1000], vec![9, 60, 700], true),
            (vec![8, 5, 7, 3], vec![8, 40, 280], vec![9, 60, 700], true),
            (vec![1000], vec![], vec![], true),
            (vec![8, 5, 7], vec![16, 100], vec![8, 60], false),
            (vec![8, 5, 7], vec![16, 100], vec![16, 80], false),
        ] {
            let s = Shape::strided(&counts, &local, &remote).unwrap();
            assert_eq!(s.splits_alike_packed(), alike, "{counts:?} {local:?} {remote:?}");
            let sizes = |shape: &Shape, max| {
                let mut sizes = Vec::new();
                shape
                    .split(max, 1, &mut |_, r, p| {
                        sizes.push((r, p.bytes()));
                        Ok(())
                    })
                    .unwrap();
                sizes
            };
            let split_alike = |max: &usize| sizes(&s, *max) == sizes(&s.packed_local(), *max);
            assert_eq!([5, 8, 20, 50, 70, 300, 700].iter().all(split_alike), alike);
        }
    }
}
