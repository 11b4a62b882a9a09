//! Decodes arbitrary composition files, also with a head whose checksums are valid. Each record is
//! either read in full or rejected, and a decoded record encodes to the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portolan_compose::file::{Place, VERSION, crc, encode, read};

const PLACE: Place = Place { rank: 1, ranks: 3 };

fuzz_target!(|input: (bool, u64, &[u8])| {
    let (repair, claimed, bytes) = input;
    let mut bytes = bytes.to_vec();
    if repair && bytes.len() >= 48 {
        bytes[..8].copy_from_slice(b"PORTOCMP");
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[16..20].copy_from_slice(&1u32.to_le_bytes());
        bytes[20..24].copy_from_slice(&3u32.to_le_bytes());
        // The length is either correct or taken from the input.
        if claimed % 2 == 0 {
            let body = (bytes.len() - 48) as u64;
            bytes[24..32].copy_from_slice(&body.to_le_bytes());
        }
        let sum = crc(&bytes[48..]);
        bytes[32..40].copy_from_slice(&sum.to_le_bytes());
        let sum = crc(&bytes[..40]);
        bytes[40..48].copy_from_slice(&sum.to_le_bytes());
    }
    let mut at = 0;
    while at < bytes.len() {
        let left = bytes.len() - at;
        let Ok((record, n)) = read(&mut &bytes[at..], left as u64, PLACE, "the file") else {
            return;
        };
        let end = at + usize::try_from(n).unwrap();
        assert_eq!(encode(PLACE, record.kind, &record.body).expect("a record"), bytes[at..end]);
        at = end;
    }
});
