//! Calls and requests that are being recorded, from their begin to their end.

use super::call_info::CallInfo;
use super::interface;
use super::log::{LastBlock, ThreadLog};
use super::observer::Recording;
use portolan_trace_format::event::{Event, Place};
use portolan_trace_format::kinds::{Call, Cause, MpiCall, PathTaken, Served};
use std::ops::Range;

/// A call that is being recorded, until this is dropped.
#[derive(Debug)]
pub struct Entered<'a> {
    pub(super) running: &'a Recording,
    pub(super) log: &'a ThreadLog,
    pub(super) outer: bool,
    pub(super) timed: bool,
    pub(super) begun: u64,
}

impl Entered<'_> {
    /// `find` looks up the segment and its address range. The thread caches the last result until a
    /// segment is freed; `freed` counts the freed ones.
    pub fn place(
        &self,
        freed: u64,
        (target, address): (usize, usize),
        find: impl FnOnce() -> Option<(u64, Range<usize>)>,
    ) -> Option<Place> {
        let mut last = self.log.last_block.get();
        if (last.freed, last.target) != (freed, target)
            || !(last.start..last.end).contains(&address)
        {
            let (segment, Range { start, end }) = find()?;
            last = LastBlock { freed, target, start, end, segment };
            self.log.last_block.set(last);
        }
        Some(Place { segment: Some(last.segment), offset: (address - last.start) as u64 })
    }

    pub fn since(mut self, begun: Option<u64>) -> Self {
        self.begun = begun.unwrap_or(self.begun);
        self
    }

    pub fn counts(&self) -> bool {
        self.outer
    }

    pub fn leave(self, call_info: &CallInfo) {
        if let Some(ticks) = self.count(call_info.call, call_info.path, call_info.bytes) {
            self.record(call_info, ticks);
        }
    }

    /// Records the end of a call. `call_info` runs only if a trace is written.
    #[inline(always)]
    pub fn leave_by(
        self,
        call: Call,
        path: PathTaken,
        bytes: usize,
        call_info: impl FnOnce(&Self) -> CallInfo,
    ) {
        if let Some(ticks) = self.count(call, path, bytes) {
            self.record(&call_info(&self), ticks);
        }
    }

    /// Counts the call if it is the outermost one. Returns its length if a trace is written.
    #[inline(always)]
    fn count(&self, call: Call, path: PathTaken, bytes: usize) -> Option<u64> {
        if !self.outer {
            return None;
        }
        let running = self.running;
        let ticks = if self.timed { running.clock.ticks().saturating_sub(self.begun) } else { 0 };
        self.log.counters.call(call, path, bytes as u64, self.timed.then_some(ticks));
        running.settings.traces.then_some(ticks)
    }

    /// Is inlined, so that the stack has one return address fewer to compare.
    #[inline(always)]
    fn record(&self, call_info: &CallInfo, ticks: u64) {
        let running = self.running;
        let Some((begin, duration)) = running.span(self.log, self.begun, ticks) else { return };
        let site = self.site(call_info.call as usize);
        let event = Event::Call {
            begin,
            duration,
            call: call_info.call,
            interface: interface::current(),
            path: call_info.path,
            peer: call_info.peer.map(|peer| peer as u32),
            bytes: call_info.bytes as u64,
            blocks: call_info.blocks as u64,
            place: call_info.place,
            site,
        };
        running.put(self.log, &event);
    }

    #[inline(always)]
    fn site(&self, kind: usize) -> Option<u64> {
        match crate::process::caller() {
            Some(line) => self.running.line(&line, None),
            None => self.log.sites.find(kind, &|chain| self.running.site(chain)),
        }
    }

    /// Records an MPI call of the program, which counts as a wait. `call_info` returns the peer,
    /// the bytes, and the number of the communicator.
    pub fn leave_mpi(self, call: MpiCall, call_info: impl FnOnce() -> (Option<u32>, u64, u64)) {
        if !self.outer {
            return;
        }
        let running = self.running;
        let ticks = running.clock.ticks().saturating_sub(self.begun);
        let (peer, bytes, communicator) = call_info();
        self.log.counters.wait(Cause::Mpi, peer, ticks);
        if running.settings.traces
            && let Some((begin, duration)) = running.span(self.log, self.begun, ticks)
        {
            let site = self.site(call as usize);
            let event = Event::Mpi { begin, duration, call, peer, bytes, communicator, site };
            running.put(self.log, &event);
        }
    }
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        self.log.depth.set(self.log.depth.get() - 1);
    }
}

#[derive(Debug)]
pub struct Serving<'a> {
    pub(super) running: &'a Recording,
    pub(super) log: &'a ThreadLog,
    pub(super) depth: u32,
    pub(super) begun: u64,
}

impl Serving<'_> {
    /// `polled` is this rank's previous poll, in ticks, since when the request waited at most.
    pub fn end(self, kind: Served, origin: Option<usize>, bytes: usize, polled: Option<u64>) {
        let ticks = self.running.clock.ticks().saturating_sub(self.begun);
        let waited = polled.map(|polled| self.begun.saturating_sub(polled));
        self.log.counters.served(kind, bytes as u64, ticks, waited);
        self.running.record(self.log, self.begun, ticks, |begin, duration| Event::Served {
            begin,
            duration,
            kind,
            origin: origin.map(|origin| origin as u32),
            bytes: bytes as u64,
            waited: waited.map(|waited| self.running.clock.length(waited)),
        });
    }
}

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        self.log.depth.set(self.depth);
    }
}
