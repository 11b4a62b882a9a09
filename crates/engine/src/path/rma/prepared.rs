//! Prepared puts through windows. Each shape is one `MPI_Put` with a derived datatype on each side,
//! and so are all runs of equal length. All targets' puts are issued before the flush.

use super::{MAX_PART, TypeCache, begin, call, window};
use crate::core::peer::CompletionCounter;
use crate::error::{Result, reserve};
use crate::layout::Side;
use crate::layout::pairs::{ByteRun, Pairs, StridedBlock};
use crate::memory::arena::Arena;
use crate::memory::runs::Direction;
use crate::mpi::{DerivedType, WindowShape, WindowTransfer};
use crate::path::{Path, Paths, Prepared};
use std::sync::Arc;

/// Of one datatype.
const MOST_BLOCKS: usize = 1 << 20;

#[derive(Debug)]
struct Put {
    local: usize,
    /// In the target's region, in bytes.
    offset: usize,
    here: WindowShape,
    there: WindowShape,
}

#[derive(Debug)]
pub(super) struct Puts {
    arena: Arc<Arena>,
    rank: usize,
    puts: Vec<Put>,
    /// The remote addresses `from..to` are touched.
    from: usize,
    to: usize,
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
        let (mut from, mut to) = (usize::MAX, 0);
        let mut see = |first: usize, end: usize| (from, to) = (from.min(first), to.max(end));
        pairs.runs.iter().for_each(|r| see(r.remote, r.end()));
        pairs.strided_blocks.iter().for_each(|p| see(p.remote_span().0, p.remote_span().1));
        let mut puts = Vec::new();
        for StridedBlock { local, remote, shape } in &pairs.strided_blocks {
            shape.split(MAX_PART, 1, &mut |l, r, part| {
                puts.push(Put {
                    local: local.wrapping_add_signed(l),
                    offset: remote.wrapping_add_signed(r) - base,
                    here: types.get(part, Side::Local)?,
                    there: types.get(part, Side::Remote)?,
                });
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
                blocks(some, bytes, base, &mut puts)?;
            }
        }
        Ok(Puts { arena, rank, puts, from, to, pairs })
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
        let region = (&self.arena, self.rank);
        let _pending = begin(paths, target, region, Direction::Put, (self.from, self.to))?;
        for put in &self.puts {
            let transfer = WindowTransfer {
                origin: put.local as *mut u8,
                origin_shape: &put.here,
                target: self.rank,
                offset: put.offset,
                target_shape: &put.there,
            };
            // SAFETY: the caller keeps the local bytes valid until the flush. The preparation
            // checked the remote bytes.
            unsafe { call(window(&self.arena), Direction::Put, &transfer, false) }?;
        }
        Ok(false)
    }

    fn pairs(&self) -> &Pairs {
        &self.pairs
    }
}

/// Adds a put for runs of equal length, or several for one run longer than `MAX_PART`.
fn blocks(runs: &[&ByteRun], bytes: usize, base: usize, puts: &mut Vec<Put>) -> Result<()> {
    let first = runs[0];
    if runs.len() == 1 {
        for at in (0..bytes).step_by(MAX_PART) {
            let row = WindowShape::Row(MAX_PART.min(bytes - at));
            let (local, offset) = (first.local + at, first.remote - base + at);
            puts.push(Put { local, offset, here: row.clone(), there: row });
        }
        return Ok(());
    }
    let lies = |side: fn(&ByteRun) -> usize| {
        let apart = runs.iter().map(|run| side(run).wrapping_sub(side(first)) as isize);
        let apart: Vec<isize> = apart.collect();
        DerivedType::blocks(bytes, &apart).map(Arc::new).map(WindowShape::Derived)
    };
    puts.push(Put {
        local: first.local,
        offset: first.remote - base,
        here: lies(|run| run.local)?,
        there: lies(|run| run.remote)?,
    });
    Ok(())
}
