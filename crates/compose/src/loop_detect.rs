//! Loop detection: converts regular runs to shapes.
//!
//! Sorted runs of equal length, at equal distances on both sides, become one shape. Equal shapes at
//! equal distances become one shape with one more dimension, and so on. A million pairs that were
//! added one by one, but form an array, thus become a few loops.
//!
//! A group of two is formed only if the group before or after it is like it. Any two runs have
//! *some* distance, and arbitrary pairs would hide the regularity for the next dimension.

use portolan_base::error::{Result, reserve};
use portolan_base::layout::pairs::Pairs;
use portolan_base::layout::pairs::{ByteRun, StridedBlock};
use portolan_base::layout::{MAX_LEVELS, Shape};
use smallvec::SmallVec;

trait Item {
    fn at(&self) -> (usize, usize);
    /// Returns whether the two items differ only in their addresses.
    fn alike(&self, other: &Self) -> bool;
}

impl Item for ByteRun {
    fn at(&self) -> (usize, usize) {
        (self.local, self.remote)
    }
    fn alike(&self, other: &ByteRun) -> bool {
        self.bytes == other.bytes
    }
}

impl Item for StridedBlock {
    fn at(&self) -> (usize, usize) {
        (self.local, self.remote)
    }
    fn alike(&self, other: &StridedBlock) -> bool {
        self.shape == other.shape
    }
}

type Step = (isize, isize);

/// Returns the distance from item `i` to the next one if they are alike.
fn step<T: Item>(items: &[T], i: usize) -> Option<Step> {
    let (a, b) = (items.get(i)?, items.get(i + 1)?);
    if !a.alike(b) {
        return None;
    }
    let ((al, ar), (bl, br)) = (a.at(), b.at());
    Some((bl.wrapping_sub(al) as isize, br.wrapping_sub(ar) as isize))
}

/// Partitions the items into groups at equal distances, and calls `group(first, count, step)` for
/// each in order. A group of one item is irregular.
fn groups<T: Item>(
    items: &[T],
    mut group: impl FnMut(usize, usize, Step) -> Result<()>,
) -> Result<()> {
    let mut i = 0;
    // Start and step of the previous group, initially outside the items.
    let mut before: (usize, Step) = (usize::MAX, (0, 0));
    while i < items.len() {
        let Some(first) = step(items, i) else {
            group(i, 1, (0, 0))?;
            i += 1;
            continue;
        };
        let mut n = 2;
        while step(items, i + n - 1) == Some(first) {
            n += 1;
        }
        let pair_of_many = || {
            let begin = items.get(before.0);
            let last = begin.is_some_and(|item| before.1 == first && item.alike(&items[i]));
            let next = step(items, i + 2) == Some(first) && step(items, i + 3) != Some(first);
            last || next && items[i].alike(&items[i + 2])
        };
        if n == 2 && !pair_of_many() {
            group(i, 1, (0, 0))?;
            i += 1;
            continue;
        }
        before = (i, first);
        group(i, n, first)?;
        i += n;
    }
    Ok(())
}

fn repeated(shape: &Shape, n: usize, (local, remote): Step) -> Option<Shape> {
    let mut counts = vec![shape.block()];
    let (mut locals, mut remotes) = (Vec::new(), Vec::new());
    for d in shape.dims() {
        counts.push(d.n);
        locals.push(d.local);
        remotes.push(d.remote);
    }
    counts.push(n);
    locals.push(local);
    remotes.push(remote);
    Shape::strided(&counts, &locals, &remotes).ok()
}

fn by_shape(a: &StridedBlock, b: &StridedBlock) -> std::cmp::Ordering {
    let dims = |p: &StridedBlock| {
        p.shape.dims().iter().map(|d| (d.n, d.remote, d.local)).collect::<SmallVec<[_; 4]>>()
    };
    let size = |p: &StridedBlock| (p.shape.block(), p.shape.dims().len());
    size(a).cmp(&size(b)).then_with(|| dims(a).cmp(&dims(b))).then_with(|| a.remote.cmp(&b.remote))
}

/// Converts regular runs and sequences of shapes to shapes. Fails with `Memory`.
pub(crate) fn detect_loops(normal: Pairs) -> Result<Pairs> {
    let Pairs { mut runs, strided_blocks: given } = normal;
    // Runs of equal length may be interleaved with others, such as rows of a face between edges.
    if runs.iter().any(|r| r.bytes != runs[0].bytes) {
        runs.sort_unstable_by_key(|r| (r.bytes, r.remote));
    }
    let mut left = Vec::new();
    let mut strided_blocks = Vec::new();
    groups(&runs, |first, n, step| {
        let ByteRun { local, remote, bytes } = runs[first];
        match repeated(&Shape::contiguous(bytes), n, step).filter(|_| n > 1) {
            Some(shape) => {
                reserve(&mut strided_blocks, 1, "shapes")?;
                strided_blocks.push(StridedBlock { local, remote, shape });
            }
            None => {
                reserve(&mut left, n, "runs of bytes")?;
                left.extend_from_slice(&runs[first..first + n]);
            }
        }
        Ok(())
    })?;
    drop(runs);
    reserve(&mut strided_blocks, given.len(), "shapes")?;
    strided_blocks.extend(given);
    loop {
        strided_blocks.sort_by(by_shape);
        let mut next = Vec::new();
        reserve(&mut next, strided_blocks.len(), "shapes")?;
        groups(&strided_blocks, |first, n, step| {
            let strided_block = &strided_blocks[first];
            let room = strided_block.shape.dims().len() < MAX_LEVELS;
            match repeated(&strided_block.shape, n, step).filter(|_| n > 1 && room) {
                Some(shape) => next.push(StridedBlock { shape, ..strided_block.clone() }),
                None => next.extend_from_slice(&strided_blocks[first..first + n]),
            }
            Ok(())
        })?;
        if next.len() == strided_blocks.len() {
            left.shrink_to_fit();
            // Restores the order of writing.
            next.sort_by_key(|p| p.remote);
            return Ok(Pairs { runs: left, strided_blocks: next });
        }
        strided_blocks = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(list: &[(usize, usize, usize)]) -> Pairs {
        let runs =
            list.iter().map(|&(local, remote, bytes)| ByteRun { remote, local, bytes }).collect();
        Pairs { runs, strided_blocks: Vec::new() }
    }

    fn all(n: &Pairs) -> Vec<ByteRun> {
        let mut all = n.runs.clone();
        n.strided_blocks.iter().for_each(|p| p.unroll(&mut all).unwrap());
        all.sort_unstable();
        all
    }

    #[test]
    fn a_block_of_an_array_is_one_shape() {
        let mut list = Vec::new();
        for k in 0..5 {
            for j in 0..7 {
                for i in 0..6 {
                    list.push((
                        10_000 + 8 * i + 100 * j + 1000 * k,
                        90_000 + 16 * i + 200 * j + 3000 * k,
                        8,
                    ));
                }
            }
        }
        let given = runs(&list);
        let folded = detect_loops(given.clone()).unwrap();
        assert_eq!((folded.runs.len(), folded.strided_blocks.len()), (0, 1));
        assert_eq!(folded.strided_blocks[0].shape.dims().len(), 3);
        assert_eq!(all(&folded), given.runs);
    }

    #[test]
    fn a_transpose_is_one_shape() {
        let (n, m) = (16, 20);
        let list: Vec<_> =
            (0..n * m).map(|k| (4096 + 8 * (k % m * n + k / m), 65536 + 8 * k, 8)).collect();
        let folded = detect_loops(runs(&list)).unwrap();
        assert_eq!((folded.runs.len(), folded.strided_blocks.len()), (0, 1));
        assert_eq!(all(&folded), runs(&list).runs);
    }

    #[test]
    fn rows_of_two_fold_and_lone_runs_stay() {
        let mut list = vec![(100, 1000, 8), (900, 1700, 8)];
        for j in 0..10 {
            list.push((10_000 + 500 * j, 20_000 + 300 * j, 4));
            list.push((10_000 + 500 * j + 32, 20_000 + 300 * j + 16, 4));
        }
        list.push((77, 40_000, 3));
        let folded = detect_loops(runs(&list)).unwrap();
        assert_eq!((folded.runs.len(), folded.strided_blocks.len()), (3, 1));
        assert_eq!(all(&folded), runs(&list).runs);
    }

    #[test]
    fn what_is_alike_folds_across_what_is_not() {
        // Planes of rows, each between two longer runs.
        let mut list = Vec::new();
        for k in 0..20 {
            list.push((1_000_000 + 700 * k, 500_000 + 10_000 * k, 64));
            for j in 0..30 {
                list.push((10_000 + 100 * j + 5000 * k, 500_100 + 200 * j + 10_000 * k, 8));
            }
            list.push((2_000_000 + 900 * k, 507_000 + 10_000 * k, 48));
        }
        let folded = detect_loops(runs(&list)).unwrap();
        assert_eq!((folded.runs.len(), folded.strided_blocks.len()), (0, 3));
        assert_eq!(all(&folded), runs(&list).runs);
    }

    #[test]
    fn nothing_is_lost_where_little_is_regular() {
        let mut random = fastrand::Rng::with_seed(1);
        let most = if cfg!(miri) { 100 } else { 1000 };
        for len in [1, 2, 3, 5, 60, most] {
            let mut at = 1 << 20;
            let list: Vec<_> = (0..len)
                .map(|_| {
                    let r = random.usize(..1 << 24);
                    at += 16 + 8 * (r % 3);
                    ((1 << 30) + 8 * (r % 7), at, 4 + r % 2 * 4)
                })
                .collect();
            assert_eq!(all(&detect_loops(runs(&list)).unwrap()), runs(&list).runs);
        }
    }
}
