//! The handler of `SIGUSR1`, and the bell that it rings.
//!
//! The handler adds one to a word and wakes the thread that sleeps on another:
//! nothing else, since it may interrupt anything. It is put in place only where the
//! signal has its default action, or a handler of MPI's that is then called on, and
//! taken away only while it is ours.
//!
//! Invariant: a thread that makes a report first sets `ANSWERED` to the value of `ASKED` that
//! it saw, so that a signal is answered once by each wait that sees it, and by the watchdog's
//! thread only where no wait has.

use crate::futex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

static ASKED: AtomicU32 = AtomicU32::new(0);
static ANSWERED: AtomicU32 = AtomicU32::new(0);
/// Changes with every question, and when the thread is to end.
static BELL: AtomicU32 = AtomicU32::new(0);
static STOP: AtomicBool = AtomicBool::new(false);
/// The handler that ours took the place of, which is called on.
static BEFORE: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);

const LONGEST: Duration = Duration::from_secs(3600);

/// How often was asked.
#[inline]
pub(super) fn asked() -> u32 {
    ASKED.load(Ordering::Relaxed)
}

/// Up to which question was answered.
#[inline]
pub(super) fn answered() -> u32 {
    ANSWERED.load(Ordering::Relaxed)
}

/// Notes that all questions so far are being answered; returns their number.
pub(super) fn answer() -> u32 {
    let asked = asked();
    ANSWERED.store(asked, Ordering::Relaxed);
    asked
}

fn ring() {
    BELL.fetch_add(1, Ordering::Release);
    futex::wake_all(&BELL);
}

extern "C" fn on_signal(signal: libc::c_int) {
    // SAFETY: errno is this thread's own; the system call may change it under the
    // interrupted code, so it is put back. The function called is a handler that was in
    // place before, of the type that goes without SA_SIGINFO.
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
    // SAFETY: the structure is plain data, and the call fills it in.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGUSR1, std::ptr::null(), &mut action);
        action
    }
}

fn set(handler: libc::sighandler_t) {
    // SAFETY: the structure is filled in as the call wants it; the handler has the
    // type that goes without SA_SIGINFO. Calls that the signal interrupts go on.
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

/// Whether a handler is MPI's: MPICH counts the signal, and calls on whom it replaced.
fn is_of_mpi(action: &libc::sigaction) -> bool {
    if action.sa_flags & libc::SA_SIGINFO != 0 || action.sa_sigaction == libc::SIG_IGN {
        return false;
    }
    // SAFETY: the structure is plain data that the call fills in; the file's name, where
    // there is one, is a string that lives as long as the file is loaded.
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

/// Begins a life of the thread.
pub(super) fn open() {
    STOP.store(false, Ordering::Relaxed);
    answer();
}

/// Puts the handler in place; false where the program has one, or ignores the signal.
pub(super) fn install() -> bool {
    let before = current();
    if before.sa_sigaction != libc::SIG_DFL && !is_of_mpi(&before) {
        return false;
    }
    BEFORE.store(before.sa_sigaction, Ordering::Relaxed);
    set(ours());
    true
}

/// Takes the handler away, unless the program has put its own in place meanwhile,
/// and ends the wait of the thread.
pub(super) fn close() {
    if current().sa_sigaction == ours() {
        set(BEFORE.load(Ordering::Relaxed));
    }
    STOP.store(true, Ordering::Relaxed);
    ring();
}

/// Sleeps until there is a question, or for `most`; false when the thread is to end.
pub(super) fn wait(most: Duration) -> bool {
    let bell = BELL.load(Ordering::Acquire);
    if STOP.load(Ordering::Relaxed) {
        return false;
    }
    if asked() == answered() {
        futex::wait(&BELL, bell, most.min(LONGEST));
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
        assert!(wait(LONGEST));
        assert_eq!(answer(), before + 1);
        assert!(wait(Duration::from_millis(1)));
        set(foreign);
        close();
        assert_eq!(current().sa_sigaction, foreign);
        assert!(!wait(LONGEST));
        assert!(!install());
        set(libc::SIG_DFL);
    }
}
