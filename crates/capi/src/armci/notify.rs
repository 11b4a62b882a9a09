//! `armci_notify` and `armci_notify_wait`. Both sides count, and the n-th wait for a rank ends when
//! its n-th notification has arrived, so an early notification is not lost. Each initialisation of
//! ARMCI begins with new counts ([`Notifications`]).

use super::types;
use crate::boundary::{export, guard, reported};
use parking_lot::Mutex;
use portolan_base::error::{Result, fail};
use portolan_base::trace::{Call, CallInfo, PathTaken};
use portolan_engine::atomics::notifications::Notifications;
use portolan_engine::runtime::{Engine, current, is_running};
use std::os::raw::c_int;
use std::sync::Arc;

#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    sent: u32,
    waited: u32,
}

struct Life {
    counts: Vec<Counts>,
    words: Arc<Notifications>,
}

static LIFE: Mutex<Option<Life>> = Mutex::new(None);

/// Collective.
pub(super) fn start() -> Result<()> {
    let engine = current()?;
    let _own = engine.observer().exclude_calls();
    let words = Arc::new(Notifications::create(engine)?);
    *LIFE.lock() = Some(Life { counts: vec![Counts::default(); engine.size()], words });
    Ok(())
}

/// Collective, unless the runtime has ended.
pub(super) fn stop() -> Result<()> {
    match LIFE.lock().take() {
        Some(life) if is_running() => {
            let engine = current()?;
            let _own = engine.observer().exclude_calls();
            life.words.free(engine)
        }
        _ => Ok(()),
    }
}

/// Changes the counts of a rank. Returns the new counts and the words.
fn count(rank: usize, change: impl FnOnce(&mut Counts)) -> Result<(Counts, Arc<Notifications>)> {
    let mut life = LIFE.lock();
    let Some(Life { counts, words }) = &mut *life else {
        fail!(State, "ARMCI is not initialised");
    };
    match counts.get_mut(rank) {
        Some(counts) => {
            change(counts);
            Ok((*counts, words.clone()))
        }
        None => fail!(Rank, "rank {rank} is outside the {} ranks of the job", counts.len()),
    }
}

fn notify(engine: &Engine, rank: usize) -> Result<c_int> {
    let (counts, words) = count(rank, |c| c.sent = c.sent.wrapping_add(1))?;
    let path = if words.is_near(rank) { PathTaken::Direct } else { PathTaken::Message };
    engine.observed(
        || CallInfo::new(Call::Notify).to(rank).by(path).moves(size_of::<u32>()),
        || words.notify(engine, rank),
    )?;
    Ok(counts.sent as c_int)
}

fn wait(engine: &Engine, rank: usize) -> Result<(c_int, c_int)> {
    let (counts, words) = count(rank, |c| c.waited = c.waited.wrapping_add(1))?;
    let received = words.wait(engine, rank, counts.waited)?;
    Ok((counts.waited as c_int, received as c_int))
}

/// Returns a count, or a negated error code.
fn counted(call: &'static str, body: impl FnOnce(&Engine) -> Result<c_int>) -> c_int {
    guard(call, |error| -reported(error), || body(current()?))
}

export! {
    armci_notify / parmci_notify(proc: c_int) -> c_int =
        counted(|engine| notify(engine, types::rank(proc)?));

    armci_notify_wait / parmci_notify_wait(
        proc: c_int, pval: *mut c_int,
    ) -> c_int = counted(|engine| {
        let rank = types::rank(proc)?;
        let (waited, received) =
            engine.observed(|| CallInfo::new(Call::NotifyWait), || wait(engine, rank))?;
        if !pval.is_null() {
            // SAFETY: by contract, `pval` is valid for writes; it is not null.
            unsafe { *pval = waited };
        }
        Ok(received)
    });
}
