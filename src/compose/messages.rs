//! A schedule for the message path: what travels alone, and what travels together.
//!
//! A large shape, or a long run, is a message of its own, packed or straight from
//! memory. Short runs, and the blocks of small shapes, share messages that list them.
//! All addresses were checked when the composition was mapped.

use super::normalize::Normal;
use super::part::{Piece, Run};
use crate::error::{Result, reserve};
use crate::layout::Shape;
use crate::memory::slab::Slab;
use crate::path::Path;
use crate::path::two_sided::blocks::Batch;
use crate::peer::CompletionCounter;
use crate::runtime::Engine;
use crate::transfer::TransferKind;
use std::sync::Arc;

/// Shapes of at most so many blocks travel as runs.
const SMALL: usize = 64;

/// Messages to one rank.
#[derive(Debug)]
pub struct Schedule {
    alone: Vec<Piece>,
    together: Vec<Run>,
    pairs: Normal,
    _slab: Arc<Slab>,
}

impl Schedule {
    /// Prepares messages for all pairs.
    ///
    /// # Errors
    /// `Memory` for the list of what travels together.
    pub fn new(slab: Arc<Slab>, pairs: Normal) -> Result<Schedule> {
        let (mut alone, mut together) = (Vec::new(), Vec::new());
        for piece in &pairs.pieces {
            if piece.blocks() <= SMALL && piece.shape.block() <= Batch::LONGEST {
                piece.unroll(&mut together)?;
            } else {
                alone.push(piece.clone());
            }
        }
        reserve(&mut together, pairs.runs.len(), "runs of bytes")?;
        for &run in &pairs.runs {
            if run.bytes <= Batch::LONGEST {
                together.push(run);
            } else {
                let shape = Shape::contiguous(run.bytes);
                alone.push(Piece { local: run.local, remote: run.remote, shape });
            }
        }
        Ok(Schedule { alone, together, pairs, _slab: slab })
    }

    /// Sends all messages; `counter` counts what still reads local memory on return.
    ///
    /// # Safety
    /// The local bytes must stay valid and unchanged until the counter is done, and the
    /// segments must live.
    pub unsafe fn start(
        &self,
        engine: &Engine,
        target: usize,
        counter: &Arc<CompletionCounter>,
    ) -> Result<()> {
        engine.order_before(target, Path::Message)?;
        let two_sided = engine.two_sided()?;
        for Piece { local, remote, shape } in &self.alone {
            // SAFETY: passed on from the caller; the remote bytes were checked.
            unsafe { two_sided.put(engine, target, *remote, *local as *const u8, shape, counter) }?;
        }
        let mut batch = Batch::new(TransferKind::Put, target);
        for run in &self.together {
            if !batch.has_room(run.bytes, engine.config.chunk_bytes) {
                // SAFETY: passed on from the caller.
                unsafe { batch.send(engine, counter) }?;
            }
            batch.push(run.local, run.remote, run.bytes);
        }
        // SAFETY: passed on from the caller.
        unsafe { batch.send(engine, counter) }
    }

    /// All pairs.
    pub fn pairs(&self) -> &Normal {
        &self.pairs
    }
}
