//! The functions of `LAPI_GET_THREAD_FUNC` (`LAPI_Util`): a lock and condition variables.
//!
//! The lock is the engine's handler lock (see [`portolan_engine::am::lock`]). While a thread holds
//! it, no header handler and no inline completion handler runs in this process, except inside calls
//! of the holder that wait or poll. It nests. A handler may take it, because it runs under it.
//!
//! A condition is a word that a signal changes. A thread that waits for it releases the lock,
//! serves other ranks, and sleeps on the word. A wait may return spuriously, as in POSIX.
//!
//! The functions return 0, or like their POSIX counterparts `EBUSY`, `EPERM`, `ETIMEDOUT` or
//! `EINVAL`, or a LAPI return code for an invalid handle or a null pointer.

use super::context::{call, enter, given_up, gives_up, may_wait};
use super::messages;
use super::outcome::{Outcome, refuse};
use super::types::{GET_THREAD_FUNC, Handle};
use portolan_base::futex;
use portolan_base::trace::Cause;
use portolan_base::wait;
use portolan_engine::am::lock::Hold;
use portolan_engine::runtime::Engine;
use std::os::raw::c_int;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[derive(Debug)]
#[repr(C, align(8))]
pub(crate) struct Condition {
    /// The number of signals so far, modulo 2^32.
    signals: AtomicU32,
    reserved: [u32; 11],
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct ThreadFunctions {
    pub util_type: c_int,
    pub mutex_lock: unsafe extern "C" fn(Handle) -> c_int,
    pub mutex_unlock: unsafe extern "C" fn(Handle) -> c_int,
    pub mutex_trylock: unsafe extern "C" fn(Handle) -> c_int,
    pub mutex_getowner: unsafe extern "C" fn(Handle, *mut libc::pthread_t) -> c_int,
    pub cond_wait: unsafe extern "C" fn(Handle, *mut Condition) -> c_int,
    pub cond_timedwait:
        unsafe extern "C" fn(Handle, *mut Condition, *const libc::timespec) -> c_int,
    pub cond_signal: unsafe extern "C" fn(Handle, *mut Condition) -> c_int,
    pub cond_init: unsafe extern "C" fn(Handle, *mut Condition) -> c_int,
    pub cond_destroy: unsafe extern "C" fn(Handle, *mut Condition) -> c_int,
}

/// `LAPI_NULL_THREAD_ID`.
const NOBODY: libc::pthread_t = libc::pthread_t::MAX;

/// Runs a body that returns 0 or an error number.
fn run(name: &'static str, body: impl FnOnce() -> Outcome<c_int>) -> c_int {
    let mut number = 0;
    let code = call(name, || {
        number = body()?;
        Ok(())
    });
    if code == messages::SUCCESS { number } else { code }
}

/// # Safety
/// `cond` must be null or point to a condition.
unsafe fn condition<'a>(cond: *mut Condition) -> Outcome<&'a Condition> {
    // SAFETY: by contract, `cond` is null or a condition, whose only accessed word is atomic.
    match unsafe { cond.as_ref() } {
        Some(condition) => Ok(condition),
        None => refuse!(messages::RET_PTR_NULL, "the condition is null"),
    }
}

unsafe extern "C" fn mutex_lock(hndl: Handle) -> c_int {
    run("mutex_lock of LAPI_Util", || {
        let (_, engine) = enter(hndl)?;
        engine.lock_handlers_as(Hold::BetweenWaits)?;
        Ok(0)
    })
}

unsafe extern "C" fn mutex_unlock(hndl: Handle) -> c_int {
    run("mutex_unlock of LAPI_Util", || {
        let (_, engine) = enter(hndl)?;
        if !engine.has_handlers_lock() {
            return Ok(libc::EPERM);
        }
        engine.unlock_handlers_as(Hold::BetweenWaits)?;
        Ok(0)
    })
}

unsafe extern "C" fn mutex_trylock(hndl: Handle) -> c_int {
    run("mutex_trylock of LAPI_Util", || {
        let (_, engine) = enter(hndl)?;
        Ok(if engine.try_lock_handlers_as(Hold::BetweenWaits)? { 0 } else { libc::EBUSY })
    })
}

unsafe extern "C" fn mutex_getowner(hndl: Handle, owner: *mut libc::pthread_t) -> c_int {
    run("mutex_getowner of LAPI_Util", || {
        let (_, engine) = enter(hndl)?;
        if owner.is_null() {
            refuse!(messages::RET_PTR_NULL, "the pointer to the owner is null");
        }
        let thread = engine.locker_of_handlers()?.map_or(NOBODY, |id| id as libc::pthread_t);
        // SAFETY: `owner` is not null, and the caller guarantees that it is writable.
        unsafe { owner.write(thread) };
        Ok(0)
    })
}

/// Waits for a signal until `deadline`, a time since the Unix epoch.
fn await_signal(
    engine: &Engine,
    condition: &Condition,
    deadline: Option<Duration>,
) -> Outcome<c_int> {
    may_wait()?;
    if !engine.has_handlers_lock() {
        return Ok(libc::EPERM);
    }
    let before = condition.signals.load(Ordering::SeqCst);
    let signalled = || condition.signals.load(Ordering::SeqCst) != before;
    let late = || {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        deadline.is_some_and(|deadline| now >= deadline)
    };
    let mut over = late();
    // Released at least once, even after the deadline, so that others get their turn.
    engine.without_handlers_lock(|| {
        let what = || "a condition of LAPI_Util to be signalled".to_string();
        let word = wait::Word::woken(&condition.signals, before);
        wait::on_word(engine, Cause::Message, &what, word, || {
            over = over || late();
            Ok(signalled() || over || gives_up())
        })
    })?;
    if gives_up() && !signalled() {
        return given_up();
    }
    Ok(if signalled() { 0 } else { libc::ETIMEDOUT })
}

unsafe extern "C" fn cond_wait(hndl: Handle, cond: *mut Condition) -> c_int {
    run("cond_wait of LAPI_Util", || {
        let (_, engine) = enter(hndl)?;
        // SAFETY: the caller guarantees that `cond` is null or points to a condition.
        await_signal(engine, unsafe { condition(cond) }?, None)
    })
}

unsafe extern "C" fn cond_timedwait(
    hndl: Handle,
    cond: *mut Condition,
    time: *const libc::timespec,
) -> c_int {
    run("cond_timedwait of LAPI_Util", || {
        let (_, engine) = enter(hndl)?;
        // SAFETY: the caller guarantees that `cond` is null or points to a condition.
        let condition = unsafe { condition(cond) }?;
        // SAFETY: the caller guarantees that `time` is null or points to a valid time.
        let Some(time) = (unsafe { time.as_ref() }) else {
            refuse!(messages::RET_PTR_NULL, "the time is null");
        };
        let (seconds, nanoseconds) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
        match (seconds, nanoseconds) {
            (Ok(seconds), Ok(nanoseconds)) if nanoseconds < 1_000_000_000 => {
                await_signal(engine, condition, Some(Duration::new(seconds, nanoseconds)))
            }
            _ => Ok(libc::EINVAL),
        }
    })
}

unsafe extern "C" fn cond_signal(hndl: Handle, cond: *mut Condition) -> c_int {
    run("cond_signal of LAPI_Util", || {
        enter(hndl)?;
        // SAFETY: the caller guarantees that `cond` is null or points to a condition.
        let condition = unsafe { condition(cond) }?;
        condition.signals.fetch_add(1, Ordering::SeqCst);
        futex::wake_all(&condition.signals);
        Ok(0)
    })
}

unsafe extern "C" fn cond_init(hndl: Handle, cond: *mut Condition) -> c_int {
    run("cond_init of LAPI_Util", || {
        enter(hndl)?;
        // SAFETY: the caller guarantees that `cond` is null or points to a condition.
        unsafe { condition(cond) }?.signals.store(0, Ordering::SeqCst);
        Ok(0)
    })
}

/// A condition holds no resources, so there is nothing to release.
unsafe extern "C" fn cond_destroy(hndl: Handle, cond: *mut Condition) -> c_int {
    run("cond_destroy of LAPI_Util", || {
        enter(hndl)?;
        // SAFETY: the caller guarantees that `cond` is null or points to a condition.
        unsafe { condition(cond) }?;
        Ok(0)
    })
}

pub(crate) const FUNCTIONS: ThreadFunctions = ThreadFunctions {
    util_type: GET_THREAD_FUNC,
    mutex_lock,
    mutex_unlock,
    mutex_trylock,
    mutex_getowner,
    cond_wait,
    cond_timedwait,
    cond_signal,
    cond_init,
    cond_destroy,
};

mod layout {
    use super::*;
    use crate::boundary::layout;
    use static_assertions::const_assert_eq;
    use std::mem::{align_of, size_of};

    const_assert_eq!(align_of::<Condition>(), 8);
    layout! {
        Condition: size_of::<libc::pthread_cond_t>();
        ThreadFunctions: 80, mutex_lock at 8, mutex_getowner at 32, cond_wait at 40,
            cond_destroy at 72;
    }
}
