//! `mercury_handler.h`: the server's calls of 2013, and the handles of both sides.

use super::face::{code, maybe, place, timeout, value};
use super::hg1_client::global;
use super::na::ADDRESSES;
use super::params;
use super::table::{Number, Table, Token};
use crate::rpc::checksum::Method;
use crate::rpc::failure::{Failure, Result, Status, refuse};
use crate::rpc::hg::Context;
use crate::rpc::hg::origin::Origin;
use crate::rpc::hg::target::Target;
use crate::rpc::na::Address;
use crate::rpc::na::memory::{self, ZeroedBuffer};
use crate::rpc::proc::{Encoded, Overflow};
use parking_lot::Mutex;
use std::os::raw::{c_int, c_uint, c_void};
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};

/// Calls that are run in one `HG_Handler_process`, at most.
const AT_A_TIME: usize = 64;
/// Bytes of the buffer in which a program may encode an output by itself.
const OUTPUT: usize = 4096;

/// A call at one of its ends.
#[derive(Debug, Clone)]
pub(super) enum End {
    Target(Arc<Target>),
    Origin(Arc<Origin>),
}

/// What a handle stands for.
#[derive(Debug)]
pub(super) struct Held {
    pub end: End,
    pub references: AtomicI32,
    /// Callbacks that are to get the handle: it stays until they have run.
    flights: AtomicI32,
    /// The address that the handle has given away, freed with it.
    address: Mutex<usize>,
    output: OnceLock<ZeroedBuffer>,
    pub info: Mutex<Option<Box<super::hg2_class::HgInfo>>>,
    pub data: Mutex<super::hg2_class::Attached>,
}

pub(super) static HANDLES: Table<Arc<Held>> = Table::new("handle", 0x22);

pub(super) fn hold_end(end: End) -> Token {
    HANDLES.insert(Arc::new(Held {
        end,
        references: AtomicI32::new(1),
        flights: AtomicI32::new(0),
        address: Mutex::new(0),
        output: OnceLock::new(),
        info: Mutex::new(None),
        data: Mutex::default(),
    }))
}

/// A handle for a call at its target.
pub(super) fn hold(target: Arc<Target>) -> Token {
    hold_end(End::Target(target))
}

/// Takes a handle back, if it is still there.
pub(super) fn let_go(handle: Token) {
    if let Ok(held) = HANDLES.remove(handle) {
        held.free_address();
    }
}

/// Drops the handles of a context.
pub(super) fn drop_those_of(context: &Context) {
    let of = |held: &Arc<Held>| match &held.end {
        End::Target(target) => Arc::ptr_eq(target.context(), &context.shared),
        End::Origin(origin) => Arc::ptr_eq(origin.context(), &context.shared),
    };
    while let Some(token) = HANDLES.find(of) {
        let_go(token);
    }
}

impl Held {
    /// The call at its target.
    ///
    /// # Errors
    /// `INVALID_ARG` for one of this process.
    pub fn target(&self) -> Result<&Arc<Target>> {
        match &self.end {
            End::Target(target) => Ok(target),
            End::Origin(_) => Err(not_served()),
        }
    }

    /// The handles of its class and its context; null for those of `HG_Init`.
    pub fn class_and_context(&self) -> (Token, Token) {
        super::hg2_class::tokens_of(match &self.end {
            End::Target(target) => target.context(),
            End::Origin(origin) => origin.context(),
        })
    }

    /// One reference less; whether nothing else keeps the handle. Under the table's lock.
    fn let_go(&self) -> Result<bool> {
        if self.references.load(Ordering::Acquire) <= 0 {
            refuse!(INVALID_ARG, "the handle was freed; only its callback is still to run");
        }
        let last = self.references.fetch_sub(1, Ordering::AcqRel) <= 1;
        Ok(last && self.flights.load(Ordering::Acquire) == 0)
    }

    /// The address of the other side, the same handle each time; null where that is not
    /// told yet.
    pub fn address(&self) -> Token {
        let mut address = self.address.lock();
        if *address == 0 {
            *address = self.peer().map_or(0, |peer| ADDRESSES.insert(peer) as usize);
        }
        *address as Token
    }

    /// The buffer for an output.
    fn output(&self) -> Result<*mut u8> {
        if let Some(buffer) = self.output.get() {
            return Ok(buffer.address());
        }
        let fresh = ZeroedBuffer::new(OUTPUT)?;
        Ok(self.output.get_or_init(|| fresh).address())
    }

    fn peer(&self) -> Option<Address> {
        match &self.end {
            End::Target(target) => Some(target.source()),
            End::Origin(origin) => origin.address(),
        }
    }

    /// Frees the address that was given away.
    pub fn free_address(&self) {
        let address = std::mem::take(&mut *self.address.lock());
        *self.info.lock() = None;
        if address != 0 {
            // The program may have freed it, though it need not.
            let _ = ADDRESSES.remove(address as Token);
        }
    }
}

#[cold]
fn not_served() -> Failure {
    let text = "the handle is for a call of this process, not one that it serves";
    Failure::new(Status::INVALID_ARG, text)
}

/// Serves for a while: until calls have come and were run, or the time is over. The
/// status says whether any have.
///
/// # Safety
/// `status` must be null, ignored or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HG_Handler_process(milliseconds: c_uint, status: *mut u8) -> c_int {
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
pub extern "C" fn HG_Handler_get_addr(handle: Token) -> Token {
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

/// # Safety
/// `in_struct` must be what the function's proc goes over.
pub(super) unsafe fn get_input(handle: Token, in_struct: *mut c_void) -> Result<()> {
    let held = HANDLES.get(handle)?;
    let target = held.target()?;
    let procs = params::procs(target.function());
    // SAFETY: passed on from the caller.
    let decoded =
        unsafe { params::decode(procs.input, target.input(), target.method(), in_struct) };
    if let Err(failure) = &decoded {
        target.set_failure(failure.status);
    }
    decoded
}

/// Decodes the input. Where that fails and the call is not answered, its origin gets
/// the same error.
///
/// # Safety
/// `in_struct` must be the struct of the function's input.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HG_Handler_get_input(handle: Token, in_struct: *mut c_void) -> c_int {
    // SAFETY: passed on from the caller.
    code("HG_Handler_get_input", || unsafe { get_input(handle, in_struct) })
}

/// Frees what decoding a call's input has allocated.
///
/// # Safety
/// `in_struct` must be null or what was decoded.
pub(super) unsafe fn free_input(handle: Token, in_struct: *mut c_void) -> Result<()> {
    let procs = params::procs(HANDLES.get(handle)?.target()?.function());
    if in_struct.is_null() && procs.input.is_some() {
        refuse!(INVALID_ARG, "the struct of the input is null");
    }
    // SAFETY: passed on from the caller.
    unsafe { params::free(procs.input, in_struct) };
    Ok(())
}

/// Frees what decoding the input has allocated.
///
/// # Safety
/// `in_struct` must have been decoded.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HG_Handler_free_input(handle: Token, in_struct: *mut c_void) -> c_int {
    // SAFETY: passed on from the caller.
    code("HG_Handler_free_input", || unsafe { free_input(handle, in_struct) })
}

/// Answers the call with an output.
///
/// # Safety
/// `out_struct` must be the struct of the function's output.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HG_Handler_start_output(handle: Token, out_struct: *mut c_void) -> c_int {
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
pub extern "C" fn HG_Handler_free(handle: Token) -> c_int {
    code("HG_Handler_free", || {
        let gone = HANDLES.remove_if(handle, |held| held.target().and_then(|_| held.let_go()))?;
        gone.inspect(|held| held.free_address());
        Ok(())
    })
}

/// One reference less; at none the handle goes, as soon as no callback is to get it.
pub(super) fn destroy(handle: Token) -> Result<()> {
    if handle.is_null() {
        return Ok(());
    }
    HANDLES.remove_if(handle, |held| held.let_go())?.inspect(|held| held.free_address());
    Ok(())
}

/// Keeps a handle for a callback that is to get it.
pub(super) struct Flight(Number);

impl Flight {
    /// Of a handle whose call begins.
    pub fn of(handle: Token, held: &Held) -> Flight {
        held.flights.fetch_add(1, Ordering::AcqRel);
        Flight(Number::of(handle))
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let landed = |held: &Arc<Held>| {
            let last = held.flights.fetch_sub(1, Ordering::AcqRel) <= 1;
            Ok(last && held.references.load(Ordering::Acquire) <= 0)
        };
        // The handle may have gone with its context.
        if let Ok(Some(held)) = HANDLES.remove_if(self.0.token(), landed) {
            held.free_address();
        }
    }
}

/// The encoded input, where it lies; it goes with the handle.
///
/// # Safety
/// The places must be null or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HG_Handler_get_input_buf(
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
pub unsafe extern "C" fn HG_Handler_get_output_buf(
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
pub unsafe extern "C" fn HG_Handler_start_response(
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
