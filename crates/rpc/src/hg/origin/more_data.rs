//! Inputs and outputs with more data, which the upper layers transfer themselves.

use super::Origin;
use crate::na::address::Peer;

impl Origin {
    /// Sets whether the target acquires more data before it runs the call.
    pub fn set_more_input(&self, more: bool) {
        self.state.lock().more_input = more;
    }

    pub(in crate::hg) fn set_more(&self, peer: Peer, release: u64) {
        self.state.lock().more_output = Some((peer, release));
    }

    /// Returns whether the output has more data to acquire.
    pub fn has_more_output(&self) -> bool {
        self.state.lock().more_output.is_some()
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
