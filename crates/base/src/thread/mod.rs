//! The identity of the calling thread, the start of the library's own threads, and thread-local
//! values.
//!
//! A thread is identified by its thread pointer, read from a register if possible, because a
//! thread-local variable costs a call in a shared library. For the same reason the values of a
//! thread ([`FastTls`]) lie in plain memory for the *first* thread, which is the first to ask and
//! makes most of the calls.
//!
//! Invariant: only the first thread accesses the plain memory. After it has ended, a later thread
//! with the same thread pointer takes its place and finds the values that it left.

pub mod blocked;
mod public_call;
pub mod stack;

pub use public_call::PublicCall;

pub use portolan_trace_format::format::Role;
use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, JoinHandle, LocalKey};

thread_local! {
    static ROLE: Cell<Role> = const { Cell::new(Role::Program) };
}

pub fn role() -> Role {
    ROLE.get()
}

/// Starts a thread of the library.
pub fn spawn(
    thread: Builder,
    role: Role,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    thread.spawn(move || {
        crate::process::quiet_signals();
        ROLE.set(role);
        body();
    })
}

static FIRST: AtomicUsize = AtomicUsize::new(0);

#[inline]
pub fn is_first() -> bool {
    let first = FIRST.load(Ordering::Relaxed);
    first == this_thread() || first == 0 && claim()
}

#[cold]
fn claim() -> bool {
    FIRST.compare_exchange(0, this_thread(), Ordering::Relaxed, Ordering::Relaxed).is_ok()
}

pub struct FastTls<T: 'static> {
    first: Cell<T>,
    others: &'static LocalKey<Cell<T>>,
}

// SAFETY: only the first thread accesses `first`; its successor starts after it has ended.
unsafe impl<T: Send> Sync for FastTls<T> {}

impl<T> std::fmt::Debug for FastTls<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OfThread")
    }
}

/// Defines a [`FastTls`] with the same initial value in each thread.
#[doc(hidden)]
#[macro_export]
macro_rules! __fast_tls {
    ($(#[$doc:meta])* static $name:ident: $type:ty = $value:expr;) => {
        $(#[$doc])*
        static $name: $crate::thread::FastTls<$type> = {
            std::thread_local! {
                static OTHERS: std::cell::Cell<$type> = const { std::cell::Cell::new($value) };
            }
            $crate::thread::FastTls::new($value, &OTHERS)
        };
    };
}
pub use __fast_tls as fast_tls;

impl<T> FastTls<T> {
    pub const fn new(first: T, others: &'static LocalKey<Cell<T>>) -> FastTls<T> {
        FastTls { first: Cell::new(first), others }
    }

    #[inline]
    pub fn with<R>(&self, body: impl FnOnce(&Cell<T>) -> R) -> R {
        if is_first() { body(&self.first) } else { self.others.with(body) }
    }

    #[inline]
    pub fn get(&self) -> T
    where
        T: Copy,
    {
        self.with(Cell::get)
    }

    #[inline]
    pub fn set(&self, value: T) {
        self.with(|cell| cell.set(value));
    }

    #[inline]
    pub fn take(&self) -> T
    where
        T: Default,
    {
        self.with(Cell::take)
    }
}

/// Returns the thread pointer, which is nonzero and differs between all live threads.
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), target_os = "linux", not(miri)))]
#[inline]
pub fn this_thread() -> usize {
    let this: usize;
    // SAFETY: on Linux, FS points at the thread's control block, whose first word is its address.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!("mov {}, fs:[0]", out(reg) this, options(pure, readonly, nostack));
    }
    // SAFETY: every program may read the register.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("mrs {}, tpidr_el0", out(reg) this, options(pure, nomem, nostack));
    }
    this
}

/// Returns a nonzero address that differs between all live threads.
#[cfg(not(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_os = "linux",
    not(miri)
)))]
#[inline]
pub fn this_thread() -> usize {
    thread_local! {
        static HERE: u8 = const { 0 };
    }
    HERE.with(|here| std::ptr::from_ref(here) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_its_own() {
        fast_tls! {
            static NUMBER: u32 = 7;
        }
        // The barrier keeps all threads alive: a later one may get the address of one that ended.
        let all = std::sync::Barrier::new(5);
        let count = || {
            all.wait();
            assert_eq!(NUMBER.get(), 7);
            (0..100).for_each(|_| NUMBER.set(NUMBER.get() + 1));
            assert_eq!(NUMBER.take(), 107);
            assert_eq!(NUMBER.get(), 0);
            NUMBER.set(7);
            let first = is_first();
            all.wait();
            first
        };
        let firsts = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(count)).collect();
            let mine = usize::from(count());
            threads.into_iter().map(|thread| usize::from(thread.join().unwrap())).sum::<usize>()
                + mine
        });
        // Another test may have claimed the first thread.
        assert!(firsts <= 1);
    }

    #[test]
    fn threads_that_live_differ() {
        let me = this_thread();
        assert!(me != 0 && me == this_thread());
        let both = std::sync::Barrier::new(2);
        let number = || {
            let here = this_thread();
            both.wait();
            here
        };
        let [first, second] = std::thread::scope(|scope| {
            [scope.spawn(number), scope.spawn(number)].map(|thread| thread.join().unwrap())
        });
        assert!(first != second && first != me && second != me);
    }
}
