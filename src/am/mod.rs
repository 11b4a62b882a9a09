//! Active messages: a request that runs a handler at its target.
//!
//! | module | owns |
//! |---|---|
//! | [`aggregate`] | many small items in few messages |
//! | `gateway` | batches to other nodes by way of one rank on each side |
//! | [`wire`] | what travels: the head of a message |
//! | [`ring`] | a ring of messages from one rank to another of its node, in shared memory |
//! | [`shm_transport`] | the rings of a node: sending, polling, waking a sleeping rank |
//! | [`work_split`] | the pieces of a job that two ranks of a node share |
//! | [`cooperative_copy`] | copies between ranks of a node with the owner's help |
//! | [`state`] | what a rank keeps: handlers, what it awaits, the dispatcher's lock |
//! | [`lock`] | keeping handlers from running for a while |
//! | `layer` | the layer's place among the others; polls and naps of all waits |
//! | [`over_mpi`] | messages to other nodes |
//! | `send` | the origin: which way a message goes |
//! | [`poll_state`] | whether this rank polls, as others see it |
//! | [`target_progress`] | the target: header handlers, bytes into place, completion handlers, answers |
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
//! there: read from the origin's memory, or sent through the ring in pieces, or as
//! a message of MPI's.
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
mod gateway;
pub(crate) mod handler_dispatch;
mod layer;
pub(crate) mod lock;
pub(crate) mod over_mpi;
#[expect(unreachable_pub, reason = "the models include it, whose tests are other crates")]
pub(crate) mod poll_state;
pub(crate) mod quiesce;
mod report;
pub(crate) mod ring;
mod send;
pub(crate) mod shm_transport;
pub(crate) mod state;
pub(crate) mod target_progress;
pub(crate) mod wire;
#[expect(unreachable_pub, reason = "the models include it, whose tests are other crates")]
pub(crate) mod work_split;

use gateway::{GATEWAY, Gateway};
pub use layer::Am;
pub(crate) use layer::Owner;
pub(crate) use state::AmState;
pub use state::Hook;

/// The number of the handler of help, the same on all ranks.
const HELP: HandlerId = HandlerId(1);

use crate::error::{Result, fail};
use crate::peer::CompletionCounter;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Longest header, in bytes.
pub const MAX_HEADER: usize = 2048;

/// Names a handler: the same number on every rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HandlerId(pub(crate) u16);

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

impl Am {
    /// Makes the layer's own handlers known, before all others.
    fn register_own(&self) -> Result<()> {
        let handlers = &self.state()?.handlers;
        let ids = [
            handlers.add("portolan::route", Arc::new(Gateway))?,
            handlers.add("portolan::help", Arc::new(cooperative_copy::Help))?,
        ];
        if ids != [GATEWAY, HELP] {
            fail!(Internal, "the handlers of active messages' own are {ids:?}");
        }
        Ok(())
    }

    /// Makes handlers known under names. Collective over all ranks, which give the
    /// same names in the same order; the first call starts active messages. When
    /// it returns, every rank knows them.
    ///
    /// # Errors
    /// `Argument` on all ranks where the names differ between ranks or one is in
    /// use; `Memory` where `PORTOLAN_AM=node` and there is no shared memory.
    pub fn add_handlers(
        &self,
        handlers: Vec<(String, Arc<dyn Handler>)>,
    ) -> Result<Vec<HandlerId>> {
        let world = self.world();
        let state = self.state()?;
        let mut names = DefaultHasher::new();
        for (name, _) in &handlers {
            name.hash(&mut names);
        }
        let digests = world.allgather(self, &names.finish())?;
        let differs = digests.iter().position(|d| *d != digests[0]);
        let taken = handlers.iter().enumerate().find(|(n, (name, _))| {
            state.handlers.has(name) || handlers[..*n].iter().any(|(other, _)| other == name)
        });
        if let Some(rank) = differs {
            let mine: Vec<&str> = handlers.iter().map(|(name, _)| name.as_str()).collect();
            fail!(
                Argument,
                "rank {rank} registers other handlers than rank 0, or in another order; this rank \
                 registers {mine:?}"
            );
        }
        if let Some((_, (name, _))) = taken {
            fail!(Argument, "the handler name {name:?} is in use");
        }
        let ids = handlers
            .into_iter()
            .map(|(name, handler)| {
                state.add_gate(&*handler);
                state.handlers.add(state::intern(&name), handler)
            })
            .collect();
        // No message comes before all know what to do with it.
        world.barrier(self)?;
        ids
    }

    /// Forgets handlers. Collective, after [`Am::quiesce`].
    pub fn unregister_handlers(&self, ids: &[HandlerId]) -> Result<()> {
        let state = self.state()?;
        self.world().barrier(self)?;
        for id in ids {
            match state.handlers.get(*id) {
                Some(entry) => entry.gone.store(true, Ordering::Relaxed),
                None => fail!(Argument, "no handler has the number {}", id.0),
            }
        }
        state.gates.write().retain(|gate| state.handlers.has_gate(gate));
        Ok(())
    }

    /// Adds a function that sends what a face has collected but not sent; it is
    /// called by [`Am::quiesce`], and now and then by the progress thread (the
    /// flag is then true: only what is old is to go). It must not wait for anything
    /// but room, and returns whether it sent anything.
    pub fn add_flush_hook(&self, hook: state::Hook) -> Result<()> {
        self.state()?.hooks.write().push(hook);
        Ok(())
    }

    /// Takes a hook out again.
    pub fn remove_flush_hook(&self, hook: &state::Hook) -> Result<()> {
        self.state()?.hooks.write().retain(|h| !Arc::ptr_eq(h, hook));
        Ok(())
    }
}
