//! A connection through shared memory between processes that do not trust each other: records
//! arrive whole and in order, sides that sleep until they are rung miss nothing, and a side that
//! cuts the connection waits for copies.

use loom::cell::UnsafeCell;
use loom::thread::{spawn, yield_now};
use portolan_models::ring_memory::{Line, RingMemory, lines};
use portolan_models::rpc::shared::{Bits, Copies};
use portolan_models::sync::atomic::{AtomicU32, Ordering};
use portolan_models::sync::ring::{Reader, Writer};
use portolan_models::sync::{check, check_without, check_without_fences};
use std::sync::Arc;

/// Half of the store.
const LONG: usize = 128;

/// A class that sleeps on its eventfd.
#[derive(Debug, Default)]
struct Class {
    bell: Bits<1>,
    waker: AtomicU32,
}

impl Class {
    fn ring(&self) {
        self.bell.ring(0, || {
            self.waker.store(1, Ordering::Release);
            self.waker.wake();
        });
    }

    fn is_rung(&self) -> bool {
        let mut rung = false;
        self.bell.take(|| 1, |_| rung = true);
        rung
    }

    /// Sleeps until a peer rings, as a thread does that polls the class.
    fn wait(&self) {
        if self.is_rung() {
            return;
        }
        self.bell.set_asleep(true);
        if !self.is_rung() {
            self.waker.sleep_while(0);
        }
        self.waker.store(0, Ordering::Relaxed);
        self.bell.set_asleep(false);
    }
}

#[derive(Debug, Default)]
struct Connection {
    ring: RingMemory,
    writes: Class,
    reads: Class,
}

/// Writes records until the ring is full, and then asks for room. Returns their number.
fn write(writer: &mut Writer<RingMemory>, first: u64, all: u64) -> u64 {
    let (mut next, mut asked) = (first, false);
    while next < all {
        // SAFETY: the checker ends the model if the reader accesses a line too.
        let fill = |line: &Line| line.with_mut(|at| unsafe { *at = next });
        if writer.write_with(LONG, |place| lines(place, LONG, fill)).unwrap() {
            next += 1;
        } else if asked {
            break;
        } else {
            writer.ask_for_room();
            asked = true;
        }
    }
    next - first
}

/// Reads the next record, and compares it. Returns whether there was one.
fn read(reader: &mut Reader<RingMemory>, expected: u64) -> bool {
    let Some((place, len)) = reader.next().unwrap() else { return false };
    // SAFETY: the checker ends the model if the writer accesses a line too.
    lines(place, len, |line| assert_eq!(line.with(|at| unsafe { *at }), expected));
    reader.advance(len);
    true
}

impl Connection {
    fn write_all(&self, all: u64) {
        let (mut writer, mut sent) = (Writer::new(self.ring.clone()), 0);
        loop {
            sent += write(&mut writer, sent, all);
            self.reads.ring();
            if sent == all {
                return;
            }
            self.writes.wait();
        }
    }

    fn read_all(&self, all: u64) {
        let (mut reader, mut came) = (Reader::new(self.ring.clone()), 0);
        while came < all {
            if !read(&mut reader, came) {
                self.reads.wait();
                continue;
            }
            came += 1;
            if reader.takes_request_for_room() {
                self.writes.ring();
            }
        }
    }
}

fn records_arrive(all: u64) {
    let connection = Arc::new(Connection::default());
    let theirs = connection.clone();
    let writing = spawn(move || theirs.write_all(all));
    connection.read_all(all);
    writing.join().unwrap();
}

/// The reader sleeps until there are records, and the writer until there is room.
#[test]
fn records_arrive_in_order_and_sleepers_wake() {
    check(3, || records_arrive(4));
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_sleeper_is_overlooked_without_fences() {
    check_without_fences(3, || records_arrive(1));
}

/// Only the request for room can be overlooked here: both sides poll, and the writer writes again
/// only if it was rung.
fn room_is_requested() {
    let connection = Arc::new(Connection::default());
    let theirs = connection.clone();
    let reading = spawn(move || {
        let mut reader = Reader::new(theirs.ring.clone());
        for come in 0..2 {
            while !read(&mut reader, come) {
                yield_now();
            }
            if reader.takes_request_for_room() {
                theirs.writes.waker.store(1, Ordering::Release);
                theirs.writes.waker.wake();
            }
        }
    });
    let mut writer = Writer::new(connection.ring.clone());
    if write(&mut writer, 0, 3) == 2 {
        connection.writes.waker.sleep_while(0);
        assert_eq!(connection.writes.waker.load(Ordering::Acquire), 1);
        assert_eq!(write(&mut writer, 2, 3), 1);
    }
    reading.join().unwrap();
}

#[test]
fn a_reader_notices_that_room_is_wanted() {
    check(3, room_is_requested);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_reader_overlooks_the_request_without_order() {
    check_without(Ordering::AcqRel, 3, room_is_requested);
}

/// A side cuts the connection, and then uses the memory that the other one copies from.
fn a_copy_and_a_cut() {
    #[derive(Default)]
    struct Shared(Copies, UnsafeCell<u64>);
    // SAFETY: the checker ends the model if threads access the memory at the same time.
    unsafe impl Sync for Shared {}
    let shared = Arc::new(Shared::default());
    let theirs = shared.clone();
    let copying = spawn(move || {
        let Shared(copies, memory) = &*theirs;
        // SAFETY: the checker ends the model if the other side uses the memory meanwhile.
        copies.run(|| assert_eq!(memory.with(|at| unsafe { *at }), 0));
    });
    let Shared(copies, memory) = &*shared;
    copies.forbid();
    while copies.is_any() {
        yield_now();
    }
    // SAFETY: the checker ends the model if the other side copies meanwhile.
    memory.with_mut(|at| unsafe { *at = 1 });
    copying.join().unwrap();
}

#[test]
fn a_cut_waits_for_copies() {
    check(3, a_copy_and_a_cut);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_copy_is_overlooked_without_fences() {
    check_without_fences(3, a_copy_and_a_cut);
}
