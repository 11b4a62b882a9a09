//! Outputs that stay at the target until the origin has pulled or refused them and returns the
//! token.

use super::{ClassShared, KeptOutput, OnAnswered};
use crate::failure::Result;
use crate::hg::context::{ContextShared, Work};
use crate::hg::payload::Kept;
use crate::na::address::Peer;
use crate::na::limited::limited;
use crate::na::wire::Kind;
use portolan_engine::am::Data;
use std::sync::Arc;

impl ClassShared {
    /// Keeps an output until it is pulled, and returns the token that releases it. Returns `NOMEM`
    /// if the peer has not pulled too many others.
    pub(in crate::hg) fn promise(
        &self,
        peer: Peer,
        kept: Option<Kept>,
        context: &Arc<ContextShared>,
        then: Option<OnAnswered>,
    ) -> Result<u64> {
        let then = then.map(|then| (context.clone(), then));
        let len = kept.as_ref().map_or(0, Kept::size);
        if peer != Peer::Own {
            self.shares.begin_output(peer, len)?;
        }
        Ok(self.promised.lock().insert(KeptOutput { peer, len, _kept: kept, then }))
    }

    pub(in crate::hg) fn break_promise(&self, token: u64) {
        let gone = self.promised.lock().remove(token);
        gone.into_iter().for_each(|gone| drop(self.end_promise(gone)));
    }

    /// Frees an output that was removed from the table. Returns what runs now.
    pub(super) fn end_promise(&self, gone: KeptOutput) -> Option<(Arc<ContextShared>, OnAnswered)> {
        let KeptOutput { peer, len, _kept, then } = gone;
        drop(_kept);
        if peer != Peer::Own && self.shares.end_output(peer, len) {
            self.na.notify();
        }
        then
    }

    pub(in crate::hg) fn released(&self, from: Peer, token: u64) {
        let _handing = self.hand_over();
        let mut promised = self.promised.lock();
        if promised.get(token).is_some_and(|p| p.peer == from) {
            let gone = promised.remove(token);
            drop(promised);
            if let Some((context, then)) = gone.and_then(|gone| self.end_promise(gone)) {
                context.push(Work::Run(then));
            }
        }
    }

    pub(in crate::hg) fn release(&self, peer: Peer, token: u64) {
        let released = self.na.answer(peer, Kind::Release, token, Data::NONE);
        if let Err(failure) = released
            && !self.na.is_over()
        {
            limited!(Error, "cannot notify {peer:?} that its output was pulled: {failure}");
        }
    }
}
