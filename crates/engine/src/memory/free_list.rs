//! The free ranges of one rank's region. Allocation is first fit at the lowest offset, so that
//! freed blocks are reused before untouched memory.

use std::collections::BTreeMap;

#[derive(Debug, Clone)]
pub struct FreeList {
    /// Offset to length. The ranges are disjoint and never adjacent.
    free: BTreeMap<usize, usize>,
    end: usize,
}

impl FreeList {
    pub fn new(start: usize, end: usize) -> FreeList {
        let mut free = BTreeMap::new();
        if end > start {
            free.insert(start, end - start);
        }
        FreeList { free, end }
    }

    /// Returns the offset, or `None` if no free range is long enough.
    pub fn take(&mut self, len: usize) -> Option<usize> {
        let (&offset, &room) = self.free.iter().find(|&(_, &room)| room >= len)?;
        self.free.remove(&offset);
        if room > len {
            self.free.insert(offset + len, room - len);
        }
        Some(offset)
    }

    /// Panics if any of the bytes is free already or behind the end of the region.
    pub fn give(&mut self, offset: usize, len: usize) {
        let (mut start, mut end) = (offset, offset + len);
        assert!(end <= self.end, "block outside its free list");
        if let Some((&before, &before_len)) = self.free.range(..=offset).next_back() {
            assert!(before + before_len <= offset, "block freed twice");
            if before + before_len == offset {
                start = before;
                self.free.remove(&before);
            }
        }
        if let Some((&after, &after_len)) = self.free.range(offset..).next() {
            assert!(after >= offset + len, "block freed twice");
            if after == end {
                end = after + after_len;
                self.free.remove(&after);
            }
        }
        self.free.insert(start, end - start);
    }

    /// Returns the offset of the free range at the end of the region, or the end.
    pub fn tail(&self) -> usize {
        match self.free.last_key_value() {
            Some((&offset, &len)) if offset + len == self.end => offset,
            _ => self.end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "freed twice")]
    fn giving_twice_is_a_fault() {
        let mut list = FreeList::new(0, 256);
        let a = list.take(64).unwrap();
        list.give(a, 64);
        list.give(a, 64);
    }
}
