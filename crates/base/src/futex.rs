//! Sleeping on a word of memory, which several processes may share.

use std::sync::atomic::AtomicU32;
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

/// Returns whether a word of this process can be written, without a change of its value: the kernel
/// adds 0 to it atomically. The address must be aligned to 4 bytes.
pub fn is_writable(address: usize) -> bool {
    debug_assert!(address.is_multiple_of(4), "the address of a word");
    let here = AtomicU32::new(0);
    let operation = libc::FUTEX_WAKE_OP | libc::FUTEX_PRIVATE_FLAG;
    let add_nothing = libc::FUTEX_OP(libc::FUTEX_OP_ADD, 0, libc::FUTEX_OP_CMP_EQ, 0);
    // SAFETY: the kernel checks the address, and adds 0 to the word there. Sleepers on the word may
    // wake up, as they may at any time.
    let woken = unsafe {
        libc::syscall(libc::SYS_futex, here.as_ptr(), operation, 0, 0, address, add_nothing)
    };
    woken >= 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::EFAULT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn words_are_writable_or_not() {
        static CONSTANT: u32 = 7;
        static WORD: AtomicU32 = AtomicU32::new(7);
        assert!(is_writable(WORD.as_ptr() as usize));
        assert_eq!(WORD.load(Ordering::Relaxed), 7);
        assert!(!is_writable(&raw const CONSTANT as usize));
        assert!(!is_writable(8));
        assert!(!is_writable(usize::MAX - 7));
    }

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
