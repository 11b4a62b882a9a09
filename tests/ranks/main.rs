//! Tests on several ranks.
//!
//! The test program starts the MPI launcher on itself: the parent ([`driver`]) is not an MPI
//! program, and the ranks ([`child`]) run *checks* against the engine. Many checks share one
//! launch, because a launch costs more than most checks.
//!
//! A random check that fails prints its seed; `PORTOLAN_TEST_SEED` runs it again.

// The calls of MPI by the checks are Portolan's, as in C programs.
use portolan_interpose as _;

mod alone;
mod alone_system;
mod am;
mod am_aggregates;
mod am_errors;
mod am_items;
mod am_many;
mod am_model;
mod am_rest;
mod am_typed;
mod am_typed_errors;
mod anywhere;
mod array_lines;
mod array_misuse;
mod array_model;
mod array_numpy;
mod arrays;
mod atomics;
mod attack_arithmetic;
mod attack_compose;
mod attack_finalize;
mod attack_forged;
mod attack_order;
mod attack_rpc;
mod cases;
mod child;
mod collectives;
mod compose;
mod compose_fuzz;
mod compose_life;
mod consistency;
mod contention;
mod ctx;
mod driver;
mod errors;
mod exchanges;
mod fences;
mod flood;
mod group_collectives;
mod groups;
mod hosts;
mod interface;
mod interfaces;
mod job;
mod kernels;
mod large;
mod launch;
mod lifecycle;
mod limits;
mod lookups;
mod messages;
mod mismatches;
mod model;
mod mutexes;
mod observed;
mod paths;
mod progress;
mod random;
mod rng;
mod rpc;
mod rpc_life;
mod segments;
mod soak;
mod system_limits;
mod team_plans;
mod teams;
mod threads;
mod trace_file;
mod traces;
mod watchdog;

use clap::Parser;
use portolan_driver::system;
use portolan_engine::mpi::Flavour;
use std::process::ExitCode;

/// The options of Rust's test harness and of a suite.
#[derive(Debug, clap::Parser)]
#[command(about = "Tests on several ranks", after_help = driver::HELP)]
struct Cli {
    #[command(flatten)]
    args: portolan_driver::args::Args,
}

fn main() -> ExitCode {
    if let Ok(spec) = std::env::var(job::SPEC) {
        return child::main(&spec);
    }
    let cli = Cli::parse();
    system::set_built(
        match Flavour::built() {
            Flavour::Mpich => "mpich",
            Flavour::OpenMpi => "openmpi",
            Flavour::Other => "other",
        },
        env!("PORTOLAN_BUILT_BY"),
    );
    portolan_driver::launch::watch_signals();
    portolan_driver::cli::ended(driver::main(cli.args.with_environment()))
}
