//! Standard output of the programs, which may be a full disk or a closed pipe.

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

static FAILED: AtomicBool = AtomicBool::new(false);

/// Writes a text to standard output. The first failure is reported on standard error, and
/// [`code`] returns it. It ignores a closed pipe, as `head` leaves it.
pub fn print(text: &str) {
    let mut out = io::stdout().lock();
    check(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}

/// Like [`print()`], for a result of another writer of standard output.
pub fn check(written: io::Result<()>) {
    if let Some(why) = failure(written)
        && !FAILED.swap(true, Ordering::Relaxed)
    {
        eprintln!("{}: {why}", env!("CARGO_BIN_NAME"));
    }
}

/// Returns the exit code of the program: `code`, or 1 if a text could not be written.
pub fn code(code: ExitCode) -> ExitCode {
    if FAILED.load(Ordering::Relaxed) { ExitCode::FAILURE } else { code }
}

fn failure(written: io::Result<()>) -> Option<String> {
    let error = written.err().filter(|error| error.kind() != ErrorKind::BrokenPipe)?;
    Some(format!("cannot write to standard output: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_a_failure_and_a_closed_pipe_is_not() {
        let mut full = std::fs::File::options().write(true).open("/dev/full").expect("Linux");
        let why = failure(full.write_all(b"text")).expect("the disk is full");
        assert!(why.starts_with("cannot write to standard output: No space left"), "{why}");
        let (reader, mut pipe) = io::pipe().expect("a pipe");
        assert_eq!(failure(pipe.write_all(b"text")), None);
        drop(reader);
        assert!(pipe.write_all(b"text").is_err());
        assert_eq!(failure(pipe.write_all(b"text")), None);
    }
}
