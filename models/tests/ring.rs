//! The ring of records: records arrive in order and whole, and neither side uses a cell or a line
//! of the store before the other one is done with it.

use loom::thread::{spawn, yield_now};
use portolan_models::ring_memory::{Line, RingMemory, lines};
use portolan_models::sync::ring::{Reader, Writer};
use portolan_models::sync::{check, check_without};
use std::sync::atomic::Ordering;

/// Lengths of records in lines of the store; zero for a record that lies in its cell. They fill the
/// store before the cells, and the third one skips its last line.
const MIXED: [usize; 5] = [2, 1, 2, 0, 2];
const SHORT: [usize; 5] = [0; 5];

fn records_arrive(sizes: [usize; 5]) -> impl Fn() + Send + Sync + 'static {
    move || {
        let memory = RingMemory::default();
        let theirs = memory.clone();
        let thread = spawn(move || {
            let mut writer = Writer::new(theirs);
            for (record, size) in (0..).zip(sizes) {
                let size = size * 64;
                // SAFETY: the checker ends the model if the reader accesses a line too.
                let fill = |line: &Line| line.with_mut(|at| unsafe { *at = record });
                while !writer.write_with(size, |place| lines(place, size, fill)).unwrap() {
                    yield_now();
                }
            }
        });
        let mut reader = Reader::new(memory);
        for (record, size) in (0..).zip(sizes) {
            let (place, len) = loop {
                match reader.next().unwrap() {
                    Some(next) => break next,
                    None => yield_now(),
                }
            };
            assert_eq!(len, size * 64);
            // SAFETY: the checker ends the model if the writer accesses a line too.
            lines(place, len, |line| assert_eq!(line.with(|at| unsafe { *at }), record));
            reader.advance(len);
        }
        thread.join().unwrap();
    }
}

#[test]
fn records_arrive_in_order_and_whole() {
    check(3, records_arrive(SHORT));
    check(3, records_arrive(MIXED));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn records_and_room_must_be_released() {
    check_without(Ordering::Release, 3, records_arrive(MIXED));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn records_and_room_must_be_acquired() {
    check_without(Ordering::Acquire, 3, records_arrive(MIXED));
}
