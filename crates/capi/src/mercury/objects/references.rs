//! The references to a handle. A handle of 2013 has one, of the program.
//!
//! `HG_Ref_get` returns the numbers of 2.4, because programs decide by them. An incoming call has a
//! reference of the program, one of the trigger that runs its callback, and one of the due
//! response. For a call to the own process, 2.4 uses one handle for both sides, so there is one
//! more.
//!
//! Only the references of the program and the trigger keep the handle. An unanswered handle that
//! loses the last of them is freed, and the call fails at its origin. If a call is never answered,
//! `HG_Destroy` may also drop the reference of the response.

use portolan_rpc::failure::{Result, refuse};
use std::sync::atomic::{AtomicI32, AtomicU8, Ordering};

/// The callback for an incoming call is running.
const IN_CALLBACK: u8 = 1;
/// The response that is due counts as a reference.
const DUE: u8 = 2;
/// The call was answered, or needs no answer.
const ANSWERED: u8 = 4;
/// The call comes from the process itself.
const OWN: u8 = 8;

#[derive(Debug)]
pub(crate) struct References {
    /// References of the program, of operations under way and of the trigger.
    held: AtomicI32,
    flags: AtomicU8,
}

impl References {
    /// Returns the count of a handle to which only the program refers.
    pub(crate) fn of_program() -> References {
        References { held: AtomicI32::new(1), flags: AtomicU8::new(ANSWERED) }
    }

    /// For an incoming call whose callback is about to run.
    pub(crate) fn of_target(is_quiet: bool, is_own: bool) -> References {
        let mut flags = IN_CALLBACK;
        if is_own {
            flags |= OWN;
        }
        if !is_quiet || is_own {
            flags |= DUE;
        }
        if is_quiet {
            flags |= ANSWERED;
        }
        References { held: AtomicI32::new(2), flags: AtomicU8::new(flags) }
    }

    fn has(&self, flag: u8) -> bool {
        self.flags.load(Ordering::Acquire) & flag != 0
    }

    fn change(&self, to: impl Fn(u8) -> u8) -> u8 {
        let order = (Ordering::AcqRel, Ordering::Acquire);
        let changed = self.flags.fetch_update(order.0, order.1, |flags| Some(to(flags)));
        changed.unwrap_or_else(|flags| flags)
    }

    pub(crate) fn count(&self) -> i32 {
        let counted = i32::from(self.has(DUE)) + i32::from(self.has(OWN));
        self.held.load(Ordering::Acquire) + counted
    }

    pub(crate) fn is_unanswered(&self) -> bool {
        !self.has(ANSWERED)
    }

    pub(crate) fn hold(&self) {
        self.held.fetch_add(1, Ordering::AcqRel);
    }

    /// Drops a reference, and returns whether it was the last one. Drops of the same handle must
    /// not run concurrently. Fails with `INVALID_ARG` if only the trigger holds the handle.
    pub(crate) fn release(&self) -> Result<bool> {
        if self.has(IN_CALLBACK) && self.held.load(Ordering::Acquire) == 1 {
            if self.is_unanswered() && self.change(|flags| flags & !DUE) & DUE != 0 {
                return Ok(false);
            }
            refuse!(INVALID_ARG, "the handle was destroyed more often than it has references");
        }
        Ok(self.held.fetch_sub(1, Ordering::AcqRel) <= 1)
    }

    /// Records that the callback has returned; the caller then drops the trigger's reference.
    pub(crate) fn callback_returned(&self) {
        self.change(|flags| match flags & ANSWERED {
            0 => flags & !IN_CALLBACK,
            _ => flags & !(IN_CALLBACK | DUE),
        });
    }

    /// Turns the reference of the response into one that keeps the handle until the program's
    /// callback for the response has run. Returns the state for [`References::response_failed`].
    pub(crate) fn hold_response(&self) -> u8 {
        self.hold();
        self.change(|flags| (flags | ANSWERED) & !DUE) & (ANSWERED | DUE)
    }

    /// Undoes [`References::hold_response`], which returned `before`.
    pub(crate) fn response_failed(&self, before: u8) {
        self.change(|flags| (flags & !(ANSWERED | DUE)) | before);
        self.held.fetch_sub(1, Ordering::AcqRel);
    }

    /// Records a response without a callback. As in 2.4, the callback of the call still counts it.
    pub(crate) fn answered(&self) {
        self.change(|flags| match flags & IN_CALLBACK {
            0 => (flags | ANSWERED) & !DUE,
            _ => flags | ANSWERED,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_counted_as_in_2_4() {
        for is_own in [false, true] {
            let own = i32::from(is_own);
            let call = References::of_target(false, is_own);
            assert_eq!(call.count(), 3 + own);
            call.answered();
            assert_eq!(call.count(), 3 + own);
            assert!(!call.release().unwrap());
            call.callback_returned();
            assert_eq!(call.count(), 1 + own);
            assert!(call.release().unwrap());
        }
    }

    #[test]
    fn a_response_with_a_callback_keeps_the_handle() {
        let call = References::of_target(false, false);
        let before = call.hold_response();
        assert_eq!(call.count(), 3);
        call.response_failed(before);
        assert!(call.is_unanswered());
        call.hold_response();
        let before = call.hold_response();
        call.response_failed(before);
        assert!(!call.is_unanswered());
        assert_eq!(call.count(), 3);
        assert!(!call.release().unwrap());
        call.callback_returned();
        assert!(!call.release().unwrap());
        assert_eq!(call.count(), 1);
        assert!(call.release().unwrap());
    }

    #[test]
    fn an_unanswered_call_may_be_destroyed_twice_but_not_more_often() {
        let call = References::of_target(false, false);
        assert!(!call.release().unwrap());
        assert!(!call.release().unwrap());
        assert!(call.release().is_err());
        call.callback_returned();
        assert!(call.release().unwrap());
        let quiet = References::of_target(true, false);
        assert_eq!(quiet.count(), 2);
        assert!(!quiet.release().unwrap());
        assert!(quiet.release().is_err());
    }
}
