//! The pieces of segments in one slice, found by offset.
//!
//! Pieces are kept sorted. Beside them there is a table of buckets over the slice,
//! at least twice as many as there are pieces. A bucket holds a copy of the
//! bounds of the piece that its offsets most likely lie in, so that a look-up
//! touches one entry of the table and nothing else, with one piece and with ten
//! thousand. Other offsets take a search.
//!
//! Invariant: `buckets[b]` has the bounds of the first piece that ends after the
//! start of bucket `b`, or none.

/// A piece of a segment in a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Offset of the first byte in the slice.
    pub start: usize,
    /// Length that was asked for, in bytes.
    pub len: usize,
    /// Number of the segment in its group.
    pub segment: u64,
}

/// Where a piece lies in its slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Offset of the first byte in the slice.
    pub start: usize,
    /// Length that was asked for, in bytes.
    pub len: usize,
}

/// No offset lies in it.
const NONE: Bounds = Bounds { start: 0, len: 0 };

impl Piece {
    fn end(&self) -> usize {
        self.start + self.len
    }
    fn bounds(&self) -> Bounds {
        Bounds { start: self.start, len: self.len }
    }
}

/// The pieces of a slice.
#[derive(Debug)]
pub struct PieceIndex {
    pieces: Vec<Piece>,
    buckets: Vec<Bounds>,
    shift: u32,
    slice: usize,
}

impl PieceIndex {
    /// An empty index over a slice of `slice` bytes.
    pub fn new(slice: usize) -> PieceIndex {
        let mut index = PieceIndex { pieces: Vec::new(), buckets: Vec::new(), shift: 0, slice };
        index.rebuild(16);
        index
    }

    fn rebuild(&mut self, wanted: usize) {
        let per_bucket = (self.slice / wanted.max(1)).max(64);
        self.shift = per_bucket.ilog2();
        let n = (self.slice >> self.shift) + 2;
        self.buckets.clear();
        self.buckets.resize(n, NONE);
        let mut from = 0;
        for i in 0..self.pieces.len() {
            from = self.fill(from, self.pieces[i]);
        }
    }

    /// Makes the piece that of the buckets from `from` to its end; returns the
    /// first bucket behind it.
    fn fill(&mut self, from: usize, piece: Piece) -> usize {
        let to = self.bucket_from(piece.end());
        if from < to {
            self.buckets[from..to].fill(piece.bounds());
        }
        to.max(from)
    }

    /// The first bucket whose start is at or after `offset`.
    fn bucket_from(&self, offset: usize) -> usize {
        (offset + (1 << self.shift) - 1) >> self.shift
    }

    /// The first bucket that may be that of the piece at `at`: where the piece
    /// before it ends.
    fn first_bucket_of(&self, at: usize) -> usize {
        at.checked_sub(1).map_or(0, |before| self.bucket_from(self.pieces[before].end()))
    }

    /// Adds a piece that overlaps no other.
    pub fn insert(&mut self, piece: Piece) {
        let at = self.pieces.partition_point(|p| p.start < piece.start);
        self.pieces.insert(at, piece);
        if self.pieces.len() * 2 > self.buckets.len() && self.shift > 6 {
            self.rebuild(self.pieces.len() * 4);
            return;
        }
        self.fill(self.first_bucket_of(at), piece);
    }

    /// Removes the piece that starts at `start`.
    pub fn remove(&mut self, start: usize) -> Option<Piece> {
        let at = self.pieces.binary_search_by_key(&start, |p| p.start).ok()?;
        let piece = self.pieces.remove(at);
        let from = self.first_bucket_of(at);
        let to = self.bucket_from(piece.end());
        let next = self.pieces.get(at).map_or(NONE, Piece::bounds);
        if from < to {
            self.buckets[from..to].fill(next);
        }
        Some(piece)
    }

    /// Where the piece lies that holds the byte at `offset`, or that ends just
    /// there (where an empty transfer may point).
    #[inline]
    pub fn find(&self, offset: usize) -> Option<Bounds> {
        let near = *self.buckets.get(offset >> self.shift)?;
        // Wraps, and is large, where the piece starts behind the offset.
        if offset.wrapping_sub(near.start) < near.len {
            return Some(near);
        }
        self.search(offset)
    }

    #[cold]
    fn search(&self, offset: usize) -> Option<Bounds> {
        let after = self.pieces.partition_point(|p| p.start <= offset);
        let piece = self.pieces.get(after.checked_sub(1)?)?;
        if offset <= piece.end() {
            return Some(piece.bounds());
        }
        None
    }

    /// The segment whose piece starts at `start`.
    pub fn segment_from(&self, start: usize) -> Option<u64> {
        let at = self.pieces.binary_search_by_key(&start, |p| p.start).ok()?;
        Some(self.pieces[at].segment)
    }

    /// Whether no piece is left.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(pieces: &[Piece], offset: usize) -> Option<Bounds> {
        pieces
            .iter()
            .find(|p| p.start <= offset && offset < p.end())
            .or_else(|| pieces.iter().find(|p| p.end() == offset))
            .map(Piece::bounds)
    }

    #[test]
    fn agrees_with_a_linear_search() {
        let slice = 1 << 20;
        let mut index = PieceIndex::new(slice);
        let mut all: Vec<Piece> = Vec::new();
        let mut state = 12345u64;
        let mut random = move |n: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % n
        };
        for round in 0..3000u64 {
            if !all.is_empty() && random(3) == 0 {
                let gone = all.swap_remove(random(all.len()));
                assert_eq!(index.remove(gone.start), Some(gone));
            } else {
                let start = random(slice / 64) * 64;
                let piece = Piece { start, len: 1 + random(200), segment: round };
                let end = (piece.end() + 63) & !63;
                let free = all.iter().all(|p| p.end() <= start || p.start >= end);
                if free && end <= slice {
                    all.push(piece);
                    index.insert(piece);
                }
            }
            for _ in 0..5 {
                let offset = random(slice);
                assert_eq!(index.find(offset), reference(&all, offset));
            }
            if let Some(p) = all.last() {
                assert_eq!(index.find(p.start), Some(p.bounds()));
                assert_eq!(index.segment_from(p.start), Some(p.segment));
                assert_eq!(index.find(p.end() - 1), Some(p.bounds()));
                assert_eq!(index.find(p.end()), reference(&all, p.end()));
            }
        }
    }

    #[test]
    fn ten_thousand_small_pieces() {
        let mut index = PieceIndex::new(4 << 20);
        for i in 0..10_000 {
            index.insert(Piece { start: 4096 + i * 64, len: 8, segment: i as u64 });
        }
        for i in 0..10_000 {
            assert_eq!(index.find(4096 + i * 64 + 7).map(|p| p.start), Some(4096 + i * 64));
            assert_eq!(index.find(4096 + i * 64 + 9), None);
        }
    }
}
