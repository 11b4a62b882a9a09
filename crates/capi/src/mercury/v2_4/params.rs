//! Inputs and outputs of handles.
//!
//! Parameters have the same wire format in all interfaces: the bytes that the procs encode, and a
//! trailer. Before them come bytes of the program's own from the handle's buffer; the class's
//! offset is their number. Without a proc or a struct, only these are sent. If the program encodes
//! parameters into that buffer itself, `HG_Core_forward` sends them with an explicit length.
//!
//! A proc may decode only the first parameters, for example a head that says how to decode the
//! rest. The trailer is therefore checked over all parameters before the first proc runs.

use crate::boundary::array;
use crate::mercury::entry::{maybe, place};
use crate::mercury::interface::{Interface::V2_4, calls};
use crate::mercury::objects::handle::{End, HANDLES, HandleEntry, release};
use crate::mercury::params::{EAGER, Runner, Which, check};
use crate::mercury::table::Token;
use portolan_rpc::checksum::Method;
use portolan_rpc::failure::{Failure, Result, Status, refuse};
use portolan_rpc::hg::payload::Encode;
use portolan_rpc::hg::target::Function;
use portolan_rpc::na::memory;
use portolan_rpc::proc::state::Attached;
use portolan_rpc::proc::trailer::{trailer_len, without_trailer};
use portolan_rpc::proc::{Encoded, Overflow};
use std::os::raw::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn offset(which: Which, held: &HandleEntry) -> usize {
    held.class.offset(which).load(Ordering::Acquire)
}

fn runner(handle: Token, held: &HandleEntry) -> Runner {
    let flags = if held.class.bulk_eager { EAGER } else { 0 };
    let attached = Attached { class: held.class_token(), handle, flags };
    Runner { interface: V2_4, attached }
}

/// Parameters to send with a handle.
pub(super) enum Payload {
    /// For the function's proc. If it is null, only the program's own bytes are sent.
    Struct(*mut c_void),
    /// The first bytes of the handle's buffer, by their number.
    Raw(usize),
}

/// # Safety
/// A `Payload::Struct` must be null or the struct that the function's proc expects.
pub(super) unsafe fn encoder<'a>(
    which: Which,
    (handle, held): (Token, &'a HandleEntry),
    function: &'a Function,
    payload: Payload,
) -> impl Encode + use<'a> {
    move |buffer: &mut [u8], method: Method| {
        let (offset, data) = match payload {
            Payload::Struct(data) => (offset(which, held), data),
            Payload::Raw(size) => (size, ptr::null_mut()),
        };
        let room = held.class.room(which);
        let Some(front) = buffer.get_mut(..offset).filter(|_| offset <= room) else {
            refuse!(MSGSIZE, "{offset} bytes do not fit the handle's buffer of {room}");
        };
        match held.parameters(which).buffer.get() {
            Some(own) => {
                // SAFETY: the buffer has `room` bytes, and `offset <= room` was checked.
                let from = unsafe { array(own.address().cast_const(), offset, "the buffer") }?;
                front.copy_from_slice(from);
            }
            None => front.fill(0),
        }
        held.parameters(which).size.store(offset, Ordering::Release);
        let Some(over) = which.proc(function).filter(|_| !data.is_null()) else {
            return Ok(Encoded::Fits(offset));
        };
        let (front, rest) = buffer.split_at_mut(offset);
        // SAFETY: by this function's contract, `data` is the struct that the proc expects.
        let encoded = unsafe { runner(handle, held).encode(over, rest, method, data) }?;
        let encoded = match encoded {
            Encoded::Fits(len) => Encoded::Fits(offset + len),
            Encoded::Overflow(_) if held.class.no_overflow => {
                refuse!(OVERFLOW, "the parameters do not fit a message, and no_overflow is set");
            }
            Encoded::Overflow(bytes) if offset == 0 => Encoded::Overflow(bytes),
            Encoded::Overflow(bytes) => {
                let whole = [&*front, &*bytes].concat();
                match Overflow::copy(&whole, memory::to_send) {
                    Some(overflow) => Encoded::Overflow(overflow),
                    None => refuse!(NOMEM, "no memory for parameters of {} bytes", whole.len()),
                }
            }
        };
        let len = match &encoded {
            Encoded::Fits(len) => *len,
            Encoded::Overflow(bytes) => bytes.len(),
        };
        held.parameters(which).size.store(len - trailer_len(method), Ordering::Release);
        Ok(encoded)
    }
}

/// Passes the function of a handle, its received bytes and their checksum method to `body`. Fails
/// with `INVALID_ARG` without such parameters and, for an output, with the status of a failed call.
fn with_body<R>(
    which: Which,
    held: &HandleEntry,
    body: impl FnOnce(&Function, &[u8], Method) -> Result<R>,
) -> Result<R> {
    match (which, held.end()) {
        (Which::Input, End::Target(target)) => {
            let done = body(target.function(), target.input(), target.method());
            if let Err(failure) = &done {
                target.set_failure(failure.status());
            }
            done
        }
        (Which::Output, End::Origin(origin)) => {
            // The program may hold pointers to the bytes until the handle is forwarded again, so
            // the handle keeps them. The lock is released because `body` runs the program's proc.
            let answer = {
                let mut answer = held.answer.lock();
                let kept = match answer.take() {
                    Some(kept) => kept,
                    None => Arc::new(origin.output()?),
                };
                answer.insert(kept).clone()
            };
            body(&origin.function(), &answer, origin.context().class.method)
        }
        (Which::Input, _) => {
            refuse!(
                INVALID_ARG,
                "the handle is for a call made by this process, not for one that it serves"
            )
        }
        (Which::Output, _) => refuse!(INVALID_ARG, "no call of the handle has completed"),
    }
}

fn no_proc(which: Which) -> Failure {
    let text = format!("the function is registered without a proc for its {which:?}");
    Failure::new(Status::FAULT, text)
}

/// Returns received parameters without their trailer, which is checked once. An empty message lacks
/// the trailer.
fn checked<'a>(
    which: Which,
    held: &HandleEntry,
    bytes: &'a [u8],
    method: Method,
) -> Result<&'a [u8]> {
    if bytes.is_empty() {
        return Ok(bytes);
    }
    let done = &held.parameters(which).is_checked;
    if done.load(Ordering::Acquire) {
        return Ok(&bytes[..bytes.len() - trailer_len(method)]);
    }
    let parameters = without_trailer(bytes, method)?;
    done.store(true, Ordering::Release);
    Ok(parameters)
}

/// Decodes the parameters into `data`. The handle keeps a reference until `data` is freed.
///
/// # Safety
/// `data` must be null or the struct that the function's proc expects.
unsafe fn decode(which: Which, handle: Token, data: *mut c_void) -> Result<()> {
    let held = HANDLES.get(handle)?;
    check(data)?;
    let (offset, runner) = (offset(which, &held), runner(handle, &held));
    with_body(which, &held, |function, bytes, method| {
        let over = which.proc(function).ok_or_else(|| no_proc(which))?;
        let Some(bytes) = bytes.get(offset..) else {
            refuse!(
                OVERFLOW,
                "{} bytes arrived, fewer than the offset of {offset} bytes",
                bytes.len()
            );
        };
        let parameters = checked(which, &held, bytes, method)?;
        // SAFETY: by contract, `data` is the struct that the proc expects; it is not null.
        unsafe { runner.decode_part(over, parameters, data) }
    })?;
    held.decoded.fetch_add(1, Ordering::AcqRel);
    held.references.hold();
    Ok(())
}

/// Frees the memory that decoding has allocated. As in Mercury, a program may free an input as an
/// output, which uses the proc of outputs.
///
/// # Safety
/// `data` must be null or a struct that `decode` has filled.
unsafe fn free(which: Which, handle: Token, data: *mut c_void) -> Result<()> {
    let held = HANDLES.get(handle)?;
    check(data)?;
    let function = match held.end() {
        End::Target(target) => target.function().clone(),
        End::Origin(origin) => origin.function(),
        End::Fresh => refuse!(INVALID_ARG, "nothing was decoded from the handle"),
    };
    let over = which.proc(&function).ok_or_else(|| no_proc(which))?;
    // SAFETY: `data` is not null, so by contract `decode` has filled it.
    unsafe { runner(handle, &held).free(over, data) }?;
    let less = |n: i32| (n > 0).then(|| n - 1);
    if held.decoded.fetch_update(Ordering::AcqRel, Ordering::Acquire, less).is_ok() {
        release(handle)?;
    }
    Ok(())
}

/// Returns the length of the program's own bytes and the parameters, without the trailer.
fn payload(which: Which, handle: Token) -> Result<u64> {
    let held = HANDLES.get(handle)?;
    let sent = held.parameters(which).size.load(Ordering::Acquire) as u64;
    let came = with_body(which, &held, |function, bytes, method| {
        let by_proc = which.proc(function).is_some() && bytes.len() > offset(which, &held);
        let trailer = if by_proc { trailer_len(method) } else { 0 };
        Ok(bytes.len().saturating_sub(trailer) as u64)
    });
    Ok(came.unwrap_or(sent))
}

/// Writes the location of the received parameters, or of the handle's buffer to send from.
///
/// # Safety
/// `at` and `size` must be null or valid for a write.
pub(super) unsafe fn buffer(
    which: Which,
    handle: Token,
    at: *mut *mut c_void,
    size: *mut u64,
) -> Result<()> {
    let held = HANDLES.get(handle)?;
    // SAFETY: by this function's contract, `at` and `size` are null or valid for a write.
    let (at, size) = unsafe { (place(at, "buffer")?, maybe(size)) };
    let comes = match held.end() {
        End::Target(_) => which == Which::Input,
        _ => which == Which::Output,
    };
    let (address, bytes) = if comes {
        with_body(which, &held, |_, bytes, _| Ok((bytes.as_ptr().cast_mut(), bytes.len())))?
    } else {
        held.buffer(which)?
    };
    *at = address.cast();
    if let Some(size) = size {
        *size = bytes as u64;
    }
    Ok(())
}

/// Writes the location of received parameters that were too long for their message, or null and 0.
///
/// # Safety
/// `at` and `size` must be null or valid for a write.
unsafe fn extra(which: Which, handle: Token, at: *mut *mut c_void, size: *mut u64) -> Result<()> {
    let held = HANDLES.get(handle)?;
    // SAFETY: by this function's contract, `at` and `size` are null or valid for a write.
    let (at, size) = unsafe { (place(at, "buffer")?, maybe(size)) };
    let room = held.class.room(which) + trailer_len(held.class.class.shared.method);
    let offset = offset(which, &held);
    let came = with_body(which, &held, |_, bytes, _| {
        let rest = bytes.get(offset..).filter(|_| bytes.len() > room);
        Ok(rest.map(|rest| (rest.as_ptr().cast_mut(), rest.len())))
    });
    let (address, bytes) = came.ok().flatten().unwrap_or((ptr::null_mut(), 0));
    *at = address.cast();
    if let Some(size) = size {
        *size = bytes as u64;
    }
    Ok(())
}

/// Checks that this process is the target of the call. The input buffer is freed with the handle.
fn released(handle: Token) -> Result<()> {
    HANDLES.get(handle)?.target().map(drop)
}

calls! { V2_4:
    HG_Get_input_payload_size | HG_Core_get_input_payload_size(handle: Token) -> u64, 0, {
        payload(Which::Input, handle)
    }

    HG_Get_output_payload_size | HG_Core_get_output_payload_size(handle: Token) -> u64, 0, {
        payload(Which::Output, handle)
    }

    HG_Get_input | HG_Get_output [which: Which::Input, Which::Output](
        handle: Token,
        data: *mut c_void,
    ) {
        // SAFETY: by contract, `data` is null or the struct that the function's proc expects.
        unsafe { decode(which, handle, data) }
    }

    HG_Free_input | HG_Free_output [which: Which::Input, Which::Output](
        handle: Token,
        data: *mut c_void,
    ) {
        // SAFETY: by contract, `data` is null or was filled by `HG_Get_input` or `HG_Get_output`.
        unsafe { free(which, handle, data) }
    }

    /// Returns encoded parameters that were received, or the buffer for those to be sent.
    HG_Get_input_buf | HG_Get_output_buf [which: Which::Input, Which::Output](
        handle: Token,
        at: *mut *mut c_void,
        size: *mut u64,
    ) {
        // SAFETY: by the call's contract, `at` and `size` are null or valid for a write.
        unsafe { buffer(which, handle, at, size) }
    }

    HG_Core_get_input | HG_Core_get_output [which: Which::Input, Which::Output](
        handle: Token,
        at: *mut *mut c_void,
        size: *mut u64,
    ) {
        // SAFETY: by the call's contract, `at` and `size` are null or valid for a write.
        unsafe { buffer(which, handle, at, size) }
    }

    /// Returns the encoded parameters if they were too long for their message, else null.
    HG_Get_input_extra_buf | HG_Get_output_extra_buf [which: Which::Input, Which::Output](
        handle: Token,
        at: *mut *mut c_void,
        size: *mut u64,
    ) {
        // SAFETY: by the call's contract, `at` and `size` are null or valid for a write.
        unsafe { extra(which, handle, at, size) }
    }

    /// Does nothing: the input buffer is freed with the handle.
    HG_Release_input_buf | HG_Core_release_input(handle: Token) { released(handle) }
}
