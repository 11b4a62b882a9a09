//! A transport of the simulation: it proves that a transport needs nothing of the layers above.
//!
//! All ranks are in this process, so the transport reaches the memory of any rank by its address.
//! Puts and gets wait in a queue until the origin polls or flushes, like transfers in a network.
//! Atomic operations are executed at once, under the lock stripes of the owner's region. The
//! transport keeps no order and takes no vectors, so the engine must do without these capabilities.

use crate::checks;
use crate::machine::Outcome;
use crate::programs;
use parking_lot::Mutex;
use portolan_base::error::Result;
use portolan_base::layout::Shape;
use portolan_base::layout::pairs::Pairs;
use portolan_engine::core::peer::CompletionCounter;
use portolan_engine::memory::arena::Arena;
use portolan_engine::path::ops::{Rmw, Transfer, TransferKind};
use portolan_engine::path::{
    Completion, Flush, Path, Paths, Prepared, RemotePlace, Transport, install, kernel, shm_atomics,
};
use std::sync::Arc;

/// The checks that also run over this transport.
pub const CHECKS: &[&str] = &[
    "random",
    "contention",
    "consistency",
    "fences",
    "totals",
    "unaligned",
    "mutexes",
    "thread_fences",
    "compose_random",
    "compose_patterns",
    "array_random",
    "array_ghosts",
];

/// Maximum number of transfers that one poll executes.
const PER_POLL: usize = 2;

#[derive(Debug)]
struct Waiting {
    put: bool,
    target: usize,
    /// Address of the first byte at the target and here. The caller keeps the local bytes valid
    /// until the counter is done, and the segment lives until a fence.
    remote: usize,
    local: usize,
    shape: Shape,
    counter: Arc<CompletionCounter>,
}

impl Waiting {
    fn execute(self) {
        let (here, there) = (self.local as *mut u8, self.remote as *mut u8);
        // SAFETY: all ranks are in this process, so the remote address is valid. The engine has
        // checked the extents, and keeps both sides valid until the counter is done.
        unsafe {
            if self.put {
                kernel::copy(here, there, &self.shape, true);
            } else {
                kernel::copy(there, here, &self.shape, false);
            }
        }
        self.counter.end();
    }
}

#[derive(Debug, Default)]
struct Loopback {
    queue: Mutex<Vec<Waiting>>,
}

impl Loopback {
    fn push(&self, paths: &Paths, waiting: Waiting) {
        let mut queue = self.queue.lock();
        waiting.counter.begin();
        let _ = paths.peer(waiting.target);
        paths.peers().mark_pending(waiting.target, Path::Installed.pending_bit());
        queue.push(waiting);
    }
}

impl Transport for Loopback {
    fn path(&self) -> Path {
        Path::Installed
    }

    unsafe fn start(
        &self,
        paths: &Paths,
        transfer: &Transfer<'_>,
        place: &RemotePlace,
        completion: &Completion<'_>,
    ) -> Result<()> {
        let &Transfer { kind, local, shape, .. } = transfer;
        if let TransferKind::Accumulate(scale) = kind {
            // Earlier puts to the same numbers take effect first.
            self.begin_flush(paths, place.world, Flush::All)?;
            let region = place.arena.base(place.rank) as *mut u8;
            // SAFETY: the region is in this process, and the caller guarantees both extents.
            unsafe { shm_atomics::accumulate(region, place.offset, local, shape, &scale) };
            return Ok(());
        }
        self.push(
            paths,
            Waiting {
                put: kind == TransferKind::Put,
                target: place.world,
                remote: place.address,
                local: local as usize,
                shape: shape.clone(),
                counter: completion.counter().clone(),
            },
        );
        Ok(())
    }

    fn rmw(&self, paths: &Paths, place: &RemotePlace, op: Rmw) -> Result<i64> {
        self.begin_flush(paths, place.world, Flush::All)?;
        let region = place.arena.base(place.rank) as *mut u8;
        // SAFETY: the region is in this process, and the number lies in it.
        Ok(unsafe { shm_atomics::rmw(region, place.offset, op) })
    }

    fn begin_flush(&self, paths: &Paths, target: usize, _: Flush) -> Result<Option<u64>> {
        let mut queue = self.queue.lock();
        let (mine, rest) = queue.drain(..).partition(|w: &Waiting| w.target == target);
        *queue = rest;
        mine.into_iter().for_each(Waiting::execute);
        paths.peers().mark_complete(target, Path::Installed.pending_bit());
        Ok(None)
    }

    fn end_flush(&self, _: &Paths, _: usize, _: u64) -> Result<()> {
        Ok(())
    }

    fn prepare(&self, _: Arc<Arena>, _: usize, pairs: Pairs) -> Result<Box<dyn Prepared>> {
        Ok(Box::new(PreparedPuts(pairs)))
    }

    fn poll(&self, _: &Paths) -> Result<bool> {
        let mut queue = self.queue.lock();
        let now = PER_POLL.min(queue.len());
        queue.drain(..now).for_each(Waiting::execute);
        Ok(now > 0)
    }
}

/// Puts that are prepared once. They are executed at each start.
#[derive(Debug)]
struct PreparedPuts(Pairs);

impl Prepared for PreparedPuts {
    fn path(&self) -> Path {
        Path::Installed
    }

    unsafe fn start(
        &self,
        _: &Paths,
        _: usize,
        _: &Arc<CompletionCounter>,
        _: Option<usize>,
    ) -> Result<bool> {
        let runs = self.0.runs.iter().map(|r| (r.local, r.remote, Shape::contiguous(r.bytes)));
        let shapes = self.0.strided_blocks.iter().map(|p| (p.local, p.remote, p.shape.clone()));
        for (local, remote, shape) in runs.chain(shapes) {
            // SAFETY: the caller keeps the local bytes valid, and the remote ones, which are in
            // this process, were checked when the transfers were prepared.
            unsafe { kernel::copy(local as *const u8, remote as *mut u8, &shape, true) };
        }
        Ok(false)
    }

    fn pairs(&self) -> &Pairs {
        &self.0
    }
}

fn use_it() {
    install(|| Box::new(Loopback::default()));
}

pub fn run(seed: u64, ranks: usize) -> Outcome {
    use_it();
    programs::run(seed, ranks)
}

pub fn check(name: &'static str, seed: u64, ranks: usize) -> Outcome {
    use_it();
    checks::run(name, seed, ranks)
}
