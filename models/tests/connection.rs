//! A connection through shared memory between processes that do not trust each other: bytes arrive
//! whole and in order, sides that sleep until they are rung miss nothing, and a side that cuts the
//! connection waits for copies.

use loom::cell::UnsafeCell;
use loom::thread::{spawn, yield_now};
use portolan_models::rpc::shared::{Bits, Copies, Positions, Reader, Writer};
use portolan_models::sync::atomic::{AtomicU32, Ordering};
use portolan_models::sync::{check, check_without_fences};
use std::sync::Arc;

/// A ring of two bytes.
const SIZE: usize = 2;

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
    ring: Positions,
    bytes: [UnsafeCell<u64>; SIZE],
    writes: Class,
    reads: Class,
}

// SAFETY: the checker ends the model if threads access a byte at the same time.
unsafe impl Sync for Connection {}

impl Connection {
    fn write_all(&self, all: u64) {
        let (writer, mut sent) = (Writer::<SIZE>::default(), 0);
        loop {
            let wanted = (all - sent) as usize;
            let written = writer.write(&self.ring, wanted, |done, position, len| {
                for n in 0..len as u64 {
                    let byte = &self.bytes[((position + n) % SIZE as u64) as usize];
                    // SAFETY: the checker ends the model if the reader accesses it too.
                    byte.with_mut(|at| unsafe { *at = sent + done as u64 + n });
                }
            });
            sent += written.expect("the peer is honest") as u64;
            self.reads.ring();
            if sent == all {
                return;
            }
            self.writes.wait();
        }
    }

    fn read_all(&self, all: u64, at_once: usize) {
        let (reader, mut came) = (Reader::<SIZE>::default(), 0);
        while came < all {
            let read = reader.read(&self.ring, at_once, |position, len| {
                for n in 0..len as u64 {
                    let byte = &self.bytes[((position + n) % SIZE as u64) as usize];
                    // SAFETY: the checker ends the model if the writer accesses it too.
                    assert_eq!(byte.with(|at| unsafe { *at }), came + n);
                }
            });
            let (read, wants_room) = read.expect("the peer is honest");
            came += read as u64;
            if wants_room {
                self.writes.ring();
            }
            if read == 0 {
                self.reads.wait();
            }
        }
    }
}

fn bytes_arrive(all: u64, at_once: usize) {
    let connection = Arc::new(Connection::default());
    let theirs = connection.clone();
    let writing = spawn(move || theirs.write_all(all));
    connection.read_all(all, at_once);
    writing.join().unwrap();
}

/// The reader sleeps until there are bytes, and the writer until there is room.
#[test]
fn bytes_arrive_in_order_and_sleepers_wake() {
    check(3, || bytes_arrive(4, SIZE));
    check(3, || bytes_arrive(3, 1));
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_sleeper_is_overlooked_without_fences() {
    check_without_fences(3, || bytes_arrive(1, 1));
}

/// Only the request for room can be overlooked here: both sides poll, and the writer writes again
/// only if it was rung.
fn room_is_requested() {
    let connection = Arc::new(Connection::default());
    let theirs = connection.clone();
    let reading = spawn(move || {
        let reader = Reader::<SIZE>::default();
        let mut come = 0;
        while come < SIZE {
            let (read, wants_room) = reader.read(&theirs.ring, 1, |_, _| ()).expect("honest");
            come += read;
            if wants_room {
                theirs.writes.waker.store(1, Ordering::Release);
                theirs.writes.waker.wake();
            }
            if read == 0 {
                yield_now();
            }
        }
    });
    let writer = Writer::<SIZE>::default();
    if writer.write(&connection.ring, SIZE + 1, |_, _, _| ()) == Ok(SIZE) {
        connection.writes.waker.sleep_while(0);
        assert_eq!(connection.writes.waker.load(Ordering::Acquire), 1);
        assert_eq!(writer.write(&connection.ring, 1, |_, _, _| ()), Ok(1));
    }
    reading.join().unwrap();
}

#[test]
fn a_reader_notices_that_room_is_wanted() {
    check(3, room_is_requested);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_reader_overlooks_the_request_without_fences() {
    check_without_fences(3, room_is_requested);
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
