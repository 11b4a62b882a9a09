//! The parent: arguments, the matrix of launches, what is printed.
//!
//! ```text
//! cargo test --release --test ranks -- [FILTER ...] [--exact] [--quick | --full] [--list]
//! ```
//! A filter selects by substring of what is printed, such as `random` or
//! `path=rma`; with `--exact` it is the whole name of a check. `--quick`, or
//! `PORTOLAN_TEST_QUICK=1`, runs a smaller matrix, `--full`, or `PORTOLAN_TEST_FULL=1`,
//! all of it. `PORTOLAN_MPIEXEC` is the launcher with its flags; where it is not set, the one
//! beside the MPI's compiler is taken, or one in `PATH`. `--hosts 2,1`, once or
//! more often, runs another matrix instead, with so many ranks on each of several hosts.

use crate::alone::{ALONE, Alone, End};
use crate::cases::{self, Check, Config};
use crate::hosts::{self, Layout};
use crate::job::{self, Ended, Job};
use crate::soak;
use portolan::mpi::Flavour;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// A nap of some milliseconds never lasts so long on a machine that is fair, if busy.
const STARVED: Duration = Duration::from_secs(5);
/// Start, and end, of a launch may take this long.
const EDGE: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
struct Args {
    filters: Vec<String>,
    skips: Vec<String>,
    exact: bool,
    quick: bool,
    full: bool,
    list: bool,
    ignored: bool,
    layouts: Vec<Layout>,
}

fn arguments() -> Args {
    let is_set = |name| std::env::var_os(name).is_some();
    let mut args = Args {
        quick: is_set("PORTOLAN_TEST_QUICK"),
        full: is_set("PORTOLAN_TEST_FULL"),
        ..Args::default()
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--exact" => args.exact = true,
            "--quick" => args.quick = true,
            "--full" => args.full = true,
            "--list" => args.list = true,
            "--ignored" => args.ignored = true,
            "--hosts" => {
                let text = words.next().unwrap_or_default();
                let layout = Layout::parse(&text).unwrap_or_else(|| {
                    eprintln!("--hosts wants numbers of ranks and configurations as in 2,1:default, not '{text}'");
                    std::process::exit(2)
                });
                args.layouts.push(layout);
            }
            "--skip" => args.skips.extend(words.next()),
            // What the standard harness takes, and has no meaning here.
            "--format" | "--color" | "--test-threads" | "--logfile" | "-Z" => drop(words.next()),
            _ if word.starts_with('-') => {}
            _ => args.filters.push(word),
        }
    }
    args
}

impl Args {
    fn wants(&self, name: &str, label: &str) -> bool {
        let line = format!("{name} {label}");
        let hit = |f: &String| if self.exact { *f == name } else { line.contains(f.as_str()) };
        (self.filters.is_empty() || self.filters.iter().any(hit)) && !self.skips.iter().any(hit)
    }
}

/// The launcher beside the compiler that this was built by, which has the same suffix.
fn own_launcher() -> Option<String> {
    let compiler = std::path::Path::new(env!("PORTOLAN_BUILT_BY"));
    let suffix = compiler.file_name()?.to_str()?.strip_prefix("mpicc").unwrap_or_default();
    let beside = compiler.with_file_name(format!("mpiexec{suffix}"));
    beside.is_file().then(|| beside.to_string_lossy().into_owned())
}

/// A launcher that exists on this machine, with its flags.
fn launcher_of(flavour: Flavour) -> Vec<String> {
    let candidates: &[&[&str]] = match flavour {
        Flavour::OpenMpi => &[
            &["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"],
            &["mpirun", "--allow-run-as-root", "--oversubscribe"],
        ],
        _ => &[&["mpiexec.mpich"], &["mpiexec"]],
    };
    let found = candidates.iter().find(|c| on_path(c[0])).unwrap_or(&candidates[1]);
    found.iter().map(|word| word.to_string()).collect()
}

/// Whether a program is found.
pub fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// The launcher of the MPI that this program was not built for, if there is one.
pub fn other_launcher() -> Option<Vec<String>> {
    let (program, other) = match Flavour::built() {
        Flavour::Mpich => ("mpirun.openmpi", Flavour::OpenMpi),
        Flavour::OpenMpi => ("mpiexec.mpich", Flavour::Mpich),
        Flavour::Other => return None,
    };
    on_path(program).then(|| launcher_of(other))
}

fn launcher() -> Vec<String> {
    match std::env::var("PORTOLAN_MPIEXEC") {
        Ok(words) if !words.trim().is_empty() => {
            words.split_whitespace().map(String::from).collect()
        }
        _ => {
            let mut words = launcher_of(Flavour::built());
            if let Some(own) = own_launcher() {
                words[0] = own;
            }
            words
        }
    }
}

struct Driver {
    args: Args,
    launcher: Vec<String>,
    dir: PathBuf,
    seed: String,
    passed: usize,
    failed: usize,
}

/// Runs everything that was asked for.
pub fn main() -> ExitCode {
    let args = arguments();
    if args.list {
        if !args.ignored {
            let checks = cases::CHECKS.iter().map(|c| c.name);
            for name in checks.chain(ALONE.iter().map(|a| a.name)) {
                println!("{name}: test");
            }
        }
        return ExitCode::SUCCESS;
    }
    let launcher = launcher();
    let path = std::path::Path::new(&launcher[0]);
    if !on_path(&launcher[0]) && !path.is_file() {
        println!("skipped, all of it: there is no launcher {} in PATH", launcher[0]);
        println!("0 passed, 0 failed");
        return ExitCode::SUCCESS;
    }
    let seed = std::env::var(job::SEED).ok().filter(|s| s.parse::<u64>().is_ok());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let mut driver = Driver {
        args,
        launcher,
        // Process ids alone are not unique where several clusters share the directory.
        dir: std::env::temp_dir().join(format!(
            "portolan-ranks.{}.{}",
            std::process::id(),
            now.as_ref().map_or(0, |t| t.as_micros())
        )),
        seed: seed.unwrap_or_else(|| {
            now.as_ref().map_or(1, |t| t.as_nanos() as u64 % 1_000_000).to_string()
        }),
        passed: 0,
        failed: 0,
    };
    if driver.args.ignored {
        println!("0 passed, 0 failed");
        return ExitCode::SUCCESS;
    }
    println!(
        "ranks on {} by {}, seed {}",
        Flavour::built().name(),
        driver.launcher.join(" "),
        driver.seed
    );
    let begun = Instant::now();
    if driver.args.layouts.is_empty() {
        for config in cases::CONFIGS {
            let (ranks, more) = match (driver.args.quick, driver.args.full) {
                (true, _) => (config.quick, &[][..]),
                (false, true) => (config.ranks, config.full),
                (false, false) => (config.ranks, &[][..]),
            };
            for &n in ranks.iter().chain(more) {
                driver.batch(config, n, None);
            }
        }
        for alone in ALONE {
            driver.alone(alone, None);
        }
    }
    for layout in driver.args.layouts.clone() {
        for config in hosts::CONFIGS.iter().filter(|c| layout.wants(c.label)) {
            driver.batch(config, layout.ranks(), Some(&layout));
        }
        for alone in ALONE.iter().filter(|a| layout.takes(a)) {
            driver.alone(alone, Some(&layout));
        }
    }
    let _ = std::fs::remove_dir_all(&driver.dir);
    println!("{:.0} s", begun.elapsed().as_secs_f64());
    println!("{} passed, {} failed", driver.passed, driver.failed);
    if driver.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Driver {
    fn ok(&mut self, name: &str, label: &str, seconds: f64) {
        self.passed += 1;
        println!("ok   {name} {label} {seconds:.2}s");
    }

    fn fail(&mut self, name: &str, label: &str, job: &Job, ended: &Ended, why: &str) {
        self.failed += 1;
        println!("FAIL {name} {label} {:.2}s: {why}", ended.seconds);
        // What begins the output is most often the cause, and the rest its echo.
        let mut lines: Vec<&str> = ended.output.lines().collect();
        lines.dedup();
        for (i, line) in lines.iter().enumerate() {
            if i < 25 || i + 25 >= lines.len() {
                println!("     | {line}");
            } else if i == 25 {
                println!("     | ... {} lines ...", lines.len() - 50);
            }
        }
        ended.steps.lines().for_each(|line| println!("     | {line}"));
        if ended.starved > STARVED {
            let seconds = ended.starved.as_secs_f64();
            println!("     | the test's own driver had no turn for {seconds:.0} s meanwhile");
        }
        let env: Vec<String> = job.env.iter().map(|(k, v)| format!("{k}={v}")).collect();
        println!("     env: {} ({} ranks)", env.join(" "), job.ranks);
    }

    fn base_env(&self) -> Vec<(String, String)> {
        let mut env = vec![(job::SEED.to_string(), self.seed.clone())];
        if self.args.quick {
            env.push(("PORTOLAN_TEST_QUICK".into(), "1".into()));
        } else if self.args.full {
            env.push(("PORTOLAN_TEST_FULL".into(), "1".into()));
        }
        env.push((soak::SECONDS.into(), soak::seconds().to_string()));
        env
    }

    /// All checks of a configuration, in one launch where none fails. After a
    /// failure the rest runs in another.
    fn batch(&mut self, config: &Config, n: usize, on: Option<&Layout>) {
        let label = label(n, on, config.label);
        let mut list: Vec<&Check> = cases::CHECKS
            .iter()
            .filter(|c| (c.on)(config, n) && self.args.wants(c.name, &label))
            .collect();
        while !list.is_empty() {
            let names: Vec<&str> = list.iter().map(|c| c.name).collect();
            let mut env = self.base_env();
            env.extend(config.env.iter().map(|(k, v)| (k.to_string(), v.to_string())));
            let job = Job {
                launcher: on.map_or_else(|| self.launcher.clone(), Layout::launcher),
                ranks: n,
                env,
                spec: names.join(","),
                wrap: None,
                explain: true,
            };
            let deadline = |name: Option<&str>| match list.iter().find(|c| Some(c.name) == name) {
                Some(check) => Duration::from_secs(check.seconds),
                None => EDGE,
            };
            let ended = job::run(&job, &self.dir, deadline);
            for (name, seconds) in &ended.done {
                self.ok(name, &label, *seconds);
            }
            if ended.well() && ended.done.len() == list.len() {
                return;
            }
            let why = reason(&ended);
            match &ended.current {
                Some(name) => {
                    self.fail(name, &label, &job, &ended, &why);
                    let at = list.iter().position(|c| c.name == name).unwrap_or(list.len() - 1);
                    list.drain(..=at);
                }
                None => {
                    // Before the first check, between two or after the last.
                    let stage = if ended.done.is_empty() { "start" } else { "stop" };
                    self.fail(stage, &label, &job, &ended, &why);
                    let rest = list.len() - ended.done.len().min(list.len());
                    if rest > 0 {
                        println!("     {rest} checks did not run");
                        self.failed += rest;
                    }
                    return;
                }
            }
        }
    }

    /// A launch of a single check, which may have to fail.
    fn alone(&mut self, alone: &Alone, on: Option<&Layout>) {
        let label = label(alone.ranks, on, alone.label);
        let wanted = self.args.wants(alone.name, &label);
        if !wanted || (self.args.quick && !alone.quick) {
            return;
        }
        if let Some(why) = (alone.skip)() {
            println!("skip {} {label}: {why}", alone.name);
            return;
        }
        let mut env = self.base_env();
        env.extend(alone.env.iter().map(|(k, v)| (k.to_string(), v.to_string())));
        let job = Job {
            launcher: match (on, alone.other_mpi, other_launcher()) {
                (Some(layout), ..) => layout.launcher(),
                (None, true, Some(other)) => other,
                _ => self.launcher.clone(),
            },
            ranks: alone.ranks,
            env,
            spec: format!("alone:{}", alone.name),
            wrap: alone.wrap.map(String::from),
            explain: !matches!(alone.end, End::Hangs(_)),
        };
        let soaks = if alone.name.starts_with("soak") { soak::seconds() } else { 0 };
        let limit = Duration::from_secs(alone.seconds + soaks);
        let ended = job::run(&job, &self.dir, |_| limit);
        let says = |texts: &[&str]| -> Result<(), String> {
            match texts.iter().find(|t| !ended.output.contains(**t)) {
                Some(missing) => Err(format!("the output does not say '{missing}'")),
                None => Ok(()),
            }
        };
        let verdict = match alone.end {
            End::Well | End::Says(_) if !ended.well() => Err(reason(&ended)),
            End::Well => Ok(()),
            End::Says(texts) => says(texts),
            End::Fails(_) if ended.timed_out => Err("hung instead of failing".into()),
            End::Fails(_) if ended.code == Some(0) => Err("succeeded, but must fail".into()),
            End::Fails(texts) => says(texts),
            End::Hangs(_) if !ended.timed_out => Err("ended, but must wait".into()),
            End::Hangs(texts) => says(texts),
        };
        match verdict {
            Ok(()) => self.ok(alone.name, &label, ended.seconds),
            Err(why) => self.fail(alone.name, &label, &job, &ended, &why),
        }
    }
}

/// What is printed about a launch beside the name of the check.
fn label(n: usize, on: Option<&Layout>, config: &str) -> String {
    match on {
        Some(layout) => format!("[n={n} hosts={} {config}]", layout.text()),
        None => format!("[n={n} {config}]"),
    }
}

fn reason(ended: &Ended) -> String {
    if ended.timed_out {
        "timed out".into()
    } else if !ended.left.is_empty() {
        format!("left behind {}", ended.left.join(" "))
    } else {
        match ended.code {
            Some(code) => format!("exit code {code}"),
            None => "ended by a signal, or never started".into(),
        }
    }
}
