//! Cases that need more than one program run to its end: examples of I/O forwarding, SIGTERM to a
//! server, jobs that find each other, and the launcher and the library of the other MPI.

use super::super::system;
use super::build::{other_flavour, other_prefix};
use super::lines::{self, Entry, Families, Kind};
use super::{Case, Outcome, Suite, exit_code, lines_with, terminate};
use super::{by_hand, info, instructions, perf, report};
use regex::Regex;
use std::path::Path;

const FORWARDING: [&str; 2] = ["examples/io_forwarding", "examples/io_forwarding.c"];
const FORWARDING_CASES: [&str; 4] = [
    "n={2,4} -- --size 3M --files 3 --segment 10000",
    "n=4 node-size=1 -- --size 3M --files 3 --io-ranks 2",
    "release n=1 -- --size 3M --chunk 100K --buffer 300K",
    "release n=3 am=mpi -- --size 3M --segment 3M --window 5",
];

#[derive(Debug)]
pub struct Special {
    pub label: &'static str,
    programs: &'static [&'static str],
    run: fn(&Special, &mut Suite<'_>),
}

pub const ALL: &[Special] = &[
    Special {
        label: "examples/io_forwarding SIGTERM to the server [n=2]",
        programs: &["examples/io_forwarding"],
        run: terminated,
    },
    Special {
        label: "examples/io_forwarding.c SIGTERM to the server [n=2]",
        programs: &["examples/io_forwarding.c"],
        run: terminated,
    },
    Special { label: by_hand::LABEL, programs: &by_hand::PROGRAMS, run: by_hand::run },
    Special { label: "guard/other-launcher [n=2]", programs: &["c/values"], run: launcher },
    Special {
        label: instructions::LABEL,
        programs: &["c/instructions"],
        run: instructions::counts,
    },
    Special { label: info::LABEL, programs: &["c/values", "link/values.static"], run: info::armci },
    Special { label: info::PAGE, programs: &[], run: info::page },
    Special { label: perf::ALONE, programs: &[], run: perf::measures },
    Special { label: perf::ALL_TESTS, programs: &[], run: perf::measures },
    Special { label: perf::PATHS, programs: &[], run: perf::measures },
    Special { label: perf::VIRTUAL, programs: &[], run: perf::measures },
    Special { label: perf::PATTERNS, programs: &[], run: perf::measures },
    Special { label: perf::ADVICE, programs: &[], run: perf::measures },
    Special { label: perf::REFUSES, programs: &[], run: perf::refuses },
    Special { label: perf::KILLED, programs: &[], run: perf::killed },
    Special { label: report::STORY, programs: &["examples/hot_counter.c"], run: report::story },
    Special { label: report::FAULTS, programs: &["c/findings"], run: report::faults },
    Special {
        label: report::RANDOM,
        programs: &["examples/random_access"],
        run: report::random_access,
    },
    Special { label: report::RPC, programs: &["examples/io_forwarding.c"], run: report::rpc },
    Special { label: report::MPI, programs: &["c/mpi_calls"], run: report::mpi },
    Special { label: report::KILLED, programs: &["examples/random_access"], run: report::killed },
    Special { label: report::CLOCKS, programs: &["examples/hot_counter.c"], run: report::clocks },
    Special { label: report::FULL, programs: &["examples/hot_counter.c"], run: report::full },
    Special { label: report::DEMO, programs: &[], run: report::demo },
    Special { label: report::PAGE, programs: &[], run: report::page },
    Special { label: report::LARGE, programs: &[], run: report::large },
    Special { label: report::MEMORY, programs: &[], run: report::memory },
    Special { label: report::EXPORTS, programs: &[], run: report::exports },
    Special { label: "guard/other-library [n=2]", programs: &[], run: library },
    Special { label: "link/projects of CMake", programs: &[], run: projects },
];

/// Only at the level `release`: their findings depend on timing, which other programs disturb.
pub const TIMED: [&str; 1] = [report::FAULTS];

/// They show that the installed commands work.
pub const QUICK: [&str; 2] = [perf::ALONE, report::STORY];

impl Special {
    pub fn programs(&self) -> Vec<String> {
        self.programs.iter().map(|program| program.to_string()).collect()
    }

    pub(super) fn run(&self, suite: &mut Suite<'_>) {
        (self.run)(self, suite);
    }
}

pub(super) fn forwarding(release: bool) -> Result<Vec<Case>, String> {
    let mut cases = Vec::new();
    for program in FORWARDING {
        for line in FORWARDING_CASES {
            for entry in lines::parse(line, &Families::new())? {
                if let Entry::Case(mut spec) | Entry::Release(mut spec) = entry
                    && (release || !line.starts_with("release"))
                {
                    spec.kind = Kind::Forwarding;
                    cases.push(Case::new(program, &spec));
                }
            }
        }
    }
    Ok(cases)
}

/// Checks the exit code, a line of the output, and that no directory of an I/O rank is left.
pub(super) fn forwards(outcome: &Outcome, code: i32, line: &str) -> Result<(), String> {
    if let Some(why) = &outcome.why {
        return Err(why.clone());
    }
    if outcome.ended.code != Some(code) {
        return Err(format!("{}, expected {code}", exit_code(outcome.ended.code)));
    }
    let says = Regex::new(line).expect("a pattern").is_match(&outcome.out);
    if !says || !outcome.out.contains("No space left on device") {
        return Err(format!("does not say '{line}', and which errors came"));
    }
    let left: Vec<&str> =
        servers(&outcome.out).map(|(_, dir)| dir).filter(|dir| Path::new(dir).exists()).collect();
    if left.is_empty() { Ok(()) } else { Err(format!("leaves {}", left.join(" "))) }
}

/// Returns the process id and the directory of each I/O rank, which it prints at its start.
fn servers(out: &str) -> impl Iterator<Item = (i32, &str)> {
    out.lines().filter_map(|line| {
        let (_, rest) = line.strip_prefix("I/O rank ")?.split_once(": pid ")?;
        let (pid, dir) = rest.split_once(", files in ")?;
        Some((pid.parse().ok()?, dir))
    })
}

/// An I/O rank completes the calls that it has begun after SIGTERM, and the job ends in order.
fn terminated(special: &Special, suite: &mut Suite<'_>) {
    let program = special.programs[0];
    let words = format!("-n 2 {} --size 16M --files 80 --window 4", suite.path(program));
    let words: Vec<String> = words.split(' ').map(String::from).collect();
    let (launcher, out) = (suite.tools.launcher.clone(), suite.builder.dir.join("stdout"));
    let mut signalled = false;
    // The first I/O rank gets the signal after it has written some files.
    let outcome = suite.launch(&launcher, &[], &words, || {
        if !signalled {
            let text = super::launch::text_of(&out);
            let first = lines_with(&text, "I/O rank 0: pid").next().unwrap_or_default();
            if let Some((pid, dir)) = servers(first).next()
                && Path::new(dir).join("rank-1-file-3").exists()
            {
                terminate(pid);
                signalled = true;
            }
        }
    });
    let reported = r"(?m)^I/O rank 0: SIGTERM; [0-9]+ calls are completed first$";
    let ends = "(?m)^io_forwarding: ended early by SIGTERM: [0-9]+ of 80 files written whole, 0 compared, none differs$";
    let verdict = if Regex::new(reported).expect("a pattern").is_match(&outcome.out) {
        forwards(&outcome, 3, ends)
    } else {
        Err(outcome.why.clone().unwrap_or_else(|| "SIGTERM is not reported".into()))
    };
    suite.record(special.label, &outcome, verdict);
}

/// Checks that a program was refused with this text in its output.
fn refused(special: &Special, suite: &mut Suite<'_>, outcome: &Outcome, text: &str) {
    let verdict = if let Some(why) = &outcome.why {
        Err(why.clone())
    } else if outcome.ended.code == Some(0) {
        Err("exit code 0".into())
    } else if ![&outcome.out, &outcome.err]
        .iter()
        .any(|t| Regex::new(text).expect("a pattern").is_match(t))
    {
        Err(format!("does not say '{text}'"))
    } else {
        Ok(())
    };
    suite.record(special.label, outcome, verdict);
}

/// A program that the other MPI's launcher starts must be refused, or it would run as n jobs.
fn launcher(special: &Special, suite: &mut Suite<'_>) {
    let Some(other) = system::other_launcher() else {
        return suite.report.skip(special.label, &format!("no launcher of {}", other_flavour()));
    };
    let words = ["-n".into(), "2".into(), suite.path(special.programs[0])];
    let outcome = suite.launch(&other, &[], &words, || {});
    refused(special, suite, &outcome, "was started by the mpiexec of");
}

/// A program that is linked with the library for the other MPI must be refused.
fn library(special: &Special, suite: &mut Suite<'_>) {
    let program = "link/values.other-library";
    if !other_prefix().join("lib/libarmci.so").exists() {
        let why = format!("nothing is installed in {}", other_prefix().display());
        return suite.report.skip(special.label, &why);
    }
    if !suite.builder.build_all(&[program.into()]).is_empty() {
        let log = super::launch::text_of(&suite.builder.dir.join(format!("{program}.log")));
        let output = super::tail(12, &[&log]);
        return suite.report.fail(program, 0.0, "does not build", output);
    }
    let (launcher, words) =
        (suite.tools.launcher.clone(), ["-n".into(), "2".into(), suite.path(program)]);
    let outcome = suite.launch(&launcher, &[], &words, || {});
    refused(special, suite, &outcome, "this library was built for .* but the program runs on");
}

/// Projects of CMake in each language, with each component and with the other MPI.
fn projects(special: &Special, suite: &mut Suite<'_>) {
    if !system::on_path("cmake") {
        return suite.report.skip(special.label, "no cmake");
    }
    let script = system::root().join("tests/cmake/check.sh").display().to_string();
    let dir = suite.builder.dir.join("projects").display().to_string();
    let mut words = vec![dir, suite.tools.prefix.display().to_string()];
    let others = ["mpicc", "mpicxx", "mpifort"].map(|name| format!("{name}.{}", other_flavour()));
    if others.iter().all(|name| system::on_path(name)) {
        words.extend(others);
    }
    let fortran = if suite.fortran { suite.tools.fort.clone() } else { String::new() };
    let outcome = suite.launch(&[script], &[("MPIFORT".into(), fortran)], &words, || {});
    let verdict = match (&outcome.why, outcome.ended.code) {
        (Some(why), _) => Err(why.clone()),
        (None, Some(0)) => Ok(()),
        (None, _) => Err(exit_code(outcome.ended.code)),
    };
    suite.record(special.label, &outcome, verdict);
}
