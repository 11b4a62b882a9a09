//! Counting at another rank: target counters of puts and gets, and replies.

use super::context::{self, Context};
use super::counters;
use super::traffic::add;
use super::types::ErrorOf;
use bytemuck::{Pod, Zeroable};
use portolan_base::error::{Result, fail};
use portolan_engine::am::Am;
use portolan_engine::am::deferral::Deferral;
use portolan_engine::am::wire::read_pod;
use portolan_engine::am::{Accept, Arrival, Completion, Data, Destination, Handler, Signals, Then};
use std::sync::Arc;

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Notice {
    /// An address at the receiver, or 0.
    pub counter: u64,
    /// The address of a counter of the sender to increment in reply, or 0.
    pub reply: u64,
    /// The [`ErrorOf`] of the operation.
    pub of: i32,
    /// 1 for a reply, else 0.
    pub is_reply: u32,
}

fn kind(of: i32) -> ErrorOf {
    match of {
        0 => ErrorOf::Get,
        1 => ErrorOf::Put,
        2 => ErrorOf::Rmw,
        3 => ErrorOf::Am,
        _ => ErrorOf::Internal,
    }
}

/// Increments `counter` of `target`, and afterwards `reply` of this rank; 0 stands for none.
pub(crate) fn count(
    context: &Context,
    engine: &Am,
    target: usize,
    counter: u64,
    reply: u64,
    of: ErrorOf,
) -> Result<()> {
    if target == engine.rank() {
        counters::bump_at(context, counter, of, target)?;
        return counters::bump_at(context, reply, of, target);
    }
    let notice = Notice { counter, reply, of: of as i32, is_reply: 0 };
    send(context, engine, target, &notice)
}

/// Sends the reply to a message of `origin`, which increments its completion counter.
pub(crate) fn reply(
    context: &Context,
    engine: &Am,
    origin: usize,
    counter: u64,
    of: ErrorOf,
) -> Result<()> {
    if counter == 0 {
        return Ok(());
    }
    if origin == engine.rank() {
        return counters::bump_at(context, counter, of, origin);
    }
    add(&context.traffic(origin).replies_sent, 1);
    let notice = Notice { counter, reply: 0, of: of as i32, is_reply: 1 };
    send(context, engine, origin, &notice)
}

fn send(context: &Context, engine: &Am, target: usize, notice: &Notice) -> Result<()> {
    let handler = context.handlers.count;
    let _own = engine.observer().exclude_calls();
    engine.send_message(target, handler, bytemuck::bytes_of(notice), &[])
}

#[derive(Debug)]
pub(crate) struct Count;

impl Handler for Count {
    fn arrive(&self, engine: &Am, message: &Arrival<'_>) -> Result<Accept> {
        let context = context::current()?;
        let notice: Notice = read_pod(message.header)?;
        let of = kind(notice.of);
        if notice.is_reply == 1 {
            add(&context.traffic(message.origin).replies_received, 1);
        }
        counters::bump_at(context, notice.counter, of, message.origin)?;
        reply(context, engine, message.origin, notice.reply, of)?;
        Ok(Accept::DONE)
    }
}

/// Runs `job` on the completion thread of this rank, after the jobs that are queued there.
pub(crate) fn run_later(context: &Context, engine: &Am, job: Completion) -> Result<()> {
    let job = Box::into_raw(Box::new(job)) as u64;
    // SAFETY: neither the data nor the signals contain an address that the engine would access.
    let sent = unsafe {
        engine.send_am(
            engine.rank(),
            context.handlers.run,
            &job.to_ne_bytes(),
            Data::NONE,
            Signals::default(),
        )
    };
    if sent.is_err() {
        // SAFETY: the pointer comes from `Box::into_raw` above, and its message was not sent.
        drop(unsafe { Box::from_raw(job as *mut Completion) });
    }
    sent
}

#[derive(Debug)]
pub(crate) struct RunDeferral(pub Arc<Deferral>);

impl Handler for RunDeferral {
    fn arrive(&self, engine: &Am, message: &Arrival<'_>) -> Result<Accept> {
        let job: u64 = read_pod(message.header)?;
        if message.origin != engine.rank() {
            fail!(Internal, "rank {} sent a job of its own", message.origin);
        }
        // SAFETY: `run_later` of this rank made the pointer with `Box::into_raw`, and sent it once.
        let job = unsafe { Box::from_raw(job as *mut Completion) };
        Ok(Accept { to: Destination::Taken, then: Then::Later(*job) })
    }

    fn deferral(&self) -> Option<Arc<Deferral>> {
        Some(self.0.clone())
    }
}
