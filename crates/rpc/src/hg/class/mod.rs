//! A class of functions over a network: calls under way and their messages.
//!
//! Tokens are numbers with a generation, so a late or unwanted answer matches no entry and is
//! dropped. `ClassShared::step` pulls long inputs and outputs.
//!
//! **Memory of a server.** Requests stay in the flow-control windows, and finally at their origins,
//! while the queue of a context is full ([`MOST_QUEUED`], [`MOST_QUEUED_BYTES`]). Each peer has a
//! share of the inputs that are pulled and of the outputs that are kept ([`shares`]). A server thus
//! keeps a bounded number of bytes for each peer, and its connections bound the number of peers. A
//! single input or output may exceed the bounds, because parameters may have any length.

mod cancelled;
mod kept_outputs;
mod lost;
mod pulls;
mod requests;
mod shares;

use self::cancelled::Cancelled;
use self::shares::Shares;
use super::context::{ContextShared, Work};
use super::origin::Origin;
use super::payload::{Kept, PARAMETERS, Payload};
use super::target::{Function, Registry, Target};
use super::wire::{ANSWER, Answer, CallRequest, Parsed, context_of};
use crate::checksum::Method;
use crate::failure::{Failure, Result, Status, refuse};
use crate::na;
use crate::na::address::Peer;
use crate::na::class::{Bytes, Message, Upper, kept};
use crate::na::limited::limited;
use crate::na::transfer::Transfer;
use crate::na::wire::Kind;
use crate::na::{Address, Mem};
use parking_lot::Mutex;
use portolan_base::handles::Handles;
use portolan_base::sync::biased_lock::BiasedLock;
use portolan_base::wait::Deadline;
use scopeguard::guard;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Length of a context's queue from which on requests stay in the network.
pub(super) const MOST_QUEUED: usize = 256;
/// Limit on the bytes of pulled inputs in the queue of a context.
pub(super) const MOST_QUEUED_BYTES: usize = 256 << 20;
/// How long finalising waits for other ranks to pull promised outputs.
const PATIENCE: Duration = Duration::from_secs(5);

/// The meaning of a token at the origin.
enum Entry {
    /// A call, and the peer that will answer it.
    Call(Arc<Origin>, Peer),
    /// A cancelled call, and its input, which the peer may still pull.
    Cancelled(#[expect(dead_code, reason = "keeps the bytes")] Kept, Peer),
}

/// Runs when an answer has left, or when the origin has pulled it.
pub type OnAnswered = Box<dyn FnOnce() + Send>;

struct KeptOutput {
    peer: Peer,
    len: usize,
    _kept: Option<Kept>,
    then: Option<(Arc<ContextShared>, OnAnswered)>,
}

enum Purpose {
    Input { request: CallRequest, function: Arc<Function>, source: Address },
    Output { origin: Arc<Origin>, status: Status, release: u64, peer: Peer },
}

struct Pull {
    transfer: Option<Transfer>,
    peer: Peer,
    remote: Arc<Mem>,
    local: Option<Arc<Mem>>,
    purpose: Purpose,
}

/// The state of a class, shared by its contexts and calls.
pub struct ClassShared {
    pub na: na::Class,
    pub functions: Registry,
    pub method: Method,
    /// The calls under way, by the token that their answer carries.
    calls: BiasedLock<Handles<Entry>>,
    cancelled: Mutex<Cancelled>,
    /// The outputs not yet pulled, by the token that releases them.
    promised: Mutex<Handles<KeptOutput>>,
    pulls: Mutex<VecDeque<Pull>>,
    pulling: AtomicUsize,
    shares: Shares<Pull, Arc<Target>>,
    closed: AtomicBool,
    contexts: Mutex<Vec<Weak<ContextShared>>>,
    handing_over: AtomicUsize,
    /// Whether a context has a number other than 0.
    numbered: AtomicBool,
    /// Whether calls of the process to itself run when they are forwarded, not in trigger.
    pub inline: AtomicBool,
}

impl std::fmt::Debug for ClassShared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Class").field("na", &self.na).finish_non_exhaustive()
    }
}

impl ClassShared {
    /// Creates a class over a network. Returns `BUSY` if the network carries a class already.
    pub(super) fn over(na: &na::Class, method: Method) -> Result<Arc<ClassShared>> {
        let class = Arc::new(ClassShared {
            na: na.clone(),
            functions: Registry::default(),
            method,
            calls: BiasedLock::new(Handles::default()),
            cancelled: Mutex::default(),
            promised: Mutex::default(),
            pulls: Mutex::default(),
            pulling: AtomicUsize::new(0),
            shares: Shares::default(),
            closed: AtomicBool::new(false),
            contexts: Mutex::default(),
            handing_over: AtomicUsize::new(0),
            numbered: AtomicBool::new(false),
            inline: AtomicBool::new(false),
        });
        na.check_open()?;
        let weak = Arc::downgrade(&class);
        na.set_upper(weak)?;
        Ok(class)
    }

    /// Closes the class: waits for other ranks to pull promised outputs, cancels its own calls, and
    /// answers waiting requests with `CANCELED`. Returns `INVALID_ARG` if the class is finalised
    /// already, or the error of the wait; the class then stays open.
    pub(super) fn close(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) {
            refuse!(INVALID_ARG, "the class is finalised already");
        }
        let begun = Instant::now();
        let pulled = self.na.until(&mut Deadline::after(PATIENCE), || {
            let is_left = self.na.is_copy() || begun.elapsed() > PATIENCE;
            Ok(is_left || self.promised.lock().is_empty())
        });
        match pulled {
            Err(failure) if !self.na.is_over() => {
                self.closed.store(false, Ordering::Release);
                return Err(failure);
            }
            _ => {}
        }
        let calls = self.calls.lock().drain();
        for entry in calls {
            if let Entry::Call(origin, _) = entry {
                origin.complete(Status::CANCELED, Payload::Empty);
            }
        }
        let pulls = std::mem::take(&mut *self.pulls.lock());
        for mut pull in pulls {
            drop(pull.transfer.take());
            self.na.wake_source.transfer_ends();
            match &pull.purpose {
                Purpose::Input { request, source, .. } if request.is_answered() => {
                    self.answer_status(source.peer, request.token, Status::CANCELED);
                }
                Purpose::Input { .. } => {}
                Purpose::Output { origin, release, peer, .. } => {
                    self.release(*peer, *release);
                    origin.complete(Status::CANCELED, Payload::Empty);
                }
            }
        }
        self.refuse_held(self.shares.give_up(None), Status::CANCELED);
        while let Some(message) = self.na.take_unexpected() {
            if let Parsed::Request(request) = CallRequest::parse(&message.body, message.word)
                && request.is_answered()
            {
                self.answer_status(message.from.peer, request.token, Status::CANCELED);
            }
        }
        self.na.clear_upper();
        Ok(())
    }

    /// Returns `INVALID_ARG` if the class is finalised, and an error of kind `State` if the runtime
    /// has ended.
    #[inline]
    pub fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            refuse!(INVALID_ARG, "the class is finalised");
        }
        self.na.check_open()
    }

    pub(super) fn enlist(&self, context: &Arc<ContextShared>) {
        let mut contexts = self.contexts.lock();
        contexts.retain(|known| known.strong_count() > 0);
        contexts.push(Arc::downgrade(context));
        if context.id != 0 {
            self.numbered.store(true, Ordering::Release);
        }
    }

    // ------------------------------------------------------------- at origins

    pub(super) fn expect(&self, origin: &Arc<Origin>, peer: Peer) -> u64 {
        self.calls.lock().insert(Entry::Call(origin.clone(), peer))
    }

    pub(super) fn forget(&self, token: u64) {
        let gone = self.calls.lock().remove(token);
        drop(gone); // outside the lock: it may hold the last reference to large objects
    }

    /// Stops waiting for a call. Keeps its input in `kept`, which the peer may still pull.
    pub(super) fn abandon(&self, token: u64, kept: Option<Kept>) {
        let Some(kept) = kept else { return self.forget(token) };
        let len = kept.size();
        let replaced = {
            let mut calls = self.calls.lock();
            calls.get_mut(token).map(|entry| {
                let (Entry::Call(_, peer) | Entry::Cancelled(_, peer)) = entry;
                let cancelled = Entry::Cancelled(kept, *peer);
                std::mem::replace(entry, cancelled)
            })
        };
        if replaced.is_some() {
            let gone = self.cancelled.lock().add(token, len);
            gone.into_iter().for_each(|token| self.forget(token));
        }
    }

    /// Cancels the calls of a context being destroyed, and queues callbacks that wait for a pull.
    pub(super) fn cancel_those_of(&self, context: &Arc<ContextShared>) {
        let mine = |origin: &Arc<Origin>| Arc::ptr_eq(origin.context(), context);
        let mut origins: Vec<Arc<Origin>> = {
            let calls = self.calls.lock();
            let entries = calls.iter().filter_map(|(_, entry)| match entry {
                Entry::Call(origin, _) if mine(origin) => Some(origin.clone()),
                _ => None,
            });
            entries.collect()
        };
        origins.extend(self.pulls.lock().iter().filter_map(|pull| match &pull.purpose {
            Purpose::Output { origin, .. } if mine(origin) => Some(origin.clone()),
            _ => None,
        }));
        origins.iter().for_each(Origin::cancel);
        let answered: Vec<OnAnswered> = {
            let mut promised = self.promised.lock();
            let of = promised.values_mut().filter_map(|promised| {
                let waits = promised.then.as_ref().is_some_and(|(c, _)| Arc::ptr_eq(c, context));
                waits.then(|| promised.then.take()).flatten().map(|(_, then)| then)
            });
            of.collect()
        };
        answered.into_iter().for_each(|then| context.push(Work::Run(then)));
        let is_mine = |call: &Arc<Target>| Arc::ptr_eq(call.context(), context);
        drop(self.shares.give_up_calls(is_mine)); // answers them
    }

    /// Returns a call if it may run now; otherwise it runs when its caller has pulled its outputs.
    #[inline]
    pub(super) fn admit_call(&self, call: Arc<Target>) -> Option<Arc<Target>> {
        self.shares.admit_call(call.source().peer, call)
    }

    /// Called when a context has room again.
    pub(super) fn has_room_again(&self) {
        self.shares.change();
        self.na.notify();
    }

    /// Returns a guard to hold from before a result is taken out of a table until its context has
    /// received it. In between, a context that is being destroyed finds the result in neither
    /// place, so it waits until no such guard exists ([`ClassShared::is_handed_over`]).
    fn hand_over(&self) -> impl Sized {
        self.handing_over.fetch_add(1, Ordering::AcqRel);
        guard(&self.handing_over, |count| {
            count.fetch_sub(1, Ordering::AcqRel);
        })
    }

    pub(super) fn is_handed_over(&self) -> bool {
        self.handing_over.load(Ordering::Acquire) == 0
    }

    fn answered(&self, from: Peer, token: u64, bytes: Bytes) {
        let _handing = self.hand_over();
        let Some(answer) = Answer::parse(&bytes) else {
            limited!(Warn, "dropped an invalid response from {from:?}");
            return;
        };
        let entry = {
            let mut calls = self.calls.lock();
            let wanted = match calls.get(token) {
                Some(Entry::Call(_, peer) | Entry::Cancelled(_, peer)) => *peer == from,
                None => false,
            };
            if wanted { calls.remove(token) } else { None }
        };
        let Some(Entry::Call(origin, _)) = entry else {
            if entry.is_some() {
                self.cancelled.lock().remove(token);
            }
            if answer.long || answer.more {
                self.release(from, answer.release);
            }
            return;
        };
        let status = Status(answer.status);
        if answer.more {
            origin.set_more(from, answer.release);
        }
        if !answer.long {
            return origin.complete(status, Payload::Bytes { bytes, start: ANSWER });
        }
        match Mem::from_bytes(&bytes[ANSWER..], PARAMETERS) {
            Ok(remote) => {
                let release = answer.release;
                let purpose = Purpose::Output { origin, status, release, peer: from };
                self.enqueue(Pull::new(from, remote, purpose));
            }
            Err(failure) => {
                limited!(Warn, "cannot pull a response from {from:?}: {failure}");
                self.release(from, answer.release);
                origin.complete(failure.status(), Payload::Empty);
            }
        }
    }

    /// Delivers the answer to a call of this process to itself.
    /// `more` is the token to release if the output has more data.
    pub(super) fn answer_own(&self, token: u64, status: Status, body: Payload, more: Option<u64>) {
        let _handing = self.hand_over();
        let entry = self.calls.lock().remove(token);
        if let Some(Entry::Call(origin, _)) = entry {
            if let Some(release) = more {
                origin.set_more(Peer::Own, release);
            }
            origin.complete(status, body);
        } else if let Some(release) = more {
            self.released(Peer::Own, release);
        }
    }
}

impl Upper for ClassShared {
    fn arrived(&self, from: Peer, kind: Kind, token: u64, body: Cow<'_, [u8]>) {
        match kind {
            Kind::Reply => self.answered(from, token, kept(body)),
            _ => self.released(from, token),
        }
    }

    fn lost(&self, peer: Peer) {
        self.end_with(peer);
        self.fell_behind(peer);
    }

    fn fell_behind(&self, peer: Peer) {
        if self.shares.look_behind(peer, || self.na.is_behind(peer)) {
            self.na.notify();
        }
    }

    fn wanted(&self) -> Box<dyn Fn(&Message) -> bool> {
        let room = self.room(None);
        Box::new(move |message| room(context_of(&message.body)))
    }

    fn has_ready(&self) -> bool {
        self.shares.has_changed()
    }

    fn awaits_peers(&self) -> bool {
        self.calls.lock().iter().any(|(_, entry)| matches!(entry, Entry::Call(..)))
    }
}

pub(super) fn failure(status: Status, function: &Function) -> Failure {
    Failure::new(status, format!("the call of '{}': {}", function.name, status.meaning()))
}
