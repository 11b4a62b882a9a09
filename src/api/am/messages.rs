//! Sending: what a registration returns, and what other threads get of it.

use super::codec::Encoded;
use super::shared::{OnReply, Shared};
use super::{Batches, Item, Message, Reply};
use crate::am::Am;
use crate::am::{Data, Signals};
use crate::api::in_call::InCall;
use crate::error::{Result, fail};
use crate::runtime::admission;
use std::any::Any;
use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

/// Registered messages and items: sends them, and waits for the end of all.
///
/// Like the runtime, it stays on its thread; [`Messages::endpoint`] is for others.
/// Handlers stay registered until [`Messages::free`], or until the runtime ends.
///
/// ```compile_fail,E0277
/// fn needs_send<T: Send>() {}
/// needs_send::<portolan::Messages<'static>>();
/// ```
#[derive(Debug)]
pub struct Messages<'rt> {
    engine: &'rt Am,
    shared: Arc<Shared>,
    _one_thread: PhantomData<*const ()>,
}

/// The sending part of [`Messages`], for threads of the program.
#[derive(Debug, Clone, Copy)]
pub struct Endpoint<'a> {
    pub(super) engine: &'a Am,
    pub(super) shared: &'a Shared,
}

/// The functions that send, of all that can.
macro_rules! sending {
    ($type:literal) => {
        /// The calling rank.
        #[inline]
        pub fn rank(&self) -> usize {
            self.checked().engine.rank()
        }

        /// The number of ranks.
        #[inline]
        pub fn size(&self) -> usize {
            self.checked().engine.size()
        }

        /// Sends a message; what its handler answers is dropped. On return the
        /// message is on its way. A message to oneself has been handled by then,
        /// unless the caller is a handler.
        ///
        /// # Errors
        /// `Rank`; `Argument` where the type is not registered or the value cannot
        /// be encoded. Nothing was sent then.
        pub fn spawn<M: Message>(&self, rank: usize, message: &M) -> Result<()> {
            const CALL: &str = concat!($type, "::spawn");
            self.checked().send(CALL, rank, message, Cow::Borrowed(&[]), None)
        }

        /// Sends a message with bytes beside it, any number of them, which the
        /// handler finds as [`Context::payload`](super::Context::payload). A vector
        /// is given away, and the call returns at once; a slice is copied, or has
        /// left when the call returns.
        ///
        /// # Errors
        /// As for `spawn`.
        pub fn spawn_with<'b, M: Message>(
            &self,
            rank: usize,
            message: &M,
            payload: impl Into<Cow<'b, [u8]>>,
        ) -> Result<()> {
            const CALL: &str = concat!($type, "::spawn_with");
            self.checked().send(CALL, rank, message, payload.into(), None)
        }

        /// Sends a message; the answer is to be waited for.
        ///
        /// # Errors
        /// As for `spawn`.
        pub fn call<M: Message>(&self, rank: usize, message: &M) -> Result<Reply<'_, M::Reply>> {
            const CALL: &str = concat!($type, "::call");
            self.checked().call_any(CALL, rank, message, Cow::Borrowed(&[]))
        }

        /// Sends a message with bytes beside it; the answer is to be waited for.
        ///
        /// # Errors
        /// As for `spawn`.
        pub fn call_with<'b, M: Message>(
            &self,
            rank: usize,
            message: &M,
            payload: impl Into<Cow<'b, [u8]>>,
        ) -> Result<Reply<'_, M::Reply>> {
            const CALL: &str = concat!($type, "::call_with");
            self.checked().call_any(CALL, rank, message, payload.into())
        }

        /// Sends a message; `then` runs here with the answer, under the rules of
        /// handlers. So a handler goes on after a call without waiting.
        ///
        /// # Errors
        /// As for `spawn`.
        pub fn call_then<M: Message>(
            &self,
            rank: usize,
            message: &M,
            then: impl FnOnce(M::Reply, &super::Context<'_>) + Send + 'static,
        ) -> Result<()> {
            const CALL: &str = concat!($type, "::call_then");
            let on_reply = super::reply::on_reply::<M>(then);
            self.checked().send(CALL, rank, message, Cow::Borrowed(&[]), Some(on_reply))
        }

        /// The batches of an item type, for many pushes.
        ///
        /// # Errors
        /// `Argument` where the type is not registered.
        #[inline]
        pub fn batches<I: Item>(&self) -> Result<Batches<'_, I>> {
            use crate::api::in_call::InCall;
            const CALL: &str = concat!($type, "::batches");
            let Endpoint { engine, shared } = self.checked();
            Ok(Batches::new(engine, shared.items::<I>().in_call(CALL)?))
        }

        /// Adds an item to the batch for a rank; [`Batches::push`] is quicker where
        /// there are many.
        ///
        /// # Errors
        /// `Rank`; `Argument` where the type is not registered.
        #[inline]
        pub fn aggregate<I: Item>(&self, rank: usize, item: I) -> Result<()> {
            use crate::api::in_call::InCall;
            const CALL: &str = concat!($type, "::aggregate");
            self.batches::<I>().and_then(|b| b.push(rank, item)).in_call(CALL)
        }

        /// Sends the items that are collected, of all types. They go by themselves
        /// when a batch is full, and when they are as old as `PORTOLAN_AGGREGATE_US`
        /// says.
        ///
        /// # Errors
        /// Those of sending.
        pub fn flush(&self) -> Result<()> {
            use crate::api::in_call::InCall;
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
        Messages { engine, shared, _one_thread: PhantomData }
    }

    fn checked(&self) -> Endpoint<'_> {
        Endpoint { engine: self.engine, shared: &self.shared }
    }

    /// What other threads send by.
    ///
    /// ```no_run
    /// # fn counts<I: portolan::Item>(messages: &portolan::Messages<'_>, item: I) -> portolan::Result<()> {
    /// let endpoint = messages.endpoint()?;
    /// std::thread::scope(|scope| {
    ///     scope.spawn(move || endpoint.aggregate(0, item));
    /// });
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `State` where MPI's thread level does not allow it.
    pub fn endpoint(&self) -> Result<Endpoint<'_>> {
        if !self.engine.may_use_threads() {
            fail!(
                State,
                "messages go by MPI, which was initialised below MPI_THREAD_MULTIPLE: only the \
                 thread that initialised it may send"
            );
        }
        admission::endpoint_given();
        Ok(self.checked())
    }

    /// This rank's state of a type, as it was given to
    /// [`Handlers::state`](super::Handlers::state).
    pub fn state<S: Any + Send + Sync>(&self) -> Option<&S> {
        self.shared.state()
    }

    /// Returns when no message and no item of the whole program is unsent, on its way
    /// or unhandled on any rank, those included that handlers send. Collective over
    /// all ranks.
    ///
    /// # Errors
    /// Those of sending.
    pub fn quiesce(&self) -> Result<()> {
        self.engine.quiesce().in_call("Messages::quiesce")
    }

    /// Handles the messages that have arrived, once; true where any had. Every call of this
    /// library that waits does the same, and so does the progress thread, so there is
    /// no need for it, except to be quicker than that thread.
    ///
    /// # Errors
    /// Those of the transports.
    pub fn poll(&self) -> Result<bool> {
        self.engine.probe().in_call("Messages::poll")
    }

    /// Completes all messages and forgets the handlers; their types can be registered
    /// again. Collective over all ranks.
    ///
    /// # Errors
    /// As for [`Messages::quiesce`].
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

    /// Sends a message; `on_reply` runs with the answer.
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
            // SAFETY: no address is given.
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
        let (reply, on_reply) = Reply::new::<M>(self.engine, rank);
        self.send(call, rank, message, payload, Some(on_reply))?;
        Ok(reply)
    }
}
