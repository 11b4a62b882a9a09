//! One engine for all interfaces of a program.
//!
//! A program may initialise and finalise several interfaces in any order. The first one starts the
//! engine, unless a Rust program has already started it. The last one to be finalised stops an
//! engine that an interface started. `MPI_Finalize` and the Rust interface may stop it earlier.
//!
//! Function shipping is a *service*: it may be initialised again after its end, and a process may
//! exit without finalising it. MPI cannot be initialised again. So if the library has initialised
//! MPI and a service is the last user of the engine, MPI ends when the process exits.
//!
//! An interface whose end must not wait for other ranks *leaves* the engine ([`leave`]). If it was
//! the last user, the engine runs until a later user ends it, or the program ends MPI or exits.

use super::{Engine, admission};
use crate::mpi::{CommHandle, exit_guard, init, life};
use parking_lot::Mutex;
use portolan_base::error::Result;

#[derive(Debug)]
struct Users {
    count: usize,
    /// Services among the users.
    services: usize,
    /// An interface of this module started the engine, so the last one stops it.
    ours: bool,
    /// The last user left the engine running.
    left: bool,
}

static USERS: Mutex<Users> = Mutex::new(Users { count: 0, services: 0, ours: false, left: false });

/// Registers an interface as a user of the engine, and starts the engine if it is not running.
/// Collective. Fails as [`Engine::start`], and with `State` if the engine does not run over the
/// ranks of `comm`.
///
/// # Safety
/// `comm`, if given, must be a live communicator.
pub unsafe fn attach(comm: Option<CommHandle>) -> Result<&'static Engine> {
    // SAFETY: the caller guarantees that `comm` is live.
    unsafe { attach_to(&mut USERS.lock(), comm) }
}

/// Like [`attach`], for a service. Collective.
pub fn attach_service() -> Result<&'static Engine> {
    let mut users = USERS.lock();
    // SAFETY: `None` passes no communicator that must be live.
    let engine = unsafe { attach_to(&mut users, None) }?;
    users.services += 1;
    exit_guard::before_exit(end_services);
    Ok(engine)
}

/// # Safety
/// See [`attach`].
unsafe fn attach_to(users: &mut Users, comm: Option<CommHandle>) -> Result<&'static Engine> {
    if !super::is_running() {
        // SAFETY: the caller guarantees that `comm` is live.
        unsafe { Engine::start(comm) }?;
        (users.count, users.services, users.ours) = (0, 0, true);
    } else {
        if let Some(comm) = comm {
            // SAFETY: the caller guarantees that `comm` is live.
            unsafe { super::current()?.check_same(comm) }?;
        }
        if users.count == 0 && !users.left {
            users.ours = false;
        }
    }
    users.left = false;
    users.count += 1;
    super::current()
}

/// Unregisters an interface. Collective. The last one stops the engine if an interface started it.
/// Otherwise completes the implicit operations and ends with a barrier over all ranks. Fails as
/// [`Engine::stop`].
pub fn detach() -> Result<()> {
    detach_from(&mut USERS.lock(), false)
}

/// Like [`detach`], for a service. If it is the last user and the program does not call `MPI_Init`
/// and `MPI_Finalize` itself, MPI keeps running.
pub fn detach_service() -> Result<()> {
    let mut users = USERS.lock();
    users.services = users.services.saturating_sub(1);
    detach_from(&mut users, true)
}

/// Unregisters an interface. Local: the engine keeps running.
pub fn leave() {
    let mut users = USERS.lock();
    users.count = users.count.saturating_sub(1);
    users.left = users.count == 0;
    exit_guard::before_exit(end_services);
}

fn detach_from(users: &mut Users, is_service: bool) -> Result<()> {
    users.count = users.count.saturating_sub(1);
    if !super::is_running() {
        (users.count, users.services) = (0, 0);
    } else if users.count == 0 && users.ours {
        // If this fails, the engine stays ours, so that a later end stops it.
        let ends_mpi = Engine::stop_within_mpi()?;
        users.ours = false;
        if ends_mpi {
            if !is_service || !life::is_library_alone() {
                return init::finalize();
            }
            life::keep();
        }
    } else {
        // The operations of this interface must be complete on return, as after a stop.
        let engine = admission::admit_current()?;
        engine.wait_implicit()?;
        return engine.barrier_of(engine.world());
    }
    Ok(())
}

/// Ends what services have left when the process exits with status 0: an engine that only services
/// use, and an MPI that was kept for them. Returns whether the process may exit. Collective, like
/// the calls that the program has omitted.
fn end_services() -> bool {
    let Some(users) = USERS.try_lock() else { return false };
    let only_services = users.ours && users.services == users.count;
    let mut ends_mpi = life::is_kept();
    if super::is_running() {
        if !only_services {
            return false;
        }
        match Engine::stop_within_mpi() {
            Ok(ends) => ends_mpi |= ends,
            Err(error) => {
                log::warn!("the process exits while function shipping is in use: {error}");
                return true;
            }
        }
    }
    if ends_mpi && let Err(error) = init::finalize() {
        log::warn!("MPI is not finalised at exit: {error}");
    }
    true
}
