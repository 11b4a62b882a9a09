//! The destination of log lines: standard error, or a sink set by an interface.
//!
//! The logger is installed once, by the first engine or the first network without MPI. An error
//! before that ([`report`]) has no logger, but goes to the same destination. The level that an
//! interface has set applies to both.

use log::{Level, LevelFilter, Record};
use parking_lot::RwLock;
use portolan_base::config::Config;
use portolan_base::process;
use portolan_base::process::message;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Takes a complete line, including the newline.
pub type Sink = Arc<dyn Fn(Level, &[u8]) + Send + Sync>;

static SINK: RwLock<Option<Sink>> = RwLock::new(None);

pub fn set(sink: Sink) {
    *SINK.write() = Some(sink);
}

/// The level that an interface has set. Not behind a lock, because a forked child reads it.
static LEVEL: AtomicUsize = AtomicUsize::new(LevelFilter::Trace as usize);
static INSTALLED: AtomicBool = AtomicBool::new(false);

pub fn set_level(level: LevelFilter) {
    LEVEL.store(level as usize, Ordering::Relaxed);
    log::set_max_level(level);
}

fn level() -> LevelFilter {
    let level = LEVEL.load(Ordering::Relaxed);
    LevelFilter::iter().find(|&filter| filter as usize == level).unwrap_or(LevelFilter::Trace)
}

/// Returns whether the `log` macros reach the destination.
pub fn is_installed() -> bool {
    INSTALLED.load(Ordering::Acquire)
}

/// Writes an error without the logger, unless the level excludes errors. Takes no lock in a forked
/// child, which inherits locks of threads that it does not have.
pub fn report(text: &str) {
    if level() < Level::Error {
        return;
    }
    if process::is_forked() {
        return message::say(text);
    }
    let args = format_args!("{text}");
    write(&Record::builder().level(Level::Error).target("portolan").args(args).build());
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
    log::set_max_level(log::max_level().min(level()));
    INSTALLED.store(true, Ordering::Release);
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
