//! A rank: starts, runs its checks in order, stops, and handles failures.
//!
//! A check that fails panics. The panic hook reports the rank and the step and ends all ranks,
//! because a rank that only returned would leave the others waiting. A job of the wrong size would
//! leave ranks waiting as well, so the size is checked first.

pub use crate::ctx::{Ctx, compute_until, own, refused};
use crate::{alone, cases, job};
use mpi::ffi;
use parking_lot::Mutex;
use portolan_engine::mpi::init::{self, ThreadLevel};
use portolan_engine::runtime::Engine;
use std::fmt::Display;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

/// If set to `single` or `multiple`, the program initialises MPI itself.
pub const HOST: &str = "PORTOLAN_TEST_HOST";

static STEP: Mutex<Option<File>> = Mutex::new(None);
static AT: Mutex<String> = Mutex::new(String::new());

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|v| !v.is_empty())
}

pub fn directory() -> PathBuf {
    variable(job::DIR).expect("the driver sets the directory").into()
}

pub fn rank_of_launcher() -> usize {
    ["OMPI_COMM_WORLD_RANK", "PMI_RANK"]
        .iter()
        .find_map(|name| variable(name)?.parse().ok())
        .unwrap_or(0)
}

pub fn step(text: impl Display) {
    let text = text.to_string();
    let line = format!("{} {text:<150.150}\n", std::process::id());
    if let Some(file) = &*STEP.lock() {
        let _ = file.write_all_at(line.as_bytes(), 0);
    }
    *AT.lock() = text;
}

fn record(line: &str) {
    let path = directory().join("checks");
    let mut file =
        File::options().append(true).create(true).open(path).expect("the file of checks");
    file.write_all(line.as_bytes()).expect("the file of checks is writable");
}

fn set_up() {
    // SAFETY: a plain system call without pointers. The parent is the launcher's daemon.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    let path = directory().join(format!("rank.{}", rank_of_launcher()));
    *STEP.lock() = File::create(path).ok();
    step("start");
    std::panic::set_hook(Box::new(|info| {
        // A single write, because the abort of another rank may cut off later output.
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

pub fn check_size(n: usize) {
    let asked = variable(job::RANKS).and_then(|v| v.parse().ok()).unwrap_or(0);
    assert_eq!(
        n, asked,
        "the job has {n} ranks instead of {asked}: is it the launcher of another MPI?"
    );
}

pub fn host_init(level: ThreadLevel) -> ThreadLevel {
    let mut provided = 0;
    // SAFETY: MPI is not initialised yet, and null arguments are legal.
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

pub fn host_finalize() {
    // SAFETY: `host_init` has initialised MPI.
    assert_eq!(unsafe { ffi::MPI_Finalize() }, 0, "MPI_Finalize");
}

pub fn start() -> Arc<Engine> {
    // SAFETY: no communicator is passed, so none has to be valid.
    let engine = unsafe { Engine::start(None) }.unwrap_or_else(|e| panic!("start: {e}"));
    check_size(engine.size());
    engine
}

impl Ctx {
    pub fn new(engine: Arc<Engine>) -> Ctx {
        Ctx {
            me: engine.rank(),
            n: engine.size(),
            engine,
            seed: seed(),
            quick: variable("PORTOLAN_TEST_QUICK").is_some(),
            release: variable("PORTOLAN_TEST_RELEASE").is_some(),
        }
    }
}

pub fn main(spec: &str) -> ExitCode {
    set_up();
    if let Some(name) = spec.strip_prefix("alone:") {
        let alone = alone::all().find(|a| a.name == name).expect("a known launch");
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
            record(&format!("begin {name}\n"));
        }
        (check.run)(&ctx);
        step(format!("{name}: final barrier"));
        ctx.barrier();
        assert_eq!(ctx.engine.memory.live_segments(), 0, "{name} left segments behind");
        if ctx.me == 0 {
            record(&format!("end {name} {:.3}\n", begun.elapsed().as_secs_f64()));
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
