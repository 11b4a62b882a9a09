//! Where the lines of the log go: to standard error, or to what a face has set.

use crate::message;
use log::{Level, LevelFilter, Record};
use parking_lot::RwLock;

/// Takes a line with its end.
pub(crate) type Sink = Box<dyn Fn(Level, &[u8]) + Send + Sync>;

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

/// Writes a record of the log, in one write.
pub(super) fn write(record: &Record<'_>) {
    let line = message::of_record(record);
    match &*SINK.read() {
        Some(sink) => sink(record.level(), line.as_bytes()),
        None => message::write(line.as_bytes()),
    }
}
