//! Transfers in flight, and the guarantee that they are waited for.
//!
//! Each transfer that is not complete when it is issued has a [`CompletionCounter`], which the
//! engine decrements. [`Flights`] holds the counters of a scope and waits for them when it is
//! dropped, even while a panic unwinds. The owner of a buffer thus gets it back only when the
//! engine no longer accesses it. If a wait fails with transfers outstanding, there is no safe way
//! to continue, and the job ends.

use portolan_engine::error::{Error, Result};
use portolan_engine::layout::Shape;
use portolan_engine::peer::CompletionCounter;
use portolan_engine::runtime::Engine;
use portolan_engine::trace::{Call, CallInfo};
use portolan_engine::transfer::TransferKind;
use portolan_engine::wait::{self, Progress};
use std::cell::RefCell;
use std::sync::Arc;

/// A transfer whose arguments have been checked.
#[derive(Debug)]
pub(crate) struct Order {
    pub kind: TransferKind,
    pub world: usize,
    pub address: usize,
    pub shape: Shape,
}

/// Fails with `State` if the caller must not wait, for example in a handler: each transfer that is
/// started is waited for, at the latest when its handle is dropped.
pub(crate) fn may_start(engine: &Engine) -> Result<()> {
    engine.may_wait()
}

/// Waits until all transfers of a counter are complete locally.
pub(crate) fn wait_for(engine: &Engine, counter: &CompletionCounter) -> Result<()> {
    let what = || format!("{} non-blocking transfers", counter.outstanding());
    let done = engine.observed_often(
        || counter.outstanding() == 0,
        |()| CallInfo::new(Call::Wait),
        || wait::until(engine, counter, &what, || counter.check()),
    );
    if let Err(error) = &done
        && counter.outstanding() > 0
    {
        // The engine, or MPI, may still write to memory that the caller is about to get back.
        log::error!("non-blocking transfers cannot be completed: {error:#}");
        portolan_engine::process::end_job(error.kind().code());
    }
    done
}

/// Makes progress. Returns whether the transfers of a counter are complete locally.
pub(crate) fn is_done(engine: &Engine, counter: &CompletionCounter) -> Result<bool> {
    if counter.outstanding() > 0 {
        engine.poll()?;
    }
    Ok(counter.outstanding() == 0)
}

#[derive(Debug)]
pub(crate) struct Flights<'rt> {
    engine: &'rt Engine,
    list: RefCell<List>,
}

#[derive(Debug, Default)]
struct List {
    counters: Vec<Arc<CompletionCounter>>,
    /// A counter without transfers, to be reused.
    spare: Option<Arc<CompletionCounter>>,
    /// The length at which the list is swept.
    sweep_at: usize,
    failure: Option<Error>,
}

const FIRST_SWEEP: usize = 64;

impl List {
    /// Removes transfers that are complete and that no caller holds a handle to.
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
    pub(crate) fn new(engine: &'rt Engine) -> Flights<'rt> {
        Flights { engine, list: RefCell::new(List { sweep_at: FIRST_SWEEP, ..List::default() }) }
    }

    /// Issues a transfer. Returns its counter, or `None` if it is already complete locally.
    ///
    /// # Safety
    /// `local` must be valid for the local extent of the shape until the counter is done or this
    /// value is dropped: exclusively and for writes in a get, otherwise for reads.
    pub(crate) unsafe fn issue(
        &self,
        order: &Order,
        local: *mut u8,
    ) -> Result<Option<Arc<CompletionCounter>>> {
        may_start(self.engine)?;
        let counter = {
            let mut list = self.list.borrow_mut();
            if list.counters.len() >= list.sweep_at {
                list.sweep();
            }
            let counter = list.spare.take().unwrap_or_default();
            // Listed before the transfer is issued, so that it is waited for in every case.
            list.counters.push(counter.clone());
            counter
        };
        let Order { kind, world, address, shape } = order;
        // SAFETY: by contract, `local` is valid. The drop waits for the listed counter.
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

    pub(crate) fn wait(&self, counter: Option<&Arc<CompletionCounter>>) -> Result<()> {
        match counter {
            Some(counter) => wait_for(self.engine, counter),
            None => Ok(()),
        }
    }

    pub(crate) fn is_done(&self, counter: Option<&Arc<CompletionCounter>>) -> Result<bool> {
        match counter {
            Some(counter) => is_done(self.engine, counter),
            None => Ok(true),
        }
    }

    /// Waits for all transfers. Returns the first failure that has not been returned yet.
    pub(crate) fn wait_all(&self) -> Result<()> {
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
