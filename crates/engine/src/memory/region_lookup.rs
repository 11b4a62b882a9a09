//! The regions of each rank that has been looked up, by address.
//!
//! The first lookup of a rank creates its table of extents, sorted by address. A lookup tries the
//! first extent (most programs have one arena), and then the one that the thread found last.
//!
//! Invariant: tables are added, without a lock, while the value is shared. They change or disappear
//! only while it is borrowed exclusively ([`portolan_base::sync::brlock`]). Extents of a table never
//! move.

use super::arena::Arena;
use super::block_index::BlockIndex;
use portolan_base::thread::fast_tls;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

#[derive(Debug)]
pub(crate) struct Extent {
    pub(super) base: usize,
    pub(super) end: usize,
    pub(super) local: *mut u8,
    /// Index in the registry.
    pub(super) at: usize,
    /// Blocks, if the ranks laid out the arena differently.
    pub(super) own: Option<Box<BlockIndex>>,
    pub(super) group_rank: usize,
    pub(super) arena: Arc<Arena>,
    table: *const ExtentTable,
}

impl Extent {
    /// `at` is the arena's index in the registry. `None` if the rank's address is unknown.
    pub fn new(
        at: usize,
        arena: &Arc<Arena>,
        group_rank: usize,
        own: Option<Box<BlockIndex>>,
    ) -> Option<Extent> {
        let region = arena.region(group_rank)?;
        Some(Extent {
            base: region.base,
            end: region.base + region.len,
            local: region.local,
            at,
            own,
            group_rank,
            arena: arena.clone(),
            table: ptr::null(),
        })
    }

    /// Includes the end of the region, for empty transfers.
    #[inline]
    fn holds(&self, address: usize) -> bool {
        self.base <= address && address <= self.end
    }
}

#[derive(Debug)]
struct ExtentTable {
    rank: usize,
    extents: Vec<Extent>,
    next: *mut ExtentTable,
}

fast_tls! {
    /// Index, in its table, of the extent that the thread found last.
    static LAST: usize = 0;
}

#[derive(Debug)]
pub(super) struct RegionLookup {
    /// First extent of each rank's table, or null.
    first: Box<[AtomicPtr<Extent>]>,
    /// The latest table, from `Box::into_raw`, as are all of them.
    tables: AtomicPtr<ExtentTable>,
}

// SAFETY: the value owns the tables, arenas own the mappings. Any thread may use both.
unsafe impl Send for RegionLookup {}
// SAFETY: tables do not change while the value is shared, and new ones are added atomically.
unsafe impl Sync for RegionLookup {}

impl RegionLookup {
    pub fn new(ranks: usize) -> RegionLookup {
        RegionLookup {
            first: (0..ranks).map(|_| AtomicPtr::default()).collect(),
            tables: AtomicPtr::default(),
        }
    }

    /// `make` creates the rank's extents on the first lookup.
    #[inline(always)]
    pub fn find(
        &self,
        rank: usize,
        address: usize,
        make: impl FnOnce() -> Vec<Extent>,
    ) -> Option<&Extent> {
        let first = self.first[rank].load(Ordering::Acquire);
        // SAFETY: null or an extent of a table, which is freed only under an exclusive borrow.
        match unsafe { first.as_ref() } {
            Some(extent) if extent.holds(address) => Some(extent),
            Some(extent) => self.search(extent, address),
            None => self.search(self.make_table(rank, make())?, address),
        }
    }

    #[inline(never)]
    fn search(&self, extent: &Extent, address: usize) -> Option<&Extent> {
        // SAFETY: `extent.table` contains the extent, so it lives as long as this borrow.
        let extents = unsafe { &(*extent.table).extents };
        if let Some(last) = extents.get(LAST.get()).filter(|e| e.holds(address)) {
            return Some(last);
        }
        let at = extents.partition_point(|e| e.base <= address).checked_sub(1)?;
        let found = extents.get(at).filter(|e| e.holds(address))?;
        LAST.set(at);
        Some(found)
    }

    /// Returns the first extent, perhaps of a faster thread's table, or `None` without extents.
    #[cold]
    fn make_table(&self, rank: usize, mut extents: Vec<Extent>) -> Option<&Extent> {
        if extents.is_empty() {
            return None;
        }
        extents.sort_unstable_by_key(|e| e.base);
        extents.shrink_to_fit();
        let table = Box::into_raw(Box::new(ExtentTable { rank, extents, next: ptr::null_mut() }));
        // SAFETY: the table is new, and no other thread knows it.
        let first = unsafe {
            (*table).extents.iter_mut().for_each(|e| e.table = table);
            (*table).extents.as_mut_ptr()
        };
        let null = ptr::null_mut();
        match self.first[rank].compare_exchange(null, first, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                let mut next = self.tables.load(Ordering::Relaxed);
                loop {
                    // SAFETY: only this thread accesses the table before it is in the list.
                    unsafe { (*table).next = next };
                    let list = &self.tables;
                    match list.compare_exchange(next, table, Ordering::AcqRel, Ordering::Relaxed) {
                        // SAFETY: the list keeps the table while the value is shared.
                        Ok(_) => return Some(unsafe { &*first }),
                        Err(now) => next = now,
                    }
                }
            }
            Err(theirs) => {
                // SAFETY: only this thread knows this table. The other one lives with the value.
                unsafe {
                    drop(Box::from_raw(table));
                    Some(&*theirs)
                }
            }
        }
    }

    pub(super) fn forget(&mut self) {
        let mut next = std::mem::replace(self.tables.get_mut(), ptr::null_mut());
        while !next.is_null() {
            // SAFETY: the table comes from `Box::into_raw`. The exclusive borrow and the cleared
            // pointer to its first extent leave no other use.
            let table = unsafe { Box::from_raw(next) };
            *self.first[table.rank].get_mut() = ptr::null_mut();
            next = table.next;
        }
    }

    pub(super) fn change(&mut self, mut change: impl FnMut(&mut Extent)) {
        let mut next = *self.tables.get_mut();
        while !next.is_null() {
            // SAFETY: the table is in the list, and `self` is borrowed exclusively.
            let table = unsafe { &mut *next };
            table.extents.iter_mut().for_each(&mut change);
            next = table.next;
        }
    }
}

impl Drop for RegionLookup {
    fn drop(&mut self) {
        self.forget();
    }
}
