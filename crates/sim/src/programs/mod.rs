//! Random programs compared with a reference model.
//!
//! Each rank draws its operations from the seed. Every part of the segment has a region for each
//! origin, which keeps a copy of it. A get must return the contents of the copy, operation for
//! operation (location consistency). Words that all ranks change are checked by their totals when
//! all ranks meet. The ranks share the model's memory, because they are one process.

mod handlers;

use crate::behaviour::Behaviour;
use crate::child::{Ctx, own, step};
use crate::dice::Dice;
use crate::machine::{self, Outcome};
use crate::settings;
use handlers::{Serves, Shared, Takes, Totals, pattern};
use portolan_base::layout::{Shape, Vector};
use portolan_base::trace::Cause;
use portolan_engine::am::aggregate::Aggregator;
use portolan_engine::am::{Data, Handler, HandlerId, Signal, Signals};
use portolan_engine::atomics::mutex::MutexSet;
use portolan_engine::core::peer::CompletionCounter;
use portolan_engine::memory::segment::Segment;
use portolan_engine::path::kernel::Scale;
use portolan_engine::path::ops::{Combine, Rmw, Transfer, TransferKind};
use portolan_engine::runtime::Engine;
use portolan_engine::transfer::Handle;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

const REGION: usize = 512;
const FIRST: usize = 64;
const COUNTER: usize = 0;
const SMALL: usize = 8;
const GUARDED: usize = 16;
const ADDED: usize = 24;

struct Player<'a> {
    ctx: &'a Ctx,
    dice: Dice,
    shared: Arc<Shared>,
    segment: Arc<Segment>,
    mutexes: Arc<MutexSet>,
    serves: HandlerId,
    aggregator: Arc<Aggregator>,
    /// The expected contents of this rank's region at each rank.
    copies: Vec<Vec<u8>>,
}

impl Player<'_> {
    fn engine(&self) -> &Engine {
        &self.ctx.engine
    }

    fn word(&self, target: usize, word: usize) -> usize {
        self.segment.part(target).address() + word
    }

    fn region(&self, target: usize) -> usize {
        self.word(target, FIRST + self.ctx.me * REGION)
    }

    /// Draws a range of a region in multiples of `unit` bytes. Returns its offset and length.
    fn range(&mut self, unit: usize) -> (usize, usize) {
        let from = self.dice.below((REGION / unit) as u64) as usize * unit;
        let most = (REGION - from) / unit;
        (from, unit * (1 + self.dice.below(most as u64) as usize))
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.dice.next() as u8).collect()
    }

    fn put(&mut self, target: usize) {
        let (from, len) = self.range(1);
        let bytes = self.bytes(len);
        self.ctx.put(target, self.region(target) + from, &bytes);
        self.copies[target][from..from + len].copy_from_slice(&bytes);
    }

    fn get(&mut self, target: usize) {
        let (from, len) = self.range(1);
        let got = self.ctx.get(target, self.region(target) + from, len);
        assert_eq!(got, self.copies[target][from..from + len], "a get of rank {target}");
    }

    fn strided(&mut self, target: usize, kind: TransferKind) {
        let (row, rows, gap) = (
            1 + self.dice.below(24) as usize,
            1 + self.dice.below(6) as usize,
            self.dice.below(9) as usize,
        );
        let from = self.dice.below((REGION - rows * (row + gap)) as u64) as usize;
        let stride = row + gap;
        let shape =
            Shape::strided(&[row, rows], &[row as isize], &[stride as isize]).expect("a shape");
        let mut local = self.bytes(row * rows);
        let remote = self.region(target) + from;
        let transfer = Transfer { kind, target, remote, local: local.as_mut_ptr(), shape: &shape };
        // SAFETY: the buffer has the shape's bytes, and nothing else accesses it during the call.
        unsafe { self.engine().blocking(&transfer) }.expect("strided");
        for (i, part) in local.chunks(row).enumerate() {
            let copy = &mut self.copies[target][from + i * stride..][..row];
            match kind {
                TransferKind::Put => copy.copy_from_slice(part),
                _ => assert_eq!(copy, part, "row {i} of a strided get of rank {target}"),
            }
        }
    }

    fn accumulate(&mut self, target: usize) {
        let (from, len) = self.range(8);
        let factor = self.dice.below(5) as i64 - 2;
        let mut local = self.bytes(len);
        let remote = self.region(target) + from;
        // SAFETY: the buffer has `len` bytes, and nothing else accesses it before the call returns.
        unsafe {
            self.engine().accumulate(target, remote, local.as_mut_ptr(), len, Scale::Long(factor))
        }
        .expect("accumulate");
        let number = |bytes: &[u8]| i64::from_ne_bytes(bytes.try_into().expect("8 bytes"));
        for (copy, part) in self.copies[target][from..from + len].chunks_mut(8).zip(local.chunks(8))
        {
            let sum = number(copy).wrapping_add(number(part).wrapping_mul(factor));
            copy.copy_from_slice(&sum.to_ne_bytes());
        }
    }

    fn change(&mut self, target: usize) {
        use Combine::*;
        let at = self.dice.below(REGION as u64 / 8) as usize * 8;
        let copy = &mut self.copies[target][at..at + 8];
        let old = i64::from_ne_bytes(copy.try_into().expect("8 bytes"));
        let value = self.dice.next() as i64;
        let op = match self.dice.pick(&[Load, Swap, Add, And, Or, Xor, Min, Max, CompareSwap]) {
            CompareSwap => Rmw::compare_swap(old ^ self.dice.below(2) as i64, value),
            combine if self.dice.one_in(2) => Rmw::new(combine, value as u64),
            combine => Rmw::new(combine, value),
        };
        copy.copy_from_slice(&op.apply(old).to_ne_bytes());
        let found = self.engine().rmw(target, self.region(target) + at, op).expect("rmw");
        assert_eq!(found, old, "{op:?} at rank {target}");
    }

    /// Transfers disjoint blocks to or from several targets and waits for all of them at once: with
    /// an explicit handle, with an aggregate handle, or without a handle.
    fn together(&mut self, kind: TransferKind) {
        let form = self.dice.below(3);
        let mut handle = Handle::default();
        if form == 1 {
            handle.set_aggregate().expect("a new handle");
        }
        let mut parts = Vec::new();
        for i in 0..1 + self.dice.below(8) as usize {
            let target = self.dice.below(self.ctx.n as u64) as usize;
            let len = 1 + self.dice.below(REGION as u64 / 8) as usize;
            parts.push((target, i * REGION / 8, self.bytes(len)));
        }
        for &mut (target, from, ref mut bytes) in &mut parts {
            let remote = self.region(target) + from;
            let (local, shape) = (bytes.as_mut_ptr(), &Shape::contiguous(bytes.len()));
            let transfer = Transfer { kind, target, remote, local, shape };
            // SAFETY: the buffers stay valid until the wait for all transfers below.
            unsafe {
                match form {
                    2 => self.ctx.engine.implicit(&transfer),
                    _ => handle.issue(&self.ctx.engine, &transfer),
                }
            }
            .expect("issue");
        }
        match form {
            2 => self.engine().wait_implicit().expect("wait"),
            _ => handle.wait(self.engine()).expect("wait"),
        }
        for (target, from, bytes) in &parts {
            let copy = &mut self.copies[*target][*from..*from + bytes.len()];
            match kind {
                TransferKind::Put => copy.copy_from_slice(bytes),
                _ => assert_eq!(copy, bytes, "a get of rank {target} on a handle"),
            }
        }
    }

    fn vectors(&mut self, target: usize, kind: TransferKind) {
        let len = 1 + self.dice.below(20) as usize;
        let count = 1 + self.dice.below(12) as usize;
        let mut local: Vec<u8> = self.bytes(len * count);
        let froms: Vec<usize> = (0..count).map(|i| i * 40 + self.dice.below(20) as usize).collect();
        let remote: Vec<usize> = froms.iter().map(|from| self.region(target) + from).collect();
        let places: Vec<usize> =
            (0..count).map(|i| local.as_mut_ptr() as usize + i * len).collect();
        let vector = Vector { block: len, local: &places, remote: &remote };
        // SAFETY: the blocks lie in the buffer, which stays valid until the call returns.
        unsafe { self.engine().vector(kind, target, &[vector]) }.expect("vector");
        for (from, part) in froms.iter().zip(local.chunks(len)) {
            let copy = &mut self.copies[target][*from..*from + len];
            match kind {
                TransferKind::Put => copy.copy_from_slice(part),
                _ => assert_eq!(copy, part, "a block of a vector get of rank {target}"),
            }
        }
    }

    fn count(&mut self, target: usize) {
        let (value, totals) = (self.dice.below(100) as i64, &self.shared.0[target]);
        if self.dice.one_in(2) {
            let op = Rmw::add::<i64>(value);
            self.ctx.engine.rmw(target, self.word(target, COUNTER), op).expect("rmw");
            totals.counter.fetch_add(value, Ordering::Relaxed);
        } else {
            let op = Rmw::add::<i32>(value as i32);
            self.ctx.engine.rmw(target, self.word(target, SMALL), op).expect("rmw");
            totals.small.fetch_add(value, Ordering::Relaxed);
        }
    }

    /// Adds one under a mutex, with a get and a put.
    fn guarded(&mut self, target: usize) {
        let at = self.word(target, GUARDED);
        let engine = self.engine();
        engine.lock(&self.mutexes, 0, target).expect("lock");
        let before: i64 = self.ctx.load(target, at);
        self.ctx.store(target, at, before + 1);
        engine.fence(target).expect("fence");
        engine.unlock(&self.mutexes, 0, target).expect("unlock");
        self.shared.0[target].guarded.fetch_add(1, Ordering::Relaxed);
    }

    fn add(&mut self, target: usize) {
        let value = self.dice.below(9) as i64;
        let bytes = value.to_ne_bytes();
        let at = self.word(target, ADDED);
        // SAFETY: the number stays valid until the call returns.
        unsafe { self.engine().accumulate(target, at, bytes.as_ptr(), 8, Scale::Long(3)) }
            .expect("add");
        self.shared.0[target].added.fetch_add(3 * value, Ordering::Relaxed);
    }

    /// Sends an active message of random length, kind of data and completion signal.
    fn message(&mut self, target: usize) {
        let value = self.dice.below(1000);
        let depth = self.dice.below(4) as u8;
        let len = self.dice.pick(&[0, 1, 100, 900, 4000, 20_000, 70_000]);
        let len = if len > 0 { len - self.dice.below(len as u64 / 2 + 1) as usize } else { 0 };
        let kind = if self.dice.one_in(3) { b'q' } else { b'v' };
        let header = Serves::header(kind, depth, value);
        let totals = &self.shared.0[self.ctx.me];
        totals.sent.fetch_add(value * (u64::from(depth) + 1), Ordering::Relaxed);
        totals.asked.fetch_add(u64::from(kind == b'q'), Ordering::Relaxed);
        let data = pattern(len, value);
        let tally = Arc::new(CompletionCounter::default());
        let form = self.dice.below(4);
        let signals = match form {
            0 | 1 => {
                tally.begin();
                Signals { origin: Signal::Counter(tally.clone()), completion: Signal::None }
            }
            2 => {
                tally.begin();
                Signals { origin: Signal::None, completion: Signal::Counter(tally.clone()) }
            }
            _ => Signals::default(),
        };
        let given = match form {
            0 => Data::At(data.as_ptr(), len),
            1 => Data::Owned(data.clone()),
            _ => Data::Bytes(&data),
        };
        let engine = self.engine();
        // SAFETY: the data stays valid until it has left, which the wait below ensures.
        unsafe { engine.send_am(target, self.serves, &header, given, signals) }.expect("send");
        engine
            .wait_for(Cause::Other, &|| "a message of its own".into(), || tally.check())
            .expect("wait");
    }

    fn push(&mut self) {
        for _ in 0..1 + self.dice.below(40) {
            let target = self.dice.below(self.ctx.n as u64) as usize;
            let value = self.dice.below(1000);
            self.aggregator.push(self.engine(), target, &value.to_le_bytes()).expect("push");
            self.shared.0[target].pushed.fetch_add(value, Ordering::Relaxed);
        }
        if self.dice.one_in(4) {
            self.aggregator.flush(self.engine()).expect("flush");
        }
    }

    fn operation(&mut self) {
        let target = self.dice.below(self.ctx.n as u64) as usize;
        let kind = if self.dice.one_in(2) { TransferKind::Put } else { TransferKind::Get };
        let which = self.dice.below(17);
        step(format!("operation {which} to rank {target}"));
        match which {
            0 | 1 => self.put(target),
            2 => self.get(target),
            3 | 4 => self.strided(target, kind),
            5 => self.accumulate(target),
            6 => self.together(kind),
            7 => self.vectors(target, kind),
            8 => self.count(target),
            9 => self.guarded(target),
            10 => self.add(target),
            11 | 12 => self.message(target),
            13 => self.push(),
            14 => self.change(target),
            15 => self.engine().fence(target).expect("fence"),
            _ => drop(self.engine().probe().expect("probe")),
        }
    }

    fn meet(&mut self) {
        step("quiesce");
        self.engine().quiesce().expect("quiesce");
        step("meet");
        self.ctx.barrier();
        let (totals, mine) = (&self.shared.0[self.ctx.me], own(&self.segment));
        let long = |at: usize| i64::from_ne_bytes(mine[at..at + 8].try_into().expect("8 bytes"));
        let small = i32::from_ne_bytes(mine[SMALL..SMALL + 4].try_into().expect("4 bytes"));
        let is = |total: &AtomicI64| total.load(Ordering::Relaxed);
        assert_eq!(long(COUNTER), is(&totals.counter), "the counter");
        assert_eq!(i64::from(small), is(&totals.small), "the small counter");
        assert_eq!(long(GUARDED), is(&totals.guarded), "the word under a mutex");
        assert_eq!(long(ADDED), is(&totals.added), "the word that all add to");
        let of = |which: u64| totals.pushed.load(Ordering::Relaxed) == which;
        assert!(of(totals.came.load(Ordering::Relaxed)), "items that came");
        let shared = &self.shared;
        assert_eq!(shared.sum(|t| &t.handled), shared.sum(|t| &t.sent), "values handled");
        assert_eq!(shared.sum(|t| &t.answered), shared.sum(|t| &t.asked), "answers");
        self.ctx.barrier();
    }

    fn group(&mut self, common: &mut Dice) {
        let mut members: Vec<usize> = (0..self.ctx.n).filter(|_| common.one_in(2)).collect();
        if common.one_in(2) {
            members.reverse();
        }
        let bytes = 1 + common.below(5000) as usize;
        let (engine, me) = (self.engine(), self.ctx.me);
        if members.is_empty() || !members.contains(&me) {
            return;
        }
        step(format!("group of {members:?}"));
        let group = engine.create_group(engine.world(), &members).expect("create a group");
        let group = group.expect("the caller is a member");
        let segment = engine.allocate(&group, bytes).expect("allocate");
        let place = group.rank();
        let next = (place + 1) % members.len();
        let data = pattern(bytes, me as u64);
        self.ctx.put(members[next], segment.part(next).address(), &data);
        engine.barrier_of(&group).expect("barrier");
        let before = members[(place + members.len() - 1) % members.len()];
        assert!(own(&segment) == pattern(bytes, before as u64), "what rank {before} has put");
        let all = group.allgather(engine, &(me as u64)).expect("allgather");
        assert!(all.iter().zip(&members).all(|(got, want)| *got == *want as u64));
        engine.release(segment).expect("release");
        engine.free_group(&group).expect("free");
    }
}

fn play(ctx: &Ctx, shared: &Arc<Shared>, phases: usize, operations: usize) {
    let engine = &*ctx.engine;
    let serves = Arc::new(Serves { shared: shared.clone(), own: std::sync::OnceLock::new() });
    let handlers: Vec<(String, Arc<dyn Handler>)> =
        vec![("serves".into(), serves.clone()), ("takes".into(), Arc::new(Takes(shared.clone())))];
    step("register");
    let ids = engine.register_handlers(handlers).expect("register");
    serves.own.set(ids[0]).expect("set once");
    ctx.barrier();
    step("allocate");
    let segment = ctx.allocate(FIRST + ctx.n * REGION);
    own(&segment).fill(0);
    let mutexes = engine.create_mutexes(engine.world(), Ok(1)).expect("mutexes");
    let aggregator = Aggregator::new(engine, ids[1], b"", 8, 256).expect("an aggregator");
    ctx.barrier();
    let mut common = Dice::new(ctx.seed ^ 0xc0);
    let mut player = Player {
        ctx,
        dice: Dice::new(ctx.seed ^ (ctx.me as u64 + 1) << 32),
        shared: shared.clone(),
        segment,
        mutexes,
        serves: ids[0],
        aggregator,
        copies: vec![vec![0; REGION]; ctx.n],
    };
    for _ in 0..phases {
        (0..operations).for_each(|_| player.operation());
        player.meet();
        if common.one_in(2) {
            player.group(&mut common);
        }
    }
    step("verify");
    for target in 0..ctx.n {
        let got = ctx.get(target, player.region(target), REGION);
        assert!(got == player.copies[target], "this rank's region at rank {target}");
    }
    let Player { segment, mutexes, aggregator, .. } = player;
    engine.destroy_mutexes(&mutexes).expect("destroy");
    drop((aggregator, mutexes));
    engine.unregister_handlers(&ids).expect("unregister");
    ctx.free(segment);
}

const STACK: usize = 512 << 10;

pub fn run(seed: u64, ranks: usize) -> Outcome {
    let mut dice = Dice::new(seed);
    let behaviour = Behaviour::draw(&mut dice, ranks);
    run_on(seed, ranks, behaviour, dice)
}

pub fn slow(seed: u64, ranks: usize) -> Outcome {
    let mut dice = Dice::new(seed);
    let mut behaviour = Behaviour::draw(&mut dice, ranks);
    let some = 1 + dice.below(ranks as u64 / 4) as usize;
    behaviour.slow = (0..some).map(|_| dice.below(ranks as u64) as usize).collect();
    behaviour.late_every = 10;
    run_on(seed, ranks, behaviour, dice)
}

fn run_on(seed: u64, ranks: usize, behaviour: Behaviour, mut dice: Dice) -> Outcome {
    let config = settings::draw(&mut dice);
    let shared = Arc::new(Shared((0..ranks).map(|_| Totals::default()).collect()));
    let (phases, operations) = (2, 12);
    machine::run(seed, ranks, behaviour, STACK, move |_| {
        let ctx = Ctx::start(config.clone(), seed);
        play(&ctx, &shared, phases, operations);
        ctx.stop();
    })
}
