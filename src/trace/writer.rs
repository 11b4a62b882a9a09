//! The thread that writes a rank's file.
//!
//! It wakes twice a second, and when a thread has filled a chunk, takes what threads have recorded ([`super::log`]), and
//! writes it as blocks. So a job that is killed leaves all but the last half second. Nothing but this thread ever waits
//! for the disk: while a write makes no headway, threads drop what finds no room, and count it.
//!
//! - A disk that is full, or a reader of a pipe that is behind: what is in hand is kept, and tried again. The file goes on
//!   where it stopped.
//! - The limit of the file: from three quarters on only events of [`LONG_NS`] are kept, at the limit none.
//! - The end of the job waits for the disk for at most [`LAST_WRITE`]. What did not get into the file then is counted
//!   in its last block, which takes the place of the one that was written in part, and in a warning.
//!
//! What was dropped is in the next block of its thread, or in one without events.

use super::log::{Place, Taken, ThreadLog};
use super::observer::Running;
use portolan_trace_format::event::{Encoder, Event, MAX_EVENT};
use portolan_trace_format::format::{self, BlockHeader, MAX_PAYLOAD, Role};
use portolan_trace_format::kinds::SegmentKind;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_millis(500);
/// How long the end of the job waits for the disk.
const LAST_WRITE: Duration = Duration::from_secs(5);
/// Events that are kept when the file is nearly full.
const LONG_NS: u64 = 10_000;
/// The number of the thread in blocks of definitions.
const NO_THREAD: u32 = u32::MAX;
/// A longer text of a string is cut.
const MAX_TEXT: usize = 4096;

/// What the file says beside the threads' events.
#[derive(Debug)]
pub(super) enum Definition {
    String { string: u64, text: String },
    Segment { segment: u64, bytes: u64, ranks: u64, kind: SegmentKind },
    Clock { time: u64, offset: i64, bound: u64 },
    Counter { time: u64, string: u64, value: u64 },
}

impl Definition {
    fn event(&self) -> Event<'_> {
        match *self {
            Definition::String { string, ref text } => {
                let mut end = text.len().min(MAX_TEXT);
                while !text.is_char_boundary(end) {
                    end -= 1;
                }
                Event::String { string, text: &text[..end] }
            }
            Definition::Segment { segment, bytes, ranks, kind } => {
                Event::Segment { segment, bytes, ranks, kind }
            }
            Definition::Clock { time, offset, bound } => Event::Clock { time, offset, bound },
            Definition::Counter { time, string, value } => Event::Counter { time, string, value },
        }
    }
}

/// The running thread.
#[derive(Debug)]
pub(super) struct Writer {
    handle: JoinHandle<()>,
    stop: Arc<AtomicBool>,
}

impl Writer {
    /// Starts it, with a file that it writes from the beginning. `None` where there can be no thread.
    pub(super) fn start(running: &Arc<Running>, file: File, metadata: &str) -> Option<Writer> {
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
            told: false,
            broken: false,
        };
        let (running, seen) = (running.clone(), stop.clone());
        let started = std::thread::Builder::new()
            .name("portolan-trace".into())
            .stack_size(256 << 10)
            .spawn(move || {
                crate::process::quiet_signals();
                output.run(&running, &seen);
            });
        match started {
            Ok(handle) => Some(Writer { handle, stop }),
            Err(error) => {
                log::warn!("there is no trace of this rank: its thread cannot be started: {error}");
                None
            }
        }
    }

    /// The thread, to wake it.
    pub(super) fn thread(&self) -> Thread {
        self.handle.thread().clone()
    }

    /// Ends it, when all is written; gives up where the disk makes no headway.
    pub(super) fn stop(self) {
        self.stop.store(true, Ordering::Release);
        self.handle.thread().unpark();
        let begun = Instant::now();
        while !self.handle.is_finished() {
            if begun.elapsed() > LAST_WRITE * 2 {
                log::warn!("the trace of this rank is not whole: a write of it does not return");
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = self.handle.join();
    }
}

/// What the file has of a thread.
#[derive(Debug, Default)]
struct Written {
    place: Place,
    blocks: u32,
    /// Events that the writer left out, because the file was full.
    left_out: u64,
    /// Dropped and left out, as the file has it.
    reported: u64,
}

struct Output {
    file: File,
    /// Whole blocks, the first of which may be written in part.
    pending: Vec<u8>,
    /// The blocks that are pending: where each begins in the file.
    unwritten: VecDeque<(u64, BlockHeader)>,
    /// Bytes of the file, with those that are pending.
    written: u64,
    limit: u64,
    threads: Vec<Written>,
    /// Blocks of definitions.
    definitions: u32,
    told: bool,
    /// Nothing can be written any more.
    broken: bool,
}

impl Output {
    fn run(&mut self, running: &Running, stop: &AtomicBool) {
        loop {
            let last = stop.load(Ordering::Acquire);
            running.clock.refine();
            if self.flush() {
                self.take_all(running, last);
                self.flush();
            }
            if last {
                return self.end(running);
            }
            std::thread::park_timeout(EVERY);
        }
    }

    /// Goes on until all is written, for some time.
    fn end(&mut self, running: &Running) {
        let begun = Instant::now();
        while begun.elapsed() < LAST_WRITE && !self.broken {
            if self.flush() {
                self.take_all(running, true);
                if self.pending.is_empty() {
                    return;
                }
            } else {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        self.give_up(running);
    }

    /// Says how many events are not in the file.
    fn give_up(&mut self, running: &Running) {
        let pending = self.unwritten.iter().map(|(_, b)| u64::from(b.events) + b.dropped);
        let mut lost: u64 = pending.sum();
        let logs = running.logs.lock().clone();
        self.threads.resize_with(logs.len(), Written::default);
        for (log, thread) in logs.iter().zip(&mut self.threads) {
            log.take(&mut thread.place, |taken| thread.left_out += u64::from(taken.events));
            lost += log.dropped() + thread.left_out - thread.reported;
        }
        log::warn!(
            "the trace of this rank is not whole: it could not be written to its end, and {lost} events are \
             not in it"
        );
        if let Some((start, block)) = self.unwritten.pop_front() {
            let last_time = block.first_time;
            let told =
                BlockHeader { payload_bytes: 0, events: 0, dropped: lost, last_time, ..block };
            // What the block had got of the disk is room enough, but for the last bytes of a page, or in a pipe.
            let cut = self.file.set_len(start);
            let _ = cut.and_then(|()| self.file.write_all_at(&told.encode(&[]), start));
        }
    }

    fn take_all(&mut self, running: &Running, last: bool) {
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

    fn take(&mut self, running: &Running, at: usize, log: &ThreadLog, last: bool) {
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

    /// Whether the file may grow by a block of so many bytes; has threads drop what it has no room for.
    fn has_room(&self, running: &Running, bytes: usize) -> bool {
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

    /// Writes what is pending; false where some stays.
    fn flush(&mut self) -> bool {
        let mut at = 0;
        while at < self.pending.len() && !self.broken {
            match self.file.write(&self.pending[at..]) {
                Ok(0) => break,
                Ok(bytes) => at += bytes,
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    // The reader of a pipe is behind.
                    ErrorKind::WouldBlock => break,
                    kind => {
                        // A full disk may have room again.
                        let full =
                            matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
                        self.broken = !full;
                        if !std::mem::replace(&mut self.told, true) {
                            log::warn!(
                                "the trace of this rank cannot be written on: {error}; the job goes \
                                 on, and events are dropped{}",
                                if full { " until there is room" } else { "" }
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
