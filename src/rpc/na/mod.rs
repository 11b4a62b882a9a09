//! The network abstraction: classes, contexts, addresses, messages, memory.
//!
//! | module | owns |
//! |---|---|
//! | `address` | information strings, addresses and their text |
//! | `class` | messages in and out, matched with receives; cancelling |
//! | `context` | completions, progress, trigger |
//! | `memory` | memory handles and their bytes |
//! | `transfer` | put and get, in chunks |
//! | `flow` | windows: how much may be under way to a peer that takes nothing in |
//! | `wire` | the head of a message |
//! | `class_table` | the classes of the process, and the handler that messages come to |
//! | `dynamic` | peers in other jobs |
//! | `blocking_wait` | waits that cost nothing when nothing comes |
//!
//! A class is made by [`Class::new`] of an information string: `mpi` reaches the ranks
//! of the job, `mpi+dynamic` other jobs as well, `self` only the process itself. The
//! first class over MPI, and finalising the last, are **collective over the job**;
//! nothing else is. The n-th class of a process talks to the n-th of the others.
//!
//! Operations take a callback, return at once, and end in [`Context::progress`]; the
//! callback runs in [`Context::trigger`] and nowhere else. Every operation can be
//! cancelled by its [`OpId`]; its callback then hears so, and its buffers are free.
//!
//! **Expected messages** want their receive to be posted before they are sent. One that
//! comes too early is kept, within the sender's window, until its receive is posted.

pub(crate) mod address;
pub(crate) mod blocking_wait;
pub(crate) mod class;
pub(crate) mod class_table;
pub(crate) mod context;
pub(crate) mod dynamic;
#[expect(unreachable_pub, reason = "the models include it, whose tests are other crates")]
mod eventcount;
pub(crate) mod flow;
pub(crate) mod memory;
pub(crate) mod transfer;
pub(crate) mod wire;
mod zeroed_buffer;

pub use address::{Address, MAX_ADDRESS, Scheme};
pub use class::MAX_TAG;
pub use context::{Callback, Event, What};
pub use memory::{Access, Mem, Run};
pub use transfer::{Direction, Part};

use crate::rpc::failure::{Result, refuse};
use class::Shared;
use context::ContextShared;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use transfer::Transfer;
use wire::Kind;

/// Names an operation, for cancelling it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OpId(pub u64);

/// A network, as a program sees it. Clones are the same class.
#[derive(Debug, Clone)]
pub struct Class {
    pub(crate) shared: Arc<Shared>,
    contexts: Arc<AtomicUsize>,
}

impl Class {
    /// Makes a class. Collective over the job for the first one over MPI, which also
    /// starts the engine (and MPI) where they do not run.
    ///
    /// # Errors
    /// `PROTONOSUPPORT` for a string that names no network; `NA_ERROR` where MPI has
    /// not what it takes.
    pub fn new(info: &str, listen: bool) -> Result<Class> {
        Ok(Class { shared: Shared::open(info, listen)?, contexts: Arc::default() })
    }

    /// Ends the class; what is pending is cancelled. Collective over the job for the
    /// last one over MPI.
    ///
    /// # Errors
    /// `BUSY` while it has contexts; `INVALID_ARG` the second time.
    pub fn finalize(&self) -> Result<()> {
        self.check_idle()?;
        self.shared.close()
    }

    /// # Errors
    /// `BUSY` while the class has contexts.
    pub(crate) fn check_idle(&self) -> Result<()> {
        match self.contexts.load(Ordering::Acquire) {
            0 => Ok(()),
            n => refuse!(BUSY, "the class has {n} contexts; destroy them first"),
        }
    }

    /// A new context.
    pub fn context(&self) -> Result<Context> {
        self.shared.check_open()?;
        self.contexts.fetch_add(1, Ordering::AcqRel);
        let shared = ContextShared::new(self.shared.clone());
        Ok(Context { shared, _count: Arc::new(Counted(self.contexts.clone())) })
    }

    /// How many attempts to connect from outside the job were refused, where the class listens
    /// for other jobs.
    pub fn refused(&self) -> u64 {
        self.shared.dynamic.as_ref().map_or(0, dynamic::Dynamic::refused)
    }

    /// The network that the class runs over.
    pub fn scheme(&self) -> Scheme {
        self.shared.scheme()
    }

    /// Whether the class was made to take messages of other processes.
    pub fn listens(&self) -> bool {
        self.shared.listens()
    }

    /// Whether two are the same class.
    pub fn same(&self, other: &Class) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Whether the class was not finalised.
    pub fn is_open(&self) -> bool {
        self.shared.check_open().is_ok()
    }

    /// The calling process's address.
    pub fn own_address(&self) -> Address {
        Address { peer: address::Peer::Own }
    }

    /// The address of a name. Connects to other jobs, which may wait.
    ///
    /// # Errors
    /// `INVALID_ARG` for what is no name, `ADDRNOTAVAIL` for a rank outside the job,
    /// `HOSTUNREACH` where nobody listens.
    pub fn lookup(&self, name: &str) -> Result<Address> {
        self.shared.lookup(name)
    }

    /// An address as text, which [`Class::lookup`] takes.
    pub fn text_of(&self, address: &Address) -> String {
        self.shared.text_of(address)
    }

    /// Whether a context is one of this class.
    pub fn owns(&self, context: &Context) -> bool {
        Arc::ptr_eq(&self.shared, &context.shared.class)
    }

    /// Longest expected message.
    pub fn max_expected(&self) -> usize {
        self.shared.max_expected()
    }

    /// Longest unexpected message.
    pub fn max_unexpected(&self) -> usize {
        self.shared.max_unexpected()
    }
}

/// Counts down with the last clone of a context.
#[derive(Debug)]
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Where operations of a class complete. Clones are the same context.
#[derive(Debug, Clone)]
pub struct Context {
    pub(crate) shared: Arc<ContextShared>,
    _count: Arc<Counted>,
}

impl Context {
    /// Whether transfers are under way.
    pub fn is_moving(&self) -> bool {
        self.shared.is_moving()
    }

    /// Gives up the callbacks that wait: they do not run.
    pub fn clear(&self) {
        self.shared.clear();
    }

    /// How many callbacks wait.
    pub fn queued(&self) -> usize {
        self.shared.queued()
    }

    /// [`Class::lookup`], with a callback.
    ///
    /// # Errors
    /// As for [`Class::lookup`]; the callback does not run then.
    pub fn lookup(&self, name: &str, callback: Callback) -> Result<OpId> {
        let address = self.shared.class.lookup(name)?;
        Ok(OpId(self.shared.looked_up(address, callback)))
    }

    /// Sends an unexpected message; its bytes are copied. It completes when it has
    /// left, for which nobody must have posted a receive; with a window under way to a
    /// peer that takes nothing in, it waits.
    ///
    /// # Errors
    /// `MSGSIZE` for a message that is too long, `INVALID_ARG` for a tag.
    pub fn send_unexpected(
        &self,
        to: &Address,
        tag: u32,
        body: &[u8],
        callback: Callback,
    ) -> Result<OpId> {
        let class = &self.shared.class;
        class.post_send(&self.shared, Kind::Unexpected, to, tag, body, callback).map(OpId)
    }

    /// Receives the next unexpected message, of anybody and with any tag.
    pub fn recv_unexpected(&self, callback: Callback) -> Result<OpId> {
        self.shared.class.post_unexpected(&self.shared, callback).map(OpId)
    }

    /// Sends an expected message.
    ///
    /// # Errors
    /// As for [`Context::send_unexpected`].
    pub fn send_expected(
        &self,
        to: &Address,
        tag: u32,
        body: &[u8],
        callback: Callback,
    ) -> Result<OpId> {
        let class = &self.shared.class;
        class.post_send(&self.shared, Kind::Expected, to, tag, body, callback).map(OpId)
    }

    /// Receives the next expected message of a source with a tag.
    pub fn recv_expected(&self, from: &Address, tag: u32, callback: Callback) -> Result<OpId> {
        self.shared.class.post_expected(&self.shared, from, tag, callback).map(OpId)
    }

    /// Moves bytes between a handle here and one of a peer, whose segments may have
    /// other borders.
    ///
    /// # Errors
    /// `PERMISSION` where a handle does not allow it; `ACCESS` where it is not
    /// registered; `OVERFLOW` past an end; `INVALID_ARG` where a handle is not that of
    /// its side.
    pub fn transfer(
        &self,
        direction: Direction,
        peer: &Address,
        local: Part<'_>,
        remote: Part<'_>,
        size: usize,
        callback: Callback,
    ) -> Result<OpId> {
        let class = &self.shared.class;
        let transfer = Transfer::new(class, direction, peer.peer, local, remote, size)?;
        self.shared.start(transfer, callback).map(OpId)
    }

    /// Cancels an operation. One that has ended stays as it is.
    ///
    /// # Errors
    /// `INVALID_ARG` for what was never an operation.
    pub fn cancel(&self, op: OpId) -> Result<()> {
        self.shared.class.cancel(op.0)
    }

    /// Makes progress until a callback waits or the time is over; true where one does.
    pub fn progress(&self, timeout: Duration) -> Result<bool> {
        self.shared.progress(timeout)
    }

    /// Runs at most `most` callbacks; returns how many. Where none waits, makes
    /// progress for up to `timeout` until one does.
    pub fn trigger(&self, timeout: Duration, most: usize) -> Result<usize> {
        self.shared.trigger(timeout, most)
    }
}
