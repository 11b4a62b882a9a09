//! Encoding of compositions: converts addresses to a segment and an offset, and back.
//!
//! In the table of a record ([`super::file`]), a row holds the name of a segment, and the rank and
//! the length of the part. The name is the segment's group and its number in the group's order of
//! allocation. A run that makes the same allocations in the same order therefore finds the same
//! memory, at any address. The group of all ranks has the name 0.
//!
//! The contents of a file are not trusted: loading makes the same checks as adding. A file may name
//! segments that the program allocated, but not the library's own segments or parts of distributed
//! arrays. The safe Rust interface ([`Trust::Elements`]) accepts only its own segments. Any rank
//! may write any bytes to these at any time, so a crafted file can do no more than a put.
#![warn(clippy::arithmetic_side_effects)]

use super::file;
use super::locate::Locator;
use super::part::Part;
use super::plan::Plan;
use super::{Composer, Composition, CompositionKind, Form};
use portolan_engine::error::{Result, fail, reserve};
use portolan_engine::layout::pairs::Pairs;
use portolan_engine::layout::pairs::{ByteRun, StridedBlock};
use portolan_engine::layout::{MAX_LEVELS, Shape};
use portolan_engine::memory::registry::SegmentId;
use portolan_engine::memory::segment::{Purpose, Segment};
use portolan_engine::runtime::Engine;
use std::collections::HashMap;
use std::path::Path;
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    group: u64,
    number: u64,
    rank: usize,
    bytes: usize,
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

fn put32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_pair(
    out: &mut Vec<u8>,
    local: SegmentName,
    remote: SegmentName,
    bytes: usize,
) -> Result<()> {
    // Also for the dimensions, which follow if the pair is a shape.
    reserve(out, 40 + 4 + 24 * MAX_LEVELS, "parts of a record")?;
    put32(out, local.row);
    put32(out, remote.row);
    put64(out, local.offset as u64);
    put64(out, remote.offset as u64);
    put64(out, bytes as u64);
    Ok(())
}

/// Encodes the pairs towards one target: the numbers of runs and shapes, the runs, and the shapes.
fn encode_target(
    names: &mut Names<'_>,
    me: usize,
    target: usize,
    runs: &[ByteRun],
    strided_blocks: &[StridedBlock],
    out: &mut Vec<u8>,
) -> Result<()> {
    let (mut shapes, mut shaped) = (Vec::new(), 0u64);
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
            let offset = name.offset.saturating_add(at.saturating_sub(from));
            SegmentName { offset, ..name }
        };
        let (local, remote) =
            (first(l, strided_block.local, lf), first(r, strided_block.remote, rf));
        put_pair(&mut shapes, local, remote, strided_block.shape.block())?;
        put32(&mut shapes, strided_block.shape.dims().len() as u32);
        for d in strided_block.shape.dims() {
            put64(&mut shapes, d.n as u64);
            put64(&mut shapes, d.local as u64);
            put64(&mut shapes, d.remote as u64);
        }
        shaped = shaped.saturating_add(1);
    }
    let (mut rows, mut count) = (Vec::new(), 0u64);
    for run in runs.iter().chain(&apart) {
        // A run may continue across the border of two segments, on either side.
        let ByteRun { mut local, mut remote, bytes: mut left } = *run;
        while left > 0 {
            let (l, r) = (names.name(me, local)?, names.name(target, remote)?);
            let bytes = left.min(l.room).min(r.room);
            put_pair(&mut rows, l, r, bytes)?;
            (local, remote) = (local.saturating_add(bytes), remote.saturating_add(bytes));
            left = left.saturating_sub(bytes);
            count = count.saturating_add(1);
        }
    }
    reserve(out, rows.len().saturating_add(shapes.len()), "parts of a record")?;
    put32(out, target as u32);
    put64(out, count);
    put64(out, shaped);
    out.append(&mut rows);
    out.append(&mut shapes);
    Ok(())
}

fn encode(engine: &Engine, composition: &Composition, trust: Trust) -> Result<Vec<u8>> {
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
    let table = names.rows.len().saturating_mul(32);
    reserve(&mut out, targets.len().saturating_add(table), "parts of a record")?;
    put32(&mut out, names.rows.len() as u32);
    for row in &names.rows {
        put64(&mut out, row.group);
        put64(&mut out, row.number);
        put64(&mut out, row.rank as u64);
        put64(&mut out, row.bytes as u64);
    }
    put32(&mut out, count);
    out.append(&mut targets);
    Ok(out)
}

struct Reader<'a> {
    left: &'a [u8],
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        match self.left.split_first_chunk::<N>() {
            Some((bytes, left)) => {
                self.left = left;
                Ok(*bytes)
            }
            None => fail!(Argument, "the composition ends too early: the file is damaged"),
        }
    }
    fn u32(&mut self) -> Result<u32> {
        self.take().map(u32::from_le_bytes)
    }
    fn u64(&mut self) -> Result<u64> {
        self.take().map(u64::from_le_bytes)
    }
    fn size(&mut self) -> Result<usize> {
        match usize::try_from(self.u64()?) {
            Ok(n) if isize::try_from(n).is_ok() => Ok(n),
            _ => fail!(Argument, "a number of the composition is out of range"),
        }
    }
    fn stride(&mut self) -> Result<isize> {
        Ok(self.u64()? as isize)
    }
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
    reader: &mut Reader<'_>,
    strided_blocks: &Pieces<'_>,
    me: usize,
) -> Result<(usize, Part)> {
    let target = reader.u32()? as usize;
    strided_blocks.engine.check_rank(target)?;
    let (runs, shapes) = (reader.u64()?, reader.u64()?);
    let mut part = Part::default();
    for i in 0..runs.saturating_add(shapes) {
        let (from, to) = (reader.u32()?, reader.u32()?);
        let (local, remote, block) = (reader.size()?, reader.size()?, reader.size()?);
        let mut shape = Shape::contiguous(block);
        if i >= runs {
            let levels = reader.u32()? as usize;
            if levels > MAX_LEVELS {
                fail!(Argument, "a shape of the composition has {levels} dimensions");
            }
            let (mut n, mut l, mut r) = (vec![block], Vec::new(), Vec::new());
            for _ in 0..levels {
                n.push(reader.size()?);
                l.push(reader.stride()?);
                r.push(reader.stride()?);
            }
            shape = Shape::strided(&n, &l, &r)?;
        }
        let (ll, lh) = shape.extent(portolan_engine::layout::Side::Local);
        let (rl, rh) = shape.extent(portolan_engine::layout::Side::Remote);
        let local = strided_blocks.address(from, me, local, ll, lh)?;
        let remote = strided_blocks.address(to, target, remote, rl, rh)?;
        part.add_shape(local, remote, shape)?;
    }
    Ok((target, part))
}

fn decode(
    engine: &Engine,
    kind: CompositionKind,
    body: &[u8],
    trust: Trust,
) -> Result<Composition> {
    let mut reader = Reader { left: body };
    let mut strided_blocks = Pieces { engine, trust, found: Vec::new(), keep: Vec::new() };
    for _ in 0..reader.u32()? {
        let row = Row {
            group: reader.u64()?,
            number: reader.u64()?,
            rank: reader.size()?,
            bytes: reader.size()?,
        };
        strided_blocks.add(row)?;
    }
    let mut parts: Vec<(usize, Vec<Arc<Part>>)> = Vec::new();
    for _ in 0..reader.u32()? {
        let (target, part) = decode_target(&mut reader, &strided_blocks, engine.rank())?;
        match parts.binary_search_by_key(&target, |(t, _)| *t) {
            Ok(at) => parts[at].1.push(Arc::new(part)),
            Err(at) => parts.insert(at, (target, vec![Arc::new(part)])),
        }
    }
    if !reader.left.is_empty() {
        fail!(Argument, "{} bytes are left over in the composition", reader.left.len());
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

impl Composer {
    fn directory<'a>(&'a self, engine: &'a Engine) -> &'a Path {
        self.directory.as_deref().unwrap_or(Path::new(&engine.config.compose_dir))
    }

    /// Stores a composition. Each rank stores its own. Fails with `Address` if an address lies in
    /// no segment, or in a segment that a file may not name; `State` if a segment of the
    /// composition was freed; `Argument` if the number is negative or the file cannot be written;
    /// and `Memory`. On failure, the file keeps its contents.
    pub fn store(&self, engine: &Engine, number: i32, composition: &Composition) -> Result<()> {
        composition.check_live(engine)?;
        let body = encode(engine, composition, self.trust)?;
        let place = file::place_of(engine);
        let record = file::encode(place, composition.kind(), &body)?;
        self.files.lock().store(self.directory(engine), number, place, &record)
    }

    /// Loads the next composition of a file. Each rank loads its own. Fails with `Argument` if
    /// there is no further composition, or if the file is damaged or belongs to another rank, job
    /// size or version. Fails with `Address` if the segments of this run differ from those of the
    /// run that stored it, or if the file may not name them. Fails with `Memory`.
    pub fn load(&self, engine: &Engine, number: i32) -> Result<Composition> {
        let place = file::place_of(engine);
        let record = self.files.lock().load(self.directory(engine), number, place)?;
        decode(engine, record.kind, &record.body, self.trust)
    }

    pub fn rewind(&self, number: i32) -> Result<()> {
        self.files.lock().rewind(number)
    }
}
