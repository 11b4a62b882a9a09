//! Parameters in C structs: a function's procs encode, decode and free them.

use super::interface::Interface;
use super::table::Token;
use portolan_base::config::Config;
use portolan_rpc::checksum::Method;
use portolan_rpc::failure::{Failure, Result, refuse};
use portolan_rpc::hg::payload::Encode;
use portolan_rpc::hg::target::Function;
use portolan_rpc::na::memory;
use portolan_rpc::proc::state::Attached;
use portolan_rpc::proc::{Encoded, Proc};
use std::os::raw::{c_int, c_void};
use std::ptr;

pub(crate) type ProcCallback =
    Option<unsafe extern "C-unwind" fn(*mut c_void, *mut c_void) -> c_int>;

/// Runs a call at its target.
pub(crate) type RpcCallback = Option<unsafe extern "C-unwind" fn(Token) -> c_int>;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Procs {
    /// `None` if the function takes no input.
    pub input: ProcCallback,
    /// `None` if the function returns no output.
    pub output: ProcCallback,
}

/// Both are `None` if the function was registered without procs.
pub(super) fn procs(function: &Function) -> Procs {
    let attached = function.extra.as_ref().and_then(|extra| extra.downcast_ref::<Procs>());
    attached.copied().unwrap_or_default()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    Input,
    Output,
}

impl Which {
    pub(super) fn proc(self, function: &Function) -> ProcCallback {
        let procs = procs(function);
        match self {
            Which::Input => procs.input,
            Which::Output => procs.output,
        }
    }
}

type ProcFunction = unsafe extern "C-unwind" fn(*mut c_void, *mut c_void) -> c_int;

/// Runs procs, in which `hg_proc_get_class` and `hg_proc_get_handle` return these values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Runner {
    pub interface: Interface,
    pub attached: Attached,
}

/// `HG_PROC_BULK_EAGER`: bulk handles of memory that others only read may carry its bytes.
pub(super) const EAGER: u8 = 2;

/// Runs the procs of 2013, which have neither a class nor a handle.
pub(super) const OF_2013: Runner = Runner {
    interface: Interface::V2013,
    attached: Attached { class: ptr::null_mut(), handle: ptr::null_mut(), flags: 0 },
};

impl Runner {
    /// Fails with the proc's first fault. If the function returns a code other than 0, the failure
    /// has the status of that code in 2.4, and `PROTOCOL_ERROR` in 2013.
    ///
    /// # Safety
    /// `data` must point to the struct that `over` expects.
    unsafe fn run(self, over: ProcFunction, proc: &mut Proc<'_>, data: *mut c_void) -> Result<()> {
        proc.attached = self.attached;
        let at: *mut Proc<'_> = proc;
        // SAFETY: `over` is the program's function for `data`, and the proc outlives the call.
        let code = unsafe { over(at.cast(), data) };
        if let Some(fault) = proc.fault() {
            return Err(fault.clone().into());
        }
        if code != 0 {
            let status = self.interface.proc_status(code);
            let text = format!("the proc function of the parameters returns {code}");
            return Err(Failure::new(status, text));
        }
        Ok(())
    }

    /// # Safety
    /// `data` must point to the struct that `over` expects.
    pub(super) unsafe fn encode(
        self,
        over: ProcFunction,
        buffer: &mut [u8],
        method: Method,
        data: *mut c_void,
    ) -> Result<Encoded> {
        let mut proc = Proc::encoder(buffer, method);
        proc.set_source(memory::to_send);
        // SAFETY: the caller guarantees that `data` is the struct that `over` expects.
        unsafe { self.run(over, &mut proc, data) }?;
        Ok(Encoded::of(&mut proc)?)
    }

    /// Decodes `bytes` into the struct at `data`. If bytes are left over or the checksum is wrong,
    /// the struct is freed again. If the proc function itself fails, it must free what it decoded.
    ///
    /// # Safety
    /// `data` must point to the struct that `over` expects.
    pub(super) unsafe fn decode(
        self,
        over: ProcFunction,
        bytes: &[u8],
        method: Method,
        data: *mut c_void,
    ) -> Result<()> {
        let mut proc = Proc::decoder(bytes, method);
        // SAFETY: the caller guarantees that `data` is the struct that `over` expects.
        unsafe { self.run(over, &mut proc, data) }?;
        if let Err(fault) = proc.finish() {
            // SAFETY: the proc function has decoded the whole struct.
            if let Err(failure) = unsafe { self.free(over, data) } {
                log::warn!("parameters are not freed: {}", failure.text());
            }
            return Err(fault.into());
        }
        Ok(())
    }

    /// Decodes the struct at `data` from the beginning of `parameters`, without a trailer. Bytes
    /// may be left over. If the proc function fails, it must free what it has decoded.
    ///
    /// # Safety
    /// `data` must point to the struct that `over` expects.
    pub(super) unsafe fn decode_part(
        self,
        over: ProcFunction,
        parameters: &[u8],
        data: *mut c_void,
    ) -> Result<()> {
        let mut proc = Proc::decoder(parameters, Method::None);
        // SAFETY: the caller guarantees that `data` is the struct that `over` expects.
        unsafe { self.run(over, &mut proc, data) }
    }

    /// # Safety
    /// `data` must point to a struct that `over` has decoded.
    pub(super) unsafe fn free(self, over: ProcFunction, data: *mut c_void) -> Result<()> {
        // SAFETY: the caller guarantees that `over` has decoded the struct.
        unsafe { self.run(over, &mut Proc::freer(), data) }
    }
}

/// Fails with `INVALID_ARG` if `data` is null.
#[inline]
pub(super) fn check(data: *mut c_void) -> Result<()> {
    if data.is_null() {
        refuse!(INVALID_ARG, "the struct of the parameters is null");
    }
    Ok(())
}

/// Encodes the struct at `data` for 2013. Without `over`, encodes nothing.
///
/// # Safety
/// When the closure runs, `data` must be null or point to the struct that `over` expects.
#[inline]
pub(super) unsafe fn encoder(over: ProcCallback, data: *mut c_void) -> impl Encode {
    move |buffer: &mut [u8], method: Method| {
        let Some(over) = over else { return Ok(Encoded::Fits(0)) };
        check(data)?;
        // SAFETY: `data` is not null, so by contract, it is the struct that `over` expects.
        unsafe { OF_2013.encode(over, buffer, method, data) }
    }
}

/// Decodes `bytes` into the struct at `data` for the interface of 2013.
///
/// # Safety
/// `data` must be null or point to the struct that `over` expects.
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
            "{} bytes of parameters arrived, but the function is registered without parameters",
            bytes.len()
        );
    };
    check(data)?;
    // SAFETY: `data` is not null, so by contract, it is the struct that `over` expects.
    unsafe { OF_2013.decode(over, bytes, method, data) }
}

/// Frees what decoding has allocated for 2013. A failure is only logged.
///
/// # Safety
/// `data` must be null or a struct that `over` has decoded.
pub(super) unsafe fn free(over: ProcCallback, data: *mut c_void) {
    if let (Some(over), false) = (over, data.is_null()) {
        // SAFETY: `data` is not null, so the caller guarantees that `over` has decoded it.
        let freed = unsafe { OF_2013.free(over, data) };
        if let Err(failure) = freed {
            log::warn!("parameters are not freed: {}", failure.text());
        }
    }
}

/// Fails with `INVALID_ARG` if no method has the name that is set.
pub(super) fn checksum_method() -> Result<Method> {
    let name = &Config::from_env()?.rpc_checksum;
    match Method::from_name(name) {
        Some(method) => Ok(method),
        None => refuse!(
            INVALID_ARG,
            "unknown checksum '{name}'; expected crc64, crc32c, crc16, adler32 or none"
        ),
    }
}
