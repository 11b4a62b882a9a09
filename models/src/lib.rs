//! The lock-free sources of Portolan, compiled against the doubles of a model checker.
//!
//! The modules below are the library's own files. [`sync`], [`futex`], the reader slots and the
//! shared-memory transport are doubles. A sleep never times out here, so a lost wake-up becomes a
//! deadlock, which the checker reports.

pub mod sync;

/// The double of the kernel's futex: checking the word and going to sleep are one step.
pub mod futex {
    use crate::sync::atomic::AtomicU32;
    use std::time::Duration;

    /// Sleeps until the word is woken. Returns at once if the word is not `value`, and only yields
    /// if `timeout` is zero.
    pub fn wait(word: &AtomicU32, value: u32, timeout: Duration) {
        if timeout.is_zero() {
            crate::sync::yield_now();
        } else {
            word.sleep_while(value);
        }
    }

    /// Wakes all threads that sleep on the word.
    pub fn wake_all(word: &AtomicU32) {
        word.wake();
    }
}

/// The double of the library's waits.
pub mod wait {
    /// Waits while `held` returns true.
    pub fn while_held(mut held: impl FnMut() -> bool, _yielded: impl FnMut()) {
        while held() {
            crate::sync::yield_now();
        }
    }
}

#[path = "../../crates/engine/src/am"]
#[allow(dead_code)] // some items are used only by the library
pub mod am {
    //! Waking a rank, and splitting work with one.
    pub mod doorbell;
    pub mod poll_state;
    pub mod work_split;

    pub mod shm_transport {
        //! The part of a node that presence uses.
        use super::doorbell::Doorbell;

        #[derive(Debug, Default)]
        pub struct ShmTransport {
            pub door: Doorbell,
        }

        impl ShmTransport {
            pub fn set_attended(&self, attended: bool) {
                self.door.set_attended(attended);
            }
            pub fn wake_own(&self) {
                self.door.wake();
            }
        }
    }
}

// Sources of other crates of the workspace name the engine by its crate.
extern crate self as portolan_engine;

#[path = "../../crates/rpc/src/na"]
pub mod rpc {
    //! Waiting in RPC.
    pub mod eventcount;
}

#[path = "../../crates/engine/src/memory"]
#[allow(dead_code)] // some items are used only by the registry
pub mod memory {
    //! Address lookup while segments are added and removed, and collecting items.
    pub mod append_lists;
    pub mod biased_lock;
    pub mod brlock;
    pub mod membarrier;

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
}
