//! `mercury_handler.h`: the server calls of 2013, three of them also under the names of 0.9.

use super::client::global;
use crate::boundary::array;
use crate::mercury::entry::{maybe, place, timeout};
use crate::mercury::interface::calls;
use crate::mercury::objects::handle::{HANDLES, release};
use crate::mercury::params::{self, Which};
use crate::mercury::table::Token;
use portolan_rpc::checksum::Method;
use portolan_rpc::failure::refuse;
use portolan_rpc::na::memory;
use portolan_rpc::proc::{Encoded, Overflow};
use std::os::raw::{c_uint, c_void};
use std::ptr;

/// The largest number of calls that one `HG_Handler_process` runs.
const AT_A_TIME: usize = 64;

calls! { V2013:
    HG_Handler_process(milliseconds: c_uint, status: *mut u8) {
        // SAFETY: by contract, `status` is null, `HG_STATUS_IGNORE` or valid for writes.
        let status = unsafe { maybe(status) };
        let global = global()?;
        let came = global.context.progress(timeout(milliseconds))?;
        let ran = if came { global.context.trigger(AT_A_TIME) } else { 0 };
        if let Some(status) = status {
            *status = u8::from(ran > 0);
        }
        Ok(())
    }

    /// Returns the address of the caller, freed with the handle, or null if the handle is invalid.
    HG_Handler_get_addr(handle: Token) -> Token, ptr::null_mut(), {
        let held = HANDLES.get(handle)?;
        held.target()?;
        Ok(held.address())
    }

    /// Decodes the input. If that fails and the call is never answered, its origin gets the error.
    HG_Handler_get_input | HG_Get_input(handle: Token, in_struct: *mut c_void) {
        let held = HANDLES.get(handle)?;
        let target = held.target()?;
        let over = params::procs(target.function()).input;
        // SAFETY: by contract, `in_struct` is null or the struct that the input proc expects.
        let decoded =
            unsafe { params::decode(over, target.input(), target.method(), in_struct) };
        if let Err(failure) = &decoded {
            target.set_failure(failure.status());
        }
        decoded
    }

    HG_Handler_free_input | HG_Free_input(handle: Token, in_struct: *mut c_void) {
        let over = params::procs(HANDLES.get(handle)?.target()?.function()).input;
        if in_struct.is_null() && over.is_some() {
            refuse!(INVALID_ARG, "the struct of the input is null");
        }
        // SAFETY: the caller guarantees that `in_struct` is null or was decoded by the input proc.
        unsafe { params::free(over, in_struct) };
        Ok(())
    }

    HG_Handler_start_output(handle: Token, out_struct: *mut c_void) {
        let held = HANDLES.get(handle)?;
        let target = held.target()?;
        let procs = params::procs(target.function());
        // SAFETY: by contract, `out_struct` is null or the struct that the output proc expects.
        target.answer(unsafe { params::encoder(procs.output, out_struct) }, None)
    }

    /// Frees a handle. A call that was not answered fails at its origin.
    HG_Handler_free | HG_Destroy(handle: Token) {
        if handle.is_null() {
            HANDLES.get(handle)?; // the error
        }
        release(handle)
    }

    HG_Handler_get_input_buf(handle: Token, in_buf: *mut *mut c_void, in_buf_size: *mut usize) {
        let held = HANDLES.get(handle)?;
        let target = held.target()?;
        // SAFETY: the caller guarantees that the pointers are null or valid for writes.
        let (at, size) = unsafe { (place(in_buf, "input")?, place(in_buf_size, "size")?) };
        let input = target.input();
        (*at, *size) = (input.as_ptr().cast_mut().cast(), input.len());
        Ok(())
    }

    HG_Handler_get_output_buf(handle: Token, out_buf: *mut *mut c_void, out_buf_size: *mut usize) {
        let held = HANDLES.get(handle)?;
        // SAFETY: the caller guarantees that the pointers are null or valid for writes.
        let (at, size) = unsafe { (place(out_buf, "output")?, place(out_buf_size, "size")?) };
        let (buffer, room) = held.buffer(Which::Output)?;
        (*at, *size) = (buffer.cast(), room);
        Ok(())
    }

    /// Answers the call with an encoded output: the first `size` bytes of `buf`, which may be
    /// reused on return, or of the buffer of [`HG_Handler_get_output_buf`] if `buf` is null.
    HG_Handler_start_response(handle: Token, buf: *const c_void, size: usize) {
        let held = HANDLES.get(handle)?;
        let from = if buf.is_null() {
            let (buffer, room) = held.buffer(Which::Output)?;
            if size > room {
                refuse!(OVERFLOW, "{size} bytes are more than the {room} of the output buffer");
            }
            buffer.cast_const()
        } else {
            buf.cast::<u8>()
        };
        // SAFETY: the output buffer has at least `size` bytes, as checked, and lives as long as
        // `held`. By contract, a `buf` that is not null is valid for reads of `size` bytes.
        let encoded = unsafe { array(from, size, "the output") }?;
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
        held.target()?.answer(copy, None)
    }
}
