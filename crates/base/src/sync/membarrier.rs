//! Asymmetric memory barriers. If one side of a protocol runs often and the other rarely, the
//! frequent side can avoid locked instructions: the rare side makes the kernel execute a memory
//! barrier in every thread of the process (`membarrier(2)`). Without this call, both sides execute
//! sequentially consistent fences, and so do Miri and the models.

use crate::sync::MEMBARRIER;
use crate::sync::atomic::{Ordering, compiler_fence, fence};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

#[inline]
fn asymmetric() -> bool {
    if !MEMBARRIER {
        return false;
    }
    YES.load(Ordering::Relaxed) || ask()
}

/// Whether the kernel supports the call. False until asked.
static YES: AtomicBool = AtomicBool::new(false);

#[cold]
fn ask() -> bool {
    static ASKED: OnceLock<bool> = OnceLock::new();
    *ASKED.get_or_init(|| {
        let yes = membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
        YES.store(yes, Ordering::Relaxed);
        yes
    })
}

fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: the call accesses no memory, and the kernel refuses unknown commands.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// The barrier of the frequent side. Either the other thread sees the stores before this call, or
/// the loads after it see the stores that the thread made before [`heavy`].
#[inline]
pub fn light() {
    if asymmetric() {
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

/// The barrier of the rare side. Acts as a full barrier in every thread of the process.
pub fn heavy() {
    fence(Ordering::SeqCst);
    if !asymmetric() {
        return;
    }
    let done = membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
        // A forked process must register again.
        || membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
            && membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
        || membarrier(libc::MEMBARRIER_CMD_GLOBAL);
    assert!(done, "membarrier is no longer available");
}
