//! A main function whose errors end the job.

use super::{Runtime, unfreed};
use crate::message;
use std::process::ExitCode;

/// Initialises the runtime, runs `body`, and finalises.
///
/// An error that only one rank gets must not let that rank leave: the other ranks
/// would wait for it for ever. So where `body` fails on any rank, its error is
/// printed with the rank, and the whole job is aborted with exit code 1.
///
/// ```no_run
/// fn main() -> std::process::ExitCode {
///     portolan::run(|rt| -> portolan::Result<()> {
///         let world = rt.world();
///         let segment = world.allocate::<i64>(1)?;
///         segment.fetch_add(0, 0, 1)?;
///         world.barrier()?;
///         if rt.rank() == 0 {
///             println!("{} ranks", segment.local().read(0));
///         }
///         segment.free()
///     })
/// }
/// ```
pub fn run<E>(body: impl FnOnce(&Runtime) -> std::result::Result<(), E>) -> ExitCode
where
    E: Into<Box<dyn std::error::Error>>,
{
    let rt = match Runtime::init() {
        Ok(rt) => rt,
        Err(error) => give_up(error.into()),
    };
    if let Err(error) = body(&rt) {
        give_up(error.into());
    }
    match rt.finalize() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => give_up(error.into()),
    }
}

fn give_up(error: Box<dyn std::error::Error>) -> ! {
    unfreed::forget();
    message::say(&error.to_string());
    crate::mpi::init::abort(1)
}
