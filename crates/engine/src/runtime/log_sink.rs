//! The destination of log lines: standard error, or a sink set by an interface.

use crate::config::Config;
use crate::message;
use log::{Level, LevelFilter, Record};
use parking_lot::RwLock;

/// Takes a complete line, including the newline.
pub type Sink = Box<dyn Fn(Level, &[u8]) + Send + Sync>;

static SINK: RwLock<Option<Sink>> = RwLock::new(None);

pub fn set(sink: Sink) {
    *SINK.write() = Some(sink);
}

static LEVEL: RwLock<Option<LevelFilter>> = RwLock::new(None);

pub fn set_level(level: LevelFilter) {
    *LEVEL.write() = Some(level);
    log::set_max_level(level);
}

/// Installs the logger, unless one is installed. A level that an interface has set remains.
pub fn start(config: &Config) {
    let verbose = std::env::var("ARMCI_VERBOSE")
        .is_ok_and(|v| !matches!(v.as_str(), "" | "0" | "n" | "no" | "f" | "false"));
    let filter = if verbose && config.log == Config::default().log { "info" } else { &config.log };
    let mut logger = env_logger::Builder::new();
    logger.target(env_logger::Target::Pipe(Box::new(std::io::sink()))).format(|_, record| {
        write(record);
        Ok(())
    });
    let _ = logger.parse_filters(filter).try_init();
    if let Some(level) = *LEVEL.read() {
        log::set_max_level(level);
    }
}

fn write(record: &Record<'_>) {
    let line = message::of_record(record);
    match &*SINK.read() {
        Some(sink) => sink(record.level(), line.as_bytes()),
        None => message::write(line.as_bytes()),
    }
}
