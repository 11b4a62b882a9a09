//! Prepared puts through windows. Each shape is one `MPI_Put` with a derived datatype on each side,
//! and so are all runs of equal length. All targets' puts are issued before the flush.

use crate::core::peer::{CompletionCounter, RmaKind};
use crate::error::{Result, reserve};
use crate::layout::pairs::Pairs;
use crate::layout::pairs::{ByteRun, StridedBlock};
use crate::layout::{Shape, Side};
use crate::memory::arena::Arena;
use crate::mpi::{self, Datatype, DerivedType, WindowTransfer};
use crate::path::{Path, Paths, Prepared};
use std::sync::Arc;

const MAX_PART: usize = 1 << 30;
/// Of one datatype.
const MOST_BLOCKS: usize = 1 << 20;

#[derive(Debug)]
enum Lies {
    Row,
    As(DerivedType),
}

impl Lies {
    fn of(shape: &Shape, side: Side) -> Result<Lies> {
        if shape.is_contiguous_on(side) {
            return Ok(Lies::Row);
        }
        let stride = |d: &crate::layout::Dim| if side == Side::Local { d.local } else { d.remote };
        let counts: Vec<usize> = shape.dims().iter().map(|d| d.n).collect();
        let strides: Vec<isize> = shape.dims().iter().map(stride).collect();
        DerivedType::strided(Datatype::Byte, shape.block(), &counts, &strides).map(Lies::As)
    }

    fn as_mpi(&self, bytes: usize) -> mpi::WindowShape<'_> {
        match self {
            Lies::Row => mpi::WindowShape::Row(bytes, Datatype::Byte),
            Lies::As(t) => mpi::WindowShape::Derived(t),
        }
    }
}

#[derive(Debug)]
struct Put {
    local: usize,
    /// In the target's region, in bytes.
    offset: usize,
    bytes: usize,
    here: Lies,
    there: Lies,
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
    pub(super) fn new(arena: Arc<Arena>, rank: usize, pairs: Pairs) -> Result<Puts> {
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
                    bytes: part.bytes(),
                    here: Lies::of(part, Side::Local)?,
                    there: Lies::of(part, Side::Remote)?,
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

    unsafe fn start(&self, paths: &Paths, target: usize, _: &Arc<CompletionCounter>) -> Result<()> {
        let window = self.arena.window().expect("the path was chosen because there is a window");
        let mut pending = paths.peer(target).rma.lock();
        if pending.conflicts(RmaKind::Put, self.from, self.to) {
            pending.flush()?;
        }
        pending.note(&self.arena, self.rank, RmaKind::Put, self.from, self.to);
        paths.peers().mark_pending(target, Path::Rma.pending_bit());
        for put in &self.puts {
            let transfer = WindowTransfer {
                origin: put.local as *mut u8,
                origin_shape: put.here.as_mpi(put.bytes),
                target: self.rank,
                offset: put.offset,
                target_shape: put.there.as_mpi(put.bytes),
            };
            // SAFETY: the caller keeps the local bytes valid until the flush. The preparation
            // checked the remote bytes.
            unsafe { window.put(&transfer, false) }?;
        }
        Ok(())
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
            let bytes = MAX_PART.min(bytes - at);
            let (local, offset) = (first.local + at, first.remote - base + at);
            puts.push(Put { local, offset, bytes, here: Lies::Row, there: Lies::Row });
        }
        return Ok(());
    }
    let locals: Vec<isize> =
        runs.iter().map(|r| r.local.wrapping_sub(first.local) as isize).collect();
    let remotes: Vec<isize> =
        runs.iter().map(|r| r.remote.wrapping_sub(first.remote) as isize).collect();
    puts.push(Put {
        local: first.local,
        offset: first.remote - base,
        bytes: bytes * runs.len(),
        here: Lies::As(DerivedType::blocks(Datatype::Byte, bytes, &locals)?),
        there: Lies::As(DerivedType::blocks(Datatype::Byte, bytes, &remotes)?),
    });
    Ok(())
}
