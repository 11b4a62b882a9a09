//! Explicit progress: the polling calls.

use super::context::{self, Context, call};
use super::messages;
use super::outcome::refuse;
use super::types::{Handle, MsgInfo};
use crate::boundary::export;
use portolan_base::error::Result;
use portolan_engine::am::Am;
use std::os::raw::{c_int, c_uint};
use std::sync::atomic::Ordering;

const SEND_COMPLETE: c_uint = 1;
const RECV_COMPLETE: c_uint = 2;
const DISP_CNTR: c_uint = 8;

fn round(context: &Context, engine: &Am) -> Result<()> {
    engine.probe()?;
    context.pending.advance(context, engine)?;
    Ok(())
}

export! {
    LAPI_Probe / PLAPI_Probe(hndl: Handle) -> c_int = call(|| {
        let (context, engine) = context::enter(hndl)?;
        Ok(round(context, engine)?)
    });

    /// Makes at most `cnt` rounds of progress.
    LAPI_Msgpoll / PLAPI_Msgpoll(hndl: Handle, cnt: c_uint, info: *mut MsgInfo) -> c_int = call(|| {
        let (context, engine) = context::enter(hndl)?;
        if info.is_null() {
            refuse!(messages::MSG_INFO_NULL, "the pointer to the information is null");
        }
        let tallies = &context.tallies;
        let counts = || {
            (tallies.left.load(Ordering::Acquire), tallies.received.load(Ordering::Acquire))
        };
        let (left, received) = counts();
        let mut status = DISP_CNTR;
        for _ in 0..cnt {
            round(context, engine)?;
            let now = counts();
            status = if now.0 != left { SEND_COMPLETE } else { 0 }
                | if now.1 != received { RECV_COMPLETE } else { 0 };
            if status != 0 {
                break;
            }
            status = DISP_CNTR;
        }
        // SAFETY: `info` is not null, and the caller guarantees that it is writable.
        unsafe { info.write(MsgInfo { status, reserve: [0; 10] }) };
        Ok(())
    });
}
