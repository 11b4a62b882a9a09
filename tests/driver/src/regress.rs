//! The regression suite: all suites with several MPIs, on several hosts.

use crate::args::Level;
use crate::mpi::{self, Mpi, output};
use crate::suite::{self, Suite};
use crate::summary::{Log, Summary};
use crate::{launch, results, system};
use clap::ValueEnum;
use regex::Regex;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

pub const HELP: &str = "\
Runs every test on several ranks, and the C, Fortran and Global Arrays programs of all interfaces,
with each MPI: on one, two and three hosts, with 1 to 4 ranks spread evenly or unevenly, over each
transfer path, at MPI_THREAD_SINGLE and MPI_THREAD_MULTIPLE. The hosts are namespaces of this
machine with TCP between them (scripts/dev cluster). If they cannot be made, the suite uses virtual
nodes instead and reports this.

All combinations would be about nine thousand launches of the programs alone. --full takes an hour
on two cores. Its selection runs each program with every spread of ranks, every path on every number
of hosts, every thread level on every number of hosts, and every path at every level; the remaining
pairs rotate from program to program. The tests on several ranks run each of their configurations on
at least two spreads of ranks. --quick takes three minutes. It runs thirty programs once each, and
two spreads of the tests on several ranks, all on several hosts.

Prints one line per case. If a case exceeds its deadline, the suite reports the state of each rank.
The report is in target/regress: report.html, junit.xml, and a log for each suite. A failure that is
a known fault of an MPI (tests/mpi-bugs/pins.txt) counts as pinned. The last line is `N passed,
N failed`, and the exit code is 0 if no case failed.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The programs of tests/c, tests/fortran and tests/ga
    Programs,
    /// The tests on several ranks (tests/ranks)
    Ranks,
    /// Delayed, lossy, slow and cut links between two hosts
    Network,
    /// Whether the known faults of the MPIs still occur (tests/mpi-bugs)
    Mpi,
    /// Jobs under Slurm, by mpiexec and by srun, with Debian's MPIs
    Slurm,
}

#[derive(Debug, clap::Args)]
pub struct Options {
    /// One MPI; all, those of Debian; wheels, those of PyPI that can be fetched; every, these and
    /// Debian's
    #[arg(long, value_name = "M", default_value = "all")]
    mpi: String,
    /// Only these numbers of hosts
    #[arg(long, value_name = "1,2,3", value_delimiter = ',', default_value = "1,2,3",
          value_parser = clap::value_parser!(u64).range(1..=3))]
    hosts: Vec<u64>,
    /// A small selection, the default
    #[arg(long, overrides_with = "full")]
    quick: bool,
    /// The complete selection
    #[arg(long, overrides_with = "quick")]
    full: bool,
    /// Only these suites; the default is programs,ranks with --quick and all with --full
    #[arg(long = "suite", value_name = "S", value_delimiter = ',')]
    suites: Vec<Part>,
    /// Only cases whose name contains NAME. A complete name, as in the report, runs that case even
    /// if the selection does not contain it
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
    /// Print the names of the cases that would run
    #[arg(long)]
    list: bool,
    /// Use the libraries and tests as they are built
    #[arg(long)]
    installed: bool,
}

struct Run {
    options: Options,
    level: Level,
    out: PathBuf,
    /// The command that makes hosts. Empty if none can be made.
    hosts: Vec<String>,
    summary: Summary,
}

pub fn main(options: &Options) -> Result<ExitCode, String> {
    let out = system::root().join("target/regress");
    let _lock = system::lock(&out)?;
    let (mpis, mut run) = Run::plan(options, out)?;
    let mut first = None;
    for name in mpis {
        match Mpi::clean(&name) {
            Ok(mpi) if run.options.list => run.list(&mpi)?,
            Ok(mpi) => {
                run.with(&mpi)?;
                first.get_or_insert(mpi);
            }
            Err(why) if name.ends_with("-wheel") || name == "abi" => {
                println!("skip {name}: {why}");
                run.summary.notes.push(format!("{name} was skipped: {why}"));
            }
            Err(why) => return Err(why),
        }
    }
    if run.options.list {
        return Ok(ExitCode::SUCCESS);
    }
    run.summary.facts = [facts(), run.summary.facts].concat();
    println!();
    let failed = run.summary.make(&run.out)?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Splits a complete name, which begins with the MPI and the suite.
fn complete_name(case: &str) -> Option<(String, Part, String)> {
    let name = Regex::new(r"^([a-z]+(?:-wheel)?) ([a-z]+) (.*)$").expect("a pattern");
    let found = name.captures(case)?;
    let part = Part::from_str(&found[2], false).ok()?;
    Some((found[1].into(), part, found[3].into()))
}

impl Run {
    fn plan(options: &Options, out: PathBuf) -> Result<(Vec<String>, Run), String> {
        let mut level = if options.full { Level::Full } else { Level::Quick };
        let mut options = Options {
            mpi: options.mpi.clone(),
            hosts: options.hosts.clone(),
            suites: options.suites.clone(),
            case: options.case.clone(),
            ..*options
        };
        if options.suites.is_empty() {
            options.suites = match (level, &options.case) {
                (Level::Quick, None) => vec![Part::Programs, Part::Ranks],
                _ => Part::value_variants().to_vec(),
            };
        }
        if let Some((mpi, part, case)) = options.case.as_deref().and_then(complete_name) {
            (options.mpi, options.suites, options.case) = (mpi, vec![part], Some(case));
            level = Level::Full;
        }
        let (wheels, debians) = mpi::wheels_and_debians()?;
        let mpis = match &*options.mpi {
            "wheels" => wheels,
            "every" => [debians, wheels].concat(),
            name => mpi::choose(name)?,
        };
        let title = format!("Portolan, regression suite, {}", level.word());
        let mut run = Run {
            options,
            level,
            out,
            hosts: Vec::new(),
            summary: Summary { title, ..Summary::default() },
        };
        match system::no_hosts() {
            None => {
                let words = "scripts/dev cluster run --hosts 3 --";
                run.hosts = words.split(' ').map(String::from).collect();
            }
            Some(why) => {
                eprintln!("regress: {why}: virtual nodes stand in for hosts");
                run.summary.notes.push(format!(
                    "No hosts could be made here: {why}. Virtual nodes (PORTOLAN_NODE_SIZE) stood in."
                ));
            }
        }
        Ok((mpis, run))
    }

    fn wants(&self, part: Part) -> bool {
        self.options.suites.contains(&part)
    }

    /// Returns whether a part without cases of its own is selected.
    fn wants_whole(&self, part: Part, name: &str) -> bool {
        let fits = |case: &String| case.starts_with(name);
        self.wants(part) && self.options.case.as_ref().is_none_or(fits)
    }

    /// Returns the command line of a suite with this selection of cases. Open MPI 4 does not
    /// support windows over TCP (tests/mpi-bugs/win_create_tcp.c).
    fn selected(&self, suite: Suite, mpi: &Mpi, list: bool) -> Result<Vec<String>, String> {
        let windows = mpi.name != "openmpi" || self.hosts.is_empty();
        let hosts = self.options.hosts.clone();
        let quick = suite == Suite::Ranks && self.level == Level::Quick;
        let args = crate::args::Args::selected(self.level, hosts, windows, quick, list);
        suite.command_line(mpi, &args.with_filter(self.options.case.as_deref()))
    }

    fn list(&self, mpi: &Mpi) -> Result<(), String> {
        let mut lists = vec![
            ("programs", self.selected(Suite::Programs, mpi, true)?),
            ("ranks", self.selected(Suite::Ranks, mpi, true)?),
        ];
        if self.wants(Part::Network) {
            let words = [&suite::this_program()?, "run", "network", "--release", "--list"];
            lists.push(("network", words.map(String::from).into()));
        }
        for (suite, words) in lists {
            for line in output(&mut mpi.command(&words))?.lines() {
                println!("{} {suite} {line}", mpi.name);
            }
        }
        Ok(())
    }

    fn with(&mut self, mpi: &Mpi) -> Result<(), String> {
        if !self.options.installed && !self.build(mpi)? {
            return Ok(());
        }
        let driver = suite::this_program()?;
        let case = self.options.case.clone();
        let words = |text: &str, filter: &Option<String>| -> Vec<String> {
            text.split(' ').map(String::from).chain(filter.clone()).collect()
        };
        let in_hosts = |run: &Run, words: Vec<String>| [run.hosts.clone(), words].concat();
        if self.wants(Part::Programs) {
            let words = self.selected(Suite::Programs, mpi, false)?;
            self.suite(mpi, "programs", &in_hosts(self, words))?;
        }
        if self.wants(Part::Ranks) {
            let words = self.selected(Suite::Ranks, mpi, false)?;
            self.suite(mpi, "ranks", &in_hosts(self, words))?;
            let named = case.as_ref().is_some_and(|case| case.contains("hosts="));
            if self.level == Level::Full && self.options.hosts.contains(&1) && !named {
                let args = crate::args::Args::default().with_filter(case.as_deref());
                self.suite(mpi, "ranks-1", &Suite::Ranks.command_line(mpi, &args)?)?;
            }
        }
        let on_hosts = !self.hosts.is_empty();
        if self.wants(Part::Network) && on_hosts {
            let network = format!("{driver} run network --release --");
            self.suite(mpi, "network", &words(&network, &case))?;
        }
        if self.wants(Part::Mpi) && on_hosts {
            self.suite(mpi, "mpi", &words(&format!("{driver} run bugs --"), &case))?;
        }
        // Always run all cases of this suite: it takes half a minute. It works only with Debian's
        // MPIs, because Slurm comes from Debian's packages.
        if self.wants_whole(Part::Slurm, "slurm/") && on_hosts && mpi.name == mpi.kind {
            let slurm = format!("scripts/dev slurm --mpi {}", mpi.name);
            self.suite(mpi, "slurm", &words(&slurm, &None))?;
        }
        Ok(())
    }

    /// Builds and installs the library and the tests. Returns whether this succeeded.
    fn build(&mut self, mpi: &Mpi) -> Result<bool, String> {
        println!("== {} build", mpi.name);
        let log = self.out.join(format!("{}.build.log", mpi.tag));
        let prefix = mpi.prefix.display().to_string();
        let install = ["scripts/install.sh", "--mpi", &mpi.name, "--prefix", &prefix];
        let tests = ["cargo", "test", "--release", "--no-run", "--test", "ranks"];
        for command in [mpi.command(&install), mpi.command(&tests)] {
            let mut last = Vec::new();
            let code = launch::follow(command, &log, |line| last.push(line.to_string()))?;
            if code != Some(0) {
                last[last.len().saturating_sub(20)..].iter().for_each(|line| println!("{line}"));
                let text = format!("FAIL build: see {}\n0 passed, 1 failed\n", log.display());
                let path = self.out.join(format!("{}.build.result", mpi.tag));
                std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
                self.log(mpi, "build", path);
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn log(&mut self, mpi: &Mpi, suite: &str, path: PathBuf) {
        self.summary.logs.push(Log { mpi: mpi.name.clone(), suite: suite.into(), path });
    }

    /// Runs a suite with its output in a log and on standard output. Omits its totals, because the
    /// report, which knows the pins, prints others.
    fn suite(&mut self, mpi: &Mpi, name: &str, words: &[String]) -> Result<(), String> {
        println!("== {} {name}", mpi.name);
        let log = self.out.join(format!("{}.{name}.log", mpi.tag));
        launch::follow(mpi.command(words), &log, |line| {
            if results::totals(line).is_none() {
                println!("{line}");
            }
        })?;
        let launcher = format!("MPI of {}", mpi.name);
        if !self.summary.facts.iter().any(|(name, _)| *name == launcher) {
            self.summary.facts.push((launcher, version(mpi)));
        }
        self.log(mpi, name, log);
        Ok(())
    }
}

/// Returns the first line of the launcher's version.
fn version(mpi: &Mpi) -> String {
    let text = output(&mut mpi.command(&[&*mpi.launcher[0], "--version"])).unwrap_or_default();
    let line = text.lines().find(|line| line.chars().any(|letter| letter.is_ascii_digit()));
    let line = line.unwrap_or_default().trim();
    line.strip_prefix("Version:").unwrap_or(line).trim().into()
}

/// Returns what was tested, and where.
fn facts() -> Vec<(String, String)> {
    let said = |words: &[&str]| {
        let mut command = Command::new(words[0]);
        output(command.args(&words[1..]).current_dir(system::root())).unwrap_or_default()
    };
    let read = |path: &str| launch::text_of(Path::new(path)).trim().to_string();
    let model = read("/proc/cpuinfo");
    let model = model.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let changed = if said(&["git", "status", "--porcelain"]).is_empty() { "" } else { ", changed" };
    let command: Vec<String> = std::env::args().skip(1).collect();
    [
        ("version", env!("CARGO_PKG_VERSION").into()),
        (
            "commit",
            format!("{}{changed}", said(&["git", "rev-parse", "--short=12", "HEAD"]).trim()),
        ),
        ("compiler", said(&["rustc", "--version"]).trim().into()),
        ("kernel", read("/proc/sys/kernel/osrelease")),
        ("machine", format!("{}, {cores} cores", model.map_or("unknown", |(_, name)| name))),
        ("command", format!("scripts/dev {}", command.join(" "))),
    ]
    .map(|(name, value)| (name.to_string(), value))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complete_name_has_an_mpi_and_a_suite() {
        let (mpi, part, case) =
            complete_name("mpich-wheel programs c/rmw [n=3 hosts=2,1]").expect("a complete name");
        assert_eq!((&*mpi, part, &*case), ("mpich-wheel", Part::Programs, "c/rmw [n=3 hosts=2,1]"));
        assert!(complete_name("c/rmw [n=3 hosts=2,1]").is_none());
        assert!(complete_name("mpich plans c/rmw").is_none());
    }

    #[test]
    fn the_machine_is_known() {
        for (name, value) in facts() {
            assert!(name == "commit" || !value.is_empty(), "{name}");
        }
    }
}
