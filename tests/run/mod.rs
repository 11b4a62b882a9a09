//! The one runner of everything that starts ranks.
//!
//! The test program `ranks` is all of it: started by cargo or a script it is the runner, started
//! by an MPI launcher on itself it is a rank ([`crate::child`]). A *suite* plans cases and runs
//! them; what suites have in common stands here once:
//!
//! | module | owns |
//! |---|---|
//! | [`args`] | the command line, in the manner of Rust's own test harness |
//! | [`report`] | the line that is printed for a case, the numbers, JUnit |
//! | [`launch`] | one launch: its deadline, its end, its signals |
//! | [`processes`] | the processes of a launch, wherever they are |
//! | [`place`] | where each rank stands, by its own account and the system's |
//! | [`system`] | what this machine has: launchers, compilers, hosts |
//! | [`programs`] | suite `programs`: C, C++, Fortran and Global Arrays, by the `TEST:` lines of the sources |
//! | [`selection`] | which of their cases run on several hosts |
//! | [`faults`] | suite `faults`: what goes wrong around a program |
//! | [`network`] | suite `network`: what goes wrong between hosts |
//! | [`bugs`] | suite `bugs`: the known faults of MPIs |
//! | [`browser`] | a browser without a window, for pages that programs write |
//! | [`summary`], [`html`] | one report of the logs of many suites |
//!
//! The suite `ranks`, the checks in Rust, is [`crate::driver`].

pub mod args;
pub mod browser;
pub mod bugs;
pub mod faults;
pub mod html;
pub mod launch;
pub mod network;
pub mod place;
pub mod processes;
pub mod programs;
pub mod report;
pub mod selection;
pub mod summary;
pub mod system;

use args::{Args, Suite};
use std::process::ExitCode;

/// Runs what the command line asks for.
pub fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "report") {
        return summary::main(&words[1..]);
    }
    let args = match Args::parse(&words) {
        Ok(args) => args,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    if args.help {
        print!("{}", args::HELP);
        return ExitCode::SUCCESS;
    }
    launch::watch_signals();
    let run = match args.suite {
        Suite::Ranks => crate::driver::main,
        Suite::Programs => programs::main,
        Suite::Faults => faults::main,
        Suite::Network => network::main,
        Suite::Bugs => bugs::main,
    };
    match run(args) {
        Ok(code) => code,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(2)
        }
    }
}
