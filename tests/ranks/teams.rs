//! Collectives and what each rank has after them: a model of the groups of an interface, [`Teams`].
//! [`team_plans`](crate::team_plans) draws them.
//!
//! The input of each rank follows from the seed, so each rank computes what every collective gives
//! it. Values are small whole numbers, which are exact in each type.

use crate::child::Ctx;
use crate::rng::Rng;
use portolan_engine::collective::group::Group;
use portolan_engine::collective::{Kind as Call, Operator};
use portolan_engine::memory::segment::Segment;
use portolan_engine::runtime::Engine;
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
    pub fn draw(ctx: &Ctx, members: &[usize], rng: &mut Rng) -> Collective {
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
    pub fn clear_signs_of_zero(&self, data: &mut [u8]) {
        if matches!(self.kind, Kind::Reduce { .. } | Kind::Scan { .. }) && self.element.is_float() {
            let zeros = data.chunks_mut(self.element.size());
            zeros.filter(|x| self.element.decode(x) == 0.0).for_each(|x| x.fill(0));
        }
    }

    /// Returns the bytes that a rank passes.
    pub fn input(&self, seed: u64, rank: usize) -> Vec<u8> {
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
    pub fn output(&self, seed: u64, me: usize) -> Vec<u8> {
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

    /// Returns the address of each member's part, or 0 for an empty part.
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
        let (set, home) =
            (engine.create_mutexes(group, Ok(1)), group.rank_of(home).expect("a member"));
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
