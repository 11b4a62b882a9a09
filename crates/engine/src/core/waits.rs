//! Waiting, and serving other ranks meanwhile. [`Core`] forwards polls and naps to the layer of
//! [`Core::set_progress`]; without one, there is nothing to serve.

use super::peer::CompletionCounter;
use super::{Core, handler};
use portolan_base::error::{Result, fail, unless_forked};
use portolan_base::trace::{Awaited, Observer};
use portolan_base::wait::policy::Facts;
use portolan_base::wait::{Ends, Patience, Progress};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

impl Core {
    /// If no thread serves them: a program may call these functions in a loop to wait for a rank.
    #[inline]
    pub(crate) fn serve_sometimes(&self) -> Result<()> {
        if self.is_time_to_serve() { self.serve() } else { Ok(()) }
    }

    /// Returns whether a call must serve other ranks: one in 16, if no thread serves them.
    #[inline]
    pub(crate) fn is_time_to_serve(&self) -> bool {
        const EVERY: u32 = 16;
        self.threadless.load(Ordering::Relaxed) && count(&self.polls).is_multiple_of(EVERY)
    }

    #[cold]
    pub fn serve(&self) -> Result<()> {
        if self.threadless.load(Ordering::Relaxed) {
            self.poll()?;
        }
        Ok(())
    }

    pub(crate) fn waiters(&self) -> &AtomicU32 {
        &self.waiters
    }

    #[inline]
    pub fn polls(&self) -> &AtomicU32 {
        &self.polls
    }

    pub(crate) fn note_served(&self) {
        count(&self.served);
    }

    pub fn idle_poll(&self) -> Duration {
        self.config.idle_poll
    }

    /// Serves other ranks meanwhile. Returns the first error of `done`, or `State` in a handler.
    pub fn wait_for(
        &self,
        awaited: impl Into<Awaited>,
        what: &dyn Fn() -> String,
        done: impl FnMut() -> Result<bool>,
    ) -> Result<()> {
        portolan_base::wait::until(self, awaited, what, done)
    }

    /// Waits until all operations of a counter have ended, and returns their first failure. If the
    /// wait fails, as in a handler, ends the job: the operations may still use the caller's memory.
    pub fn complete(
        &self,
        awaited: impl Into<Awaited>,
        what: &dyn Fn() -> String,
        counter: &CompletionCounter,
    ) -> Result<()> {
        let done = self.wait_for(awaited, what, || counter.check());
        match done {
            Err(error) if counter.outstanding() > 0 => {
                error.end_job_in(format_args!("{} cannot be completed", what()))
            }
            done => done,
        }
    }
}

/// Returns the old value. Without a locked instruction, so concurrent increments may be lost.
#[inline]
pub fn count(counter: &AtomicU32) -> u32 {
    let n = counter.load(Ordering::Relaxed);
    counter.store(n.wrapping_add(1), Ordering::Relaxed);
    n
}

/// Forwards to the registered layer. Without one, there is nothing to serve.
impl Progress for Core {
    #[inline]
    fn delegate(&self) -> Option<&dyn Progress> {
        self.progress.get().map(|above| above as &dyn Progress)
    }
    fn patience(&self, ends: Ends) -> Patience {
        let facts = Facts {
            crowded: self.crowded,
            per_core: self.per_core,
            served: self.is_watched(),
            messages: self.messages,
            spin: self.config.spin,
            idle_poll: self.config.idle_poll,
        };
        Patience::of(&facts, ends, || {
            let served = self.served.load(Ordering::Relaxed);
            self.served_before.swap(served, Ordering::Relaxed) != served
        })
    }
    #[inline]
    fn may_wait(&self) -> Result<()> {
        unless_forked()?;
        if let Some(name) = handler::running() {
            fail!(State, "the handler {name} called a blocking function; handlers must not block");
        }
        if self.closed.load(Ordering::Acquire) {
            fail!(State, "the runtime or MPI was finalised");
        }
        Ok(())
    }
    fn traced_by(&self) -> Option<&Observer> {
        Some(&self.observer)
    }
}
