//! Suite `ranks`: the matrix of launches of the checks.

use crate::alone;
use crate::cases::{self, Check, Config};
use crate::hosts::{self, Layout};
use crate::job::{self, Ended, Job};
use crate::launch::{Alone, End};
use crate::soak;
use portolan_driver::args::Args;
use portolan_driver::report::Report;
use portolan_driver::{selection, system};
use portolan_engine::mpi::Flavour;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

pub const HELP: &str = "\
A filter selects checks by a part of the printed line, such as `random` or `path=rma`. With --exact
it is the complete name of a check. PORTOLAN_MPIEXEC is the launcher with its flags. If it is not
set, the launcher beside the MPI's compiler is used, or one in PATH. --hosts 2,1 runs another matrix
instead, with two ranks on one host and one on another; the option may be repeated.

The other suites, and all levels of tests: scripts/dev --help, tests/README.md.";

/// The driver counts as starved if a nap of some milliseconds lasts longer than this. On a busy
/// machine with fair scheduling it never does.
const STARVED: Duration = Duration::from_secs(5);
/// Time limit of the start, and of the end, of a launch.
const EDGE: Duration = Duration::from_secs(60);

struct Driver {
    args: Args,
    launcher: Vec<String>,
    dir: PathBuf,
    seed: String,
    report: Report,
}

pub fn main(mut args: Args) -> Result<ExitCode, String> {
    let selection = args.selection();
    if let Some(selection) = &selection {
        let layouts = selection::ranks(selection);
        args.layouts.extend(layouts.iter().cloned());
        if args.list {
            layouts.iter().for_each(|layout| println!("--hosts {layout}"));
            return Ok(ExitCode::SUCCESS);
        }
    }
    if args.list {
        if !args.ignored {
            let checks = cases::CHECKS.iter().map(|c| c.name);
            for name in checks.chain(alone::all().map(|a| a.name)) {
                println!("{name}: test");
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    let layout = |text: &String| {
        Layout::parse(text).ok_or(format!(
            "--hosts wants numbers of ranks and configurations as in 2,1:default, not '{text}'"
        ))
    };
    let layouts = args.layouts.iter().map(layout).collect::<Result<Vec<_>, _>>()?;
    let report = Report::new(&system::mpi_name(), "ranks");
    let nothing = args.ignored || (selection.is_some() && args.layouts.is_empty());
    if args.is_plain() {
        println!(
            "The checks on several ranks start MPI: scripts/dev suite ranks runs them, and \
             scripts/test.sh runs all tests (tests/README.md)."
        );
        return report.end(args.junit.as_deref());
    }
    let launcher = system::launcher();
    let path = std::path::Path::new(&launcher[0]);
    if !system::on_path(&launcher[0]) && !path.is_file() {
        println!("skipped, all of it: there is no launcher {} in PATH", launcher[0]);
        return report.end(args.junit.as_deref());
    }
    if nothing {
        return report.end(args.junit.as_deref());
    }
    let seed = std::env::var(job::SEED).ok().filter(|s| s.parse::<u64>().is_ok());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let mut driver = Driver {
        args,
        launcher,
        // Process ids alone are not unique if several clusters share the directory.
        dir: std::env::temp_dir().join(format!(
            "portolan-ranks.{}.{}",
            std::process::id(),
            now.as_ref().map_or(0, |t| t.as_micros())
        )),
        seed: seed.unwrap_or_else(|| {
            now.as_ref().map_or(1, |t| t.as_nanos() as u64 % 1_000_000).to_string()
        }),
        report,
    };
    println!(
        "ranks on {} by {}, seed {}",
        Flavour::built().name(),
        driver.launcher.join(" "),
        driver.seed
    );
    let begun = Instant::now();
    if layouts.is_empty() {
        for config in cases::CONFIGS {
            let (ranks, more) = match (driver.args.quick, driver.args.release) {
                (true, _) => (config.quick, &[][..]),
                (false, true) => (config.ranks, config.release),
                (false, false) => (config.ranks, &[][..]),
            };
            for &n in ranks.iter().chain(more) {
                driver.batch(config, n, None);
            }
        }
        // At the level `quick`, launches of a single check run only by name.
        if !driver.args.quick || !driver.args.filters.is_empty() {
            alone::all().for_each(|alone| driver.alone(alone, None));
        }
    }
    for layout in &layouts {
        for config in hosts::CONFIGS.iter().filter(|c| layout.wants(c.label)) {
            driver.batch(config, layout.ranks(), Some(layout));
        }
        for alone in alone::all().filter(|a| layout.takes(a)) {
            driver.alone(alone, Some(layout));
        }
    }
    let _ = std::fs::remove_dir_all(&driver.dir);
    println!("{:.0} s", begun.elapsed().as_secs_f64());
    driver.report.end(driver.args.junit.as_deref())
}

impl Driver {
    fn ok(&mut self, name: &str, label: &str, seconds: f64) {
        self.report.ok(&format!("{name} {label}"), seconds, "");
    }

    fn fail(&mut self, name: &str, label: &str, job: &Job, ended: &Ended, why: &str) {
        // The first lines usually show the cause, and the later ones its consequences.
        let mut said: Vec<&str> = ended.output.lines().collect();
        said.dedup();
        let mut lines: Vec<String> = Vec::new();
        for (i, line) in said.iter().enumerate() {
            if i < 25 || i + 25 >= said.len() {
                lines.push(line.to_string());
            } else if i == 25 {
                lines.push(format!("... {} lines ...", said.len() - 50));
            }
        }
        lines.extend(ended.steps.lines().map(String::from));
        if ended.launch.starved > STARVED {
            let seconds = ended.launch.starved.as_secs_f64();
            lines.push(format!("the test's own driver had no turn for {seconds:.0} s meanwhile"));
        }
        let env: Vec<String> = job.env.iter().map(|(k, v)| format!("{k}={v}")).collect();
        lines.push(format!("env: {} ({} ranks)", env.join(" "), job.ranks));
        self.report.fail(&format!("{name} {label}"), ended.launch.seconds, why, lines);
    }

    fn base_env(&self) -> Vec<(String, String)> {
        let mut env = vec![(job::SEED.to_string(), self.seed.clone())];
        if self.args.quick {
            env.push(("PORTOLAN_TEST_QUICK".into(), "1".into()));
        } else if self.args.release {
            env.push(("PORTOLAN_TEST_RELEASE".into(), "1".into()));
        }
        env.push((soak::SECONDS.into(), soak::seconds().to_string()));
        env
    }

    /// Runs all checks of a configuration, in one launch if none fails. After a failure, the
    /// remaining checks run in another launch.
    fn batch(&mut self, config: &Config, n: usize, on: Option<&Layout>) {
        let label = label(n, on, config.label);
        let mut list: Vec<&Check> = cases::CHECKS
            .iter()
            .filter(|c| {
                (c.on)(config, n) && self.args.wants(c.name, &format!("{} {label}", c.name))
            })
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
                    // The launch ended before the first check, between two, or after the last one.
                    let stage = if ended.done.is_empty() { "start" } else { "stop" };
                    self.fail(stage, &label, &job, &ended, &why);
                    let done: Vec<&str> =
                        ended.done.iter().map(|(name, _)| name.as_str()).collect();
                    for check in list.iter().filter(|check| !done.contains(&check.name)) {
                        let name = format!("{} {label}", check.name);
                        self.report.fail(
                            &name,
                            0.0,
                            &format!("did not run, see {stage}"),
                            Vec::new(),
                        );
                    }
                    return;
                }
            }
        }
    }

    fn alone(&mut self, alone: &Alone, on: Option<&Layout>) {
        let label = label(alone.ranks, on, alone.label);
        let wanted = self.args.wants(alone.name, &format!("{} {label}", alone.name));
        if !wanted {
            return;
        }
        if let Some(why) = (alone.skip)() {
            self.report.skip(&format!("{} {label}", alone.name), &why);
            return;
        }
        let mut env = self.base_env();
        env.extend(alone.env.iter().map(|(k, v)| (k.to_string(), v.to_string())));
        let job = Job {
            launcher: match (on, alone.other_mpi, system::other_launcher()) {
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
            End::Fails(_) if ended.launch.timed_out => Err("hung instead of failing".into()),
            End::Fails(_) if ended.launch.code == Some(0) => Err("succeeded, but must fail".into()),
            End::Fails(texts) => says(texts),
            End::Hangs(_) if !ended.launch.timed_out => Err("ended, but must wait".into()),
            End::Hangs(texts) => says(texts),
        };
        match verdict {
            Ok(()) => self.ok(alone.name, &label, ended.launch.seconds),
            Err(why) => self.fail(alone.name, &label, &job, &ended, &why),
        }
    }
}

fn label(n: usize, on: Option<&Layout>, config: &str) -> String {
    match on {
        Some(layout) => format!("[n={n} hosts={} {config}]", layout.text()),
        None => format!("[n={n} {config}]"),
    }
}

fn reason(ended: &Ended) -> String {
    if ended.launch.timed_out {
        "timed out".into()
    } else if !ended.left.is_empty() {
        format!("left behind {}", ended.left.join(" "))
    } else {
        match ended.launch.code {
            Some(code) => format!("exit code {code}"),
            None => "ended by a signal, or never started".into(),
        }
    }
}
