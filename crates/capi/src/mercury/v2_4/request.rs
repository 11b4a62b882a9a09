//! `hg_request_*`: waiting for callbacks, over any pair of progress and trigger functions.
//!
//! A wait alternates between trigger and progress until a callback has called `hg_request_complete`
//! or the time is over. Requests and classes are addresses, because they never leave the process.

use crate::mercury::entry::{maybe, timeout};
use crate::mercury::interface::calls;
use portolan_rpc::failure::refuse;
use std::os::raw::{c_int, c_uint, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

type Progress = Option<unsafe extern "C-unwind" fn(c_uint, *mut c_void) -> c_int>;
type Trigger = Option<unsafe extern "C-unwind" fn(c_uint, *mut c_uint, *mut c_void) -> c_int>;

#[derive(Debug)]
pub(crate) struct Class {
    progress: unsafe extern "C-unwind" fn(c_uint, *mut c_void) -> c_int,
    trigger: unsafe extern "C-unwind" fn(c_uint, *mut c_uint, *mut c_void) -> c_int,
    arg: *mut c_void,
}

#[derive(Debug)]
pub(crate) struct Request {
    class: *mut Class,
    complete: AtomicBool,
    data: AtomicUsize,
}

/// Longest progress call, in milliseconds. Another thread may complete the request meanwhile.
const AT_A_TIME: u32 = 500;

calls! { V2_4:
    /// `arg` must be a valid argument of both functions while the class exists.
    hg_request_init(
        progress: Progress,
        trigger: Trigger,
        arg: *mut c_void,
    ) -> *mut Class, ptr::null_mut(), {
        let (Some(progress), Some(trigger)) = (progress, trigger) else {
            return Ok(ptr::null_mut());
        };
        Ok(Box::into_raw(Box::new(Class { progress, trigger, arg })))
    }

    /// `class` must be null or a live class without requests.
    hg_request_finalize(class: *mut Class, arg: *mut *mut c_void) -> (), (), {
        if class.is_null() {
            return Ok(());
        }
        // SAFETY: by contract, `class` came from `hg_request_init` and is unused, `arg` null or
        // valid.
        unsafe {
            let class = Box::from_raw(class);
            if let Some(arg) = maybe(arg) {
                *arg = class.arg;
            }
        }
        Ok(())
    }

    hg_request_create(class: *mut Class) -> *mut Request, ptr::null_mut(), {
        if class.is_null() {
            return Ok(ptr::null_mut());
        }
        let (complete, data) = (AtomicBool::new(false), AtomicUsize::new(0));
        Ok(Box::into_raw(Box::new(Request { class, complete, data })))
    }

    /// `request` must be null or a live request, which must not be used afterwards.
    hg_request_destroy(request: *mut Request) -> (), (), {
        if !request.is_null() {
            // SAFETY: by contract, `hg_request_create` has made `request`, and nothing uses it.
            drop(unsafe { Box::from_raw(request) });
        }
        Ok(())
    }

    hg_request_reset | hg_request_complete [complete: false, true](
        request: *mut Request,
    ) -> (), (), {
        // SAFETY: by this call's contract, `request` is null or a live request.
        if let Some(request) = unsafe { request.as_ref() } {
            request.complete.store(complete, Ordering::Release);
        }
        Ok(())
    }

    hg_request_set_data(request: *mut Request, data: *mut c_void) -> (), (), {
        // SAFETY: by this call's contract, `request` is null or a live request.
        if let Some(request) = unsafe { request.as_ref() } {
            request.data.store(data as usize, Ordering::Release);
        }
        Ok(())
    }

    hg_request_get_data(request: *mut Request) -> *mut c_void, ptr::null_mut(), {
        // SAFETY: by this call's contract, `request` is null or a live request.
        let request = unsafe { request.as_ref() };
        Ok(request.map_or(0, |request| request.data.load(Ordering::Acquire)) as *mut c_void)
    }

    /// Writes whether the request was complete to `flag`, and marks it as incomplete again. The
    /// class of the request must be live.
    hg_request_wait(
        request: *mut Request,
        milliseconds: c_uint,
        flag: *mut c_uint,
    ) -> c_int, -1, {
        // SAFETY: by contract, `request` is null or live, and `flag` is null or valid.
        let (request, flag) = unsafe { (request.as_ref(), maybe(flag)) };
        let Some(request) = request else { refuse!(INVALID_ARG, "the request is null") };
        // SAFETY: by this call's contract, the class of the request is live.
        let Class { progress, trigger, arg } = unsafe { &*request.class };
        let end = Instant::now() + timeout(milliseconds);
        let complete = loop {
            let mut triggered = 1;
            // SAFETY: the program passed this function and `arg` to `hg_request_init`.
            while unsafe { trigger(0, &mut triggered, *arg) } == 0 && triggered > 0 {}
            if request.complete.swap(false, Ordering::AcqRel) {
                break true;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break false;
            }
            let left = u32::try_from(left.as_millis()).unwrap_or(AT_A_TIME).clamp(1, AT_A_TIME);
            // SAFETY: the program passed this function and `arg` to `hg_request_init`.
            unsafe { progress(left, *arg) };
        };
        if let Some(flag) = flag {
            *flag = c_uint::from(complete);
        }
        Ok(0)
    }

    /// Waits until all requests are complete or the time for all of them, in milliseconds, is over.
    /// `requests` must have `count` elements, each null or a live request of a live class.
    hg_request_waitall(
        count: c_int,
        requests: *mut *mut Request,
        milliseconds: c_uint,
        flag: *mut c_uint,
    ) -> c_int, -1, {
        let end = Instant::now() + timeout(milliseconds);
        let (mut all, mut ret) = (1, 0);
        for n in 0..usize::try_from(count).unwrap_or(0) {
            let left = end.saturating_duration_since(Instant::now()).as_millis();
            let (left, mut one) = (c_uint::try_from(left).unwrap_or(milliseconds), 0);
            // SAFETY: by contract, `requests` has `count` elements, each null or a live request.
            ret |= unsafe { hg_request_wait(*requests.add(n), left, &mut one) };
            all &= one;
        }
        // SAFETY: by this call's contract, `flag` is null or valid for a write.
        if let Some(flag) = unsafe { maybe(flag) } {
            *flag = all;
        }
        Ok(ret)
    }
}
