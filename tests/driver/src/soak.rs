//! Random operations for a long time, compared with a model.

use crate::mpi::{self, Mpi};
use crate::{launch, results, suite};
use std::process::ExitCode;

pub const HELP: &str = "\
Runs random operations on all ranks for a long time in one job, and compares the results with a
model: transfers of every kind, atomics, mutexes, groups, collectives, active messages,
compositions. A run passes if all results match and resource use does not grow: memory, mapped
memory, descriptors, threads, files. For each MPI, three launches share the time: 3 ranks that
share memory, 3 ranks that send messages, and 4 ranks on two virtual nodes. A failure prints its
seed; set PORTOLAN_TEST_SEED to repeat it. The last line is `N passed, N failed`.";

#[derive(Debug, clap::Args)]
pub struct Options {
    /// One MPI, or all
    #[arg(long, value_name = "M", default_value = "all")]
    mpi: String,
    /// Time for each MPI
    #[arg(long, value_name = "S", default_value_t = 180)]
    seconds: u64,
    /// One hour for each MPI
    #[arg(long, conflicts_with = "seconds")]
    full: bool,
}

const LAUNCHES: [&str; 3] = ["soak", "soak_message", "soak_nodes"];

pub fn main(options: &Options) -> Result<ExitCode, String> {
    let seconds = if options.full { 3600 } else { options.seconds };
    let (mut passed, mut failed) = (0, 0);
    for name in mpi::choose(&options.mpi)? {
        let mpi = Mpi::complete(&name)?;
        let log = mpi.target.join("soak.log");
        let program = suite::ranks(&mpi)?.display().to_string();
        let mut command = mpi.command(&[&[&*program, "--exact"], &LAUNCHES[..]].concat());
        let share = seconds / LAUNCHES.len() as u64 + 1;
        command.env("PORTOLAN_SOAK_SECONDS", share.to_string());
        let mut totals = None;
        let code =
            launch::follow(command, &log, |line| match results::with_prefix(line, &mpi.kind) {
                Some(line) => println!("{line}"),
                None => totals = results::totals(line).or(totals),
            })?;
        // A program that died printed no totals.
        let (some, others) = totals.unwrap_or_default();
        if some + others != LAUNCHES.len() {
            let (made, all) = (some + others, LAUNCHES.len());
            println!("FAIL {name} soak: {made} of {all} launches were made, see {}", log.display());
        }
        passed += some;
        failed += others.max(usize::from(code != Some(0) || some + others != LAUNCHES.len()));
    }
    println!("{passed} passed, {failed} failed");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
