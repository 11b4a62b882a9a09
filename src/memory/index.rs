//! The pieces of segments in one slice, found by offset.
//!
//! Pieces are kept sorted. A table of buckets over the slice says where the
//! search begins, and has at least twice as many buckets as there are pieces,
//! so that a look-up costs the same with one piece and with ten thousand.
//!
//! Invariant: `buckets[b]` is the number of pieces that end at or before the
//! start of bucket `b`.

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

impl Piece {
    fn end(&self) -> usize {
        self.start + self.len
    }
}

/// The pieces of a slice.
#[derive(Debug)]
pub struct PieceIndex {
    pieces: Vec<Piece>,
    buckets: Vec<u32>,
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
        self.buckets = vec![0; n];
        let mut passed = 0;
        for (b, bucket) in self.buckets.iter_mut().enumerate() {
            while passed < self.pieces.len() && self.pieces[passed].end() <= b << self.shift {
                passed += 1;
            }
            *bucket = passed as u32;
        }
    }

    /// The first bucket whose start is at or after `offset`.
    fn bucket_from(&self, offset: usize) -> usize {
        (offset + (1 << self.shift) - 1) >> self.shift
    }

    /// Adds a piece that overlaps no other.
    pub fn insert(&mut self, piece: Piece) {
        let at = self.pieces.partition_point(|p| p.start < piece.start);
        self.pieces.insert(at, piece);
        if self.pieces.len() * 2 > self.buckets.len() && self.shift > 6 {
            self.rebuild(self.pieces.len() * 4);
            return;
        }
        let from = self.bucket_from(piece.end());
        for bucket in &mut self.buckets[from..] {
            *bucket += 1;
        }
    }

    /// Removes the piece that starts at `start`.
    pub fn remove(&mut self, start: usize) -> Option<Piece> {
        let at = self.pieces.binary_search_by_key(&start, |p| p.start).ok()?;
        let piece = self.pieces.remove(at);
        let from = self.bucket_from(piece.end());
        for bucket in &mut self.buckets[from..] {
            *bucket -= 1;
        }
        Some(piece)
    }

    /// The piece that holds the byte at `offset`, or that ends just there
    /// (where an empty transfer may point).
    #[inline]
    pub fn find(&self, offset: usize) -> Option<&Piece> {
        let b = offset >> self.shift;
        let lo = *self.buckets.get(b)? as usize;
        let hi = (self.buckets[b + 1] as usize + 1).min(self.pieces.len());
        let near = &self.pieces[lo..hi];
        let i = if near.len() <= 4 {
            near.iter().take_while(|p| p.end() <= offset).count()
        } else {
            near.partition_point(|p| p.end() <= offset)
        };
        if let Some(piece) = near.get(i)
            && piece.start <= offset
        {
            return Some(piece);
        }
        // Only the piece before can end exactly at `offset`.
        let before = self.pieces.get((lo + i).checked_sub(1)?)?;
        (before.end() == offset).then_some(before)
    }

    /// Whether no piece is left.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(pieces: &[Piece], offset: usize) -> Option<Piece> {
        pieces
            .iter()
            .find(|p| p.start <= offset && offset < p.end())
            .or_else(|| pieces.iter().find(|p| p.end() == offset))
            .copied()
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
                assert_eq!(index.find(offset).copied(), reference(&all, offset));
            }
            if let Some(p) = all.last() {
                assert_eq!(index.find(p.start).copied(), Some(*p));
                assert_eq!(index.find(p.end() - 1).copied(), Some(*p));
                assert_eq!(index.find(p.end()).copied(), reference(&all, p.end()));
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
            assert_eq!(index.find(4096 + i * 64 + 7).map(|p| p.segment), Some(i as u64));
            assert_eq!(index.find(4096 + i * 64 + 9), None);
        }
    }
}
