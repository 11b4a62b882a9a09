//! Schedules for the message path: which blocks have a message of their own, and which share one.
//!
//! A large shape or a long run is one message, packed or sent straight from memory. Short runs and
//! the blocks of small shapes share messages that list them. All addresses were checked when the
//! composition was mapped.

use super::normalize::Normal;
use super::part::{Piece, Run};
use portolan_engine::error::{Result, reserve};
use portolan_engine::layout::Shape;
use portolan_engine::memory::slab::Slab;
use portolan_engine::path::Path;
use portolan_engine::path::two_sided::blocks::Batch;
use portolan_engine::peer::CompletionCounter;
use portolan_engine::runtime::Engine;
use portolan_engine::transfer::TransferKind;
use std::sync::Arc;

/// Shapes of at most this many blocks are sent as runs.
const SMALL: usize = 64;

/// The messages to one rank.
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
    /// Returns `Memory` if the list of runs that share messages cannot be allocated.
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

    /// Sends all messages. `counter` counts the messages that still read local memory on return.
    ///
    /// # Safety
    /// The local bytes must stay valid and unchanged until the counter is done, and the segments
    /// must exist.
    pub unsafe fn start(
        &self,
        engine: &Engine,
        target: usize,
        counter: &Arc<CompletionCounter>,
    ) -> Result<()> {
        engine.order_before(target, Path::Message)?;
        let two_sided = engine.two_sided()?;
        for Piece { local, remote, shape } in &self.alone {
            // SAFETY: the caller keeps the local bytes valid until the counter is done. The remote
            // bytes were checked when the composition was mapped.
            unsafe { two_sided.put(engine, target, *remote, *local as *const u8, shape, counter) }?;
        }
        let mut batch = Batch::new(TransferKind::Put, target);
        for run in &self.together {
            if !batch.has_room(run.bytes, engine.config.chunk_bytes) {
                // SAFETY: the caller keeps the local bytes of all runs valid until the counter is
                // done.
                unsafe { batch.send(engine, counter) }?;
            }
            batch.push(run.local, run.remote, run.bytes);
        }
        // SAFETY: the caller keeps the local bytes of all runs valid until the counter is done.
        unsafe { batch.send(engine, counter) }
    }

    /// Returns all pairs.
    pub fn pairs(&self) -> &Normal {
        &self.pairs
    }
}
