//! A rank: start, the checks in their order, stop; and failure.
//!
//! A check that fails panics. The panic hook says which rank, in which step,
//! and ends all ranks, because a rank that only returned would leave the others
//! waiting. So would a job of the wrong size, which is checked first.

use crate::{alone, cases, job};
use bytemuck::Pod;
use mpi::ffi;
use parking_lot::Mutex;
use portolan::error::{ErrorKind, Result};
use portolan::internals::memory::segment::Segment;
use portolan::internals::mpi::init::{self, ThreadLevel};
use portolan::internals::runtime::Engine;
use std::fmt::Display;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

/// Set to `single` or `multiple`: the host program initialises MPI itself.
pub const HOST: &str = "PORTOLAN_TEST_HOST";

/// What a check gets.
#[derive(Debug)]
pub struct Ctx {
    /// The engine.
    pub engine: Arc<Engine>,
    /// This rank.
    pub me: usize,
    /// How many there are.
    pub n: usize,
    /// Seed of random checks.
    pub seed: u64,
    /// Whether to do less.
    pub quick: bool,
    /// The run is a full one: nothing is too large.
    pub full: bool,
}

static STEP: Mutex<Option<File>> = Mutex::new(None);
static AT: Mutex<String> = Mutex::new(String::new());

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|v| !v.is_empty())
}

/// The directory that the driver and the ranks of a launch share.
pub fn directory() -> PathBuf {
    variable(job::DIR).expect("the driver sets the directory").into()
}

/// The rank by the launcher's own account, also before MPI is initialised.
pub fn rank_of_launcher() -> usize {
    ["OMPI_COMM_WORLD_RANK", "PMI_RANK"]
        .iter()
        .find_map(|name| variable(name)?.parse().ok())
        .unwrap_or(0)
}

/// Notes where this rank stands, for a launch that hangs or fails.
pub fn step(text: impl Display) {
    let text = text.to_string();
    let line = format!("{} {text:<150.150}\n", std::process::id());
    if let Some(file) = &*STEP.lock() {
        let _ = file.write_all_at(line.as_bytes(), 0);
    }
    *AT.lock() = text;
}

fn board(line: &str) {
    let path = directory().join("checks");
    let mut file =
        File::options().append(true).create(true).open(path).expect("the file of checks");
    file.write_all(line.as_bytes()).expect("the file of checks is writable");
}

fn set_up() {
    // SAFETY: a plain system call; the launcher's daemon is the parent.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    let path = directory().join(format!("rank.{}", rank_of_launcher()));
    *STEP.lock() = File::create(path).ok();
    step("start");
    std::panic::set_hook(Box::new(|info| {
        // In one piece: the abort of another rank may cut off what comes after.
        let text = format!(
            "rank {} FAILED in step '{}': {info}\n(seed {})\n",
            rank_of_launcher(),
            AT.lock(),
            seed()
        );
        let _ = std::io::stderr().write_all(text.as_bytes());
        init::abort(101);
    }));
}

fn seed() -> u64 {
    variable(job::SEED).and_then(|v| v.parse().ok()).unwrap_or(1)
}

/// Ends the job where it has another size than the driver asked for.
pub fn check_size(n: usize) {
    let asked = variable(job::RANKS).and_then(|v| v.parse().ok()).unwrap_or(0);
    assert_eq!(
        n, asked,
        "the job has {n} ranks instead of {asked}: is it the launcher of another MPI?"
    );
}

/// Initialises MPI as a host program would; returns the level that it got.
pub fn host_init(level: ThreadLevel) -> ThreadLevel {
    let mut provided = 0;
    // SAFETY: MPI is not initialised yet; null arguments are legal.
    unsafe {
        let rc = ffi::MPI_Init_thread(
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            level.raw(),
            &mut provided,
        );
        assert_eq!(rc, 0, "MPI_Init_thread");
    }
    [ThreadLevel::Single, ThreadLevel::Funneled, ThreadLevel::Serialized, ThreadLevel::Multiple]
        .into_iter()
        .find(|l| l.raw() == provided)
        .expect("a thread level")
}

/// Finalises MPI as a host program would.
pub fn host_finalize() {
    // SAFETY: MPI was initialised by `host_init`.
    assert_eq!(unsafe { ffi::MPI_Finalize() }, 0, "MPI_Finalize");
}

/// Starts the engine over all ranks.
pub fn start() -> Arc<Engine> {
    // SAFETY: no communicator is given.
    let engine = unsafe { Engine::start(None) }.unwrap_or_else(|e| panic!("start: {e}"));
    check_size(engine.size());
    engine
}

impl Ctx {
    /// What a check gets in a running engine.
    pub fn new(engine: Arc<Engine>) -> Ctx {
        Ctx {
            me: engine.rank(),
            n: engine.size(),
            engine,
            seed: seed(),
            quick: variable("PORTOLAN_TEST_QUICK").is_some(),
            full: variable("PORTOLAN_TEST_FULL").is_some(),
        }
    }

    /// Waits for all ranks.
    pub fn barrier(&self) {
        self.engine.barrier_of(self.engine.world()).expect("barrier");
    }

    /// Allocates over all ranks.
    pub fn allocate(&self, bytes: usize) -> Arc<Segment> {
        self.engine.allocate(self.engine.world(), bytes).expect("allocate")
    }

    /// Frees a segment.
    pub fn free(&self, segment: Arc<Segment>) {
        self.engine.release(segment).expect("release");
    }

    /// Puts bytes.
    pub fn put(&self, target: usize, at: usize, bytes: &[u8]) {
        // SAFETY: the slice is valid.
        unsafe { self.engine.put(target, at, bytes.as_ptr(), bytes.len()) }.expect("put");
    }

    /// Gets bytes.
    pub fn get(&self, target: usize, at: usize, bytes: usize) -> Vec<u8> {
        let mut out = vec![0xee; bytes];
        // SAFETY: the vector has as many bytes.
        unsafe { self.engine.get(target, at, out.as_mut_ptr(), bytes) }.expect("get");
        out
    }

    /// Puts a number.
    pub fn store<T: Pod>(&self, target: usize, at: usize, value: T) {
        self.put(target, at, bytemuck::bytes_of(&value));
    }

    /// Gets so many numbers.
    pub fn loads<T: Pod>(&self, target: usize, at: usize, count: usize) -> Vec<T> {
        let bytes = self.get(target, at, count * std::mem::size_of::<T>());
        bytes.chunks_exact(std::mem::size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
    }

    /// Gets a number.
    pub fn load<T: Pod>(&self, target: usize, at: usize) -> T {
        bytemuck::pod_read_unaligned(&self.get(target, at, std::mem::size_of::<T>()))
    }
}

/// This rank's own memory of a segment.
#[expect(clippy::mut_from_ref, reason = "the memory is not the segment's own")]
pub fn own(segment: &Segment) -> &mut [u8] {
    let base = segment.my_base();
    if base.is_null() {
        return &mut [];
    }
    let len = segment.parts()[segment.group().rank()].len();
    // SAFETY: the piece is mapped while the segment lives; checks use it only
    // between barriers in which no other rank does.
    unsafe { std::slice::from_raw_parts_mut(base, len) }
}

/// The call must fail with an error of this kind.
#[track_caller]
pub fn refused<T>(kind: ErrorKind, what: &str, result: Result<T>) -> String {
    match result {
        Ok(_) => panic!("{what}: succeeded, but must fail with {kind:?}"),
        Err(error) => {
            assert_eq!(error.kind(), kind, "{what}: {error}");
            assert!(error.detail().len() > 10, "{what}: the error says too little: {error}");
            error.to_string()
        }
    }
}

/// Runs what the driver asks for.
pub fn main(spec: &str) -> ExitCode {
    set_up();
    if let Some(name) = spec.strip_prefix("alone:") {
        let alone = alone::ALONE.iter().find(|a| a.name == name).expect("a known launch");
        (alone.run)();
        step("exit");
        return ExitCode::SUCCESS;
    }
    let host = variable(HOST);
    if let Some(level) = &host {
        let level = if level == "single" { ThreadLevel::Single } else { ThreadLevel::Multiple };
        let got = host_init(level);
        assert_eq!(got, level, "MPI's thread level");
    }
    let ctx = Ctx::new(start());
    for name in spec.split(',') {
        let check = cases::CHECKS.iter().find(|c| c.name == name).expect("a known check");
        step(name);
        ctx.barrier();
        let begun = Instant::now();
        if ctx.me == 0 {
            board(&format!("begin {name}\n"));
        }
        (check.run)(&ctx);
        step(format!("{name}: final barrier"));
        ctx.barrier();
        assert_eq!(ctx.engine.memory.live_segments(), 0, "{name} left segments behind");
        if ctx.me == 0 {
            board(&format!("end {name} {:.3}\n", begun.elapsed().as_secs_f64()));
        }
    }
    step("stop");
    drop(ctx);
    Engine::stop().unwrap_or_else(|e| panic!("stop: {e}"));
    if host.is_some() {
        step("MPI_Finalize");
        host_finalize();
    }
    assert!(!init::is_running(), "MPI is finalised at the end");
    step("exit");
    ExitCode::SUCCESS
}
