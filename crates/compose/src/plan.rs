//! Mapped compositions: the work of a performance, prepared once.
//!
//! The pairs towards each target are normalised, split at segment borders, folded, and prepared for
//! the path to their segment: copies if it is mapped here, otherwise puts that the transport of the
//! path prepares ([`Prepared`]). Pairs outside every segment of the target use the engine's
//! transfers to arbitrary memory. The calling rank's own memory is always copied directly.
//!
//! Invariant: every segment byte that a plan names was in bounds when the plan was made, and the
//! plan's [`Guard`] detects whether the segment was freed since.

use super::guard::Guard;
use super::locate::{Located, Locator};
use super::loop_detect::detect_loops;
use super::loops::Loops;
use super::normalize::normalize;
use super::part::Part;
use portolan_base::error::{Result, reserve};
use portolan_base::layout::pairs::{ByteRun, Pairs, StridedBlock};
use portolan_engine::any_memory::Span;
use portolan_engine::memory::arena::Arena;
use portolan_engine::path::{self, Path, Prepared};
use portolan_engine::runtime::Engine;
use std::sync::Arc;

#[derive(Debug)]
pub struct Near {
    /// Added to an address of the target to get the address here, in bytes.
    pub shift: isize,
    pub loops: Loops,
    _arena: Option<Arc<Arena>>,
}

#[derive(Debug, Default)]
pub struct Far {
    /// Puts that the transports have prepared, for each arena.
    pub prepared: Vec<Box<dyn Prepared>>,
    /// Spans to memory outside segments.
    pub elsewhere: Vec<Span>,
}

#[derive(Debug)]
pub struct Toward {
    pub target: usize,
    pub near: Vec<Near>,
    /// Other transfers, if any.
    pub far: Option<Box<Far>>,
}

#[derive(Debug)]
pub struct Plan {
    /// The work for each target, by rank. Targets without work are left out.
    pub towards: Vec<Toward>,
    pub guard: Guard,
}

/// Pairs in one rank's region of one arena.
struct Bucket {
    arena: Arc<Arena>,
    group_rank: usize,
    local: *mut u8,
    pairs: Pairs,
}

struct Partitioner<'a, 'e> {
    engine: &'e Engine,
    target: usize,
    locator: &'a mut Locator<'e>,
    guard: &'a mut Guard,
    buckets: Vec<Bucket>,
    /// The last hit and its bucket.
    last: Option<(Located, usize)>,
    elsewhere: Vec<ByteRun>,
}

impl Partitioner<'_, '_> {
    /// Returns the bucket of the segment part that contains an address, and the end of the part.
    fn place(&mut self, address: usize) -> Option<(&mut Pairs, usize)> {
        let known = self.last.as_ref().is_some_and(|(l, _)| l.span.contains(&address));
        if !known {
            let strided_block = self.locator.find(self.target, address)?.clone();
            self.guard.pin(self.engine, &strided_block);
            let at = self.bucket(address)?;
            self.last = Some((strided_block, at));
        }
        let (strided_block, at) = self.last.as_ref()?;
        Some((&mut self.buckets[*at].pairs, strided_block.span.end))
    }

    fn bucket(&mut self, address: usize) -> Option<usize> {
        let hit = self.engine.memory.registry.lookup(self.target, address, 1)?;
        let (arena, group_rank, local) = (hit.arena().clone(), hit.group_rank(), hit.region());
        drop(hit);
        let known = self.buckets.iter().position(|b| Arc::ptr_eq(&b.arena, &arena));
        Some(known.unwrap_or_else(|| {
            self.buckets.push(Bucket { arena, group_rank, local, pairs: Pairs::default() });
            self.buckets.len() - 1
        }))
    }

    fn partition(&mut self, pairs: Pairs) -> Result<()> {
        for mut run in pairs.runs {
            while run.bytes > 0 {
                let Some((bucket, end)) = self.place(run.remote) else {
                    self.guard.pass_outside(self.target, run.remote);
                    reserve(&mut self.elsewhere, 1, "runs of bytes")?;
                    self.elsewhere.push(run);
                    break;
                };
                let bytes = run.bytes.min(end.saturating_sub(run.remote));
                reserve(&mut bucket.runs, 1, "runs of bytes")?;
                bucket.runs.push(ByteRun { bytes, ..run });
                run = ByteRun {
                    local: run.local.wrapping_add(bytes),
                    remote: run.remote.wrapping_add(bytes),
                    bytes: run.bytes.saturating_sub(bytes),
                };
            }
        }
        for strided_block in pairs.strided_blocks {
            match self.place(strided_block.remote_span().0) {
                Some((bucket, _)) => bucket.strided_blocks.push(strided_block),
                // The shape lay in one segment during normalisation. The segment was freed since.
                None => {
                    self.guard.pass_outside(self.target, strided_block.remote);
                    strided_block.unroll(&mut self.elsewhere)?;
                }
            }
        }
        Ok(())
    }
}

impl Plan {
    /// Maps parts by target. Fails with `Argument` if two local bytes go to one remote byte,
    /// `Memory` if the list of work cannot be allocated, and `Mpi` if a datatype cannot be created.
    pub fn new(engine: &Engine, parts: &[(usize, Vec<Arc<Part>>)]) -> Result<Plan> {
        let mut guard = Guard::new(engine);
        let mut towards = Vec::with_capacity(parts.len());
        for (target, parts) in parts {
            let parts: Vec<&Part> = parts.iter().map(|p| &**p).collect();
            if let Some(toward) = toward(engine, *target, &parts, &mut guard)? {
                towards.push(toward);
            }
        }
        Ok(Plan { towards, guard })
    }

    pub fn pairs(&self) -> Result<Vec<(usize, Vec<Pairs>)>> {
        let of = |toward: &Toward| {
            let near = toward.near.iter().map(|n| n.loops.pairs());
            let mut all = near.collect::<Result<Vec<Pairs>>>()?;
            if let Some(far) = &toward.far {
                all.extend(far.prepared.iter().map(|p| p.pairs().clone()));
                let run = |s: &Span| ByteRun { remote: s.remote, local: s.local, bytes: s.bytes };
                let runs = far.elsewhere.iter().map(run).collect();
                all.push(Pairs { runs, strided_blocks: Vec::new() });
            }
            Ok((toward.target, all))
        };
        self.towards.iter().map(of).collect()
    }

    /// Returns the number of prepared direct copies, without puts through windows and messages.
    pub fn steps(&self) -> usize {
        self.towards.iter().flat_map(|t| &t.near).map(|n| n.loops.steps()).sum()
    }
}

fn toward(
    engine: &Engine,
    target: usize,
    parts: &[&Part],
    guard: &mut Guard,
) -> Result<Option<Toward>> {
    let mut locator = Locator::new(engine);
    let to_self = target == engine.rank();
    let mut whole = |first, end| to_self || locator.whole(target, first, end);
    let pairs = normalize(target, parts, &mut whole)?;
    let (runs, strided_blocks) = (&pairs.runs, &pairs.strided_blocks);
    let me = engine.rank();
    guard.pin_spans(engine, me, runs.iter().map(|r| (r.local, r.local.saturating_add(r.bytes))));
    guard.pin_spans(engine, me, strided_blocks.iter().map(StridedBlock::local_span));
    if runs.is_empty() && strided_blocks.is_empty() {
        return Ok(None);
    }
    if to_self {
        guard.pin_spans(engine, me, runs.iter().map(|r| (r.remote, r.end())));
        guard.pin_spans(engine, me, strided_blocks.iter().map(StridedBlock::remote_span));
        let near = vec![Near { shift: 0, loops: Loops::new(detect_loops(pairs)?)?, _arena: None }];
        return Ok(Some(Toward { target, near, far: None }));
    }
    let mut partitioner = Partitioner {
        engine,
        target,
        locator: &mut locator,
        guard,
        buckets: Vec::new(),
        last: None,
        elsewhere: Vec::new(),
    };
    partitioner.partition(pairs)?;
    let Partitioner { buckets, elsewhere, .. } = partitioner;
    let mut far = Far::default();
    let mut near = Vec::new();
    for Bucket { arena, group_rank, local, pairs } in buckets {
        let folded = detect_loops(pairs)?;
        match path::for_transfer(&arena, local) {
            Path::Direct => {
                let shift = (local as usize).wrapping_sub(arena.base(group_rank)) as isize;
                near.push(Near { shift, loops: Loops::new(folded)?, _arena: Some(arena) });
            }
            path => far.prepared.push(engine.transport(path)?.prepare(arena, group_rank, folded)?),
        }
    }
    far.elsewhere = elsewhere
        .iter()
        .map(|r| Span { local: r.local, remote: r.remote, bytes: r.bytes })
        .collect();
    let any = !(far.prepared.is_empty() && far.elsewhere.is_empty());
    Ok(Some(Toward { target, near, far: any.then(|| Box::new(far)) }))
}
