//! Tests the output and the messages of `portolan-report`.

mod jobs;
mod page;
mod story;

pub(super) use jobs::{clocks, full, killed, mpi, random_access, rpc};
pub(super) use page::{large, page};
pub(super) use story::{demo, faults, story};

use super::super::system;
use super::special::Special;
use super::{Outcome, Suite, exit_code};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

pub const PAGE: &str = "report/the page in a browser [ranks=16]";
pub const LARGE: &str = "report/the page of many ranks [ranks=1024]";
pub const MEMORY: &str = "report/memory does not grow with events [ranks=16]";
pub const STORY: &str = "report/the story of docs/observe.md [n=4 node-size=1]";
pub const FAULTS: &str = "report/faults are found, and none where there is none [n=4 node-size=1]";
pub const DEMO: &str = "report/mpirun.sh --trace [n=4]";
pub const RANDOM: &str = "report/RandomAccess, with and without aggregation [n=4 node-size=1]";
pub const RPC: &str = "report/remote calls [n=3 node-size=1]";
pub const MPI: &str = "report/MPI calls of the program [n=3 node-size=1]";
pub const KILLED: &str = "report/a job that is killed [n=2 node-size=1]";
pub const CLOCKS: &str = "report/clocks that are 5 s apart [n=2 hosts=1,1]";
pub const FULL: &str = "report/a full disk [n=2 node-size=1]";
pub const EXPORTS: &str = "report/exports, damage and two runs [ranks=8]";

type Row = BTreeMap<String, String>;
/// The exit code, the standard output and the standard error of a program.
type Ended = (Option<i32>, String, String);

struct Bench<'s, 'a> {
    suite: &'s mut Suite<'a>,
    program: String,
    dir: PathBuf,
    last: Option<Outcome>,
}

impl<'s, 'a> Bench<'s, 'a> {
    fn new(suite: &'s mut Suite<'a>, name: &str) -> Bench<'s, 'a> {
        let program = suite.tools.prefix.join("bin/portolan-report").display().to_string();
        let dir = suite.builder.dir.join(name);
        let _ = std::fs::remove_dir_all(&dir);
        Bench { suite, program, dir, last: None }
    }

    fn file(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }

    /// Runs a program under a launcher. Fails if it does not end.
    fn launch(
        &mut self,
        launcher: &[String],
        settings: &[(String, String)],
        words: &[&str],
        meanwhile: impl FnMut(),
    ) -> Result<Ended, String> {
        let words: Vec<String> = words.iter().map(|word| word.to_string()).collect();
        let outcome = self.suite.launch(launcher, settings, &words, meanwhile);
        let ended = (outcome.ended.code, outcome.out.clone(), outcome.err.clone());
        self.last.insert(outcome).why.clone().map_or(Ok(ended), Err)
    }

    /// Runs the report. Returns stdout and stderr, or a message if the exit code is not `code`.
    fn run(&mut self, code: i32, words: &[&str]) -> Result<(String, String), String> {
        let program = [self.program.clone()];
        let (ended, out, err) = self.launch(&program, &[], words, || {})?;
        check(ended == Some(code), || format!("{}: {}", words.join(" "), exit_code(ended)))?;
        Ok((out, err))
    }

    fn sample(
        &mut self,
        name: &str,
        ranks: u32,
        events: u64,
        hosts: u32,
    ) -> Result<String, String> {
        let dir = self.file(name);
        // The program does not replace a trace.
        let _ = std::fs::remove_dir_all(&dir);
        let numbers = [ranks.to_string(), events.to_string(), hosts.to_string()];
        let words = ["--sample", &dir, "--ranks", &numbers[0], "--events", &numbers[1]];
        self.run(0, &[&words[..], &["--hosts", &numbers[2]]].concat())?;
        Ok(dir)
    }

    fn table(&self, name: &str) -> Result<Vec<Row>, String> {
        let text =
            std::fs::read_to_string(self.dir.join(name)).map_err(|e| format!("{name}: {e}"))?;
        let mut lines = text.lines();
        let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
        // Only the last columns contain texts with commas, and no test reads them.
        let row = |line: &str| {
            let values = line.split(',').map(|value| value.trim_matches('"').to_string());
            header.iter().map(|name| name.to_string()).zip(values).collect()
        };
        Ok(lines.map(row).collect())
    }
}

/// Runs a case in a directory of this name, with its first program, and records its verdict.
fn case(
    special: &Special,
    suite: &mut Suite<'_>,
    name: &str,
    judge: impl FnOnce(&mut Bench<'_, '_>, &str) -> Result<(), String>,
) {
    let program = special.programs().first().map(|source| suite.path(source));
    let mut bench = Bench::new(suite, name);
    let verdict = judge(&mut bench, &program.unwrap_or_default());
    let outcome = bench.last.expect("something was run");
    bench.suite.record(special.label, &outcome, verdict);
}

fn number(row: &Row, name: &str) -> f64 {
    row.get(name).and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
}

fn check(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

/// Memory grows with four times the events only by the indexes of their blocks.
pub(super) fn memory(special: &Special, suite: &mut Suite<'_>) {
    let release = suite.args.release;
    case(special, suite, "report-memory", |bench, _| {
        let verdict = grows(bench, if release { 4_000_000 } else { 1_000_000 });
        let _ = std::fs::remove_dir_all(&bench.dir);
        verdict
    });
}

fn grows(bench: &mut Bench<'_, '_>, events: u64) -> Result<(), String> {
    let mut peaks = Vec::new();
    for events in [events, 4 * events] {
        let dir = bench.sample("trace", 16, events, 2)?;
        peaks.push(peak(Command::new(&bench.program).args([&dir, "-q"]))?);
        let page =
            std::fs::metadata(bench.dir.join("trace/report.html")).map_err(|e| e.to_string())?;
        check(page.len() <= 5_000_000, || format!("the page has {} bytes", page.len()))?;
    }
    // The allowance of 24 MiB is more than the indexes of the blocks need, and less than the
    // additional events would need as spans.
    check(peaks[1] < peaks[0] + (24 << 10), || {
        format!("{} KiB for {events} events, {} KiB for four times as many", peaks[0], peaks[1])
    })
}

fn peak(command: &mut Command) -> Result<u64, String> {
    let child = command.spawn().map_err(|e| e.to_string())?;
    let begun = Instant::now();
    loop {
        let (mut code, mut used) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
        // SAFETY: the child has not been waited for, and both out-parameters are writable.
        let ended =
            unsafe { libc::wait4(child.id() as i32, &mut code, libc::WNOHANG, used.as_mut_ptr()) };
        if ended != 0 {
            // SAFETY: zeroes are a valid `rusage`, and the call has filled it in.
            let used = unsafe { used.assume_init() };
            return if ended > 0 && code == 0 {
                Ok(used.ru_maxrss as u64)
            } else {
                Err(format!("it ends with {code}"))
            };
        }
        if begun.elapsed() > Duration::from_secs(10 * super::LIMIT) {
            // SAFETY: `kill` accesses no memory of this process. The child has not been waited for.
            unsafe { libc::kill(child.id() as i32, libc::SIGKILL) };
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Tests the exports, and the messages about damage and about a second run.
pub(super) fn exports(special: &Special, suite: &mut Suite<'_>) {
    let release = suite.args.release;
    case(special, suite, "report-exports", |bench, _| {
        writes(bench, release).and_then(|()| damaged(bench))
    });
}

fn writes(bench: &mut Bench<'_, '_>, release: bool) -> Result<(), String> {
    let dir = bench.sample("trace", 8, 60_000, 2)?;
    let (tables, perfetto) = (bench.file("tables"), bench.file("events.json"));
    bench.run(0, &[&dir, "-q", "--no-page", "--csv", &tables, "--perfetto", &perfetto])?;
    let text = std::fs::read_to_string(&perfetto).map_err(|e| e.to_string())?;
    let json: Value = serde_json::from_str(&text).map_err(|e| format!("{perfetto}: {e}"))?;
    let of = |phase: &str| {
        json["traceEvents"].as_array().into_iter().flatten().filter(|e| e["ph"] == *phase).count()
    };
    let spans: f64 = bench.table("tables/ranks.csv")?.iter().map(|row| number(row, "events")).sum();
    check(of("X") == spans as usize && of("B") == of("E") && of("B") > 0, || {
        format!("{} spans of {spans}, {} begins, {} ends", of("X"), of("B"), of("E"))
    })?;
    // Comparison of two runs: doubling the events doubles the transfers.
    let other = bench.sample("other", 8, 120_000, 2)?;
    let page = bench.file("compared.html");
    let (out, _) = bench.run(0, &[&dir, &other, "-o", &page])?;
    let compared = std::fs::read_to_string(&page).map_err(|e| e.to_string())?;
    let line = out
        .lines()
        .find(|line| line.trim_start().starts_with("transfers and messages"))
        .unwrap_or_default();
    check(line.ends_with("2.0 times") && compared.contains("id=\"compared\""), || {
        format!("'{line}'")
    })?;
    let archive = bench.file("otf2");
    let words = [&dir, "-q", "--no-page", "--otf2", &archive];
    match bench.run(0, &words) {
        Ok(_) => otf2(bench, spans, of("B")),
        Err(_)
            if !release && bench.last.as_ref().is_some_and(|o| o.err.contains("not installed")) =>
        {
            println!("     --otf2 is not tested: the OTF2 library is not installed");
            Ok(())
        }
        Err(why) => Err(why),
    }
}

/// Checks the archive with OTF2's own program.
fn otf2(bench: &Bench<'_, '_>, spans: f64, regions: usize) -> Result<(), String> {
    if !system::on_path("otf2-print") {
        println!("     the OTF2 archive is not read: there is no otf2-print");
        return Ok(());
    }
    let output = Command::new("otf2-print").arg(bench.dir.join("otf2/traces.otf2")).output();
    let output = output.map_err(|e| format!("otf2-print: {e}"))?;
    let (text, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    check(output.status.success() && err.trim().is_empty(), || format!("otf2-print: {err}"))?;
    let of = |word: &str| {
        text.lines().filter(|line| line.split_whitespace().next() == Some(word)).count()
    };
    let all = spans as usize + regions;
    check(of("ENTER") == all && of("LEAVE") == all, || {
        format!("{} enters and {} leaves of {all}", of("ENTER"), of("LEAVE"))
    })?;
    let calls = bench.table("tables/calls.csv")?;
    let count = |name: &str| {
        let rows = calls.iter().filter(|row| row["call"] == name);
        rows.map(|row| number(row, "count")).sum::<f64>() as usize
    };
    for (word, name) in
        [("RMA_PUT", "non-blocking put"), ("RMA_GET", "get"), ("RMA_ATOMIC", "read-modify-write")]
    {
        check(of(word) == count(name) && of(word) > 0, || {
            format!("{} {word}, not {}", of(word), count(name))
        })?;
    }
    Ok(())
}

/// The report names a truncated file, a file with wrong bytes, a file that is not a trace, and a
/// missing file. It uses the rest.
fn damaged(bench: &mut Bench<'_, '_>) -> Result<(), String> {
    let dir = bench.file("trace");
    let file = |rank: usize| PathBuf::from(&dir).join(format!("rank-{rank:06}.ptrace"));
    let failed = |e: std::io::Error| e.to_string();
    let bytes = std::fs::read(file(1)).map_err(failed)?;
    std::fs::write(file(1), &bytes[..bytes.len() - 1000]).map_err(failed)?;
    let mut bytes = std::fs::read(file(2)).map_err(failed)?;
    let middle = bytes.len() / 2;
    bytes[middle..middle + 50].fill(0x55);
    std::fs::write(file(2), bytes).map_err(failed)?;
    std::fs::write(file(3), "no trace").map_err(failed)?;
    std::fs::remove_file(file(4)).map_err(failed)?;
    let page = bench.file("damaged.html");
    let (out, err) = bench.run(0, &[&dir, "-o", &page])?;
    let text = std::fs::read_to_string(&page).map_err(failed)?;
    for says in [
        "rank-000001.ptrace: ",
        "the data is truncated",
        "rank-000002.ptrace: a block of ",
        "rank-000003.ptrace is skipped: this is not a trace file",
        "the file of ranks 3, 4 is missing",
        "the trace of rank 1 is incomplete: ",
    ] {
        check(err.contains(says) && text.contains(says), || {
            format!("'{says}' is not said: {err}")
        })?;
    }
    check(out.contains("in 6 files"), || format!("the rest is not used: {out}"))?;
    let (_, err) = bench.run(1, &["/no/such/directory"])?;
    check(err.contains("cannot read /no/such/directory"), || err.clone())?;
    let empty = bench.file("empty");
    std::fs::create_dir_all(&empty).map_err(failed)?;
    let (_, err) = bench.run(1, &[&empty])?;
    check(err.contains("no trace in"), || err.clone())
}
