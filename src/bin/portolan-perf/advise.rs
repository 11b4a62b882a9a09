//! Which settings pay on this machine.
//!
//! An experiment starts the runtime once for each value of a variable, in turn and several times,
//! and measures the tests that the variable moves. Another value than the default is advised
//! only where it is faster by more than the noise of the rounds; the reason has all figures.
//!
//! What is measured follows from the job alone and not from what was measured before, so that
//! all ranks do the same ([`measure`](crate::measure)'s invariant). Rank 0 draws the conclusions.

use crate::Result;
use crate::args::Args;
use crate::cases::{ITEM_SIZES, TESTS, Test};
use crate::html::bytes;
use crate::measure::{Bounds, Effort};
use crate::plan::Target;
use crate::report::{Advice, Report, Row};
use crate::run::{Plan, describe, set_variables};
use crate::stats::Figure;
use crate::table::number;
use mpi::topology::SimpleCommunicator;
use portolan::internals::api::engine;
use portolan::{Operator, Runtime};
use std::fmt::Write;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Where an experiment makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Where {
    Always,
    /// Some ranks are reached by messages.
    Messages,
    /// Some ranks share a node.
    Node,
}

/// A variable, and what it moves.
struct Experiment {
    variable: &'static str,
    /// The default first.
    values: &'static [&'static str],
    tests: &'static [&'static str],
    sizes: &'static [usize],
    place: Where,
}

const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        variable: "PORTOLAN_PATH",
        values: &["auto", "message", "direct+rma", "rma"],
        tests: &["put_lat", "get_lat"],
        sizes: &[8, 1 << 10, 64 << 10, 4 << 20],
        place: Where::Always,
    },
    Experiment {
        variable: "PORTOLAN_CHUNK_BYTES",
        values: &["256K", "64K", "1M"],
        tests: &["put_bw"],
        sizes: &[1 << 20, 4 << 20],
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

/// What another value must gain before it is advised.
const GAIN: f64 = 1.03;

/// Times of a test at a size: for each value, one a round.
struct Series {
    test: &'static str,
    bytes: usize,
    times: Vec<Vec<f64>>,
}

/// How much better each value is than the first one: by the mean over the series of a round.
fn gains(series: &[Series], values: usize) -> Vec<Figure> {
    let rounds = series.iter().flat_map(|s| &s.times).map(Vec::len).min().unwrap_or(0);
    (0..values)
        .filter_map(|value| {
            let of_round = |round: usize| {
                let logs = series.iter().map(|s| (s.times[0][round] / s.times[value][round]).ln());
                (logs.sum::<f64>() / series.len() as f64).exp()
            };
            Figure::of(&(0..rounds).map(of_round).collect::<Vec<_>>())
        })
        .collect()
}

/// The value to have: the first, unless another one is better beyond the noise.
fn best(gains: &[Figure]) -> usize {
    let better = |(_, gain): &(usize, &Figure)| gain.low > GAIN;
    let order = |a: &(usize, &Figure), b: &(usize, &Figure)| a.1.median.total_cmp(&b.1.median);
    gains.iter().enumerate().filter(better).max_by(order).map_or(0, |(place, _)| place)
}

/// One line of advice of an experiment.
fn conclude(experiment: &Experiment, series: &[Series]) -> Advice {
    let gains = gains(series, experiment.values.len());
    let best = best(&gains);
    let mut reason = match gains.get(best) {
        Some(gain) if best > 0 => {
            format!("{:.0} % faster than {}", (gain.median - 1.0) * 100.0, experiment.values[0])
        }
        _ => "no other value is faster beyond the noise".to_string(),
    };
    for s in series {
        let _ = write!(reason, "; {} of {}:", s.test, bytes(s.bytes));
        for (value, times) in experiment.values.iter().zip(&s.times) {
            let median = Figure::of(times).map_or(0.0, |f| f.median);
            let _ = write!(reason, " {value} {} us,", number(median * 1e6));
        }
        reason.pop();
    }
    Advice {
        variable: Some(experiment.variable.into()),
        value: experiment.values[best].into(),
        default: best == 0,
        reason,
    }
}

/// Measures and advises, on all ranks; `measured` are results that there are already. Collective.
pub fn advise(args: &Args, mpi: &SimpleCommunicator, measured: Option<Report>) -> Result<Report> {
    let lab = Adviser { args, mpi, rounds: if args.quick { 2 } else { 5 } };
    let (mut report, job) = lab.with(&[], |rt| {
        let report = measured.map_or_else(|| describe(rt), Ok)?;
        let thread = rt.has_progress_thread();
        let agreed = rt.world().all_reduce_value(i32::from(thread), Operator::Max)?;
        let last = rt.size() - 1;
        let job = Job {
            ranks: rt.size(),
            nodes: rt.nodes(),
            messages: engine(rt).has_messages(),
            thread: agreed != 0,
            // To a rank itself there is no limit: the last rank has no part in this.
            eager: eager_agreed(rt, engine(rt).eager_limit(last))?,
        };
        Ok((report, job))
    })?;
    if job.ranks == 1 {
        report.skipped.push("--advise: there is one rank, which has nobody to talk to".into());
        return Ok(report);
    }
    for experiment in EXPERIMENTS {
        let fits = match experiment.place {
            Where::Always => true,
            Where::Messages => job.messages,
            Where::Node => job.nodes < job.ranks,
        };
        if fits {
            let series = lab.series(experiment)?;
            report.advice.push(conclude(experiment, &series));
        }
    }
    report.advice.push(lab.aggregation()?);
    report.advice.push(lab.rendezvous(job.eager)?);
    report.advice.push(lab.progress_thread(job.thread)?);
    Ok(report)
}

/// The limit of the ranks that have one.
fn eager_agreed(rt: &Runtime, limit: usize) -> Result<usize> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    Ok(rt.world().all_reduce_value(limit, Operator::Min)? as usize)
}

/// What the job is.
struct Job {
    ranks: usize,
    nodes: usize,
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
    /// Runs with these variables set, which have their values of before afterwards.
    fn with<R>(
        &self,
        settings: &[(&str, &str)],
        body: impl FnOnce(&Runtime) -> Result<R>,
    ) -> Result<R> {
        let before: Vec<(&str, Option<String>)> =
            settings.iter().map(|(name, _)| (*name, std::env::var(name).ok())).collect();
        let wanted: Vec<_> = settings.iter().map(|(name, value)| (*name, Some(*value))).collect();
        set_variables(&wanted);
        let rt = Runtime::init()?;
        let result = body(&rt)?;
        rt.finalize()?;
        let old: Vec<_> = before.iter().map(|(name, value)| (*name, value.as_deref())).collect();
        set_variables(&old);
        Ok(result)
    }

    /// Rows of tests with settings, without bounds.
    fn rows(
        &self,
        settings: &[(&str, &str)],
        (names, sizes): (&[&str], &[usize]),
        target: Target,
    ) -> Result<Vec<Row>> {
        let tests: Vec<&'static Test> = names.iter().map(|name| test(name)).collect();
        let args = Args {
            pattern: vec![crate::plan::Pattern::Pair],
            target: vec![target],
            ..self.args.clone()
        };
        let plan = Plan {
            tests: &tests,
            sizes,
            args: &args,
            bounds: Bounds { plain: false, two_sided: false, rma: false },
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
                for row in self.rows(&settings, what, Target::Waits)? {
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

    /// Up to which size items should travel together.
    fn aggregation(&self) -> Result<Advice> {
        let what = (["am_items"], ITEM_SIZES);
        let rows = self.rows(&[], (&what.0, what.1), Target::Waits)?;
        let gains: Vec<(usize, f64)> = rows
            .iter()
            .filter_map(|row| {
                let alone = row.bounds.iter().find(|b| b.name == "messages")?;
                Some((row.bytes?, alone.time.median / row.time.median))
            })
            .collect();
        Ok(aggregate(&gains))
    }

    /// What the way of long messages costs, below and above its threshold.
    fn rendezvous(&self, eager: usize) -> Result<Advice> {
        let sizes = [eager / 2, eager.saturating_sub(64), eager + 64, eager * 2];
        let rows = self.rows(&[], (&["am_call"], &sizes), Target::Waits)?;
        let mut reason =
            String::from("longer messages stay at the origin until the target knows their place:");
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

    /// What a thread costs that has nothing to do, and what it gives.
    fn progress_thread(&self, runs: bool) -> Result<Advice> {
        const NAME: &str = "PORTOLAN_PROGRESS_THREAD";
        let (mut with, mut without) = (Vec::new(), Vec::new());
        let span = Duration::from_millis(if self.args.quick { 5 } else { 100 });
        for _ in 0..self.rounds {
            with.push(self.with(&[(NAME, "auto")], |rt| burn(rt, span))?);
            without.push(self.with(&[(NAME, "0")], |rt| burn(rt, span))?);
        }
        let rows = self.rows(&[(NAME, "auto")], (&["fadd"], &[8]), Target::Computes)?;
        let cost = Figure::of_ratios(&without, &with).map_or(0.0, |f| (f.median - 1.0) * 100.0);
        let spread = Figure::of_ratios(&without, &with).map_or(0.0, |f| f.spread() * 100.0);
        let reason = if !runs {
            "no thread runs: every rank is reached directly".to_string()
        } else {
            let answer = rows
                .first()
                .map_or("nothing".into(), |row| format!("{} us", number(row.time.median * 1e6)));
            format!(
                "an idle thread costs a computing rank {cost:.1} % (+-{spread:.1}); with it a \
                 fetch-and-add at a computing rank takes {answer}, without it until that rank's \
                 next call"
            )
        };
        Ok(Advice { variable: Some(NAME.into()), value: "auto".into(), default: true, reason })
    }
}

/// Steps a second of a rank that computes, as a mean of all.
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
    let sum = rt.world().all_reduce_value(mine, Operator::Sum)?;
    rt.world().barrier()?;
    Ok(sum / rt.size() as f64)
}

/// The advice from how much faster items of each size are than messages of their own.
fn aggregate(gains: &[(usize, f64)]) -> Advice {
    let most = gains.iter().take_while(|(_, gain)| *gain > 1.1).last();
    let value = match most {
        Some((size, _)) => format!("aggregate items of up to {} at least", bytes(*size)),
        None => "do not aggregate: messages of their own are as fast".into(),
    };
    let each: Vec<String> =
        gains.iter().map(|(size, gain)| format!("{}: {gain:.1} times", bytes(*size))).collect();
    let reason = format!("the rate of aggregated items to that of messages, {}", each.join(", "));
    Advice { variable: None, value, default: most.is_some(), reason }
}

/// The advice as lines of a shell, with the reasons as comments.
pub fn text(advice: &[Advice]) -> String {
    let mut text = String::new();
    if !advice.is_empty() {
        text += "\n# advice for this machine and these ranks\n";
    }
    for Advice { variable, value, default, reason } in advice {
        let line = match variable {
            Some(name) if *default => format!("# {name}={value} (the default)"),
            Some(name) => format!("export {name}={value}"),
            None => format!("# {value}"),
        };
        let _ = writeln!(text, "{line}");
        for part in reason.split("; ") {
            let _ = writeln!(text, "#     {part}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(times: &[&[f64]]) -> Vec<Series> {
        let times = times.iter().map(|t| t.to_vec()).collect();
        vec![Series { test: "put_lat", bytes: 8, times }]
    }

    const EXPERIMENT: Experiment = Experiment {
        variable: "PORTOLAN_X",
        values: &["1", "2"],
        tests: &["put_lat"],
        sizes: &[8],
        place: Where::Always,
    };

    #[test]
    fn another_value_has_to_be_faster_beyond_the_noise() {
        let noisy = series(&[&[1.0, 1.0, 1.0], &[0.5, 1.1, 1.2]]);
        assert!(conclude(&EXPERIMENT, &noisy).default);
        let faster = series(&[&[1.0, 1.1, 0.9], &[0.5, 0.55, 0.45]]);
        let advice = conclude(&EXPERIMENT, &faster);
        assert_eq!((advice.value.as_str(), advice.default), ("2", false));
        assert!(advice.reason.contains("100 % faster than 1"), "{}", advice.reason);
        let shell = text(&[advice]);
        assert!(shell.contains("\nexport PORTOLAN_X=2\n#     100 % faster"), "{shell}");
    }

    #[test]
    fn defaults_are_comments() {
        let same = series(&[&[1.0, 1.0], &[1.0, 1.0]]);
        let shell = text(&[conclude(&EXPERIMENT, &same)]);
        assert!(shell.lines().all(|line| line.is_empty() || line.starts_with('#')), "{shell}");
        assert_eq!(text(&[]), "");
    }

    #[test]
    fn aggregation_pays_up_to_a_size() {
        let advice = aggregate(&[(8, 20.0), (32, 5.0), (128, 1.0), (512, 1.5)]);
        assert!(advice.value.contains("up to 32 B"), "{}", advice.value);
        assert!(aggregate(&[(8, 1.0)]).value.contains("do not aggregate"));
    }

    #[test]
    fn experiments_begin_with_the_default() {
        for experiment in EXPERIMENTS {
            let variable = portolan::VARIABLES.iter().find(|v| v.name == experiment.variable);
            let variable = variable.expect("the variable is one of the library's");
            assert_eq!(variable.default, experiment.values[0], "{}", variable.name);
            experiment.tests.iter().for_each(|name| assert_eq!(test(name).name, *name));
        }
    }
}
