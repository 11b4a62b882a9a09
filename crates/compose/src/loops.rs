//! Prepared copies within a node. A shape becomes one loop, whose function is chosen by the block
//! length during preparation. Runs are grouped into lists of equal length and take 16 bytes each.
//! Copying makes no decisions.
//!
//! Remote addresses belong to the target's address space. The caller of the copy gives the shift
//! that converts them to addresses here.

use portolan_base::error::{Result, reserve};
use portolan_base::layout::pairs::Pairs;
use portolan_base::layout::pairs::{ByteRun, StridedBlock};
use portolan_base::layout::{Dim, Shape};
use portolan_engine::path::kernel;

/// Strided blocks in up to three dimensions, the innermost first.
#[derive(Debug, Clone, Copy)]
struct Loop {
    copy: Nest,
    local: usize,
    remote: usize,
    block: usize,
    dims: [Dim; 3],
}

/// Copies all blocks: source, destination, block length in bytes, and dimensions.
type Nest = unsafe fn(*const u8, *mut u8, usize, &[Dim; 3]);

/// Calls `block` with the source and destination address of each block.
#[inline(always)]
fn for_blocks(
    src: *const u8,
    dst: *mut u8,
    [inner, middle, outer]: &[Dim; 3],
    block: impl Fn(*const u8, *mut u8),
) {
    // Wrapping, because the step after the last block may leave the allocation.
    let (mut src2, mut dst2) = (src, dst);
    for _ in 0..outer.n {
        let (mut src1, mut dst1) = (src2, dst2);
        for _ in 0..middle.n {
            let (mut src0, mut dst0) = (src1, dst1);
            for _ in 0..inner.n {
                block(src0, dst0);
                src0 = src0.wrapping_offset(inner.local);
                dst0 = dst0.wrapping_offset(inner.remote);
            }
            src1 = src1.wrapping_offset(middle.local);
            dst1 = dst1.wrapping_offset(middle.remote);
        }
        src2 = src2.wrapping_offset(outer.local);
        dst2 = dst2.wrapping_offset(outer.remote);
    }
}

/// Copies blocks of the size of `T`.
///
/// # Safety
/// All blocks must be valid: for reads at the source, and for writes at the destination.
unsafe fn nest<T: Copy>(src: *const u8, dst: *mut u8, _: usize, dims: &[Dim; 3]) {
    for_blocks(src, dst, dims, |from, to| {
        // SAFETY: the caller ensures that every block is valid on both sides.
        unsafe { to.cast::<T>().write_unaligned(from.cast::<T>().read_unaligned()) };
    });
}

/// Copies blocks of any size. The two sides of a block may overlap.
///
/// # Safety
/// The requirements of [`nest`] apply.
unsafe fn nest_any(src: *const u8, dst: *mut u8, bytes: usize, dims: &[Dim; 3]) {
    for_blocks(src, dst, dims, |from, to| {
        // SAFETY: the caller ensures that every block is valid on both sides.
        unsafe { kernel::copy_block(from, to, bytes) };
    });
}

fn nest_of(block: usize) -> Nest {
    match block {
        1 => nest::<u8>,
        2 => nest::<u16>,
        4 => nest::<u32>,
        8 => nest::<u64>,
        12 => nest::<[u32; 3]>,
        16 => nest::<[u64; 2]>,
        24 => nest::<[u64; 3]>,
        32 => nest::<[u64; 4]>,
        40 => nest::<[u64; 5]>,
        48 => nest::<[u64; 6]>,
        64 => nest::<[u64; 8]>,
        128 => nest::<[u64; 16]>,
        256 => nest::<[u64; 32]>,
        _ => nest_any,
    }
}

#[derive(Debug)]
struct List {
    copy: unsafe fn(&[(usize, usize)], usize, isize),
    bytes: usize,
    runs: Vec<(usize, usize)>,
}

/// Copies runs of the size of `T`.
///
/// # Safety
/// All runs must be valid: locally for reads, and at the shifted remote address for writes.
unsafe fn list<T: Copy>(runs: &[(usize, usize)], _: usize, shift: isize) {
    for &(local, remote) in runs {
        let (src, dst) = (local as *const T, remote.wrapping_add_signed(shift) as *mut T);
        // SAFETY: the caller ensures that every run is valid on both sides.
        unsafe { dst.write_unaligned(src.read_unaligned()) };
    }
}

/// Copies runs of any size.
///
/// # Safety
/// The requirements of [`list`] apply.
unsafe fn list_any(runs: &[(usize, usize)], bytes: usize, shift: isize) {
    for &(local, remote) in runs {
        let (src, dst) = (local as *const u8, remote.wrapping_add_signed(shift) as *mut u8);
        // SAFETY: the caller ensures that every run is valid on both sides.
        unsafe { kernel::copy_block(src, dst, bytes) };
    }
}

impl List {
    fn new(bytes: usize, runs: Vec<(usize, usize)>) -> List {
        let copy = match bytes {
            1 => list::<u8>,
            2 => list::<u16>,
            4 => list::<u32>,
            8 => list::<u64>,
            16 => list::<[u64; 2]>,
            24 => list::<[u64; 3]>,
            32 => list::<[u64; 4]>,
            _ => list_any,
        };
        List { copy, bytes, runs }
    }
}

#[derive(Debug, Default)]
pub struct Loops {
    loops: Vec<Loop>,
    lists: Vec<List>,
    /// Shapes with more dimensions than a loop has.
    deep: Vec<StridedBlock>,
}

/// An inner dimension whose local stride is at least `FAR` bytes is split into tiles of [`TILE`]
/// blocks, if it has more than two tiles. The next outer step then finds the neighbouring bytes,
/// which are in the same cache lines, still in the nearest cache.
const FAR: usize = 256;
const TILE: usize = 256;
/// Maximum local stride of the outer dimension, and maximum block length, in bytes, for tiling.
const NEAR: usize = 64;

/// Tiles the inner dimension of shapes that gather distant elements into rows, such as a transpose.
fn tiled(strided_block: StridedBlock, out: &mut Vec<StridedBlock>) {
    let &[inner, outer] = strided_block.shape.dims() else {
        return out.push(strided_block);
    };
    let gathers = inner.local.unsigned_abs() >= FAR && outer.local.unsigned_abs() <= NEAR;
    if !gathers || inner.n <= 2 * TILE || strided_block.shape.block() > NEAR {
        return out.push(strided_block);
    }
    let block = strided_block.shape.block();
    let whole = inner.n / TILE;
    let part = |n: usize| {
        let (locals, remotes) = ([inner.local, outer.local], [inner.remote, outer.remote]);
        Shape::strided(&[block, n, outer.n], &locals, &remotes).expect("a part of a checked shape")
    };
    for (at, n) in (0..whole).map(|i| (i * TILE, TILE)).chain([(whole * TILE, inner.n % TILE)]) {
        if n > 0 {
            out.push(StridedBlock {
                local: strided_block.local.wrapping_add_signed(inner.local * at as isize),
                remote: strided_block.remote.wrapping_add_signed(inner.remote * at as isize),
                shape: part(n),
            });
        }
    }
}

impl Loops {
    /// Prepares the copy of all pairs. Fails with `Memory`.
    pub fn new(normal: Pairs) -> Result<Loops> {
        let mut made = Loops::default();
        let mut strided_blocks = Vec::new();
        reserve(&mut strided_blocks, normal.strided_blocks.len(), "shapes")?;
        normal.strided_blocks.into_iter().for_each(|p| tiled(p, &mut strided_blocks));
        reserve(&mut made.loops, strided_blocks.len(), "loops")?;
        for strided_block in strided_blocks {
            let dims = strided_block.shape.dims();
            if dims.len() > 3 {
                made.deep.push(strided_block);
                continue;
            }
            let one = Dim { n: 1, local: 0, remote: 0 };
            let at = |i: usize| dims.get(i).copied().unwrap_or(one);
            made.loops.push(Loop {
                copy: nest_of(strided_block.shape.block()),
                local: strided_block.local,
                remote: strided_block.remote,
                block: strided_block.shape.block(),
                dims: [at(0), at(1), at(2)],
            });
        }
        let mut runs = normal.runs;
        runs.sort_unstable_by_key(|r| (r.bytes, r.remote));
        for same in runs.chunk_by(|a, b| a.bytes == b.bytes) {
            let mut starts = Vec::new();
            reserve(&mut starts, same.len(), "runs of bytes")?;
            starts.extend(same.iter().map(|r| (r.local, r.remote)));
            made.lists.push(List::new(same[0].bytes, starts));
        }
        Ok(made)
    }

    /// Copies all bytes. `shift` is added to each remote address.
    ///
    /// # Safety
    /// All local bytes must be valid for reads, and all remote bytes, as shifted, for writes.
    #[inline]
    pub unsafe fn copy(&self, shift: isize) {
        for l in &self.loops {
            let (src, dst) = (l.local as *const u8, l.remote.wrapping_add_signed(shift) as *mut u8);
            // SAFETY: the caller ensures that all local and shifted remote bytes are valid.
            unsafe { (l.copy)(src, dst, l.block, &l.dims) };
        }
        for l in &self.lists {
            // SAFETY: the caller ensures that all local and shifted remote bytes are valid.
            unsafe { (l.copy)(&l.runs, l.bytes, shift) };
        }
        for p in &self.deep {
            let (src, dst) = (p.local as *const u8, p.remote.wrapping_add_signed(shift) as *mut u8);
            // SAFETY: the caller ensures that all local and shifted remote bytes are valid.
            unsafe { kernel::copy(src, dst, &p.shape, true) };
        }
    }

    /// Returns all pairs. Fails with `Memory`.
    pub fn pairs(&self) -> Result<Pairs> {
        let mut all = Pairs::default();
        for l in &self.loops {
            let (n, local, remote): (Vec<usize>, Vec<isize>, Vec<isize>) = (
                l.dims.iter().map(|d| d.n).collect(),
                l.dims.iter().map(|d| d.local).collect(),
                l.dims.iter().map(|d| d.remote).collect(),
            );
            let shape = Shape::strided(&[l.block, n[0], n[1], n[2]], &local, &remote)
                .expect("it was made of a checked shape");
            all.strided_blocks.push(StridedBlock { local: l.local, remote: l.remote, shape });
        }
        all.strided_blocks.extend_from_slice(&self.deep);
        for l in &self.lists {
            let run = |&(local, remote)| ByteRun { remote, local, bytes: l.bytes };
            reserve(&mut all.runs, l.runs.len(), "runs of bytes")?;
            all.runs.extend(l.runs.iter().map(run));
        }
        Ok(all)
    }

    pub fn steps(&self) -> usize {
        self.loops.len() + self.lists.len() + self.deep.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::LazyLock;

    /// Compares a copy of one run at a time with the prepared copy.
    fn check(shapes: &[(usize, usize, Shape)], runs: &[(usize, usize, usize)]) {
        const LEN: usize = 1 << 20;
        // The period is a prime, so that no stride of a test hides a wrong offset.
        static SRC: LazyLock<Vec<u8>> = LazyLock::new(|| {
            let period: Vec<u8> = (0..4099).map(|i| (i * 31 + i / 251) as u8).collect();
            let mut all = period.repeat(LEN / 4099 + 1);
            all.truncate(LEN);
            all
        });
        let src = &*SRC;
        let (mut got, mut want) = (vec![0u8; LEN], vec![0u8; LEN]);
        let (from, to) = (src.as_ptr() as usize, 0x1_0000usize);
        let mut normal = Pairs::default();
        for (l, r, shape) in shapes {
            let strided_block =
                StridedBlock { local: from + l, remote: to + r, shape: shape.clone() };
            strided_block.unroll(&mut normal.runs).unwrap();
        }
        for &(l, r, bytes) in runs {
            normal.runs.push(ByteRun { remote: to + r, local: from + l, bytes });
        }
        for run in &normal.runs {
            let (l, r) = (run.local - from, run.remote - to);
            want[r..r + run.bytes].copy_from_slice(&src[l..l + run.bytes]);
        }
        normal.runs.retain(|run| runs.iter().any(|&(l, _, _)| l + from == run.local));
        normal.strided_blocks = shapes
            .iter()
            .map(|(l, r, s)| StridedBlock { local: from + l, remote: to + r, shape: s.clone() })
            .collect();
        let loops = Loops::new(normal).unwrap();
        let again = Loops::new(loops.pairs().unwrap()).unwrap();
        for loops in [&loops, &again] {
            got.fill(0);
            // SAFETY: all offsets of the test are below `LEN`.
            unsafe { loops.copy((got.as_mut_ptr() as usize).wrapping_sub(to) as isize) };
            assert!(got == want, "{shapes:?} {runs:?}");
        }
    }

    #[test]
    fn every_block_size_and_depth() {
        let all: &[usize] = &[1, 2, 3, 4, 7, 8, 12, 16, 24, 32, 40, 48, 64, 100, 128, 256, 300];
        for &block in if cfg!(miri) { &[1, 8, 48, 300] } else { all } {
            let s =
                |counts: &[usize], l: &[isize], r: &[isize]| Shape::strided(counts, l, r).unwrap();
            check(&[(5, 9, s(&[block, 7], &[400], &[333]))], &[]);
            check(&[(1, 0, s(&[block, 3, 4], &[301, 2000], &[400, 3000]))], &[]);
            check(
                &[(0, 3, s(&[block, 3, 4, 2], &[301, 2000, 20_000], &[400, 3000, 30_000]))],
                &[(900_000, 900_001, block), (910_000, 930_000, block), (7, 950_000, 2 * block)],
            );
            let deep =
                s(&[block, 2, 2, 2, 2], &[300, 1000, 5000, 11_000], &[300, 1001, 5000, 11_003]);
            check(&[(0, 0, deep)], &[]);
        }
    }

    #[test]
    fn a_tiled_transpose_is_whole() {
        let all: &[(usize, usize)] = &[(100, 1000), (1000, 100), (513, 64), (768, 20)];
        for &(n, m) in if cfg!(miri) { &[(513, 32)] } else { all } {
            let s = Shape::strided(&[8, n, m], &[8 * m as isize, 8], &[8, 8 * n as isize]).unwrap();
            check(&[(0, 0, s)], &[]);
        }
    }
}
