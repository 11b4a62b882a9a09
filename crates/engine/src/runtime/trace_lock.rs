//! The lock of a directory of traces. Rank 0 holds it while its engine runs, so that another job
//! does not replace the traces of this one.

use portolan_base::config::Config;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

const NAME: &str = ".lock";

/// Returns the directory of the first start. Later starts write to directories inside it.
pub(super) fn directory(config: &Config) -> &Path {
    let own = Path::new(&config.trace);
    own.parent().filter(|_| config.trace_start > 0).unwrap_or(own)
}

/// Takes the lock until the file is closed or the process ends. Fails with `WouldBlock` if another
/// process holds it.
fn take(dir: &Path) -> io::Result<File> {
    fs::create_dir_all(dir)?;
    let mut options = File::options();
    options.write(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = options.open(dir.join(NAME))?;
    // SAFETY: zeros are a valid lock of all bytes, and the descriptor is open. Network file systems
    // support this kind of lock, and forked children do not inherit it.
    let taken = unsafe {
        let mut lock: libc::flock = std::mem::zeroed();
        lock.l_type = libc::F_WRLCK as libc::c_short;
        lock.l_whence = libc::SEEK_SET as libc::c_short;
        libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &raw const lock)
    };
    if taken == 0 {
        return Ok(file);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EAGAIN) => Err(io::ErrorKind::WouldBlock.into()),
        _ => Err(error),
    }
}

/// Returns the lock of the job's directory of traces, if this rank has to take one, and whether
/// another job holds it. A directory that cannot be locked is used without a lock.
pub(super) fn of(config: &Config, rank: usize) -> (Option<File>, bool) {
    if config.trace.is_empty() || rank != 0 {
        return (None, false);
    }
    match take(directory(config)) {
        Ok(lock) => (Some(lock), false),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => (None, true),
        Err(error) => {
            log::debug!("the directory of traces is not locked: {error}");
            (None, false)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_starts_share_the_lock_of_the_first() {
        let config = |trace: &str, trace_start| Config {
            trace: trace.into(),
            trace_start,
            ..Config::default()
        };
        assert_eq!(directory(&config("traces", 0)), Path::new("traces"));
        assert_eq!(directory(&config("traces/start-2", 1)), Path::new("traces"));
    }
}
