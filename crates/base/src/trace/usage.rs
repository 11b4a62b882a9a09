//! Processor use of the process: how much time its threads got, and how long they waited for it.

use portolan_trace_format::event::{Delays, Usage};
use std::fs;

fn used_by(whose: libc::c_int) -> libc::rusage {
    // SAFETY: zeroes are a valid `rusage`.
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `used` is a valid structure, which the call overwrites.
    unsafe { libc::getrusage(whose, &mut used) };
    used
}

/// How often the calling thread has lost its core while it could run.
pub(crate) fn involuntary_switches() -> u64 {
    used_by(libc::RUSAGE_THREAD).ru_nivcsw as u64
}

/// In bytes.
pub fn peak_memory() -> u64 {
    used_by(libc::RUSAGE_SELF).ru_maxrss as u64 * 1024
}

pub(super) fn current() -> Usage {
    let used = used_by(libc::RUSAGE_SELF);
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    let (threads, delays) = threads();
    Usage {
        user: ns(used.ru_utime),
        system: ns(used.ru_stime),
        voluntary: used.ru_nvcsw as u64,
        involuntary: used.ru_nivcsw as u64,
        threads,
        delays,
    }
}

fn threads() -> (u64, Option<Delays>) {
    let (mut threads, mut delays) = (0, None);
    let main = std::process::id().to_string();
    for entry in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        threads += 1;
        let text = fs::read_to_string(entry.path().join("schedstat")).unwrap_or_default();
        let Some((cpu, delay)) = schedstat(&text) else { continue };
        let delays = delays.get_or_insert(Delays::default());
        if entry.file_name() == *main {
            (delays.main_cpu, delays.main) = (cpu, delay);
        } else {
            delays.others += delay;
        }
    }
    (threads, delays)
}

fn schedstat(text: &str) -> Option<(u64, u64)> {
    let mut numbers = text.split_whitespace().map(str::parse);
    let (cpu, delay) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    // A kernel that does not count writes zeroes.
    (cpu > 0).then_some((cpu, delay))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri does not count processor time")]
    fn a_process_uses_processor_time() {
        let before = current();
        let begun = std::time::Instant::now();
        let mut usage = before;
        while usage.user + usage.system == before.user + before.system {
            assert!(begun.elapsed().as_secs() < 100, "{usage:?}");
            usage = current();
        }
        assert!(usage.threads >= 1);
        assert_eq!(schedstat("1000 20 3\n"), Some((1000, 20)));
        assert_eq!((schedstat("0 0 0\n"), schedstat("")), (None, None));
    }
}
