//! Real programs and their traces.

use super::super::super::system;
use super::super::Suite;
use super::super::special::Special;
use super::{Bench, case, check, number};
use std::collections::BTreeMap;

/// Number of tasks of the example. Each of them puts 32 words.
const TASKS: f64 = 2000.0;

/// An example that is slow for two reasons. The report finds both, and neither once fixed.
pub(in super::super) fn story(special: &Special, suite: &mut Suite<'_>) {
    case(special, suite, "report-story", compare);
}

fn compare(bench: &mut Bench<'_, '_>, program: &str) -> Result<(), String> {
    let (slow, mended) = (bench.file("slow"), bench.file("mended"));
    let mut kinds = Vec::new();
    for (name, arguments, chunk) in [("slow", ["1", "0"], 1.0), ("mended", ["25", "1"], 25.0)] {
        let words = ["-n", "4", program, arguments[0], arguments[1], "2000"];
        bench.good_job(name, &[("PORTOLAN_NODE_SIZE", "1")], &words, "0 wrong")?;
        let (_, err) = bench.report(name)?;
        check(!err.contains("lost") && !err.contains("damaged"), || err.clone())?;
        let (counts, _) = bench.calls(name, "read-modify-write")?;
        // Each rank stops when it gets a number beyond the last task.
        check(counts == TASKS / chunk + 4.0, || format!("{name}: {counts} counts"))?;
        let found = bench.table(&format!("{name}-tables/findings.csv"))?;
        kinds.push(found.iter().map(|row| row["kind"].clone()).collect::<Vec<_>>());
    }
    if cfg!(target_arch = "x86_64") {
        let sites = bench.table("slow-tables/sites.csv")?;
        let calls = |call: &str| {
            let rows = sites
                .iter()
                .filter(|row| row["call"] == call && row["called_at"].contains("hot_counter.c:"));
            rows.map(|row| number(row, "count")).sum::<f64>()
        };
        check(calls("put") == 32.0 * TASKS && calls("read-modify-write") == TASKS + 4.0, || {
            format!("the call sites: {sites:?}")
        })?;
    }
    let (puts, bytes) = bench.calls("slow", "put")?;
    check((puts, bytes) == (32.0 * TASKS, 256.0 * TASKS), || format!("{puts} puts of {bytes}"))?;
    let (messages, _) = bench.calls("mended", "aggregated message")?;
    check(messages <= TASKS, || format!("{messages} messages of puts that travel together"))?;
    let (out, _) = bench.run(0, &[&slow, &mended, "--no-page"])?;
    check(out.contains("transfers and messages"), || out.clone())?;
    // The findings depend on timing, which other programs may disturb. In the default run, only the
    // report's unit tests check them.
    if !bench.suite.args.release {
        return Ok(());
    }
    let has = |kinds: &[String], kind: &str| kinds.iter().any(|k| k == kind);
    // If all cores are busy, the counter's owner answers late, and the report says so instead.
    let late = !has(&kinds[0], "counter") && has(&kinds[0], "late");
    check((late || has(&kinds[0], "counter")) && has(&kinds[0], "small"), || {
        format!("the slow program is blamed for {:?}", kinds[0])
    })?;
    check(!has(&kinds[1], "small") && !has(&kinds[1], "counter"), || {
        format!("the mended program is blamed for {:?}", kinds[1])
    })?;
    let gone = |title: &str| out.contains(&format!("resolved: {title}"));
    check((late || gone("A hot counter")) && gone("Many short transfers"), || out.clone())
}

/// The steps of the program, and the kinds of their findings.
const FAULTS: [(&str, &str); 8] = [
    ("small", "small"),
    ("lock", "lock"),
    ("counter", "counter"),
    ("strided", "strided"),
    ("fences", "fences"),
    ("imbalance", "imbalance"),
    ("broadcast", "imbalance"),
    ("allocation", "allocation"),
];

/// A program with each fault causes each finding, and the same work without faults causes none.
pub(in super::super) fn faults(special: &Special, suite: &mut Suite<'_>) {
    case(special, suite, "report-faults", blames);
}

fn blames(bench: &mut Bench<'_, '_>, program: &str) -> Result<(), String> {
    let mut worths = |what: &str, step: &str, thread: &str| -> Result<_, String> {
        let name = format!("{what}-{step}-{thread}");
        let settings = [("PORTOLAN_NODE_SIZE", "1"), ("PORTOLAN_PROGRESS_THREAD", thread)];
        let words = ["-n", "4", program, what, step];
        bench.good_job(&name, &settings, &words, "PASS findings")?;
        let (out, _) = bench.report(&name)?;
        // Rank 0 works before each broadcast, so the others wait for it in MPI.
        let path = out.lines().find(|line| line.trim_start().starts_with("critical path"));
        let first = path.and_then(|path| path.split(" on rank ").nth(1));
        check(
            words[3..] != ["faults", "broadcast"] || first.is_some_and(|r| r.starts_with('0')),
            || format!("the critical path is not on rank 0: {out}"),
        )?;
        let rows = bench.table(&format!("{name}-tables/findings.csv"))?;
        let worths = rows.iter().map(|row| (row["kind"].clone(), number(row, "worth")));
        Ok(worths.collect::<BTreeMap<_, _>>())
    };
    for (step, kind) in FAULTS {
        let (bad, good) = (worths("faults", step, "1")?, worths("mended", step, "1")?);
        let found = |all: &BTreeMap<String, f64>| all.get(kind).copied().unwrap_or(0.0);
        check(found(&bad) > 0.0, || format!("{step}: {kind} is not found, but {bad:?}"))?;
        // Ranks that share cores arrive at barriers at different times in any case.
        let most = if kind == "imbalance" { found(&bad) } else { 0.0 };
        check(found(&good) <= most, || format!("{step}: the mended program has {good:?}"))?;
    }
    let (alone, served) = (worths("computes", "", "0")?, worths("computes", "", "1")?);
    check(alone.contains_key("progress"), || format!("progress is not found, but {alone:?}"))?;
    check(!served.contains_key("progress"), || format!("a rank with a thread: {served:?}"))
}

/// A single command writes the trace and the page, and prints the location of the page.
pub(in super::super) fn demo(special: &Special, suite: &mut Suite<'_>) {
    let example = if suite.tools.has_ga() { "ga_matmul" } else { "heat" };
    case(special, suite, "report-demo", |bench, _| demonstrates(bench, example));
}

fn demonstrates(bench: &mut Bench<'_, '_>, example: &str) -> Result<(), String> {
    let script = system::root().join("mpirun.sh").display().to_string();
    let trace = bench.file("trace");
    let words = ["--mpi", &system::mpi_name(), "-n", "4", "--trace", "--example", example];
    let settings = [("PORTOLAN_TRACE".to_string(), trace.clone())];
    let (code, _, err) = bench.launch(&[script], &settings, &words, || {})?;
    let page = format!("{trace}/report.html");
    check(code == Some(0) && err.contains(&format!("the report is in {page}")), || err)?;
    let text = std::fs::read_to_string(&page).map_err(|e| format!("{page}: {e}"))?;
    check(text.contains(example) && text.contains("events in 4 files"), || {
        "the page is of another job".into()
    })
}
