//! The engine on a simulated machine.
//!
//! Many ranks run in this one process, each with its own engine on its own thread. Exactly one
//! thread runs at a time, and a scheduler with a seed decides which. Time, sleep, futexes and MPI
//! are simulated: this program defines functions under the names of the C library and MPI
//! ([`system`], [`mpi_calls`]). The code under test is therefore the unmodified engine, including
//! its MPI calls. The same seed gives the same run, event for event.
//!
//! A failed run prints its seed. `--seeds N..M` with the case's name runs it again, and
//! `SIM_TRACE=1` prints its events.

// The calls of MPI by the checks are Portolan's, as in C programs.
use portolan_interpose as _;

mod baton;
mod behaviour;
mod checks;
mod child;
mod dice;
mod driver;
mod extrapolate;
mod floor;
mod heap;
mod loopback;
mod machine;
mod memory;
mod mpi_calls;
mod network;
mod programs;
mod reports;
mod rest;
mod scale;
mod settings;
mod silent;
mod system;
mod thread_fences;
mod threads;
mod traced;

#[path = "../../../tests/ranks/am.rs"]
#[allow(dead_code, reason = "some of it is for real ranks alone")]
mod am;
#[path = "../../../tests/ranks/am_aggregates.rs"]
#[allow(dead_code, reason = "some of it is for real ranks alone")]
mod am_aggregates;
#[path = "../../../tests/ranks/am_items.rs"]
#[allow(dead_code, reason = "some of it is for real ranks alone")]
mod am_items;
#[path = "../../../tests/ranks/am_many.rs"]
#[allow(dead_code, reason = "some of it is for real ranks alone")]
mod am_many;
#[path = "../../../tests/ranks/am_rest.rs"]
#[allow(dead_code, reason = "some of it is for real ranks alone")]
mod am_rest;
#[path = "../../../tests/ranks/am_typed.rs"]
#[allow(dead_code, reason = "some of it is for real ranks alone")]
mod am_typed;
#[path = "../../../tests/ranks/anywhere.rs"]
#[allow(dead_code, reason = "some of it is for real ranks alone")]
mod anywhere;
#[path = "../../../tests/ranks/array_model.rs"]
#[allow(dead_code, reason = "some of it is for real ranks alone")]
mod array_model;
#[path = "../../../tests/ranks/arrays.rs"]
#[allow(dead_code, reason = "some of it is for real ranks alone")]
mod arrays;
#[path = "../../../tests/ranks/atomics.rs"]
#[allow(dead_code, reason = "some of it is for real ranks alone")]
mod atomics;
#[path = "../../../tests/ranks/collectives.rs"]
#[allow(dead_code, reason = "some of it is for real ranks alone")]
mod collectives;
#[path = "../../../tests/ranks/compose.rs"]
#[allow(dead_code, reason = "some of it is for real ranks alone")]
mod compose;
#[path = "../../../tests/ranks/consistency.rs"]
#[allow(dead_code, reason = "some of it is for real ranks alone")]
mod consistency;
#[path = "../../../tests/ranks/contention.rs"]
#[allow(dead_code, reason = "some of it is for real ranks alone")]
mod contention;
#[path = "../../../tests/ranks/ctx.rs"]
#[allow(dead_code, reason = "some of it is for real ranks alone")]
mod ctx;
#[path = "../../../tests/ranks/errors.rs"]
#[allow(dead_code, reason = "some of it is for real ranks alone")]
mod errors;
#[path = "../../../tests/ranks/fences.rs"]
#[allow(dead_code, reason = "some of it is for real ranks alone")]
mod fences;
#[path = "../../../tests/ranks/flood.rs"]
#[allow(dead_code, reason = "some of it is for real ranks alone")]
mod flood;
#[path = "../../../tests/ranks/group_collectives.rs"]
mod group_collectives;
#[path = "../../../tests/ranks/groups.rs"]
#[allow(dead_code, reason = "some of it is for real ranks alone")]
mod groups;
#[path = "../../../tests/ranks/interface.rs"]
#[allow(dead_code, reason = "some of it is for real ranks alone")]
mod interface;
#[path = "../../../tests/ranks/lookups.rs"]
#[allow(dead_code, reason = "some of it is for real ranks alone")]
mod lookups;
#[path = "../../../tests/ranks/mismatches.rs"]
#[allow(dead_code, reason = "some of it is for real ranks alone")]
mod mismatches;
#[path = "../../../tests/ranks/model.rs"]
#[allow(dead_code, reason = "some of it is for real ranks alone")]
mod model;
#[path = "../../../tests/ranks/mutexes.rs"]
#[allow(dead_code, reason = "some of it is for real ranks alone")]
mod mutexes;
#[path = "../../../tests/ranks/random.rs"]
#[allow(dead_code, reason = "some of it is for real ranks alone")]
mod random;
#[path = "../../../tests/ranks/rng.rs"]
#[allow(dead_code, reason = "some of it is for real ranks alone")]
mod rng;
#[path = "../../../tests/ranks/segments.rs"]
#[allow(dead_code, reason = "some of it is for real ranks alone")]
mod segments;
#[path = "../../../tests/ranks/team_plans.rs"]
#[allow(dead_code, reason = "some of it is for real ranks alone")]
mod team_plans;
#[path = "../../../tests/ranks/teams.rs"]
#[allow(dead_code, reason = "some of it is for real ranks alone")]
mod teams;
#[path = "../../../tests/ranks/threads.rs"]
#[allow(dead_code, reason = "some of it is for real ranks alone")]
mod threads_of_ranks;

fn main() -> std::process::ExitCode {
    driver::main()
}
