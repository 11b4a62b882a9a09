//! The resources that tests share, and their contenders. This module knows no test.

mod server;
mod window;

use crate::plan::{Case, Pattern, cores};
use crate::result::Result;
use mpi::topology::SimpleCommunicator;
use portolan::compose::Composer;
use portolan::internals::engine;
use portolan::messages::Messages;
use portolan::mutex::MutexSet;
use portolan::num_complex::Complex;
use portolan::reduce::Min;
use portolan::{Runtime, Segment};
use portolan_engine::memory::segment;
pub use server::{ByteString, RpcServer};
use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Duration;
pub use window::{MpiWindow, Operation};

#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Batches per contender.
    pub rounds: usize,
    /// Intended duration of a batch.
    pub batch: Duration,
}

#[derive(Debug, Clone, Copy)]
pub struct ChosenBounds {
    /// A copy or a loop in the rank's own memory.
    pub plain: bool,
    pub two_sided: bool,
    pub rma: bool,
}

pub struct Lab<'rt> {
    pub rt: &'rt Runtime,
    /// A communicator for MPI's own operations.
    pub mpi: &'rt SimpleCommunicator,
    pub bounds: ChosenBounds,
    pub effort: Effort,
    /// Memory for transfers, large enough on each rank for the largest operation.
    pub data: Segment<'rt, u8>,
    /// Counters for atomic operations, and the word that ends a computing rank.
    pub words: Segment<'rt, i64>,
    /// Flags for the notify test.
    pub flags: Segment<'rt, i32>,
    /// Bytes of `data` on each rank.
    pub region: usize,
    pub resources: TestResources<'rt>,
}

/// Resources that tests create at first use. [`Lab::free`] frees them.
#[derive(Default)]
pub struct TestResources<'rt> {
    pub messages: OnceCell<Messages<'rt>>,
    pub composer: OnceCell<Composer<'rt>>,
    pub mutexes: OnceCell<MutexSet<'rt>>,
    /// Segments of each number type, for accumulates.
    pub i32s: OnceCell<Segment<'rt, i32>>,
    pub i64s: OnceCell<Segment<'rt, i64>>,
    pub f32s: OnceCell<Segment<'rt, f32>>,
    pub f64s: OnceCell<Segment<'rt, f64>>,
    pub c32s: OnceCell<Segment<'rt, Complex<f32>>>,
    pub c64s: OnceCell<Segment<'rt, Complex<f64>>>,
    /// Memory whose addresses are known, as vector transfers require.
    pub addressed: OnceCell<Arc<segment::Segment>>,
    pub server: OnceCell<RpcServer>,
    /// An MPI window of [`Lab::region`] bytes.
    window: OnceCell<MpiWindow>,
}

pub fn get_or_create<T>(cell: &OnceCell<T>, create: impl FnOnce() -> Result<T>) -> Result<&T> {
    if cell.get().is_none() {
        let _ = cell.set(create()?);
    }
    Ok(cell.get().expect("set above"))
}

fn free<T, E: Into<Box<dyn std::error::Error>>>(
    cell: OnceCell<T>,
    free: impl FnOnce(T) -> std::result::Result<(), E>,
) -> Result<()> {
    cell.into_inner().map_or(Ok(()), |value| free(value).map_err(E::into))
}

/// Index of the word in [`Lab::words`] that origins increment to end a computing rank.
pub const END: usize = 15;
const WORDS: usize = 16;
/// Flags on each rank. The two flags of the notify test are a cache line apart, and the last flag
/// stores their latest value.
pub const FLAGS: usize = 32;

/// The library that a contender calls. The ranks wait for the end of a batch in the same library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// Portolan. Ranks must wait inside Portolan, so that it can move data on their behalf.
    Portolan,
    Mpi,
    Plain,
}

pub struct Contender<'a> {
    /// Name in the heading of a table.
    pub name: &'static str,
    pub library: Library,
    /// Whether the targets take part, so that they cannot compute at the same time.
    pub both: bool,
    /// Runs a given number of iterations. All ranks call it, unless they compute.
    pub body: Box<dyn FnMut(usize) -> Result<()> + 'a>,
    pub ops: f64,
}

impl<'a> Contender<'a> {
    pub fn new(
        name: &'static str,
        library: Library,
        both: bool,
        ops: usize,
        body: impl FnMut(usize) -> Result<()> + 'a,
    ) -> Contender<'a> {
        Contender { name, library, both, body: Box::new(body), ops: ops as f64 }
    }

    /// Creates Portolan's contender for a step that only origins execute, at each of their targets
    /// in turn.
    pub fn at_targets(
        lab: &Lab<'_>,
        case: Case,
        ops: usize,
        mut step: impl FnMut(usize) -> Result<()> + 'a,
    ) -> Contender<'a> {
        let targets = lab.targets(case.pattern);
        let body = move |n: usize| {
            for turn in (0..n).filter(|_| !targets.is_empty()) {
                step(targets[turn % targets.len()])?;
            }
            Ok(())
        };
        Contender::new("portolan", Library::Portolan, false, ops, body)
    }
}

impl<'rt> Lab<'rt> {
    /// Allocates the resources for operations of up to `region` bytes. Collective.
    pub fn new(
        rt: &'rt Runtime,
        mpi: &'rt SimpleCommunicator,
        bounds: ChosenBounds,
        effort: Effort,
        region: usize,
    ) -> Result<Lab<'rt>> {
        let world = rt.world();
        let lab = Lab {
            rt,
            mpi,
            bounds,
            effort,
            data: world.allocate(region)?,
            words: world.allocate(WORDS)?,
            flags: world.allocate(FLAGS)?,
            region,
            resources: TestResources::default(),
        };
        lab.data.local().fill(1);
        lab.words.local().fill(0);
        lab.flags.local().fill(0);
        world.barrier()?;
        Ok(lab)
    }

    /// Frees everything that the tests have used. Collective.
    pub fn free(self) -> Result<()> {
        let used = self.resources;
        free(used.server, RpcServer::free)?;
        free(used.composer, Composer::free)?;
        free(used.messages, Messages::free)?;
        free(used.mutexes, MutexSet::free)?;
        free(used.i32s, Segment::free)?;
        free(used.i64s, Segment::free)?;
        free(used.f32s, Segment::free)?;
        free(used.f64s, Segment::free)?;
        free(used.c32s, Segment::free)?;
        free(used.c64s, Segment::free)?;
        free(used.addressed, |segment| engine(self.rt).release(segment))?;
        free(used.window, MpiWindow::free)?;
        self.data.free()?;
        self.words.free()?;
        self.flags.free()?;
        Ok(())
    }

    /// Returns the MPI window. The first call allocates it and is collective.
    pub fn window(&self) -> Result<&MpiWindow> {
        get_or_create(&self.resources.window, || MpiWindow::allocate(self.mpi, self.region))
    }

    pub fn me(&self) -> usize {
        self.rt.rank()
    }

    pub fn size(&self) -> usize {
        self.rt.size()
    }

    /// Returns the targets of this rank. The list is empty if the rank is not an origin.
    pub fn targets(&self, pattern: Pattern) -> Vec<usize> {
        pattern.targets(self.me(), self.size())
    }

    /// Returns whether a node has more ranks than cores, so that waiting ranks should yield.
    pub fn is_crowded(&self) -> bool {
        self.size().div_ceil(engine(self.rt).topology.real_nodes()) > cores()
    }

    /// Returns the reason why a computing target would not be served, if any. Collective.
    pub fn serves_nobody(&self, pattern: Pattern) -> Result<Option<&'static str>> {
        let mut direct = true;
        for target in self.targets(pattern) {
            direct &= self.rt.path_to(target)? == portolan::TransferPath::Direct;
        }
        let served = direct || self.rt.has_progress_thread();
        let all = self.rt.world().all_reduce_value(i32::from(served), Min)?;
        Ok((all == 0).then_some("a rank that computes serves nobody without a progress thread"))
    }
}
