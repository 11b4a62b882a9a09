//! The environment of a version: the ranks, collective calls, and the clock.
//!
//! The collective calls of a job are Portolan's if the version runs on Portolan, and MPI's
//! otherwise. Only those inside [`Job::time`] count in the result.

use crate::Result;
use crate::two_sided::World;
use portolan::Runtime;
use portolan::reduce::{Max, Min, Sum};
use std::time::Instant;

/// The ranks that run a version together.
#[derive(Debug)]
pub struct Job<'a> {
    /// Portolan, in the versions that use it.
    rt: Option<&'a Runtime>,
    /// MPI.
    pub world: World,
    /// How often the measured part is repeated.
    pub repeats: usize,
}

/// The times of one repetition.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// Seconds from the first rank's start to the last rank's end.
    pub seconds: f64,
    /// Processor seconds of all threads, per rank.
    pub processor: f64,
}

/// The result of a version, which is the same on all ranks.
#[derive(Debug)]
pub struct Outcome {
    /// The repetitions.
    pub samples: Vec<Sample>,
    /// The work of all ranks in a repetition, in the unit of the kernel's rate.
    pub work: f64,
    /// Whether the result is right on all ranks.
    pub verified: bool,
}

impl Outcome {
    /// Returns the median of the repetitions' seconds.
    pub fn seconds(&self) -> f64 {
        median(self.samples.iter().map(|s| s.seconds))
    }

    /// Returns the median of the repetitions' processor seconds.
    pub fn processor(&self) -> f64 {
        median(self.samples.iter().map(|s| s.processor))
    }
}

/// Returns the median, or 0 of nothing.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[n / 2],
        n => 0.5 * (values[n / 2 - 1] + values[n / 2]),
    }
}

impl<'a> Job<'a> {
    /// Makes a job. MPI must be initialised.
    pub fn new(rt: Option<&'a Runtime>, repeats: usize) -> Job<'a> {
        let world = match rt {
            Some(rt) => World { me: rt.rank(), n: rt.size() },
            None => World::new(),
        };
        Job { rt, world, repeats }
    }

    /// Returns this rank.
    pub fn me(&self) -> usize {
        self.world.me
    }

    /// Returns the number of ranks.
    pub fn n(&self) -> usize {
        self.world.n
    }

    /// Returns Portolan. Fails in a version that does not run on it.
    pub fn rt(&self) -> Result<&'a Runtime> {
        self.rt.ok_or_else(|| "Portolan is not started".into())
    }

    /// Waits for all ranks.
    pub fn barrier(&self) -> Result<()> {
        match self.rt {
            Some(rt) => Ok(rt.world().barrier()?),
            None => {
                self.world.barrier();
                Ok(())
            }
        }
    }

    /// Returns the largest value.
    pub fn max(&self, value: f64) -> Result<f64> {
        match self.rt {
            Some(rt) => Ok(rt.world().all_reduce_value(value, Max)?),
            None => Ok(self.all(value).into_iter().fold(f64::NEG_INFINITY, f64::max)),
        }
    }

    /// Returns the sum.
    pub fn sum(&self, value: f64) -> Result<f64> {
        match self.rt {
            Some(rt) => Ok(rt.world().all_reduce_value(value, Sum)?),
            None => Ok(self.all(value).into_iter().sum()),
        }
    }

    /// Returns the sum of integers.
    pub fn count(&self, value: u64) -> Result<u64> {
        match self.rt {
            Some(rt) => Ok(rt.world().all_reduce_value(value as i64, Sum)? as u64),
            None => Ok(self.all(value).into_iter().sum()),
        }
    }

    /// Returns whether the statement holds on all ranks.
    pub fn all_true(&self, value: bool) -> Result<bool> {
        match self.rt {
            Some(rt) => Ok(rt.world().all_reduce_value(i64::from(value), Min)? == 1),
            None => Ok(self.all(u64::from(value)).into_iter().all(|v| v == 1)),
        }
    }

    fn all<T: bytemuck::Pod>(&self, value: T) -> Vec<T> {
        self.world.all_gather(&[value])
    }

    /// Returns the values of all ranks, in the order of ranks. All ranks pass the same number.
    pub fn gather(&self, values: &[u64]) -> Result<Vec<u64>> {
        match self.rt {
            None => Ok(self.world.all_gather(values)),
            Some(rt) => {
                let mut all = vec![0; values.len() * self.n()];
                let from = values.len() * self.me();
                all[from..from + values.len()].copy_from_slice(values);
                let mut signed: Vec<i64> = all.iter().map(|v| *v as i64).collect();
                rt.world().all_reduce(&mut signed, Sum)?;
                Ok(signed.into_iter().map(|v| v as u64).collect())
            }
        }
    }

    /// Runs the measured part once, from a barrier to the completion of its communication.
    pub fn time(&self, part: impl FnOnce() -> Result<()>) -> Result<Sample> {
        self.barrier()?;
        let (used, begun) = (processor_seconds(), Instant::now());
        part()?;
        let seconds = begun.elapsed().as_secs_f64();
        let processor = processor_seconds() - used;
        let seconds = self.max(seconds)?;
        Ok(Sample { seconds, processor: self.sum(processor)? / self.n() as f64 })
    }

    /// Runs the measured part `repeats` times.
    pub fn repeat(&self, mut part: impl FnMut() -> Result<()>) -> Result<Vec<Sample>> {
        (0..self.repeats).map(|_| self.time(&mut part)).collect()
    }
}

/// Returns the processor seconds that the threads of this process have used.
fn processor_seconds() -> f64 {
    // SAFETY: `rusage` is valid if zeroed, and `getrusage` writes only to it.
    let used = unsafe {
        let mut used: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut used);
        used
    };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 * 1e-6;
    seconds(used.ru_utime) + seconds(used.ru_stime)
}

/// Returns a grid of ranks that is as square as possible, the longer axis first.
pub fn grid(n: usize) -> [usize; 2] {
    let short = (1..=n).take_while(|s| s * s <= n).filter(|s| n.is_multiple_of(*s)).last();
    let short = short.unwrap_or(1);
    [n / short, short]
}

/// Returns the part of `0..whole` that belongs to part `i` of `parts` nearly equal parts.
pub fn share(whole: usize, parts: usize, i: usize) -> std::ops::Range<usize> {
    whole * i / parts..whole * (i + 1) / parts
}
