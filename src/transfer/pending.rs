//! Transfers in flight, and the guarantee that they are waited for.
//!
//! [`Pending`] is the handle of a transfer and keeps its buffer. If the transfer owns the buffer,
//! dropping the handle waits. Otherwise the buffer is borrowed for a scope, whose end waits. Each
//! transfer that is not complete when it is issued has a [`CompletionCounter`], which the
//! engine decrements. [`Flights`] holds the counters of a scope and waits for them when it is
//! dropped, even while a panic unwinds. The owner of a buffer thus gets it back only when the
//! engine no longer accesses it. If a wait fails with transfers outstanding, there is no safe way
//! to continue, and the job ends.

use crate::Element;
use crate::one_thread::OneThread;
use portolan_base::error::{Error, Result};
use portolan_base::layout::Shape;
use portolan_base::trace::{Call, CallInfo};
use portolan_base::wait::{self, Progress};
use portolan_engine::core::peer::CompletionCounter;
use portolan_engine::runtime::Engine;
use portolan_engine::transfer::{Transfer, TransferKind};
use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

/// A transfer whose arguments have been checked.
#[derive(Debug)]
pub(crate) struct Order {
    pub kind: TransferKind,
    pub world: usize,
    pub address: usize,
    pub shape: Shape,
}

impl Order {
    pub(super) fn transfer(&self, local: *mut u8) -> Transfer<'_> {
        let Order { kind, world: target, address: remote, ref shape } = *self;
        Transfer { kind, target, remote, local, shape }
    }
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
    match done {
        // The engine, or MPI, may still write to memory that the caller is about to get back.
        Err(error) if counter.outstanding() > 0 => {
            error.end_job_in("non-blocking transfers cannot be completed")
        }
        done => done,
    }
}

pub(crate) mod sealed {
    pub trait Sealed {}
}

/// The buffer of a transfer in flight: what [`Pending::wait`] returns.
pub trait PendingBuffer: sealed::Sealed + Sized {
    /// The buffer while the engine may access it. It holds no reference, because the engine writes
    /// to the elements while the value may be moved.
    #[doc(hidden)]
    type Raw;
    /// Whether the transfer owns the buffer. Otherwise a scope waits for the transfer.
    #[doc(hidden)]
    const OWNED: bool;

    /// # Safety
    /// The value must come from a buffer of this type, whose borrow has not ended, and the transfer
    /// must be complete.
    #[doc(hidden)]
    unsafe fn from_raw(raw: Self::Raw) -> Self;
}

impl sealed::Sealed for () {}
/// A put or an accumulate of a scope.
impl PendingBuffer for () {
    type Raw = ();
    const OWNED: bool = false;

    unsafe fn from_raw((): ()) {}
}

impl<T: Element> sealed::Sealed for &mut [T] {}
/// A get of a scope.
impl<T: Element> PendingBuffer for &mut [T] {
    type Raw = NonNull<[T]>;
    const OWNED: bool = false;

    unsafe fn from_raw(mut raw: NonNull<[T]>) -> Self {
        // SAFETY: by contract, the pointer comes from a slice that is still borrowed exclusively.
        // Only the engine has used it since, and its transfer is complete.
        unsafe { raw.as_mut() }
    }
}

impl<T: Element> sealed::Sealed for Vec<T> {}
/// A transfer that owns its buffer.
impl<T: Element> PendingBuffer for Vec<T> {
    type Raw = Vec<T>;
    const OWNED: bool = true;

    unsafe fn from_raw(raw: Vec<T>) -> Vec<T> {
        raw
    }
}

/// A transfer that may be in flight. [`Pending::wait`] returns the buffer `B`.
///
/// | started by | `B` | dropping it |
/// |---|---|---|
/// | a get of a [`Scope`](crate::transfer::Scope) | the borrowed slice or view | does not wait; the scope waits when it ends |
/// | a put or an accumulate of a scope | `()` | does not wait either |
/// | `start_get`, `start_put`, `start_accumulate` of a [`Segment`](crate::Segment) or a `DistArray` | the vector or array, which the transfer owns | waits |
///
/// ```no_run
/// # fn ahead(segment: &portolan::Segment<'_, f64>) -> portolan::Result<()> {
/// let mut next = segment.start_get(1, 0, vec![0.0; 1000])?;
/// for piece in 1..10 {
///     let current = next.wait()?;
///     next = segment.start_get(1, piece * 1000, vec![0.0; 1000])?;
///     // compute on `current` while the next piece comes
///     # drop(current);
/// }
/// # next.wait().map(drop)
/// # }
/// ```
pub struct Pending<'a, B: PendingBuffer> {
    // Dropped before the buffer, which the engine may access until then.
    flight: Flight<'a, B>,
    buffer: B::Raw,
    _thread: OneThread,
}

struct Flight<'a, B: PendingBuffer> {
    engine: &'a Engine,
    /// `None` if the transfer is known to be complete.
    counter: Option<Arc<CompletionCounter>>,
    _buffer: PhantomData<fn() -> B>,
}

impl<'a, B: PendingBuffer> Pending<'a, B> {
    pub(crate) fn new(
        engine: &'a Engine,
        counter: Option<Arc<CompletionCounter>>,
        buffer: B::Raw,
    ) -> Pending<'a, B> {
        let flight = Flight { engine, counter, _buffer: PhantomData };
        Pending { flight, buffer, _thread: OneThread::default() }
    }

    pub(crate) fn buffer_mut(&mut self) -> &mut B::Raw {
        &mut self.buffer
    }

    /// Waits until the transfer is complete locally, and returns its buffer. After a get it holds
    /// the elements. After a put or an accumulate it may be reused, as after the blocking call.
    ///
    /// # Errors
    /// Returns `Address` or `Mpi` if the transfer failed. An owned buffer is then lost. A borrowed
    /// one stays borrowed until the scope ends, and the contents of the target of a get are
    /// unspecified.
    pub fn wait(mut self) -> Result<B> {
        self.flight.wait().map_err(|e| e.in_call("Pending::wait"))?;
        // SAFETY: the caller of `new` has passed the value of a buffer whose borrow outlives this
        // handle. The transfer is complete, and the handle is consumed, so this happens only once.
        Ok(unsafe { B::from_raw(self.buffer) })
    }

    /// Returns whether [`Pending::wait`] would return at once. Makes progress.
    ///
    /// # Errors
    /// Returns `Mpi` if making progress fails.
    pub fn is_done(&self) -> Result<bool> {
        let Flight { engine, counter: Some(counter), .. } = &self.flight else { return Ok(true) };
        if counter.outstanding() > 0 {
            engine.poll().map_err(|e| e.in_call("Pending::is_done"))?;
        }
        Ok(counter.outstanding() == 0)
    }
}

impl<B: PendingBuffer> fmt::Debug for Pending<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outstanding = self.flight.counter.as_ref().map_or(0, |c| c.outstanding());
        f.debug_struct("Pending").field("outstanding", &outstanding).finish_non_exhaustive()
    }
}

impl<B: PendingBuffer> Flight<'_, B> {
    fn wait(&mut self) -> Result<()> {
        let Some(counter) = &self.counter else { return Ok(()) };
        let done = wait_for(self.engine, counter);
        // Only now, so that a wait that unwinds is repeated by the destructor.
        self.counter = None;
        done
    }
}

impl<B: PendingBuffer> Drop for Flight<'_, B> {
    fn drop(&mut self) {
        if B::OWNED
            && let Err(error) = self.wait()
        {
            log::error!("a non-blocking transfer failed: {error:#}");
        }
    }
}

#[derive(Debug)]
pub(crate) struct Flights<'rt> {
    engine: &'rt Engine,
    list: RefCell<List>,
    _thread: OneThread,
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
        let list = RefCell::new(List { sweep_at: FIRST_SWEEP, ..List::default() });
        Flights { engine, list, _thread: OneThread::default() }
    }

    pub(crate) fn engine(&self) -> &'rt Engine {
        self.engine
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
        let transfer = order.transfer(local);
        // SAFETY: by contract, `local` is valid. The drop waits for the listed counter.
        self.list(|counter| unsafe { self.engine.issue(&transfer, counter) })
    }

    /// Lists a counter, to be waited for, and calls `issue` with it. Returns the counter, or `None`
    /// if its transfers are already complete locally.
    pub(crate) fn list(
        &self,
        issue: impl FnOnce(&Arc<CompletionCounter>) -> Result<()>,
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
        let issued = issue(&counter);
        if counter.outstanding() > 0 {
            return issued.map(|()| Some(counter));
        }
        let mut list = self.list.borrow_mut();
        list.counters.pop();
        let done = counter.check();
        list.spare = Some(counter);
        issued.and(done).map(|_| None)
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
