//! Which thread this is, in one instruction where the processor has a register for that.
//!
//! A variable of the thread would do as well, but costs a call in a shared library.

/// Something different for every thread that lives, and never zero.
#[inline]
pub fn this_thread() -> usize {
    imp()
}

/// The address of the thread's control block, which begins with that address.
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
#[inline]
fn imp() -> usize {
    let this: usize;
    // SAFETY: on Linux the segment register FS points at the block, whose first word is its
    // own address (System V ABI, thread-local storage); it is only read.
    unsafe {
        std::arch::asm!(
            "mov {}, fs:[0]",
            out(reg) this,
            options(pure, readonly, nostack, preserves_flags)
        );
    }
    this
}

/// The thread pointer.
#[cfg(all(target_arch = "aarch64", target_os = "linux", not(miri)))]
#[inline]
fn imp() -> usize {
    let this: usize;
    // SAFETY: the register may be read by every program.
    unsafe {
        std::arch::asm!(
            "mrs {}, tpidr_el0",
            out(reg) this,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    this
}

/// The address of a variable of the thread.
#[cfg(not(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_os = "linux",
    not(miri)
)))]
#[inline]
fn imp() -> usize {
    thread_local! {
        static HERE: u8 = const { 0 };
    }
    HERE.with(|here| std::ptr::from_ref(here) as usize)
}

#[cfg(test)]
mod tests {
    use super::this_thread;

    #[test]
    fn threads_that_live_differ() {
        let me = this_thread();
        assert!(me != 0 && me == this_thread());
        let both = std::sync::Barrier::new(2);
        let tell = || {
            let here = this_thread();
            both.wait();
            here
        };
        let [first, second] = std::thread::scope(|scope| {
            [scope.spawn(tell), scope.spawn(tell)].map(|thread| thread.join().unwrap())
        });
        assert!(first != second && first != me && second != me);
    }
}
