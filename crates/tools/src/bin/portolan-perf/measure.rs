//! Measures contenders in turn, in batches that all ranks begin and end together.
//!
//! **Invariant.** The number of iterations of a batch and the choice of the next measurement depend
//! only on values that all ranks have agreed on. Otherwise a rank could wait for a batch that
//! others do not run.
//!
//! A batch begins with a barrier. Each origin times its own operations, and the slowest origin
//! determines the result. A target of one-sided operations goes straight to the next barrier and
//! waits there, or it computes until the origins signal that they have finished.

use crate::Result;
use crate::bounds::rma::Window;
use crate::cases::Services;
use crate::plan::{Case, Pattern, Target, cores};
use crate::stats::Figure;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Source};
use portolan::internals::api::engine;
use portolan::{Operator, Runtime, Segment};
use std::cell::OnceCell;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Number and duration of the rounds.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Batches per contender.
    pub rounds: usize,
    /// Intended duration of a batch.
    pub batch: Duration,
}

/// The bounds to measure.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// A copy or a loop in the rank's own memory.
    pub plain: bool,
    /// MPI messages.
    pub two_sided: bool,
    /// MPI windows.
    pub rma: bool,
}

/// Resources shared by the tests of one start of the runtime.
pub struct Lab<'rt> {
    /// The running library.
    pub rt: &'rt Runtime,
    /// A communicator for MPI's own operations.
    pub mpi: &'rt SimpleCommunicator,
    /// Bounds to measure.
    pub bounds: Bounds,
    /// Number and duration of the rounds.
    pub effort: Effort,
    /// Memory for transfers, large enough on each rank for the largest operation.
    pub data: Segment<'rt, u8>,
    /// Counters for atomic operations, and the word that ends a computing rank.
    pub words: Segment<'rt, i64>,
    /// Flags for the notify test.
    pub flags: Segment<'rt, i32>,
    /// Bytes of `data` on each rank.
    pub region: usize,
    /// An MPI window of `region` bytes, allocated at first use.
    window: OnceCell<Window>,
    /// Handlers, functions and compositions, created at first use.
    pub services: Services<'rt>,
}

/// Index of the word in [`Lab::words`] that origins increment to end a computing rank.
const END: usize = 15;
/// Length of [`Lab::words`] on each rank.
const WORDS: usize = 16;
/// Flags on each rank. The two flags of the notify test are a cache line apart, and the last flag
/// stores their latest value.
pub const FLAGS: usize = 32;

/// The library that a contender calls. The ranks wait for the end of a batch in the same library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Portolan. Ranks must wait inside Portolan, so that it can move data on their behalf.
    Portolan,
    /// MPI.
    Mpi,
    /// Neither.
    Plain,
}

/// An implementation of the operation that a test measures.
pub struct Contender<'a> {
    /// Name in the heading of a table.
    pub name: &'static str,
    /// The library that it calls.
    pub by: By,
    /// Whether the targets take part, so that they cannot compute at the same time.
    pub both: bool,
    /// Runs a given number of iterations. All ranks call it, unless they compute.
    pub body: Body<'a>,
    /// Operations per iteration.
    pub ops: f64,
}

/// Runs the given number of iterations.
pub type Body<'a> = Box<dyn FnMut(usize) -> Result<()> + 'a>;

/// The rounds of one contender.
#[derive(Debug, Clone)]
pub struct Rounds {
    /// The contender's name.
    pub name: &'static str,
    /// The library that it called.
    pub by: By,
    /// Seconds per operation, one value per round.
    pub seconds: Vec<f64>,
}

impl Rounds {
    /// Returns the median and quartiles of the rounds, or `None` if there are none.
    pub fn figure(&self) -> Option<Figure> {
        Figure::of(&self.seconds)
    }
}

impl<'rt> Lab<'rt> {
    /// Allocates the resources for operations of up to `region` bytes. Collective.
    pub fn new(
        rt: &'rt Runtime,
        mpi: &'rt SimpleCommunicator,
        bounds: Bounds,
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
            window: OnceCell::new(),
            services: Services::default(),
        };
        lab.data.local().fill(1);
        lab.words.local().fill(0);
        lab.flags.local().fill(0);
        world.barrier()?;
        Ok(lab)
    }

    /// Frees everything that the tests have used. Collective.
    pub fn free(self) -> Result<()> {
        self.services.free(self.rt)?;
        if let Some(window) = self.window.into_inner() {
            window.free()?;
        }
        self.data.free()?;
        self.words.free()?;
        self.flags.free()?;
        Ok(())
    }

    /// Returns the MPI window. The first call allocates it and is collective.
    pub fn window(&self) -> Result<&Window> {
        if self.window.get().is_none() {
            let _ = self.window.set(Window::allocate(self.mpi, self.region)?);
        }
        Ok(self.window.get().expect("set above"))
    }

    /// Returns the calling rank.
    pub fn me(&self) -> usize {
        self.rt.rank()
    }

    /// Returns the number of ranks.
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

    /// Returns the reason why a computing target would not be served, or `None` if it would.
    /// Collective.
    pub fn serves_nobody(&self, pattern: Pattern) -> Result<Option<&'static str>> {
        let mut direct = true;
        for target in self.targets(pattern) {
            direct &= self.rt.path_to(target)? == portolan::Path::Direct;
        }
        let served = direct || self.rt.has_progress_thread();
        let all = self.rt.world().all_reduce_value(i32::from(served), Operator::Min)?;
        Ok((all == 0).then_some("a rank that computes serves nobody without a progress thread"))
    }

    /// Runs the contenders in turn, round by round. Before that, it finds the number of iterations
    /// that each contender needs to fill a batch. Collective.
    pub fn alternate(&self, case: &Case, contenders: &mut [Contender<'_>]) -> Result<Vec<Rounds>> {
        let mut iterations = Vec::new();
        for contender in contenders.iter_mut() {
            iterations.push(self.calibrate(case, contender)?);
        }
        let mut rounds: Vec<Rounds> = contenders
            .iter()
            .map(|c| Rounds { name: c.name, by: c.by, seconds: Vec::new() })
            .collect();
        for _ in 0..self.effort.rounds {
            for (place, contender) in contenders.iter_mut().enumerate() {
                let n = iterations[place];
                let seconds = self.batch(case, contender, n)?;
                rounds[place].seconds.push(seconds / (n as f64 * contender.ops));
            }
        }
        Ok(rounds)
    }

    /// Returns the number of iterations that fill a batch. Collective.
    fn calibrate(&self, case: &Case, contender: &mut Contender<'_>) -> Result<usize> {
        const MOST: f64 = 4e6;
        let wanted = self.effort.batch.as_secs_f64();
        let mut n = 1.0;
        self.batch(case, contender, 1)?;
        loop {
            let seconds = self.batch(case, contender, n as usize)?.max(1e-9);
            let more = wanted / seconds;
            if more < 4.0 || n >= MOST {
                return Ok((n * more).clamp(1.0, MOST) as usize);
            }
            n = (n * (more / 2.0).min(50.0)).min(MOST).floor();
        }
    }

    /// Runs `n` iterations and returns the seconds that the slowest origin took. Collective.
    fn batch(&self, case: &Case, contender: &mut Contender<'_>, n: usize) -> Result<f64> {
        let origin = !self.targets(case.pattern).is_empty();
        let computes = case.target == Target::Computes && !contender.both;
        let end = self.words.local().read(END) + case.pattern.origins(self.size()).len() as i64;
        self.rt.world().barrier()?;
        let mut seconds = 0.0;
        if origin {
            let begun = Instant::now();
            (contender.body)(n)?;
            seconds = begun.elapsed().as_secs_f64();
        } else if computes {
            self.compute_until(end);
        } else {
            (contender.body)(n)?;
        }
        if computes && origin {
            for rank in 0..self.size() {
                self.words.fetch_add(rank, END, 1)?;
            }
        }
        if contender.by == By::Mpi {
            self.mpi_meet();
            if self.mpi.any_process().immediate_probe().is_some() {
                return Err(format!(
                    "{}: a message of this batch was not received",
                    contender.name
                )
                .into());
            }
        } else {
            self.rt.world().barrier()?;
        }
        Ok(self.rt.world().all_reduce_value(seconds, Operator::Max)?)
    }

    /// Computes without calling the library until all origins have finished.
    fn compute_until(&self, end: i64) {
        let mut x = 1u64;
        while self.words.local().read(END) < end {
            for _ in 0..500 {
                x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            }
            black_box(x);
        }
    }

    /// Waits in an MPI barrier and yields the core while it waits.
    fn mpi_meet(&self) {
        let mut request = self.mpi.immediate_barrier();
        let begun = Instant::now();
        while let Err(again) = request.test() {
            request = again;
            if begun.elapsed() < Duration::from_millis(20) {
                std::thread::yield_now();
            } else {
                std::thread::sleep(Duration::from_micros(20));
            }
        }
    }
}
