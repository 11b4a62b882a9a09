//! Random transfers of all ranks at once, compared with the model.
//!
//! The run has phases with a barrier between them. In a phase every part of every segment is split
//! into regions. A region belongs to one rank, to no rank (all may read it) or to all ranks (all
//! may accumulate into it), so the outcome does not depend on the timing. All ranks draw the plans
//! of all ranks from the seed. Each rank executes its own plan, and applies all plans to its model.

use crate::child::{Ctx, own, step};
use crate::model::{self, Form, Item, Model};
use crate::rng::Rng;
use portolan_engine::collective::group::Group;
use portolan_engine::layout::{Shape, Vector};
use portolan_engine::memory::segment::Segment;
use portolan_engine::path::kernel::Scale;
use portolan_engine::transfer::{Handle, TransferKind};
use std::sync::Arc;

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

/// How a rank issues and completes several items, which access disjoint bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mode {
    Blocking,
    Handle,
    Implicit,
    Aggregate,
}

#[derive(Debug)]
struct Step {
    mode: Mode,
    items: Vec<Item>,
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

struct World {
    groups: Vec<(Vec<usize>, Option<Arc<Group>>)>,
    /// The number of the group and, for its members, the segment.
    segments: Vec<(usize, Option<Arc<Segment>>)>,
    model: Model,
}

fn lengths(rng: &mut Rng, n: usize) -> Vec<usize> {
    let list = [0, 1, 24, 100, 1000, 4104, 9000, 20_011, 70_001, 300_040];
    (0..n).map(|_| *rng.pick(&list)).collect()
}

impl World {
    fn new(ctx: &Ctx) -> World {
        let groups = memberships(ctx.n)
            .into_iter()
            .enumerate()
            .map(|(i, members)| {
                let group = if i == 0 {
                    Some(ctx.engine.world().clone())
                } else {
                    ctx.engine.create_group(ctx.engine.world(), &members).expect("create a group")
                };
                (members, group)
            })
            .collect();
        World { groups, segments: Vec::new(), model: Model::default() }
    }

    fn allocate(&mut self, ctx: &Ctx, rng: &mut Rng, s: usize) {
        let group = if s < 2 { 0 } else { s % self.groups.len() };
        let mut lengths = lengths(rng, ctx.n);
        let contents = rng.next();
        let (members, live) = &self.groups[group];
        for (rank, len) in lengths.iter_mut().enumerate() {
            *len = if members.contains(&rank) { *len } else { 0 };
        }
        let segment =
            live.as_ref().map(|g| ctx.engine.allocate(g, lengths[ctx.me]).expect("allocate"));
        let pieces: Vec<Vec<u8>> =
            (0..ctx.n).map(|r| Rng::new(contents, &[r as u64]).bytes(lengths[r])).collect();
        if let Some(segment) = &segment {
            own(segment).copy_from_slice(&pieces[ctx.me]);
        }
        let at = (group, segment);
        if s < self.segments.len() {
            self.segments[s] = at;
            self.model.pieces[s] = pieces;
        } else {
            self.segments.push(at);
            self.model.pieces.push(pieces);
        }
    }

    fn free(&mut self, ctx: &Ctx, s: usize) {
        if let Some(segment) = self.segments[s].1.take() {
            ctx.free(segment);
        }
    }

    fn address(&self, item: &Item) -> usize {
        let (group, segment) = &self.segments[item.segment];
        let group = self.groups[*group].1.as_ref().expect("a member plans the item");
        let rank = group.rank_of(item.target).expect("the target is a member");
        segment.as_ref().expect("allocated").part(rank).address() + item.at
    }

    fn verify(&self, ctx: &Ctx, phase: usize) {
        for (s, (group, segment)) in self.segments.iter().enumerate() {
            let Some(segment) = segment else { continue };
            for (i, &world) in self.groups[*group].0.iter().enumerate() {
                let want = &self.model.pieces[s][world];
                let got = ctx.get(world, segment.part(i).address(), want.len());
                compare(want, &got, &format!("phase {phase}: segment {s} at rank {world}"));
            }
            let want = &self.model.pieces[s][ctx.me];
            compare(want, own(segment), &format!("phase {phase}: own memory of segment {s}"));
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

fn regions(world: &World, rng: &mut Rng) -> Vec<Region> {
    let mut all = Vec::new();
    for (segment, pieces) in world.model.pieces.iter().enumerate() {
        let members = &world.groups[world.segments[segment].0].0;
        for &target in members {
            let len = pieces[target].len();
            let parts = if len < 200 { 1 } else { members.len() + 2 };
            let mut cuts: Vec<usize> = (1..parts).map(|_| rng.below(len) / 16 * 16).collect();
            cuts.extend([0, len]);
            cuts.sort_unstable();
            for pair in cuts.windows(2).filter(|p| p[0] < p[1]) {
                let owner = match rng.below(8) {
                    0 => Owner::Nobody,
                    1 => Owner::All(rng.below(9)),
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
            let segment = world.segments[r.segment].1.as_ref().expect("own segment");
            own(segment)[r.from..r.to].copy_from_slice(piece);
        }
    }
}

/// Draws a part of a region that starts on a grid of 16 bytes and is disjoint from earlier parts.
fn part(rng: &mut Rng, r: &Region, cursor: &mut usize) -> Option<(usize, usize)> {
    let room = r.to.saturating_sub(*cursor);
    if room == 0 {
        return None;
    }
    let len = if rng.one_in(4) { room } else { rng.range(1, room.min(6000)) };
    let from = *cursor;
    *cursor = (from + len).next_multiple_of(16);
    Some((from, from + len))
}

fn plan(world: &World, regions: &[Region], rank: usize, rng: &mut Rng, steps: usize) -> Vec<Step> {
    let member = |r: &&Region| world.groups[world.segments[r.segment].0].0.contains(&rank);
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
        let mode = *rng.pick(&[
            Mode::Blocking,
            Mode::Blocking,
            Mode::Handle,
            Mode::Implicit,
            Mode::Aggregate,
        ]);
        let most = match mode {
            Mode::Blocking => 1,
            Mode::Aggregate => 60,
            _ => 12,
        };
        let mut cursors: Vec<usize> = usable.iter().map(|r| r.from).collect();
        let mut items = Vec::new();
        let gets = rng.one_in(2);
        let mut chosen = rng.below(usable.len());
        for _ in 0..rng.range(1, most) {
            if mode != Mode::Aggregate || rng.one_in(10) {
                chosen = rng.below(usable.len());
            }
            let r = &usable[chosen];
            let Some(bounds) = part(rng, r, &mut cursors[chosen]) else { continue };
            let place = (r.segment, r.target);
            let kind = match r.owner {
                Owner::Nobody => TransferKind::Get,
                Owner::All(which) => TransferKind::Accumulate(model::scale(rng, which)),
                Owner::Rank(_) => match rng.below(3) {
                    0 => TransferKind::Put,
                    1 => TransferKind::Get,
                    _ => {
                        let which = rng.below(9);
                        TransferKind::Accumulate(model::scale(rng, which))
                    }
                },
            };
            if mode == Mode::Aggregate {
                let kind = if gets { TransferKind::Get } else { TransferKind::Put };
                let allowed =
                    matches!(r.owner, Owner::Rank(_)) || (gets && r.owner == Owner::Nobody);
                if allowed {
                    items.push(whole(rng, kind, place, bounds, None));
                }
                continue;
            }
            if let (TransferKind::Accumulate(scale), Owner::Rank(_)) = (kind, r.owner) {
                let typed = whole(rng, TransferKind::Put, place, bounds, Some(scale));
                plan.push(Step { mode: Mode::Blocking, items: vec![typed] });
            }
            let vectors = rng.one_in(4);
            items.extend(model::item(rng, kind, place, bounds, vectors));
        }
        plan.push(Step { mode, items });
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

/// The buffer must stay in place until the item is complete.
fn issue(
    ctx: &Ctx,
    address: usize,
    item: &Item,
    buffer: &mut [u8],
    mode: Mode,
    handle: &mut Handle,
) {
    let engine = &*ctx.engine;
    let local = buffer.as_mut_ptr().wrapping_add(item.local_at);
    let (kind, target) = (item.kind, item.target);
    // SAFETY: the buffer has all bytes that the form names, and outlives the waits for transfers.
    let done = unsafe {
        match &item.form {
            Form::Strided { counts, local: l, remote: r } => {
                let shape = Shape::strided(counts, l, r).expect("a shape");
                let plain = shape.is_contiguous() && !shape.is_empty();
                match mode {
                    Mode::Blocking if plain && kind == TransferKind::Put => {
                        engine.put(target, address, local, shape.bytes())
                    }
                    Mode::Blocking if plain && kind == TransferKind::Get => {
                        engine.get(target, address, local, shape.bytes())
                    }
                    Mode::Blocking => engine.blocking(kind, target, address, local, &shape),
                    Mode::Implicit => engine.implicit(kind, target, address, local, &shape),
                    _ => handle.issue(engine, kind, target, address, local, &shape),
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
    };
    done.unwrap_or_else(|e| panic!("{item:?}: {e}"));
}

fn carry_out(ctx: &Ctx, world: &mut World, at: &str, plan: &Step, rng: &mut Rng) {
    let engine = &*ctx.engine;
    let mut handle = Handle::default();
    if plan.mode == Mode::Aggregate {
        handle.set_aggregate().expect("a fresh handle");
    }
    let mut buffers: Vec<Vec<u8>> = plan.items.iter().map(Item::local).collect();
    for (item, buffer) in plan.items.iter().zip(&mut buffers) {
        let address = world.address(item);
        issue(ctx, address, item, buffer, plan.mode, &mut handle);
    }
    match plan.mode {
        Mode::Blocking => {}
        Mode::Implicit => {
            if rng.one_in(2) {
                for item in &plan.items {
                    engine.wait_implicit_to(item.target).expect("wait for a target");
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
    for (i, (item, buffer)) in plan.items.iter().zip(&buffers).enumerate() {
        let want = item.apply(&mut world.model);
        compare(
            &want,
            buffer,
            &format!("{at}, item {i} ({:?}): local buffer of {item:?}", plan.mode),
        );
    }
}

pub fn random(ctx: &Ctx) {
    let mut rng = Rng::new(ctx.seed, &[ctx.n as u64]);
    let mut world = World::new(ctx);
    let (phases, steps) = if ctx.quick { (4, 20) } else { (6, 25) };
    for s in 0..5 {
        world.allocate(ctx, &mut rng, s);
    }
    for phase in 0..phases {
        step(format!("random: phase {phase}, preparing"));
        if phase > 0 {
            let s = rng.below(world.segments.len());
            world.free(ctx, s);
            world.allocate(ctx, &mut rng, s);
        }
        let regions = regions(&world, &mut rng);
        prepare(ctx, &mut world, &regions, &mut rng);
        ctx.barrier();
        let seed = rng.next();
        for rank in 0..ctx.n {
            let mut rng = Rng::new(seed, &[rank as u64]);
            for (i, plan) in plan(&world, &regions, rank, &mut rng, steps).iter().enumerate() {
                if rank == ctx.me {
                    let at = format!("phase {phase}, step {i}");
                    step(format!("random: {at}: {:?}", plan.mode));
                    carry_out(ctx, &mut world, &at, plan, &mut rng);
                } else {
                    plan.items.iter().for_each(|item| drop(item.apply(&mut world.model)));
                }
            }
        }
        step(format!("random: phase {phase}, verifying"));
        ctx.barrier();
        world.verify(ctx, phase);
        ctx.barrier();
    }
    for s in 0..world.segments.len() {
        world.free(ctx, s);
    }
    for (_, group) in world.groups.drain(..).skip(1) {
        if let Some(group) = group {
            ctx.engine.free_group(&group).expect("free a group");
        }
    }
}
