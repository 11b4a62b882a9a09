//! `mercury.h`: the client's calls of 2013.
//!
//! There is one class for all, made by `HG_Init`, and one context. A wait for a request
//! runs calls of others that come meanwhile, as `HG_Handler_process` does: so a handler
//! may forward a call and wait, also where others wait for this process.

use super::bulk;
use super::face::{bytes, code, error_text, maybe, place, report, text, timeout, value};
use super::functions::{RpcCallback, register};
use super::handles;
use super::params::{self, ProcCallback, Procs};
use super::table::{ADDRESSES, CLASSES, Number, Table, Token};
use crate::rpc::failure::{Failure, Result, Status, refuse};
use crate::rpc::hg::origin::{Origin, Spares};
use crate::rpc::hg::{Class, Context};
use crate::rpc::na::Address;
use parking_lot::{Mutex, RwLock};
use std::os::raw::{c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// The class of `HG_Init`.
#[derive(Debug)]
pub(super) struct Global {
    pub class: Class,
    pub context: Context,
    na: Number,
    bulk_is_ours: bool,
}

static GLOBAL: RwLock<Option<Arc<Global>>> = RwLock::new(None);
/// Held while Mercury begins.
static TURN: Mutex<()> = Mutex::new(());
static INITIALIZED: AtomicBool = AtomicBool::new(false);
static REQUESTS: Table<Request> = Table::new("request", 0x21);
/// Calls whose requests were freed.
static SPARES: LazyLock<Spares> = LazyLock::new(Spares::default);

/// A call under way.
#[derive(Clone)]
struct Request {
    origin: Arc<Origin>,
    procs: Procs,
    output: *mut c_void,
    /// Whether the output was decoded, and how that went; none where it is not wanted.
    decoded: Option<Arc<Mutex<Option<Result<()>>>>>,
}

// SAFETY: the output is the program's struct, which it gives away until it has waited
// for the request; the mutex orders accesses.
unsafe impl Send for Request {}
// SAFETY: as above.
unsafe impl Sync for Request {}

/// The class of `HG_Init`.
///
/// # Errors
/// `FAIL` before it.
pub(super) fn global() -> Result<Arc<Global>> {
    match &*GLOBAL.read() {
        Some(global) => Ok(global.clone()),
        None => Err(not_initialized()),
    }
}

#[cold]
fn not_initialized() -> Failure {
    Failure::new(Status::FAIL, "Mercury is not initialised; call HG_Init first")
}

/// # Errors
/// `FAIL` before `HG_Init`.
#[inline]
fn check_initialized() -> Result<()> {
    if INITIALIZED.load(Ordering::Acquire) { Ok(()) } else { global().map(drop) }
}

/// Begins, over a network class. Calls `HG_Bulk_init` too, unless that was called.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn HG_Init(na_class: Token) -> c_int {
    code("HG_Init", || {
        let na = CLASSES.get(na_class)?;
        let _turn = TURN.lock();
        if GLOBAL.read().is_some() {
            refuse!(BUSY, "Mercury is initialised already; call HG_Finalize first");
        }
        let class = Class::over(&na, params::checksum_method()?)?;
        class.set_inline(true);
        let context = class.context()?;
        let bulk_is_ours = bulk::init_unless(na_class)?;
        let made = Arc::new(Global { class, context, na: Number::of(na_class), bulk_is_ours });
        *GLOBAL.write() = Some(made);
        INITIALIZED.store(true, Ordering::Release);
        Ok(())
    })
}

/// Ends. Requests that were not freed are cancelled; so is the bulk part, if `HG_Init`
/// has begun it. `HG_BUSY` in a handler.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn HG_Finalize() -> c_int {
    code("HG_Finalize", || {
        let global = global()?;
        global.context.shared.check_idle()?;
        INITIALIZED.store(false, Ordering::Release);
        *GLOBAL.write() = None;
        for request in REQUESTS.drain() {
            request.origin.cancel();
        }
        SPARES.clear();
        handles::drop_those_of(&global.context);
        let closed = global.class.finalize();
        let destroyed = global.context.destroy();
        if global.bulk_is_ours && bulk::is_initialized() {
            bulk::finalize()?;
        }
        closed.and(destroyed)
    })
}

/// Whether `HG_Init` was called, and with which class.
///
/// # Safety
/// The places must be null or valid for writes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Initialized(flag: *mut u8, na_class: *mut Token) -> c_int {
    code("HG_Initialized", || {
        let now = GLOBAL.read().clone();
        // SAFETY: passed on from the caller.
        unsafe {
            *place(flag, "flag")? = u8::from(now.is_some());
            if let Some(to) = maybe(na_class) {
                *to = now.map_or(std::ptr::null_mut(), |global| global.na.token());
            }
        }
        Ok(())
    })
}

/// Registers a function; its number is the same wherever the name is registered. 0
/// where that fails.
///
/// # Safety
/// `func_name` must be null or a terminated string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Register(
    func_name: *const c_char,
    in_proc_cb: ProcCallback,
    out_proc_cb: ProcCallback,
    rpc_cb: RpcCallback,
) -> u32 {
    value(
        "HG_Register",
        |_| 0,
        || {
            // SAFETY: passed on from the caller.
            unsafe { register(&global()?.class, func_name, in_proc_cb, out_proc_cb, rpc_cb) }
        },
    )
}

/// Whether a name is registered, and its number.
///
/// # Safety
/// `func_name` must be null or a terminated string, the places null or valid.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Registered(
    func_name: *const c_char,
    flag: *mut u8,
    id: *mut u32,
) -> c_int {
    code("HG_Registered", || {
        // SAFETY: passed on from the caller.
        unsafe {
            let name = text(func_name, "function's name")?;
            let found = global()?.class.shared.functions.named(&name);
            *place(flag, "flag")? = u8::from(found.is_some());
            if let (Some(id), Some(function)) = (maybe(id), found) {
                *id = function.id;
            }
        }
        Ok(())
    })
}

/// Forwards a call. Where the address is this process's own, the call runs here, at
/// once.
///
/// # Safety
/// The structs must be those that the function's procs go over; the output's must stay
/// until the request was waited for or freed.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Forward(
    addr: Token,
    id: u32,
    in_struct: *mut c_void,
    out_struct: *mut c_void,
    request: *mut Token,
) -> c_int {
    code("HG_Forward", || {
        check_initialized()?;
        let address = ADDRESSES.get(addr)?;
        // SAFETY: passed on from the caller.
        let to = unsafe { place(request, "request") }?;
        let (origin, procs) = call_of(address, id)?;
        // SAFETY: as above.
        origin.forward(unsafe { params::encoder(procs.input, in_struct) }, None)?;
        let decoded = (!out_struct.is_null()).then(Arc::default);
        *to = REQUESTS.insert(Request { origin, procs, output: out_struct, decoded });
        Ok(())
    })
}

/// A call over the class of `HG_Init`, which is not held any longer than that: the call
/// may run here, and end it.
fn call_of(address: Address, id: u32) -> Result<(Arc<Origin>, Procs)> {
    let global = GLOBAL.read();
    let Some(global) = &*global else { return Err(not_initialized()) };
    let Some(function) = global.class.shared.functions.get(id) else {
        refuse!(NO_MATCH, "no function is registered here with the number {id:#x}");
    };
    let procs = params::procs(&function);
    Ok((SPARES.origin(&global.context.shared, address, function), procs))
}

impl Request {
    /// Waits, and decodes the output once.
    fn wait(&self, time: Duration) -> Result<bool> {
        if !self.origin.wait(time)? {
            return Ok(false);
        }
        let Some(decoded) = &self.decoded else {
            return self.origin.outcome().map(|()| true);
        };
        let mut decoded = decoded.lock();
        if decoded.is_none() {
            *decoded = Some(self.decode());
        }
        match &*decoded {
            Some(Err(failure)) => Err(failure.clone()),
            _ => Ok(true),
        }
    }

    fn decode(&self) -> Result<()> {
        let body = self.origin.output()?;
        let method = self.origin.context().class.method;
        // SAFETY: the program gives its struct until the request is freed.
        unsafe { params::decode(self.procs.output, &body, method, self.output) }
    }
}

/// Waits for a call. Where it fails, that is what is returned, and the status says
/// that it has ended; where the time is over, the status says that it has not (without
/// a status, `HG_TIMEOUT` is returned).
///
/// # Safety
/// `status` must be null, ignored or valid for writes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Wait(
    request: Token,
    milliseconds: c_uint,
    status: *mut u8,
) -> c_int {
    code("HG_Wait", || {
        // SAFETY: passed on from the caller.
        let status = unsafe { maybe(status) };
        check_initialized()?;
        let waited = REQUESTS.get(request)?.wait(timeout(milliseconds));
        report(waited, status, milliseconds)
    })
}

/// Waits for several calls, for the whole of the time together. Returns the first
/// failure.
///
/// # Safety
/// The arrays must have `count` elements; that of statuses may be null or ignored.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Wait_all(
    count: c_int,
    array_of_requests: *const Token,
    milliseconds: c_uint,
    array_of_statuses: *mut u8,
) -> c_int {
    code("HG_Wait_all", || {
        global()?;
        let Ok(count) = usize::try_from(count) else {
            refuse!(INVALID_ARG, "{count} requests cannot be waited for");
        };
        // SAFETY: passed on from the caller.
        let tokens = unsafe { bytes(array_of_requests, count, "requests") }?;
        let requests: Vec<_> = tokens.iter().map(|&t| REQUESTS.get(t)).collect::<Result<_>>()?;
        let end = Instant::now() + timeout(milliseconds);
        let (mut first, mut late) = (None, false);
        for (n, request) in requests.iter().enumerate() {
            let waited = request.wait(end.saturating_duration_since(Instant::now()));
            late |= matches!(waited, Ok(false));
            if array_of_statuses as usize > 1 {
                // SAFETY: the array has as many elements.
                unsafe { *array_of_statuses.add(n) = u8::from(!matches!(waited, Ok(false))) };
            }
            if let Err(failure) = waited {
                first.get_or_insert(failure);
            }
        }
        match first {
            Some(failure) => Err(failure),
            None if late && array_of_statuses as usize <= 1 => {
                refuse!(TIMEOUT, "not all requests have ended in {milliseconds} ms")
            }
            None => Ok(()),
        }
    })
}

/// Frees a request and what decoding its output has allocated. A call that has not
/// ended is cancelled: its output is not written any more.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn HG_Request_free(request: Token) -> c_int {
    code("HG_Request_free", || {
        let request = REQUESTS.remove(request)?;
        request.origin.cancel();
        if let Some(decoded) = &request.decoded
            && let Some(Ok(())) = &*decoded.lock()
        {
            // SAFETY: it was decoded, and the program has it still.
            unsafe { params::free(request.procs.output, request.output) };
        }
        SPARES.give(request.origin);
        Ok(())
    })
}

/// What a code means.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn HG_Error_to_string(errnum: c_int) -> *const c_char {
    error_text(Status(errnum), "HG_").as_ptr()
}

/// The version of the interface.
///
/// # Safety
/// The places must be null or valid for writes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn HG_Version_get(
    major: *mut c_uint,
    minor: *mut c_uint,
    patch: *mut c_uint,
) -> c_int {
    for (to, number) in [(major, 0), (minor, 7), (patch, 0)] {
        // SAFETY: passed on from the caller.
        if let Some(to) = unsafe { maybe(to) } {
            *to = number;
        }
    }
    0
}
