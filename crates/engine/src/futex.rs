//! Sleeping on a word of memory, which several processes may share.

use crate::sync::atomic::AtomicU32;
use std::time::Duration;

fn call(word: &AtomicU32, operation: i32, value: u32, timeout: Option<Duration>) {
    let time = timeout.map(|t| libc::timespec {
        tv_sec: t.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(t.subsec_nanos()),
    });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word is mapped and aligned, the time valid or null. Processes may share the word.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, time) };
}

/// Returns at once if the word is not `value`, and may return early at any time.
pub fn wait(word: &AtomicU32, value: u32, timeout: Duration) {
    call(word, libc::FUTEX_WAIT, value, Some(timeout));
}

pub fn wake_all(word: &AtomicU32) {
    call(word, libc::FUTEX_WAKE, i32::MAX as u32, None);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_sleeper_wakes() {
        let word = AtomicU32::new(0);
        wait(&word, 1, Duration::from_secs(10)); // returns at once: the value differs
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while word.load(Ordering::Acquire) == 0 {
                    wait(&word, 0, Duration::from_secs(10));
                }
            });
            word.store(1, Ordering::Release);
            wake_all(&word);
        });
    }
}
