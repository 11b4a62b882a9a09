//! Barriers that one side pays for both.
//!
//! Where one thread does something all the time and others rarely, the frequent side
//! can do without locked instructions: the rare side lets the kernel put a memory
//! barrier into every thread of the process (`membarrier(2)`). Where the kernel has
//! no such call, the frequent side uses a barrier of its own. So it does under Miri and in the
//! models, which know nothing of the call: what is checked there is the protocol with a
//! sequentially consistent fence on both sides, which the call gives to both.

use crate::sync::MEMBARRIER;
use crate::sync::atomic::{Ordering, compiler_fence, fence};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

/// Whether the rare side puts the barrier into the frequent one.
#[inline]
fn asymmetric() -> bool {
    if !MEMBARRIER {
        return false;
    }
    YES.load(Ordering::Relaxed) || ask()
}

/// The kernel has said so; false also where it was not asked yet.
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
    // SAFETY: the call touches no memory of ours; commands that the kernel does
    // not know are refused.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// The frequent side's barrier: what it stored before is seen by a thread that calls
/// [`heavy`], or what it loads afterwards is seen as that thread left it.
#[inline]
pub(crate) fn light() {
    if asymmetric() {
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

/// The rare side's: a barrier in every thread of the process.
pub(crate) fn heavy() {
    fence(Ordering::SeqCst);
    if !asymmetric() {
        return;
    }
    let done = membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
        // A process made by fork has to say again that it will use it.
        || membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
            && membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
        || membarrier(libc::MEMBARRIER_CMD_GLOBAL);
    assert!(done, "membarrier was there and is there no more");
}
