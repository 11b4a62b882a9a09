//! A class: the interfaces of the layers above and below it, and its pending operations, which can be
//! cancelled.
//!
//! Operation numbers only grow, so an operation that has a number but is not pending has completed.

mod addresses;
mod lifecycle;
mod messages;

use super::address::{Address, Peer, Scheme};
use super::context::{Callback, ContextShared, Event, What};
use super::flow::Flow;
use super::plugin::{Capabilities, Chunk};
use super::wake_source::WakeSource;
use super::wire::{Head, Kind};
use crate::failure::{Result, Status, refuse};
use parking_lot::{Mutex, RwLock};
use portolan_base::sync::biased_lock::BiasedLock;
use portolan_base::wait::Progress;
use portolan_base::wait::watchdog::Watchdog;
use portolan_engine::am::{Data, HandlerId};
use portolan_engine::core::peer::CompletionCounter;
use portolan_engine::runtime::Engine;
use portolan_engine::runtime::admission::Admitted;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

pub const MAX_TAG: u32 = (1 << 30) - 1;
/// Maximum message length in bytes: 64 KiB of parameters with headers and checksums.
const MAX_EXPECTED: usize = (64 << 10) + 256;
const MAX_UNEXPECTED: usize = MAX_EXPECTED;

/// The interface of the upper layer, which receives replies and releases by their tokens.
pub(crate) trait Upper: Send + Sync {
    /// Handles a reply or a release. Runs in handler context and must not block.
    fn arrived(&self, from: Peer, kind: Kind, token: u64, body: Cow<'_, [u8]>);
    /// Handles the loss of a peer. Must not block.
    fn lost(&self, peer: Peer);
    /// Handles a change of [`Shared::is_behind`]. Must not block.
    fn fell_behind(&self, peer: Peer);
    /// Returns a test of unexpected messages: whether the layer would take one now.
    fn wanted(&self) -> Box<dyn Fn(&Message) -> bool>;
    /// Returns whether the layer would go on with a message that it has taken.
    fn has_ready(&self) -> bool;
    /// Returns whether a peer must end a call of the layer.
    fn awaits_peers(&self) -> bool;
}

/// The interface of a network that reaches other processes through connections.
///
/// A class uses either the engine or a plug-in. The peers of a plug-in are [`Peer::Remote`] with a
/// connection number that the plug-in issues and never reuses.
///
/// A plug-in delivers messages by [`Shared::arrived`] from within [`Plugin::poll`]. It checks them
/// first ([`Shared::may_come`]), because a peer is not trusted to follow the protocol. When a
/// connection ends, it calls [`Shared::lost`] once.
pub(crate) trait Plugin: Send + Sync {
    fn capabilities(&self) -> Capabilities;

    /// Returns the address of this process that other processes can look up, if there is one.
    fn own_name(&self) -> Option<String>;

    fn name_of(&self, peer: u32) -> String;

    /// Returns the peer at an address. The first message to it connects. Returns `INVALID_ARG` if
    /// the address is malformed.
    fn connect(&self, name: &str) -> Result<Peer>;

    /// Returns whether a peer is a class of this process, or `None` if it is not connected.
    fn is_of_this_process(&self, peer: u32) -> Option<bool>;

    /// Returns the process of a peer that is connected through shared memory.
    fn process_of(&self, _peer: u32) -> Option<u32> {
        None
    }

    /// Sends a message. The bytes are copied before the call returns, or have been sent. Returns
    /// `HOSTUNREACH` if the connection has ended or no process listens at the address, `PERMISSION`
    /// if the process refuses the connection, and `TIMEOUT` if it does not respond.
    fn send(&self, class: &Shared, peer: u32, head: &Head, body: Data<'_>) -> Result<()>;

    /// Starts the transfer of a chunk. Increments the counter, which is decremented when the bytes
    /// have arrived. Fails like [`Plugin::send`], with the counter unchanged.
    fn transfer(
        &self,
        class: &Shared,
        peer: u32,
        chunk: Chunk,
        counter: &Arc<CompletionCounter>,
    ) -> Result<()>;

    /// Lets the network hold the short messages that this thread sends from now on, or not any
    /// more.
    fn hold(&self, _hold: bool) {}

    /// Transmits what threads have held. [`Plugin::poll`] does so too.
    fn transmit(&self) {}

    /// Handles what has arrived, without blocking. Returns whether anything happened.
    fn poll(&self, class: &Shared) -> Result<bool>;

    /// Prepares [`Plugin::sleep`]: an event after this call ends the sleep.
    fn prepare_sleep(&self) {}

    /// Sleeps until an event, a call of [`Plugin::wake`] or the end of `nap`. Returns false without
    /// sleeping if another thread sleeps here.
    fn sleep(&self, _nap: Duration) -> bool {
        false
    }

    fn wake(&self) {}

    /// Returns whether so many bytes wait for a peer that it should cause no more of them. If that
    /// changes, the plug-in calls [`Shared::fell_behind`].
    fn is_behind(&self, _peer: u32) -> bool {
        false
    }

    /// Ends the connections of a peer, which is lost then.
    fn give_up(&self, peer: u32, why: &str);

    /// Returns a descriptor that becomes readable on an event after [`Plugin::prepare_sleep`].
    fn descriptor(&self) -> Option<RawFd> {
        None
    }

    /// Returns whether the connections belong to the parent of this process, which lives.
    fn is_copy(&self) -> bool {
        false
    }

    /// Closes all connections after outgoing messages have been sent, and stops to listen.
    fn close(&self, class: &Shared);

    fn refused(&self) -> u64;

    /// Returns the open connections, one per line.
    #[cfg(test)]
    fn describe(&self) -> String;
}

pub type Bytes = SmallVec<[u8; 64]>;

pub fn kept(body: Cow<'_, [u8]>) -> Bytes {
    match body {
        Cow::Borrowed(bytes) => Bytes::from_slice(bytes),
        Cow::Owned(bytes) => Bytes::from_vec(bytes),
    }
}

#[derive(Debug)]
pub struct Message {
    pub from: Address,
    pub tag: u32,
    /// A word that the sender's upper layer attached.
    pub word: u64,
    pub body: Bytes,
}

struct Posted {
    op: u64,
    context: Arc<ContextShared>,
    callback: Callback,
}

/// The kinds of pending operation; they determine how an operation is cancelled.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pending {
    Unexpected,
    Expected(Peer, u32),
    Send(Peer),
    Transfer,
}

#[derive(Default)]
struct Matching {
    unexpected: VecDeque<Message>,
    wanted: VecDeque<Posted>,
    expected: HashMap<(Peer, u32), VecDeque<Vec<u8>>>,
    posted: HashMap<(Peer, u32), VecDeque<Posted>>,
}

pub struct Shared {
    pub(super) number: u16,
    /// The number of the class in this process, which is never used again. It is 0 for all classes
    /// over MPI, because a rank has the same address in all of them.
    serial: u32,
    scheme: Scheme,
    listen: bool,
    engine: Option<(Arc<Engine>, HandlerId)>,
    pub(super) plugin: Option<Box<dyn Plugin>>,
    matching: BiasedLock<Matching>,
    waiting: AtomicUsize,
    flows: Vec<Flow>,
    /// The numbers of the connected peers and their flows, by index; `None` for one that has left.
    remote_flows: RwLock<Vec<Option<(u32, Flow)>>>,
    pub(super) pending: Mutex<HashMap<u64, (Pending, Weak<ContextShared>)>>,
    next_op: AtomicU64,
    upper: RwLock<Option<Weak<dyn Upper>>>,
    closed: AtomicBool,
    max_unexpected: usize,
    pub(crate) wake_source: WakeSource,
    /// Of a class without an engine, until it is finalised.
    watchdog: Mutex<Option<Watchdog>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Class")
            .field("number", &self.number)
            .field("scheme", &self.scheme)
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// Returns `INVALID_ARG` if the class is finalised; otherwise fails like [`Shared::enter`].
    #[inline]
    pub fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            refuse!(INVALID_ARG, "the class is finalised");
        }
        self.enter().map(drop)
    }

    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    pub fn listens(&self) -> bool {
        self.listen
    }

    /// Begins a call that may reach the engine. Returns `None` for a class without MPI. The call
    /// must not wait for user code. Fails with the kind `State` if the runtime is ending or has
    /// ended, and on a thread that must not call MPI.
    #[inline]
    pub fn enter(&self) -> Result<Option<Admitted<'_>>> {
        match &self.engine {
            None => Ok(None),
            Some((engine, _)) => Ok(Some(engine.admit()?)),
        }
    }

    /// Returns whether the runtime is ending, or has ended, before the class.
    pub fn is_over(&self) -> bool {
        self.engine().is_some_and(Engine::is_over)
    }

    /// Returns whether this process is a forked child of the one that uses the class, so that
    /// nothing comes here.
    pub fn is_copy(&self) -> bool {
        self.plugin.as_ref().is_some_and(|plugin| plugin.is_copy())
    }

    pub(super) fn is_gone(&self) -> bool {
        self.engine().is_some_and(Engine::is_gone)
    }

    /// Returns the engine, if any, for uses that do not reach MPI. The engine may have stopped.
    pub fn engine(&self) -> Option<&Engine> {
        self.engine.as_ref().map(|(engine, _)| &**engine)
    }

    /// Sets the upper layer of the class. Returns `BUSY` if the class already has one.
    pub(crate) fn set_upper(&self, upper: Weak<dyn Upper>) -> Result<()> {
        let mut now = self.upper.write();
        if now.as_ref().is_some_and(|upper| upper.strong_count() > 0) {
            refuse!(BUSY, "the class is already used for calls");
        }
        *now = Some(upper);
        Ok(())
    }

    fn upper(&self) -> Option<Arc<dyn Upper>> {
        self.upper.read().as_ref().and_then(Weak::upgrade)
    }

    pub(crate) fn clear_upper(&self) {
        *self.upper.write() = None;
    }

    pub fn max_unexpected(&self) -> usize {
        self.max_unexpected
    }

    pub fn max_expected(&self) -> usize {
        MAX_EXPECTED
    }

    // ----------------------------------------------------------- operations

    pub(super) fn new_op(&self) -> u64 {
        self.next_op.fetch_add(1, Ordering::Relaxed)
    }

    fn note(&self, op: u64, pending: Pending, context: &Arc<ContextShared>) {
        self.pending.lock().insert(op, (pending, Arc::downgrade(context)));
    }

    pub(super) fn pending_of(&self, context: &ContextShared) -> Vec<u64> {
        let pending = self.pending.lock();
        let of = |(_, (_, of)): &(&u64, &(Pending, Weak<ContextShared>))| {
            std::ptr::eq(of.as_ptr(), context)
        };
        pending.iter().filter(of).map(|(op, _)| *op).collect()
    }

    /// Cancels an operation unless it has completed. Returns `INVALID_ARG` if it was never started.
    pub(super) fn cancel(&self, op: u64) -> Result<()> {
        if op == 0 || op >= self.next_op.load(Ordering::Relaxed) {
            refuse!(INVALID_ARG, "{op:#x} is not an operation of this class");
        }
        let Some((pending, context)) = self.pending.lock().get(&op).cloned() else {
            return Ok(());
        };
        let take = |list: &mut VecDeque<Posted>| {
            let at = list.iter().position(|posted| posted.op == op)?;
            list.remove(at)
        };
        let posted = match pending {
            Pending::Unexpected => take(&mut self.matching.lock().wanted),
            Pending::Expected(peer, tag) => {
                let mut matching = self.matching.lock();
                let posted = matching.posted.get_mut(&(peer, tag)).and_then(take);
                matching.posted.retain(|_, list| !list.is_empty());
                posted
            }
            Pending::Send(peer) => {
                if let Some(held) = self.with_flow(peer, |flow| flow.withdraw(op)).flatten()
                    && let Some(sent) = held.sent
                {
                    sent(Status::CANCELED);
                }
                None
            }
            Pending::Transfer => {
                if let Some(context) = context.upgrade() {
                    context.cancel_transfer(op);
                }
                None
            }
        };
        if let Some(Posted { context, callback, .. }) = posted {
            self.pending.lock().remove(&op);
            let what = match pending {
                Pending::Expected(..) => What::RecvExpected { body: Vec::new() },
                _ => What::RecvUnexpected {
                    body: Vec::new(),
                    source: self.address(Peer::Own),
                    tag: 0,
                },
            };
            context.complete(callback, Event { status: Status::CANCELED, what });
        }
        Ok(())
    }

    /// Returns whether a peer must end an operation of this process.
    pub(super) fn awaits_peers(&self) -> bool {
        let posts = |kind: &Pending| matches!(kind, Pending::Unexpected);
        self.upper().is_some_and(|upper| upper.awaits_peers())
            || self.pending.lock().values().any(|(kind, _)| !posts(kind))
    }

    // ------------------------------------------------------------- progress

    pub fn poll(self: &Arc<Shared>) -> Result<bool> {
        let engine = self.enter()?;
        let mut busy = match &engine {
            Some(engine) => engine.poll()?,
            None => false,
        };
        if let Some(plugin) = &self.plugin
            && plugin.poll(self)?
        {
            busy = true;
            self.stir();
        }
        Ok(busy)
    }
}
