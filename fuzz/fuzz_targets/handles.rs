//! Decodes arbitrary memory handles, also with a valid checksum. For every range of an accepted
//! handle, all parts of the range lie within its segments.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portolan_rpc::checksum::{Checksum, Method};
use portolan_rpc::na::Mem;

const FIXED: usize = 40;
const MAGIC: u32 = 0x4d45_4e50;

fuzz_target!(|input: (u8, bool, usize, usize, &[u8])| {
    let (kind, repair, offset, size, bytes) = input;
    let mut bytes = bytes.to_vec();
    if repair {
        mend(&mut bytes, kind);
    }
    let Ok(mem) = Mem::from_bytes(&bytes, kind) else { return };
    let total = mem.len();
    assert_eq!(total, mem.runs().iter().map(|run| run.len).sum::<usize>());
    assert!(mem.encoded_len() <= bytes.len());
    assert_eq!(mem.to_bytes(kind), bytes[..mem.encoded_len()]);
    if mem.check(offset, size).is_err() {
        return;
    }
    let mut left = size;
    for chunk in mem.chunks(offset, size) {
        let within = |run: &portolan_rpc::na::Run| {
            chunk.address >= run.address && chunk.address + chunk.len <= run.address + run.len
        };
        assert!(mem.runs().iter().any(within));
        left -= chunk.len;
    }
    assert_eq!(left, 0, "a range within the memory has fewer bytes");
});

/// Writes a valid head and checksum, so that decoding reaches the segments.
fn mend(bytes: &mut Vec<u8>, kind: u8) {
    let count = bytes.len().saturating_sub(FIXED) / 16;
    if count == 0 {
        return;
    }
    let end = FIXED + 16 * count;
    let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let total = (0..count).fold(0u64, |sum, n| sum.wrapping_add(long(FIXED + 16 * n + 8)));
    bytes[..4].copy_from_slice(&(MAGIC + u32::from(kind)).to_le_bytes());
    let access = u32::from(bytes[4]) % 4;
    bytes[4..8].copy_from_slice(&access.to_le_bytes());
    bytes[12..16].copy_from_slice(&(count as u32).to_le_bytes());
    bytes[32..40].copy_from_slice(&total.to_le_bytes());
    let mut sum = Checksum::new(Method::Crc64);
    sum.update(&bytes[..end]);
    bytes.truncate(end);
    bytes.extend(sum.bytes());
}
