//! Only one thread at a time connects to a peer. Threads with the same peer wait for it. Threads
//! with other peers do not wait, because a host that is down takes seconds.

use parking_lot::{Condvar, Mutex};
use smallvec::SmallVec;

/// The peers that this process is connecting to.
#[derive(Default)]
pub(super) struct Dialling {
    peers: Mutex<SmallVec<[u32; 4]>>,
    done: Condvar,
}

/// The right to connect to a peer.
pub(super) struct Turn<'a> {
    dialling: &'a Dialling,
    n: u32,
}

impl Dialling {
    /// Waits until no other thread connects to peer `n`.
    pub fn begin(&self, n: u32) -> Turn<'_> {
        let mut peers = self.peers.lock();
        while peers.contains(&n) {
            self.done.wait(&mut peers);
        }
        peers.push(n);
        Turn { dialling: self, n }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.dialling.peers.lock().retain(|n| *n != self.n);
        self.dialling.done.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    #[test]
    fn only_threads_with_the_same_peer_wait() {
        let (dialling, over) = (Dialling::default(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let turn = dialling.begin(1);
            drop(dialling.begin(2));
            scope.spawn(|| {
                let _turn = dialling.begin(1);
                assert!(over.load(Ordering::Acquire), "two connect to one peer");
            });
            std::thread::sleep(Duration::from_millis(20));
            over.store(true, Ordering::Release);
            drop(turn);
        });
        assert!(dialling.peers.lock().is_empty());
    }
}
