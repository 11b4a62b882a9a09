//! The extents of each rank that was looked up: its slices of the slabs, found by address.
//!
//! A rank's extents are made when it is first looked up, in a table sorted by address; of a rank
//! that is never looked up a null pointer is kept. The first extent is tried first, because most
//! programs have one slab, and then the one that the thread found last: threads that use different
//! slabs at once take no line of memory from each other's cache.
//!
//! Invariant: extents are made, without a lock, while the value is shared, and change or go only
//! while it is borrowed exclusively ([`super::brlock`]). A table of extents never moves.

use super::piece_index::PieceIndex;
use super::slab::Slab;
use crate::thread::fast_tls;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

/// One rank's slice of one slab, as the look-up sees it.
#[derive(Debug)]
pub(crate) struct Extent {
    pub(super) base: usize,
    pub(super) end: usize,
    pub(super) local: *mut u8,
    /// Which of the registry's slabs.
    pub(super) at: usize,
    /// The pieces, where the ranks have cut the slab differently.
    pub(super) own: Option<Box<PieceIndex>>,
    pub(super) group_rank: usize,
    pub(super) slab: Arc<Slab>,
    /// The rank's table, of which this is one.
    table: *const Table,
}

impl Extent {
    /// The slice of a rank of the group in the registry's slab of that number, if its address is
    /// known.
    pub(super) fn new(
        at: usize,
        slab: &Arc<Slab>,
        group_rank: usize,
        own: Option<Box<PieceIndex>>,
    ) -> Option<Extent> {
        let slice = slab.slice(group_rank)?;
        Some(Extent {
            base: slice.base,
            end: slice.base + slice.len,
            local: slice.local,
            at,
            own,
            group_rank,
            slab: slab.clone(),
            table: ptr::null(),
        })
    }

    /// Whether the address lies in the slice, or just behind it.
    #[inline]
    fn holds(&self, address: usize) -> bool {
        self.base <= address && address <= self.end
    }
}

/// The extents of a rank, by address.
#[derive(Debug)]
struct Table {
    rank: usize,
    extents: Vec<Extent>,
    /// The table that was made before.
    next: *mut Table,
}

fast_tls! {
    /// Which extent of a table the thread found last.
    static LAST: usize = 0;
}

/// The extents of all ranks.
#[derive(Debug)]
pub(super) struct Extents {
    /// By rank: the first extent of its table, null where it has none.
    first: Box<[AtomicPtr<Extent>]>,
    /// The tables, each made by `Box::into_raw`.
    tables: AtomicPtr<Table>,
}

// SAFETY: the pointers name tables that the value owns, and mappings that their slabs own.
unsafe impl Send for Extents {}
// SAFETY: as above; tables are not changed while the value is shared.
unsafe impl Sync for Extents {}

impl Extents {
    /// No tables, for so many ranks.
    pub(super) fn new(ranks: usize) -> Extents {
        Extents {
            first: (0..ranks).map(|_| AtomicPtr::default()).collect(),
            tables: AtomicPtr::default(),
        }
    }

    /// The extent of a rank that holds an address. `make` makes the rank's extents.
    #[inline(always)]
    pub(super) fn find(
        &self,
        rank: usize,
        address: usize,
        make: impl FnOnce() -> Vec<Extent>,
    ) -> Option<&Extent> {
        let first = self.first[rank].load(Ordering::Acquire);
        // SAFETY: the pointer is null or names an extent of a table, which goes only while the
        // value is not shared.
        match unsafe { first.as_ref() } {
            Some(extent) if extent.holds(address) => Some(extent),
            Some(extent) => self.search(extent, address),
            None => self.search(self.make_table(rank, make())?, address),
        }
    }

    /// Looks through the table of an extent.
    #[inline(never)]
    fn search(&self, extent: &Extent, address: usize) -> Option<&Extent> {
        // SAFETY: each extent knows its table, which lives as long.
        let extents = unsafe { &(*extent.table).extents };
        if let Some(last) = extents.get(LAST.get()).filter(|e| e.holds(address)) {
            return Some(last);
        }
        let at = extents.partition_point(|e| e.base <= address).checked_sub(1)?;
        let found = extents.get(at).filter(|e| e.holds(address))?;
        LAST.set(at);
        Some(found)
    }

    /// Keeps the extents of a rank that has no table: the first of them, or of those that another
    /// thread has kept meanwhile; `None` where there is none.
    #[cold]
    fn make_table(&self, rank: usize, mut extents: Vec<Extent>) -> Option<&Extent> {
        if extents.is_empty() {
            return None;
        }
        extents.sort_unstable_by_key(|e| e.base);
        extents.shrink_to_fit();
        let table = Box::into_raw(Box::new(Table { rank, extents, next: ptr::null_mut() }));
        // SAFETY: the table was made just now, and no other thread knows of it.
        let first = unsafe {
            (*table).extents.iter_mut().for_each(|e| e.table = table);
            (*table).extents.as_mut_ptr()
        };
        let null = ptr::null_mut();
        match self.first[rank].compare_exchange(null, first, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                let mut next = self.tables.load(Ordering::Relaxed);
                loop {
                    // SAFETY: only this thread writes it until the table is in the list.
                    unsafe { (*table).next = next };
                    let list = &self.tables;
                    match list.compare_exchange(next, table, Ordering::AcqRel, Ordering::Relaxed) {
                        // SAFETY: the table is kept.
                        Ok(_) => return Some(unsafe { &*first }),
                        Err(now) => next = now,
                    }
                }
            }
            Err(theirs) => {
                // SAFETY: no other thread has seen this table; the other one is kept, as in `find`.
                unsafe {
                    drop(Box::from_raw(table));
                    Some(&*theirs)
                }
            }
        }
    }

    /// Forgets all extents: they are made anew when they are needed.
    pub(super) fn forget(&mut self) {
        let mut next = std::mem::replace(self.tables.get_mut(), ptr::null_mut());
        while !next.is_null() {
            // SAFETY: a table of the list, which nothing names any more: no reading is open, and
            // the pointer to its extents goes here.
            let table = unsafe { Box::from_raw(next) };
            *self.first[table.rank].get_mut() = ptr::null_mut();
            next = table.next;
        }
    }

    /// Changes all extents that there are.
    pub(super) fn change(&mut self, mut change: impl FnMut(&mut Extent)) {
        let mut next = *self.tables.get_mut();
        while !next.is_null() {
            // SAFETY: a table of the list, of which no other reference is in use.
            let table = unsafe { &mut *next };
            table.extents.iter_mut().for_each(&mut change);
            next = table.next;
        }
    }
}

impl Drop for Extents {
    fn drop(&mut self) {
        self.forget();
    }
}
