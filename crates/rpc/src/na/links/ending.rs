//! The ends of connections: of one peer, and of all when the class ends.

use super::Links;
use crate::na::address::Peer;
use crate::na::class::Shared;
use crate::na::limited::limited;
use portolan_base::wait::Naps;
use portolan_engine::memory::shm_export;
use std::time::{Duration, Instant};

/// Time limit for outgoing messages to be sent when the class is closed.
const LEAVING: Duration = Duration::from_secs(5);
/// Time for peers to close their side then.
const ENDING: Duration = Duration::from_secs(1);

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
            self.networks.arrivals.poller.forget(link.stream.descriptor());
            link.abandon(&why);
            link.stream.process().into_iter().for_each(shm_export::drop_those_of);
        }
        self.awaited.lose(n as usize, &why);
        class.lost(Peer::Remote(n));
    }

    /// Sends what waits, ends the connections, and gives the peers time to end them too.
    pub(super) fn end(&self, class: &Shared) {
        self.networks.tcp.iter().for_each(|tcp| tcp.listening().close());
        self.networks.sm.iter().for_each(|sm| sm.listening().close());
        let closed = self.dialling.lock().close();
        let kept = closed.into_iter().flat_map(|(_, kept)| kept);
        kept.for_each(|kept| kept.fail("the class is finalised"));
        let mut polling = self.polling.lock();
        for opened in std::mem::take(&mut *self.networks.arrivals.accepted.lock()) {
            self.add(class, opened, true);
        }
        let links = self.peers().all();
        let begun = Instant::now();
        let mut naps = Naps::new(Duration::from_micros(20), Duration::from_millis(1));
        let mut ended = None;
        loop {
            let mut open = 0;
            for link in links.iter().filter(|link| link.is_open()) {
                // Incoming bytes are discarded, but their senders wait until they are read.
                match link.leave(&mut polling.buffer, begun.elapsed() > LEAVING) {
                    Ok(true) => {}
                    Ok(false) => open += 1,
                    Err(why) => drop(link.break_off(why)),
                }
            }
            let all_sent = links.iter().all(|link| link.has_left() || !link.is_open());
            if all_sent && ended.is_none() {
                ended = Some(Instant::now());
            }
            if open == 0 || ended.is_some_and(|ended| ended.elapsed() > ENDING) {
                break;
            }
            std::thread::sleep(naps.take());
        }
        drop(polling);
        links.iter().for_each(|link| self.lose(class, link.number()));
    }
}
