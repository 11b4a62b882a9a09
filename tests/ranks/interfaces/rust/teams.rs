//! The groups of the typed Rust interface.

use crate::rng::Rng;
use crate::teams::{Collective, Element, Kind, Scope, Teams};
use portolan::reduce::{And, Max, Min, Or, Product, Sum, Xor};
use portolan::{Group, Runtime, Segment};
use portolan_engine::collective::Operator;
use std::collections::BTreeMap;

pub struct RustTeams<'a> {
    rt: &'a Runtime,
    pub teams: BTreeMap<usize, Group<'a>>,
    memory: BTreeMap<usize, Segment<'a, u8>>,
}

impl<'a> RustTeams<'a> {
    pub fn new(rt: &'a Runtime) -> RustTeams<'a> {
        RustTeams { rt, teams: BTreeMap::from([(0, rt.world())]), memory: BTreeMap::new() }
    }
}

/// Calls `$call` with the elements of `$data` and the operator.
macro_rules! typed {
    ($what:expr, $op:expr, $data:ident, |$x:ident, $o:ident| $call:expr) => {
        match $what.element {
            Element::Int => typed!(i32, integer $op, $data, $x, $o, $call),
            Element::Long => typed!(i64, integer $op, $data, $x, $o, $call),
            Element::Float => typed!(f32, float $op, $data, $x, $o, $call),
            Element::Double => typed!(f64, float $op, $data, $x, $o, $call),
        }
    };
    ($ty:ty, integer $op:expr, $data:ident, $x:ident, $o:ident, $call:expr) => {
        typed!($ty, $op, $data, $x, $o, $call, Sum Product Min Max And Or Xor)
    };
    ($ty:ty, float $op:expr, $data:ident, $x:ident, $o:ident, $call:expr) => {
        typed!($ty, $op, $data, $x, $o, $call, Sum Product Min Max)
    };
    ($ty:ty, $op:expr, $data:ident, $x:ident, $o:ident, $call:expr, $($name:ident)+) => {{
        let mut all: Vec<$ty> = bytemuck::pod_collect_to_vec($data);
        let $x = &mut all;
        match $op {
            $(Operator::$name => {
                let $o = $name;
                $call
            })+
            other => unreachable!("the Rust interface has no {other:?} of them"),
        }
        .expect("a reduction");
        *$data = bytemuck::cast_slice(&all).to_vec();
    }};
}

impl Teams for RustTeams<'_> {
    fn can(&self, _: usize, what: &Collective) -> bool {
        use Operator::*;
        let floats = what.element.is_float();
        let op = match what.kind {
            Kind::Reduce { op, .. } | Kind::Scan { op, .. } => op,
            Kind::Shift | Kind::Select { .. } => return false,
            _ => Sum,
        };
        let known = match op {
            Sum | Product | Min | Max => true,
            And | Or | Xor => !floats,
            _ => false,
        };
        known && what.scope == Scope::All
    }

    fn create(&mut self, team: usize, parent: usize, members: &[usize], rng: &mut Rng) {
        let parent = &self.teams[&parent];
        let key = members.iter().position(|&rank| rank == self.rt.rank());
        let made = if rng.one_in(2) {
            let rank = |&member: &usize| parent.rank_of(member).expect("a member");
            parent.subgroup(&members.iter().map(rank).collect::<Vec<_>>())
        } else {
            parent.split(key.map(|_| 5), key.unwrap_or(0))
        };
        let made = made.expect("a group");
        assert_eq!(made.is_some(), key.is_some());
        if let Some(group) = made {
            assert_eq!((group.members(), Some(group.rank())), (members, key));
            self.teams.insert(team, group);
        }
    }

    fn free(&mut self, team: usize) {
        if let Some(group) = self.teams.remove(&team) {
            group.free().expect("free a group");
        }
    }

    fn allocate(&mut self, memory: usize, team: usize, bytes: usize, rng: &mut Rng) -> Vec<usize> {
        let group = &self.teams[&team];
        let segment = if rng.one_in(2) {
            group.allocate(bytes).expect("allocate")
        } else {
            let other = 30 * group.rank();
            let made = group.allocate_many(&[other, bytes]).expect("allocate_many");
            let [first, segment] = made.try_into().expect("two segments");
            assert_eq!(first.local().len(), other);
            first.free().expect("free");
            segment
        };
        assert!(segment.local().to_vec().iter().all(|&byte| byte == 0), "new elements");
        let mine = segment.local().as_ptr() as usize;
        let all = group.all_gather(if bytes > 0 { mine } else { 0 }).expect("all_gather");
        self.memory.insert(memory, segment);
        all
    }

    fn release(&mut self, memory: usize, _: &mut Rng) {
        self.memory.remove(&memory).expect("memory").free().expect("free");
    }

    fn collect(&mut self, team: usize, what: &Collective, data: &mut Vec<u8>, _: &mut Rng) {
        let group = &self.teams[&team];
        macro_rules! gather {
            ($n:expr) => {{
                let item: [u64; $n] = bytemuck::pod_read_unaligned(data);
                let all = group.all_gather(item).expect("all_gather");
                *data = all.iter().flat_map(|item| bytemuck::bytes_of(item)).copied().collect();
            }};
        }
        match what.kind {
            Kind::Barrier => group.barrier().expect("barrier"),
            Kind::Broadcast => group.broadcast(what.root, data).expect("broadcast"),
            Kind::Reduce { op, to_root: true } => {
                typed!(what, op, data, |x, o| group.reduce(what.root, x, o));
            }
            Kind::Reduce { op, .. } => typed!(what, op, data, |x, o| group.all_reduce(x, o)),
            Kind::Scan { op, exclusive: true } => {
                typed!(what, op, data, |x, o| group.scan_exclusive(x, o));
            }
            Kind::Scan { op, .. } => typed!(what, op, data, |x, o| group.scan(x, o)),
            Kind::AllGather => match what.count {
                1 => gather!(1),
                25 => gather!(25),
                _ => gather!(1125),
            },
            Kind::Gather => {
                let got = group.gather(what.root, data).expect("gather");
                *data = got.unwrap_or(std::mem::take(data));
            }
            Kind::Scatter => {
                let mut mine = vec![0; what.count * what.element.size()];
                let given = if group.rank() == what.root { &data[..] } else { &[] };
                group.scatter(what.root, given, &mut mine).expect("scatter");
                *data = mine;
            }
            Kind::Exchange => *data = group.all_to_all(data).expect("all_to_all"),
            Kind::Shift | Kind::Select { .. } => unreachable!("no {what:?}"),
        }
    }

    fn under_lock(&mut self, team: usize, home: usize, times: usize, change: &mut dyn FnMut()) {
        let group = &self.teams[&team];
        let (set, home) = (group.mutexes(1).expect("mutexes"), group.rank_of(home));
        for _ in 0..times {
            let guard = set.lock(home.expect("a member"), 0).expect("lock");
            change();
            guard.unlock().expect("unlock");
        }
        set.free().expect("free");
    }
}
