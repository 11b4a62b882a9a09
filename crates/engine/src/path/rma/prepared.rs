//! Prepared puts through windows. Each shape is one `MPI_Put` with a derived datatype on each side,
//! and so are all runs of equal length. All targets' puts are issued before the flush.

use super::types::{TypeCache, blocks};
use super::{MAX_PART, window};
use crate::core::peer::CompletionCounter;
use crate::memory::arena::Arena;
use crate::mpi::{WindowShape, WindowTransfer};
use crate::path::{Path, Paths, Prepared};
use portolan_base::error::{Result, reserve};
use portolan_base::layout::Side;
use portolan_base::layout::pairs::{ByteRun, Pairs, StridedBlock};
use std::ops::Range;
use std::sync::Arc;

/// Of one datatype.
const MOST_BLOCKS: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct Puts {
    arena: Arc<Arena>,
    rank: usize,
    puts: Vec<WindowTransfer>,
    /// The remote addresses of all puts.
    bytes: Range<usize>,
    pairs: Pairs,
}

impl Puts {
    /// All pairs must lie in the region of `rank`. Returns `Mpi` if a datatype cannot be created,
    /// and `Memory` if the list of runs cannot be allocated.
    pub(super) fn new(
        types: &TypeCache,
        arena: Arc<Arena>,
        rank: usize,
        pairs: Pairs,
    ) -> Result<Puts> {
        let base = arena.base(rank);
        let put = |(local, remote): (usize, usize), here: WindowShape, there: WindowShape| {
            let (origin, offset) = (local, remote - base);
            let (origin_shape, target_shape) = (here, there);
            let target = rank;
            WindowTransfer { is_get: false, origin, origin_shape, target, offset, target_shape }
        };
        let mut puts = Vec::new();
        for StridedBlock { local, remote, shape } in &pairs.strided_blocks {
            shape.split(MAX_PART, 1, &mut |l, r, part| {
                let at = (local.wrapping_add_signed(l), remote.wrapping_add_signed(r));
                puts.push(put(at, types.get(part, Side::Local)?, types.get(part, Side::Remote)?));
                Ok(())
            })?;
        }
        let mut runs: Vec<&ByteRun> = Vec::new();
        reserve(&mut runs, pairs.runs.len(), "runs of bytes")?;
        runs.extend(&pairs.runs);
        runs.sort_unstable_by_key(|r| (r.bytes, r.remote));
        for same in runs.chunk_by(|a, b| a.bytes == b.bytes) {
            let bytes = same[0].bytes;
            for some in same.chunks((MAX_PART / bytes).clamp(1, MOST_BLOCKS)) {
                let first = some[0];
                if let [run] = some {
                    puts.extend((0..bytes).step_by(MAX_PART).map(|at| {
                        let row = WindowShape::Row(MAX_PART.min(bytes - at));
                        put((run.local + at, run.remote + at), row.clone(), row)
                    }));
                    continue;
                }
                let here = blocks(bytes, some.iter().map(|run| run.local))?;
                let there = blocks(bytes, some.iter().map(|run| run.remote))?;
                puts.push(put((first.local, first.remote), here, there));
            }
        }
        let of_runs = pairs.runs.iter().map(|run| (run.remote, run.end()));
        let spans = of_runs.chain(pairs.strided_blocks.iter().map(StridedBlock::remote_span));
        let (from, to) =
            spans.fold((usize::MAX, 0), |(from, to), (first, end)| (from.min(first), to.max(end)));
        let bytes = from..to;
        Ok(Puts { arena, rank, puts, bytes, pairs })
    }
}

impl Prepared for Puts {
    fn path(&self) -> Path {
        Path::Rma
    }

    unsafe fn start(
        &self,
        paths: &Paths,
        target: usize,
        _: &Arc<CompletionCounter>,
        _: Option<usize>,
    ) -> Result<bool> {
        let (region, bytes) = ((&self.arena, self.rank), self.bytes.clone());
        let _pending = paths.rma.begin(paths, target, region, false, bytes)?;
        for put in &self.puts {
            // SAFETY: the caller keeps the local bytes valid until the flush. The preparation
            // checked the remote bytes.
            unsafe { window(&self.arena).start(put, false) }?;
        }
        Ok(false)
    }

    fn pairs(&self) -> &Pairs {
        &self.pairs
    }
}
