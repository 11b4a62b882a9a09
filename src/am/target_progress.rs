//! The target's side: polling, and what each record asks for.
//!
//! A record comes from a ring, from MPI, or from this rank itself; [`super::handler_dispatch`]
//! runs its handler. Eager data is copied there, also where it comes in fragments in the records
//! that follow ([`RecordKind::EagerFirst`]). Long data comes by [`super::rendezvous`].

use super::Am;
use super::HandlerId;
use super::handler_dispatch::fatal;
use super::rendezvous::{Reassembly, RndvState, Via};
use super::shm_transport::ShmTransport;
use super::state::{AmState, Awaited, Dispatch, RingState};
use super::wire::{self, RecordHead, RecordKind};
use crate::core::handler;
use crate::error::{Result, fail};
use crate::watchdog::{self, Event};
use parking_lot::MutexGuard;
use std::sync::atomic::Ordering;

/// Records of one ring that are handled in one poll.
const PER_POLL: usize = 64;
/// Checking a ring costs less than the lock under which it is done: a poll checks empty rings
/// this often, while there are few of them.
const LOOKS: usize = 8;
const FEW: usize = 4;

impl AmState {
    /// Messages that this rank has sent.
    pub(crate) fn all_sent(&self) -> u64 {
        let in_rings = self.node.as_ref().map_or(0, ShmTransport::messages);
        self.sent.load(Ordering::Acquire) + in_rings
    }

    /// Messages that were handled here.
    pub(crate) fn all_handled(&self) -> u64 {
        self.handled.load(Ordering::Acquire) + self.handled_on_thread.load(Ordering::Acquire)
    }

    /// Sends a record that is no message; never waits.
    pub(super) fn send_record(&self, am: &Am, target: usize, parts: &[&[u8]]) -> Result<()> {
        if target == am.rank() {
            let (head, rest) = wire::split(parts[0])?;
            return self.control(am, target, &head, rest);
        }
        match self.node.as_ref().and_then(|node| Some((node, node.index_of(target)?))) {
            Some((node, index)) => node.send(am, index, parts, (false, false)),
            None => am.send_control(target, parts),
        }
    }

    /// A record of rank `from` that tells this one something.
    pub(crate) fn control(
        &self,
        am: &Am,
        from: usize,
        head: &RecordHead,
        rest: &[u8],
    ) -> Result<()> {
        match head.kind()? {
            RecordKind::GateFence | RecordKind::GateStop => self.at_gate(am, from, head),
            RecordKind::Fin => self.source_left(am, wire::source(rest)?.0.token),
            RecordKind::Ack => {
                let awaited = self.tokens.lock().remove(head.token);
                match awaited {
                    Some(Awaited::Completion(signal)) => signal.tell(am),
                    _ => fail!(Internal, "rank {from} has handled a message that was not sent"),
                }
                Ok(())
            }
            kind => fail!(Internal, "{kind:?} is no answer"),
        }
    }

    /// Handles an eager message.
    #[inline]
    pub(super) fn eager(
        &self,
        am: &Am,
        origin: usize,
        head: &RecordHead,
        rest: &[u8],
    ) -> Result<()> {
        let (header, data) = wire::header(head, rest)?;
        if data.len() as u64 != head.len {
            fail!(Internal, "rank {origin} sent {} bytes for {}", data.len(), head.len);
        }
        self.arrive_eager(am, origin, head, header, data)
    }

    /// Handles a record of a ring.
    #[inline]
    fn record(&self, am: &Am, work: &mut RndvState, index: usize, record: &[u8]) -> Result<()> {
        let (head, rest) = wire::split(record)?;
        let origin = self.node.as_ref().map_or(0, |node| node.rank_of(index));
        match head.kind()? {
            RecordKind::Eager => self.eager(am, origin, &head, rest),
            RecordKind::Rts => {
                let from = (Via::Ring(index), origin);
                // Only MPI's data is to be received.
                self.announced(am, work, from, &head, rest).map(|_| ())
            }
            RecordKind::Cts => self.clear_to_send(work, index, &head, rest),
            RecordKind::RndvFragment => self.fragment(am, work, origin, &head, rest),
            RecordKind::EagerFirst => {
                let (header, _) = wire::header(&head, rest)?;
                let reassembly = self.arrive_unfilled(am, origin, &head, header)?;
                let reassembly = Reassembly::new(reassembly, head.len as usize);
                if work.reassembly.insert(index, reassembly).is_some() {
                    fail!(Internal, "rank {origin} began a message within another");
                }
                Ok(())
            }
            RecordKind::EagerFragment => {
                let Some(reassembly) = work.reassembly.get_mut(&index) else {
                    fail!(Internal, "rank {origin} sent data that belongs to no message");
                };
                if !reassembly.take(rest)? {
                    return Ok(());
                }
                match work.reassembly.remove(&index) {
                    Some(reassembly) => self.finish(am, reassembly.whole()),
                    None => Ok(()),
                }
            }
            RecordKind::Ack | RecordKind::Fin | RecordKind::GateFence | RecordKind::GateStop => {
                self.control(am, origin, &head, rest)
            }
        }
    }

    /// Handles what is there; true if anything happened. Where another thread is at
    /// it, or this one already, returns at once.
    #[inline]
    pub(crate) fn poll(&self, am: &Am) -> Result<bool> {
        if self.node.is_none()
            && self.sent_locally.load(Ordering::Relaxed) == 0
            && self.completion_thread.is_idle()
            && self.behind_gates.load(Ordering::Relaxed) == 0
        {
            return Ok(false);
        }
        let Some(mut dispatch) = self.dispatch.try_lock() else { return Ok(false) };
        let Dispatch { incoming, work } = &mut *dispatch;
        let mut busy = false;
        if let (Some(node), Some(incoming)) = (&self.node, incoming) {
            incoming.look_for_new(node);
            let looks = if incoming.open() <= FEW { LOOKS } else { 1 };
            for _ in 0..looks {
                for n in 0..incoming.open() {
                    let (index, reader) = incoming.ring(n);
                    for i in 0..PER_POLL {
                        let Some(record) = reader.peek() else { break };
                        busy = true;
                        if i == 0 {
                            watchdog::note(Event::Message, node.rank_of(index));
                        }
                        let result = self.record(am, work, index, record);
                        reader.advance();
                        result?;
                    }
                }
                if busy {
                    break;
                }
            }
            if work.is_busy() {
                busy |= self.progress_rndv(am, work)?;
            }
            busy |= node.send_all_kept();
        }
        if self.sent_locally.load(Ordering::Relaxed) > 0 {
            busy |= self.run_local(am)?;
        }
        if self.behind_gates.load(Ordering::Acquire) > 0 {
            busy |= self.release(am, work)?;
        }
        drop(dispatch);
        if self.behind_gates.load(Ordering::Relaxed) > 0 && handler::running().is_none() {
            busy |= self.run_jobs(am)?;
        }
        if !am.may_use_threads() && handler::running().is_none() {
            busy |= self.completion_thread.run_here(am);
        }
        Ok(busy)
    }

    /// Runs messages that handlers sent to their own rank.
    fn run_local(&self, am: &Am) -> Result<bool> {
        let mut busy = false;
        for _ in 0..PER_POLL {
            let Some(local) = self.local.lock().pop_front() else { break };
            self.sent_locally.fetch_sub(1, Ordering::Relaxed);
            busy = true;
            self.deliver_local(am, local.handler, &local.header, &local.data, local.token)?;
        }
        Ok(busy)
    }

    /// Handles a message of this rank to itself, under the dispatcher's lock.
    pub(super) fn deliver_local(
        &self,
        am: &Am,
        handler: HandlerId,
        header: &[u8],
        data: &[u8],
        token: u64,
    ) -> Result<()> {
        let head = RecordHead::message(RecordKind::Eager, handler, header.len(), data.len(), token);
        self.arrive_eager(am, am.rank(), &head, header, data)
    }

    /// The dispatcher's lock, if it is free.
    pub(super) fn try_dispatch(&self) -> Option<MutexGuard<'_, Dispatch>> {
        self.dispatch.try_lock()
    }

    /// No thread polls any more: handles messages of ranks that still took this one for attended.
    pub(crate) fn look_again(&self, am: &Am) {
        while self.rings() == RingState::Ready {
            match self.poll(am) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => fatal(&error),
            }
        }
    }

    /// Whether a record waits for room in a ring: no doorbell rings for that.
    pub(crate) fn is_held_up(&self) -> bool {
        self.held_up.load(Ordering::Relaxed) || self.node.as_ref().is_some_and(ShmTransport::keeps)
    }

    /// Whether nothing is collected that grows old.
    pub(crate) fn collects_nothing(&self) -> bool {
        self.hooks.read().is_empty()
    }

    /// Ends the completion thread, when it has nothing to do any more.
    pub(crate) fn stop(&self) {
        self.completion_thread.stop();
    }

    /// What there is to do.
    pub(crate) fn rings(&self) -> RingState {
        let Some(dispatch) = self.dispatch.try_lock() else {
            // A face's lock may be held for long.
            let locked = self.locker.load(Ordering::Acquire) != 0;
            return if locked { RingState::Empty } else { RingState::Busy };
        };
        let in_ring = match (&self.node, &dispatch.incoming) {
            (Some(node), Some(incoming)) => incoming.ready(node),
            _ => false,
        };
        let local = self.sent_locally.load(Ordering::Relaxed) > 0;
        if in_ring || local || self.gates_are_ready() { RingState::Ready } else { RingState::Empty }
    }
}
