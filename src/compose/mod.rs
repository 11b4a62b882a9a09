//! Compose and perform: say once which bytes go where, then move them many times.
//!
//! A *composition* is a set of triples (local byte, target, remote byte). It is
//! *simple* while it has one target and pairs are added to it, *merged* when it was
//! made of others, and *mapped* when it was turned into what the paths perform best.
//! A *performance* carries a mapped composition out. There is no buffer in between on
//! a node, so ranks synchronise before they perform, and wait for what arrives after.
//!
//! | module | owns |
//! |---|---|
//! | [`part`] | the pairs towards one target, as they are added |
//! | [`mod@slice`] | slices, cut differently on the two sides |
//! | [`normalize`] | one sorted form without doubles; conflicts |
//! | [`loop_detect`] | regular runs become shapes again |
//! | [`locate`] | the segment in which an address lies |
//! | [`plan`] | the mapped form: pairs cut by segment and prepared for their path |
//! | [`loops`], [`windows`], [`messages`] | prepared copies, puts, messages |
//! | [`guard`] | whether the segments of a plan still live |
//! | [`notify`] | counting the performances that arrived here |
//! | [`perform`] | sync, perform, wait |
//! | [`mod@file`], [`store`] | compositions in files |
//!
//! **The way of a performance.** [`perform::Composer::perform`] asks the plan's guard
//! whether its segments live; starts what leaves by windows, messages, or to memory
//! outside every segment; copies to the ranks of the node and counts the performance
//! there; then counts it at the other ranks, behind their data.
//!
//! **Sets.** The same triple twice is once. One local byte may go to many places; two
//! local bytes for one remote byte are an error when the composition is mapped.
//! The order of the copies is not defined, so what a performance reads must not be
//! what it, or another of the same phase, writes.
//!
//! **Compositions keep to themselves.** Merging and mapping take what their inputs
//! are at that moment; inputs stay as they are and may change later. Parts are shared
//! until one changes, so merging costs little.
//!
//! **When buffers are free.** On a node a performance is complete when the call
//! returns. Elsewhere local bytes must not change until the next wait or sync.

pub(crate) mod file;
pub(crate) mod guard;
pub(crate) mod locate;
pub(crate) mod loop_detect;
pub(crate) mod loops;
pub(crate) mod messages;
pub(crate) mod normalize;
pub(crate) mod notify;
pub(crate) mod part;
pub(crate) mod perform;
pub(crate) mod plan;
pub(crate) mod slice;
pub(crate) mod store;
pub(crate) mod windows;

pub use perform::Composer;
pub use slice::Blocks;
pub use store::Trust;

use crate::error::{Result, fail};
use crate::memory::segment::Segment;
use crate::runtime::Engine;
use part::Part;
use plan::Plan;
use std::sync::Arc;

/// What a composition is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Pairs can be added.
    Simple,
    /// Made of others.
    Merged,
    /// Can be performed.
    Mapped,
}

impl Kind {
    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Simple => "simple",
            Kind::Merged => "merged",
            Kind::Mapped => "mapped",
        }
    }
}

#[derive(Debug, Clone)]
enum Form {
    Simple(usize, Arc<Part>),
    /// By target, ascending; no part is there twice.
    Merged(Vec<(usize, Vec<Arc<Part>>)>),
    Mapped(Arc<Plan>),
}

/// A set of (local byte, target, remote byte).
#[derive(Debug, Clone)]
pub struct Composition {
    form: Form,
    /// Segments that must live when it is mapped, and whose memory stays until then.
    keep: Vec<Arc<Segment>>,
}

impl Composition {
    /// An empty simple composition towards a rank.
    ///
    /// # Errors
    /// `Rank` outside the job.
    pub fn simple(engine: &Engine, target: usize) -> Result<Composition> {
        engine.check_rank(target)?;
        Ok(Composition { form: Form::Simple(target, Arc::default()), keep: Vec::new() })
    }

    #[cfg(test)]
    pub(crate) fn nothing() -> Composition {
        Composition { form: Form::Merged(Vec::new()), keep: Vec::new() }
    }

    /// The kind of the composition.
    pub fn kind(&self) -> Kind {
        match &self.form {
            Form::Simple(..) => Kind::Simple,
            Form::Merged(_) => Kind::Merged,
            Form::Mapped(_) => Kind::Mapped,
        }
    }

    /// The target of a simple composition.
    pub fn target(&self) -> Option<usize> {
        match self.form {
            Form::Simple(target, _) => Some(target),
            _ => None,
        }
    }

    /// Keeps the memory of a segment while the composition is there, and makes it an
    /// error to map the composition when the segment was freed.
    pub fn hold(&mut self, segment: &Arc<Segment>) {
        if !self.keep.iter().any(|s| Arc::ptr_eq(s, segment)) {
            self.keep.push(segment.clone());
        }
    }

    /// The pairs, to add to.
    fn part(&mut self) -> Result<&mut Part> {
        let kind = self.kind();
        match &mut self.form {
            Form::Simple(_, part) => Ok(Arc::make_mut(part)),
            _ => fail!(
                Handle,
                "addresses can be added to simple compositions only, and this one is {}",
                kind.name()
            ),
        }
    }

    /// Adds `bytes` pairs of bytes that follow each other on both sides.
    ///
    /// # Errors
    /// `Handle` where the composition is not simple; `Argument` for a null address
    /// with bytes, or bytes beyond the address space.
    pub fn add(&mut self, local: usize, remote: usize, bytes: usize) -> Result<()> {
        self.part()?.add(local, remote, bytes)
    }

    /// Adds several runs of bytes, all or, where one is refused, none.
    ///
    /// # Errors
    /// As for [`Composition::add`].
    pub fn add_all(&mut self, runs: impl Iterator<Item = (usize, usize, usize)>) -> Result<()> {
        let part = self.part()?;
        let mut added = Part::default();
        for (local, remote, bytes) in runs {
            added.add(local, remote, bytes)?;
        }
        part.append(added)
    }

    /// Adds blocks at strides. The bytes of both sides are paired in their order; the
    /// sides may be cut differently.
    ///
    /// # Errors
    /// As for [`Composition::add`]; `Argument` where the sides have different totals.
    pub fn add_slice(&mut self, local: Blocks, remote: Blocks) -> Result<()> {
        self.part()?.add_slice(local, remote)
    }

    /// The parts by target; none of a mapped composition.
    fn parts(&self, call: &str) -> Result<Vec<(usize, Vec<Arc<Part>>)>> {
        match &self.form {
            Form::Simple(target, part) => Ok(vec![(*target, vec![part.clone()])]),
            Form::Merged(parts) => Ok(parts.clone()),
            Form::Mapped(_) => {
                fail!(Handle, "a mapped composition cannot be {call}; use what it was mapped from")
            }
        }
    }

    /// All triples of the two, as they are now.
    ///
    /// # Errors
    /// `Handle` where one of them is mapped.
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

    /// The form that can be performed. Bounds in segments are checked here, and not
    /// again when it is performed.
    ///
    /// # Errors
    /// `Handle` where it is mapped already; `Argument`, naming the addresses, where
    /// two local bytes go to one remote byte; `State` where a segment that it holds was
    /// freed; `Memory` if there is no memory for the list of copies.
    pub fn map(&self, engine: &Engine) -> Result<Composition> {
        let parts = self.parts("mapped again")?;
        self.check_live(engine)?;
        let plan = Plan::new(engine, &parts)?;
        Ok(Composition { form: Form::Mapped(Arc::new(plan)), keep: self.keep.clone() })
    }

    /// [`Composition::map`] where every byte lies in a segment that the composition holds.
    ///
    /// # Errors
    /// As for [`Composition::map`]; `Address` where a byte lies elsewhere.
    pub fn map_inside(&self, engine: &Engine) -> Result<Composition> {
        let mapped = self.map(engine)?;
        mapped.plan()?.guard.check_inside(&self.keep)?;
        Ok(mapped)
    }

    /// # Errors
    /// `State` where a segment that the composition holds was freed.
    fn check_live(&self, engine: &Engine) -> Result<()> {
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

    /// The plan of a mapped composition.
    ///
    /// # Errors
    /// `Handle` where it is not mapped.
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
