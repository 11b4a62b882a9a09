//! Waits of the program inside MPI's blocking calls, carried out by the engine's wait loop. The
//! wrappers of these calls, in the crate `portolan-interpose`, use [`HostWait`]. Another thread may
//! stop the engine meanwhile. A waiter therefore holds the engine by reference count, and polls it
//! only until [`Engine::shut_host`], afterwards only its own request.

use super::startup_record::StartupRecord;
use super::{Engine, try_running};
use crate::config::Config;
use crate::error::Result;
use crate::mpi::{Comm, life};
use crate::trace::{Cause, Observer};
use crate::wait::{self, Ends, Patience, Progress};
use crate::watchdog::Standing;
use std::sync::Arc;
use std::time::Duration;

pub struct HostWait(Arc<Engine>);

impl HostWait {
    /// `None` if the engine takes no part in the program's waits or this thread runs a handler.
    pub fn of_running() -> Option<HostWait> {
        let engine = try_running()?;
        let takes_part = engine.host_waits
            && !life::program_is_threaded()
            && crate::core::handler::running().is_none();
        takes_part.then_some(HostWait(engine))
    }

    /// Waits in the call `what`. Returns false if the engine failed; MPI must then wait itself.
    pub fn until(&self, what: &str, mut done: impl FnMut() -> bool) -> bool {
        let what = || format!("{what}, called by the program");
        wait::until(self, Cause::Mpi, &what, || Ok(done())).is_ok()
    }
}

/// Returns whether this rank may take part: `PORTOLAN_INTERPOSE` allows it, `world` has all ranks
/// of a job of several ranks, and the program has not requested `MPI_THREAD_MULTIPLE`. With it, a
/// collective of one thread may overlap with the start of the engine by another, which only some
/// ranks have completed.
pub(super) fn may_take_part(config: &Config, world: &Comm) -> Result<bool> {
    // SAFETY: `MPI_COMM_WORLD` is live while MPI runs.
    let job = unsafe { Comm::size_of(Comm::world_handle()) }?;
    Ok(config.mpi_waits && world.size() > 1 && world.size() == job && !life::program_is_threaded())
}

/// Gives the same on all ranks: all may take part, and the engine serves nodes by messages, or
/// ranks share cores, which MPI's own waits do not yield.
pub(super) fn takes_part(messages: bool, crowded: bool, all: &[StartupRecord]) -> bool {
    (messages || crowded) && all.iter().all(|one| one.may_wait != 0)
}

impl Progress for HostWait {
    fn poll(&self) -> Result<bool> {
        let open = self.0.host_open.read();
        if *open { Progress::poll(&*self.0) } else { Ok(false) }
    }
    fn nap(&self, nap: Duration) {
        // The program's MPI messages do not ring the engine's doorbell.
        std::thread::sleep(nap);
    }
    fn patience(&self, ends: Ends) -> Patience {
        self.0.core().patience(ends)
    }
    fn traced_by(&self) -> Option<&Observer> {
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
    pub(super) fn shut_host(&self) {
        *self.host_open.write() = false;
    }
}
