//! Combines the logs of many suites into one report.
//!
//! Reads logs with one line per case, as [`crate::report`] and the shell suites write them. Writes
//! `junit.xml` and `report.html`, and prints a table. The last line is `N passed, N failed`. A
//! failure that matches [`PINS`] is a known fault of an MPI and counts as pinned, not as failed.
//! The lines of that file are `MPI | case | output | program that shows the fault`. The first three
//! fields are regular expressions.

use crate::report::{Case, Kind, junit};
use crate::{html, results, system};
use regex::Regex;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const PINS: &str = "tests/mpi-bugs/pins.txt";

/// The log of a suite.
#[derive(Debug)]
pub struct Log {
    pub mpi: String,
    pub suite: String,
    pub path: PathBuf,
}

#[derive(Debug, Default)]
pub struct Summary {
    pub title: String,
    /// Properties of the tested build and of the machine: name and value.
    pub facts: Vec<(String, String)>,
    pub notes: Vec<String>,
    pub logs: Vec<Log>,
}

impl Summary {
    /// Writes the report into a directory and prints it. Returns the number of failures.
    pub fn make(&self, into: &Path) -> Result<usize, String> {
        let mut cases = Vec::new();
        for Log { mpi, suite, path } in &self.logs {
            let text = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
            cases.extend(read_log(mpi, suite, &String::from_utf8_lossy(&text)));
        }
        let pins = read_pins(&system::root().join(PINS))?;
        cases.iter_mut().for_each(|case| apply(&pins, case));
        junit(&cases, &self.facts, &into.join("junit.xml"))?;
        let page = into.join("report.html");
        std::fs::write(&page, html::page(&cases, self))
            .map_err(|e| format!("{}: {e}", page.display()))?;
        for (name, value) in &self.facts {
            println!("{name}: {value}");
        }
        Ok(print(&cases))
    }
}

fn read_log(mpi: &str, suite: &str, text: &str) -> Vec<Case> {
    let line_of_case = Regex::new(r"^(ok|FAIL|skip)\s+(.*)$").expect("a pattern");
    let case = |kind, name: &str| Case {
        mpi: mpi.into(),
        suite: suite.into(),
        name: name.into(),
        kind,
        why: String::new(),
        output: Vec::new(),
        seconds: 0.0,
        pin: String::new(),
    };
    let (mut cases, mut ended): (Vec<Case>, bool) = (Vec::new(), false);
    for line in text.lines() {
        if let Some(found) = line_of_case.captures(line) {
            let kind = match &found[1] {
                "ok" => Kind::Passed,
                "FAIL" => Kind::Failed,
                _ => Kind::Skipped,
            };
            let (name, seconds, why) = parts(&found[2], kind);
            cases.push(Case { seconds, why, ..case(kind, &name) });
        } else if let (Some(rest), Some(last)) = (line.strip_prefix("     "), cases.last_mut()) {
            let rest = rest.strip_prefix("| ").or(rest.strip_prefix('|')).unwrap_or(rest);
            last.output.push(rest.into());
        }
        ended |= results::totals(line).is_some();
    }
    if !ended {
        let lines: Vec<String> = text.lines().map(String::from).collect();
        let output = lines[lines.len().saturating_sub(30)..].to_vec();
        let why = "did not come to its end".into();
        cases.push(Case { why, output, ..case(Kind::Failed, "the run as a whole") });
    }
    cases
}

/// Splits the text of a case into its name, its seconds, and the reason why it did not pass.
fn parts(text: &str, kind: Kind) -> (String, f64, String) {
    let seconds = Regex::new(r" (\d+(?:\.\d+)?)s(?: \(.*\))?$").expect("a pattern");
    let (mut name, mut why) = (text.to_string(), String::new());
    if kind != Kind::Passed {
        // The settings in brackets may contain colons. The reason follows the first one after them.
        let mut depth = 0;
        let mut last = ' ';
        for (at, letter) in text.char_indices() {
            match letter {
                '[' => depth += 1,
                ']' => depth -= 1,
                ':' if depth <= 0
                    && text[at..].starts_with(": ")
                    && (last.is_alphanumeric() || last == ']') =>
                {
                    (name, why) = (text[..at].into(), text[at + 2..].into());
                    break;
                }
                _ => {}
            }
            last = letter;
        }
    }
    let Some(found) = seconds.captures(&name) else { return (name, 0.0, why) };
    let (time, whole) = (found[1].parse().unwrap_or(0.0), found[0].len());
    (name[..name.len() - whole].to_string(), time, why)
}

struct Pin {
    mpi: Regex,
    case: Regex,
    output: Regex,
    program: String,
}

fn read_pins(path: &Path) -> Result<Vec<Pin>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut pins = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        let fields: Vec<&str> = line.split(" | ").map(str::trim).collect();
        let [mpi, case, output, program] = fields[..] else {
            return Err(format!("{}: not four fields: {line}", path.display()));
        };
        let pattern = |text: &str| Regex::new(text).map_err(|e| format!("{}: {e}", path.display()));
        let (case, output) = (pattern(case)?, pattern(output)?);
        pins.push(Pin {
            mpi: pattern(&format!("^(?:{mpi})$"))?,
            case,
            output,
            program: program.into(),
        });
    }
    Ok(pins)
}

fn apply(pins: &[Pin], case: &mut Case) {
    if case.kind != Kind::Failed {
        return;
    }
    let text = format!("{}\n{}", case.why, case.output.join("\n"));
    let name = format!("{} {}", case.suite, case.name);
    let fits = |pin: &&Pin| {
        pin.mpi.is_match(&case.mpi) && pin.case.is_match(&name) && pin.output.is_match(&text)
    };
    if let Some(pin) = pins.iter().find(fits) {
        (case.kind, case.pin) = (Kind::Pinned, pin.program.clone());
    }
}

/// MPI, suite, number of hosts.
type Group<'c> = (&'c str, &'c str, usize);

fn print(cases: &[Case]) -> usize {
    let mut groups: Vec<(Group<'_>, Vec<&Case>)> = Vec::new();
    for case in cases {
        let key = (case.mpi.as_str(), case.suite.as_str(), html::hosts(case));
        match groups.iter_mut().find(|(other, _)| *other == key) {
            Some((_, members)) => members.push(case),
            None => groups.push((key, vec![case])),
        }
    }
    let heads: Vec<String> = Kind::ALL.iter().map(|kind| format!("{:>8}", kind.word())).collect();
    println!("{:14} {:10} {:>5} {} {:>8}", "MPI", "suite", "hosts", heads.join(" "), "minutes");
    for ((mpi, suite, hosts), members) in &groups {
        let numbers = Kind::ALL.map(|kind| {
            let count = members.iter().filter(|case| case.kind == kind).count();
            format!("{:>8}", if count > 0 { count.to_string() } else { String::new() })
        });
        let minutes = members.iter().map(|case| case.seconds).sum::<f64>() / 60.0;
        println!("{mpi:14} {suite:10} {hosts:>5} {} {minutes:8.1}", numbers.join(" "));
    }
    for case in cases.iter().filter(|case| case.kind == Kind::Failed) {
        println!("FAIL {}: {}", html::full_name(case), case.why);
    }
    let mut pinned: BTreeMap<&str, usize> = BTreeMap::new();
    for case in cases.iter().filter(|case| case.kind == Kind::Pinned) {
        *pinned.entry(&case.pin).or_default() += 1;
    }
    for (pin, number) in pinned {
        println!("{number} pinned by {pin}");
    }
    let count = |kind| cases.iter().filter(|case| case.kind == kind).count();
    println!("{} passed, {} failed", count(Kind::Passed), count(Kind::Failed));
    count(Kind::Failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_becomes_cases() {
        let text = "\
            ok   c/rmw [n=2] 0.31s (a note)\n\
            FAIL c/rmw [n=3 path=rma] 90.02s: not at its end after 90 seconds\n     | rank 1\n     |\n\
            skip ga/ga_acc [n=4]: no Global Arrays: none\n1 passed, 1 failed\n";
        let cases = read_log("mpich", "programs", text);
        let of = |case: &Case| (case.kind, case.name.clone(), case.seconds, case.why.clone());
        let cases_of: Vec<_> = cases.iter().map(of).collect();
        let expected = [
            (Kind::Passed, "c/rmw [n=2]", 0.31, ""),
            (Kind::Failed, "c/rmw [n=3 path=rma]", 90.02, "not at its end after 90 seconds"),
            (Kind::Skipped, "ga/ga_acc [n=4]", 0.0, "no Global Arrays: none"),
        ];
        assert_eq!(cases_of, expected.map(|(k, name, s, why)| (k, name.into(), s, why.into())));
        assert_eq!(cases[1].output, ["rank 1", ""]);
    }

    #[test]
    fn a_log_without_totals_is_a_failure() {
        let cases = read_log("mpich", "programs", "ok   c/rmw [n=2] 0.31s\n");
        assert_eq!(cases.len(), 2);
        assert_eq!((cases[1].kind, &*cases[1].why), (Kind::Failed, "did not come to its end"));
    }

    #[test]
    fn a_known_fault_is_pinned() {
        let pins = read_pins(&system::root().join(PINS)).expect("the pins of this repository");
        assert!(!pins.is_empty());
        let pin = |mpi| Pin {
            mpi: Regex::new(mpi).expect("a pattern"),
            case: Regex::new("^programs c/rmw").expect("a pattern"),
            output: Regex::new("signal 11").expect("a pattern"),
            program: "compare_and_swap.c".into(),
        };
        let text = "FAIL c/rmw [n=2] 1.00s: exit code 1\n     | signal 11\n0 passed, 1 failed\n";
        let mut case = read_log("openmpi", "programs", text).remove(0);
        apply(&[pin("^mpich$")], &mut case);
        assert_eq!(case.kind, Kind::Failed);
        apply(&[pin("^openmpi$")], &mut case);
        assert_eq!((case.kind, &*case.pin), (Kind::Pinned, "compare_and_swap.c"));
    }
}
