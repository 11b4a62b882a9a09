//! The command line: `scripts/dev COMMAND`.

use crate::args::Args;
use crate::suite::Suite;
use crate::{launch, levels, packages, python, regress, release, sanitize, soak};
use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

#[derive(Debug, Parser)]
#[command(name = "dev", bin_name = "scripts/dev", about = "Runs the tests of Portolan")]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Args)]
struct Each {
    /// mpich, openmpi, all, or another MPI that scripts/env.sh knows
    #[arg(long, value_name = "M", default_value = "all")]
    mpi: String,
    #[command(flatten)]
    args: Args,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Tests whether Portolan works on this machine, or whether a change or a release is right
    #[command(after_help = levels::HELP)]
    Test(levels::Options),
    /// Runs a suite with each MPI
    ///
    /// All suites except `ranks` and `bugs` need the library installed in target/MPI/prefix
    /// (scripts/install.sh). Prints one line per case, and `N passed, N failed` at the end. The exit
    /// code is 0 if no case failed.
    Suite {
        suite: Suite,
        #[command(flatten)]
        each: Each,
    },
    /// Tests the programs of tests/c, tests/fortran and tests/ga, and some examples, against the
    /// installed library
    Programs(Each),
    /// Tests faults: ranks that are killed, exit or hang, too little memory, bad input to every C
    /// call (docs/faults.md)
    Faults(Each),
    /// Tests delayed, lossy, slow and cut links between two hosts
    Network(Each),
    /// Runs the programs of tests/mpi-bugs, which show faults of MPIs without the library
    MpiBugs(Each),
    /// The regression suite: several hosts, more MPIs, Slurm
    #[command(after_help = regress::HELP)]
    Regress(regress::Options),
    /// Tests the Python package, from its wheel
    #[command(after_help = python::HELP)]
    Python(python::Options),
    /// Compares random operations with a model for a long time
    #[command(after_help = soak::HELP)]
    Soak(soak::Options),
    /// Finds memory errors, and thread interleavings that lose data or wake-ups
    #[command(after_help = sanitize::HELP)]
    Sanitize(sanitize::Options),
    /// Tests the packages on a bare system
    #[command(after_help = packages::HELP)]
    PackageTest(packages::Options),
    /// Makes the checks before a release that are not part of the tests
    #[command(after_help = release::HELP)]
    ReleaseCheck(release::Options),
    /// Prints the public items of the crate, one per line
    #[command(after_help = release::API_HELP)]
    PublicApi(release::ApiOptions),
    /// Runs a suite with the MPI of the environment
    #[command(hide = true)]
    Run {
        suite: Suite,
        #[command(flatten)]
        args: Args,
    },
}

/// Returns the names of the commands that people use.
pub fn names() -> Vec<String> {
    let cli = Cli::command();
    let shown = cli.get_subcommands().filter(|command| !command.is_hide_set());
    shown.map(|command| command.get_name().to_string()).collect()
}

pub fn main() -> ExitCode {
    let cli = Cli::parse();
    launch::watch_signals();
    ended(match cli.command {
        Command::Test(options) => levels::main(&options),
        Command::Suite { suite, each } => suite.with_each(&each.mpi, &each.args),
        Command::Programs(each) => Suite::Programs.with_each(&each.mpi, &each.args),
        Command::Faults(each) => Suite::Faults.with_each(&each.mpi, &each.args),
        Command::Network(each) => Suite::Network.with_each(&each.mpi, &each.args),
        Command::MpiBugs(each) => Suite::Bugs.with_each(&each.mpi, &each.args),
        Command::Regress(options) => regress::main(&options),
        Command::Python(options) => python::main(&options),
        Command::Soak(options) => soak::main(&options),
        Command::Sanitize(options) => sanitize::main(&options),
        Command::PackageTest(options) => packages::main(&options),
        Command::ReleaseCheck(options) => release::main(&options),
        Command::PublicApi(options) => release::print_items(&options),
        Command::Run { suite, args } => suite.here(args),
    })
}

/// Returns the exit code of a command. The code 2 means that it could not do its work.
pub fn ended(result: Result<ExitCode, String>) -> ExitCode {
    launch::heed_signals();
    result.unwrap_or_else(|why| {
        eprintln!("{why}");
        ExitCode::from(2)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
        for name in ["test", "suite", "programs", "mpi-bugs", "release-check", "public-api"] {
            assert!(names().contains(&name.to_string()), "{name}");
        }
        assert!(!names().contains(&"run".into()));
    }
}
