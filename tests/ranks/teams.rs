//! Groups, their memory and their collectives, through any interface that has them, compared with a
//! model.
//!
//! All ranks draw the same plan: groups of groups, memory of each, and collectives in a random
//! order without barriers between them. The input of each rank follows from the seed, so each rank
//! computes what every collective gives it. Values are small whole numbers, which are exact in each
//! type.

use crate::child::{Ctx, step};
use crate::contention::copy;
use crate::interface::{Interface, Ops};
use crate::rng::Rng;
use portolan_engine::collective::group::Group;
use portolan_engine::collective::{Kind as Call, Operator};
use portolan_engine::memory::segment::Segment;
use portolan_engine::runtime::Engine;
use portolan_engine::transfer::TransferKind;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Element {
    Int,
    Long,
    Float,
    Double,
}

impl Element {
    const ALL: [Element; 4] = [Element::Int, Element::Long, Element::Float, Element::Double];

    pub fn size(self) -> usize {
        if matches!(self, Element::Int | Element::Float) { 4 } else { 8 }
    }

    pub fn is_float(self) -> bool {
        matches!(self, Element::Float | Element::Double)
    }

    /// [`i64::MIN`] becomes NaN in the types that have it.
    fn encode(self, value: i64) -> Vec<u8> {
        let nan = value == i64::MIN;
        match self {
            Element::Int => (value as i32).to_ne_bytes().to_vec(),
            Element::Long => value.to_ne_bytes().to_vec(),
            Element::Float => if nan { f32::NAN } else { value as f32 }.to_ne_bytes().to_vec(),
            Element::Double => if nan { f64::NAN } else { value as f64 }.to_ne_bytes().to_vec(),
        }
    }

    fn decode(self, bytes: &[u8]) -> f64 {
        match self {
            Element::Int => i32::from_ne_bytes(bytes.try_into().expect("4 bytes")).into(),
            Element::Long => i64::from_ne_bytes(bytes.try_into().expect("8 bytes")) as f64,
            Element::Float => f32::from_ne_bytes(bytes.try_into().expect("4 bytes")).into(),
            Element::Double => f64::from_ne_bytes(bytes.try_into().expect("8 bytes")),
        }
    }
}

/// The members of a group that take part together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scope {
    All,
    /// The members on the node of the caller.
    Node,
    /// The first member on each node.
    Masters,
    /// The half of the members, in the order of the group, that has the caller.
    Half,
}

impl Scope {
    /// Returns the ranks that take part with a member, as ranks of the world.
    fn part(self, ctx: &Ctx, members: &[usize], me: usize) -> Vec<usize> {
        let node = |rank: usize| ctx.engine.topology.node_of(rank);
        match self {
            Scope::All => members.to_vec(),
            Scope::Node => members.iter().copied().filter(|&r| node(r) == node(me)).collect(),
            Scope::Masters => {
                let first = |&r: &usize| members.iter().find(|&&other| node(other) == node(r));
                members.iter().copied().filter(|r| first(r) == Some(r)).collect()
            }
            Scope::Half => {
                let (first, rest) = members.split_at(members.len().div_ceil(2));
                if first.contains(&me) { first } else { rest }.to_vec()
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    Barrier,
    Broadcast,
    /// To all, or to the root only.
    Reduce {
        op: Operator,
        to_root: bool,
    },
    Scan {
        op: Operator,
        exclusive: bool,
    },
    AllGather,
    Gather,
    Scatter,
    Exchange,
    /// Each passes its bytes on to the next.
    Shift,
    /// The record with the smallest or largest first element, of those whose bit is set.
    Select {
        max: bool,
        contributes: u64,
    },
}

#[derive(Debug)]
pub struct Collective {
    pub kind: Kind,
    pub scope: Scope,
    /// The ranks of the world that take part.
    pub part: Vec<usize>,
    /// The position of the caller in `part`.
    pub place: Option<usize>,
    /// The position of the root, and whether it is the first for all parts.
    pub root: usize,
    pub first: bool,
    pub element: Element,
    pub count: usize,
}

impl Collective {
    fn draw(ctx: &Ctx, members: &[usize], rng: &mut Rng) -> Collective {
        use Operator::*;
        let element = *rng.pick(&Element::ALL);
        let mut op = *rng.pick(&[
            Sum, Product, Min, Max, AbsMin, AbsMax, Abs, Or, LogicalAnd, LogicalOr, And, Xor,
        ]);
        let kind = match rng.below(14) {
            0 => Kind::Barrier,
            1 | 2 => Kind::Broadcast,
            3 => Kind::AllGather,
            4 => Kind::Gather,
            5 => Kind::Scatter,
            6 => Kind::Exchange,
            7 => Kind::Shift,
            8 => Kind::Select { max: rng.one_in(2), contributes: rng.next() },
            9 => {
                op = *rng.pick(&[Sum, Product, Min, Max]);
                Kind::Scan { op, exclusive: rng.one_in(2) }
            }
            _ => Kind::Reduce { op, to_root: rng.one_in(3) },
        };
        let element = if kind == Kind::AllGather { Element::Long } else { element };
        let scope = *rng.pick(&[Scope::All, Scope::All, Scope::Node, Scope::Masters, Scope::Half]);
        let count = match kind {
            Kind::AllGather => *rng.pick(&[1, 1, 25, 1125]),
            _ => *rng.pick(&[0, 1, 1, 3, 5, 16, 129, 1025, 9000, 30_000]),
        };
        let part = scope.part(ctx, members, ctx.me);
        let place = part.iter().position(|&rank| rank == ctx.me);
        // A rank outside the group may have an empty part.
        let (first, any) = (rng.one_in(2), rng.below(64) % part.len().max(1));
        let root = if first { 0 } else { any };
        Collective { kind, scope, part, place, root, first, element, count }
    }

    /// The model does not distinguish the zeros of floating-point numbers.
    fn clear_signs_of_zero(&self, data: &mut [u8]) {
        if matches!(self.kind, Kind::Reduce { .. } | Kind::Scan { .. }) && self.element.is_float() {
            let zeros = data.chunks_mut(self.element.size());
            zeros.filter(|x| self.element.decode(x) == 0.0).for_each(|x| x.fill(0));
        }
    }

    /// Returns the bytes that a rank passes.
    fn input(&self, seed: u64, rank: usize) -> Vec<u8> {
        let mut rng = Rng::new(seed, &[rank as u64]);
        let bytes = self.count * self.element.size();
        match self.kind {
            Kind::Reduce { .. } | Kind::Scan { .. } => {
                let value = |_| self.element.encode(rng.below(9) as i64 - 4);
                (0..self.count).flat_map(value).collect()
            }
            Kind::Select { .. } => {
                let value = if rng.one_in(4) { i64::MIN } else { rng.below(3) as i64 - 1 };
                // A long of this value is the smallest of all.
                let mut record = self.element.encode(value);
                record.extend(rng.bytes(bytes));
                record
            }
            Kind::Scatter | Kind::Exchange => rng.bytes(bytes * self.part.len()),
            Kind::Barrier => Vec::new(),
            _ => rng.bytes(bytes),
        }
    }

    /// Returns what the caller has after the call.
    fn output(&self, seed: u64, me: usize) -> Vec<u8> {
        let mine = self.input(seed, me);
        let Some(place) = self.place else { return mine };
        let all: Vec<_> = self.part.iter().map(|&rank| self.input(seed, rank)).collect();
        let bytes = self.count * self.element.size();
        let at_root = place == self.root;
        match self.kind {
            Kind::Barrier => mine,
            Kind::Broadcast => all[self.root].clone(),
            Kind::Reduce { to_root: true, .. } if !at_root => mine,
            Kind::Reduce { op: Operator::Abs, .. } => {
                self.folded(&all[place..=place], Operator::Abs)
            }
            Kind::Reduce { op, .. } => self.folded(&all, op),
            Kind::Scan { op, exclusive: false } => self.folded(&all[..=place], op),
            Kind::Scan { op, .. } if place > 0 => self.folded(&all[..place], op),
            Kind::Scan { op, .. } => {
                let first = match (op, self.element) {
                    (Operator::Sum, _) => self.element.encode(0),
                    (Operator::Product, _) => self.element.encode(1),
                    (Operator::Min, Element::Int) => i32::MAX.to_ne_bytes().to_vec(),
                    (Operator::Min, Element::Long) => i64::MAX.to_ne_bytes().to_vec(),
                    (Operator::Min, Element::Float) => f32::INFINITY.to_ne_bytes().to_vec(),
                    (Operator::Min, Element::Double) => f64::INFINITY.to_ne_bytes().to_vec(),
                    (_, Element::Int) => i32::MIN.to_ne_bytes().to_vec(),
                    (_, Element::Long) => i64::MIN.to_ne_bytes().to_vec(),
                    (_, Element::Float) => f32::NEG_INFINITY.to_ne_bytes().to_vec(),
                    (_, Element::Double) => f64::NEG_INFINITY.to_ne_bytes().to_vec(),
                };
                first.repeat(self.count)
            }
            Kind::AllGather => all.concat(),
            Kind::Gather if at_root => all.concat(),
            Kind::Gather => mine,
            Kind::Scatter => all[self.root][place * bytes..][..bytes].to_vec(),
            Kind::Exchange => {
                all.iter().flat_map(|from| &from[place * bytes..][..bytes]).copied().collect()
            }
            Kind::Shift => all[(place + all.len() - 1) % all.len()].clone(),
            Kind::Select { max, contributes } => {
                let key = |i: usize| self.element.decode(&all[i][..self.element.size()]);
                let mut best: Option<usize> = None;
                for i in (0..all.len()).filter(|&i| contributes >> self.part[i] & 1 == 1) {
                    let wins = |old: usize| {
                        let (old, new) = (key(old), key(i));
                        let beats = if max { new > old } else { new < old };
                        beats || old.is_nan() && !new.is_nan()
                    };
                    if best.is_none_or(wins) {
                        best = Some(i);
                    }
                }
                best.map_or(mine, |i| all[i].clone())
            }
        }
    }

    fn folded(&self, all: &[Vec<u8>], op: Operator) -> Vec<u8> {
        let (size, floats) = (self.element.size(), self.element.is_float());
        let truth = |x: i64| i64::from(x != 0);
        let column = |i: usize| {
            let values = all.iter().map(|v| self.element.decode(&v[i * size..][..size]) as i64);
            let result = match op {
                Operator::Sum => values.sum(),
                Operator::Product => values.product(),
                Operator::Min => values.min().expect("some"),
                Operator::Max => values.max().expect("some"),
                Operator::AbsMin | Operator::Abs => values.map(i64::abs).min().expect("some"),
                Operator::AbsMax => values.map(i64::abs).max().expect("some"),
                Operator::LogicalAnd => values.map(truth).min().expect("some"),
                Operator::LogicalOr => values.map(truth).max().expect("some"),
                Operator::And if floats => values.map(truth).min().expect("some"),
                Operator::Or if floats => values.map(truth).max().expect("some"),
                Operator::Xor if floats => values.map(truth).sum::<i64>() % 2,
                Operator::And => values.fold(!0, |a, b| a & b),
                Operator::Or => values.fold(0, |a, b| a | b),
                Operator::Xor => values.fold(0, |a, b| a ^ b),
                other => unreachable!("{other:?}"),
            };
            self.element.encode(result)
        };
        (0..self.count).flat_map(column).collect()
    }
}

/// The groups of an interface. The caller numbers groups and their memory; group 0 is the world.
/// Members pass the same arguments, and numbers that they draw are the same.
pub trait Teams {
    fn can(&self, team: usize, what: &Collective) -> bool;

    /// Makes a group of some members of the parent, which all call it. `members` are ranks of the
    /// world.
    fn create(&mut self, team: usize, parent: usize, members: &[usize], rng: &mut Rng);

    /// Collective over the members of the parent.
    fn free(&mut self, team: usize);

    /// Returns the address of each member's part, or 0 if the part has no bytes.
    fn allocate(&mut self, memory: usize, team: usize, bytes: usize, rng: &mut Rng) -> Vec<usize>;

    fn release(&mut self, memory: usize, rng: &mut Rng);

    fn collect(&mut self, team: usize, what: &Collective, data: &mut Vec<u8>, rng: &mut Rng);

    /// Makes changes, each while it has a lock of the group at the rank `home` of the world.
    fn under_lock(&mut self, team: usize, home: usize, times: usize, change: &mut dyn FnMut());

    /// Returns the addresses that the members pass.
    fn addresses(&mut self, team: usize, members: &[usize], mine: usize) -> Vec<usize> {
        let (part, kind, scope) = (members.to_vec(), Kind::AllGather, Scope::All);
        let (place, root, first, element, count) = (None, 0, true, Element::Long, 1);
        let what = Collective { kind, scope, part, place, root, first, element, count };
        let mut data = mine.to_ne_bytes().to_vec();
        self.collect(team, &what, &mut data, &mut Rng::new(1, &[]));
        bytemuck::pod_collect_to_vec(&data)
    }
}

/// The groups of the engine.
pub struct EngineTeams {
    engine: Arc<Engine>,
    teams: BTreeMap<usize, Arc<Group>>,
    memory: BTreeMap<usize, Arc<Segment>>,
}

impl EngineTeams {
    pub fn new(engine: &Arc<Engine>) -> EngineTeams {
        let teams = BTreeMap::from([(0, engine.world().clone())]);
        EngineTeams { engine: engine.clone(), teams, memory: BTreeMap::new() }
    }
}

impl Teams for EngineTeams {
    fn can(&self, _: usize, what: &Collective) -> bool {
        what.scope == Scope::All && !matches!(what.kind, Kind::Shift | Kind::Select { .. })
    }

    fn create(&mut self, team: usize, parent: usize, members: &[usize], _: &mut Rng) {
        let parent = &self.teams[&parent];
        let ranks: Vec<_> = members.iter().map(|&r| parent.rank_of(r).expect("a member")).collect();
        let made = self.engine.create_group(parent, &ranks).expect("create a group");
        assert_eq!(made.is_some(), members.contains(&self.engine.rank()));
        if let Some(made) = made {
            assert_eq!(made.members(), members);
            self.teams.insert(team, made);
        }
    }

    fn free(&mut self, team: usize) {
        if let Some(group) = self.teams.remove(&team) {
            self.engine.free_group(&group).expect("free a group");
        }
    }

    fn allocate(&mut self, memory: usize, team: usize, bytes: usize, _: &mut Rng) -> Vec<usize> {
        let segment = self.engine.allocate(&self.teams[&team], bytes).expect("allocate");
        let bases = segment.parts().map(|part| part.address()).collect();
        self.memory.insert(memory, segment);
        bases
    }

    fn release(&mut self, memory: usize, rng: &mut Rng) {
        let segment = self.memory.remove(&memory).expect("memory");
        let group = segment.group().clone();
        // Memory that is empty on all ranks lacks an address.
        if rng.one_in(2) || segment.parts().all(|part| part.is_empty()) {
            return self.engine.release(segment).expect("release");
        }
        let mine = segment.part(group.rank()).address();
        drop(segment);
        self.engine.release_at(&group, (mine != 0).then_some(mine)).expect("release by address");
    }

    fn collect(&mut self, team: usize, what: &Collective, data: &mut Vec<u8>, _: &mut Rng) {
        let (engine, group) = (&*self.engine, &self.teams[&team]);
        macro_rules! elements {
            ($x:ident, $body:expr) => {
                match what.element {
                    Element::Int => elements!(i32, $x, $body),
                    Element::Long => elements!(i64, $x, $body),
                    Element::Float => elements!(f32, $x, $body),
                    Element::Double => elements!(f64, $x, $body),
                }
            };
            ($ty:ty, $x:ident, $body:expr) => {{
                let mut $x: Vec<$ty> = bytemuck::pod_collect_to_vec(data);
                $body.expect("a reduction");
                *data = bytemuck::cast_slice(&$x).to_vec();
            }};
        }
        macro_rules! gather {
            ($n:expr) => {{
                let item: [u64; $n] = bytemuck::pod_read_unaligned(data);
                let all = group.allgather(engine, &item).expect("allgather");
                *data = all.iter().flat_map(|item| bytemuck::bytes_of(item)).copied().collect();
            }};
        }
        match what.kind {
            Kind::Barrier => group.barrier(engine).expect("barrier"),
            Kind::Broadcast => group.broadcast(engine, data, what.root).expect("broadcast"),
            Kind::Reduce { op, to_root } => {
                let root = to_root.then_some(what.root);
                elements!(x, group.reduce(engine, &mut x, op, root));
            }
            Kind::Scan { op, exclusive } => {
                let kind = if exclusive { Call::ExclusiveScan } else { Call::Scan };
                elements!(x, group.scan(engine, kind, &mut x, op));
            }
            Kind::AllGather => match what.count {
                1 => gather!(1),
                25 => gather!(25),
                _ => gather!(1125),
            },
            Kind::Gather => {
                let got = group.gather(engine, data, what.root).expect("gather");
                *data = got.unwrap_or(std::mem::take(data));
            }
            Kind::Scatter => {
                let mut mine = vec![0; what.count * what.element.size()];
                group.scatter(engine, data, &mut mine, what.root).expect("scatter");
                *data = mine;
            }
            Kind::Exchange => *data = group.all_to_all(engine, data).expect("all_to_all"),
            Kind::Shift | Kind::Select { .. } => unreachable!("the engine has no {what:?}"),
        }
    }

    fn under_lock(&mut self, team: usize, home: usize, times: usize, change: &mut dyn FnMut()) {
        let (engine, group) = (&*self.engine, &self.teams[&team]);
        let (set, home) = (engine.create_mutexes(group, 1), group.rank_of(home).expect("a member"));
        let set = set.expect("mutexes");
        for _ in 0..times {
            engine.lock(&set, 0, home).expect("lock");
            change();
            engine.unlock(&set, 0, home).expect("unlock");
        }
        engine.destroy_mutexes(&set).expect("destroy");
    }
}

/// Returns own memory. Checks access it only while no other rank does.
pub fn memory_at(base: usize, len: usize) -> &'static mut [u8] {
    if len == 0 {
        return &mut [];
    }
    // SAFETY: the caller's memory is mapped, and the slice is gone before it is freed.
    unsafe { std::slice::from_raw_parts_mut(base as *mut u8, len) }
}

struct Memory {
    team: usize,
    lens: Vec<usize>,
    bases: Vec<usize>,
}

struct Run<'a> {
    ctx: &'a Ctx,
    calls: &'a mut dyn Interface,
    /// The members of each live group.
    teams: BTreeMap<usize, Vec<usize>>,
    memory: BTreeMap<usize, Memory>,
    made: usize,
}

impl Run<'_> {
    fn is_member(&self, team: usize) -> bool {
        self.teams[&team].contains(&self.ctx.me)
    }

    fn pick(&self, rng: &mut Rng) -> usize {
        let numbers: Vec<usize> = self.teams.keys().copied().collect();
        *rng.pick(&numbers)
    }

    fn create(&mut self, rng: &mut Rng) {
        let parent = self.pick(rng);
        let mut members = self.teams[&parent].clone();
        rng.shuffle(&mut members);
        members.truncate(rng.range(1, members.len()));
        if rng.one_in(4) {
            members = self.teams[&parent].clone();
        }
        self.made += 1;
        step(format!("teams: group {} of {members:?}, a part of {parent}", self.made));
        let mut draws = Rng::new(rng.next(), &[]);
        if self.is_member(parent) {
            self.calls.teams().create(self.made, parent, &members, &mut draws);
        }
        self.teams.insert(self.made, members);
    }

    fn allocate(&mut self, rng: &mut Rng) {
        let team = self.pick(rng);
        let same = rng.one_in(3).then(|| rng.below(3000));
        let lens: Vec<usize> = self.teams[&team]
            .iter()
            .map(|_| match rng.below(4) {
                0 => 0,
                1 => *rng.pick(&[1, 3, 12, 40, 4095, 4104, 65_537, 1 << 21]),
                _ => rng.below(9000),
            })
            .map(|len| same.unwrap_or(len))
            .collect();
        self.made += 1;
        step(format!("teams: {lens:?} bytes of group {team}"));
        let mut draws = Rng::new(rng.next(), &[]);
        let mut bases = Vec::new();
        if let Some(place) = self.place(team) {
            bases = self.calls.teams().allocate(self.made, team, lens[place], &mut draws);
            assert_eq!(bases.len(), lens.len());
            for (base, len) in bases.iter().zip(&lens) {
                assert_eq!(*base == 0, *len == 0, "{len} bytes at {base:#x}");
            }
            assert!(bases[place].is_multiple_of(16), "memory at {:#x}", bases[place]);
        }
        self.memory.insert(self.made, Memory { team, lens, bases });
    }

    fn place(&self, team: usize) -> Option<usize> {
        self.teams[&team].iter().position(|&rank| rank == self.ctx.me)
    }

    fn collect(&mut self, rng: &mut Rng) {
        // Some calls exist for the world only.
        let team = if rng.one_in(3) { 0 } else { self.pick(rng) };
        let teams = self.calls.teams();
        let what = loop {
            let what = Collective::draw(self.ctx, &self.teams[&team], rng);
            // Ranks outside the group draw the same numbers, so they decide alike.
            if teams.can(team, &what) {
                break what;
            }
        };
        let (seed, mut draws) = (rng.next(), Rng::new(rng.next(), &[]));
        if !self.is_member(team) {
            return;
        }
        let text = format!("{:?} of {:?}, {what:?}", what.kind, self.teams[&team]);
        step(format!("teams: {text}"));
        let mut data = what.input(seed, self.ctx.me);
        self.calls.teams().collect(team, &what, &mut data, &mut draws);
        what.clear_signs_of_zero(&mut data);
        let want = what.output(seed, self.ctx.me);
        assert_eq!(data.len(), want.len(), "bytes of {text}");
        let wrong = data.iter().zip(&want).position(|(a, b)| a != b);
        assert_eq!(wrong, None, "the first wrong byte of {text}");
    }

    fn barrier(&mut self, team: usize) {
        let (kind, scope, part) = (Kind::Barrier, Scope::All, self.teams[&team].clone());
        let (place, root, first, element, count) = (self.place(team), 0, true, Element::Int, 0);
        let what = Collective { kind, scope, part, place, root, first, element, count };
        self.calls.teams().collect(team, &what, &mut Vec::new(), &mut Rng::new(2, &[]));
    }

    /// Each member fills the part of the next one. After a fence and a barrier of the group, the bytes
    /// are there. They stay until the next phase, while other memory is allocated and freed.
    fn fill(&mut self, id: usize, seed: u64) {
        let Memory { team, lens, bases } = &self.memory[&id];
        let (team, Some(place)) = (*team, self.place(*team)) else { return };
        let next = (place + 1) % lens.len();
        step(format!("teams: memory {id} of group {team}"));
        let bytes = |place: usize| Rng::new(seed, &[id as u64, place as u64]).bytes(lens[place]);
        let (target, base, len) = (self.teams[&team][next], bases[next], lens[next]);
        let (own, want) = (memory_at(bases[place], lens[place]), bytes(place));
        let (mut given, mut got) = (bytes(next), vec![0; len]);
        let mode = self.calls.abilities().modes[0];
        if len > 0 {
            copy(self.calls, mode, TransferKind::Put, target, base, &mut given);
            copy(self.calls, mode, TransferKind::Get, target, base, &mut got);
            assert!(given == got, "{len} bytes of rank {target}");
        }
        self.ctx.engine.fence_all().expect("fence");
        self.barrier(team);
        assert!(own == want, "the own {} bytes of memory {id}", want.len());
    }

    fn locks(&mut self, rng: &mut Rng) {
        const TIMES: usize = 10;
        let team = self.pick(rng);
        let home = *rng.pick(&self.teams[&team]);
        if !self.is_member(team) {
            return;
        }
        step(format!("teams: a lock of group {team} at rank {home}"));
        let place = self.place(team).expect("a member");
        let (id, ctx, members) = (usize::MAX, self.ctx, self.teams[&team].clone());
        let bases = self.calls.teams().allocate(id, team, 8, &mut Rng::new(3, &[]));
        memory_at(bases[place], 8).fill(0);
        self.barrier(team);
        let at = bases[members.iter().position(|&rank| rank == home).expect("a member")];
        let mut add = || {
            let sum: u64 = ctx.load(home, at);
            std::thread::yield_now();
            ctx.store(home, at, sum + 1);
            ctx.engine.fence(home).expect("fence");
        };
        self.calls.teams().under_lock(team, home, TIMES, &mut add);
        self.barrier(team);
        let sum: u64 = ctx.load(home, at);
        assert_eq!(sum as usize, TIMES * members.len(), "additions under the lock");
        self.barrier(team);
        self.calls.teams().release(id, &mut Rng::new(3, &[]));
    }

    fn verify(&self, id: usize, seed: u64) {
        let Memory { team, lens, bases } = &self.memory[&id];
        let Some(place) = self.place(*team) else { return };
        let want = Rng::new(seed, &[id as u64, place as u64]).bytes(lens[place]);
        let own = memory_at(bases[place], lens[place]);
        assert!(own == want, "{} bytes of memory {id}, after other memory was freed", own.len());
    }

    fn release(&mut self, id: usize, rng: &mut Rng) {
        let mut draws = Rng::new(rng.next(), &[]);
        let memory = self.memory.remove(&id).expect("memory");
        if self.is_member(memory.team) {
            step(format!("teams: memory {id} ends"));
            self.calls.teams().release(id, &mut draws);
        }
    }

    /// Frees a group after its memory.
    fn free(&mut self, team: usize, rng: &mut Rng) {
        let its = |it: (&usize, &Memory)| (it.1.team == team).then_some(*it.0);
        for id in self.memory.iter().filter_map(its).collect::<Vec<_>>() {
            self.release(id, rng);
        }
        step(format!("teams: group {team} ends"));
        self.teams.remove(&team);
        self.calls.teams().free(team);
    }
}

/// Through the engine's calls.
pub fn teams(ctx: &Ctx) {
    let mut calls = Ops::new(ctx);
    run(ctx, &mut calls);
    calls.end();
}

/// Collective; all ranks call it with the same numbers.
pub fn run(ctx: &Ctx, calls: &mut dyn Interface) {
    let mut rng = Rng::new(ctx.seed, &[ctx.n as u64, 4]);
    let teams = BTreeMap::from([(0, (0..ctx.n).collect())]);
    let mut run = Run { ctx, calls, teams, memory: BTreeMap::new(), made: 0 };
    for _ in 0..if ctx.quick { 5 } else { 8 } {
        (0..2).for_each(|_| run.create(&mut rng));
        (0..4).for_each(|_| run.allocate(&mut rng));
        (0..if ctx.quick { 80 } else { 150 }).for_each(|_| run.collect(&mut rng));
        let seed = rng.next();
        let all: Vec<usize> = run.memory.keys().copied().collect();
        all.iter().for_each(|&id| run.fill(id, seed));
        run.locks(&mut rng);
        for id in all {
            if rng.one_in(3) {
                run.release(id, &mut rng);
            }
        }
        let live: Vec<usize> = run.teams.keys().copied().filter(|&team| team > 0).collect();
        for team in live {
            if rng.one_in(3) {
                run.free(team, &mut rng);
            }
        }
        run.memory.keys().for_each(|&id| run.verify(id, seed));
    }
    let mut live: Vec<usize> = run.teams.keys().copied().filter(|&team| team > 0).collect();
    rng.shuffle(&mut live);
    live.into_iter().for_each(|team| run.free(team, &mut rng));
    for id in run.memory.keys().copied().collect::<Vec<_>>() {
        run.release(id, &mut rng);
    }
    ctx.barrier();
}
