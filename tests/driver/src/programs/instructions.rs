//! Instruction counts: compares the cost of a few calls in the library's own code with the budgets
//! in `tests/data/instructions.txt`.
//!
//! callgrind counts the instructions of `measured()` in `tests/c/instructions.c` on rank 0; rank 1
//! runs without callgrind. Only instructions in the library's own object count; MPI and the C
//! library do not. Counts are the same in every run, however loaded the machine is, unless a call
//! meets its peer in another state, such as asleep. The case therefore uses the minimum of a few
//! runs. Counts depend on the compiler, so the case is skipped if rustc is not the one of the
//! budgets.

use super::special::Special;
use super::{Suite, variables};
use crate::system::{on_path, root};
use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

pub const LABEL: &str = "instructions [n=2]";

const PERCENT: f64 = 3.0;
/// Maximum number of runs of a call that exceeds its budget.
const TRIES: usize = 3;
/// Number of calls in a run (`CALLS` in the program).
const CALLS: f64 = 20.0;

const MEASURED: [(&str, &str); 11] = [
    ("put", ""),
    ("put_nb", ""),
    ("get", ""),
    ("accumulate", ""),
    ("fetch_and_add", ""),
    ("lock", ""),
    ("message", ""),
    ("call", ""),
    ("put", "node-size=1 path=message"),
    ("accumulate", "node-size=1 path=message"),
    ("accumulate_rows", "node-size=1 path=message"),
];

fn budget_file() -> std::path::PathBuf {
    root().join("tests/data/instructions.txt")
}

fn compiler() -> String {
    let output = Command::new("rustc").arg("-V").output();
    let text = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
    let version = text.split_whitespace().nth(1).unwrap_or("unknown");
    format!("rustc {version} {}", std::env::consts::ARCH)
}

fn budgets() -> (HashMap<String, f64>, String) {
    let text = std::fs::read_to_string(budget_file()).unwrap_or_default();
    let compiler = text.lines().find_map(|line| line.strip_prefix("# rustc "));
    let rows = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let (key, count) = line.rsplit_once(' ')?;
        Some((key.trim_end().to_string(), count.parse().ok()?))
    });
    (rows.collect(), format!("rustc {}", compiler.unwrap_or_default()))
}

fn key(call: &str, settings: &str) -> String {
    format!("{call} {settings}").trim().to_string()
}

pub fn counts(special: &Special, suite: &mut Suite<'_>) {
    if !on_path("valgrind") {
        return suite.report.skip(special.label, "valgrind is not installed");
    }
    let (mut known, of) = budgets();
    let blessed = std::env::var_os("PORTOLAN_BLESS").is_some();
    if !blessed && of != compiler() {
        let why = format!("the budgets are those of {of}, and this is {}", compiler());
        return suite.report.skip(special.label, &why);
    }
    let (begun, mut note, mut above) = (std::time::Instant::now(), Vec::new(), Vec::new());
    for (call, settings) in MEASURED {
        let key = key(call, settings);
        let budget = known.get(&key).copied().unwrap_or(f64::NAN);
        let most = budget * (1.0 + PERCENT / 100.0);
        let mut least = f64::INFINITY;
        for _ in 0..TRIES {
            match count(suite, call, settings) {
                Ok(count) => least = least.min(count),
                Err((why, output)) => {
                    let seconds = begun.elapsed().as_secs_f64();
                    return suite.report.fail(
                        special.label,
                        seconds,
                        &format!("{key}: {why}"),
                        output,
                    );
                }
            }
            if blessed || least <= most {
                break;
            }
        }
        if blessed {
            known.insert(key, least);
            continue;
        }
        if least.round() != budget {
            note.push(format!("{key}: {least:.0} where {budget:.0} were"));
        }
        if least > most || budget.is_nan() {
            above.push(key);
        }
    }
    if blessed {
        std::fs::write(budget_file(), file_of(&known)).expect("a file of budgets");
    }
    let seconds = begun.elapsed().as_secs_f64();
    if above.is_empty() {
        suite.report.ok(special.label, seconds, &note.join("; "));
    } else {
        let why = format!("above their budgets: {}", above.join(", "));
        suite.report.fail(special.label, seconds, &why, note);
    }
}

fn file_of(known: &HashMap<String, f64>) -> String {
    let mut text = format!(
        "# Instructions of one call in the library's own code, without MPI and the C library, at the\n\
         # origin. tests/driver/src/programs/instructions.rs counts them again and allows {PERCENT} % more;\n\
         # PORTOLAN_BLESS=1 writes this file.\n# {}\n",
        compiler()
    );
    for (call, settings) in MEASURED {
        let key = key(call, settings);
        let count = known.get(&key).copied().unwrap_or(f64::NAN);
        let _ = writeln!(text, "{key:<44} {count:>5.0}");
    }
    text
}

/// Returns the library's instructions per call, or the reason and the printed output if the launch
/// fails or callgrind counts nothing.
fn count(suite: &mut Suite<'_>, call: &str, settings: &str) -> Result<f64, (String, Vec<String>)> {
    let program = suite.path("c/instructions");
    let file = suite.builder.dir.join("callgrind.out");
    let _ = std::fs::remove_file(&file);
    let one = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
    let out = format!("--callgrind-out-file={}", file.display());
    let words = [
        one(&["-n", "1", "valgrind", "-q", "--tool=callgrind", "--collect-atstart=no"]),
        one(&["--toggle-collect=measured", &out, &program, call, ":", "-n", "1", &program, call]),
    ];
    let mut variables = variables(settings).unwrap_or_default();
    // UCX and Open MPI patch the memory allocation calls, which valgrind has replaced.
    for (name, value) in [
        ("UCX_MEM_EVENTS", "no"),
        ("UCX_MEM_MMAP_HOOK_MODE", "none"),
        ("OMPI_MCA_memory", "^patcher"),
        ("PORTOLAN_TEST_SECONDS", "900"),
    ] {
        variables.push((name.into(), value.into()));
    }
    let launcher = suite.tools.launcher.clone();
    let outcome = suite.launch(&launcher, &variables, &words.concat(), || {});
    let said = || super::super::report::tail(12, &[&outcome.err, &outcome.out]);
    if let Some(why) = &outcome.why {
        return Err((why.clone(), said()));
    }
    if outcome.ended.code != Some(0) {
        return Err((super::exit_code(outcome.ended.code), said()));
    }
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let own = of_object(&text, "libportolan");
    if own == 0 {
        Err(("callgrind counted nothing".into(), said()))
    } else {
        Ok(own as f64 / CALLS)
    }
}

/// Returns the cost of the object whose file name begins with `name`, from a callgrind file.
fn of_object(text: &str, name: &str) -> u64 {
    let mut objects: HashMap<&str, bool> = HashMap::new();
    let (mut own, mut is_call, mut sum) = (false, false, 0);
    for line in text.lines() {
        if let Some((called, object)) = line
            .strip_prefix("ob=")
            .map(|object| (false, object))
            .or_else(|| line.strip_prefix("cob=").map(|object| (true, object)))
        {
            // An object has a number, and also its name the first time it appears.
            let (number, path) = object.split_once(' ').unwrap_or((object, ""));
            let file = Path::new(path).file_name().and_then(|file| file.to_str()).unwrap_or("");
            let known = objects.entry(number).or_insert_with(|| file.starts_with(name));
            if !called {
                own = *known;
            }
        } else if line.starts_with("calls=") {
            is_call = true;
        } else if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) {
            // The line after a `calls=` line contains the cost of the called function.
            if own && !is_call {
                sum += line.split(' ').nth(1).and_then(|cost| cost.parse().ok()).unwrap_or(0);
            }
            is_call = false;
        }
    }
    sum
}
