//! Contexts: queues of completed operations whose callbacks have not run yet.
//!
//! Progress appends completions to the context's queue, and only trigger runs callbacks. Each
//! callback runs once, on the triggering thread, with no lock held.

use super::address::Address;
use super::class::{Pending, Shared};
use super::transfer::Transfer;
use super::wait_descriptor::Descriptor;
use crate::failure::{Result, Status};
use parking_lot::Mutex;
use portolan_base::wait::Deadline;
use std::cell::Cell;
use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The kind of a completed operation and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    Lookup(Address),
    SendUnexpected,
    RecvUnexpected {
        body: Vec<u8>,
        source: Address,
        tag: u32,
    },
    SendExpected,
    RecvExpected {
        body: Vec<u8>,
    },
    /// A put completed: the bytes are in the peer's memory.
    Put,
    /// A get completed: the bytes are in local memory.
    Get,
}

/// The completion of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub status: Status,
    pub what: What,
}

/// A callback that runs once after its operation has completed.
pub type Callback = Box<dyn FnOnce(Event) + Send>;

struct Completion {
    callback: Callback,
    event: Event,
}

struct Active {
    op: u64,
    transfer: Transfer,
    callback: Callback,
}

pub struct ContextShared {
    pub class: Arc<Shared>,
    queue: Mutex<VecDeque<Completion>>,
    queued: AtomicUsize,
    active: Mutex<Vec<Active>>,
    transfers: AtomicUsize,
    descriptor: OnceLock<Arc<Descriptor>>,
}

impl Drop for ContextShared {
    fn drop(&mut self) {
        for active in self.active.get_mut().drain(..) {
            drop(active);
            self.class.wake_source.transfer_ends();
        }
        if let Some(descriptor) = self.descriptor.get() {
            self.class.wake_source.descriptors.disarm(descriptor);
        }
    }
}

impl std::fmt::Debug for ContextShared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("queued", &self.queued).finish_non_exhaustive()
    }
}

impl ContextShared {
    pub fn new(class: Arc<Shared>) -> Arc<ContextShared> {
        Arc::new(ContextShared {
            class,
            queue: Mutex::default(),
            queued: AtomicUsize::new(0),
            active: Mutex::default(),
            transfers: AtomicUsize::new(0),
            descriptor: OnceLock::new(),
        })
    }

    /// Records that an operation has completed, and queues its callback for trigger.
    pub(super) fn complete(&self, callback: Callback, event: Event) {
        let mut queue = self.queue.lock();
        queue.push_back(Completion { callback, event });
        self.queued.store(queue.len(), Ordering::Release);
        drop(queue);
        self.class.notify();
    }

    pub fn queued(&self) -> usize {
        self.queued.load(Ordering::Acquire)
    }

    pub fn is_moving(&self) -> bool {
        self.transfers.load(Ordering::Acquire) > 0
    }

    /// Returns a file descriptor that is readable while the context has work, or `None` if the
    /// network must be polled. The program arms the descriptor ([`ContextShared::arm`]) before each
    /// wait. Returns `NODEV` if the process has too many open files.
    pub fn wait_descriptor(&self) -> Result<Option<RawFd>> {
        if self.descriptor.get().is_none() {
            let Some(new) = self.class.new_descriptor()? else { return Ok(None) };
            let _ = self.descriptor.set(new);
        }
        Ok(self.descriptor.get().map(|descriptor| descriptor.fd()))
    }

    /// Arms the descriptor, and signals it if there is work. Returns whether the program may wait:
    /// neither `has_work` nor the context has work.
    pub fn arm(&self, has_work: impl FnOnce() -> bool) -> bool {
        let Some(descriptor) = self.descriptor.get() else { return false };
        let has_work = self.class.arm(descriptor) || has_work() || self.queued() > 0;
        if has_work {
            descriptor.signal();
        }
        !has_work
    }

    pub(crate) fn cancel_all(&self) {
        for op in self.class.pending_of(self) {
            if let Err(failure) = self.class.cancel(op) {
                log::warn!("{failure}");
            }
        }
    }

    /// Cancels all pending operations and discards the queued callbacks without running them.
    pub fn clear(&self) {
        self.cancel_all();
        let mut queue = self.queue.lock();
        let given_up = std::mem::take(&mut *queue);
        self.queued.store(0, Ordering::Release);
        drop(queue);
        drop(given_up);
    }

    /// Starts a transfer and returns its operation number, which `announce` gets before the start.
    pub(super) fn start(
        self: &Arc<ContextShared>,
        mut transfer: Transfer,
        callback: Callback,
        announce: impl FnOnce(u64),
    ) -> Result<u64> {
        self.class.check_open()?;
        let op = self.class.new_op();
        announce(op);
        let observer = self.class.engine().map(|engine| engine.observer());
        let begun = observer.and_then(|observer| observer.begin());
        self.class.wake_source.transfer_begins();
        // Messages that the transfer sends are recorded separately.
        let ended = transfer.advance();
        if let Some(entered) = observer.and_then(|observer| observer.enter(|| false)) {
            entered.since(begun).leave(&transfer.call_info());
        }
        if let Some(status) = ended {
            self.class.wake_source.transfer_ends();
            self.complete(callback, Event { status, what: transfer.what() });
            return Ok(op);
        }
        self.class.pending.lock().insert(op, (Pending::Transfer, Arc::downgrade(self)));
        self.active.lock().push(Active { op, transfer, callback });
        self.transfers.fetch_add(1, Ordering::Release);
        Ok(op)
    }

    pub(super) fn cancel_transfer(&self, op: u64) {
        if let Some(active) = self.active.lock().iter_mut().find(|active| active.op == op) {
            active.transfer.cancel();
        }
    }

    /// Advances the transfers. Returns whether any of them made progress.
    pub fn step(&self) -> bool {
        if self.transfers.load(Ordering::Acquire) == 0 {
            return false;
        }
        let Some(mut active) = self.active.try_lock() else { return false };
        self.carry_on(&mut active)
    }

    /// Ends all transfers as cancelled after the runtime has ended.
    pub(super) fn end_transfers(&self) {
        self.carry_on(&mut self.active.lock());
    }

    fn carry_on(&self, active: &mut Vec<Active>) -> bool {
        let (mut busy, ended) = (false, Cell::new(None));
        let ends = |active: &mut Active| {
            ended.set(active.transfer.advance());
            busy |= ended.get().is_some() || active.transfer.is_moving();
            ended.get().is_some()
        };
        for Active { op, transfer, callback } in active.extract_if(.., ends) {
            let Some(status) = ended.take() else { continue };
            self.class.pending.lock().remove(&op);
            self.complete(callback, Event { status, what: transfer.what() });
            self.transfers.fetch_sub(1, Ordering::Release);
            self.class.wake_source.transfer_ends();
        }
        busy
    }

    /// Makes progress for up to `timeout` until a completion is queued. Returns whether one is.
    pub fn progress(self: &Arc<ContextShared>, timeout: Duration) -> Result<bool> {
        self.class.check_open()?;
        if self.queued() > 0 {
            return Ok(true);
        }
        self.class.until(&mut Deadline::after(timeout), || {
            self.step();
            Ok(self.queued() > 0)
        })
    }

    /// Runs at most `most` callbacks and returns how many ran. If none is queued, first makes
    /// progress until one is, for up to `timeout`.
    pub fn trigger(self: &Arc<ContextShared>, timeout: Duration, most: usize) -> Result<usize> {
        if most > 0 && self.queued() == 0 && !timeout.is_zero() {
            self.progress(timeout)?;
        }
        let (mut ran, mut batch) = (0, self.class.batch());
        while ran < most {
            // First, because a failure must not lose a callback.
            self.class.attend()?;
            let mut queue = self.queue.lock();
            let Some(Completion { callback, event }) = queue.pop_front() else { break };
            self.queued.store(queue.len(), Ordering::Release);
            drop(queue);
            batch.next(ran + 1 < most && self.queued() > 0);
            callback(event);
            ran += 1;
        }
        Ok(ran)
    }

    /// Queues the completion of a finished lookup and returns its operation number.
    pub(super) fn looked_up(&self, address: Address, callback: Callback) -> u64 {
        let event = Event { status: Status::SUCCESS, what: What::Lookup(address) };
        self.complete(callback, event);
        self.class.new_op()
    }
}
