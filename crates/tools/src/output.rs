//! Output of the programs. Standard output may be a full disk or a closed pipe. Texts may contain
//! names of a trace or a file, which could control the terminal, so their control characters are
//! escaped.

use std::borrow::Cow;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

static FAILED: AtomicBool = AtomicBool::new(false);

/// Escapes the characters that a terminal or a reader may interpret, other than line breaks and tabs:
/// control characters and marks of the direction of writing.
pub fn harmless(text: &str) -> Cow<'_, str> {
    let harmful = |c: char| {
        !matches!(c, '\n' | '\t')
            && (c.is_control()
                || matches!(c, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
    };
    if !text.contains(harmful) {
        return text.into();
    }
    let escape = |c: char| match harmful(c) {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(escape).collect()
}

/// Writes a text to standard output, without control characters. The first failure is reported on standard error, and
/// [`code`] returns it. It ignores a closed pipe, as `head` leaves it.
pub fn print(text: &str) {
    let mut out = io::stdout().lock();
    check(out.write_all(harmless(text).as_bytes()).and_then(|()| out.flush()));
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
    fn a_text_does_not_control_the_terminal() {
        let plain = "12 µs, é, \\ \"quoted\"\nnext line\n";
        assert!(matches!(harmless(plain), Cow::Borrowed(text) if text == plain));
        assert_eq!(
            harmless("\u{1b}]0;x\u{7}\r\u{9b}2J\u{7f}"),
            "\\u{1b}]0;x\\u{7}\\r\\u{9b}2J\\u{7f}"
        );
        assert_eq!(harmless("a\u{202e}b\n\tc"), "a\\u{202e}b\n\tc");
    }

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
