//! `LAPI_Xfer`: every transfer described by a structure, with handlers that run at the origin.
//!
//! A send completion handler runs when the header and data may be modified again, after the origin
//! counter, on the thread that finds the completion, possibly inside the call. It must not block.
//! The completion handler of a get runs on the completion thread when the data has arrived.
//!
//! Flags are hints for another kind of network, and are ignored.

use super::amsend::{self, Message};
use super::context::{call, enter};
use super::outcome::{Outcome, refuse};
use super::rmw::{self, Rmw};
use super::types::Hook;
use super::types::{AmXfer, ComplHandler, Handle, SendHandler, Xfer};
use super::{group, messages, putget, vectors};
use crate::boundary::{array, export};
use portolan_engine::am::Data;
use std::os::raw::{c_int, c_void};
use std::sync::atomic::Ordering;

const GET: c_int = 0;
const AM: c_int = 1;
const PUT: c_int = 2;
const GETV: c_int = 3;
const PUTV: c_int = 4;
const AMV: c_int = 5;
const RMW: c_int = 6;
const AM_LW: c_int = 9;
const MC: c_int = 11;

/// The limit for header and data of a light active message together, in bytes.
const LIGHT: u64 = 128;

fn missing(kind: c_int) -> Option<(&'static str, &'static str)> {
    const DGSP: &str = "data gather/scatter programs, which are not supported; use LAPI_Amsendv";
    Some(match kind {
        7 => ("LAPI_DGSP_XFER", DGSP),
        8 => (
            "LAPI_RDMA_XFER",
            "contexts for remote direct memory access, which are not supported; use \
             LAPI_PUT_XFER or LAPI_GET_XFER",
        ),
        10 => ("LAPI_AMX_XFER", DGSP),
        _ => return None,
    })
}

/// Sends a light active message, to the index of a header handler, with a copy of the data. The
/// fields for counters and handlers at the origin may be unset, and are not read.
///
/// # Safety
/// Header and data must be valid.
unsafe fn send_light(hndl: Handle, x: *const AmXfer) -> Outcome {
    let (context, engine) = enter(hndl)?;
    // SAFETY: the caller guarantees that these fields are initialised. Only they are read.
    let (tgt, hdr_hdl, uhdr, uhdr_len, udata, udata_len) =
        unsafe { ((*x).tgt, (*x).hdr_hdl, (*x).uhdr, (*x).uhdr_len, (*x).udata, (*x).udata_len) };
    context.target(tgt)?;
    let is_set = |i: u64| {
        let entry = context.table.get(usize::try_from(i).unwrap_or(usize::MAX));
        entry.is_some_and(|entry| entry.load(Ordering::Acquire) != 0)
    };
    if hdr_hdl != 0 && !is_set(hdr_hdl) {
        refuse!(
            messages::NO_HNDLR_SET,
            "{hdr_hdl:#x} is not the index of a header handler set here by LAPI_Addr_set"
        );
    }
    if udata_len.saturating_add(u64::from(uhdr_len)) > LIGHT {
        refuse!(
            messages::LW_DATA_LEN,
            "a header of {uhdr_len} and data of {udata_len} bytes exceed the limit of {LIGHT} \
             bytes for a light active message"
        );
    }
    let message = Message {
        tgt,
        hdr_hdl,
        uhdr,
        uhdr_len,
        sent: None,
        tgt_cntr: 0,
        org_cntr: std::ptr::null(),
        cmpl_cntr: std::ptr::null(),
    };
    let checked = message.check(context)?;
    amsend::check_data(udata, udata_len)?;
    let data = match udata_len {
        0 => Data::NONE,
        // SAFETY: the caller guarantees the data.
        len => Data::Bytes(unsafe { array(udata.cast(), len as usize, "the user data") }?),
    };
    // SAFETY: by contract, the header is valid. The data is copied, and no counter is passed.
    unsafe { checked.send(context, engine, data, 0, 0) }
}

fn sent(handler: Option<SendHandler>, info: *mut c_void) -> Option<Hook<SendHandler>> {
    handler.map(|handler| Hook(handler, info))
}

fn got(handler: Option<ComplHandler>, info: *mut c_void) -> Option<Hook<ComplHandler>> {
    handler.map(|handler| Hook(handler, info))
}

/// # Safety
/// `cmd` must be null or point to a transfer as the interface requires.
unsafe fn transfer(hndl: Handle, cmd: *const Xfer) -> Outcome {
    enter(hndl)?;
    if cmd.is_null() {
        refuse!(messages::XFER_CMD, "the transfer is null");
    }
    // SAFETY: only the member of the type is read. By contract, its addresses are valid.
    unsafe {
        match (*cmd).xfer_type {
            GET => {
                let x = &(*cmd).get;
                let done = putget::get_done(x.tgt_cntr, x.org_cntr, got(x.chndlr, x.cinfo));
                putget::move_bytes(hndl, x.tgt, x.len, x.tgt_addr, x.org_addr, done)
            }
            PUT => {
                let x = &(*cmd).put;
                let hook = sent(x.shdlr, x.sinfo);
                let done = putget::put_done(x.tgt_cntr, x.org_cntr, x.cmpl_cntr, hook);
                putget::move_bytes(hndl, x.tgt, x.len, x.tgt_addr, x.org_addr, done)
            }
            GETV => {
                let x = &(*cmd).getv;
                let done = putget::get_done(x.tgt_cntr, x.org_cntr, got(x.chndlr, x.cinfo));
                vectors::move_vector(hndl, x.tgt, x.tgt_vec.cast(), x.org_vec, done)
            }
            PUTV => {
                let x = &(*cmd).putv;
                let hook = sent(x.shdlr, x.sinfo);
                let done = putget::put_done(x.tgt_cntr, x.org_cntr, x.cmpl_cntr, hook);
                vectors::move_vector(hndl, x.tgt, x.tgt_vec.cast(), x.org_vec, done)
            }
            AM => {
                let x = &(*cmd).am;
                let message = Message {
                    tgt: x.tgt,
                    hdr_hdl: x.hdr_hdl,
                    uhdr: x.uhdr,
                    uhdr_len: x.uhdr_len,
                    sent: sent(x.shdlr, x.sinfo),
                    tgt_cntr: x.tgt_cntr,
                    org_cntr: x.org_cntr,
                    cmpl_cntr: x.cmpl_cntr,
                };
                amsend::send(hndl, &message, x.udata, x.udata_len)
            }
            AMV => {
                let x = &(*cmd).amv;
                let message = Message {
                    tgt: x.tgt,
                    hdr_hdl: x.hdr_hdl,
                    uhdr: x.uhdr,
                    uhdr_len: x.uhdr_len,
                    sent: sent(x.shdlr, x.sinfo),
                    tgt_cntr: x.tgt_cntr,
                    org_cntr: x.org_cntr,
                    cmpl_cntr: x.cmpl_cntr,
                };
                vectors::send(hndl, &message, x.org_vec)
            }
            RMW => {
                let x = &(*cmd).rmw;
                let rmw = Rmw {
                    tgt: x.tgt,
                    op: x.op,
                    bits: x.size,
                    tgt_var: x.tgt_var,
                    in_val: x.in_val,
                    prev: x.prev_tgt_val,
                    org_cntr: x.org_cntr,
                    sent: sent(x.shdlr, x.sinfo),
                };
                rmw::ask(hndl, &rmw)
            }
            AM_LW => send_light(hndl, &raw const (*cmd).am),
            MC => group::multicast(hndl, &(*cmd).mc),
            kind => match missing(kind) {
                Some((name, needs)) => refuse!(messages::XFER_CMD, "{name} needs {needs}"),
                None => refuse!(messages::XFER_CMD, "unknown transfer type {kind}"),
            },
        }
    }
}

export! {
    LAPI_Xfer / PLAPI_Xfer(hndl: Handle, xfer_cmd: *mut Xfer) -> c_int = call(|| {
        // SAFETY: the caller guarantees that the structure and the addresses in it are valid.
        unsafe { transfer(hndl, xfer_cmd) }
    });
}
