//! Compositions: collected pairs, merged parts, or a plan.

use super::part::Part;
use super::plan::Plan;
use super::slice::Blocks;
use portolan_base::error::{Result, fail};
use portolan_base::layout::Shape;
use portolan_engine::memory::segment::Segment;
use portolan_engine::runtime::Engine;
use std::sync::Arc;

/// The state of a composition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompositionKind {
    /// Accepts new pairs.
    Simple,
    /// Was made from other compositions.
    Merged,
    /// Can be performed.
    Mapped,
}

impl CompositionKind {
    #[doc(hidden)]
    pub fn code(self) -> u32 {
        match self {
            CompositionKind::Simple => 1,
            CompositionKind::Merged => 2,
            CompositionKind::Mapped => 3,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            CompositionKind::Simple => "simple",
            CompositionKind::Merged => "merged",
            CompositionKind::Mapped => "mapped",
        }
    }
}

#[derive(Debug, Clone)]
pub(super) enum Form {
    Simple(usize, Arc<Part>),
    /// Parts by target, in ascending order. No part occurs twice.
    Merged(Vec<(usize, Vec<Arc<Part>>)>),
    Mapped(Arc<Plan>),
}

/// A set of (local byte, target, remote byte).
#[derive(Debug, Clone)]
pub struct Composition {
    pub(super) form: Form,
    /// Segments that must exist when the composition is mapped.
    pub(super) keep: Vec<Arc<Segment>>,
}

impl Composition {
    /// Creates an empty simple composition. Fails with `Rank` if the target lies outside the job.
    pub fn simple(engine: &Engine, target: usize) -> Result<Composition> {
        engine.check_rank(target)?;
        Ok(Composition { form: Form::Simple(target, Arc::default()), keep: Vec::new() })
    }

    pub fn kind(&self) -> CompositionKind {
        match &self.form {
            Form::Simple(..) => CompositionKind::Simple,
            Form::Merged(_) => CompositionKind::Merged,
            Form::Mapped(_) => CompositionKind::Mapped,
        }
    }

    pub fn target(&self) -> Option<usize> {
        match self.form {
            Form::Simple(target, _) => Some(target),
            _ => None,
        }
    }

    /// Keeps the memory of a segment allocated while the composition exists. Mapping fails if the
    /// segment was freed.
    pub fn hold(&mut self, segment: &Arc<Segment>) {
        if !self.keep.iter().any(|s| Arc::ptr_eq(s, segment)) {
            self.keep.push(segment.clone());
        }
    }

    fn part(&mut self) -> Result<&mut Part> {
        let kind = self.kind();
        match &mut self.form {
            Form::Simple(_, part) => Ok(Arc::make_mut(part)),
            _ => fail!(
                Handle,
                "addresses can be added to simple compositions only, but this one is {}",
                kind.name()
            ),
        }
    }

    /// Adds `bytes` pairs of bytes that are contiguous on both sides. Fails with `Handle` if the
    /// composition is not simple, and `Argument` if `bytes` is not 0 and an address is null or the
    /// bytes leave the address space.
    pub fn add(&mut self, local: usize, remote: usize, bytes: usize) -> Result<()> {
        self.part()?.add(local, remote, bytes)
    }

    /// Adds several runs of bytes, or none if one of them is refused. Fails as [`Composition::add`]
    /// does.
    pub fn add_all(&mut self, runs: impl Iterator<Item = (usize, usize, usize)>) -> Result<()> {
        let part = self.part()?;
        let mut added = Part::default();
        for (local, remote, bytes) in runs {
            added.add(local, remote, bytes)?;
        }
        part.append(added)
    }

    /// Adds strided blocks, whose sizes may differ on the two sides. The bytes are paired in order.
    /// Fails as [`Composition::add`] does, and with `Argument` if the two sides differ in their
    /// total number of bytes.
    pub fn add_slice(&mut self, local: Blocks, remote: Blocks) -> Result<()> {
        self.part()?.add_slice(local, remote)
    }

    /// Adds the pairs of a shape. Fails as [`Composition::add`] does.
    pub fn add_shape(&mut self, local: usize, remote: usize, shape: Shape) -> Result<()> {
        self.part()?.add_shape(local, remote, shape)
    }

    /// Returns the parts by target. Fails for a mapped composition.
    fn parts(&self, call: &str) -> Result<Vec<(usize, Vec<Arc<Part>>)>> {
        match &self.form {
            Form::Simple(target, part) => Ok(vec![(*target, vec![part.clone()])]),
            Form::Merged(parts) => Ok(parts.clone()),
            Form::Mapped(_) => {
                fail!(
                    Handle,
                    "a mapped composition cannot be {call}; use the composition that it was mapped from"
                )
            }
        }
    }

    /// Returns a composition of all current triples of both. Fails with `Handle` if one is mapped.
    pub fn merge(&self, other: &Composition) -> Result<Composition> {
        let mut all = self.parts("merged")?;
        for (target, parts) in other.parts("merged")? {
            let at = match all.binary_search_by_key(&target, |(t, _)| *t) {
                Ok(at) => at,
                Err(at) => {
                    all.insert(at, (target, Vec::new()));
                    at
                }
            };
            for part in parts {
                if !all[at].1.iter().any(|p| Arc::ptr_eq(p, &part)) {
                    all[at].1.push(part);
                }
            }
        }
        let mut merged = Composition { form: Form::Merged(all), keep: self.keep.clone() };
        other.keep.iter().for_each(|segment| merged.hold(segment));
        Ok(merged)
    }

    /// Converts the composition to the form that can be performed, and checks the segment bounds.
    /// Fails with `Handle` if the composition is mapped already; `Argument` if two local bytes go
    /// to one remote byte, naming the addresses; `State` if a segment that the composition holds
    /// was freed; and `Memory` if the list of copies cannot be allocated.
    pub fn map(&self, engine: &Engine) -> Result<Composition> {
        let parts = self.parts("mapped again")?;
        self.check_live(engine)?;
        let plan = Plan::new(engine, &parts)?;
        Ok(Composition { form: Form::Mapped(Arc::new(plan)), keep: self.keep.clone() })
    }

    /// [`Composition::map`], which also fails with `Address` for a byte outside the held segments.
    pub fn map_inside(&self, engine: &Engine) -> Result<Composition> {
        let mapped = self.map(engine)?;
        mapped.plan()?.guard.check_inside(&self.keep)?;
        Ok(mapped)
    }

    pub(super) fn check_live(&self, engine: &Engine) -> Result<()> {
        if let Some(gone) = self.keep.iter().find(|s| engine.memory.segment_by_id(s.id()).is_none())
        {
            fail!(
                State,
                "segment {} of its group, in which the composition has addresses, was freed",
                gone.id().number
            );
        }
        Ok(())
    }

    /// Returns the plan of a mapped composition. Fails with `Handle` if it is not mapped.
    #[inline]
    pub fn plan(&self) -> Result<&Arc<Plan>> {
        match &self.form {
            Form::Mapped(plan) => Ok(plan),
            _ => fail!(
                Handle,
                "a {} composition cannot be performed; map it first",
                self.kind().name()
            ),
        }
    }
}
