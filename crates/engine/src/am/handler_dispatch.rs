//! Execution of handlers. For each message, this module runs the header handler, which returns the
//! destination of the data ([`Accept`]), puts the data in place, runs the [`Then`] of the message,
//! counts it, and sends an ACK if awaited. A message whose data has yet to arrive is an
//! [`InboundMessage`]. A handler that fails or panics ends the job with an error that contains its
//! name. Invariant: header handlers and inline completions run under the dispatcher's lock.

use super::Am;
use super::inbound::{EagerMessage, HeldKind, InboundMessage};
use super::state::{AmState, HandlerEntry};
use super::wire::{RecordHead, RecordKind};
use super::{Accept, Arrival, Completion, Destination, Job, Signal, Then};
use crate::core::handler;
use portolan_base::error::{Error, ErrorKind, Result, fail};
use portolan_base::trace::Served;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering;
use std::time::Duration;

#[inline]
pub(super) fn guarded<R>(name: &'static str, body: impl FnOnce() -> Result<R>) -> R {
    match handler::run_as(name, body) {
        Ok(Ok(value)) => value,
        Ok(Err(error)) => error.end_job_in(format_args!("the handler {name} failed")),
        Err(panic) => {
            let text = panic
                .downcast_ref::<&str>()
                .map(|s| (*s).to_string())
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_default();
            Error::new(ErrorKind::Internal, format!("the handler {name} panicked: {text}"))
                .end_job()
        }
    }
}

#[inline]
fn run_header_handler(am: &Am, entry: &HandlerEntry, arrival: &Arrival<'_>) -> Accept {
    let traced = am.begin_to_serve();
    let accept = guarded(entry.name, || entry.handler.arrive(am, arrival));
    if let Some(traced) = traced {
        traced.end(Served::Handler, Some(arrival.origin), arrival.header.len() + arrival.len, None);
    }
    accept
}

impl HandlerEntry {
    pub(super) fn is_ready(&self, origin: usize, header: &[u8], waited: Duration) -> bool {
        guarded(self.name, || self.handler.is_ready(origin, header, waited))
    }
}

fn run_completion(am: &Am, origin: usize, buffer: Vec<u8>, run: Completion) {
    let (traced, bytes) = (am.begin_to_serve(), buffer.len());
    run(am, buffer);
    if let Some(traced) = traced {
        traced.end(Served::Completion, Some(origin), bytes, None);
    }
}

/// Runs as a handler, which must not wait: others may need this thread or its locks.
#[inline(never)]
fn called(am: &Am, call: Job) {
    let called = handler::run_as("a completion signal", || call(am));
    called.unwrap_or_else(|panic| resume_unwind(panic));
}

impl Signal {
    #[inline]
    pub fn notify(self, am: &Am) {
        match self {
            Signal::None => {}
            Signal::Count(counter) => {
                // SAFETY: the signal's creator guarantees that the counter outlives the message.
                unsafe { (*counter).fetch_add(1, Ordering::Release) };
            }
            Signal::Counter(counter) => counter.end(),
            Signal::Call(call) => called(am, call),
        }
    }
}

impl AmState {
    #[inline]
    pub(crate) fn arrive_eager(
        &self,
        am: &Am,
        origin: usize,
        head: &RecordHead,
        header: &[u8],
        data: &[u8],
    ) -> Result<()> {
        let entry = self.entry(origin, head)?;
        if let Some(deferral) = entry.held_back_by(origin, header) {
            let message = EagerMessage::new(head, header, data);
            return self.hold(am, deferral, origin, HeldKind::Eager(message));
        }
        self.meet(am, entry, origin, head, header, data)
    }

    /// Does not check the deferral queue.
    #[inline]
    pub(super) fn meet(
        &self,
        am: &Am,
        entry: &HandlerEntry,
        origin: usize,
        head: &RecordHead,
        header: &[u8],
        data: &[u8],
    ) -> Result<()> {
        let arrival = Arrival { origin, header, len: data.len(), data: Some(data) };
        let accept = run_header_handler(am, entry, &arrival);
        match accept {
            Accept { to: Destination::Taken, then: Then::Nothing } => {
                self.handled_here(am, origin, head.token)
            }
            accept => {
                let inbound = self.place(origin, head, entry, accept, Some(data))?;
                self.finish(am, inbound)
            }
        }
    }

    #[inline]
    pub fn entry(&self, origin: usize, head: &RecordHead) -> Result<&HandlerEntry> {
        let id = head.handler();
        let Some(entry) = self.handlers.get(id) else {
            fail!(
                Internal,
                "rank {origin} sent a message for handler {}, which is unknown here",
                id.0
            );
        };
        if entry.gone.load(Ordering::Relaxed) {
            fail!(State, "rank {origin} sent a message for {}, which is unregistered", entry.name);
        }
        Ok(entry)
    }

    /// Runs the header handler of a message whose data comes later.
    pub(super) fn arrive(
        &self,
        am: &Am,
        origin: usize,
        head: &RecordHead,
        header: &[u8],
    ) -> Result<InboundMessage> {
        let entry = self.entry(origin, head)?;
        let arrival = Arrival { origin, header, len: head.len as usize, data: None };
        let accept = run_header_handler(am, entry, &arrival);
        self.place(origin, head, entry, accept, None)
    }

    fn place(
        &self,
        origin: usize,
        head: &RecordHead,
        entry: &HandlerEntry,
        accept: Accept,
        data: Option<&[u8]>,
    ) -> Result<InboundMessage> {
        let (name, len) = (entry.name, head.len as usize);
        let mut inbound = InboundMessage {
            origin,
            to: std::ptr::null_mut(),
            len: 0,
            name,
            token: head.token,
            buffer: Vec::new(),
            then: accept.then,
            deferral: entry.deferral.clone(),
            number: 0,
        };
        match accept.to {
            Destination::Taken => {}
            Destination::At(to) => {
                if to.is_null() && len > 0 {
                    let text = format!("null destination for {len} bytes from rank {origin}");
                    guarded(name, || Err::<(), _>(Error::new(ErrorKind::Address, text)));
                }
                (inbound.to, inbound.len) = (to, len);
                if let Some(data) = data {
                    // SAFETY: the handler promised that `to` is valid for the data's length.
                    unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), to, len) };
                }
            }
            Destination::Buffer => match data {
                Some(data) => inbound.buffer = data.to_vec(),
                None => {
                    inbound.buffer.try_reserve_exact(len).map_err(|_| {
                        Error::new(
                            ErrorKind::Memory,
                            format!("no memory for {len} bytes of a message from rank {origin}"),
                        )
                    })?;
                    (inbound.to, inbound.len) = (inbound.buffer.as_mut_ptr(), len);
                }
            },
        }
        Ok(inbound)
    }

    /// For a message whose data is in place. Holds it if an inline completion may not run here.
    pub fn finish(&self, am: &Am, mut inbound: InboundMessage) -> Result<()> {
        if inbound.buffer.is_empty() && inbound.buffer.capacity() > 0 {
            // SAFETY: `place` has reserved these bytes, and all of them were written.
            unsafe { inbound.buffer.set_len(inbound.len) };
        }
        if let Then::Inline(_) = inbound.then
            && let Some(deferral) = inbound.held_back_by().cloned()
        {
            return self.hold(am, &deferral, inbound.origin, HeldKind::Delivered(inbound));
        }
        let (origin, number) = (inbound.origin, inbound.number);
        let deferral = inbound.deferral.clone().filter(|_| number != 0);
        self.complete_inbound(am, inbound)?;
        match deferral {
            Some(deferral) => deferral.in_place(self, am, origin, number),
            None => Ok(()),
        }
    }

    /// Does not check the deferral queue.
    pub(super) fn complete_inbound(&self, am: &Am, inbound: InboundMessage) -> Result<()> {
        let InboundMessage { origin, token, buffer, then, name, deferral, .. } = inbound;
        match then {
            Then::Nothing => self.handled_here(am, origin, token),
            Then::Inline(run) => {
                guarded(name, || {
                    run_completion(am, origin, buffer, run);
                    Ok(())
                });
                self.handled_here(am, origin, token)
            }
            Then::Later(run) => {
                let job = Box::new(move |am: &Am| {
                    let run = || run_completion(am, origin, buffer, run);
                    if catch_unwind(AssertUnwindSafe(run)).is_err() {
                        let text = format!("a completion handler of {name} panicked");
                        Error::new(ErrorKind::Internal, text).end_job();
                    }
                    let handled =
                        am.state().and_then(|state| state.handled_on_thread(am, origin, token));
                    if let Err(error) = handled {
                        error.end_job();
                    }
                });
                match deferral {
                    Some(deferral) => self.run_behind(am, &deferral, job),
                    None => self.run_on_thread(am, job),
                }
            }
        }
    }

    /// Without threads, some thread that makes progress runs the job.
    pub(super) fn run_on_thread(&self, am: &Am, job: Job) -> Result<()> {
        if !am.may_use_threads() {
            self.completion_thread.push(job);
            return Ok(());
        }
        let owner = am.owner()?;
        self.completion_thread.push_to_thread(job, move |job: Job| {
            let Some(owner) = owner.upgrade() else { return false };
            let ended = handler::in_completion(|| job(owner.am()));
            ended.unwrap_or_else(|panic| resume_unwind(panic));
            true
        })
    }

    /// The caller holds the dispatcher's lock.
    #[inline]
    fn handled_here(&self, am: &Am, origin: usize, token: u64) -> Result<()> {
        self.record_handled(am, origin, token)?;
        // Only the holder of the lock changes this count, so plain accesses suffice.
        let handled = self.handled.load(Ordering::Relaxed);
        self.handled.store(handled + 1, Ordering::Release);
        Ok(())
    }

    /// Without the dispatcher's lock.
    fn handled_on_thread(&self, am: &Am, origin: usize, token: u64) -> Result<()> {
        self.record_handled(am, origin, token)?;
        self.handled_on_thread.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    #[inline]
    fn record_handled(&self, am: &Am, origin: usize, token: u64) -> Result<()> {
        if token == 0 { Ok(()) } else { self.send_token(am, origin, RecordKind::Ack, token) }
    }
}
