//! Connections that other threads have made, for the thread that polls.

use super::listener::Opened;
use super::peers::Peers;
use super::poller::Poller;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) struct Arrivals {
    pub poller: Poller,
    pub peers: Peers,
    pub accepted: Mutex<Vec<Opened>>,
    /// The peers whose connection attempt has ended while no call waited for it.
    pub dialled: Mutex<Vec<u32>>,
    pub any: AtomicBool,
}

impl Arrivals {
    pub fn accept(&self, opened: Opened) {
        self.accepted.lock().push(opened);
        self.announce();
    }

    pub fn dialled(&self, n: u32) {
        self.dialled.lock().push(n);
        self.announce();
    }

    fn announce(&self) {
        self.any.store(true, Ordering::Release);
        self.poller.wake();
    }
}
