//! Ends the job when a process exits while the engine runs.
//!
//! A rank that calls `exit(0)` or returns from `main` without finalising leaves the other ranks
//! waiting, and a launcher may even report success. As its last action such a process therefore
//! writes an error and exits with a nonzero status, at which every launcher ends the job. It does
//! not call MPI, because MPI may be ending the process itself. Services may be left in use at exit:
//! [`before_exit`] registers the function that ends them, and the status stays as it is.
//!
//! `on_exit` records the status when the process begins to exit. The check runs after all exit
//! handlers and destructors of the program, because one of them may finalise.

use portolan_base::error::ErrorKind;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::sync::{Once, OnceLock};

/// The process that started the engine, and not a forked child.
static PROCESS: AtomicU32 = AtomicU32::new(0);
static EXITING: AtomicBool = AtomicBool::new(false);
static STATUS: AtomicI32 = AtomicI32::new(0);
static EXCUSED: AtomicBool = AtomicBool::new(false);
static BEFORE_EXIT: OnceLock<fn() -> bool> = OnceLock::new();

unsafe extern "C" {
    /// Like `atexit` of glibc, but passes the exit status to the handler.
    fn on_exit(
        function: extern "C" fn(libc::c_int, *mut libc::c_void),
        argument: *mut libc::c_void,
    ) -> libc::c_int;
}

extern "C" fn exiting(status: libc::c_int, _: *mut libc::c_void) {
    STATUS.store(status, Ordering::Relaxed);
    EXITING.store(true, Ordering::Relaxed);
    if status == 0
        && PROCESS.load(Ordering::Relaxed) == std::process::id()
        && let Some(end) = BEFORE_EXIT.get()
    {
        let excused = std::panic::catch_unwind(end).unwrap_or(true);
        EXCUSED.store(excused, Ordering::Relaxed);
    }
}

/// Registers a function that runs when a process with an engine exits with status 0, and returns
/// whether it may exit while the engine runs. The first registration counts.
pub fn before_exit(end: fn() -> bool) {
    let _ = BEFORE_EXIT.set(end);
}

/// Runs when the library is unloaded, or at the end of a program that contains the library.
extern "C" fn leaving() {
    if !EXITING.load(Ordering::Relaxed)
        || EXCUSED.load(Ordering::Relaxed)
        || STATUS.load(Ordering::Relaxed) != 0
        || PROCESS.load(Ordering::Relaxed) != std::process::id()
        || !portolan_base::process::is_running()
    {
        return;
    }
    let code = ErrorKind::State.code();
    portolan_base::process::message::say(&format!(
        "this rank exits with status 0, but without ARMCI_Finalize (or the finalise call of \
         another interface) and MPI_Finalize; the job is aborted (error code {code})"
    ));
    // SAFETY: `fflush` of all streams, for the program's output, and `_exit` are always valid.
    unsafe {
        libc::fflush(std::ptr::null_mut());
        libc::_exit(code)
    }
}

#[used]
#[unsafe(link_section = ".fini_array")]
static LEAVING: extern "C" fn() = leaving;

pub fn watch() {
    static ONCE: Once = Once::new();
    PROCESS.store(std::process::id(), Ordering::Relaxed);
    ONCE.call_once(|| {
        // Keeps the `.fini_array` entry when the linker takes this code from an archive.
        std::hint::black_box(&LEAVING);
        // SAFETY: `exiting` may run at any time during the exit, and ignores its argument.
        unsafe { on_exit(exiting, std::ptr::null_mut()) };
    });
}
