//! Reads arbitrary trace files. Every byte of a file belongs to a block or to reported damage, and
//! the events of a block are decoded up to its end or up to the first invalid event. What was
//! decoded is equal after it has been encoded again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portolan_trace_format::event::{Encoder, Event, Events, MAX_EVENT};
use portolan_trace_format::format::{BlockHeader, Role, encode_file_header};
use portolan_trace_format::read::{Part, Reader};

fuzz_target!(|input: (u64, &[u8], &[u8])| {
    let (first_time, payload, noise) = input;
    let header = BlockHeader {
        payload_bytes: payload.len(),
        events: 1,
        thread: 0,
        role: Role::Program,
        dropped: 0,
        first_time,
        last_time: first_time,
        sequence: 0,
        checksum: 0,
    };
    let mut file = Vec::new();
    encode_file_header("{}", &mut file);
    let head = file.len();
    for part in [noise, &header.encode(payload), payload, noise] {
        file.extend_from_slice(part);
    }
    let mut reader = Reader::open(&file[..]).expect("the head is whole");
    let mut at = head as u64;
    while let Some(part) = reader.next_part().expect("memory can be read") {
        match part {
            Part::Damage(damage) => {
                assert_eq!(damage.at, at);
                at += damage.bytes;
            }
            Part::Block(block) => {
                assert_eq!(block.at, at);
                at += 64 + block.payload.len() as u64;
                let first = block.header.first_time;
                let (mut encoder, mut bytes) = (Encoder::new(first), Vec::new());
                let events = Events::new(&block.payload, first).map_while(Result::ok);
                let events: Vec<_> = events.collect();
                for event in &events {
                    let text = if let Event::String { text, .. } = event { text.len() } else { 0 };
                    let mut room = vec![0; MAX_EVENT + text];
                    let length = encoder.put(event, &mut room);
                    bytes.extend_from_slice(&room[..length]);
                }
                let again: Result<Vec<_>, _> = Events::new(&bytes, first).collect();
                assert_eq!(again, Ok(events));
            }
        }
    }
    assert_eq!(at, file.len() as u64);
});
