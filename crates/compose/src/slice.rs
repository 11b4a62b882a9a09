//! Slices: strided blocks whose block size and stride may differ between the two sides.
//!
//! The k-th local byte is paired with the k-th remote byte. If the block length of one side is a
//! multiple of the other, the result is one shape. Otherwise, the block boundaries of the two sides
//! repeat after the least common multiple of the block lengths, and each stretch between two
//! boundaries becomes one shape.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

use super::part::Part;
use portolan_base::error::{Result, fail};
use portolan_base::layout::Shape;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks {
    pub start: usize,
    /// Distance between the starts of consecutive blocks, in bytes.
    pub stride: isize,
    /// Length of a block, in bytes.
    pub block: usize,
    pub count: usize,
}

impl Blocks {
    fn bytes(&self, side: &str) -> Result<usize> {
        match self.block.checked_mul(self.count) {
            Some(bytes) if isize::try_from(bytes).is_ok() => Ok(bytes),
            _ => fail!(
                Argument,
                "{} blocks of {} bytes on the {side} side exceed the address space",
                self.count,
                self.block
            ),
        }
    }

    /// Returns the same bytes in as few blocks as possible.
    fn joined(self, bytes: usize) -> Blocks {
        if self.count == 1 || usize::try_from(self.stride) == Ok(self.block) {
            Blocks { stride: 0, block: bytes, count: 1, ..self }
        } else {
            self
        }
    }

    fn offset(&self, at: usize) -> Option<isize> {
        let number = isize::try_from(at.checked_div(self.block)?).ok()?;
        number.checked_mul(self.stride)?.checked_add_unsigned(at.checked_rem(self.block)?)
    }

    /// Returns the number of bytes from byte number `at` to the end of its block.
    fn rest(&self, at: usize) -> Option<usize> {
        self.block.checked_sub(at.checked_rem(self.block)?)
    }
}

/// Fails for `None`, which stands for an offset that has overflowed.
fn too_far<T>(value: Option<T>, side: &str, b: &Blocks) -> Result<T> {
    match value {
        Some(value) => Ok(value),
        None => fail!(
            Argument,
            "{} blocks at a stride of {} bytes on the {side} side leave the address space",
            b.count,
            b.stride
        ),
    }
}

fn gcd(mut a: usize, mut b: usize) -> usize {
    while let Some(rest) = a.checked_rem(b) {
        (a, b) = (b, rest);
    }
    a
}

fn repeats(a: usize, b: usize, bytes: usize) -> Option<(usize, usize)> {
    let period = a.checked_div(gcd(a, b))?.checked_mul(b)?;
    Some((period, bytes.checked_div(period)?))
}

impl Part {
    /// Adds a slice. Fails with `Argument` if the two sides differ in their total number of bytes,
    /// if an address is null and there are bytes, or if bytes leave the address space. Fails with
    /// `Memory` if the list of shapes cannot be allocated. On failure, no pair is added.
    pub fn add_slice(&mut self, local: Blocks, remote: Blocks) -> Result<()> {
        let (bytes, there) = (local.bytes("local")?, remote.bytes("remote")?);
        if bytes != there {
            fail!(
                Argument,
                "{} local blocks of {} bytes are {bytes} bytes, {} remote blocks of {} are {there}: \
                 both sides of a slice must have the same number of bytes",
                local.count,
                local.block,
                remote.count,
                remote.block
            );
        }
        if bytes == 0 {
            return Ok(());
        }
        let (l, r) = (local.joined(bytes), remote.joined(bytes));
        if let Some(inner) = l.block.checked_div(r.block)
            && l.block.is_multiple_of(r.block)
        {
            let outer = too_far(r.offset(l.block), "remote", &r)?;
            let shape = Shape::strided(
                &[r.block, inner, l.count],
                &[r.block as isize, l.stride],
                &[r.stride, outer],
            )?;
            return self.add_shape(l.start, r.start, shape);
        }
        if let Some(inner) = r.block.checked_div(l.block)
            && r.block.is_multiple_of(l.block)
        {
            let outer = too_far(l.offset(r.block), "local", &l)?;
            let shape = Shape::strided(
                &[l.block, inner, r.count],
                &[l.stride, outer],
                &[l.block as isize, r.stride],
            )?;
            return self.add_shape(l.start, r.start, shape);
        }
        self.add_stretches(bytes, &l, &r)
    }

    fn add_stretches(&mut self, bytes: usize, l: &Blocks, r: &Blocks) -> Result<()> {
        // Both block lengths divide the total, so their least common multiple does: no overflow.
        let (period, repeats) = too_far(repeats(l.block, r.block, bytes), "local", l)?;
        let (ls, rs) =
            (too_far(l.offset(period), "local", l)?, too_far(r.offset(period), "remote", r)?);
        // Each stretch starts at the start of a block of either side.
        let begun = |b: &Blocks| period.checked_div(b.block).unwrap_or(0);
        let mut added = Part::default();
        added.reserve(begun(l).saturating_add(begun(r)))?;
        let mut at = 0;
        while at < period {
            let (lo, ro) =
                (too_far(l.offset(at), "local", l)?, too_far(r.offset(at), "remote", r)?);
            let (from, to) = (
                too_far(l.start.checked_add_signed(lo), "local", l)?,
                too_far(r.start.checked_add_signed(ro), "remote", r)?,
            );
            let len = too_far(l.rest(at), "local", l)?.min(too_far(r.rest(at), "remote", r)?);
            added.add_shape(from, to, Shape::strided(&[len, repeats], &[ls], &[rs])?)?;
            at = at.saturating_add(len);
        }
        self.append(added)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use portolan_base::layout::pairs::ByteRun;

    fn pairs(part: &Part) -> Vec<(usize, usize)> {
        let mut runs: Vec<ByteRun> = part.runs().to_vec();
        part.strided_blocks().iter().for_each(|p| p.unroll(&mut runs).unwrap());
        let mut all: Vec<_> =
            runs.iter().flat_map(|r| (0..r.bytes).map(|i| (r.local + i, r.remote + i))).collect();
        all.sort_unstable();
        all
    }

    fn expected(l: Blocks, r: Blocks) -> Vec<(usize, usize)> {
        let at = |b: Blocks, k: usize| b.start.wrapping_add_signed(b.offset(k).unwrap());
        let mut all: Vec<_> = (0..l.block * l.count).map(|k| (at(l, k), at(r, k))).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn bytes_are_paired_in_order_however_the_sides_are_cut() {
        for (lb, ln, rb, rn) in [
            (8, 6, 8, 6),
            (24, 4, 8, 12),
            (8, 12, 24, 4),
            (6, 20, 4, 30),
            (10, 12, 15, 8),
            (120, 1, 7, 0),
            (1, 120, 120, 1),
            (7, 11, 11, 7),
        ] {
            for (ls, rs) in [(lb as isize, 64), (40, rb as isize), (33, 130), (-50, 64), (130, -33)]
            {
                let l = Blocks { start: 100_000, stride: ls, block: lb, count: ln };
                let r = Blocks { start: 500_000, stride: rs, block: rb, count: rn };
                let mut part = Part::default();
                if lb * ln != rb * rn {
                    assert!(part.add_slice(l, r).is_err());
                    assert!(part.is_empty());
                    continue;
                }
                part.add_slice(l, r).unwrap();
                assert_eq!(pairs(&part), expected(l, r), "{l:?} {r:?}");
            }
        }
    }

    #[test]
    fn regular_slices_stay_one_shape() {
        let mut part = Part::default();
        let l = Blocks { start: 4096, stride: 528, block: 8, count: 4096 };
        let r = Blocks { start: 8 << 20, stride: 8, block: 8, count: 4096 };
        part.add_slice(l, r).unwrap();
        assert_eq!((part.runs().len(), part.strided_blocks().len()), (0, 1));
        assert_eq!(part.strided_blocks()[0].shape.dims().len(), 1);
    }

    #[test]
    fn any_numbers_are_added_or_refused() {
        let numbers = [0, 1, 2, 3, 7, 1 << 31, (1 << 32) - 1, 1 << 62, usize::MAX >> 1, usize::MAX];
        let strides = [0, 1, -1, 5, 1 << 32, isize::MAX, isize::MIN];
        let blocks: Vec<Blocks> = numbers
            .iter()
            .flat_map(|&block| numbers.map(|count| (block, count)))
            .flat_map(|(block, count)| {
                strides.map(|stride| Blocks { start: 1 << 40, stride, block, count })
            })
            .collect();
        for l in &blocks {
            for r in blocks.iter().filter(|r| r.block.checked_mul(r.count).is_some()) {
                // Long blocks with a large least common multiple have too many stretches.
                let stretches = !l.block.is_multiple_of(r.block.max(1))
                    && !r.block.is_multiple_of(l.block.max(1));
                if stretches && l.block.max(r.block) > 1 << 20 {
                    continue;
                }
                let mut part = Part::default();
                match part.add_slice(*l, *r) {
                    Ok(()) => assert_eq!(l.block * l.count, r.block * r.count),
                    Err(_) => assert!(part.is_empty(), "{l:?} {r:?}"),
                }
            }
        }
    }

    #[test]
    fn strides_beyond_the_address_space_are_refused() {
        let mut part = Part::default();
        let l = Blocks { start: 4096, stride: isize::MAX, block: 6, count: 4 };
        let r = Blocks { start: 4096, stride: 64, block: 4, count: 6 };
        assert!(part.add_slice(l, r).is_err());
        let l = Blocks { start: 4096, stride: -4096, block: 8, count: 8 };
        let r = Blocks { start: 4096, stride: 64, block: 8, count: 8 };
        assert!(part.add_slice(l, r).is_err());
        let huge = Blocks { start: 4096, stride: 64, block: usize::MAX, count: 2 };
        assert!(part.add_slice(huge, huge).is_err());
        assert!(part.is_empty());
    }
}
