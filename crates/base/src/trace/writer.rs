//! The thread that writes the trace file of a rank.
//!
//! It wakes twice a second, and whenever a thread has filled a chunk. It writes the recorded events
//! of the logs ([`super::log`]) as blocks, so a killed job loses at most its last half second. The
//! last event of a complete file is `End`. Only this thread ever waits for the disk. While a write
//! makes no progress, threads whose logs are full drop their events and count them.
//!
//! - If the disk is full, or the reader of a pipe is slow, the writer keeps its pending blocks and
//!   tries again later. The file then continues without a gap.
//! - From three quarters of the file's limit on, only events of at least [`LONG_NS`] are kept, and
//!   at the limit none.
//! - The end of the job waits for the disk for at most [`LAST_WRITE`]. The number of events that
//!   are then missing is given in the last block, which replaces the partially written one, and in
//!   a warning.
//!
//! The next block of a thread, or an empty one at the end, gives its number of dropped events.

use super::log::{LogPlace, Taken, ThreadLog};
use super::observer::Recording;
use super::usage;
use crate::thread;
use portolan_trace_format::event::{Encoder, Event, MAX_EVENT};
use portolan_trace_format::format::{self, BlockHeader, MAX_PAYLOAD, Role};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle, Thread};
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_millis(500);
/// Time that the end of the job waits for the disk.
const LAST_WRITE: Duration = Duration::from_secs(5);
/// Shortest event in a nearly full file, in nanoseconds.
const LONG_NS: u64 = 10_000;
/// The thread number in blocks of definitions.
const NO_THREAD: u32 = u32::MAX;
/// Longest text of a string in bytes. Longer texts are truncated.
const MAX_TEXT: usize = 4096;

/// An event of the writer itself.
#[derive(Debug)]
pub(super) enum Definition {
    String { string: u64, text: String },
    Event(Event<'static>),
}

impl Definition {
    fn event(&self) -> Event<'_> {
        match self {
            Definition::String { string, text } => {
                let mut end = text.len().min(MAX_TEXT);
                while !text.is_char_boundary(end) {
                    end -= 1;
                }
                Event::String { string: *string, text: &text[..end] }
            }
            Definition::Event(event) => *event,
        }
    }
}

#[derive(Debug)]
pub(super) struct TraceWriter {
    handle: JoinHandle<()>,
    stop: Arc<AtomicBool>,
}

impl TraceWriter {
    /// Writes `file` from its beginning, or warns and returns `None`.
    pub(super) fn start(
        running: &Arc<Recording>,
        file: File,
        metadata: &str,
    ) -> Option<TraceWriter> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut pending = Vec::new();
        format::encode_file_header(metadata, &mut pending);
        let mut output = Output {
            written: pending.len() as u64,
            pending,
            unwritten: VecDeque::new(),
            file,
            threads: Vec::new(),
            definitions: 0,
            limit: running.settings.limit,
            traced: false,
            broken: false,
        };
        let (running, seen) = (running.clone(), stop.clone());
        let run = move || output.run(&running, &seen);
        let builder = Builder::new().name("portolan-trace".into()).stack_size(256 << 10);
        match thread::spawn(builder, Role::Writer, run) {
            Ok(handle) => Some(TraceWriter { handle, stop }),
            Err(error) => {
                log::warn!(
                    "no trace is written by this rank, because its thread cannot be started: {error}"
                );
                None
            }
        }
    }

    pub(super) fn thread(&self) -> Thread {
        self.handle.thread().clone()
    }

    /// Stops the thread after it has written everything, or warns if the disk makes no progress.
    pub(super) fn stop(self) {
        self.stop.store(true, Ordering::Release);
        self.handle.thread().unpark();
        let begun = Instant::now();
        while !self.handle.is_finished() {
            if begun.elapsed() > LAST_WRITE * 2 {
                log::warn!("the trace of this rank is incomplete: a write to it does not return");
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = self.handle.join();
    }
}

#[derive(Debug, Default)]
struct Written {
    place: LogPlace,
    blocks: u32,
    left_out: u64,
    reported: u64,
}

struct Output {
    file: File,
    /// Whole blocks, the first perhaps already written in part.
    pending: Vec<u8>,
    unwritten: VecDeque<(u64, BlockHeader)>,
    written: u64,
    limit: u64,
    threads: Vec<Written>,
    definitions: u32,
    traced: bool,
    broken: bool,
}

impl Output {
    fn run(&mut self, running: &Recording, stop: &AtomicBool) {
        let mut used: Option<Instant> = None;
        loop {
            let last = stop.load(Ordering::Acquire);
            running.clock.refine();
            if self.flush() {
                if last || used.is_none_or(|used| used.elapsed() >= EVERY) {
                    used = Some(Instant::now());
                    let (time, usage) = (running.clock.now(), usage::current());
                    self.define(&[Definition::Event(Event::Usage { time, usage })]);
                }
                self.take_all(running, last);
                self.flush();
            }
            if last {
                return self.end(running);
            }
            std::thread::park_timeout(EVERY);
        }
    }

    /// Continues until everything is written, for at most [`LAST_WRITE`].
    fn end(&mut self, running: &Recording) {
        let (begun, mut ended) = (Instant::now(), false);
        while begun.elapsed() < LAST_WRITE && !self.broken {
            if self.flush() {
                if ended {
                    return;
                }
                self.take_all(running, true);
                if self.pending.is_empty() {
                    let time = running.clock.now();
                    self.define(&[Definition::Event(Event::End { time })]);
                    ended = true;
                }
            } else {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        self.give_up(running);
    }

    /// Reports the number of missing events in a warning and in a last block.
    fn give_up(&mut self, running: &Recording) {
        let pending = self.unwritten.iter().map(|(_, b)| u64::from(b.events) + b.dropped);
        let mut lost: u64 = pending.sum();
        let logs = running.logs.lock().clone();
        self.threads.resize_with(logs.len(), Written::default);
        for (log, thread) in logs.iter().zip(&mut self.threads) {
            log.take(&mut thread.place, |taken| thread.left_out += u64::from(taken.events));
            lost += log.dropped() + thread.left_out - thread.reported;
        }
        log::warn!(
            "the trace of this rank is incomplete: it could not be written to the end, and {lost} events \
             are missing"
        );
        if let Some((start, block)) = self.unwritten.pop_front() {
            let last_time = block.first_time;
            let traced =
                BlockHeader { payload_bytes: 0, events: 0, dropped: lost, last_time, ..block };
            // The space of the partial block on the disk is sufficient, unless it begins in the
            // last bytes of a page or the file is a pipe.
            let cut = self.file.set_len(start);
            let _ = cut.and_then(|()| self.file.write_all_at(&traced.encode(&[]), start));
        }
    }

    fn take_all(&mut self, running: &Recording, last: bool) {
        let definitions = std::mem::take(&mut *running.definitions.lock());
        self.define(&definitions);
        let logs = running.logs.lock().clone();
        self.threads.resize_with(logs.len(), Written::default);
        for (at, log) in logs.iter().enumerate() {
            self.take(running, at, log, last);
            if !self.flush() {
                return;
            }
        }
    }

    fn take(&mut self, running: &Recording, at: usize, log: &ThreadLog, last: bool) {
        let mut thread = std::mem::take(&mut self.threads[at]);
        let mut place = thread.place;
        log.take(&mut place, |taken| {
            if self.has_room(running, taken.bytes.len()) {
                self.block(log, &mut thread, taken);
            } else {
                thread.left_out += u64::from(taken.events);
            }
        });
        thread.place = place;
        if last && log.dropped() + thread.left_out > thread.reported {
            let now = running.clock.now();
            let none = Taken { bytes: &[], events: 0, first_time: now, last_time: now };
            self.block(log, &mut thread, none);
        }
        self.threads[at] = thread;
    }

    /// Near the limit, also makes threads drop short events, and finally all.
    fn has_room(&self, running: &Recording, bytes: usize) -> bool {
        if self.limit == 0 {
            return true;
        }
        let full = self.written + bytes as u64 + format::BLOCK_HEADER as u64;
        let shortest = match () {
            () if full > self.limit => u64::MAX,
            () if full > self.limit / 4 * 3 => LONG_NS,
            () => 0,
        };
        running.shortest.fetch_max(shortest, Ordering::Relaxed);
        full <= self.limit
    }

    fn block(&mut self, log: &ThreadLog, thread: &mut Written, taken: Taken<'_>) {
        let dropped = log.dropped() + thread.left_out;
        let header = BlockHeader {
            payload_bytes: taken.bytes.len(),
            events: taken.events,
            thread: log.number,
            role: log.role,
            dropped: dropped - thread.reported,
            first_time: taken.first_time,
            last_time: taken.last_time,
            sequence: thread.blocks,
            checksum: 0,
        };
        thread.reported = dropped;
        thread.blocks += 1;
        self.append(&header, taken.bytes);
    }

    fn append(&mut self, header: &BlockHeader, payload: &[u8]) {
        self.unwritten.push_back((self.written, *header));
        self.pending.extend_from_slice(&header.encode(payload));
        self.pending.extend_from_slice(payload);
        self.written += (format::BLOCK_HEADER + payload.len()) as u64;
    }

    fn define(&mut self, definitions: &[Definition]) {
        let mut payload = Vec::new();
        let (mut encoder, mut events) = (Encoder::new(0), 0);
        for (at, definition) in definitions.iter().enumerate() {
            let mut room = [0; MAX_EVENT + MAX_TEXT];
            let length = encoder.put(&definition.event(), &mut room);
            payload.extend_from_slice(&room[..length]);
            events += 1;
            if payload.len() + room.len() > MAX_PAYLOAD || at + 1 == definitions.len() {
                let header = BlockHeader {
                    payload_bytes: payload.len(),
                    events,
                    thread: NO_THREAD,
                    role: Role::Writer,
                    dropped: 0,
                    first_time: 0,
                    last_time: encoder.last(),
                    sequence: self.definitions,
                    checksum: 0,
                };
                self.definitions += 1;
                self.append(&header, &payload);
                payload.clear();
                (encoder, events) = (Encoder::new(0), 0);
            }
        }
    }

    fn flush(&mut self) -> bool {
        let mut at = 0;
        while at < self.pending.len() && !self.broken {
            match self.file.write(&self.pending[at..]) {
                Ok(0) => break,
                Ok(bytes) => at += bytes,
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    // The reader of a pipe is slow.
                    ErrorKind::WouldBlock => break,
                    kind => {
                        // A full disk may have space again later.
                        let full =
                            matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
                        self.broken = !full;
                        if !std::mem::replace(&mut self.traced, true) {
                            log::warn!(
                                "cannot continue the trace of this rank: {error}; the job \
                                 continues, and events are dropped{}",
                                if full { " until space is available" } else { "" }
                            );
                        }
                        break;
                    }
                },
            }
        }
        self.pending.drain(..at);
        let done = self.written - self.pending.len() as u64;
        let length = |block: &BlockHeader| (format::BLOCK_HEADER + block.payload_bytes) as u64;
        while self.unwritten.front().is_some_and(|(start, block)| start + length(block) <= done) {
            self.unwritten.pop_front();
        }
        self.pending.is_empty()
    }
}
