//! The command line, which is checked before MPI starts.

use crate::plan::{NumberType, Pattern, TargetActivity};
use crate::report::name;
use crate::{cases, compare};
use clap::Parser;
use std::time::Duration;

/// Measures Portolan on this machine and compares it with what the machine can reach.
///
/// Run it as `mpiexec -n N portolan-perf [OPTIONS] [TEST ...]`; the launcher places the ranks. A
/// TEST is a name from `--list`, or the part of such names before the underscore. Each figure is
/// the median of several rounds, which alternate with rounds of memory copies and of MPI's own
/// operations. The last column shows the speed as a percentage of the bound.
///
/// `portolan-perf kernels [ARGS]` runs the kernels that compare one-sided libraries, if their
/// program `kernels` is in the same directory.
#[derive(Debug, Clone, Parser)]
#[command(name = "portolan-perf", version)]
pub struct Args {
    /// Tests to measure; all tests if none is named
    #[arg(value_name = "TEST")]
    pub tests: Vec<String>,
    /// Print the tests and exit
    #[arg(long)]
    pub list: bool,
    /// Use few sizes and short rounds, to check that everything works; the figures are not reliable
    #[arg(long)]
    pub quick: bool,
    /// Paths to measure, one after the other: auto, direct, direct+rma, rma, message
    #[arg(long, value_delimiter = ',', value_name = "PATH", value_parser = path)]
    pub path: Vec<String>,
    /// Sizes in bytes: smallest, largest, and the factor between them
    #[arg(long, value_name = "MIN:MAX[:FACTOR]", value_parser = sizes)]
    pub sizes: Option<SizeRange>,
    /// Ranks that take part
    #[arg(long, value_delimiter = ',', value_enum, default_value = "pair")]
    pub pattern: Vec<Pattern>,
    /// Activity of the target during the operations
    #[arg(long, value_delimiter = ',', value_enum, default_value = "waits")]
    pub target: Vec<TargetActivity>,
    /// Number types of accumulates
    #[arg(long = "type", value_delimiter = ',', value_enum, default_value = "f64")]
    pub types: Vec<NumberType>,
    /// Bounds to compare with: plain, two-sided, rma, or none
    #[arg(long, value_delimiter = ',', value_name = "BOUND", value_parser = ["plain", "two-sided", "rma", "none"], default_value = "plain,two-sided,rma")]
    pub bounds: Vec<String>,
    /// Rounds per figure [default: 9, and 3 with --quick]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: Option<u32>,
    /// Milliseconds per round [default: 4, and 0.1 with --quick]
    #[arg(long, value_name = "MS", value_parser = milliseconds)]
    pub millis: Option<Duration>,
    /// Write the results as JSON; '-' writes to standard output instead of the table
    #[arg(long, value_name = "FILE")]
    pub json: Option<String>,
    /// Write the results as CSV; '-' writes to standard output instead of the table
    #[arg(long, value_name = "FILE")]
    pub csv: Option<String>,
    /// Write an HTML page with plots; it needs no network
    #[arg(long, value_name = "FILE")]
    pub html: Option<String>,
    /// Report changes since earlier results; the exit code is 1 if something is slower
    #[arg(long, value_name = "OLD.json")]
    pub compare: Option<String>,
    /// Loss that is accepted before a figure counts as slower, as a fraction
    #[arg(long, value_name = "PART", default_value_t = 0.1, value_parser = tolerance)]
    pub tolerance: f64,
    /// Compare times, or fractions of the bound, which are comparable between machines
    #[arg(long, value_enum, default_value = "time")]
    pub by: compare::Quantity,
    /// Find the settings of PORTOLAN_* variables that pay on this machine, and give the reasons
    #[arg(long)]
    pub advise: bool,
    /// Read results instead of measuring, for --html, --csv or --compare; needs no launcher
    #[arg(long, value_name = "FILE.json", conflicts_with_all = ["advise", "quick", "tests"])]
    pub from: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeRange {
    min: usize,
    max: usize,
    factor: usize,
}

impl Args {
    /// Returns the sizes in bytes, in ascending order.
    pub fn sizes(&self) -> Vec<usize> {
        let quick = SizeRange { min: 8, max: 128 << 10, factor: 128 };
        let all = SizeRange { min: 1, max: 64 << 20, factor: 4 };
        let SizeRange { min, max, factor } =
            self.sizes.unwrap_or(if self.quick { quick } else { all });
        std::iter::successors(Some(min), |n| n.checked_mul(factor))
            .take_while(|&n| n <= max)
            .collect()
    }

    /// Returns the number of rounds per figure and the duration of a round.
    pub fn effort(&self) -> crate::lab::Effort {
        let (rounds, micros) = if self.quick { (3, 100) } else { (9, 4000) };
        crate::lab::Effort {
            rounds: self.rounds.map_or(rounds, |n| n as usize),
            batch: self.millis.unwrap_or(Duration::from_micros(micros)),
        }
    }

    pub fn bounds(&self) -> crate::lab::ChosenBounds {
        let has = |name| {
            self.bounds.iter().any(|b| b == name) && !self.bounds.iter().any(|b| b == "none")
        };
        crate::lab::ChosenBounds {
            plain: has("plain"),
            two_sided: has("two-sided"),
            rma: has("rma"),
        }
    }

    /// Returns whether to print the table. It is omitted if JSON or CSV goes to standard output.
    pub fn has_table(&self) -> bool {
        ![&self.json, &self.csv].into_iter().flatten().any(|file| file == "-")
    }
}

/// Returns the output of `--list`.
pub fn list() -> String {
    let mut text = String::new();
    for test in cases::TESTS {
        text += &format!("{:<12} {:<10} {}\n", test.name, name(test.metric), test.what);
    }
    text
}

fn path(text: &str) -> Result<String, String> {
    match text {
        "auto" | "direct" | "direct+rma" | "rma" | "message" => Ok(text.into()),
        _ => Err("expected auto, direct, direct+rma, rma or message".into()),
    }
}

fn milliseconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(ms) if (0.001..=60_000.0).contains(&ms) => Ok(Duration::from_secs_f64(ms / 1e3)),
        _ => Err("expected milliseconds, from 0.001 to 60000".into()),
    }
}

fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(part) if (0.0..=100.0).contains(&part) => Ok(part),
        _ => Err("expected a part as in 0.1, which is 10 %".into()),
    }
}

fn bytes(text: &str) -> Result<usize, String> {
    let wrong = || {
        format!("'{text}' is not a number of bytes from 1 to 1G, with an optional suffix K, M or G")
    };
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 20),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let n: usize = digits.parse().map_err(|_| wrong())?;
    n.checked_mul(1 << shift).filter(|n| (1..=1 << 30).contains(n)).ok_or_else(wrong)
}

fn sizes(text: &str) -> Result<SizeRange, String> {
    let parts: Vec<&str> = text.split(':').collect();
    let (min, max, factor) = match parts[..] {
        [one] => (bytes(one)?, bytes(one)?, 2),
        [min, max] => (bytes(min)?, bytes(max)?, 4),
        [min, max, factor] => {
            let factor = factor.parse().ok().filter(|f| (2..=1024).contains(f));
            (bytes(min)?, bytes(max)?, factor.ok_or("the factor is not a number from 2 to 1024")?)
        }
        _ => return Err("expected MIN:MAX or MIN:MAX:FACTOR, as in 8:1M:2".into()),
    };
    if min > max {
        return Err(format!("{min} is more than {max}"));
    }
    Ok(SizeRange { min, max, factor })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<Args, String> {
        Args::try_parse_from(["portolan-perf"].into_iter().chain(words.split_whitespace()))
            .map_err(|e| e.to_string())
    }

    #[test]
    fn the_table_of_arguments_is_sound() {
        <Args as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn sizes_grow_by_their_factor() {
        assert_eq!(parse("--sizes 8:1K:4").unwrap().sizes(), [8, 32, 128, 512]);
        assert_eq!(parse("--sizes 64K").unwrap().sizes(), [65536]);
        let all = parse("").unwrap().sizes();
        assert_eq!((all[0], *all.last().unwrap()), (1, 64 << 20));
        assert_eq!(parse("--quick").unwrap().sizes(), [8, 1024, 131072]);
    }

    #[test]
    fn bad_arguments_are_named() {
        for (words, says) in [
            ("--sizes 8:4", "8 is more than 4"),
            ("--sizes 0:4", "'0' is not a number of bytes"),
            ("--sizes 8:16:1", "factor"),
            ("--sizes a", "'a' is not a number"),
            ("--path fast", "expected auto, direct"),
            ("--pattern ring", "one-to-all"),
            ("--tolerance=-1", "expected a part"),
            ("--tolerance x", "expected a part"),
            ("--rounds 0", "0 is not in"),
            ("--millis 0", "expected milliseconds"),
            ("--target sleeps", "computes"),
            ("--type f16", "c64"),
            ("--nothing", "--nothing"),
            ("--from a.json put", "cannot be used with"),
        ] {
            let error = parse(words).expect_err(words);
            assert!(error.contains(says), "{words}: {error}");
        }
    }

    #[test]
    fn lists_are_split() {
        let args = parse("--path direct,rma --pattern pair,all-to-one --type f64,c64 put get");
        let args = args.unwrap();
        assert_eq!(args.path, ["direct", "rma"]);
        assert_eq!(args.pattern, [Pattern::Pair, Pattern::AllToOne]);
        assert_eq!(args.types, [NumberType::F64, NumberType::C64]);
        assert_eq!(args.tests, ["put", "get"]);
        let bounds = args.bounds();
        assert!(bounds.plain && bounds.two_sided && bounds.rma);
        let bounds = parse("--bounds none").unwrap().bounds();
        assert!(!bounds.plain && !bounds.two_sided && !bounds.rma);
    }

    #[test]
    fn the_list_has_every_test() {
        assert_eq!(list().lines().count(), cases::TESTS.len());
    }
}
