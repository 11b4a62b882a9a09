//! Bulk data: memory that travels as a handle and moves by one-sided transfers.
//! `portolan::rpc::bulk` describes its use.
//!
//! Invariant: [`Bulk::write`], [`Bulk::read`] and transfers may run concurrently on the same bytes,
//! so they copy with relaxed atomic accesses and create no references to the bytes.

mod buffer;
mod transfer;

pub use crate::hg::BulkOp;
pub use crate::na::{Permission, Run};
pub use buffer::Buffer;

use crate::failure::{Result, refuse};
use crate::na::Mem;
use portolan_engine::memory::shared_bytes;
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde::ser::{Serialize, Serializer};
use std::fmt;
use std::sync::Arc;

/// Distinguishes bulk handles from other memory handles.
const KIND: u8 = 1;

/// A bulk handle. Clones are the same handle.
#[derive(Debug, Clone)]
pub struct Bulk {
    exposed: Arc<Exposed>,
}

/// Memory that is withdrawn with the last clone of its handle. Accesses on behalf of other ranks
/// hold the memory too, and must not keep it registered.
#[derive(Debug)]
struct Exposed(Arc<Mem>);

impl Drop for Exposed {
    fn drop(&mut self) {
        self.0.deregister();
    }
}

/// A position in the memory of a bulk handle, at which a transfer begins. Created by [`Bulk::at`].
#[derive(Debug, Clone, Copy)]
#[must_use = "a position moves no data; pass it to a transfer"]
pub struct BulkOffset<'a> {
    bulk: &'a Bulk,
    offset: usize,
}

impl Bulk {
    /// Allocates zeroed memory that is freed with the last clone of the handle. The memory is
    /// shared with the node if possible, so that other ranks reach it with one copy. Freed memory
    /// may stay allocated for a while, for reuse.
    ///
    /// # Errors
    /// Returns `NOMEM` if memory is exhausted, `INVALID_ARG` if `sizes` is empty.
    pub fn allocate(sizes: &[usize], access: Permission) -> Result<Bulk> {
        Ok(Bulk::over(Mem::allocate_to_lend(sizes, access)?))
    }

    /// Allocates memory for the local side of transfers.
    fn private(bytes: usize) -> Result<Bulk> {
        Ok(Bulk::over(Mem::allocate(&[bytes], Permission::ReadWrite)?))
    }

    /// Allocates memory like [`Bulk::allocate`] and copies `bytes` into it.
    ///
    /// # Errors
    /// Returns `NOMEM` if memory is exhausted.
    pub fn from_bytes_of(bytes: &[u8], access: Permission) -> Result<Bulk> {
        let bulk = Bulk::allocate(&[bytes.len()], access)?;
        bulk.write(0, bytes)?;
        Ok(bulk)
    }

    /// Registers memory of the program.
    ///
    /// # Errors
    /// Returns `INVALID_ARG` if `runs` is empty, or a segment is at the null address or wraps
    /// around.
    ///
    /// # Safety
    /// The segments must be valid for the accesses that `access` permits to other ranks, and for
    /// reads and writes in this process, while the handle or a clone lives.
    pub unsafe fn expose(runs: Vec<Run>, access: Permission) -> Result<Bulk> {
        // SAFETY: the caller upholds the contract of `Mem::expose`.
        Ok(Bulk::over(unsafe { Mem::expose(runs, access) }?))
    }

    fn over(mem: Arc<Mem>) -> Bulk {
        mem.register();
        Bulk { exposed: Arc::new(Exposed(mem)) }
    }

    /// Withdraws the memory from other ranks, as dropping the last clone does. No access on behalf
    /// of another rank is in progress or can begin when this returns. Does nothing to a handle that
    /// was decoded from bytes, because that only names memory.
    pub fn withdraw(&self) {
        self.mem().deregister();
    }

    #[doc(hidden)]
    pub fn mem(&self) -> &Arc<Mem> {
        &self.exposed.0
    }

    /// Returns the position of a byte of the segments. Transfers check it.
    #[inline]
    pub fn at(&self, offset: usize) -> BulkOffset<'_> {
        BulkOffset { bulk: self, offset }
    }

    pub fn len(&self) -> usize {
        self.mem().len()
    }

    /// Returns whether the handle has no bytes.
    pub fn is_empty(&self) -> bool {
        self.mem().is_empty()
    }

    pub fn segments(&self) -> usize {
        self.mem().runs().len()
    }

    /// Returns the accesses that other ranks may make.
    pub fn permission(&self) -> Permission {
        self.mem().access()
    }

    pub fn is_local(&self) -> bool {
        self.mem().is_local()
    }

    /// Returns the parts of the segments that a range consists of. The permission of the handle
    /// applies to other ranks only; the owner has full access to its own memory.
    ///
    /// # Errors
    /// Returns `ACCESS` if the memory is another process's, `OVERFLOW` if the range exceeds it.
    pub fn access(&self, offset: usize, size: usize) -> Result<Vec<Run>> {
        Ok(self.own(offset, size)?.into_iter().filter(|run| run.len > 0).collect())
    }

    /// Copies bytes into the memory, whatever its permission for other ranks.
    ///
    /// # Errors
    /// Fails like [`Bulk::access`].
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        for run in self.own(offset, bytes.len())? {
            let (part, after) = rest.split_at(run.len);
            // SAFETY: `own` has checked the range, and the memory is valid while the handle lives.
            unsafe { shared_bytes::store(part, run.address as *mut u8) };
            rest = after;
        }
        Ok(())
    }

    /// Copies bytes out of the memory.
    ///
    /// # Errors
    /// Fails like [`Bulk::access`].
    pub fn read(&self, offset: usize, bytes: &mut [u8]) -> Result<()> {
        let mut at = 0;
        for run in self.own(offset, bytes.len())? {
            let part = &mut bytes[at..at + run.len];
            // SAFETY: `own` has checked the range, and the memory is valid while the handle lives.
            unsafe { shared_bytes::load(run.address as *const u8, part) };
            at += run.len;
        }
        Ok(())
    }

    fn own(&self, offset: usize, size: usize) -> Result<Vec<Run>> {
        if !self.is_local() {
            refuse!(ACCESS, "the handle is for memory of another process; transfer it instead");
        }
        self.mem().check(offset, size)?;
        Ok(self.mem().chunks(offset, size).collect())
    }

    /// Returns the length of the serialised form in bytes.
    pub fn encoded_len(&self) -> usize {
        self.mem().encoded_len()
    }

    #[doc(hidden)]
    pub fn to_bytes_with_data(&self) -> Option<Vec<u8>> {
        self.mem().to_bytes_with_data(KIND)
    }

    /// Returns the serialised form.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.mem().to_bytes(KIND)
    }

    /// Returns the handle that `bytes` describe.
    ///
    /// # Errors
    /// Returns `OVERFLOW` if the bytes end before the handle, `PROTOCOL_ERROR` if they describe no
    /// bulk handle, `CHECKSUM_ERROR` if they are damaged, and `FAULT` if they name memory of this
    /// process but match none of its live handles.
    pub fn from_bytes(bytes: &[u8]) -> Result<Bulk> {
        Ok(Bulk { exposed: Arc::new(Exposed(Mem::from_bytes(bytes, KIND)?)) })
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
            return Err(D::Error::custom("a bulk handle has no human-readable form"));
        }
        from.deserialize_bytes(Bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Status;

    #[test]
    fn access_follows_bounds_and_not_the_permission_of_others() {
        for access in [Permission::ReadOnly, Permission::WriteOnly, Permission::ReadWrite] {
            let bulk = Bulk::allocate(&[10, 20], access).unwrap();
            assert_eq!(bulk.access(5, 10).unwrap().len(), 2);
            let refused = |offset, size| bulk.access(offset, size).unwrap_err().status();
            assert_eq!(refused(25, 6), Status::OVERFLOW);
            assert_eq!(refused(usize::MAX, 2), Status::OVERFLOW);
        }
    }

    #[test]
    fn bytes_go_in_and_out_across_segments() {
        let bulk = Bulk::allocate(&[3, 0, 4], Permission::ReadWrite).unwrap();
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

    #[test]
    fn an_access_by_a_peer_does_not_keep_dropped_memory_registered() {
        let bulk = Bulk::allocate(&[8], Permission::ReadOnly).unwrap();
        let mem = bulk.mem().clone(); // as an access on behalf of a peer has it
        let clone = bulk.clone();
        drop(bulk);
        assert!(mem.is_registered());
        drop(clone);
        assert!(!mem.is_registered());
    }
}
