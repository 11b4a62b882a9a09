//! Chunks of transfers that await the peer's reply.
//!
//! Invariant: a chunk's counter is incremented when it is recorded, and decremented after its
//! removal.

use crate::failure::Status;
use crate::na::memory::Run;
use crate::na::wire::{Head, Kind};
use parking_lot::Mutex;
use portolan_engine::core::peer::CompletionCounter;
use portolan_engine::error::{Error, ErrorKind};
use portolan_engine::memory::runs::scatter;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) struct Moving {
    peer: u32,
    answer: Kind,
    counter: Arc<CompletionCounter>,
    /// The destination of the bytes of a get.
    runs: Vec<Run>,
}

/// All such chunks, by the token that the reply carries.
#[derive(Default)]
pub(super) struct InMotion {
    chunks: Mutex<HashMap<u64, Moving>>,
    /// The last token issued; tokens are never reused.
    given: AtomicU64,
}

impl InMotion {
    pub fn begin(
        &self,
        peer: u32,
        answer: Kind,
        counter: &Arc<CompletionCounter>,
        runs: Vec<Run>,
    ) -> u64 {
        let token = self.given.fetch_add(1, Ordering::Relaxed) + 1;
        counter.begin();
        let moving = Moving { peer, answer, counter: counter.clone(), runs };
        self.chunks.lock().insert(token, moving);
        token
    }

    pub(super) fn withdraw(&self, token: u64) {
        if let Some(moving) = self.chunks.lock().remove(&token) {
            moving.counter.end();
        }
    }

    /// Removes the chunk that a message from `from` answers, if that peer was asked for it.
    pub(super) fn answered(&self, from: u32, head: &Head) -> Option<Moving> {
        take_answered(&mut self.chunks.lock(), from, head)
    }

    pub(super) fn fail_of(&self, peer: u32, why: &str) {
        let mut chunks = self.chunks.lock();
        let gone: Vec<Moving> =
            chunks.extract_if(|_, moving| moving.peer == peer).map(|(_, m)| m).collect();
        drop(chunks);
        gone.into_iter().for_each(|moving| moving.fail(why));
    }
}

fn take_answered(asked: &mut HashMap<u64, Moving>, from: u32, head: &Head) -> Option<Moving> {
    let moving = asked.get(&head.word)?;
    if moving.peer != from || moving.answer != head.kind {
        return None;
    }
    asked.remove(&head.word)
}

impl Moving {
    pub(super) fn runs(&self) -> &[Run] {
        &self.runs
    }

    pub(super) fn complete(self) {
        self.counter.end();
    }

    pub(super) fn fail(self, why: &str) {
        self.counter.fail(Error::new(ErrorKind::Mpi, why.to_string()));
    }

    /// Completes the chunk with the peer's status and, for a get, the requested bytes.
    pub(super) fn answered(self, status: Status, body: &[u8]) {
        let wanted: usize = self.runs.iter().map(|r| r.len).sum();
        if status != Status::SUCCESS || body.len() != wanted {
            let text = format!("the peer refuses: {}", status.meaning());
            let kind = match status {
                Status::ACCESS => ErrorKind::Handle,
                _ => ErrorKind::Address,
            };
            self.counter.fail(Error::new(kind, text));
            return;
        }
        // SAFETY: the transfer keeps its local handle until the counter is done, below.
        unsafe { scatter(body, self.runs) };
        self.counter.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_asked_is_answered() {
        let (asked, counter) = (InMotion::default(), Arc::new(CompletionCounter::default()));
        let [data, done] =
            [Kind::GetData, Kind::PutDone].map(|kind| asked.begin(0, kind, &counter, Vec::new()));
        let head = |kind, word| Head { kind, class: 0, tag: 0, word };
        assert!(asked.answered(1, &head(Kind::GetData, data)).is_none(), "another peer");
        assert!(asked.answered(0, &head(Kind::PutDone, data)).is_none(), "another kind");
        assert!(asked.answered(0, &head(Kind::GetData, done + 1)).is_none(), "never asked");
        let moving = asked.answered(0, &head(Kind::GetData, data)).expect("it was asked");
        assert!(asked.answered(0, &head(Kind::GetData, data)).is_none(), "answered before");
        assert_eq!(counter.outstanding(), 2);
        asked.fail_of(1, "another peer is gone");
        assert_eq!(counter.outstanding(), 2);
        asked.fail_of(0, "the peer is gone");
        assert_eq!(counter.outstanding(), 1);
        moving.answered(Status::SUCCESS, &[]);
        assert!(counter.check().is_err());
        assert!(asked.answered(0, &head(Kind::PutDone, done)).is_none(), "given up");
    }
}
