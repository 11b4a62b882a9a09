//! Encoding of compositions: converts addresses to a segment and an offset, and back.
//!
//! In the table of a record ([`super::file`]), a row holds the name of a segment, and the rank and
//! the length of the part. The name is the segment's group and its number in the group's order of
//! allocation. A run that makes the same allocations in the same order therefore finds the same
//! memory, at any address. The group of all ranks has the name 0. The body is encoded by postcard:
//! the rows, the number of targets, and for each target its rank, its number of [`Stored`] pairs,
//! and these.
//!
//! The contents of a file are not trusted: loading makes the same checks as adding. A file may name
//! segments that the program allocated, but not the library's own segments or parts of distributed
//! arrays. The safe Rust interface ([`Trust::Elements`]) accepts only its own segments. Any rank
//! may write any bytes to these at any time, so a crafted file can do no more than a put.
#![warn(clippy::arithmetic_side_effects)]

use super::composition::{Composition, CompositionKind, Form};
use super::locate::Locator;
use super::part::Part;
use super::plan::Plan;
use portolan_base::error::{Result, fail, reserve};
use portolan_base::layout::pairs::Pairs;
use portolan_base::layout::pairs::{ByteRun, StridedBlock};
use portolan_base::layout::{Dim, MAX_LEVELS, Shape};
use portolan_engine::memory::registry::SegmentId;
use portolan_engine::memory::segment::{Purpose, Segment};
use portolan_engine::runtime::Engine;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Trust {
    /// Segments of the safe Rust interface.
    Elements,
    /// Also segments of the C interfaces, whose programs are responsible for their files.
    #[default]
    Addresses,
}

impl Trust {
    fn check(self, segment: &Segment) -> Result<()> {
        let whose = match (self, segment.purpose()) {
            (_, Purpose::Internal) => "the library's own",
            (Trust::Elements, Purpose::Addresses) => "one of the C interfaces",
            (_, Purpose::Elements | Purpose::Addresses) => return Ok(()),
        };
        fail!(
            Address,
            "segment {} of its group is {whose}: a stored composition has addresses in segments that \
             the program has allocated itself by the interface that loads it",
            segment.id().number
        )
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Row {
    group: u64,
    number: u64,
    rank: usize,
    bytes: usize,
}

/// The first block on both sides, each by its row and its offset, and the dimensions of a shape:
/// the number of blocks and the strides.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    local: (u32, usize),
    remote: (u32, usize),
    block: usize,
    dims: Vec<(usize, isize, isize)>,
}

/// A bound of an encoded value in bytes: it has at most this many numbers of at most 10 bytes.
const MOST: usize = 10 * (6 + 3 * MAX_LEVELS);

/// Appends a value to a body. Fails with `Memory`.
fn put(out: &mut Vec<u8>, value: &impl Serialize) -> Result<()> {
    reserve(out, MOST, "parts of a record")?;
    match postcard::to_extend(value, std::mem::take(out)) {
        Ok(longer) => *out = longer,
        Err(error) => fail!(Argument, "the composition cannot be encoded: {error}"),
    }
    Ok(())
}

/// Takes the next value from a body.
fn take<'de, T: Deserialize<'de>>(left: &mut &'de [u8]) -> Result<T> {
    match postcard::take_from_bytes(left) {
        Ok((value, rest)) => {
            *left = rest;
            Ok(value)
        }
        Err(error) => fail!(Argument, "a part of the composition is damaged: {error}"),
    }
}

struct Names<'e> {
    engine: &'e Engine,
    locator: Locator<'e>,
    world: u64,
    trust: Trust,
    rows: Vec<Row>,
    /// The row of each part, by rank and first address.
    known: HashMap<(usize, usize), u32>,
}

#[derive(Clone, Copy)]
struct SegmentName {
    row: u32,
    offset: usize,
    /// Number of bytes from the address to the end of its part.
    room: usize,
}

impl Names<'_> {
    fn name(&mut self, rank: usize, address: usize) -> Result<SegmentName> {
        let Some(strided_block) = self.locator.find(rank, address) else {
            fail!(
                Address,
                "{address:#x} of rank {rank} lies in no segment: it is meaningless in another \
                 run, so the composition cannot be stored"
            );
        };
        let (start, end, segment) =
            (strided_block.span.start, strided_block.span.end, strided_block.segment);
        let (offset, room) = (address.saturating_sub(start), end.saturating_sub(address));
        if let Some(&row) = self.known.get(&(rank, start)) {
            return Ok(SegmentName { row, offset, room });
        }
        if let Some(segment) = self.engine.memory.segment_by_id(segment) {
            self.trust.check(&segment)?;
        }
        let Ok(row) = u32::try_from(self.rows.len()) else {
            fail!(
                Argument,
                "the composition has addresses in more segments than a file can record"
            );
        };
        let group = if segment.group == self.world { 0 } else { segment.group };
        let bytes = end.saturating_sub(start);
        self.rows.push(Row { group, number: segment.number, rank, bytes });
        self.known.insert((rank, start), row);
        Ok(SegmentName { row, offset, room })
    }
}

/// Encodes the pairs towards one target.
fn encode_target(
    names: &mut Names<'_>,
    me: usize,
    target: usize,
    runs: &[ByteRun],
    strided_blocks: &[StridedBlock],
    out: &mut Vec<u8>,
) -> Result<()> {
    let (mut pairs, mut count) = (Vec::new(), 0u64);
    let mut apart: Vec<ByteRun> = Vec::new();
    for strided_block in strided_blocks {
        let ((lf, le), (rf, re)) = (strided_block.local_span(), strided_block.remote_span());
        let (l, r) = (names.name(me, lf)?, names.name(target, rf)?);
        if l.room < le.saturating_sub(lf) || r.room < re.saturating_sub(rf) {
            strided_block.unroll(&mut apart)?;
            continue;
        }
        // With negative strides, the first block does not lie at the start of the span.
        let first = |name: SegmentName, at: usize, from: usize| {
            (name.row, name.offset.saturating_add(at.saturating_sub(from)))
        };
        let shape = &strided_block.shape;
        let stored = Stored {
            local: first(l, strided_block.local, lf),
            remote: first(r, strided_block.remote, rf),
            block: shape.block(),
            dims: shape.dims().iter().map(|d| (d.n, d.local, d.remote)).collect(),
        };
        put(&mut pairs, &stored)?;
        count = count.saturating_add(1);
    }
    for run in runs.iter().chain(&apart) {
        // A run may continue across the border of two segments, on either side.
        let ByteRun { mut local, mut remote, bytes: mut left } = *run;
        while left > 0 {
            let (l, r) = (names.name(me, local)?, names.name(target, remote)?);
            let bytes = left.min(l.room).min(r.room);
            let (from, to, dims) = ((l.row, l.offset), (r.row, r.offset), Vec::new());
            put(&mut pairs, &Stored { local: from, remote: to, block: bytes, dims })?;
            (local, remote) = (local.saturating_add(bytes), remote.saturating_add(bytes));
            left = left.saturating_sub(bytes);
            count = count.saturating_add(1);
        }
    }
    put(out, &(target, count))?;
    reserve(out, pairs.len(), "parts of a record")?;
    out.append(&mut pairs);
    Ok(())
}

pub(super) fn encode(engine: &Engine, composition: &Composition, trust: Trust) -> Result<Vec<u8>> {
    let mut names = Names {
        engine,
        trust,
        locator: Locator::new(engine),
        world: engine.world().key(),
        rows: Vec::new(),
        known: HashMap::new(),
    };
    let me = engine.rank();
    let (mut targets, mut count) = (Vec::new(), 0u32);
    let mut add = |target: usize, runs: &[ByteRun], strided_blocks: &[StridedBlock]| {
        count = count.saturating_add(1);
        encode_target(&mut names, me, target, runs, strided_blocks, &mut targets)
    };
    match &composition.form {
        Form::Simple(target, part) => add(*target, part.runs(), part.strided_blocks())?,
        Form::Merged(all) => {
            for (target, parts) in all {
                for part in parts {
                    add(*target, part.runs(), part.strided_blocks())?;
                }
            }
        }
        Form::Mapped(plan) => {
            plan.guard.check(engine)?;
            for (target, pairs) in plan.pairs()? {
                for Pairs { runs, strided_blocks } in pairs {
                    add(target, &runs, &strided_blocks)?;
                }
            }
        }
    }
    let mut out = Vec::new();
    put(&mut out, &names.rows.len())?;
    names.rows.iter().try_for_each(|row| put(&mut out, row))?;
    put(&mut out, &count)?;
    reserve(&mut out, targets.len(), "parts of a record")?;
    out.append(&mut targets);
    Ok(out)
}

/// Finds the memory that the rows name in this run.
struct Pieces<'e> {
    engine: &'e Engine,
    trust: Trust,
    /// Rank, first address, and length in bytes of each row.
    found: Vec<(usize, usize, usize)>,
    keep: Vec<Arc<Segment>>,
}

impl Pieces<'_> {
    fn add(&mut self, row: Row) -> Result<()> {
        let world = self.engine.world();
        let group = if row.group == 0 { world.key() } else { row.group };
        let id = SegmentId { group, number: row.number };
        let Some(segment) = self.engine.memory.segment_by_id(id) else {
            fail!(
                Address,
                "the composition needs segment {} of {}, which is not allocated in this run: \
                 before it loads, the run must allocate the same segments in the same order as the run that stored it",
                row.number,
                if row.group == 0 { "all ranks" } else { "a group" }
            );
        };
        self.trust.check(&segment)?;
        let part = segment.group().rank_of(row.rank).map(|rank| segment.part(rank));
        let bytes = part.map_or(0, |p| p.len());
        let Some(part) = part.filter(|p| p.len() == row.bytes) else {
            fail!(
                Address,
                "segment {} has {bytes} bytes at rank {} in this run, but {} in the run that stored \
                 the composition: both runs must allocate the same sizes",
                row.number,
                row.rank,
                row.bytes
            );
        };
        reserve(&mut self.found, 1, "segments")?;
        self.found.push((row.rank, part.address(), part.len()));
        if !self.keep.iter().any(|known| Arc::ptr_eq(known, &segment)) {
            self.keep.push(segment);
        }
        Ok(())
    }

    /// Returns the address of offset `at` in a row. Fails unless the row belongs to `rank` and
    /// holds the bytes from `at + lo` to `at + hi`.
    fn address(&self, row: u32, rank: usize, at: usize, lo: isize, hi: isize) -> Result<usize> {
        let Some(&(owner, start, len)) = self.found.get(row as usize) else {
            fail!(Argument, "the composition refers to a segment that is not in its table");
        };
        let inside = at.checked_add_signed(lo).is_some()
            && at.checked_add_signed(hi).is_some_and(|end| end <= len);
        if owner != rank || !inside {
            fail!(Argument, "the composition refers to bytes outside of their segment");
        }
        match start.checked_add(at) {
            Some(address) => Ok(address),
            None => fail!(Argument, "the composition refers to bytes outside of the address space"),
        }
    }
}

fn decode_target(
    left: &mut &[u8],
    strided_blocks: &Pieces<'_>,
    me: usize,
) -> Result<(usize, Part)> {
    let (target, pairs): (usize, u64) = take(left)?;
    strided_blocks.engine.check_rank(target)?;
    let mut part = Part::default();
    for _ in 0..pairs {
        let Stored { local, remote, block, dims } = take(left)?;
        if dims.len() > MAX_LEVELS {
            fail!(Argument, "a shape of the composition has {} dimensions", dims.len());
        }
        let dims = dims.iter().map(|&(n, local, remote)| Dim { n, local, remote });
        let shape = Shape::repeated(block, dims)?;
        let (ll, lh) = shape.extent(portolan_base::layout::Side::Local);
        let (rl, rh) = shape.extent(portolan_base::layout::Side::Remote);
        let local = strided_blocks.address(local.0, me, local.1, ll, lh)?;
        let remote = strided_blocks.address(remote.0, target, remote.1, rl, rh)?;
        part.add_shape(local, remote, shape)?;
    }
    Ok((target, part))
}

pub(super) fn decode(
    engine: &Engine,
    kind: CompositionKind,
    body: &[u8],
    trust: Trust,
) -> Result<Composition> {
    let mut left = body;
    let mut strided_blocks = Pieces { engine, trust, found: Vec::new(), keep: Vec::new() };
    for _ in 0..take::<usize>(&mut left)? {
        strided_blocks.add(take(&mut left)?)?;
    }
    let mut parts: Vec<(usize, Vec<Arc<Part>>)> = Vec::new();
    for _ in 0..take::<u32>(&mut left)? {
        let (target, part) = decode_target(&mut left, &strided_blocks, engine.rank())?;
        match parts.binary_search_by_key(&target, |(t, _)| *t) {
            Ok(at) => parts[at].1.push(Arc::new(part)),
            Err(at) => parts.insert(at, (target, vec![Arc::new(part)])),
        }
    }
    if !left.is_empty() {
        fail!(Argument, "{} bytes are left over in the composition", left.len());
    }
    let form = match kind {
        CompositionKind::Merged => Form::Merged(parts),
        CompositionKind::Mapped => {
            let plan = Plan::new(engine, &parts)?;
            plan.guard.check_inside(&strided_blocks.keep)?;
            Form::Mapped(Arc::new(plan))
        }
        CompositionKind::Simple => match &parts[..] {
            [(target, list)] if list.len() == 1 => Form::Simple(*target, list[0].clone()),
            _ => fail!(Argument, "a simple composition must have exactly one part"),
        },
    };
    Ok(Composition { form, keep: strided_blocks.keep })
}
