//! Process-wide state that is independent of the engine. Every layer may use this module, which
//! uses none. An upper layer registers functions here when it starts, for example to end a job
//! through MPI or to report the pending operations of an engine. Its messages to the user are in
//! [`message`].

use parking_lot::RwLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Once, OnceLock};

pub mod message;

/// World rank + 1, or 0 while unknown. Kept after the end, for error messages.
static WORLD_RANK: AtomicUsize = AtomicUsize::new(0);
static RUNNING: AtomicBool = AtomicBool::new(false);

type Left<F> = RwLock<Option<F>>;

static END: Left<fn(i32) -> !> = RwLock::new(None);
static PENDING: Left<fn() -> Option<String>> = RwLock::new(None);

fn left<F: Copy>(function: &Left<F>) -> Option<F> {
    *function.read()
}

fn leave<F>(place: &Left<F>, function: F) {
    *place.write() = Some(function);
}

pub fn world_rank() -> Option<usize> {
    WORLD_RANK.load(Ordering::Relaxed).checked_sub(1)
}

pub fn set_world_rank(rank: usize) {
    WORLD_RANK.store(rank + 1, Ordering::Relaxed);
}

pub fn is_running() -> bool {
    RUNNING.load(Ordering::Acquire)
}

pub fn set_running(running: bool) {
    RUNNING.store(running, Ordering::Release);
}

/// Number of forks between the process that first called [`count_forks`] and this one.
static FORKS: AtomicUsize = AtomicUsize::new(0);
/// Set in a forked child of a process that has started the engine.
static FORKED: AtomicBool = AtomicBool::new(false);
static IN_CHILD: OnceLock<fn()> = OnceLock::new();

extern "C" fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    if let Some(in_child) = IN_CHILD.get() {
        FORKED.store(true, Ordering::Relaxed);
        RUNNING.store(false, Ordering::Release);
        in_child();
    }
}

pub fn count_forks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: `forked` only accesses memory, which is allowed in a forked child.
        unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    });
}

/// In forked children, `in_child` may only store to memory: locks may be held for good.
pub fn watch_forks(in_child: fn()) {
    let _ = IN_CHILD.set(in_child);
    count_forks();
}

/// Differs between a process and its forked children.
#[inline]
pub fn forks() -> usize {
    FORKS.load(Ordering::Relaxed)
}

#[inline]
pub fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

pub fn set_end(end: fn(i32) -> !) {
    leave(&END, end);
}

/// Returns whether [`end_job`] ends other ranks too.
pub(crate) fn has_job() -> bool {
    left(&END).is_some()
}

/// Ends all ranks of the job with exit code `code`, or with 1 if `code` is 0. Ends only this
/// process before the first start of the engine, where code above the MPI wrappers calls
/// `mpi::init::abort` instead, and in a forked child.
pub fn end_job(code: i32) -> ! {
    if is_forked() {
        // The job belongs to the parent, and so do the exit handlers.
        // SAFETY: `_exit` ends the process and runs no exit handlers.
        unsafe { libc::_exit(if code & 0xff == 0 { 1 } else { code }) }
    }
    match left(&END) {
        Some(end) => end(code),
        None => std::process::exit(if code == 0 { 1 } else { code }),
    }
}

pub fn set_pending(pending: fn() -> Option<String>) {
    leave(&PENDING, pending);
}

pub fn pending() -> Option<String> {
    left(&PENDING).and_then(|pending| pending())
}

static KEEPS_MAPPED: Left<fn() -> bool> = RwLock::new(None);
static KEPT_MAPPED: AtomicBool = AtomicBool::new(false);

/// An engine asks at its end whether the program may still use segments.
pub fn set_keeps_mapped(keeps: fn() -> bool) {
    leave(&KEEPS_MAPPED, keeps);
}

/// Leaves shared files mapped from now on, if the program may still use them.
pub fn ask_keeps_mapped() {
    if left(&KEEPS_MAPPED).is_some_and(|keeps| keeps()) {
        KEPT_MAPPED.store(true, Ordering::Relaxed);
    }
}

pub(crate) fn is_kept_mapped() -> bool {
    KEPT_MAPPED.load(Ordering::Relaxed)
}

/// A panic ends the job: it would unwind through a call that has lent memory to others.
fn called<R>(function: fn() -> R) -> R {
    match std::panic::catch_unwind(function) {
        Ok(result) => result,
        Err(_) => {
            log::error!("a function that the program has given to the runtime panicked");
            end_job(1)
        }
    }
}

static INTERRUPTED: Left<fn() -> bool> = RwLock::new(None);

/// Sets a function that returns whether the calling thread must end its wait for other ranks. A
/// wait that rests calls it about every 20 ms. A panic in it ends the job.
pub fn set_interrupted(interrupted: fn() -> bool) {
    leave(&INTERRUPTED, interrupted);
}

pub(crate) fn is_interrupted() -> bool {
    left(&INTERRUPTED).is_some_and(called)
}

static CALLER: Left<fn() -> Option<String>> = RwLock::new(None);
static HAS_CALLER: AtomicBool = AtomicBool::new(false);

/// Sets a function that returns, as `file:line`, the source line of the program that is in a call,
/// for languages that the stack does not show. A panic in it ends the job.
pub fn set_caller(caller: fn() -> Option<String>) {
    leave(&CALLER, caller);
    HAS_CALLER.store(true, Ordering::Relaxed);
}

/// Returns the source line of the program in a call of this thread, if a binding knows it.
#[inline]
pub fn caller() -> Option<String> {
    if HAS_CALLER.load(Ordering::Relaxed) { left(&CALLER).and_then(called) } else { None }
}

/// Forgets the functions that the program has given for the runtime that ends.
pub fn forget_functions() {
    HAS_CALLER.store(false, Ordering::Relaxed);
    *CALLER.write() = None;
    *INTERRUPTED.write() = None;
    *KEEPS_MAPPED.write() = None;
}

/// Runs `body` with SIGXFSZ blocked and discarded: beyond `ulimit -f`, a system call then fails
/// with `EFBIG` instead of ending the process.
pub(crate) fn without_size_signal<R>(body: impl FnOnce() -> R) -> R {
    // SAFETY: the calls change only the signal mask of this thread, and restore it. `sigemptyset`
    // and `pthread_sigmask` initialise the sets.
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

pub fn longest_file() -> Option<u64> {
    // SAFETY: zeros are a valid `rlimit`, which the call overwrites.
    let limit = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit);
        limit.rlim_cur
    };
    (limit != libc::RLIM_INFINITY).then_some(limit)
}

/// Blocks all signals, which belong to the program, on a thread of the library. Also sets the timer
/// slack to 1 us, so that naps end on time.
pub fn quiet_signals() {
    // SAFETY: the calls affect only this thread, and `sigfillset` initialises the set.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, std::ptr::null_mut());
        libc::prctl(libc::PR_SET_TIMERSLACK, 1000usize);
    }
}
