//! A table indexed by rank, for the state that a rank keeps about the few ranks that it
//! communicates with. An entry is created on first use and never moves, so that it is found without
//! a lock. A chunk of 32 unused entries takes 16 bytes.

use std::ops::{Index, IndexMut};
use std::sync::OnceLock;

const CHUNK: usize = 32;
type Chunk<T> = OnceLock<Box<[OnceLock<Box<T>>; CHUNK]>>;

#[derive(Debug)]
pub(crate) struct Sparse<T> {
    chunks: Box<[Chunk<T>]>,
}

impl<T> Default for Sparse<T> {
    fn default() -> Sparse<T> {
        Sparse::new(0)
    }
}

impl<T> Sparse<T> {
    pub fn new(ranks: usize) -> Sparse<T> {
        Sparse { chunks: (0..ranks.div_ceil(CHUNK)).map(|_| OnceLock::new()).collect() }
    }

    #[inline]
    pub fn get(&self, rank: usize) -> Option<&T> {
        self.chunks.get(rank / CHUNK)?.get()?[rank % CHUNK].get().map(|entry| &**entry)
    }

    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        let chunks = self.chunks.iter().enumerate();
        let chunks = chunks.filter_map(|(n, chunk)| Some((n * CHUNK, chunk.get()?)));
        chunks.flat_map(|(first, chunk)| {
            let entries = chunk.iter().enumerate();
            entries.filter_map(move |(n, entry)| Some((first + n, &**entry.get()?)))
        })
    }
}

/// Creates the entry of a rank if necessary.
impl<T: Default> Index<usize> for Sparse<T> {
    type Output = T;

    #[inline]
    fn index(&self, rank: usize) -> &T {
        let chunk =
            self.chunks[rank / CHUNK].get_or_init(|| Box::new([const { OnceLock::new() }; CHUNK]));
        chunk[rank % CHUNK].get_or_init(Box::default)
    }
}

impl<T: Default> IndexMut<usize> for Sparse<T> {
    fn index_mut(&mut self, rank: usize) -> &mut T {
        let _ = &self[rank];
        let entry = self.chunks[rank / CHUNK].get_mut().and_then(|c| c[rank % CHUNK].get_mut());
        entry.expect("the entry was made just now")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_made_when_they_are_used() {
        let mut table: Sparse<u64> = Sparse::new(100_000);
        assert!(table.get(99_999).is_none() && table.iter().next().is_none());
        table[99_999] = 7;
        table[31] += 1;
        assert_eq!(table[64], 0);
        assert_eq!(table.get(99_999), Some(&7));
        let all: Vec<(usize, u64)> = table.iter().map(|(rank, value)| (rank, *value)).collect();
        assert_eq!(all, [(31, 1), (64, 0), (99_999, 7)]);
        assert!(table.get(200_000).is_none());
        assert!(size_of::<Chunk<u64>>() <= CHUNK, "a byte for each rank at most");
    }

    #[test]
    fn threads_find_the_same_entry() {
        let table: Sparse<std::sync::atomic::AtomicU64> = Sparse::new(64);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for rank in 0..64 {
                        table[rank].fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    }
                });
            }
        });
        assert!(table.iter().all(|(_, n)| n.load(std::sync::atomic::Ordering::Relaxed) == 4));
        assert_eq!(table.iter().count(), 64);
    }
}
