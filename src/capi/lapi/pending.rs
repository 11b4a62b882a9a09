//! Transfers under way, and what is to happen when one is done.
//!
//! A put or get that the engine completes at once is finished in its own call. Others
//! wait here; the calls that wait or poll finish them, and so does the progress
//! thread, now and then, so that counters count while the program computes.

use super::context::{self, Context, Hook};
use super::traffic::add;
use super::types::{ComplHandler, Counter, ErrorOf, SendHandler};
use super::{counters, messages, notices};
use crate::am::Am;
use crate::am::state;
use crate::error::Result;
use crate::peer::Tally;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What is to happen when a transfer is done.
#[derive(Debug)]
pub struct Done {
    /// What it is.
    pub of: ErrorOf,
    /// The other rank.
    pub target: usize,
    /// A counter there; 0 none.
    pub tgt_cntr: u64,
    /// The origin's counter, or null.
    pub org_cntr: *const Counter,
    /// The completion counter, or null.
    pub cmpl_cntr: *const Counter,
    /// The send completion handler.
    pub sent: Option<Hook<SendHandler>>,
    /// The completion handler of a get.
    pub got: Option<Hook<ComplHandler>>,
}

// SAFETY: the counters are the user's, who keeps them until they count; they are
// atomic.
unsafe impl Send for Done {}

impl Done {
    /// Makes it happen.
    pub fn run(self, context: &'static Context, engine: &Am) -> Result<()> {
        let tallies = &context.tallies;
        match self.of {
            ErrorOf::Get => {
                add(&context.traffic(self.target).received, 1);
                tallies.received.fetch_add(1, Ordering::Release)
            }
            _ => tallies.left.fetch_add(1, Ordering::Release),
        };
        // SAFETY: the user keeps the counter until it has counted.
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
        // SAFETY: as above.
        unsafe { counters::bump(context, self.cmpl_cntr, self.target) };
        Ok(())
    }
}

/// Transfers that are not done.
#[derive(Debug, Default)]
pub struct Pending {
    list: Mutex<Vec<(Arc<Tally>, Done)>>,
    /// Those in the list and those that are being finished.
    left: AtomicUsize,
}

impl Pending {
    /// Adds one.
    pub fn add(&self, tally: Arc<Tally>, done: Done) {
        self.left.fetch_add(1, Ordering::SeqCst);
        self.list.lock().push((tally, done));
    }

    /// How many are left.
    pub fn left(&self) -> usize {
        self.left.load(Ordering::SeqCst)
    }

    /// Finishes those that are done; true if there were any.
    ///
    /// # Errors
    /// A failed transfer, told to the error handler.
    #[inline]
    pub fn advance(&self, context: &Context, engine: &Am) -> Result<bool> {
        if self.left() == 0 { Ok(false) } else { self.finish(context, engine) }
    }

    #[cold]
    fn finish(&self, context: &Context, engine: &Am) -> Result<bool> {
        // Taken out first: what is to happen may begin transfers.
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
        let live = context::current()?;
        for (tally, done) in ready {
            if let Err(error) = tally.check() {
                let text = error.detail().to_string();
                let told = context.tell(messages::TGT_ADDR_NULL, done.of, done.target, text);
                // Whichever call has come upon it: the transfer's own has returned.
                context::fatal(&told);
            }
            done.run(live, engine)?;
            self.left.fetch_sub(1, Ordering::SeqCst);
        }
        Ok(any)
    }
}

/// What the progress thread calls.
static HOOK: Mutex<Option<state::Hook>> = Mutex::new(None);

/// Has the progress thread finish transfers of whichever context there is.
pub fn hook_up(engine: &Am) -> Result<()> {
    let hook: state::Hook = Arc::new(|engine: &Am, _aged| match context::current() {
        Ok(context) => context.pending.advance(context, engine),
        Err(_) => Ok(false),
    });
    engine.add_flush_hook(hook.clone())?;
    *HOOK.lock() = Some(hook);
    Ok(())
}

/// Ends that.
pub fn unhook(engine: &Am) -> Result<()> {
    match HOOK.lock().take() {
        Some(hook) => engine.remove_flush_hook(&hook),
        None => Ok(()),
    }
}
