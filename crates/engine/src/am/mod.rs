//! Active messages: requests that run a handler at their target.
//!
//! **The path of a message.** [`Am::send_am`] chooses the transport: a ring on the same node, MPI
//! messages to another node, and neither to the rank itself. MPI messages use the channel of the
//! message path, with its flow control and fences. A message consists of a *header* of at most
//! [`MAX_HEADER`] bytes and *data* of any length. Data up to the eager limit is sent with the
//! header. Longer data stays at the origin until the target knows its destination, and then moves
//! directly there ([`rendezvous`]).
//!
//! At the target, the [`Handler`] receives the [`Arrival`]. Its result ([`Accept`]) gives the
//! destination of the data and the action that runs when the data is in place ([`Then`]).
//!
//! **Handlers** of one rank run one at a time, on any thread that makes progress. They must not
//! block: a call that would wait returns an error that names the handler. They may send: if a ring
//! is full or credit is used up, their message is kept and sent later, so handlers never deadlock.
//! All other senders wait, and serve other ranks meanwhile, so memory is bounded by what handlers
//! send. [`Then::Later`] runs on a separate thread, in the order of arrival, and may do anything.
//!
//! **Order.** Header handlers of messages from one origin run in the order of the sends. Data of
//! long messages may arrive later than that of short ones.
//!
//! **Completions.** At [`Signals::origin`], the header and the data may be changed again. At
//! [`Signals::completion`], the message was handled at the target, including its `Then`.

pub mod aggregate;
pub(crate) mod completion_thread;
pub(crate) mod cooperative_copy;
pub mod deferral;
#[expect(unreachable_pub, reason = "the models include it, whose tests are other crates")]
mod doorbell;
pub(crate) mod handler_dispatch;
pub mod inbound;
pub mod lock;
pub mod over_mpi;
#[expect(unreachable_pub, reason = "the models include it, whose tests are other crates")]
pub(crate) mod poll_state;
mod progress;
pub mod quiesce;
mod registry;
pub mod rendezvous;
mod report;
mod send;
pub(crate) mod shm_transport;
pub mod state;
pub(crate) mod target_progress;
pub mod wire;
#[expect(unreachable_pub, reason = "the models include it, whose tests are other crates")]
pub(crate) mod work_split;

pub use state::AmState;
pub use state::Hook;
pub use wire::{HandlerId, MAX_HEADER};

use crate::core::peer::CompletionCounter;
use crate::ops::Ops;
use portolan_base::error::{Result, fail};
use std::ops::Deref;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

#[derive(Debug)]
pub struct Arrival<'a> {
    pub origin: usize,
    pub header: &'a [u8],
    pub len: usize,
    /// The data, valid until the handler returns, if all of it arrived with the header.
    pub data: Option<&'a [u8]>,
}

#[derive(Debug)]
pub enum Destination {
    /// The handler has consumed what it wants. Data that has not arrived is dropped.
    Taken,
    /// Valid for writes of the data's length until the message is complete.
    At(*mut u8),
    Buffer,
}

/// Receives the buffer of [`Destination::Buffer`], or else an empty one.
pub type Completion = Box<dyn FnOnce(&Am, Vec<u8>) + Send>;

pub enum Then {
    Nothing,
    /// Runs at once, under the rules of handlers.
    Inline(Completion),
    /// Runs on the completion thread, and may block and communicate.
    Later(Completion),
}

#[derive(Debug)]
pub struct Accept {
    pub to: Destination,
    pub then: Then,
}

impl Accept {
    pub const DONE: Accept = Accept { to: Destination::Taken, then: Then::Nothing };
}

/// An error or a panic ends the job, because the origin relies on the message.
pub trait Handler: Send + Sync {
    /// Runs when the header has arrived, together with the data if it is short.
    fn arrive(&self, am: &Am, message: &Arrival<'_>) -> Result<Accept>;

    /// Returns the size in bytes of the elements that the messages consist of, which must be the
    /// same on all ranks.
    fn element_size(&self) -> usize {
        1
    }

    /// Returns whether short data may arrive after its header, as longer data always may.
    fn takes_fragments(&self) -> bool {
        false
    }

    /// Decides when the handler may run; constant. Such a handler receives no eager fragments.
    fn deferral(&self) -> Option<Arc<deferral::Deferral>> {
        None
    }

    /// Returns whether the handler can run for this message now. Only handlers with a deferral
    /// queue are asked, again with each poll. `waited` is the time since the first refusal. An
    /// error, which ends the job, means that the message cannot wait any longer.
    fn is_ready(&self, _origin: usize, _header: &[u8], _waited: Duration) -> Result<bool> {
        Ok(true)
    }
}

pub(crate) type Job = Box<dyn FnOnce(&Am) + Send>;

#[derive(Default)]
pub enum Signal {
    #[default]
    None,
    /// Ends one operation, after [`CompletionCounter::begin`] by the caller.
    Counter(Arc<CompletionCounter>),
    /// Adds one to a counter, which must outlive the message.
    Count(*const AtomicU32),
    /// Runs on the thread that makes progress, and must not block.
    Call(Job),
}

impl std::fmt::Debug for Signal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Signal::None => "None",
            Signal::Counter(_) => "Counter",
            Signal::Count(_) => "Count",
            Signal::Call(_) => "Call",
        })
    }
}

impl std::fmt::Debug for Then {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Then::Nothing => "Nothing",
            Then::Inline(_) => "Inline",
            Then::Later(_) => "Later",
        })
    }
}

// SAFETY: a `Count`'s creator guarantees that its counter, an atomic, outlives the message.
unsafe impl Send for Signal {}

#[derive(Debug, Default)]
pub struct Signals {
    /// The header and the data may be changed again.
    pub origin: Signal,
    /// The message was handled at the target, including its completion handler.
    pub completion: Signal,
}

#[derive(Debug)]
pub enum Data<'a> {
    /// Short data, and in a handler all, is copied before the call returns; other data has left.
    Bytes(&'a [u8]),
    Owned(Vec<u8>),
    /// Valid and unchanged until [`Signals::origin`].
    At(*const u8, usize),
}

impl Data<'_> {
    pub const NONE: Data<'static> = Data::Bytes(&[]);
}

pub trait Owner: Send + Sync {
    fn am(&self) -> &Am;
}

#[derive(Debug)]
pub struct Am {
    ops: Ops,
    state: OnceLock<AmState>,
    owner: OnceLock<Weak<dyn Owner>>,
}

impl Deref for Am {
    type Target = Ops;

    #[inline]
    fn deref(&self) -> &Ops {
        &self.ops
    }
}

impl Am {
    /// Does not start active messages.
    pub fn new(ops: Ops) -> Am {
        Am { ops, state: OnceLock::new(), owner: OnceLock::new() }
    }

    /// Fails with `State` if the runtime is not initialised.
    pub fn owner(&self) -> Result<Weak<dyn Owner>> {
        match self.owner.get() {
            Some(owner) => Ok(owner.clone()),
            None => fail!(State, "the runtime is not initialised; initialise it first"),
        }
    }

    #[inline]
    pub fn started(&self) -> Option<&AmState> {
        self.state.get()
    }

    /// Fails with `State` before handlers were registered.
    #[inline]
    pub fn state(&self) -> Result<&AmState> {
        match self.started() {
            Some(state) => Ok(state),
            None => fail!(State, "active messages are not started: register handlers first"),
        }
    }

    /// Fails with `State` if another thread does so at the same time.
    pub fn begin(&self, state: AmState) -> Result<()> {
        if self.state.set(state).is_err() {
            fail!(State, "two threads start active messages at the same time");
        }
        Ok(())
    }
}
