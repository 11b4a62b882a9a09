//! `mercury.h`: the client calls of 2013.
//!
//! `HG_Init` creates one class and one context for the process. A wait for a request also runs
//! calls from other processes, so a handler may forward a call and wait for it.

use super::bulk;
use crate::boundary::{array, export};
use crate::mercury::entry::{error_text, maybe, place, report, text, timeout, write_version};
use crate::mercury::interface::calls;
use crate::mercury::objects::address;
use crate::mercury::objects::attached::OnCreate;
use crate::mercury::objects::class::{self, CLASSES, HeldClass, find_named, put_number};
use crate::mercury::objects::context::{self, CONTEXTS};
use crate::mercury::objects::handle;
use crate::mercury::objects::references::References;
use crate::mercury::params::{self, ProcCallback, Procs, RpcCallback};
use crate::mercury::table::{NA_CLASSES, Number, Table, Token};
use parking_lot::{Mutex, RwLock};
use portolan_rpc::failure::{Failure, Result, Status, refuse};
use portolan_rpc::hg::Context;
use portolan_rpc::hg::call_pool::CallPool;
use portolan_rpc::hg::origin::Origin;
use portolan_rpc::hg::target::{Rpc, Target};
use portolan_rpc::na::{Address, Options};
use std::os::raw::{c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

#[derive(Debug)]
pub(super) struct Global {
    class: Arc<HeldClass>,
    class_token: Number,
    context_token: Number,
    pub context: Context,
    na: Number,
    bulk_is_ours: bool,
}

static GLOBAL: RwLock<Option<Arc<Global>>> = RwLock::new(None);
static TURN: Mutex<()> = Mutex::new(());
static INITIALIZED: AtomicBool = AtomicBool::new(false);
static REQUESTS: Table<CallRequest> = Table::new("request", 0x21);
/// The calls of freed requests, kept for reuse.
static SPARES: LazyLock<CallPool> = LazyLock::new(CallPool::default);

#[derive(Clone)]
struct CallRequest {
    origin: Arc<Origin>,
    procs: Procs,
    output: *mut c_void,
    /// Empty before the output is decoded. `None` if the output is not wanted.
    decoded: Option<Arc<Mutex<Option<Result<()>>>>>,
}

// SAFETY: the program does not access `output` until it has waited for the request or freed it. The
// mutex of `decoded` serialises accesses to it.
unsafe impl Send for CallRequest {}
// SAFETY: the mutex of `decoded` serialises accesses to `output`.
unsafe impl Sync for CallRequest {}

/// Returns the class and the context of `HG_Init`. Fails with `FAIL` if `HG_Init` was not called.
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

#[inline]
fn check_initialized() -> Result<()> {
    if INITIALIZED.load(Ordering::Acquire) { Ok(()) } else { global().map(drop) }
}

impl Global {
    fn over(class_token: Token, na_class: Token) -> Result<Global> {
        let class = CLASSES.get(class_token)?;
        class.class.set_inline(true);
        let context_token = context::create(class_token, 0, |_| true)?;
        let context = CONTEXTS.get(context_token)?.context.clone();
        let bulk_is_ours = bulk::init_unless(na_class).inspect_err(|_| {
            let _ = CONTEXTS.remove(context_token).and_then(|held| held.context.clone().destroy());
        })?;
        let [class_token, context_token, na] =
            [class_token, context_token, na_class].map(Number::of);
        Ok(Global { class, class_token, context_token, context, na, bulk_is_ours })
    }
}

/// Wraps a program's callback. If it returns an error, its handle is freed.
fn serving(class: Number, context: Number, callback: RpcCallback) -> Option<Rpc> {
    let callback = callback?;
    Some(Arc::new(move |target: Arc<Target>| {
        let owner = (context.token(), OnCreate::default());
        let references = References::of_program();
        let handle = match handle::of_target(class.token(), owner, target, references) {
            Ok(handle) => handle,
            Err(failure) => return failure.status(),
        };
        // SAFETY: the program registered the callback for this signature, and `handle` is live.
        let code = unsafe { callback(handle) };
        if code != 0 {
            // The callback may already have freed the handle.
            drop(handle::HANDLES.remove(handle));
        }
        Status(code)
    }))
}

calls! { V2013:
    HG_Init(na_class: Token) {
        NA_CLASSES.get(na_class)?; // null would create a network
        let _turn = TURN.lock();
        if GLOBAL.read().is_some() {
            refuse!(BUSY, "Mercury is initialised already; call HG_Finalize first");
        }
        let method = params::checksum_method()?;
        let no_info = (ptr::null(), false, Options::default());
        // SAFETY: the information string is null.
        let class_token = unsafe { class::create(no_info, na_class, method, (false, false)) }?;
        let made = Global::over(class_token, na_class).inspect_err(|_| {
            let _ = context::finalize_class(class_token);
        })?;
        *GLOBAL.write() = Some(Arc::new(made));
        INITIALIZED.store(true, Ordering::Release);
        Ok(())
    }

    /// Returns `HG_BUSY` in a handler that a wait or `HG_Handler_process` runs.
    HG_Finalize() {
        let global = global()?;
        global.context.shared.check_idle()?;
        INITIALIZED.store(false, Ordering::Release);
        *GLOBAL.write() = None;
        for request in REQUESTS.drain() {
            request.origin.cancel();
        }
        SPARES.clear();
        handle::drop_those_of(global.context_token.token());
        // The class ends first: it waits for other processes to pull outputs.
        let closed = global.class.class.finalize();
        let destroyed = global.context.clone().destroy();
        CONTEXTS.remove(global.context_token.token())?;
        address::drop_those_of(global.class_token.token());
        CLASSES.remove(global.class_token.token())?;
        if global.bulk_is_ours && bulk::is_initialized() {
            bulk::finalize()?;
        }
        closed.and(destroyed)
    }

    HG_Initialized(flag: *mut u8, na_class: *mut Token) {
        let now = GLOBAL.read().clone();
        // SAFETY: the caller guarantees that the pointers are null or valid for writes.
        unsafe {
            *place(flag, "flag")? = u8::from(now.is_some());
            if let Some(to) = maybe(na_class) {
                *to = now.map_or(ptr::null_mut(), |global| global.na.token());
            }
        }
        Ok(())
    }

    HG_Register(
        func_name: *const c_char,
        in_proc_cb: ProcCallback,
        out_proc_cb: ProcCallback,
        rpc_cb: RpcCallback,
    ) -> u32, 0, {
        // SAFETY: the caller guarantees that `func_name` is null or a terminated string.
        let name = unsafe { text(func_name, "function's name") }?;
        let procs = Arc::new(Procs { input: in_proc_cb, output: out_proc_cb });
        let global = global()?;
        let rpc = serving(global.class_token, global.context_token, rpc_cb);
        Ok(global.class.class.shared.functions.add(&name, rpc, Some(procs))?.id)
    }

    HG_Registered(func_name: *const c_char, flag: *mut u8, id: *mut u32) {
        // SAFETY: the caller guarantees that `func_name` is null or a terminated string, and that
        // the other pointers are null or valid for writes.
        unsafe {
            let name = text(func_name, "function's name")?;
            let found = find_named(&global()?.class.class, &name, flag)?;
            put_number(id, found, |function| function.id);
        }
        Ok(())
    }

    /// A call to the own address runs before this returns.
    HG_Forward(
        addr: Token,
        id: u32,
        in_struct: *mut c_void,
        out_struct: *mut c_void,
        request: *mut Token,
    ) {
        check_initialized()?;
        let address = address::get(addr)?;
        // SAFETY: the caller guarantees that `request` is null or valid for writes.
        let to = unsafe { place(request, "request") }?;
        let (origin, procs) = call_of(address, id)?;
        // SAFETY: by contract, `in_struct` is null or what the input proc expects, and outlives the
        // closure, which runs before `forward` returns.
        origin.forward(unsafe { params::encoder(procs.input, in_struct) }, None)?;
        let decoded = (!out_struct.is_null()).then(Arc::default);
        *to = REQUESTS.insert(CallRequest { origin, procs, output: out_struct, decoded });
        Ok(())
    }
}

/// Creates a call over the class of `HG_Init`. Releases the lock of `GLOBAL` on return, because the
/// call may run in this process and call `HG_Finalize`.
fn call_of(address: Address, id: u32) -> Result<(Arc<Origin>, Procs)> {
    let global = GLOBAL.read();
    let Some(global) = &*global else { return Err(not_initialized()) };
    let Some(function) = global.class.class.shared.functions.get(id) else {
        refuse!(NO_MATCH, "no function is registered here with the number {id:#x}");
    };
    let procs = params::procs(&function);
    Ok((SPARES.origin(&global.context.shared, address, function), procs))
}

impl CallRequest {
    /// Returns the outcome of the call, which has ended, and decodes its output once.
    fn outcome(&self) -> Result<()> {
        let Some(decoded) = &self.decoded else { return self.origin.outcome() };
        decoded.lock().get_or_insert_with(|| self.decode()).clone()
    }

    fn decode(&self) -> Result<()> {
        let body = self.origin.output()?;
        let method = self.origin.context().class.method;
        // SAFETY: the program keeps its struct valid until the request is waited for or freed.
        unsafe { params::decode(self.procs.output, &body, method, self.output) }
    }
}

calls! { V2013:
    /// Without a status, returns `HG_TIMEOUT` if the call has not ended.
    HG_Wait(request: Token, milliseconds: c_uint, status: *mut u8) {
        // SAFETY: by contract, `status` is null, `HG_STATUS_IGNORE` or valid for writes.
        let status = unsafe { maybe(status) };
        check_initialized()?;
        let request = REQUESTS.get(request)?;
        let ended = request.origin.wait(timeout(milliseconds))?;
        report(ended, || request.outcome(), status, milliseconds)
    }

    /// The timeout covers all calls together. Returns the first failure. Without statuses, returns
    /// `HG_TIMEOUT` if a call has not ended.
    HG_Wait_all(
        count: c_int,
        array_of_requests: *const Token,
        milliseconds: c_uint,
        array_of_statuses: *mut u8,
    ) {
        global()?;
        let Ok(count) = usize::try_from(count) else {
            refuse!(INVALID_ARG, "{count} requests cannot be waited for");
        };
        // SAFETY: the caller guarantees that `array_of_requests` has `count` elements.
        let tokens = unsafe { array(array_of_requests, count, "the array of requests") }?;
        let requests: Vec<_> = tokens.iter().map(|&t| REQUESTS.get(t)).collect::<Result<_>>()?;
        let end = Instant::now() + timeout(milliseconds);
        let (mut first, mut late) = (None, false);
        for (n, request) in requests.iter().enumerate() {
            let left = end.saturating_duration_since(Instant::now());
            let waited = request.origin.wait(left);
            let ended = matches!(waited, Ok(true));
            late |= !ended;
            if array_of_statuses as usize > 1 {
                // SAFETY: the statuses are wanted, so the array has `count` elements; `n` is less.
                unsafe { *array_of_statuses.add(n) = u8::from(ended) };
            }
            let outcome = waited.and_then(|_| if ended { request.outcome() } else { Ok(()) });
            if let Err(failure) = outcome {
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
    }

    /// A call that has not ended is cancelled, and its output is no longer written.
    HG_Request_free(request: Token) {
        let request = REQUESTS.remove(request)?;
        request.origin.cancel();
        if let Some(decoded) = &request.decoded
            && let Some(Ok(())) = &*decoded.lock()
        {
            // SAFETY: the output was decoded, and the program keeps its struct until this call.
            unsafe { params::free(request.procs.output, request.output) };
        }
        SPARES.give(request.origin);
        Ok(())
    }
}

export! {
    HG_Error_to_string(errnum: c_int) -> *const c_char { error_text(Status(errnum), "HG_").as_ptr() }

    HG_Version_get(major: *mut c_uint, minor: *mut c_uint, patch: *mut c_uint) -> c_int {
        // SAFETY: the caller guarantees that the pointers are null or valid for writes.
        unsafe { write_version([(major, 0), (minor, 7), (patch, 0)]) };
        0
    }
}
