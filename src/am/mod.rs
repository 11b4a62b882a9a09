//! Active messages: a request that runs a handler at its target.
//!
//! | module | owns |
//! |---|---|
//! | [`aggregate`] | many small items in few messages |
//! | [`wire`] | what travels: the head of a message |
//! | [`ring`] | a ring of messages from one rank to another of its node, in shared memory |
//! | [`shm_transport`] | the rings of a node: sending, polling, waking a sleeping rank |
//! | [`work_split`] | the pieces of a job that two ranks of a node share |
//! | [`cooperative_copy`] | copies between ranks of a node with the owner's help |
//! | [`state`] | what a rank keeps: handlers, what it awaits, the dispatcher's lock |
//! | [`lock`] | keeping handlers from running for a while |
//! | `registry` | handlers get their numbers, the same on all ranks |
//! | `layer` | the layer's place among the others; polls and naps of all waits |
//! | [`over_mpi`] | messages to other nodes |
//! | `send` | the origin: which way a message goes |
//! | [`poll_state`] | whether this rank polls, as others see it |
//! | [`target_progress`] | the target: polls of all that brings messages, and what each record asks for |
//! | [`handler_dispatch`] | header handlers, completion handlers, acknowledgements |
//! | [`rendezvous`] | long messages, by whichever transport |
//! | [`completion_thread`] | the thread on which completion handlers may block |
//! | [`gate`] | handlers that run only in the calls of their face |
//! | `report` | what is pending on this rank, in words |
//! | [`quiesce`] | when no message is unsent, in flight or unhandled anywhere |
//!
//! **The way of a message.** [`Am::send_am`] finds the transport to the target:
//! a ring where the two share a node, MPI's messages elsewhere (the message path's
//! own channel, so that both share flow control and fences), neither for oneself. A
//! message consists of a *header* of at most [`MAX_HEADER`] bytes and *data* of any
//! length. Data up to the eager limit travels with the header. Longer data stays
//! where it is until the target knows where it goes, and then travels straight
//! there ([`rendezvous`]).
//!
//! At the target the [`Handler`] that the message names sees the [`Arrival`] and
//! says what becomes of the data ([`Accept`]): taken on the spot, received into a
//! place that it names, or into a buffer; and what runs then ([`Then`]).
//!
//! **Handlers** of one rank run one at a time, on whichever thread makes progress.
//! They must not block: a call that would wait returns an error that names the
//! handler. They may send: where a ring is full or credit is used up, what a
//! handler sends is kept and goes out later, so handlers never deadlock. All other
//! senders wait, and serve while they wait, so memory is bounded by what handlers
//! themselves send. [`Then::Later`] runs on a thread of its own, in the order of
//! arrival, and may do anything.
//!
//! **Order.** Header handlers of messages from one origin run in the order in which
//! they were sent. Data of long messages may arrive later than that of short ones.
//!
//! **Three completions.** The origin's [`Signals::origin`]: header and data may be
//! changed again. [`Signals::completion`]: the message was handled at the target,
//! its `Then` included. What the target itself counts is its handler's business.

pub(crate) mod aggregate;
pub(crate) mod completion_thread;
pub(crate) mod cooperative_copy;
#[expect(unreachable_pub, reason = "the models include it, whose tests are other crates")]
mod doorbell;
pub(crate) mod gate;
pub(crate) mod handler_dispatch;
mod layer;
pub(crate) mod lock;
pub(crate) mod over_mpi;
#[expect(unreachable_pub, reason = "the models include it, whose tests are other crates")]
pub(crate) mod poll_state;
pub(crate) mod quiesce;
mod registry;
pub(crate) mod rendezvous;
mod report;
pub(crate) mod ring;
mod send;
pub(crate) mod shm_transport;
pub(crate) mod state;
pub(crate) mod target_progress;
pub(crate) mod wire;
#[expect(unreachable_pub, reason = "the models include it, whose tests are other crates")]
pub(crate) mod work_split;

pub(crate) use state::AmState;
pub use state::Hook;
pub use wire::{HandlerId, MAX_HEADER};

use crate::error::{Result, fail};
use crate::ops::Ops;
use crate::peer::CompletionCounter;
use std::ops::Deref;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// A message, as its handler sees it first.
#[derive(Debug)]
pub struct Arrival<'a> {
    /// The rank that sent it.
    pub origin: usize,
    /// The header.
    pub header: &'a [u8],
    /// Bytes of data.
    pub len: usize,
    /// The data, where it came whole with the header; dies when the handler
    /// returns.
    pub data: Option<&'a [u8]>,
}

/// What becomes of a message's data.
#[derive(Debug)]
pub enum Destination {
    /// The handler has taken all that it wants; what has not come is not sent.
    Taken,
    /// To this address of the calling process, valid for writes of the data's
    /// length until the message is complete.
    At(*mut u8),
    /// Into a buffer that goes to the completion handler.
    Buffer,
}

/// A completion handler: gets the buffer of [`Destination::Buffer`], else an empty
/// one.
pub(crate) type Completion = Box<dyn FnOnce(&Am, Vec<u8>) + Send>;

/// What runs when the data is in place.
pub enum Then {
    /// Nothing.
    Nothing,
    /// This, at once, under the rules of handlers.
    Inline(Completion),
    /// This, on the completion thread; it may block and communicate.
    Later(Completion),
}

/// A handler's answer.
#[derive(Debug)]
pub struct Accept {
    /// Where the data goes.
    pub to: Destination,
    /// What runs then.
    pub then: Then,
}

impl Accept {
    /// The handler is done with the message.
    pub const DONE: Accept = Accept { to: Destination::Taken, then: Then::Nothing };
}

/// What a message runs at its target.
///
/// # Errors
/// An error that a handler returns is reported with its name and ends the job,
/// as a panic does: the origin counts on the message.
pub trait Handler: Send + Sync {
    /// Runs when the header has arrived (and the data, where it is short).
    fn arrive(&self, am: &Am, message: &Arrival<'_>) -> Result<Accept>;

    /// Whether short data, too, may come after its header where that is faster. Longer
    /// data does so anyway.
    fn takes_fragments(&self) -> bool {
        false
    }

    /// The gate that says when it may run; asked once. Such a handler gets no pieces.
    fn gate(&self) -> Option<Arc<gate::Gate>> {
        None
    }

    /// Whether it can run for this message now; of one with a gate. It is asked again with
    /// each poll; `waited` is how long it has refused the message.
    ///
    /// # Errors
    /// The message cannot be waited for any longer; ends the job.
    fn is_ready(&self, _origin: usize, _header: &[u8], _waited: Duration) -> Result<bool> {
        Ok(true)
    }
}

/// How the origin learns of a completion.
#[derive(Default)]
pub enum Signal {
    /// Not at all.
    #[default]
    None,
    /// The counter, on which [`CompletionCounter::begin`] was called for it, ends once.
    Counter(Arc<CompletionCounter>),
    /// Adds one to a counter that outlives the message.
    Count(*const AtomicU32),
    /// Runs this on the thread that makes progress; it must not block.
    Call(Box<dyn FnOnce(&Am) + Send>),
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

// SAFETY: the maker of a Count answers for the counter's life; it is atomic.
unsafe impl Send for Signal {}

/// The completions of a message that its origin wants to hear of.
#[derive(Debug, Default)]
pub struct Signals {
    /// Header and data may be changed again.
    pub origin: Signal,
    /// The message was handled at the target, completion handler included.
    pub completion: Signal,
}

/// The data of a message.
#[derive(Debug)]
pub enum Data<'a> {
    /// Copied before the call returns where it is short; where it is long, the
    /// call returns only when the bytes have left.
    Bytes(&'a [u8]),
    /// Given away.
    Owned(Vec<u8>),
    /// This many bytes at an address, which must stay valid and unchanged until
    /// [`Signals::origin`].
    At(*const u8, usize),
}

impl Data<'_> {
    /// No data.
    pub const NONE: Data<'static> = Data::Bytes(&[]);
}

/// What an engine's owner is to the threads that it starts: they hold it weakly.
pub(crate) trait Owner: Send + Sync {
    /// The layer.
    fn am(&self) -> &Am;
}

/// Active messages of this rank, started or not.
#[derive(Debug)]
pub struct Am {
    ops: Ops,
    state: OnceLock<AmState>,
    owner: OnceLock<Weak<dyn Owner>>,
}

impl std::fmt::Debug for dyn Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Owner")
    }
}

impl Deref for Am {
    type Target = Ops;

    #[inline]
    fn deref(&self) -> &Ops {
        &self.ops
    }
}

impl Am {
    /// Not started yet.
    pub fn new(ops: Ops) -> Am {
        Am { ops, state: OnceLock::new(), owner: OnceLock::new() }
    }

    /// The owner where the engine may have threads of its own.
    pub(super) fn owner_for_threads(&self) -> Result<Option<Weak<dyn Owner>>> {
        if self.may_use_threads() { self.owner().map(Some) } else { Ok(None) }
    }

    /// The owner of the engine, for threads.
    pub(crate) fn owner(&self) -> Result<Weak<dyn Owner>> {
        match self.owner.get() {
            Some(owner) => Ok(owner.clone()),
            None => fail!(State, "the runtime is not initialised; initialise it first"),
        }
    }

    /// What this rank keeps for active messages, where they were started.
    #[inline]
    pub(crate) fn started(&self) -> Option<&AmState> {
        self.state.get()
    }

    /// The same.
    ///
    /// # Errors
    /// `State` before handlers were registered.
    #[inline]
    pub(crate) fn state(&self) -> Result<&AmState> {
        match self.started() {
            Some(state) => Ok(state),
            None => fail!(State, "active messages are not started: register handlers first"),
        }
    }

    /// Starts them.
    ///
    /// # Errors
    /// `State` where another thread does so at the same time.
    pub(crate) fn begin(&self, state: AmState) -> Result<()> {
        if self.state.set(state).is_err() {
            fail!(State, "active messages are started by two threads at a time");
        }
        self.register_own()
    }
}
