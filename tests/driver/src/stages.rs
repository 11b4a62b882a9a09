//! The table of all stages, `tests/driver/stages.txt`.

use std::sync::OnceLock;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Quick,
    Full,
    Release,
}

/// A part of the level `full` (`--only`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Shows a mistake within minutes: format, lints, unit tests and a quarter of the simulation,
    /// with one MPI
    Quick,
    /// Everything else
    Rest,
}

/// How the output of a stage counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// It counts as one test, which passes if its commands succeed.
    Check,
    /// By the totals that the test programs print.
    Tests,
    /// It counts as a check. A command that ends with the code 77 cannot run on this machine.
    Bare,
}

#[derive(Debug)]
pub struct Stage {
    pub name: &'static str,
    /// The lowest level at which it runs with the first MPI.
    first: Option<Level>,
    /// The lowest level at which it runs with each other MPI.
    others: Option<Level>,
    pub counts: Counts,
    /// The part of `full` that contains it. `None` stands for both.
    part: Option<Part>,
    filtered: bool,
    pub once: bool,
    pub with: Option<&'static str>,
    pub ahead: Option<&'static str>,
    pub variables: Vec<(&'static str, &'static str)>,
    pub commands: Vec<&'static str>,
}

/// If this stage fails, the other stages with its MPI do not run.
pub const INSTALL: &str = "install";

/// Returns the stages in the order of the table.
pub fn stages() -> &'static [Stage] {
    static STAGES: OnceLock<Vec<Stage>> = OnceLock::new();
    STAGES.get_or_init(|| {
        let mut stages: Vec<Stage> = Vec::new();
        let table = include_str!("../stages.txt").lines();
        for line in table.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            match (line.strip_prefix("    "), stages.last_mut()) {
                (Some(command), Some(stage)) => stage.commands.push(command),
                _ => stages.push(row(line).unwrap_or_else(|| panic!("no row of a stage: {line}"))),
            }
        }
        stages
    })
}

fn row(line: &'static str) -> Option<Stage> {
    let mut words = line.split_whitespace();
    let name = words.next()?;
    let mut level = || match words.next()? {
        "quick" => Some(Some(Level::Quick)),
        "full" => Some(Some(Level::Full)),
        "release" => Some(Some(Level::Release)),
        "-" => Some(None),
        _ => None,
    };
    let (first, others) = (level()?, level()?);
    let counts = match words.next()? {
        "check" => Counts::Check,
        "tests" => Counts::Tests,
        "bare" => Counts::Bare,
        _ => return None,
    };
    let (part, filtered, once, with, ahead) = (None, false, false, None, None);
    let (variables, commands) = (Vec::new(), Vec::new());
    let mut stage = Stage {
        name,
        first,
        others,
        counts,
        part,
        filtered,
        once,
        with,
        ahead,
        variables,
        commands,
    };
    for word in words {
        match word.split_once('=') {
            None if word == "quick" => stage.part = Some(Part::Quick),
            None if word == "rest" => stage.part = Some(Part::Rest),
            None if word == "filtered" => stage.filtered = true,
            None if word == "once" => stage.once = true,
            Some(("with", other)) => stage.with = Some(other),
            Some(("ahead", other)) => stage.ahead = Some(other),
            Some((name, value)) if name.starts_with(char::is_uppercase) => {
                stage.variables.push((name, value));
            }
            _ => return None,
        }
    }
    Some(stage)
}

impl Stage {
    /// Returns whether the stage runs with an MPI.
    pub fn runs(&self, level: Level, only: Option<Part>, filtered: bool, first: bool) -> bool {
        let lowest = if first { self.first } else { self.others };
        lowest.is_some_and(|lowest| level >= lowest)
            && (only.is_none() || self.part.is_none() || self.part == only)
            && (!filtered || self.filtered)
            && (first || !self.once)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(level: Level, only: Option<Part>, filtered: bool, first: bool) -> Vec<&'static str> {
        let stages = stages().iter().filter(|stage| stage.runs(level, only, filtered, first));
        stages.map(|stage| stage.name).collect()
    }

    #[test]
    fn names_are_unique_and_commands_complete() {
        for (k, stage) in stages().iter().enumerate() {
            let name = stage.name;
            assert!(stages()[..k].iter().all(|other| other.name != name), "{name}");
            assert!(!stage.commands.is_empty(), "{name} has no command");
            assert!(stage.first.is_some(), "{name} never runs");
            assert!(stage.others.is_none_or(|others| Some(others) >= stage.first), "{name}");
        }
    }

    #[test]
    fn a_row_that_is_wrong_is_none() {
        for line in ["doc", "doc full - tset", "doc always - check", "doc full - check once=1"] {
            assert!(row(line).is_none(), "{line}");
        }
        let stage = row("doc full - check rest with=install A=b=c").expect("a row");
        assert_eq!((stage.with, stage.variables), (Some("install"), vec![("A", "b=c")]));
    }

    #[test]
    fn a_stage_begins_with_one_that_runs() {
        let place = |name| stages().iter().position(|stage| stage.name == name).expect(name);
        for (k, stage) in stages().iter().enumerate() {
            if let Some(other) = stage.ahead {
                assert!(place(other) > k, "{} begins ahead with {other}", stage.name);
            }
            if let Some(other) = stage.with {
                let (at, other) = (place(other), &stages()[place(other)]);
                assert!(at < k, "{} with {other:?}", stage.name);
                assert!(other.with.is_none(), "{} itself begins with a stage", other.name);
            }
        }
    }

    #[test]
    fn every_level_contains_the_one_below() {
        let quick = names(Level::Quick, None, false, true);
        let full = names(Level::Full, None, false, true);
        let release = names(Level::Release, None, false, true);
        assert_eq!(quick, ["install", "ranks", "programs", "hosts", "example"]);
        assert_eq!(names(Level::Quick, None, false, false), quick);
        assert!(quick.iter().all(|name| full.contains(name)), "{full:?}");
        assert!(full.iter().all(|name| release.contains(name)), "{release:?}");
        for name in ["fmt", "clippy", "unit", "doc", "miri", "faults", "python", "fresh"] {
            assert!(full.contains(&name), "{name}");
        }
        assert_eq!(release.len(), stages().len());
    }

    #[test]
    fn the_parts_are_the_whole() {
        let quick = names(Level::Full, Some(Part::Quick), false, true);
        assert_eq!(quick, ["fmt", "clippy", "unit"]);
        let rest = names(Level::Full, Some(Part::Rest), false, true);
        for name in names(Level::Full, None, false, true) {
            assert!(quick.contains(&name) || rest.contains(&name), "{name}");
        }
        assert!(names(Level::Full, Some(Part::Quick), false, false).is_empty());
    }

    #[test]
    fn a_filter_leaves_the_tests_on_ranks() {
        let filtered = names(Level::Quick, None, true, true);
        assert_eq!(filtered, ["install", "ranks", "programs", "hosts"]);
    }
}
