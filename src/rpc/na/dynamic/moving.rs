//! Chunks of transfers that a peer is to answer.
//!
//! Invariant: a chunk's counter has begun when it is noted, and ends when it is taken out.

use crate::error::{Error, ErrorKind};
use crate::peer::CompletionCounter;
use crate::rpc::failure::Status;
use crate::rpc::na::memory::Run;
use crate::rpc::na::wire::{Head, Kind};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A chunk that a peer is to answer.
pub(super) struct Moving {
    peer: u32,
    answer: Kind,
    counter: Arc<CompletionCounter>,
    /// Where bytes that were asked for go.
    runs: Vec<Run>,
}

/// All of them, by the token that the answer brings back.
#[derive(Default)]
pub(super) struct InMotion {
    chunks: Mutex<HashMap<u64, Moving>>,
    /// Tokens are not given out twice.
    given: AtomicU64,
}

impl InMotion {
    /// Notes a chunk; its token.
    pub(super) fn begin(
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

    /// Its message was not sent.
    pub(super) fn withdraw(&self, token: u64) {
        if let Some(moving) = self.chunks.lock().remove(&token) {
            moving.counter.end();
        }
    }

    /// What a message answers, if it was asked of that peer.
    pub(super) fn answered(&self, from: u32, head: &Head) -> Option<Moving> {
        take_answered(&mut self.chunks.lock(), from, head)
    }

    /// The peer answers none any more.
    pub(super) fn fail_of(&self, peer: u32, why: &str) {
        let mut chunks = self.chunks.lock();
        let gone: Vec<Moving> =
            chunks.extract_if(|_, moving| moving.peer == peer).map(|(_, m)| m).collect();
        drop(chunks);
        for moving in gone {
            moving.counter.fail(Error::new(ErrorKind::Mpi, why.to_string()));
        }
    }
}

/// What a message answers, if it was asked of that peer.
fn take_answered(asked: &mut HashMap<u64, Moving>, from: u32, head: &Head) -> Option<Moving> {
    let moving = asked.get(&head.word)?;
    if moving.peer != from || moving.answer != head.kind {
        return None;
    }
    asked.remove(&head.word)
}

impl Moving {
    /// Its answer has come: the bytes that were asked for, if any.
    pub(super) fn answered(self, status: Status, body: &[u8]) {
        let wanted: usize = self.runs.iter().map(|r| r.len).sum();
        if status != Status::SUCCESS || body.len() != wanted {
            let text = format!("the peer refuses: {}", status.meaning());
            self.counter.fail(Error::new(ErrorKind::Address, text));
            return;
        }
        let mut rest = body;
        for run in &self.runs {
            let (part, after) = rest.split_at(run.len);
            // SAFETY: the transfer keeps its local handle until the counter is done, which
            // is below.
            unsafe {
                let to = run.address as *mut u8;
                std::ptr::copy_nonoverlapping(part.as_ptr(), to, part.len());
            }
            rest = after;
        }
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
