//! Which code of others a thread runs for the engine: a handler, which must not wait, or a
//! completion handler, which may.

use crate::thread::fast_tls;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

fast_tls! {
    static RUNNING: Option<&'static str> = None;
}

thread_local! {
    static IN_COMPLETION: Cell<bool> = const { Cell::new(false) };
    static ON_COMPLETION_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// The handler that this thread runs.
#[inline]
pub(crate) fn running() -> Option<&'static str> {
    RUNNING.get()
}

/// Runs `body` as a handler of that name; a panic is given back.
#[inline]
pub(crate) fn run_as<R>(name: &'static str, body: impl FnOnce() -> R) -> std::thread::Result<R> {
    RUNNING.with(|running| {
        let outer = running.replace(Some(name));
        let result = catch_unwind(AssertUnwindSafe(body));
        running.set(outer);
        result
    })
}

/// Runs `body`, which is a completion handler that may wait.
pub(crate) fn in_completion<R>(body: impl FnOnce() -> R) -> R {
    let outer = IN_COMPLETION.replace(true);
    let result = body();
    IN_COMPLETION.set(outer);
    result
}

/// Whether the calling thread runs such a handler.
pub(crate) fn is_in_completion() -> bool {
    IN_COMPLETION.get()
}

/// Whether the calling thread is one of completion handlers.
pub(crate) fn on_completion_thread() -> bool {
    ON_COMPLETION_THREAD.get()
}

/// From now on it is.
pub(crate) fn become_completion_thread() {
    ON_COMPLETION_THREAD.set(true);
}
