//! A process that leaves while the engine runs.
//!
//! A rank that calls `exit(0)`, or returns from `main`, without finalising leaves the
//! other ranks waiting, and a launcher may even call the job a success. So the last thing
//! that such a process does is to write an error and to end with a status that is not zero,
//! at which every launcher ends the job. No call of MPI is made: MPI may be
//! ending the process itself.
//!
//! The status is noted when the process begins to exit (`on_exit`); the check runs after
//! all exit handlers and destructors of the program, one of which may finalise.

use crate::error::ErrorKind;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

/// The process that started the engine: not one that it forked.
static PROCESS: AtomicU32 = AtomicU32::new(0);
static EXITING: AtomicBool = AtomicBool::new(false);
static STATUS: AtomicI32 = AtomicI32::new(0);

unsafe extern "C" {
    /// glibc's: as `atexit`, with the status.
    fn on_exit(
        function: extern "C" fn(libc::c_int, *mut libc::c_void),
        argument: *mut libc::c_void,
    ) -> libc::c_int;
}

extern "C" fn exiting(status: libc::c_int, _: *mut libc::c_void) {
    STATUS.store(status, Ordering::Relaxed);
    EXITING.store(true, Ordering::Relaxed);
}

/// Runs when the library is unloaded, or the program's own end is reached.
extern "C" fn leaving() {
    if !EXITING.load(Ordering::Relaxed)
        || STATUS.load(Ordering::Relaxed) != 0
        || PROCESS.load(Ordering::Relaxed) != std::process::id()
        || !crate::process::is_running()
    {
        return;
    }
    let code = ErrorKind::State.code();
    crate::message::say(&format!(
        "this rank leaves with status 0, but without ARMCI_Finalize (or the end of what else was \
         started) and MPI_Finalize; the job ends (error code {code})"
    ));
    // SAFETY: what the program has printed is written out; then the process ends.
    unsafe {
        libc::fflush(std::ptr::null_mut());
        libc::_exit(code)
    }
}

#[used]
#[unsafe(link_section = ".fini_array")]
static LEAVING: extern "C" fn() = leaving;

/// From now on the process is watched; called when the engine starts.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    PROCESS.store(std::process::id(), Ordering::Relaxed);
    ONCE.call_once(|| {
        // The table of functions goes with this code, also out of an archive.
        std::hint::black_box(&LEAVING);
        // SAFETY: the function may be called at any time, and takes no argument.
        unsafe { on_exit(exiting, std::ptr::null_mut()) };
    });
}
