//! `armci_notify` and `armci_notify_wait`: a rank notifies another rank that all its operations
//! there so far are complete, and the other rank waits for the notification.
//!
//! Both sides count, and the n-th wait for a rank ends when the n-th notification of that rank has
//! arrived. So an early notification is not lost. A rank of the same node is notified through
//! shared words ([`NodeNotifications`]), and another rank by a message with the number. MPI keeps
//! the messages of one rank in order. In both cases a fence has completed the earlier operations.
//!
//! A program may finalise ARMCI before all notifications were waited for, and initialise it again.
//! MPI may then give the new communicator the old one's context, and deliver old messages there. So
//! each message carries the number of its `Life`, which is greater than all earlier numbers of its
//! two ranks. Each `Life` has words of its own.

use super::{group_table, messages, twin, types};
use crate::boundary::{guard, reported};
use parking_lot::Mutex;
use portolan_engine::atomics::node_notifications::NodeNotifications;
use portolan_engine::error::{Result, fail};
use portolan_engine::mpi::p2p;
use portolan_engine::runtime::{Engine, current};
use portolan_engine::trace::{Awaited, Call, CallInfo, Cause, PathTaken};
use portolan_engine::wait;
use std::os::raw::c_int;
use std::sync::Arc;

/// Message tag, above the tags that programs use.
const TAG: i32 = 32_102;

/// Counts of the notifications between this rank and another one.
#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    sent: c_int,
    waited: c_int,
    received: c_int,
}

/// A notification in its wire format.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Notice {
    life: c_int,
    number: c_int,
}

/// The state between one initialisation and finalisation of ARMCI.
struct Life {
    number: c_int,
    counts: Vec<Counts>,
    /// The words of this node, if it has them.
    near: Option<Arc<NodeNotifications>>,
}

static LIFE: Mutex<Life> = Mutex::new(Life { number: 0, counts: Vec::new(), near: None });

/// Begins a new `Life` with all counts at zero. Collective.
pub(super) fn start() -> Result<()> {
    let engine = current()?;
    let _own = engine.observer().exclude_calls();
    let last = LIFE.lock().number;
    let all = engine.world().allgather(engine, &last)?;
    let number = all.into_iter().fold(0, c_int::max) + 1;
    let near = NodeNotifications::create(engine, engine)?.map(Arc::new);
    *LIFE.lock() = Life { number, counts: vec![Counts::default(); engine.size()], near };
    Ok(())
}

/// Ends the `Life`.
pub(super) fn stop() {
    LIFE.lock().near = None;
}

/// Returns the words through which this rank and `rank` notify each other, if there are any.
fn near(rank: usize) -> Option<Arc<NodeNotifications>> {
    LIFE.lock().near.clone().filter(|near| near.reaches(rank))
}

/// Changes the counts of a rank. Returns the new counts and the number of the current `Life`.
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
    let near = near(rank);
    let path = if near.is_some() { PathTaken::Direct } else { PathTaken::Message };
    let call_info = CallInfo::new(Call::Notify).to(rank).by(path);
    engine.observed(
        || call_info.moves(size_of::<Notice>()),
        || {
            engine.fence(rank)?; // also checks the rank
            let (counts, life) = count(rank, |c| c.sent = c.sent.wrapping_add(1))?;
            if let Some(near) = near {
                near.notify(rank, counts.sent as u32);
                return Ok(counts.sent);
            }
            let notice = Notice { life, number: counts.sent };
            messages::send(engine, TAG, bytemuck::bytes_of(&notice), rank)?;
            Ok(counts.sent)
        },
    )
}

/// Waits for the next notification of `rank`. Returns the number of waits so far and the number of
/// notifications received.
fn wait(engine: &Engine, rank: usize) -> Result<(c_int, c_int)> {
    engine.check_rank(rank)?;
    let (Counts { waited, .. }, life) = count(rank, |c| c.waited = c.waited.wrapping_add(1))?;
    if let Some(near) = near(rank) {
        return Ok((waited, near.wait(engine, rank, waited as u32)? as c_int));
    }
    let comm = group_table::message_comm()?;
    // Numbers wrap, so their difference decides which one is later.
    let is_later = |a: c_int, b: c_int| a.wrapping_sub(b) > 0;
    let mut received = 0;
    let what = || format!("notification {waited} of rank {rank}");
    wait::until(engine, Awaited::of(Cause::Notify, rank), &what, || {
        // Receive every notification that has arrived, because the result counts them all.
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

/// Returns a count, or a negated error code, which cannot be mistaken for a count.
fn counted(call: &'static str, body: impl FnOnce(&Engine) -> Result<c_int>) -> c_int {
    guard(call, |error| -reported(error), || body(current()?))
}

twin! {
    /// Notifies `proc` that all operations of the caller on its memory so far are complete there.
    /// Returns the number of notifications sent to `proc`, including this one, or a negative error
    /// code.
    armci_notify / parmci_notify(proc: c_int) -> c_int {
        counted("armci_notify", |engine| notify(engine, types::rank(proc)?))
    }
}

twin! {
    /// Waits for the next notification of `proc`: the n-th call for `proc` waits for the n-th
    /// notification. Stores n in `*pval` if `pval` is not null. Returns the number of notifications
    /// received from `proc`, or a negative error code.
    armci_notify_wait / parmci_notify_wait(proc: c_int, pval: *mut c_int) -> c_int {
        counted("armci_notify_wait", |engine| {
            let rank = types::rank(proc)?;
            let (waited, received) =
                engine.observed(|| CallInfo::new(Call::NotifyWait), || wait(engine, rank))?;
            if !pval.is_null() {
                // SAFETY: the caller guarantees that `pval` is valid for writes, and it is not
                // null.
                unsafe { *pval = waited };
            }
            Ok(received)
        })
    }
}
