//! Combines the logs of many suites into one report.
//!
//! ```text
//! report --into DIRECTORY [--pins FILE] [--title TEXT] [--note TEXT ...] MPI:SUITE:LOG ...
//! ```
//! Reads logs with one line per case, as [`super::report`] and the shell suites write them. Writes
//! `junit.xml` and `report.html` into the directory and prints a table. The last line is `N passed,
//! N failed`. A failure that matches the file of pins is a known fault of an MPI and counts as
//! pinned, not as failed. The lines of that file are `MPI | case | output | program that shows the
//! fault`. The first three fields are regular expressions.

use super::html;
use super::report::{Case, Kind, junit};
use regex::Regex;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, Default)]
struct Options {
    into: PathBuf,
    pins: Option<PathBuf>,
    title: String,
    notes: Vec<String>,
    logs: Vec<String>,
}

pub fn main(words: &[String]) -> ExitCode {
    match options(words).and_then(|options| make(&options)) {
        Ok(failed) => ExitCode::from(u8::from(failed > 0)),
        Err(why) => {
            eprintln!("report: {why}");
            ExitCode::from(2)
        }
    }
}

fn options(words: &[String]) -> Result<Options, String> {
    let mut options = Options { title: "Portolan, regression suite".into(), ..Options::default() };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (name, given) =
            word.split_once('=').map_or((word.as_str(), None), |(n, v)| (n, Some(v)));
        let mut value = || {
            let next = given.map(String::from).or_else(|| words.next().cloned());
            next.ok_or(format!("{name} needs a value"))
        };
        match name {
            "--into" => options.into = value()?.into(),
            "--pins" => options.pins = Some(value()?.into()),
            "--title" => options.title = value()?,
            "--note" => options.notes.push(value()?),
            _ if name.starts_with('-') => return Err(format!("unknown option '{word}'")),
            _ => options.logs.push(word.clone()),
        }
    }
    if options.into.as_os_str().is_empty() {
        Err("--into which directory?".into())
    } else {
        Ok(options)
    }
}

fn make(options: &Options) -> Result<usize, String> {
    let mut cases = Vec::new();
    for log in &options.logs {
        let mut words = log.splitn(3, ':');
        let (Some(mpi), Some(suite), Some(path)) = (words.next(), words.next(), words.next())
        else {
            return Err(format!("'{log}' is not MPI:SUITE:LOG"));
        };
        let text = std::fs::read(path).map_err(|e| format!("{path}: {e}"))?;
        cases.extend(read_log(mpi, suite, &String::from_utf8_lossy(&text)));
    }
    let pins = options.pins.as_deref().map_or(Ok(Vec::new()), read_pins)?;
    cases.iter_mut().for_each(|case| apply(&pins, case));
    let failed = |e: std::io::Error| format!("{}: {e}", options.into.display());
    std::fs::create_dir_all(&options.into).map_err(failed)?;
    junit(&cases, &options.into.join("junit.xml"))?;
    let page = html::page(&cases, &options.title, &options.notes);
    std::fs::write(options.into.join("report.html"), page).map_err(failed)?;
    Ok(print(&cases))
}

fn read_log(mpi: &str, suite: &str, text: &str) -> Vec<Case> {
    let line_of_case = Regex::new(r"^(ok|FAIL|skip)\s+(.*)$").expect("a pattern");
    let last = Regex::new(r"^\d+ passed, \d+ failed$").expect("a pattern");
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
        ended |= last.is_match(line);
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
