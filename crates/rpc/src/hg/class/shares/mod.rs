//! The share of each peer in what a server keeps until the peer acts.
//!
//! A server pulls long inputs from their callers, and keeps long outputs until their callers have
//! pulled them. A caller that is stopped, or that does not mean well, does neither. Therefore each
//! peer has a share:
//!
//! - **Inputs.** At most [`MOST_PULLS`] inputs are pulled at a time, and at most [`PEER_PULLS`] of
//!   one peer, with [`PEER_BYTES`]. A peer without a pull may always begin one, whatever
//!   its length and whatever the others do. The connection of a peer ends if its pulls have made no
//!   progress for [`PATIENCE`].
//! - **Outputs.** A peer with two or more outputs and [`PEER_BYTES`] in total is *full*. Its calls
//!   do not begin, until it has pulled enough. If it pulls none for [`PATIENCE`], they fail with
//!   `NOMEM`. So does an answer of more than a message, if [`MOST_OUTPUTS`] of the peer are kept. A
//!   peer is also full while many short outputs wait in its connection, because it does not read.
//!
//! Whatever waits for the share of its peer is held here, and no other peer waits for it. Requests
//! that are held still count against the flow-control window of their peer, so its window bounds
//! their number.
//!
//! Invariant: `changed` is set after each change that may let something held go on.

use crate::failure::{Result, refuse};
use crate::hg::wire::context_of;
use crate::na::address::Peer;
use crate::na::class::Message;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const MOST_PULLS: usize = 16;
const PEER_PULLS: usize = 8;
/// Limit on the inputs being pulled, and on the outputs kept, of a peer in bytes.
pub(super) const PEER_BYTES: usize = 64 << 20;
/// Limit on the outputs of the calls of a peer that had begun before the peer was full, in bytes.
const MOST_OUTPUTS: usize = 1 << 30;
/// Memory of an output that is kept, in addition to its bytes.
const OVERHEAD: usize = 1024;
/// Longest time without progress.
const PATIENCE: Duration = Duration::from_secs(300);
/// How many times peers are examined during that time.
const LOOKS: u32 = 30;

/// An input to pull.
#[derive(Debug, Clone, Copy)]
pub(super) struct Input {
    pub len: usize,
    /// The number of the context that runs the call.
    pub context: u8,
    /// The length of the request.
    pub request: usize,
}

/// Something that waits for the share of its peer: an input of type `I`, a call of type `C`, or a
/// request.
#[derive(Debug)]
pub(super) enum Postponed<I, C> {
    /// A request that the class has not examined. It still counts against the peer's window.
    Request(Message),
    /// An input to pull, and the length of its request, which still counts against the window.
    Input(I, usize),
    /// A call that was about to run.
    Call(C),
}

#[derive(Debug)]
struct Share<I, C> {
    pulls: usize,
    pulled_bytes: usize,
    outputs: usize,
    output_bytes: usize,
    /// The last progress of the pulls.
    moved: Option<Instant>,
    /// Whether many short outputs wait in its connection.
    behind: bool,
    /// When the peer became full, or has last pulled an output since then.
    full: Option<Instant>,
    requests: VecDeque<Message>,
    inputs: VecDeque<(I, Input)>,
    calls: VecDeque<C>,
}

impl<I, C> Default for Share<I, C> {
    fn default() -> Self {
        Share {
            pulls: 0,
            pulled_bytes: 0,
            outputs: 0,
            output_bytes: 0,
            moved: None,
            behind: false,
            full: None,
            requests: VecDeque::new(),
            inputs: VecDeque::new(),
            calls: VecDeque::new(),
        }
    }
}

impl<I, C> Share<I, C> {
    /// Returns whether another input may be pulled while `all` are being pulled in total.
    fn admits(&self, len: usize, all: usize) -> bool {
        let room = self.pulled_bytes.saturating_add(len) <= PEER_BYTES;
        self.pulls == 0 || all < MOST_PULLS && self.pulls < PEER_PULLS && room
    }

    fn is_full(&self) -> bool {
        self.full.is_some()
    }

    fn begin_pull(&mut self, len: usize, all: &mut usize) {
        *all += 1;
        self.pulls += 1;
        self.pulled_bytes += len;
        if self.pulls == 1 {
            self.moved = Some(Instant::now());
        }
    }

    /// Removes the first thing that is held and may go on.
    fn next(
        &mut self,
        all: &mut usize,
        room: &impl Fn(Option<u8>) -> bool,
    ) -> Option<Postponed<I, C>> {
        if !self.is_full() {
            if let Some(call) = self.calls.pop_front() {
                return Some(Postponed::Call(call));
            }
            if self.requests.front().is_some_and(|message| room(context_of(&message.body))) {
                return self.requests.pop_front().map(Postponed::Request);
            }
        }
        let (_, of) = self.inputs.front()?;
        if !self.admits(of.len, *all) || !room(Some(of.context)) {
            return None;
        }
        let (input, of) = self.inputs.pop_front()?;
        self.begin_pull(of.len, all);
        Some(Postponed::Input(input, of.request))
    }

    fn is_empty(&self) -> bool {
        let idle = self.pulls == 0 && self.outputs == 0 && !self.behind;
        idle && self.requests.is_empty() && self.inputs.is_empty() && self.calls.is_empty()
    }
}

#[derive(Debug)]
struct Table<I, C> {
    peers: HashMap<Peer, Share<I, C>>,
    /// Number of inputs being pulled.
    pulls: usize,
    /// When the peers were last examined.
    looked: Option<Instant>,
    patience: Duration,
}

/// Peers that have made no progress for too long, and their refused calls.
#[derive(Debug)]
pub(super) struct Overdue<I, C> {
    /// Peers that do not serve the pulls of their inputs.
    pub silent: Vec<Peer>,
    /// The calls and requests of peers that do not pull their outputs.
    pub refused: Vec<Postponed<I, C>>,
    pub patience: Duration,
}

impl<I, C> Default for Table<I, C> {
    fn default() -> Self {
        Table { peers: HashMap::new(), pulls: 0, looked: None, patience: PATIENCE }
    }
}

#[derive(Debug)]
pub(super) struct Shares<I, C> {
    table: Mutex<Table<I, C>>,
    /// Number of full peers. While there are none, calls take no lock.
    full: AtomicUsize,
    changed: AtomicBool,
}

impl<I, C> Default for Shares<I, C> {
    fn default() -> Self {
        let (full, changed) = (AtomicUsize::new(0), AtomicBool::new(false));
        Shares { table: Mutex::default(), full, changed }
    }
}

impl<I, C> Shares<I, C> {
    /// Returns whether something held may go on.
    #[inline]
    pub fn has_changed(&self) -> bool {
        self.changed.load(Ordering::Acquire)
    }

    #[inline]
    pub fn has_full(&self) -> bool {
        self.full.load(Ordering::Acquire) > 0
    }

    pub fn change(&self) {
        self.changed.store(true, Ordering::Release);
    }

    /// Returns a request if it may be handled now. Otherwise holds it.
    #[inline]
    pub fn admit_request(&self, message: Message) -> Option<Message> {
        if !self.has_full() {
            return Some(message);
        }
        let mut table = self.table.lock();
        match table.peers.get_mut(&message.from.peer) {
            Some(share) if share.is_full() || !share.requests.is_empty() => {
                share.requests.push_back(message);
                None
            }
            _ => Some(message),
        }
    }

    /// Returns a call if it may run now. Otherwise holds it.
    #[inline]
    pub fn admit_call(&self, of: Peer, call: C) -> Option<C> {
        if !self.has_full() {
            return Some(call);
        }
        let mut table = self.table.lock();
        match table.peers.get_mut(&of) {
            Some(share) if share.is_full() => {
                share.calls.push_back(call);
                None
            }
            _ => Some(call),
        }
    }

    /// Returns an input if it may be pulled now, and then counts it until [`Shares::end_pull`].
    /// Otherwise holds it.
    pub fn admit_input(&self, peer: Peer, input: I, of: Input) -> Option<I> {
        let mut table = self.table.lock();
        let Table { peers, pulls, .. } = &mut *table;
        let share = peers.entry(peer).or_default();
        if !share.inputs.is_empty() || !share.admits(of.len, *pulls) {
            share.inputs.push_back((input, of));
            return None;
        }
        share.begin_pull(of.len, pulls);
        Some(input)
    }

    pub fn end_pull(&self, peer: Peer, len: usize) {
        let mut table = self.table.lock();
        table.pulls -= 1;
        if let Some(share) = table.peers.get_mut(&peer) {
            share.pulls -= 1;
            share.pulled_bytes -= len;
            share.moved = Some(Instant::now());
        }
        table.tidy(peer);
        drop(table);
        self.change();
    }

    /// Records that bytes of an input have arrived.
    pub fn moved(&self, peer: Peer) {
        if let Some(share) = self.table.lock().peers.get_mut(&peer) {
            share.moved = Some(Instant::now());
        }
    }

    /// Counts an output of `len` bytes that is kept for a peer, until [`Shares::end_output`].
    /// Returns `NOMEM` if too many bytes are.
    pub fn begin_output(&self, peer: Peer, len: usize) -> Result<()> {
        let mut table = self.table.lock();
        let share = table.peers.entry(peer).or_default();
        let bytes = share.output_bytes.saturating_add(len).saturating_add(OVERHEAD);
        if share.outputs > 0 && bytes > MOST_OUTPUTS {
            refuse!(
                NOMEM,
                "the caller has not pulled {} outputs of {} bytes in total, so this one of {len} \
                 bytes is not kept for it; use bulk data for long outputs of calls that run at a \
                 time",
                share.outputs,
                share.output_bytes
            );
        }
        (share.outputs, share.output_bytes) = (share.outputs + 1, bytes);
        self.fill(share);
        Ok(())
    }

    /// Returns whether the peer is no longer full, and something that is held for it may go on.
    pub fn end_output(&self, peer: Peer, len: usize) -> bool {
        let mut table = self.table.lock();
        let Some(share) = table.peers.get_mut(&peer) else { return false };
        share.outputs -= 1;
        share.output_bytes -= len + OVERHEAD;
        share.full = share.full.map(|_| Instant::now());
        let ends = self.fill(share);
        table.tidy(peer);
        ends
    }

    /// Records whether many bytes wait in the connection of a peer. Returns whether the peer is no
    /// longer full.
    pub fn look_behind(&self, peer: Peer, is_behind: impl FnOnce() -> bool) -> bool {
        let mut table = self.table.lock();
        // With the lock, so that the last change is recorded last.
        let behind = is_behind();
        if !behind && !table.peers.contains_key(&peer) {
            return false;
        }
        let share = table.peers.entry(peer).or_default();
        share.behind = behind;
        let ends = self.fill(share);
        table.tidy(peer);
        ends
    }

    /// Updates whether a peer is full. Returns whether it is no longer full.
    fn fill(&self, share: &mut Share<I, C>) -> bool {
        let full = share.behind || share.outputs > 1 && share.output_bytes > PEER_BYTES;
        if full == share.is_full() {
            return false;
        }
        share.full = full.then(Instant::now);
        if full {
            self.full.fetch_add(1, Ordering::AcqRel);
        } else {
            self.full.fetch_sub(1, Ordering::AcqRel);
            self.change();
        }
        !full
    }

    /// Returns something held that may go on now. `room` says whether a context has room. An input
    /// is counted then, as by [`Shares::admit_input`].
    pub fn next(&self, room: impl Fn(Option<u8>) -> bool) -> Option<Postponed<I, C>> {
        if !self.changed.swap(false, Ordering::AcqRel) {
            return None;
        }
        let mut table = self.table.lock();
        let Table { peers, pulls, .. } = &mut *table;
        let next = peers.values_mut().find_map(|share| share.next(pulls, &room));
        if next.is_some() {
            self.change(); // there may be more
        }
        next
    }

    /// Returns what is overdue, if some time has passed since the last call.
    pub fn overdue(&self) -> Option<Overdue<I, C>> {
        let mut table = self.table.lock();
        let Table { peers, looked, patience, .. } = &mut *table;
        let now = Instant::now();
        let is_over = |since: Instant, time| now.saturating_duration_since(since) >= time;
        if looked.is_some_and(|looked| !is_over(looked, *patience / LOOKS)) {
            return None;
        }
        *looked = Some(now);
        let (silent, refused) = (Vec::new(), Vec::new());
        let mut overdue = Overdue { silent, refused, patience: *patience };
        for (&peer, share) in peers.iter_mut() {
            if share.pulls > 0 && share.moved.is_some_and(|moved| is_over(moved, *patience)) {
                share.moved = Some(now);
                overdue.silent.push(peer);
            }
            if share.full.is_some_and(|full| is_over(full, *patience)) {
                overdue.refused.extend(share.calls.drain(..).map(Postponed::Call));
                overdue.refused.extend(share.requests.drain(..).map(Postponed::Request));
            }
        }
        Some(overdue)
    }

    /// Removes what is held for a peer, or for all.
    pub fn give_up(&self, of: Option<Peer>) -> Vec<Postponed<I, C>> {
        let mut table = self.table.lock();
        let mut held = Vec::new();
        let mine = |(peer, share): (&Peer, _)| of.is_none_or(|of| of == *peer).then_some(share);
        for share in table.peers.iter_mut().filter_map(mine) {
            held.extend(share.calls.drain(..).map(Postponed::Call));
            held.extend(
                share.inputs.drain(..).map(|(input, of)| Postponed::Input(input, of.request)),
            );
            held.extend(share.requests.drain(..).map(Postponed::Request));
        }
        table.peers.retain(|_, share| !share.is_empty());
        held
    }

    /// Removes the calls that `is_one` selects.
    pub fn give_up_calls(&self, is_one: impl Fn(&C) -> bool) -> Vec<C> {
        let mut table = self.table.lock();
        let mut calls = Vec::new();
        for share in table.peers.values_mut() {
            let (gone, kept) = share.calls.drain(..).partition(|call| is_one(call));
            share.calls = kept;
            calls.extend::<VecDeque<_>>(gone);
        }
        calls
    }

    #[cfg(test)]
    pub fn set_patience(&self, patience: Duration) {
        self.table.lock().patience = patience;
    }
}

impl<I, C> Table<I, C> {
    /// Forgets a peer that has nothing.
    fn tidy(&mut self, peer: Peer) {
        if self.peers.get(&peer).is_some_and(Share::is_empty) {
            self.peers.remove(&peer);
        }
    }
}

#[cfg(test)]
mod tests;
