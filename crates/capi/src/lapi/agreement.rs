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

use super::context::{self, Context};
use super::notices::head;
use bytemuck::{Pod, Zeroable};
use parking_lot::Mutex;
use portolan_engine::am::Am;
use portolan_engine::am::{Accept, Arrival, Handler};
use portolan_engine::error::Result;
use portolan_engine::trace::Cause;
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

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Word(u32);

#[derive(Debug, Default)]
pub(crate) struct Agreement {
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

/// Waits for the decision. Returns whether the tasks end the context together.
pub(crate) fn reach(context: &Context, engine: &Am) -> Result<bool> {
    say(context, engine, JUDGE, CALLED)?;
    let (begun, mut patient) = (Instant::now(), true);
    let decision = || context.agreement.decision.load(Ordering::Acquire);
    let what = || "the other tasks to call LAPI_Term".to_string();
    engine.wait_for(Cause::Other, &what, || {
        if patient && begun.elapsed() > PATIENCE {
            patient = false;
            say(context, engine, JUDGE, NO_PATIENCE)?;
        }
        Ok(decision() != 0)
    })?;
    Ok(decision() == TOGETHER)
}

fn say(context: &Context, engine: &Am, task: usize, word: u32) -> Result<()> {
    if task == engine.rank() {
        return hear(context, engine, task, word);
    }
    let _own = engine.observer().exclude_calls();
    engine.send_message(task, context.handlers.agreement, bytemuck::bytes_of(&Word(word)), &[])
}

fn hear(context: &Context, engine: &Am, origin: usize, word: u32) -> Result<()> {
    let agreement = &context.agreement;
    if word != CALLED && word != NO_PATIENCE {
        agreement.decision.store(word, Ordering::Release);
        return Ok(());
    }
    let (whom, decision) = {
        let mut calls = agreement.calls.lock();
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
    whom.into_iter().try_for_each(|task| say(context, engine, task, decision))
}

#[derive(Debug)]
pub(crate) struct Hear;

impl Handler for Hear {
    fn arrive(&self, engine: &Am, message: &Arrival<'_>) -> Result<Accept> {
        let (Word(word), _): (Word, _) = head(message.header, message.origin)?;
        hear(context::current()?, engine, message.origin, word)?;
        Ok(Accept::DONE)
    }
}
