//! Measuring: contenders in turn, in batches that all ranks begin and end together.
//!
//! **Invariant.** How often a batch is repeated, and what is measured next, follows from numbers
//! that all ranks have agreed on, so that no rank waits for a batch that others do not run.
//!
//! A batch begins with a barrier. The origins take the time of their own part, and the slowest of
//! them is what counts. Ranks that are targets of one-sided operations go on to the next barrier,
//! which is where they wait, or compute until the origins tell them that they are done.

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

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Batches of each contender.
    pub rounds: usize,
    /// What a batch is to take.
    pub batch: Duration,
}

/// Which bounds are measured.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// A copy, or a loop, in this rank's own memory.
    pub plain: bool,
    /// MPI's messages.
    pub two_sided: bool,
    /// MPI's windows.
    pub rma: bool,
}

/// What the tests of one start of the runtime share.
pub struct Lab<'rt> {
    /// The running library.
    pub rt: &'rt Runtime,
    /// A communicator for MPI's own operations.
    pub mpi: &'rt SimpleCommunicator,
    /// What is measured beside.
    pub bounds: Bounds,
    /// How much is measured.
    pub effort: Effort,
    /// Bytes, as many on each rank as the largest operation touches.
    pub data: Segment<'rt, u8>,
    /// Counters that operations count at, and those by which a computing rank is told to end.
    pub words: Segment<'rt, i64>,
    /// For notify.
    pub flags: Segment<'rt, i32>,
    /// Bytes on each rank in `data`.
    pub region: usize,
    /// An MPI window of as many bytes, where it is used.
    window: OnceCell<Window>,
    /// Handlers, functions and compositions, where they are used.
    pub services: Services<'rt>,
}

/// The word of [`Lab::words`] that tells a computing rank to end.
const END: usize = 15;
/// Words on each rank.
const WORDS: usize = 16;
/// Flags on each rank: a line of memory for each, and one for the last value.
pub const FLAGS: usize = 32;

/// Whose calls a contender makes: by the same the ranks wait for its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Portolan's. What Portolan moves for a rank that waits needs that it waits in Portolan.
    Portolan,
    /// MPI's.
    Mpi,
    /// Neither.
    Plain,
}

/// One way of doing what a test measures.
pub struct Contender<'a> {
    /// As in the head of a table.
    pub name: &'static str,
    /// Whose calls it makes.
    pub by: By,
    /// Whether the targets have a part in it, so that they cannot compute meanwhile.
    pub both: bool,
    /// Runs so many iterations, on all ranks.
    pub body: Body<'a>,
    /// Operations of an iteration.
    pub ops: f64,
}

/// Runs so many iterations.
pub type Body<'a> = Box<dyn FnMut(usize) -> Result<()> + 'a>;

/// The rounds of a contender: seconds of an operation.
#[derive(Debug, Clone)]
pub struct Rounds {
    /// The contender's name.
    pub name: &'static str,
    /// Whose calls it made.
    pub by: By,
    /// One for each round.
    pub seconds: Vec<f64>,
}

impl Rounds {
    /// Their median.
    pub fn figure(&self) -> Option<Figure> {
        Figure::of(&self.seconds)
    }
}

impl<'rt> Lab<'rt> {
    /// For operations of up to `region` bytes. Collective.
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

    /// Ends what was started for the tests. Collective.
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

    /// MPI's window. Collective at its first use.
    pub fn window(&self) -> Result<&Window> {
        if self.window.get().is_none() {
            let _ = self.window.set(Window::allocate(self.mpi, self.region)?);
        }
        Ok(self.window.get().expect("set above"))
    }

    /// The calling rank.
    pub fn me(&self) -> usize {
        self.rt.rank()
    }

    /// The number of ranks.
    pub fn size(&self) -> usize {
        self.rt.size()
    }

    /// The targets of this rank, none where it is no origin.
    pub fn targets(&self, pattern: Pattern) -> Vec<usize> {
        pattern.targets(self.me(), self.size())
    }

    /// Whether there are more ranks than cores, so that waiting ranks should not keep one.
    pub fn is_crowded(&self) -> bool {
        self.size().div_ceil(engine(self.rt).topology.real_nodes()) > cores()
    }

    /// Why a target that computes would not be served, if so.
    pub fn serves_nobody(&self, pattern: Pattern) -> Result<Option<&'static str>> {
        let mut direct = true;
        for target in self.targets(pattern) {
            direct &= self.rt.path_to(target)? == portolan::Path::Direct;
        }
        let served = direct || self.rt.has_progress_thread();
        let all = self.rt.world().all_reduce_value(i32::from(served), Operator::Min)?;
        Ok((all == 0).then_some("a rank that computes serves nobody without a progress thread"))
    }

    /// The contenders in turn, round by round, after each has shown how many iterations fill a
    /// batch. Collective.
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

    /// How many iterations take as long as a batch is to take.
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

    /// Seconds that the slowest origin took for so many iterations.
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

    /// Computes, without any call of the library, until all origins are done.
    fn compute_until(&self, end: i64) {
        let mut x = 1u64;
        while self.words.local().read(END) < end {
            for _ in 0..500 {
                x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            }
            black_box(x);
        }
    }

    /// A barrier of MPI's in which a waiting rank gives up its core.
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
