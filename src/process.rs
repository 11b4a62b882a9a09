//! What a process has once, whatever runs in it: the rank that errors name, the way to end
//! the job, and what its own threads ask of the kernel.
//!
//! Every layer may use this module, and it uses none: what an upper layer knows (how MPI ends
//! a job, what an engine has pending) it leaves here as a function when it starts.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

/// World rank + 1; 0 while it is not known. Kept after the end, for messages of errors.
static WORLD_RANK: AtomicUsize = AtomicUsize::new(0);
static RUNNING: AtomicBool = AtomicBool::new(false);

/// A function that an upper layer has left.
type Left<F> = RwLock<Option<F>>;

static END: Left<fn(i32) -> !> = RwLock::new(None);
static PENDING: Left<fn() -> Option<String>> = RwLock::new(None);

fn left<F: Copy>(function: &Left<F>) -> Option<F> {
    *function.read().unwrap_or_else(PoisonError::into_inner)
}

fn leave<F>(place: &Left<F>, function: F) {
    *place.write().unwrap_or_else(PoisonError::into_inner) = Some(function);
}

/// This process's rank, once it is known.
pub(crate) fn world_rank() -> Option<usize> {
    WORLD_RANK.load(Ordering::Relaxed).checked_sub(1)
}

/// Makes the rank known.
pub(crate) fn set_world_rank(rank: usize) {
    WORLD_RANK.store(rank + 1, Ordering::Relaxed);
}

/// Whether the faces' engine runs.
pub(crate) fn is_running() -> bool {
    RUNNING.load(Ordering::Acquire)
}

/// The faces' engine runs from now on, or no longer.
pub(crate) fn set_running(running: bool) {
    RUNNING.store(running, Ordering::Release);
}

/// How [`end_job`] ends the other ranks.
pub(crate) fn set_end(end: fn(i32) -> !) {
    leave(&END, end);
}

/// Ends all ranks of the job with this code; before the first start, this process alone. What
/// may run before that, above MPI's wrappers, calls `mpi::init::abort` itself.
pub(crate) fn end_job(code: i32) -> ! {
    match left(&END) {
        Some(end) => end(code),
        None => std::process::exit(if code == 0 { 1 } else { code }),
    }
}

/// What says, for reports, what is pending on this rank.
pub(crate) fn set_pending(pending: fn() -> Option<String>) {
    leave(&PENDING, pending);
}

/// What is pending on this rank; nothing where no engine can be asked.
pub(crate) fn pending() -> Option<String> {
    left(&PENDING).and_then(|pending| pending())
}

/// Signals are the host program's: none is to be handled on the calling thread, which is the
/// library's own. Naps are to end when they are asked to.
pub(crate) fn quiet_signals() {
    // SAFETY: both calls change this thread only; the set is initialised by
    // sigfillset.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, std::ptr::null_mut());
        libc::prctl(libc::PR_SET_TIMERSLACK, 1000usize);
    }
}
