//! The log of one thread: its counters, and its events in memory, which the writer empties.
//!
//! The memory is a ring of chunks. The thread appends each event to its current chunk and publishes
//! it with one store. When the chunk is full, the thread continues with the next one. If the writer
//! has not yet emptied it, the thread drops the event and counts it, so it never waits. The writer
//! takes full chunks, and also the published part of the current one.
//!
//! **Invariants.** Only the thread whose number the log holds records in it
//! ([`crate::thread::this_thread`]). The bytes of a chunk below the published length do not change
//! until the writer has released the chunk.

use super::call_site::CallSites;
use super::counters::Counters;
use portolan_trace_format::event::{Encoder, Event, MAX_EVENT};
use portolan_trace_format::format::Role;
use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

/// Bytes of a chunk, which becomes one or several blocks of the file.
const CHUNK: usize = 64 << 10;
/// Chunks per thread, which bound its lead over the writer.
const CHUNKS: usize = 32;

#[derive(Debug, Default)]
struct Published {
    /// Bytes in the lower half, number of events in the upper half.
    committed: AtomicU64,
    /// End times of the last two events, indexed by the parity of the number of events, so that the
    /// time that belongs to `committed` stays unchanged while the next event is written.
    last: [AtomicU64; 2],
    /// The time that the chunk's first event is relative to.
    first: AtomicU64,
}

#[derive(Debug, Clone, Copy)]
pub struct Taken<'a> {
    pub bytes: &'a [u8],
    pub events: u32,
    pub first_time: u64,
    pub last_time: u64,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct LogPlace {
    chunk: usize,
    bytes: usize,
    events: u32,
    last: u64,
}

/// The part of a segment that the thread's last call with a place accessed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LastBlock {
    /// Number of segments freed before the lookup.
    pub freed: u64,
    pub target: usize,
    pub start: usize,
    pub end: usize,
    pub segment: u64,
}

pub struct ThreadLog {
    pub thread: usize,
    pub number: u32,
    pub role: Role,
    pub counters: Counters,
    pub(super) depth: Cell<u32>,
    pub(super) last_block: Cell<LastBlock>,
    pub(super) sites: CallSites,
    /// The thread is in a collective call, whose waits are recorded as one.
    pub(super) meeting: Cell<bool>,
    /// Number of calls until the next timed one, and the generator's state that chooses it.
    pub(super) untimed: Cell<u32>,
    pub(super) dice: Cell<u32>,
    memory: UnsafeCell<Box<[u8]>>,
    chunks: [Published; CHUNKS],
    /// Chunks that the thread has filled, and that the writer has released.
    filled: AtomicUsize,
    released: AtomicUsize,
    dropped: AtomicU64,
    encoder: Cell<Encoder>,
    at: Cell<usize>,
    events: Cell<u32>,
}

// SAFETY: only the thread of the log accesses the cells and the memory beyond the published length.
// The writer reads only published bytes. Other fields are atomic or constant.
unsafe impl Sync for ThreadLog {}

impl std::fmt::Debug for ThreadLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ThreadLog").field("number", &self.number).finish_non_exhaustive()
    }
}

impl ThreadLog {
    /// For the calling thread, with space for events only if `traces`.
    pub fn new(number: u32, role: Role, now: u64, traces: bool) -> ThreadLog {
        let log = ThreadLog {
            thread: crate::thread::this_thread(),
            number,
            role,
            counters: Counters::default(),
            depth: Cell::new(0),
            last_block: Cell::default(),
            sites: CallSites::new(traces),
            meeting: Cell::new(false),
            untimed: Cell::new(0),
            dice: Cell::new(number.wrapping_mul(0x9e37_79b9) | 1),
            // The kernel allocates these pages when they are touched.
            memory: UnsafeCell::new(vec![0; if traces { CHUNK * CHUNKS } else { 0 }].into()),
            chunks: std::array::from_fn(|_| Published::default()),
            filled: AtomicUsize::new(0),
            released: AtomicUsize::new(0),
            dropped: AtomicU64::new(0),
            encoder: Cell::new(Encoder::new(now)),
            at: Cell::new(0),
            events: Cell::new(0),
        };
        log.chunks[0].first.store(now, Ordering::Relaxed);
        log.chunks[0].last[0].store(now, Ordering::Relaxed);
        log
    }

    /// Or drops and counts it. Returns true if a chunk is full: the caller wakes the writer.
    #[inline(always)]
    pub fn record(&self, event: &Event<'_>) -> bool {
        let mut full = false;
        if self.at.get() + MAX_EVENT > CHUNK {
            if !self.next_chunk() {
                self.drop_one();
                return false;
            }
            full = true;
        }
        let index = self.filled.load(Ordering::Relaxed) % CHUNKS;
        let (at, mut encoder) = (self.at.get(), self.encoder.get());
        // SAFETY: only this thread writes beyond the published length. `MAX_EVENT` bytes are left.
        let room = unsafe {
            let memory = (*self.memory.get()).as_mut_ptr();
            std::slice::from_raw_parts_mut(memory.add(index * CHUNK + at), MAX_EVENT)
        };
        let at = at + encoder.put(event, room);
        let events = self.events.get() + 1;
        let chunk = &self.chunks[index];
        chunk.last[events as usize & 1].store(encoder.last(), Ordering::Relaxed);
        chunk.committed.store(at as u64 | u64::from(events) << 32, Ordering::Release);
        self.encoder.set(encoder);
        self.at.set(at);
        self.events.set(events);
        full
    }

    /// Times about one in thirty short calls, at random distances, because programs repeat.
    #[inline(always)]
    pub(super) fn is_turn(&self) -> bool {
        let untimed = self.untimed.get();
        if untimed == 0 {
            self.next_turn();
            return true;
        }
        self.untimed.set(untimed - 1);
        false
    }

    #[cold]
    fn next_turn(&self) {
        let mut dice = self.dice.get();
        dice ^= dice << 13;
        dice ^= dice >> 17;
        dice ^= dice << 5;
        self.dice.set(dice);
        self.untimed.set(dice % 61);
    }

    #[cold]
    pub(crate) fn drop_one(&self) {
        let dropped = self.dropped.load(Ordering::Relaxed);
        self.dropped.store(dropped + 1, Ordering::Relaxed);
    }

    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Returns false if the log holds no events, or the writer has not emptied the next chunk.
    #[cold]
    fn next_chunk(&self) -> bool {
        let filled = self.filled.load(Ordering::Relaxed);
        let memory = self.memory.get();
        // SAFETY: the box and its length never change, unlike its bytes.
        let traces = unsafe { !(&*memory).is_empty() };
        if !traces || filled + 1 - self.released.load(Ordering::Acquire) >= CHUNKS {
            return false;
        }
        let next = &self.chunks[(filled + 1) % CHUNKS];
        let last = self.encoder.get().last();
        next.first.store(last, Ordering::Relaxed);
        next.last[0].store(last, Ordering::Relaxed);
        next.committed.store(0, Ordering::Relaxed);
        self.at.set(0);
        self.events.set(0);
        self.filled.store(filled + 1, Ordering::Release);
        true
    }

    /// Passes the events published after `place`, and advances it. Only for the writer.
    pub fn take(&self, place: &mut LogPlace, mut with: impl FnMut(Taken<'_>)) {
        loop {
            let filled = self.filled.load(Ordering::Acquire);
            let whole = place.chunk < filled;
            let index = place.chunk % CHUNKS;
            let chunk = &self.chunks[index];
            let Some((committed, last)) = snapshot(chunk, whole) else { return };
            let (bytes, events) = (committed as u32 as usize, (committed >> 32) as u32);
            if bytes > place.bytes {
                let first = chunk.first.load(Ordering::Relaxed);
                let first_time = if place.bytes == 0 { first } else { place.last };
                // SAFETY: these bytes are published and do not change before the chunk is released.
                let bytes_here = unsafe {
                    let memory = (*self.memory.get()).as_ptr();
                    let from = memory.add(index * CHUNK + place.bytes);
                    std::slice::from_raw_parts(from, bytes - place.bytes)
                };
                let events_here = events - place.events;
                with(Taken { bytes: bytes_here, events: events_here, first_time, last_time: last });
                (place.bytes, place.events, place.last) = (bytes, events, last);
            }
            if !whole {
                return;
            }
            *place = LogPlace { chunk: place.chunk + 1, ..LogPlace::default() };
            self.released.store(place.chunk, Ordering::Release);
        }
    }
}

/// Returns the published length and number of events of a chunk, and the end time of its last
/// event, or `None` if the thread publishes too fast to read them consistently: it is soon full.
fn snapshot(chunk: &Published, whole: bool) -> Option<(u64, u64)> {
    for _ in 0..8 {
        let committed = chunk.committed.load(Ordering::Acquire);
        let last = chunk.last[(committed >> 32) as usize & 1].load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        if whole || chunk.committed.load(Ordering::Relaxed) == committed {
            return Some((committed, last));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use portolan_trace_format::event::Events;

    fn mark(time: u64) -> Event<'static> {
        Event::Mark { time, string: time }
    }

    fn events_of(taken: Taken<'_>) -> Vec<u64> {
        let events = Events::new(taken.bytes, taken.first_time).map(|event| match event {
            Ok(Event::Mark { time, string }) if time == string => time,
            other => panic!("{other:?}"),
        });
        let all: Vec<u64> = events.collect();
        assert_eq!(all.len(), taken.events as usize);
        assert_eq!(all.last(), Some(&taken.last_time));
        all
    }

    #[test]
    fn what_is_dropped_is_counted_and_the_rest_comes_out_whole() {
        let log = ThreadLog::new(0, Role::Program, 1000, true);
        let mut place = LogPlace::default();
        let (mut seen, mut recorded) = (Vec::new(), 0u64);
        log.take(&mut place, |_| panic!("nothing is there"));
        for _ in 0..3 {
            // More events than the ring holds, while the writer takes none.
            for _ in 0..1_000_000 {
                log.record(&mark(2000 + recorded));
                recorded += 1;
            }
            log.take(&mut place, |taken| seen.extend(events_of(taken)));
        }
        assert!(log.dropped() > 0);
        assert_eq!(seen.len() as u64 + log.dropped(), recorded);
        assert!(seen.is_sorted());
    }

    #[test]
    fn a_chunk_that_is_being_filled_is_taken_part_by_part() {
        let log = ThreadLog::new(0, Role::Program, 7, true);
        let mut place = LogPlace::default();
        let mut seen = Vec::new();
        for time in 0..20_000 {
            log.record(&mark(time));
            if time % 7 == 0 {
                log.take(&mut place, |taken| seen.extend(events_of(taken)));
            }
        }
        log.take(&mut place, |taken| seen.extend(events_of(taken)));
        assert_eq!(seen, (0..20_000).collect::<Vec<_>>());
    }

    #[test]
    fn a_thread_records_while_another_one_takes() {
        const ALL: u64 = 2_000_000;
        let log = std::sync::Arc::new(std::sync::OnceLock::new());
        let recorder = log.clone();
        let thread = std::thread::spawn(move || {
            let log: &ThreadLog =
                recorder.get_or_init(|| ThreadLog::new(0, Role::Program, 0, true));
            for time in 0..ALL {
                log.record(&mark(time));
            }
        });
        let log: &ThreadLog = loop {
            match log.get() {
                Some(log) => break log,
                None => std::thread::yield_now(),
            }
        };
        let (mut place, mut seen, mut last) = (LogPlace::default(), 0, None);
        loop {
            let ended = thread.is_finished();
            log.take(&mut place, |taken| {
                for time in events_of(taken) {
                    assert!(last < Some(time));
                    last = Some(time);
                    seen += 1;
                }
            });
            if ended {
                break;
            }
            std::thread::yield_now();
        }
        thread.join().expect("it ends");
        assert_eq!(seen + log.dropped(), ALL);
    }
}
