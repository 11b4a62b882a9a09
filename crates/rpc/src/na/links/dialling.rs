//! Connections that are being made.
//!
//! A thread of its own connects, because a host that is down takes seconds. The first message waits
//! for it for at most [`PATIENT`], so that its call returns a quick refusal. After that the message
//! is kept, and the thread that polls sends it or fails it.
//!
//! Invariant: messages and transfers to a peer are kept in order while a connection to it is being
//! made.

use crate::failure::{Result, refuse};
use crate::na::links::listener::Opened;
use crate::na::plugin::Chunk;
use crate::na::wire::Head;
use parking_lot::{Condvar, Mutex, MutexGuard};
use portolan_base::error::{Error, ErrorKind};
use portolan_engine::core::peer::CompletionCounter;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const PATIENT: Duration = Duration::from_millis(50);

pub(super) enum Kept {
    /// A message.
    Message { head: Head, body: Vec<u8> },
    /// A part of a transfer, whose counter counts it until it is sent or has failed.
    Request { class: u16, chunk: Chunk, counter: Arc<CompletionCounter> },
}

impl Kept {
    pub fn request(class: u16, chunk: Chunk, counter: &Arc<CompletionCounter>) -> Kept {
        counter.begin();
        Kept::Request { class, chunk, counter: counter.clone() }
    }

    /// Discards what cannot be sent. A transfer fails.
    pub fn fail(self, why: &str) {
        if let Kept::Request { counter, .. } = self {
            counter.fail(Error::new(ErrorKind::Mpi, why.to_string()));
        }
    }
}

#[derive(Default)]
struct DialState {
    result: Option<Result<Opened>>,
    kept: VecDeque<Kept>,
    /// Whether no call waits any more, so the thread that polls takes the result.
    is_left: bool,
    is_closed: bool,
}

#[derive(Default)]
pub(super) struct Dial {
    state: Mutex<DialState>,
    done: Condvar,
}

impl Dial {
    fn keep(state: &mut DialState, kept: Kept) -> Result<()> {
        if state.is_closed {
            if let Kept::Request { counter, .. } = kept {
                counter.end();
            }
            refuse!(HOSTUNREACH, "the class is finalised");
        }
        state.kept.push_back(kept);
        Ok(())
    }

    /// Waits briefly for the result. If there is none, keeps a message or a transfer.
    pub fn wait(&self, kept: impl FnOnce() -> Kept) -> Result<Option<Result<Opened>>> {
        let (mut state, end) = (self.state.lock(), Instant::now() + PATIENT);
        while state.result.is_none() && !self.done.wait_until(&mut state, end).timed_out() {}
        match state.result.take() {
            Some(result) => Ok(Some(result)),
            None => {
                state.is_left = true;
                Dial::keep(&mut state, kept()).map(|()| None)
            }
        }
    }

    /// Stores the result. Returns whether the thread that polls must take it.
    pub fn finish(&self, result: Result<Opened>) -> bool {
        let mut state = self.state.lock();
        state.result = Some(result);
        self.done.notify_all();
        state.is_left
    }

    pub fn take_result(&self) -> Option<Result<Opened>> {
        self.state.lock().result.take()
    }
}

/// The connections that this process is making, by the number of the peer.
#[derive(Default)]
pub(super) struct Dialling {
    dials: Mutex<HashMap<u32, Arc<Dial>>>,
    count: AtomicUsize,
}

pub(super) struct Dials<'a> {
    all: MutexGuard<'a, HashMap<u32, Arc<Dial>>>,
    count: &'a AtomicUsize,
}

impl Dialling {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    pub fn lock(&self) -> Dials<'_> {
        Dials { all: self.dials.lock(), count: &self.count }
    }
}

impl Dials<'_> {
    pub fn get(&self, n: u32) -> Option<Arc<Dial>> {
        self.all.get(&n).cloned()
    }

    /// Keeps a message or transfer until the connection is made. Returns it if none is being made.
    pub fn keep<K: FnOnce() -> Kept>(&self, n: u32, kept: K) -> std::result::Result<Result<()>, K> {
        match self.all.get(&n) {
            Some(dial) => Ok(Dial::keep(&mut dial.state.lock(), kept())),
            None => Err(kept),
        }
    }

    pub fn begin(&mut self, n: u32) -> Arc<Dial> {
        let dial = Arc::new(Dial::default());
        self.all.insert(n, dial.clone());
        self.count.store(self.all.len(), Ordering::Release);
        dial
    }

    /// Takes what is kept for a peer. If nothing is, removes the connection from those being made.
    pub fn take_kept(&mut self, n: u32) -> VecDeque<Kept> {
        let Some(dial) = self.all.get(&n) else { return VecDeque::new() };
        let kept = std::mem::take(&mut dial.state.lock().kept);
        if kept.is_empty() {
            self.all.remove(&n);
            self.count.store(self.all.len(), Ordering::Release);
        }
        kept
    }

    /// Ends all connections being made. Returns their peers, and what is kept for each.
    pub fn close(&mut self) -> Vec<(u32, VecDeque<Kept>)> {
        let kept = self.all.drain().map(|(n, dial)| {
            let mut state = dial.state.lock();
            state.is_closed = true;
            (n, std::mem::take(&mut state.kept))
        });
        let kept = kept.collect();
        self.count.store(0, Ordering::Release);
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Failure, Status};
    use crate::na::wire::Kind;

    fn message(tag: u32) -> Kept {
        let head = Head { kind: Kind::Unexpected, class: 0, tag, word: 0 };
        Kept::Message { head, body: Vec::new() }
    }

    fn tags(kept: VecDeque<Kept>) -> Vec<u32> {
        let tag = |kept| match kept {
            Kept::Message { head, .. } => head.tag,
            Kept::Request { .. } => u32::MAX,
        };
        kept.into_iter().map(tag).collect()
    }

    fn refusal() -> Result<Opened> {
        Err(Failure::new(Status::HOSTUNREACH, "nobody"))
    }

    #[test]
    fn a_fast_result_is_that_of_the_call() {
        let dialling = Dialling::default();
        let dial = dialling.lock().begin(1);
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(!dial.finish(refusal())));
            let result = dial.wait(|| panic!("nothing is kept")).unwrap();
            assert!(matches!(result, Some(Err(_))));
        });
        assert!(dialling.lock().take_kept(1).is_empty() && dialling.is_empty());
    }

    #[test]
    fn what_waits_for_a_slow_result_stays_in_order() {
        let dialling = Dialling::default();
        let dial = dialling.lock().begin(1);
        assert!(dialling.lock().keep(2, || message(9)).is_err());
        assert!(dial.wait(|| message(0)).unwrap().is_none());
        for tag in 1..3 {
            assert!(dialling.lock().keep(1, || message(tag)).is_ok_and(|kept| kept.is_ok()));
        }
        assert!(dial.finish(refusal()), "no call waits");
        assert!(dial.take_result().is_some());
        assert_eq!(tags(dialling.lock().take_kept(1)), [0, 1, 2]);
        assert!(!dialling.is_empty(), "others may be kept meanwhile");
        assert!(dialling.lock().take_kept(1).is_empty() && dialling.is_empty());
    }

    #[test]
    fn a_closed_class_keeps_nothing() {
        let dialling = Dialling::default();
        let dial = dialling.lock().begin(1);
        let closed = dialling.lock().close();
        assert!(closed.iter().all(|(n, kept)| *n == 1 && kept.is_empty()) && closed.len() == 1);
        assert!(dialling.is_empty());
        assert!(dial.wait(|| message(0)).is_err());
    }
}
