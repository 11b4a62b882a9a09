//! MPI's blocking calls by the program, for their wrappers in the crate `portolan-interpose`. The
//! engine's wait loop carries out the waits of some of them ([`HostWait`]), and statistics and
//! traces record them ([`record`]). Another thread may stop the engine meanwhile. A waiter therefore
//! holds the engine by reference count, and polls it only until [`Engine::shut_host`], afterwards
//! only its own request.

use super::startup_record::StartupRecord;
use super::{Engine, try_running};
use crate::mpi::{Comm, CommHandle, Members, life};
use portolan_base::config::Config;
use portolan_base::error::Result;
use portolan_base::trace::{Cause, MpiCall, Observer};
use portolan_base::wait::watchdog::Standing;
use portolan_base::wait::{self, Ends, Patience, Progress};
use std::os::raw::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// An engine runs that records MPI calls.
static RECORDS: AtomicBool = AtomicBool::new(false);

/// Whether MPI calls of the program are recorded. If not, a wrapper costs only this load.
#[inline(always)]
pub fn records() -> bool {
    RECORDS.load(Ordering::Relaxed)
}

/// The communicator of a call, the peer's rank in it, and the bytes that this rank sends or
/// receives. Without a communicator, the peer is unknown.
pub type MpiCallInfo = (Option<CommHandle>, c_int, u64);

/// Carries out an MPI call and records it. A call that MPI makes for the engine, inside another
/// call, or that fails, is not recorded. Then `call_info` is not called.
///
/// # Safety
/// The communicator that `call_info` returns must be live.
#[cold]
pub unsafe fn record(
    call: MpiCall,
    body: impl FnOnce() -> c_int,
    call_info: impl FnOnce() -> MpiCallInfo,
) -> c_int {
    let Some(engine) = try_running() else { return body() };
    let entered = engine.observer().enter(|| false);
    let code = body();
    if let Some(entered) = entered
        && code == 0
    {
        entered.leave_mpi(call, || {
            let (comm, peer, bytes) = call_info();
            // SAFETY: the caller guarantees that the communicator is live.
            let named = comm.and_then(|comm| unsafe { engine.ranks_of_host(comm, peer) }.ok());
            let (number, peer) = named.unwrap_or_default();
            (peer, bytes, number)
        });
    }
    code
}

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
    pub(super) fn open_host(&self) {
        RECORDS.store(self.is_observed(), Ordering::Relaxed);
    }

    /// The number of a communicator of the program and the world rank of one of its ranks.
    ///
    /// # Safety
    /// `comm` must be live.
    unsafe fn ranks_of_host(&self, comm: CommHandle, rank: c_int) -> Result<(u64, Option<u32>)> {
        let world = (&*self.world().comm()?, self.world().key());
        // SAFETY: the caller guarantees that `comm` is live.
        unsafe { Members::with(world, comm, |ranks| (ranks.number, ranks.world_rank(rank))) }
    }

    pub(super) fn shut_host(&self) {
        RECORDS.store(false, Ordering::Relaxed);
        *self.host_open.write() = false;
    }
}
