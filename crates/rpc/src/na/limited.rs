//! Limits the log lines that a peer can cause to one per second for each place in the code, so that
//! peers cannot flood the log. The next line states how many were left out, and the end of a class
//! logs the counts that no line has stated.
//!
//! Invariant: every line of this crate at the level of information or above that a message or
//! connection of another process can cause goes through a [`Limit`]. Lines of the levels debug and
//! trace are for developers and are not limited.

use parking_lot::Mutex;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct LineState {
    /// The number of lines left out since the last one.
    omitted: u64,
    logged: Option<Instant>,
    is_known: bool,
}

#[derive(Debug)]
pub(crate) struct Limit(Mutex<LineState>);

/// The limits of the macro [`limited`] that have left out lines.
static OMITTING: Mutex<Vec<(&'static str, &'static Limit)>> = Mutex::new(Vec::new());

impl Limit {
    pub const fn new() -> Limit {
        Limit(Mutex::new(LineState { omitted: 0, logged: None, is_known: false }))
    }

    /// Counts a line. Returns the number of lines left out since the last one if it is time for
    /// this one.
    fn count(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock();
        if state.logged.is_some_and(|logged| now.saturating_duration_since(logged) < EVERY) {
            state.omitted += 1;
            return None;
        }
        state.logged = Some(now);
        Some(std::mem::take(&mut state.omitted))
    }

    /// Counts a line of the code at `site`, like [`Limit::count`].
    pub fn admit(&'static self, site: &'static str) -> Option<Omitted> {
        let admitted = self.count(Instant::now());
        if admitted.is_none() && !std::mem::replace(&mut self.0.lock().is_known, true) {
            OMITTING.lock().push((site, self));
        }
        admitted.map(Omitted)
    }

    fn take_omitted(&self) -> u64 {
        std::mem::take(&mut self.0.lock().omitted)
    }
}

/// The end of a line: the number of lines left out before it.
pub(crate) struct Omitted(u64);

impl fmt::Display for Omitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            omitted => write!(f, " ({omitted} similar lines before this one were left out)"),
        }
    }
}

/// Logs a line like `log::warn!` or `log::error!` (`Warn`, `Error`), at most once per second. The
/// arguments are evaluated only if the line is logged.
macro_rules! limited {
    ($level:ident, $($text:tt)+) => {{
        static LIMIT: $crate::na::limited::Limit = $crate::na::limited::Limit::new();
        if let Some(omitted) = LIMIT.admit(concat!(module_path!(), ":", line!())) {
            log::log!(log::Level::$level, "{}{omitted}", format_args!($($text)+));
        }
    }};
}
pub(crate) use limited;

/// Logs how many lines were left out and not counted in a later line.
pub(crate) fn record_omitted() {
    let all: Vec<_> =
        OMITTING.lock().iter().map(|(at, limit)| (*at, limit.take_omitted())).collect();
    for (site, omitted) in all.into_iter().filter(|(_, omitted)| *omitted > 0) {
        log::warn!("{omitted} more lines of {site} were left out");
    }
}

/// Counts and logs the refused connections of a class.
#[derive(Debug)]
pub(super) struct Refusals {
    total: AtomicU64,
    limit: Limit,
}

impl Default for Refusals {
    fn default() -> Refusals {
        Refusals { total: AtomicU64::new(0), limit: Limit::new() }
    }
}

impl Refusals {
    pub fn add(&self, why: &dyn fmt::Display) {
        let total = self.total.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(omitted) = self.limit.count(Instant::now()) {
            let new = omitted + 1;
            log::warn!(
                "refused {new} attempt(s) to connect, {total} in all; the last was a client: {why}"
            );
        }
    }

    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    pub fn record_rest(&self) {
        let (rest, total) = (self.limit.take_omitted(), self.total());
        if rest > 0 {
            log::warn!("refused {rest} more attempt(s) to connect, {total} in all");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_counted_and_one_a_second_is_logged() {
        let limit = Limit::new();
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        assert_eq!(limit.count(at(0)), Some(0));
        assert_eq!((1..1000).filter_map(|ms| limit.count(at(ms))).count(), 0);
        assert_eq!(limit.count(at(1000)), Some(999));
        assert_eq!(limit.count(at(1999)), None);
        assert_eq!(limit.take_omitted(), 1);
        assert_eq!(limit.count(at(2000)), Some(0));
    }

    #[test]
    fn what_is_left_out_is_not_formatted_and_known_at_the_end() {
        let mut formatted = 0;
        for _ in 0..100 {
            limited!(Debug, "line {}", {
                formatted += 1;
                formatted
            });
        }
        // The loop may cross the end of a second.
        assert!(formatted < 50, "{formatted}");
        let here = |(site, _): &&(&str, &Limit)| site.contains("limited::tests");
        let omitted = OMITTING.lock().iter().find(here).map(|(_, limit)| limit.take_omitted());
        assert!(omitted.is_some_and(|omitted| omitted > 0 && omitted < 100));
    }
}
