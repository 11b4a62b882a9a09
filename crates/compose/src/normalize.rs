//! Normalisation of a set of pairs: one sorted, joined list without duplicates.
//!
//! The pairs are ordered by address at the target, because no byte there may be written twice. A
//! run that overlaps its predecessor after sorting must agree with it on the shared bytes, and is
//! joined to it; otherwise they are a conflict. Runs that are adjacent on both sides are joined
//! too.
//!
//! A shape stays intact if no other pair lies in the range of addresses that it spans and it writes
//! no byte twice. Interleaved shapes, such as the faces of a block, become runs, and
//! [`super::loop_detect`] converts the regular ones back to shapes.
//!
//! Invariant: in a [`Pairs`], no two pairs share a byte at the target, and runs and shapes are
//! sorted by their address there.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

use super::part::Part;
use portolan_base::error::{Result, fail, reserve};
use portolan_base::layout::pairs::{ByteRun, Pairs, StridedBlock};
use portolan_base::layout::{Dim, Shape};

/// Maximum number of blocks of a shape that certainly writes bytes of the target several times, but
/// is split into runs to find a conflict.
const MOST_DOUBLES: usize = 1 << 24;

/// A shape without the duplicates that its strides show.
enum Shaped {
    /// The blocks are in ascending order at the target and do not overlap.
    Upright(StridedBlock),
    Row(ByteRun),
    /// Blocks may be interleaved or out of order.
    Tangled(StridedBlock),
}

fn conflict<T>(target: usize, (one, other): (usize, usize), remote: usize) -> Result<T> {
    fail!(
        Argument,
        "the bytes at {one:#x} and at {other:#x} here both go to {remote:#x} of rank {target}; a \
         byte can come from one place only"
    )
}

/// Removes the duplicates that strides show: reverses negative strides at the target, sorts the
/// dimensions by their strides there, drops dimensions that repeat the same pairs, and joins blocks
/// that are adjacent on both sides. A shape that names few bytes many times becomes small. Fails
/// with `Argument` if a block overwrites a part of the previous block with other bytes.
fn untangled(target: usize, strided_block: &StridedBlock) -> Result<Shaped> {
    let (mut local, mut remote) = (strided_block.local, strided_block.remote);
    let mut dims: Vec<Dim> = strided_block.shape.dims().to_vec();
    dims.retain(|d| (d.local, d.remote) != (0, 0));
    for d in &mut dims {
        if d.remote < 0 {
            // No overflow: the extents of the shape were checked.
            let last = isize::try_from(d.n).unwrap_or(isize::MAX).saturating_sub(1);
            remote = remote.wrapping_add_signed(last.wrapping_mul(d.remote));
            local = local.wrapping_add_signed(last.wrapping_mul(d.local));
            (d.local, d.remote) = (d.local.wrapping_neg(), d.remote.wrapping_neg());
        }
    }
    dims.sort_by_key(|d| d.remote);
    let mut block = strided_block.shape.block();
    while let Some(d) = dims.first().copied() {
        if d.remote.unsigned_abs() > block {
            break;
        }
        if d.local == d.remote {
            let more = d.n.saturating_sub(1).saturating_mul(d.remote.unsigned_abs());
            block = block.saturating_add(more);
            dims.remove(0);
            continue;
        }
        if d.remote.unsigned_abs() < block {
            let at = |step: isize| local.wrapping_add_signed(step);
            let there = remote.wrapping_add_signed(d.remote);
            return conflict(target, (at(d.remote), at(d.local)), there);
        }
        break;
    }
    let Some(mut inner) = isize::try_from(block).ok().filter(|_| !dims.is_empty()) else {
        return Ok(Shaped::Row(ByteRun { remote, local, bytes: block }));
    };
    let mut counts = vec![block];
    let mut upright = true;
    for d in &dims {
        upright &= d.remote >= inner;
        let far = isize::try_from(d.n).unwrap_or(isize::MAX).saturating_sub(1);
        inner = inner.saturating_add(far.saturating_mul(d.remote));
        counts.push(d.n);
    }
    let locals: Vec<isize> = dims.iter().map(|d| d.local).collect();
    let remotes: Vec<isize> = dims.iter().map(|d| d.remote).collect();
    let strided_block =
        StridedBlock { local, remote, shape: Shape::strided(&counts, &locals, &remotes)? };
    if upright {
        return Ok(Shaped::Upright(strided_block));
    }
    let (first, end) = strided_block.remote_span();
    let span = end.saturating_sub(first);
    if strided_block.shape.bytes() > span && strided_block.blocks() > MOST_DOUBLES {
        fail!(
            Argument,
            "a shape of {} blocks of {block} bytes covers only {span} bytes of rank {target}; a \
             byte can come from one place only",
            strided_block.blocks()
        );
    }
    Ok(Shaped::Tangled(strided_block))
}

/// Appends the blocks of all shapes to `runs`, after one check of the memory.
fn unroll<'p>(
    strided_blocks: impl Iterator<Item = &'p StridedBlock> + Clone,
    runs: &mut Vec<ByteRun>,
) -> Result<()> {
    let blocks = strided_blocks
        .clone()
        .fold(0usize, |n, strided_block| n.saturating_add(strided_block.blocks()));
    reserve(runs, blocks, "runs of bytes")?;
    for strided_block in strided_blocks {
        strided_block.unroll(runs)?;
    }
    Ok(())
}

/// Merges parts towards `target` into one normal form. `whole(first, end)` returns whether this
/// range of addresses of the target may stay in one shape. Fails with `Argument` if two local bytes
/// go to one byte of the target, naming the three addresses, and with `Memory`.
pub(crate) fn normalize(
    target: usize,
    parts: &[&Part],
    whole: &mut dyn FnMut(usize, usize) -> bool,
) -> Result<Pairs> {
    let mut runs: Vec<ByteRun> = Vec::new();
    for part in parts {
        reserve(&mut runs, part.runs().len(), "runs of bytes")?;
        runs.extend_from_slice(part.runs());
    }
    let (mut strided_blocks, mut tangled) = (Vec::new(), Vec::new());
    for strided_block in parts.iter().flat_map(|p| p.strided_blocks()) {
        match untangled(target, strided_block)? {
            Shaped::Upright(strided_block) => {
                reserve(&mut strided_blocks, 1, "shapes")?;
                strided_blocks.push(strided_block);
            }
            Shaped::Row(run) => {
                reserve(&mut runs, 1, "runs of bytes")?;
                runs.push(run);
            }
            Shaped::Tangled(strided_block) => {
                reserve(&mut tangled, 1, "shapes")?;
                tangled.push(strided_block);
            }
        }
    }
    unroll(tangled.iter(), &mut runs)?;
    sort(&mut runs);
    join(target, &mut runs)?;
    strided_blocks.sort_unstable_by_key(|p: &StridedBlock| (p.remote, p.local));
    strided_blocks.dedup();
    let strided_blocks = alone(strided_blocks, &mut runs, whole)?;
    sort(&mut runs);
    join(target, &mut runs)?;
    Ok(Pairs { runs, strided_blocks })
}

fn sort(runs: &mut [ByteRun]) {
    if !runs.is_sorted_by_key(|r| r.remote) {
        runs.sort_unstable();
    }
}

/// Returns the shapes that can stay whole: `whole` allows it, and nothing else lies in their span.
/// Appends the others, split into runs, to the sorted and joined `runs`. Fails with `Memory`.
fn alone(
    mut strided_blocks: Vec<StridedBlock>,
    runs: &mut Vec<ByteRun>,
    whole: &mut dyn FnMut(usize, usize) -> bool,
) -> Result<Vec<StridedBlock>> {
    // The highest end address of the shapes so far.
    let mut reach = 0;
    let mut kept = Vec::new();
    reserve(&mut kept, strided_blocks.len(), "shapes")?;
    for (i, strided_block) in strided_blocks.iter().enumerate() {
        let (first, end) = strided_block.remote_span();
        let before = reach > first;
        reach = reach.max(end);
        let after =
            strided_blocks.get(i.saturating_add(1)).is_some_and(|n| n.remote_span().0 < end);
        let next = runs.partition_point(|r| r.end() <= first);
        let taken = runs.get(next).is_some_and(|r| r.remote < end);
        kept.push(!(before || after || taken) && whole(first, end));
    }
    unroll(
        strided_blocks
            .iter()
            .zip(&kept)
            .filter(|(_, kept)| !**kept)
            .map(|(strided_block, _)| strided_block),
        runs,
    )?;
    let mut kept = kept.into_iter();
    strided_blocks.retain(|_| kept.next().unwrap_or(true));
    Ok(strided_blocks)
}

/// Joins sorted runs that overlap consistently or are adjacent on both sides.
fn join(target: usize, runs: &mut Vec<ByteRun>) -> Result<()> {
    let mut kept = 0usize;
    for i in 1..runs.len() {
        let run = runs[i];
        let last = &mut runs[kept];
        if run.remote <= last.end() && run.skew() == last.skew() {
            last.bytes = last.bytes.max(run.end().saturating_sub(last.remote));
        } else if run.remote < last.end() {
            let one = run.remote.wrapping_add(last.skew());
            return conflict(target, (one, run.local), run.remote);
        } else {
            kept = kept.saturating_add(1);
            runs[kept] = run;
        }
    }
    runs.truncate(kept.saturating_add(1));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::slice::Blocks;
    use super::*;
    use std::collections::BTreeMap;

    fn yes(_: usize, _: usize) -> bool {
        true
    }

    /// Returns the local address of each byte, by its address at the target.
    fn bytes(n: &Pairs) -> BTreeMap<usize, usize> {
        let mut runs = n.runs.clone();
        n.strided_blocks.iter().for_each(|p| p.unroll(&mut runs).unwrap());
        let mut all = BTreeMap::new();
        for r in runs {
            for i in 0..r.bytes {
                assert!(all.insert(r.remote + i, r.local + i).is_none(), "a byte is there twice");
            }
        }
        all
    }

    #[test]
    fn doubles_are_one_and_neighbours_join() {
        let mut part = Part::default();
        for i in (0..100).rev() {
            part.add(1000 + i, 5000 + i, 1).unwrap();
            part.add(1000 + i, 5000 + i, 1).unwrap();
        }
        part.add(1090, 5090, 30).unwrap();
        let n = normalize(1, &[&part, &part], &mut yes).unwrap();
        assert_eq!(n.runs, [ByteRun { remote: 5000, local: 1000, bytes: 120 }]);
    }

    #[test]
    fn one_source_may_go_to_many_places_but_not_back() {
        let mut part = Part::default();
        part.add(1000, 5000, 8).unwrap();
        part.add(1000, 6000, 8).unwrap();
        assert_eq!(normalize(1, &[&part], &mut yes).unwrap().runs.len(), 2);
        part.add(2000, 5007, 1).unwrap();
        let error = normalize(3, &[&part], &mut yes).unwrap_err();
        for text in ["0x3ef", "0x7d0", "0x138f", "rank 3"] {
            assert!(error.detail().contains(text), "{text} in {error}");
        }
    }

    #[test]
    fn a_shape_stays_while_it_is_alone() {
        let rows = |local, remote| {
            let mut part = Part::default();
            let l = Blocks { start: local, stride: 64, block: 8, count: 100 };
            let r = Blocks { start: remote, stride: 32, block: 8, count: 100 };
            part.add_slice(l, r).unwrap();
            part
        };
        let a = rows(10_000, 100_000);
        let n = normalize(0, &[&a, &a], &mut yes).unwrap();
        assert_eq!((n.strided_blocks.len(), n.runs.len()), (1, 0));
        // The second shape lies between the rows of the first, so both are split.
        let b = rows(50_000, 100_016);
        let n = normalize(0, &[&a, &b], &mut yes).unwrap();
        assert_eq!((n.strided_blocks.len(), n.runs.len()), (0, 200));
        assert_eq!(bytes(&n).len(), 1600);
        // This run overlaps a row of the first shape, first consistently, then in conflict.
        let mut c = Part::default();
        c.add(10_000 + 64, 100_032, 8).unwrap();
        assert_eq!(bytes(&normalize(0, &[&a, &c], &mut yes).unwrap()).len(), 800);
        c.add(10_000 + 64, 100_064, 8).unwrap();
        assert!(normalize(0, &[&a, &c], &mut yes).is_err());
        // The addresses do not lie in one part of a segment.
        assert_eq!(normalize(0, &[&a], &mut |_, _| false).unwrap().runs.len(), 100);
    }

    #[test]
    fn a_shape_that_writes_twice_is_a_conflict() {
        let mut part = Part::default();
        let shape = Shape::strided(&[8, 10], &[8], &[4]).unwrap();
        part.add_shape(1 << 16, 1 << 20, shape).unwrap();
        assert!(normalize(0, &[&part], &mut yes).is_err());
        let mut part = Part::default();
        let shape = Shape::strided(&[8, 10], &[4], &[4]).unwrap();
        part.add_shape(1 << 16, 1 << 20, shape).unwrap();
        let n = normalize(0, &[&part], &mut yes).unwrap();
        assert_eq!(n.runs, [ByteRun { remote: 1 << 20, local: 1 << 16, bytes: 44 }]);
    }

    fn of(shape: Shape) -> Result<Pairs> {
        let mut part = Part::default();
        part.add_shape(1 << 40, 1 << 41, shape).unwrap();
        normalize(0, &[&part], &mut yes)
    }

    fn kind_of(shape: Shape) -> portolan_base::error::ErrorKind {
        of(shape).unwrap_err().kind()
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks for more memory than Miri gives")]
    fn what_is_there_many_times_costs_no_more_than_once() {
        use portolan_base::error::ErrorKind::{Argument, Memory};
        let one = of(Shape::strided(&[8, 1 << 59], &[0], &[0]).unwrap()).unwrap();
        assert_eq!(one.runs, [ByteRun { remote: 1 << 41, local: 1 << 40, bytes: 8 }]);
        let row = of(Shape::strided(&[8, 1 << 20, 1 << 20], &[4, 8], &[4, 8]).unwrap()).unwrap();
        assert_eq!((row.runs.len(), row.strided_blocks.len()), (1, 0));
        assert_eq!(row.runs[0].bytes, 12 * ((1 << 20) - 1) + 8);
        // Several local bytes go to one byte of the target.
        assert_eq!(kind_of(Shape::strided(&[8, 1 << 59], &[1], &[0]).unwrap()), Argument);
        assert_eq!(kind_of(Shape::strided(&[8, 1 << 40], &[9], &[7]).unwrap()), Argument);
        let woven = Shape::strided(&[1, 1 << 30, 1 << 30], &[1, 2], &[2, 3]).unwrap();
        assert_eq!(kind_of(woven), Argument);
        // The blocks do not overlap at the target, but are too many to list.
        let comb = Shape::strided(&[1, 1 << 44], &[1], &[2]).unwrap();
        assert_eq!(of(comb.clone()).unwrap().strided_blocks.len(), 1);
        let mut part = Part::default();
        part.add_shape(1 << 40, 1 << 41, comb).unwrap();
        let listed = normalize(0, &[&part], &mut |_, _| false);
        assert_eq!(listed.unwrap_err().kind(), Memory);
    }

    #[test]
    fn strides_down_are_turned_up() {
        let mut part = Part::default();
        let shape = Shape::strided(&[8, 10, 5], &[8, 200], &[-16, 1000]).unwrap();
        part.add_shape(1 << 16, 1 << 20, shape).unwrap();
        let n = normalize(0, &[&part], &mut yes).unwrap();
        assert_eq!((n.strided_blocks.len(), n.runs.len()), (1, 0));
        let apart = normalize(0, &[&part], &mut |_, _| false).unwrap();
        assert_eq!(bytes(&n), bytes(&apart));
    }
}
