//! The destination of log lines: standard error, or a sink set by an interface.

use crate::message;
use log::{Level, LevelFilter, Record};
use parking_lot::RwLock;

/// A function that takes a complete line, including the newline.
pub type Sink = Box<dyn Fn(Level, &[u8]) + Send + Sync>;

static SINK: RwLock<Option<Sink>> = RwLock::new(None);

/// Sends the log to `sink` from now on.
pub fn set(sink: Sink) {
    *SINK.write() = Some(sink);
}

/// The level set by an interface.
static LEVEL: RwLock<Option<LevelFilter>> = RwLock::new(None);

/// Sets the maximum level of the log from now on.
pub fn set_level(level: LevelFilter) {
    *LEVEL.write() = Some(level);
    log::set_max_level(level);
}

/// Restores a level that was set before the logger was installed.
pub(super) fn keep_level() {
    if let Some(level) = *LEVEL.read() {
        log::set_max_level(level);
    }
}

/// Writes a log record in one write.
pub(super) fn write(record: &Record<'_>) {
    let line = message::of_record(record);
    match &*SINK.read() {
        Some(sink) => sink(record.level(), line.as_bytes()),
        None => message::write(line.as_bytes()),
    }
}
