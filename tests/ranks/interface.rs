//! The calls of an interface that the model of [`random`](crate::random) and the checks of
//! [`contention`](crate::contention) drive. [`Ops`] are the engine's own calls.
//! [`interfaces`](crate::interfaces) has the C interfaces, by their symbols, and the typed Rust one.

use crate::ctx::{Ctx, own};
use crate::model::{Form, Item};
use crate::rng::Rng;
use crate::teams::{EngineTeams, Teams};
use portolan_base::layout::{Shape, Vector};
use portolan_engine::atomics::mutex::MutexSet;
use portolan_engine::atomics::notifications::Notifications;
use portolan_engine::memory::segment::Segment;
use portolan_engine::path::ops::{Combine, Number, Rmw};
use portolan_engine::runtime::Engine;
use portolan_engine::transfer::{Handle, Transfer, TransferKind};
use std::sync::Arc;

/// How a rank issues and completes several items, which access disjoint bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mode {
    Blocking,
    /// A handle for each item, or what the interface has in its place.
    Handle,
    /// The step waits once, for all items.
    Implicit,
    Aggregate,
}

/// An item with the addresses of the start of its form.
#[derive(Debug)]
pub struct Move<'a> {
    pub item: &'a Item,
    pub remote: usize,
    pub local: *mut u8,
}

impl Move<'_> {
    /// Returns the number of bytes if they are contiguous and not zero.
    pub fn plain(&self) -> Option<usize> {
        match &self.item.form {
            Form::Strided { counts, .. } if counts.len() == 1 && counts[0] > 0 => Some(counts[0]),
            _ => None,
        }
    }

    /// Returns the local and remote address and the length of each block.
    pub fn blocks(&self) -> Vec<(usize, usize, usize)> {
        let at = |(l, r, n): (usize, usize, usize)| {
            let local = (self.local as usize).wrapping_add(l).wrapping_sub(self.item.local_at);
            (local, self.remote.wrapping_add(r).wrapping_sub(self.item.at), n)
        };
        self.item.blocks().into_iter().map(at).collect()
    }
}

/// A read-modify-write of a word of 4 or 8 bytes.
#[derive(Debug, Clone, Copy)]
pub struct Word {
    pub op: Combine,
    pub wide: bool,
    /// Concerns minimum and maximum.
    pub unsigned: bool,
    pub target: usize,
    pub value: i64,
    /// Of a compare-and-swap.
    pub expected: i64,
}

impl Word {
    pub fn bytes(&self) -> usize {
        if self.wide { 8 } else { 4 }
    }

    /// Returns the value as the word holds it.
    pub fn cut(&self, value: i64) -> i64 {
        if self.wide { value } else { i64::from(value as i32) }
    }

    pub fn after(&self, old: i64) -> i64 {
        let (value, unsigned) = (self.value, (old as u64, self.value as u64));
        self.cut(match self.op {
            Combine::Load => old,
            Combine::Add => old.wrapping_add(value),
            Combine::And => old & value,
            Combine::Or => old | value,
            Combine::Xor => old ^ value,
            Combine::Min if self.unsigned => unsigned.0.min(unsigned.1) as i64,
            Combine::Max if self.unsigned => unsigned.0.max(unsigned.1) as i64,
            Combine::Min => old.min(value),
            Combine::Max => old.max(value),
            Combine::CompareSwap if old != self.expected => old,
            Combine::Swap | Combine::CompareSwap => value,
        })
    }
}

/// The transfers and other operations that an interface has.
#[derive(Debug, Clone, Copy)]
pub struct Abilities {
    pub gets: bool,
    /// The bytes that each block of an item is a multiple of: 1 if its elements may have any type.
    pub unit: usize,
    /// The types of [`model::scale`](crate::model::scale) that it accumulates.
    pub types: &'static [usize],
    pub modes: &'static [Mode],
    pub words: &'static [Combine],
    /// Whether a compare-and-swap that does not swap returns the word. Otherwise it may return any
    /// value but the expected one.
    pub tells: bool,
    /// The number of locks of each rank.
    pub locks: usize,
    /// Whether the strides of a transfer may be negative.
    pub negative: bool,
    /// Whether any memory of a rank can be the target.
    pub anywhere: bool,
}

impl Abilities {
    pub fn takes(&self, item: &Item) -> bool {
        let kind = self.gets || item.kind != TransferKind::Get;
        let negative = |strides: &[isize]| strides.iter().any(|&stride| stride < 0);
        let strides = match &item.form {
            Form::Strided { local, remote, .. } if !self.negative => {
                !negative(local) && !negative(remote)
            }
            _ => true,
        };
        kind && strides
    }

    /// Returns whether it changes words of 8 bytes, or else of 4.
    pub fn has_words(&self, wide: bool) -> bool {
        !self.words.is_empty() && (self.unit == 1 || self.unit == if wide { 8 } else { 4 })
    }
}

/// All types of [`model::scale`](crate::model::scale).
pub const TYPES: [usize; 9] = [0, 1, 2, 3, 4, 5, 6, 7, 8];

/// All that the engine has.
pub const EVERY_WORD: &[Combine] = {
    use Combine::*;
    &[Load, Swap, Add, And, Or, Xor, Min, Max, CompareSwap]
};

pub trait Interface {
    fn abilities(&self) -> Abilities;

    /// Its groups, or the engine's if it has none.
    fn teams(&mut self) -> &mut dyn Teams;

    /// Performs all items. On return the local bytes are in place or may be changed.
    ///
    /// # Safety
    /// The addresses must be valid for the items.
    unsafe fn perform(&mut self, mode: Mode, moves: &[Move<'_>], rng: &mut Rng);

    /// Makes transfers of nothing, from and to no memory.
    fn nothing(&mut self, _target: usize) {}

    /// Returns the word before the operation.
    fn word(&mut self, _word: &Word, _remote: usize) -> i64 {
        unreachable!("the interface has no words")
    }

    /// Completes everything at all ranks. Collective; all ranks draw the same numbers.
    fn meet(&mut self, rng: &mut Rng);

    /// Puts the bytes, and then informs the target.
    fn hand_over(&mut self, to: usize, remote: usize, bytes: &[u8]);

    /// Waits until a rank has handed over once more. Then its bytes are there.
    fn receive(&mut self, from: usize);

    fn lock(&mut self, _number: usize, _home: usize) {
        unreachable!("the interface has no locks")
    }

    /// Whatever the rank has put is at its target before the next rank has the lock.
    fn unlock(&mut self, _number: usize, _home: usize) {
        unreachable!("the interface has no locks")
    }

    /// Ends the interface. Collective.
    fn end(&mut self);
}

/// Returns four rows of the bytes with gaps of 3 bytes between them, and the length of a row.
pub fn rows(bytes: &[u8]) -> (Vec<u8>, usize) {
    let row = bytes.len() / 4;
    let mut apart = vec![0; bytes.len() + 9];
    for (i, from) in bytes.chunks(row).enumerate() {
        apart[i * (row + 3)..][..row].copy_from_slice(from);
    }
    (apart, row)
}

/// The number of flags that each rank has at each rank. A flag is awaited for its exact value, and
/// at most three are on their way.
pub const FLAGS: usize = 8;

/// The position, among the flags at a rank, of the one that `from` sets for its message `number`.
pub fn flag_at(from: usize, number: usize) -> usize {
    FLAGS * from + number % FLAGS
}

/// The calls of the engine.
pub struct Ops {
    engine: Arc<Engine>,
    teams: EngineTeams,
    words: Notifications,
    flags: Arc<Segment>,
    /// The number of messages to and from each rank, which selects the call.
    sent: Vec<usize>,
    received: Vec<usize>,
    locks: Arc<MutexSet>,
}

impl Ops {
    /// Collective.
    pub fn new(ctx: &Ctx) -> Ops {
        let engine = ctx.engine.clone();
        let words = Notifications::create(&engine).expect("notifications");
        let flags = ctx.allocate(4 * FLAGS * ctx.n);
        own(&flags).fill(0);
        // Each rank has another number of mutexes. The first and the last one of each are used.
        let locks = engine.create_mutexes(engine.world(), Ok(ctx.me + 2)).expect("mutexes");
        assert_eq!(locks.counts(), (2..ctx.n + 2).collect::<Vec<_>>());
        let (sent, received) = (vec![0; ctx.n], vec![0; ctx.n]);
        let teams = EngineTeams::new(&engine);
        Ops { teams, words, flags, sent, received, locks, engine }
    }

    /// # Safety
    /// The addresses must be valid until the item is complete.
    unsafe fn issue(&self, it: &Move<'_>, mode: Mode, handle: &mut Handle) -> portolan::Result<()> {
        let engine = &*self.engine;
        let (kind, target, address, local) = (it.item.kind, it.item.target, it.remote, it.local);
        // SAFETY: the caller guarantees the addresses.
        unsafe {
            match &it.item.form {
                Form::Strided { counts, local: l, remote: r } => {
                    let shape = Shape::strided(counts, l, r)?;
                    let plain = shape.is_contiguous() && !shape.is_empty();
                    let transfer = Transfer::new(kind, target, address, local, &shape);
                    match mode {
                        Mode::Blocking if plain && kind == TransferKind::Put => {
                            engine.put(target, address, local, shape.bytes())
                        }
                        Mode::Blocking if plain && kind == TransferKind::Get => {
                            engine.get(target, address, local, shape.bytes())
                        }
                        Mode::Blocking => engine.blocking(&transfer),
                        Mode::Implicit => engine.implicit(&transfer),
                        _ => handle.issue(engine, &transfer),
                    }
                }
                Form::Vector { block, local: l, remote: r } => {
                    let l: Vec<usize> = l.iter().map(|o| local as usize + o).collect();
                    let r: Vec<usize> = r.iter().map(|o| address + o).collect();
                    let list = [Vector { block: *block, local: &l, remote: &r }];
                    match mode {
                        Mode::Blocking => engine.vector(kind, target, &list),
                        Mode::Implicit => engine.implicit_vectors(kind, target, &list),
                        _ => handle.issue_vectors(engine, kind, target, &list),
                    }
                }
            }
        }
    }
}

impl Interface for Ops {
    fn abilities(&self) -> Abilities {
        Abilities {
            gets: true,
            unit: 1,
            types: &TYPES,
            modes: &[Mode::Blocking, Mode::Handle, Mode::Implicit, Mode::Aggregate],
            words: EVERY_WORD,
            tells: true,
            locks: 2,
            negative: true,
            anywhere: false,
        }
    }

    fn teams(&mut self) -> &mut dyn Teams {
        &mut self.teams
    }

    unsafe fn perform(&mut self, mode: Mode, moves: &[Move<'_>], rng: &mut Rng) {
        let engine = &*self.engine;
        let mut handle = Handle::default();
        if mode == Mode::Aggregate {
            handle.set_aggregate().expect("a fresh handle");
        }
        for it in moves {
            // SAFETY: the caller guarantees the addresses.
            let done = unsafe { self.issue(it, mode, &mut handle) };
            done.unwrap_or_else(|e| panic!("{it:?}: {e}"));
        }
        match mode {
            Mode::Blocking => {}
            Mode::Implicit => {
                if rng.one_in(2) {
                    for it in moves {
                        engine.wait_implicit_to(it.item.target).expect("wait for a target");
                    }
                }
                engine.wait_implicit().expect("wait for all targets");
            }
            _ => {
                if rng.one_in(3) {
                    while !handle.test(engine).expect("test") {}
                }
                handle.wait(engine).expect("wait");
                assert!(!handle.is_pending());
            }
        }
    }

    fn word(&mut self, word: &Word, remote: usize) -> i64 {
        let number = |value: i64| -> Number {
            match (word.wide, word.unsigned) {
                (true, false) => value.into(),
                (true, true) => (value as u64).into(),
                (false, false) => (value as i32).into(),
                (false, true) => (value as u32).into(),
            }
        };
        let op = match word.op {
            Combine::CompareSwap => Rmw::compare_swap(number(word.expected), number(word.value)),
            op => Rmw::new(op, number(word.value)),
        };
        self.engine.rmw(word.target, remote, op).expect("read-modify-write")
    }

    fn meet(&mut self, _: &mut Rng) {
        self.engine.barrier_of(self.engine.world()).expect("barrier");
    }

    fn hand_over(&mut self, to: usize, remote: usize, bytes: &[u8]) {
        let engine = &*self.engine;
        self.sent[to] += 1;
        let number = self.sent[to];
        let (apart, row) = rows(bytes);
        let shape = Shape::strided(&[row, 4], &[row as isize + 3], &[row as isize]).expect("rows");
        let flag = self.flags.part(to).address() + 4 * flag_at(engine.rank(), number);
        // SAFETY: both sources have all bytes.
        unsafe {
            if number.is_multiple_of(2) {
                engine.put(to, remote, bytes.as_ptr(), bytes.len()).expect("put");
                return self.words.notify(engine, to).expect("notify");
            }
            engine.put_flag(to, remote, apart.as_ptr(), &shape, flag, number as i32).expect("put");
        }
    }

    fn receive(&mut self, from: usize) {
        self.received[from] += 1;
        let number = self.received[from];
        if number.is_multiple_of(2) {
            let count = number as u32 / 2;
            self.words.wait(&self.engine, from, count).expect("a notification");
            return;
        }
        let flag = own(&self.flags)[4 * flag_at(from, number)..].as_ptr().cast();
        // SAFETY: the flag is aligned and lives as long as the segment.
        unsafe { self.engine.wait_flag(flag, number as i32) }.expect("a flag");
    }

    fn lock(&mut self, number: usize, home: usize) {
        let (engine, locks, index) = (&*self.engine, &self.locks, number * (home + 1));
        if number == 0 || !engine.try_lock(locks, index, home).expect("try") {
            engine.lock(locks, index, home).expect("lock");
        }
    }

    fn unlock(&mut self, number: usize, home: usize) {
        self.engine.unlock(&self.locks, number * (home + 1), home).expect("unlock");
    }

    fn end(&mut self) {
        self.words.free(&self.engine).expect("free");
        self.engine.destroy_mutexes(&self.locks).expect("destroy");
        self.engine.release(self.flags.clone()).expect("release");
    }
}
