//! Combines the requests of a node's ranks for one number or mutex of another node.
//!
//! The first rank *leads*: it sends the request to the owner. Other ranks of its node that request
//! the same thing meanwhile sleep in a queue. Then the next rank leads for all that wait. Additions
//! to a number are sent as their sum ([`combined`]). A mutex passes from rank to rank before it
//! returns to its owner (`super::mutex`). The owner therefore receives one message per node and
//! turn, and waiting ranks do not poll MPI.
//!
//! The queues lie beside the [`lock_stripe`] locks, in the header of the first region of the node's
//! file. A hash of the requested address selects one. A rank whose queue is in use for another
//! address sends its own request. A waiting rank uses the same line of its own region's header.
//!
//! Invariants: a queue changes only under the stripe lock of its line, which is never held during a
//! wait. A rank leads until it leaves, and then the first rank in the queue leads. A rank joins
//! only after the owner has handled everything that the rank has sent, so its operations on one
//! location stay in order, whichever rank carries them (invariant 1).

use crate::core::Core;
use crate::memory::arena::Arena;
use crate::path::lock_stripe::{self, LockStripeGuard};
use crate::path::ops::Rmw;
use portolan_base::error::Result;
use portolan_base::futex;
use portolan_base::trace::{Awaited, Cause, Observer, Served};
use portolan_base::wait::{self, Boot, Progress};
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Turn {
    Waits = 0,
    Leads = 1,
    /// The rank's operation is complete, or the rank holds the mutex.
    Has = 2,
    /// The rank must send its own request: the queue is in use for something else, or the leading
    /// rank failed.
    Alone = 3,
}

/// A line in the header of a region: a queue, and the state of a rank that waits in a queue.
#[derive(Debug)]
#[repr(C, align(64))]
struct Line {
    lock: AtomicU32,
    /// Owner of the requested number or mutex, plus 1. 0 if the queue is free.
    owner: AtomicU32,
    /// At the owner. The two low bits hold the kind of request.
    address: AtomicU64,
    /// Links to the lines of the first and last waiting rank. 0 means none.
    head: AtomicU32,
    tail: AtomicU32,
    /// For a mutex: how many times it was passed on, and the rank in whose name it was taken.
    passed: AtomicU32,
    name: AtomicU32,
    /// For a waiting rank: its state ([`Turn`]), the link to the next rank, and its number.
    turn: AtomicU32,
    next: AtomicU32,
    value: AtomicI64,
    /// For additions: the requests of other ranks that the last turn carried.
    carried: AtomicU64,
}

const _: () = assert!(size_of::<Line>() == lock_stripe::LINE);

#[derive(Debug, Clone, Copy)]
pub(super) struct NodeFile {
    /// The mapping, which begins with the first region.
    base: *mut u8,
    mine: usize,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct NodeQueue {
    file: NodeFile,
    line: usize,
    owner: u32,
    address: u64,
}

impl Line {
    /// Wakes the rank that waits in this line.
    fn grant(&self, what: Turn) {
        self.turn.store(what as u32, Ordering::Release);
        futex::wake_all(&self.turn);
    }
}

impl NodeFile {
    /// The arena must live while the queues are used. Returns `None` if this rank shares memory
    /// with no other rank, or a link is too small for the offset of its region.
    pub fn of(core: &Core, arena: &Arena) -> Option<NodeFile> {
        let shares = core.memory.policy().direct
            && core.topology.ranks_of(core.topology.my_node()).len() > 1;
        let (base, mine) = arena.node_file();
        let reaches = u32::try_from(mine / lock_stripe::LINE + lock_stripe::LOCK_STRIPES).is_ok();
        (shares && reaches).then_some(NodeFile { base, mine })
    }

    /// `address` is a multiple of 4, and `kind` less than 4.
    pub(super) fn queue(self, owner: usize, address: usize, kind: u64) -> NodeQueue {
        assert!(
            address.is_multiple_of(4) && kind < 4,
            "the kind is stored in the low bits of the address"
        );
        let address = address as u64 | kind;
        // Multiplication by an odd number near 2^64 / phi spreads similar values.
        let hash = (address ^ (owner as u64) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let line = (hash >> 32) as usize % lock_stripe::LOCK_STRIPES;
        NodeQueue { file: self, line, owner: owner as u32 + 1, address }
    }

    fn line(&self, offset: usize) -> &Line {
        // SAFETY: the arena, which the creator of the queue keeps alive, maps the file. A line
        // begins at `offset` in the header of a region, zero initially and accessed only through
        // these atomics.
        unsafe { &*self.base.add(offset).cast::<Line>() }
    }

    fn linked(&self, link: u32) -> Option<&Line> {
        (link != 0).then(|| self.line((link as usize - 1) * lock_stripe::LINE))
    }
}

impl NodeQueue {
    fn head(&self) -> &Line {
        self.file.line(self.line * lock_stripe::LINE)
    }

    fn mine(&self) -> &Line {
        self.file.line(self.file.mine + self.line * lock_stripe::LINE)
    }

    fn own_link(&self) -> u32 {
        (self.file.mine / lock_stripe::LINE + self.line) as u32 + 1
    }

    fn lock(&self) -> LockStripeGuard {
        // SAFETY: the arena maps the first region of the node's file at `base`.
        unsafe { lock_stripe::take(self.file.base, self.line) }
    }

    /// `value` is the number to add, if any.
    pub(super) fn enter(&self, value: i64) -> Turn {
        let (head, mine) = (self.head(), self.mine());
        let _lock = self.lock();
        if head.owner.load(Ordering::Relaxed) == 0 {
            head.owner.store(self.owner, Ordering::Relaxed);
            head.address.store(self.address, Ordering::Relaxed);
            return Turn::Leads;
        }
        let same = head.owner.load(Ordering::Relaxed) == self.owner
            && head.address.load(Ordering::Relaxed) == self.address;
        // Another thread of this rank may be waiting in the line.
        if !same || mine.next.load(Ordering::Relaxed) != 0 {
            return Turn::Alone;
        }
        let link = self.own_link();
        mine.value.store(value, Ordering::Relaxed);
        mine.turn.store(Turn::Waits as u32, Ordering::Relaxed);
        // The last rank links to itself, so that a line in use never has a link of 0.
        mine.next.store(link, Ordering::Relaxed);
        match self.file.linked(head.tail.swap(link, Ordering::Relaxed)) {
            Some(last) => last.next.store(link, Ordering::Relaxed),
            None => head.head.store(link, Ordering::Relaxed),
        }
        Turn::Waits
    }

    /// Sleeps until the state of this rank changes. Returns it and the number in its line. After an
    /// error, the rank is still in the queue ([`NodeQueue::give_up`]).
    pub(super) fn wait(
        &self,
        progress: &dyn Progress,
        awaited: impl Into<Awaited>,
        what: &dyn Fn() -> String,
    ) -> Result<(Turn, i64)> {
        let Line { turn, next, value, .. } = self.mine();
        let asleep = Turn::Waits as u32;
        wait::while_equal(progress, awaited, what, (turn, asleep), None)?;
        let answer = self.turn();
        let value = value.load(Ordering::Relaxed);
        // Another thread of this rank may use the line from here on.
        next.store(0, Ordering::Release);
        Ok((answer, value))
    }

    /// After a failed wait: leaves the queue. Returns `Waits`, or the turn that the rank has got
    /// meanwhile and must end.
    pub(super) fn give_up(&self) -> Turn {
        let mine = self.mine();
        let lock = self.lock();
        let left = self.unlink();
        drop(lock);
        let got = if left { Turn::Waits } else { self.granted_soon() };
        mine.next.store(0, Ordering::Release);
        got
    }

    /// Another rank has taken the line from the queue and is about to grant a turn.
    fn granted_soon(&self) -> Turn {
        let what = || "the turn in the queue of a node".to_string();
        let (turn, asleep) = (&self.mine().turn, Turn::Waits as u32);
        match wait::while_equal(&Boot, Cause::Other, &what, (turn, asleep), None) {
            Ok(()) => self.turn(),
            Err(_) => Turn::Alone,
        }
    }

    fn turn(&self) -> Turn {
        let word = self.mine().turn.load(Ordering::Acquire);
        let answers = [Turn::Leads, Turn::Has];
        answers.into_iter().find(|&turn| turn as u32 == word).unwrap_or(Turn::Alone)
    }

    /// Returns false if the line of this rank is not in the queue. The caller holds the lock.
    fn unlink(&self) -> bool {
        let (head, own, mine) = (self.head(), self.own_link(), self.mine());
        let (mut before, mut link) = (0, head.head.load(Ordering::Relaxed));
        while link != own {
            let Some(line) = self.file.linked(link) else { return false };
            let next = line.next.load(Ordering::Relaxed);
            // The last rank links to itself.
            (before, link) = (link, if next == link { 0 } else { next });
        }
        let next = mine.next.load(Ordering::Relaxed);
        let last = next == own;
        match self.file.linked(before) {
            Some(line) => line.next.store(if last { before } else { next }, Ordering::Relaxed),
            None => head.head.store(if last { 0 } else { next }, Ordering::Relaxed),
        }
        if last {
            head.tail.store(before, Ordering::Relaxed);
        }
        true
    }

    /// The caller holds the lock.
    fn pop(&self) -> Option<&Line> {
        let head = self.head();
        let link = head.head.load(Ordering::Relaxed);
        let first = self.file.linked(link)?;
        let next = first.next.load(Ordering::Relaxed);
        let last = next == link;
        head.head.store(if last { 0 } else { next }, Ordering::Relaxed);
        if last {
            head.tail.store(0, Ordering::Relaxed);
        }
        Some(first)
    }

    /// Removes and returns all waiting ranks. Ranks that the last turn carried may soon request the
    /// same again, so this first yields the core to them. It allocates no memory under the lock.
    fn take_all(&self) -> Vec<&Line> {
        let head = self.head();
        if head.carried.load(Ordering::Relaxed) > 0 {
            wait::offer_core();
        }
        let lock = self.lock();
        let mut link = head.head.swap(0, Ordering::Relaxed);
        head.tail.store(0, Ordering::Relaxed);
        drop(lock);
        let mut all = Vec::new();
        while let Some(line) = self.file.linked(link) {
            all.push(line);
            let next = line.next.load(Ordering::Relaxed);
            link = if next == link { 0 } else { next };
        }
        head.carried.store(all.len() as u64, Ordering::Relaxed);
        all
    }

    pub(super) fn leave(&self) {
        let lock = self.lock();
        let next = self.pop();
        if next.is_none() {
            self.head().owner.store(0, Ordering::Relaxed);
        }
        drop(lock);
        if let Some(next) = next {
            next.grant(Turn::Leads);
        }
    }

    /// For a mutex: records that this rank has taken it from its owner.
    pub(super) fn taken(&self, rank: usize) {
        let _lock = self.lock();
        self.head().name.store(rank as u32, Ordering::Relaxed);
        self.head().passed.store(0, Ordering::Relaxed);
    }

    /// At most `most` times. Else returns the rank in whose name the mutex returns to the owner.
    pub(super) fn pass_on(&self, most: usize) -> Option<usize> {
        let lock = self.lock();
        let head = self.head();
        let passed = head.passed.load(Ordering::Relaxed);
        let next = if (passed as usize) < most { self.pop() } else { None };
        let Some(next) = next else { return Some(head.name.load(Ordering::Relaxed) as usize) };
        head.passed.store(passed + 1, Ordering::Relaxed);
        drop(lock);
        next.grant(Turn::Has);
        None
    }
}

/// `send` makes the owner add. Returns the previous number. Fails with `State` in a handler.
pub(super) fn combined(
    progress: &dyn Progress,
    queue: NodeQueue,
    op: Rmw,
    send: &dyn Fn(Rmw) -> Result<i64>,
) -> Result<i64> {
    let what = || format!("an addition on rank {} that another rank carries", queue.owner - 1);
    progress.may_wait()?;
    let mine = op.operand().value();
    let (mut turn, mut old) = (queue.enter(mine), 0);
    if turn == Turn::Waits {
        let awaited = Awaited::of(Cause::Answer, queue.owner as usize - 1);
        (turn, old) = queue.wait(progress, awaited, &what)?;
    }
    match turn {
        Turn::Leads => {}
        Turn::Has => return Ok(old),
        Turn::Alone | Turn::Waits => return send(op),
    }
    let waiting = queue.take_all();
    let values = waiting.iter().map(|waiter| waiter.value.load(Ordering::Relaxed));
    let sent = send(op.with_value(values.fold(mine, i64::wrapping_add)));
    let mut at = sent.as_ref().map_or(0, |old| old.wrapping_add(mine));
    for waiter in waiting {
        let traced = progress.traced_by().and_then(Observer::serve);
        let value = waiter.value.load(Ordering::Relaxed);
        waiter.value.store(op.with_value(at).operand().value(), Ordering::Relaxed);
        waiter.grant(if sent.is_ok() { Turn::Has } else { Turn::Alone });
        if let Some(traced) = traced {
            traced.end(Served::Rmw, None, op.size(), None);
        }
        at = at.wrapping_add(value);
    }
    queue.leave();
    sent
}

#[cfg(test)]
mod tests {
    use super::*;
    use portolan_base::error::{Error, ErrorKind};

    const RANKS: usize = 4;
    const SLICE: usize = 8192;

    struct Node(Vec<u64>);

    impl Node {
        fn new() -> Node {
            Node(vec![0; (RANKS * SLICE + lock_stripe::LINE) / 8])
        }

        fn rank(&mut self, rank: usize) -> NodeFile {
            let base = self.0.as_mut_ptr().cast::<u8>();
            let base = base.wrapping_add(base.align_offset(lock_stripe::LINE));
            NodeFile { base, mine: rank * SLICE }
        }

        fn queues(&mut self, address: usize) -> Vec<NodeQueue> {
            (0..RANKS).map(|rank| self.rank(rank).queue(7, address, 0)).collect()
        }
    }

    // SAFETY: the lines are accessed only as atomics, and the node outlives the threads.
    unsafe impl Send for NodeQueue {}

    #[test]
    fn additions_of_all_ranks_are_carried_once() {
        let mut node = Node::new();
        let number = AtomicI64::new(0);
        let asked = AtomicU32::new(0);
        let send = |op: Rmw| {
            // Other ranks join while this request is under way.
            std::thread::yield_now();
            match asked.fetch_add(1, Ordering::Relaxed) % 50 {
                49 => Err(Error::new(ErrorKind::Address, "refused")),
                _ => Ok(number.fetch_add(op.operand().value(), Ordering::Relaxed)),
            }
        };
        let mut all: Vec<i64> = std::thread::scope(|scope| {
            let each = node.queues(64).into_iter().map(|queue| {
                let send = &send;
                scope.spawn(move || {
                    let add = || loop {
                        // A failed request is repeated.
                        if let Ok(old) = combined(&Boot, queue, Rmw::add::<i64>(1), send) {
                            return old;
                        }
                    };
                    (0..500).map(|_| add()).collect::<Vec<_>>()
                })
            });
            each.collect::<Vec<_>>().into_iter().flat_map(|t| t.join().unwrap()).collect()
        });
        all.sort_unstable();
        assert_eq!(all, (0..500 * RANKS as i64).collect::<Vec<_>>());
    }

    #[test]
    fn a_mutex_passes_in_turn_and_goes_back() {
        let mut node = Node::new();
        let ranks = node.queues(128);
        let turn = |rank: usize| ranks[rank].mine().turn.load(Ordering::Relaxed);
        assert_eq!(ranks[2].enter(0), Turn::Leads);
        ranks[2].taken(2);
        for rank in [0, 3, 1] {
            assert_eq!(ranks[rank].enter(0), Turn::Waits);
        }
        assert_eq!(ranks[0].enter(0), Turn::Alone, "another thread of the rank waits");
        assert_eq!(ranks[2].pass_on(2), None);
        assert_eq!((turn(0), turn(3)), (Turn::Has as u32, Turn::Waits as u32));
        assert_eq!(ranks[0].wait(&Boot, Cause::Lock, &String::new).unwrap().0, Turn::Has);
        assert_eq!(ranks[0].pass_on(2), None);
        assert_eq!(ranks[3].wait(&Boot, Cause::Lock, &String::new).unwrap().0, Turn::Has);
        // It returns in the name of the rank that took it, and the next rank sends a request.
        assert_eq!(ranks[3].pass_on(2), Some(2));
        ranks[3].leave();
        assert_eq!(ranks[1].wait(&Boot, Cause::Lock, &String::new).unwrap().0, Turn::Leads);
        ranks[1].taken(1);
        assert_eq!(ranks[1].pass_on(2), Some(1), "nobody waits");
        ranks[1].leave();
        assert_eq!(ranks[0].enter(0), Turn::Leads);
    }

    #[test]
    fn a_rank_that_gives_up_leaves_the_queue() {
        let mut node = Node::new();
        let ranks = node.queues(128);
        for gone in [1, 2, 3] {
            assert_eq!(ranks[0].enter(0), Turn::Leads);
            assert!((1..4).all(|rank| ranks[rank].enter(0) == Turn::Waits));
            assert_eq!(ranks[gone].give_up(), Turn::Waits);
            let mut leader = 0;
            for next in (1..4).filter(|&next| next != gone) {
                ranks[leader].leave();
                assert_eq!(
                    ranks[next].wait(&Boot, Cause::Lock, &String::new).unwrap().0,
                    Turn::Leads
                );
                leader = next;
            }
            // The turn comes at the same time.
            assert_eq!(ranks[gone].enter(0), Turn::Waits);
            ranks[leader].leave();
            assert_eq!(ranks[gone].give_up(), Turn::Leads);
            ranks[gone].leave();
        }
    }

    #[test]
    fn something_else_in_the_same_line_goes_alone() {
        let mut node = Node::new();
        let file = node.rank(1);
        let first = file.queue(7, 64, 0);
        let other = (1..).map(|n| file.queue(7, 64 + 8 * n, 0)).find(|q| q.line == first.line);
        assert_eq!(first.enter(1), Turn::Leads);
        assert_eq!(other.unwrap().enter(1), Turn::Alone);
        assert_eq!(first.enter(1), Turn::Waits, "the same of another thread");
    }
}
