//! Groups, their memory and their collectives, through any interface that has them, compared with
//! the model of [`teams`](crate::teams).
//!
//! All ranks draw the same plan: groups of groups, memory of each, and collectives in a random
//! order without barriers between them.

use crate::child::{Ctx, step};
use crate::contention::copy;
use crate::interface::{Interface, Ops};
use crate::rng::Rng;
use crate::teams::{Collective, Element, Kind, Scope, memory_at};
use portolan_engine::transfer::TransferKind;
use std::collections::BTreeMap;

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

    /// Each member fills the part of the next one. After a fence and a barrier of the group, it
    /// has all bytes. They stay until the next phase, while other memory is allocated and freed.
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
