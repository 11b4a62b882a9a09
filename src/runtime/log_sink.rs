//! Where the lines of the log go: to standard error, or to what a face has set.

use log::LevelFilter;
use parking_lot::RwLock;
use std::io::{self, Write};

/// Takes a line with its end.
pub(crate) type Sink = Box<dyn Fn(&[u8]) + Send + Sync>;

static SINK: RwLock<Option<Sink>> = RwLock::new(None);

/// Sends the log elsewhere from now on.
pub(crate) fn set(sink: Sink) {
    *SINK.write() = Some(sink);
}

/// The level that a face has asked for.
static LEVEL: RwLock<Option<LevelFilter>> = RwLock::new(None);

/// Writes no more than that from now on.
pub(crate) fn set_level(level: LevelFilter) {
    *LEVEL.write() = Some(level);
    log::set_max_level(level);
}

/// What was asked for before the logger began goes on.
pub(super) fn keep_level() {
    if let Some(level) = *LEVEL.read() {
        log::set_max_level(level);
    }
}

/// What the logger writes to.
#[derive(Debug)]
pub(super) struct Lines;

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match &*SINK.read() {
            Some(sink) => sink(line),
            None => io::stderr().write_all(line)?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
