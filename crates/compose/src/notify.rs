//! Notification counters: how a rank learns that performances have arrived.
//!
//! Each rank has a few words in a segment that count the performances with data for it. A rank of
//! the same node increments a word after its copies, with release order, and wakes the owner if it
//! sleeps. Other ranks increment a word through the engine, ordered after their data. The two kinds
//! of increment are not atomic with respect to each other, so each kind has its own words.
//!
//! **Phases.** A phase lies between two syncs. There is one set of words for even and one for odd
//! phases. Before a rank enters the barrier of a sync, it records the values of the words of the
//! next phase. All increments of these words so far belong to an older phase, which every rank has
//! completed, and no rank increments them again before it has passed the barrier. A performance of
//! a fast neighbour in the next phase therefore never counts in this phase, and none is lost.

use portolan_base::error::Result;
use portolan_base::futex;
use portolan_base::trace::Cause;
use portolan_base::wait;
use portolan_engine::collective::{self, Kind};
use portolan_engine::core::peer::CompletionCounter;
use portolan_engine::memory::segment::{Purpose, Segment};
use portolan_engine::runtime::Engine;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const LINE: usize = 64;
/// Words that ranks of the node increment: one for even and one for odd phases.
const NEAR: usize = 0;
/// Words that other ranks increment.
const FAR: usize = 2;
/// Counts sleeping threads of the owner.
const SLEEPERS: usize = 4;
const LINES: usize = 5;

#[derive(Debug)]
pub(crate) struct ArrivalCounters {
    segment: Arc<Segment>,
    me: usize,
    /// The words of each rank, or null if they are not mapped here.
    mapped: Vec<*mut u8>,
    /// Every rank increments the near words: the words of all ranks are mapped here.
    all_near: bool,
    /// 0 before the first sync.
    phase: AtomicU32,
    /// This rank's words for even and odd phases at the start of the phase.
    base: [AtomicU32; 2],
}

// SAFETY: the segment keeps the mappings alive, and the words are accessed only as atomics.
unsafe impl Send for ArrivalCounters {}
// SAFETY: methods with `&self` access the words only as atomics.
unsafe impl Sync for ArrivalCounters {}

impl ArrivalCounters {
    /// Collective over all ranks.
    pub fn new(engine: &Engine) -> Result<ArrivalCounters> {
        collective::scope(Kind::CreateComposer, 0, || ArrivalCounters::make(engine))
    }

    fn make(engine: &Engine) -> Result<ArrivalCounters> {
        let bytes = Ok(LINES * LINE);
        let segment = engine.allocate_for(Purpose::Internal, engine.world(), bytes)?;
        // SAFETY: this rank's part has these bytes; no other rank accesses it before the barrier.
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

    /// Collective over all ranks.
    pub fn free(&self, engine: &Engine) -> Result<()> {
        let number = self.segment.id().number;
        collective::scope(Kind::FreeComposer, number, || engine.release(self.segment.clone()))
    }

    /// The rank's words must be mapped here.
    #[inline]
    fn word(&self, rank: usize, line: usize) -> &AtomicU32 {
        debug_assert!(!self.mapped[rank].is_null());
        // SAFETY: the rank's part of the segment has `LINES` aligned words, one cache line apart.
        // The segment keeps them mapped, and they are accessed only as atomics.
        unsafe { &*self.mapped[rank].wrapping_add(line * LINE).cast() }
    }

    #[inline]
    fn parity(&self) -> usize {
        (self.phase.load(Ordering::Relaxed) & 1) as usize
    }

    #[inline]
    pub(crate) fn has_begun(&self) -> bool {
        self.phase.load(Ordering::Relaxed) > 0
    }

    #[inline]
    pub(crate) fn is_near(&self, rank: usize) -> bool {
        !self.mapped[rank].is_null()
    }

    /// Notifies a rank of this node of a performance whose stores are done.
    #[inline]
    pub(crate) fn notify_near(&self, target: usize) {
        let word = self.word(target, NEAR + self.parity());
        // The increment releases the stores of the performance. With sequential consistency, either
        // this rank sees the sleeper, or the sleeper sees the new count.
        word.fetch_add(1, Ordering::SeqCst);
        if self.word(target, SLEEPERS).load(Ordering::SeqCst) > 0 {
            futex::wake_all(word);
        }
    }

    /// Notifies a rank of another node, ordered after all operations that were issued to it.
    /// `counter` counts the operations that are not complete on return.
    pub(crate) fn notify_far(
        &self,
        engine: &Engine,
        target: usize,
        counter: &Arc<CompletionCounter>,
    ) -> Result<()> {
        engine.increment_in_order(target, self.far_word(target), Some(counter))
    }

    fn far_word(&self, target: usize) -> usize {
        self.segment.part(target).address() + (FAR + self.parity()) * LINE
    }

    /// Returns the word that the last message of a performance increments, if messages do this.
    pub(crate) fn word_behind_data(&self, engine: &Engine, target: usize) -> Result<Option<usize>> {
        let at = self.far_word(target);
        Ok((!self.is_near(target) && engine.increments_behind_data(target, at)?).then_some(at))
    }

    fn count(&self, parity: usize) -> u32 {
        let near = self.word(self.me, NEAR + parity).load(Ordering::Acquire);
        let far = self.word(self.me, FAR + parity).load(Ordering::Acquire);
        near.wrapping_add(far)
    }

    pub fn arrived(&self) -> u32 {
        let parity = self.parity();
        self.count(parity).wrapping_sub(self.base[parity].load(Ordering::Relaxed))
    }

    pub fn wait(&self, engine: &Engine, n: u32) -> Result<()> {
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
            wait::while_equal(engine, Cause::Notify, &what, (word, seen), sleepers)?;
        }
    }

    /// Ends the phase on all ranks. The caller's performances must be complete. Collective.
    pub(crate) fn next_phase(&self, engine: &Engine) -> Result<()> {
        let next = 1 - self.parity();
        self.base[next].store(self.count(next), Ordering::Relaxed);
        let number = self.segment.id().number;
        collective::scope(Kind::SyncComposer, number, || engine.world().barrier(engine))?;
        // After the largest number follows one of the right parity that is not 0.
        let number = self.phase.load(Ordering::Relaxed).checked_add(1).unwrap_or(2);
        self.phase.store(number, Ordering::Relaxed);
        Ok(())
    }
}
