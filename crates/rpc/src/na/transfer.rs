//! Transfers between memory handles, in chunks: a transfer can be cancelled, others proceed
//! meanwhile, and the receiver can use the first bytes while the rest is in flight.

use super::address::Peer;
use super::class::Shared;
use super::context::What;
use super::memory::{self, Mem, not_registered};
use super::plugin::Chunk;
use super::resting::Round;
use super::wire::CHUNK;
use crate::failure::{Failure, Result, Status, refuse};
use crate::na::limited::limited;
use portolan_base::error::{Error, ErrorKind};
use portolan_base::trace::{Call, CallInfo, PathTaken};
use portolan_engine::any_memory::{Direction, Span};
use portolan_engine::core::peer::CompletionCounter;
use portolan_engine::memory::registered::Table;
use portolan_engine::memory::runs::scatter;
use portolan_engine::memory::shared_bytes;
use portolan_engine::memory::shm_export::Mapped;
use portolan_engine::path::kernel;
use smallvec::SmallVec;
use std::sync::Arc;

const FLYING: usize = 4;
/// Bytes per step if chunks complete immediately.
const STEP: usize = 4 << 20;

#[derive(Debug, Clone)]
pub struct Part<'a> {
    pub mem: &'a Arc<Mem>,
    pub offset: usize,
}

/// Returns the peer to ask for the memory of `remote`. If the peer is another class of this
/// process, this is the process itself. A peer that is not connected refuses the request if it does
/// not own the memory. Returns `INVALID_ARG` if the memory does not belong to the peer, for example
/// if a client has sent a handle of this process back.
fn peer_with(class: &Shared, peer: Peer, remote: &Mem) -> Result<Peer> {
    if remote.is_local() == (peer == Peer::Own) {
        return Ok(peer);
    }
    let of_this_process = match (peer, &class.plugin) {
        (Peer::Remote(n), Some(plugin)) => plugin.is_of_this_process(n),
        _ => Some(false),
    };
    match of_this_process {
        Some(true) => Ok(Peer::Own),
        None => Ok(peer),
        Some(false) => refuse!(INVALID_ARG, "the remote handle is not for memory of the peer"),
    }
}

#[derive(Debug)]
pub struct Transfer {
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
    /// The round of its rest.
    rests: Option<Round>,
    ended: Option<Failure>,
    moved: bool,
    path: PathTaken,
}

impl Transfer {
    /// Validates a transfer without moving any bytes. Fails like [`super::Context::transfer`].
    pub fn new(
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
        let peer = peer_with(class, peer, remote.mem)?;
        if let Peer::Rank(rank) = peer
            && !remote.mem.belongs_to(rank)
        {
            refuse!(INVALID_ARG, "the remote handle is not for memory of rank {rank}");
        }
        let (here, there) = (local.mem.access(), remote.mem.access());
        if !here.allows(direction.turned()) || !there.allows(direction) {
            let what = if direction == Direction::Put { "put" } else { "got" };
            refuse!(
                PERMISSION,
                "bytes cannot be {what}: the local handle is {here:?}, the remote one {there:?}"
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
            rests: None,
            ended: None,
            moved: false,
            path: PathTaken::None,
        })
    }

    pub fn what(&self) -> What {
        match self.direction {
            Direction::Put => What::Put,
            Direction::Get => What::Get,
        }
    }

    /// Returns the trace record: size, target, and the path of the chunks so far.
    pub fn call_info(&self) -> CallInfo {
        let call_info = CallInfo::new(Call::Bulk).moves(self.size);
        match self.peer {
            Peer::Rank(rank) => call_info.to(rank as usize).by(self.path),
            _ => call_info,
        }
    }

    /// Converts an engine error into a failure with the status that function shipping uses for it.
    fn reason(&self, error: Error) -> Failure {
        match (error.kind(), self.peer) {
            (ErrorKind::Handle, _) => Failure::new(Status::ACCESS, error.detail()),
            (ErrorKind::Mpi, Peer::Remote(_)) => Failure::new(Status::HOSTUNREACH, error.detail()),
            _ => error.into(),
        }
    }

    /// Cancels the transfer: no further chunk starts, and chunks in flight complete.
    pub fn cancel(&mut self) {
        self.fail(Failure::new(Status::CANCELED, "the transfer was cancelled"));
    }

    fn fail(&mut self, failure: Failure) {
        let expected = failure.status() == Status::CANCELED || failure.kind() == ErrorKind::State;
        if self.ended.is_none() && !expected {
            limited!(Error, "a transfer of {} bytes fails: {failure}", self.size);
        }
        self.ended.get_or_insert(failure);
    }

    pub fn is_moving(&self) -> bool {
        self.moved
    }

    /// Advances the transfer. Returns its status once it has ended.
    pub fn advance(&mut self) -> Option<Status> {
        let round = self.class.wake_source.round();
        let ended = self.advance_chunks();
        let rests = ended.is_none() && self.waits_for_peer();
        self.rests = self.class.wake_source.rest(self.rests, rests.then_some(round));
        ended
    }

    /// Returns whether only a message of a connected peer can advance the transfer.
    fn waits_for_peer(&self) -> bool {
        let no_more = self.ended.is_some() || self.started == self.size;
        let is_full = self.flying.len() == FLYING || no_more && !self.flying.is_empty();
        is_full && matches!(self.peer, Peer::Remote(_)) && self.class.wakes()
    }

    fn advance_chunks(&mut self) -> Option<Status> {
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
                    self.fail(self.reason(error));
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
            Some(failure) => Some(failure.status()),
            None => (self.started == self.size).then_some(Status::SUCCESS),
        }
    }

    /// Stops waiting for the chunks in flight. Their bytes may still arrive, so memory that the
    /// local handle owns is leaked.
    fn give_up(&mut self) {
        self.flying.clear();
        std::mem::forget(self.local.clone());
    }

    /// Starts a chunk. Returns `None` if it has completed already.
    fn start(&mut self, bytes: usize) -> Result<Option<Arc<CompletionCounter>>> {
        let (here, there) = (self.local_offset + self.started, self.remote_offset + self.started);
        if let (Direction::Get, Some(data)) = (self.direction, self.remote.data()) {
            let data = &data[there..there + bytes];
            // SAFETY: the local handle keeps its memory valid, and its permission was checked.
            unsafe { scatter(data, self.local.chunks(here, bytes)) };
            return Ok(None);
        }
        let counter = Arc::new(CompletionCounter::default());
        let class = self.class.clone();
        let engine = class.enter()?;
        if let Peer::Remote(connection) = self.peer {
            let Some(plugin) = &class.plugin else {
                refuse!(NODEV, "the class has no connections");
            };
            let process = self.remote.shm_key().and_then(|_| plugin.process_of(connection));
            if let Some(mapped) = process.and_then(|pid| self.remote.borrowed(pid))
                && let Some(_copying) = self.remote.begin_copy(mapped)
            {
                let spans = memory::spans(&self.local, here, &self.remote, there, bytes);
                if self.copy_mapped(mapped, &spans) {
                    return Ok(None);
                }
            }
            let chunk = Chunk {
                direction: self.direction,
                id: self.remote.id(),
                offset: there,
                local: self.local.id(),
                runs: self.local.chunks(here, bytes).collect(),
                shm_key: self.local.shm_key(),
            };
            plugin.transfer(&class, connection, chunk, &counter)?;
            return Ok(Some(counter));
        }
        let spans = memory::spans(&self.local, here, &self.remote, there, bytes);
        match self.peer {
            Peer::Rank(rank) => {
                let Some(engine) = &engine else {
                    refuse!(NODEV, "a class over self reaches only its own process");
                };
                let rank_number = rank as usize;
                let mut mapped = false;
                let borrowed = || {
                    let pid = engine.process_within_reach(rank_number);
                    let there = pid.and_then(|pid| self.remote.borrowed(pid));
                    mapped = there.is_some_and(|there| self.copy_mapped(there, &spans));
                    mapped
                };
                // The transfer is recorded as one call, with all its bytes.
                let _own = engine.observer().exclude_calls();
                let (direction, how) = (self.direction, (self.remote.within(), &counter));
                let digest = |table: &Table, owner| self.remote.digest(table, owner);
                // SAFETY: the local handle keeps its memory valid, and the transfer keeps the
                // handle until the counter is done. The handle's permission was checked.
                let started = unsafe {
                    engine.start_registered(rank_number, &spans, direction, how, digest, borrowed)
                };
                if let Err(error) = started {
                    // Parts that are in flight must end before the memory is released.
                    if counter.outstanding() > 0 {
                        limited!(Error, "a transfer to rank {rank} fails: {error:#}");
                        counter.begin();
                        counter.fail(error);
                        return Ok(Some(counter));
                    }
                    return Err(self.reason(error));
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
                    // SAFETY: both handles are this process's and alive, so both ranges are valid.
                    unsafe { shared_bytes::copy(from as *const u8, to as *mut u8, bytes) };
                }
            }
        }
        if counter.outstanding() > 0 {
            return Ok(Some(counter));
        }
        counter.check().map_err(|error| self.reason(error))?;
        Ok(None)
    }

    /// Copies to or from exported memory of the peer, which its registration keeps valid meanwhile.
    /// Returns false if the mapping lacks a span.
    fn copy_mapped(&self, mapped: &Mapped, spans: &[Span]) -> bool {
        let Some(spans) = memory::to_mapped(mapped, spans) else { return false };
        // SAFETY: the local handle keeps its memory valid, and the mapping covers the spans. As
        // always, the program must synchronise with the peer's own accesses.
        unsafe { kernel::copy_spans(spans, self.direction) };
        true
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.rests = self.class.wake_source.rest(self.rests, None);
        if !self.flying.is_empty() {
            log::warn!("a transfer of {} bytes is dropped while in progress", self.size);
            self.give_up();
        }
    }
}
