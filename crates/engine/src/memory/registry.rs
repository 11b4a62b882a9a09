//! Lookup from (rank, address in that rank's address space) to arena, offset and local address.
//!
//! Data that is common to all ranks is stored once: the arenas, and for each arena an index of the
//! blocks that have the same layout on all of its ranks. The regions of a rank are stored after the
//! first lookup of that rank ([`super::region_lookup`]), with an index of their own if layouts
//! differ. The cost of a lookup does not depend on the number of segments. The whole range of a
//! transfer must lie in the requested length of one block.

use super::arena::Arena;
use super::block_index::{Block, BlockIndex};
use super::part::Segment;
use super::region_lookup::{Extent, RegionLookup};
use super::runs::Run;
use crate::collective::group::Group;
use portolan_base::error::{Error, ErrorKind, Result};
use portolan_base::sync::brlock::{BrLock, BrReadGuard};
use std::ops::Range;
use std::sync::Arc;

#[derive(Debug)]
struct ArenaTable {
    arena: Arc<Arena>,
    group: Arc<Group>,
    /// Blocks with the same layout on all ranks.
    blocks: BlockIndex,
    /// Segments with different layouts on different ranks.
    unlike: Vec<Arc<Segment>>,
}

impl ArenaTable {
    /// `None` outside the group or if the address of the world rank is unknown.
    fn extent(&self, at: usize, world: usize) -> Option<Extent> {
        let rank = self.group.rank_of(world)?;
        let own = (!self.unlike.is_empty()).then(|| {
            let mut own = Box::new(self.blocks.clone());
            let blocks = self.unlike.iter().filter_map(|s| block_in(s, rank, self.arena.number()));
            blocks.for_each(|block| own.insert(block));
            own
        });
        Extent::new(at, &self.arena, rank, own)
    }
}

/// Returns the block of a segment in the region of a rank (of the group) in the given arena.
fn block_in(segment: &Segment, rank: usize, arena: u32) -> Option<Block> {
    let place = segment.places.at(rank);
    let block = Block { start: place.offset, len: place.len, segment: segment.id.number };
    (place.len > 0 && place.arena == arena).then_some(block)
}

#[derive(Debug)]
struct Tables {
    arenas: Vec<ArenaTable>,
    extents: RegionLookup,
}

#[derive(Debug)]
pub struct Registry {
    tables: BrLock<Tables>,
}

/// Keeps the registry open for reading, so drop it before any wait.
#[derive(Debug)]
pub struct Hit<'a> {
    extent: &'a Extent,
    pub offset: usize,
    _open: BrReadGuard<'a, Tables>,
}

impl Hit<'_> {
    #[inline]
    pub fn arena(&self) -> &Arc<Arena> {
        &self.extent.arena
    }

    /// The rank in the group of the arena.
    #[inline]
    pub fn group_rank(&self) -> usize {
        self.extent.group_rank
    }

    /// The address of the region in this process, or null if not mapped.
    #[inline]
    pub fn region(&self) -> *mut u8 {
        self.extent.local
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SegmentId {
    pub group: u64,
    pub number: u64,
}

impl Tables {
    #[inline(always)]
    fn extent(&self, rank: usize, address: usize) -> Option<&Extent> {
        self.extents.find(rank, address, || self.extents_of(rank))
    }

    #[cold]
    #[inline(never)]
    fn extents_of(&self, rank: usize) -> Vec<Extent> {
        let arenas = self.arenas.iter().enumerate();
        arenas.filter_map(|(at, arena)| arena.extent(at, rank)).collect()
    }

    #[inline(always)]
    fn blocks<'a>(&'a self, extent: &'a Extent) -> &'a BlockIndex {
        match &extent.own {
            Some(own) => own,
            None => &self.arenas[extent.at].blocks,
        }
    }

    #[inline(always)]
    fn block(&self, rank: usize, address: usize, len: usize) -> Option<(&Extent, usize)> {
        let extent = self.extent(rank, address)?;
        let offset = address - extent.base;
        let block = self.blocks(extent).find(offset)?;
        (len <= block.start + block.len - offset).then_some((extent, offset))
    }

    fn arena_at(&self, arena: &Arc<Arena>) -> Option<usize> {
        self.arenas.iter().position(|table| Arc::ptr_eq(&table.arena, arena))
    }

    /// Adds the blocks of a segment to the indexes of its arenas, or removes them.
    fn update(&mut self, segment: &Arc<Segment>, adds: bool) {
        let update = |index: &mut BlockIndex, block: Block| {
            if adds {
                index.insert(block);
            } else {
                index.remove(block.start);
            }
        };
        for arena in &segment.arenas {
            let Some(at) = self.arena_at(arena) else { continue };
            let (table, number) = (&mut self.arenas[at], arena.number());
            if segment.places.alike().is_some() {
                block_in(segment, 0, number).into_iter().for_each(|p| update(&mut table.blocks, p));
            } else {
                let all_were_alike = table.unlike.is_empty();
                match adds {
                    true => table.unlike.push(segment.clone()),
                    false => table.unlike.retain(|s| !Arc::ptr_eq(s, segment)),
                }
                if table.unlike.is_empty() != all_were_alike {
                    // Extents of the arena have own indexes while layouts differ.
                    self.extents.forget();
                    continue;
                }
            }
            self.extents.change(|e| {
                if e.at == at
                    && let Some(own) = &mut e.own
                    && let Some(block) = block_in(segment, e.group_rank, number)
                {
                    update(own, block);
                }
            });
        }
    }
}

impl Registry {
    pub fn new(ranks: usize) -> Registry {
        let tables = Tables { arenas: Vec::new(), extents: RegionLookup::new(ranks) };
        Registry { tables: BrLock::new(tables) }
    }

    pub(super) fn add_arena(&self, arena: &Arc<Arena>, group: &Arc<Group>) {
        let blocks = BlockIndex::new(arena.widest());
        let (arena, group) = (arena.clone(), group.clone());
        self.tables.change(|tables| {
            tables.extents.forget();
            tables.arenas.push(ArenaTable { arena, group, blocks, unlike: Vec::new() });
        });
    }

    /// Reads the addresses that [`Arena::complete`] has set.
    pub(super) fn complete_arena(&self) {
        self.tables.change(|tables| tables.extents.forget());
    }

    pub(super) fn remove_arena(&self, arena: &Arc<Arena>) {
        self.tables.change(|tables| {
            tables.extents.forget();
            tables.arenas.retain(|table| !Arc::ptr_eq(&table.arena, arena));
        });
    }

    pub(super) fn add_segments(&self, segments: &[Arc<Segment>]) {
        self.tables
            .change(|tables| segments.iter().for_each(|segment| tables.update(segment, true)));
    }

    pub(super) fn remove_segment(&self, segment: &Arc<Segment>) {
        self.tables.change(|tables| tables.update(segment, false));
    }

    /// Finds `len` bytes at `address` of `rank`. Fails with `Address` if they do not all lie in one
    /// segment, and with `Argument` if the address is null.
    #[inline(always)]
    pub fn find(&self, rank: usize, address: usize, len: usize) -> Result<Hit<'_>> {
        match self.lookup(rank, address, len) {
            Some(hit) => Ok(hit),
            None => Err(self.missing(rank, address, len)),
        }
    }

    #[cold]
    #[inline(never)]
    fn missing(&self, rank: usize, address: usize, len: usize) -> Error {
        explain(&self.tables.read(), rank, address, len)
    }

    /// Like [`Registry::find`], for callers that go on without a segment: failure is cheap.
    #[inline(always)]
    pub fn lookup(&self, rank: usize, address: usize, len: usize) -> Option<Hit<'_>> {
        let open = self.tables.read();
        // SAFETY: the hit holds the extent with the guard, and hands out no longer-lived reference.
        let tables = unsafe { open.value() };
        let (extent, offset) = tables.block(rank, address, len)?;
        Some(Hit { extent, offset, _open: open })
    }

    /// Returns the number of leading runs of `rank` outside all segments.
    pub fn outside(&self, rank: usize, runs: impl Iterator<Item = Run>) -> usize {
        let tables = self.tables.read();
        runs.take_while(|run| tables.block(rank, run.address, run.len).is_none()).count()
    }

    /// Returns the segment whose block on `rank` starts exactly at `address`.
    pub fn segment_at(&self, rank: usize, address: usize) -> Option<SegmentId> {
        let tables = self.tables.read();
        let e = tables.extent(rank, address)?;
        let number = tables.blocks(e).segment_from(address - e.base)?;
        Some(SegmentId { group: tables.arenas[e.at].group.key(), number })
    }

    /// Returns the segment that contains `address` of `rank`, and the address range of its block.
    pub fn locate(&self, rank: usize, address: usize) -> Option<(SegmentId, Range<usize>)> {
        let tables = self.tables.read();
        let e = tables.extent(rank, address)?;
        let blocks = tables.blocks(e);
        let block = blocks.find(address - e.base)?;
        let number = blocks.segment_from(block.start)?;
        let start = e.base + block.start;
        let group = tables.arenas[e.at].group.key();
        Some((SegmentId { group, number }, start..start + block.len))
    }

    /// Returns the arena and the offset of `len` bytes at `address`, if they lie in one of `rank`'s
    /// regions. A target checks this before it accesses memory for another rank. It checks the
    /// region only: the origin has checked the segment, which the target may not know yet. Fails
    /// with `Address` if the bytes do not all lie in one region, and with `Argument` for a null
    /// address.
    pub fn in_region(
        &self,
        rank: usize,
        address: usize,
        len: usize,
    ) -> Result<(Arc<Arena>, usize)> {
        let tables = self.tables.read();
        match tables.extent(rank, address) {
            Some(e) if e.end - address >= len => Ok((e.arena.clone(), address - e.base)),
            _ => Err(explain(&tables, rank, address, len)),
        }
    }
}

#[cold]
fn explain(tables: &Tables, rank: usize, address: usize, len: usize) -> Error {
    if address == 0 {
        let detail = format!("null address at rank {rank} for a transfer of {len} bytes");
        return Error::new(ErrorKind::Argument, detail);
    }
    let block = tables.extent(rank, address).and_then(|e| {
        tables.blocks(e).find(address - e.base).map(|block| (e.base + block.start, block.len))
    });
    let detail = match block {
        Some((base, held)) => format!(
            "{len} bytes at {address:#x} of rank {rank} exceed their segment, which has {held} \
             bytes at {base:#x}"
        ),
        None => format!(
            "{address:#x} of rank {rank} lies in no segment; use the remote address that the \
             owner received when it allocated the segment"
        ),
    };
    Error::new(ErrorKind::Address, detail)
}
