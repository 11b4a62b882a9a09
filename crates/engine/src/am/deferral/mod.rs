//! Deferral queues ([`Deferral`]): handlers that run only in the calls of their interface.
//!
//! An interface may promise that its handlers run only while the program is in one of its calls, so
//! that the program needs no locks against them. Such handlers name a deferral queue
//! ([`Handler::deferral`]). While the queue is *polling*, its handlers run only on threads inside
//! the queue ([`Deferral::enter`]), otherwise on any thread.
//!
//! Messages that arrive while their handler cannot run are taken from rings and receives, so that
//! they do not block others, and are *held*: a short message with its data, a long one without,
//! whose data stays at the origin. Completion handlers wait in a job queue of the deferral queue.
//! They run at the end of a poll by a thread inside, one at a time, and may block. A message is
//! also held if its handler is not ready for it ([`Handler::is_ready`]), and each poll asks again.
//!
//! **Order.** While a message is held, later ones queue behind it. Each search starts at the front.
//! Messages of one origin thus keep their order, unless their handler is not ready for them.
//!
//! **Bounds.** A target that holds more than `PORTOLAN_FLIGHT_BYTES` of an origin sends it a stop
//! ([`RecordKind::DeferralStop`]), until it holds at most half of that. A stopped origin waits, in
//! a call, before it sends more to deferral queues of that target. Handlers never wait.
//!
//! **Fences.** Rings and flow control count a held message as handled. [`Am::fence_deferral`]
//! therefore sends a [`RecordKind::DeferralFence`] to each target, which answers when all that it
//! holds of the origin at that time is in place.
//!
//! **Quiescence.** [`Am::quiesce`] counts held messages as handled, because one interface cannot
//! wait for calls of another. [`Am::quiesce_deferrals`] waits for them as well.
//!
//! Invariants: the mode of a queue changes to polling under the dispatcher's lock, so no header
//! handler runs outside of calls afterwards. No lock of a queue is held while a handler runs, only
//! while it is asked whether it is ready.

mod calls;

pub use super::inbound::Deferral;

use super::Am;
use super::completion_thread::CompletionThread;
use super::inbound::{
    EagerMessage, HeldKind, HeldMessage, HeldMessages, InboundMessage, RndvState,
};
use super::state::{AmState, HandlerEntry};
use super::wire::{RecordHead, RecordKind};
use super::{Handler, Job};
use crate::path::two_sided::wire::RequestKind;
use parking_lot::Mutex;
use portolan_base::error::Result;
use portolan_base::thread::fast_tls;
use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const PER_POLL: usize = 64;

fast_tls! {
    /// Address of the deferral queue that this thread is inside, or 0.
    static INSIDE: usize = 0;
}

#[derive(Debug)]
pub struct InsideDeferral {
    outer: usize,
    _of_this_thread: PhantomData<*const ()>,
}

impl Drop for InsideDeferral {
    #[inline]
    fn drop(&mut self) {
        INSIDE.set(self.outer);
    }
}

impl Deferral {
    pub fn new(polling: bool) -> Arc<Deferral> {
        Arc::new(Deferral {
            polling: AtomicBool::new(polling),
            held: Mutex::default(),
            count: AtomicUsize::new(0),
            fresh: AtomicUsize::new(0),
            jobs: CompletionThread::default(),
            elsewhere: AtomicUsize::new(0),
        })
    }

    #[inline]
    pub fn is_polling(&self) -> bool {
        self.polling.load(Ordering::Relaxed)
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    /// Until the result is dropped, the calling thread is inside this queue, and no other.
    #[inline]
    pub fn enter(&self) -> InsideDeferral {
        let outer = INSIDE.with(|inside| inside.replace(self.address()));
        InsideDeferral { outer, _of_this_thread: PhantomData }
    }

    fn is_inside(&self) -> bool {
        INSIDE.get() == self.address()
    }

    #[inline]
    fn is_open_here(&self) -> bool {
        !self.is_polling() || self.is_inside()
    }

    /// This thread can run a completion handler or offer a message for the first time.
    fn has_work_here(&self) -> bool {
        self.is_open_here() && (self.fresh.load(Ordering::Relaxed) > 0 || !self.jobs.is_idle())
    }

    fn take(&self, state: &AmState) -> Result<Option<HeldMessage>> {
        let mut held = self.held.lock();
        for n in 0..held.queue.len() {
            let message = &mut held.queue[n];
            let ready = match message.what.message() {
                None => true,
                Some((head, header)) => {
                    let waited = message.refused.map_or(Duration::ZERO, |t| t.elapsed());
                    state.entry(message.origin, head)?.is_ready(message.origin, header, waited)
                }
            };
            let fresh = message.refused.is_none();
            if !ready {
                message.refused.get_or_insert_with(Instant::now);
            }
            if fresh {
                self.fresh.fetch_sub(1, Ordering::Relaxed);
            }
            if ready {
                return Ok(held.queue.remove(n));
            }
        }
        Ok(None)
    }

    fn is_clear_of(&self, origin: usize) -> bool {
        !self.held.lock().unfinished.contains_key(&origin)
    }

    /// Records that a held message is in place, and answers the fences that waited for it.
    pub(super) fn in_place(
        &self,
        state: &AmState,
        am: &Am,
        origin: usize,
        number: u64,
    ) -> Result<()> {
        let mut answers = Vec::new();
        {
            let mut held = self.held.lock();
            let HeldMessages { unfinished, asked, .. } = &mut *held;
            let Some(of_origin) = unfinished.get_mut(&origin) else { return Ok(()) };
            of_origin.remove(&number);
            let first = of_origin.first().copied().unwrap_or(u64::MAX);
            if of_origin.is_empty() {
                unfinished.remove(&origin);
            }
            asked.retain(|&(from, last, token)| {
                let done = from == origin && last < first;
                if done {
                    answers.push(token);
                }
                !done
            });
        }
        let ack = |token| state.send_token(am, origin, RecordKind::Ack, token);
        answers.into_iter().try_for_each(ack)
    }

    /// Answers the fence `token` of `origin` when all that is held of it now is in place.
    fn ask(&self, state: &AmState, am: &Am, origin: usize, token: u64) -> Result<()> {
        {
            let mut held = self.held.lock();
            if let Some(&last) = held.unfinished.get(&origin).and_then(BTreeSet::last) {
                held.asked.push((origin, last, token));
                return Ok(());
            }
        }
        state.send_token(am, origin, RecordKind::Ack, token)
    }
}

impl HandlerEntry {
    #[inline]
    pub(crate) fn held_back_by(&self, origin: usize, header: &[u8]) -> Option<&Arc<Deferral>> {
        self.deferral.as_ref().filter(|deferral| {
            !deferral.is_open_here()
                || deferral.count.load(Ordering::Relaxed) > 0
                || !self.is_ready(origin, header, Duration::ZERO)
        })
    }
}

impl InboundMessage {
    pub(super) fn held_back_by(&self) -> Option<&Arc<Deferral>> {
        self.deferral.as_ref().filter(|deferral| !deferral.is_open_here())
    }
}

impl AmState {
    /// The caller holds the dispatcher's lock.
    pub fn hold(&self, am: &Am, deferral: &Deferral, origin: usize, what: HeldKind) -> Result<()> {
        let bytes = what.bytes();
        let mut stop = false;
        {
            let mut held = deferral.held.lock();
            held.last += 1;
            let number = match &what {
                HeldKind::Delivered(inbound) if inbound.number != 0 => inbound.number,
                _ => held.last,
            };
            held.unfinished.entry(origin).or_default().insert(number);
            let of_origin = held.bytes.entry(origin).or_default();
            of_origin.0 += bytes;
            if of_origin.0 > am.config.flight_bytes && !of_origin.1 && origin != am.rank() {
                (of_origin.1, stop) = (true, true);
            }
            held.queue.push_back(HeldMessage { number, origin, bytes, what, refused: None });
        }
        deferral.count.fetch_add(1, Ordering::Relaxed);
        deferral.fresh.fetch_add(1, Ordering::Relaxed);
        self.set_aside.fetch_add(1, Ordering::AcqRel);
        self.behind_deferrals.fetch_add(1, Ordering::Release);
        if stop {
            self.send_token(am, origin, RecordKind::DeferralStop, 1)?;
        }
        if !deferral.is_open_here() {
            self.wake_waiting();
        }
        Ok(())
    }

    /// Wakes threads that sleep in a wait, because one may be able to run the handlers.
    fn wake_waiting(&self) {
        if let Some(node) = &self.node
            && node.rests(node.me())
        {
            node.wake_own();
        }
    }

    pub(super) fn at_fence(&self, am: &Am, origin: usize, head: &RecordHead) -> Result<()> {
        match self.handlers.get(head.handler()).and_then(|entry| entry.deferral.as_ref()) {
            Some(deferral) => deferral.ask(self, am, origin, head.token),
            None => self.send_token(am, origin, RecordKind::Ack, head.token),
        }
    }

    /// Returns whether any held message ran. The caller holds the dispatcher's lock.
    #[cold]
    pub(super) fn release(&self, am: &Am, work: &mut RndvState) -> Result<bool> {
        let deferrals = self.deferrals.read().clone();
        let mut any = false;
        for deferral in deferrals {
            for _ in 0..PER_POLL {
                // A handler may have changed the mode.
                if !deferral.is_open_here() {
                    break;
                }
                let Some(message) = deferral.take(self)? else { break };
                any = true;
                self.run_held(am, work, &deferral, message)?;
            }
        }
        Ok(any)
    }

    fn run_held(
        &self,
        am: &Am,
        work: &mut RndvState,
        deferral: &Deferral,
        message: HeldMessage,
    ) -> Result<()> {
        let HeldMessage { number, origin, bytes, what, .. } = message;
        deferral.count.fetch_sub(1, Ordering::Relaxed);
        // From here to its end, quiescence waits for the message.
        self.set_aside.fetch_sub(1, Ordering::AcqRel);
        match what {
            HeldKind::Eager(EagerMessage { head, header, data }) => {
                let entry = self.entry(origin, &head)?;
                self.meet(am, entry, origin, &head, &header, &data)?;
                deferral.in_place(self, am, origin, number)?;
            }
            HeldKind::Rts { head, header, via, source } => {
                let message = (&head, &header[..]);
                let from = (via, origin);
                // The request was counted when it was held, so only the data must be received.
                if let Some(data) = self.begin_rndv(am, work, from, message, source, number)? {
                    am.two_sided()?.receive_data(RequestKind::AmRts, origin, data)?;
                }
            }
            HeldKind::Delivered(inbound) => {
                self.complete_inbound(am, inbound)?;
                deferral.in_place(self, am, origin, number)?;
            }
        }
        self.behind_deferrals.fetch_sub(1, Ordering::Relaxed);
        let mut go = false;
        {
            let mut held = deferral.held.lock();
            if let Some(of_origin) = held.bytes.get_mut(&origin) {
                of_origin.0 -= bytes;
                if of_origin.1 && of_origin.0 <= am.config.flight_bytes / 2 {
                    (of_origin.1, go) = (false, true);
                }
            }
        }
        if go { self.send_token(am, origin, RecordKind::DeferralStop, 0) } else { Ok(()) }
    }

    /// For the calls of the interface, or for the completion thread if not polling.
    pub(super) fn run_behind(&self, am: &Am, deferral: &Arc<Deferral>, job: Job) -> Result<()> {
        if deferral.is_polling() {
            self.set_aside.fetch_add(1, Ordering::AcqRel);
            let counted = Box::new(move |am: &Am| {
                if let Some(state) = am.started() {
                    state.set_aside.fetch_sub(1, Ordering::AcqRel);
                }
                job(am);
            });
            self.queue_job(deferral, counted);
            return Ok(());
        }
        self.send_elsewhere(am, deferral, job)
    }

    fn send_elsewhere(&self, am: &Am, deferral: &Arc<Deferral>, job: Job) -> Result<()> {
        deferral.elsewhere.fetch_add(1, Ordering::AcqRel);
        let deferral = deferral.clone();
        let counted = Box::new(move |am: &Am| {
            job(am);
            deferral.elsewhere.fetch_sub(1, Ordering::AcqRel);
        });
        self.run_on_thread(am, counted)
    }

    fn queue_job(&self, deferral: &Deferral, job: Job) {
        self.behind_deferrals.fetch_add(1, Ordering::Release);
        deferral.jobs.push(job);
        if !deferral.is_inside() {
            self.wake_waiting();
        }
    }

    /// Runs, without a lock, one completion handler of each queue that this thread is inside. The
    /// completion thread runs the others, unless they poll. Returns whether one ran.
    #[cold]
    pub(super) fn run_jobs(&self, am: &Am) -> Result<bool> {
        let deferrals = self.deferrals.read().clone();
        let mut any = false;
        for deferral in deferrals {
            if deferral.jobs.is_idle() {
                continue;
            }
            if deferral.is_inside() {
                if deferral.jobs.run_next(|job| job(am)) {
                    self.behind_deferrals.fetch_sub(1, Ordering::Relaxed);
                    any = true;
                }
            } else if !deferral.is_polling() {
                self.move_jobs(am, &deferral)?;
            }
        }
        Ok(any)
    }

    fn move_jobs(&self, am: &Am, deferral: &Arc<Deferral>) -> Result<()> {
        for job in deferral.jobs.take_all() {
            self.behind_deferrals.fetch_sub(1, Ordering::Relaxed);
            self.send_elsewhere(am, deferral, job)?;
        }
        Ok(())
    }

    pub(super) fn deferrals_are_ready(&self) -> bool {
        self.behind_deferrals.load(Ordering::Acquire) > 0
            && self.deferrals.read().iter().any(|deferral| deferral.has_work_here())
    }

    pub(super) fn add_deferral(&self, handler: &dyn Handler) {
        if let Some(deferral) = handler.deferral() {
            let mut deferrals = self.deferrals.write();
            if !deferrals.iter().any(|known| Arc::ptr_eq(known, &deferral)) {
                deferrals.push(deferral);
            }
        }
    }
}
