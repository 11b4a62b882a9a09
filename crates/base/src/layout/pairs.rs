//! Pairs of addresses: which local bytes go to which bytes of one target.

use super::{Shape, Side};
use crate::error::{Result, reserve};

#[derive(Debug, Clone, Default)]
pub struct Pairs {
    pub runs: Vec<ByteRun>,
    pub strided_blocks: Vec<StridedBlock>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteRun {
    pub remote: usize,
    pub local: usize,
    pub bytes: usize,
}

impl ByteRun {
    pub fn end(&self) -> usize {
        self.remote.saturating_add(self.bytes)
    }

    /// The difference (wrapping) from remote to local address, equal for runs that can be joined.
    pub fn skew(&self) -> usize {
        self.local.wrapping_sub(self.remote)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StridedBlock {
    pub local: usize,
    pub remote: usize,
    pub shape: Shape,
}

impl StridedBlock {
    /// Returns the addresses at the target, the end exclusive.
    pub fn remote_span(&self) -> (usize, usize) {
        let (lo, hi) = self.shape.extent(Side::Remote);
        (self.remote.wrapping_add_signed(lo), self.remote.wrapping_add_signed(hi))
    }

    /// Returns the local addresses, the end exclusive.
    pub fn local_span(&self) -> (usize, usize) {
        let (lo, hi) = self.shape.extent(Side::Local);
        (self.local.wrapping_add_signed(lo), self.local.wrapping_add_signed(hi))
    }

    pub fn blocks(&self) -> usize {
        self.shape.dims().iter().fold(1, |n, d| n.saturating_mul(d.n))
    }

    /// Appends the blocks to a list of runs, or none with `Memory` if the list cannot grow.
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
