//! Counting and tracing of calls. A call that is neither counted nor traced costs one relaxed load.

use super::Core;
use portolan_base::error::{Result, unless_forked};
use portolan_base::trace::{CallInfo, Entered, Observer, Serving};
use std::sync::atomic::Ordering;

impl Core {
    #[inline]
    pub fn observer(&self) -> &Observer {
        &self.observer
    }

    #[inline(always)]
    pub fn is_observed(&self) -> bool {
        self.observed.load(Ordering::Relaxed)
    }

    /// Called in a forked child: calls take the observed variant, which refuses them there.
    pub(crate) fn refuse_calls(&self) {
        self.observed.store(true, Ordering::Relaxed);
    }

    /// Returns `None` if calls are neither counted nor traced.
    #[inline(always)]
    pub fn begin_to_serve(&self) -> Option<Serving<'_>> {
        if self.is_observed() { self.observer.serve() } else { None }
    }

    /// Performs a call, and records it if it succeeds and calls are counted or traced.
    #[inline(always)]
    pub fn observed<R>(
        &self,
        call_info: impl FnOnce() -> CallInfo,
        body: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        if self.is_observed() { self.traced(false, |_: &R| call_info(), body) } else { body() }
    }

    /// For a call that may be short. `call_info` receives the result.
    #[inline(always)]
    pub fn observed_often<R>(
        &self,
        short: impl FnOnce() -> bool,
        call_info: impl FnOnce(&R) -> CallInfo,
        body: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        if self.is_observed() { self.traced(short(), call_info, body) } else { body() }
    }

    #[cold]
    #[inline(never)]
    fn traced<R>(
        &self,
        short: bool,
        call_info: impl FnOnce(&R) -> CallInfo,
        body: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let leave = |entered: Entered<'_>, done: &R| {
            if entered.counts() {
                entered.leave(&call_info(done));
            }
        };
        self.record(|| short, leave, body)
    }

    /// For calls that describe themselves only if a trace is written. `leave` records success.
    #[inline(always)]
    pub(crate) fn record<R>(
        &self,
        short: impl FnOnce() -> bool,
        leave: impl FnOnce(Entered<'_>, &R),
        body: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        unless_forked()?;
        let entered = self.observer.enter(short);
        let done = body()?;
        if let Some(entered) = entered {
            leave(entered, &done);
        }
        Ok(done)
    }
}
