//! Real programs and their traces.

use super::super::super::system;
use super::super::Suite;
use super::super::special::Special;
use super::{Bench, check, number};

/// The example that is slow for two reasons: both are found, and neither when it is mended.
pub(in super::super) fn story(special: &Special, suite: &mut Suite<'_>) {
    let program = suite.path("examples/hot_counter.c");
    let mut bench = Bench::new(suite, "report-story");
    let verdict = tells(&mut bench, &program);
    bench.tell(special.label, verdict);
}

fn tells(bench: &mut Bench<'_, '_>, program: &str) -> Result<(), String> {
    let (slow, mended) = (bench.file("slow"), bench.file("mended"));
    for (dir, arguments) in [(&slow, ["1", "0"]), (&mended, ["25", "1"])] {
        std::fs::create_dir_all(dir).map_err(|e| e.to_string())?;
        let launcher = bench.suite.tools.launcher.clone();
        let settings = [("PORTOLAN_TRACE", dir.as_str()), ("PORTOLAN_NODE_SIZE", "1")];
        let settings = settings.map(|(name, value)| (name.to_string(), value.to_string()));
        let words = ["-n", "4", program, arguments[0], arguments[1], "2000"].map(String::from);
        let outcome = bench.suite.launch(&launcher, &settings, &words, || {});
        let (out, why, code) = (outcome.out.clone(), outcome.why.clone(), outcome.ended.code);
        bench.last = Some(outcome);
        if let Some(why) = why {
            return Err(why);
        }
        check(code == Some(0) && out.contains("0 wrong"), || format!("the example: {out}"))?;
    }
    let mut kinds = Vec::new();
    for (dir, name) in [(&slow, "slow-tables"), (&mended, "mended-tables")] {
        let tables = bench.file(name);
        let (_, err) = bench.run(0, &[dir, "--csv", &tables])?;
        check(!err.contains("lost") && !err.contains("damaged"), || err.clone())?;
        let found = bench.table(&format!("{name}/findings.csv"))?;
        kinds.push(found.iter().map(|row| row["kind"].clone()).collect::<Vec<_>>());
        // Each rank took its tasks from rank 0, and put to all.
        let matrix = bench.table(&format!("{name}/matrix.csv"))?;
        let pairs = matrix.iter().filter(|row| number(row, "bytes") > 0.0).count();
        check(pairs >= 12, || format!("{name}: {pairs} pairs"))?;
    }
    let has = |kinds: &[String], kind: &str| kinds.iter().any(|k| k == kind);
    check(has(&kinds[0], "counter") && has(&kinds[0], "small"), || {
        format!("the slow program is blamed for {:?}", kinds[0])
    })?;
    check(!has(&kinds[1], "small") && !has(&kinds[1], "counter"), || {
        format!("the mended program is blamed for {:?}", kinds[1])
    })?;
    let (out, _) = bench.run(0, &[&slow, &mended, "--no-page"])?;
    let gone = |title: &str| out.contains(&format!("gone: {title}"));
    check(gone("A hot counter") && gone("Many short transfers"), || out.clone())
}

/// One command makes the trace and the page, and says where that is.
pub(in super::super) fn demo(special: &Special, suite: &mut Suite<'_>) {
    let example = if suite.tools.has_ga() { "ga_matmul" } else { "heat" };
    let mut bench = Bench::new(suite, "report-demo");
    let verdict = demonstrates(&mut bench, example);
    bench.tell(special.label, verdict);
}

fn demonstrates(bench: &mut Bench<'_, '_>, example: &str) -> Result<(), String> {
    let script = system::root().join("mpirun.sh").display().to_string();
    let trace = bench.file("trace");
    let words = ["--mpi", &system::mpi_name(), "-n", "4", "--trace", "--example", example];
    let words = words.map(String::from);
    let settings = [("PORTOLAN_TRACE".to_string(), trace.clone())];
    let outcome = bench.suite.launch(&[script], &settings, &words, || {});
    let (err, why, code) = (outcome.err.clone(), outcome.why.clone(), outcome.ended.code);
    bench.last = Some(outcome);
    if let Some(why) = why {
        return Err(why);
    }
    let page = format!("{trace}/report.html");
    check(code == Some(0) && err.contains(&format!("the report is in {page}")), || err)?;
    let text = std::fs::read_to_string(&page).map_err(|e| format!("{page}: {e}"))?;
    check(text.contains(example) && text.contains("events in 4 files"), || {
        "the page is of another job".into()
    })
}
