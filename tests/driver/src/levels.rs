//! Runs the stages of a level and counts their tests.
//!
//! All commands run from this thread, because a command ends with the thread that has started it
//! (`PR_SET_PDEATHSIG`). A signal ends all of them.

use crate::commands::Selected;
use crate::launch::{self, Running};
use crate::mpi::{self, Mpi};
use crate::results::{self, Results};
use crate::stages::{Counts, INSTALL, Level, Part, Stage, stages};
use crate::system;
use std::collections::VecDeque;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

pub const HELP: &str = "\
Without --full or --release, the command tests whether Portolan works on this machine. It builds and
installs Portolan with each MPI, and runs each C, Fortran and Global Arrays program once, the checks
in Rust in four configurations, a selection of both on several hosts, and the first example. This
takes about 12 minutes with both MPIs on two quiet cores if the library is built for one of them.

tests/README.md describes the levels. The output of each stage is kept in target/MPI/logs. The last
line is `N passed, N failed`; the exit code is 0 only if no test failed.";

const NAP: Duration = Duration::from_millis(50);
/// Time between two lines about running stages, if the output does not go to a terminal.
const REMINDER: Duration = Duration::from_secs(60);
/// The end of a log that is shown if it contains no failed test.
const TAIL: usize = 40;

#[derive(Debug, clap::Args)]
pub struct Options {
    /// One MPI, or all
    #[arg(long, value_name = "M", default_value = "all")]
    mpi: String,
    /// Also what a change has to pass: format, lints, unit tests, the simulation, documentation,
    /// models of the lock-free parts, Miri if it is installed, faults, more combinations with the
    /// first MPI, the Python package, and the README's first command on a bare Debian
    #[arg(long)]
    full: bool,
    /// Also all combinations, lints, documentation and examples with each MPI, the tests on several
    /// ranks with the checks of a debug build, both README commands on both Debian releases and for
    /// a user without root, matrix products with BLAS, the packages, and the book
    #[arg(long)]
    release: bool,
    /// Only a part of --full
    #[arg(long, value_name = "PART", conflicts_with = "release")]
    only: Option<Part>,
    /// Only these stages
    #[arg(long = "stage", value_name = "NAME,...", value_delimiter = ',')]
    stages: Vec<String>,
    /// Print the stages that would run
    #[arg(long)]
    list: bool,
    /// Only tests whose name contains FILTER, and no other checks
    filter: Option<String>,
}

impl Options {
    fn level(&self) -> Level {
        match (self.release, self.full || self.only.is_some()) {
            (true, _) => Level::Release,
            (false, true) => Level::Full,
            (false, false) => Level::Quick,
        }
    }

    /// Returns the stages in order, each with the number of its MPI.
    fn plan(&self, mpis: usize) -> Vec<(usize, &'static Stage)> {
        let filtered = self.filter.is_some();
        let runs = |k: usize, stage: &Stage| {
            stage.runs(self.level(), self.only, filtered, k == 0)
                && (self.stages.is_empty() || self.stages.iter().any(|name| name == stage.name))
        };
        let of = |last: bool, k: usize| {
            stages()
                .iter()
                .filter(move |stage| stage.once == last && runs(k, stage))
                .map(move |s| (k, s))
        };
        (0..mpis).flat_map(|k| of(false, k)).chain(of(true, 0)).collect()
    }
}

pub fn main(options: &Options) -> Result<ExitCode, String> {
    for name in &options.stages {
        if stages().iter().all(|stage| stage.name != name) {
            let known: Vec<&str> = stages().iter().map(|stage| stage.name).collect();
            return Err(format!("there is no stage '{name}', there are: {}", known.join(" ")));
        }
    }
    let names = mpi::choose(&options.mpi)?;
    let plan = options.plan(names.len());
    if options.list {
        for (k, stage) in plan {
            println!("{:8} {:12} {}", names[k], stage.name, stage.commands.join("; "));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let level = options.level();
    let mut setup = Command::new(system::root().join("scripts/setup.sh"));
    setup.args(["--mpi", &options.mpi]).stdin(Stdio::null());
    setup.args((level >= Level::Full).then_some("--cmake"));
    setup.args((level == Level::Release).then_some("--tests"));
    if !setup.status().is_ok_and(|status| status.success()) {
        return Err("scripts/setup.sh failed".into());
    }
    let mpis = names.iter().map(|name| Mpi::used(name)).collect::<Result<Vec<_>, _>>()?;
    let (mpi, filter) = (options.mpi.clone(), options.filter.clone());
    let selected = Selected { mpis: mpi, level, only: options.only, filter };
    Levels { selected, mpis, done: Vec::new(), shown: false, reminded: Instant::now() }.run(&plan)
}

/// Returns the stages that begin together with a stage.
fn begin_with(
    plan: &[(usize, &'static Stage)],
    k: usize,
    stage: &Stage,
) -> Vec<(usize, &'static Stage)> {
    let last = plan.iter().map(|(k, _)| *k).max().unwrap_or_default();
    let name = Some(stage.name);
    let begins = |(other, with): &&(usize, &'static Stage)| {
        let at = if with.once { last } else { *other };
        with.with == name && at == k || with.ahead == name && *other == k + 1
    };
    plan.iter().filter(begins).copied().collect()
}

/// A stage whose commands run.
struct Active {
    mpi: usize,
    stage: &'static Stage,
    log: PathBuf,
    begun: Instant,
    /// The seconds that it took, once it has ended.
    seconds: Option<u64>,
    running: Running,
    code: Option<i32>,
    more: VecDeque<Command>,
}

impl Active {
    /// Starts the next command if the one before has succeeded. Returns whether the stage has
    /// ended.
    fn advance(&mut self) -> Result<bool, String> {
        if self.seconds.is_some() {
            return Ok(true);
        }
        if !self.running.has_ended() {
            return Ok(false);
        }
        self.code = self.running.code();
        match self.more.pop_front().filter(|_| self.code == Some(0)) {
            Some(next) => self.running = Running::start(next, &self.log)?,
            None => self.seconds = Some(self.begun.elapsed().as_secs()),
        }
        Ok(self.seconds.is_some())
    }

    /// Returns the stage's name, its seconds and the number of cases that have ended.
    fn state(&self, tag: &str) -> String {
        let cases = results::read(&launch::text_of(&self.log)).cases;
        let cases = if cases > 0 { format!(", {cases} cases") } else { String::new() };
        format!("{tag} {} {} s{cases}", self.stage.name, self.begun.elapsed().as_secs())
    }
}

/// A stage that has ended.
struct Done {
    tag: String,
    name: &'static str,
    seconds: u64,
    passed: usize,
    failed: usize,
}

struct Levels {
    selected: Selected,
    mpis: Vec<Mpi>,
    done: Vec<Done>,
    /// Whether the terminal shows a line about the stages that run.
    shown: bool,
    reminded: Instant,
}

impl Levels {
    fn run(mut self, plan: &[(usize, &'static Stage)]) -> Result<ExitCode, String> {
        let begun = Instant::now();
        // The stages that have begun. Their ends are awaited in the order of the plan.
        let mut active: Vec<Active> = Vec::new();
        let mut without = Vec::new();
        for &(k, stage) in plan {
            if without.contains(&k) && !stage.once {
                continue;
            }
            let is_this = |a: &Active| a.mpi == k && a.stage.name == stage.name;
            if !active.iter().any(is_this) {
                let Some(new) = self.begin(k, stage)? else { continue };
                active.push(new);
                for (other, with) in begin_with(plan, k, stage) {
                    if !active.iter().any(|a| a.mpi == other && a.stage.name == with.name) {
                        active.extend(self.begin(other, with)?);
                    }
                }
            }
            let at = self.wait(&mut active, is_this)?;
            let ended = active.remove(at);
            if !self.finish(&ended) && stage.name == INSTALL {
                without.push(k);
                // Stages that have begun with this stage end with it.
                active.retain_mut(|other| {
                    let keep = other.mpi != k || other.stage.once;
                    if !keep {
                        other.running.end();
                    }
                    keep
                });
            }
        }
        self.print_times(begun.elapsed());
        let passed: usize = self.done.iter().map(|done| done.passed).sum();
        let failed: usize = self.done.iter().map(|done| done.failed).sum();
        println!("{passed} passed, {failed} failed");
        Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Starts a stage. Returns `None` and prints why if it cannot run here.
    fn begin(&mut self, k: usize, stage: &'static Stage) -> Result<Option<Active>, String> {
        let mpi = &self.mpis[k];
        let log = mpi.target.join("logs").join(format!("{}.log", stage.name));
        let _ = std::fs::remove_file(&log);
        let mut more = VecDeque::new();
        for line in &stage.commands {
            match self.selected.words(mpi, k == 0, line) {
                Ok(words) => {
                    let mut command = mpi.command(&words);
                    command.envs(self.selected.variables(k == 0));
                    command.envs(stage.variables.iter().copied());
                    more.push_back(command);
                }
                Err(why) => {
                    let tag = mpi.tag.clone();
                    self.say(&format!("{tag:8} {:12}         skipped: {why}", stage.name));
                    return Ok(None);
                }
            }
        }
        let first = more.pop_front().ok_or("a stage has a command")?;
        let running = Running::start(first, &log)?;
        let begun = Instant::now();
        let active = Active { mpi: k, stage, log, begun, seconds: None, running, code: None, more };
        Ok(Some(active))
    }

    /// Waits until a stage has ended. Returns its place in the list. The other stages go on.
    fn wait(
        &mut self,
        active: &mut [Active],
        is_awaited: impl Fn(&Active) -> bool,
    ) -> Result<usize, String> {
        self.reminded = Instant::now();
        loop {
            for stage in &mut *active {
                stage.advance()?;
            }
            let at = active.iter().position(&is_awaited).ok_or("the stage has begun")?;
            if active[at].seconds.is_some() {
                return Ok(at);
            }
            if launch::signalled() {
                active.iter().for_each(|stage| stage.running.terminate());
                active.iter_mut().for_each(|stage| stage.running.end());
                self.clear();
                launch::heed_signals();
            }
            self.remind(active);
            std::thread::sleep(NAP);
        }
    }

    /// Shows the stages that run: on a terminal in a line that is updated, otherwise in a line a
    /// minute.
    fn remind(&mut self, active: &[Active]) {
        let terminal = std::io::stdout().is_terminal();
        let pause = if terminal { Duration::from_secs(1) } else { REMINDER };
        if self.reminded.elapsed() < pause {
            return;
        }
        self.reminded = Instant::now();
        let running = active.iter().filter(|stage| stage.seconds.is_none());
        let states: Vec<String> =
            running.map(|stage| stage.state(&self.mpis[stage.mpi].tag)).collect();
        let line = format!("... {}", states.join("; "));
        if terminal {
            print!("\r\x1b[K{line}");
            let _ = std::io::stdout().flush();
            self.shown = true;
        } else {
            println!("{line}");
        }
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            print!("\r\x1b[K");
        }
    }

    fn say(&mut self, line: &str) {
        self.clear();
        println!("{line}");
    }

    /// Prints the result of a stage. Returns whether it passed.
    fn finish(&mut self, ended: &Active) -> bool {
        let (stage, tag) = (ended.stage, self.mpis[ended.mpi].tag.clone());
        let text = launch::text_of(&ended.log);
        let results = results::read(&text);
        let verdict =
            Verdict::of(stage.counts, ended.code, &results, self.selected.filter.is_some());
        let seconds = ended.seconds.unwrap_or_default();
        let (passed, failed) = verdict.counts();
        let says = match verdict {
            Verdict::Ok => "ok".into(),
            Verdict::Failed => match ended.code {
                Some(code) => format!("FAILED with exit code {code}"),
                None => "FAILED, ended by a signal".into(),
            },
            Verdict::Counted(passed, failed) => format!("{passed} passed, {failed} failed"),
            Verdict::Skipped => {
                let reason = text.lines().find_map(|line| line.split_once(": cannot run here: "));
                format!("skipped: {}", reason.map_or("a command failed", |(_, why)| why))
            }
        };
        self.say(&format!("{tag:8} {:12} {seconds:4} s  {says}", stage.name));
        match &results.skipped[..] {
            _ if stage.counts != Counts::Tests => {}
            few if few.len() <= 3 => few.iter().for_each(|line| println!("    skipped: {line}")),
            many => println!("    {} cases skipped", many.len()),
        }
        if failed > 0 {
            show(&results.failures, &text, &ended.log);
        }
        self.done.push(Done { tag, name: stage.name, seconds, passed, failed });
        failed == 0
    }

    fn print_times(&self, whole: Duration) {
        println!("\ntime by stage, in seconds");
        let mut tags: Vec<&str> = self.done.iter().map(|done| &*done.tag).collect();
        tags.dedup();
        tags.sort_unstable();
        tags.dedup();
        let heads: Vec<String> = tags.iter().map(|tag| format!("{tag:>9}")).collect();
        println!("{:12} {}", "", heads.join(" "));
        let mut names: Vec<&str> = Vec::new();
        for done in &self.done {
            if !names.contains(&done.name) {
                names.push(done.name);
            }
        }
        for name in names {
            let cells = tags.iter().map(|tag| {
                let done = self.done.iter().find(|done| done.name == name && done.tag == **tag);
                format!("{:>9}", done.map_or(String::new(), |done| done.seconds.to_string()))
            });
            println!("{name:12} {}", cells.collect::<Vec<_>>().join(" "));
        }
        println!("{:12} {:>9}\n", "together", whole.as_secs());
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Ok,
    Failed,
    Skipped,
    /// Passed, failed.
    Counted(usize, usize),
}

impl Verdict {
    fn of(counts: Counts, code: Option<i32>, results: &Results, filtered: bool) -> Verdict {
        let well = code == Some(0);
        match counts {
            Counts::Tests => {
                // A program that did not build, or died, printed no totals.
                let none = results.programs == 0 && !filtered;
                let failed = results.failed.max(usize::from(!well || none));
                Verdict::Counted(results.passed, failed)
            }
            Counts::Bare if code == Some(77) => Verdict::Skipped,
            _ if well => Verdict::Ok,
            _ => Verdict::Failed,
        }
    }

    fn counts(self) -> (usize, usize) {
        match self {
            Verdict::Ok => (1, 0),
            Verdict::Failed => (0, 1),
            Verdict::Skipped => (0, 0),
            Verdict::Counted(passed, failed) => (passed, failed),
        }
    }
}

/// Prints each failure with the lines below it, or the end of a log that has none.
fn show(failures: &[String], text: &str, log: &Path) {
    if failures.is_empty() {
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(TAIL)..].iter().for_each(|line| println!("    {line}"));
    } else {
        failures.iter().for_each(|line| println!("    {line}"));
    }
    let log = log.strip_prefix(system::root()).unwrap_or(log);
    println!("    (all of it: {})", log.display());
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        options: Options,
    }

    fn plan(line: &str, mpis: usize) -> Vec<(usize, &'static str)> {
        let words = std::iter::once("test").chain(line.split_whitespace());
        let options = Cli::parse_from(words).options;
        options.plan(mpis).into_iter().map(|(k, stage)| (k, stage.name)).collect()
    }

    #[test]
    fn a_plan_begins_with_the_sources_and_ends_with_bare_systems() {
        let full = plan("--full", 2);
        assert_eq!(full[..4], [(0, "fmt"), (0, "clippy"), (0, "unit"), (0, "install")]);
        assert_eq!(full[full.len() - 3..], [(0, "python"), (0, "book"), (0, "fresh")]);
        let second = full.iter().position(|stage| *stage == (1, "install")).expect("two MPIs");
        assert!(full[second..].iter().all(|(_, name)| *name != "doc"));
        assert_eq!(plan("", 1).iter().filter(|(_, name)| *name == "ranks").count(), 1);
    }

    #[test]
    fn stages_begin_together() {
        let options = Cli::parse_from(["test", "--full"]).options;
        let plan = options.plan(2);
        let of = |k, name: &str| {
            let stage = stages().iter().find(|stage| stage.name == name).expect("a stage");
            let names = begin_with(&plan, k, stage);
            names.iter().map(|(k, stage)| (*k, stage.name)).collect::<Vec<_>>()
        };
        assert_eq!(of(0, "programs"), [(1, "install")]);
        assert_eq!(of(0, "unit"), [(0, "install")]);
        assert_eq!(of(1, "programs"), [(0, "wheel")]);
        assert_eq!(of(0, "hosts"), [(0, "faults")]);
        assert_eq!(of(1, "hosts"), [(1, "faults"), (0, "fresh")]);
    }

    #[test]
    fn stages_and_filters_select() {
        assert_eq!(plan("--full --stage ranks,doc", 2), [(0, "doc"), (0, "ranks"), (1, "ranks")]);
        let names = ["install", "ranks", "programs", "hosts"];
        assert_eq!(plan("rmw", 1), names.map(|name| (0, name)));
    }

    #[test]
    fn a_command_that_dies_is_a_failure() {
        let of = |counts, code, text: &str| Verdict::of(counts, code, &results::read(text), false);
        assert_eq!(of(Counts::Tests, Some(0), "3 passed, 0 failed"), Verdict::Counted(3, 0));
        assert_eq!(of(Counts::Tests, Some(1), "3 passed, 2 failed"), Verdict::Counted(3, 2));
        assert_eq!(of(Counts::Tests, Some(1), "3 passed, 0 failed"), Verdict::Counted(3, 1));
        assert_eq!(of(Counts::Tests, Some(0), "nothing"), Verdict::Counted(0, 1));
        assert_eq!(of(Counts::Check, None, ""), Verdict::Failed);
        assert_eq!(of(Counts::Bare, Some(77), ""), Verdict::Skipped);
        assert_eq!(of(Counts::Bare, Some(1), ""), Verdict::Failed);
    }
}
