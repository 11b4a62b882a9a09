//! The processes of a launch.
//!
//! Launchers put ranks into sessions of their own and on hosts with process ids of their own,
//! so neither groups nor ids tell whose a process is. Its environment does: every launch has a
//! *mark* there, `VARIABLE=VALUE`, which all that it starts inherits.

use std::fs;

/// The processes that have a mark in their environment, but for this one.
pub fn marked(mark: &str) -> Vec<i32> {
    let own = std::process::id() as i32;
    let has = |pid: &i32| environment(*pid).iter().any(|variable| variable == mark.as_bytes());
    all().into_iter().filter(|pid| *pid != own && has(pid)).collect()
}

fn all() -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok()).collect()
}

/// The variables of a process; none where it has ended or is another user's.
pub fn environment(pid: i32) -> Vec<Vec<u8>> {
    let text = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    text.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect()
}

/// The name of a process's program.
pub fn name(pid: i32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().into()
}

/// Sends a signal.
pub fn signal(pid: i32, signal: i32) -> bool {
    // SAFETY: a plain system call; the caller names a process of its own launch.
    unsafe { libc::kill(pid, signal) == 0 }
}

/// Kills every process that has a mark.
pub fn kill_marked(mark: &str) {
    for pid in marked(mark) {
        signal(pid, libc::SIGKILL);
    }
}
