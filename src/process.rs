//! What a process has once, whatever runs in it: the rank that errors name, the way to end
//! the job, and what its own threads ask of the kernel.
//!
//! Every layer may use this module, and it uses none: what an upper layer knows (how MPI ends
//! a job, what an engine has pending) it leaves here as a function when it starts.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Once, PoisonError, RwLock};

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

/// Set in a forked child of a process that had started the engine.
static FORKED: AtomicBool = AtomicBool::new(false);
/// A function of the engine that runs in a forked child.
static IN_CHILD: Left<fn()> = RwLock::new(None);

extern "C" fn forked() {
    FORKED.store(true, Ordering::Relaxed);
    RUNNING.store(false, Ordering::Release);
    // The lock is taken for writing once, by a thread that may not fork meanwhile.
    if let Ok(in_child) = IN_CHILD.try_read()
        && let Some(in_child) = *in_child
    {
        in_child();
    }
}

/// Marks the children that this process forks from now on, and runs `in_child` in them. `in_child` must only
/// store to memory: a lock may be held by a thread that the child does not have.
pub(crate) fn watch_forks(in_child: fn()) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        leave(&IN_CHILD, in_child);
        // SAFETY: the function stores to memory only.
        unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    });
}

/// Whether this process is a forked child of a rank.
#[inline]
pub(crate) fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// How [`end_job`] ends the other ranks.
pub(crate) fn set_end(end: fn(i32) -> !) {
    leave(&END, end);
}

/// Ends all ranks of the job with this code; before the first start, this process alone. What
/// may run before that, above MPI's wrappers, calls `mpi::init::abort` itself.
pub(crate) fn end_job(code: i32) -> ! {
    if is_forked() {
        // The job is the parent's, and so is what exit handlers would do.
        // SAFETY: ends the process, and runs nothing of it.
        unsafe { libc::_exit(if code & 0xff == 0 { 1 } else { code }) }
    }
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

/// Runs `body` with SIGXFSZ blocked and discarded. A system call that exceeds `ulimit -f` then fails with
/// `EFBIG` and does not end the process.
pub(crate) fn without_size_signal<R>(body: impl FnOnce() -> R) -> R {
    // SAFETY: the calls change the mask of this thread only, and restore it; the sets are
    // initialised by sigemptyset and pthread_sigmask.
    unsafe {
        let mut signal: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut signal);
        libc::sigaddset(&mut signal, libc::SIGXFSZ);
        libc::pthread_sigmask(libc::SIG_BLOCK, &signal, &mut before);
        let result = body();
        if libc::sigismember(&before, libc::SIGXFSZ) == 0 {
            let at_once: libc::timespec = std::mem::zeroed();
            libc::sigtimedwait(&signal, std::ptr::null_mut(), &at_once);
            libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        }
        result
    }
}

/// The limit of a file's size (`ulimit -f`) in bytes; `None` if there is no limit.
pub(crate) fn longest_file() -> Option<u64> {
    // SAFETY: the call writes the structure that it is given.
    let limit = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit);
        limit.rlim_cur
    };
    (limit != libc::RLIM_INFINITY).then_some(limit)
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
