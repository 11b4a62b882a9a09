//! What the checks of the real ranks need, on a simulated rank: the same names as theirs.

use bytemuck::Pod;
use portolan::error::{ErrorKind, Result};
use portolan::internals::config::Config;
use portolan::internals::memory::segment::Segment;
use portolan::internals::mpi::Comm;
use portolan::internals::mpi::init::{Started, ThreadLevel};
use portolan::internals::runtime::Engine;
use std::fmt::Display;
use std::sync::Arc;

/// What a check gets.
#[derive(Debug)]
pub struct Ctx {
    pub engine: Arc<Engine>,
    pub me: usize,
    pub n: usize,
    pub seed: u64,
    pub quick: bool,
    pub full: bool,
}

/// Notes where the calling rank stands, for a run that fails.
pub fn step(text: impl Display) {
    crate::machine::step(text.to_string());
}

impl Ctx {
    /// Starts an engine on the calling rank.
    pub fn start(config: Config, seed: u64) -> Ctx {
        step("start");
        // SAFETY: the simulated world is live.
        let world = unsafe { Comm::dup_of(Comm::world_handle()) }.expect("dup");
        let started = Started { ours: false, level: ThreadLevel::Multiple };
        let engine = Engine::over(config, started, world).unwrap_or_else(|e| panic!("start: {e}"));
        let (me, n) = (engine.rank(), engine.size());
        Ctx { engine, me, n, seed, quick: true, full: false }
    }

    /// Ends the engine; nothing of it may be left.
    pub fn stop(self) {
        step("stop");
        assert_eq!(self.engine.memory.live_segments(), 0, "segments are left");
        self.engine.close().unwrap_or_else(|e| panic!("stop: {e}"));
        assert_eq!(Arc::strong_count(&self.engine), 1, "references to the engine are left");
    }

    pub fn barrier(&self) {
        self.engine.barrier_of(self.engine.world()).expect("barrier");
    }

    pub fn allocate(&self, bytes: usize) -> Arc<Segment> {
        self.engine.allocate(self.engine.world(), bytes).expect("allocate")
    }

    pub fn free(&self, segment: Arc<Segment>) {
        self.engine.release(segment).expect("release");
    }

    pub fn put(&self, target: usize, at: usize, bytes: &[u8]) {
        // SAFETY: the slice is valid.
        unsafe { self.engine.put(target, at, bytes.as_ptr(), bytes.len()) }.expect("put");
    }

    pub fn get(&self, target: usize, at: usize, bytes: usize) -> Vec<u8> {
        let mut out = vec![0xee; bytes];
        // SAFETY: the vector has as many bytes.
        unsafe { self.engine.get(target, at, out.as_mut_ptr(), bytes) }.expect("get");
        out
    }

    pub fn store<T: Pod>(&self, target: usize, at: usize, value: T) {
        self.put(target, at, bytemuck::bytes_of(&value));
    }

    pub fn loads<T: Pod>(&self, target: usize, at: usize, count: usize) -> Vec<T> {
        let bytes = self.get(target, at, count * size_of::<T>());
        bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
    }

    pub fn load<T: Pod>(&self, target: usize, at: usize) -> T {
        bytemuck::pod_read_unaligned(&self.get(target, at, size_of::<T>()))
    }
}

/// The calling rank's own memory of a segment.
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
            error.to_string()
        }
    }
}
