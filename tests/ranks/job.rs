//! One launch: N ranks of this program under the MPI's launcher.
//!
//! The parent and the ranks share a directory. Rank 0 appends to `checks` when
//! a check begins and ends, and every rank keeps its process id and current
//! step in a file of its own, so that a launch that hangs can be told from one
//! that is slow, and says where each rank stood.
//!
//! Ranks that keep the cores to themselves starve others, and every time-out is over at
//! once when those have a turn again. The parent sees by its own naps whether it was
//! starved ([`Ended::starved`]), and a failure says so.
//!
//! No process outlives its launch: launchers put ranks into sessions of their
//! own, so the process group alone is not enough. Each process is killed with
//! its parent (`PR_SET_PDEATHSIG`), and after a time-out each that has the
//! directory in its environment.

use crate::hosts;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Names the checks that a rank is to run; its presence makes a process a rank.
pub const SPEC: &str = "PORTOLAN_TEST_CHECKS";
/// The shared directory.
pub const DIR: &str = "PORTOLAN_TEST_DIR";
/// How many ranks there must be.
pub const RANKS: &str = "PORTOLAN_TEST_RANKS";
/// The seed of random checks.
pub const SEED: &str = "PORTOLAN_TEST_SEED";

const NAP: Duration = Duration::from_millis(5);

/// What to launch.
#[derive(Debug, Clone)]
pub struct Job {
    /// The launcher with its flags.
    pub launcher: Vec<String>,
    /// Number of ranks.
    pub ranks: usize,
    /// Environment of the ranks.
    pub env: Vec<(String, String)>,
    /// What the ranks run.
    pub spec: String,
    /// A shell line that ends by executing `"$@"`, around the launcher.
    pub wrap: Option<String>,
    /// Whether a time-out is to be explained by what the system knows of each rank.
    pub explain: bool,
}

/// How a launch ended.
#[derive(Debug)]
pub struct Ended {
    /// Exit code; `None` after a signal or a time-out.
    pub code: Option<i32>,
    /// Whether the deadline passed.
    pub timed_out: bool,
    /// Checks that ended well, with seconds.
    pub done: Vec<(String, f64)>,
    /// The check that was under way.
    pub current: Option<String>,
    /// What the ranks printed.
    pub output: String,
    /// Where each rank stood, a line each.
    pub steps: String,
    /// Files in shared memory that the job left behind.
    pub left: Vec<String>,
    /// Seconds in all.
    pub seconds: f64,
    /// The longest time in which this program wanted to run and could not.
    pub starved: Duration,
}

impl Ended {
    /// Whether everything went well.
    pub fn well(&self) -> bool {
        self.code == Some(0) && self.current.is_none() && self.left.is_empty()
    }
}

fn command(job: &Job, dir: &Path) -> Command {
    let program = std::env::current_exe().expect("the path of this program");
    let mut command = match &job.wrap {
        Some(line) => {
            let mut shell = Command::new("sh");
            shell.args(["-c", line, "sh"]).args(&job.launcher);
            shell
        }
        None => {
            let mut launcher = Command::new(&job.launcher[0]);
            launcher.args(&job.launcher[1..]);
            launcher
        }
    };
    command.args(["-n", &job.ranks.to_string()]).arg(program);
    // The ranks see the variables of the case, not those of the caller.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("PORTOLAN_") || text.starts_with("ARMCI_") {
            command.env_remove(&name);
        }
    }
    command.env("PORTOLAN_WATCHDOG", "10");
    command.env(SPEC, &job.spec).env(DIR, dir).env(RANKS, job.ranks.to_string());
    command.env("CLUSTER_KEEP", DIR); // marks what the launcher starts on other hosts
    command.envs(job.env.iter().map(|(name, value)| (name, value)));
    let output = File::create(dir.join("output")).expect("an output file");
    let errors = output.try_clone().expect("a second handle of the output file");
    command.stdin(Stdio::null()).stdout(output).stderr(errors);
    if std::env::var_os("NEXTEST").is_none() {
        // A runner that kills our own group on time-out must find the ranks in it.
        command.process_group(0);
    }
    // SAFETY: prctl is safe to call between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    command
}

/// What the shared directory says.
#[derive(Debug, Default)]
struct Board {
    done: Vec<(String, f64)>,
    current: Option<String>,
}

fn read_board(dir: &Path) -> Board {
    let mut board = Board::default();
    for line in fs::read_to_string(dir.join("checks")).unwrap_or_default().lines() {
        let mut words = line.split_whitespace();
        match (words.next(), words.next(), words.next()) {
            (Some("begin"), Some(name), _) => board.current = Some(name.into()),
            (Some("end"), Some(name), Some(seconds)) => {
                board.done.push((name.into(), seconds.parse().unwrap_or(0.0)));
                board.current = None;
            }
            _ => {}
        }
    }
    board
}

/// `(rank, process id, step)` of each rank.
fn read_steps(dir: &Path) -> Vec<(String, i32, String)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(rank) = name.strip_prefix("rank.") else { continue };
        let text = fs::read(entry.path()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let line = text.split('\n').next().unwrap_or("");
        let (pid, step) = line.split_once(' ').unwrap_or((line, ""));
        all.push((rank.to_string(), pid.parse().unwrap_or(0), step.trim().to_string()));
    }
    all.sort();
    all
}

fn kill(child: &mut Child, dir: &Path) {
    // SAFETY: the group is that of our own child, which was not waited for yet; the
    // others have the directory of this launch in their environment.
    unsafe {
        libc::kill(-(child.id() as i32), libc::SIGKILL);
        for pid in hosts::processes(dir) {
            libc::kill(pid, libc::SIGKILL);
        }
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Runs a job. `deadline` gives the time of a check, or of start and end for
/// `None`.
pub fn run(job: &Job, dir: &PathBuf, deadline: impl Fn(Option<&str>) -> Duration) -> Ended {
    let _ = fs::remove_dir_all(dir);
    fs::create_dir_all(dir).expect("a directory for the launch");
    let begun = Instant::now();
    let mut child = match command(job, dir).spawn() {
        Ok(child) => child,
        Err(e) => {
            return Ended {
                code: None,
                timed_out: false,
                done: Vec::new(),
                current: None,
                output: format!("cannot start {:?}: {e}", job.launcher),
                steps: String::new(),
                left: Vec::new(),
                seconds: 0.0,
                starved: Duration::ZERO,
            };
        }
    };
    let (mut board, mut since) = (Board::default(), Instant::now());
    let mut steps = None;
    let mut account = String::new();
    let mut starved = Duration::ZERO;
    let status = loop {
        let now = read_board(dir);
        if now.current != board.current || now.done.len() != board.done.len() {
            since = Instant::now();
        }
        board = now;
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) => {}
            Err(_) => break None,
        }
        if since.elapsed() > deadline(board.current.as_deref()) {
            steps = Some(read_steps(dir));
            if job.explain {
                account = hosts::account(dir);
            }
            kill(&mut child, dir);
            break None;
        }
        let nap = Instant::now();
        std::thread::sleep(NAP);
        starved = starved.max(nap.elapsed());
    };
    let timed_out = steps.is_some();
    board = read_board(dir);
    let steps = steps.unwrap_or_else(|| read_steps(dir));
    let describe = |(rank, pid, step): &(String, i32, String)| {
        format!("rank {rank} (process {pid}) was at: {step}\n")
    };
    Ended {
        code: status.and_then(|s| s.code()),
        timed_out,
        done: board.done,
        current: board.current,
        output: String::from_utf8_lossy(&fs::read(dir.join("output")).unwrap_or_default()).into(),
        left: left_behind(&steps, job),
        steps: steps.iter().map(describe).collect::<String>() + &account,
        seconds: begun.elapsed().as_secs_f64(),
        starved,
    }
}

/// Named files of ours in the directories of shared memory. Other jobs run
/// beside this one, so only those of its own ranks count.
fn left_behind(steps: &[(String, i32, String)], job: &Job) -> Vec<String> {
    let given = job.env.iter().find(|(name, _)| name == "PORTOLAN_SHM_DIR");
    let dirs = given.map_or_else(hosts::shm_dirs, |(_, dir)| vec![dir.into()]);
    let mut left = Vec::new();
    for dir in dirs {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let ours =
                steps.iter().any(|(_, pid, _)| name.starts_with(&format!("portolan.{pid}.")));
            if ours {
                left.push(dir.join(name).display().to_string());
            }
        }
    }
    left
}
