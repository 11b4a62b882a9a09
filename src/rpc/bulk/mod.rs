//! Bulk data: memory that travels as a handle and moves by one-sided transfers.
//!
//! A [`Bulk`] stands for one or more segments. As a parameter of a call it is its
//! serialised form, so a handler that has decoded it can pull from the origin's memory
//! or push to it ([`Context::transfer`](crate::rpc::hg::Context::transfer)), with any
//! offsets, in several pieces at a time. In the process that made it, it gives its
//! segments without a copy ([`Bulk::access`]); the segments of another process it does
//! not give away.
//!
//! # Threads
//! [`Bulk`] is `Send`, `Sync` and `Clone`, and its bytes may be used by several threads and ranks
//! at once. [`Bulk::write`] and [`Bulk::read`] on the same bytes are defined beside each other and
//! beside transfers: they copy by relaxed atomic accesses, and nothing refers to the bytes. A read
//! beside a write, or beside a transfer, gets old bytes, new bytes, or some of each; any bytes are
//! a value of the only type that is read, `u8`. What a transfer has moved is whole when its callback
//! runs. [`Buffer`] gives its bytes as a slice, and so belongs to one transfer or to its owner, never
//! to both; a program's memory that is exposed by [`Bulk::expose`], which is `unsafe`, is subject to
//! the rules of its own type.
//!
//! | module | owns |
//! |---|---|
//! | `buffer` | the local side of transfers: bytes that are moved into one and come back |

pub(crate) mod buffer;

pub use buffer::Buffer;

use crate::memory::shared_bytes;
use crate::rpc::failure::{Result, refuse};
use crate::rpc::na::{Access, Mem, Run};
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde::ser::{Serialize, Serializer};
use std::fmt;
use std::sync::Arc;

/// Tells bulk handles from others.
const KIND: u8 = 1;

/// A bulk handle. Clones are the same handle.
#[derive(Debug, Clone)]
pub struct Bulk {
    mem: Arc<Mem>,
}

impl Bulk {
    /// Memory of the handle's own, zeroed, freed with it. Where it can be, it is shared
    /// with the node, so that others reach it with one copy; it may stay taken for a
    /// while after it was freed.
    ///
    /// # Errors
    /// `NOMEM`; `INVALID_ARG` for no segment.
    pub fn allocate(sizes: &[usize], access: Access) -> Result<Bulk> {
        Ok(Bulk::over(Mem::allocate_to_lend(sizes, access)?))
    }

    /// Memory for this process's own side of transfers.
    fn private(bytes: usize) -> Result<Bulk> {
        Ok(Bulk::over(Mem::allocate(&[bytes], Access::ReadWrite)?))
    }

    /// Memory of the handle's own with these bytes in it.
    ///
    /// # Errors
    /// `NOMEM`.
    pub fn from_bytes_of(bytes: &[u8], access: Access) -> Result<Bulk> {
        let bulk = Bulk::allocate(&[bytes.len()], access)?;
        bulk.write(0, bytes)?;
        Ok(bulk)
    }

    /// Memory of the program's.
    ///
    /// # Errors
    /// `INVALID_ARG` for no segment, or one that cannot be.
    ///
    /// # Safety
    /// The segments must be valid for what `access` allows to others, and here for
    /// both, while the handle, or a clone, lives.
    pub unsafe fn expose(runs: Vec<Run>, access: Access) -> Result<Bulk> {
        // SAFETY: passed on from the caller.
        Ok(Bulk::over(unsafe { Mem::expose(runs, access) }?))
    }

    fn over(mem: Arc<Mem>) -> Bulk {
        mem.register();
        Bulk { mem }
    }

    /// Ends that others use the memory, as the end of the last clone does: nobody reads or
    /// writes it for others when this returns. A handle that came as bytes only names memory,
    /// and stays as it is.
    pub fn withdraw(&self) {
        self.mem.deregister();
    }

    /// The memory handle beneath.
    pub fn mem(&self) -> &Arc<Mem> {
        &self.mem
    }

    /// Bytes in all.
    pub fn len(&self) -> usize {
        self.mem.len()
    }

    /// Whether the handle has no bytes.
    pub fn is_empty(&self) -> bool {
        self.mem.is_empty()
    }

    /// How many segments it has.
    pub fn segments(&self) -> usize {
        self.mem.runs().len()
    }

    /// What others may do.
    pub fn permission(&self) -> Access {
        self.mem.access()
    }

    /// Whether the memory is this process's.
    pub fn is_local(&self) -> bool {
        self.mem.is_local()
    }

    /// The parts of the segments that a range consists of. The handle's permission is for
    /// others: the owner does with its own memory what it likes.
    ///
    /// # Errors
    /// `ACCESS` for memory of another process; `OVERFLOW` past the end.
    pub fn access(&self, offset: usize, size: usize) -> Result<Vec<Run>> {
        Ok(self.own(offset, size)?.into_iter().filter(|run| run.len > 0).collect())
    }

    /// Copies bytes into the memory, whatever others may do with it. Other threads may read and
    /// write the same bytes meanwhile, and then find some of each.
    ///
    /// # Errors
    /// `ACCESS` for memory of another process; `OVERFLOW` past the end.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        for run in self.own(offset, bytes.len())? {
            let (part, after) = rest.split_at(run.len);
            // SAFETY: the memory is valid while the handle lives.
            unsafe { shared_bytes::store(part, run.address as *mut u8) };
            rest = after;
        }
        Ok(())
    }

    /// Copies bytes out of the memory. Other threads may write the same bytes meanwhile.
    ///
    /// # Errors
    /// As for [`Bulk::write`].
    pub fn read(&self, offset: usize, bytes: &mut [u8]) -> Result<()> {
        let mut at = 0;
        for run in self.own(offset, bytes.len())? {
            let part = &mut bytes[at..at + run.len];
            // SAFETY: as above.
            unsafe { shared_bytes::load(run.address as *const u8, part) };
            at += run.len;
        }
        Ok(())
    }

    fn own(&self, offset: usize, size: usize) -> Result<Vec<Run>> {
        if !self.is_local() {
            refuse!(ACCESS, "the handle is for memory of another process; transfer it instead");
        }
        self.mem.check(offset, size)?;
        Ok(self.mem.pieces(offset, size).collect())
    }

    /// Bytes of the serialised form.
    pub fn encoded_len(&self) -> usize {
        self.mem.encoded_len()
    }

    /// The serialised form.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.mem.to_bytes(KIND)
    }

    /// The handle that bytes describe.
    ///
    /// # Errors
    /// `PROTOCOL_ERROR`, `CHECKSUM_ERROR` for what is none; `FAULT` for memory of this
    /// process that is not exposed any more.
    pub fn from_bytes(bytes: &[u8]) -> Result<Bulk> {
        Ok(Bulk { mem: Mem::from_bytes(bytes, KIND)? })
    }
}

impl Serialize for Bulk {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        to.serialize_bytes(&self.to_bytes())
    }
}

impl<'de> Deserialize<'de> for Bulk {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Bulk, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Bulk;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a bulk handle")
            }

            fn visit_bytes<E: serde::de::Error>(
                self,
                bytes: &[u8],
            ) -> std::result::Result<Bulk, E> {
                Bulk::from_bytes(bytes).map_err(E::custom)
            }
        }
        if from.is_human_readable() {
            return Err(D::Error::custom("a bulk handle has no form for people"));
        }
        from.deserialize_bytes(Bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::failure::Status;

    #[test]
    fn access_follows_bounds_and_not_the_permission_of_others() {
        for access in [Access::ReadOnly, Access::WriteOnly, Access::ReadWrite] {
            let bulk = Bulk::allocate(&[10, 20], access).unwrap();
            assert_eq!(bulk.access(5, 10).unwrap().len(), 2);
            let refused = |offset, size| bulk.access(offset, size).unwrap_err().status;
            assert_eq!(refused(25, 6), Status::OVERFLOW);
            assert_eq!(refused(usize::MAX, 2), Status::OVERFLOW);
        }
    }

    #[test]
    fn bytes_go_in_and_out_across_segments() {
        let bulk = Bulk::allocate(&[3, 0, 4], Access::ReadWrite).unwrap();
        bulk.write(1, &[1, 2, 3, 4]).unwrap();
        let mut all = [9; 7];
        bulk.read(0, &mut all).unwrap();
        assert_eq!(all, [0, 1, 2, 3, 4, 0, 0]);
        assert!(bulk.write(4, &[0; 4]).is_err());
        let back = Bulk::from_bytes(&bulk.to_bytes()).unwrap();
        back.write(6, &[7]).unwrap();
        bulk.read(0, &mut all).unwrap();
        assert_eq!(all[6], 7, "what comes back to its process is the same memory");
    }
}
