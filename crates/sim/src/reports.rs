//! The log of the ranks: printed, or kept for a case that waits for watchdog reports.

use crate::{machine, threads};
use log::{Level, LevelFilter, Log, Metadata, Record};
use parking_lot::Mutex;
use std::collections::BTreeSet;

/// The reports that a case waits for: from the ranks in `of`, each naming the rank `named`.
#[derive(Debug)]
struct Awaited {
    of: BTreeSet<usize>,
    named: String,
    /// Whether the run ends when all of them have arrived.
    ends: bool,
    all: Vec<String>,
}

static AWAITED: Mutex<Option<Awaited>> = Mutex::new(None);

struct Reports;

impl Log for Reports {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= Level::Warn
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let text = record.args().to_string();
        let mut awaited = AWAITED.lock();
        let Some(awaits) = awaited.as_mut().filter(|_| machine::simulated()) else {
            eprintln!("[{} {}] {text}", record.level(), record.target());
            return;
        };
        let names = text.match_indices(&awaits.named).any(|(at, named)| {
            !text[at + named.len()..].starts_with(|next: char| next.is_ascii_digit())
        });
        if text.contains("has waited") && names {
            awaits.of.remove(&machine::rank());
        }
        awaits.all.push(format!("rank {}: {text}", machine::rank()));
        let over = awaits.ends && awaits.of.is_empty();
        drop(awaited);
        if over {
            threads::halt();
        }
    }

    fn flush(&self) {}
}

pub fn install() {
    log::set_logger(&Reports).expect("there is no other logger");
    log::set_max_level(LevelFilter::Warn);
}

/// If `ends` is set, the run is over when the last report arrives.
pub fn await_naming(of: impl Iterator<Item = usize>, named: usize, ends: bool) {
    let awaited =
        Awaited { of: of.collect(), named: format!("rank {named}"), ends, all: Vec::new() };
    *AWAITED.lock() = Some(awaited);
}

pub fn missing() -> (Vec<usize>, Vec<String>) {
    let awaited = AWAITED.lock();
    awaited.as_ref().map_or_else(Default::default, |awaited| {
        (awaited.of.iter().copied().collect(), awaited.all.clone())
    })
}
