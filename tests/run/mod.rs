//! The runner of every test that starts ranks.
//!
//! The test program `ranks` has two roles: started by cargo or a script it is the runner, and
//! started by an MPI launcher it is a rank ([`crate::child`]). A *suite* plans cases and runs them:
//! [`crate::driver`] (the checks in Rust), [`programs`], [`faults`], [`network`] and [`bugs`].

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
