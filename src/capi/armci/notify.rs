//! `armci_notify` and `armci_notify_wait`: a rank tells another one that everything it did
//! there so far is complete, and that rank waits for it.
//!
//! Both sides count. A notification is a message with its number, sent when a fence has
//! completed what came before; MPI keeps those of one rank in order. The n-th wait for a rank
//! ends when the n-th notification of that rank is here, so that no notification is lost
//! however early it comes, and a wait looks at no memory.
//!
//! A program may end ARMCI before all notifications were waited for, and start it again. MPI
//! may then give the new communicator the old one's context, and old messages with it: so a
//! notification names its life, which is later than every earlier one of its two ranks.

use super::{group_table, messages, twin, types};
use crate::capi::boundary::{guard, reported};
use crate::error::{Result, fail};
use crate::mpi::p2p;
use crate::runtime::{Engine, current};
use crate::trace::{Awaited, Cause};
use crate::wait;
use parking_lot::Mutex;
use std::os::raw::c_int;

/// Above the tags that programs use.
const TAG: i32 = 32_102;

/// What this rank and another one have told each other.
#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    sent: c_int,
    waited: c_int,
    received: c_int,
}

/// A notification, as it travels.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Notice {
    life: c_int,
    number: c_int,
}

/// Between a start and an end of ARMCI.
struct Life {
    number: c_int,
    counts: Vec<Counts>,
}

static LIFE: Mutex<Life> = Mutex::new(Life { number: 0, counts: Vec::new() });

/// Begins a life in which all counts are zero. Collective.
pub(super) fn start() -> Result<()> {
    let engine = current()?;
    let last = LIFE.lock().number;
    let all = engine.world().allgather(engine, &last)?;
    let number = all.into_iter().fold(0, c_int::max) + 1;
    *LIFE.lock() = Life { number, counts: vec![Counts::default(); engine.size()] };
    Ok(())
}

/// Changes the counts of a rank; gives what they are then, and the life that they are of.
fn count(rank: usize, change: impl FnOnce(&mut Counts)) -> Result<(Counts, c_int)> {
    let mut life = LIFE.lock();
    let number = life.number;
    match life.counts.get_mut(rank) {
        Some(counts) => {
            change(counts);
            Ok((*counts, number))
        }
        None => fail!(State, "ARMCI is not initialised"),
    }
}

fn notify(engine: &Engine, rank: usize) -> Result<c_int> {
    engine.fence(rank)?; // checks the rank, too
    let (counts, life) = count(rank, |c| c.sent = c.sent.wrapping_add(1))?;
    let notice = Notice { life, number: counts.sent };
    messages::send(engine, TAG, bytemuck::bytes_of(&notice), rank)?;
    Ok(counts.sent)
}

/// Waits; gives how many waits there were, and how many notifications came.
fn wait(engine: &Engine, rank: usize) -> Result<(c_int, c_int)> {
    engine.check_rank(rank)?;
    let (Counts { waited, .. }, life) = count(rank, |c| c.waited = c.waited.wrapping_add(1))?;
    let comm = group_table::message_comm()?;
    // Numbers wrap, so that only their distance tells which is the later one.
    let is_later = |a: c_int, b: c_int| a.wrapping_sub(b) > 0;
    let mut received = 0;
    let what = || format!("notification {waited} of rank {rank}");
    wait::until(engine, Awaited::of(Cause::Notify, rank), &what, || {
        // All that are here are taken in: the result tells how many came.
        while let Some(message) = p2p::improbe(&comm, Some(rank), Some(TAG))? {
            let mut notice = Notice { life: 0, number: 0 };
            message.receive(bytemuck::bytes_of_mut(&mut notice))?;
            count(rank, |c| {
                if notice.life == life && is_later(notice.number, c.received) {
                    c.received = notice.number;
                }
            })?;
        }
        received = count(rank, |_| ())?.0.received;
        Ok(!is_later(waited, received))
    })?;
    Ok((waited, received))
}

/// A count, or an error as a number that no count is.
fn counted(call: &'static str, body: impl FnOnce(&Engine) -> Result<c_int>) -> c_int {
    guard(call, |error| -reported(error), || body(current()?))
}

twin! {
    /// Tells `proc` that all operations of the caller on its memory so far are complete
    /// there. The result is how many notifications the caller has sent to it, this one
    /// counted; below 0 on an error.
    armci_notify / parmci_notify(proc: c_int) -> c_int {
        counted("armci_notify", |engine| notify(engine, types::rank(proc)?))
    }
}

twin! {
    /// Waits for the next notification of `proc`: for as many as this call was made for it.
    /// That number is stored in `*pval`, where that is not null; the result is how many
    /// notifications have come, below 0 on an error.
    armci_notify_wait / parmci_notify_wait(proc: c_int, pval: *mut c_int) -> c_int {
        counted("armci_notify_wait", |engine| {
            let (waited, received) = wait(engine, types::rank(proc)?)?;
            if !pval.is_null() {
                // SAFETY: the caller vouches for the place.
                unsafe { *pval = waited };
            }
            Ok(received)
        })
    }
}
