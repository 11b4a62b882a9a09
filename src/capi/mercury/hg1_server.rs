//! `mercury_handler.h`: the server's calls of 2013.

use super::face::{code, maybe, place, timeout, value};
use super::handles::{HANDLES, OUTPUT, free_input, get_input};
use super::hg1_client::global;
use super::params;
use super::table::Token;
use crate::rpc::checksum::Method;
use crate::rpc::failure::refuse;
use crate::rpc::na::memory;
use crate::rpc::proc::{Encoded, Overflow};
use std::os::raw::{c_int, c_uint, c_void};
use std::ptr;

/// Calls that are run in one `HG_Handler_process`, at most.
const AT_A_TIME: usize = 64;

/// Serves for a while: until calls have come and were run, or the time is over. The
/// status says whether any have.
///
/// # Safety
/// `status` must be null, ignored or valid for writes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Handler_process(milliseconds: c_uint, status: *mut u8) -> c_int {
    code("HG_Handler_process", || {
        // SAFETY: passed on from the caller.
        let status = unsafe { maybe(status) };
        let global = global()?;
        let came = global.context.progress(timeout(milliseconds))?;
        let ran = if came { global.context.trigger(AT_A_TIME) } else { 0 };
        if let Some(status) = status {
            *status = u8::from(ran > 0);
        }
        Ok(())
    })
}

/// The address of the caller; it is freed with the handle. Null for no handle.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn HG_Handler_get_addr(handle: Token) -> Token {
    value(
        "HG_Handler_get_addr",
        |_| ptr::null_mut(),
        || {
            let held = HANDLES.get(handle)?;
            held.target()?;
            Ok(held.address())
        },
    )
}

/// Decodes the input. Where that fails and the call is not answered, its origin gets
/// the same error.
///
/// # Safety
/// `in_struct` must be the struct of the function's input.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Handler_get_input(
    handle: Token,
    in_struct: *mut c_void,
) -> c_int {
    // SAFETY: passed on from the caller.
    code("HG_Handler_get_input", || unsafe { get_input(handle, in_struct) })
}

/// Frees what decoding the input has allocated.
///
/// # Safety
/// `in_struct` must have been decoded.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Handler_free_input(
    handle: Token,
    in_struct: *mut c_void,
) -> c_int {
    // SAFETY: passed on from the caller.
    code("HG_Handler_free_input", || unsafe { free_input(handle, in_struct) })
}

/// Answers the call with an output.
///
/// # Safety
/// `out_struct` must be the struct of the function's output.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Handler_start_output(
    handle: Token,
    out_struct: *mut c_void,
) -> c_int {
    code("HG_Handler_start_output", || {
        let held = HANDLES.get(handle)?;
        let target = held.target()?;
        let procs = params::procs(target.function());
        // SAFETY: passed on from the caller.
        target.answer(unsafe { params::encoder(procs.output, out_struct) }, None)
    })
}

/// Frees a handle. A call that was not answered fails at its origin.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn HG_Handler_free(handle: Token) -> c_int {
    code("HG_Handler_free", || {
        let gone = HANDLES.remove_if(handle, |held| held.target().and_then(|_| held.let_go()))?;
        gone.inspect(|held| held.free_address());
        Ok(())
    })
}

/// The encoded input, where it lies; it goes with the handle.
///
/// # Safety
/// The places must be null or valid for writes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Handler_get_input_buf(
    handle: Token,
    in_buf: *mut *mut c_void,
    in_buf_size: *mut usize,
) -> c_int {
    code("HG_Handler_get_input_buf", || {
        let held = HANDLES.get(handle)?;
        let target = held.target()?;
        // SAFETY: passed on from the caller.
        let (at, size) = unsafe { (place(in_buf, "input")?, place(in_buf_size, "size")?) };
        let input = target.input();
        (*at, *size) = (input.as_ptr().cast_mut().cast(), input.len());
        Ok(())
    })
}

/// A buffer for the encoded output, the same each time; it goes with the handle.
///
/// # Safety
/// The places must be null or valid for writes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Handler_get_output_buf(
    handle: Token,
    out_buf: *mut *mut c_void,
    out_buf_size: *mut usize,
) -> c_int {
    code("HG_Handler_get_output_buf", || {
        let held = HANDLES.get(handle)?;
        held.target()?;
        // SAFETY: passed on from the caller.
        let (at, size) = unsafe { (place(out_buf, "output")?, place(out_buf_size, "size")?) };
        (*at, *size) = (held.output()?.cast(), OUTPUT);
        Ok(())
    })
}

/// Answers with an output that is encoded already: so many bytes of the buffer of
/// [`HG_Handler_get_output_buf`], or, where one is given, of another one, which is the
/// program's again when this returns.
///
/// # Safety
/// `buf` must be null or valid for reads of `size` bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Handler_start_response(
    handle: Token,
    buf: *const c_void,
    size: usize,
) -> c_int {
    code("HG_Handler_start_response", || {
        let held = HANDLES.get(handle)?;
        let target = held.target()?;
        let from = if buf.is_null() {
            if size > OUTPUT {
                refuse!(OVERFLOW, "{size} bytes are more than the {OUTPUT} of the output buffer");
            }
            held.output()?.cast_const()
        } else {
            buf.cast::<u8>()
        };
        // SAFETY: the output buffer has as many bytes, and lives as long as `held`; the
        // caller vouches for its own.
        let encoded = unsafe { std::slice::from_raw_parts(from, size) };
        let copy = |buffer: &mut [u8], _: Method| match buffer.get_mut(..size) {
            Some(place) => {
                place.copy_from_slice(encoded);
                Ok(Encoded::Fits(size))
            }
            None => match Overflow::copy(encoded, memory::to_send) {
                Some(overflow) => Ok(Encoded::Overflow(overflow)),
                None => refuse!(NOMEM, "no memory for an output of {size} bytes"),
            },
        };
        target.answer(copy, None)
    })
}
