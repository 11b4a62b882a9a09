//! A pool of buffers.
//!
//! Each message needs a buffer for a short time, and a rank needs many at a time only while
//! another rank is behind. The pool keeps used buffers up to a number and a sum of bytes, so
//! that a rank's memory does not stay at the most that it ever needed.

use parking_lot::Mutex;

/// A pool of buffers.
#[derive(Debug)]
pub(crate) struct BufferPool {
    kept: Mutex<Kept>,
    most: usize,
    most_bytes: usize,
}

#[derive(Debug, Default)]
struct Kept {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

impl BufferPool {
    /// A pool of at most `most` buffers, which hold at most `most_bytes` together.
    pub(crate) fn new(most: usize, most_bytes: usize) -> BufferPool {
        BufferPool { kept: Mutex::default(), most, most_bytes }
    }

    /// An empty buffer with room for `bytes`.
    pub(crate) fn take(&self, bytes: usize) -> Vec<u8> {
        let mut buffer = self.kept.lock().take().unwrap_or_default();
        buffer.reserve(bytes);
        buffer
    }

    /// Keeps a buffer, or frees it.
    pub(crate) fn give(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        let mut kept = self.kept.lock();
        let bytes = kept.bytes + buffer.capacity();
        if kept.buffers.len() < self.most && bytes <= self.most_bytes {
            kept.bytes = bytes;
            kept.buffers.push(buffer);
        }
    }
}

impl Kept {
    fn take(&mut self) -> Option<Vec<u8>> {
        let buffer = self.buffers.pop()?;
        self.bytes -= buffer.capacity();
        Some(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded() {
        let store = BufferPool::new(8, 1 << 20);
        let held = |store: &BufferPool| {
            let kept = store.kept.lock();
            assert_eq!(kept.bytes, kept.buffers.iter().map(Vec::capacity).sum::<usize>());
            (kept.buffers.len(), kept.bytes)
        };
        // Many at a time, and larger each time round: not all returned buffers are kept.
        for size in [100, 10_000, 300_000, 2 << 20] {
            let out: Vec<_> = (0..20).map(|_| store.take(size)).collect();
            assert!(out.iter().all(|b| b.is_empty() && b.capacity() >= size));
            out.into_iter().for_each(|b| store.give(b));
            let (buffers, bytes) = held(&store);
            assert!(buffers <= 8 && bytes <= 1 << 20, "{buffers} buffers of {bytes} bytes");
        }
        assert_eq!(held(&store), (0, 0), "each is larger than all that may be kept");
        store.give(vec![1; 500]);
        assert_eq!(store.take(10).capacity(), 500);
    }
}
