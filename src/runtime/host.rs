//! Waits of the host program inside MPI's blocking calls, done in the engine's way.
//!
//! [`crate::mpi`]'s wrappers of those calls come here ([`HostWaits`]). A thread of the program may wait
//! so while another one stops the engine: a waiter holds the engine by reference count,
//! and polls it only as long as it is open ([`Engine::shut_host`]); afterwards it polls
//! nothing but its own request.

use super::introduction::Introduction;
use super::{Engine, try_running};
use crate::config::Config;
use crate::error::Result;
use crate::mpi::Comm;
use crate::mpi::blocking::HostWaits;
use crate::trace::{Cause, Observer};
use crate::wait::{self, Patience, Progress};
use crate::watchdog::Standing;
use std::sync::Arc;
use std::time::Duration;

/// A running engine in whose way a thread of the program waits.
struct Waiter(Arc<Engine>);

/// The engine's, where it takes part in the program's waits.
pub(super) fn waiter() -> Option<Box<dyn HostWaits>> {
    let engine = try_running()?;
    let takes_part = engine.host_waits && crate::core::handler::running().is_none();
    takes_part.then(|| Box::new(Waiter(engine)) as Box<dyn HostWaits>)
}

/// Whether this rank may take part: where its communicator has all ranks of the job.
pub(super) fn may_take_part(config: &Config, world: &Comm) -> Result<bool> {
    // SAFETY: MPI_COMM_WORLD is live while MPI runs.
    let job = unsafe { Comm::size_of(Comm::world_handle()) }?;
    Ok(config.mpi_waits && world.size() > 1 && world.size() == job)
}

/// Whether the engine takes part: where it serves other nodes by messages, and where ranks
/// share cores, which MPI's own waits do not give up. Alike on all ranks.
pub(super) fn takes_part(messages: bool, crowded: bool, all: &[Introduction]) -> bool {
    (messages || crowded) && all.iter().all(|one| one.may_wait != 0)
}

impl HostWaits for Waiter {
    fn until(&self, what: &str, done: &mut dyn FnMut() -> bool) -> bool {
        let what = || format!("{what}, called by the program");
        wait::until(self, Cause::Mpi, &what, || Ok(done())).is_ok()
    }
}

impl Progress for Waiter {
    fn poll(&self) -> Result<bool> {
        let open = self.0.host_open.read();
        if *open { Progress::poll(&*self.0) } else { Ok(false) }
    }
    fn nap(&self, nap: Duration) {
        // The program's messages ring no bell of ours.
        std::thread::sleep(nap);
    }
    fn patience(&self, woken: bool) -> Patience {
        self.0.core().patience(woken)
    }
    fn told_by(&self) -> Option<&Observer> {
        Some(self.0.observer())
    }
    fn waiting(&self, begins: bool) {
        Progress::waiting(&*self.0, begins);
    }
    fn report(&self, standing: &Standing<'_>) {
        Progress::report(&*self.0, standing);
    }
}

impl Engine {
    /// Waits of the program poll the engine no more.
    pub(super) fn shut_host(&self) {
        *self.host_open.write() = false;
    }
}
