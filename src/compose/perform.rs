//! Performing: sync, perform, wait.
//!
//! All calls of a phase are made by one rank for itself; only the sync, and making
//! and freeing the composer, are collective. Nothing waits for a target, except where
//! flow control, or a flush of MPI's windows, does; and such a wait serves others.

use super::file::Files;
use super::notify::ArrivalCounters;
use super::plan::{Plan, Toward};
use super::store::Trust;
use crate::error::{Error, ErrorKind, Result};
use crate::path::Path;
use crate::peer::CompletionCounter;
use crate::runtime::Engine;
use crate::trace::{About, Call, Cause};
use crate::wait;
use parking_lot::Mutex;
use std::sync::{Arc, OnceLock};

/// What performing needs beside compositions: counts of arrivals, and transfers that have not left.
#[derive(Debug, Default)]
pub struct Composer {
    arrivals: OnceLock<ArrivalCounters>,
    /// Performances that still read local memory, and counts on their way.
    leaving: Arc<CompletionCounter>,
    /// The files of compositions that were read and written.
    pub(super) files: Mutex<Files>,
    /// Where they are, if not where `PORTOLAN_COMPOSE_DIR` says.
    pub(super) directory: Option<String>,
    /// Whose segments they may name.
    pub(super) trust: Trust,
}

impl Composer {
    /// Nothing is performed yet. The counters of arrivals are made by the first
    /// [`Composer::sync`].
    pub fn new() -> Composer {
        Composer::default()
    }

    /// As [`Composer::new`], with files of compositions in a directory.
    pub fn with_directory(directory: impl Into<String>) -> Composer {
        Composer { directory: Some(directory.into()), ..Composer::default() }
    }

    /// Makes a composer whose files may name segments of the safe Rust interface only.
    pub fn confined(self) -> Composer {
        Composer { trust: Trust::Elements, ..self }
    }

    /// Makes the counters of arrivals, which the first [`Composer::sync`] does else.
    /// Collective.
    ///
    /// # Errors
    /// `Memory`, on all ranks, where there is no room.
    pub fn prepare(&self, engine: &Engine) -> Result<()> {
        if self.arrivals.get().is_none() {
            // The ranks come here together, and one thread of each.
            let _ = self.arrivals.set(ArrivalCounters::new(engine)?);
            // For memory outside segments; all else goes without.
            if let Err(error) = engine.start_am() {
                log::warn!("compositions reach memory in segments only: {error:#}");
            }
        }
        Ok(())
    }

    /// Completes what this rank has performed, begins a new phase, and waits for all
    /// ranks. Collective. What a rank performs after it counts for no phase before,
    /// and the other way round.
    ///
    /// # Errors
    /// As for [`Composer::prepare`]; what a performance failed with that had not left
    /// yet.
    pub fn sync(&self, engine: &Engine) -> Result<()> {
        self.prepare(engine)?;
        let left = self.left(engine);
        engine.fence_all()?;
        self.arrivals()?.next_phase(engine)?;
        left
    }

    fn arrivals(&self) -> Result<&ArrivalCounters> {
        self.arrivals.get().ok_or_else(|| {
            Error::new(
                ErrorKind::State,
                "there was no sync yet: all ranks sync before they perform",
            )
        })
    }

    /// Waits until local memory is free again.
    fn left(&self, engine: &Engine) -> Result<()> {
        let counter = &self.leaving;
        let what = || format!("{} messages of performances to leave", counter.outstanding());
        wait::until(engine, Cause::Handle, &what, || counter.check())
    }

    /// Performs a mapped composition. On a node its bytes are in place on return;
    /// elsewhere local bytes may be changed after the next [`Composer::wait_for`] or
    /// [`Composer::sync`].
    ///
    /// # Errors
    /// `State` before the first sync, or where a segment that it was mapped to was
    /// freed: nothing has moved then. `Address`
    /// where a rank has no memory at an address outside segments; the ranks that got
    /// all their bytes have been told, the other ranks not.
    ///
    /// # Safety
    /// The local bytes must be valid for reads, and unchanged until the memory is free
    /// again. Bytes at targets outside segments are overwritten whatever they are.
    #[inline]
    pub unsafe fn perform(&self, engine: &Engine, plan: &Plan) -> Result<()> {
        let arrivals = self.arrivals()?;
        plan.guard.check(engine)?;
        engine.observed(
            || About::new(Call::Perform),
            // SAFETY: the guard says that the segments live; the caller vouches for the
            // rest.
            || unsafe { self.carry_out(engine, plan, arrivals) },
        )
    }

    /// # Safety
    /// As for [`Composer::perform`]; the plan's segments live.
    unsafe fn carry_out(
        &self,
        engine: &Engine,
        plan: &Plan,
        arrivals: &ArrivalCounters,
    ) -> Result<()> {
        let mut started: Vec<(&Toward, Arc<CompletionCounter>, Result<()>)> = Vec::new();
        for toward in plan.towards.iter().filter(|t| t.far.is_some()) {
            let counter = Arc::new(CompletionCounter::default());
            // SAFETY: passed on from the caller.
            let result = unsafe { self.start(engine, toward, &counter) };
            started.push((toward, counter, result));
        }
        for toward in &plan.towards {
            engine.order_before(toward.target, Path::Direct)?;
            for near in &toward.near {
                // SAFETY: local bytes are vouched for by the caller; those at the
                // target were in bounds of a segment that is mapped here and lives,
                // or belong to this rank and are the caller's too.
                unsafe { near.loops.copy(near.shift) };
            }
            if toward.far.is_none() {
                // Where a segment is mapped, the counters nearly always are too.
                if arrivals.is_near(toward.target) {
                    arrivals.notify_near(toward.target);
                } else {
                    arrivals.notify_far(engine, toward.target, &self.leaving)?;
                }
            }
        }
        let mut whole = Ok(());
        for (toward, counter, result) in started {
            let what = || format!("a performance to memory of rank {}", toward.target);
            // Also after a failure: what was started reads local memory.
            let done = wait::until(engine, Cause::Handle, &what, || counter.check());
            match result.and(done) {
                Ok(()) => self.notify_behind(engine, arrivals, toward.target)?,
                Err(error) => whole = whole.and(Err(error)),
            }
        }
        whole
    }

    /// Starts what does not go by load and store; `counter` is done when what goes to
    /// memory outside segments is there.
    ///
    /// # Safety
    /// As for [`Composer::carry_out`].
    unsafe fn start(
        &self,
        engine: &Engine,
        toward: &Toward,
        counter: &Arc<CompletionCounter>,
    ) -> Result<()> {
        let Some(far) = &toward.far else {
            return Ok(());
        };
        // SAFETY: passed on from the caller, who keeps local bytes valid until the
        // tallies are done and the target is fenced.
        unsafe {
            if !far.elsewhere.is_empty() {
                engine.start_put_anywhere(toward.target, &far.elsewhere, counter)?;
            }
            for puts in &far.windows {
                puts.start(engine, toward.target)?;
            }
            for schedule in &far.messages {
                schedule.start(engine, toward.target, &self.leaving)?;
            }
        }
        Ok(())
    }

    /// Counts a performance whose bytes were not all stored directly.
    fn notify_behind(
        &self,
        engine: &Engine,
        arrivals: &ArrivalCounters,
        target: usize,
    ) -> Result<()> {
        if arrivals.is_near(target) {
            engine.fence(target)?;
            arrivals.notify_near(target);
            return Ok(());
        }
        arrivals.notify_far(engine, target, &self.leaving)
    }

    /// Waits until this rank's own performances have left its memory, and `n`
    /// performances that have bytes for this rank have arrived whole since the last
    /// sync.
    ///
    /// # Errors
    /// `State` before the first sync; what a performance failed with that had not
    /// left yet.
    pub fn wait_for(&self, engine: &Engine, n: u32) -> Result<()> {
        let arrivals = self.arrivals()?;
        engine.observed(
            || About::new(Call::NotifyWait),
            || {
                self.left(engine)?;
                arrivals.wait(engine, n)
            },
        )
    }

    /// How many performances have arrived here since the last sync.
    ///
    /// # Errors
    /// `State` before the first sync.
    pub fn arrived(&self) -> Result<u32> {
        Ok(self.arrivals()?.arrived())
    }

    /// Completes everything and gives the counters back. Collective.
    pub fn free(self, engine: &Engine) -> Result<()> {
        self.left(engine)?;
        match self.arrivals.into_inner() {
            Some(arrivals) => arrivals.free(engine),
            None => Ok(()),
        }
    }
}
