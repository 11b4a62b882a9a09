//! Callbacks that run in a row, and the short messages that they send.
//!
//! The system call that transmits a message over a socket takes more than a microsecond, most of
//! the time of a short call. Therefore the network holds the messages of a callback while the same
//! trigger has more callbacks to run ([`Plugin::hold`]), and transmits them together. A single
//! callback, and the last one of a trigger, transmit at once.
//!
//! A message is held for at most [`MAX_DELAY`] and the callback that runs then. A poll on any thread
//! and the end of a nested trigger transmit it too, so a callback may wait for an answer.

use super::class::Plugin;
use super::class::Shared;
use std::time::{Duration, Instant};

/// The time after which held messages are transmitted before the next callback runs.
const MAX_DELAY: Duration = Duration::from_micros(20);

/// The callbacks of one trigger. Dropping it transmits what is held.
pub(crate) struct Batch<'a> {
    plugin: Option<&'a dyn Plugin>,
    /// The start of the oldest callback whose messages may be held.
    since: Option<Instant>,
}

impl Shared {
    pub(crate) fn batch(&self) -> Batch<'_> {
        let plugin = self.plugin.as_deref().filter(|plugin| plugin.capabilities().holds);
        Batch { plugin, since: None }
    }
}

impl Batch<'_> {
    /// Called before each callback. `more` says whether another one follows.
    #[inline]
    pub(crate) fn next(&mut self, more: bool) {
        let Some(plugin) = self.plugin else { return };
        if self.since.is_some_and(|since| since.elapsed() > MAX_DELAY) {
            plugin.transmit();
            self.since = None;
        }
        plugin.hold(more);
        if more && self.since.is_none() {
            self.since = Some(Instant::now());
        }
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        // A callback of an outer trigger may have held messages too.
        if let Some(plugin) = self.plugin {
            plugin.hold(false);
            plugin.transmit();
        }
    }
}
