//! A launch: N ranks of this program under the MPI's launcher.
//!
//! The parent and the ranks share a directory. Rank 0 appends to `checks` when a check begins and
//! ends. Every rank keeps its process id and current step in a file of its own. These files
//! distinguish a launch that hangs from a slow one, and show where each rank stood.
//!
//! Ranks that occupy all cores starve other processes, whose time-outs have all expired when they
//! run again. The parent's own naps show whether it was starved ([`launch::Ended::starved`]), and
//! the report of a failure says so.
//!
//! The directory also marks the processes of the launch ([`portolan_driver::launch`]).

use crate::hosts;
use portolan_driver::launch::{self, Launch};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The variable that names the checks of a rank; its presence makes a process a rank.
pub const SPEC: &str = "PORTOLAN_TEST_CHECKS";
pub const DIR: &str = "PORTOLAN_TEST_DIR";
pub const RANKS: &str = "PORTOLAN_TEST_RANKS";
pub const SEED: &str = "PORTOLAN_TEST_SEED";

#[derive(Debug, Clone)]
pub struct Job {
    pub launcher: Vec<String>,
    pub ranks: usize,
    pub env: Vec<(String, String)>,
    /// The checks that the ranks run, as the value of [`SPEC`].
    pub spec: String,
    /// A shell line around the launcher, which ends by executing `"$@"`.
    pub wrap: Option<String>,
    /// Whether the report of a time-out includes what the system knows about each rank.
    pub explain: bool,
}

#[derive(Debug, Default)]
pub struct Ended {
    pub launch: launch::Ended,
    /// Checks that succeeded, with their times in seconds.
    pub done: Vec<(String, f64)>,
    pub current: Option<String>,
    pub output: String,
    pub steps: String,
    pub left: Vec<String>,
}

impl Ended {
    pub fn well(&self) -> bool {
        self.launch.code == Some(0) && self.current.is_none() && self.left.is_empty()
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
    // The ranks see the variables of the case, but not the caller's.
    launch::without_variables(&mut command);
    command.env("PORTOLAN_WATCHDOG", "10");
    command.env(SPEC, &job.spec).env(RANKS, job.ranks.to_string());
    command.envs(job.env.iter().map(|(name, value)| (name, value)));
    launch::into_files(&mut command, &dir.join("output"), None);
    command
}

#[derive(Debug, Default)]
struct Progress {
    done: Vec<(String, f64)>,
    current: Option<String>,
}

fn read_progress(dir: &Path) -> Progress {
    let mut progress = Progress::default();
    for line in fs::read_to_string(dir.join("checks")).unwrap_or_default().lines() {
        let mut words = line.split_whitespace();
        match (words.next(), words.next(), words.next()) {
            (Some("begin"), Some(name), _) => progress.current = Some(name.into()),
            (Some("end"), Some(name), Some(seconds)) => {
                progress.done.push((name.into(), seconds.parse().unwrap_or(0.0)));
                progress.current = None;
            }
            _ => {}
        }
    }
    progress
}

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

/// Runs a job. `deadline` returns the time limit of a check, or for `None` the limit of the start
/// and the end.
pub fn run(job: &Job, dir: &PathBuf, deadline: impl Fn(Option<&str>) -> Duration) -> Ended {
    let _ = fs::remove_dir_all(dir);
    fs::create_dir(dir).expect("a directory for the launch");
    let mark = format!("{DIR}={}", dir.display());
    let mut launch = match Launch::start(&mut command(job, dir), &mark) {
        Ok(launch) => launch,
        Err(e) => {
            let output = format!("cannot start {:?}: {e}", job.launcher);
            return Ended { output, ..Ended::default() };
        }
    };
    let (mut progress, mut since, mut steps) = (Progress::default(), Duration::ZERO, None);
    let launched = launch.wait(job.explain, |launch| {
        let now = read_progress(dir);
        if now.current != progress.current || now.done.len() != progress.done.len() {
            since = launch.elapsed();
        }
        progress = now;
        let overdue = launch.elapsed() - since > deadline(progress.current.as_deref());
        if overdue {
            steps = Some(read_steps(dir));
        }
        overdue
    });
    let (progress, steps) = (read_progress(dir), steps.unwrap_or_else(|| read_steps(dir)));
    let describe = |(rank, pid, step): &(String, i32, String)| {
        format!("rank {rank} (process {pid}) was at: {step}\n")
    };
    Ended {
        done: progress.done,
        current: progress.current,
        output: launch::text_of(&dir.join("output")),
        left: left_behind(&steps, job),
        steps: steps.iter().map(describe).collect::<String>() + &launched.account,
        launch: launched,
    }
}

/// Returns the library's named files in the directories of shared memory. Other jobs run at the
/// same time, so only files of this job's ranks count.
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
