//! The heap of each simulated rank: a counting allocator, at which threads may also be interrupted.

use crate::{machine, threads};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, Ordering};

const RANKS: usize = 4096;

static BYTES: [AtomicI64; RANKS] = [const { AtomicI64::new(0) }; RANKS];
static MOST: [AtomicI64; RANKS] = [const { AtomicI64::new(0) }; RANKS];

struct Counting;

fn count(bytes: i64) {
    if let Some(rank) = machine::counted_rank().filter(|rank| *rank < RANKS) {
        let now = BYTES[rank].fetch_add(bytes, Ordering::Relaxed) + bytes;
        if now > MOST[rank].load(Ordering::Relaxed) {
            MOST[rank].store(now, Ordering::Relaxed);
        }
    }
}

// SAFETY: the system's allocator does all the work; this type only counts.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        threads::interrupt();
        count(layout.size() as i64);
        // SAFETY: the caller upholds the contract of `alloc`; its arguments go on unchanged.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        threads::interrupt();
        count(-(layout.size() as i64));
        // SAFETY: the caller upholds the contract of `dealloc`; its arguments go on unchanged.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller upholds the contract of `alloc_zeroed`; its arguments go on unchanged.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as i64 - layout.size() as i64);
        // SAFETY: the caller upholds the contract of `realloc`; its arguments go on unchanged.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Makes all ranks share one heap that grows at its end. One thread runs at a time, so an arena per
/// thread gains nothing, and thousands of ranks would have too many mappings for the kernel.
pub fn one_heap() {
    // SAFETY: the caller calls this function before other threads begin.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_MMAP_MAX, 0);
        libc::mallopt(libc::M_TRIM_THRESHOLD, libc::c_int::MAX);
        libc::mallopt(libc::M_TOP_PAD, 1 << 20);
    }
}

pub fn held() -> i64 {
    BYTES[machine::rank()].load(Ordering::Relaxed)
}

/// Returns the maximum heap bytes of the calling rank since [`reset`].
pub fn most() -> i64 {
    MOST[machine::rank()].load(Ordering::Relaxed)
}

pub fn reset_all() {
    BYTES.iter().chain(&MOST).for_each(|bytes| bytes.store(0, Ordering::Relaxed));
}

/// The code of one rank may free memory that another rank's code has allocated.
pub fn held_by_all() -> i64 {
    BYTES.iter().map(|bytes| bytes.load(Ordering::Relaxed)).sum()
}

pub fn reset() {
    BYTES[machine::rank()].store(0, Ordering::Relaxed);
    MOST[machine::rank()].store(0, Ordering::Relaxed);
}
