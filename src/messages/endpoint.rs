//! Sending: the result of a registration, and endpoints for other threads.

use super::codec::Encoded;
use super::shared::{OnReply, Shared, on_reply};
use super::{Batches, Item, Message, Reply};
use crate::in_call::InCall;
use crate::one_thread::OneThread;
use portolan_base::error::{Result, fail};
use portolan_engine::am::Am;
use portolan_engine::am::{Data, Signals};
use portolan_engine::runtime::admission;
use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

/// Registered messages and items. Sends them, and waits until all of them have been handled.
///
/// Like the runtime, it stays on its thread; [`Messages::endpoint`] serves other threads. Handlers
/// stay registered until [`Messages::free`] or until the runtime ends.
///
/// ```compile_fail,E0277
/// fn needs_send<T: Send>() {}
/// needs_send::<portolan::messages::Messages<'static>>();
/// ```
#[derive(Debug)]
#[must_use = "the handlers stay registered until `Messages::free`, which is collective"]
pub struct Messages<'rt> {
    engine: &'rt Am,
    shared: Arc<Shared>,
    _thread: OneThread,
}

/// The sending functions of [`Messages`], for other threads of the program.
#[derive(Debug, Clone, Copy)]
#[must_use = "an endpoint sends nothing by itself"]
pub struct Endpoint<'a> {
    pub(super) engine: &'a Am,
    pub(super) shared: &'a Shared,
}

/// The sending functions that several types have in common.
macro_rules! sending {
    ($type:literal) => {
        /// Returns the calling rank.
        #[inline]
        pub fn rank(&self) -> usize {
            self.checked().engine.rank()
        }

        /// Returns the number of ranks.
        #[inline]
        pub fn size(&self) -> usize {
            self.checked().engine.size()
        }

        /// Sends a message and discards the reply of its handler. On return the message is on its
        /// way. A message to the calling rank has already been handled, unless the caller is a
        /// handler or the handler of the message may block.
        ///
        /// # Errors
        /// Returns `Rank` if `rank` is outside the job, or `Argument` if the type is not registered
        /// or the value cannot be encoded. Nothing is sent in these cases.
        pub fn spawn<M: Message>(&self, rank: usize, message: &M) -> Result<()> {
            const CALL: &str = concat!($type, "::spawn");
            self.checked().send(CALL, rank, message, Cow::Borrowed(&[]), None)
        }

        /// Sends a message with a payload of any length, which the handler reads by
        /// [`Delivery::payload`](super::Delivery::payload). A vector is moved into the message, and
        /// the call returns at once. A slice has been copied or sent when the call returns.
        ///
        /// # Errors
        /// Fails as `spawn` does.
        pub fn spawn_with<'b, M: Message>(
            &self,
            rank: usize,
            message: &M,
            payload: impl Into<Cow<'b, [u8]>>,
        ) -> Result<()> {
            const CALL: &str = concat!($type, "::spawn_with");
            self.checked().send(CALL, rank, message, payload.into(), None)
        }

        /// Sends a message and returns its pending reply.
        ///
        /// # Errors
        /// Fails as `spawn` does.
        pub fn call<M: Message>(&self, rank: usize, message: &M) -> Result<Reply<'_, M::Reply>> {
            const CALL: &str = concat!($type, "::call");
            self.checked().call_any(CALL, rank, message, Cow::Borrowed(&[]))
        }

        /// Sends a message with a payload and returns its pending reply.
        ///
        /// # Errors
        /// Fails as `spawn` does.
        pub fn call_with<'b, M: Message>(
            &self,
            rank: usize,
            message: &M,
            payload: impl Into<Cow<'b, [u8]>>,
        ) -> Result<Reply<'_, M::Reply>> {
            const CALL: &str = concat!($type, "::call_with");
            self.checked().call_any(CALL, rank, message, payload.into())
        }

        /// Sends a message and runs `then` on this rank with the reply. `then` follows the rules of
        /// handlers. A handler can use this to continue after a call without waiting.
        ///
        /// # Errors
        /// Fails as `spawn` does.
        pub fn call_then<M: Message>(
            &self,
            rank: usize,
            message: &M,
            then: impl FnOnce(M::Reply, &super::Delivery<'_>) + Send + 'static,
        ) -> Result<()> {
            const CALL: &str = concat!($type, "::call_then");
            let on_reply = super::shared::on_reply::<M>(then);
            self.checked().send(CALL, rank, message, Cow::Borrowed(&[]), Some(on_reply))
        }

        /// Returns the batches of an item type, for many pushes.
        ///
        /// # Errors
        /// Returns `Argument` if the type is not registered.
        #[inline]
        pub fn batches<I: Item>(&self) -> Result<Batches<'_, I>> {
            use crate::in_call::InCall;
            const CALL: &str = concat!($type, "::batches");
            let Endpoint { engine, shared } = self.checked();
            Ok(Batches::new(engine, shared.items::<I>().in_call(CALL)?))
        }

        /// Adds an item to the batch for `rank`. For many items, [`Batches::push`] is faster.
        ///
        /// # Errors
        /// Returns `Rank` if `rank` is outside the job, `Argument` if the type is not registered,
        /// or the error of the send.
        #[inline]
        pub fn aggregate<I: Item>(&self, rank: usize, item: I) -> Result<()> {
            use crate::in_call::InCall;
            const CALL: &str = concat!($type, "::aggregate");
            self.batches::<I>().and_then(|b| b.push(rank, item)).in_call(CALL)
        }

        /// Sends the collected items of all types, which are otherwise sent when a batch is full or
        /// a millisecond old.
        ///
        /// # Errors
        /// Returns the error of a send.
        pub fn flush(&self) -> Result<()> {
            use crate::in_call::InCall;
            let Endpoint { engine, shared } = self.checked();
            for batches in shared.all_items() {
                batches.flush(engine).in_call(concat!($type, "::flush"))?;
            }
            Ok(())
        }
    };
}
pub(super) use sending;

impl<'rt> Messages<'rt> {
    pub(super) fn new(engine: &'rt Am, shared: Arc<Shared>) -> Messages<'rt> {
        Messages { engine, shared, _thread: OneThread::default() }
    }

    fn checked(&self) -> Endpoint<'_> {
        Endpoint { engine: self.engine, shared: &self.shared }
    }

    /// Returns an endpoint that other threads can use to send.
    ///
    /// ```no_run
    /// # fn counts<I: portolan::messages::Item>(messages: &portolan::messages::Messages<'_>, item: I) -> portolan::Result<()> {
    /// let endpoint = messages.endpoint()?;
    /// std::thread::scope(|scope| {
    ///     scope.spawn(move || endpoint.aggregate(0, item));
    /// });
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns `State` if MPI was initialised below `MPI_THREAD_MULTIPLE` and sending needs MPI.
    pub fn endpoint(&self) -> Result<Endpoint<'_>> {
        if !self.engine.may_use_threads() {
            fail!(
                State,
                "messages are sent by MPI, which was initialised below MPI_THREAD_MULTIPLE: only \
                 the thread that initialised it may send"
            );
        }
        admission::endpoint_given();
        Ok(self.checked())
    }

    /// Returns this rank's state of type `S`, as passed to
    /// [`Handlers::state`](super::Handlers::state).
    pub fn state<S: Any + Send + Sync>(&self) -> Option<&S> {
        self.shared.state()
    }

    /// Waits until no message or item of the job is unsent, in flight or unhandled, including those
    /// that handlers send. Collective over all ranks.
    ///
    /// # Errors
    /// Returns the error of a send.
    pub fn quiesce(&self) -> Result<()> {
        self.engine.quiesce().in_call("Messages::quiesce")
    }

    /// Handles the messages that have arrived. Returns whether there were any. Every call of this
    /// library that waits and the progress thread do the same, so a program needs this call only to
    /// handle messages sooner.
    ///
    /// # Errors
    /// Returns the error of a transport.
    pub fn poll(&self) -> Result<bool> {
        self.engine.probe().in_call("Messages::poll")
    }

    /// Completes all messages and unregisters the handlers. Their types can then be registered
    /// again. Collective over all ranks.
    ///
    /// # Errors
    /// Fails as [`Messages::quiesce`] does.
    pub fn free(self) -> Result<()> {
        const CALL: &str = "Messages::free";
        self.engine.quiesce().in_call(CALL)?;
        match self.shared.numbers.get() {
            Some(numbers) => self.engine.unregister_handlers(&numbers.all).in_call(CALL),
            None => Ok(()),
        }
    }

    sending!("Messages");
}

impl<'a> Endpoint<'a> {
    fn checked(&self) -> Endpoint<'a> {
        *self
    }

    sending!("Endpoint");

    /// `on_reply`, if given, runs with the reply.
    pub(super) fn send<M: Message>(
        &self,
        call: &'static str,
        rank: usize,
        message: &M,
        payload: Cow<'_, [u8]>,
        on_reply: Option<OnReply>,
    ) -> Result<()> {
        let Endpoint { engine, shared } = *self;
        let handler = shared.message::<M>().in_call(call)?;
        engine.check_rank(rank).in_call(call)?;
        let token = on_reply.map_or(0, |on_reply| shared.expect(on_reply));
        let sent = Encoded::new(token, message, M::name()).and_then(|encoded| {
            let data = match (encoded.before_payload(), payload) {
                ([], Cow::Borrowed(bytes)) => Data::Bytes(bytes),
                ([], Cow::Owned(bytes)) => Data::Owned(bytes),
                (front, payload) => Data::Owned([front, &payload].concat()),
            };
            // SAFETY: the data is a slice or vector and no signal is requested: no raw address.
            unsafe { engine.send_am(rank, handler, encoded.header(), data, Signals::default()) }
        });
        if sent.is_err() && token != 0 {
            drop(shared.take(token));
        }
        sent.in_call(call)
    }

    pub(super) fn call_any<M: Message>(
        &self,
        call: &'static str,
        rank: usize,
        message: &M,
        payload: Cow<'_, [u8]>,
    ) -> Result<Reply<'a, M::Reply>> {
        let (reply, fill) = Reply::new(self.engine, rank);
        let on_reply = on_reply::<M>(|reply, _| fill(reply));
        self.send(call, rank, message, payload, Some(on_reply))?;
        Ok(reply)
    }
}
