//! What follows from the rounds of experiments: pure functions of figures.

use crate::html::bytes;
use crate::report::Advice;
use crate::stats::Figure;
use crate::table::number;
use std::fmt::Write;

/// Where an experiment makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Where {
    /// In every job.
    Always,
    /// Some ranks are reached by messages.
    Messages,
    /// Some ranks share a node.
    Node,
}

/// A variable, and what it moves.
pub struct Experiment {
    /// Its name.
    pub variable: &'static str,
    /// The default first.
    pub values: &'static [&'static str],
    /// What is measured.
    pub tests: &'static [&'static str],
    /// Bytes of the operations.
    pub sizes: &'static [usize],
    /// Where it makes sense.
    pub place: Where,
}

/// What another value must gain before it is advised.
const GAIN: f64 = 1.03;
/// Rounds of an experiment; of fewer no other value is advised.
pub const ROUNDS: usize = 5;

/// Times of a test at a size: for each value, one a round.
pub struct Series {
    /// The test.
    pub test: &'static str,
    /// Of an operation.
    pub bytes: usize,
    /// Seconds.
    pub times: Vec<Vec<f64>>,
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

/// How much better the medians of each value are than those of the first one.
fn gains_of_medians(series: &[Series], values: usize) -> Vec<f64> {
    let median = |times: &[f64]| Figure::of(times).map_or(f64::NAN, |f| f.median);
    let gain = |value: usize| {
        let logs = series.iter().map(|s| (median(&s.times[0]) / median(&s.times[value])).ln());
        (logs.sum::<f64>() / series.len() as f64).exp()
    };
    (0..values).map(gain).collect()
}

/// The value to have: the first, unless another one is better beyond the noise, both by most of
/// the rounds and by the medians, which a few slow rounds do not move.
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

/// One line of advice of an experiment.
pub fn conclude(experiment: &Experiment, series: &[Series]) -> Advice {
    let (best, gain) = best(series, experiment.values.len());
    let few = series.iter().flat_map(|s| &s.times).any(|times| times.len() < ROUNDS);
    let mut reason = if best > 0 {
        format!("{:.0} % faster than {}", (gain - 1.0) * 100.0, experiment.values[0])
    } else if few {
        "too few rounds to advise another value".to_string()
    } else {
        "no other value is faster beyond the noise".to_string()
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

/// The advice from how much faster items of each size are than messages of their own.
pub fn aggregate(gains: &[(usize, f64)]) -> Advice {
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
        let noisy = series(&[&[1.0; 5], &[0.5, 1.1, 1.2, 0.9, 1.0]]);
        assert!(conclude(&EXPERIMENT, &noisy).default);
        // Slow rounds of the default alone are no merit of another value.
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
