//! From (rank, address in that rank's space) to slab, offset and local address.
//!
//! What all ranks need is kept once: the slabs, and for each slab an index of the pieces that
//! all its ranks have cut alike. What belongs to one rank, its slices of the slabs, is kept for
//! ranks that are looked up ([`super::extents`]). In a slab that the ranks have not cut alike, such
//! an extent has an index of its own.
//!
//! A look-up costs the same however many segments live. The whole extent of a transfer
//! must lie in one piece: the length that was asked for, not the rounded one.

use super::brlock::{BrLock, BrReadGuard};
use super::extents::{Extent, Extents};
use super::part::Segment;
use super::piece_index::{Piece, PieceIndex};
use super::slab::Slab;
use crate::error::{Error, ErrorKind, Result};
use crate::group::Group;
use std::ops::Range;
use std::sync::Arc;

/// A slab, and what of it is the same for all ranks.
#[derive(Debug)]
struct SlabTable {
    slab: Arc<Slab>,
    group: Arc<Group>,
    /// Pieces that all ranks have cut alike.
    pieces: PieceIndex,
    /// Segments that they have cut differently.
    unlike: Vec<Arc<Segment>>,
}

impl SlabTable {
    /// The extent of a world rank; `None` where it is not of the group.
    fn extent(&self, at: usize, world: usize) -> Option<Extent> {
        let rank = self.group.rank_of(world)?;
        let own = (!self.unlike.is_empty()).then(|| {
            let mut own = Box::new(self.pieces.clone());
            let pieces = self.unlike.iter().filter_map(|s| piece_in(s, rank, self.slab.number()));
            pieces.for_each(|piece| own.insert(piece));
            own
        });
        Extent::new(at, &self.slab, rank, own)
    }
}

/// The piece of a segment in the slice of a rank of the group, of the slab of this number.
fn piece_in(segment: &Segment, rank: usize, slab: u32) -> Option<Piece> {
    let place = segment.places.at(rank);
    let piece = Piece { start: place.offset, len: place.len, segment: segment.id.number };
    (place.len > 0 && place.slab == slab).then_some(piece)
}

/// What is known of all ranks.
#[derive(Debug)]
struct Tables {
    slabs: Vec<SlabTable>,
    extents: Extents,
}

/// The tables of all ranks.
#[derive(Debug)]
pub struct Registry {
    tables: BrLock<Tables>,
}

/// Where an address lies. Holds the registry open for reading, so it is to be
/// dropped before anything that waits.
#[derive(Debug)]
pub struct Hit<'a> {
    /// Of the tables that `_open` holds open.
    extent: &'a Extent,
    /// Offset in the slice.
    pub offset: usize,
    _open: BrReadGuard<'a, Tables>,
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

impl Tables {
    #[inline(always)]
    fn extent(&self, rank: usize, address: usize) -> Option<&Extent> {
        self.extents.find(rank, address, || self.extents_of(rank))
    }

    /// What the table of a rank's extents is made of, when the rank is first used.
    #[cold]
    #[inline(never)]
    fn extents_of(&self, rank: usize) -> Vec<Extent> {
        let slabs = self.slabs.iter().enumerate();
        slabs.filter_map(|(at, slab)| slab.extent(at, rank)).collect()
    }

    /// The index in which an extent's pieces are found.
    #[inline(always)]
    fn pieces<'a>(&'a self, extent: &'a Extent) -> &'a PieceIndex {
        match &extent.own {
            Some(own) => own,
            None => &self.slabs[extent.at].pieces,
        }
    }

    /// The extent in which `len` bytes at `address` lie in one segment, and where there.
    #[inline(always)]
    fn piece(&self, rank: usize, address: usize, len: usize) -> Option<(&Extent, usize)> {
        let extent = self.extent(rank, address)?;
        let offset = address - extent.base;
        let piece = self.pieces(extent).find(offset)?;
        (len <= piece.start + piece.len - offset).then_some((extent, offset))
    }

    fn slab_at(&self, slab: &Arc<Slab>) -> Option<usize> {
        self.slabs.iter().position(|table| Arc::ptr_eq(&table.slab, slab))
    }

    /// Makes the pieces of a segment known.
    fn add(&mut self, segment: &Arc<Segment>) {
        for slab in &segment.slabs {
            let Some(at) = self.slab_at(slab) else { continue };
            let table = &mut self.slabs[at];
            let number = slab.number();
            if segment.places.alike().is_some() {
                piece_in(segment, 0, number).into_iter().for_each(|p| table.pieces.insert(p));
            } else {
                table.unlike.push(segment.clone());
                if table.unlike.len() == 1 {
                    // Each rank has an index of its own from now on.
                    self.extents.forget();
                    continue;
                }
            }
            self.extents.change(|e| {
                if e.at == at
                    && let Some(own) = &mut e.own
                    && let Some(piece) = piece_in(segment, e.group_rank, number)
                {
                    own.insert(piece);
                }
            });
        }
    }

    /// Forgets them.
    fn remove(&mut self, segment: &Arc<Segment>) {
        for slab in &segment.slabs {
            let Some(at) = self.slab_at(slab) else { continue };
            let table = &mut self.slabs[at];
            let number = slab.number();
            if let Some(place) = segment.places.alike() {
                table.pieces.remove(place.offset);
            } else {
                table.unlike.retain(|s| !Arc::ptr_eq(s, segment));
                if table.unlike.is_empty() {
                    self.extents.forget();
                    continue;
                }
            }
            self.extents.change(|e| {
                if e.at == at
                    && let Some(own) = &mut e.own
                    && let Some(piece) = piece_in(segment, e.group_rank, number)
                {
                    own.remove(piece.start);
                }
            });
        }
    }
}

impl Registry {
    /// Empty tables for `ranks` ranks.
    pub fn new(ranks: usize) -> Registry {
        let tables = Tables { slabs: Vec::new(), extents: Extents::new(ranks) };
        Registry { tables: BrLock::new(tables) }
    }

    /// Makes the slices of a group's slab known.
    pub(super) fn add_slab(&self, slab: &Arc<Slab>, group: &Arc<Group>) {
        let pieces = PieceIndex::new(slab.widest());
        let (slab, group) = (slab.clone(), group.clone());
        self.tables.change(|tables| {
            tables.extents.forget();
            tables.slabs.push(SlabTable { slab, group, pieces, unlike: Vec::new() });
        });
    }

    /// The addresses of a slab's slices have become known.
    pub(super) fn complete_slab(&self) {
        self.tables.change(|tables| tables.extents.forget());
    }

    /// Forgets a slab.
    pub(super) fn remove_slab(&self, slab: &Arc<Slab>) {
        self.tables.change(|tables| {
            tables.extents.forget();
            tables.slabs.retain(|table| !Arc::ptr_eq(&table.slab, slab));
        });
    }

    /// Makes the pieces of segments known.
    pub(super) fn add_segments(&self, segments: &[Arc<Segment>]) {
        self.tables.change(|tables| segments.iter().for_each(|segment| tables.add(segment)));
    }

    /// Forgets those of one.
    pub(super) fn remove_segment(&self, segment: &Arc<Segment>) {
        self.tables.change(|tables| tables.remove(segment));
    }

    /// Finds `len` bytes at `address` of `rank`.
    ///
    /// # Errors
    /// `Address` where they do not all lie in one segment.
    #[inline(always)]
    pub fn find(&self, rank: usize, address: usize, len: usize) -> Result<Hit<'_>> {
        match self.lookup(rank, address, len) {
            Some(hit) => Ok(hit),
            None => Err(self.missing(rank, address, len)),
        }
    }

    /// Why there is no hit. Apart from [`Registry::find`], which every call has in its way.
    #[cold]
    #[inline(never)]
    fn missing(&self, rank: usize, address: usize, len: usize) -> Error {
        explain(&self.tables.read(), rank, address, len)
    }

    /// [`Registry::find`] for callers that go on without a segment: finding none costs no more
    /// than finding one.
    #[inline(always)]
    pub fn lookup(&self, rank: usize, address: usize, len: usize) -> Option<Hit<'_>> {
        let open = self.tables.read();
        // SAFETY: the extent that is taken from it goes into the hit, which
        // holds the reading and gives out no reference that outlives itself.
        let tables = unsafe { open.value() };
        let (extent, offset) = tables.piece(rank, address, len)?;
        Some(Hit { extent, offset, _open: open })
    }

    /// How many of the first ranges of `rank`, address and length, lie in no segment.
    pub fn outside(&self, rank: usize, ranges: impl Iterator<Item = (usize, usize)>) -> usize {
        let tables = self.tables.read();
        ranges.take_while(|&(address, len)| tables.piece(rank, address, len).is_none()).count()
    }

    /// The segment whose piece on `rank` begins exactly at `address`.
    pub fn segment_at(&self, rank: usize, address: usize) -> Option<SegmentId> {
        let tables = self.tables.read();
        let e = tables.extent(rank, address)?;
        let number = tables.pieces(e).segment_from(address - e.base)?;
        Some(SegmentId { group: tables.slabs[e.at].group.key(), number })
    }

    /// The segment in which an address of `rank` lies, and the addresses that it has
    /// there.
    pub fn locate(&self, rank: usize, address: usize) -> Option<(SegmentId, Range<usize>)> {
        let tables = self.tables.read();
        let e = tables.extent(rank, address)?;
        let pieces = tables.pieces(e);
        let piece = pieces.find(address - e.base)?;
        let number = pieces.segment_from(piece.start)?;
        let start = e.base + piece.start;
        let group = tables.slabs[e.at].group.key();
        Some((SegmentId { group, number }, start..start + piece.len))
    }

    /// Whether `len` bytes at `address` lie in one of `rank`'s slices. What a
    /// target checks before it touches memory on behalf of another rank: the
    /// origin has checked the segment's own bounds, and the slice is known at
    /// the target before any origin can name it, which the segment is not.
    pub fn in_slice(&self, rank: usize, address: usize, len: usize) -> Result<(Arc<Slab>, usize)> {
        let tables = self.tables.read();
        match tables.extent(rank, address) {
            Some(e) if e.end - address >= len => Ok((e.slab.clone(), address - e.base)),
            _ => Err(explain(&tables, rank, address, len)),
        }
    }
}

#[cold]
fn explain(tables: &Tables, rank: usize, address: usize, len: usize) -> Error {
    if address == 0 {
        let detail = format!("the address at rank {rank} is null, but {len} bytes are to move");
        return Error::new(ErrorKind::Argument, detail);
    }
    let piece = tables.extent(rank, address).and_then(|e| {
        tables.pieces(e).find(address - e.base).map(|piece| (e.base + piece.start, piece.len))
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
