//! Any memory of any rank: globals, stack and heap too, not only segments.
//!
//! **Exposed memory** is memory that its owner can withdraw ([`crate::memory::exposed`]): it is
//! copied without the owner only while the node's table says so, and else by the owner, which
//! looks at its own.
//!
//! Bytes inside a segment go by the segment's path. Other bytes of a rank on the
//! same node go by `process_vm_readv` and `process_vm_writev` ([`crate::path::cma`]),
//! where the system allows it (found out at first use; `PORTOLAN_CROSS_MEMORY=off`
//! forbids it), long ones with the owner's help where it waits ([`crate::am::cooperative_copy`]).
//! Else, and between nodes, active messages ask the owner's progress engine (`owner_served`). An
//! address that the owner has not mapped is an error and harms no process. Where memory outside
//! of segments is named on another rank, active messages must have been started.

mod owner_served;

pub(crate) use owner_served::Accesses;

use crate::am::Am;
use crate::am::shm_transport::ShmTransport;
use crate::error::{Result, fail};
use crate::layout::Shape;
use crate::path::cma::Direction;
use crate::path::kernel;
pub use crate::path::ops::Span;
use crate::path::ops::TransferKind;
use crate::peer::CompletionCounter;
use crate::trace::{About, Awaited, Call, Cause, PathTaken};
use std::ops::Deref;
use std::sync::Arc;

/// The layer of memory outside segments.
#[derive(Debug)]
pub struct AnyMemory {
    am: Am,
    accesses: Arc<Accesses>,
}

impl Deref for AnyMemory {
    type Target = Am;

    #[inline]
    fn deref(&self) -> &Am {
        &self.am
    }
}

crate::wait::progress_by_deref!(AnyMemory);

impl AnyMemory {
    /// On these active messages.
    pub fn new(am: Am) -> AnyMemory {
        AnyMemory { am, accesses: Arc::default() }
    }
}

/// The exposure of the target's within which spans lie, if they are to lie within one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Within {
    /// Its number; 0 for any memory.
    pub id: u64,
    /// Its place in the node's table plus one; 0 for none.
    pub place: u32,
}

impl Within {
    const ANYTHING: Within = Within { id: 0, place: 0 };
}

/// How a transfer is to go.
#[derive(Debug, Clone, Copy)]
struct Wants {
    within: Within,
    /// It may go without the owner.
    alone: bool,
    /// The caller waits for its end.
    waits: bool,
}

const ANY: Wants = Wants { within: Within::ANYTHING, alone: true, waits: false };

/// How spans reach a target's memory.
enum AccessPath<'a> {
    /// The segment's own path.
    Segment,
    /// The kernel copies, from or to this process.
    Cma(&'a ShmTransport, usize),
    /// The owner does.
    OwnerServed,
}

impl AnyMemory {
    /// Stores bytes in any memory of `target`; they are there on return.
    ///
    /// # Errors
    /// `Rank`; `Argument` for a null address with bytes; `Address` where the target
    /// has no such memory.
    ///
    /// # Safety
    /// The local bytes must be valid for reads, and no code at the target may rely
    /// on the bytes there not changing.
    pub unsafe fn put_anywhere(&self, target: usize, spans: &[Span]) -> Result<()> {
        // SAFETY: passed on; the wait lasts until the bytes are free.
        let move_all = || unsafe { self.move_anywhere(target, spans, Direction::Write) };
        self.observed(|| self.about_spans(Call::Put, target, spans), move_all)
    }

    /// Loads bytes from any memory of `target`; they are here on return.
    ///
    /// # Errors
    /// As for [`AnyMemory::put_anywhere`].
    ///
    /// # Safety
    /// The local bytes must be valid for writes.
    pub unsafe fn get_anywhere(&self, target: usize, spans: &[Span]) -> Result<()> {
        // SAFETY: as above.
        let move_all = || unsafe { self.move_anywhere(target, spans, Direction::Read) };
        self.observed(|| self.about_spans(Call::Get, target, spans), move_all)
    }

    /// Begins [`AnyMemory::put_anywhere`]; `counter` ends (or fails) for each operation
    /// that was not complete on return, when the bytes are at the target.
    ///
    /// # Errors
    /// As for the blocking form; for what is found later, the counter has them.
    ///
    /// # Safety
    /// As for the blocking form, until the counter is done.
    pub unsafe fn start_put_anywhere(
        &self,
        target: usize,
        spans: &[Span],
        counter: &Arc<CompletionCounter>,
    ) -> Result<()> {
        // SAFETY: passed on from the caller.
        let start =
            || unsafe { self.start_anywhere(target, spans, Direction::Write, counter, ANY) };
        self.observed(|| self.about_spans(Call::PutNb, target, spans), start)
    }

    /// Begins [`AnyMemory::get_anywhere`].
    ///
    /// # Errors
    /// As for [`AnyMemory::start_put_anywhere`].
    ///
    /// # Safety
    /// As for the blocking form, until the counter is done.
    pub unsafe fn start_get_anywhere(
        &self,
        target: usize,
        spans: &[Span],
        counter: &Arc<CompletionCounter>,
    ) -> Result<()> {
        // SAFETY: passed on from the caller.
        let start = || unsafe { self.start_anywhere(target, spans, Direction::Read, counter, ANY) };
        self.observed(|| self.about_spans(Call::GetNb, target, spans), start)
    }

    /// What the observer is told: the path is that of the first span.
    fn about_spans(&self, call: Call, target: usize, spans: &[Span]) -> About {
        let inside = spans.first().map(|span| self.path_to(TransferKind::Put, target, span.remote));
        let path = match inside {
            None => PathTaken::None,
            Some(PathTaken::None) if self.topology.same_node(target, self.rank()) => PathTaken::Cma,
            Some(PathTaken::None) => PathTaken::Message,
            Some(path) => path,
        };
        let bytes = spans.iter().map(|span| span.bytes).sum();
        About { blocks: spans.len(), ..About::new(call).to(target).moves(bytes).by(path) }
    }

    unsafe fn move_anywhere(
        &self,
        target: usize,
        spans: &[Span],
        direction: Direction,
    ) -> Result<()> {
        let counter = Arc::new(CompletionCounter::default());
        // SAFETY: passed on; the wait below lasts until the counter is done.
        let started = unsafe {
            self.start_anywhere(target, spans, direction, &counter, Wants { waits: true, ..ANY })
        };
        let what = || format!("{} spans of memory of rank {target}", spans.len());
        self.wait_for(
            Awaited::of(Cause::Handle, target),
            &what,
            || Ok(counter.outstanding() == 0),
        )?;
        started?;
        counter.check().map(|_| ())
    }

    /// Begins to move bytes from or to an exposure of `target`. `borrowed` may do so where
    /// they can be copied here and now, which it returns.
    ///
    /// # Errors
    /// As for [`AnyMemory::start_put_anywhere`]; `Handle` where the memory was withdrawn, which
    /// the counter may have too.
    ///
    /// # Safety
    /// As for [`AnyMemory::start_put_anywhere`].
    pub(crate) unsafe fn start_exposed(
        &self,
        target: usize,
        spans: &[Span],
        direction: Direction,
        (within, counter): (Within, &Arc<CompletionCounter>),
        borrowed: impl FnOnce() -> bool,
    ) -> Result<()> {
        let index =
            self.state()?.node.as_ref().and_then(|node| Some((node, node.index_of(target)?)));
        let copying = match index {
            Some((node, index)) if within.place > 0 => {
                node.exposures().begin(index, within.place - 1, within.id)?
            }
            _ => None,
        };
        if copying.is_some() && borrowed() {
            return Ok(());
        }
        let wants = Wants { within, alone: copying.is_some(), waits: false };
        // SAFETY: passed on from the caller.
        unsafe { self.start_anywhere(target, spans, direction, counter, wants) }
    }

    /// # Safety
    /// As for [`AnyMemory::start_put_anywhere`].
    unsafe fn start_anywhere(
        &self,
        target: usize,
        spans: &[Span],
        direction: Direction,
        counter: &Arc<CompletionCounter>,
        wants: Wants,
    ) -> Result<()> {
        self.check_rank(target)?;
        for span in spans.iter().filter(|s| s.bytes > 0) {
            if span.local == 0 || span.remote == 0 {
                let side = if span.local == 0 { "local" } else { "remote" };
                fail!(Argument, "the {side} address is null, but {} bytes are to move", span.bytes);
            }
        }
        let mut rest = spans;
        while let Some(first) = rest.first() {
            if first.bytes == 0 {
                rest = &rest[1..];
                continue;
            }
            let path = self.access_path(target, first, direction, wants)?;
            // Neighbours on the same path go together.
            let n = match path {
                AccessPath::Segment => 1,
                _ => {
                    let ranges = rest[1..].iter().take_while(|span| span.bytes > 0);
                    let ranges = ranges.map(|span| (span.remote, span.bytes));
                    1 + self.memory.registry.outside(target, ranges)
                }
            };
            let (part, after) = rest.split_at(n);
            // SAFETY: passed on from the caller.
            unsafe {
                match path {
                    AccessPath::Segment => {
                        self.move_in_segment(target, first, direction, counter)?
                    }
                    AccessPath::Cma(node, index) => {
                        self.cma_transfer(node, index, part, direction)?
                    }
                    AccessPath::OwnerServed if target == self.rank() => copy_own(part, direction),
                    AccessPath::OwnerServed => {
                        self.ask_owner(target, part, direction, (wants.within.id, counter))?
                    }
                }
            }
            rest = after;
        }
        Ok(())
    }

    fn access_path(
        &self,
        target: usize,
        span: &Span,
        direction: Direction,
        Wants { within, alone, waits: blocking }: Wants,
    ) -> Result<AccessPath<'_>> {
        if !alone {
            return Ok(AccessPath::OwnerServed);
        }
        if let Some(hit) = self.memory.registry.lookup(target, span.remote, span.bytes) {
            // What the owner can withdraw is not left to the network.
            if within.id != 0 && hit.slice().is_null() {
                return Ok(AccessPath::OwnerServed);
            }
            // A put that is not waited for is to say when it is there: only a served
            // one does, unless it is there at once.
            if blocking || direction == Direction::Read || !hit.slice().is_null() {
                return Ok(AccessPath::Segment);
            }
            drop(hit);
            return Ok(if self.started().is_some() {
                AccessPath::OwnerServed
            } else {
                AccessPath::Segment
            });
        }
        if target == self.rank() {
            return Ok(AccessPath::OwnerServed);
        }
        self.state()?;
        Ok(self
            .within_reach(target)
            .map_or(AccessPath::OwnerServed, |(node, index)| AccessPath::Cma(node, index)))
    }

    /// # Safety
    /// The local bytes must be valid until the counter is done.
    unsafe fn move_in_segment(
        &self,
        target: usize,
        span: &Span,
        direction: Direction,
        counter: &Arc<CompletionCounter>,
    ) -> Result<()> {
        let shape = Shape::contiguous(span.bytes);
        let local = span.local as *mut u8;
        // SAFETY: passed on from the caller.
        unsafe {
            match direction {
                Direction::Read => {
                    self.issue_by_path(
                        TransferKind::Get,
                        target,
                        span.remote,
                        local,
                        &shape,
                        Some(counter),
                    )?;
                }
                Direction::Write => {
                    self.blocking(TransferKind::Put, target, span.remote, local, &shape)?;
                    self.fence(target)?;
                }
            }
        }
        Ok(())
    }
}

/// Copies between memory that is mapped in this process on both sides.
///
/// # Safety
/// Both sides must be valid.
pub(crate) unsafe fn copy_own(spans: &[Span], direction: Direction) {
    for span in spans {
        let (here, there) = (span.local as *mut u8, span.remote as *mut u8);
        // SAFETY: passed on from the caller.
        unsafe {
            match direction {
                Direction::Read => kernel::copy_block(there, here, span.bytes),
                Direction::Write => kernel::copy_block(here, there, span.bytes),
            }
        }
    }
}
