//! `LAPI_Xfer`: every transfer described by a structure, with handlers that run at the
//! origin.
//!
//! A send completion handler runs when header and data may be changed again, after the
//! origin's counter has counted; that may be within the call. It runs on the thread
//! that finds the completion and must not block. The completion handler of a get runs
//! on the completion thread, when the data is here.

use super::amsend::{self, Message};
use super::context::{Hook, Outcome, call, enter, refuse};
use super::rmw::{self, Rmw};
use super::types::{ComplHandler, Handle, SendHandler, Xfer};
use super::{messages, putget, twin, vectors};
use std::os::raw::{c_int, c_void};

const GET: c_int = 0;
const AM: c_int = 1;
const PUT: c_int = 2;
const GETV: c_int = 3;
const PUTV: c_int = 4;
const AMV: c_int = 5;
const RMW: c_int = 6;

fn sent(handler: Option<SendHandler>, info: *mut c_void) -> Option<Hook<SendHandler>> {
    handler.map(|handler| Hook(handler, info))
}

fn got(handler: Option<ComplHandler>, info: *mut c_void) -> Option<Hook<ComplHandler>> {
    handler.map(|handler| Hook(handler, info))
}

/// # Safety
/// `cmd` must be null or a transfer as the interface says.
unsafe fn transfer(hndl: Handle, cmd: *const Xfer) -> Outcome {
    enter(hndl)?;
    if cmd.is_null() {
        refuse!(messages::XFER_CMD, "the transfer is null");
    }
    // SAFETY: the type says which member is set, and only that is read; the caller
    // vouches for what it holds.
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
            kind => refuse!(messages::XFER_CMD, "there is no transfer of type {kind}"),
        }
    }
}

twin! {
    /// Does the transfer that the structure describes; its first member is its type.
    LAPI_Xfer / PLAPI_Xfer(hndl: Handle, xfer_cmd: *mut Xfer) -> c_int {
        call("LAPI_Xfer", || {
            // SAFETY: the caller vouches for the structure and what it holds.
            unsafe { transfer(hndl, xfer_cmd) }
        })
    }
}
