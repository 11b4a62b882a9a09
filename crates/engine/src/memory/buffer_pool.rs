//! A pool of message buffers. It limits the unused buffers that it keeps, because a rank needs many
//! only while another rank falls behind.

use parking_lot::Mutex;

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
    /// Creates a pool that keeps at most `most` unused buffers of `most_bytes` bytes in total.
    pub fn new(most: usize, most_bytes: usize) -> BufferPool {
        BufferPool { kept: Mutex::default(), most, most_bytes }
    }

    #[inline]
    pub fn take(&self, bytes: usize) -> Vec<u8> {
        let mut buffer = self.kept.lock().take().unwrap_or_default();
        buffer.clear();
        buffer.reserve(bytes);
        buffer
    }

    /// Returns a buffer of `bytes` bytes with arbitrary contents.
    pub fn take_filled(&self, bytes: usize) -> Vec<u8> {
        let mut buffer = self.kept.lock().take().unwrap_or_default();
        buffer.resize(bytes, 0);
        buffer
    }

    #[inline]
    pub fn give(&self, buffer: Vec<u8>) {
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
        for size in [100, 10_000, 300_000, 2 << 20] {
            let out: Vec<_> = (0..20).map(|_| store.take(size)).collect();
            assert!(out.iter().all(|b| b.is_empty() && b.capacity() >= size));
            out.into_iter().for_each(|b| store.give(b));
            let (buffers, bytes) = held(&store);
            assert!(buffers <= 8 && bytes <= 1 << 20, "{buffers} buffers of {bytes} bytes");
        }
        assert_eq!(held(&store), (0, 0), "each is larger than all that may be kept");
        store.give(vec![1; 500]);
        let buffer = store.take_filled(300);
        assert_eq!((buffer.len(), buffer.capacity()), (300, 500));
        store.give(buffer);
        let buffer = store.take(10);
        assert_eq!((buffer.len(), buffer.capacity()), (0, 500));
    }
}
