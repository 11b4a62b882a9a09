//! A simulated rank: starts its engine, and checks at the end that nothing is left.

pub use crate::ctx::{Ctx, compute_until, own, refused};
use portolan_base::config::Config;
use portolan_engine::collective;
use portolan_engine::mpi::Comm;
use portolan_engine::mpi::init::{Started, ThreadLevel};
use portolan_engine::runtime::Engine;
use std::fmt::Display;
use std::sync::Arc;

/// Also lets other ranks run. A rank that accesses only memory of its node never stops otherwise.
pub fn step(text: impl Display) {
    crate::machine::step(text.to_string());
    std::thread::yield_now();
}

pub fn start() -> Arc<Engine> {
    unreachable!("checks with a launch of their own need real ranks")
}

pub fn directory() -> std::path::PathBuf {
    unreachable!("checks with files need real ranks")
}

impl Ctx {
    pub fn new(engine: Arc<Engine>) -> Ctx {
        let (me, n) = (engine.rank(), engine.size());
        Ctx { engine, me, n, seed: 1, quick: true, release: false }
    }

    pub fn start(config: Config, seed: u64) -> Ctx {
        step("start");
        // SAFETY: the world communicator of the simulated MPI is live.
        let world = unsafe { collective::dup_of(Comm::world_handle()) }.expect("dup");
        let started = Started { ours: false, level: ThreadLevel::Multiple };
        let engine = Engine::over(config, started, world).unwrap_or_else(|e| panic!("start: {e}"));
        Ctx { seed, ..Ctx::new(engine) }
    }

    /// Stops the engine. Fails if an operation is pending or if memory or references are left.
    pub fn stop(self) {
        step("stop");
        assert_eq!(self.engine.memory.live_segments(), 0, "segments are left");
        self.engine.close().unwrap_or_else(|e| panic!("stop: {e}"));
        let pending = self.engine.pending();
        let counts = |part: &&str| part.contains("active messages sent") || *part == "nothing";
        let left: Vec<&str> = pending.split("; ").filter(|part| !counts(part)).collect();
        assert!(left.is_empty(), "pending at the end: {left:?}");
        assert_eq!(Arc::strong_count(&self.engine), 1, "references to the engine are left");
    }
}
