//! The user code that a thread runs: a handler, which must not wait, or a completion handler.

use portolan_base::thread::fast_tls;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

fast_tls! {
    static RUNNING: Option<&'static str> = None;
}

thread_local! {
    static IN_COMPLETION: Cell<bool> = const { Cell::new(false) };
}

#[inline]
pub fn running() -> Option<&'static str> {
    RUNNING.get()
}

#[inline]
pub(crate) fn run_as<R>(name: &'static str, body: impl FnOnce() -> R) -> std::thread::Result<R> {
    RUNNING.with(|running| {
        let outer = running.replace(Some(name));
        let result = catch_unwind(AssertUnwindSafe(body));
        running.set(outer);
        result
    })
}

pub(crate) fn in_completion<R>(body: impl FnOnce() -> R) -> std::thread::Result<R> {
    let outer = IN_COMPLETION.replace(true);
    let result = catch_unwind(AssertUnwindSafe(body));
    IN_COMPLETION.set(outer);
    result
}

pub fn is_in_completion() -> bool {
    IN_COMPLETION.get()
}
