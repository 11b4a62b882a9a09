//! Communicators and groups.

use super::*;

functions! {
    fn MPI_Comm_rank(comm: MPI_Comm, rank: *mut c_int) {
        let place = call("MPI_Comm_rank", |machine, me| {
            let members = machine.members(context(comm));
            members.iter().position(|&member| member == me)
        });
        *rank = place.expect("the caller is a member") as c_int;
        OK
    }

    fn MPI_Comm_size(comm: MPI_Comm, size: *mut c_int) {
        *size = call("MPI_Comm_size", |machine, _| machine.members(context(comm)).len()) as c_int;
        OK
    }

    fn MPI_Comm_test_inter(_comm: MPI_Comm, flag: *mut c_int) {
        *flag = 0;
        OK
    }

    fn MPI_Comm_idup(comm: MPI_Comm, made: *mut MPI_Comm, request: *mut MPI_Request) {
        // The request writes only a number, so a wider handle has to be zeroed first.
        *made = handle(0);
        *request = handle(call("MPI_Comm_idup", |machine, rank| {
            machine.enter(rank, context(comm), Kind::Dup, Vec::new(), made.cast())
        }));
        OK
    }

    fn MPI_Comm_create_group(comm: MPI_Comm, group: MPI_Group, tag: c_int, made: *mut MPI_Comm) {
        let on = call("MPI_Comm_create_group", |machine, _| {
            let members = match machine.network.group(number(group)) {
                Some(members) => members,
                None => machine.fail("a group that is none"),
            };
            machine.meeting(context(comm), tag, &members)
        });
        *made = handle(meet("MPI_Comm_create_group", on, Kind::Create));
        OK
    }

    fn MPI_Comm_free(comm: *mut MPI_Comm) {
        call("MPI_Comm_free", |machine, rank| machine.free_context(rank, context(*comm)));
        OK
    }

    fn MPI_Comm_group(comm: MPI_Comm, group: *mut MPI_Group) {
        *group = handle(call("MPI_Comm_group", |machine, _| {
            let members = machine.members(context(comm));
            machine.network.new_group(members)
        }));
        OK
    }

    fn MPI_Group_incl(of: MPI_Group, n: c_int, ranks: *const c_int, made: *mut MPI_Group) {
        let ranks = std::slice::from_raw_parts(ranks, n as usize);
        *made = handle(call("MPI_Group_incl", |machine, _| {
            let all = machine.network.group(number(of)).expect("a live group");
            let members = ranks.iter().map(|&rank| all[rank as usize]).collect();
            machine.network.new_group(Arc::new(members))
        }));
        OK
    }

    fn MPI_Group_translate_ranks(
        of: MPI_Group,
        n: c_int,
        ranks: *const c_int,
        to: MPI_Group,
        found: *mut c_int,
    ) {
        let ranks = std::slice::from_raw_parts(ranks, n as usize);
        let found = std::slice::from_raw_parts_mut(found, n as usize);
        call("MPI_Group_translate_ranks", |machine, _| {
            let live = |group| machine.network.group(number(group)).expect("a live group");
            let (of, to) = (live(of), live(to));
            let places: std::collections::HashMap<usize, usize> =
                to.iter().enumerate().map(|(place, &rank)| (rank, place)).collect();
            for (rank, found) in ranks.iter().zip(found) {
                // The engine treats any negative number as undefined.
                *found = places.get(&of[*rank as usize]).map_or(-1, |&place| place as c_int);
            }
        });
        OK
    }

    fn MPI_Group_free(group: *mut MPI_Group) {
        let freed = call("MPI_Group_free", |machine, _| machine.network.free_group(number(*group)));
        if freed { OK } else { machine::fail("a group is freed twice") }
    }
}

fn meet(name: &'static str, on: u32, kind: Kind) -> u32 {
    let mut made = [0u8; 4];
    let to = made.as_mut_ptr();
    let request = call(name, |machine, rank| machine.enter(rank, on, kind, Vec::new(), to));
    block(name, request);
    u32::from_ne_bytes(std::hint::black_box(made))
}
