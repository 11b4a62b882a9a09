//! Transfers from and to any memory of any rank: global variables, stack and heap.
//!
//! **Registered memory** can be withdrawn by its owner ([`crate::memory::registered`]). Another
//! rank copies it without the owner only while the node's table permits this. Otherwise the owner
//! copies, and checks its own registrations.
//!
//! Bytes inside a segment take the path of the segment. Other bytes of a rank on the same node are
//! copied with `process_vm_readv` and `process_vm_writev` ([`crate::path::cma`]) if the system
//! permits this (determined at first use; `PORTOLAN_CROSS_MEMORY=off` disables it). For long
//! transfers the owner helps while it waits ([`crate::am::cooperative_copy`]). In all other cases
//! active messages, which must be started, ask the owner's progress engine (`owner_served`). An
//! address that the owner has not mapped is an error and harms no process.

mod owner_served;

use crate::am::Am;
use crate::am::shm_transport::ShmTransport;
use crate::core::peer::CompletionCounter;
use crate::memory::registered::{self, Table};
pub use crate::memory::runs::{Direction, Span};
use crate::path::kernel;
use crate::path::ops::{Transfer, TransferKind};
use portolan_base::error::{Result, fail};
use portolan_base::layout::Shape;
use portolan_base::trace::{Awaited, Call, CallInfo, Cause, PathTaken};
use portolan_base::wait::Progress as _;
use std::sync::Arc;

#[derive(Debug, Clone, Copy)]
pub struct Within {
    /// 0 for any memory.
    pub id: u64,
    /// Index in the node's table plus one, or 0 without an entry.
    pub place: u32,
}

impl Within {
    const ANYTHING: Within = Within { id: 0, place: 0 };
}

#[derive(Debug, Clone, Copy)]
struct Wants {
    within: Within,
    alone: bool,
    waits: bool,
}

const ANY: Wants = Wants { within: Within::ANYTHING, alone: true, waits: false };
const AWAITED: Wants = Wants { waits: true, ..ANY };

enum AccessPath<'a> {
    /// The path of the segment.
    Segment { mapped: bool },
    /// The kernel copies between the processes. The number is the rank on the node.
    Cma(&'a ShmTransport, usize),
    /// The owner copies.
    OwnerServed,
}

impl Am {
    /// Copies bytes from or to any memory of `target`. The bytes are in place on return. Fails with
    /// `Rank` if `target` is out of range, `Argument` for a null address with a nonzero length,
    /// `Address` if the target has not mapped the memory, and `State` if this needs active messages
    /// that were not started.
    ///
    /// # Safety
    /// The local bytes must be valid: for writes in a read, else for reads. No code at the target
    /// may rely on unchanged bytes that are written.
    pub unsafe fn move_anywhere(
        &self,
        target: usize,
        spans: &[Span],
        direction: Direction,
    ) -> Result<()> {
        let call = if direction == Direction::Put { Call::Put } else { Call::Get };
        // SAFETY: the caller guarantees the memory on both sides, and the call waits.
        let move_all = || unsafe { self.move_spans(target, spans, direction) };
        self.observed(|| self.call_info_of_spans(call, target, spans), move_all)
    }

    /// Starts [`Am::move_anywhere`]. `counter` counts each part that is not complete on
    /// return, until its bytes are in place, and receives errors that are found later.
    ///
    /// # Safety
    /// See [`Am::move_anywhere`]; this must hold until the counter is done.
    pub unsafe fn start_anywhere(
        &self,
        target: usize,
        spans: &[Span],
        direction: Direction,
        counter: &Arc<CompletionCounter>,
    ) -> Result<()> {
        let call = if direction == Direction::Put { Call::PutNb } else { Call::GetNb };
        // SAFETY: the caller guarantees the memory on both sides until the counter is done.
        let start = || unsafe { self.start_spans(target, spans, direction, counter, ANY) };
        self.observed(|| self.call_info_of_spans(call, target, spans), start)
    }

    fn call_info_of_spans(&self, call: Call, target: usize, spans: &[Span]) -> CallInfo {
        let inside = spans.first().map(|span| self.path_to(TransferKind::Put, target, span.remote));
        let path = match inside {
            None => PathTaken::None,
            Some(PathTaken::None) if self.topology.same_node(target, self.rank()) => PathTaken::Cma,
            Some(PathTaken::None) => PathTaken::Message,
            Some(path) => path,
        };
        let bytes = spans.iter().map(|span| span.bytes).sum();
        CallInfo { blocks: spans.len(), ..CallInfo::new(call).to(target).moves(bytes).by(path) }
    }

    /// # Safety
    /// See [`Am::move_anywhere`].
    unsafe fn move_spans(&self, target: usize, spans: &[Span], direction: Direction) -> Result<()> {
        self.may_wait_for(target, spans, direction)?;
        let counter = Arc::new(CompletionCounter::default());
        // SAFETY: the caller guarantees the memory, and this waits for the counter.
        let started = unsafe { self.start_spans(target, spans, direction, &counter, AWAITED) };
        let what = || format!("{} spans of memory of rank {target}", spans.len());
        self.complete(Awaited::of(Cause::Handle, target), &what, &counter)?;
        started
    }

    /// Where waits are not allowed, transfers that cannot complete at once fail with `State`.
    pub fn may_wait_for(&self, target: usize, spans: &[Span], direction: Direction) -> Result<()> {
        let Err(refusal) = self.may_wait() else { return Ok(()) };
        self.check_rank(target)?;
        for span in spans.iter().filter(|s| s.bytes > 0) {
            match self.access_path(target, span, direction, AWAITED)? {
                AccessPath::Segment { mapped: true } | AccessPath::Cma(..) => (),
                AccessPath::OwnerServed if target == self.rank() => (),
                _ => return Err(refusal),
            }
        }
        Ok(())
    }

    /// Starts to move bytes from or to a memory registration of `target`. If this rank may copy
    /// without the owner, `borrowed` is called first, and returns true if it copied the bytes
    /// itself. `digest` returns the digest of the description of the registration, whose owner has
    /// the given index in the table. Fails as [`Am::start_anywhere`], and with `Handle`
    /// if the memory was withdrawn, which the counter may receive instead.
    ///
    /// # Safety
    /// See [`Am::start_anywhere`].
    pub unsafe fn start_registered(
        &self,
        target: usize,
        spans: &[Span],
        direction: Direction,
        (within, counter): (Within, &Arc<CompletionCounter>),
        digest: impl FnOnce(&Table, usize) -> u64,
        borrowed: impl FnOnce() -> bool,
    ) -> Result<()> {
        if within.id == 0 {
            fail!(Handle, "the description of the memory has no registration number");
        }
        let index =
            self.state()?.node.as_ref().and_then(|node| Some((node, node.index_of(target)?)));
        let copying = match index {
            Some((node, index)) if within.place > 0 => {
                let table = node.registrations();
                table.begin(index, within.place - 1, within.id, digest(table, index))?
            }
            _ => None,
        };
        if copying.is_some() && borrowed() {
            return Ok(());
        }
        // Without an entry in the table, the owner checks, and here this rank is the owner.
        let _inside = match copying.is_none() && target == self.rank() {
            true => {
                let runs = spans.iter().map(Span::remote_run);
                Some(registered::enter(within.id, direction, runs)?)
            }
            false => None,
        };
        let wants = Wants { within, alone: copying.is_some(), waits: false };
        // SAFETY: the caller guarantees the memory on both sides until the counter is done.
        unsafe { self.start_spans(target, spans, direction, counter, wants) }
    }

    /// # Safety
    /// See [`Am::start_anywhere`].
    unsafe fn start_spans(
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
                fail!(Argument, "null {side} address for a transfer of {} bytes", span.bytes);
            }
        }
        let mut rest = spans;
        while let Some(first) = rest.first() {
            if first.bytes == 0 {
                rest = &rest[1..];
                continue;
            }
            let path = self.access_path(target, first, direction, wants)?;
            let n = match path {
                AccessPath::Segment { .. } => 1,
                _ => {
                    let runs = rest[1..].iter().take_while(|span| span.bytes > 0);
                    1 + self.memory.registry.outside(target, runs.map(Span::remote_run))
                }
            };
            let (part, after) = rest.split_at(n);
            // SAFETY: the caller guarantees the memory on both sides until the counter is done.
            unsafe {
                match path {
                    AccessPath::Segment { .. } => {
                        self.move_in_segment(target, first, direction, counter)?
                    }
                    AccessPath::Cma(node, index) => {
                        self.cma_transfer(node, index, part, direction)?
                    }
                    AccessPath::OwnerServed if target == self.rank() => {
                        kernel::copy_spans(part.iter().copied(), direction);
                    }
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
            // Network transfers go through the owner, which must be able to withdraw the memory.
            if within.id != 0 && hit.region().is_null() {
                return Ok(AccessPath::OwnerServed);
            }
            // A nonblocking put must report when its bytes are at the target, as the owner's answer
            // does. Except for direct stores, the path of the segment needs a blocking fence for
            // this, so it is used only if active messages are not started.
            let mapped = !hit.region().is_null();
            drop(hit);
            // It may also have to wait for earlier operations by another path.
            let may_block = || (blocking || direction == Direction::Get) && self.may_wait().is_ok();
            return Ok(match mapped || self.started().is_none() || may_block() {
                true => AccessPath::Segment { mapped },
                false => AccessPath::OwnerServed,
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
        let kind = match direction {
            Direction::Get => TransferKind::Get,
            Direction::Put => TransferKind::Put,
        };
        let (remote, local) = (span.remote, span.local as *mut u8);
        let shape = &Shape::contiguous(span.bytes);
        let transfer = Transfer { kind, target, remote, local, shape };
        // SAFETY: the caller guarantees the local bytes until the counter is done.
        unsafe {
            match direction {
                Direction::Get => self.issue_by_path(&transfer, Some(counter)).map(drop),
                Direction::Put => {
                    self.blocking(&transfer)?;
                    self.fence(target)
                }
            }
        }
    }
}
