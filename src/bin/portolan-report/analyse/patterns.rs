//! What a rank does again and again that costs time: short transfers one by one, a fence after
//! each put, allocation in a loop, strided transfers with short runs, targets that are behind.
//!
//! Each is counted where it is beyond doubt, and what speaks for the program ends the count: a
//! burst of transfers ends at what orders them, a row of fences at what another rank may see.

use crate::model::{Span, What};
use portolan::internals::trace::kinds::{Call, Cause, PathTaken};
use std::collections::HashMap;

/// Transfers up to this size gain by travelling together.
pub const SMALL: u64 = 512;
/// Runs of strided transfers that are shorter than this cost more than their bytes.
pub const SHORT_RUN: u64 = 128;
/// Fewer in a row are no pattern.
const ROW: u64 = 8;
/// Bytes of an aggregated message, with what an item takes beside its own.
const MESSAGE: u64 = 64 << 10;
const ITEM: u64 = 32;

/// Something that was found again and again.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    pub count: u64,
    pub ns: u64,
    pub bytes: u64,
    /// What it could be without, in nanoseconds.
    pub saved: f64,
    /// Where it was worst: how much, and the time.
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

#[derive(Debug, Default, Clone, Copy)]
struct Burst {
    count: u64,
    ns: u64,
    bytes: u64,
    from: u64,
    to: u64,
}

#[derive(Debug, Default)]
struct Fences {
    puts: u64,
    fences: u64,
    ns: u64,
    from: u64,
    to: u64,
    /// Words, and longer puts: both mean data and a flag behind it.
    words: bool,
    longer: bool,
}

/// The patterns of one rank.
#[derive(Debug, Default)]
pub struct Patterns {
    /// Short transfers by target.
    pub small: HashMap<u32, Tally>,
    /// The largest part of them: a call's number, for words.
    pub small_calls: HashMap<(Call, PathTaken), u64>,
    pub fences: Tally,
    pub to_all: u64,
    pub allocations: Tally,
    /// Allocations after something was freed.
    pub again: u64,
    /// Strided transfers with short runs, by path.
    pub strided: HashMap<PathTaken, Tally>,
    pub strided_blocks: u64,
    /// Waiting for a target that is behind.
    pub room: HashMap<u32, Tally>,
    bursts: HashMap<u32, Burst>,
    row: Fences,
    freed: bool,
}

impl Patterns {
    /// Takes a span of the program's thread.
    pub fn take(&mut self, span: &Span) {
        match span.what {
            What::Call(call) => {
                self.burst(call, span);
                self.fence(call, span);
                self.allocation(call, span);
                self.stride(call, span);
            }
            What::Wait(Cause::Credit | Cause::Ring) => {
                if let Some(peer) = span.peer {
                    let to = self.room.entry(peer).or_default();
                    to.add(1, span.length(), 0, span.length() as f64, (span.begin, span.end));
                }
            }
            _ => {}
        }
    }

    fn burst(&mut self, call: Call, span: &Span) {
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
                burst.count += span.weight;
                burst.ns += span.length() * span.weight;
                burst.bytes += span.bytes * span.weight;
                burst.to = span.end;
                *self.small_calls.entry((call, span.path)).or_default() += span.weight;
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
        // As many fit into one message; each then costs what one transfer costs now.
        let messages = (burst.count * (burst.bytes / burst.count + ITEM)).div_ceil(MESSAGE);
        let saved = burst.ns as f64 * (1.0 - messages as f64 / burst.count as f64);
        let to = self.small.entry(peer).or_default();
        to.add(burst.count, burst.ns, burst.bytes, saved, (burst.from, burst.to));
    }

    fn end_bursts(&mut self) {
        let peers: Vec<u32> = self.bursts.keys().copied().collect();
        peers.into_iter().for_each(|peer| self.end_burst(peer));
    }

    fn fence(&mut self, call: Call, span: &Span) {
        let row = &mut self.row;
        match call {
            Call::Put | Call::PutNb | Call::Acc | Call::AccNb => {
                row.puts += span.weight;
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
            // Neither moves anything that others see, nor waits for them.
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

    fn allocation(&mut self, call: Call, span: &Span) {
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

    fn stride(&mut self, call: Call, span: &Span) {
        let moves = matches!(
            call,
            Call::Put | Call::PutNb | Call::Get | Call::GetNb | Call::Acc | Call::AccNb
        );
        if !moves || span.blocks < 2 || span.bytes / span.blocks >= SHORT_RUN {
            return;
        }
        let to = self.strided.entry(span.path).or_default();
        let ns = span.length() * span.weight;
        to.add(span.weight, ns, span.bytes * span.weight, 0.0, (span.begin, span.end));
        self.strided_blocks += span.blocks * span.weight;
    }

    /// At the end of a rank's events.
    pub fn end(&mut self) {
        self.end_bursts();
        self.end_row();
    }
}
