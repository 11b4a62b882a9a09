//! Suite `network`: faults of the network between two hosts (`scripts/dev cluster link`).
//!
//! A delay of 100 ms each way, a loss of 5 % of the frames, a rate of 10 Mbit/s, or a link that is
//! cut for a while must not change a result. A link that is cut permanently must end the job within
//! a stated time, with an error that names the peer, and leave no rank and no file behind. It does so
//! by the limit on progress (`cut`), and by the limit for lost hosts alone (`lost`). By the latter, a
//! rank that is stopped for longer must not end the job (`stopped`). The processes of all hosts are
//! visible on this machine.

use super::args::Args;
use super::launch::{self, Ended, Launch};
use super::programs::{self, exit_code};
use super::report::{Report, tail};
use super::system::{self, Tools};
use super::{place, processes};
use regex::Regex;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Programs with few enough round trips for a network with a long delay.
const LATE: [&str; 2] = ["traffic", "domains"];
const OTHERS: [&str; 5] = ["traffic", "values", "x10_async", "lapi_util", "cp_threads"];
/// Seconds without progress until a rank reports it, and until it ends the job.
const REPORT: u64 = 3;
const ABORT: u64 = 10;
/// Seconds for which a rank is stopped, although the limit for lost hosts is [`ABORT`].
const STOPPED: u64 = 25;
/// Additional seconds that a launcher may take.
const EDGE: u64 = 20;

struct Case {
    fault: &'static str,
    program: &'static str,
    layout: &'static str,
}

impl Case {
    fn ranks(&self) -> usize {
        self.layout.split(',').filter_map(|n| n.parse::<usize>().ok()).sum()
    }

    fn label(&self) -> String {
        format!("{} {} [n={} hosts={}]", self.fault, self.program, self.ranks(), self.layout)
    }
}

fn cases(release: bool) -> Vec<Case> {
    let case = |fault, program, layout| Case { fault, program, layout };
    let mut all = Vec::new();
    if release {
        all.extend(LATE.map(|program| case("delay=100ms", program, "1,1")));
        all.push(case("delay=100ms", "traffic", "2,1"));
        for program in OTHERS {
            all.push(case("loss=5%", program, "1,1"));
            all.push(case("rate=10mbit", program, "1,1"));
        }
        for fault in ["loss=5%", "rate=10mbit", "cut-and-whole", "stopped", "cut", "lost"] {
            all.push(case(fault, "traffic", "2,1"));
        }
        all.push(case("lost", "traffic", "1,2"));
    } else {
        all.extend(["delay=100ms", "loss=5%", "rate=10mbit"].map(|f| case(f, "traffic", "1,1")));
    }
    all.extend(
        ["cut-and-whole", "stopped", "cut", "lost"].map(|fault| case(fault, "traffic", "1,1")),
    );
    all
}

pub fn main(args: Args) -> Result<ExitCode, String> {
    let cases = cases(args.release);
    let cases: Vec<&Case> = cases.iter().filter(|c| args.wants(c.program, &c.label())).collect();
    if args.list {
        cases.iter().for_each(|case| println!("{}", case.label()));
        return Ok(ExitCode::SUCCESS);
    }
    let mut report = Report::new(&system::mpi_name(), "network");
    if let Some(why) = system::no_hosts() {
        report.skip("network", &why);
        return report.end(args.junit.as_deref());
    }
    let tools = Tools::find()?;
    let mut programs: Vec<String> = cases.iter().map(|c| format!("c/{}", c.program)).collect();
    programs.sort();
    programs.dedup();
    for program in programs::build_for(&tools, &programs)? {
        report.fail(&program, 0.0, "does not build", Vec::new());
    }
    let name = format!("network.{}", std::process::id());
    let place = std::env::temp_dir().join(format!("portolan-{name}"));
    std::fs::create_dir(&place).map_err(|e| format!("{}: {e}", place.display()))?;
    let output = place.join("output");
    let bin = programs::directory(&tools).join("c");
    let mut suite = Suite { report, name: name.clone(), output, bin, runs: 0 };
    let down = {
        let name = name.clone();
        move || drop(system::script("cluster").args(["down", "--name", &name]).output())
    };
    launch::at_signal(down.clone());
    if !cases.is_empty() {
        suite.up()?;
    }
    for case in cases {
        if !suite.bin.join(case.program).exists() {
            continue; // already reported as failed when it did not build
        }
        match case.fault {
            "cut" => suite.cut(case, "PORTOLAN_WATCHDOG_ABORT")?,
            "lost" => suite.cut(case, "PORTOLAN_WATCHDOG_HOST")?,
            "stopped" => suite.stopped(case),
            "cut-and-whole" => suite.cut_and_whole(case),
            _ => suite.slow(case),
        }
    }
    down();
    let _ = std::fs::remove_dir_all(&place);
    suite.report.end(args.junit.as_deref())
}

struct Suite {
    report: Report,
    name: String,
    output: PathBuf,
    bin: PathBuf,
    runs: usize,
}

struct Job {
    launch: Launch,
    mark: String,
    limit: Duration,
}

impl Suite {
    fn up(&self) -> Result<(), String> {
        let output = system::script("cluster").args(["up", "2", "--name", &self.name]).output();
        match output {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(format!("no cluster: {}", String::from_utf8_lossy(&output.stderr))),
            Err(e) => Err(format!("no cluster: {e}")),
        }
    }

    fn link(&self, what: &str) {
        let status =
            system::script("cluster").args(["link", "host2", "--name", &self.name, what]).status();
        if !status.is_ok_and(|status| status.success()) {
            eprintln!("scripts/dev cluster link host2 {what} failed");
        }
    }

    fn start(&mut self, case: &Case, seconds: u64, variables: &[(&str, u64)], words: &str) -> Job {
        self.runs += 1;
        let mark = format!("PORTOLAN_TEST_RUN=network-{}-{}", std::process::id(), self.runs);
        let mut command = system::script("cluster");
        launch::without_variables(&mut command);
        command.args(["run", "--name", &self.name, "--"]).args(system::launcher_on(case.layout));
        command.arg(self.bin.join(case.program)).args(words.split_whitespace());
        command.env("PORTOLAN_TEST_SECONDS", (seconds + 20).to_string());
        command.envs(variables.iter().map(|(name, value)| (name, value.to_string())));
        launch::into_files(&mut command, &self.output, None);
        let launch = Launch::start(&mut command, &mark).expect("scripts/dev cluster");
        Job { launch, mark, limit: Duration::from_secs(seconds) }
    }

    fn wait(job: &mut Job) -> Ended {
        let limit = job.limit;
        job.launch.wait(true, |launch| launch.elapsed() > limit)
    }

    fn says(&self, pattern: &str) -> bool {
        let pattern = Regex::new(&format!("(?m){pattern}")).expect("a pattern");
        pattern.is_match(&launch::text_of(&self.output))
    }

    /// Waits until the job's output has a line that matches the pattern. Returns false if the job
    /// ends or the time passes first.
    fn await_line(&self, job: &mut Job, pattern: &str, seconds: u64) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(seconds) {
            if self.says(pattern) {
                return true;
            }
            if job.launch.has_ended() {
                return false;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        false
    }

    fn ranks_left(case: &Case, job: &Job) -> Vec<String> {
        let ranks = processes::marked(&job.mark);
        let ranks = ranks.into_iter().filter(|pid| processes::name(*pid) == case.program);
        ranks.map(|pid| pid.to_string()).collect()
    }

    fn what_is_left(&self, case: &Case, job: &Job) -> Option<String> {
        let ranks = Self::ranks_left(case, job);
        if !ranks.is_empty() {
            return Some(format!("left ranks behind: {}", ranks.join(" ")));
        }
        let left = system::script("cluster").args(["left", "--name", &self.name]).output();
        let left = left.map(|output| output.stdout).unwrap_or_default();
        let left = String::from_utf8_lossy(&left).into_owned();
        let ours = |line: &&str| line.contains("/portolan") || line.contains(" portolan");
        let files: Vec<&str> = left.lines().filter(ours).collect();
        (!files.is_empty()).then(|| format!("left files behind: {}", files.join(", ")))
    }

    fn record(&mut self, case: &Case, ended: &Ended, why: Option<String>, note: &str) {
        match why {
            None => self.report.ok(&case.label(), ended.seconds, note),
            Some(why) => {
                let text = launch::text_of(&self.output);
                let lines = tail(30, &[&text, &ended.account]);
                self.report.fail(&case.label(), ended.seconds, &why, lines);
            }
        }
    }

    /// Checks that the results are correct on a slow or lossy link, within 150 seconds.
    fn slow(&mut self, case: &Case) {
        self.link(case.fault);
        let words = if case.program == "traffic" { "3" } else { "" };
        let mut job = self.start(case, 150, &[], words);
        let ended = Self::wait(&mut job);
        self.link("clean");
        let why = if ended.timed_out {
            Some("not at its end after 150 seconds".into())
        } else if ended.code != Some(0) {
            Some(exit_code(ended.code))
        } else if !self.says(&format!("^PASS {}$", case.program)) {
            Some(format!("does not say PASS {}", case.program))
        } else {
            self.what_is_left(case, &job)
        };
        self.record(case, &ended, why, "");
    }

    fn cut_and_whole(&mut self, case: &Case) {
        let mut job = self.start(case, 120, &[("PORTOLAN_WATCHDOG", REPORT)], "8");
        if self.await_line(&mut job, "^RUNNING", 60) {
            self.link("cut");
            std::thread::sleep(Duration::from_secs(4));
            self.link("clean");
        }
        let ended = Self::wait(&mut job);
        self.link("clean");
        let well = ended.code == Some(0) && self.says(&format!("^PASS {}$", case.program));
        let why = match well {
            true => self.what_is_left(case, &job),
            false if ended.timed_out => Some("not at its end after the link came back".into()),
            false => Some(format!("{} after the link came back", exit_code(ended.code))),
        };
        self.record(case, &ended, why, "");
    }

    /// Stops the last rank for longer than the limit for lost hosts, as a debugger does. The kernel
    /// of its host answers meanwhile, so the job goes on afterwards.
    fn stopped(&mut self, case: &Case) {
        let variables = [("PORTOLAN_WATCHDOG", REPORT), ("PORTOLAN_WATCHDOG_HOST", ABORT)];
        let mut job = self.start(case, 120, &variables, "8");
        let last = (case.ranks() - 1).to_string();
        let is_last = |pid: &i32| {
            let names = ["PMI_RANK", "OMPI_COMM_WORLD_RANK"].map(|name| format!("{name}={last}"));
            let variables = processes::environment(*pid);
            processes::name(*pid) == case.program
                && variables.iter().any(|v| names.iter().any(|name| v == name.as_bytes()))
        };
        let mut found = Vec::new();
        if self.await_line(&mut job, "^RUNNING", 60) {
            found = processes::marked(&job.mark);
            found.retain(is_last);
            let signal = |number| {
                for pid in &found {
                    processes::signal(*pid, number);
                }
            };
            signal(libc::SIGSTOP);
            std::thread::sleep(Duration::from_secs(STOPPED));
            signal(libc::SIGCONT);
        }
        let reported = self.says("no progress meanwhile");
        let ended = Self::wait(&mut job);
        let why = if found.len() != 1 {
            Some(format!("{} processes were stopped, not the last rank", found.len()))
        } else if ended.timed_out {
            Some("not at its end after the rank continued".into())
        } else if ended.code != Some(0) || !self.says(&format!("^PASS {}$", case.program)) {
            Some(format!("{} after the rank continued", exit_code(ended.code)))
        } else if !reported {
            Some(format!("nobody reported a wait of {REPORT} s"))
        } else {
            self.what_is_left(case, &job)
        };
        self.record(case, &ended, why, "");
    }

    /// Checks a link that stays cut: a rank that waits for the unreachable rank reports and names
    /// it, and all ranks end. The launcher itself may wait for its daemon on the far side until TCP
    /// gives up, but it must end on SIGTERM, as a batch system would send it.
    ///
    /// `limit`: the variable that ends the job.
    fn cut(&mut self, case: &Case, limit: &str) -> Result<(), String> {
        let variables = [("PORTOLAN_WATCHDOG", REPORT), (limit, ABORT)];
        let mut job = self.start(case, 150, &variables, "100 alone");
        if !self.await_line(&mut job, "^RUNNING", 60) {
            let ended = Self::wait(&mut job);
            self.record(case, &ended, Some("does not start".into()), "");
            return Ok(());
        }
        std::thread::sleep(Duration::from_secs(1));
        self.link("cut");
        // The last rank is on host2, which no other rank can reach any more.
        let peer = case.ranks() - 1;
        let waits = format!("(waited|has been|no progress).*(rank|ranks|towards)[^0-9]*{peer}");
        let named = self.await_line(&mut job, &waits, REPORT + EDGE);
        let mut left = Vec::new();
        for _ in 0..ABORT + EDGE {
            left = Self::ranks_left(case, &job);
            if left.is_empty() {
                break;
            }
            launch::heed_signals();
            std::thread::sleep(Duration::from_secs(1));
        }
        let account = if left.is_empty() { String::new() } else { place::account(&job.mark) };
        let patience = Instant::now();
        while !job.launch.has_ended() && patience.elapsed() < Duration::from_secs(2) {}
        let mut note = "";
        if !job.launch.has_ended() {
            note = "all ranks ended by themselves, the launcher when asked to";
            job.launch.end();
        }
        let mut ended = Self::wait(&mut job);
        ended.account = account;
        let reason = match limit {
            "PORTOLAN_WATCHDOG_HOST" => "the host .* has not answered for",
            limit => limit,
        };
        let why = if !self.says(reason) {
            Some(format!("nobody said why the job ends: {reason}"))
        } else if !named {
            Some(format!("nobody said within {} s that it waits for rank {peer}", REPORT + EDGE))
        } else if !left.is_empty() {
            let (seconds, left) = (ABORT + EDGE, left.join(" "));
            Some(format!("ranks are still there {seconds} s after the link was cut: {left}"))
        } else if ended.code == Some(0) {
            Some("exit code 0, though the link is cut".into())
        } else {
            self.what_is_left(case, &job)
        };
        self.record(case, &ended, why, note);
        // Taking the cluster down also ends the MPI's daemons on the far side.
        let _ = system::script("cluster").args(["down", "--name", &self.name]).output();
        self.up()
    }
}
