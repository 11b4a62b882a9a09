//! The communication matrix: transfers between each pair of ranks.
//!
//! The page shows a square of at most [`MOST_TILES`] tiles per side. A tile covers one pair of
//! ranks, or several pairs in a larger job. In addition, the pairs with the most bytes and those
//! with the most time are kept individually.

use super::largest::Largest;
use std::cmp::Reverse;

pub const MOST_TILES: usize = 512;
const MOST_PAIRS: usize = 4000;

/// Transfers from one rank, or tile of ranks, to another. `ns` is their total duration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TransferTotals {
    pub bytes: u64,
    pub calls: u64,
    pub ns: u64,
}

impl TransferTotals {
    pub fn add(&mut self, other: TransferTotals) {
        self.bytes += other.bytes;
        self.calls += other.calls;
        self.ns += other.ns;
    }

    /// Returns the mean duration of a call in nanoseconds, or 0 if there were no calls.
    pub fn latency(&self) -> f64 {
        if self.calls == 0 { 0.0 } else { self.ns as f64 / self.calls as f64 }
    }
}

/// Origin, target, and the transfers between them.
pub type RankPair = (u32, u32, TransferTotals);

/// The pairs with the most bytes or the most time, and this measure of each.
type Most = Largest<(u64, RankPair)>;

#[derive(Debug)]
pub struct Matrix {
    /// Tiles per side.
    pub size: usize,
    /// Ranks per side of a tile.
    pub tile: usize,
    /// Tiles by origin, then by target.
    pub cells: Vec<TransferTotals>,
    by_bytes: Most,
    by_time: Most,
}

impl Matrix {
    pub fn new(ranks: usize) -> Matrix {
        let tile = ranks.div_ceil(MOST_TILES).max(1);
        let size = ranks.div_ceil(tile).max(1);
        Matrix {
            size,
            tile,
            cells: vec![TransferTotals::default(); size * size],
            by_bytes: Most::default(),
            by_time: Most::default(),
        }
    }

    /// Adds the transfers of rank `origin`; `row` has one cell for each target.
    pub fn put(&mut self, origin: u32, row: &[TransferTotals]) {
        let at = origin as usize / self.tile * self.size;
        for (target, cell) in row.iter().enumerate().filter(|(_, cell)| cell.calls > 0) {
            if let Some(to) = self.cells.get_mut(at + target / self.tile) {
                to.add(*cell);
            }
            let pair = (origin, target as u32, *cell);
            self.by_bytes.take((cell.bytes, pair), MOST_PAIRS);
            self.by_time.take((cell.ns, pair), MOST_PAIRS);
        }
    }

    /// Returns the pairs with the most bytes or time, sorted by bytes in descending order.
    pub fn pairs(&self) -> Vec<RankPair> {
        let most = self.by_bytes.iter().chain(self.by_time.iter());
        let mut all: Vec<RankPair> = most.map(|(_, pair)| *pair).collect();
        all.sort_by_key(|(from, to, cell)| (Reverse(cell.bytes), *from, *to));
        all.dedup_by_key(|(from, to, _)| (*from, *to));
        all
    }

    pub fn total(&self) -> TransferTotals {
        let mut total = TransferTotals::default();
        self.cells.iter().for_each(|cell| total.add(*cell));
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_have_the_sum_of_their_pairs() {
        let cell = |bytes| TransferTotals { bytes, calls: 2, ns: 10 };
        let mut matrix = Matrix::new(1200);
        assert_eq!((matrix.tile, matrix.size), (3, 400));
        let mut row = vec![TransferTotals::default(); 1200];
        row[0] = cell(5);
        row[2] = cell(7);
        row[1199] = cell(1);
        matrix.put(4, &row);
        matrix.put(5, &row);
        assert_eq!(matrix.cells[400], TransferTotals { bytes: 24, calls: 8, ns: 40 });
        assert_eq!(matrix.cells[400 + 399], TransferTotals { bytes: 2, calls: 4, ns: 20 });
        assert_eq!(matrix.total(), TransferTotals { bytes: 26, calls: 12, ns: 60 });
        let pairs = matrix.pairs();
        assert_eq!(pairs.len(), 6);
        assert_eq!(pairs[0], (4, 2, cell(7)));
        assert_eq!(cell(5).latency(), 5.0);
    }
}
