//! A context: the calls to run and the callbacks of one's own calls.
//!
//! What comes is turned into work by progress; trigger does the work. A handler may
//! make progress and trigger again: it is then entered by other calls, so deep that
//! the stack still has room.

use super::class::ClassShared;
use super::origin::{Origin, Then};
use super::target::Target;
use crate::memory::biased::Biased;
use crate::memory::thread::of_thread;
use crate::rpc::failure::{Result, Status};
use crate::rpc::na;
use crate::rpc::na::waiting::{Deadline, until};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// How deep handlers may be entered while others wait.
const DEEPEST: u32 = 64;

/// Something for trigger.
pub enum Work {
    /// A call to run.
    Call(Arc<Target>),
    /// A call of ours has ended.
    Ended(Arc<Origin>, Then),
    /// Something else.
    Run(Box<dyn FnOnce() + Send>),
}

/// A context, as calls hold it.
pub struct ContextShared {
    /// Its class.
    pub class: Arc<ClassShared>,
    /// That of the network, for bulk transfers.
    pub na: na::Context,
    /// Its number, by which a call may ask for it.
    pub id: u8,
    /// Whether it takes calls of others.
    accepts: AtomicBool,
    work: Biased<VecDeque<Work>>,
    len: AtomicUsize,
}

impl std::fmt::Debug for ContextShared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("work", &self.len).finish_non_exhaustive()
    }
}

of_thread! {
    static DEPTH: u32 = 0;
}

/// Whether this thread runs so many handlers within each other that no more may begin.
pub fn too_deep() -> bool {
    DEPTH.get() >= DEEPEST
}

/// Runs a call.
pub fn run(target: Arc<Target>) {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            DEPTH.set(DEPTH.get() - 1);
        }
    }
    DEPTH.set(DEPTH.get() + 1);
    let _leave = Leave;
    let status = match &target.function().rpc {
        Some(rpc) => rpc(target.clone()),
        None => Status::NO_MATCH,
    };
    if status != Status::SUCCESS {
        target.answer_failure(status);
    }
}

impl ContextShared {
    pub(super) fn new(class: Arc<ClassShared>, id: u8) -> Result<Arc<ContextShared>> {
        let (na, accepts) = (class.na.context()?, AtomicBool::new(true));
        let (work, len) = (Biased::default(), AtomicUsize::new(0));
        let context = Arc::new(ContextShared { class, na, id, accepts, work, len });
        context.class.enlist(&context);
        Ok(context)
    }

    /// Says whether it takes calls of others from the network.
    pub(crate) fn set_accepts(&self, accepts: bool) {
        self.accepts.store(accepts, Ordering::Release);
    }

    /// Whether it takes calls of others.
    pub(crate) fn accepts(&self) -> bool {
        self.accepts.load(Ordering::Acquire)
    }

    /// How much work waits.
    #[inline]
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn push(&self, work: Work) {
        let mut waiting = self.work.lock();
        waiting.push_back(work);
        self.len.store(waiting.len(), Ordering::Release);
        drop(waiting);
        self.class.na.shared.tell();
    }

    /// Turns what has come into work.
    #[inline]
    pub(crate) fn step(self: &Arc<ContextShared>) -> Result<()> {
        self.class.step(self);
        self.na.shared.step();
        if self.na.shared.queued() > 0 {
            self.na.trigger(Duration::ZERO, usize::MAX)?;
        }
        Ok(())
    }

    /// Makes progress until there is work or the time is over; true where there is.
    pub(crate) fn progress(self: &Arc<ContextShared>, timeout: Duration) -> Result<bool> {
        self.wait(&mut Deadline::after(timeout), || false)
    }

    /// Makes progress until there is work, `done` says so, or the time is over.
    pub(crate) fn wait(
        self: &Arc<ContextShared>,
        deadline: &mut Deadline,
        mut done: impl FnMut() -> bool,
    ) -> Result<bool> {
        self.class.check_open()?;
        until(&self.class.na.shared, deadline, || {
            if done() || !self.is_empty() && !too_deep() {
                return Ok(true);
            }
            self.step()?;
            Ok(done() || !self.is_empty() && !too_deep())
        })
    }

    /// Does at most `most` pieces of work; how many.
    pub(crate) fn trigger(&self, most: usize) -> usize {
        let mut done = 0;
        while done < most && !self.is_empty() && !too_deep() {
            let mut waiting = self.work.lock();
            let Some(work) = waiting.pop_front() else { break };
            self.len.store(waiting.len(), Ordering::Release);
            drop(waiting);
            if let Err(failure) = self.class.na.shared.attend() {
                log::error!("{failure}");
            }
            match work {
                Work::Call(target) => run(target),
                Work::Ended(origin, then) => {
                    origin.told();
                    then(&origin);
                }
                Work::Run(body) => body(),
            }
            done += 1;
        }
        done
    }

    /// Gives up what waits: calls are answered with a failure by being dropped.
    pub(super) fn clear(&self) {
        let mut waiting = self.work.lock();
        let work = std::mem::take(&mut *waiting);
        self.len.store(0, Ordering::Release);
        drop(waiting);
        drop(work);
    }
}
