//! The target's side: polling, and the dispatch of records from a ring, MPI, or this rank itself.
//! [`super::handler_dispatch`] runs their handlers and copies eager data, which may arrive in
//! fragments ([`RecordKind::EagerFirst`]). Long data arrives by [`super::rendezvous`].

use super::Am;
use super::inbound::{Reassembly, RndvState, Via};
use super::shm_transport::ShmTransport;
use super::state::{AmState, AwaitedSignal, Dispatch, RingState};
use super::wire::{self, RecordHead, RecordKind};
use crate::core::handler;
use portolan_base::error::{Result, fail};
use portolan_base::wait::watchdog::{self, ProgressEvent};
use std::sync::atomic::Ordering;

const PER_POLL: usize = 64;
/// Checks of empty rings in a poll, if at most [`FEW`] are open: cheaper than the lock.
const POLLS: usize = 8;
const FEW: usize = 4;

impl AmState {
    /// Returns how many messages were sent to each target, or to all if they are counted together.
    pub fn sent_by_target(&self) -> Vec<u64> {
        let mut sent: Vec<u64> = self.sent.iter().map(|n| n.load(Ordering::Acquire)).collect();
        for (target, messages) in self.node.iter().flat_map(ShmTransport::messages) {
            sent[target % self.sent.len()] += messages;
        }
        sent
    }

    pub fn all_sent(&self) -> u64 {
        self.sent_by_target().iter().sum()
    }

    pub(crate) fn all_handled(&self) -> u64 {
        self.handled.load(Ordering::Acquire) + self.handled_on_thread.load(Ordering::Acquire)
    }

    /// Sends a control record, which is not counted as a message. Never waits.
    pub(super) fn send_record(&self, am: &Am, target: usize, parts: &[&[u8]]) -> Result<()> {
        if target == am.rank() {
            let (head, rest) = wire::split(parts[0])?;
            return self.control(am, target, &head, rest);
        }
        match self.on_node(target) {
            Some((node, index)) => node.send(am, index, parts, false, || false),
            None => am.send_control(target, parts),
        }
    }

    /// Sends a control record that consists of a token.
    pub(super) fn send_token(
        &self,
        am: &Am,
        target: usize,
        kind: RecordKind,
        token: u64,
    ) -> Result<()> {
        let head = RecordHead { token, ..RecordHead::new(kind) };
        self.send_record(am, target, &[bytemuck::bytes_of(&head)])
    }

    pub fn control(&self, am: &Am, from: usize, head: &RecordHead, rest: &[u8]) -> Result<()> {
        match head.kind()? {
            RecordKind::DeferralFence => self.at_fence(am, from, head),
            RecordKind::DeferralStop => {
                self.towards[from].stopped.store(head.token != 0, Ordering::Release);
                Ok(())
            }
            RecordKind::Fin => self.source_left(am, wire::source(rest)?.0.token),
            RecordKind::Ack => {
                let awaited = self.tokens.lock().remove(head.token);
                match awaited {
                    Some(AwaitedSignal::Completion(signal)) => signal.notify(am),
                    _ => fail!(Internal, "rank {from} has handled a message that was not sent"),
                }
                Ok(())
            }
            kind => fail!(Internal, "{kind:?} is not a reply"),
        }
    }

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
            fail!(Internal, "rank {origin} sent {} bytes, expected {}", data.len(), head.len);
        }
        self.arrive_eager(am, origin, head, header, data)
    }

    #[inline]
    fn record(&self, am: &Am, work: &mut RndvState, index: usize, record: &[u8]) -> Result<()> {
        let (head, rest) = wire::split(record)?;
        let origin = self.node.as_ref().map_or(0, |node| node.rank_of(index));
        match head.kind()? {
            RecordKind::Eager => self.eager(am, origin, &head, rest),
            RecordKind::Rts => {
                let from = (Via::Ring(index), origin);
                // Only data that comes over MPI needs a receive.
                self.announced(am, work, from, &head, rest).map(|_| ())
            }
            RecordKind::Cts => self.clear_to_send(work, index, &head, rest),
            RecordKind::EagerFirst => {
                let (header, _) = wire::header(&head, rest)?;
                let inbound = self.arrive(am, origin, &head, header)?;
                let reassembly = Reassembly { inbound, total: head.len as usize, received: 0 };
                if work.chunks.insert((index, 0), (reassembly, None)).is_some() {
                    fail!(Internal, "rank {origin} began a message within another");
                }
                Ok(())
            }
            RecordKind::EagerFragment | RecordKind::RndvFragment => {
                self.fragment(am, work, (index, origin), &head, rest)
            }
            RecordKind::HelpOffer => self.help(am, origin, &head, rest),
            RecordKind::Ack
            | RecordKind::Fin
            | RecordKind::DeferralFence
            | RecordKind::DeferralStop => self.control(am, origin, &head, rest),
        }
    }

    /// Returns whether anything happened, or false at once if any thread polls already.
    #[inline]
    pub fn poll(&self, am: &Am) -> Result<bool> {
        if self.node.is_none()
            && self.sent_locally.load(Ordering::Relaxed) == 0
            && self.completion_thread.is_idle()
            && self.behind_deferrals.load(Ordering::Relaxed) == 0
        {
            return Ok(false);
        }
        let Some(mut dispatch) = self.dispatch.try_lock() else { return Ok(false) };
        let Dispatch { incoming, work } = &mut *dispatch;
        let mut busy = false;
        if let Some(node) = &self.node {
            incoming.look_for_new(node);
            let polls = if incoming.open() <= FEW { POLLS } else { 1 };
            for _ in 0..polls {
                for n in 0..incoming.open() {
                    let (index, reader) = incoming.ring(n);
                    for i in 0..PER_POLL {
                        let Some(record) = reader.peek() else { break };
                        busy = true;
                        if i == 0 {
                            watchdog::note(ProgressEvent::Message, node.rank_of(index));
                        }
                        let (size, result) = (record.len(), self.record(am, work, index, record));
                        reader.advance(size);
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
        if self.behind_deferrals.load(Ordering::Acquire) > 0 {
            busy |= self.release(am, work)?;
        }
        drop(dispatch);
        if self.behind_deferrals.load(Ordering::Relaxed) > 0 && handler::running().is_none() {
            busy |= self.run_jobs(am)?;
        }
        if !am.may_use_threads() && handler::running().is_none() {
            busy |= self.completion_thread.run_next(|job| job(am));
        }
        Ok(busy)
    }

    fn run_local(&self, am: &Am) -> Result<bool> {
        let mut busy = false;
        for _ in 0..PER_POLL {
            let Some(local) = self.local.lock().pop_front() else { break };
            self.sent_locally.fetch_sub(1, Ordering::Relaxed);
            busy = true;
            self.arrive_eager(am, am.rank(), &local.head, &local.header, &local.data)?;
        }
        Ok(busy)
    }

    /// For messages whose senders still saw this rank as attended after its last thread stopped.
    pub(crate) fn poll_again(&self, am: &Am) {
        while self.rings() == RingState::Ready {
            match self.poll(am) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => error.end_job(),
            }
        }
    }

    /// Returns whether a record waits for room in a ring, which no doorbell signals.
    pub fn is_held_up(&self) -> bool {
        self.held_up.load(Ordering::Relaxed) || self.node.as_ref().is_some_and(ShmTransport::keeps)
    }

    /// Without flush hooks, no collected items can age.
    pub(crate) fn collects_nothing(&self) -> bool {
        self.hooks.read().is_empty()
    }

    pub fn stop(&self) {
        self.completion_thread.stop();
    }

    pub fn rings(&self) -> RingState {
        let Some(dispatch) = self.dispatch.try_lock() else {
            // The lock may be held for long, and its holder polls when it unlocks.
            let locked = self.locker.load(Ordering::Acquire) != 0;
            return if locked { RingState::Empty } else { RingState::Busy };
        };
        let in_ring = self.node.as_ref().is_some_and(|node| dispatch.incoming.ready(node));
        let local = self.sent_locally.load(Ordering::Relaxed) > 0;
        if in_ring || local || self.deferrals_are_ready() {
            RingState::Ready
        } else {
            RingState::Empty
        }
    }
}
