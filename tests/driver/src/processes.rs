//! The processes of a launch.
//!
//! Launchers start ranks in their own sessions and on hosts that have their own process ids, so
//! neither groups nor ids identify the processes of a launch. Its environment does: every launch
//! has a *mark* there, `VARIABLE=VALUE`, which all its processes inherit.

use std::fs;

/// Returns the processes that have a mark in their environment, except this one.
pub fn marked(mark: &str) -> Vec<i32> {
    let own = std::process::id() as i32;
    let has = |pid: &i32| environment(*pid).iter().any(|variable| variable == mark.as_bytes());
    all().into_iter().filter(|pid| *pid != own && has(pid)).collect()
}

fn all() -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok()).collect()
}

/// Returns a process's environment, or none if it has ended or belongs to another user.
pub fn environment(pid: i32) -> Vec<Vec<u8>> {
    let text = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    text.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect()
}

pub fn name(pid: i32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().into()
}

pub fn signal(pid: i32, signal: i32) -> bool {
    // SAFETY: `kill` accesses no memory. The caller names a process of its own launch.
    unsafe { libc::kill(pid, signal) == 0 }
}

pub fn kill_marked(mark: &str) {
    for pid in marked(mark) {
        signal(pid, libc::SIGKILL);
    }
}
