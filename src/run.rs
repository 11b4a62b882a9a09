//! A main function that ends the job on errors.

use crate::{Runtime, unfreed};
use portolan_base::process::message;
use std::process::ExitCode;

/// Initialises the runtime, runs `body`, and finalises the runtime. Collective over all ranks.
///
/// If `body`, or the start or end of the runtime, fails on any rank, this function prints the error
/// with the rank and aborts the whole job with exit code 1. Otherwise the other ranks would wait
/// for that rank forever.
///
/// ```
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
#[track_caller]
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
    portolan_engine::mpi::init::abort(1)
}
