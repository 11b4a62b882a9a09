//! Outgoing frames of a connection: those that do not fit into the stream wait, in order.
//!
//! Short frames can be held, so that one write transmits several ([`super::deferred_output`]). They
//! precede all later frames.
//!
//! A frame is the length of its body (4 bytes, little-endian), a message header and the body. Short
//! bodies are copied if they have to wait. Bodies in registered memory are not, unless the owner
//! withdraws the memory before they have been written ([`Lease`]). This holds for a
//! put too, because a peer can answer it before it has read the bytes.

use super::stream::{Stream, after, run_of, total};
use crate::na::memory::{Copied, InUse, Lease, Run};
use crate::na::wire::{HEAD, Head};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Size of the part of a frame that precedes its body.
pub(super) const FRAME: usize = 4 + HEAD;
/// Maximum size of the first part of a frame. It contains the body if both fit.
const SHORT: usize = 256;
/// Maximum number of bytes that are held.
const MOST_HELD: usize = 16 << 10;
/// Maximum size of the buffer for held bytes between two uses.
const MOST_KEPT: usize = 2 << 10;

enum Piece {
    Bytes(Copied),
    Lent(Arc<Lease>),
}

#[derive(Default)]
pub(super) struct Output {
    /// Frames that were not written yet. Nothing is held while others wait.
    held: Vec<u8>,
    queue: VecDeque<Piece>,
    copied: Arc<AtomicUsize>,
}

impl Output {
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.held.is_empty()
    }

    pub fn waiting(&self) -> (usize, usize) {
        (self.queue.len(), self.copied.load(Ordering::Relaxed))
    }

    pub fn clear(&mut self) {
        self.queue.clear();
        self.held.clear();
    }

    /// Writes what fits, and queues the rest. The body consists of `bytes`, which are copied if
    /// they wait, and runs of `memory`, which are not. If `hold` is set, the frame may be held.
    pub fn post(
        &mut self,
        stream: &dyn Stream,
        head: &Head,
        bytes: &[u8],
        memory: Option<(InUse, Vec<Run>)>,
        hold: bool,
    ) -> io::Result<()> {
        let runs = memory.as_ref().map_or(&[][..], |(_, runs)| runs);
        let mut start = [0; SHORT];
        start[..4].copy_from_slice(&((bytes.len() + total(runs)) as u32).to_le_bytes());
        start[4..FRAME].copy_from_slice(&head.bytes());
        let mut frame: SmallVec<[Run; 8]> = SmallVec::new();
        let fits = self.held.len() + FRAME + bytes.len() <= MOST_HELD;
        if fits && (hold || !self.held.is_empty()) && runs.is_empty() && self.queue.is_empty() {
            self.held.extend_from_slice(&start[..FRAME]);
            self.held.extend_from_slice(bytes);
            return if hold { Ok(()) } else { self.transmit(stream) };
        }
        // Writing one part costs less than writing two.
        if let Some(room) = start[FRAME..].get_mut(..bytes.len()) {
            room.copy_from_slice(bytes);
            frame.push(run_of(&start[..FRAME + bytes.len()]));
        } else {
            frame.extend([run_of(&start[..FRAME]), run_of(bytes)]);
        }
        frame.extend_from_slice(runs);
        self.transmit(stream)?;
        let written = match self.queue.is_empty() {
            // SAFETY: `start` and `bytes` are borrowed, and `memory` keeps its runs valid.
            true => unsafe { stream.write(&frame) }?,
            false => 0,
        };
        if written == total(&frame) {
            return Ok(());
        }
        let copied = FRAME + bytes.len();
        if written < copied {
            let front = &start[..FRAME];
            let rest: Vec<u8> = front.iter().chain(bytes).skip(written).copied().collect();
            self.queue.push_back(Piece::Bytes(Copied::new(rest, &self.copied)));
        }
        if let Some((guard, runs)) = memory {
            let left = after(&runs, written.saturating_sub(copied)).collect();
            self.queue.push_back(Piece::Lent(guard.lend(left, &self.copied)));
        }
        Ok(())
    }

    /// Writes what was held, and queues what does not fit. Fails if the stream is broken.
    pub fn transmit(&mut self, stream: &dyn Stream) -> io::Result<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        // SAFETY: the bytes are borrowed.
        let written = unsafe { stream.write(&[run_of(&self.held)]) }?;
        if written < self.held.len() {
            let rest = self.held[written..].to_vec();
            self.queue.push_back(Piece::Bytes(Copied::new(rest, &self.copied)));
        }
        self.held.clear();
        // Many connections may be idle.
        if self.held.capacity() > MOST_KEPT {
            self.held = Vec::new();
        }
        Ok(())
    }

    /// Writes what fits. Returns whether anything was written. Fails if the stream is broken.
    pub fn flush(&mut self, stream: &dyn Stream) -> io::Result<bool> {
        self.transmit(stream)?;
        let mut busy = false;
        while let Some(piece) = self.queue.front_mut() {
            let (written, all) = match piece {
                Piece::Bytes(copied) => {
                    let left = copied.left();
                    // SAFETY: the queue owns the bytes.
                    let written = unsafe { stream.write(&[left]) }?;
                    copied.advance(written);
                    (written, written == left.len)
                }
                // SAFETY: the loan keeps its memory valid during the call.
                Piece::Lent(loan) => loan.write(|runs| unsafe { stream.write(runs) })?,
            };
            busy |= written > 0;
            if !all {
                break;
            }
            self.queue.pop_front();
        }
        Ok(busy)
    }
}
