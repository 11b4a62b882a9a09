//! Cancelled calls whose input the peer may still pull.
//!
//! The peer may be stopped, and the program may cancel one call after the other, so only the last
//! inputs are kept. The pull of another one fails at the peer with `ACCESS`.

use std::collections::VecDeque;

/// Limit on the inputs that are kept, in bytes. The last one may be longer.
const MOST_BYTES: usize = 64 << 20;

/// The calls, by their tokens, and the lengths of their inputs. The oldest one is first.
#[derive(Debug, Default)]
pub(super) struct Cancelled {
    calls: VecDeque<(u64, usize)>,
    bytes: usize,
}

impl Cancelled {
    /// Adds a call, and returns those whose input must be dropped.
    pub fn add(&mut self, token: u64, len: usize) -> Vec<u64> {
        self.calls.push_back((token, len));
        self.bytes += len;
        let mut gone = Vec::new();
        while self.bytes > MOST_BYTES && self.calls.len() > 1 {
            let Some((token, len)) = self.calls.pop_front() else { break };
            self.bytes -= len;
            gone.push(token);
        }
        gone
    }

    /// Removes a call whose input was dropped.
    pub fn remove(&mut self, token: u64) {
        let at = self.calls.iter().position(|(found, _)| *found == token);
        if let Some((_, len)) = at.and_then(|at| self.calls.remove(at)) {
            self.bytes -= len;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_inputs_are_kept() {
        let mut cancelled = Cancelled::default();
        assert_eq!(cancelled.add(1, 2 * MOST_BYTES), []);
        assert_eq!(cancelled.add(2, MOST_BYTES / 2), [1]);
        assert_eq!(cancelled.add(3, MOST_BYTES / 2), []);
        assert_eq!(cancelled.add(4, 1), [2]);
        cancelled.remove(3);
        cancelled.remove(3);
        assert_eq!(cancelled.add(5, MOST_BYTES - 1), []);
        assert_eq!(cancelled.add(6, MOST_BYTES), [4, 5]);
    }
}
