//! `hg_request_*`: waiting for callbacks, over any functions that progress and trigger.
//!
//! A request is complete when a callback says so. Waiting triggers what waits, then
//! progresses, until that or the end of the time. Requests and their classes are
//! addresses, as they are the program's alone and never leave the process; null is
//! refused.

use crate::capi::mercury::face::{maybe, timeout, value};
use crate::rpc::failure::refuse;
use std::os::raw::{c_int, c_uint, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

type Progress = Option<unsafe extern "C" fn(c_uint, *mut c_void) -> c_int>;
type Trigger = Option<unsafe extern "C" fn(c_uint, *mut c_uint, *mut c_void) -> c_int>;

/// `hg_request_class_t`.
#[derive(Debug)]
pub(crate) struct Class {
    progress: unsafe extern "C" fn(c_uint, *mut c_void) -> c_int,
    trigger: unsafe extern "C" fn(c_uint, *mut c_uint, *mut c_void) -> c_int,
    arg: *mut c_void,
}

/// `hg_request_t`.
#[derive(Debug)]
pub(crate) struct Request {
    class: *mut Class,
    complete: AtomicBool,
    data: AtomicUsize,
}

/// One progress lasts so long at most, as another thread may complete the request.
const AT_A_TIME: u32 = 500;

/// Makes a class; null where a function is.
///
/// # Safety
/// `arg` must be what the functions take.
#[unsafe(export_name = "mercury2_hg_request_init")]
pub(crate) unsafe extern "C" fn hg_request_init(
    progress: Progress,
    trigger: Trigger,
    arg: *mut c_void,
) -> *mut Class {
    match (progress, trigger) {
        (Some(progress), Some(trigger)) => {
            Box::into_raw(Box::new(Class { progress, trigger, arg }))
        }
        _ => ptr::null_mut(),
    }
}

/// Ends a class; what its functions took.
///
/// # Safety
/// `class` must be null or a class, without requests; `arg` null or valid.
#[unsafe(export_name = "mercury2_hg_request_finalize")]
pub(crate) unsafe extern "C" fn hg_request_finalize(class: *mut Class, arg: *mut *mut c_void) {
    if class.is_null() {
        return;
    }
    // SAFETY: passed on from the caller.
    unsafe {
        let class = Box::from_raw(class);
        if let Some(arg) = maybe(arg) {
            *arg = class.arg;
        }
    }
}

/// Makes a request; null for no class.
///
/// # Safety
/// `class` must be null or a class.
#[unsafe(export_name = "mercury2_hg_request_create")]
pub(crate) unsafe extern "C" fn hg_request_create(class: *mut Class) -> *mut Request {
    if class.is_null() {
        return ptr::null_mut();
    }
    let (complete, data) = (AtomicBool::new(false), AtomicUsize::new(0));
    Box::into_raw(Box::new(Request { class, complete, data }))
}

/// Frees a request.
///
/// # Safety
/// `request` must be null or a request, used no more.
#[unsafe(export_name = "mercury2_hg_request_destroy")]
pub(crate) unsafe extern "C" fn hg_request_destroy(request: *mut Request) {
    if !request.is_null() {
        // SAFETY: passed on from the caller.
        drop(unsafe { Box::from_raw(request) });
    }
}

/// It is not complete any more.
///
/// # Safety
/// `request` must be null or a request.
#[unsafe(export_name = "mercury2_hg_request_reset")]
pub(crate) unsafe extern "C" fn hg_request_reset(request: *mut Request) {
    // SAFETY: passed on from the caller.
    if let Some(request) = unsafe { request.as_ref() } {
        request.complete.store(false, Ordering::Release);
    }
}

/// It is complete.
///
/// # Safety
/// `request` must be null or a request.
#[unsafe(export_name = "mercury2_hg_request_complete")]
pub(crate) unsafe extern "C" fn hg_request_complete(request: *mut Request) {
    // SAFETY: passed on from the caller.
    if let Some(request) = unsafe { request.as_ref() } {
        request.complete.store(true, Ordering::Release);
    }
}

/// Attaches something.
///
/// # Safety
/// `request` must be null or a request.
#[unsafe(export_name = "mercury2_hg_request_set_data")]
pub(crate) unsafe extern "C" fn hg_request_set_data(request: *mut Request, data: *mut c_void) {
    // SAFETY: passed on from the caller.
    if let Some(request) = unsafe { request.as_ref() } {
        request.data.store(data as usize, Ordering::Release);
    }
}

/// What was attached; null for nothing.
///
/// # Safety
/// `request` must be null or a request.
#[unsafe(export_name = "mercury2_hg_request_get_data")]
pub(crate) unsafe extern "C" fn hg_request_get_data(request: *mut Request) -> *mut c_void {
    // SAFETY: passed on from the caller.
    let request = unsafe { request.as_ref() };
    request.map_or(0, |request| request.data.load(Ordering::Acquire)) as *mut c_void
}

/// Waits until a request is complete, which it is not any more then, or the time is over.
/// -1 for no request.
///
/// # Safety
/// `request` must be null or a request of a class that lives; `flag` null or valid.
#[unsafe(export_name = "mercury2_hg_request_wait")]
pub(crate) unsafe extern "C" fn hg_request_wait(
    request: *mut Request,
    milliseconds: c_uint,
    flag: *mut c_uint,
) -> c_int {
    value(
        "hg_request_wait",
        |_| -1,
        || {
            // SAFETY: passed on from the caller.
            let (request, flag) = unsafe { (request.as_ref(), maybe(flag)) };
            let Some(request) = request else { refuse!(INVALID_ARG, "the request is null") };
            // SAFETY: as above.
            let Class { progress, trigger, arg } = unsafe { &*request.class };
            let end = Instant::now() + timeout(milliseconds);
            let complete = loop {
                let mut triggered = 1;
                // SAFETY: the program's functions, with what they take.
                while unsafe { trigger(0, &mut triggered, *arg) } == 0 && triggered > 0 {}
                if request.complete.swap(false, Ordering::AcqRel) {
                    break true;
                }
                let left = end.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break false;
                }
                let left = u32::try_from(left.as_millis()).unwrap_or(AT_A_TIME).clamp(1, AT_A_TIME);
                // SAFETY: as above.
                unsafe { progress(left, *arg) };
            };
            if let Some(flag) = flag {
                *flag = c_uint::from(complete);
            }
            Ok(0)
        },
    )
}

/// Waits until all requests are complete, each for so long.
///
/// # Safety
/// As for `hg_request_wait`, of `count` requests.
#[unsafe(export_name = "mercury2_hg_request_waitall")]
pub(crate) unsafe extern "C" fn hg_request_waitall(
    count: c_int,
    requests: *mut *mut Request,
    milliseconds: c_uint,
    flag: *mut c_uint,
) -> c_int {
    let end = Instant::now() + timeout(milliseconds);
    let (mut all, mut ret) = (1, 0);
    for n in 0..usize::try_from(count).unwrap_or(0) {
        let left = end.saturating_duration_since(Instant::now()).as_millis();
        let (left, mut one) = (c_uint::try_from(left).unwrap_or(milliseconds), 0);
        // SAFETY: passed on from the caller.
        ret |= unsafe { hg_request_wait(*requests.add(n), left, &mut one) };
        all &= one;
    }
    // SAFETY: passed on from the caller.
    if let Some(flag) = unsafe { maybe(flag) } {
        *flag = all;
    }
    ret
}
