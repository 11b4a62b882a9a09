//! The network abstraction: classes, contexts, addresses, messages and memory handles.
//!
//! Messages between ranks of the job go through the engine (`class_table`, `class::messages`);
//! `class::Plugin` is the interface of all other networks, and `links` implements it. `na+sm` and
//! `tcp` reach processes that were started separately, and `self` reaches only the calling process.
//! Creating the first class over MPI and finalising the last one are **collective over the job**;
//! no other call is collective. Classes with the same number communicate with each other.
//!
//! Operations take a callback and return immediately. They complete in
//! [`ContextShared::progress`], and their callbacks run only in [`ContextShared::trigger`]. Every
//! operation can be cancelled by its [`OpId`]; its callback then receives the status `CANCELED`, and
//! its buffers may be reused.
//!
//! **Expected messages** should be sent after their receive has been posted. A message that arrives
//! earlier is kept, within the sender's window, until its receive is posted.

pub mod address;
pub(crate) mod batch;
mod blocking_wait;
pub mod class;
pub mod class_table;
pub mod context;
#[expect(unreachable_pub, reason = "the models include it, whose tests are other crates")]
mod eventcount;
pub(crate) mod flow;
mod interface;
pub(crate) mod limited;
pub mod links;
pub mod memory;
mod options;
mod plugin;
mod private_file;
mod resting;
pub mod secret;
pub mod service;
mod timed;
pub mod transfer;
pub mod wait_descriptor;
mod wake_source;
pub mod wire;
mod zeroed_buffer;

pub use address::{Address, MAX_ADDRESS, Network, Scheme};
pub use class::MAX_TAG;
pub use context::{Callback, Event, What};
pub use memory::{Mem, Permission, Run};
pub use options::Options;
pub use portolan_engine::any_memory::Direction;
pub use transfer::Part;

use crate::failure::{Result, refuse};
use class::Shared;
use context::ContextShared;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use transfer::Transfer;
use wire::Kind;

/// Identifies an operation, for cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OpId(#[doc(hidden)] pub u64);

/// A network class. Clones refer to the same class.
#[derive(Debug, Clone)]
pub struct Class {
    shared: Arc<Shared>,
    contexts: Arc<AtomicUsize>,
}

impl Deref for Class {
    type Target = Arc<Shared>;

    fn deref(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl Class {
    /// Creates a class. The first class over MPI is collective over the job, and starts the engine
    /// (and MPI) if needed. Returns `PROTONOSUPPORT` if `info` names an unknown network,
    /// `INVALID_ARG` if it is empty, and `ADDRNOTAVAIL` if the class cannot listen there.
    pub fn new(info: &str, listen: bool) -> Result<Class> {
        Class::with(info, listen, Options::default())
    }

    /// Creates a class with options. Otherwise like [`Class::new`].
    pub fn with(info: &str, listen: bool, options: Options<'_>) -> Result<Class> {
        Ok(Class { shared: Shared::open(info, listen, options)?, contexts: Arc::default() })
    }

    /// Finalises the class and cancels its pending operations. Returns `BUSY` if the class still
    /// has contexts, and `INVALID_ARG` if it is already finalised.
    pub fn finalize(&self) -> Result<()> {
        self.check_idle()?;
        self.shared.close()
    }

    pub fn check_idle(&self) -> Result<()> {
        match self.contexts.load(Ordering::Acquire) {
            0 => Ok(()),
            n => refuse!(BUSY, "{n} contexts of the class are not destroyed; destroy them first"),
        }
    }

    pub fn context(&self) -> Result<Context> {
        self.check_open()?;
        self.contexts.fetch_add(1, Ordering::AcqRel);
        let shared = ContextShared::new(self.shared.clone());
        let counted = Counted { of: self.contexts.clone(), gone: AtomicBool::new(false) };
        Ok(Context { shared, counted: Arc::new(counted) })
    }

    /// Returns the number of refused connection attempts; 0 if the class does not listen.
    pub fn refused(&self) -> u64 {
        self.plugin.as_ref().map_or(0, |plugin| plugin.refused())
    }

    /// Returns whether the class can be used: it is not finalised, and the runtime has not ended.
    pub fn is_open(&self) -> bool {
        self.check_open().is_ok()
    }

    pub fn own_address(&self) -> Address {
        self.address(address::Peer::Own)
    }

    pub fn owns(&self, context: &Context) -> bool {
        Arc::ptr_eq(self, &context.class)
    }
}

/// Decrements the class's context count when a context is destroyed, or its last clone is dropped.
#[derive(Debug)]
struct Counted {
    of: Arc<AtomicUsize>,
    gone: AtomicBool,
}

impl Counted {
    fn leave(&self) {
        if !self.gone.swap(true, Ordering::AcqRel) {
            self.of.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.leave();
    }
}

/// A completion queue for operations of a class. Clones refer to the same context.
#[derive(Debug, Clone)]
pub struct Context {
    shared: Arc<ContextShared>,
    counted: Arc<Counted>,
}

impl Deref for Context {
    type Target = Arc<ContextShared>;

    fn deref(&self) -> &Arc<ContextShared> {
        &self.shared
    }
}

impl Context {
    /// Clears the context. The class can be finalised although clones of the context exist.
    pub fn destroy(&self) {
        self.clear();
        self.counted.leave();
    }

    /// Looks up an address like [`Shared::lookup`] and passes it to the callback. Fails like
    /// [`Shared::lookup`]; the callback does not run then.
    pub fn lookup(&self, name: &str, callback: Callback) -> Result<OpId> {
        let address = self.class.lookup(name)?;
        Ok(OpId(self.looked_up(address, callback)))
    }

    /// Sends an unexpected message. Its bytes are copied before the call returns. The operation
    /// completes when the message has been sent, even if no receive is posted. It waits while the
    /// peer has not consumed a full window of earlier messages. Returns `MSGSIZE` if the message is
    /// too long, and `INVALID_ARG` if the tag exceeds [`MAX_TAG`].
    pub fn send_unexpected(
        &self,
        to: &Address,
        tag: u32,
        body: &[u8],
        callback: Callback,
    ) -> Result<OpId> {
        self.class.post_send(self, Kind::Unexpected, to, tag, body, callback).map(OpId)
    }

    pub fn recv_unexpected(&self, callback: Callback) -> Result<OpId> {
        self.class.post_unexpected(self, callback).map(OpId)
    }

    /// Sends an expected message. Copies its bytes and fails like [`Context::send_unexpected`].
    pub fn send_expected(
        &self,
        to: &Address,
        tag: u32,
        body: &[u8],
        callback: Callback,
    ) -> Result<OpId> {
        self.class.post_send(self, Kind::Expected, to, tag, body, callback).map(OpId)
    }

    pub fn recv_expected(&self, from: &Address, tag: u32, callback: Callback) -> Result<OpId> {
        self.class.post_expected(self, from, tag, callback).map(OpId)
    }

    /// Transfers `size` bytes between a local memory handle and one of the peer. Their segments may
    /// be divided differently. Returns `ADDRNOTAVAIL` if the address belongs to another class,
    /// `PERMISSION` if a handle does not permit the access, `ACCESS` if a handle is not registered,
    /// `OVERFLOW` if a range exceeds its handle, and `INVALID_ARG` if `local` does not belong to
    /// this process or `remote` does not belong to the peer.
    pub fn transfer(
        &self,
        direction: Direction,
        peer: &Address,
        local: Part<'_>,
        remote: Part<'_>,
        size: usize,
        callback: Callback,
    ) -> Result<OpId> {
        self.transfer_announced((direction, peer), local, remote, size, callback, |_| {})
    }

    /// Like [`Context::transfer`]; `announce` gets the operation's number before the callback can
    /// run. It does not run if this fails.
    #[doc(hidden)]
    pub fn transfer_announced(
        &self,
        (direction, peer): (Direction, &Address),
        local: Part<'_>,
        remote: Part<'_>,
        size: usize,
        callback: Callback,
        announce: impl FnOnce(OpId),
    ) -> Result<OpId> {
        let class = &self.class;
        let transfer = Transfer::new(class, direction, class.peer(peer)?, local, remote, size)?;
        self.start(transfer, callback, |op| announce(OpId(op))).map(OpId)
    }

    /// Cancels an operation unless it has completed. Returns `INVALID_ARG` if it was never started.
    pub fn cancel(&self, op: OpId) -> Result<()> {
        self.class.cancel(op.0)
    }
}
