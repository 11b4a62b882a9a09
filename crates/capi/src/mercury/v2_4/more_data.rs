//! `HG_CORE_MORE_DATA`: inputs and outputs of which the program transfers a part itself.
//!
//! A message with this flag contains what the program needs to get the rest, for example a bulk
//! handle. The receiver passes its handle to the program's acquire callback. When the program calls
//! back, the target runs the call, or the origin runs the callback of the forward; both happen in
//! trigger. The target's callback for the response runs when the origin has the data. The program's
//! release callback runs before the handle is freed or used for another call.

use super::codes::{to_code, to_status};
use crate::mercury::interface::{Interface::V2_4, calls};
use crate::mercury::objects::class::CLASSES;
use crate::mercury::objects::handle::{HANDLES, HandleEntry};
use crate::mercury::objects::more_data::{Acquire, Callbacks, Release};
use crate::mercury::table::{Number, Token};
use portolan_rpc::failure::{Result, Status, refuse};
use portolan_rpc::hg::context::Work;
use std::os::raw::c_int;
use std::sync::atomic::Ordering;

/// `HG_INPUT` and `HG_OUTPUT` of `hg_op_t`.
pub(super) const INPUT: c_int = 1;
pub(super) const OUTPUT: c_int = 2;

/// Ends an acquisition. The program calls this function once, from any thread.
unsafe extern "C" fn done(handle: Token, code: c_int) {
    V2_4.run("the callback for more data", || {
        let held = HANDLES.get(handle)?;
        let Some(then) = held.acquisition.then.lock().take() else {
            refuse!(INVALID_ARG, "the program is not acquiring data for this handle");
        };
        let status = to_status(code);
        held.context_shared().push(Work::Run(Box::new(move || then(status))));
        Ok(())
    });
}

/// Lets the program acquire the data of a handle, and then runs `then` in trigger.
pub(super) fn acquire(
    handle: Token,
    held: &HandleEntry,
    which: c_int,
    then: impl FnOnce(Status) + Send + 'static,
) {
    *held.acquisition.then.lock() = Some(Box::new(then));
    let callbacks = *held.class.more_data.lock();
    let code = match callbacks.acquire {
        None => to_code(Status::OPNOTSUPPORTED),
        Some(acquire) => {
            held.acquisition.acquired.store(true, Ordering::Release);
            // SAFETY: the program has set this callback, and `handle` is live.
            unsafe { acquire(handle, which, Some(done)) }
        }
    };
    if code != 0 && held.acquisition.is_under_way() {
        // SAFETY: `done` accepts any handle.
        unsafe { done(handle, code) };
    }
}

pub(super) fn acquire_input(handle: Token, run: impl FnOnce(Token) + Send + 'static) -> Result<()> {
    let held = HANDLES.get(handle)?;
    let (target, of) = (held.target()?.clone(), Number::of(handle));
    acquire(handle, &held, INPUT, move |status| {
        target.acquired(status);
        if status == Status::SUCCESS {
            return run(of.token());
        }
        target.set_failure(status);
        crate::mercury::objects::handle::callback_returned(of.token());
        // The program has not seen the handle, so this drops its reference. It cannot fail: this
        // reference keeps the handle in the table.
        let _ = crate::mercury::objects::handle::release(of.token());
    });
    Ok(())
}

calls! { V2_4:
    HG_Core_set_more_data_callback(class: Token, acquire: Acquire, release: Release) {
        *CLASSES.get(class)?.more_data.lock() = Callbacks { acquire, release };
        Ok(())
    }
}
