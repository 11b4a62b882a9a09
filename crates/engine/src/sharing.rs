//! One engine for all interfaces of a program.
//!
//! A program may initialise several interfaces, in any order, and finalise them in any order. The
//! first interface starts the engine, unless a Rust program has already started it. The last
//! interface to be finalised stops an engine that an interface started. `MPI_Finalize` and the Rust
//! interface may also stop the engine in between.

use crate::error::Result;
use crate::mpi::CommHandle;
use crate::runtime::{self, Engine, admission};
use parking_lot::Mutex;

#[derive(Debug)]
struct Users {
    count: usize,
    /// Whether an interface of this module started the engine, so that the last one stops it.
    ours: bool,
}

static USERS: Mutex<Users> = Mutex::new(Users { count: 0, ours: false });

/// Registers an interface as a user of the engine, and starts the engine if it is not running.
/// Collective.
///
/// # Errors
/// Fails as [`Engine::start`] does. Returns `State` if the engine runs over other ranks than those
/// of `comm`.
///
/// # Safety
/// `comm`, if given, must be a live communicator.
pub unsafe fn attach(comm: Option<CommHandle>) -> Result<&'static Engine> {
    let mut users = USERS.lock();
    if !runtime::is_running() {
        // SAFETY: the caller guarantees that `comm`, if given, is a live communicator.
        unsafe { Engine::start(comm) }?;
        *users = Users { count: 0, ours: true };
    } else {
        if let Some(comm) = comm {
            // SAFETY: the caller guarantees that `comm` is a live communicator.
            unsafe { runtime::current()?.check_same(comm) }?;
        }
        if users.count == 0 {
            users.ours = false;
        }
    }
    users.count += 1;
    runtime::current()
}

/// Unregisters an interface. Collective.
///
/// The last interface stops the engine if an interface started it. Otherwise the call completes the
/// implicit operations and ends with a barrier over all ranks.
///
/// # Errors
/// Fails as [`Engine::stop`] does.
pub fn detach() -> Result<()> {
    let mut users = USERS.lock();
    users.count = users.count.saturating_sub(1);
    if !runtime::is_running() {
        users.count = 0;
    } else if users.count == 0 && users.ours {
        users.ours = false;
        return Engine::stop();
    } else {
        // The engine keeps running for its other users. The operations of this interface must be
        // complete on return, as they would be after a stop.
        let engine = admission::admit_current()?;
        engine.wait_implicit()?;
        return engine.barrier_of(engine.world());
    }
    Ok(())
}
