//! The groups of ARMCI, their memory, and the collectives of `message.h`.

use super::symbols::*;
use super::{at, ok};
use crate::child::Ctx;
use crate::rng::Rng;
use crate::teams::{Collective, Element, Kind, Scope, Teams};
use mpi::ffi;
use portolan_engine::collective::Operator;
use std::collections::BTreeMap;
use std::os::raw::{c_char, c_int};
use std::ptr::null_mut;

struct Memory {
    team: usize,
    bases: Vec<usize>,
}

struct Team {
    group: Group,
    members: Vec<usize>,
    /// The number of collectives, which makes tags.
    calls: c_int,
}

pub struct ArmciTeams {
    me: usize,
    n: usize,
    teams: BTreeMap<usize, Team>,
    memory: BTreeMap<usize, Memory>,
    name: Name,
}

/// A page before an unreadable one. The last character of an operator's name is the last byte that
/// can be read, as if the program passed a single character.
struct Name {
    pages: *mut u8,
    page: usize,
}

impl Name {
    fn new() -> Name {
        // SAFETY: plain system calls, and new pages.
        unsafe {
            let page = libc::sysconf(libc::_SC_PAGESIZE) as usize;
            let (access, flags) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            let pages = libc::mmap(null_mut(), 2 * page, access, flags, -1, 0);
            assert_ne!(pages, libc::MAP_FAILED, "two pages");
            let guard = pages.cast::<u8>().add(page);
            assert_eq!(libc::mprotect(guard.cast(), page, libc::PROT_NONE), 0, "a guard page");
            Name { pages: pages.cast(), page }
        }
    }

    /// Half of the names continue with characters that ARMCI ignores. A name that is the beginning of
    /// a longer one always does.
    fn of(&self, name: &str, rng: &mut Rng) -> *mut c_char {
        let more: &[&str] = &["olute", " ", "\u{1}", "", "", ""];
        let more = *rng.pick(if ["abs", "&", "|"].contains(&name) { &more[..3] } else { more });
        let text = [name, more].concat();
        // SAFETY: the page has room for the text.
        unsafe {
            let to = self.pages.add(self.page - text.len());
            text.as_ptr().copy_to(to, text.len());
            to.cast()
        }
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        // SAFETY: the pages are the own ones, and no call is under way.
        unsafe { libc::munmap(self.pages.cast(), 2 * self.page) };
    }
}

fn number(element: Element) -> c_int {
    match element {
        Element::Int => 0,
        Element::Long => 1,
        Element::Float => 3,
        Element::Double => 4,
    }
}

fn operator(op: Operator, floats: bool, rng: &mut Rng) -> &'static str {
    let names: &[&str] = match op {
        Operator::Sum => &["+"],
        Operator::Product => &["*"],
        Operator::Min => &["min"],
        Operator::Max => &["max"],
        Operator::AbsMin => &["absmin"],
        Operator::AbsMax => &["absmax"],
        Operator::Abs => &["abs"],
        Operator::LogicalAnd => &["&&", "land"],
        Operator::LogicalOr => &["||", "lor"],
        Operator::Or if floats => &["or"],
        Operator::Or => &["or", "|", "bor"],
        Operator::And => &["&", "band"],
        other => unreachable!("ARMCI has no {other:?}"),
    };
    rng.pick::<&str>(names)
}

impl ArmciTeams {
    pub fn new(ctx: &Ctx) -> ArmciTeams {
        let mut group = Group::nobody();
        // SAFETY: ARMCI is initialised.
        unsafe { ARMCI_Group_get_world(&mut group) };
        let members: Vec<usize> = (0..ctx.n).collect();
        check(&mut group, &members, ctx.me, ctx.n);
        let teams = BTreeMap::from([(0, Team { group, members, calls: 0 })]);
        ArmciTeams { me: ctx.me, n: ctx.n, teams, memory: BTreeMap::new(), name: Name::new() }
    }

    /// # Safety
    /// `x` must have the elements of the collective.
    unsafe fn reduce(&mut self, team: usize, what: &Collective, x: Ptr, rng: &mut Rng) {
        let Kind::Reduce { op, to_root } = what.kind else { unreachable!() };
        let name = operator(op, what.element.is_float(), rng);
        let op = self.name.of(name, rng);
        let long_long = what.element == Element::Long && rng.one_in(2);
        let ty = if long_long { 2 } else { number(what.element) };
        let (n, scope, group) = (what.count as c_int, what.scope as c_int, self.group(team));
        let (all, in_group, node) = REDUCTIONS[ty as usize];
        // SAFETY: the caller guarantees the elements, and the name is a text.
        unsafe {
            match (team, what.scope) {
                (_, Scope::All) if to_root && rng.one_in(2) => armci_msg_reduce(x, n, op, ty),
                _ if to_root => armci_msg_reduce_scope(scope, x, n, op, ty),
                (0, Scope::All) if rng.one_in(3) => all(x, n, op),
                (0, Scope::Node) if rng.one_in(2) => node(x, n, op),
                (0, _) if rng.one_in(2) => armci_msg_gop_scope(scope, x, n, op, ty),
                (_, Scope::All) if rng.one_in(2) => in_group(x, n, op, group),
                _ => armci_msg_group_gop_scope(scope, x, n, op, ty, group),
            }
        }
    }

    fn group(&mut self, team: usize) -> *mut Group {
        &mut self.teams.get_mut(&team).expect("a group").group
    }
}

/// Checks the structure and the queries of a group, also outside of it.
fn check(group: &mut Group, members: &[usize], me: usize, n: usize) {
    let place = members.iter().position(|&rank| rank == me);
    let (mut rank, mut size, mut in_mpi) = (-7, -7, -7);
    // SAFETY: the group is one that ARMCI has filled in.
    unsafe {
        let code = ARMCI_Group_rank(group, &mut rank);
        ARMCI_Group_size(group, &mut size);
        let null = group.comm == ffi::RSMPI_COMM_NULL;
        let Some(place) = place else {
            assert!(code != 0 && null, "an outsider got the rank {rank}, code {code}");
            return assert_eq!([rank, size], [-1, 0], "of an outsider");
        };
        assert_eq!(code, 0, "ARMCI_Group_rank");
        assert!(armci_group_comm(group) == group.comm, "armci_group_comm");
        ffi::MPI_Comm_size(group.comm, &mut in_mpi);
        let (place, count) = (place as c_int, members.len() as c_int);
        assert_eq!([rank, group.rank], [place; 2], "the rank in a group");
        assert_eq!([size, group.size, in_mpi], [count; 3], "the size of a group");
        for (i, &member) in members.iter().enumerate() {
            assert_eq!(ARMCI_Absolute_id(group, i as c_int), member as c_int, "member {i}");
            assert_eq!(*group.to_world.add(i), member as c_int, "member {i} in the structure");
        }
        for rank in 0..n {
            let place = members.iter().position(|&member| member == rank);
            assert_eq!(*group.from_world.add(rank), place.map_or(-1, |place| place as c_int));
        }
    }
}

impl Teams for ArmciTeams {
    fn can(&self, team: usize, what: &Collective) -> bool {
        let world = team == 0;
        match what.kind {
            // Of a scope other than the group, only the tree.
            Kind::Barrier => what.scope == Scope::All || world && what.scope != Scope::Half,
            Kind::Broadcast => what.scope != Scope::Half || what.first,
            Kind::Reduce { op, to_root } => {
                let bits = matches!(op, Operator::And) && what.element.is_float();
                let rooted = !to_root || what.first && world;
                rooted && !bits && op != Operator::Xor && what.scope != Scope::Half
            }
            Kind::AllGather | Kind::Gather | Kind::Shift => what.scope == Scope::All,
            Kind::Select { .. } => world && what.scope != Scope::Half,
            Kind::Scan { .. } | Kind::Scatter | Kind::Exchange => false,
        }
    }

    fn create(&mut self, team: usize, parent: usize, members: &[usize], rng: &mut Rng) {
        let own = &self.teams[&parent].members;
        let place = |rank: usize| own.iter().position(|&r| r == rank).expect("a member");
        let mut list: Vec<c_int> = members.iter().map(|&rank| place(rank) as c_int).collect();
        let (list, len) = (list.as_mut_ptr(), members.len() as c_int);
        let all = members == own;
        let key = members.iter().position(|&rank| rank == self.me);
        let (mut group, mut standard) = (Group::nobody(), Group::nobody());
        let parent = self.group(parent);
        // SAFETY: the groups are live, and the list has its length.
        unsafe {
            match rng.below(3) {
                0 => {
                    // The list then has ranks of the default group.
                    ARMCI_Group_set_default(parent);
                    ARMCI_Group_get_default(&mut standard);
                    assert!(standard.comm == (*parent).comm, "the default group");
                    ARMCI_Group_create(len, list, &mut group);
                    ARMCI_Group_set_default(self.group(0));
                    ARMCI_Group_get_default(&mut standard);
                    assert!(standard.comm == (*self.group(0)).comm, "the world as default group");
                }
                1 => ARMCI_Group_create_child(len, list, &mut group, parent),
                _ if all && rng.one_in(2) => ok(ARMCIX_Group_dup(parent, &mut group)),
                _ => {
                    // The key orders the ranks.
                    let (colour, key) = key.map_or((-1, 0), |key| (7, 3 * key as c_int - 5));
                    ok(ARMCIX_Group_split(parent, colour, key, &mut group));
                }
            }
        }
        check(&mut group, members, self.me, self.n);
        self.teams.insert(team, Team { group, members: members.to_vec(), calls: 0 });
    }

    fn free(&mut self, team: usize) {
        if let Some(mut team) = self.teams.remove(&team) {
            // SAFETY: the group is live.
            unsafe { ARMCI_Group_free(&mut team.group) };
            assert_eq!(team.group.size, 0, "the size of a freed group");
        }
    }

    fn allocate(&mut self, memory: usize, team: usize, bytes: usize, rng: &mut Rng) -> Vec<usize> {
        const AT_ONCE: usize = 3;
        let (n, len) = (self.teams[&team].members.len(), bytes as i64);
        // ARMCI must overwrite all of them.
        let mut all = vec![at(77); AT_ONCE * n];
        let (bases, group) = (all.as_mut_ptr(), self.group(team));
        let device = *rng.pick(&[c"", c"dram", c"no such device"]);
        let device = if rng.one_in(3) { std::ptr::null() } else { device.as_ptr() };
        // SAFETY: the table has room for an address of each member.
        unsafe {
            match (team, rng.below(5)) {
                (0, 0) => ok(ARMCI_Malloc(bases, len)),
                (0, 1) => ok(ARMCI_Malloc_memdev(bases, len, device)),
                (0, 2) => {
                    // The first segment is the result. Only odd ranks have bytes of the last one.
                    let lens = [bytes, 0, 100 * (self.me % 2)];
                    ok(portolan_malloc_many(AT_ONCE as c_int, lens.as_ptr(), bases));
                    let (empty, last) = (&all[n..2 * n], &all[2 * n..]);
                    assert!(empty.iter().all(|base| base.is_null()), "addresses of no bytes");
                    for (rank, base) in last.iter().enumerate() {
                        assert_eq!(base.is_null(), rank % 2 == 0, "{base:p} of rank {rank}");
                    }
                    ok(ARMCI_Free(last[self.me]));
                }
                (_, 3) => ok(ARMCI_Malloc_group_memdev(bases, len, group, device)),
                _ => ok(ARMCI_Malloc_group(bases, len, group)),
            }
        }
        let bases: Vec<usize> = all[..n].iter().map(|&base| base as usize).collect();
        self.memory.insert(memory, Memory { team, bases: bases.clone() });
        bases
    }

    fn release(&mut self, memory: usize, rng: &mut Rng) {
        let Memory { team, bases } = self.memory.remove(&memory).expect("memory");
        let place = self.teams[&team].members.iter().position(|&rank| rank == self.me);
        let mine = at(bases[place.expect("a member")]);
        // A call without a group finds it by an address, which each member needs.
        let named = team == 0 || bases.iter().all(|&base| base != 0);
        // SAFETY: no rank accesses the memory any more.
        ok(unsafe {
            match rng.below(3) {
                0 if named => ARMCI_Free(mine),
                1 if named => ARMCI_Free_memdev(mine),
                _ => ARMCI_Free_group(mine, self.group(team)),
            }
        });
    }

    fn collect(&mut self, team: usize, what: &Collective, data: &mut Vec<u8>, rng: &mut Rng) {
        let own = self.teams.get_mut(&team).expect("a group");
        own.calls += 1;
        let tag = 2 * ((team as c_int % 150) * 100 + own.calls % 100);
        let (x, len) = (data.as_mut_ptr().cast(), data.len() as c_int);
        let (group, part, scope) = (self.group(team), &what.part, what.scope as c_int);
        let n = part.len();
        let root = part.get(what.root).map_or(0, |&rank| rank as c_int);
        // SAFETY: the data has the length that each call gets.
        unsafe {
            match what.kind {
                Kind::Barrier if what.scope != Scope::All => tree(what),
                Kind::Barrier if team == 0 && what.count > 100 => tree(what),
                Kind::Barrier if team == 0 && rng.one_in(2) => armci_msg_barrier(),
                Kind::Barrier => armci_msg_group_barrier(group),
                Kind::Broadcast => match (team, what.scope) {
                    (_, Scope::Half) => {
                        let first = self.teams[&team].members.iter().position(|&r| r == part[0]);
                        let first = first.expect("a member") as c_int;
                        armci_grp_clus_brdcst(x, len, first, n as c_int, group);
                    }
                    (0, Scope::All) if rng.one_in(2) => armci_msg_bcast(x, len, root),
                    (0, Scope::All) if rng.one_in(2) => armci_msg_brdcst(x, len, root),
                    (0, Scope::Node) if what.first && rng.one_in(2) => {
                        armci_msg_clus_brdcst(x, len);
                    }
                    (0, _) if rng.one_in(2) => armci_msg_bcast_scope(scope, x, len, root),
                    _ => armci_msg_group_bcast_scope(scope, x, len, root, group),
                },
                Kind::Reduce { .. } => self.reduce(team, what, x, rng),
                Kind::AllGather => {
                    let mut table = vec![0; n * data.len()];
                    let place = part.iter().position(|&rank| rank == self.me).expect("a member");
                    table[place * data.len()..][..data.len()].copy_from_slice(data);
                    let (x, count) = (table.as_mut_ptr().cast(), table.len() as c_int / 8);
                    match team {
                        0 if rng.one_in(2) => armci_exchange_address(x, count),
                        _ => armci_exchange_address_grp(x, count, group),
                    }
                    *data = table;
                }
                Kind::Gather if root as usize == self.me => {
                    let mut all = vec![0; n * data.len()];
                    let mut parts: Vec<_> = all.chunks_mut(data.len().max(1)).collect();
                    let any = rng.one_in(2);
                    for i in 0..n {
                        if part[i] == self.me {
                            parts.get_mut(i).into_iter().for_each(|to| to.copy_from_slice(data));
                            continue;
                        }
                        let (mut got, mut bytes) = (vec![3; data.len() + 1], -1);
                        let (to, room) = (got.as_mut_ptr().cast(), len + 1);
                        let from = match any {
                            true => armci_msg_rcvany(tag, to, room, &mut bytes),
                            false => {
                                armci_msg_rcv(tag, to, room, &mut bytes, part[i] as c_int);
                                part[i] as c_int
                            }
                        };
                        assert_eq!(bytes, len, "the bytes of a message");
                        assert_eq!(got.pop(), Some(3), "the byte behind a message");
                        let from = part.iter().position(|&rank| rank == from as usize);
                        let to = parts.get_mut(from.expect("a member"));
                        to.into_iter().for_each(|to| to.copy_from_slice(&got));
                    }
                    *data = all;
                }
                Kind::Gather => armci_msg_snd(tag, x, len, root),
                Kind::Shift => {
                    let place = part.iter().position(|&rank| rank == self.me).expect("a member");
                    let next = part[(place + 1) % n] as c_int;
                    let from = part[(place + n - 1) % n] as c_int;
                    // A message with another tag comes first and is received last.
                    let (mut mine, mut other) = (self.me as c_int, -1);
                    let (mine, later) = ((&raw mut mine).cast(), (&raw mut other).cast());
                    let send = || {
                        armci_msg_snd(tag + 1, mine, 4, next);
                        armci_msg_snd(tag, x, len, next);
                    };
                    let mut got = vec![3; data.len() + 1];
                    let sends_first = place % 2 == 0 || n == 1;
                    if sends_first {
                        send();
                    }
                    armci_msg_rcv(tag, got.as_mut_ptr().cast(), len + 1, null_mut(), from);
                    armci_msg_rcv(tag + 1, later, 4, null_mut(), from);
                    if !sends_first {
                        send();
                    }
                    assert_eq!(other, from, "a message with another tag");
                    assert_eq!(got.pop(), Some(3), "the byte behind a message");
                    *data = got;
                }
                Kind::Select { max, contributes } => {
                    let op = self.name.of(if max { "max" } else { "min" }, rng);
                    let (ty, mine) = (number(what.element), (contributes >> self.me & 1) as c_int);
                    match what.scope {
                        Scope::All if rng.one_in(2) => armci_msg_sel(x, len, op, ty, mine),
                        _ => armci_msg_sel_scope(scope, x, len, op, ty, mine),
                    }
                }
                Kind::Scan { .. } | Kind::Scatter | Kind::Exchange => unreachable!(),
            }
        }
    }

    fn under_lock(&mut self, team: usize, home: usize, times: usize, change: &mut dyn FnMut()) {
        let home = home as c_int;
        // SAFETY: the group is live, and the mutex exists at all members.
        unsafe {
            let set = ARMCIX_Create_mutexes_hdl(1, self.group(team));
            assert!(!set.is_null(), "mutexes of a group");
            for _ in 0..times {
                ARMCIX_Lock_hdl(set, 0, home);
                change();
                ARMCIX_Unlock_hdl(set, 0, home);
            }
            ok(ARMCIX_Destroy_mutexes_hdl(set));
        }
    }
}

/// Checks the binary tree of a scope of the world.
fn tree(what: &Collective) {
    let [mut root, mut up, mut left, mut right] = [-9; 4];
    // SAFETY: four ints receive the results.
    unsafe { armci_msg_bintree(what.scope as c_int, &mut root, &mut up, &mut left, &mut right) };
    let rank = |place: Option<usize>| {
        place.and_then(|place| what.part.get(place)).map_or(-1, |&rank| rank as c_int)
    };
    let place = what.place;
    let parent = place.filter(|&place| place > 0).map(|place| (place - 1) / 2);
    let child = |side| rank(place.map(|place| 2 * place + side));
    let want = [rank(Some(0)), rank(parent), child(1), child(2)];
    assert_eq!([root, up, left, right], want, "the tree of {:?}", what.scope);
}
