//! Answers, waited for.

use super::context::Context;
use super::shared::OnReply;
use super::{Message, codec};
use crate::am::Am;
use crate::api::in_call::InCall;
use crate::error::{Result, fail};
use crate::trace::{Awaited, Cause};
use parking_lot::Mutex;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};

/// The answer to a call, which may not have come yet.
///
/// It is waited for by [`Reply::wait`] or, in asynchronous code, as a future. One that
/// is dropped is not waited for; the message is handled all the same.
#[derive(Debug)]
#[must_use = "an answer that nobody waits for: spawn sends without one"]
pub struct Reply<'a, R> {
    engine: &'a Am,
    rank: usize,
    slot: Arc<Slot<R>>,
    /// It stays on its thread, as what it waits by does.
    _one_thread: PhantomData<*const ()>,
}

#[derive(Debug)]
struct Slot<R> {
    /// The answer has come.
    come: AtomicBool,
    inner: Mutex<(Option<R>, Option<Waker>)>,
}

/// Runs `then` with a decoded answer.
pub(super) fn on_reply<M: Message>(
    then: impl FnOnce(M::Reply, &Context<'_>) + Send + 'static,
) -> OnReply {
    Box::new(move |bytes, context| {
        then(codec::decode(bytes, std::any::type_name::<M::Reply>(), context.origin())?, context);
        Ok(())
    })
}

impl<'a, R: Send + 'static> Reply<'a, R> {
    /// An answer to come, and what puts it there.
    pub(super) fn new<M: Message<Reply = R>>(
        engine: &'a Am,
        rank: usize,
    ) -> (Reply<'a, R>, OnReply) {
        let slot = Arc::new(Slot { come: AtomicBool::new(false), inner: Mutex::new((None, None)) });
        let filled = slot.clone();
        let on_reply = on_reply::<M>(move |reply, _| {
            let waker = {
                let mut inner = filled.inner.lock();
                inner.0 = Some(reply);
                inner.1.take()
            };
            filled.come.store(true, Ordering::Release);
            if let Some(waker) = waker {
                waker.wake();
            }
        });
        (Reply { engine, rank, slot, _one_thread: PhantomData }, on_reply)
    }

    /// Whether the answer has come. Makes progress.
    ///
    /// # Errors
    /// Those of the transports.
    pub fn is_done(&self) -> Result<bool> {
        if !self.slot.come.load(Ordering::Acquire) {
            self.engine.probe().in_call("Reply::is_done")?;
        }
        Ok(self.slot.come.load(Ordering::Acquire))
    }

    /// Waits for the answer. Handlers of this rank run meanwhile.
    ///
    /// # Errors
    /// `State` in a handler, which must not wait:
    /// [`Context::call_then`] goes on without.
    pub fn wait(self) -> Result<R> {
        const CALL: &str = "Reply::wait";
        let come = &self.slot.come;
        let what = || format!("the answer of rank {}", self.rank);
        self.engine
            .wait_for(Awaited::of(Cause::Message, self.rank), &what, || {
                Ok(come.load(Ordering::Acquire))
            })
            .in_call(CALL)?;
        self.take().in_call(CALL)
    }

    fn take(&self) -> Result<R> {
        match self.slot.inner.lock().0.take() {
            Some(reply) => Ok(reply),
            None => fail!(State, "the answer of rank {} was taken already", self.rank),
        }
    }
}

impl<R: Send + 'static> Future for Reply<'_, R> {
    type Output = Result<R>;

    fn poll(self: Pin<&mut Self>, context: &mut std::task::Context<'_>) -> Poll<Result<R>> {
        const CALL: &str = "Reply::poll";
        // The thread that polls a future may do nothing else that makes progress.
        match self.is_done() {
            Err(error) => return Poll::Ready(Err(error)),
            Ok(true) => return Poll::Ready(self.take().in_call(CALL)),
            Ok(false) => self.slot.inner.lock().1 = Some(context.waker().clone()),
        }
        // The answer may have come before the waker was there.
        if self.slot.come.load(Ordering::Acquire) {
            return Poll::Ready(self.take().in_call(CALL));
        }
        if !self.engine.has_thread() {
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }
}
