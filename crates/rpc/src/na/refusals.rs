//! Counts refused connections and logs them at most once per second, so that outsiders cannot flood
//! the log.

use parking_lot::Mutex;
use std::fmt::Display;
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
struct State {
    total: u64,
    untold: u64,
    logged: Option<Instant>,
}

#[derive(Debug, Default)]
pub(super) struct Refusals(Mutex<State>);

impl Refusals {
    pub fn add(&self, from: Option<&dyn Display>, why: &dyn Display) {
        if let Some((new, total)) = self.count(Instant::now()) {
            let from = from.map_or("a client".into(), |at| at.to_string());
            log::warn!(
                "refused {new} attempt(s) to connect, {total} in all; the last was {from}: {why}"
            );
        }
    }

    /// Counts a refusal. Returns the number not logged yet and the total if it is time to log them.
    fn count(&self, now: Instant) -> Option<(u64, u64)> {
        let mut state = self.0.lock();
        state.total += 1;
        state.untold += 1;
        if state.logged.is_some_and(|logged| now.saturating_duration_since(logged) < EVERY) {
            return None;
        }
        state.logged = Some(now);
        Some((std::mem::take(&mut state.untold), state.total))
    }

    pub(super) fn total(&self) -> u64 {
        self.0.lock().total
    }

    pub(super) fn record_rest(&self) {
        let mut state = self.0.lock();
        let (rest, total) = (std::mem::take(&mut state.untold), state.total);
        drop(state);
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
        let refusals = Refusals::default();
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        assert_eq!(refusals.count(at(0)), Some((1, 1)));
        assert_eq!((1..1000).filter_map(|ms| refusals.count(at(ms))).count(), 0);
        assert_eq!(refusals.count(at(1000)), Some((1000, 1001)));
        assert_eq!(refusals.count(at(1999)), None);
        assert_eq!(refusals.total(), 1002);
    }
}
