//! The public call of the Rust interface that a thread is in, and the source line that made it.
//! Watchdog reports and traces show the line without debug information.
//!
//! Calls that other ranks take part in, others that usually wait, and the calls of arrays record
//! themselves. Puts and gets of segments, of single elements of arrays, and other calls of a few
//! nanoseconds do not: their line would be one more argument of each function between the interface
//! and the observer, also for callers in C, which have none. Their return addresses are on the stack,
//! so finding their line costs them nothing. The same holds for the names of C functions and their
//! callers.

use crate::thread::fast_tls;
use std::panic::Location;

type Call = (&'static str, &'static Location<'static>);

fast_tls! {
    static CALL: Option<Call> = None;
}

/// Records a call until dropped. Only the outermost of nested calls counts.
#[derive(Debug)]
pub struct PublicCall {
    name: &'static str,
    outermost: bool,
}

impl PublicCall {
    /// The caller is a public function with `#[track_caller]`. This does not work through closures.
    #[inline]
    #[track_caller]
    pub fn enter(name: &'static str) -> PublicCall {
        let outermost = CALL.get().is_none();
        if outermost {
            CALL.set(Some((name, Location::caller())));
        }
        PublicCall { name, outermost }
    }

    /// Returns the name of this call, for its errors.
    #[inline]
    pub fn name(&self) -> &'static str {
        self.name
    }

    pub fn current() -> Option<Call> {
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
        let _call = PublicCall::enter("outer");
        inner()
    }

    #[track_caller]
    fn inner() -> Option<Call> {
        let _call = PublicCall::enter("inner");
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
