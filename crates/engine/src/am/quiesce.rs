//! Quiescence: no message is unsent, in flight or unhandled on any rank.
//!
//! Each rank counts the messages that it has sent, before they leave, and those that it has
//! handled, after everything that they run has ended, including the sends. If the sums over all
//! ranks are equal, and the same as in the round before, no message is under way: one that was
//! counted on one side only would have changed a sum between the two rounds.
//!
//! In a job of few ranks, messages are counted by target. The sums then state how many messages a
//! rank must have handled, and it waits for them before the next round. So there is one round for
//! each generation of messages, not one after another until they arrive. The next round confirms
//! the result if no rank has sent anything between its two counts: before the second one, every
//! rank has handled all messages that the first ones include. The earliest message that is sent
//! after its sender's second count would be caused by one that is handled after such a count, which
//! the first counts do not include. That message would have been sent even earlier.
//!
//! Before it counts, each rank sends all items that were collected before the round. Items that
//! handlers collect later show in the count of handled messages, and are sent in the next round.

use super::Am;
use super::AmState;
use crate::collective::{self, Kind, Operator};
use crate::core::handler;
use crate::error::{Result, fail};
use crate::mutation::{self, Fault};
use crate::trace::{Call, CallInfo, Cause};
use crate::wait::{Progress, Turns};
use std::sync::atomic::Ordering;

impl Am {
    /// Waits until no message is unsent (flush hooks run), in flight or unhandled on any rank,
    /// including messages that handlers send, but not those that deferral queues hold
    /// ([`super::deferral`]). Collective. Fails with `State` in any handler, or as a flush hook.
    pub fn quiesce(&self) -> Result<()> {
        self.rest(|state| state.all_handled() + state.set_aside.load(Ordering::Acquire))
    }

    /// Also waits for the messages in deferral queues. All ranks must be inside those queues.
    pub fn quiesce_deferrals(&self) -> Result<()> {
        self.rest(AmState::all_handled)
    }

    fn rest(&self, handled: impl Fn(&AmState) -> u64) -> Result<()> {
        self.observed(
            || CallInfo::new(Call::Quiesce),
            || collective::scope(Kind::Quiesce, 0, || self.until_rest(handled)),
        )
    }

    fn until_rest(&self, handled: impl Fn(&AmState) -> u64) -> Result<()> {
        let state = self.state()?;
        // Even a single rank would wait for the message of the running handler.
        self.may_wait()?;
        if handler::is_in_completion() {
            fail!(
                State,
                "a completion handler called a function that waits for all handlers, including \
                 itself; make the call outside of handlers"
            );
        }
        let (mut before, mut turns) = (None, Turns::begin());
        loop {
            self.flush_hooks(false)?;
            // Handle what has arrived before counting.
            while state.poll(self)? {}
            let mut sums = state.sent_by_target();
            sums.push(handled(state));
            mutation::window(Fault::CountedOnce);
            self.world().reduce(self, &mut sums, Operator::Sum, None)?;
            let done = sums.pop().unwrap_or_default();
            let sent: u64 = sums.iter().sum();
            let again = before == Some((sent, done)) || mutation::is(Fault::CountedOnce);
            if sent == done && again {
                return Ok(());
            }
            before = Some((sent, done));
            if sums.len() == self.size() {
                let expected = sums[self.rank()];
                let what = || format!("{expected} active messages to be handled by this rank");
                self.wait_for(Cause::Message, &what, || Ok(handled(state) >= expected))?;
                before = Some((sent, sent));
            } else if sent != done {
                turns.again(self, (sent, done), &|| {
                    format!("all messages to be handled: the ranks sent {sent} and handled {done}")
                })?;
            }
        }
    }

    /// With `aged`, for aged items only. Returns whether a hook sent anything.
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
