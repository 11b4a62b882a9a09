//! Prepared puts by message. A large shape or a long run is one message, packed or sent straight
//! from memory. Short runs and the blocks of small shapes share messages that list them. All
//! addresses were checked.

use crate::core::peer::CompletionCounter;
use crate::memory::arena::Arena;
use crate::path::ops::{Transfer, TransferKind};
use crate::path::{Batch, Path, Paths, Prepared};
use portolan_base::error::{Result, reserve};
use portolan_base::layout::Shape;
use portolan_base::layout::pairs::Pairs;
use portolan_base::layout::pairs::{ByteRun, StridedBlock};
use std::sync::Arc;

/// Maximum number of blocks of shapes that are sent as runs.
const SMALL: usize = 64;

#[derive(Debug)]
pub(super) struct Schedule {
    alone: Vec<StridedBlock>,
    together: Vec<ByteRun>,
    pairs: Pairs,
    _arena: Arc<Arena>,
}

impl Schedule {
    /// Fails with `Memory` if the list of runs cannot be allocated.
    pub(super) fn new(arena: Arc<Arena>, pairs: Pairs) -> Result<Schedule> {
        let (mut alone, mut together) = (Vec::new(), Vec::new());
        for strided_block in &pairs.strided_blocks {
            if strided_block.blocks() <= SMALL && strided_block.shape.block() <= Batch::MAX_BLOCK {
                strided_block.unroll(&mut together)?;
            } else {
                alone.push(strided_block.clone());
            }
        }
        reserve(&mut together, pairs.runs.len(), "runs of bytes")?;
        for &run in &pairs.runs {
            if run.bytes <= Batch::MAX_BLOCK {
                together.push(run);
            } else {
                let shape = Shape::contiguous(run.bytes);
                alone.push(StridedBlock { local: run.local, remote: run.remote, shape });
            }
        }
        Ok(Schedule { alone, together, pairs, _arena: arena })
    }
}

impl Prepared for Schedule {
    fn path(&self) -> Path {
        Path::Message
    }

    unsafe fn start(
        &self,
        paths: &Paths,
        target: usize,
        counter: &Arc<CompletionCounter>,
        then: Option<usize>,
    ) -> Result<bool> {
        let two_sided = paths.two_sided()?;
        let mut taken = false;
        for (i, &StridedBlock { local, remote, ref shape }) in self.alone.iter().enumerate() {
            let (kind, local) = (TransferKind::Put, local as *mut u8);
            let put = Transfer { kind, target, remote, local, shape };
            let is_last = i + 1 == self.alone.len() && self.together.is_empty();
            // SAFETY: the caller keeps the local bytes until the end. The remote ones were checked.
            unsafe {
                if let Some(then) = then.filter(|_| is_last) {
                    taken = two_sided.put_and_increment(paths, &put, then)?;
                }
                if !taken {
                    two_sided.put(paths, &put, counter)?;
                }
            }
        }
        let mut batch = Batch::new(TransferKind::Put, target);
        for run in &self.together {
            if !batch.takes(run.remote, run.bytes, paths.config.chunk_bytes) {
                // SAFETY: the caller keeps the local bytes valid until the counter is done.
                unsafe { two_sided.send_blocks(paths, &mut batch, counter, None) }?;
            }
            batch.push(run.local, run.remote, run.bytes);
        }
        // SAFETY: the caller keeps the local bytes valid until the counter is done.
        Ok(unsafe { two_sided.send_blocks(paths, &mut batch, counter, then) }? || taken)
    }

    fn pairs(&self) -> &Pairs {
        &self.pairs
    }
}
