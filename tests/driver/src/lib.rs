//! The driver of all tests.
//!
//! A *suite* plans cases, launches them and reports one line per case: `programs`, `faults`,
//! `network`, `bugs`, and the checks in Rust of `tests/ranks`, a program of its own that uses
//! this library. `levels` runs the stages of a level (`tests/driver/stages.txt`), of which the
//! suites are some. All commands read results in one place (`results`), and the MPIs from
//! `scripts/env.sh` (`mpi`).
//!
//! The package depends on no crate of Portolan and on no MPI, so it builds once, in seconds, before
//! an MPI is chosen. A suite finds the MPI in the environment that the driver gives it.
#![expect(missing_docs, reason = "the interface serves only the tests of this repository")]

/// Prints a line like std's macro, which panics if the reader of the pipe is gone. Here that ends the
/// run as a signal does, with all its processes.
#[cfg(not(test))]
macro_rules! println {
    () => { $crate::launch::print(format_args!("\n")) };
    ($($text:tt)*) => { $crate::launch::print(format_args!("{}\n", format_args!($($text)*))) };
}
#[cfg(not(test))]
macro_rules! print {
    ($($text:tt)*) => { $crate::launch::print(format_args!($($text)*)) };
}

pub mod args;
mod browser;
mod bugs;
pub mod cli;
mod commands;
mod faults;
mod html;
pub mod launch;
mod levels;
mod mpi;
mod network;
mod packages;
mod place;
mod processes;
mod programs;
mod python;
mod regress;
mod release;
pub mod report;
mod results;
mod sanitize;
pub mod selection;
mod soak;
mod stages;
mod suite;
mod summary;
pub mod system;
