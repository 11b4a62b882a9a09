//! Quiescence: no message is unsent, in flight or unhandled on any rank.
//!
//! Each rank counts the messages that it has sent, before they leave, and those that it has
//! handled, after everything that they run has ended, including the sends. If the sums over all
//! ranks are equal, and the same as in the round before, no message is under way: one that was
//! counted on one side only would have changed a sum between the two rounds.
//!
//! In a job of few ranks, messages are counted by target. The sums then state how many messages a
//! rank must handle, and it waits for them before the next round. So a generation of messages takes
//! one round, instead of rounds until it has arrived. If the next round finds that nothing was sent
//! since the last one, no message is under way. Proof: let `m` be the first message that its sender
//! sends after its count of the second round. A handler sends `m`, or collects an item of it, for a
//! message `c` that is handled after that count. `c` was sent before `m`, hence before the counts
//! of the first round, because nothing was sent between the two. The target of `c` handled as many
//! messages as the sums of the first round state before it counted again, and all of them were sent
//! before those counts. So `c` was among them, which is a contradiction.
//!
//! Before it counts, each rank sends all items that were collected before the round. Items that
//! handlers collect later show in the count of handled messages, and are sent in the next round.

use super::Am;
use super::AmState;
use crate::collective::{self, Kind, Operator};
use crate::core::handler;
use portolan_base::error::{Result, fail};
use portolan_base::mutation::{self, Fault};
use portolan_base::trace::{Call, CallInfo, Cause};
use portolan_base::wait::{Progress, RepeatedWait};
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
        let (mut before, mut turns) = (None, RepeatedWait::begin());
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
            before = Some(if sums.len() == self.size() {
                let expected = sums[self.rank()];
                let what = || {
                    let done = handled(state);
                    format!("all messages to be handled: this rank handled {done} of {expected}")
                };
                self.wait_for(Cause::Message, &what, || Ok(handled(state) >= expected))?;
                // All ranks wait like this, so all these messages are handled.
                (sent, sent)
            } else {
                if sent != done {
                    turns.again(self, (sent, done), &|| {
                        format!(
                            "all messages to be handled: the ranks sent {sent} and handled {done}"
                        )
                    })?;
                }
                (sent, done)
            });
        }
    }

    /// With `aged`, for aged items only.
    pub(crate) fn flush_hooks(&self, aged: bool) -> Result<()> {
        let state = self.state()?;
        // Sending may wait, and a wait flushes again.
        if aged && state.flushing.swap(true, Ordering::Acquire) {
            return Ok(());
        }
        let hooks = state.hooks.read().clone();
        let flushed = hooks.iter().try_for_each(|hook| hook(self, aged));
        if aged {
            state.flushing.store(false, Ordering::Release);
        }
        flushed
    }
}
