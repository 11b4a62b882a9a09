//! Descriptions of what is pending on this rank. A peer's lock is only tried, because another
//! thread may hold it for long and a report must not wait.

use super::Am;
use crate::core::peer::Peer;
use crate::path::Path;

const MOST: usize = 8;

fn towards(rank: usize, peer: &Peer, windows: bool) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(sent) = peer.sent.try_lock() {
        let count = sent.count.saturating_sub(peer.confirmed());
        if count > 0 {
            parts.push(format!("{count} requests ({} bytes) unconfirmed", peer.in_flight(&sent)));
        }
    }
    if windows {
        parts.push("window operations unfinished".into());
    }
    let implicit = peer.used_implicit().map_or(0, |counter| counter.outstanding());
    if implicit > 0 {
        parts.push(format!("{implicit} operations without handle"));
    }
    (!parts.is_empty()).then(|| format!("towards rank {rank}: {}", parts.join(", ")))
}

impl Am {
    pub fn pending(&self) -> String {
        let windows = |rank| self.peers().pending(rank) & Path::Rma.pending_bit() != 0;
        let used = self.peers().iter();
        let mut all: Vec<String> =
            used.filter_map(|(rank, peer)| towards(rank, peer, windows(rank))).collect();
        if all.len() > MOST {
            let more = all.len() - MOST;
            all.truncate(MOST);
            all.push(format!("and towards {more} more ranks"));
        }
        match self.outstanding() {
            0 => {}
            n => all.push(format!("{n} MPI requests outstanding")),
        }
        all.extend(self.pending_messages());
        if all.is_empty() { "nothing".into() } else { all.join("; ") }
    }
}
