//! Random transfers and read-modify-writes of all ranks at once, through any [`Interface`], compared
//! with the model.
//!
//! The run has phases with a barrier between them. In a phase every part of every segment is split
//! into regions. A region belongs to one rank, to no rank (all may read it) or to all ranks (all
//! may accumulate into it), so the outcome does not depend on the timing. All ranks draw the plans
//! of all ranks from the seed. Each rank executes its own plan, and applies all plans to its model.

use crate::child::{Ctx, own, step};
use crate::interface::{Abilities, Interface, Mode, Move, Ops, Word};
use crate::model::{self, Form, Item, Model};
use crate::rng::Rng;
use crate::teams::memory_at;
use portolan_engine::memory::segment::Segment;
use portolan_engine::path::kernel::Scale;
use portolan_engine::path::ops::Combine;
use portolan_engine::transfer::TransferKind;
use std::sync::Arc;

/// Bytes of each rank's segment for local buffers.
const SCRATCH: usize = 256 << 10;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Owner {
    Rank(usize),
    Nobody,
    All(usize),
}

#[derive(Debug, Clone, Copy)]
struct Region {
    segment: usize,
    target: usize,
    from: usize,
    to: usize,
    owner: Owner,
}

#[derive(Debug)]
enum Step {
    Moves(Mode, Vec<Item>),
    Word(WordAt),
}

/// A read-modify-write with its place in the model.
#[derive(Debug)]
struct WordAt {
    word: Word,
    segment: usize,
    at: usize,
    /// A compare-and-swap expects the value that the word has.
    hits: bool,
    /// No other rank changes the word, so its value is known.
    known: bool,
}

impl WordAt {
    /// Applies the operation to the model. Returns it, and the value before it.
    fn apply(&self, model: &mut Model) -> (Word, i64) {
        let mut word = self.word;
        let bytes = word.bytes();
        let place = &mut model.pieces[self.segment][word.target][self.at..self.at + bytes];
        let old = match <[u8; 8]>::try_from(&*place) {
            Ok(all) => i64::from_ne_bytes(all),
            Err(_) => i32::from_ne_bytes((&*place).try_into().expect("4 bytes")).into(),
        };
        if self.hits {
            word.expected = old;
        }
        place.copy_from_slice(&word.after(old).to_ne_bytes()[..bytes]);
        (word, old)
    }
}

/// The first group is the world.
fn memberships(n: usize) -> Vec<Vec<usize>> {
    let world: Vec<usize> = (0..n).collect();
    let mut all = vec![world.clone(), world.iter().rev().copied().collect()];
    if n > 2 {
        all.push(world.iter().copied().filter(|r| r % 2 == 0).collect());
        all.push(vec![n - 1, 0]);
    }
    all
}

/// The memory of all members of a group: the interface's, or memory of their own.
struct Place {
    in_segment: bool,
    /// The address of each member's part, and the place and the length of the own one.
    bases: Vec<usize>,
    place: usize,
    len: usize,
    _own: Vec<u64>,
}

impl Place {
    fn bytes(&self) -> &'static mut [u8] {
        memory_at(self.bases[self.place], self.len)
    }
}

struct World {
    groups: Vec<Vec<usize>>,
    /// The number of the group and, for its members, the memory.
    segments: Vec<(usize, Option<Place>)>,
    model: Model,
    /// Local buffers may be in it.
    scratch: Arc<Segment>,
}

fn lengths(rng: &mut Rng, n: usize) -> Vec<usize> {
    let list = [0, 1, 24, 100, 1000, 4104, 9000, 20_011, 70_001, 300_040];
    (0..n).map(|_| *rng.pick(&list)).collect()
}

impl World {
    fn new(ctx: &Ctx, calls: &mut dyn Interface, rng: &mut Rng) -> World {
        let groups = memberships(ctx.n);
        for (number, members) in groups.iter().enumerate().skip(1) {
            calls.teams().create(number, 0, members, rng);
        }
        let scratch = ctx.allocate(SCRATCH);
        World { groups, segments: Vec::new(), model: Model::default(), scratch }
    }

    fn allocate(&mut self, ctx: &Ctx, calls: &mut dyn Interface, rng: &mut Rng, s: usize) {
        let group = if s < 2 { 0 } else { s % self.groups.len() };
        let mut lengths = lengths(rng, ctx.n);
        let (contents, mut draws) = (rng.next(), Rng::new(rng.next(), &[]));
        let members = &self.groups[group];
        for (rank, len) in lengths.iter_mut().enumerate() {
            *len = if members.contains(&rank) { *len } else { 0 };
        }
        let in_segment = !calls.abilities().anywhere || s.is_multiple_of(2);
        let len = lengths[ctx.me];
        let place = members.iter().position(|&rank| rank == ctx.me).map(|place| {
            let own = vec![0u64; if in_segment { 0 } else { len.div_ceil(8) }];
            let teams = calls.teams();
            let bases = match in_segment {
                true => teams.allocate(s, group, len, &mut draws),
                false => teams.addresses(group, members, own.as_ptr() as usize),
            };
            Place { in_segment, bases, place, len, _own: own }
        });
        let pieces: Vec<Vec<u8>> =
            (0..ctx.n).map(|r| Rng::new(contents, &[r as u64]).bytes(lengths[r])).collect();
        if let Some(place) = &place {
            place.bytes().copy_from_slice(&pieces[ctx.me]);
        }
        let at = (group, place);
        if s < self.segments.len() {
            self.segments[s] = at;
            self.model.pieces[s] = pieces;
        } else {
            self.segments.push(at);
            self.model.pieces.push(pieces);
        }
    }

    fn free(&mut self, calls: &mut dyn Interface, rng: &mut Rng, s: usize) {
        let mut draws = Rng::new(rng.next(), &[]);
        if self.segments[s].1.take().is_some_and(|place| place.in_segment) {
            calls.teams().release(s, &mut draws);
        }
    }

    fn address(&self, segment: usize, target: usize) -> usize {
        let (group, place) = &self.segments[segment];
        let at = self.groups[*group].iter().position(|&rank| rank == target);
        place.as_ref().expect("a member plans the item").bases[at.expect("the target is a member")]
    }

    /// The own memory first: gets from other ranks would give late bytes the time to arrive.
    fn verify(&self, ctx: &Ctx, phase: usize) {
        let places = || self.segments.iter().enumerate();
        for (s, (_, place)) in places() {
            let Some(place) = place else { continue };
            let want = &self.model.pieces[s][ctx.me];
            compare(want, place.bytes(), &format!("phase {phase}: own memory of segment {s}"));
        }
        for (s, (group, place)) in places() {
            let Some(place) = place.as_ref().filter(|place| place.in_segment) else {
                continue;
            };
            for (&world, &base) in self.groups[*group].iter().zip(&place.bases) {
                let want = &self.model.pieces[s][world];
                let got = ctx.get(world, base, want.len());
                compare(want, &got, &format!("phase {phase}: segment {s} at rank {world}"));
            }
        }
    }
}

fn compare(want: &[u8], got: &[u8], what: &str) {
    assert_eq!(want.len(), got.len(), "{what}: length");
    if let Some(at) = want.iter().zip(got).position(|(a, b)| a != b) {
        let wrong = want.iter().zip(got).filter(|(a, b)| a != b).count();
        let end = (at + 8).min(want.len());
        panic!(
            "{what}: {wrong} of {} bytes are wrong, the first at {at}: {:x?} instead of {:x?}",
            want.len(),
            &got[at..end],
            &want[at..end]
        );
    }
}

fn regions(world: &World, can: &Abilities, rng: &mut Rng) -> Vec<Region> {
    let mut all = Vec::new();
    for (segment, pieces) in world.model.pieces.iter().enumerate() {
        let members = &world.groups[world.segments[segment].0];
        for &target in members {
            let len = pieces[target].len();
            let parts = if len < 200 { 1 } else { members.len() + 2 };
            let mut cuts: Vec<usize> = (1..parts).map(|_| rng.below(len) / 16 * 16).collect();
            cuts.extend([0, len]);
            cuts.sort_unstable();
            for pair in cuts.windows(2).filter(|p| p[0] < p[1]) {
                let owner = match rng.below(8) {
                    0 => Owner::Nobody,
                    1 if !can.types.is_empty() => Owner::All(*rng.pick(can.types)),
                    _ => Owner::Rank(*rng.pick(members)),
                };
                all.push(Region { segment, target, from: pair[0], to: pair[1], owner });
            }
        }
    }
    all
}

fn prepare(ctx: &Ctx, world: &mut World, regions: &[Region], rng: &mut Rng) {
    for r in regions {
        let Owner::All(which) = r.owner else { continue };
        let seed = rng.next();
        let scale = model::scale(&mut Rng::new(seed, &[]), which);
        let piece = &mut world.model.pieces[r.segment][r.target][r.from..r.to];
        model::fill_elements(&mut Rng::new(seed, &[1]), scale, piece);
        if r.target == ctx.me {
            let place = world.segments[r.segment].1.as_ref().expect("own memory");
            place.bytes()[r.from..r.to].copy_from_slice(piece);
        }
    }
}

/// Draws a part of a region that starts on a grid of 16 bytes and is disjoint from earlier parts.
fn part(rng: &mut Rng, r: &Region, cursor: &mut usize) -> Option<(usize, usize)> {
    let room = r.to.saturating_sub(*cursor);
    if room == 0 {
        return None;
    }
    let len = match rng.below(6) {
        0 => room,
        1 => (*rng.pick(&[1, 2, 4, 4, 8, 8, 16])).min(room),
        _ => rng.range(1, room.min(6000)),
    };
    let from = *cursor;
    *cursor = (from + len).next_multiple_of(16);
    Some((from, from + len))
}

fn word(can: &Abilities, r: &Region, rng: &mut Rng) -> Option<WordAt> {
    let (known, wide, op) = match r.owner {
        Owner::Rank(_) => (true, rng.one_in(2), *rng.pick(can.words)),
        Owner::All(which) if which < 2 => (false, which == 1, Combine::Add),
        _ => return None,
    };
    let wide = if can.unit == 1 { wide } else { can.has_words(true) };
    let at = r.from + rng.below((r.to - r.from).min(400) / 8) * 8;
    // The operand of an addition is an int in some interfaces, whatever the word is.
    let short = op == Combine::Add || rng.one_in(2);
    let value = if short { i64::from(rng.next() as i32) } else { rng.next() as i64 };
    let unsigned = rng.one_in(2);
    let word = Word { op, wide, unsigned, target: r.target, value, expected: 0 };
    let word = Word { value: word.cut(value), ..word };
    (at + 8 <= r.to).then(|| WordAt { word, segment: r.segment, at, hits: rng.one_in(2), known })
}

fn plan(
    world: &World,
    can: &Abilities,
    regions: &[Region],
    rank: usize,
    rng: &mut Rng,
    steps: usize,
) -> Vec<Step> {
    let member = |r: &&Region| world.groups[world.segments[r.segment].0].contains(&rank);
    let usable: Vec<Region> = regions
        .iter()
        .filter(member)
        .filter(|r| r.owner == Owner::Rank(rank) || !matches!(r.owner, Owner::Rank(_)))
        .copied()
        .collect();
    let mut plan = Vec::new();
    if usable.is_empty() {
        return plan;
    }
    while plan.len() < steps {
        let mut chosen = rng.below(usable.len());
        if !can.words.is_empty() && rng.one_in(5) {
            plan.extend(word(can, &usable[chosen], rng).map(Step::Word));
            continue;
        }
        // Half of the steps are a single blocking item.
        let mode = if rng.one_in(2) { can.modes[0] } else { *rng.pick(can.modes) };
        let most = match mode {
            Mode::Blocking => 1,
            Mode::Aggregate => 60,
            _ => 12,
        };
        let mut cursors: Vec<usize> = usable.iter().map(|r| r.from).collect();
        let mut items = Vec::new();
        let gets = rng.one_in(2);
        for _ in 0..rng.range(1, most) {
            if mode != Mode::Aggregate || rng.one_in(10) {
                chosen = rng.below(usable.len());
            }
            let r = &usable[chosen];
            let Some(bounds) = part(rng, r, &mut cursors[chosen]) else { continue };
            let place = (r.segment, r.target);
            let fit = |(from, to)| (from, to - (to - from) % can.unit);
            let kind = match r.owner {
                Owner::Nobody => TransferKind::Get,
                Owner::All(which) => TransferKind::Accumulate(model::scale(rng, which)),
                Owner::Rank(_) => match rng.below(3) {
                    0 => TransferKind::Get,
                    1 if !can.types.is_empty() => {
                        let which = *rng.pick(can.types);
                        TransferKind::Accumulate(model::scale(rng, which))
                    }
                    _ => TransferKind::Put,
                },
            };
            if mode == Mode::Aggregate {
                let kind = if gets { TransferKind::Get } else { TransferKind::Put };
                let allowed =
                    matches!(r.owner, Owner::Rank(_)) || (gets && r.owner == Owner::Nobody);
                if allowed {
                    items.push(whole(rng, kind, place, fit(bounds), None));
                }
                continue;
            }
            if let (TransferKind::Accumulate(scale), Owner::Rank(_)) = (kind, r.owner) {
                let typed = whole(rng, TransferKind::Put, place, fit(bounds), Some(scale));
                plan.push(Step::Moves(Mode::Blocking, vec![typed]));
            }
            let vectors = rng.one_in(4);
            let item = model::item(rng, kind, place, bounds, (can.unit, vectors));
            items.extend(item.filter(|item| can.takes(item)));
        }
        plan.push(Step::Moves(mode, items));
    }
    plan
}

/// Returns a contiguous item over all of `from..to`. If `elements` is set, the source of a put
/// holds elements of that type.
fn whole(
    rng: &mut Rng,
    kind: TransferKind,
    (segment, target): (usize, usize),
    (from, to): (usize, usize),
    elements: Option<Scale>,
) -> Item {
    let form = Form::Strided { counts: vec![to - from], local: vec![], remote: vec![] };
    let local_len = to - from + 16;
    Item {
        kind,
        segment,
        target,
        at: from,
        local_at: 8,
        local_len,
        form,
        seed: rng.next(),
        elements,
    }
}

/// Performs a step, and compares what the rank itself sees with the model.
fn carry_out(calls: &mut dyn Interface, world: &mut World, at: &str, plan: &Step, rng: &mut Rng) {
    let (mode, items) = match plan {
        Step::Moves(mode, items) => (*mode, items),
        Step::Word(place) => {
            let (word, old) = place.apply(&mut world.model);
            let remote = world.address(place.segment, word.target) + place.at;
            let got = calls.word(&word, remote);
            if word.op == Combine::CompareSwap && !calls.abilities().tells {
                assert_eq!(got == word.expected, old == word.expected, "{at}: {place:?}");
            } else if place.known {
                assert_eq!(got, old, "{at}: {place:?}");
            }
            return;
        }
    };
    let scratch = own(&world.scratch);
    let mut free = 0;
    let mut heap: Vec<Vec<u8>> = items.iter().map(Item::local).collect();
    let buffers: Vec<*mut [u8]> = heap
        .iter_mut()
        .map(|bytes| match scratch.get_mut(free..free + bytes.len()) {
            Some(place) if rng.one_in(3) => {
                place.copy_from_slice(bytes);
                free += bytes.len();
                &raw mut *place
            }
            _ => &raw mut bytes[..],
        })
        .collect();
    let moves: Vec<Move<'_>> = items
        .iter()
        .zip(&buffers)
        .map(|(item, buffer)| Move {
            item,
            remote: world.address(item.segment, item.target) + item.at,
            local: buffer.cast::<u8>().wrapping_add(item.local_at),
        })
        .collect();
    // SAFETY: the buffers have all bytes that the forms name, and outlive the call.
    unsafe { calls.perform(mode, &moves, rng) };
    for (i, (item, buffer)) in items.iter().zip(&buffers).enumerate() {
        let want = item.apply(&mut world.model);
        let what = format!("{at}, item {i} ({mode:?}): local buffer of {item:?}");
        // SAFETY: the buffer is a part of `heap` or of the segment, and no transfer is under way.
        compare(&want, unsafe { &**buffer }, &what);
    }
    drop(heap);
}

pub fn random(ctx: &Ctx) {
    let mut calls = Ops::new(ctx);
    run(ctx, &mut calls, if ctx.quick { (4, 20) } else { (6, 25) });
    calls.end();
}

/// Runs a number of phases, each with a number of steps.
pub fn run(ctx: &Ctx, calls: &mut dyn Interface, (phases, steps): (usize, usize)) {
    let mut rng = Rng::new(ctx.seed, &[ctx.n as u64]);
    let mut world = World::new(ctx, calls, &mut rng);
    let can = calls.abilities();
    for s in 0..5 {
        world.allocate(ctx, calls, &mut rng, s);
    }
    for phase in 0..phases {
        step(format!("random: phase {phase}, preparing"));
        if phase > 0 {
            let s = rng.below(world.segments.len());
            world.free(calls, &mut rng, s);
            world.allocate(ctx, calls, &mut rng, s);
        }
        let regions = regions(&world, &can, &mut rng);
        prepare(ctx, &mut world, &regions, &mut rng);
        calls.meet(&mut rng);
        let seed = rng.next();
        for rank in 0..ctx.n {
            let mut rng = Rng::new(seed, &[rank as u64]);
            for (i, plan) in plan(&world, &can, &regions, rank, &mut rng, steps).iter().enumerate()
            {
                if rank == ctx.me {
                    let at = format!("phase {phase}, step {i}");
                    match plan {
                        Step::Moves(mode, _) => step(format!("random: {at}: {mode:?}")),
                        Step::Word(place) => step(format!("random: {at}: {:?}", place.word.op)),
                    }
                    carry_out(calls, &mut world, &at, plan, &mut rng);
                } else {
                    match plan {
                        Step::Moves(_, items) => {
                            items.iter().for_each(|item| drop(item.apply(&mut world.model)));
                        }
                        Step::Word(place) => drop(place.apply(&mut world.model)),
                    }
                }
            }
        }
        step(format!("random: phase {phase}, verifying"));
        calls.meet(&mut rng);
        world.verify(ctx, phase);
        ctx.barrier();
    }
    for s in 0..world.segments.len() {
        world.free(calls, &mut rng, s);
    }
    ctx.free(world.scratch);
    (1..world.groups.len()).for_each(|number| calls.teams().free(number));
}
