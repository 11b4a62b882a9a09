//! Events, blocks and files come back, whatever the damage between them.

use crate::event::*;
use crate::format::*;
use crate::read::{Block, Part, Reader};
use proptest::prelude::*;

fn place() -> impl Strategy<Value = Option<Place>> {
    proptest::option::of((proptest::option::of(0..u64::MAX - 1), any::<u64>()))
        .prop_map(|place| place.map(|(segment, offset)| Place { segment, offset }))
}

fn rank() -> impl Strategy<Value = Option<u32>> {
    proptest::option::of(any::<u32>())
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..3u64, any::<u64>(), (0..64u32).prop_map(|bit| 1 << bit)]
}

fn of<T: Copy + std::fmt::Debug>(all: &'static [T]) -> impl Strategy<Value = T> {
    proptest::sample::select(all)
}

fn usage() -> impl Strategy<Value = Usage> {
    let delays = (number(), number(), number()).prop_map(|(main_cpu, main, others)| Delays {
        main_cpu,
        main,
        others,
    });
    ((number(), number(), number(), number(), number()), proptest::option::of(delays)).prop_map(
        |((user, system, voluntary, involuntary, threads), delays)| Usage {
            user,
            system,
            voluntary,
            involuntary,
            threads,
            delays,
        },
    )
}

fn event() -> impl Strategy<Value = Event<'static>> {
    let span = || (any::<u64>(), number());
    prop_oneof![
        (
            (span(), of(Call::ALL), of(Interface::ALL), of(PathTaken::ALL)),
            ((rank(), number(), number()), (place(), proptest::option::of(number())))
        )
            .prop_map(
                |(
                    ((begin, duration), call, interface, path),
                    ((peer, bytes, blocks), (place, site)),
                )| {
                    Event::Call {
                        begin,
                        duration,
                        call,
                        interface,
                        path,
                        peer,
                        bytes,
                        blocks,
                        place,
                        site,
                    }
                }
            ),
        (span(), of(Cause::ALL), rank(), place()).prop_map(
            |((begin, duration), cause, peer, place)| {
                Event::Wait { begin, duration, cause, peer, place }
            }
        ),
        (span(), of(Served::ALL), rank(), number(), proptest::option::of(0..u64::MAX)).prop_map(
            |((begin, duration), kind, origin, bytes, waited)| Event::Served {
                begin,
                duration,
                kind,
                origin,
                bytes,
                waited
            }
        ),
        (any::<u64>(), number()).prop_map(|(time, string)| Event::RegionBegin { time, string }),
        any::<u64>().prop_map(|time| Event::RegionEnd { time }),
        (any::<u64>(), number()).prop_map(|(time, string)| Event::Mark { time, string }),
        (number(), of(&["", "SCF iteration", "naïve 🦀"]))
            .prop_map(|(string, text)| Event::String { string, text }),
        (number(), number(), number(), of(SegmentKind::ALL)).prop_map(
            |(segment, bytes, ranks, kind)| Event::Segment { segment, bytes, ranks, kind }
        ),
        (any::<u64>(), any::<i64>(), number()).prop_map(|(time, offset, bound)| Event::Clock {
            time,
            offset,
            bound
        }),
        (any::<u64>(), number(), number()).prop_map(|(time, string, value)| Event::Counter {
            time,
            string,
            value
        }),
        any::<u64>().prop_map(|time| Event::End { time }),
        (number(), proptest::option::of(0..u64::MAX - 1), number(), number()).prop_map(
            |(site, caller, module, address)| Event::Site { site, caller, module, address }
        ),
        (any::<u64>(), usage()).prop_map(|(time, usage)| Event::Usage { time, usage }),
        (span(), of(MpiCall::ALL), rank(), number(), number(), proptest::option::of(number()))
            .prop_map(|((begin, duration), call, peer, bytes, communicator, site)| Event::Mpi {
                begin,
                duration,
                call,
                peer,
                bytes,
                communicator,
                site,
            }),
    ]
}

fn encoded(events: &[Event<'_>], first_time: u64) -> Vec<u8> {
    let mut encoder = Encoder::new(first_time);
    let mut payload = Vec::new();
    for event in events {
        let mut room = [0; MAX_EVENT + 32];
        let length = encoder.put(event, &mut room);
        payload.extend_from_slice(&room[..length]);
    }
    payload
}

proptest! {
    #[test]
    fn events_come_back(events in proptest::collection::vec(event(), 0..40), first in any::<u64>()) {
        let payload = encoded(&events, first);
        let back: Result<Vec<_>, _> = Events::new(&payload, first).collect();
        prop_assert_eq!(back, Ok(events));
    }

    #[test]
    fn an_event_has_its_most(event in event(), first in any::<u64>()) {
        let text = if let Event::String { text, .. } = event { text.len() } else { 0 };
        prop_assert!(Encoder::new(first).put(&event, &mut [0; MAX_EVENT + 32]) <= MAX_EVENT + text);
    }

    #[test]
    fn bytes_at_random_are_no_fault_of_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut errors = 0;
        for event in Events::new(&bytes, 0) {
            errors += usize::from(event.is_err());
        }
        prop_assert!(errors <= 1);
    }

    /// Bytes are changed and the end is cut off. The other blocks come back, and all bytes are
    /// accounted for.
    #[test]
    fn blocks_that_are_not_touched_come_back(
        blocks in proptest::collection::vec(proptest::collection::vec(event(), 0..20), 1..20),
        changed in proptest::collection::vec(any::<prop::sample::Index>(), 0..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut file = Vec::new();
        encode_file_header("{}", &mut file);
        let head = file.len();
        let mut written = Vec::new();
        for (sequence, events) in blocks.iter().enumerate() {
            let payload = encoded(events, 5);
            let header = BlockHeader {
                payload_bytes: payload.len(),
                events: events.len() as u32,
                thread: 1,
                role: Role::Program,
                dropped: 0,
                first_time: 5,
                last_time: 9,
                sequence: sequence as u32,
                checksum: crc(&payload),
            };
            let at = file.len() as u64;
            file.extend_from_slice(&header.encode(&payload));
            file.extend_from_slice(&payload);
            written.push(Block { at, header, payload });
        }
        let length = file.len();
        let mut bad: Vec<usize> = changed.iter().map(|i| head + i.index(length - head)).collect();
        bad.sort_unstable();
        bad.dedup();
        for &at in &bad {
            file[at] ^= 0x10;
        }
        let end = head + cut.index(length - head + 1);
        file.truncate(end);

        let whole = |block: &&Block| {
            let span = block.at as usize..block.at as usize + BLOCK_HEADER + block.payload.len();
            span.end <= end && !bad.iter().any(|at| span.contains(at))
        };
        let expected: Vec<Block> = written.iter().filter(whole).cloned().collect();
        let mut reader = Reader::open(&file[..]).expect("the head is whole");
        prop_assert_eq!(reader.metadata(), "{}");
        let (mut found, mut bytes) = (Vec::new(), head);
        while let Some(part) = reader.next_part().expect("memory can be read") {
            match part {
                Part::Block(block) => {
                    prop_assert_eq!(block.at, bytes as u64);
                    bytes += BLOCK_HEADER + block.payload.len();
                    found.push(block);
                }
                Part::Damage(damage) => {
                    prop_assert_eq!(damage.at, bytes as u64);
                    bytes += damage.bytes as usize;
                }
            }
        }
        prop_assert_eq!(bytes, end);
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn a_call_on_eight_bytes_is_short() {
    let put = |begin| Event::Call {
        begin,
        duration: 9,
        call: Call::Put,
        interface: Interface::Armci,
        path: PathTaken::Direct,
        peer: Some(3),
        bytes: 8,
        blocks: 1,
        place: None,
        site: None,
    };
    let mut room = [0; MAX_EVENT];
    let mut encoder = Encoder::new(1 << 60);
    encoder.put(&put((1 << 60) + 5), &mut room);
    assert_eq!(encoder.put(&put((1 << 60) + 60), &mut room), 8);
}

#[test]
fn a_sampled_call_of_an_earlier_version_is_an_error() {
    const SAMPLED: u8 = 0x40;
    let put = [1, Call::Put as u8, 0, 0, 9, 0, 8];
    let mut sampled = [&put[..], &[10]].concat();
    assert!(Events::new(&put, 5).all(|event| event.is_ok()));
    sampled[0] |= SAMPLED;
    let read: Vec<_> = Events::new(&sampled, 5).collect();
    assert_eq!(read, [Err(Fault::Value("event's flags"))]);
}

#[test]
#[cfg_attr(miri, ignore = "reads 20 MiB")]
fn a_file_longer_than_what_a_reader_holds() {
    let mut file = Vec::new();
    encode_file_header("{}", &mut file);
    let payload = vec![0x55; MAX_PAYLOAD];
    let header = BlockHeader {
        payload_bytes: payload.len(),
        events: 0,
        thread: 0,
        role: Role::Writer,
        dropped: 0,
        first_time: 0,
        last_time: 0,
        sequence: 0,
        checksum: crc(&payload),
    };
    for _ in 0..5 {
        file.extend_from_slice(&header.encode(&payload));
        file.extend_from_slice(&payload);
        // Bytes that no block contains are skipped, for any length.
        file.extend(std::iter::repeat_n(0, 3 << 20));
    }
    let mut reader = Reader::open(&file[..]).expect("the head is whole");
    let mut kinds = Vec::new();
    while let Some(part) = reader.next_part().expect("memory can be read") {
        kinds.push(match part {
            Part::Block(block) => block.payload.len(),
            Part::Damage(damage) => damage.bytes as usize,
        });
    }
    assert_eq!(kinds, [1 << 20, 3 << 20].repeat(5));
}
