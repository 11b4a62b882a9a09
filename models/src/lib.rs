//! The lock-free sources of Portolan, compiled against the doubles of a model checker.
//!
//! The modules below are the library's own files. [`sync`], [`futex`], the reader slots, the memory
//! of a ring and the shared-memory transport are doubles. A sleep never times out here, so a lost
//! wake-up becomes a deadlock, which the checker reports.

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

#[path = "../../crates/base/src/wait"]
pub mod wait {
    //! The double of the library's waits, with its table of durations.
    pub mod times;

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

// Sources of other crates name these modules by their crate.
extern crate self as portolan_base;

#[path = "../../crates/rpc/src/na"]
pub mod rpc {
    //! Waiting in RPC, and connections through shared memory.
    pub mod eventcount;
    #[path = "links/sm/shared.rs"]
    pub mod shared;
}

pub mod ring_memory {
    //! The double of a ring's memory, with three cells and four lines of store. The checker ends a
    //! model if both sides access a record at the same time.
    use crate::sync::ring::{Cell, Counts, INLINE, LINE, Memory};
    use loom::cell::UnsafeCell;
    use std::sync::Arc;

    const CELLS: usize = 3;
    const LINES: usize = 4;

    /// A cell or a line of the store, which has one number.
    pub type Line = UnsafeCell<u64>;

    #[derive(Debug, Default)]
    struct Lines {
        counts: Counts,
        cells: [(Cell, Line); CELLS],
        store: [Line; LINES],
    }

    #[derive(Debug, Clone, Default)]
    pub struct RingMemory(Arc<Lines>);

    // SAFETY: the checker ends the model if threads access a line at the same time.
    unsafe impl Send for RingMemory {}
    // SAFETY: as above.
    unsafe impl Sync for RingMemory {}

    /// A record's first line and those that follow it.
    #[derive(Debug)]
    pub struct Place(*const [Line]);

    /// Calls `each` with the lines of a record of `size` bytes.
    pub fn lines(place: Place, size: usize, each: impl FnMut(&Line)) {
        let lines = if size <= INLINE { 1 } else { size.div_ceil(LINE as usize) };
        // SAFETY: the test has the memory, and places lie within it.
        let place = unsafe { &*place.0 };
        place[..lines].iter().for_each(each);
    }

    impl Memory for RingMemory {
        type Place = Place;
        const CELLS: u64 = CELLS as u64;

        fn store(&self) -> u64 {
            LINES as u64 * LINE
        }
        fn counts(&self) -> &Counts {
            &self.0.counts
        }
        fn cell(&self, n: u64) -> &Cell {
            &self.0.cells[n as usize].0
        }
        fn in_cell(&self, n: u64) -> Place {
            Place(std::slice::from_ref(&self.0.cells[n as usize].1))
        }
        fn in_store(&self, offset: u64) -> Place {
            Place(&raw const self.0.store[(offset / LINE) as usize..])
        }
    }
}
