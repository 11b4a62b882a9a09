//! Completion of transfers.
//!
//! Calls that wait or poll finish completed transfers. So does the progress thread from time to
//! time, so that counters advance while the program computes.

use super::context::{self, Context};
use super::pending::{Done, Pending};
use super::traffic::add;
use super::types::ErrorOf;
use super::{counters, messages, notices};
use parking_lot::Mutex;
use portolan_base::error::Result;
use portolan_engine::am::Am;
use portolan_engine::core::handler;
use portolan_engine::runtime::admission;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Done {
    pub(crate) fn run(self, context: &'static Context, engine: &Am) -> Result<()> {
        let tallies = &context.tallies;
        match self.of {
            ErrorOf::Get => {
                add(&context.traffic(self.target).received, 1);
                tallies.received.fetch_add(1, Ordering::Release)
            }
            _ => tallies.left.fetch_add(1, Ordering::Release),
        };
        // SAFETY: the program keeps the counter valid until it has counted.
        unsafe { counters::bump(context, self.org_cntr, self.target) };
        if let Some(hook) = self.sent {
            hook.call(context, engine, self.target)?;
        }
        if let Some(hook) = self.got {
            let job = move |_: &Am, _| {
                let hook = hook;
                hook.call(context);
            };
            notices::run_later(context, engine, Box::new(job))?;
        }
        if self.tgt_cntr != 0 {
            let reply = self.cmpl_cntr as u64;
            return notices::count(context, engine, self.target, self.tgt_cntr, reply, self.of);
        }
        // SAFETY: the program keeps the counter valid until it has counted.
        unsafe { counters::bump(context, self.cmpl_cntr, self.target) };
        Ok(())
    }
}

impl Pending {
    /// Finishes the completed transfers. Returns whether there were any. Fails if a completion
    /// action fails, after the others have run. A failed transfer is reported to the error handler
    /// and ends the job.
    #[inline]
    pub(crate) fn advance(&self, context: &Context, engine: &Am) -> Result<bool> {
        if self.left() == 0 { Ok(false) } else { self.finish(context, engine) }
    }

    #[cold]
    fn finish(&self, context: &Context, engine: &Am) -> Result<bool> {
        let live = context::current()?;
        // The transfers leave the list first: an action may begin another, which takes the lock.
        let mut ready = Vec::new();
        if let Some(mut list) = self.list.try_lock() {
            let mut i = 0;
            while i < list.len() {
                if list[i].0.outstanding() == 0 {
                    ready.push(list.remove(i));
                } else {
                    i += 1;
                }
            }
        }
        let any = !ready.is_empty();
        let mut result = Ok(any);
        for (counter, done) in ready {
            if let Err(error) = counter.check() {
                let text = error.detail().to_string();
                let reported = context.report(messages::TGT_ADDR_NULL, done.of, done.target, text);
                // The call that began the transfer has returned, so no caller can get the error.
                context::fatal(&reported);
            }
            if let Err(error) = done.run(live, engine) {
                result = Err(error);
            }
            self.left.fetch_sub(1, Ordering::SeqCst);
        }
        result
    }
}

/// Makes progress in polling mode, so that handlers also run in calls that do not wait.
#[inline]
pub(crate) fn serve(context: &Context, engine: &Am) -> Result<()> {
    if !context.deferral.is_polling() || handler::running().is_some() {
        return Ok(());
    }
    engine.probe()?;
    context.pending.advance(context, engine)?;
    Ok(())
}

static HOOK: Mutex<Option<portolan_engine::am::Hook>> = Mutex::new(None);

/// Lets the progress thread finish transfers of the current context.
pub(crate) fn hook_up(engine: &Am) -> Result<()> {
    let hook: portolan_engine::am::Hook = Arc::new(|engine: &Am, _aged| {
        let _announced = admission::begin_call();
        match context::current() {
            Ok(context) => context.pending.advance(context, engine).map(drop),
            Err(_) => Ok(()),
        }
    });
    engine.add_flush_hook(hook.clone())?;
    *HOOK.lock() = Some(hook);
    Ok(())
}

pub(crate) fn unhook(engine: &Am) -> Result<()> {
    match HOOK.lock().take() {
        Some(hook) => engine.remove_flush_hook(&hook),
        None => Ok(()),
    }
}
