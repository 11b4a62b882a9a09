//! Suite `programs`: programs in C, C++, Fortran and with Global Arrays, and some examples. They
//! are built against the installed library as users build theirs, and run with several numbers of
//! ranks and transfer paths.

pub mod build;
mod by_hand;
mod info;
mod instructions;
pub mod lines;
mod perf;
mod report;
mod special;

use super::args::Args;
use super::launch::{self, Ended, Launch};
use super::report::{Report, tail};
use super::system::{self, Tools};
use super::{processes, selection};
use build::Builder;
use lines::{Entry, Kind, Source, Spec};
use regex::Regex;
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

const LIMIT: u64 = 90;

#[derive(Debug, Clone)]
pub struct Case {
    pub label: String,
    /// For example `c/values` or `link/values.static`.
    pub program: String,
    spec: Spec,
}

impl Case {
    fn new(name: &str, spec: &Spec) -> Case {
        let program = match &spec.build {
            Some(how) => format!("link/{}.{how}", name.rsplit('/').next().unwrap_or(name)),
            None => name.into(),
        };
        let blank = |text: &str| if text.is_empty() { String::new() } else { format!(" {text}") };
        let (arguments, settings) = (blank(&spec.arguments.join(" ")), blank(&spec.settings));
        let label = format!("{program}{arguments} [n={}{settings}]", spec.ranks);
        Case { label, program, spec: spec.clone() }
    }
}

/// Returns the environment variables for a list of settings. `hosts=2,1` and `shm=64m` have none:
/// they concern the launch. Returns a message if a setting is unknown.
pub fn variables(settings: &str) -> Result<Vec<(String, String)>, String> {
    let mut all = Vec::new();
    for word in settings.split_whitespace() {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let name = match name {
            "path" => "PORTOLAN_PATH",
            "node-size" => "PORTOLAN_NODE_SIZE",
            "interpose" => "PORTOLAN_INTERPOSE",
            "thread" => "PORTOLAN_PROGRESS_THREAD",
            "am" => "PORTOLAN_AM",
            "cross-memory" => "PORTOLAN_CROSS_MEMORY",
            "watchdog" => "PORTOLAN_WATCHDOG",
            "abort" => "PORTOLAN_WATCHDOG_ABORT",
            "network" => "PORTOLAN_TEST_NETWORK",
            // Most programs do not request a higher thread level themselves.
            "level" if value == "single" => {
                all.push(("PORTOLAN_INTERPOSE".into(), "waits".into()));
                continue;
            }
            "hosts" | "shm" => continue,
            _ => return Err(format!("there is no setting '{word}'")),
        };
        all.push((name.into(), value.into()));
    }
    Ok(all)
}

/// `why` contains the faults that fail every kind of case.
#[derive(Debug)]
struct Outcome {
    ended: Ended,
    out: String,
    err: String,
    why: Option<String>,
}

struct Suite<'a> {
    args: &'a Args,
    tools: &'a Tools,
    builder: Builder<'a>,
    report: Report,
    fortran: bool,
    runs: usize,
}

pub fn main(args: Args) -> Result<ExitCode, String> {
    let tests = system::root().join("tests");
    let sources = lines::sources(&tests)?;
    let tools = Tools::find()?;
    let builder = Builder::new(&tools, tools.target.join("programs"));
    let _lock = system::lock(&builder.dir)?;
    let fortran = tools.has_fortran();
    let report = Report::new(&system::mpi_name(), "programs");
    let mut suite = Suite { args: &args, tools: &tools, builder, report, fortran, runs: 0 };

    let mut cases = suite.plan(&sources)?;
    let mut programs: Vec<String> = cases.iter().map(|case| case.program.clone()).collect();
    let aborts: Vec<&Source> = sources
        .iter()
        .filter(|_| !args.quick)
        .filter(|source| source.entries.iter().any(|e| matches!(e, Entry::Aborts(_))))
        .collect();
    if args.selection().is_none() {
        programs.extend(aborts.iter().map(|source| source.name.clone())); // they list their cases
        programs.extend(suite.wanted_specials().into_iter().flat_map(|s| s.programs()));
    }
    programs.sort();
    programs.dedup();
    if args.list {
        programs.retain(|program| aborts.iter().any(|source| source.name == *program));
    }
    let missing = suite.builder.build_all(&programs);
    for program in &missing {
        let log = launch::text_of(&suite.builder.dir.join(format!("{program}.log")));
        suite.report.fail(program, 0.0, "does not build", tail(12, &[&log]));
    }
    if args.selection().is_none() {
        suite.plan_aborts(&aborts, &mut cases);
    }
    if args.list {
        let specials = suite.wanted_specials();
        let labels = cases.iter().map(|case| case.label.as_str());
        let some = specials.iter().filter(|_| args.selection().is_none()).map(|s| s.label);
        labels.chain(some).for_each(|label| println!("{label}"));
        return Ok(ExitCode::SUCCESS);
    }
    if args.build {
        return suite.report.end(args.junit.as_deref());
    }
    for case in cases.iter().filter(|case| !missing.contains(&case.program)) {
        suite.run_case(case);
    }
    if args.selection().is_none() {
        for special in suite.wanted_specials() {
            if special.programs().iter().all(|program| !missing.contains(program)) {
                special.run(&mut suite);
            }
        }
    }
    suite.report.end(args.junit.as_deref())
}

impl Suite<'_> {
    fn lacks(&self, program: &str) -> Option<String> {
        let mut why = Vec::new();
        if program.starts_with("ga/") && !self.tools.has_ga() {
            why.push(format!("no Global Arrays for {}", system::mpi_name()));
        }
        let fortran = program.starts_with("fortran/") || program == "ga/ga_fortran";
        if fortran && !self.fortran {
            why.push(format!("no Fortran compiler for {}", system::mpi_name()));
        }
        let needs = [
            (
                ".debian-header",
                std::path::Path::new("/usr/include/armci.h").exists(),
                "Debian's armci.h",
            ),
            (".pkg-config", system::on_path("pkg-config"), "pkg-config"),
            (".mercury", system::on_path("pkg-config"), "pkg-config"),
            (".cmake", system::on_path("cmake"), "cmake"),
        ];
        for (end, there, what) in needs {
            if program.ends_with(end) && !there {
                why.push(format!("no {what}"));
            }
        }
        (!why.is_empty()).then(|| why.join(", "))
    }

    /// Returns all cases except those whose names only the built program knows.
    fn plan(&mut self, sources: &[Source]) -> Result<Vec<Case>, String> {
        let mut planned = Vec::new();
        match &self.args.selection() {
            Some(selection) => {
                let has =
                    |source: &&Source, what: fn(&Entry) -> bool| source.entries.iter().any(what);
                let programs: Vec<selection::Program> = sources
                    .iter()
                    .filter(|s| {
                        has(s, |e| matches!(e, Entry::Hosts)) && self.lacks(&s.name).is_none()
                    })
                    .map(|s| selection::Program {
                        name: s.name.clone(),
                        own_level: has(&s, |e| matches!(e, Entry::OwnLevel)),
                    })
                    .collect();
                for (name, ranks, settings) in selection::programs(&programs, selection) {
                    let none = Vec::new();
                    let spec =
                        Spec { kind: Kind::Pass, ranks, settings, arguments: none, build: None };
                    planned.push(Case::new(&name, &spec));
                }
            }
            None => {
                let mut turns: HashMap<&str, usize> = HashMap::new();
                for source in sources {
                    let specs = source.entries.iter().flat_map(|e| self.chosen(e, &mut turns));
                    let count = if self.args.quick { 1 } else { usize::MAX };
                    planned.extend(specs.take(count).map(|spec| Case::new(&source.name, spec)));
                }
                if !self.args.quick {
                    planned.extend(special::forwarding(self.args.release)?);
                }
            }
        }
        for filter in &self.args.filters {
            planned.extend(named(filter, sources)?);
        }
        let mut cases: Vec<Case> = Vec::new();
        for case in planned {
            let again = cases.iter().any(|other| other.label == case.label);
            if again || !self.args.wants(&case.program, &case.label) {
                continue;
            }
            match self.lacks(&case.program) {
                Some(why) => self.report.skip(&case.label, &why),
                None => cases.push(case),
            }
        }
        Ok(cases)
    }

    fn chosen<'e>(&self, entry: &'e Entry, turns: &mut HashMap<&'e str, usize>) -> Vec<&'e Spec> {
        match entry {
            Entry::Case(spec) => vec![spec],
            Entry::Release(spec) if self.args.release => vec![spec],
            Entry::OneOf(_, specs) if self.args.release => specs.iter().collect(),
            Entry::OneOf(line, specs) => {
                let turn = turns.entry(line).or_default();
                *turn += 1;
                vec![&specs[(*turn - 1) % specs.len()]]
            }
            _ => Vec::new(),
        }
    }

    /// Adds the cases that the programs name: all of them at the level `release`, every third at
    /// the level `full`.
    fn plan_aborts(&self, sources: &[&Source], cases: &mut Vec<Case>) {
        let mut turn = 0;
        for source in sources {
            let of_all = source.entries.iter().find_map(|entry| match entry {
                Entry::Aborts(spec) => Some(spec),
                _ => None,
            });
            let Some(of_all) = of_all else { continue };
            let program = self.builder.dir.join(&source.name);
            let Ok(output) = Command::new(program).arg("list").output() else { continue };
            for name in String::from_utf8_lossy(&output.stdout).split_whitespace() {
                turn += 1;
                let mut spec = of_all.clone();
                spec.arguments.push(name.into());
                let case = Case::new(&source.name, &spec);
                if (self.args.release || turn % 3 == 1)
                    && self.args.wants(&case.program, &case.label)
                {
                    cases.push(case);
                }
            }
        }
    }

    fn wanted_specials(&self) -> Vec<&'static special::Special> {
        special::ALL
            .iter()
            .filter(|special| self.args.release || !special::TIMED.contains(&special.label))
            .filter(|special| !self.args.quick || special::QUICK.contains(&special.label))
            .filter(|special| self.args.wants(special.label, special.label))
            .collect()
    }

    /// Calls `meanwhile` repeatedly while the launch runs.
    fn launch(
        &mut self,
        launcher: &[String],
        variables: &[(String, String)],
        words: &[String],
        mut meanwhile: impl FnMut(),
    ) -> Outcome {
        self.runs += 1;
        let mark = format!("PORTOLAN_TEST_RUN=programs-{}-{}", std::process::id(), self.runs);
        let (out, err) = (self.builder.dir.join("stdout"), self.builder.dir.join("stderr"));
        let mut command = system::command(&[launcher, words].concat());
        launch::without_variables(&mut command);
        command.env("PORTOLAN_WATCHDOG", "20");
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        // The launcher forwards both streams in parts of lines, so one file would mix them.
        launch::into_files(&mut command, &out, Some(&err));
        let mut launch = match Launch::start(&mut command, &mark) {
            Ok(launch) => launch,
            Err(e) => {
                let why = Some(format!("cannot start {}: {e}", launcher[0]));
                return Outcome {
                    ended: Ended::default(),
                    out: String::new(),
                    err: String::new(),
                    why,
                };
            }
        };
        let ended = launch.wait(true, |launch| {
            meanwhile();
            launch.elapsed() > Duration::from_secs(LIMIT)
        });
        let mut why = ended.timed_out.then(|| format!("not at its end after {LIMIT} seconds"));
        if ended.code != Some(0) && launch.leaves_processes(Duration::from_secs(3)) {
            why = Some(why.map_or_else(String::new, |w| w + ", and ") + "left processes behind");
        }
        if let Some(left) = files_left(ended.code == Some(0)) {
            why = Some(format!("left files behind: {left}"));
        }
        let err = launch::text_of(&err) + &ended.account;
        Outcome { out: launch::output_of(&out), err, why, ended }
    }

    fn run_case(&mut self, case: &Case) {
        let spec = &case.spec;
        let hosts = spec.settings.split_whitespace().find_map(|word| word.strip_prefix("hosts="));
        let launcher = hosts.map_or_else(|| self.tools.launcher.clone(), system::launcher_on);
        let mut variables = variables(&spec.settings).unwrap_or_default();
        variables.push(("PORTOLAN_TEST_RANKS".into(), spec.ranks.to_string()));
        // The runner enforces the deadline, because it takes the load of the machine into account.
        variables.push(("PORTOLAN_TEST_SECONDS".into(), (10 * LIMIT).to_string()));
        let mut words = vec!["-n".into(), spec.ranks.to_string(), self.path(&case.program)];
        words.extend(spec.arguments.iter().cloned());
        let outcome = self.launch(&launcher, &variables, &words, || {});
        let verdict = match spec.kind {
            Kind::Pass => passes(&case.program, &outcome),
            Kind::Abort => aborts(&spec.arguments.join(" "), &outcome),
            Kind::Forwarding => {
                special::forwards(&outcome, 0, "(?m)^io_forwarding: all [0-9]+ digests agree$")
            }
        };
        self.record(&case.label, &outcome, verdict);
    }

    fn path(&self, program: &str) -> String {
        self.builder.dir.join(program).display().to_string()
    }

    fn record(&mut self, label: &str, outcome: &Outcome, verdict: Result<(), String>) {
        match verdict {
            Ok(()) => self.report.ok(label, outcome.ended.seconds, ""),
            Err(why) => {
                let lines = if outcome.ended.timed_out { 100 } else { 12 };
                let output = tail(lines, &[&outcome.err, &outcome.out]);
                self.report.fail(label, outcome.ended.seconds, &why, output);
            }
        }
    }
}

/// Returns the case with this complete name, even if it is not planned.
fn named(name: &str, sources: &[Source]) -> Result<Option<Case>, String> {
    let whole =
        Regex::new(r"^(\S+)((?: [^\[\s]+)*) \[n=(\d+)((?: [^\]\s]+)*)\]$").expect("a pattern");
    let Some(found) = whole.captures(name) else { return Ok(None) };
    // Cases that only the program knows are planned after it is built.
    let abort = |s: &&Source| s.entries.iter().any(|e| matches!(e, Entry::Aborts(_)));
    let known = sources.iter().find(|source| source.name == found[1]);
    let Some(source) = known.filter(|s| !abort(s) || found[2].is_empty()) else { return Ok(None) };
    let settings: Vec<&str> = found[4].split_whitespace().collect();
    variables(&settings.join(" "))?;
    let spec = Spec {
        kind: Kind::Pass,
        ranks: found[3].parse().unwrap_or(1),
        settings: settings.join(" "),
        arguments: found[2].split_whitespace().map(String::from).collect(),
        build: None,
    };
    Ok(Some(Case::new(&source.name, &spec)))
}

/// Returns and removes the files that a launch has left on the hosts of a cluster. Files of this
/// library always count as a fault. Files of the MPI count only if the launch succeeded and they
/// stay, because the daemons of the other hosts may end after the launcher.
fn files_left(well: bool) -> Option<String> {
    std::env::var_os("CLUSTER_DIR")?;
    let list = || {
        let output = system::script("cluster").arg("left").output().ok()?;
        let left = String::from_utf8_lossy(&output.stdout).trim().to_string();
        (!left.is_empty()).then_some(left)
    };
    let ours = |left: &str| left.contains("/portolan") || left.contains(" portolan");
    let mut left = list()?;
    let begun = Instant::now();
    while well && !ours(&left) && begun.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(100));
        left = list()?;
    }
    let _ = system::script("cluster").args(["left", "--remove"]).status();
    (well || ours(&left)).then(|| left.replace('\n', ", "))
}

fn lines_with<'t>(text: &'t str, begin: &'t str) -> impl Iterator<Item = &'t str> {
    text.lines().filter(move |line| line.starts_with(begin))
}

fn passes(program: &str, outcome: &Outcome) -> Result<(), String> {
    let name = program.rsplit('/').next().unwrap_or(program);
    let name = name.split_once('.').map_or(name, |(stem, _)| stem);
    if let Some(why) = &outcome.why {
        return Err(why.clone());
    }
    if outcome.ended.code != Some(0) {
        return Err(exit_code(outcome.ended.code));
    }
    let said: Vec<&str> = lines_with(&outcome.out, "PASS").collect();
    if said != [format!("PASS {name}")] {
        return Err(format!("does not say PASS {name} once"));
    }
    Ok(())
}

pub fn exit_code(code: Option<i32>) -> String {
    code.map_or("ended by a signal".into(), |code| format!("exit code {code}"))
}

/// Checks that a call ended the job: the exit code is not 0, and the program did not go on.
fn aborts(name: &str, outcome: &Outcome) -> Result<(), String> {
    if let Some(why) = &outcome.why {
        return Err(why.clone());
    }
    if outcome.ended.code == Some(0) {
        return Err("exit code 0".into());
    }
    let there = outcome.out.lines().any(|line| line == format!("EXPECT-ABORT {name}"));
    if !there || lines_with(&outcome.out, "FAIL").next().is_some() {
        return Err("the call did not end the job".into());
    }
    let both = format!("{}\n{}", outcome.out, outcome.err);
    let mut messages: Vec<&str> =
        both.lines().filter(|line| line.starts_with("portolan: rank ")).collect();
    messages.sort_unstable();
    match messages.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(twice) => Err(format!("says twice '{}'", twice[0])),
        None => Ok(()),
    }
}

pub fn directory(tools: &Tools) -> PathBuf {
    tools.target.join("programs")
}

/// Returns the programs that could not be built.
pub fn build_for(tools: &Tools, programs: &[String]) -> Result<Vec<String>, String> {
    let builder = Builder::new(tools, directory(tools));
    let _lock = system::lock(&builder.dir)?;
    Ok(builder.build_all(programs))
}

fn terminate(pid: i32) {
    processes::signal(pid, libc::SIGTERM);
}
