//! Runs handlers: header handler, bytes into place, completion handler, count.
//!
//! The header handler says where the data goes ([`Accept`]). A message whose data is still to
//! come is kept as an [`InboundMessage`] until the data is in place; then the message's [`Then`]
//! runs, the message is counted as handled, and its origin gets an ACK where it waits for that.
//! A handler that fails or panics ends the job, by its name.
//!
//! Invariant: header handlers and inline completions run under the dispatcher's lock.

use super::Am;
use super::gate::HeldKind;
use super::rendezvous::InboundMessage;
use super::state::{AmState, HandlerEntry};
use super::wire::{RecordHead, RecordKind};
use super::{Accept, Arrival, Destination, Signal, Then};
use crate::core::handler;
use crate::error::{Error, ErrorKind, Result, fail};
use crate::trace::Served;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// An error of a handler ends the job: the origin counts on the message.
#[cold]
pub(super) fn fatal(error: &Error) -> ! {
    error.clone().log_once();
    crate::process::end_job(error.kind().code())
}

#[inline]
pub(super) fn guarded<R>(name: &'static str, body: impl FnOnce() -> Result<R>) -> R {
    match handler::run_as(name, body) {
        Ok(Ok(value)) => value,
        Ok(Err(error)) => {
            let text = format!("the handler {name} failed: {}", error.detail());
            fatal(&error.reworded(text))
        }
        Err(panic) => {
            let text = panic
                .downcast_ref::<&str>()
                .map(|s| (*s).to_string())
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_default();
            fatal(&Error::new(ErrorKind::Internal, format!("the handler {name} panicked: {text}")))
        }
    }
}

/// Runs a header handler, and tells the observer of it.
#[inline]
fn run_header_handler(am: &Am, entry: &HandlerEntry, arrival: &Arrival<'_>) -> Accept {
    let told = am.begin_to_serve();
    let accept = guarded(entry.name, || entry.handler.arrive(am, arrival));
    if let Some(told) = told {
        told.end(Served::Handler, arrival.origin, arrival.header.len() + arrival.len, None);
    }
    accept
}

impl HandlerEntry {
    /// Whether the handler can run for a message; an error of its ends the job.
    pub(super) fn is_ready(&self, origin: usize, header: &[u8], waited: Duration) -> bool {
        guarded(self.name, || self.handler.is_ready(origin, header, waited))
    }
}

impl Signal {
    /// Signals the completion to its receiver.
    pub(crate) fn tell(self, am: &Am) {
        match self {
            Signal::None => {}
            Signal::Counter(counter) => counter.end(),
            Signal::Count(counter) => {
                // SAFETY: the maker of the signal vouches for the counter's life.
                unsafe { (*counter).fetch_add(1, Ordering::Release) };
            }
            Signal::Call(call) => {
                // Others may need the thread, and it may hold their lock.
                let called = handler::run_as("a completion signal", || call(am));
                called.unwrap_or_else(|panic| resume_unwind(panic));
            }
        }
    }
}

impl AmState {
    /// Runs the header handler of a message that came with its data, and what follows.
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
        if let Some(gate) = entry.held_back_by(origin, header) {
            let (header, data) = (header.to_vec(), data.to_vec());
            return self.hold(am, gate, origin, HeldKind::Eager { head: *head, header, data });
        }
        self.meet(am, entry, origin, head, header, data)
    }

    /// [`Am::arrive_eager`], whatever a gate says.
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
    pub(crate) fn entry(&self, origin: usize, head: &RecordHead) -> Result<&HandlerEntry> {
        let id = head.handler();
        let Some(entry) = self.handlers.get(id) else {
            fail!(Internal, "rank {origin} sent a message for handler {}, unknown here", id.0);
        };
        if entry.gone.load(Ordering::Relaxed) {
            fail!(State, "rank {origin} sent a message for {}, which is unregistered", entry.name);
        }
        Ok(entry)
    }

    /// Runs the header handler of a message whose data is still to come: where to.
    pub(crate) fn arrive(
        &self,
        am: &Am,
        origin: usize,
        head: &RecordHead,
        header: &[u8],
    ) -> Result<InboundMessage> {
        let mut inbound = self.arrive_unfilled(am, origin, head, header)?;
        if inbound.buffer.capacity() > 0 {
            inbound.buffer.resize(inbound.len, 0);
        }
        Ok(inbound)
    }

    /// [`Am::arrive`] for data that a [`Reassembly`] takes: a buffer is not filled before.
    pub(super) fn arrive_unfilled(
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

    /// The inbound message of a message where its handler wants it.
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
            gate: entry.gate.clone(),
            number: 0,
        };
        match accept.to {
            Destination::Taken => {}
            Destination::At(to) => {
                if to.is_null() && len > 0 {
                    let text = format!("no place for {len} bytes from rank {origin}");
                    guarded(name, || Err::<(), _>(Error::new(ErrorKind::Address, text)));
                }
                (inbound.to, inbound.len) = (to, len);
                if let Some(data) = data {
                    // SAFETY: the handler promised a place for the data.
                    unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), to, len) };
                }
            }
            Destination::Buffer => match data {
                Some(data) => inbound.buffer = data.to_vec(),
                None => {
                    inbound.buffer.try_reserve_exact(len).map_err(|_| {
                        Error::new(
                            ErrorKind::Memory,
                            format!("{len} bytes for a message from rank {origin}"),
                        )
                    })?;
                    (inbound.to, inbound.len) = (inbound.buffer.as_mut_ptr(), len);
                }
            },
        }
        Ok(inbound)
    }

    /// The data is in place: runs what is to run, and tells the origin.
    pub(crate) fn finish(&self, am: &Am, inbound: InboundMessage) -> Result<()> {
        if let Then::Inline(_) = inbound.then
            && let Some(gate) = inbound.held_back_by().cloned()
        {
            return self.hold(am, &gate, inbound.origin, HeldKind::Delivered(inbound));
        }
        let (origin, number) = (inbound.origin, inbound.number);
        let gate = inbound.gate.clone().filter(|_| number != 0);
        self.complete_inbound(am, inbound)?;
        match gate {
            Some(gate) => gate.in_place(self, am, origin, number),
            None => Ok(()),
        }
    }

    /// [`Am::finish`], whatever a gate says.
    pub(super) fn complete_inbound(&self, am: &Am, inbound: InboundMessage) -> Result<()> {
        let InboundMessage { origin, token, buffer, then, name, gate, .. } = inbound;
        match then {
            Then::Nothing => self.handled_here(am, origin, token),
            Then::Inline(run) => {
                let told = am.begin_to_serve();
                let bytes = buffer.len();
                guarded(name, || {
                    run(am, buffer);
                    Ok(())
                });
                if let Some(told) = told {
                    told.end(Served::Completion, origin, bytes, None);
                }
                self.handled_here(am, origin, token)
            }
            Then::Later(run) => {
                let job = Box::new(move |am: &Am| {
                    let told = am.begin_to_serve();
                    let bytes = buffer.len();
                    if catch_unwind(AssertUnwindSafe(|| run(am, buffer))).is_err() {
                        let text = format!("a completion handler of {name} panicked");
                        fatal(&Error::new(ErrorKind::Internal, text));
                    }
                    if let Some(told) = told {
                        told.end(Served::Completion, origin, bytes, None);
                    }
                    let handled =
                        am.state().and_then(|state| state.handled_on_thread(am, origin, token));
                    if let Err(error) = handled {
                        fatal(&error);
                    }
                });
                match gate {
                    Some(gate) => self.run_behind(am, &gate, job),
                    None => self.completion_thread.push(job, am.owner_for_threads()?),
                }
            }
        }
    }

    /// Counts a message as handled, under the dispatcher's lock, and tells its origin
    /// where that waits.
    #[inline]
    fn handled_here(&self, am: &Am, origin: usize, token: u64) -> Result<()> {
        self.tell_handled(am, origin, token)?;
        // The lock keeps other threads from counting, so that this needs no locked
        // instruction.
        let handled = self.handled.load(Ordering::Relaxed);
        self.handled.store(handled + 1, Ordering::Release);
        Ok(())
    }

    /// The same for a message that a completion thread has handled.
    fn handled_on_thread(&self, am: &Am, origin: usize, token: u64) -> Result<()> {
        self.tell_handled(am, origin, token)?;
        self.handled_on_thread.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    #[inline]
    fn tell_handled(&self, am: &Am, origin: usize, token: u64) -> Result<()> {
        if token == 0 {
            return Ok(());
        }
        let head = RecordHead { token, ..RecordHead::new(RecordKind::Ack) };
        self.send_record(am, origin, &[bytemuck::bytes_of(&head)])
    }
}
