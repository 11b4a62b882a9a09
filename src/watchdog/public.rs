//! The public call of the Rust interface that a thread is in, and the line that made it.
//!
//! Calls that wait for other ranks note both while they run. Reports of the C interfaces need no note:
//! the name of a C function is on the stack, and so are its callers.

use crate::thread::fast_tls;
use std::panic::Location;

/// A call and where it was made.
type Call = (&'static str, &'static Location<'static>);

fast_tls! {
    static CALL: Option<Call> = None;
}

/// Notes a call until it is dropped. Of calls within each other the outermost counts.
#[derive(Debug)]
pub(crate) struct PublicCall {
    outermost: bool,
}

impl PublicCall {
    /// The calling thread is in `call`, which was made at `place`.
    #[inline]
    pub(crate) fn enter(call: &'static str, place: &'static Location<'static>) -> PublicCall {
        let outermost = CALL.get().is_none();
        if outermost {
            CALL.set(Some((call, place)));
        }
        PublicCall { outermost }
    }

    /// That of the calling thread.
    pub(super) fn current() -> Option<Call> {
        CALL.get()
    }
}

impl Drop for PublicCall {
    #[inline]
    fn drop(&mut self) {
        if self.outermost {
            CALL.set(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn outer() -> Option<Call> {
        let _call = PublicCall::enter("outer", Location::caller());
        inner()
    }

    #[track_caller]
    fn inner() -> Option<Call> {
        let _call = PublicCall::enter("inner", Location::caller());
        PublicCall::current()
    }

    #[test]
    fn the_outermost_call_counts_and_ends() {
        let (line, (call, place)) = (line!(), outer().expect("a call"));
        assert_eq!((call, place.line(), place.file()), ("outer", line, file!()));
        assert_eq!(inner().expect("a call").0, "inner");
        assert!(PublicCall::current().is_none());
    }
}
