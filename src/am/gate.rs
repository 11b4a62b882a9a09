//! A gate: handlers that run only in the calls of their face.
//!
//! An interface may promise its user that handlers run only while the program is in one of
//! its calls, so that the program needs no locks against them. Its handlers name a gate
//! ([`Handler::gate`]). While the gate is *polling*, they run on threads that are inside
//! ([`Gate::enter`]) and on no other; else on any, as all handlers do. Messages for such a
//! handler that arrive meanwhile are taken out of rings and receives, so that messages for
//! other handlers go on, and are *held*: short messages with their data, of long ones the
//! head, while their data stays at the origin. Completion handlers wait in a queue of the
//! gate's own and run, one at a time and free to block, at the end of a poll of a thread inside.
//!
//! A handler may also say that it is not ready for a message ([`Handler::is_ready`]); that
//! message is held too, and the handler is asked again with each poll.
//!
//! **Order.** While a message is held, later ones queue behind it. The queue is searched from
//! the front for each message that is taken, so that messages of one origin keep their order,
//! but for those that their handler is not ready for.
//!
//! **Bounds.** A target that holds more than `PORTOLAN_FLIGHT_BYTES` of an origin tells it to
//! stop ([`RecordKind::GateStop`]), and to go on when it holds less than half. The origin then
//! waits before it sends more through gates to that target, in a call, and so inside. Handlers
//! never wait, as ever.
//!
//! **Fences.** A held message is handled as far as rings and flow control know.
//! [`Am::fence_gate`] therefore asks each target ([`RecordKind::GateFence`]), which answers when
//! all that it then holds of the origin is in place.
//!
//! **Rest.** [`Am::quiesce`] counts what is held as handled: it waits for a call of one
//! interface, which another interface cannot. [`Am::quiesce_gates`] waits for it as well.
//!
//! Invariants: the state of a gate changes to polling under the dispatcher's lock, so that no
//! header handler runs elsewhere then; no lock of a gate is held while a handler runs.

mod calls;

use super::Am;
use super::Handler;
use super::completion_thread::{CompletionThread, Job};
use super::rendezvous::{InboundMessage, RndvState, Via};
use super::state::{AmState, HandlerEntry};
use super::wire::{RecordHead, RecordKind, Source};
use crate::error::Result;
use crate::thread::fast_tls;
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What a held message costs beside its header and data.
const OVERHEAD: usize = 128;
/// Held messages that one poll takes.
const PER_POLL: usize = 64;

fast_tls! {
    /// The address of the gate that this thread is inside, 0 none.
    static INSIDE: usize = 0;
}

/// Handlers that run only in calls, while it is polling.
#[derive(Debug)]
pub struct Gate {
    polling: AtomicBool,
    held: Mutex<HeldMessages>,
    /// How many messages are held.
    count: AtomicUsize,
    /// Of these, those that no handler has refused as yet.
    fresh: AtomicUsize,
    /// Completion handlers that wait for a call.
    jobs: CompletionThread,
    /// Completion handlers that went to the completion thread and have not ended.
    elsewhere: AtomicUsize,
}

#[derive(Debug, Default)]
struct HeldMessages {
    queue: VecDeque<HeldMessage>,
    last: u64,
    /// By origin: messages that were held and are not in place yet.
    unfinished: HashMap<usize, BTreeSet<u64>>,
    /// By origin: held bytes, and whether the origin was sent a stop.
    bytes: HashMap<usize, (usize, bool)>,
    /// Fences: origin, the last message that it waits for, its token.
    asked: Vec<(usize, u64, u64)>,
}

#[derive(Debug)]
struct HeldMessage {
    number: u64,
    origin: usize,
    bytes: usize,
    what: HeldKind,
    /// When its handler was first found not to be ready.
    refused: Option<Instant>,
}

/// What is held.
#[derive(Debug)]
pub(crate) enum HeldKind {
    /// A message with its data.
    Eager { head: RecordHead, header: Vec<u8>, data: Vec<u8> },
    /// A message whose data waits at its origin.
    Rts { head: RecordHead, header: Vec<u8>, via: Via, source: Source },
    /// A message whose header handler has run and whose data is in place.
    Delivered(InboundMessage),
}

impl HeldKind {
    fn bytes(&self) -> usize {
        OVERHEAD
            + match self {
                HeldKind::Eager { header, data, .. } => header.len() + data.len(),
                HeldKind::Rts { header, .. } => header.len(),
                HeldKind::Delivered(_) => 0,
            }
    }

    fn message(&self) -> Option<(&RecordHead, &[u8])> {
        match self {
            HeldKind::Eager { head, header, .. } | HeldKind::Rts { head, header, .. } => {
                Some((head, header))
            }
            HeldKind::Delivered(_) => None,
        }
    }
}

/// A thread is inside a gate until this is dropped.
#[derive(Debug)]
pub struct Inside {
    outer: usize,
    _of_this_thread: PhantomData<*const ()>,
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(self.outer);
    }
}

impl Gate {
    /// A gate that is polling, or is not.
    pub fn new(polling: bool) -> Arc<Gate> {
        Arc::new(Gate {
            polling: AtomicBool::new(polling),
            held: Mutex::default(),
            count: AtomicUsize::new(0),
            fresh: AtomicUsize::new(0),
            jobs: CompletionThread::default(),
            elsewhere: AtomicUsize::new(0),
        })
    }

    /// Whether handlers run in calls only.
    #[inline]
    pub fn is_polling(&self) -> bool {
        self.polling.load(Ordering::Relaxed)
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    /// From now on the calling thread is inside this gate, and inside no other.
    #[inline]
    pub fn enter(&self) -> Inside {
        let outer = INSIDE.get();
        INSIDE.set(self.address());
        Inside { outer, _of_this_thread: PhantomData }
    }

    fn is_inside(&self) -> bool {
        INSIDE.get() == self.address()
    }

    /// Whether its handlers may run on the calling thread.
    #[inline]
    fn is_open_here(&self) -> bool {
        !self.is_polling() || self.is_inside()
    }

    /// Whether the calling thread has something to do here.
    fn has_work_here(&self) -> bool {
        self.is_open_here() && (self.fresh.load(Ordering::Relaxed) > 0 || !self.jobs.is_idle())
    }

    /// The next message whose handler is ready for it.
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

    /// Whether every message of `origin` that was held is in place.
    fn is_clear_of(&self, origin: usize) -> bool {
        !self.held.lock().unfinished.contains_key(&origin)
    }

    /// A message that was held is in place.
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
        answers.into_iter().try_for_each(|token| answer(state, am, origin, token))
    }

    /// The fence `token` of `origin` asks when all that is held now is in place.
    fn ask(&self, state: &AmState, am: &Am, origin: usize, token: u64) -> Result<()> {
        {
            let mut held = self.held.lock();
            if let Some(&last) = held.unfinished.get(&origin).and_then(BTreeSet::last) {
                held.asked.push((origin, last, token));
                return Ok(());
            }
        }
        answer(state, am, origin, token)
    }
}

fn answer(state: &AmState, am: &Am, origin: usize, token: u64) -> Result<()> {
    let head = RecordHead { token, ..RecordHead::new(RecordKind::Ack) };
    state.send_record(am, origin, &[bytemuck::bytes_of(&head)])
}

impl HandlerEntry {
    /// The gate that holds a message back.
    #[inline]
    pub(crate) fn held_back_by(&self, origin: usize, header: &[u8]) -> Option<&Arc<Gate>> {
        self.gate.as_ref().filter(|gate| {
            !gate.is_open_here()
                || gate.count.load(Ordering::Relaxed) > 0
                || !self.is_ready(origin, header, Duration::ZERO)
        })
    }
}

impl InboundMessage {
    /// The gate that holds what follows the inbound message back.
    pub(super) fn held_back_by(&self) -> Option<&Arc<Gate>> {
        self.gate.as_ref().filter(|gate| !gate.is_open_here())
    }
}

impl AmState {
    /// Holds a message. Under the dispatcher's lock.
    pub(crate) fn hold(&self, am: &Am, gate: &Gate, origin: usize, what: HeldKind) -> Result<()> {
        let bytes = what.bytes();
        let mut stop = false;
        {
            let mut held = gate.held.lock();
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
        gate.count.fetch_add(1, Ordering::Relaxed);
        gate.fresh.fetch_add(1, Ordering::Relaxed);
        self.set_aside.fetch_add(1, Ordering::AcqRel);
        self.behind_gates.fetch_add(1, Ordering::Release);
        if stop {
            self.tell_stop(am, origin, true)?;
        }
        if !gate.is_open_here() {
            self.wake_waiting();
        }
        Ok(())
    }

    /// A thread that waits in a call, and sleeps, may be the one that may run handlers.
    fn wake_waiting(&self) {
        if let Some(node) = &self.node
            && node.rests(node.me())
        {
            node.wake_own();
        }
    }

    fn tell_stop(&self, am: &Am, origin: usize, stop: bool) -> Result<()> {
        let head = RecordHead { token: stop.into(), ..RecordHead::new(RecordKind::GateStop) };
        self.send_record(am, origin, &[bytemuck::bytes_of(&head)])
    }

    /// A record that concerns gates.
    pub(super) fn at_gate(&self, am: &Am, origin: usize, head: &RecordHead) -> Result<()> {
        if head.kind()? == RecordKind::GateStop {
            self.towards[origin].stopped.store(head.token != 0, Ordering::Release);
            return Ok(());
        }
        match self.handlers.get(head.handler()).and_then(|entry| entry.gate.as_ref()) {
            Some(gate) => gate.ask(self, am, origin, head.token),
            None => answer(self, am, origin, head.token),
        }
    }

    /// Handles held messages that may run here; true if there was any. Under the
    /// dispatcher's lock.
    #[cold]
    pub(super) fn release(&self, am: &Am, work: &mut RndvState) -> Result<bool> {
        let gates = self.gates.read().clone();
        let mut any = false;
        for gate in gates {
            for _ in 0..PER_POLL {
                // A handler may have changed that.
                if !gate.is_open_here() {
                    break;
                }
                let Some(message) = gate.take(self)? else { break };
                any = true;
                self.run_held(am, work, &gate, message)?;
            }
        }
        Ok(any)
    }

    fn run_held(
        &self,
        am: &Am,
        work: &mut RndvState,
        gate: &Gate,
        message: HeldMessage,
    ) -> Result<()> {
        let HeldMessage { number, origin, bytes, what, .. } = message;
        gate.count.fetch_sub(1, Ordering::Relaxed);
        match what {
            HeldKind::Eager { head, header, data } => {
                let entry = self.entry(origin, &head)?;
                self.meet(am, entry, origin, &head, &header, &data)?;
                gate.in_place(self, am, origin, number)?;
            }
            HeldKind::Rts { head, header, via, source } => {
                self.release_rndv(am, work, (via, origin), (&head, &header), source, number)?;
            }
            HeldKind::Delivered(inbound) => {
                self.complete_inbound(am, inbound)?;
                gate.in_place(self, am, origin, number)?;
            }
        }
        self.set_aside.fetch_sub(1, Ordering::AcqRel);
        self.behind_gates.fetch_sub(1, Ordering::Relaxed);
        let mut go = false;
        {
            let mut held = gate.held.lock();
            if let Some(of_origin) = held.bytes.get_mut(&origin) {
                of_origin.0 -= bytes;
                if of_origin.1 && of_origin.0 <= am.config.flight_bytes / 2 {
                    (of_origin.1, go) = (false, true);
                }
            }
        }
        if go { self.tell_stop(am, origin, false) } else { Ok(()) }
    }

    /// Has a completion handler run where its gate says.
    pub(super) fn run_behind(&self, am: &Am, gate: &Arc<Gate>, job: Job) -> Result<()> {
        if gate.is_polling() {
            self.set_aside.fetch_add(1, Ordering::AcqRel);
            let counted = Box::new(move |am: &Am| {
                job(am);
                if let Some(state) = am.started() {
                    state.set_aside.fetch_sub(1, Ordering::AcqRel);
                }
            });
            return self.queue_job(gate, counted);
        }
        self.send_elsewhere(am, gate, job)
    }

    /// To the completion thread.
    fn send_elsewhere(&self, am: &Am, gate: &Arc<Gate>, job: Job) -> Result<()> {
        gate.elsewhere.fetch_add(1, Ordering::AcqRel);
        let gate = gate.clone();
        let counted = Box::new(move |am: &Am| {
            job(am);
            gate.elsewhere.fetch_sub(1, Ordering::AcqRel);
        });
        self.completion_thread.push(counted, am.owner_for_threads()?)
    }

    fn queue_job(&self, gate: &Gate, job: Job) -> Result<()> {
        self.behind_gates.fetch_add(1, Ordering::Release);
        gate.jobs.push(job, None)?;
        if !gate.is_inside() {
            self.wake_waiting();
        }
        Ok(())
    }

    /// Runs a completion handler of each gate that this thread is inside, under no lock; true
    /// if one ran. Gates that are not polling any more have theirs run elsewhere.
    #[cold]
    pub(super) fn run_jobs(&self, am: &Am) -> Result<bool> {
        let gates = self.gates.read().clone();
        let mut any = false;
        for gate in gates {
            if gate.jobs.is_idle() {
                continue;
            }
            if gate.is_inside() {
                if gate.jobs.run_here(am) {
                    self.behind_gates.fetch_sub(1, Ordering::Relaxed);
                    any = true;
                }
            } else if !gate.is_polling() {
                self.move_jobs(am, &gate)?;
            }
        }
        Ok(any)
    }

    fn move_jobs(&self, am: &Am, gate: &Arc<Gate>) -> Result<()> {
        for job in gate.jobs.take_all() {
            self.behind_gates.fetch_sub(1, Ordering::Relaxed);
            self.send_elsewhere(am, gate, job)?;
        }
        Ok(())
    }

    /// Whether something is held, or waits for a call, that the calling thread may run.
    pub(super) fn gates_are_ready(&self) -> bool {
        self.behind_gates.load(Ordering::Acquire) > 0
            && self.gates.read().iter().any(|gate| gate.has_work_here())
    }

    /// Knows of the gate of a handler.
    pub(super) fn add_gate(&self, handler: &dyn Handler) {
        if let Some(gate) = handler.gate() {
            let mut gates = self.gates.write();
            if !gates.iter().any(|known| Arc::ptr_eq(known, &gate)) {
                gates.push(gate);
            }
        }
    }
}
