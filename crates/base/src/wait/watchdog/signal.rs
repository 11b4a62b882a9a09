//! The handler of `SIGUSR1`, and the futex that wakes the watchdog's thread.
//!
//! The handler only increments a counter and wakes the thread that sleeps on another word, because
//! it may interrupt any code. It is installed only if the signal has its default action or a
//! handler of MPI, which it then calls, and removed only if the program has not replaced it.
//!
//! Invariant: before a thread makes a report, it sets `ANSWERED` to the value of `ASKED` that it
//! saw. Each wait that sees a signal therefore answers it once, and the watchdog's thread answers
//! it only if no wait has.

use crate::futex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

static ASKED: AtomicU32 = AtomicU32::new(0);
static ANSWERED: AtomicU32 = AtomicU32::new(0);
/// Changes with each signal, and when the thread has to end.
static BELL: AtomicU32 = AtomicU32::new(0);
static STOP: AtomicBool = AtomicBool::new(false);
static BEFORE: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);

const MAX_WAIT: Duration = Duration::from_secs(3600);

#[inline]
pub(super) fn asked() -> u32 {
    ASKED.load(Ordering::Relaxed)
}

#[inline]
pub(super) fn answered() -> u32 {
    ANSWERED.load(Ordering::Relaxed)
}

/// Returns the number of signals so far.
pub fn answer() -> u32 {
    let asked = asked();
    ANSWERED.store(asked, Ordering::Relaxed);
    asked
}

fn ring() {
    BELL.fetch_add(1, Ordering::Release);
    futex::wake_all(&BELL);
}

extern "C" fn on_signal(signal: libc::c_int) {
    // SAFETY: `errno` of this thread, which the system call may change, is restored. An earlier
    // handler has this type, because it was installed without SA_SIGINFO.
    unsafe {
        let errno = libc::__errno_location();
        let kept = *errno;
        ASKED.fetch_add(1, Ordering::Relaxed);
        ring();
        *errno = kept;
        match BEFORE.load(Ordering::Relaxed) {
            libc::SIG_DFL | libc::SIG_IGN => {}
            before => {
                let before: extern "C" fn(libc::c_int) = std::mem::transmute(before);
                before(signal);
            }
        }
    }
}

fn current() -> libc::sigaction {
    // SAFETY: zeros are a valid `sigaction`, which the call overwrites.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGUSR1, std::ptr::null(), &mut action);
        action
    }
}

fn set(handler: libc::sighandler_t) {
    // SAFETY: all members are set, and the handler has the type without SA_SIGINFO. SA_RESTART lets
    // interrupted system calls continue.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_RESTART;
        libc::sigemptyset(&mut action.sa_mask);
        libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut());
    }
}

fn ours() -> libc::sighandler_t {
    on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t
}

/// MPICH installs a handler that counts the signals and calls the one that it replaced.
fn is_of_mpi(action: &libc::sigaction) -> bool {
    if action.sa_flags & libc::SA_SIGINFO != 0 || action.sa_sigaction == libc::SIG_IGN {
        return false;
    }
    // SAFETY: zeros are a valid `Dl_info`, which the call overwrites. `dli_fname` is null or a
    // string that is valid while the file is loaded.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(action.sa_sigaction as *const libc::c_void, &mut info) == 0
            || info.dli_fname.is_null()
        {
            return false;
        }
        let path = std::ffi::CStr::from_ptr(info.dli_fname).to_string_lossy();
        path.rsplit('/').next().is_some_and(|name| name.starts_with("libmpi"))
    }
}

pub fn open() {
    STOP.store(false, Ordering::Relaxed);
    answer();
}

/// Returns false if the program has its own handler or ignores the signal.
pub(super) fn install() -> bool {
    let before = current();
    if before.sa_sigaction != libc::SIG_DFL && !is_of_mpi(&before) {
        return false;
    }
    BEFORE.store(before.sa_sigaction, Ordering::Relaxed);
    set(ours());
    true
}

/// Removes the handler, unless the program has replaced it, and ends the watchdog's wait.
pub(super) fn close() {
    if current().sa_sigaction == ours() {
        set(BEFORE.load(Ordering::Relaxed));
    }
    STOP.store(true, Ordering::Relaxed);
    ring();
}

/// Sleeps until a signal arrives, for at most `most`. Returns false if the thread has to end.
pub(super) fn wait(most: Duration) -> bool {
    let bell = BELL.load(Ordering::Acquire);
    if STOP.load(Ordering::Relaxed) {
        return false;
    }
    if asked() == answered() {
        futex::wait(&BELL, bell, most.min(MAX_WAIT));
    }
    !STOP.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "signals and futexes")]
    fn a_signal_is_a_question_and_a_foreign_handler_stays() {
        extern "C" fn foreign(_: libc::c_int) {}
        let foreign = foreign as extern "C" fn(libc::c_int) as libc::sighandler_t;
        open();
        assert!(install());
        let before = asked();
        // SAFETY: the signal has a handler.
        unsafe { libc::raise(libc::SIGUSR1) };
        assert_eq!(asked(), before + 1);
        assert!(wait(MAX_WAIT));
        assert_eq!(answer(), before + 1);
        assert!(wait(Duration::from_millis(1)));
        set(foreign);
        close();
        assert_eq!(current().sa_sigaction, foreign);
        assert!(!wait(MAX_WAIT));
        assert!(!install());
        set(libc::SIG_DFL);
    }
}
