//! The ring of records (`src/am/ring.rs`), with three cells and four lines of store.
//!
//! The ring works on memory that processes share, which the checker cannot model. This file
//! therefore repeats its steps over cells that the checker tracks, and a test compares the memory
//! orders with those in the source.

use loom::cell::UnsafeCell;
use loom::thread::{spawn, yield_now};
use portolan_models::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use portolan_models::sync::check;
use std::sync::Arc;

const CELLS: u64 = 3;
const STORE: u64 = 4;

/// Memory orders of the steps that are visible to the other side.
#[derive(Debug, Clone, Copy)]
struct Orders {
    stamp: Ordering,
    check: Ordering,
    taken: Ordering,
    done: Ordering,
    freed: Ordering,
    room: Ordering,
}

const SOURCE: Orders = Orders {
    stamp: Ordering::Release,
    check: Ordering::Acquire,
    taken: Ordering::Release,
    done: Ordering::Acquire,
    freed: Ordering::Release,
    room: Ordering::Acquire,
};

/// Lines of the store that each record takes; zero for a record that lies in its cell. The sizes
/// fill the store before the cells.
const MIXED: [u64; 5] = [2, 2, 1, 0, 2];
const SHORT: [u64; 5] = [0; 5];

#[derive(Debug, Default)]
struct Cell {
    stamp: AtomicU32,
    /// The record, its number of lines, and their position in the store.
    content: UnsafeCell<(u64, u64, u64)>,
}

#[derive(Debug, Default)]
struct Ring {
    taken: AtomicU64,
    freed: AtomicU64,
    cells: [Cell; CELLS as usize],
    store: [UnsafeCell<u64>; STORE as usize],
}

// SAFETY: the checker ends the model if threads access a cell or line at the same time.
unsafe impl Sync for Ring {}

fn stamp(n: u64) -> u32 {
    (n / CELLS) as u32 | 1 << 31
}

#[derive(Debug, Default)]
struct Writer {
    next: u64,
    put: u64,
    taken: u64,
    freed: u64,
}

impl Writer {
    fn position(&self, size: u64) -> u64 {
        let left = STORE - self.put % STORE;
        if left < size { self.put + left } else { self.put }
    }

    fn has_room(&mut self, ring: &Ring, orders: Orders, size: u64) -> bool {
        if self.next - self.taken == CELLS {
            self.taken = ring.taken.load(orders.done);
            if self.next - self.taken == CELLS {
                return false;
            }
        }
        if size == 0 {
            return true;
        }
        let end = self.position(size) + size;
        if end - self.freed > STORE {
            self.freed = ring.freed.load(orders.room);
        }
        end - self.freed <= STORE
    }

    fn write(&mut self, ring: &Ring, orders: Orders, record: u64, size: u64) -> bool {
        if !self.has_room(ring, orders, size) {
            return false;
        }
        let cell = &ring.cells[(self.next % CELLS) as usize];
        let position = self.position(size);
        for line in position..position + size {
            // SAFETY: the checker ends the model if the reader accesses the line at the same time.
            ring.store[(line % STORE) as usize].with_mut(|at| unsafe { *at = record });
        }
        if size > 0 {
            self.put = position + size;
        }
        // SAFETY: the checker ends the model if the reader accesses the cell at the same time.
        cell.content.with_mut(|at| unsafe { *at = (record, size, position) });
        cell.stamp.store(stamp(self.next), orders.stamp);
        self.next += 1;
        true
    }
}

/// Reads the next record and marks it as done. Returns `None` if it has not arrived.
fn read(ring: &Ring, orders: Orders, next: &mut u64) -> Option<u64> {
    let cell = &ring.cells[(*next % CELLS) as usize];
    if cell.stamp.load(orders.check) != stamp(*next) {
        return None;
    }
    // SAFETY: the checker ends the model if the writer accesses the cell at the same time.
    let (record, size, position) = cell.content.with(|at| unsafe { *at });
    for line in position..position + size {
        // SAFETY: the checker ends the model if the writer accesses the line at the same time.
        assert_eq!(ring.store[(line % STORE) as usize].with(|at| unsafe { *at }), record);
    }
    if size > 0 {
        ring.freed.store(position + size, orders.freed);
    }
    *next += 1;
    ring.taken.store(*next, orders.taken);
    Some(record)
}

fn records_arrive(lines: [u64; 5], orders: Orders) {
    check(3, move || {
        let ring = Arc::new(Ring::default());
        let writing = ring.clone();
        let thread = spawn(move || {
            let mut writer = Writer::default();
            for (record, size) in (0..).zip(lines) {
                while !writer.write(&writing, orders, record, size) {
                    yield_now();
                }
            }
        });
        let mut next = 0;
        for record in 0..lines.len() as u64 {
            let came = loop {
                match read(&ring, orders, &mut next) {
                    Some(came) => break came,
                    None => yield_now(),
                }
            };
            assert_eq!(came, record);
        }
        thread.join().unwrap();
    });
}

#[test]
fn records_arrive_in_order_and_whole() {
    records_arrive(SHORT, SOURCE);
    records_arrive(MIXED, SOURCE);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn the_stamp_must_be_released() {
    records_arrive(MIXED, Orders { stamp: Ordering::Relaxed, ..SOURCE });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn the_stamp_must_be_acquired() {
    records_arrive(MIXED, Orders { check: Ordering::Relaxed, ..SOURCE });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn cells_must_be_given_back_with_release() {
    records_arrive(SHORT, Orders { taken: Ordering::Relaxed, ..SOURCE });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn cells_must_be_taken_back_with_acquire() {
    records_arrive(SHORT, Orders { done: Ordering::Relaxed, ..SOURCE });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn the_store_must_be_given_back_with_release() {
    records_arrive(MIXED, Orders { freed: Ordering::Relaxed, ..SOURCE });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn the_store_must_be_taken_back_with_acquire() {
    records_arrive(MIXED, Orders { room: Ordering::Relaxed, ..SOURCE });
}

/// Checks that the source uses the memory orders of this model, so that both change together.
#[test]
fn the_source_has_these_orders() {
    let source = include_str!("../../crates/engine/src/am/ring.rs");
    let source = source.split("mod tests").next().unwrap();
    let steps = [
        "(*cell).stamp.store(stamp(self.next), Ordering::Release);",
        "(*cell).stamp.load(Ordering::Acquire) == stamp(self.next)",
        "counts.taken.store(self.next, Ordering::Release);",
        "counts().taken.load(Ordering::Acquire)",
        "counts.freed.store(end, Ordering::Release);",
        "counts().freed.load(Ordering::Acquire)",
    ];
    for step in steps {
        assert_eq!(source.matches(step).count(), 1, "{step}");
    }
    assert_eq!(source.matches("Ordering::").count(), steps.len());
}
