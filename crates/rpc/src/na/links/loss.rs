//! The loss of a peer.

use super::Links;
use crate::na::address::Peer;
use crate::na::class::Shared;
use crate::na::limited::limited;
use portolan_engine::memory::shm_export;

impl Links {
    /// Ends the connections of a peer. The thread that polls then loses the peer.
    pub(super) fn break_off(&self, n: u32, why: &str) {
        for link in self.peers().connections(n) {
            limited!(
                Warn,
                "the connection of {}://{} ends: {why}",
                self.networks.name,
                link.name()
            );
            link.break_off(why.into());
        }
        self.call_poller(n);
    }

    /// Removes a peer's connections, which have ended or are given up. Its chunks and calls fail.
    pub(super) fn lose(&self, class: &Shared, n: u32) {
        let links = self.peers().lose(n);
        let broken = links.iter().find(|link| !link.is_open()).or(links.first());
        let Some(first) = broken else { return };
        let why = first.break_off("the connection has ended".into());
        log::debug!("{}://{}: {why}", self.networks.name, first.name());
        for link in &links {
            link.break_off(why.clone());
            self.networks.arrivals.poller.forget(link.descriptor());
            link.abandon(&why);
            link.stream.process().into_iter().for_each(shm_export::drop_those_of);
        }
        self.moving.fail_of(n, &why);
        class.lost(Peer::Remote(n));
    }
}
