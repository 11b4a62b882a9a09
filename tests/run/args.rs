//! The command line: the options of Rust's test harness, and those that the suites add.

use crate::hosts::Layout;
use std::path::PathBuf;

pub const HELP: &str = "\
Usage: cargo test --release --test ranks -- [--suite SUITE] [OPTIONS] [FILTER ...]

Runs the cases whose line contains a FILTER, one line a case; the last line is
`N passed, N failed`, and the exit code is 0 when none failed.

  --suite SUITE      ranks     checks in Rust, on several ranks (the default)
                     programs  C, C++, Fortran and Global Arrays programs
                     faults    ranks that die, hang or get bad input
                     network   late, lossy, slow and cut links between hosts
                     bugs      the known faults of MPIs: still there, or gone?
  --list             the cases, without running them
  --exact            a FILTER is the whole name of a case or a check
  --skip FILTER      not those
  --quick            does the library work here? Also PORTOLAN_TEST_QUICK=1
  --release          every combination, for a release; also PORTOLAN_TEST_RELEASE=1
  --junit FILE       a JUnit report as well
  --build            of programs: only build those that the cases need
  --hosts L          of ranks: so many ranks on each of several hosts, as in 2,1:default
  --select quick|full, --on-hosts 1,2,3, --no-windows
                     the regression suite's selection of programs or ranks on several hosts

Suites other than ranks need the installed library and what scripts/env.sh exports:
scripts/dev programs, scripts/dev faults and scripts/dev network see to that.
";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Suite {
    /// Checks in Rust.
    #[default]
    Ranks,
    /// Programs in other languages.
    Programs,
    /// Faults around a program.
    Faults,
    /// Faults of the network between hosts.
    Network,
    /// Known faults of MPIs.
    Bugs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Quick,
    /// Each program with every setting, but not with every combination of settings.
    Full,
}

#[derive(Debug, Clone)]
pub struct Selection {
    pub level: Level,
    pub hosts: Vec<usize>,
    /// Whether the MPI supports windows between hosts.
    pub windows: bool,
}

#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct Args {
    pub suite: Suite,
    /// Substrings of case lines. A case runs if its line contains one of them.
    pub filters: Vec<String>,
    /// Substrings of case lines. A case is skipped if its line contains one of them.
    pub skips: Vec<String>,
    pub exact: bool,
    /// See tests/README.md.
    pub quick: bool,
    pub release: bool,
    pub list: bool,
    /// Whether to run only ignored tests, an option of Rust's harness. No test here is ignored.
    pub ignored: bool,
    pub build: bool,
    pub help: bool,
    pub junit: Option<PathBuf>,
    /// Ranks on each host, for the suite `ranks`.
    pub layouts: Vec<Layout>,
    pub selection: Option<Selection>,
}

fn numbers(text: &str) -> Option<Vec<usize>> {
    text.split(',').map(|word| word.parse().ok().filter(|n| (1..=3).contains(n))).collect()
}

impl Args {
    /// Parses the command line. Returns a message for an unknown option or a bad or missing value.
    pub fn parse(words: &[String]) -> Result<Args, String> {
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let mut args = Args {
            quick: is_set("PORTOLAN_TEST_QUICK"),
            release: is_set("PORTOLAN_TEST_RELEASE"),
            ..Args::default()
        };
        let (mut level, mut hosts, mut windows) = (None, vec![1, 2, 3], true);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            // Both `--name value` and `--name=value` are accepted.
            let (name, given) = match word.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(value.to_string())),
                _ => (word.as_str(), None),
            };
            let mut value = || {
                given
                    .clone()
                    .or_else(|| words.next().cloned())
                    .ok_or(format!("{name} needs a value, see --help"))
            };
            match name {
                "--suite" => args.suite = suite(&value()?)?,
                "--exact" => args.exact = true,
                "--quick" => (args.quick, args.release) = (true, false),
                "--release" => (args.quick, args.release) = (false, true),
                "--list" => args.list = true,
                "--ignored" => args.ignored = true,
                "--build" => args.build = true,
                "--help" | "-h" => args.help = true,
                "--junit" => args.junit = Some(value()?.into()),
                "--skip" => args.skips.push(value()?),
                "--no-windows" => windows = false,
                "--select" => {
                    level = Some(match value()?.as_str() {
                        "quick" => Level::Quick,
                        "full" => Level::Full,
                        other => return Err(format!("--select wants quick or full, not {other}")),
                    });
                }
                "--on-hosts" => {
                    let text = value()?;
                    hosts = numbers(&text).ok_or(format!(
                        "--on-hosts wants numbers from 1 to 3 as in 1,2,3, not '{text}'"
                    ))?;
                }
                "--hosts" => {
                    let text = value()?;
                    args.layouts.push(Layout::parse(&text).ok_or(format!(
                        "--hosts wants numbers of ranks and configurations as in 2,1:default, not '{text}'"
                    ))?);
                }
                // Options of Rust's own harness that are accepted and ignored.
                "--format" | "--color" | "--test-threads" | "--logfile" | "-Z" => drop(value()?),
                "--nocapture" | "--no-capture" | "--include-ignored" | "--show-output" | "-q"
                | "--quiet" | "--test" | "--bench" | "--report-time" | "--shuffle" => {}
                _ if name.starts_with('-') => {
                    return Err(format!("unknown option '{word}', see --help"));
                }
                _ => args.filters.push(word.clone()),
            }
        }
        args.selection = level.map(|level| Selection { level, hosts, windows });
        Ok(args)
    }

    /// Returns whether the caller selects nothing, like `cargo test` without arguments.
    pub fn is_plain(&self) -> bool {
        let scripted = std::env::var_os("PORTOLAN_PREFIX").is_some();
        !scripted && self.filters.is_empty() && self.layouts.is_empty()
    }

    /// Returns whether the command line selects a case. `--exact` compares filters with `name` and
    /// with the whole `line`.
    pub fn wants(&self, name: &str, line: &str) -> bool {
        let hit = |f: &String| {
            if self.exact { *f == name || *f == line } else { line.contains(f.as_str()) }
        };
        (self.filters.is_empty() || self.filters.iter().any(hit)) && !self.skips.iter().any(hit)
    }
}

fn suite(name: &str) -> Result<Suite, String> {
    match name {
        "ranks" => Ok(Suite::Ranks),
        "programs" => Ok(Suite::Programs),
        "faults" => Ok(Suite::Faults),
        "network" => Ok(Suite::Network),
        "bugs" => Ok(Suite::Bugs),
        _ => Err(format!("there is no suite '{name}', see --help")),
    }
}
