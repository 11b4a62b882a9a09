//! Messages that have begun to arrive: their handler has given the destination and waits for the data
//! ([`super::rendezvous`]), or a deferral queue holds them ([`super::deferral`]).

use super::completion_thread::CompletionThread;
use super::wire::{RecordHead, Source};
use super::{Job, Then};
use parking_lot::Mutex;
use portolan_base::error::{Result, fail};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::Instant;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// From the rank with this node index.
    Ring(usize),
    /// With this tag for the data.
    Mpi(u32),
}

#[derive(Debug)]
pub struct InboundMessage {
    pub origin: usize,
    pub to: *mut u8,
    /// Number of bytes that go there, 0 if the handler wants no more data.
    pub len: usize,
    pub(super) name: &'static str,
    pub(super) token: u64,
    pub(super) buffer: Vec<u8>,
    pub(super) then: Then,
    pub(super) deferral: Option<Arc<Deferral>>,
    /// Number in the deferral queue, or 0 if the message was not held.
    pub(super) number: u64,
}

// SAFETY: only the holder uses the address, which stays valid as the handler promised.
unsafe impl Send for InboundMessage {}

/// A message whose data arrives in parts, in order.
#[derive(Debug)]
pub(crate) struct Reassembly {
    pub(super) inbound: InboundMessage,
    pub(super) total: usize,
    pub(super) received: usize,
}

impl Reassembly {
    /// Returns whether these were the last bytes. Fails with `Internal` if they are too many.
    pub fn take(&mut self, bytes: &[u8]) -> Result<bool> {
        let Reassembly { inbound, total, received } = self;
        if *total - *received < bytes.len() {
            fail!(Internal, "rank {} sent more data than {total} bytes", inbound.origin);
        }
        if inbound.len > 0 {
            // SAFETY: the bytes end within `total`. The handler promised that its address is valid for
            // that many, and a buffer has the capacity.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    bytes.as_ptr(),
                    inbound.to.add(*received),
                    bytes.len(),
                );
            }
        }
        *received += bytes.len();
        Ok(received == total)
    }
}

#[derive(Debug)]
pub(super) struct RndvRead {
    pub(super) inbound: InboundMessage,
    pub(super) index: usize,
    pub(super) source: Source,
    pub(super) done: usize,
}

#[derive(Debug)]
pub(super) struct RndvSend {
    pub(super) index: usize,
    pub(super) source: Source,
    pub(super) len: usize,
    pub(super) inbound: u64,
    pub(super) sent: usize,
}

#[derive(Debug, Default)]
pub(crate) struct RndvState {
    pub(super) reads: Vec<RndvRead>,
    pub(super) streams: Vec<RndvSend>,
    /// Messages whose data arrives in fragments, by ring and token, with the origin's token of
    /// requested data. Eager data, in the next records of the ring, has the token 0.
    pub(super) chunks: HashMap<(usize, u64), (Reassembly, Option<u64>)>,
    pub(super) last_landing: u64,
}

impl RndvState {
    #[inline]
    pub(super) fn is_busy(&self) -> bool {
        !self.reads.is_empty() || !self.streams.is_empty()
    }
}

/// Cost in bytes of a held message, besides its header and data.
const OVERHEAD: usize = 128;

#[derive(Debug)]
pub struct Deferral {
    pub(super) polling: AtomicBool,
    pub(super) held: Mutex<HeldMessages>,
    pub(super) count: AtomicUsize,
    /// Held messages whose handler was not yet asked.
    pub(super) fresh: AtomicUsize,
    pub(super) jobs: CompletionThread<Job>,
    /// Unfinished completion handlers on the completion thread.
    pub(super) elsewhere: AtomicUsize,
}

#[derive(Debug, Default)]
pub(super) struct HeldMessages {
    pub(super) queue: VecDeque<HeldMessage>,
    pub(super) last: u64,
    /// By origin: the messages that are not yet in place.
    pub(super) unfinished: HashMap<usize, BTreeSet<u64>>,
    /// By origin: the bytes held, and whether a stop was sent.
    pub(super) bytes: HashMap<usize, (usize, bool)>,
    /// Unanswered fences: origin, last message to wait for, token.
    pub(super) asked: Vec<(usize, u64, u64)>,
}

#[derive(Debug)]
pub(super) struct HeldMessage {
    pub(super) number: u64,
    pub(super) origin: usize,
    pub(super) bytes: usize,
    pub(super) what: HeldKind,
    pub(super) refused: Option<Instant>,
}

/// A copy of a short message.
#[derive(Debug)]
pub struct EagerMessage {
    pub(super) head: RecordHead,
    pub(super) header: Vec<u8>,
    pub(super) data: Vec<u8>,
}

impl EagerMessage {
    pub(super) fn new(head: &RecordHead, header: &[u8], data: &[u8]) -> EagerMessage {
        EagerMessage { head: *head, header: header.to_vec(), data: data.to_vec() }
    }
}

#[derive(Debug)]
pub enum HeldKind {
    Eager(EagerMessage),
    Rts { head: RecordHead, header: Vec<u8>, via: Via, source: Source },
    Delivered(InboundMessage),
}

impl HeldKind {
    pub(super) fn bytes(&self) -> usize {
        OVERHEAD
            + match self {
                HeldKind::Eager(message) => message.header.len() + message.data.len(),
                HeldKind::Rts { header, .. } => header.len(),
                HeldKind::Delivered(_) => 0,
            }
    }

    pub(super) fn message(&self) -> Option<(&RecordHead, &[u8])> {
        match self {
            HeldKind::Eager(EagerMessage { head, header, .. })
            | HeldKind::Rts { head, header, .. } => Some((head, header)),
            HeldKind::Delivered(_) => None,
        }
    }
}
