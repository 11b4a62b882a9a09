//! One engine for all interfaces of a program.
//!
//! A program may initialise several interfaces, in any order, and end them in any
//! order. The first to come starts the engine, unless it runs already because a Rust
//! host has started it; the last to go stops what the first has started. Calls of
//! MPI_Finalize, and of the Rust interface, may stop it in between.

use crate::error::Result;
use crate::mpi::CommHandle;
use crate::runtime::{self, Engine, admission};
use parking_lot::Mutex;

#[derive(Debug)]
struct Users {
    count: usize,
    /// An interface has started the engine.
    ours: bool,
}

static USERS: Mutex<Users> = Mutex::new(Users { count: 0, ours: false });

/// An interface begins to use the engine. Collective.
///
/// # Errors
/// As for [`Engine::start`]; `State` where the engine runs over other ranks than `comm`'s.
///
/// # Safety
/// `comm`, where given, must be a live communicator.
pub(crate) unsafe fn attach(comm: Option<CommHandle>) -> Result<&'static Engine> {
    let mut users = USERS.lock();
    if !runtime::is_running() {
        // SAFETY: passed on from the caller.
        unsafe { Engine::start(comm) }?;
        *users = Users { count: 0, ours: true };
    } else {
        if let Some(comm) = comm {
            // SAFETY: passed on from the caller.
            unsafe { runtime::current()?.check_same(comm) }?;
        }
        if users.count == 0 {
            users.ours = false;
        }
    }
    users.count += 1;
    runtime::current()
}

/// It ends. Collective.
///
/// # Errors
/// As for [`Engine::stop`].
pub(crate) fn detach() -> Result<()> {
    let mut users = USERS.lock();
    users.count = users.count.saturating_sub(1);
    if !runtime::is_running() {
        users.count = 0;
    } else if users.count == 0 && users.ours {
        users.ours = false;
        return Engine::stop();
    } else {
        // Others go on: what this one has begun is complete, as it would be after a
        // stop.
        let engine = admission::admit_current()?;
        engine.wait_implicit()?;
        return engine.barrier_of(engine.world());
    }
    Ok(())
}
