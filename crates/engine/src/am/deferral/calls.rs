//! The operations of an interface on its deferral queue: mode, own jobs, flow control, and fences.

use super::super::state::{AmState, AwaitedSignal, Towards};
use super::super::wire::{RecordHead, RecordKind};
use super::super::{HandlerId, Signal};
use super::Am;
use super::Deferral;
use crate::core::handler;
use crate::core::peer::CompletionCounter;
use portolan_base::error::{Result, fail};
use portolan_base::thread::{self, Role};
use portolan_base::trace::{self, Cause};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Am {
    /// Sets whether the handlers of a deferral queue run in calls only. On return, if `polling`,
    /// none runs outside of calls, unless the caller is such a handler; else what the queue held
    /// has begun to run.
    pub fn set_polling(&self, deferral: &Arc<Deferral>, polling: bool) -> Result<()> {
        let state = self.state()?;
        if handler::running().is_some() {
            // Runs under the dispatcher's lock or in a signal. Later polls process the queue.
            deferral.polling.store(polling, Ordering::Release);
            return Ok(());
        }
        self.lock_handlers()?;
        deferral.polling.store(polling, Ordering::Release);
        let moved = if polling { Ok(()) } else { state.move_jobs(self, deferral) };
        self.unlock_handlers()?;
        moved?;
        if polling && thread::role() != Role::Completion {
            self.wait_for(
                Cause::Message,
                &|| "completion handlers on the completion thread".into(),
                || Ok(deferral.elsewhere.load(Ordering::Acquire) == 0),
            )?;
        }
        Ok(())
    }

    /// At once if this thread may run the handlers, otherwise in the next call of the interface.
    pub fn run_at_deferral(
        &self,
        deferral: &Deferral,
        job: impl FnOnce(&Am) + Send + 'static,
    ) -> Result<()> {
        if deferral.is_open_here() {
            job(self);
        } else {
            self.state()?.queue_job(deferral, Box::new(job));
        }
        Ok(())
    }

    /// Counts a message, and waits while `target` has sent a stop, unless a handler is running.
    #[inline]
    pub(in crate::am) fn before_deferral(&self, state: &AmState, target: usize) -> Result<()> {
        let towards = &state.towards[target];
        towards.sent.fetch_add(1, Ordering::Relaxed);
        match towards.stopped.load(Ordering::Acquire) {
            false => Ok(()),
            true => self.wait_while_stopped(towards, target),
        }
    }

    #[cold]
    #[inline(never)]
    fn wait_while_stopped(&self, towards: &Towards, target: usize) -> Result<()> {
        if handler::running().is_some() {
            return Ok(());
        }
        self.wait_for(
            trace::Awaited::of(Cause::Message, target),
            &|| format!("rank {target} to call the library, because its handlers run only in its own calls"),
            || Ok(!towards.stopped.load(Ordering::Acquire)),
        )
    }

    /// Waits, after [`Am::fence_messages`] for each target, until the messages held for the
    /// handler's deferral queue are in place. Fails with `Argument` without a queue.
    pub fn fence_deferral(&self, handler: HandlerId, targets: &[usize]) -> Result<()> {
        let state = self.state()?;
        let Some(deferral) = state.handlers.get(handler).and_then(|entry| entry.deferral.as_ref())
        else {
            fail!(Argument, "handler {} has no deferral queue", handler.0);
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
            let awaited = AwaitedSignal::Completion(Signal::Counter(counter.clone()));
            let token = state.tokens.lock().insert(awaited);
            let head = RecordHead::message(RecordKind::DeferralFence, handler, 0, 0, token);
            state.send_record(self, target, &[bytemuck::bytes_of(&head)])?;
            asked.push((target, sent));
        }
        let me = self.rank();
        let own = targets.contains(&me);
        self.wait_for(
            Cause::Message,
            &|| "targets that handle messages only in their own calls".into(),
            || Ok((!own || deferral.is_clear_of(me)) && counter.check()?),
        )?;
        for (target, sent) in asked {
            state.towards[target].fenced.fetch_max(sent, Ordering::AcqRel);
        }
        Ok(())
    }
}
