//! The operations of an interface on its deferral queue: mode, own jobs, flow control, and fences.

use super::super::state::{AmState, Awaited};
use super::super::wire::{RecordHead, RecordKind};
use super::super::{HandlerId, Signal};
use super::Am;
use super::Gate;
use crate::core::handler;
use crate::error::{Result, fail};
use crate::peer::CompletionCounter;
use crate::trace::{self, Cause};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Am {
    /// Sets whether the handlers of a deferral queue run in calls only or on any thread.
    ///
    /// If `polling` is true, none of them runs outside of calls on return, unless the caller is
    /// such a handler. If it is false, what the queue held has begun to run on return.
    ///
    /// # Errors
    /// Returns `State` before handlers were registered.
    pub fn set_polling(&self, gate: &Arc<Gate>, polling: bool) -> Result<()> {
        let state = self.state()?;
        if handler::running().is_some() {
            // This thread holds the dispatcher's lock already, or runs a completion signal. Later
            // polls process what the queue holds.
            gate.polling.store(polling, Ordering::Release);
            return Ok(());
        }
        self.lock_handlers()?;
        gate.polling.store(polling, Ordering::Release);
        let moved = if polling { Ok(()) } else { state.move_jobs(self, gate) };
        self.unlock_handlers()?;
        moved?;
        if polling && !handler::on_completion_thread() {
            self.wait_for(
                Cause::Message,
                &|| "completion handlers on the completion thread".into(),
                || Ok(gate.elsewhere.load(Ordering::Acquire) == 0),
            )?;
        }
        Ok(())
    }

    /// Runs a job of the interface that is not a message: at once if the calling thread may run the
    /// handlers of the queue, otherwise in the next call.
    pub fn run_at_gate(&self, gate: &Gate, job: impl FnOnce(&Am) + Send + 'static) -> Result<()> {
        if gate.is_open_here() {
            job(self);
            return Ok(());
        }
        self.state()?.queue_job(gate, Box::new(job))
    }

    /// Counts a message to a deferral queue of `target`. Waits while that target has sent a stop,
    /// unless a handler is running.
    #[inline]
    pub(in crate::am) fn before_gate(&self, state: &AmState, target: usize) -> Result<()> {
        let towards = &state.towards[target];
        towards.sent.fetch_add(1, Ordering::Relaxed);
        if !towards.stopped.load(Ordering::Acquire) || handler::running().is_some() {
            return Ok(());
        }
        self.wait_for(
            trace::Awaited::of(Cause::Message, target),
            &|| format!("rank {target} to call the library, because its handlers run only in its own calls"),
            || Ok(!towards.stopped.load(Ordering::Acquire)),
        )
    }

    /// Returns when the messages that the targets hold for the deferral queue of `handler` are in
    /// place. The caller has called [`Am::fence_messages`] for each target before.
    ///
    /// # Errors
    /// Returns `Argument` if the handler does not use a deferral queue.
    pub fn fence_gate(&self, handler: HandlerId, targets: &[usize]) -> Result<()> {
        let state = self.state()?;
        let Some(gate) = state.handlers.get(handler).and_then(|entry| entry.gate.as_ref()) else {
            fail!(Argument, "handler {} has no gate", handler.0);
        };
        let counter = Arc::new(CompletionCounter::default());
        let mut asked = Vec::new();
        for &target in targets.iter().filter(|&&target| target != self.rank()) {
            let towards = &state.towards[target];
            let sent = towards.sent.load(Ordering::Acquire);
            if sent == towards.fenced.load(Ordering::Acquire) {
                continue;
            }
            counter.begin();
            let awaited = Awaited::Completion(Signal::Counter(counter.clone()));
            let token = state.tokens.lock().insert(awaited);
            let head = RecordHead::message(RecordKind::GateFence, handler, 0, 0, token);
            state.send_record(self, target, &[bytemuck::bytes_of(&head)])?;
            asked.push((target, sent));
        }
        let me = self.rank();
        let own = targets.contains(&me);
        self.wait_for(
            Cause::Message,
            &|| "targets that handle messages only in their own calls".into(),
            || Ok((!own || gate.is_clear_of(me)) && counter.check()?),
        )?;
        for (target, sent) in asked {
            state.towards[target].fenced.fetch_max(sent, Ordering::AcqRel);
        }
        Ok(())
    }
}
