//! Which local bytes go to which bytes of one target: a set of pairs.
//!
//! Pairs come as runs of bytes that follow each other on both sides, or as shapes
//! that a slice describes. A run that continues the one before it is joined to it
//! at once, so that pairs added in order take no memory each; 24 bytes a run is
//! what pairs in any other order take.
//!
//! Invariant: no run and no piece is empty, has a null address, or leaves the
//! address space on either side.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

use crate::error::{Result, fail, reserve};
use crate::layout::{Shape, Side};

/// Bytes that follow each other on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Run {
    /// Address of the first byte at the target.
    pub remote: usize,
    /// Address of the first byte here.
    pub local: usize,
    /// How many.
    pub bytes: usize,
}

impl Run {
    /// One past the last byte at the target.
    pub fn end(&self) -> usize {
        self.remote.saturating_add(self.bytes)
    }

    /// What a remote address becomes the local one by; runs of which one goes on
    /// in the other agree in it.
    pub fn skew(&self) -> usize {
        self.local.wrapping_sub(self.remote)
    }
}

/// A regular arrangement of blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Address of the first block here.
    pub local: usize,
    /// Its address at the target.
    pub remote: usize,
    /// The blocks.
    pub shape: Shape,
}

impl Piece {
    /// The addresses that the piece spans at the target: first, and one past the
    /// last.
    pub fn remote_span(&self) -> (usize, usize) {
        let (lo, hi) = self.shape.extent(Side::Remote);
        (self.remote.wrapping_add_signed(lo), self.remote.wrapping_add_signed(hi))
    }

    /// As [`Piece::remote_span`], here.
    pub fn local_span(&self) -> (usize, usize) {
        let (lo, hi) = self.shape.extent(Side::Local);
        (self.local.wrapping_add_signed(lo), self.local.wrapping_add_signed(hi))
    }

    /// The number of blocks.
    pub fn blocks(&self) -> usize {
        self.shape.dims().iter().fold(1, |n, d| n.saturating_mul(d.n))
    }

    /// Adds the blocks to a list of runs.
    ///
    /// # Errors
    /// `Memory`, before any is added.
    pub fn unroll(&self, runs: &mut Vec<Run>) -> Result<()> {
        let bytes = self.shape.block();
        reserve(runs, self.blocks(), "runs of bytes")?;
        self.shape.for_each(&mut |l, r| {
            runs.push(Run {
                remote: self.remote.wrapping_add_signed(r),
                local: self.local.wrapping_add_signed(l),
                bytes,
            });
        });
        Ok(())
    }
}

/// Shapes of at most so many blocks are kept as runs.
const FEW: usize = 4;

/// A set of pairs of addresses.
#[derive(Debug, Clone, Default)]
pub struct Part {
    runs: Vec<Run>,
    pieces: Vec<Piece>,
}

/// Whether `lo..hi` from an address stays inside the address space, null left out.
fn fits(start: usize, lo: isize, hi: isize) -> bool {
    let first = start.checked_add_signed(lo).is_some_and(|first| first > 0);
    first && start.checked_add_signed(hi).is_some()
}

fn check_address(side: &str, address: usize, lo: isize, hi: isize) -> Result<()> {
    if address == 0 {
        fail!(Argument, "the {side} address is null, but there are bytes to map");
    }
    if !fits(address, lo, hi) {
        fail!(Argument, "the {side} bytes at {address:#x} leave the address space");
    }
    Ok(())
}

impl Part {
    /// Adds `bytes` pairs of bytes that follow each other.
    ///
    /// # Errors
    /// `Argument` for a null address with bytes, or bytes beyond the address space.
    pub fn add(&mut self, local: usize, remote: usize, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let Ok(len) = isize::try_from(bytes) else {
            fail!(Argument, "{bytes} bytes are more than an address space holds");
        };
        check_address("local", local, 0, len)?;
        check_address("remote", remote, 0, len)?;
        if let Some(last) = self.runs.last_mut()
            && last.end() == remote
            && last.local.checked_add(last.bytes) == Some(local)
        {
            // Both sides of the longer run end where this one does, inside the address space.
            last.bytes = last.bytes.saturating_add(bytes);
            return Ok(());
        }
        reserve(&mut self.runs, 1, "runs of bytes")?;
        self.runs.push(Run { remote, local, bytes });
        Ok(())
    }

    /// Adds the pairs of a shape.
    ///
    /// # Errors
    /// As for [`Part::add`].
    pub fn add_shape(&mut self, local: usize, remote: usize, shape: Shape) -> Result<()> {
        if shape.is_empty() {
            return Ok(());
        }
        if shape.is_contiguous() {
            return self.add(local, remote, shape.block());
        }
        for (side, name, at) in [(Side::Local, "local", local), (Side::Remote, "remote", remote)] {
            let (lo, hi) = shape.extent(side);
            check_address(name, at, lo, hi)?;
        }
        let piece = Piece { local, remote, shape };
        if piece.blocks() <= FEW {
            piece.unroll(&mut self.runs)?;
        } else {
            reserve(&mut self.pieces, 1, "shapes")?;
            self.pieces.push(piece);
        }
        Ok(())
    }

    /// Adds all pairs of another part.
    ///
    /// # Errors
    /// `Memory`, and nothing is added.
    pub fn append(&mut self, mut other: Part) -> Result<()> {
        reserve(&mut self.runs, other.runs.len(), "runs of bytes")?;
        reserve(&mut self.pieces, other.pieces.len(), "shapes")?;
        self.runs.append(&mut other.runs);
        self.pieces.append(&mut other.pieces);
        Ok(())
    }

    /// Makes room for shapes that are about to be added.
    pub(super) fn reserve(&mut self, shapes: usize) -> Result<()> {
        reserve(&mut self.pieces, shapes, "shapes")
    }

    /// The runs.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The shapes.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Whether the part has no pair.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.pieces.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_in_order_become_one_run() {
        let mut part = Part::default();
        for i in 0..1000 {
            part.add(0x1000 + i, 0x8000 + i, 1).unwrap();
        }
        assert_eq!(part.runs(), [Run { remote: 0x8000, local: 0x1000, bytes: 1000 }]);
        part.add(0x1000 + 1001, 0x8000 + 1000, 1).unwrap();
        assert_eq!(part.runs().len(), 2);
    }

    #[test]
    fn bad_addresses_are_refused_and_empty_ones_are_nothing() {
        let mut part = Part::default();
        assert!(part.add(0, 1, 1).is_err());
        assert!(part.add(1, 0, 1).is_err());
        assert!(part.add(1, usize::MAX, 2).is_err());
        assert!(part.add(1, 1, usize::MAX).is_err());
        part.add(0, 0, 0).unwrap();
        let down = Shape::strided(&[8, 9], &[-64], &[64]).unwrap();
        assert!(part.add_shape(100, 4096, down.clone()).is_err());
        assert!(part.is_empty());
        part.add_shape(4096, 4096, down).unwrap();
        assert_eq!(part.pieces().len(), 1);
    }
}
