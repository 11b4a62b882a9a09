//! Repeated access patterns of a rank that cost time: individual short transfers, a fence after
//! each put, allocation in a loop, strided transfers with short runs, and targets that are behind.
//!
//! A pattern is counted only if it is unambiguous, and anything that justifies it ends the count. A
//! burst of transfers ends at a call that orders them, and a series of fences ends at a call that
//! another rank may observe.

use super::critical::LONG;
use crate::model::{Activity, MpiPeers, TraceSpan};
use portolan_trace_format::kinds::{Call, Cause, PathTaken};
use std::collections::HashMap;

/// Maximum size in bytes of a transfer that gains from aggregation.
pub const SMALL: u64 = 512;
/// Runs of strided transfers shorter than this, in bytes, cost more than their bytes.
pub const SHORT_RUN: u64 = 128;
/// Minimum number of repetitions that make a pattern.
const ROW: u64 = 8;
/// Bytes of an aggregated message. `ITEM` is the overhead of each item in it.
const MESSAGE: u64 = 64 << 10;
const ITEM: u64 = 32;

/// Longer transfers between a rank and one target.
#[derive(Debug, Clone, Copy)]
pub struct Large {
    pub tally: Tally,
    pub first: u64,
    pub last: u64,
}

/// Totals of one pattern. Times are nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    pub count: u64,
    pub ns: u64,
    pub bytes: u64,
    /// Time that could be saved, in nanoseconds.
    pub saved: f64,
    /// The worst occurrence: its cost, start and end.
    pub peak: (u64, u64, u64),
}

impl Tally {
    fn add(&mut self, count: u64, ns: u64, bytes: u64, saved: f64, (from, to): (u64, u64)) {
        self.count += count;
        self.ns += ns;
        self.bytes += bytes;
        self.saved += saved;
        self.peak = self.peak.max((ns, from, to));
    }

    pub fn merge(&mut self, other: &Tally) {
        self.count += other.count;
        self.ns += other.ns;
        self.bytes += other.bytes;
        self.saved += other.saved;
        self.peak = self.peak.max(other.peak);
    }
}

pub fn is_transfer(call: Call) -> bool {
    matches!(call, Call::Put | Call::PutNb | Call::Get | Call::GetNb | Call::Acc | Call::AccNb)
}

#[derive(Debug, Default)]
struct Burst {
    count: u64,
    ns: u64,
    bytes: u64,
    from: u64,
    to: u64,
    calls: HashMap<(Call, PathTaken), u64>,
}

#[derive(Debug, Default)]
struct Fences {
    puts: u64,
    fences: u64,
    ns: u64,
    from: u64,
    to: u64,
    /// Whether there were puts of at most 8 bytes, and longer puts. Both together suggest data
    /// followed by a flag, which needs the fences.
    words: bool,
    longer: bool,
}

#[derive(Debug, Default)]
pub struct Patterns {
    /// Short transfers by target.
    pub small: HashMap<u32, Tally>,
    /// Number of short transfers by call and path. The finding names them.
    pub small_calls: HashMap<(Call, PathTaken), u64>,
    /// Longer transfers by target and call site.
    pub large: HashMap<(u32, Option<u32>), Large>,
    pub fences: Tally,
    pub to_all: u64,
    pub allocations: Tally,
    /// Number of allocations that follow a free.
    pub again: u64,
    /// Strided transfers with short runs, by path.
    pub strided: HashMap<PathTaken, Tally>,
    pub strided_blocks: u64,
    /// Long calls of the program that receive an MPI message, by its source.
    pub received: HashMap<u32, Tally>,
    /// Waits for a target that is behind, by target.
    pub room: HashMap<u32, Tally>,
    /// Longer non-blocking transfers without a wait yet, by target.
    started: HashMap<u32, u64>,
    bursts: HashMap<u32, Burst>,
    row: Fences,
    freed: bool,
}

impl Patterns {
    pub fn take(&mut self, span: &TraceSpan) {
        match span.what {
            Activity::Call(call) => {
                self.burst(call, span);
                self.fence(call, span);
                self.allocation(call, span);
                self.stride(call, span);
                self.longer(call, span);
            }
            Activity::Wait(Cause::Handle) => {
                let started = span.peer.and_then(|peer| self.started.get_mut(&peer));
                if let Some(started) = started.filter(|started| **started > 0) {
                    *started -= 1;
                    self.add_large(span);
                }
            }
            Activity::Mpi(call) => {
                if MpiPeers::of(call) == MpiPeers::Source
                    && span.length() >= LONG
                    && let Some(peer) = span.peer
                {
                    let to = self.received.entry(peer).or_default();
                    to.add(1, span.length(), span.bytes, 0.0, (span.begin, span.end));
                }
            }
            Activity::Wait(Cause::Credit | Cause::Ring) => {
                if let Some(peer) = span.peer {
                    let to = self.room.entry(peer).or_default();
                    to.add(1, span.length(), 0, span.length() as f64, (span.begin, span.end));
                }
            }
            _ => {}
        }
    }

    fn burst(&mut self, call: Call, span: &TraceSpan) {
        match call {
            Call::Put
            | Call::PutNb
            | Call::Acc
            | Call::AccNb
            | Call::Get
            | Call::GetNb
            | Call::Send => {
                let Some(peer) = span.peer else { return };
                if span.bytes > SMALL || !span.travels() || span.bytes == 0 {
                    return;
                }
                let burst = self
                    .bursts
                    .entry(peer)
                    .or_insert(Burst { from: span.begin, ..Burst::default() });
                burst.count += 1;
                burst.ns += span.length();
                burst.bytes += span.bytes;
                burst.to = span.end;
                *burst.calls.entry((call, span.path)).or_default() += 1;
            }
            Call::Fence | Call::Notify => {
                if let Some(peer) = span.peer {
                    self.end_burst(peer);
                }
            }
            Call::FenceAll
            | Call::Barrier
            | Call::Lock
            | Call::Unlock
            | Call::Reduce
            | Call::Exchange
            | Call::Quiesce => self.end_bursts(),
            _ => {}
        }
    }

    fn end_burst(&mut self, peer: u32) {
        let Some(burst) = self.bursts.remove(&peer) else { return };
        if burst.count < ROW {
            return;
        }
        // An aggregated message is assumed to cost what one transfer costs now.
        let messages = (burst.count * (burst.bytes / burst.count + ITEM)).div_ceil(MESSAGE);
        let saved = burst.ns as f64 * (1.0 - messages as f64 / burst.count as f64);
        let to = self.small.entry(peer).or_default();
        to.add(burst.count, burst.ns, burst.bytes, saved, (burst.from, burst.to));
        for (key, n) in burst.calls {
            *self.small_calls.entry(key).or_default() += n;
        }
    }

    fn end_bursts(&mut self) {
        let peers: Vec<u32> = self.bursts.keys().copied().collect();
        peers.into_iter().for_each(|peer| self.end_burst(peer));
    }

    fn fence(&mut self, call: Call, span: &TraceSpan) {
        let row = &mut self.row;
        match call {
            Call::Put | Call::PutNb | Call::Acc | Call::AccNb => {
                row.puts += 1;
                if span.bytes <= 8 {
                    row.words = true;
                } else {
                    row.longer = true;
                }
            }
            Call::Fence | Call::FenceAll => {
                if row.puts > 1 {
                    self.end_row();
                    return;
                }
                if row.fences == 0 {
                    row.from = span.begin;
                }
                row.fences += 1;
                row.ns += span.length();
                row.to = span.end;
                row.puts = 0;
                if call == Call::FenceAll {
                    self.to_all += 1;
                }
            }
            // These calls neither make data visible to other ranks nor wait for them.
            Call::Allocate | Call::Free | Call::Expose | Call::Other => {}
            _ => self.end_row(),
        }
    }

    fn end_row(&mut self) {
        let row = std::mem::take(&mut self.row);
        if row.fences >= ROW && !(row.words && row.longer) {
            let saved = row.ns as f64 * (1.0 - 1.0 / row.fences as f64);
            self.fences.add(row.fences, row.ns, 0, saved, (row.from, row.to));
        }
    }

    fn allocation(&mut self, call: Call, span: &TraceSpan) {
        match call {
            Call::Allocate => {
                if self.freed {
                    self.again += 1;
                }
                self.freed = false;
            }
            Call::Free => self.freed = true,
            _ => return,
        }
        let saved = if self.again > 0 { span.length() as f64 } else { 0.0 };
        let at = (span.begin, span.end);
        self.allocations.add(1, span.length(), span.bytes, saved, at);
    }

    fn stride(&mut self, call: Call, span: &TraceSpan) {
        if !is_transfer(call) || span.blocks < 2 || span.bytes / span.blocks >= SHORT_RUN {
            return;
        }
        let to = self.strided.entry(span.path).or_default();
        to.add(1, span.length(), span.bytes, 0.0, (span.begin, span.end));
        self.strided_blocks += span.blocks;
    }

    fn longer(&mut self, call: Call, span: &TraceSpan) {
        if is_transfer(call) && span.bytes > SMALL {
            self.add_large(span);
            if let (Call::PutNb | Call::GetNb | Call::AccNb, Some(peer)) = (call, span.peer) {
                *self.started.entry(peer).or_default() += 1;
            }
        }
    }

    /// Adds a transfer, or a wait for one that another call has started.
    fn add_large(&mut self, span: &TraceSpan) {
        let Some(peer) = span.peer.filter(|peer| *peer != span.rank) else { return };
        let new = Large { tally: Tally::default(), first: span.begin, last: span.end };
        let to = self.large.entry((peer, span.site)).or_insert(new);
        to.tally.add(
            u64::from(span.bytes > 0),
            span.length(),
            span.bytes,
            0.0,
            (span.begin, span.end),
        );
        to.last = to.last.max(span.end);
    }

    pub fn end(&mut self) {
        self.end_bursts();
        self.end_row();
    }
}
