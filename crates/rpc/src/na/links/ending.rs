//! The end of a class.

use super::Links;
use crate::na::class::Shared;
use portolan_engine::wait::Naps;
use std::time::{Duration, Instant};

/// Time limit for outgoing messages to be sent when the class is closed.
const LEAVING: Duration = Duration::from_secs(5);
/// Time for peers to close their side then.
const ENDING: Duration = Duration::from_secs(1);

impl Links {
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
