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
