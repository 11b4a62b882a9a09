//! Inputs and outputs with more data, which the upper layers transfer themselves.

use super::Origin;
use crate::na::address::Peer;

impl Origin {
    pub(in crate::hg) fn set_more(&self, peer: Peer, release: u64) {
        self.state.lock().more_output = Some((peer, release));
    }

    /// Notifies the target that the rest of the output is acquired.
    pub fn acquired(&self) {
        let more = self.state.lock().more_output.take();
        match more {
            Some((Peer::Own, token)) => self.class().released(Peer::Own, token),
            Some((peer, token)) => self.class().release(peer, token),
            None => {}
        }
    }
}
