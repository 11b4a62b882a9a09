//! A mapped composition: what a performance does, decided once.
//!
//! The pairs towards each target are brought into one form ([`super::normalize`]), cut
//! where segments end, folded ([`super::loop_detect`]), and prepared for the way to the
//! segment: a copy for what is mapped here ([`super::loops`]), puts on a window
//! ([`super::windows`]), messages ([`super::messages`]). What lies in no segment of
//! its rank goes the engine's way to any address. All memory of the calling rank
//! itself is copied to directly.
//!
//! Invariant: every byte of a segment that a plan names was in bounds when the plan
//! was made, and the plan's [`Guard`] knows whether the segment still lives.

use super::guard::Guard;
use super::locate::{Located, Locator};
use super::loop_detect::detect_loops;
use super::loops::Loops;
use super::messages::Schedule;
use super::normalize::{Normal, normalize};
use super::part::{Part, Piece, Run};
use super::windows::Puts;
use crate::any_memory::Span;
use crate::error::{Result, reserve};
use crate::memory::slab::Slab;
use crate::path::{self, Path};
use crate::runtime::Engine;
use std::sync::Arc;

/// A copy to a slice that is mapped here.
#[derive(Debug)]
pub struct Near {
    /// From the target's addresses to ours.
    pub shift: isize,
    /// The copy.
    pub loops: Loops,
    _slab: Option<Arc<Slab>>,
}

/// What goes to a target in other ways.
#[derive(Debug, Default)]
pub struct Far {
    /// Through windows.
    pub windows: Vec<Puts>,
    /// By message.
    pub messages: Vec<Schedule>,
    /// To memory outside every segment.
    pub elsewhere: Vec<Span>,
}

/// What a performance does to one target.
#[derive(Debug)]
pub struct Toward {
    /// The rank.
    pub target: usize,
    /// Copies.
    pub near: Vec<Near>,
    /// The rest, where there is any.
    pub far: Option<Box<Far>>,
}

/// A mapped composition.
#[derive(Debug)]
pub struct Plan {
    /// By rank; none has nothing to do.
    pub towards: Vec<Toward>,
    /// Whether the plan can still be performed.
    pub guard: Guard,
}

/// Pairs in the slice of one slab.
struct Bucket {
    slab: Arc<Slab>,
    group_rank: usize,
    local: *mut u8,
    pairs: Normal,
}

/// Pairs towards one target, by where they lie.
struct Cutter<'a, 'e> {
    engine: &'e Engine,
    target: usize,
    locator: &'a mut Locator<'e>,
    guard: &'a mut Guard,
    buckets: Vec<Bucket>,
    /// The piece that was hit last, and its bucket.
    last: Option<(Located, usize)>,
    elsewhere: Vec<Run>,
}

impl Cutter<'_, '_> {
    /// The bucket of the piece in which an address lies, and where the piece ends.
    fn place(&mut self, address: usize) -> Option<(&mut Normal, usize)> {
        let known = self.last.as_ref().is_some_and(|(l, _)| l.span.contains(&address));
        if !known {
            let piece = self.locator.find(self.target, address)?.clone();
            self.guard.pin(self.engine, &piece);
            let at = self.bucket(address)?;
            self.last = Some((piece, at));
        }
        let (piece, at) = self.last.as_ref()?;
        Some((&mut self.buckets[*at].pairs, piece.span.end))
    }

    fn bucket(&mut self, address: usize) -> Option<usize> {
        let hit = self.engine.memory.registry.lookup(self.target, address, 1)?;
        let (slab, group_rank, local) = (hit.slab().clone(), hit.group_rank(), hit.slice());
        drop(hit);
        let known = self.buckets.iter().position(|b| Arc::ptr_eq(&b.slab, &slab));
        Some(known.unwrap_or_else(|| {
            self.buckets.push(Bucket { slab, group_rank, local, pairs: Normal::default() });
            self.buckets.len() - 1
        }))
    }

    fn cut(&mut self, pairs: Normal) -> Result<()> {
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
                bucket.runs.push(Run { bytes, ..run });
                run = Run {
                    local: run.local.wrapping_add(bytes),
                    remote: run.remote.wrapping_add(bytes),
                    bytes: run.bytes.saturating_sub(bytes),
                };
            }
        }
        for piece in pairs.pieces {
            match self.place(piece.remote_span().0) {
                Some((bucket, _)) => bucket.pieces.push(piece),
                // It was in one segment when it was asked.
                None => {
                    self.guard.pass_outside(self.target, piece.remote);
                    piece.unroll(&mut self.elsewhere)?;
                }
            }
        }
        Ok(())
    }
}

impl Plan {
    /// Maps parts, by target.
    ///
    /// # Errors
    /// `Argument` where two local bytes go to one remote byte; `Memory` for the list of
    /// what is to be done; `Mpi` where a datatype cannot be made.
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

    /// All pairs, by target.
    ///
    /// # Errors
    /// `Memory` for the list.
    pub fn pairs(&self) -> Result<Vec<(usize, Vec<Normal>)>> {
        let of = |toward: &Toward| {
            let near = toward.near.iter().map(|n| n.loops.pairs());
            let mut all = near.collect::<Result<Vec<Normal>>>()?;
            if let Some(far) = &toward.far {
                all.extend(far.windows.iter().map(|p| p.pairs().clone()));
                all.extend(far.messages.iter().map(|s| s.pairs().clone()));
                let run = |s: &Span| Run { remote: s.remote, local: s.local, bytes: s.bytes };
                let runs = far.elsewhere.iter().map(run).collect();
                all.push(Normal { runs, pieces: Vec::new() });
            }
            Ok((toward.target, all))
        };
        self.towards.iter().map(of).collect()
    }

    /// How many loops, lists, puts of windows and messages a performance has at most.
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
    let (runs, pieces) = (&pairs.runs, &pairs.pieces);
    let me = engine.rank();
    guard.pin_spans(engine, me, runs.iter().map(|r| (r.local, r.local.saturating_add(r.bytes))));
    guard.pin_spans(engine, me, pieces.iter().map(Piece::local_span));
    if runs.is_empty() && pieces.is_empty() {
        return Ok(None);
    }
    if to_self {
        guard.pin_spans(engine, me, runs.iter().map(|r| (r.remote, r.end())));
        guard.pin_spans(engine, me, pieces.iter().map(Piece::remote_span));
        let near = vec![Near { shift: 0, loops: Loops::new(detect_loops(pairs)?)?, _slab: None }];
        return Ok(Some(Toward { target, near, far: None }));
    }
    let mut cutter = Cutter {
        engine,
        target,
        locator: &mut locator,
        guard,
        buckets: Vec::new(),
        last: None,
        elsewhere: Vec::new(),
    };
    cutter.cut(pairs)?;
    let Cutter { buckets, elsewhere, .. } = cutter;
    let mut far = Far::default();
    let mut near = Vec::new();
    for Bucket { slab, group_rank, local, pairs } in buckets {
        let folded = detect_loops(pairs)?;
        match path::for_transfer(&slab, local) {
            Path::Direct => {
                let shift = (local as usize).wrapping_sub(slab.base(group_rank)) as isize;
                near.push(Near { shift, loops: Loops::new(folded)?, _slab: Some(slab) });
            }
            Path::Rma => far.windows.push(Puts::new(slab, group_rank, folded)?),
            Path::Message => far.messages.push(Schedule::new(slab, folded)?),
        }
    }
    far.elsewhere = elsewhere
        .iter()
        .map(|r| Span { local: r.local, remote: r.remote, bytes: r.bytes })
        .collect();
    let any = !(far.windows.is_empty() && far.messages.is_empty() && far.elsewhere.is_empty());
    Ok(Some(Toward { target, near, far: any.then(|| Box::new(far)) }))
}
