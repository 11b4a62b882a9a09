//! The sources of Portolan's parts without locks, over the doubles of a model checker.
//!
//! The modules below are the library's own files; [`sync`], [`futex`], the slots of threads
//! and the node are doubles. A sleep has no end here, so that a wake-up which is lost is a
//! deadlock, which the checker reports.

pub mod sync;

/// Sleeping on a word, as the kernel has it: look and sleep are one step.
pub mod futex {
    use crate::sync::atomic::AtomicU32;
    use std::time::Duration;

    /// Sleeps until somebody wakes the word; not at all where it is not `value`, or the
    /// time is zero.
    pub fn wait(word: &AtomicU32, value: u32, timeout: Duration) {
        if timeout.is_zero() {
            crate::sync::yield_now();
        } else {
            word.sleep_while(value);
        }
    }

    /// Wakes all who sleep on the word.
    pub fn wake_all(word: &AtomicU32) {
        word.wake();
    }
}

#[path = "../../src/am"]
#[allow(dead_code)] // what the library alone uses
pub mod am {
    //! Waking a rank, and sharing work with one.
    pub mod doorbell;
    pub mod poll_state;
    pub mod work_split;

    pub mod shm_transport {
        //! What presence uses of a node.
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

#[path = "../../src/rpc/na"]
pub mod rpc {
    //! Waiting in function shipping.
    pub mod eventcount;
}

#[path = "../../src/memory"]
#[allow(dead_code)] // what the registry alone uses
pub mod memory {
    //! Looking addresses up while segments come and go.
    pub mod biased_lock;
    pub mod brlock;
    pub mod membarrier;

    pub mod reader_slot {
        //! A slot for each thread of an execution; none is used again.
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
