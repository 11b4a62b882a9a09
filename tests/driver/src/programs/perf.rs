//! Tests `portolan-perf` on several ranks: it succeeds, its JSON contains the requested results,
//! and it rejects bad arguments with a message. The figures are not judged, because a machine under
//! test is loaded.

use super::special::Special;
use super::{Outcome, Suite, exit_code, variables};
use crate::system;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

struct Run {
    label: &'static str,
    ranks: usize,
    settings: &'static str,
    arguments: &'static str,
    /// Tests that must have results for each path and each pattern.
    tests: &'static [&'static str],
    paths: &'static [&'static str],
    patterns: &'static [&'static str],
}

const MOVES: &[&str] = &["put_lat", "put_bw", "get_lat", "get_bw", "acc_lat", "fadd", "am_call"];

const RUNS: &[Run] = &[
    Run {
        label: ALONE,
        ranks: 1,
        settings: "",
        arguments: "--target waits,computes",
        tests: &["put_lat", "nbput_bw", "get_bw", "strided_get", "vector_put", "swap", "rpc_call"],
        paths: &["auto"],
        patterns: &["pair"],
    },
    Run {
        label: ALL_TESTS,
        ranks: 2,
        settings: "",
        arguments: "",
        tests: &[
            "put_lat",
            "put_bw",
            "nbput_bw",
            "get_lat",
            "get_bw",
            "acc_lat",
            "acc_bw",
            "strided_put",
            "strided_get",
            "vector_put",
            "fadd",
            "swap",
            "lock",
            "notify",
            "barrier",
            "broadcast",
            "reduce",
            "allreduce",
            "am_call",
            "am_rate",
            "am_items",
            "compose",
            "rpc_call",
            "rpc_rate",
            "rpc_bulk",
        ],
        paths: &["auto"],
        patterns: &["pair"],
    },
    Run {
        label: PATHS,
        ranks: 2,
        settings: "",
        arguments: "--path direct,rma,message --type f64,i32 put get acc_lat fadd am_call",
        tests: MOVES,
        paths: &["direct", "rma", "message"],
        patterns: &["pair"],
    },
    Run {
        label: VIRTUAL,
        ranks: 3,
        settings: "node-size=1",
        arguments: "--target waits,computes --pattern pair,all-to-one put get acc_lat fadd am_call lock notify",
        tests: MOVES,
        paths: &["auto"],
        patterns: &["pair", "all-to-one"],
    },
    Run {
        label: PATTERNS,
        ranks: 4,
        settings: "node-size=2",
        arguments: "--pattern pairs,one-to-all,all-to-one put_lat fadd am_call am_rate rpc_rate rpc_bulk",
        tests: &["put_lat", "fadd", "am_call", "am_rate", "rpc_rate", "rpc_bulk"],
        paths: &["auto"],
        patterns: &["pairs", "one-to-all", "all-to-one"],
    },
    Run {
        label: ADVICE,
        ranks: 2,
        settings: "node-size=1",
        arguments: "--advise put_lat",
        tests: &["put_lat"],
        paths: &["auto"],
        patterns: &["pair"],
    },
];

pub const ALONE: &str = "perf/a lone rank [n=1]";
pub const ALL_TESTS: &str = "perf/all tests [n=2]";
pub const PATHS: &str = "perf/each path [n=2]";
pub const VIRTUAL: &str = "perf/virtual nodes [n=3 node-size=1]";
pub const PATTERNS: &str = "perf/patterns [n=4 node-size=2]";
pub const ADVICE: &str = "perf/advice [n=2 node-size=1]";
pub const REFUSES: &str = "perf/bad arguments [n=2]";
pub const KILLED: &str = "perf/killed rank [n=2]";

pub(super) fn measures(special: &Special, suite: &mut Suite<'_>) {
    let run = RUNS.iter().find(|run| run.label == special.label).expect("each label has a run");
    let file = |name: &str| suite.builder.dir.join(name).display().to_string();
    let (json, html, faster) = (file("perf.json"), file("perf.html"), file("perf-faster.json"));
    let program = suite.tools.prefix.join("bin/portolan-perf").display().to_string();
    let mut words = vec!["-n".into(), run.ranks.to_string(), program.clone()];
    words.extend(["--quick", "--json", &json, "--html", &html].map(String::from));
    words.extend(run.arguments.split_whitespace().map(String::from));
    for old in [&json, &html] {
        let _ = std::fs::remove_file(old);
    }
    let launcher = suite.tools.launcher.clone();
    let settings = variables(run.settings).expect("the settings in this file are known");
    let outcome = suite.launch(&launcher, &settings, &words, || {});
    let mut verdict = ended_well(&outcome).and_then(|()| judge(run, &json, &html, &faster));
    if verdict.is_ok() {
        verdict = compares(suite, &program, [&json, &faster]);
    }
    suite.record(special.label, &outcome, verdict);
}

fn ended_well(outcome: &Outcome) -> Result<(), String> {
    match (&outcome.why, outcome.ended.code) {
        (Some(why), _) => Err(why.clone()),
        (None, Some(0)) => Ok(()),
        (None, _) => Err(exit_code(outcome.ended.code)),
    }
}

/// Checks the results of a run. Writes a copy of them to `faster` with times 1,000 times shorter.
fn judge(run: &Run, json: &str, html: &str, faster: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(json).map_err(|e| format!("{json}: {e}"))?;
    let mut report: Value = serde_json::from_str(&text).map_err(|e| format!("{json}: {e}"))?;
    if report["ranks"] != run.ranks {
        return Err(format!("the results are of {} ranks", report["ranks"]));
    }
    let mut found = BTreeSet::new();
    let rows = report["rows"].as_array().ok_or("there are no rows")?;
    for row in rows {
        let text = |name: &str| row[name].as_str().unwrap_or_default().to_string();
        let bounds = row["bounds"].as_array().into_iter().flatten().map(|bound| &bound["time"]);
        for time in bounds.chain([&row["time"]]) {
            let [low, median, high] = ["low", "median", "high"].map(|n| time[n].as_f64());
            let ordered =
                low.zip(median).zip(high).is_some_and(|((l, m), h)| 0.0 < l && l <= m && m <= h);
            if !ordered {
                return Err(format!("no figures: {row}"));
            }
        }
        if run.settings == "node-size=1" && text("taken") == "direct" {
            return Err(format!("a direct path between nodes: {row}"));
        }
        found.insert((text("test"), text("path"), text("pattern")));
    }
    let collective = ["barrier", "broadcast", "reduce", "allreduce"];
    for test in run.tests {
        for path in run.paths {
            for pattern in run.patterns.iter().filter(|_| !collective.contains(test)) {
                let wanted = (test.to_string(), path.to_string(), pattern.to_string());
                if !found.contains(&wanted) {
                    return Err(format!("no figures of {wanted:?}"));
                }
            }
        }
    }
    if let Some(missing) = run.tests.iter().find(|t| !found.iter().any(|f| f.0 == **t)) {
        return Err(format!("no figures of {missing}"));
    }
    let advised = report["advice"].as_array().map_or(0, Vec::len);
    if run.arguments.contains("--advise") != (advised > 3) {
        return Err(format!("{advised} lines of advice"));
    }
    if !Path::new(html).exists() {
        return Err(format!("there is no {html}"));
    }
    for row in report["rows"].as_array_mut().into_iter().flatten() {
        for name in ["low", "median", "high"] {
            let time = &mut row["time"][name];
            *time = (time.as_f64().unwrap_or_default() / 1e3).into();
        }
    }
    std::fs::write(faster, report.to_string()).map_err(|e| format!("{faster}: {e}"))
}

/// Checks comparisons: results are not slower than themselves, they are slower than the faster
/// copy, and the faster copy is not slower than they are.
fn compares(
    suite: &mut Suite<'_>,
    program: &str,
    [json, faster]: [&String; 2],
) -> Result<(), String> {
    for (new, old, code, says) in [
        (json, json, 0, "0 faster, 0 slower"),
        (json, faster, 1, "SLOWER"),
        (faster, json, 0, "0 slower"),
    ] {
        let words = ["--from", new, "--compare", old].map(String::from);
        let outcome = suite.launch(&[program.to_string()], &[], &words, || {});
        if outcome.ended.code != Some(code) || !outcome.out.contains(says) {
            return Err(format!("--from {new} --compare {old}: {}", exit_code(outcome.ended.code)));
        }
    }
    Ok(())
}

/// Bad arguments end the program before it measures, with one message.
pub(super) fn refuses(special: &Special, suite: &mut Suite<'_>) {
    let program = suite.tools.prefix.join("bin/portolan-perf").display().to_string();
    let launcher = suite.tools.launcher.clone();
    let (mut last, mut verdict) = (None, Ok(()));
    for (arguments, says) in [
        ("pat", "unknown test 'pat'; the tests are put_lat"),
        ("--sizes 8:4", "8 is more than 4"),
        ("--path fast", "expected auto, direct"),
        ("--compare /no/such/file", "cannot read the results in /no/such/file"),
        ("--html /no/such/place put_lat", "cannot write /no/such/place: "),
    ] {
        let mut words = vec!["-n".into(), "2".into(), program.clone()];
        words.extend(arguments.split(' ').map(String::from));
        let outcome = suite.launch(&launcher, &[], &words, || {});
        let count = outcome.err.matches(says).count();
        if outcome.ended.code == Some(0) && !system::forgets_exit_codes() {
            verdict = Err(format!("{arguments}: exit code 0"));
        } else if count != 1 {
            verdict = Err(format!("{arguments}: '{says}' is said {count} times"));
        }
        last = Some(outcome);
        if verdict.is_err() {
            break;
        }
    }
    suite.record(special.label, &last.expect("something was launched"), verdict);
}

pub(super) fn killed(special: &Special, suite: &mut Suite<'_>) {
    let program = suite.tools.prefix.join("bin/portolan-perf").display().to_string();
    // `exec` keeps the process id, so `$$` is the id of the program.
    let script = format!(
        "if [ \"${{PMI_RANK:-${{OMPI_COMM_WORLD_RANK:-0}}}}\" = 1 ]; then (sleep 2; kill -9 $$) & fi; \
         exec {program} --rounds 1000 put_lat"
    );
    let words = ["-n", "2", "sh", "-c", &script].map(String::from);
    let launcher = suite.tools.launcher.clone();
    let outcome = suite.launch(&launcher, &[], &words, || {});
    let verdict = match &outcome.why {
        Some(why) => Err(why.clone()),
        None if outcome.ended.code == Some(0) && !system::forgets_exit_codes() => {
            Err("exit code 0".into())
        }
        None => Ok(()),
    };
    suite.record(special.label, &outcome, verdict);
}
