//! Encoded parameters that are too long for the buffer that a proc was given.

use crate::memory::long::Long;
use std::ops::Deref;

/// Where a proc takes extra buffers from.
pub type Source = fn(usize) -> Option<Long>;

/// Parameters in a buffer of their own.
#[derive(Debug)]
pub struct Spilled {
    long: Long,
    len: usize,
}

impl Spilled {
    /// The first bytes of a buffer.
    pub(super) fn new(long: Long, len: usize) -> Spilled {
        Spilled { long, len }
    }

    /// A copy; none where there is no memory.
    pub fn copy(bytes: &[u8], source: Source) -> Option<Spilled> {
        let mut long = source(bytes.len())?;
        long[..bytes.len()].copy_from_slice(bytes);
        Some(Spilled { long, len: bytes.len() })
    }

    /// The buffer, and how many bytes they are.
    pub fn into_parts(self) -> (Long, usize) {
        (self.long, self.len)
    }
}

impl Deref for Spilled {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.long[..self.len]
    }
}

impl PartialEq for Spilled {
    fn eq(&self, other: &Spilled) -> bool {
        **self == **other
    }
}

impl Eq for Spilled {}
