//! Conclusions from the rounds of experiments, as pure functions of the figures.

use crate::format::{bytes, number};
use crate::report::Advice;
use crate::stats::Figure;
use std::fmt::Write;

/// The jobs that an experiment applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Where {
    /// Jobs with ranks that are reached by messages.
    Messages,
    /// Jobs with several ranks on a node.
    Node,
}

pub struct Experiment {
    pub variable: &'static str,
    /// Values to try, the default first.
    pub values: &'static [&'static str],
    pub tests: &'static [&'static str],
    pub sizes: &'static [usize],
    pub place: Where,
}

/// Speedup that a value must exceed before it is advised instead of the default.
const GAIN: f64 = 1.03;
/// Rounds of an experiment. With fewer rounds, only the default is advised.
pub const ROUNDS: usize = 5;

pub struct Series {
    pub test: &'static str,
    pub bytes: usize,
    /// Seconds per operation: a list for each value, with an entry per round.
    pub times: Vec<Vec<f64>>,
}

/// The speedup of each value over the first. That of a round is the geometric mean over the series.
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

/// Returns the speedup of each value over the first one, computed from the medians of its rounds.
fn gains_of_medians(series: &[Series], values: usize) -> Vec<f64> {
    let median = |times: &[f64]| Figure::of(times).map_or(f64::NAN, |f| f.median);
    let gain = |value: usize| {
        let logs = series.iter().map(|s| (median(&s.times[0]) / median(&s.times[value])).ln());
        (logs.sum::<f64>() / series.len() as f64).exp()
    };
    (0..values).map(gain).collect()
}

/// Returns the index of the value to advise, and its speedup. This is the first value, unless
/// another one is faster beyond the noise. Both the rounds and the medians must show that: a few
/// slow rounds do not change the medians.
fn best(series: &[Series], values: usize) -> (usize, f64) {
    let (rounds, medians) = (gains(series, values), gains_of_medians(series, values));
    rounds
        .iter()
        .zip(medians)
        .enumerate()
        .filter(|(_, (gain, median))| gain.rounds >= ROUNDS && gain.low > GAIN && *median > GAIN)
        .map(|(place, (gain, median))| (place, gain.median.min(median)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .unwrap_or((0, 1.0))
}

pub fn conclude(experiment: &Experiment, series: &[Series]) -> Advice {
    let (best, gain) = best(series, experiment.values.len());
    let few = series.iter().flat_map(|s| &s.times).any(|times| times.len() < ROUNDS);
    let mut reason = if best > 0 {
        format!("{:.0} % faster than {}", (gain - 1.0) * 100.0, experiment.values[0])
    } else if few {
        "too few rounds to advise another value".to_string()
    } else {
        "no other value is faster by more than the noise".to_string()
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

/// Returns the advice to keep the default, because another value does not start.
pub fn refused(experiment: &Experiment, reason: String) -> Advice {
    let (variable, value) = (Some(experiment.variable.into()), experiment.values[0].into());
    Advice { variable, value, default: true, reason }
}

/// Returns the advice on aggregation. `gains` lists the sizes in ascending order, with the speedup
/// of aggregated items over separate messages.
pub fn aggregate(gains: &[(usize, f64)]) -> Advice {
    let most = gains.iter().take_while(|(_, gain)| *gain > 1.1).last();
    let value = match most {
        Some((size, _)) => format!("aggregate items of up to {} at least", bytes(*size)),
        None => "do not aggregate: separate messages are as fast".into(),
    };
    let each: Vec<String> =
        gains.iter().map(|(size, gain)| format!("{}: {gain:.1} times", bytes(*size))).collect();
    let reason = format!("the rate of aggregated items to that of messages, {}", each.join(", "));
    Advice { variable: None, value, default: most.is_some(), reason }
}

/// Formats the advice as shell commands, with the reasons as comments.
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
        place: Where::Node,
    };

    #[test]
    fn another_value_has_to_be_faster_beyond_the_noise() {
        let noisy = series(&[&[1.0; 5], &[0.5, 1.1, 1.2, 0.9, 1.0]]);
        assert!(conclude(&EXPERIMENT, &noisy).default);
        // Slow rounds of the default do not make another value better.
        let loaded = series(&[&[90.0, 90.0, 0.9, 0.9, 0.9], &[1.0; 5]]);
        assert!(conclude(&EXPERIMENT, &loaded).default);
        let few = conclude(&EXPERIMENT, &series(&[&[1.0, 1.0], &[0.1, 0.1]]));
        assert!(few.default && few.reason.contains("too few rounds"), "{}", few.reason);
        let faster = series(&[&[1.0, 1.1, 0.9, 1.0, 1.0], &[0.5, 0.55, 0.45, 0.5, 0.5]]);
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
}
