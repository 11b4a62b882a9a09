//! The lock that keeps asyncs from running.

use super::code;
use crate::boundary::export;
use portolan_base::error::{Result, fail};
use portolan_engine::core::handler;
use std::cell::Cell;
use std::os::raw::c_int;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

pub(super) fn is_held() -> bool {
    DEPTH.get() > 0
}

/// Checks that this thread may enter a collective call. Fails with `State` in an async.
pub(super) fn may_meet() -> Result<()> {
    if let Some(handler) = handler::running() {
        fail!(State, "called in a handler ({handler}), which must not wait");
    }
    Ok(())
}

/// Checks that this thread may wait for everything that is outstanding at this place. Fails with
/// `State` in an async and if the thread holds the lock.
pub(super) fn may_wait() -> Result<()> {
    may_meet()?;
    if is_held() {
        fail!(
            State,
            "this thread holds the lock, which blocks asyncs for which others may wait; unlock first"
        );
    }
    Ok(())
}

export! {
    x10_lock() -> c_int = code(|engine| {
        engine.lock_handlers()?;
        DEPTH.set(DEPTH.get() + 1);
        Ok(())
    });

    x10_unlock() -> c_int = code(|engine| {
        if !is_held() {
            fail!(State, "this thread does not hold the lock; take it with x10_lock");
        }
        engine.unlock_handlers()?;
        DEPTH.set(DEPTH.get() - 1);
        Ok(())
    });
}
