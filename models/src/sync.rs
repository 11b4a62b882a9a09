//! The double of the library's `sync`, with the library's own files of its modules.
//!
//! The checker treats a sequentially consistent access as acquire and release only. Each such
//! access is therefore modelled as a weaker access and a sequentially consistent fence: before a
//! load, after a store, and on both sides of any other operation.

#[path = "../../crates/base/src/sync/append_lists.rs"]
#[allow(dead_code)] // some items are used only by the library
pub mod append_lists;
#[path = "../../crates/base/src/sync/biased_lock.rs"]
#[allow(dead_code)] // some items are used only by the library
pub mod biased_lock;
#[path = "../../crates/base/src/sync/brlock.rs"]
#[allow(dead_code)] // some items are used only by the library
pub mod brlock;
#[path = "../../crates/base/src/sync/membarrier.rs"]
#[allow(dead_code)] // some items are used only by the library
pub mod membarrier;
#[path = "../../crates/base/src/sync/ring.rs"]
pub mod ring;

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering;

pub use loom::thread::yield_now;

/// The model lacks a membarrier, so both sides use a fence.
pub const MEMBARRIER: bool = false;

/// Small, so that the bias is given up at the second use by other threads.
pub const BIAS_DOUBTED: u32 = 1;

thread_local! {
    // All threads of a model are coroutines of the test's thread.
    static MISSING: Cell<Option<Ordering>> = const { Cell::new(None) };
}

/// Runs `run` in every order of its steps, with at most `preemptions` preemptions per execution.
/// `LOOM_MAX_PREEMPTIONS` overrides that limit.
pub fn check(preemptions: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.max_branches = 20_000;
    builder.check(run);
}

/// Runs [`check`] with one memory order removed: its accesses are relaxed, and its fences do
/// nothing. The model must fail.
pub fn check_without(order: Ordering, preemptions: usize, run: impl Fn() + Sync + Send + 'static) {
    struct Restore;
    impl Drop for Restore {
        fn drop(&mut self) {
            MISSING.set(None);
        }
    }
    MISSING.set(Some(order));
    let _restore = Restore;
    check(preemptions, run);
}

/// Runs [`check`] without sequentially consistent fences. The model must fail.
pub fn check_without_fences(preemptions: usize, run: impl Fn() + Sync + Send + 'static) {
    check_without(Ordering::SeqCst, preemptions, run);
}

/// Returns a value that is unique to the calling thread.
pub fn this_thread() -> usize {
    loom::thread_local! {
        static HERE: Box<u8> = Box::new(0);
    }
    HERE.with(|here| std::ptr::from_ref::<u8>(here) as usize)
}

/// A clock that stands still: the time between any two instants is zero.
#[derive(Debug, Clone, Copy)]
pub struct Instant;

impl Instant {
    pub fn now() -> Instant {
        Instant
    }
}

impl std::ops::Sub for Instant {
    type Output = std::time::Duration;
    fn sub(self, _: Instant) -> std::time::Duration {
        std::time::Duration::ZERO
    }
}

/// A mutex with the interface of `parking_lot::Mutex`.
#[derive(Debug, Default)]
pub struct Mutex<T>(loom::sync::Mutex<T>);

#[derive(Debug)]
pub struct MutexGuard<'a, T>(loom::sync::MutexGuard<'a, T>);

impl<T> Mutex<T> {
    pub fn new(value: T) -> Mutex<T> {
        Mutex(loom::sync::Mutex::new(value))
    }
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(self.0.lock().unwrap())
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

pub mod atomic {
    //! Atomics and fences.
    use super::MISSING;
    use loom::sync::{Condvar, Mutex};
    pub use std::sync::atomic::Ordering;

    /// A fence of the model. Does nothing if the test disables fences of this order.
    pub fn fence(order: Ordering) {
        if MISSING.get() != Some(order) {
            loom::sync::atomic::fence(order);
        }
    }

    /// Does nothing: a compiler fence orders nothing between threads.
    pub fn compiler_fence(_: Ordering) {}

    fn full(order: Ordering) {
        if order == Ordering::SeqCst {
            fence(order);
        }
    }

    fn weaker(order: Ordering, instead: Ordering) -> Ordering {
        match order {
            Ordering::SeqCst => instead,
            _ if MISSING.get() == Some(order) => Ordering::Relaxed,
            _ => order,
        }
    }

    macro_rules! atomic {
        ($name:ident, $type:ty) => {
            /// The double of the standard library's atomic.
            #[derive(Debug, Default)]
            pub struct $name {
                inner: loom::sync::atomic::$name,
                queue: Mutex<()>,
                woken: Condvar,
            }

            impl $name {
                pub fn new(value: $type) -> $name {
                    $name {
                        inner: loom::sync::atomic::$name::new(value),
                        queue: Mutex::new(()),
                        woken: Condvar::new(),
                    }
                }
                pub fn load(&self, order: Ordering) -> $type {
                    full(order);
                    self.inner.load(weaker(order, Ordering::Acquire))
                }
                pub fn store(&self, value: $type, order: Ordering) {
                    self.inner.store(value, weaker(order, Ordering::Release));
                    full(order);
                }
                pub fn swap(&self, value: $type, order: Ordering) -> $type {
                    full(order);
                    let old = self.inner.swap(value, weaker(order, Ordering::AcqRel));
                    full(order);
                    old
                }
                pub fn compare_exchange(
                    &self,
                    old: $type,
                    new: $type,
                    order: Ordering,
                    failure: Ordering,
                ) -> Result<$type, $type> {
                    full(order);
                    let success = weaker(order, Ordering::AcqRel);
                    let failure = weaker(failure, Ordering::Acquire);
                    let result = self.inner.compare_exchange(old, new, success, failure);
                    full(order);
                    result
                }
                /// Sleeps until the word is woken. Returns at once if the word is not `value`.
                pub fn sleep_while(&self, value: $type) {
                    let queue = self.queue.lock().unwrap();
                    if self.inner.load(Ordering::Relaxed) == value {
                        drop(self.woken.wait(queue).unwrap());
                    }
                }
                /// Wakes all sleepers.
                pub fn wake(&self) {
                    let _queue = self.queue.lock().unwrap();
                    self.woken.notify_all();
                }
            }
        };
    }

    macro_rules! number {
        ($name:ident, $type:ty) => {
            atomic!($name, $type);

            impl $name {
                pub fn fetch_add(&self, value: $type, order: Ordering) -> $type {
                    full(order);
                    let old = self.inner.fetch_add(value, weaker(order, Ordering::AcqRel));
                    full(order);
                    old
                }
                pub fn fetch_or(&self, value: $type, order: Ordering) -> $type {
                    full(order);
                    let old = self.inner.fetch_or(value, weaker(order, Ordering::AcqRel));
                    full(order);
                    old
                }
                pub fn fetch_sub(&self, value: $type, order: Ordering) -> $type {
                    self.fetch_add(value.wrapping_neg(), order)
                }
            }
        };
    }

    atomic!(AtomicBool, bool);
    number!(AtomicU32, u32);
    number!(AtomicU64, u64);
    number!(AtomicUsize, usize);
}

pub mod reader_slot {
    //! A slot for each thread of an execution. Slots are not reused.
    use crate::sync::Mutex;
    use crate::sync::atomic::AtomicU32;
    use std::cell::Cell;
    use std::ops::Deref;

    #[derive(Debug, Default)]
    pub struct ReaderSlot {
        pub depth: AtomicU32,
    }

    loom::lazy_static! {
        static ref SLOTS: Mutex<Vec<&'static ReaderSlot>> = Mutex::new(Vec::new());
    }
    loom::thread_local! {
        static SLOT: Cell<Option<&'static ReaderSlot>> = Cell::new(None);
    }

    pub fn mine() -> &'static ReaderSlot {
        SLOT.with(|mine| {
            mine.get().unwrap_or_else(|| {
                let mut slots = SLOTS.lock();
                let new: &'static ReaderSlot = Box::leak(Box::default());
                slots.push(new);
                mine.set(Some(new));
                new
            })
        })
    }

    pub fn is_reading() -> bool {
        use crate::sync::atomic::Ordering;
        SLOT.with(|mine| mine.get().is_some_and(|slot| slot.depth.load(Ordering::Relaxed) > 0))
    }

    pub fn all() -> impl Deref<Target = Vec<&'static ReaderSlot>> {
        SLOTS.lock()
    }
}
