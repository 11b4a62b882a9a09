//! Messages of a class: sending within the flow-control windows, reception, and matching.
//!
//! An unexpected receive takes the oldest message of the class. Expected messages are matched by
//! source and tag; early ones are kept until their receive is posted.
//!
//! No lock is held during a send, which may block and make progress, which takes the same locks.

use super::{MAX_EXPECTED, MAX_TAG, Message, Pending, Posted, Shared, kept};
use crate::failure::{Result, Status, refuse};
use crate::na::address::{Address, Peer, index_of};
use crate::na::context::{Callback, ContextShared, Event, What};
use crate::na::flow::{Flow, OF_CONNECTION, OnSent, QueuedMessage};
use crate::na::limited::limited;
use crate::na::wire::{HEAD, Head, Kind};
use parking_lot::Mutex;
use portolan_engine::am::{Data, Signals};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Shared {
    // -------------------------------------------------------------- sending

    pub(in crate::na) fn with_flow<R>(
        &self,
        peer: Peer,
        body: impl FnOnce(&Flow) -> R,
    ) -> Option<R> {
        match peer {
            Peer::Own => None,
            Peer::Rank(rank) => self.flows.get(rank as usize).map(body),
            Peer::Remote(n) => {
                let flows = self.remote_flows.read();
                let (_, flow) = flows.get(index_of(n))?.as_ref().filter(|(of, _)| *of == n)?;
                Some(body(flow))
            }
        }
    }

    /// Creates the flow-control state of a connection, unless it exists.
    pub(in crate::na) fn begin_flow(&self, n: u32) {
        let (mut flows, index) = (self.remote_flows.write(), index_of(n));
        if flows.len() <= index {
            flows.resize_with(index + 1, || None);
        }
        // A smaller number belongs to a peer that has left.
        if flows[index].as_ref().is_none_or(|(of, _)| *of < n) {
            flows[index] = Some((n, Flow::new(OF_CONNECTION)));
        }
    }

    /// Returns whether a connected peer may send this message, which must be within the maximum
    /// length and within the peer's window. Charges the message to the window.
    pub(in crate::na) fn may_come(&self, from: Peer, kind: Kind, bytes: usize) -> bool {
        match kind {
            Kind::Unexpected | Kind::Expected => {
                let which = kind as usize;
                bytes <= MAX_EXPECTED
                    && self.with_flow(from, |flow| flow.came(which, bytes)) == Some(true)
            }
            Kind::Reply => bytes <= MAX_EXPECTED,
            Kind::Release | Kind::Credit => bytes == 0,
            // The connection validates these itself.
            Kind::Get | Kind::Put | Kind::Moved => true,
        }
    }

    /// Discards messages held for a lost peer and fails calls to it.
    pub(in crate::na) fn lost(&self, peer: Peer) {
        let held = match peer {
            Peer::Remote(n) => {
                let mut flows = self.remote_flows.write();
                let flow = flows.get_mut(index_of(n)).and_then(|f| f.take_if(|(of, _)| *of == n));
                flow.map(|(_, flow)| flow.abandon())
            }
            _ => self.with_flow(peer, Flow::abandon),
        };
        let held = held.unwrap_or_default();
        let mut matching = self.matching.lock();
        matching.expected.retain(|(from, _), _| *from != peer);
        let posted: Vec<_> = matching.posted.extract_if(|(from, _), _| *from == peer).collect();
        drop(matching);
        for Posted { op, context, callback } in posted.into_iter().flat_map(|(_, list)| list) {
            self.pending.lock().remove(&op);
            let what = What::RecvExpected { body: Vec::new() };
            context.complete(callback, Event { status: Status::HOSTUNREACH, what });
        }
        held.into_iter().filter_map(|held| held.sent).for_each(|sent| sent(Status::HOSTUNREACH));
        if let Some(upper) = self.upper() {
            upper.lost(peer);
        }
        self.stir();
        self.notify();
    }

    pub(in crate::na) fn transmit(&self, to: Peer, head: &Head, body: Data<'_>) -> Result<()> {
        match to {
            Peer::Own => {
                let body = match body {
                    Data::Bytes(bytes) => Cow::Borrowed(bytes),
                    Data::Owned(bytes) => Cow::Owned(bytes),
                    Data::At(..) => refuse!(INVALID_ARG, "a message cannot be passed by address"),
                };
                self.arrived(Peer::Own, head, body);
                Ok(())
            }
            Peer::Rank(rank) => {
                let (Some(engine), Some((_, handler))) = (self.enter()?, &self.engine) else {
                    refuse!(NODEV, "a class over self reaches only its own process");
                };
                let head: [u8; HEAD] = head.bytes();
                let rank = rank as usize;
                if let Data::Bytes(body) = body {
                    return Ok(engine.send_message(rank, *handler, &head, body)?);
                }
                // SAFETY: callers pass only `Data::Bytes` and `Data::Owned`, and the default
                // signals hold no pointer, so no memory has to stay valid.
                Ok(unsafe { engine.send_am(rank, *handler, &head, body, Signals::default()) }?)
            }
            Peer::Remote(n) => match (&self.plugin, self.enter()?) {
                (Some(plugin), _engine) => plugin.send(self, n, head, body),
                (None, _) => refuse!(NODEV, "the class has no connections"),
            },
        }
    }

    /// Sends an unexpected or expected message as soon as the window allows. Returns true if it was
    /// sent immediately. Otherwise calls `wait` for the operation number and the callback that runs
    /// when the message has been sent or discarded, and returns false. Returns `AGAIN` like
    /// [`Flow::hold`].
    pub fn send(
        &self,
        to: Peer,
        kind: Kind,
        (tag, word): (u32, u64),
        body: &[u8],
        wait: impl FnOnce() -> (u64, Option<OnSent>),
    ) -> Result<bool> {
        let which = kind as usize;
        let head = Head { kind, class: self.number, tag, word };
        let admit = || self.with_flow(to, |flow| flow.admit(which, body.len()));
        let admitted = match (admit(), to) {
            (None, Peer::Remote(n)) => {
                // The message makes the connection.
                self.begin_flow(n);
                admit()
            }
            (admitted, _) => admitted,
        };
        if admitted != Some(false) {
            return match self.transmit(to, &head, Data::Bytes(body)) {
                Ok(()) => Ok(true),
                Err(failure) => {
                    // The peer will not report what it has not received.
                    self.with_flow(to, |flow| flow.refund(which, body.len()));
                    Err(failure)
                }
            };
        }
        let (op, sent) = wait();
        let mut held = Some(QueuedMessage { head, body: body.to_vec(), sent, op });
        let hold = |flow: &Flow| held.take().map(|held| flow.hold(which, held));
        let Some(go) = self.with_flow(to, hold).flatten() else {
            refuse!(HOSTUNREACH, "the connection has ended");
        };
        if let Some(QueuedMessage { body, sent, .. }) = go? {
            self.transmit(to, &head, Data::Owned(body))?;
            if let Some(sent) = sent {
                sent(Status::SUCCESS);
            }
        }
        Ok(false)
    }

    /// Withdraws the request of a call if the window of its peer has not allowed it to leave.
    /// Returns whether it has not.
    pub(crate) fn withdraw_call(&self, to: Peer, token: u64) -> bool {
        token != 0 && self.with_flow(to, |flow| flow.withdraw_call(token)) == Some(true)
    }

    pub fn answer(&self, to: Peer, kind: Kind, token: u64, body: Data<'_>) -> Result<()> {
        self.transmit(to, &Head { kind, class: self.number, tag: 0, word: token }, body)
    }

    pub(in crate::na) fn post_send(
        self: &Arc<Shared>,
        context: &Arc<ContextShared>,
        kind: Kind,
        to: &Address,
        tag: u32,
        body: &[u8],
        callback: Callback,
    ) -> Result<u64> {
        self.check_open()?;
        let (most, what) = match kind {
            Kind::Unexpected => (self.max_unexpected, What::SendUnexpected),
            _ => (MAX_EXPECTED, What::SendExpected),
        };
        if body.len() > most {
            refuse!(MSGSIZE, "a message of {} bytes; at most {most} are possible", body.len());
        }
        check_tag(tag)?;
        let peer = self.peer(to)?;
        let op = self.new_op();
        let callback = Arc::new(Mutex::new(Some(callback)));
        let (class, later, there) = (Arc::downgrade(self), callback.clone(), context.clone());
        let kept = what.clone();
        let wait = || {
            self.note(op, Pending::Send(peer), context);
            let sent: OnSent = Box::new(move |status| {
                if let Some(class) = class.upgrade() {
                    class.pending.lock().remove(&op);
                }
                if let Some(callback) = later.lock().take() {
                    there.complete(callback, Event { status, what: kept });
                }
            });
            (op, Some(sent))
        };
        let now = match self.send(peer, kind, (tag, 0), body, wait) {
            Ok(now) => now,
            Err(failure) => {
                self.pending.lock().remove(&op);
                return Err(failure);
            }
        };
        if now && let Some(callback) = callback.lock().take() {
            context.complete(callback, Event { status: Status::SUCCESS, what });
        }
        Ok(op)
    }

    // ------------------------------------------------------------ receiving

    pub(in crate::na) fn post_unexpected(
        &self,
        context: &Arc<ContextShared>,
        callback: Callback,
    ) -> Result<u64> {
        self.check_open()?;
        let op = self.new_op();
        let mut matching = self.matching.lock();
        let Some(message) = matching.unexpected.pop_front() else {
            self.note(op, Pending::Unexpected, context);
            matching.wanted.push_back(Posted { op, context: context.clone(), callback });
            return Ok(op);
        };
        self.waiting.store(matching.unexpected.len(), Ordering::Release);
        drop(matching);
        self.took(message.from.peer, 0, message.body.len());
        let Message { from, tag, body, .. } = message;
        let what = What::RecvUnexpected { body: body.into_vec(), source: from, tag };
        context.complete(callback, Event { status: Status::SUCCESS, what });
        Ok(op)
    }

    pub(in crate::na) fn post_expected(
        &self,
        context: &Arc<ContextShared>,
        source: &Address,
        tag: u32,
        callback: Callback,
    ) -> Result<u64> {
        self.check_open()?;
        check_tag(tag)?;
        let peer = self.peer(source)?;
        let op = self.new_op();
        let key = (peer, tag);
        let mut matching = self.matching.lock();
        let early = matching.expected.get_mut(&key).and_then(VecDeque::pop_front);
        let Some(body) = early else {
            self.note(op, Pending::Expected(peer, tag), context);
            let posted = Posted { op, context: context.clone(), callback };
            matching.posted.entry(key).or_default().push_back(posted);
            return Ok(op);
        };
        if matching.expected.get(&key).is_some_and(VecDeque::is_empty) {
            matching.expected.remove(&key);
        }
        drop(matching);
        self.took(peer, 1, body.len());
        let what = What::RecvExpected { body };
        context.complete(callback, Event { status: Status::SUCCESS, what });
        Ok(op)
    }

    #[inline]
    pub(crate) fn has_unexpected(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }

    /// Returns whether the upper layer has something to do that needs no further message: it would
    /// take an unexpected one now, or go on with an earlier one. Without an upper layer, the
    /// program takes unexpected messages.
    pub(in crate::na) fn has_wanted(&self) -> bool {
        let Some(upper) = self.upper() else { return self.has_unexpected() };
        upper.has_ready()
            || self.has_unexpected() && {
                let wanted = upper.wanted();
                self.matching.lock().unexpected.iter().any(wanted)
            }
    }

    /// Takes the oldest unexpected message. It counts against the window of its sender until
    /// [`Shared::took_unexpected`].
    #[inline]
    pub(crate) fn take_unexpected(&self) -> Option<Message> {
        self.take_unexpected_of(|_| true)
    }

    pub(crate) fn take_unexpected_of(&self, wanted: impl Fn(&Message) -> bool) -> Option<Message> {
        if self.waiting.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut matching = self.matching.lock();
        let at = matching.unexpected.iter().position(wanted)?;
        let message = matching.unexpected.remove(at)?;
        self.waiting.store(matching.unexpected.len(), Ordering::Release);
        Some(message)
    }

    #[inline]
    pub(crate) fn took_unexpected(&self, from: Peer, bytes: usize) {
        self.took(from, 0, bytes);
    }

    /// Called when [`Shared::is_behind`] may have changed.
    pub(in crate::na) fn fell_behind(&self, peer: Peer) {
        if let Some(upper) = self.upper() {
            upper.fell_behind(peer);
        }
    }

    /// Returns whether many bytes wait until a peer reads them.
    pub(crate) fn is_behind(&self, peer: Peer) -> bool {
        match (peer, &self.plugin) {
            (Peer::Remote(n), Some(plugin)) => plugin.is_behind(n),
            _ => false,
        }
    }

    /// Ends the connection of a peer that does not do its part. Does nothing if the peer is a rank
    /// of the job.
    pub(crate) fn give_up(&self, peer: Peer, why: &str) {
        if let (Peer::Remote(n), Some(plugin)) = (peer, &self.plugin) {
            plugin.give_up(n, why);
        }
    }

    /// Counts a consumed message, and reports the bytes to the sender once enough have accumulated.
    fn took(&self, from: Peer, which: usize, bytes: usize) {
        let took = |flow: &Flow| {
            if matches!(from, Peer::Remote(_)) {
                flow.went(which, bytes);
            }
            flow.took(which, bytes)
        };
        let Some(report) = self.with_flow(from, took).flatten() else { return };
        let head = Head { kind: Kind::Credit, class: self.number, tag: which as u32, word: report };
        if let Err(failure) = self.transmit(from, &head, Data::NONE) {
            limited!(Error, "cannot return credit to {from:?}: {failure}");
        }
    }

    /// Handles an incoming message. Runs in handler context and must not block.
    pub(in crate::na) fn arrived(&self, from: Peer, head: &Head, body: Cow<'_, [u8]>) {
        let from = match from {
            Peer::Rank(rank) => self.peer_of(rank as usize),
            other => other,
        };
        match head.kind {
            Kind::Unexpected => self.unexpected(from, head, body),
            Kind::Expected => self.expected(from, head.tag, body),
            Kind::Credit => self.credited(from, head),
            Kind::Reply | Kind::Release => {
                if let Some(upper) = self.upper() {
                    upper.arrived(from, head.kind, head.word, body);
                }
            }
            // A plug-in handles these itself.
            _ => limited!(Warn, "a message of kind {:?} from {from:?} is dropped", head.kind),
        }
    }

    fn unexpected(&self, from: Peer, head: &Head, body: Cow<'_, [u8]>) {
        let Head { tag, word, .. } = *head;
        let mut matching = self.matching.lock();
        let source = self.address(from);
        let Some(posted) = matching.wanted.pop_front() else {
            matching.unexpected.push_back(Message { from: source, tag, word, body: kept(body) });
            self.waiting.store(matching.unexpected.len(), Ordering::Release);
            drop(matching);
            return self.notify();
        };
        drop(matching);
        self.took(from, 0, body.len());
        let what = What::RecvUnexpected { body: body.into_owned(), source, tag };
        self.finish(posted, what);
    }

    fn expected(&self, from: Peer, tag: u32, body: Cow<'_, [u8]>) {
        let key = (from, tag);
        let mut matching = self.matching.lock();
        let Some(posted) = matching.posted.get_mut(&key).and_then(VecDeque::pop_front) else {
            matching.expected.entry(key).or_default().push_back(body.into_owned());
            return;
        };
        if matching.posted.get(&key).is_some_and(VecDeque::is_empty) {
            matching.posted.remove(&key);
        }
        drop(matching);
        self.took(from, 1, body.len());
        self.finish(posted, What::RecvExpected { body: body.into_owned() });
    }

    fn finish(&self, posted: Posted, what: What) {
        self.pending.lock().remove(&posted.op);
        posted.context.complete(posted.callback, Event { status: Status::SUCCESS, what });
    }

    fn credited(&self, from: Peer, head: &Head) {
        let which = (head.tag & 1) as usize;
        let drain = self.with_flow(from, |flow| flow.credit(which, head.word));
        if drain != Some(true) {
            return;
        }
        while let Some(held) = self.with_flow(from, |flow| flow.next(which)).flatten() {
            let QueuedMessage { head, body, sent, .. } = held;
            let status = match self.transmit(from, &head, Data::Owned(body)) {
                Ok(()) => Status::SUCCESS,
                Err(failure) => {
                    limited!(Error, "a message to {from:?} is lost: {failure}");
                    failure.status()
                }
            };
            if let Some(sent) = sent {
                sent(status);
            }
            if status != Status::SUCCESS && matches!(from, Peer::Remote(_)) {
                return; // the end of the connection discards the others
            }
        }
    }
}

fn check_tag(tag: u32) -> Result<()> {
    if tag > MAX_TAG {
        refuse!(INVALID_ARG, "tag {tag} is above the largest, {MAX_TAG}");
    }
    Ok(())
}
