//! Writes a synthetic trace of any size, to try out the page: `--sample DIR`.
//!
//! The synthetic program runs in steps. In each step, a rank computes, puts to its neighbours and
//! to one distant rank, gets, takes tasks from a counter, sometimes waits for a mutex, and enters a
//! barrier that ends at the same time for all ranks. Hosts have different clocks, and clock samples
//! that contain the offsets. The same size always gives the same trace.

use portolan_trace_format::event::{Delays, Encoder, Event, MAX_EVENT, Place, SegmentKind, Usage};
use portolan_trace_format::format::{
    BLOCK_HEADER, BlockHeader, Role, crc, encode_file_header, file_name,
};
use portolan_trace_format::kinds::{Call, Cause, Interface, PathTaken, Served};
use portolan_trace_format::metadata::Metadata;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Size at which a block is written, in bytes.
const BLOCK: usize = 64 << 10;

pub struct RankWriter {
    file: BufWriter<File>,
    threads: BTreeMap<u32, OpenBlock>,
    failed: Option<std::io::Error>,
}

struct OpenBlock {
    role: Role,
    bytes: Vec<u8>,
    events: u32,
    encoder: Option<Encoder>,
    first: u64,
    last: u64,
    sequence: u32,
    dropped: u64,
}

impl RankWriter {
    pub fn new(directory: &Path, metadata: &Metadata) -> std::io::Result<RankWriter> {
        let file = File::create(directory.join(file_name(metadata.rank as usize)))?;
        let mut file = BufWriter::with_capacity(256 << 10, file);
        let mut head = Vec::new();
        encode_file_header(&metadata.to_json(), &mut head);
        file.write_all(&head)?;
        Ok(RankWriter { file, threads: BTreeMap::new(), failed: None })
    }

    /// Adds an event of a thread. The events of a thread must be added in the order of their ends.
    pub fn put(&mut self, thread: u32, role: Role, event: Event<'_>) {
        let (begin, end) = match event {
            Event::Call { begin, duration, .. }
            | Event::Wait { begin, duration, .. }
            | Event::Mpi { begin, duration, .. }
            | Event::Served { begin, duration, .. } => (begin, begin + duration),
            Event::RegionBegin { time, .. }
            | Event::RegionEnd { time }
            | Event::Mark { time, .. }
            | Event::Clock { time, .. }
            | Event::Counter { time, .. }
            | Event::Usage { time, .. }
            | Event::End { time } => (time, time),
            Event::String { .. } | Event::Segment { .. } | Event::Site { .. } => (0, 0),
        };
        let block = self.threads.entry(thread).or_insert(OpenBlock {
            role,
            bytes: Vec::new(),
            events: 0,
            encoder: None,
            first: 0,
            last: 0,
            sequence: 0,
            dropped: 0,
        });
        if block.encoder.is_none() {
            (block.first, block.last) = (begin, end);
            block.encoder = Some(Encoder::new(begin));
        }
        let text = if let Event::String { text, .. } = event { text.len() } else { 0 };
        let at = block.bytes.len();
        block.bytes.resize(at + MAX_EVENT + text, 0);
        let encoder = block.encoder.as_mut().expect("it was made");
        let length = encoder.put(&event, &mut block.bytes[at..]);
        block.bytes.truncate(at + length);
        block.events += 1;
        block.last = block.last.max(end);
        if block.bytes.len() >= BLOCK {
            self.flush(thread);
        }
    }

    pub fn flush(&mut self, thread: u32) {
        let Some(block) = self.threads.get_mut(&thread).filter(|block| block.events > 0) else {
            return;
        };
        let header = BlockHeader {
            payload_bytes: block.bytes.len(),
            events: block.events,
            thread,
            role: block.role,
            dropped: std::mem::take(&mut block.dropped),
            first_time: block.first,
            last_time: block.last,
            sequence: block.sequence,
            checksum: crc(&block.bytes),
        };
        debug_assert_eq!(header.encode(&block.bytes).len(), BLOCK_HEADER);
        let written = self.file.write_all(&header.encode(&block.bytes));
        let written = written.and_then(|()| self.file.write_all(&block.bytes));
        self.failed = self.failed.take().or(written.err());
        block.sequence += 1;
        block.events = 0;
        block.bytes.clear();
        block.encoder = None;
    }

    pub fn end(mut self) -> std::io::Result<()> {
        let threads: Vec<u32> = self.threads.keys().copied().collect();
        threads.into_iter().for_each(|thread| self.flush(thread));
        self.put(WRITER, Role::Writer, Event::End { time: 0 });
        self.flush(WRITER);
        self.failed.map_or(Ok(()), Err)?;
        self.file.flush()
    }
}

/// Thread number of the trace writer itself.
pub const WRITER: u32 = 1000;

#[derive(Debug, Clone, Copy)]
pub struct Size {
    pub ranks: u32,
    /// Number of events, over all ranks.
    pub events: u64,
    pub hosts: u32,
}

#[derive(Debug, Clone, Copy)]
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((u128::from(self.0 >> 16) * u128::from(n)) >> 48) as u64
    }
}

/// Length of a step in nanoseconds.
const STEP: u64 = 2_000_000;
/// Approximate number of events per rank and step.
const STEP_EVENTS: u64 = 17;
const START: u64 = 50_000_000_000;

/// Writes a synthetic trace to a directory. Fails if the directory contains a trace.
pub fn write(directory: &Path, size: Size) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("cannot write to {}: {e}", directory.display());
    std::fs::create_dir_all(directory).map_err(failed)?;
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if Path::new(&name).extension().is_some_and(|end| end == "ptrace") {
            return Err(format!(
                "{} contains a trace; name another directory",
                directory.display()
            ));
        }
    }
    let next = AtomicU64::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let work = || -> std::io::Result<()> {
            loop {
                let rank = next.fetch_add(1, Ordering::Relaxed);
                if rank >= u64::from(size.ranks) {
                    return Ok(());
                }
                rank_file(directory, size, rank as u32)?;
            }
        };
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        all.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
    })
    .map_err(failed)
}

pub fn metadata(rank: u32, ranks: u32, host: u64) -> Metadata {
    Metadata {
        rank: u64::from(rank),
        ranks: u64::from(ranks),
        host: format!("node{:02}", host + 1),
        host_number: host,
        node: host,
        pid: 4000 + u64::from(rank),
        mpi: "MPICH Version: 4.0.2".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        paths: "direct on the node, message between nodes".into(),
        settings: vec![("PORTOLAN_TRACE".into(), "sample".into())],
        program: vec!["sample".into()],
        started_wall: 1_800_000_000_000_000_000,
        started_clock: START,
        clock: "monotonic".into(),
        cores: "0-63".into(),
        usable_cores: 64,
        machine: host + 1,
        ..Metadata::default()
    }
}

fn rank_file(directory: &Path, size: Size, rank: u32) -> std::io::Result<()> {
    let host = u64::from(rank) * u64::from(size.hosts.max(1)) / u64::from(size.ranks);
    let ahead = host * 5_000_000_000;
    let mut file = RankWriter::new(directory, &metadata(rank, size.ranks, host))?;
    file.put(WRITER, Role::Writer, Event::String { string: 0, text: "step" });
    file.put(WRITER, Role::Writer, Event::String { string: 1, text: "exchange" });
    let segment = Event::Segment {
        segment: 0,
        bytes: 1 << 20,
        ranks: u64::from(size.ranks),
        kind: SegmentKind::Memory,
    };
    file.put(WRITER, Role::Writer, segment);
    let bound = if host == 0 { 0 } else { 400 };
    let mut usage = Usage { threads: 2, ..Usage::default() };
    for time in [START, START + (size.events / u64::from(size.ranks) / STEP_EVENTS + 1) * STEP] {
        let clock = Event::Clock { time: time + ahead, offset: -(ahead as i64), bound };
        file.put(WRITER, Role::Writer, clock);
        file.put(WRITER, Role::Writer, Event::Usage { time: time + ahead, usage });
        let length = size.events / u64::from(size.ranks) / STEP_EVENTS * STEP;
        let delays = Delays { main_cpu: length / 2, main: length / 200, others: length / 900 };
        usage.user = length / 2;
        (usage.system, usage.involuntary) = (length / 40, length / 3_000_000);
        usage.delays = Some(delays);
    }
    let mut dice = Dice(u64::from(rank) * 7919 + 1);
    let mut sample = SyntheticRank { file, rank, size, ahead };
    for step in 0..(size.events / u64::from(size.ranks) / STEP_EVENTS).max(1) {
        sample.step(START + step * STEP, step, &mut dice);
    }
    sample.file.end()
}

struct SyntheticRank {
    file: RankWriter,
    rank: u32,
    size: Size,
    ahead: u64,
}

impl SyntheticRank {
    fn host(&self, rank: u32) -> u64 {
        u64::from(rank) * u64::from(self.size.hosts.max(1)) / u64::from(self.size.ranks)
    }

    fn call(&mut self, begin: u64, duration: u64, call: Call, peer: Option<u32>, bytes: u64) {
        let near = peer.is_some_and(|peer| self.host(peer) == self.host(self.rank));
        let path = match peer {
            None => PathTaken::None,
            Some(_) if near => PathTaken::Direct,
            Some(_) => PathTaken::Message,
        };
        let place = Place { segment: Some(0), offset: if call == Call::Lock { 3 } else { 64 } };
        let event = Event::Call {
            begin: begin + self.ahead,
            duration,
            call,
            interface: Interface::Armci,
            path,
            peer,
            bytes,
            blocks: 1,
            place: matches!(call, Call::Rmw | Call::Lock).then_some(place),
            site: None,
        };
        self.file.put(0, Role::Program, event);
    }

    fn wait(&mut self, begin: u64, duration: u64, cause: Cause, peer: Option<u32>) {
        let begin = begin + self.ahead;
        self.file.put(0, Role::Program, Event::Wait { begin, duration, cause, peer, place: None });
    }

    fn step(&mut self, begin: u64, step: u64, dice: &mut Dice) {
        let (rank, ranks) = (self.rank, self.size.ranks);
        let next = (rank + 1) % ranks;
        let before = (rank + ranks - 1) % ranks;
        let far = dice.below(u64::from(ranks)) as u32;
        self.file.put(0, Role::Program, Event::RegionBegin { time: begin + self.ahead, string: 0 });
        // The amount of work differs by rank, and in each step one rank has more.
        let slow = u64::from(step % u64::from(ranks) == u64::from(rank));
        let mut now = begin + 200_000 + dice.below(300_000) + slow * 600_000;
        self.file.put(0, Role::Program, Event::RegionBegin { time: now + self.ahead, string: 1 });
        for (peer, bytes) in
            [(next, 8192), (before, 8192), (next, 64), (far, 1 << (4 + dice.below(14)))]
        {
            let length = 400 + bytes / 8 + dice.below(900);
            self.call(now, length, Call::PutNb, Some(peer), bytes);
            now += length + 200 + dice.below(3000);
        }
        let fenced = 20_000 + dice.below(60_000);
        self.wait(now + 300, fenced - 400, Cause::Fence, Some(far));
        self.call(now, fenced, Call::FenceAll, None, 0);
        now += fenced + 2_000;
        let fetched = 9_000 + dice.below(30_000);
        self.wait(now + 500, fetched - 700, Cause::Answer, Some(far));
        self.call(now, fetched, Call::Get, Some(far), 4096);
        now += fetched + 4_000;
        let counted = 3_000 + dice.below(20_000);
        self.call(now, counted, Call::Rmw, Some(0), 8);
        now += counted + 1_000;
        if dice.below(16) == 0 {
            let locked = 10_000 + dice.below(200_000);
            self.wait(now + 100, locked - 200, Cause::Lock, Some(1 % ranks));
            self.call(now, locked, Call::Lock, Some(1 % ranks), 0);
            now += locked + 5_000;
            self.call(now, 900, Call::Unlock, Some(1 % ranks), 0);
            now += 1_500;
        }
        self.file.put(0, Role::Program, Event::RegionEnd { time: now + self.ahead });
        for k in 0..2 {
            let at = begin + 150_000 + k * 700_000 + dice.below(400_000) + self.ahead;
            let served = Event::Served {
                begin: at,
                duration: 900 + dice.below(4_000),
                kind: Served::Put,
                origin: Some(before),
                bytes: 8192,
                waited: Some(dice.below(2_000)),
            };
            self.file.put(1, Role::Progress, served);
        }
        let end = begin + 1_850_000;
        self.wait(now + 1_000, end - now - 1_500, Cause::Barrier, None);
        self.call(now, end - now, Call::Barrier, None, 0);
        self.file.put(0, Role::Program, Event::RegionEnd { time: end + 500 + self.ahead });
    }
}

#[cfg(test)]
pub fn span(
    what: crate::model::Activity,
    rank: u32,
    begin: u64,
    length: u64,
) -> crate::model::TraceSpan {
    crate::model::TraceSpan::new(what, (rank, 0, Role::Program), (begin, begin + length))
}
