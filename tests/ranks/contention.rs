//! Several ranks access the same bytes through any [`Interface`]: they hand over data, draw tickets,
//! pass tokens on, change a word by all operations at once, and change numbers under a lock.

use crate::child::{Ctx, step};
use crate::interface::{Interface, Mode, Move, Ops, Word};
use crate::model::{Form, Item};
use crate::rng::Rng;
use crate::teams::memory_at;
use portolan_engine::path::ops::Combine;
use portolan_engine::transfer::TransferKind;
use std::collections::{HashMap, HashSet};

const DRAWS: usize = 30;

/// Through the engine's calls.
pub fn contention(ctx: &Ctx) {
    let mut calls = Ops::new(ctx);
    run(ctx, &mut calls);
    calls.end();
}

/// Collective; all ranks call it with the same numbers.
pub fn run(ctx: &Ctx, calls: &mut dyn Interface) {
    let can = calls.abilities();
    let mut rng = Rng::new(ctx.seed, &[ctx.n as u64, 2]);
    (0..ctx.n).for_each(|rank| calls.nothing(rank));
    meetings(ctx, calls, &mut rng);
    hand_overs(ctx, calls, &mut rng);
    for wide in [false, true] {
        if !can.has_words(wide) {
            continue;
        }
        if can.words.contains(&Combine::Add) {
            tickets(ctx, calls, wide, &mut rng);
            order(ctx, calls, wide, &mut rng);
        }
        if can.words.contains(&Combine::Swap) {
            tokens(ctx, calls, wide, &mut rng);
        }
    }
    if can.locks > 0 {
        locks(ctx, calls, can.locks, &mut rng);
    }
}

/// Memory of the interface.
struct Memory {
    /// Its address at each rank.
    bases: Vec<usize>,
    me: usize,
    bytes: usize,
}

impl Memory {
    fn zeros(ctx: &Ctx, calls: &mut dyn Interface, bytes: usize, rng: &mut Rng) -> Memory {
        let bases = calls.teams().allocate(usize::MAX, 0, bytes, rng);
        let memory = Memory { bases, me: ctx.me, bytes };
        memory.own().fill(0);
        calls.meet(rng);
        memory
    }

    fn own(&self) -> &'static mut [u8] {
        memory_at(self.bases[self.me], self.bytes)
    }

    fn free(self, calls: &mut dyn Interface, rng: &mut Rng) {
        calls.teams().release(usize::MAX, rng);
    }
}

/// Each rank puts to its right neighbour. After a meeting, the neighbour has the bytes in its memory.
fn meetings(ctx: &Ctx, calls: &mut dyn Interface, rng: &mut Rng) {
    const LONGEST: usize = 1 << 20;
    let (right, left) = ((ctx.me + 1) % ctx.n, (ctx.me + ctx.n - 1) % ctx.n);
    let (memory, mode) = (Memory::zeros(ctx, calls, LONGEST, rng), calls.abilities().modes[0]);
    for round in 0..if ctx.quick { 6 } else { 12 } {
        step(format!("contention: meeting {round}"));
        let len = *rng.pick(&[8, 5000, 300_000, LONGEST]);
        let content = |rank| Rng::new(ctx.seed, &[rank as u64, round, 1]).bytes(len);
        let place = memory.bases[right];
        copy(calls, mode, TransferKind::Put, right, place, &mut content(ctx.me));
        calls.meet(rng);
        assert!(memory.own()[..len] == content(left), "{len} bytes of rank {left}, round {round}");
        calls.meet(rng);
    }
    memory.free(calls, rng);
}

/// Each rank puts to its right neighbour and informs it. The neighbour then finds the data in its
/// memory, without a fence or a barrier, and hands a byte back.
pub fn hand_overs(ctx: &Ctx, calls: &mut dyn Interface, rng: &mut Rng) {
    const LONGEST: usize = 40_000;
    let (right, left) = ((ctx.me + 1) % ctx.n, (ctx.me + ctx.n - 1) % ctx.n);
    let memory = Memory::zeros(ctx, calls, LONGEST, rng);
    for round in 0..if ctx.quick { 12 } else { 24 } {
        step(format!("contention: handing over, round {round}"));
        let len = *rng.pick(&[4, 8, 100, 2048, 2052, 5000, LONGEST]);
        let len = usize::next_multiple_of(len, calls.abilities().unit);
        let content = |rank| Rng::new(ctx.seed, &[rank as u64, round]).bytes(len);
        calls.hand_over(right, memory.bases[right], &content(ctx.me));
        calls.receive(left);
        assert_eq!(memory.own()[..len], content(left), "{len} bytes of rank {left}, round {round}");
        calls.meet(rng);
    }
    if ctx.n > 1 {
        // Several at once from all ranks, before anyone waits.
        for rank in 0..ctx.n {
            let place = memory.bases[rank] + 8 * ctx.me;
            (0..3).for_each(|_| calls.hand_over(rank, place, &(ctx.me as u64).to_ne_bytes()));
        }
        (0..3 * ctx.n).rev().for_each(|i| calls.receive(i % ctx.n));
        for rank in 0..ctx.n {
            let seen = &memory.own()[8 * rank..8 * rank + 8];
            assert_eq!(seen, (rank as u64).to_ne_bytes(), "the word of rank {rank}");
        }
        calls.meet(rng);
    }
    memory.free(calls, rng);
}

fn gathered<const N: usize>(ctx: &Ctx, mine: [i64; N]) -> Vec<i64> {
    let all = ctx.engine.world().allgather(&*ctx.engine, &mine).expect("allgather");
    all.concat()
}

/// All ranks draw numbers from one counter, half of them by a compare-and-swap if there is one. Each
/// number is drawn once.
fn tickets(ctx: &Ctx, calls: &mut dyn Interface, wide: bool, rng: &mut Rng) {
    let (home, swaps) = (ctx.n - 1, calls.abilities().words.contains(&Combine::CompareSwap));
    let memory = Memory::zeros(ctx, calls, 8, rng);
    let place = memory.bases[home];
    let add =
        |value| Word { op: Combine::Add, wide, unsigned: false, target: home, value, expected: 0 };
    step("contention: tickets");
    let mine: [i64; DRAWS] = std::array::from_fn(|turn| {
        if !swaps || turn % 2 == 0 {
            return calls.word(&add(1), place);
        }
        loop {
            let seen = calls.word(&add(0), place);
            let swap = Word { op: Combine::CompareSwap, expected: seen, ..add(seen + 1) };
            if calls.word(&swap, place) == seen {
                return seen;
            }
        }
    });
    assert!(mine.is_sorted_by(|a, b| a < b), "tickets in another order: {mine:?}");
    let mut all = gathered(ctx, mine);
    all.sort_unstable();
    assert!(all.iter().copied().eq(0..(DRAWS * ctx.n) as i64), "tickets: {all:?}");
    calls.meet(rng);
    memory.free(calls, rng);
}

/// All ranks change one word at once by all operations, and note the value before and after each.
fn order(ctx: &Ctx, calls: &mut dyn Interface, wide: bool, rng: &mut Rng) {
    let (can, unsigned) = (calls.abilities(), !wide);
    let memory = Memory::zeros(ctx, calls, 16, rng);
    let mut draws = Rng::new(ctx.seed, &[ctx.me as u64, 77, wide.into()]);
    for target in 0..ctx.n {
        step(format!("contention: all operations at once at rank {target}"));
        let place = memory.bases[target] + 8;
        // A pair of zeros changes nothing.
        let mut changes = [0; 4 * DRAWS];
        for change in changes.chunks_mut(2) {
            let op = *draws.pick(can.words);
            // Most operands are small, so that values meet again.
            let mut value = || match draws.below(4) {
                0 => i64::from(draws.next() as i32),
                1 => -1 - draws.below(4) as i64,
                _ => draws.below(4) as i64,
            };
            let (value, expected) = (value(), value());
            let word = Word { op, wide, unsigned, target, value, expected };
            let old = calls.word(&word, place);
            if op != Combine::CompareSwap || old == expected || can.tells {
                change.copy_from_slice(&[old, word.after(old)]);
            }
        }
        let all = gathered(ctx, changes);
        let read = Word { op: Combine::Add, wide, unsigned, target, value: 0, expected: 0 };
        is_a_path(&all, calls.word(&read, place));
        calls.meet(rng);
    }
    memory.free(calls, rng);
}

/// A sequence of all operations exists if and only if the changes, as edges between values, form one
/// path from 0 to the last value: every value is left as often as it is reached, apart from these
/// two, and all edges hang together.
fn is_a_path(changes: &[i64], last: i64) {
    let mut balance: HashMap<i64, i64> = HashMap::from([(0, -1)]);
    let mut next: HashMap<i64, Vec<i64>> = HashMap::new();
    *balance.entry(last).or_default() += 1;
    for change in changes.chunks(2) {
        *balance.entry(change[0]).or_default() += 1;
        *balance.entry(change[1]).or_default() -= 1;
        next.entry(change[0]).or_default().push(change[1]);
    }
    let odd: Vec<_> = balance.iter().filter(|(_, count)| **count != 0).collect();
    assert!(odd.is_empty(), "values that are not left as often as reached: {odd:?}");
    let (mut seen, mut open) = (HashSet::from([0]), vec![0]);
    while let Some(value) = open.pop() {
        open.extend(next.get(&value).into_iter().flatten().filter(|to| seen.insert(**to)));
    }
    let lost: Vec<_> = next.keys().filter(|value| !seen.contains(value)).collect();
    assert!(lost.is_empty(), "values that nothing leads to: {lost:?}");
}

/// Each rank swaps tokens with a cell of each rank. None is lost, none is duplicated.
fn tokens(ctx: &Ctx, calls: &mut dyn Interface, wide: bool, rng: &mut Rng) {
    let memory = Memory::zeros(ctx, calls, 8, rng);
    step("contention: tokens");
    let mut hand = [0; DRAWS];
    hand[0] = ctx.me as i64 + 1;
    for turn in 0..100 {
        let target = turn % ctx.n;
        let held = &mut hand[turn % 7];
        let (op, unsigned, value) = (Combine::Swap, false, *held);
        let swap = Word { op, wide, unsigned, target, value, expected: 0 };
        *held = calls.word(&swap, memory.bases[target]);
    }
    calls.meet(rng);
    let cell = &memory.own()[..8];
    hand[DRAWS - 1] = i64::from_ne_bytes(cell.try_into().expect("8 bytes"));
    let mut found = gathered(ctx, hand);
    found.retain(|&token| token != 0);
    found.sort_unstable();
    assert!(found.iter().copied().eq(1..=ctx.n as i64), "tokens: {found:?}");
    memory.free(calls, rng);
}

/// Adds one to numbers by a get and a put. No addition is lost under the lock.
fn locks(ctx: &Ctx, calls: &mut dyn Interface, number: usize, rng: &mut Rng) {
    let memory = Memory::zeros(ctx, calls, 8 * number * ctx.n, rng);
    // The number need not be at the rank of the lock.
    let add = |calls: &mut dyn Interface, lock: usize, home: usize| {
        let target = (home + lock) % ctx.n;
        let place = memory.bases[target] + 8 * (home * number + lock);
        let mut value = [0; 8];
        copy(calls, Mode::Blocking, TransferKind::Get, target, place, &mut value);
        std::thread::yield_now();
        value = (u64::from_ne_bytes(value) + 1).to_ne_bytes();
        copy(calls, Mode::Blocking, TransferKind::Put, target, place, &mut value);
    };
    let rounds = if ctx.quick { 8 } else { 16 };
    for round in 0..rounds {
        for turn in 0..ctx.n {
            // In every other round, all ranks want the same lock at the same time.
            let home = if round % 2 == 0 { turn } else { (ctx.me + turn) % ctx.n };
            step(format!("contention: locks of rank {home}, round {round}"));
            if round % 4 == 3 {
                // All of them at once, in the same order on all ranks.
                (0..number).for_each(|lock| calls.lock(lock, home));
                (0..number).for_each(|lock| add(calls, lock, home));
                (0..number).for_each(|lock| calls.unlock(lock, home));
                continue;
            }
            for lock in 0..number {
                calls.lock(lock, home);
                add(calls, lock, home);
                calls.unlock(lock, home);
            }
        }
    }
    calls.meet(rng);
    for home in 0..ctx.n {
        for lock in 0..number {
            let at = 8 * (home * number + lock);
            let here = (home + lock) % ctx.n == ctx.me;
            let sum = u64::from_ne_bytes(memory.own()[at..at + 8].try_into().expect("8 bytes"));
            let want = if here { rounds * ctx.n as u64 } else { 0 };
            assert_eq!(sum, want, "under lock {lock} of rank {home}");
        }
    }
    calls.meet(rng);
    memory.free(calls, rng);
}

pub fn copy(
    calls: &mut dyn Interface,
    mode: Mode,
    kind: TransferKind,
    target: usize,
    remote: usize,
    bytes: &mut [u8],
) {
    let (segment, at, local_at, local_len, seed) = (0, 0, 0, bytes.len(), 0);
    let form = Form::Strided { counts: vec![local_len], local: vec![], remote: vec![] };
    let item = Item { kind, segment, target, at, local_at, local_len, form, seed, elements: None };
    let it = Move { item: &item, remote, local: bytes.as_mut_ptr() };
    // SAFETY: the local bytes outlive the call, and the caller names bytes of the target.
    unsafe { calls.perform(mode, &[it], &mut Rng::new(1, &[])) };
}
