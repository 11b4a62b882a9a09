//! The serialised form of a memory handle.
//!
//! The fields are little-endian, with their sizes in bytes in parentheses:
//!
//! - magic and kind (4), flags (4), rank (4), number of segments (4);
//! - process (8), handle number (8), total size (8);
//! - if the memory is exported (flag 256): device, inode, base address and length of its file (8
//!   each), process ID and file descriptor (4 each) ([`encode_key`]);
//! - address and length of each segment (16 per segment);
//! - CRC-64 of all preceding bytes (8);
//! - if it carries data (flag 512): the bytes of the memory, so that no transfer has to get them.
//!
//! The flags hold the permission, and from bit 16 on the slot in the node's table plus one.

use super::{LIVE, Mem, Permission, Run, measure, this_process};
use crate::checksum::Method;
use crate::failure::{Result, refuse};
use crate::na::wire::number;
use parking_lot::Mutex;
use portolan_engine::memory::registered::PLACES;
use portolan_engine::memory::shared_bytes;
use portolan_engine::memory::shm_export::ShmKey;
use portolan_engine::runtime::admission;
use std::sync::{Arc, OnceLock, Weak};

const MAGIC: u32 = 0x4d45_4e50;
const FIXED: usize = 40;
/// Encoded length of a [`ShmKey`].
pub(in crate::na) const KEY: usize = 40;
const IS_LENT: u32 = 1 << 8;
const HAS_DATA: u32 = 1 << 9;
const PLACE: u32 = 16;
const _: () = assert!(PLACES < 1 << (32 - PLACE));

pub(in crate::na) fn encode_key(key: &ShmKey) -> [u8; KEY] {
    let mut bytes = [0; KEY];
    let longs =
        [key.device, key.inode, key.base, key.len, u64::from(key.fd) << 32 | u64::from(key.pid)];
    for (part, long) in bytes.chunks_exact_mut(8).zip(longs) {
        part.copy_from_slice(&long.to_le_bytes());
    }
    bytes
}

/// Decodes the key at the front of `bytes`, or returns `None` if they are too few.
pub(in crate::na) fn decode_key(bytes: &[u8]) -> Option<ShmKey> {
    let mut longs = bytes.get(..KEY)?.chunks_exact(8).map(number);
    let mut next = || longs.next();
    let (device, inode, base, len, last) = (next()?, next()?, next()?, next()?, next()?);
    Some(ShmKey { device, inode, pid: last as u32, fd: (last >> 32) as u32, base, len })
}

impl Mem {
    pub fn encoded_len(&self) -> usize {
        FIXED + self.shm_key.map_or(0, |_| KEY) + 16 * self.runs.len() + 8
    }

    /// Returns the serialised form. `kind` distinguishes the layers that use handles.
    pub fn to_bytes(&self, kind: u8) -> Vec<u8> {
        self.encode(kind, 0)
    }

    /// Returns whether [`Mem::to_bytes_with_data`] may return bytes: the memory belongs to this
    /// process, and other processes only read it.
    pub fn may_have_data(&self) -> bool {
        self.registration.is_some() && !self.access.writable()
    }

    /// Returns the serialised form with the present bytes of the memory. Returns `None` if the
    /// memory is not registered, or if [`Mem::may_have_data`] is false.
    pub fn to_bytes_with_data(&self, kind: u8) -> Option<Vec<u8>> {
        let _inside = self.enter().ok().filter(|_| self.may_have_data())?;
        let mut bytes = self.encode(kind, HAS_DATA);
        for run in self.runs.iter().filter(|run| run.len > 0) {
            let at = bytes.len();
            bytes.resize(at + run.len, 0);
            // SAFETY: the memory is registered, so it is valid for reads.
            unsafe { shared_bytes::load(run.address as *const u8, &mut bytes[at..]) };
        }
        Some(bytes)
    }

    fn encode(&self, kind: u8, more_flags: u32) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.encoded_len());
        bytes.extend((MAGIC + u32::from(kind)).to_le_bytes());
        let lent = if self.shm_key.is_some() { IS_LENT } else { 0 };
        let place = self.original.as_deref().unwrap_or(self).place_traced();
        let flags = u32::from(self.access.flags()) | lent | more_flags | place << PLACE;
        bytes.extend(flags.to_le_bytes());
        bytes.extend(self.rank.to_le_bytes());
        bytes.extend((self.runs.len() as u32).to_le_bytes());
        bytes.extend(self.process.to_le_bytes());
        bytes.extend(self.id.to_le_bytes());
        bytes.extend((self.total as u64).to_le_bytes());
        if let Some(shm_key) = &self.shm_key {
            bytes.extend(encode_key(shm_key));
        }
        for run in &self.runs {
            bytes.extend((run.address as u64).to_le_bytes());
            bytes.extend((run.len as u64).to_le_bytes());
        }
        bytes.extend(Method::Crc64.sum(&bytes).to_le_bytes());
        bytes
    }

    fn place_traced(&self) -> u32 {
        self.registration.as_ref().map_or(self.place, |registration| {
            let table = || admission::admit_current().ok()?.registrations();
            registration.describe(self.description(), table)
        })
    }

    /// Decodes a handle. Bytes after it are ignored. Returns `OVERFLOW` if the bytes end before the
    /// handle, `PROTOCOL_ERROR` if they do not describe a handle of this kind, `CHECKSUM_ERROR` if
    /// they are damaged, and `FAULT` if they name memory of this process without a live handle.
    pub fn from_bytes(bytes: &[u8], kind: u8) -> Result<Arc<Mem>> {
        if bytes.len() < FIXED + 16 + 8 {
            refuse!(OVERFLOW, "{} bytes are too few for a memory handle", bytes.len());
        }
        let word = |at: usize| number(&bytes[at..at + 4]) as u32;
        let long = |at: usize| number(&bytes[at..at + 8]);
        if word(0) != MAGIC + u32::from(kind) {
            refuse!(PROTOCOL_ERROR, "the bytes are not a memory handle of this kind");
        }
        let count = word(12) as usize;
        let lent = word(4) & IS_LENT != 0;
        let begin = if lent { FIXED + KEY } else { FIXED };
        let end = count.checked_mul(16).and_then(|n| n.checked_add(begin));
        let Some(end) = end.filter(|_| count > 0) else {
            refuse!(PROTOCOL_ERROR, "a memory handle of {count} segments");
        };
        if end > bytes.len() - 8 {
            refuse!(
                OVERFLOW,
                "{} bytes are too few for a memory handle of {count} segments",
                bytes.len()
            );
        }
        if Method::Crc64.sum(&bytes[..end]) != long(end) {
            refuse!(CHECKSUM_ERROR, "the memory handle is damaged: its checksum differs");
        }
        let flags = word(4) & ((1 << PLACE) - 1) & !(IS_LENT | HAS_DATA);
        let Ok(access) = Permission::from_flags(u64::from(flags)) else {
            refuse!(PROTOCOL_ERROR, "the memory handle has the permission {:#x}", word(4));
        };
        let runs: Vec<Run> = (0..count)
            .map(|n| begin + 16 * n)
            .map(|at| Run { address: long(at) as usize, len: long(at + 8) as usize })
            .collect();
        let Ok((starts, total)) = measure(&runs) else {
            refuse!(PROTOCOL_ERROR, "the memory handle has impossible segments");
        };
        if total as u64 != long(32) {
            refuse!(PROTOCOL_ERROR, "the memory handle's size is not that of its segments");
        }
        let shm_key = if lent { decode_key(&bytes[FIXED..]) } else { None };
        let data = bytes[end + 8..].get(..total).filter(|_| word(4) & HAS_DATA != 0);
        if data.is_none() && word(4) & HAS_DATA != 0 {
            refuse!(OVERFLOW, "the {total} bytes that come with a memory handle are cut off");
        }
        let (process, id) = (long(16), long(24));
        let original = if process == this_process() {
            let live = LIVE.lock().get(&id).and_then(Weak::upgrade);
            match live.filter(|mem| mem.runs == runs && mem.access == access) {
                Some(original) => Some(original),
                None => refuse!(FAULT, "the memory of the handle is not exposed (any more)"),
            }
        } else {
            None
        };
        Ok(Arc::new(Mem {
            id,
            process,
            rank: word(8),
            runs,
            starts,
            total,
            access,
            registration: None,
            place: word(4) >> PLACE,
            export: None,
            shm_key,
            borrowed: OnceLock::new(),
            digest: OnceLock::new(),
            gate_digest: OnceLock::new(),
            data: data.filter(|_| original.is_none()).map(Box::from),
            original,
            loans: Mutex::default(),
        }))
    }
}

#[cfg(test)]
impl Mem {
    /// Decodes a handle of this process as another process would.
    pub(in crate::na) fn from_foreign_bytes(bytes: &[u8]) -> Arc<Mem> {
        let len = Mem::from_bytes(bytes, 0).expect("a handle of this process").encoded_len();
        Mem::from_forged_bytes(bytes, len)
    }

    /// Like [`Mem::from_foreign_bytes`], for a handle of `len` bytes that was changed.
    pub(in crate::na) fn from_forged_bytes(bytes: &[u8], len: usize) -> Arc<Mem> {
        let end = len - 8;
        let mut bytes = bytes.to_vec();
        bytes[16] ^= 1;
        let sum = Method::Crc64.sum(&bytes[..end]);
        bytes[end..end + 8].copy_from_slice(&sum.to_le_bytes());
        Mem::from_bytes(&bytes, 0).expect("a handle")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Status;

    #[test]
    fn bytes_come_back_and_damage_is_seen() {
        let m = Mem::allocate(&[100, 7], Permission::ReadWrite).unwrap();
        let bytes = m.to_bytes(0);
        assert_eq!(bytes.len(), m.encoded_len());
        let back = Mem::from_bytes(&bytes, 0).unwrap();
        assert!(back.is_local() && back.runs() == m.runs());
        assert!(Mem::from_bytes(&bytes, 1).is_err(), "of another kind");
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert!(Mem::from_bytes(&damaged, 0).is_err(), "byte {at}");
            let cut = Mem::from_bytes(&bytes[..at], 0).unwrap_err();
            assert_eq!(cut.status(), Status::OVERFLOW, "cut at {at}");
        }
        drop(back);
        drop(m);
        assert_eq!(Mem::from_bytes(&bytes, 0).unwrap_err().status(), Status::FAULT);
    }

    #[test]
    fn data_comes_with_a_handle() {
        let m = Mem::allocate(&[3, 0, 5], Permission::ReadOnly).unwrap();
        assert_eq!(m.to_bytes_with_data(0), None, "it is not registered");
        m.register();
        for (run, bytes) in m.runs().iter().zip([&b"abc"[..], b"", b"defgh"]) {
            // SAFETY: the handle owns the memory, and nothing else uses it.
            unsafe { shared_bytes::store(bytes, run.address as *mut u8) };
        }
        let bytes = m.to_bytes_with_data(0).unwrap();
        assert_eq!(bytes.len(), m.encoded_len() + m.len());
        for cut in 0..bytes.len() {
            let cut = Mem::from_bytes(&bytes[..cut], 0).unwrap_err();
            assert_eq!(cut.status(), Status::OVERFLOW);
        }
        let theirs = Mem::from_foreign_bytes(&bytes);
        assert_eq!((theirs.data(), theirs.len()), (Some(&b"abcdefgh"[..]), 8));
        assert_eq!(Mem::from_bytes(&bytes, 0).unwrap().data(), None, "the memory is here");
        assert_eq!(Mem::from_foreign_bytes(&m.to_bytes(0)).data(), None);
        assert!(!theirs.may_have_data() && theirs.to_bytes_with_data(0).is_none());
        let writable = Mem::allocate(&[3], Permission::ReadWrite).unwrap();
        writable.register();
        assert_eq!(writable.to_bytes_with_data(0), None);
    }
}
