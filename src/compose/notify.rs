//! Notification counters: how a rank learns that performances have arrived.
//!
//! Each rank has a few words of a segment that count the performances which
//! delivered into it. A rank of the same node adds one itself, after its copies, with
//! release order, and wakes the owner where it sleeps. Other ranks add one through
//! the engine, behind their data. The two kinds of adding are not atomic to each
//! other, so they have words of their own.
//!
//! **Phases.** A phase lies between two syncs. There is a set of words for even and
//! one for odd phases. Before a rank enters the barrier of a sync it notes where the
//! words of the phase to come stand: all that was added to them belongs to an older
//! phase, which every rank has completed by then, and nobody adds to them before the
//! barrier is passed. So a fast neighbour's next performance never counts in this
//! phase, and none is lost.

use crate::atomics::Rmw;
use crate::collective::{self, Kind};
use crate::error::Result;
use crate::futex;
use crate::layout::Shape;
use crate::memory::segment::{Purpose, Segment};
use crate::path::kernel::Scale;
use crate::path::{self, Path};
use crate::peer::CompletionCounter;
use crate::runtime::Engine;
use crate::trace::Cause;
use crate::transfer::TransferKind;
use crate::wait::{self, Ends};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const LINE: usize = 64;
/// Words that ranks of the node add to: one for each kind of phase.
const NEAR: usize = 0;
/// Words that other ranks add to.
const FAR: usize = 2;
/// How many threads of the owner sleep.
const SLEEPERS: usize = 4;
const LINES: usize = 5;

/// The counters of this rank, and where those of others are.
#[derive(Debug)]
pub(crate) struct ArrivalCounters {
    segment: Arc<Segment>,
    me: usize,
    /// By rank: its words here, null where they are not mapped.
    mapped: Vec<*mut u8>,
    /// All ranks' words are mapped, so that nobody adds from afar.
    all_near: bool,
    phase: AtomicU32,
    /// Where my words of even and odd phases stood when the phase began.
    base: [AtomicU32; 2],
}

// SAFETY: the addresses are of mappings that the segment keeps, of words that are
// used as atomics only.
unsafe impl Send for ArrivalCounters {}
// SAFETY: as above.
unsafe impl Sync for ArrivalCounters {}

impl ArrivalCounters {
    /// Makes the counters. Collective over all ranks.
    pub(crate) fn new(engine: &Engine) -> Result<ArrivalCounters> {
        collective::scope(Kind::CreateComposer, 0, || ArrivalCounters::make(engine))
    }

    fn make(engine: &Engine) -> Result<ArrivalCounters> {
        let bytes = Ok(LINES * LINE);
        let segment = engine.allocate_for(Purpose::Internal, engine.world(), bytes)?;
        // SAFETY: the piece has this many bytes, and no rank knows of it before the
        // barrier below.
        unsafe { segment.my_base().write_bytes(0, LINES * LINE) };
        engine.barrier_of(engine.world())?;
        let mapped: Vec<*mut u8> = segment.parts().map(|p| p.local()).collect();
        Ok(ArrivalCounters {
            me: engine.rank(),
            all_near: mapped.iter().all(|p| !p.is_null()),
            mapped,
            segment,
            phase: AtomicU32::new(0),
            base: [AtomicU32::new(0), AtomicU32::new(0)],
        })
    }

    /// Gives the counters back. Collective over all ranks.
    pub(crate) fn free(&self, engine: &Engine) -> Result<()> {
        collective::scope(Kind::FreeComposer, 0, || engine.release(self.segment.clone()))
    }

    /// The word of a rank whose words are mapped.
    #[inline]
    fn word(&self, rank: usize, line: usize) -> &AtomicU32 {
        debug_assert!(!self.mapped[rank].is_null());
        // SAFETY: the rank's piece has LINES aligned words a line apart, which the
        // segment keeps mapped, and which are used as atomics.
        unsafe { &*self.mapped[rank].wrapping_add(line * LINE).cast() }
    }

    #[inline]
    fn parity(&self) -> usize {
        (self.phase.load(Ordering::Relaxed) & 1) as usize
    }

    /// Whether [`ArrivalCounters::notify_near`] reaches a rank.
    #[inline]
    pub(crate) fn is_near(&self, rank: usize) -> bool {
        !self.mapped[rank].is_null()
    }

    /// Counts a performance at a rank of this node: its stores are done.
    #[inline]
    pub(crate) fn notify_near(&self, target: usize) {
        let word = self.word(target, NEAR + self.parity());
        // Releases the stores of the performance. Either a sleeper is seen here, or
        // it sees the new count.
        word.fetch_add(1, Ordering::SeqCst);
        if self.word(target, SLEEPERS).load(Ordering::SeqCst) > 0 {
            futex::wake_all(word);
        }
    }

    /// Counts a performance at a rank of another node, behind everything that was
    /// issued to it. What is not complete on return is counted by `counter`.
    pub(crate) fn notify_far(
        &self,
        engine: &Engine,
        target: usize,
        counter: &Arc<CompletionCounter>,
    ) -> Result<()> {
        let part = self.segment.part(target);
        let at = part.address() + (FAR + self.parity()) * LINE;
        let path = {
            let hit = engine.memory.registry.find(target, at, 4)?;
            path::for_atomics(hit.slab(), hit.slice())
        };
        if path == Path::Message {
            // Requests of one rank are handled in order; what went another way is
            // completed before this one sets out.
            let (kind, shape) = (TransferKind::Accumulate(Scale::Int(1)), Shape::contiguous(4));
            let mut one = 1i32;
            let local = (&raw mut one).cast();
            // SAFETY: an accumulate by message copies its source before it returns.
            unsafe { engine.issue_by_path(kind, target, at, local, &shape, Some(counter)) }?;
            return Ok(());
        }
        // MPI does not order its accumulates behind its puts.
        engine.fence(target)?;
        engine.rmw(target, at, Rmw::AddInt(1))?;
        Ok(())
    }

    fn count(&self, parity: usize) -> u32 {
        let near = self.word(self.me, NEAR + parity).load(Ordering::Acquire);
        let far = self.word(self.me, FAR + parity).load(Ordering::Acquire);
        near.wrapping_add(far)
    }

    /// How many performances have arrived here in this phase.
    pub(crate) fn arrived(&self) -> u32 {
        let parity = self.parity();
        self.count(parity).wrapping_sub(self.base[parity].load(Ordering::Relaxed))
    }

    /// Waits until so many performances have arrived here in this phase.
    pub(crate) fn wait(&self, engine: &Engine, n: u32) -> Result<()> {
        let what = || format!("performance {n} of this phase, {} have arrived", self.arrived());
        if !self.all_near {
            return wait::until(engine, Cause::Notify, &what, || Ok(self.arrived() >= n));
        }
        let word = self.word(self.me, NEAR + self.parity());
        loop {
            let seen = word.load(Ordering::Acquire);
            if self.arrived() >= n {
                return Ok(());
            }
            let sleepers = Some(self.word(self.me, SLEEPERS));
            wait::while_equal(engine, Cause::Notify, &what, word, seen, sleepers, Ends::Woken)?;
        }
    }

    /// Ends the phase, for all ranks together: the caller has completed what it has
    /// performed. Collective.
    pub(crate) fn next_phase(&self, engine: &Engine) -> Result<()> {
        let next = 1 - self.parity();
        self.base[next].store(self.count(next), Ordering::Relaxed);
        collective::scope(Kind::SyncComposer, 0, || engine.world().barrier(engine))?;
        self.phase.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}
