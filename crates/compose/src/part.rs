//! Sets of pairs: which local bytes go to which bytes of one target.
//!
//! Pairs are stored as runs of bytes that are contiguous on both sides, of 24 bytes each, or as the
//! shapes of slices. A run that continues the previous run is joined to it at once.
//!
//! Invariant: no run and no shape is empty, has a null address, or leaves the address space.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

use portolan_base::error::{Result, fail, reserve};
use portolan_base::layout::pairs::{ByteRun, StridedBlock};
use portolan_base::layout::{Shape, Side};

/// Shapes of at most this many blocks are stored as runs.
const FEW: usize = 4;

#[derive(Debug, Clone, Default)]
pub struct Part {
    runs: Vec<ByteRun>,
    strided_blocks: Vec<StridedBlock>,
}

/// Returns whether `lo..hi`, relative to `start`, fits the address space without the null address.
fn fits(start: usize, lo: isize, hi: isize) -> bool {
    let first = start.checked_add_signed(lo).is_some_and(|first| first > 0);
    first && start.checked_add_signed(hi).is_some()
}

fn check_address(side: &str, address: usize, lo: isize, hi: isize) -> Result<()> {
    if address == 0 {
        fail!(Argument, "null {side} address in a mapping of bytes");
    }
    if !fits(address, lo, hi) {
        fail!(Argument, "the {side} bytes at {address:#x} leave the address space");
    }
    Ok(())
}

impl Part {
    /// Adds `bytes` pairs of bytes that are contiguous on both sides. Fails with `Argument` if
    /// `bytes` is not 0 and an address is null or the bytes leave the address space, and `Memory`
    /// if the list cannot grow.
    pub fn add(&mut self, local: usize, remote: usize, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let Ok(len) = isize::try_from(bytes) else {
            fail!(Argument, "{bytes} bytes exceed the address space");
        };
        check_address("local", local, 0, len)?;
        check_address("remote", remote, 0, len)?;
        if let Some(last) = self.runs.last_mut()
            && last.end() == remote
            && last.local.checked_add(last.bytes) == Some(local)
        {
            // No overflow: the longer run ends with the new bytes, which were checked.
            last.bytes = last.bytes.saturating_add(bytes);
            return Ok(());
        }
        reserve(&mut self.runs, 1, "runs of bytes")?;
        self.runs.push(ByteRun { remote, local, bytes });
        Ok(())
    }

    /// Adds the pairs of a shape. Fails as [`Part::add`] does.
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
        let strided_block = StridedBlock { local, remote, shape };
        if strided_block.blocks() <= FEW {
            strided_block.unroll(&mut self.runs)?;
        } else {
            reserve(&mut self.strided_blocks, 1, "shapes")?;
            self.strided_blocks.push(strided_block);
        }
        Ok(())
    }

    /// Adds all pairs of another part. Fails with `Memory`, without a change.
    pub fn append(&mut self, mut other: Part) -> Result<()> {
        reserve(&mut self.runs, other.runs.len(), "runs of bytes")?;
        reserve(&mut self.strided_blocks, other.strided_blocks.len(), "shapes")?;
        self.runs.append(&mut other.runs);
        self.strided_blocks.append(&mut other.strided_blocks);
        Ok(())
    }

    pub(super) fn reserve(&mut self, shapes: usize) -> Result<()> {
        reserve(&mut self.strided_blocks, shapes, "shapes")
    }

    pub fn runs(&self) -> &[ByteRun] {
        &self.runs
    }

    pub fn strided_blocks(&self) -> &[StridedBlock] {
        &self.strided_blocks
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.strided_blocks.is_empty()
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
        assert_eq!(part.runs(), [ByteRun { remote: 0x8000, local: 0x1000, bytes: 1000 }]);
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
        assert_eq!(part.strided_blocks().len(), 1);
    }
}
