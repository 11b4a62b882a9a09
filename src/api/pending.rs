//! Transfers under way, and the promise to wait for them.
//!
//! Each transfer that is not done when it is issued has a [`CompletionCounter`], which the
//! engine counts down. [`Flights`] knows all those of a scope and waits for them
//! when it is dropped, so that no buffer is given back to its owner while the
//! engine may still touch it, also while a panic unwinds. Where a wait fails with
//! transfers outstanding, there is no safe way on, and the job ends.

use crate::error::{Error, Result};
use crate::layout::Shape;
use crate::peer::CompletionCounter;
use crate::runtime::Engine;
use crate::trace::{About, Call, Cause};
use crate::transfer::TransferKind;
use crate::wait::{self, Progress};
use std::cell::RefCell;
use std::sync::Arc;

/// What one transfer does, checked.
#[derive(Debug)]
pub(super) struct Order {
    pub kind: TransferKind,
    pub world: usize,
    pub address: usize,
    pub shape: Shape,
}

/// Waits for a counter; the memory of its transfers is free afterwards.
pub(super) fn wait_for(engine: &Engine, counter: &CompletionCounter) -> Result<()> {
    let what = || format!("{} non-blocking transfers", counter.outstanding());
    let done = engine.observed_often(
        || counter.outstanding() == 0,
        |()| About::new(Call::Wait),
        || wait::until(engine, Cause::Handle, &what, || counter.check()),
    );
    if let Err(error) = &done
        && counter.outstanding() > 0
    {
        // The engine, or MPI, may still write to memory that the caller is
        // about to get back.
        log::error!("non-blocking transfers cannot be completed: {error:#}");
        crate::process::end_job(error.kind().code());
    }
    done
}

/// Whether a counter's transfers are done. Makes progress.
pub(super) fn is_done(engine: &Engine, counter: &CompletionCounter) -> Result<bool> {
    if counter.outstanding() > 0 {
        engine.poll()?;
    }
    Ok(counter.outstanding() == 0)
}

/// The transfers of a scope.
#[derive(Debug)]
pub(super) struct Flights<'rt> {
    engine: &'rt Engine,
    list: RefCell<List>,
}

#[derive(Debug, Default)]
struct List {
    counters: Vec<Arc<CompletionCounter>>,
    /// A counter that nothing is counted by.
    spare: Option<Arc<CompletionCounter>>,
    /// The list is swept when it has grown to this.
    sweep_at: usize,
    failure: Option<Error>,
}

/// Tallies are looked through for the first time when there are so many.
const FIRST_SWEEP: usize = 64;

impl List {
    /// Forgets transfers that are done and that nobody will wait for any more.
    fn sweep(&mut self) {
        let failure = &mut self.failure;
        self.counters.retain(|counter| {
            if counter.outstanding() > 0 || Arc::strong_count(counter) > 1 {
                return true;
            }
            if let Err(error) = counter.check() {
                failure.get_or_insert(error);
            }
            false
        });
        self.sweep_at = (2 * self.counters.len()).max(FIRST_SWEEP);
    }
}

impl<'rt> Flights<'rt> {
    pub(super) fn new(engine: &'rt Engine) -> Flights<'rt> {
        Flights { engine, list: RefCell::new(List { sweep_at: FIRST_SWEEP, ..List::default() }) }
    }

    /// Issues a transfer; its counter, unless it is done.
    ///
    /// # Safety
    /// `local` must be valid for the shape's local extent until the counter is done
    /// or these flights are dropped: for writes and exclusively in a get, else
    /// for reads.
    pub(super) unsafe fn issue(
        &self,
        order: &Order,
        local: *mut u8,
    ) -> Result<Option<Arc<CompletionCounter>>> {
        let counter = {
            let mut list = self.list.borrow_mut();
            if list.counters.len() >= list.sweep_at {
                list.sweep();
            }
            let counter = list.spare.take().unwrap_or_default();
            // Listed first: whatever happens below, it is waited for.
            list.counters.push(counter.clone());
            counter
        };
        let Order { kind, world, address, shape } = order;
        // SAFETY: passed on from the caller; the counter is on the list.
        let issued = unsafe { self.engine.issue(*kind, *world, *address, local, shape, &counter) };
        if counter.outstanding() > 0 {
            return issued.map(|_| Some(counter));
        }
        let mut list = self.list.borrow_mut();
        list.counters.pop();
        let done = counter.check();
        list.spare = Some(counter);
        issued.and(done).map(|_| None)
    }

    pub(super) fn wait(&self, counter: Option<&Arc<CompletionCounter>>) -> Result<()> {
        match counter {
            Some(counter) => wait_for(self.engine, counter),
            None => Ok(()),
        }
    }

    pub(super) fn is_done(&self, counter: Option<&Arc<CompletionCounter>>) -> Result<bool> {
        match counter {
            Some(counter) => is_done(self.engine, counter),
            None => Ok(true),
        }
    }

    /// Waits for all; the first failure that nobody has been told.
    pub(super) fn wait_all(&self) -> Result<()> {
        let last = || self.list.borrow().counters.last().cloned();
        while let Some(counter) = last() {
            let waited = wait_for(self.engine, &counter);
            let mut list = self.list.borrow_mut();
            list.counters.pop();
            if let Err(error) = waited {
                list.failure.get_or_insert(error);
            }
        }
        self.list.borrow_mut().failure.take().map_or(Ok(()), Err)
    }
}

impl Drop for Flights<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.wait_all() {
            log::error!("a non-blocking transfer failed: {error:#}");
        }
    }
}
