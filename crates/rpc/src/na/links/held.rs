//! Short messages that a thread has written while it held them ([`crate::na::batch`]).
//!
//! The kernel keeps them in the socket (`MSG_MORE`). It transmits them when a full segment has been
//! written, at the next message that is not held, in [`Held::transmit`], or after 200 ms. The
//! last case occurs only if a callback waits without making progress.
//!
//! Invariant: a connection with held messages is in `links`, or its thread is about to add it.

use super::link::Link;
use parking_lot::Mutex;
use portolan_engine::thread::fast_tls;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fast_tls! {
    /// The [`Held`] whose messages this thread holds, or 0.
    static HOLDING: usize = 0;
}

#[derive(Default)]
pub(super) struct Held {
    links: Mutex<Vec<Arc<Link>>>,
    any: AtomicBool,
}

impl Held {
    fn id(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Makes this thread hold its messages, or stop holding them.
    pub fn hold(&self, hold: bool) {
        HOLDING.set(if hold { self.id() } else { 0 });
    }

    pub fn is_holding(&self) -> bool {
        HOLDING.get() == self.id()
    }

    pub fn add(&self, link: &Arc<Link>) {
        let mut links = self.links.lock();
        if !links.iter().any(|held| Arc::ptr_eq(held, link)) {
            links.push(link.clone());
            self.any.store(true, Ordering::Release);
        }
    }

    pub fn transmit(&self) {
        if self.any.load(Ordering::Relaxed) && self.any.swap(false, Ordering::AcqRel) {
            let links = std::mem::take(&mut *self.links.lock());
            links.iter().for_each(|link| link.stream.transmit());
        }
    }
}
