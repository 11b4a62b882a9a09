//! Requests to owners of memory that await an answer: to ranks by active messages
//! ([`crate::any_memory`]), and to peers by the connections of function shipping. A request carries
//! a token, which the answer repeats.
//!
//! Invariant: only an answer of the rank or connection that was asked completes a request, once.
//! The counter of a request is incremented when the request is recorded, and decremented after its
//! removal. The bytes of an answer go only to the runs of its request.

use super::peer::CompletionCounter;
use crate::memory::runs::{Run, after, scatter, total};
use parking_lot::Mutex;
use portolan_base::error::{Error, ErrorKind};
use portolan_base::handles::Handles;
use std::sync::Arc;

#[derive(Debug)]
pub struct AwaitedAnswer {
    from: usize,
    counter: Arc<CompletionCounter>,
    into: Vec<Run>,
}

#[derive(Debug, Default)]
pub struct AwaitedAnswers(Mutex<Handles<AwaitedAnswer>>);

impl AwaitedAnswers {
    /// Records a request to a rank or connection, and returns its token. The bytes of the answer go
    /// to `into`.
    ///
    /// # Safety
    /// `into` must be valid for writes until the counter is done. Other threads may access it
    /// meanwhile.
    pub unsafe fn begin(
        &self,
        from: usize,
        counter: &Arc<CompletionCounter>,
        into: Vec<Run>,
    ) -> u64 {
        counter.begin();
        self.0.lock().insert(AwaitedAnswer { from, counter: counter.clone(), into })
    }

    /// Forgets a request that was not sent.
    pub fn withdraw(&self, token: u64) {
        if let Some(awaited) = self.0.lock().remove(token) {
            awaited.end();
        }
    }

    /// Removes the request that an answer of `from` completes, if that was asked.
    pub fn take(&self, from: usize, token: u64) -> Option<AwaitedAnswer> {
        let mut all = self.0.lock();
        all.get(token).filter(|awaited| awaited.from == from)?;
        all.remove(token)
    }

    /// Fails all requests to a connection that has ended.
    pub fn lose(&self, from: usize, why: &str) {
        let mut all = self.0.lock();
        let tokens: Vec<u64> = all
            .iter()
            .filter(|(_, awaited)| awaited.from == from)
            .map(|(token, _)| token)
            .collect();
        let gone: Vec<_> = tokens.into_iter().filter_map(|token| all.remove(token)).collect();
        drop(all);
        gone.into_iter().for_each(|awaited| awaited.fail(ErrorKind::Mpi, why));
    }
}

impl AwaitedAnswer {
    /// Returns the runs for the bytes that have not come.
    pub fn runs(&self) -> &[Run] {
        &self.into
    }

    /// Notes that the next `n` bytes are in place.
    pub fn advance(&mut self, n: usize) {
        self.into = after(&self.into, n).collect();
    }

    /// Stores the next bytes of the answer. Returns how many of `bytes` belong to it.
    pub fn store(&mut self, bytes: &[u8]) -> usize {
        // SAFETY: the caller of `begin` keeps the runs valid until the counter is done.
        let n = unsafe { scatter(bytes, self.into.iter().copied()) };
        self.advance(n);
        n
    }

    /// Completes the request with the bytes of the answer.
    pub fn fill(mut self, bytes: &[u8]) {
        if total(&self.into) != Some(bytes.len()) {
            let text = format!("an answer of {} bytes is too short or too long", bytes.len());
            return self.fail(ErrorKind::Internal, text);
        }
        self.store(bytes);
        self.end();
    }

    /// Completes a request whose bytes, if any, are in place.
    pub fn end(self) {
        self.counter.end();
    }

    pub fn fail(self, kind: ErrorKind, text: impl Into<String>) {
        self.counter.fail(Error::new(kind, text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_asked_is_answered() {
        let (all, counter) = (AwaitedAnswers::default(), Arc::new(CompletionCounter::default()));
        let mut there = [0u8; 4];
        let run = Run { address: there.as_mut_ptr() as usize, len: there.len() };
        // SAFETY: the array outlives the requests.
        let begin = |into| unsafe { all.begin(0, &counter, into) };
        let [data, cut, done, unsent] = [vec![run], vec![run], vec![], vec![run]].map(begin);
        all.withdraw(unsent);
        assert_eq!(counter.outstanding(), 3);
        assert!(all.take(1, data).is_none(), "another peer");
        assert!(all.take(0, unsent + 1).is_none(), "never asked");
        let [filled, cut] = [data, cut].map(|token| all.take(0, token).expect("it was asked"));
        assert!(all.take(0, data).is_none(), "answered before");
        all.lose(1, "another peer is gone");
        assert_eq!(counter.outstanding(), 3);
        filled.fill(&[1, 2, 3, 4]);
        assert_eq!((there, counter.outstanding()), ([1, 2, 3, 4], 2));
        cut.fill(&[9, 9, 9]);
        assert_eq!((there, counter.outstanding()), ([1, 2, 3, 4], 1));
        all.lose(0, "the peer is gone");
        assert_eq!(counter.check().unwrap_err().kind(), ErrorKind::Internal, "the first failure");
        assert!(all.take(0, done).is_none(), "given up");
    }
}
