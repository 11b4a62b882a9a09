//! Read-modify-write of a 32-bit or 64-bit word at any address of the target.
//!
//! The target's engine executes one atomic instruction and sends the answer. The operation is
//! therefore atomic with respect to other such calls and to atomic instructions of the target. The
//! answer of `COMPARE_AND_SWAP` is 1 if it swapped and else 0; the other operations return the
//! previous value. The origin counter counts when the answer is stored.

use super::context::{self, call, enter};
use super::counters;
use super::finish;
use super::messages as m;
use super::outcome::{Outcome, refuse};
use super::traffic::add;
use super::types::Hook;
use super::types::{Counter, ErrorOf, Handle, SendHandler};
use crate::boundary::export;
use bytemuck::{Pod, Zeroable};
use portolan_base::error::Result;
use portolan_base::futex;
use portolan_base::trace::{Call, CallInfo, PathTaken};
use portolan_engine::am::Am;
use portolan_engine::am::wire::read_pod;
use portolan_engine::am::{Accept, Arrival, Handler};
use std::os::raw::{c_int, c_longlong, c_uint, c_void};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const FETCH_AND_ADD: c_int = 0;
const FETCH_AND_OR: c_int = 1;
const SWAP: c_int = 2;
const COMPARE_AND_SWAP: c_int = 3;

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct RmwRequest {
    op: i32,
    bits: u32,
    var: u64,
    operands: [u64; 2],
    asked: u64,
}

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Answer {
    value: u64,
    asked: u64,
}

/// The origin's state of a request that waits for its answer.
#[derive(Debug)]
struct Asked {
    target: usize,
    bits: u32,
    prev: *mut c_void,
    org_cntr: *const Counter,
    sent: Option<Hook<SendHandler>>,
}

#[derive(Debug)]
pub(crate) struct Rmw {
    pub tgt: c_uint,
    pub op: c_int,
    pub bits: c_uint,
    pub tgt_var: u64,
    /// One operand, or two for `COMPARE_AND_SWAP`.
    pub in_val: *const c_void,
    /// The address for the answer, or null.
    pub prev: *mut c_void,
    pub org_cntr: *const Counter,
    pub sent: Option<Hook<SendHandler>>,
}

/// # Safety
/// The operands must be readable, and the address for the answer and the counter valid until the
/// counter has counted.
pub(crate) unsafe fn ask(hndl: Handle, rmw: &Rmw) -> Outcome {
    let (context, engine) = enter(hndl)?;
    let target = context.target(rmw.tgt)?;
    let Rmw { op, bits, .. } = *rmw;
    if !(FETCH_AND_ADD..=COMPARE_AND_SWAP).contains(&op) {
        refuse!(m::RMW_OP, "operation {op} is none of FETCH_AND_ADD to COMPARE_AND_SWAP");
    }
    if bits != 32 && bits != 64 {
        refuse!(m::OP_SZ, "the size is {bits}, but 32 or 64 is needed");
    }
    if rmw.tgt_var == 0 {
        refuse!(m::TGT_VAR_NULL, "the target's variable is null");
    }
    if rmw.in_val.is_null() {
        refuse!(m::IN_VAL_NULL, "the operand is null");
    }
    // SAFETY: by contract, `in_val` has the number of operands that the operation takes.
    let operand = |i: usize| unsafe {
        match bits {
            32 => u64::from(rmw.in_val.cast::<u32>().add(i).read_unaligned()),
            _ => rmw.in_val.cast::<u64>().add(i).read_unaligned(),
        }
    };
    let second = if op == COMPARE_AND_SWAP { operand(1) } else { 0 };
    let asked = Asked { target, bits, prev: rmw.prev, org_cntr: rmw.org_cntr, sent: rmw.sent };
    let asked = Box::into_raw(Box::new(asked));
    let request = RmwRequest {
        op,
        bits,
        var: rmw.tgt_var,
        operands: [operand(0), second],
        asked: asked as u64,
    };
    context.asked.fetch_add(1, Ordering::SeqCst);
    let sent = engine.observed(
        || CallInfo::new(Call::Rmw).to(target).moves(bits as usize / 8).by(PathTaken::Message),
        || engine.send_message(target, context.handlers.rmw, bytemuck::bytes_of(&request), &[]),
    );
    if let Err(error) = sent {
        context.asked.fetch_sub(1, Ordering::SeqCst);
        // SAFETY: the pointer comes from `Box::into_raw` above. No answer will refer to it.
        drop(unsafe { Box::from_raw(asked) });
        return Err(error.into());
    }
    add(&context.traffic(target).sent, 1);
    Ok(finish::serve(context, engine)?)
}

/// # Safety
/// The variable must be mapped, writable, and aligned to its size.
unsafe fn apply(request: &RmwRequest) -> u64 {
    let [a, b] = request.operands;
    let order = Ordering::AcqRel;
    // SAFETY: the caller guarantees that the variable is mapped, writable and aligned.
    unsafe {
        if request.bits == 32 {
            let var = AtomicU32::from_ptr(request.var as *mut u32);
            let (a, b) = (a as u32, b as u32);
            u64::from(match request.op {
                FETCH_AND_ADD => var.fetch_add(a, order),
                FETCH_AND_OR => var.fetch_or(a, order),
                SWAP => var.swap(a, order),
                _ => var.compare_exchange(a, b, order, Ordering::Acquire).is_ok().into(),
            })
        } else {
            let var = AtomicU64::from_ptr(request.var as *mut u64);
            match request.op {
                FETCH_AND_ADD => var.fetch_add(a, order),
                FETCH_AND_OR => var.fetch_or(a, order),
                SWAP => var.swap(a, order),
                _ => var.compare_exchange(a, b, order, Ordering::Acquire).is_ok().into(),
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct Serve;

impl Handler for Serve {
    fn arrive(&self, engine: &Am, message: &Arrival<'_>) -> Result<Accept> {
        let context = context::current()?;
        let origin = message.origin;
        let request: RmwRequest = read_pod(message.header)?;
        let (var, bytes) = (request.var as usize, request.bits as usize / 8);
        if !var.is_multiple_of(bytes) || !futex::is_writable(var) {
            let text = format!(
                "task {origin} requests a read-modify-write of {bytes} bytes at {var:#x}, which \
                 is not the address of an aligned variable that can be written"
            );
            return Err(context.report(m::TGT_ADDR_NULL, ErrorOf::Rmw, origin, text));
        }
        // SAFETY: the variable is aligned, so that it lies within one page, and writable.
        let value = unsafe { apply(&request) };
        let answer = Answer { value, asked: request.asked };
        add(&context.traffic(origin).received, 1);
        context.tallies.received.fetch_add(1, Ordering::Release);
        let _own = engine.observer().exclude_calls();
        engine.send_message(origin, context.handlers.answer, bytemuck::bytes_of(&answer), &[])?;
        Ok(Accept::DONE)
    }
}

#[derive(Debug)]
pub(crate) struct Take;

impl Handler for Take {
    fn arrive(&self, engine: &Am, message: &Arrival<'_>) -> Result<Accept> {
        let context = context::current()?;
        let answer: Answer = read_pod(message.header)?;
        // SAFETY: `ask` made the pointer by `Box::into_raw`, and a request has one answer.
        let asked = unsafe { Box::from_raw(answer.asked as *mut Asked) };
        if !asked.prev.is_null() {
            // SAFETY: the program keeps the address for the answer valid until the counter counts.
            unsafe {
                match asked.bits {
                    32 => asked.prev.cast::<u32>().write_unaligned(answer.value as u32),
                    _ => asked.prev.cast::<u64>().write_unaligned(answer.value),
                }
            }
        }
        context.tallies.left.fetch_add(1, Ordering::Release);
        // SAFETY: the program keeps the counter valid until it has counted.
        unsafe { counters::bump(context, asked.org_cntr, asked.target) };
        if let Some(hook) = asked.sent {
            hook.call(context, engine, asked.target)?;
        }
        context.asked.fetch_sub(1, Ordering::SeqCst);
        Ok(Accept::DONE)
    }
}

export! {
    LAPI_Rmw / PLAPI_Rmw(
        hndl: Handle, op: c_int, tgt: c_uint, tgt_var: *mut c_int, in_val: *mut c_int,
        prev_tgt_val: *mut c_int, org_cntr: *mut Counter,
    ) -> c_int = call(|| {
        let rmw = Rmw {
            tgt,
            op,
            bits: 32,
            tgt_var: tgt_var as u64,
            in_val: in_val.cast(),
            prev: prev_tgt_val.cast(),
            org_cntr,
            sent: None,
        };
        // SAFETY: the caller guarantees that the addresses are valid as LAPI_Rmw requires.
        unsafe { ask(hndl, &rmw) }
    });

    LAPI_Rmw64 / PLAPI_Rmw64(
        hndl: Handle, op: c_int, tgt: c_uint, tgt_var: *mut c_longlong, in_val: *mut c_longlong,
        prev_tgt_val: *mut c_longlong, org_cntr: *mut Counter,
    ) -> c_int = call(|| {
        let rmw = Rmw {
            tgt,
            op,
            bits: 64,
            tgt_var: tgt_var as u64,
            in_val: in_val.cast(),
            prev: prev_tgt_val.cast(),
            org_cntr,
            sent: None,
        };
        // SAFETY: the caller guarantees that the addresses are valid as LAPI_Rmw64 requires.
        unsafe { ask(hndl, &rmw) }
    });
}
