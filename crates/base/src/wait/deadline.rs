//! The time of a wait that ends without its event.

use std::time::{Duration, Instant};

/// Most waits end immediately, so the clock is first read late, and the timeout counts from that
/// reading.
#[derive(Debug)]
pub struct Deadline {
    timeout: Duration,
    /// `None` until the clock is first read; the inner `None` means no deadline.
    end: Option<Option<Instant>>,
}

impl Deadline {
    pub fn after(timeout: Duration) -> Deadline {
        Deadline { timeout, end: None }
    }

    /// Returns a deadline no later than this one and at most `time` from now.
    pub fn within(&mut self, time: Duration) -> Deadline {
        Deadline::after(self.left().min(time))
    }

    pub fn is_now(&self) -> bool {
        self.timeout.is_zero()
    }

    /// Returns the remaining time, or `MAX` if there is no deadline.
    pub fn left(&mut self) -> Duration {
        let now = Instant::now();
        let end = *self.end.get_or_insert_with(|| now.checked_add(self.timeout));
        end.map_or(Duration::MAX, |end| end.saturating_duration_since(now))
    }

    pub fn is_over(&mut self) -> bool {
        self.is_now() || self.left().is_zero()
    }
}
