//! The engine on a simulated machine.
//!
//! Many ranks run in this one process, each an engine of its own on a thread of its own, of
//! which exactly one runs at a time; a scheduler with a seed decides who goes on. Time, sleep,
//! futexes and MPI are simulated, by functions that this program defines under the names of the
//! C library's and MPI's ([`system`], [`mpi_calls`]), so the code under test is the engine's
//! own, down to its calls of MPI. The same seed gives the same run, event for event.
//!
//! | module | owns |
//! |---|---|
//! | [`machine`] | threads, the baton, the clock, the trace |
//! | [`system`] | the C library's functions |
//! | [`network`] | messages and collectives, as MPI promises them |
//! | [`mpi_calls`] | MPI's functions |
//! | [`floor`] | checks of the simulation itself, with plain MPI |

mod floor;
mod machine;
mod mpi_calls;
mod network;
mod rng;
mod system;

fn main() {
    floor::all();
}
