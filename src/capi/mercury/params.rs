//! Parameters of C: the procs of a function, encoding, decoding, freeing.

use crate::config::Config;
use crate::rpc::checksum::Method;
use crate::rpc::failure::{Result, Status, refuse};
use crate::rpc::hg::payload::Encode;
use crate::rpc::hg::target::Function;
use crate::rpc::na::memory;
use crate::rpc::proc::{Encoded, Proc};
use std::os::raw::{c_int, c_void};

/// `hg_proc_cb_t`.
pub(crate) type ProcCallback = Option<unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int>;

/// The procs of a function, attached to it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Procs {
    /// Goes over the input; none where there is no input.
    pub input: ProcCallback,
    /// Goes over the output.
    pub output: ProcCallback,
}

/// The procs of a function.
pub(super) fn procs(function: &Function) -> Procs {
    let attached = function.extra.as_ref().and_then(|extra| extra.downcast_ref::<Procs>());
    attached.copied().unwrap_or_default()
}

/// Runs a program's proc function.
///
/// # Safety
/// `data` must be what the function goes over.
unsafe fn run(
    over: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
    proc: &mut Proc<'_>,
    data: *mut c_void,
) -> Result<()> {
    let at: *mut Proc<'_> = proc;
    // SAFETY: the program's function, with a live proc and its own data.
    let code = unsafe { over(at.cast(), data) };
    if let Some(fault) = proc.fault() {
        return Err(fault.clone().into());
    }
    if code != 0 {
        refuse!(PROTOCOL_ERROR, "the proc function of the parameters returns {code}");
    }
    Ok(())
}

fn check(data: *mut c_void) -> Result<()> {
    if data.is_null() {
        refuse!(INVALID_ARG, "the struct of the parameters is null");
    }
    Ok(())
}

/// Encodes a struct. A null one is legal where there are no parameters.
///
/// # Safety
/// `data` must be null or what the function goes over.
pub(super) unsafe fn encoder(over: ProcCallback, data: *mut c_void) -> impl Encode {
    move |buffer: &mut [u8], method: Method| {
        let Some(over) = over else { return Ok(Encoded::Fits(0)) };
        check(data)?;
        let mut proc = Proc::encoder(buffer, method);
        proc.set_source(memory::to_send);
        // SAFETY: passed on from the caller.
        unsafe { run(over, &mut proc, data) }?;
        Ok(Encoded::of(&mut proc)?)
    }
}

/// Decodes into a struct. What was allocated before a failure is freed.
///
/// # Safety
/// `data` must be null or what the function goes over.
pub(super) unsafe fn decode(
    over: ProcCallback,
    bytes: &[u8],
    method: Method,
    data: *mut c_void,
) -> Result<()> {
    let Some(over) = over else {
        if bytes.is_empty() {
            return Ok(());
        }
        refuse!(
            PROTOCOL_ERROR,
            "{} bytes of parameters came, but the function is registered without",
            bytes.len()
        );
    };
    check(data)?;
    let mut proc = Proc::decoder(bytes, method);
    // SAFETY: passed on from the caller.
    unsafe { run(over, &mut proc, data) }?;
    if let Err(fault) = proc.finish() {
        // SAFETY: all of it was decoded.
        unsafe { free(Some(over), data) };
        return Err(fault.into());
    }
    Ok(())
}

/// Frees what decoding has allocated.
///
/// # Safety
/// `data` must be null or what was decoded.
pub(super) unsafe fn free(over: ProcCallback, data: *mut c_void) {
    if let (Some(over), false) = (over, data.is_null()) {
        let mut proc = Proc::freer();
        // SAFETY: passed on from the caller. Freeing has no failures.
        let freed = unsafe { run(over, &mut proc, data) };
        if let Err(failure) = freed {
            log::warn!("parameters are not freed: {}", failure.text);
        }
    }
}

/// The checksum that parameters get, as `PORTOLAN_RPC_CHECKSUM` says.
pub(super) fn checksum_method() -> Result<Method> {
    method_named(&Config::from_env()?.rpc_checksum)
}

/// The checksum of a name.
pub(super) fn method_named(name: &str) -> Result<Method> {
    match Method::from_name(name) {
        Some(method) => Ok(method),
        None => refuse!(
            INVALID_ARG,
            "there is no checksum '{name}'; expected crc64, crc32c, crc16, adler32 or none"
        ),
    }
}

/// The status of a code of C.
pub(super) fn status(code: c_int) -> Status {
    Status(code)
}
