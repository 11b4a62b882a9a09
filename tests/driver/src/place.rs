//! Describes the ranks of a launch: host, state, and the calls of each thread. The calls come from
//! gdb if it is installed, and otherwise from what the kernel reports. Ranks that handle SIGUSR1
//! get that signal first, because the library then prints its own report to the rank's standard
//! error.

use super::processes;
use super::system::on_path;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

const RANK_VARIABLES: [&str; 2] = ["PMI_RANK", "OMPI_COMM_WORLD_RANK"];
/// Programs that wrap a rank.
const AROUND: [&str; 4] = ["sh", "bash", "timeout", "env"];

pub fn account(mark: &str) -> String {
    let mut ranks: Vec<(u32, i32)> = processes::marked(mark)
        .into_iter()
        .filter_map(|pid| Some((rank_of(pid)?, pid)))
        .filter(|(_, pid)| !AROUND.contains(&processes::name(*pid).as_str()))
        .collect();
    ranks.sort_unstable();
    if ranks.is_empty() {
        return "no rank is running\n".into();
    }
    let mut asked = false;
    for &(_, pid) in &ranks {
        asked |= answers(pid) && processes::signal(pid, libc::SIGUSR1);
    }
    if asked {
        std::thread::sleep(Duration::from_secs(1));
    }
    ranks.iter().map(|&(rank, pid)| describe(rank, pid)).collect()
}

fn rank_of(pid: i32) -> Option<u32> {
    processes::environment(pid).iter().find_map(|variable| {
        let (name, value) = std::str::from_utf8(variable).ok()?.split_once('=')?;
        if RANK_VARIABLES.contains(&name) { value.parse().ok() } else { None }
    })
}

fn answers(pid: i32) -> bool {
    let caught = u64::from_str_radix(&field(&format!("/proc/{pid}/status"), "SigCgt"), 16);
    caught.is_ok_and(|mask| mask >> (libc::SIGUSR1 - 1) & 1 == 1)
}

/// Returns the text after `name:` in a file of /proc.
fn field(file: &str, name: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.unwrap_or_default().trim().into()
}

fn first(file: &str) -> String {
    fs::read_to_string(file).unwrap_or_default().trim_end().into()
}

fn cut(text: &str, most: usize) -> &str {
    &text[..text.char_indices().nth(most).map_or(text.len(), |(at, _)| at)]
}

fn output(program: &str, args: &[&str]) -> String {
    let result =
        Command::new(program).args(args).stdin(Stdio::null()).stderr(Stdio::null()).output();
    result.map_or_else(|_| String::new(), |o| String::from_utf8_lossy(&o.stdout).into_owned())
}

fn describe(rank: u32, pid: i32) -> String {
    let status = format!("/proc/{pid}/status");
    let ids = field(&status, "NSpid");
    let Some(own_id) = ids.split_whitespace().next_back() else {
        return format!("rank {rank} has ended\n");
    };
    let id = pid.to_string();
    let host = match output("nsenter", &["-t", &id, "-u", "hostname"]) {
        none if none.is_empty() => first("/proc/sys/kernel/hostname"),
        name => name.trim_end().into(),
    };
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = String::from_utf8_lossy(&words).replace('\0', " ");
    let state = field(&status, "State");
    let mut text =
        format!("rank {rank} on {host}, process {own_id}: {state}, {}\n", cut(&words, 150));
    if on_path("gdb") {
        let args =
            ["-k", "2", "20", "gdb", "-nx", "-batch", "-p", &id, "-ex", "thread apply all bt 14"];
        let lines = output("timeout", &args);
        for line in lines.lines().filter(|l| l.starts_with('#') || l.starts_with("Thread")) {
            text += &format!("  {}\n", cut(line, 170));
        }
        return text;
    }
    for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let dir = task.path().display().to_string();
        let call = first(&format!("{dir}/syscall"));
        text += &format!(
            "  thread {} {}: {}, waits in {}, system call {}\n",
            task.file_name().to_string_lossy(),
            first(&format!("{dir}/comm")),
            field(&format!("{dir}/status"), "State"),
            first(&format!("{dir}/wchan")),
            call.split(' ').next().unwrap_or_default()
        );
        for line in first(&format!("{dir}/stack")).lines().take(6) {
            text += &format!("    {line}\n");
        }
    }
    text
}
