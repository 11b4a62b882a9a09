//! Put and get of contiguous bytes at any address of the target.
//!
//! Neither blocks: a transfer that the engine does not complete at once is kept in
//! [`super::pending`]. The origin counter of a put counts when the source may be modified again,
//! the counter of a get when the data has arrived. The target counter counts at the target when the
//! data of a put is in place, or when the source of a get is no longer needed. The completion
//! counter of a put counts after the target counter, or without one when the data is in place.

use super::context::{Context, call, enter};
use super::finish;
use super::messages;
use super::outcome::{Outcome, refuse};
use super::pending::Done;
use super::traffic::add;
use super::types::Hook;
use super::types::{ComplHandler, Counter, ErrorOf, Handle, MAX_MSG_SZ, SendHandler};
use crate::boundary::export;
use portolan_engine::any_memory::{Direction, Span};
use portolan_engine::core::peer::CompletionCounter;
use portolan_engine::runtime::Engine;
use std::os::raw::{c_int, c_uint, c_ulong, c_void};
use std::sync::Arc;

/// The caller sets the target later.
pub(crate) fn put_done(
    tgt_cntr: u64,
    org_cntr: *const Counter,
    cmpl_cntr: *const Counter,
    sent: Option<Hook<SendHandler>>,
) -> Done {
    Done { of: ErrorOf::Put, target: 0, tgt_cntr, org_cntr, cmpl_cntr, sent, got: None }
}

/// The caller sets the target later.
pub(crate) fn get_done(
    tgt_cntr: u64,
    org_cntr: *const Counter,
    got: Option<Hook<ComplHandler>>,
) -> Done {
    let cmpl_cntr = std::ptr::null();
    Done { of: ErrorOf::Get, target: 0, tgt_cntr, org_cntr, cmpl_cntr, sent: None, got }
}

/// Begins a transfer, and runs its actions if it is complete, or else keeps it.
///
/// # Safety
/// The local bytes must be valid until the transfer is complete, the counters until they count.
pub(crate) unsafe fn start(
    context: &'static Context,
    engine: &Engine,
    spans: &[Span],
    done: Done,
) -> Outcome {
    let counter = Arc::new(CompletionCounter::default());
    if !spans.is_empty() {
        let bytes: usize = spans.iter().map(|s| s.bytes).sum();
        let direction = match done.of {
            ErrorOf::Get => Direction::Get,
            _ => Direction::Put,
        };
        // SAFETY: by contract, the local bytes are valid until the transfer is complete.
        let started = unsafe { engine.start_anywhere(done.target, spans, direction, &counter) };
        if let Err(error) = started {
            // The parts that have begun may still use the caller's memory.
            let what = || "the rest of a transfer that failed".to_string();
            engine.wait_for(&*counter, &what, || Ok(counter.outstanding() == 0))?;
            return Err(error.into());
        }
        let traffic = context.traffic(done.target);
        match done.of {
            ErrorOf::Get => add(&traffic.bytes_received, bytes),
            _ => add(&traffic.bytes_sent, bytes),
        }
    }
    if done.of == ErrorOf::Put {
        add(&context.traffic(done.target).sent, 1);
    }
    if counter.outstanding() > 0 {
        context.pending.add(counter, done);
    } else {
        counter.check()?;
        done.run(context, engine)?;
    }
    Ok(finish::serve(context, engine)?)
}

/// # Safety
/// Addresses and counters must be valid as the interface requires.
pub(crate) unsafe fn move_bytes(
    hndl: Handle,
    tgt: c_uint,
    len: c_ulong,
    tgt_addr: u64,
    org_addr: *const c_void,
    done: Done,
) -> Outcome {
    let (context, engine) = enter(hndl)?;
    let target = context.target(tgt)?;
    if len > MAX_MSG_SZ {
        refuse!(messages::DATA_LEN, "{len} bytes exceed LAPI_MAX_MSG_SZ");
    }
    if len > 0 && tgt_addr == 0 {
        refuse!(messages::TGT_ADDR_NULL, "null target address for a transfer of {len} bytes");
    }
    if len > 0 && org_addr.is_null() {
        refuse!(messages::ORG_ADDR_NULL, "null origin address for a transfer of {len} bytes");
    }
    let span = Span { local: org_addr as usize, remote: tgt_addr as usize, bytes: len as usize };
    let spans = if len > 0 { &[span][..] } else { &[] };
    // SAFETY: the caller guarantees that the local bytes and the counters are valid.
    unsafe { start(context, engine, spans, Done { target, ..done }) }
}

export! {
    LAPI_Put / PLAPI_Put(
        hndl: Handle, tgt: c_uint, len: c_ulong, tgt_addr: *mut c_void, org_addr: *mut c_void,
        tgt_cntr: *mut Counter, org_cntr: *mut Counter, cmpl_cntr: *mut Counter,
    ) -> c_int = call(|| {
        let done = put_done(tgt_cntr as u64, org_cntr, cmpl_cntr, None);
        // SAFETY: by contract, addresses and counters are valid as LAPI_Put requires.
        unsafe { move_bytes(hndl, tgt, len, tgt_addr as u64, org_addr, done) }
    });

    LAPI_Get / PLAPI_Get(
        hndl: Handle, tgt: c_uint, len: c_ulong, tgt_addr: *mut c_void, org_addr: *mut c_void,
        tgt_cntr: *mut Counter, org_cntr: *mut Counter,
    ) -> c_int = call(|| {
        let done = get_done(tgt_cntr as u64, org_cntr, None);
        // SAFETY: by contract, addresses and counters are valid as LAPI_Get requires.
        unsafe { move_bytes(hndl, tgt, len, tgt_addr as u64, org_addr, done) }
    });
}
