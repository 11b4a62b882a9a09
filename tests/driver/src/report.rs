//! Prints a line per case, and the totals at the end.
//!
//! ```text
//! ok   c/rmw [n=2] 0.31s
//! FAIL c/rmw [n=3 path=rma] 90.02s: not at its end after 90 seconds
//!      | output, and where each rank stood
//! skip ga/ga_acc [n=4]: no Global Arrays for mpich-wheel
//! 1 skipped
//! 1 passed, 1 failed
//! ```
//! `results` reads these lines, and `summary` combines many suites into one report.

use quick_junit::{NonSuccessKind, Report as Junit, TestCase, TestCaseStatus, TestSuite};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Passed,
    Failed,
    /// It failed because of a known fault of the MPI.
    Pinned,
    /// It cannot run here.
    Skipped,
}

impl Kind {
    pub const ALL: [Kind; 4] = [Kind::Passed, Kind::Failed, Kind::Pinned, Kind::Skipped];

    pub fn word(self) -> &'static str {
        match self {
            Kind::Passed => "passed",
            Kind::Failed => "failed",
            Kind::Pinned => "pinned",
            Kind::Skipped => "skipped",
        }
    }
}

#[derive(Debug, Clone)]
pub struct Case {
    pub mpi: String,
    pub suite: String,
    pub name: String,
    pub kind: Kind,
    pub why: String,
    pub output: Vec<String>,
    pub seconds: f64,
    /// The program that shows the MPI's fault. Empty unless the case is pinned.
    pub pin: String,
}

#[derive(Debug, Default)]
pub struct Report {
    mpi: String,
    suite: String,
    cases: Vec<Case>,
}

impl Report {
    pub fn new(mpi: &str, suite: &str) -> Report {
        Report { mpi: mpi.into(), suite: suite.into(), cases: Vec::new() }
    }

    fn add(&mut self, name: &str, kind: Kind, seconds: f64, why: &str, output: Vec<String>) {
        self.cases.push(Case {
            mpi: self.mpi.clone(),
            suite: self.suite.clone(),
            name: name.into(),
            kind,
            why: why.into(),
            output,
            seconds,
            pin: String::new(),
        });
    }

    pub fn ok(&mut self, name: &str, seconds: f64, note: &str) {
        let note = if note.is_empty() { String::new() } else { format!(" ({note})") };
        println!("ok   {name} {seconds:.2}s{note}");
        self.add(name, Kind::Passed, seconds, "", Vec::new());
    }

    pub fn fail(&mut self, name: &str, seconds: f64, why: &str, output: Vec<String>) {
        println!("FAIL {name} {seconds:.2}s: {why}");
        for line in &output {
            println!("     | {line}");
        }
        self.add(name, Kind::Failed, seconds, why, output);
    }

    pub fn skip(&mut self, name: &str, why: &str) {
        println!("skip {name}: {why}");
        self.add(name, Kind::Skipped, 0.0, why, Vec::new());
    }

    pub fn count(&self, kind: Kind) -> usize {
        self.cases.iter().filter(|case| case.kind == kind).count()
    }

    pub fn end(&self, file: Option<&Path>) -> Result<ExitCode, String> {
        if let Some(file) = file {
            junit(&self.cases, &[], file)?;
        }
        if self.count(Kind::Skipped) > 0 {
            println!("{} skipped", self.count(Kind::Skipped));
        }
        let failed = self.count(Kind::Failed);
        println!("{} passed, {failed} failed", self.count(Kind::Passed));
        Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Returns the last lines of each text, truncated to 240 characters per line.
pub fn tail(lines: usize, texts: &[&str]) -> Vec<String> {
    let of = |text: &&str| {
        let all: Vec<&str> = text.lines().collect();
        let from = all.len().saturating_sub(lines);
        all[from..].iter().map(|line| line.chars().take(240).collect()).collect::<Vec<String>>()
    };
    texts.iter().flat_map(of).collect()
}

/// Writes a JUnit report with one test suite for each MPI and suite. The facts are properties of
/// each suite, because the format has none for a report.
pub fn junit(cases: &[Case], facts: &[(String, String)], file: &Path) -> Result<(), String> {
    let mut report = Junit::new("portolan");
    let mut names: Vec<String> = Vec::new();
    for case in cases {
        let name = format!("{}.{}", case.mpi, case.suite);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    for name in names {
        let mut suite = TestSuite::new(name.as_str());
        for (fact, value) in facts {
            suite.add_property((fact.as_str(), value.as_str()));
        }
        for case in cases.iter().filter(|c| format!("{}.{}", c.mpi, c.suite) == name) {
            let status = match case.kind {
                Kind::Passed => TestCaseStatus::success(),
                Kind::Failed => {
                    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                    status.set_message(case.why.as_str()).set_description(case.output.join("\n"));
                    status
                }
                Kind::Pinned | Kind::Skipped => {
                    let mut status = TestCaseStatus::skipped();
                    status.set_message(match case.kind {
                        Kind::Pinned => {
                            format!("fault of {}, see {}: {}", case.mpi, case.pin, case.why)
                        }
                        _ => case.why.clone(),
                    });
                    status
                }
            };
            let mut entry = TestCase::new(case.name.as_str(), status);
            entry.set_classname(name.as_str()).set_time(Duration::from_secs_f64(case.seconds));
            suite.add_test_case(entry);
        }
        report.add_test_suite(suite);
    }
    let text = report.to_string().map_err(|e| format!("{}: {e}", file.display()))?;
    std::fs::write(file, text).map_err(|e| format!("{}: {e}", file.display()))
}
