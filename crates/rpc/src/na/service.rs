//! Access to registered memory on behalf of connected peers, checked when it is used.
//!
//! A message names memory by its handle number, which is random, so a peer needs the serialised
//! handle. The owner checks its own record: whether the handle is still registered, what it permits
//! and where it ends. The peer's view is never trusted.

use crate::failure::{Result, refuse};
use crate::na::memory::{InUse, Mem, Run};
use crate::na::wire::{CHUNK, number};
use portolan_engine::memory::runs::{Direction, gather, scatter};

pub const NAMES: usize = 24;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    pub id: u64,
    pub offset: usize,
    /// The length in bytes, at most one chunk.
    pub len: usize,
}

impl Named {
    pub fn bytes(&self) -> [u8; NAMES] {
        let mut bytes = [0; NAMES];
        bytes[..8].copy_from_slice(&self.id.to_le_bytes());
        bytes[8..16].copy_from_slice(&(self.offset as u64).to_le_bytes());
        bytes[16..].copy_from_slice(&(self.len as u64).to_le_bytes());
        bytes
    }

    /// Decodes a name. Returns it with the bytes that follow it. Returns `PROTOCOL_ERROR` if no
    /// peer of this library would send these bytes.
    pub fn parse(body: &[u8]) -> Result<(Named, &[u8])> {
        let Some((names, rest)) = body.split_at_checked(NAMES) else {
            refuse!(PROTOCOL_ERROR, "{} bytes do not name memory", body.len());
        };
        let size = |at: usize| usize::try_from(number(&names[at..])).ok();
        match (number(names), size(8), size(16)) {
            (id, Some(offset), Some(len)) if len <= CHUNK => Ok((Named { id, offset, len }, rest)),
            _ => refuse!(PROTOCOL_ERROR, "a part of memory that is too long"),
        }
    }

    /// Returns the runs of the range, whose memory stays registered while the guard exists.
    fn find(&self, direction: Direction) -> Result<(InUse, Vec<Run>)> {
        let Some(mem) = Mem::find(self.id) else {
            refuse!(ACCESS, "the handle is not registered (any more)");
        };
        if !mem.access().allows(direction) {
            refuse!(PERMISSION, "the memory is {:?}", mem.access());
        }
        mem.check(self.offset, self.len)?;
        let runs = mem.chunks(self.offset, self.len).filter(|run| run.len > 0).collect();
        Ok((mem, runs))
    }
}

/// Returns the memory that a peer asks to read (get) or write (put). `body` is the name of the
/// range. Returns `PROTOCOL_ERROR` if the request is malformed, `ACCESS` if the memory is not
/// registered, `PERMISSION` if it does not permit the access, and `OVERFLOW` if the range exceeds
/// the handle.
pub(super) fn named(body: &[u8], direction: Direction) -> Result<(InUse, Vec<Run>)> {
    let (named, rest) = Named::parse(body)?;
    if !rest.is_empty() {
        refuse!(PROTOCOL_ERROR, "{} bytes follow what names memory", rest.len());
    }
    named.find(direction)
}

/// Returns the bytes that a peer requests. Fails like [`named`].
pub fn read(body: &[u8]) -> Result<Vec<u8>> {
    let (_guard, runs) = named(body, Direction::Get)?;
    let mut bytes = vec![0; runs.iter().map(|run| run.len).sum()];
    // SAFETY: the guard keeps the memory registered, and the creator of the handle guarantees that
    // registered memory is readable.
    unsafe { gather(runs, &mut bytes) };
    Ok(bytes)
}

/// Writes the bytes of a peer's put. Fails like [`named`]. Nothing is written then.
pub fn write(body: &[u8]) -> Result<()> {
    let (named, rest) = Named::parse(body)?;
    if rest.len() != named.len {
        refuse!(PROTOCOL_ERROR, "{} bytes came instead of {}", rest.len(), named.len);
    }
    let (_guard, runs) = named.find(Direction::Put)?;
    // SAFETY: the guard keeps the memory registered, and by contract it is writable.
    unsafe { scatter(rest, runs) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Status;
    use crate::na::Permission;
    use std::sync::Arc;

    fn registered(access: Permission) -> Arc<Mem> {
        let mem = Mem::allocate(&[10, 0, 20], access).unwrap();
        mem.register();
        mem
    }

    fn part(mem: &Mem, offset: usize, len: usize) -> Named {
        Named { id: mem.id(), offset, len }
    }

    fn put(named: Named, bytes: &[u8]) -> Result<()> {
        write(&[&named.bytes()[..], bytes].concat())
    }

    #[test]
    fn what_is_exposed_can_be_used_and_nothing_else() {
        let mem = registered(Permission::ReadWrite);
        put(part(&mem, 8, 4), &[1, 2, 3, 4]).unwrap();
        assert_eq!(read(&part(&mem, 7, 6).bytes()).unwrap(), [0, 1, 2, 3, 4, 0]);
        assert_eq!(read(&part(&mem, 30, 0).bytes()).unwrap(), []);
        for (offset, len) in [(30, 1), (0, 31), (usize::MAX, 1), (usize::MAX, 0), (31, 0)] {
            let refused = read(&part(&mem, offset, len).bytes()).unwrap_err();
            assert_eq!(refused.status(), Status::OVERFLOW, "{offset} {len}");
            let refused = put(part(&mem, offset, len), &vec![9; len]).unwrap_err();
            assert_eq!(refused.status(), Status::OVERFLOW, "{offset} {len}");
        }
        for len in [CHUNK + 1, usize::MAX, 1 << 40] {
            let refused = read(&part(&mem, 0, len).bytes()).unwrap_err();
            assert_eq!(refused.status(), Status::PROTOCOL_ERROR);
        }
        let guess = Named { id: mem.id().wrapping_add(1), offset: 0, len: 1 };
        assert_eq!(read(&guess.bytes()).unwrap_err().status(), Status::ACCESS);
    }

    #[test]
    fn permission_is_that_of_the_owner() {
        let (source, sink) = (registered(Permission::ReadOnly), registered(Permission::WriteOnly));
        assert_eq!(put(part(&source, 0, 1), &[7]).unwrap_err().status(), Status::PERMISSION);
        assert_eq!(read(&part(&source, 0, 1).bytes()).unwrap(), [0]);
        assert_eq!(read(&part(&sink, 0, 1).bytes()).unwrap_err().status(), Status::PERMISSION);
        put(part(&sink, 0, 1), &[7]).unwrap();
    }

    #[test]
    fn deregistered_memory_is_out_of_reach_at_once() {
        let mem = registered(Permission::ReadWrite);
        let named = part(&mem, 0, 1);
        put(named, &[7]).unwrap();
        mem.deregister();
        assert_eq!(put(named, &[8]).unwrap_err().status(), Status::ACCESS);
        assert_eq!(read(&named.bytes()).unwrap_err().status(), Status::ACCESS);
        mem.register();
        assert_eq!(read(&named.bytes()).unwrap(), [7]);
        drop(mem);
        assert_eq!(read(&named.bytes()).unwrap_err().status(), Status::ACCESS);
    }

    #[test]
    fn messages_that_make_no_sense_write_nothing() {
        let mem = registered(Permission::ReadWrite);
        let named = part(&mem, 0, 4);
        for bytes in [&[][..], &[1, 2, 3], &[1, 2, 3, 4, 5]] {
            assert_eq!(put(named, bytes).unwrap_err().status(), Status::PROTOCOL_ERROR);
        }
        for len in 0..NAMES {
            assert_eq!(write(&named.bytes()[..len]).unwrap_err().status(), Status::PROTOCOL_ERROR);
        }
        assert!(read(&[&named.bytes()[..], &[0]].concat()).is_err());
        assert_eq!(read(&named.bytes()).unwrap(), [0; 4]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow, and safe code")]
    fn numbers_of_handles_cannot_be_guessed() {
        let ids: Vec<u64> = (0..2000).map(|_| registered(Permission::ReadOnly).id()).collect();
        let mut sorted = ids.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), ids.len());
        let near = |pair: &&[u64]| pair[0].abs_diff(pair[1]) < 1 << 32;
        assert!(ids.windows(2).filter(near).count() < 3);
        // Each bit is set in about half of the numbers.
        for bit in 0..64 {
            let ones = ids.iter().filter(|id| *id >> bit & 1 == 1).count();
            assert!((800..1200).contains(&ones), "bit {bit} is set in {ones} of 2000");
        }
    }
}
