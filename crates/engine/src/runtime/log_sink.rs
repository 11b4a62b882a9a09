//! The destination of log lines: standard error, or a sink set by an interface.

use crate::config::Config;
use crate::message;
use log::{Level, LevelFilter, Record};
use parking_lot::RwLock;
use std::sync::Arc;

/// Takes a complete line, including the newline.
pub type Sink = Arc<dyn Fn(Level, &[u8]) + Send + Sync>;

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
    let verbose = verbose && std::env::var_os("PORTOLAN_LOG").is_none();
    let filter = if verbose { "info" } else { &config.log };
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
    // No lock is held while the sink runs, because it may set another one.
    let sink = SINK.read().clone();
    match sink {
        Some(sink) => sink(record.level(), line.as_bytes()),
        None => message::write(line.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_sink_may_set_another_one() {
        let lines = Arc::new(AtomicUsize::new(0));
        let count = |by: usize| {
            let lines = lines.clone();
            move || {
                lines.fetch_add(by, Ordering::Relaxed);
            }
        };
        let (first, second) = (count(1), count(10));
        set(Arc::new(move |_, _| {
            first();
            let second = second.clone();
            set(Arc::new(move |_, _| second()));
        }));
        (0..2).for_each(|_| write(&Record::builder().build()));
        *SINK.write() = None;
        assert_eq!(lines.load(Ordering::Relaxed), 11);
    }
}
