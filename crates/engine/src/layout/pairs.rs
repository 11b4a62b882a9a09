//! Pairs of addresses: which local bytes go to which bytes of one target.

use super::{Shape, Side};
use crate::error::{Result, reserve};

/// Sorted pairs of addresses towards one target, without duplicates.
#[derive(Debug, Clone, Default)]
pub struct Pairs {
    /// Runs that cannot be joined any further.
    pub runs: Vec<ByteRun>,
    /// Regular arrangements of blocks.
    pub strided_blocks: Vec<StridedBlock>,
}

/// Bytes that are contiguous on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteRun {
    /// Address of the first byte at the target.
    pub remote: usize,
    /// Address of the first byte here.
    pub local: usize,
    /// Length in bytes.
    pub bytes: usize,
}

impl ByteRun {
    /// Returns the address one past the last byte at the target.
    pub fn end(&self) -> usize {
        self.remote.saturating_add(self.bytes)
    }

    /// Returns the number that converts a remote address to the local one by wrapping addition.
    /// Runs that can be joined have the same skew.
    pub fn skew(&self) -> usize {
        self.local.wrapping_sub(self.remote)
    }
}

/// A regular arrangement of blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StridedBlock {
    /// Address of the first block here.
    pub local: usize,
    /// Address of the first block at the target.
    pub remote: usize,
    /// Block length, counts and strides.
    pub shape: Shape,
}

impl StridedBlock {
    /// Returns the addresses that the shape spans at the target: the first, and one past the last.
    pub fn remote_span(&self) -> (usize, usize) {
        let (lo, hi) = self.shape.extent(Side::Remote);
        (self.remote.wrapping_add_signed(lo), self.remote.wrapping_add_signed(hi))
    }

    /// Returns the local addresses that the shape spans: the first, and one past the last.
    pub fn local_span(&self) -> (usize, usize) {
        let (lo, hi) = self.shape.extent(Side::Local);
        (self.local.wrapping_add_signed(lo), self.local.wrapping_add_signed(hi))
    }

    /// Returns the number of blocks.
    pub fn blocks(&self) -> usize {
        self.shape.dims().iter().fold(1, |n, d| n.saturating_mul(d.n))
    }

    /// Appends the blocks to a list of runs.
    ///
    /// # Errors
    /// Returns `Memory` if the list cannot grow; no block is appended then.
    pub fn unroll(&self, runs: &mut Vec<ByteRun>) -> Result<()> {
        let bytes = self.shape.block();
        reserve(runs, self.blocks(), "runs of bytes")?;
        self.shape.for_each(&mut |l, r| {
            runs.push(ByteRun {
                remote: self.remote.wrapping_add_signed(r),
                local: self.local.wrapping_add_signed(l),
                bytes,
            });
        });
        Ok(())
    }
}
