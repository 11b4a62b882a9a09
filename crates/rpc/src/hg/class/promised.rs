//! Outputs that stay at the target until the origin has pulled or refused them and returns the
//! token.

use super::{ClassShared, OnAnswered, Promised};
use crate::hg::context::{ContextShared, Work};
use crate::hg::payload::Kept;
use crate::na::address::Peer;
use crate::na::wire::Kind;
use portolan_engine::am::Data;
use std::sync::Arc;

impl ClassShared {
    /// Keeps an output until it is pulled, and returns the token that releases it.
    pub(in crate::hg) fn promise(
        &self,
        peer: Peer,
        kept: Option<Kept>,
        context: &Arc<ContextShared>,
        then: Option<OnAnswered>,
    ) -> u64 {
        let then = then.map(|then| (context.clone(), then));
        self.promised.lock().insert(Promised { peer, _kept: kept, then })
    }

    pub(in crate::hg) fn break_promise(&self, token: u64) {
        self.promised.lock().remove(token);
    }

    pub(in crate::hg) fn released(&self, from: Peer, token: u64) {
        let _handing = self.hand_over();
        let mut promised = self.promised.lock();
        if promised.get(token).is_some_and(|p| p.peer == from) {
            let gone = promised.remove(token);
            drop(promised);
            if let Some((context, then)) = gone.and_then(|gone| gone.then) {
                context.push(Work::Run(then));
            }
        }
    }

    pub(in crate::hg) fn release(&self, peer: Peer, token: u64) {
        let released = self.na.shared.answer(peer, Kind::Release, token, Data::NONE);
        if let Err(failure) = released
            && !self.na.shared.is_over()
        {
            log::error!("cannot notify {peer:?} that its output was pulled: {failure}");
        }
    }
}
