//! Encoded parameters that do not fit into the buffer of their proc.

use portolan_engine::memory::large_buffer::LargeBuffer;
use std::ops::Deref;

/// A function that allocates extra buffers for a proc.
pub type Source = fn(usize) -> Option<LargeBuffer>;

#[derive(Debug)]
pub struct Overflow {
    long: LargeBuffer,
    len: usize,
}

impl Overflow {
    pub fn new(long: LargeBuffer, len: usize) -> Overflow {
        Overflow { long, len }
    }

    /// Copies bytes into a new buffer; `None` if memory is exhausted.
    pub fn copy(bytes: &[u8], source: Source) -> Option<Overflow> {
        let mut long = source(bytes.len())?;
        long[..bytes.len()].copy_from_slice(bytes);
        Some(Overflow { long, len: bytes.len() })
    }

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
