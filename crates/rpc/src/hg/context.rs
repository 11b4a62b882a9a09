//! A context: the queue of incoming calls and of callbacks. Progress fills it, trigger runs it.
//!
//! **Nested handlers.** A handler may itself make progress and trigger; other calls then run inside
//! it, on the same stack. Up to `SHALLOW` levels deep, calls run in order of arrival. Beyond that,
//! a wait runs another call only if the awaited event has not arrived within `PATIENT`, so that
//! waiting handlers do not pile up, and yet a chain of dependent calls advances. If less than a
//! quarter of the stack is left, calls are answered with `NOMEM`. A chain that is too deep
//! therefore fails at once: no call that a wait depends on is left in the queue.

use super::class::{ClassShared, MOST_QUEUED, MOST_QUEUED_BYTES};
use super::origin::{Origin, Then};
use super::target::Target;
use crate::failure::{Result, Status, refuse};
use crate::na;
use crate::na::address::Peer;
use crate::na::limited::limited;
use portolan_base::sync::biased_lock::BiasedLock;
use portolan_base::thread::fast_tls;
use portolan_base::thread::stack;
use portolan_base::trace::Served;
use portolan_base::wait::Deadline;
use portolan_base::wait::times::NESTED;
use scopeguard::defer;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

/// From this nesting depth on, a wait prefers that handlers end before more begin.
const SHALLOW: u32 = 64;

pub enum Work {
    Call(Arc<Target>),
    /// An outgoing call that has ended, and its callback.
    Ended(Arc<Origin>, Then),
    Run(Box<dyn FnOnce() + Send>),
}

#[derive(Default)]
struct Queue {
    all: VecDeque<Work>,
    calls: usize,
    /// Bytes of the inputs that were pulled.
    pulled: usize,
}

impl Queue {
    fn push(&mut self, work: Work) {
        if let Work::Call(call) = &work {
            self.calls += 1;
            self.pulled += call.pulled_bytes();
        }
        self.all.push_back(work);
    }

    /// Removes the oldest item. With `ends_first`, prefers one that is not an incoming call.
    fn pop(&mut self, ends_first: bool) -> Option<Work> {
        let is_end = |work: &Work| !matches!(work, Work::Call(_));
        let end = if ends_first { self.all.iter().position(is_end) } else { None };
        let work = self.all.remove(end.unwrap_or(0))?;
        if let Work::Call(call) = &work {
            self.calls -= 1;
            self.pulled -= call.pulled_bytes();
        }
        Some(work)
    }
}

mod stage {
    pub(super) const OPEN: u8 = 0;
    /// The context is being destroyed: no call can begin, and those under way end.
    pub(super) const ENDING: u8 = 1;
    /// The context is destroyed: further work is dropped.
    pub(super) const GONE: u8 = 2;
}

const PATIENCE: Duration = Duration::from_secs(5);
/// How many times destruction drains the queue, since callbacks may queue further work.
const ROUNDS: usize = 3;

pub struct ContextShared {
    pub class: Arc<ClassShared>,
    pub na: na::Context,
    /// The number of the context, which a call may ask for.
    pub id: u8,
    accepts: AtomicBool,
    work: BiasedLock<Queue>,
    len: AtomicUsize,
    ends: AtomicUsize,
    pulled: AtomicUsize,
    /// Whether a call without a callback, which leaves no work, has ended since the last progress.
    ended: AtomicBool,
    stage: AtomicU8,
    running: AtomicUsize,
}

impl std::fmt::Debug for ContextShared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("work", &self.len).finish_non_exhaustive()
    }
}

fast_tls! {
    static DEPTH: u32 = 0;
}

/// Returns whether this thread runs too many nested handlers to start more without waiting.
fn is_crowded() -> bool {
    DEPTH.get() >= SHALLOW || is_full()
}

/// Returns whether this thread runs handlers and has too little stack left for another one. If the
/// bounds of its stack are unknown, the limit is `SHALLOW` nested handlers.
fn is_full() -> bool {
    DEPTH.get() > 0 && stack::is_short().unwrap_or(DEPTH.get() >= SHALLOW)
}

/// Runs a call if the stack has room for it, else answers with `NOMEM`.
pub fn enter(target: Arc<Target>) {
    if !is_full() {
        return run(target);
    }
    static TOLD: AtomicBool = AtomicBool::new(false);
    if !TOLD.swap(true, Ordering::Relaxed) {
        log::error!(
            "{} nested handlers wait and use three quarters of the thread's stack: further calls \
             are refused with NOMEM (set a larger stack, for example with ulimit \
             -s)",
            DEPTH.get()
        );
    }
    if target.is_quiet() {
        limited!(
            Error,
            "a one-way call of '{}' is dropped: no stack is left",
            target.function().name
        );
    }
    target.answer_failure(Status::NOMEM);
}

fn run(target: Arc<Target>) {
    DEPTH.set(DEPTH.get() + 1);
    defer! { DEPTH.set(DEPTH.get() - 1) }
    let status = match &target.function().rpc {
        Some(rpc) => rpc(target.clone()),
        None => Status::NO_MATCH,
    };
    if status != Status::SUCCESS {
        target.answer_failure(status);
    }
}

impl ContextShared {
    pub fn new(class: Arc<ClassShared>, id: u8) -> Result<Arc<ContextShared>> {
        let na = class.na.context()?;
        let context = Arc::new(ContextShared {
            class,
            na,
            id,
            accepts: AtomicBool::new(true),
            work: BiasedLock::new(Queue::default()),
            len: AtomicUsize::new(0),
            ends: AtomicUsize::new(0),
            pulled: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
            stage: AtomicU8::new(stage::OPEN),
            running: AtomicUsize::new(0),
        });
        context.class.enlist(&context);
        Ok(context)
    }

    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.stage.load(Ordering::Acquire) != stage::OPEN {
            refuse!(INVALID_ARG, "the context is destroyed");
        }
        Ok(())
    }

    pub fn set_accepts(&self, accepts: bool) {
        self.accepts.store(accepts, Ordering::Release);
    }

    /// Returns whether the context takes incoming calls, which ends when its destruction begins.
    pub fn accepts(&self) -> bool {
        self.accepts.load(Ordering::Acquire) && self.stage.load(Ordering::Acquire) == stage::OPEN
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn has_room(&self) -> bool {
        self.len() < MOST_QUEUED && self.pulled.load(Ordering::Acquire) < MOST_QUEUED_BYTES
    }

    fn count(&self, queue: &Queue) {
        self.ends.store(queue.all.len() - queue.calls, Ordering::Release);
        self.len.store(queue.all.len(), Ordering::Release);
        self.pulled.store(queue.pulled, Ordering::Release);
    }

    fn has_ends(&self) -> bool {
        self.ends.load(Ordering::Acquire) > 0
    }

    pub fn push(&self, work: Work) {
        let mut waiting = self.work.lock();
        if self.stage.load(Ordering::Acquire) == stage::GONE {
            drop(waiting);
            return drop(work); // outside the lock
        }
        waiting.push(work);
        self.count(&waiting);
        drop(waiting);
        self.class.na.notify();
    }

    pub(super) fn call_ended(&self) {
        self.ended.store(true, Ordering::Release);
        self.class.na.notify();
    }

    #[inline]
    pub fn step(self: &Arc<ContextShared>) -> Result<()> {
        self.class.step(self);
        self.na.step();
        if self.na.queued() > 0 {
            self.na.trigger(Duration::ZERO, usize::MAX)?;
        }
        Ok(())
    }

    /// Makes progress until there is work, a call without a callback has ended, or the time is
    /// over. Returns false if the time is over.
    pub fn progress(self: &Arc<ContextShared>, timeout: Duration) -> Result<bool> {
        let ended =
            || self.ended.load(Ordering::Acquire) && self.ended.swap(false, Ordering::AcqRel);
        self.wait(&mut Deadline::after(timeout), ended)
    }

    /// Makes progress until there is work or `done` returns true. Returns false after the timeout.
    pub fn wait(
        self: &Arc<ContextShared>,
        deadline: &mut Deadline,
        mut done: impl FnMut() -> bool,
    ) -> Result<bool> {
        self.class.check_open()?;
        if is_crowded() && !deadline.is_now() && !self.has_ends() {
            let mut ended = || done() || self.has_ends();
            let came = self.class.na.until(&mut deadline.within(NESTED), || {
                Ok(ended() || {
                    self.step()?;
                    ended()
                })
            })?;
            if came {
                return Ok(true);
            }
        }
        self.class.na.until(deadline, || {
            if done() || !self.is_empty() {
                return Ok(true);
            }
            self.step()?;
            Ok(done() || !self.is_empty())
        })
    }

    /// Runs at most `most` items of work, and returns how many it has run.
    pub fn trigger(&self, most: usize) -> usize {
        // After the end of the runtime, no progress call runs the callbacks of transfers.
        if self.na.queued() > 0
            && let Err(failure) = self.na.trigger(Duration::ZERO, usize::MAX)
        {
            log::error!("{failure}");
        }
        let network = &self.class.na;
        let (mut done, mut batch) = (0, network.batch());
        while done < most && !self.is_empty() {
            let had_room = self.has_room();
            let mut waiting = self.work.lock();
            let Some(work) = waiting.pop(is_crowded()) else { break };
            self.count(&waiting);
            drop(waiting);
            if !had_room && self.has_room() {
                self.class.has_room_again();
            }
            if let Err(failure) = network.attend() {
                log::error!("{failure}");
            }
            done += 1;
            batch.next(done < most && !self.is_empty());
            self.perform(work);
        }
        done
    }

    fn perform(&self, work: Work) {
        let engine = self.class.na.engine();
        let traced = match &work {
            Work::Call(target) => engine.and_then(|e| Some((e.begin_to_serve()?, target.source()))),
            _ => None,
        };
        self.carry_out(work);
        if let Some((traced, source)) = traced
            && let Peer::Rank(rank) = source.peer
        {
            traced.end(Served::Handler, Some(rank as usize), 0, None);
        }
    }

    fn carry_out(&self, work: Work) {
        self.running.fetch_add(1, Ordering::Acquire);
        defer! { self.running.fetch_sub(1, Ordering::Release); }
        match work {
            Work::Call(target) => self.class.admit_call(target).into_iter().for_each(enter),
            Work::Ended(origin, then) => {
                origin.callback_ran();
                then(&origin);
            }
            Work::Run(body) => body(),
        }
    }

    pub fn check_idle(&self) -> Result<()> {
        if self.running.load(Ordering::Acquire) > 0 {
            refuse!(
                BUSY,
                "a call or callback of the context is running; destroy the context after it has ended"
            );
        }
        Ok(())
    }

    /// Destroys the context. Cancels its calls and transfers and runs their callbacks here; answers
    /// waiting incoming calls with a failure. Returns `BUSY` if a call or callback of the context
    /// is running, and changes nothing; returns `INVALID_ARG` if the context is destroyed already.
    pub(super) fn destroy(self: &Arc<ContextShared>) -> Result<()> {
        self.check_idle()?;
        let order = (Ordering::AcqRel, Ordering::Acquire);
        if self.stage.compare_exchange(stage::OPEN, stage::ENDING, order.0, order.1).is_err() {
            refuse!(INVALID_ARG, "the context is destroyed already");
        }
        self.class.cancel_those_of(self);
        self.na.cancel_all();
        let ended = self.class.na.until(&mut Deadline::after(PATIENCE), || {
            self.na.step();
            // Checked first, because a result being handed over may be an output to pull.
            let known = self.class.is_handed_over();
            let is_still = self.class.drop_outputs_of(self) && known && !self.na.is_moving();
            Ok(is_still || self.class.na.is_copy())
        });
        match ended {
            Ok(true) => {}
            Ok(false) => log::warn!("a context is destroyed while transfers are in progress"),
            Err(failure) => {
                log::warn!("a context is destroyed without waiting for its transfers: {failure}")
            }
        }
        if let Err(failure) = self.na.trigger(Duration::ZERO, usize::MAX) {
            log::warn!("callbacks of a context that is destroyed do not run: {failure}");
        }
        for _ in 0..ROUNDS {
            for work in self.take_all(stage::ENDING) {
                // Dropping a call answers it.
                if !matches!(work, Work::Call(_)) {
                    self.perform(work);
                }
            }
        }
        drop(self.take_all(stage::GONE));
        self.na.destroy();
        Ok(())
    }

    fn take_all(&self, now: u8) -> VecDeque<Work> {
        let mut waiting = self.work.lock();
        self.stage.store(now, Ordering::Release);
        let all = std::mem::take(&mut *waiting).all;
        self.count(&waiting);
        all
    }
}
