//! The agreement of the tasks on how `LAPI_Term` ends the context.
//!
//! The tasks end the context *together*, so that every message is handled and MPI can end. But a
//! program may also abort by `LAPI_Term` and `exit` in one task, while others wait for that task.
//! IBM's `LAPI_Term` is local. So a task that has waited for [`PATIENCE`] *leaves* instead: its
//! call returns, and the engine serves the other tasks until the process exits. The status of the
//! exit then decides: the launcher ends the job for a nonzero one, and for 0 the exit waits for the
//! other tasks ([`portolan_engine::runtime::sharing::leave`]).
//!
//! Each task says to task 0 that it has called, and again when its patience ends. Task 0 decides
//! once: to end together when all have called, or to leave at the first task without patience. It
//! sends the decision to every task that has called or calls later.
//!
//! Invariant: all tasks of a context end it together, or all leave it. If they have left, the next
//! `LAPI_Init`, which is collective, ends it together.

use parking_lot::Mutex;
use portolan_base::error::Result;
use portolan_base::trace::Cause;
use portolan_engine::am::wire::read_pod;
use portolan_engine::am::{Am, Arrival, HandlerId};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long a task waits in `LAPI_Term` for tasks that have not called it.
const PATIENCE: Duration = Duration::from_secs(10);

/// The task that decides.
const JUDGE: usize = 0;

// To task 0.
const CALLED: u32 = 1;
const NO_PATIENCE: u32 = 2;
// From task 0.
const TOGETHER: u32 = 3;
const LEAVE: u32 = 4;

#[derive(Debug)]
pub(crate) struct Agreement {
    /// Of the messages, which consist of one of the words above.
    handler: HandlerId,
    /// [`TOGETHER`] or [`LEAVE`], or 0 before task 0 has decided.
    decision: AtomicU32,
    /// At task 0.
    calls: Mutex<Calls>,
}

#[derive(Debug, Default)]
struct Calls {
    tasks: Vec<usize>,
    decision: Option<u32>,
}

impl Agreement {
    pub(crate) fn new(handler: HandlerId) -> Agreement {
        Agreement { handler, decision: AtomicU32::new(0), calls: Mutex::default() }
    }

    /// Waits for the decision. Returns whether the tasks end the context together.
    pub(crate) fn reach(&self, engine: &Am) -> Result<bool> {
        self.say(engine, JUDGE, CALLED)?;
        let (begun, mut patient) = (Instant::now(), true);
        let decision = || self.decision.load(Ordering::Acquire);
        let what = || "the other tasks to call LAPI_Term".to_string();
        engine.wait_for(Cause::Other, &what, || {
            if patient && begun.elapsed() > PATIENCE {
                patient = false;
                self.say(engine, JUDGE, NO_PATIENCE)?;
            }
            Ok(decision() != 0)
        })?;
        Ok(decision() == TOGETHER)
    }

    fn say(&self, engine: &Am, task: usize, word: u32) -> Result<()> {
        if task == engine.rank() {
            return self.hear(engine, task, word);
        }
        let _own = engine.observer().exclude_calls();
        engine.send_message(task, self.handler, bytemuck::bytes_of(&word), &[])
    }

    pub(crate) fn arrive(&self, engine: &Am, message: &Arrival<'_>) -> Result<()> {
        self.hear(engine, message.origin, read_pod(message.header)?)
    }

    fn hear(&self, engine: &Am, origin: usize, word: u32) -> Result<()> {
        if word != CALLED && word != NO_PATIENCE {
            self.decision.store(word, Ordering::Release);
            return Ok(());
        }
        let (whom, decision) = {
            let mut calls = self.calls.lock();
            if word == CALLED {
                calls.tasks.push(origin);
            }
            let all = calls.tasks.len() == engine.size();
            match calls.decision {
                None if all || word == NO_PATIENCE => {
                    let decision = if all { TOGETHER } else { LEAVE };
                    calls.decision = Some(decision);
                    (calls.tasks.clone(), decision)
                }
                Some(decision) if word == CALLED => (vec![origin], decision),
                _ => return Ok(()),
            }
        };
        whom.into_iter().try_for_each(|task| self.say(engine, task, decision))
    }
}
