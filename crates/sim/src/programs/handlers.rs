//! The handlers of the random programs, and the totals that the ranks must reach.

use portolan::Result;
use portolan_engine::am::{Accept, Am, Arrival, Destination, Handler, HandlerId, Then};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// The expected totals of one rank's words.
#[derive(Debug, Default)]
pub struct Totals {
    pub counter: AtomicI64,
    pub small: AtomicI64,
    pub guarded: AtomicI64,
    pub added: AtomicI64,
    /// Values sent to handlers on any rank, and values handled.
    pub sent: AtomicU64,
    pub handled: AtomicU64,
    pub asked: AtomicU64,
    pub answered: AtomicU64,
    /// Sums of the items pushed and of the items received.
    pub pushed: AtomicU64,
    pub came: AtomicU64,
}

pub struct Shared(pub Vec<Totals>);

impl Shared {
    pub fn sum(&self, of: impl Fn(&Totals) -> &AtomicU64) -> u64 {
        self.0.iter().map(|totals| of(totals).load(Ordering::Relaxed)).sum()
    }
}

pub fn pattern(len: usize, value: u64) -> Vec<u8> {
    (0..len as u64).map(|i| i.wrapping_mul(7).wrapping_add(value) as u8).collect()
}

/// The handler of all messages of a program except batches.
pub struct Serves {
    pub shared: Arc<Shared>,
    pub own: std::sync::OnceLock<HandlerId>,
}

impl Serves {
    pub fn header(kind: u8, depth: u8, value: u64) -> [u8; 10] {
        let mut header = [kind, depth, 0, 0, 0, 0, 0, 0, 0, 0];
        header[2..].copy_from_slice(&value.to_le_bytes());
        header
    }
}

impl Handler for Serves {
    fn arrive(&self, engine: &Am, message: &Arrival<'_>) -> Result<Accept> {
        let (kind, depth) = (message.header[0], message.header[1]);
        let value = u64::from_le_bytes(message.header[2..10].try_into().expect("a word"));
        let totals = &self.shared.0[engine.rank()];
        let own = *self.own.get().expect("set before any message");
        match kind {
            b'a' => {
                totals.answered.fetch_add(1, Ordering::Relaxed);
                return Ok(Accept::DONE);
            }
            b'q' => {
                let answer = Serves::header(b'a', 0, value);
                engine.send_message(message.origin, own, &answer, &pattern(message.len, value))?;
            }
            _ => {}
        }
        totals.handled.fetch_add(value, Ordering::Relaxed);
        if depth > 0 {
            let next = (engine.rank() + value as usize) % engine.size();
            let data = pattern(value as usize % 3000, value);
            engine.send_message(next, own, &Serves::header(b'v', depth - 1, value), &data)?;
        }
        if let Some(data) = message.data {
            assert!(data == pattern(message.len, value), "{} bytes that came whole", message.len);
            return Ok(Accept::DONE);
        }
        let (len, origin) = (message.len, message.origin);
        let check = Box::new(move |_: &Am, data: Vec<u8>| {
            assert!(data == pattern(len, value), "{len} bytes of rank {origin} in a buffer");
        });
        let then = if value.is_multiple_of(2) { Then::Inline(check) } else { Then::Later(check) };
        Ok(Accept { to: Destination::Buffer, then })
    }
}

pub struct Takes(pub Arc<Shared>);

impl Handler for Takes {
    fn arrive(&self, engine: &Am, message: &Arrival<'_>) -> Result<Accept> {
        let data = message.data.expect("batches come whole");
        let items =
            data.chunks_exact(8).map(|item| u64::from_le_bytes(item.try_into().expect("8")));
        self.0.0[engine.rank()].came.fetch_add(items.sum(), Ordering::Relaxed);
        Ok(Accept::DONE)
    }
}
