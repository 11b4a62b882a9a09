//! The unfinished operations to one target: a short list of address ranges, and their windows.

use super::window;
use crate::memory::arena::Arena;
use portolan_base::error::Result;
use std::ops::Range;
use std::sync::Arc;

/// Maximum number of operations in the list. Another one requires a flush.
const MOST: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Pending {
    /// With the rank of the target in the group of the arena.
    windows: Vec<(Arc<Arena>, usize)>,
    /// Whether an operation is a get, and the addresses of its bytes at the target.
    touched: Vec<(bool, Range<usize>)>,
}

impl Pending {
    pub fn conflicts(&self, is_get: bool, bytes: &Range<usize>) -> bool {
        let overlaps = |of: &Range<usize>| of.start < bytes.end && bytes.start < of.end;
        self.touched.len() >= MOST
            || self.touched.iter().any(|(get, of)| overlaps(of) && !(is_get && *get))
    }

    pub fn note(&mut self, arena: &Arc<Arena>, rank: usize, is_get: bool, bytes: Range<usize>) {
        if !self.windows.iter().any(|(known, _)| Arc::ptr_eq(known, arena)) {
            self.windows.push((arena.clone(), rank));
        }
        self.touched.push((is_get, bytes));
    }

    pub fn flush(&mut self) -> Result<()> {
        for (arena, rank) in &self.windows {
            window(arena).flush(*rank)?;
        }
        self.windows.clear();
        self.touched.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_operations_conflict_unless_both_are_gets() {
        let (put, get) = (false, true);
        let put_at = Pending { touched: vec![(put, 100..200)], ..Pending::default() };
        assert!(put_at.conflicts(get, &(150..160)) && put_at.conflicts(put, &(199..300)));
        assert!(!put_at.conflicts(get, &(200..300)));
        let get_at = Pending { touched: vec![(get, 0..8)], ..Pending::default() };
        assert!(!get_at.conflicts(get, &(0..8)) && get_at.conflicts(put, &(0..8)));
    }
}
