//! Measures contenders in turn, in batches that all ranks begin and end together.
//!
//! **Invariant.** The length of a batch and the choice of the next measurement depend only on
//! values that all ranks have agreed on. Otherwise a rank could wait for a batch that others do not
//! run.
//!
//! Each origin times its own operations, and the slowest determines the result. A target of
//! one-sided operations waits in the next barrier, or computes until the origins signal their end.

use crate::lab::{Contender, END, Lab, Library};
use crate::plan::{Case, TargetActivity};
use crate::result::Result;
use crate::stats::Figure;
use mpi::traits::{Communicator, CommunicatorCollectives, Source};
use portolan::reduce::Max;
use std::hint::black_box;
use std::time::{Duration, Instant};

#[derive(Debug, Clone)]
pub struct Rounds {
    pub name: &'static str,
    pub library: Library,
    /// Seconds per operation, one value per round.
    pub seconds: Vec<f64>,
}

impl Rounds {
    pub fn figure(&self) -> Option<Figure> {
        Figure::of(&self.seconds)
    }
}

impl Lab<'_> {
    /// Runs the contenders in turn, round by round. Before that, it finds the number of iterations
    /// that each contender needs to fill a batch. Collective.
    pub fn alternate(&self, case: &Case, contenders: &mut [Contender<'_>]) -> Result<Vec<Rounds>> {
        let mut iterations = Vec::new();
        for contender in contenders.iter_mut() {
            iterations.push(self.calibrate(case, contender)?);
        }
        let mut rounds: Vec<Rounds> = contenders
            .iter()
            .map(|c| Rounds { name: c.name, library: c.library, seconds: Vec::new() })
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
        let computes = case.target == TargetActivity::Computes && !contender.both;
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
        if contender.library == Library::Mpi {
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
        Ok(self.rt.world().all_reduce_value(seconds, Max)?)
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
