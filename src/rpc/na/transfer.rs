//! Moving bytes between handles: in chunks, so that a transfer can be cancelled, others
//! get their turn, and what has arrived can be used while the rest moves.

use super::address::Peer;
use super::class::Shared;
use super::context::What;
use super::memory::{self, Mem, not_registered};
use super::wire::CHUNK;
use crate::any_memory::{Span, copy_own};
use crate::error::{Error, ErrorKind};
use crate::memory::shared_bytes;
use crate::path::cma;
use crate::peer::CompletionCounter;
use crate::rpc::failure::{Failure, Result, Status, refuse};
use crate::trace::{About, Call, PathTaken};
use smallvec::SmallVec;
use std::sync::Arc;

/// Chunks under way.
const FLYING: usize = 4;
/// Bytes that move in one step where they move at once.
const STEP: usize = 4 << 20;

/// Which path the bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the peer.
    Put,
    /// From the peer.
    Get,
}

impl Direction {
    /// As copies between processes say it.
    fn across(self) -> cma::Direction {
        match self {
            Direction::Put => cma::Direction::Write,
            Direction::Get => cma::Direction::Read,
        }
    }
}

/// Why bytes do not move, as callers of function shipping know it.
fn reason(error: Error) -> Failure {
    match error.kind() {
        ErrorKind::Handle => Failure::new(Status::ACCESS, error.detail()),
        _ => error.into(),
    }
}

/// A part of a handle's memory.
#[derive(Debug, Clone)]
pub struct Part<'a> {
    /// The handle.
    pub mem: &'a Arc<Mem>,
    /// Where the part begins.
    pub offset: usize,
}

/// A transfer under way.
#[derive(Debug)]
pub(crate) struct Transfer {
    class: Arc<Shared>,
    direction: Direction,
    peer: Peer,
    local: Arc<Mem>,
    local_offset: usize,
    remote: Arc<Mem>,
    remote_offset: usize,
    size: usize,
    started: usize,
    flying: SmallVec<[Arc<CompletionCounter>; FLYING]>,
    ended: Option<Failure>,
    moved: bool,
    /// How the last chunk went.
    path: PathTaken,
}

impl Transfer {
    /// Checks everything; nothing moves yet.
    ///
    /// # Errors
    /// As for [`super::Context::transfer`].
    pub(crate) fn new(
        class: &Arc<Shared>,
        direction: Direction,
        peer: Peer,
        local: Part<'_>,
        remote: Part<'_>,
        size: usize,
    ) -> Result<Transfer> {
        class.check_open()?;
        if !local.mem.is_local() {
            refuse!(INVALID_ARG, "the local handle is for memory of another process");
        }
        if !local.mem.is_registered() || !remote.mem.is_registered() {
            return Err(not_registered());
        }
        let own = peer == Peer::Own;
        if own != remote.mem.is_local() {
            refuse!(INVALID_ARG, "the remote handle is not for memory of the peer");
        }
        if let Peer::Rank(rank) = peer
            && !remote.mem.belongs_to(rank)
        {
            refuse!(INVALID_ARG, "the remote handle is not for memory of rank {rank}");
        }
        let (here, there) = (local.mem.access(), remote.mem.access());
        let (allowed, what) = match direction {
            Direction::Put => (here.readable() && there.writable(), "be put"),
            Direction::Get => (here.writable() && there.readable(), "be got"),
        };
        if !allowed {
            refuse!(
                PERMISSION,
                "bytes cannot {what}: the local handle is {here:?}, the remote one {there:?}"
            );
        }
        local.mem.check(local.offset, size)?;
        remote.mem.check(remote.offset, size)?;
        Ok(Transfer {
            class: class.clone(),
            direction,
            peer,
            local: local.mem.clone(),
            local_offset: local.offset,
            remote: remote.mem.clone(),
            remote_offset: remote.offset,
            size,
            started: 0,
            flying: SmallVec::new(),
            ended: None,
            moved: false,
            path: PathTaken::None,
        })
    }

    /// What the callback is told that the operation was.
    pub(crate) fn what(&self) -> What {
        match self.direction {
            Direction::Put => What::Put,
            Direction::Get => What::Get,
        }
    }

    /// For statistics and traces: what it is to move, and how its first chunks went.
    pub(crate) fn about(&self) -> About {
        let about = About::new(Call::Bulk).moves(self.size);
        match self.peer {
            Peer::Rank(rank) => about.to(rank as usize).by(self.path),
            _ => about,
        }
    }

    /// Starts no further chunk; those under way come to their end.
    pub(crate) fn cancel(&mut self) {
        self.fail(Failure::new(Status::CANCELED, "the transfer was cancelled"));
    }

    fn fail(&mut self, failure: Failure) {
        let expected = failure.status == Status::CANCELED || failure.kind() == ErrorKind::State;
        if self.ended.is_none() && !expected {
            log::error!("a transfer of {} bytes fails: {failure}", self.size);
        }
        self.ended.get_or_insert(failure);
    }

    /// Whether the last step has moved anything.
    pub(crate) fn is_moving(&self) -> bool {
        self.moved
    }

    /// Carries it on; its status when it has ended.
    pub(crate) fn advance(&mut self) -> Option<Status> {
        self.moved = false;
        let mut n = 0;
        while n < self.flying.len() {
            match self.flying[n].check() {
                Ok(false) => n += 1,
                Ok(true) => {
                    self.flying.remove(n);
                    self.moved = true;
                }
                Err(error) => {
                    self.flying.remove(n);
                    self.fail(reason(error));
                }
            }
        }
        if !self.flying.is_empty() && self.class.is_gone() {
            self.give_up();
            self.fail(Failure::new(Status::CANCELED, "the runtime has ended"));
        }
        let mut at_once = 0;
        while self.ended.is_none()
            && self.started < self.size
            && self.flying.len() < FLYING
            && at_once < STEP
        {
            let bytes = CHUNK.min(self.size - self.started);
            match self.start(bytes) {
                Ok(Some(counter)) => self.flying.push(counter),
                Ok(None) => at_once += bytes,
                Err(failure) => self.fail(failure),
            }
            self.started += bytes;
            self.moved = true;
        }
        if !self.flying.is_empty() {
            return None;
        }
        match &self.ended {
            Some(failure) => Some(failure.status),
            None => (self.started == self.size).then_some(Status::SUCCESS),
        }
    }

    /// Waits for no chunk any more. Bytes may still come, so memory of the handle's own is leaked.
    fn give_up(&mut self) {
        self.flying.clear();
        std::mem::forget(self.local.clone());
    }

    /// Starts a chunk; `None` where it is complete already.
    fn start(&mut self, bytes: usize) -> Result<Option<Arc<CompletionCounter>>> {
        let (here, there) = (self.local_offset + self.started, self.remote_offset + self.started);
        let counter = Arc::new(CompletionCounter::default());
        let class = self.class.clone();
        let engine = class.enter()?;
        if let Peer::Remote(connection) = self.peer {
            let Some(dynamic) = &self.class.dynamic else {
                refuse!(NODEV, "the class has no connections");
            };
            let runs: Vec<_> = self.local.pieces(here, bytes).collect();
            let id = self.remote.id();
            let number = self.class.number;
            match self.direction {
                Direction::Put => dynamic.put(connection, number, id, there, &runs, &counter)?,
                Direction::Get => dynamic.get(connection, number, id, there, runs, &counter)?,
            }
            return Ok(Some(counter));
        }
        let spans = memory::spans(&self.local, here, &self.remote, there, bytes);
        match self.peer {
            Peer::Rank(rank) => {
                let Some(engine) = &engine else {
                    refuse!(NODEV, "a class over self reaches nobody else");
                };
                let rank_number = rank as usize;
                let mut mapped = false;
                let borrowed = || {
                    let pid = engine.process_within_reach(rank_number);
                    mapped = pid.is_some_and(|pid| self.copy_borrowed(pid, &spans));
                    mapped
                };
                let (direction, how) = (self.direction.across(), (self.remote.within(), &counter));
                // SAFETY: the local handle keeps its memory valid, and the transfer
                // keeps the handle until the counter is done; its permission was checked.
                let started =
                    unsafe { engine.start_exposed(rank_number, &spans, direction, how, borrowed) };
                if let Err(error) = started {
                    // Parts may be under way: they end before the memory goes.
                    if counter.outstanding() > 0 {
                        log::error!("a transfer to rank {rank} fails: {error:#}");
                        counter.begin();
                        counter.fail(error);
                        return Ok(Some(counter));
                    }
                    return Err(reason(error));
                }
                self.path = match mapped {
                    true => PathTaken::Direct,
                    false if counter.outstanding() > 0 => PathTaken::Message,
                    false => PathTaken::Cma,
                };
            }
            _ => {
                let _inside = self.remote.enter()?;
                for Span { local, remote, bytes } in spans {
                    let (from, to) = match self.direction {
                        Direction::Put => (local, remote),
                        Direction::Get => (remote, local),
                    };
                    // SAFETY: both handles are of this process and live, so both sides are valid.
                    unsafe { shared_bytes::copy(from as *const u8, to as *mut u8, bytes) };
                }
            }
        }
        if counter.outstanding() > 0 {
            return Ok(Some(counter));
        }
        counter.check().map_err(reason)?;
        Ok(None)
    }

    /// Copies from or to memory that the peer, a process of the node, lends; false where
    /// it does not.
    fn copy_borrowed(&self, pid: u32, spans: &[Span]) -> bool {
        let Some(there) = self.remote.borrowed(pid) else { return false };
        let mapped = |span: &Span| {
            let remote = there.at(span.remote, span.bytes)? as usize;
            Some(Span { remote, ..*span })
        };
        let Some(spans) = spans.iter().map(mapped).collect::<Option<Vec<_>>>() else {
            return false;
        };
        // SAFETY: the local handle keeps its memory valid, and the mapping holds what lies
        // within the loan. The peer's own accesses are its program's business, as with any
        // transfer.
        unsafe { copy_own(&spans, self.direction.across()) };
        true
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        if !self.flying.is_empty() {
            log::warn!("a transfer of {} bytes is dropped under way", self.size);
            self.give_up();
        }
    }
}
