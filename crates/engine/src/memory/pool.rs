//! A pool of unused buffers: of messages, of long parameters ([`super::large_buffer`]), of records
//! of TLS. It is bounded in number and bytes, because a process needs many only while another rank
//! falls behind. If it is full, the oldest buffers make room for the latest, which is in the cache.

use parking_lot::{Mutex, MutexGuard};

/// A buffer in a pool.
pub trait Pooled {
    fn bytes(&self) -> usize;
}

impl Pooled for Vec<u8> {
    fn bytes(&self) -> usize {
        self.capacity()
    }
}

#[derive(Debug)]
pub struct Pool<B = Vec<u8>> {
    kept: Mutex<Kept<B>>,
    most: usize,
    most_bytes: usize,
}

#[derive(Debug)]
struct Kept<B> {
    buffers: Vec<B>,
    bytes: usize,
}

impl<B: Pooled> Pool<B> {
    /// Creates a pool that keeps at most `most` buffers of `most_bytes` bytes in total, and none of
    /// more than half of these bytes.
    pub const fn new(most: usize, most_bytes: usize) -> Pool<B> {
        Pool { kept: Mutex::new(Kept { buffers: Vec::new(), bytes: 0 }), most, most_bytes }
    }

    /// Takes the latest buffer that fits.
    #[inline]
    pub fn take_if(&self, fits: impl FnMut(&B) -> bool) -> Option<B> {
        let mut kept = self.kept.lock();
        let at = kept.buffers.iter().rposition(fits)?;
        let buffer = kept.buffers.remove(at);
        kept.bytes -= buffer.bytes();
        Some(buffer)
    }

    #[inline]
    pub fn give(&self, buffer: B) {
        let bytes = buffer.bytes();
        if bytes > self.most_bytes / 2 {
            return;
        }
        let mut kept = self.kept.lock();
        kept.bytes += bytes;
        kept.buffers.push(buffer);
        if kept.buffers.len() > self.most || kept.bytes > self.most_bytes {
            drop(self.surplus(kept)); // outside the lock
        }
    }

    #[cold]
    fn surplus(&self, mut kept: MutexGuard<'_, Kept<B>>) -> Vec<B> {
        let mut over = 0;
        while kept.buffers.len() - over > self.most || kept.bytes > self.most_bytes {
            kept.bytes -= kept.buffers[over].bytes();
            over += 1;
        }
        kept.buffers.drain(..over).collect()
    }

    pub fn clear(&self) {
        let mut kept = self.kept.lock();
        kept.bytes = 0;
        let gone = std::mem::take(&mut kept.buffers);
        drop(kept);
        drop(gone); // outside the lock
    }
}

impl Pool {
    /// Returns an empty buffer with room for `bytes` bytes.
    #[inline]
    pub fn take(&self, bytes: usize) -> Vec<u8> {
        let mut buffer = self.take_if(|_| true).unwrap_or_default();
        buffer.clear();
        buffer.reserve(bytes);
        buffer
    }

    /// Returns a buffer of `bytes` bytes with arbitrary contents.
    pub fn take_filled(&self, bytes: usize) -> Vec<u8> {
        let mut buffer = self.take_if(|_| true).unwrap_or_default();
        buffer.resize(bytes, 0);
        buffer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded() {
        let store = Pool::new(8, 1 << 20);
        let held = |store: &Pool| {
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
            let few = if size == 2 << 20 { 0 } else { 3 };
            assert!(buffers >= few, "{buffers} buffers of {size} bytes");
        }
        store.give(vec![1; 500]);
        let buffer = store.take_filled(300);
        assert_eq!((buffer.len(), buffer.capacity()), (300, 500));
        store.give(buffer);
        let buffer = store.take(10);
        assert_eq!((buffer.len(), buffer.capacity()), (0, 500));
        store.clear();
        assert_eq!(held(&store), (0, 0));
    }

    #[test]
    fn the_latest_that_fits_is_taken_and_the_oldest_makes_room() {
        let store = Pool::new(3, 1000);
        (1..=4).for_each(|size| store.give(vec![0; 10 * size]));
        assert!(store.take_if(|buffer| buffer.capacity() == 10).is_none(), "it made room");
        let size = |buffer: Option<Vec<u8>>| buffer.map(|buffer| buffer.capacity());
        assert_eq!(size(store.take_if(|buffer| buffer.capacity() <= 30)), Some(30));
        assert_eq!(size(store.take_if(|_| true)), Some(40));
        store.give(vec![0; 490]);
        store.give(vec![0; 500]);
        assert_eq!(size(store.take_if(|buffer| buffer.capacity() < 490)), None, "20 made room");
        assert_eq!(
            (size(store.take_if(|_| true)), size(store.take_if(|_| true))),
            (Some(500), Some(490))
        );
    }
}
