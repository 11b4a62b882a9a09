//! The blocks of segments in one region, found by offset. The blocks are sorted. A table of *pages*
//! of the region speeds up the lookup. If at most one block lies in a page, its entry has the
//! bounds of that block. Otherwise, it refers to a leaf with 64 entries, one for each part of the
//! page: the bounds of the first block that ends after the start of the part. A lookup touches one
//! or two entries; it searches only if a part contains several blocks.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    pub start: usize,
    /// Requested length in bytes.
    pub len: usize,
    pub segment: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    pub start: usize,
    pub len: usize,
}

/// Approximate maximum number of pages of a region.
const PAGES: usize = 4096;
/// Minimum size of a page in bytes.
const PAGE: usize = 4096;
const PARTS: usize = 64;
const PARTS_SHIFT: u32 = PARTS.ilog2();

/// The entry of a page or part. If its length is 0, `start` is the index of a leaf plus one, or 0.
type Entry = Bounds;
const NONE: Entry = Bounds { start: 0, len: 0 };

impl Bounds {
    #[inline]
    fn holds(self, offset: usize) -> bool {
        // A start behind the offset makes the difference wrap to a large number.
        offset.wrapping_sub(self.start) < self.len
    }
    fn leaf(self) -> Option<usize> {
        if self.len == 0 { self.start.checked_sub(1) } else { None }
    }
}

impl Block {
    fn end(&self) -> usize {
        self.start + self.len
    }
    fn bounds(&self) -> Bounds {
        Bounds { start: self.start, len: self.len }
    }
}

#[derive(Debug, Clone)]
pub struct BlockIndex {
    blocks: Vec<Block>,
    /// Pages up to the farthest block so far, because most regions are mostly empty.
    pages: Vec<Entry>,
    leaves: Vec<[Entry; PARTS]>,
    spare: Vec<usize>,
    shift: u32,
}

impl BlockIndex {
    pub fn new(region: usize) -> BlockIndex {
        let shift = (region / PAGES).max(PAGE).next_power_of_two().ilog2();
        BlockIndex {
            blocks: Vec::new(),
            pages: Vec::new(),
            leaves: Vec::new(),
            spare: Vec::new(),
            shift,
        }
    }

    fn enter_page(&mut self, page: usize) {
        let (from, to) = (page << self.shift, (page + 1) << self.shift);
        let first = self.blocks.partition_point(|p| p.end() <= from);
        let after = self.blocks.partition_point(|p| p.start < to);
        let old = self.pages[page].leaf();
        if after - first < 2 {
            self.spare.extend(old);
            self.pages[page] = self.blocks[first..after].first().map_or(NONE, Block::bounds);
            return;
        }
        let leaf = old.or_else(|| self.spare.pop()).unwrap_or_else(|| {
            self.leaves.push([NONE; PARTS]);
            self.leaves.len() - 1
        });
        let part = 1usize << (self.shift - PARTS_SHIFT);
        let mut here = self.blocks[first..after].iter().peekable();
        for (n, entry) in self.leaves[leaf].iter_mut().enumerate() {
            while here.next_if(|p| p.end() <= from + n * part).is_some() {}
            *entry = here.peek().map_or(NONE, |p| p.bounds());
        }
        self.pages[page] = Bounds { start: leaf + 1, len: 0 };
    }

    /// Updates the pages of a changed block. `whole` is the entry of those that it covers entirely.
    fn enter(&mut self, block: Block, whole: Entry) {
        let (first, last) = (block.start >> self.shift, (block.end() - 1) >> self.shift);
        self.enter_page(first);
        if first < last {
            self.pages[first + 1..last].fill(whole);
            self.enter_page(last);
        }
    }

    /// Adds a block, which must not be empty or overlap another one.
    pub fn insert(&mut self, block: Block) {
        debug_assert!(block.len > 0);
        let at = self.blocks.partition_point(|p| p.start < block.start);
        let pages = ((block.end() - 1) >> self.shift) + 1;
        if self.blocks.is_empty() {
            // Most regions contain one block, and a rank may know thousands of them.
            self.blocks.reserve_exact(1);
            self.pages.reserve_exact(pages.saturating_sub(self.pages.len()));
        }
        self.blocks.insert(at, block);
        if pages > self.pages.len() {
            self.pages.resize(pages, NONE);
        }
        self.enter(block, block.bounds());
    }

    pub fn remove(&mut self, start: usize) -> Option<Block> {
        let at = self.blocks.binary_search_by_key(&start, |p| p.start).ok()?;
        let block = self.blocks.remove(at);
        self.enter(block, NONE);
        Some(block)
    }

    /// Returns the bounds of the block that contains `offset` or ends there (for empty transfers).
    #[inline(always)]
    pub fn find(&self, offset: usize) -> Option<Bounds> {
        let Some(&page) = self.pages.get(offset >> self.shift) else {
            return self.search(offset);
        };
        if page.holds(offset) {
            return Some(page);
        }
        if let Some(leaf) = page.leaf() {
            let part = self.leaves[leaf][(offset >> (self.shift - PARTS_SHIFT)) % PARTS];
            if part.holds(offset) {
                return Some(part);
            }
        }
        self.search(offset)
    }

    #[cold]
    fn search(&self, offset: usize) -> Option<Bounds> {
        let after = self.blocks.partition_point(|p| p.start <= offset);
        let block = self.blocks.get(after.checked_sub(1)?)?;
        (offset <= block.end()).then(|| block.bounds())
    }

    /// Returns the number of the segment whose block starts at `start`.
    pub fn segment_from(&self, start: usize) -> Option<u64> {
        let at = self.blocks.binary_search_by_key(&start, |p| p.start).ok()?;
        Some(self.blocks[at].segment)
    }

    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(blocks: &[Block], offset: usize) -> Option<Bounds> {
        blocks
            .iter()
            .find(|p| p.start <= offset && offset < p.end())
            .or_else(|| blocks.iter().find(|p| p.end() == offset))
            .map(Block::bounds)
    }

    #[test]
    fn agrees_with_a_linear_search() {
        agrees(1 << 20);
        agrees(1 << 30); // pages of 256 KiB, so that lookups need searches
    }

    fn agrees(region: usize) {
        let mut index = BlockIndex::new(region);
        let mut all: Vec<Block> = Vec::new();
        let mut random = fastrand::Rng::with_seed(12345);
        let mut random = |n: usize| random.usize(..n);
        for round in 0..if cfg!(miri) { 60 } else { 3000u64 } {
            if !all.is_empty() && random(3) == 0 {
                let gone = all.swap_remove(random(all.len()));
                assert_eq!(index.remove(gone.start), Some(gone));
            } else {
                let near = 1 + 63 * random(2);
                let start = random(region / 64 / near) * 64;
                let most = if random(10) == 0 { 3 << (region.ilog2() - 7) } else { 200 };
                let block = Block { start, len: 1 + random(most), segment: round };
                let end = (block.end() + 63) & !63;
                let free = all.iter().all(|p| p.end() <= start || p.start >= end);
                if free && end <= region {
                    all.push(block);
                    index.insert(block);
                }
            }
            for _ in 0..5 {
                let offset = random(region);
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
        let mut index = BlockIndex::new(4 << 20);
        let n = if cfg!(miri) { 200 } else { 10_000 };
        for i in 0..n {
            index.insert(Block { start: 4096 + i * 64, len: 8, segment: i as u64 });
        }
        for i in 0..n {
            assert_eq!(index.find(4096 + i * 64 + 7).map(|p| p.start), Some(4096 + i * 64));
            assert_eq!(index.find(4096 + i * 64 + 9), None);
        }
    }
}
