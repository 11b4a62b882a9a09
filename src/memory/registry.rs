//! From (rank, address in that rank's space) to slab, offset and local address.
//!
//! For each rank there is a short sorted table of slices, with the thread's
//! last hit tried first, and for each slice an index of the pieces in it. A look-up
//! costs the same however many segments live. The whole extent of a transfer
//! must lie in one piece: the length that was asked for, not the rounded one.

use super::brlock::{BrLock, BrReadGuard};
use super::piece_index::{Piece, PieceIndex};
use super::slab::{Slab, Slice};
use crate::error::{Error, ErrorKind, Result};
use crate::thread::fast_tls;
use std::ops::Range;
use std::sync::Arc;

/// One rank's slice of one slab, as the look-up sees it.
#[derive(Debug)]
pub(crate) struct Extent {
    base: usize,
    end: usize,
    local: *mut u8,
    group_rank: usize,
    group_key: u64,
    slab: Arc<Slab>,
    pieces: PieceIndex,
}

impl Extent {
    /// Whether the address lies in the slice, or just behind it.
    #[inline]
    fn holds(&self, address: usize) -> bool {
        self.base <= address && address <= self.end
    }
}

#[derive(Debug, Default)]
struct RankTable {
    extents: Vec<Extent>,
}

fast_tls! {
    /// In which slice of a rank's table the thread found an address last. It is each thread's
    /// own: threads that use different slices at once would take a common one from each
    /// other's cache with each look-up.
    static LAST: usize = 0;
}

/// The tables of all ranks.
#[derive(Debug)]
pub struct Registry {
    tables: BrLock<Vec<RankTable>>,
}

// SAFETY: the raw pointers are addresses in mappings that the slabs own.
unsafe impl Send for Registry {}
// SAFETY: as above.
unsafe impl Sync for Registry {}

/// Where an address lies. Holds the registry open for reading, so it is to be
/// dropped before anything that waits.
#[derive(Debug)]
pub struct Hit<'a> {
    /// Of the tables that `_open` holds open.
    extent: &'a Extent,
    /// Offset in the slice.
    pub offset: usize,
    _open: BrReadGuard<'a, Vec<RankTable>>,
}

impl Hit<'_> {
    /// The slab.
    #[inline]
    pub fn slab(&self) -> &Arc<Slab> {
        &self.extent.slab
    }

    /// The rank's number in the slab's group.
    #[inline]
    pub fn group_rank(&self) -> usize {
        self.extent.group_rank
    }

    /// The slice as memory here, null where it is not mapped.
    #[inline]
    pub fn slice(&self) -> *mut u8 {
        self.extent.local
    }
}

/// Which segment an address begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SegmentId {
    /// Key of the group.
    pub group: u64,
    /// Number in the group.
    pub number: u64,
}

impl RankTable {
    #[inline]
    fn extent(&self, address: usize) -> Option<&Extent> {
        let last = if self.extents.len() > 1 { LAST.get() } else { 0 };
        match self.extents.get(last) {
            Some(extent) if extent.holds(address) => Some(extent),
            _ => self.search(address),
        }
    }

    fn search(&self, address: usize) -> Option<&Extent> {
        let at = self.extents.partition_point(|e| e.base <= address).checked_sub(1)?;
        let extent = self.extents.get(at).filter(|e| e.holds(address))?;
        LAST.set(at);
        Some(extent)
    }

    /// The extent in which `len` bytes at `address` lie in one segment, and where there.
    #[inline]
    fn piece(&self, address: usize, len: usize) -> Option<(&Extent, usize)> {
        let extent = self.extent(address)?;
        let offset = address - extent.base;
        let piece = extent.pieces.find(offset)?;
        (len <= piece.start + piece.len - offset).then_some((extent, offset))
    }
}

impl Registry {
    /// Empty tables for `ranks` ranks.
    pub fn new(ranks: usize) -> Registry {
        Registry { tables: BrLock::new((0..ranks).map(|_| RankTable::default()).collect()) }
    }

    /// Makes a slab's slices known. `members` are the group's world ranks.
    pub(super) fn add_slab(&self, slab: &Arc<Slab>, group_key: u64, members: &[usize]) {
        self.tables.change(|tables| {
            for (group_rank, (&world, slice)) in members.iter().zip(slab.slices()).enumerate() {
                let table = &mut tables[world].extents;
                let at = table.partition_point(|e| e.base < slice.base);
                if table.is_empty() {
                    // Most ranks have one slab, and there may be thousands of ranks.
                    table.reserve_exact(1);
                }
                table.insert(
                    at,
                    Extent {
                        base: slice.base,
                        end: slice.base + slice.len,
                        local: slice.local,
                        group_rank,
                        group_key,
                        slab: slab.clone(),
                        pieces: PieceIndex::new(slice.len),
                    },
                );
            }
        });
    }

    /// Forgets a slab.
    pub(super) fn remove_slab(&self, slab: &Arc<Slab>, members: &[usize]) {
        self.tables.change(|tables| {
            for &world in members {
                tables[world].extents.retain(|e| !Arc::ptr_eq(&e.slab, slab));
            }
        });
    }

    /// Makes the pieces of a segment known: (world rank, slab, piece).
    pub(super) fn add_pieces<'a>(&self, pieces: impl Iterator<Item = (usize, &'a Slice, Piece)>) {
        self.tables.change(|tables| {
            for (world, slice, piece) in pieces {
                if let Some(extent) = exact(&mut tables[world], slice.base) {
                    extent.pieces.insert(piece);
                }
            }
        });
    }

    /// Forgets them.
    pub(super) fn remove_pieces<'a>(
        &self,
        pieces: impl Iterator<Item = (usize, &'a Slice, usize)>,
    ) {
        self.tables.change(|tables| {
            for (world, slice, start) in pieces {
                if let Some(extent) = exact(&mut tables[world], slice.base) {
                    extent.pieces.remove(start);
                }
            }
        });
    }

    /// Finds `len` bytes at `address` of `rank`.
    ///
    /// # Errors
    /// `Address` where they do not all lie in one segment.
    #[inline]
    pub fn find(&self, rank: usize, address: usize, len: usize) -> Result<Hit<'_>> {
        match self.lookup(rank, address, len) {
            Some(hit) => Ok(hit),
            None => Err(explain(&self.tables.read(), rank, address, len)),
        }
    }

    /// [`Registry::find`] for callers that go on without a segment: finding none costs no more
    /// than finding one.
    #[inline]
    pub fn lookup(&self, rank: usize, address: usize, len: usize) -> Option<Hit<'_>> {
        let open = self.tables.read();
        // SAFETY: the extent that is taken from it goes into the hit, which
        // holds the reading and gives out no reference that outlives itself.
        let tables = unsafe { open.value() };
        let (extent, offset) = tables[rank].piece(address, len)?;
        Some(Hit { extent, offset, _open: open })
    }

    /// How many of the first ranges of `rank`, address and length, lie in no segment.
    pub fn outside(&self, rank: usize, ranges: impl Iterator<Item = (usize, usize)>) -> usize {
        let table = &self.tables.read()[rank];
        ranges.take_while(|&(address, len)| table.piece(address, len).is_none()).count()
    }

    /// The segment whose piece on `rank` begins exactly at `address`.
    pub fn segment_at(&self, rank: usize, address: usize) -> Option<SegmentId> {
        let tables = self.tables.read();
        let e = tables[rank].extent(address)?;
        let number = e.pieces.segment_from(address - e.base)?;
        Some(SegmentId { group: e.group_key, number })
    }

    /// The segment in which an address of `rank` lies, and the addresses that it has
    /// there.
    pub fn locate(&self, rank: usize, address: usize) -> Option<(SegmentId, Range<usize>)> {
        let tables = self.tables.read();
        let e = tables[rank].extent(address)?;
        let piece = e.pieces.find(address - e.base)?;
        let number = e.pieces.segment_from(piece.start)?;
        let start = e.base + piece.start;
        Some((SegmentId { group: e.group_key, number }, start..start + piece.len))
    }

    /// Whether `len` bytes at `address` lie in one of `rank`'s slices. What a
    /// target checks before it touches memory on behalf of another rank: the
    /// origin has checked the segment's own bounds, and the slice is known at
    /// the target before any origin can name it, which the segment is not.
    pub fn in_slice(&self, rank: usize, address: usize, len: usize) -> Result<(Arc<Slab>, usize)> {
        let tables = self.tables.read();
        match tables[rank].extent(address) {
            Some(e) if e.end - address >= len => Ok((e.slab.clone(), address - e.base)),
            _ => Err(explain(&tables, rank, address, len)),
        }
    }
}

#[cold]
fn explain(tables: &[RankTable], rank: usize, address: usize, len: usize) -> Error {
    if address == 0 {
        let detail = format!("the address at rank {rank} is null, but {len} bytes are to move");
        return Error::new(ErrorKind::Argument, detail);
    }
    let piece = tables[rank].extent(address).and_then(|e| {
        e.pieces.find(address - e.base).map(|piece| (e.base + piece.start, piece.len))
    });
    let detail = match piece {
        Some((base, held)) => format!(
            "{len} bytes at {address:#x} of rank {rank} leave their segment, which has {held} \
             bytes at {base:#x}"
        ),
        None => format!(
            "{address:#x} of rank {rank} lies in no segment; remote addresses are those that \
             the owner got when the segment was allocated"
        ),
    };
    Error::new(ErrorKind::Address, detail)
}

fn exact(table: &mut RankTable, base: usize) -> Option<&mut Extent> {
    let at = table.extents.binary_search_by_key(&base, |e| e.base).ok()?;
    Some(&mut table.extents[at])
}
