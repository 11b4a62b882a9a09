//! Measurement at start of the cost of transfers between two nodes, by windows and by messages.
//!
//! **Whether windows complete alone** is determined by the target. It sleeps, and checks its memory
//! before it calls MPI again. Meanwhile the origin does a put and a get of each class except
//! accumulates, completes them, and only then puts a number. If the target finds the number, all
//! transfers before it were complete without the target. This needs no clock, and preemption cannot
//! cause a false positive. An origin that is late can cause a false negative, so there are several
//! sleeps of increasing length.
//!
//! **Costs** are then measured alternately by windows and by messages, class by class. The best
//! undisturbed sample counts. A sample is undisturbed if neither of the two threads lost its core
//! (`getrusage`). A transfer by message does the same work as in the engine: the origin packs the
//! bytes into one message, and the target, which waits like a rank inside a call of this library,
//! unpacks them and sends an answer.

use super::choice::{Between, Cost, TransferClass, Trial};
use crate::collective;
use crate::error::Result;
use crate::mpi::{Comm, Datatype, DerivedType, Request, Window, WindowShape, WindowTransfer, p2p};
use crate::topology::Topology;
use crate::trace::Cause;
use crate::wait::{self, Boot};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The target's successive sleeps.
const ASLEEP: [Duration; 4] = [
    Duration::from_millis(2),
    Duration::from_millis(4),
    Duration::from_millis(8),
    Duration::from_millis(12),
];
/// Maximum time to measure the costs of one pair.
const MAX_TIME: Duration = Duration::from_millis(20);
const SAMPLES: usize = 16;
/// How long a side busy-waits for the other before it may yield its core.
const AWAKE: Duration = Duration::from_micros(500);
/// Of undisturbed samples of a class.
const ENOUGH: usize = 3;

/// Bytes of the window on each rank: the number that the target checks, and data.
const BYTES: usize = 128 << 10;
const DATA: usize = 64;
const STOP: u64 = u64::MAX;
const HEAD: usize = 8;
const TAG: i32 = 1;

#[derive(Clone, Copy)]
struct Rows {
    rows: usize,
    block: usize,
    stride: usize,
}

impl Rows {
    fn of(class: TransferClass) -> Rows {
        let row = |block| Rows { rows: 1, block, stride: block };
        match class {
            TransferClass::Small => row(8),
            TransferClass::Large => row(64 << 10),
            TransferClass::Strided => Rows { rows: 64, block: 64, stride: 1024 },
            TransferClass::Vector => Rows { rows: 64, block: 8, stride: 1032 },
            TransferClass::Accumulate => row(512),
        }
    }

    fn bytes(self) -> usize {
        self.rows * self.block
    }

    fn at(self, row: usize) -> std::ops::Range<usize> {
        row * self.stride..row * self.stride + self.block
    }

    /// Does nothing for a single row, because the engine sends contiguous bytes from their place.
    fn pack(self, memory: &[u8], packed: &mut [u8]) {
        if self.rows == 1 {
            return;
        }
        for (row, to) in packed[..self.bytes()].chunks_exact_mut(self.block).enumerate() {
            to.copy_from_slice(&memory[self.at(row)]);
        }
    }

    /// Does nothing for a single row.
    fn unpack(self, packed: &[u8], memory: &mut [u8]) {
        if self.rows == 1 {
            return;
        }
        for (row, from) in packed[..self.bytes()].chunks_exact(self.block).enumerate() {
            memory[self.at(row)].copy_from_slice(from);
        }
    }
}

pub(super) struct Ground {
    window: Window,
    memory: Vec<u64>,
}

impl Ground {
    /// Collective. Fails on all ranks if the creation fails on one.
    pub(super) fn create(world: &Comm) -> Result<Ground> {
        let mut memory = vec![0u64; BYTES / 8];
        let base = memory.as_mut_ptr().cast::<u8>();
        // SAFETY: `Ground` owns the memory, and its window is freed before the memory.
        let window = unsafe { Window::create(world, base, BYTES) };
        let verdict = window.as_ref().map(|_| ()).map_err(Clone::clone);
        if let Err(error) = collective::agree(world, &Boot, verdict) {
            // A window that exists only on some ranks cannot be freed collectively. It stays until
            // the process ends, and so must its memory.
            if window.is_ok() {
                std::mem::forget(memory);
            }
            return Err(error);
        }
        Ok(Ground { window: window?, memory })
    }

    /// Tests whether the flush works, without outstanding operations.
    pub(super) fn flush(&self, rank: usize) -> Result<()> {
        self.window.flush(rank)
    }

    pub(super) fn free(self) -> Result<()> {
        self.window.free()
    }

    /// Collective. All ranks get the same result.
    pub(super) fn measure(
        &self,
        world: &Comm,
        between: Between,
        pair: (usize, usize),
    ) -> Result<Trial> {
        let (origin, target) = pair;
        let mut failed = Ok(());
        let mut alone = [0u8];
        let mut source = if world.rank() == origin { Some(Source::new()?) } else { None };
        for (turn, asleep) in (1u64..).zip(ASLEEP) {
            collective::barrier(world, &Boot)?;
            if world.rank() == target {
                alone[0] = u8::from(self.arrives(turn, asleep));
            } else if let Some(source) = &mut source {
                failed = failed.and(self.each_once(target, source, turn));
            }
            collective::broadcast(world, &Boot, &mut alone, target)?;
            if alone[0] != 0 {
                break;
            }
        }
        let mut costs = [[0u64; 2]; TransferClass::ALL.len()];
        if alone[0] != 0 {
            if world.rank() == target {
                answer(world, origin)?;
            } else if let Some(source) = &mut source {
                failed = failed.and(self.costs(world, target, source, &mut costs));
            }
            collective::broadcast(world, &Boot, bytemuck::bytes_of_mut(&mut costs), origin)?;
        }
        collective::agree(world, &Boot, failed)?;
        let costs = costs.map(|[window, message]| (window > 0).then_some(Cost { window, message }));
        Ok(Trial { between, pair, alone: alone[0] != 0, costs })
    }

    /// Sleeps without calling MPI, and returns whether the number has arrived by then.
    fn arrives(&self, turn: u64, asleep: Duration) -> bool {
        std::thread::sleep(asleep);
        // SAFETY: the aligned word lies in the window. Others write it through MPI, as one unit.
        let number = unsafe { AtomicU64::from_ptr(self.memory.as_ptr().cast_mut()) };
        number.load(Ordering::Acquire) == turn
    }

    /// Completes a put and a get of each class except accumulates, and then puts the number.
    fn each_once(&self, target: usize, source: &mut Source, turn: u64) -> Result<()> {
        for class in TransferClass::ALL {
            // Accumulates may need the target's processor anywhere.
            if class != TransferClass::Accumulate {
                self.by_window(class, target, source)?;
            }
        }
        let row = WindowShape::Row(8, Datatype::Byte);
        let origin = (&raw const turn).cast_mut().cast();
        let put =
            WindowTransfer { origin, origin_shape: row, target, offset: 0, target_shape: row };
        // SAFETY: `turn` outlives the flush, and the word at the target lies in its window.
        unsafe { self.window.put(&put, false) }?;
        self.window.flush(target)
    }

    /// Takes samples, and then releases the target, even after an error.
    fn costs(
        &self,
        world: &Comm,
        target: usize,
        source: &mut Source,
        costs: &mut [[u64; 2]],
    ) -> Result<()> {
        let mut talk = Talk::new(world, target);
        let measured = self.samples(&mut talk, source, costs);
        talk.buffer[..HEAD].copy_from_slice(&STOP.to_ne_bytes());
        talk.exchange(0, 0)?;
        measured
    }

    fn samples(
        &self,
        talk: &mut Talk<'_>,
        source: &mut Source,
        costs: &mut [[u64; 2]],
    ) -> Result<()> {
        let mut counts = [[0usize; 2]; TransferClass::ALL.len()];
        let begun = Instant::now();
        for _ in 0..SAMPLES {
            for (n, class) in TransferClass::ALL.into_iter().enumerate() {
                let (switches, start) = (switches(), Instant::now());
                self.by_window(class, talk.peer, source)?;
                let window = (self::switches() == switches).then(|| start.elapsed());
                let message = talk.by_message(n, class, &mut source.memory)?;
                for (way, sample) in [window, message].into_iter().enumerate() {
                    let Some(sample) = sample else { continue };
                    let ns = (sample.as_nanos() as u64).max(1);
                    counts[n][way] += 1;
                    let best = &mut costs[n][way];
                    *best = if *best == 0 { ns } else { ns.min(*best) };
                }
            }
            if begun.elapsed() > MAX_TIME {
                break;
            }
        }
        for (count, cost) in counts.iter().zip(costs) {
            if count.iter().any(|&c| c < ENOUGH) {
                *cost = [0, 0];
            }
        }
        Ok(())
    }

    fn by_window(&self, class: TransferClass, target: usize, source: &mut Source) -> Result<()> {
        let Source { memory, strided } = source;
        let rows = Rows::of(class);
        let mut of = |row: usize, shape| WindowTransfer {
            origin: memory.as_mut_ptr().wrapping_add(row * rows.stride),
            origin_shape: shape,
            target,
            offset: DATA + row * rows.stride,
            target_shape: shape,
        };
        let transfers: Vec<WindowTransfer<'_>> = match class {
            TransferClass::Strided => vec![of(0, WindowShape::Derived(strided))],
            TransferClass::Accumulate => {
                vec![of(0, WindowShape::Row(rows.block / 8, Datatype::Double))]
            }
            _ => {
                let shape = WindowShape::Row(rows.block, Datatype::Byte);
                (0..rows.rows).map(|row| of(row, shape)).collect()
            }
        };
        // SAFETY: `BYTES` is large enough, so both sides lie in `memory` and in the window.
        // `memory` is borrowed until all operations are complete.
        unsafe {
            if class == TransferClass::Accumulate {
                self.window.accumulate(&transfers[0], false)?;
                return self.window.flush(target);
            }
            for transfer in &transfers {
                self.window.put(transfer, false)?;
            }
            self.window.flush(target)?;
            for transfer in &transfers {
                self.window.get(transfer, false)?;
            }
        }
        self.window.flush(target)
    }
}

struct Source {
    memory: Vec<u8>,
    strided: DerivedType,
}

impl Source {
    fn new() -> Result<Source> {
        let rows = Rows::of(TransferClass::Strided);
        let (counts, strides) = ([rows.rows], [rows.stride as isize]);
        let strided = DerivedType::strided(Datatype::Byte, rows.block, &counts, &strides)?;
        Ok(Source { memory: vec![0; BYTES], strided })
    }
}

struct Talk<'a> {
    world: &'a Comm,
    peer: usize,
    buffer: Vec<u8>,
    answer: Vec<u8>,
    /// Of the target's thread, in its last answer.
    theirs: u64,
}

/// The header of a request: the class, and whether it is a get.
fn word(class: usize, get: bool) -> u64 {
    class as u64 * 2 + u64::from(get)
}

impl<'a> Talk<'a> {
    fn new(world: &'a Comm, peer: usize) -> Talk<'a> {
        Talk { world, peer, buffer: vec![0; BYTES], answer: vec![0; BYTES], theirs: 0 }
    }

    /// Sends a request with `send` bytes, and waits for an answer with `receive` bytes.
    fn exchange(&mut self, send: usize, receive: usize) -> Result<()> {
        let (world, peer) = (self.world, self.peer);
        // SAFETY: both buffers stay borrowed until `finish` has completed the requests.
        unsafe {
            let coming =
                p2p::irecv(world, self.answer.as_mut_ptr(), HEAD + receive, Some(peer), TAG)?;
            let going = p2p::isend(world, self.buffer.as_ptr(), HEAD + send, peer, TAG)?;
            finish(peer, [coming, going])
        }
    }

    /// Returns `None` if one of the two threads lost its core.
    fn by_message(
        &mut self,
        n: usize,
        class: TransferClass,
        mine: &mut [u8],
    ) -> Result<Option<Duration>> {
        let rows = Rows::of(class);
        let (theirs, switches, start) = (self.theirs, switches(), Instant::now());
        self.buffer[..HEAD].copy_from_slice(&word(n, false).to_ne_bytes());
        rows.pack(mine, &mut self.buffer[HEAD..]);
        self.exchange(rows.bytes(), 0)?;
        let mut undisturbed = self.heard() == theirs;
        if class != TransferClass::Accumulate {
            self.buffer[..HEAD].copy_from_slice(&word(n, true).to_ne_bytes());
            self.exchange(0, rows.bytes())?;
            rows.unpack(&self.answer[HEAD..], mine);
            undisturbed &= self.heard() == theirs;
        }
        undisturbed &= self::switches() == switches;
        Ok(undisturbed.then(|| start.elapsed()))
    }

    /// Records and returns the target's context switches in its last answer.
    fn heard(&mut self) -> u64 {
        self.theirs = u64::from_ne_bytes(self.answer[..HEAD].try_into().expect("eight bytes"));
        self.theirs
    }
}

/// Answers requests until it receives `STOP`.
fn answer(world: &Comm, origin: usize) -> Result<()> {
    let mut memory = vec![0u8; BYTES];
    let mut request = vec![0u8; BYTES];
    let mut answer = vec![0u8; BYTES];
    loop {
        // SAFETY: `request` stays borrowed until `finish` has completed the receive.
        unsafe {
            let coming = p2p::irecv(world, request.as_mut_ptr(), BYTES, Some(origin), TAG)?;
            finish(origin, [coming])?;
        }
        let asked = u64::from_ne_bytes(request[..HEAD].try_into().expect("eight bytes"));
        let mut bytes = 0;
        if let Some(&class) = TransferClass::ALL.get((asked / 2) as usize) {
            let rows = Rows::of(class);
            if asked % 2 == 1 {
                rows.pack(&memory, &mut answer[HEAD..]);
                bytes = rows.bytes();
            } else if class == TransferClass::Accumulate {
                add(&request[HEAD..HEAD + rows.bytes()], &mut memory);
            } else {
                rows.unpack(&request[HEAD..], &mut memory);
            }
        }
        answer[..HEAD].copy_from_slice(&switches().to_ne_bytes());
        // SAFETY: `answer` stays borrowed until `finish` has completed the send.
        unsafe {
            let going = p2p::isend(world, answer.as_ptr(), HEAD + bytes, origin, TAG)?;
            finish(origin, [going])?;
        }
        if asked == STOP {
            return Ok(());
        }
    }
}

fn add(from: &[u8], to: &mut [u8]) {
    for (from, to) in from.chunks_exact(8).zip(to.chunks_exact_mut(8)) {
        let number = |b: &[u8]| f64::from_ne_bytes(b.try_into().expect("eight bytes"));
        to.copy_from_slice(&(number(from) + number(to)).to_ne_bytes());
    }
}

/// A yield within `AWAKE` would spoil the sample. If the wait fails, the job ends.
fn finish<const N: usize>(peer: usize, requests: [Request; N]) -> Result<()> {
    let begun = Instant::now();
    for mut request in requests {
        let what = || format!("a message of the trial with rank {peer}");
        let mut spin = || {
            while begun.elapsed() < AWAKE {
                if request.test()? {
                    return Ok(true);
                }
            }
            request.test()
        };
        if let Err(error) = wait::until(&Boot, Cause::Start, &what, &mut spin) {
            log::error!("the trial of paths failed: {error:#}");
            crate::process::end_job(error.kind().code());
        }
    }
    Ok(())
}

fn switches() -> u64 {
    // SAFETY: zeros are a valid `rusage`, which the call overwrites.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage
    };
    (usage.ru_nvcsw + usage.ru_nivcsw) as u64
}

/// Returns for each kind of neighbourhood the lowest ranks of the first two nodes that have it.
pub(super) fn pairs(topology: &Topology) -> Vec<(Between, (usize, usize))> {
    let masters = topology.masters();
    let find = |same_host: bool| {
        masters.iter().enumerate().find_map(|(n, &a)| {
            let other = masters[n + 1..].iter().find(|&&b| topology.same_host(a, b) == same_host);
            other.map(|&b| (a, b))
        })
    };
    let kinds = [(Between::Nodes, true), (Between::Hosts, false)];
    kinds.into_iter().filter_map(|(kind, same)| find(same).map(|pair| (kind, pair))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_pair_for_each_kind() {
        let of = |labels: &[usize], cut| pairs(&Topology::from_labels(0, labels, cut));
        assert!(of(&[0, 0, 0], 0).is_empty());
        assert_eq!(of(&[0, 0], 1), [(Between::Nodes, (0, 1))]);
        assert_eq!(of(&[0, 1, 0, 1], 0), [(Between::Hosts, (0, 1))]);
        assert_eq!(of(&[0, 1, 1], 1), [(Between::Nodes, (1, 2)), (Between::Hosts, (0, 1))]);
    }

    #[test]
    fn rows_are_packed_and_unpacked() {
        for class in TransferClass::ALL {
            let rows = Rows::of(class);
            assert!(DATA + rows.rows * rows.stride <= BYTES && HEAD + rows.bytes() <= BYTES);
            let memory: Vec<u8> = (0..BYTES).map(|n| (n % 251) as u8).collect();
            let (mut packed, mut back) = (vec![0; BYTES], vec![0; BYTES]);
            if rows.rows == 1 {
                continue;
            }
            rows.pack(&memory, &mut packed);
            rows.unpack(&packed, &mut back);
            for row in 0..rows.rows {
                assert_eq!(back[rows.at(row)], memory[rows.at(row)]);
            }
        }
    }
}
