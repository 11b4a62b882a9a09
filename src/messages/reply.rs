//! Replies, and waiting for them.

use crate::in_call::InCall;
use crate::one_thread::OneThread;
use parking_lot::Mutex;
use portolan_base::error::{Result, fail};
use portolan_base::trace::{Awaited, Cause};
use portolan_engine::am::Am;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};

/// The reply to a call, which may not have arrived yet.
///
/// It is also a future. If it is dropped, the message is still handled and its reply is discarded.
#[derive(Debug)]
#[must_use = "the reply is dropped; use `spawn` if you need none"]
pub struct Reply<'a, R> {
    engine: &'a Am,
    rank: usize,
    slot: Arc<ReplySlot<R>>,
    /// Ties the reply to its thread, because waiting uses the runtime of that thread.
    _thread: OneThread,
}

#[derive(Debug)]
struct ReplySlot<R> {
    come: AtomicBool,
    inner: Mutex<(Option<R>, Option<Waker>)>,
}

impl<R> ReplySlot<R> {
    fn new() -> ReplySlot<R> {
        ReplySlot { come: AtomicBool::new(false), inner: Mutex::new((None, None)) }
    }

    fn fill(&self, reply: R) {
        let mut inner = self.inner.lock();
        inner.0 = Some(reply);
        // Inside the lock: a task whose waker comes too late for this must find the reply.
        self.come.store(true, Ordering::Release);
        let waker = inner.1.take();
        drop(inner);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Stores the waker of a task that waits. Returns true if the reply has arrived instead.
    fn wake_with(&self, waker: &Waker) -> bool {
        let mut inner = self.inner.lock();
        inner.1 = Some(waker.clone());
        self.come.load(Ordering::Acquire)
    }
}

impl<'a, R: Send + 'static> Reply<'a, R> {
    /// Creates a pending reply and the function that fills it.
    pub(super) fn new(
        engine: &'a Am,
        rank: usize,
    ) -> (Reply<'a, R>, impl FnOnce(R) + Send + use<R>) {
        let slot = Arc::new(ReplySlot::new());
        let filled = slot.clone();
        let fill = move |reply| filled.fill(reply);
        (Reply { engine, rank, slot, _thread: OneThread::default() }, fill)
    }

    /// Returns whether the reply has arrived. Makes progress.
    ///
    /// # Errors
    /// Returns the error of a transport.
    pub fn is_done(&self) -> Result<bool> {
        if !self.slot.come.load(Ordering::Acquire) {
            self.engine.probe().in_call("Reply::is_done")?;
        }
        Ok(self.slot.come.load(Ordering::Acquire))
    }

    /// Waits for the reply. Handlers of this rank run meanwhile.
    ///
    /// # Errors
    /// Returns `State` in a handler, which must not wait. Use
    /// [`Delivery::call_then`](super::Delivery::call_then) there.
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
            Ok(false) if self.slot.wake_with(context.waker()) => {
                return Poll::Ready(self.take().in_call(CALL));
            }
            Ok(false) => {}
        }
        if !self.engine.has_thread() {
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;
    use std::time::{Duration, Instant};

    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Count>) {
            self.0.fetch_add(1, Ordering::Release);
        }
    }

    /// A reply that arrives while a task stores its waker either wakes the task or is found.
    #[test]
    fn no_wakeup_is_lost() {
        const ROUNDS: usize = 20_000;
        let slots: Vec<_> = (0..ROUNDS).map(|_| ReplySlot::new()).collect();
        let (meet, mut lost) = (Barrier::new(2), None);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for slot in &slots {
                    meet.wait();
                    slot.fill(());
                }
            });
            for (round, slot) in slots.iter().enumerate() {
                let count = Arc::new(Count(AtomicUsize::new(0)));
                let waker = Waker::from(count.clone());
                meet.wait();
                if lost.is_some() {
                    continue; // the other thread still meets this one in every round
                }
                (0..round % 64).for_each(|_| std::hint::spin_loop());
                let (begun, found) = (Instant::now(), slot.wake_with(&waker));
                while !found && lost.is_none() && count.0.load(Ordering::Acquire) == 0 {
                    lost = (begun.elapsed() > Duration::from_secs(30)).then_some(round);
                    std::thread::yield_now();
                }
            }
        });
        assert_eq!(lost, None, "the round whose wake-up was lost");
    }
}
