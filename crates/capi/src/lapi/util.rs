//! `LAPI_Util`: its supported and unsupported commands.
//!
//! Only the functions of the lock ([`super::lock`]) are supported. Others are refused by name.

use super::context::{call, enter};
use super::lock::{self, ThreadFunctions};
use super::messages;
use super::outcome::{Outcome, refuse};
use super::types::{GET_THREAD_FUNC, Handle};
use crate::boundary::export;
use std::os::raw::c_int;

fn missing(command: c_int) -> Option<(&'static str, &'static str)> {
    const DGSP: &str = "data gather/scatter programs, which are not supported; use vectors";
    const UDP: &str = "a UDP transport with ports set by the program, but the transport is MPI";
    const RDMA: &str = "contexts for remote direct memory access, which are not supported; \
                        LAPI_Put and LAPI_Get reach all memory of a task";
    const TRIGGER: &str = "triggers that call functions of the program, which are not \
                           supported";
    Some(match command {
        0 => ("LAPI_REGISTER_DGSP", DGSP),
        1 => ("LAPI_RESERVE_DGSP", DGSP),
        2 => ("LAPI_UNRESERVE_DGSP", DGSP),
        3 => ("LAPI_REG_DDM_FUNC", DGSP),
        4 => ("LAPI_DGSP_PACK", DGSP),
        5 => ("LAPI_DGSP_UNPACK", DGSP),
        6 => ("LAPI_ADD_UDP_DEST_PORT", UDP),
        8 => ("LAPI_REMOTE_RCXT", RDMA),
        9 => ("LAPI_XLATE_ADDRESS", RDMA),
        10 => ("LAPI_REGISTER_NOTIFICATION", RDMA),
        11 => ("LAPI_TRIGGER_ADD", TRIGGER),
        12 => ("LAPI_TRIGGER_REMOVE", TRIGGER),
        13 => ("LAPI_ADD_UDP_DEST_EXT", UDP),
        14 => ("LAPI_STAT_SAVE", "a statistics service, which is not supported"),
        _ => return None,
    })
}

/// # Safety
/// `util` must be null or point to a command as the interface requires.
unsafe fn command(hndl: Handle, util: *mut c_int) -> Outcome {
    enter(hndl)?;
    if util.is_null() {
        refuse!(messages::UTIL_CMD, "the command is null");
    }
    // SAFETY: `util` is not null, so by contract it is a command, which begins with its type.
    let kind = unsafe { util.read() };
    if kind == GET_THREAD_FUNC {
        // SAFETY: by its type, the command is a `ThreadFunctions`; by contract, it is writable.
        unsafe { util.cast::<ThreadFunctions>().write(lock::FUNCTIONS) };
        return Ok(());
    }
    match missing(kind) {
        Some((name, needs)) => refuse!(messages::UTIL_CMD, "{name} needs {needs}"),
        None => refuse!(messages::UTIL_CMD, "unknown command {kind}"),
    }
}

export! {
    LAPI_Util / PLAPI_Util(hndl: Handle, util_p: *mut c_int) -> c_int = call(|| {
        // SAFETY: the caller guarantees that the structure is null or valid.
        unsafe { command(hndl, util_p) }
    });
}
