//! Encoded parameters that are longer than the buffer that a proc was given.

use crate::memory::large_buffer::LargeBuffer;
use std::ops::Deref;

/// Where a proc takes extra buffers from.
pub(crate) type Source = fn(usize) -> Option<LargeBuffer>;

/// Parameters in a buffer of their own.
#[derive(Debug)]
pub struct Overflow {
    long: LargeBuffer,
    len: usize,
}

impl Overflow {
    /// The first bytes of a buffer.
    pub(super) fn new(long: LargeBuffer, len: usize) -> Overflow {
        Overflow { long, len }
    }

    /// A copy; none where there is no memory.
    pub(crate) fn copy(bytes: &[u8], source: Source) -> Option<Overflow> {
        let mut long = source(bytes.len())?;
        long[..bytes.len()].copy_from_slice(bytes);
        Some(Overflow { long, len: bytes.len() })
    }

    /// The buffer, and how many bytes they are.
    pub(crate) fn into_parts(self) -> (LargeBuffer, usize) {
        (self.long, self.len)
    }
}

impl Deref for Overflow {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.long[..self.len]
    }
}

impl PartialEq for Overflow {
    fn eq(&self, other: &Overflow) -> bool {
        **self == **other
    }
}

impl Eq for Overflow {}
