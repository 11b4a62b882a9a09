//! When no message is unsent, in flight or unhandled anywhere.
//!
//! Each rank counts the messages that it has sent and those that it has handled. A
//! message is counted as sent before it leaves and as handled after all that it
//! runs has ended, what it sends included. When the sums over all ranks agree, and
//! are the same as in the round before, nothing is under way: a message that was
//! counted on one side only while the counts were collected would have changed one
//! of the sums between the two rounds.
//!
//! Items that are collected and not sent are in no count. So before it counts, each rank sends
//! all items that were collected before the round. Items that handlers collect later in the round
//! show in the count of handled messages, and are sent in the next round.

use super::Am;
use super::AmState;
use crate::collective::{self, Kind, Operator};
use crate::core::handler;
use crate::error::{Result, fail};
use crate::mutation::{self, Fault};
use crate::wait::{Progress, Turns};
use std::sync::atomic::Ordering;

impl Am {
    /// Collective: returns when no message is unsent (flush hooks run), in flight
    /// or unhandled on any rank, messages that handlers send included; but for those that
    /// gates hold ([`super::gate`]).
    ///
    /// # Errors
    /// `State` in a handler, also in one that may wait; what a flush hook returns.
    pub fn quiesce(&self) -> Result<()> {
        self.rest(|state| state.all_handled() + state.set_aside.load(Ordering::Acquire))
    }

    /// [`Am::quiesce`] that waits for what gates hold, too. All ranks must be inside of
    /// those gates.
    ///
    /// # Errors
    /// As for `quiesce`.
    pub fn quiesce_gates(&self) -> Result<()> {
        self.rest(AmState::all_handled)
    }

    fn rest(&self, handled: impl Fn(&AmState) -> u64) -> Result<()> {
        collective::scope(Kind::Quiesce, 0, || self.until_rest(handled))
    }

    fn until_rest(&self, handled: impl Fn(&AmState) -> u64) -> Result<()> {
        let state = self.state()?;
        // Also where a rank is alone: the message whose handler this is would never be counted.
        self.may_wait()?;
        if handler::is_in_completion() {
            fail!(
                State,
                "a completion handler called a function that waits until all handlers have ended, \
                 itself too; make the call outside of handlers"
            );
        }
        let (mut before, mut turns) = (None, Turns::begin());
        loop {
            self.flush_hooks(false)?;
            // Messages that have arrived are handled before the rank counts.
            while state.poll(self)? {}
            let mut sums = [state.all_sent(), handled(state)].map(u64::cast_signed);
            mutation::window(Fault::CountedOnce);
            self.world().reduce(self, &mut sums, Operator::Sum, None)?;
            if sums[0] == sums[1] && (before == Some(sums) || mutation::is(Fault::CountedOnce)) {
                return Ok(());
            }
            before = Some(sums);
            if sums[0] != sums[1] {
                let [sent, handled] = sums;
                turns.again(self, sums, &|| {
                    format!("all messages to be handled; of {sent} that the ranks have sent {handled} are")
                })?;
            }
        }
    }

    /// Runs the flush hooks; true if one sent anything.
    pub(crate) fn flush_hooks(&self, aged: bool) -> Result<bool> {
        let state = self.state()?;
        // Sending may wait, and a wait flushes again.
        if aged && state.flushing.swap(true, Ordering::Acquire) {
            return Ok(false);
        }
        let flushed = self.run_hooks(state, aged);
        if aged {
            state.flushing.store(false, Ordering::Release);
        }
        flushed
    }

    fn run_hooks(&self, state: &AmState, aged: bool) -> Result<bool> {
        let hooks = state.hooks.read().clone();
        let mut any = false;
        for hook in hooks {
            any |= hook(self, aged)?;
        }
        Ok(any)
    }
}
