//! Finds the settings that pay on this machine.
//!
//! Each round of an experiment starts the runtime once for every value of a variable and measures
//! the tests that it affects. A value other than the default is advised only if it is faster by
//! more than the noise of the rounds.
//!
//! The measurements do not depend on earlier results, so that all ranks do the same
//! ([`measure`](mod@crate::measure)). Only the conclusions of rank 0 are used.

mod conclusion;

use crate::args::Args;
use crate::cases::{ITEM_SIZES, TESTS, Test};
use crate::format::{bytes, number};
use crate::lab::{ChosenBounds, Effort};
use crate::plan::TargetActivity;
use crate::report::{Advice, Report, ResultRow};
use crate::result::Result;
use crate::run::{RunPlan, describe, set_variables};
use crate::stats::Figure;
pub use conclusion::text;
use conclusion::{Experiment, ROUNDS, Series, Where, aggregate, conclude};
use mpi::topology::SimpleCommunicator;
use portolan::Runtime;
use portolan::internals::engine;
use portolan::reduce::{Max, Min, Sum};
use std::fmt::Write;
use std::hint::black_box;
use std::time::{Duration, Instant};

const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        variable: "PORTOLAN_PATH",
        values: &["auto", "direct+rma"],
        tests: &["put_lat", "get_lat", "strided_put", "strided_get"],
        sizes: &[8, 64 << 10, 4 << 20],
        place: Where::Messages,
    },
    Experiment {
        variable: "PORTOLAN_CHUNK_BYTES",
        values: &["auto", "32K", "256K"],
        tests: &["strided_put", "strided_get"],
        sizes: &[256 << 10, 4 << 20],
        place: Where::Messages,
    },
    Experiment {
        variable: "PORTOLAN_SPLIT",
        values: &["auto", "on", "off"],
        tests: &["put_bw", "get_bw"],
        sizes: &[256 << 10, 4 << 20],
        place: Where::Messages,
    },
    Experiment {
        variable: "PORTOLAN_AM_RING_BYTES",
        values: &["512K", "128K", "2M"],
        tests: &["am_call", "am_rate"],
        sizes: &[1 << 10, 16 << 10, 64 << 10],
        place: Where::Node,
    },
];

/// Runs the experiments and adds their advice to `measured`, or to a new report. Collective.
pub fn advise(args: &Args, mpi: &SimpleCommunicator, measured: Option<Report>) -> Result<Report> {
    let lab = Adviser { args, mpi, rounds: if args.quick { 2 } else { ROUNDS } };
    let (mut report, job) = lab.with(&[], |rt| {
        let report = measured.map_or_else(|| describe(rt), Ok)?;
        let thread = rt.has_progress_thread();
        let agreed = rt.world().all_reduce_value(i32::from(thread), Max)?;
        let last = rt.size() - 1;
        let job = JobProperties {
            ranks: rt.size(),
            nodes: rt.nodes(),
            virtual_nodes: engine(rt).topology.real_nodes() < rt.nodes(),
            messages: engine(rt).has_messages(),
            thread: agreed != 0,
            // The limit for messages from a rank to itself is `usize::MAX`, so the last rank does
            // not affect the minimum.
            eager: eager_agreed(rt, engine(rt).eager_limit(last))?,
        };
        Ok((report, job))
    })?;
    if job.ranks == 1 {
        report.skipped.push("--advise needs at least two ranks".into());
        return Ok(report);
    }
    for experiment in EXPERIMENTS {
        let fits = match experiment.place {
            Where::Messages => job.messages,
            Where::Node => job.nodes < job.ranks,
        };
        if fits {
            let mut advice = match lab.refusal(experiment) {
                Some(reason) => conclusion::refused(experiment, reason),
                None => conclude(experiment, &lab.series(experiment)?),
            };
            if job.virtual_nodes {
                advice.reason += "; the nodes are virtual, and MPI uses their shared memory: \
                                  real nodes may need another value";
            }
            report.advice.push(advice);
        }
    }
    report.advice.push(lab.aggregation()?);
    report.advice.push(lab.rendezvous(job.eager)?);
    report.advice.push(lab.progress_thread(job.thread)?);
    Ok(report)
}

/// Returns the smallest limit of all ranks. Collective.
fn eager_agreed(rt: &Runtime, limit: usize) -> Result<usize> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    Ok(rt.world().all_reduce_value(limit, Min)? as usize)
}

/// Properties of the job that decide what is measured.
struct JobProperties {
    ranks: usize,
    nodes: usize,
    virtual_nodes: bool,
    messages: bool,
    thread: bool,
    eager: usize,
}

struct Adviser<'a> {
    args: &'a Args,
    mpi: &'a SimpleCommunicator,
    rounds: usize,
}

fn test(name: &str) -> &'static Test {
    TESTS.iter().find(|t| t.name == name).expect("the names in this file are of tests")
}

impl Adviser<'_> {
    /// Starts a runtime with these variables set and runs `body`. Restores the variables. Collective.
    fn with<R>(
        &self,
        settings: &[(&str, &str)],
        body: impl FnOnce(&Runtime) -> Result<R>,
    ) -> Result<R> {
        let before: Vec<(&str, Option<String>)> =
            settings.iter().map(|(name, _)| (*name, std::env::var(name).ok())).collect();
        let wanted: Vec<_> = settings.iter().map(|(name, value)| (*name, Some(*value))).collect();
        set_variables(&wanted);
        let run = || {
            let rt = Runtime::init()?;
            let result = body(&rt)?;
            rt.finalize()?;
            Ok(result)
        };
        let result = run();
        let old: Vec<_> = before.iter().map(|(name, value)| (*name, value.as_deref())).collect();
        set_variables(&old);
        result
    }

    /// Returns why the runtime does not start with a value of an experiment. Open MPI, for example,
    /// cannot create windows over TCP. All ranks get the same answer.
    fn refusal(&self, experiment: &Experiment) -> Option<String> {
        experiment.values.iter().find_map(|value| {
            let refused = self.with(&[(experiment.variable, value)], |_| Ok(())).err()?;
            Some(format!("{value} does not start here: {refused}"))
        })
    }

    /// Measures tests under these settings, without bounds. Collective.
    fn rows(
        &self,
        settings: &[(&str, &str)],
        (names, sizes): (&[&str], &[usize]),
        target: TargetActivity,
    ) -> Result<Vec<ResultRow>> {
        let tests: Vec<&'static Test> = names.iter().map(|name| test(name)).collect();
        let args = Args {
            pattern: vec![crate::plan::Pattern::Pair],
            target: vec![target],
            ..self.args.clone()
        };
        let plan = RunPlan {
            tests: &tests,
            sizes,
            args: &args,
            bounds: ChosenBounds { plain: false, two_sided: false, rma: false },
            effort: Effort { rounds: 3, ..self.args.effort() },
        };
        self.with(settings, |rt| Ok(plan.measure(rt, self.mpi, "", &mut |_, _| ())?.0))
    }

    fn series(&self, experiment: &Experiment) -> Result<Vec<Series>> {
        let mut all: Vec<Series> = Vec::new();
        for _ in 0..self.rounds {
            for (place, value) in experiment.values.iter().enumerate() {
                let settings = [(experiment.variable, *value)];
                let what = (experiment.tests, experiment.sizes);
                for row in self.rows(&settings, what, TargetActivity::Waits)? {
                    let (name, bytes) = (test(&row.test).name, row.bytes.unwrap_or(0));
                    let found = all.iter().position(|s| (s.test, s.bytes) == (name, bytes));
                    let at = found.unwrap_or_else(|| {
                        let times = vec![Vec::new(); experiment.values.len()];
                        all.push(Series { test: name, bytes, times });
                        all.len() - 1
                    });
                    all[at].times[place].push(row.time.median);
                }
            }
        }
        Ok(all)
    }

    fn aggregation(&self) -> Result<Advice> {
        let what = (["am_items"], ITEM_SIZES);
        let rows = self.rows(&[], (&what.0, what.1), TargetActivity::Waits)?;
        let gains: Vec<(usize, f64)> = rows
            .iter()
            .filter_map(|row| {
                let alone = row.bounds.iter().find(|b| b.name == "messages")?;
                Some((row.bytes?, alone.time.median / row.time.median))
            })
            .collect();
        Ok(aggregate(&gains))
    }

    /// Compares calls below and above the rendezvous threshold.
    fn rendezvous(&self, eager: usize) -> Result<Advice> {
        let sizes = [eager / 2, eager.saturating_sub(64), eager + 64, eager * 2];
        let rows = self.rows(&[], (&["am_call"], &sizes), TargetActivity::Waits)?;
        let mut reason = String::from(
            "longer messages stay at the origin until the target has a buffer for them:",
        );
        for row in &rows {
            let _ = write!(
                reason,
                " {} {} us,",
                bytes(row.bytes.unwrap_or(0)),
                number(row.time.median * 1e6)
            );
        }
        reason.pop();
        let value = format!("rendezvous begins above {} to the last rank", bytes(eager));
        Ok(Advice { variable: None, value, default: true, reason })
    }

    /// Compares the cost of an idle thread with the latency that it provides.
    fn progress_thread(&self, runs: bool) -> Result<Advice> {
        const NAME: &str = "PORTOLAN_PROGRESS_THREAD";
        let (mut with, mut without) = (Vec::new(), Vec::new());
        let span = Duration::from_millis(if self.args.quick { 5 } else { 100 });
        for _ in 0..self.rounds {
            with.push(self.with(&[(NAME, "auto")], |rt| burn(rt, span))?);
            without.push(self.with(&[(NAME, "0")], |rt| burn(rt, span))?);
        }
        let rows = self.rows(&[(NAME, "auto")], (&["fadd"], &[8]), TargetActivity::Computes)?;
        let cost = Figure::of_ratios(&without, &with).map_or(0.0, |f| (f.median - 1.0) * 100.0);
        let spread = Figure::of_ratios(&without, &with).map_or(0.0, |f| f.spread() * 100.0);
        let reason = if !runs {
            "no progress thread runs: every rank is reached directly".to_string()
        } else {
            let answer = rows
                .first()
                .map_or("nothing".into(), |row| format!("{} us", number(row.time.median * 1e6)));
            format!(
                "an idle thread slows a computing rank by {cost:.1} % (+-{spread:.1}); with it, \
                 a fetch-and-add at a computing rank takes {answer}; without it, it waits until \
                 that rank's next call"
            )
        };
        Ok(Advice { variable: Some(NAME.into()), value: "auto".into(), default: true, reason })
    }
}

/// Returns the steps per second of a computing rank, as the mean of all ranks. Collective.
fn burn(rt: &Runtime, span: Duration) -> Result<f64> {
    rt.world().barrier()?;
    let (begun, mut steps, mut x) = (Instant::now(), 0u64, 1u64);
    while begun.elapsed() < span {
        for _ in 0..10_000 {
            x = black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
        steps += 1;
    }
    let mine = steps as f64 / begun.elapsed().as_secs_f64();
    let sum = rt.world().all_reduce_value(mine, Sum)?;
    rt.world().barrier()?;
    Ok(sum / rt.size() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experiments_begin_with_the_default() {
        for experiment in EXPERIMENTS {
            let variable =
                portolan_base::config::VARIABLES.iter().find(|v| v.name == experiment.variable);
            let variable = variable.expect("the variable is one of the library's");
            assert_eq!(variable.default, experiment.values[0], "{}", variable.name);
            experiment.tests.iter().for_each(|name| assert_eq!(test(name).name, *name));
        }
    }
}
