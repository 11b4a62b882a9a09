//! Public calls that consist of several exchanges.
//!
//! [`scope`] names a public call, such as an allocation, for all of its exchanges. Scopes nest if a
//! public call is part of another. A scope in a scope, or one with a text, has [levels](Level), and
//! a digest stands for them in a [signature](super::call::Signature). The digest is keyed with a
//! number that the program does not know ([`portolan_base::digest`]).

use super::kind::Kind;
use portolan_base::digest;
use portolan_base::thread::fast_tls;
use std::cell::RefCell;
use std::mem::ManuallyDrop;

/// The scope has levels: a text, or another scope in it.
pub(super) const DETAILED: u8 = 1 << 7;

/// A scope in a scope, or one with a text that distinguishes objects of the same kind, for example
/// the shape of an array.
#[derive(Debug, Hash)]
pub(super) struct Level {
    pub kind: u8,
    object: u64,
    text: String,
}

impl Level {
    /// Returns the text after the name of the kind.
    pub fn suffix(&self) -> String {
        match (self.text.as_str(), self.object) {
            ("", 0) => String::new(),
            ("", object) => format!(" (number {object})"),
            (text, _) => format!(" {text}"),
        }
    }
}

fast_tls! {
    static SCOPE: (u8, u64) = (Kind::Plain as u8, 0);
}

thread_local! {
    /// From the outermost level on, if the scope is [`DETAILED`]. Empty, and without memory, if it
    /// is not. Collectives in an exit handler run after a value with a destructor would be gone.
    static LEVELS: RefCell<ManuallyDrop<Vec<Level>>> =
        const { RefCell::new(ManuallyDrop::new(Vec::new())) };
}

/// Returns the kind of the outermost public call, and [`DETAILED`]; and the number of its object.
#[inline]
pub(super) fn current() -> (u8, u64) {
    SCOPE.get()
}

/// Returns the digest of the levels.
pub(super) fn digest_of_levels(key: u64) -> u64 {
    LEVELS.with(|levels| digest::keyed(key, &***levels.borrow()))
}

pub(super) fn with_levels<R>(body: impl FnOnce(&[Level]) -> R) -> R {
    LEVELS.with(|levels| body(&levels.borrow()))
}

/// Ends the outermost scope when dropped, including during unwinding.
struct Ended;

impl Drop for Ended {
    fn drop(&mut self) {
        SCOPE.set((Kind::Plain as u8, 0));
    }
}

/// Ends the last level when dropped, including during unwinding.
struct Left {
    outer: (u8, u64),
}

impl Drop for Left {
    fn drop(&mut self) {
        LEVELS.with(|levels| {
            let mut levels = levels.borrow_mut();
            levels.pop();
            if self.outer.0 & DETAILED == 0 {
                **levels = Vec::new();
            }
        });
        SCOPE.set(self.outer);
    }
}

fn in_scope() -> bool {
    SCOPE.get().0 != Kind::Plain as u8
}

#[cold]
fn enter(kind: Kind, object: u64, text: &str) -> Left {
    let outer = SCOPE.get();
    let level = |kind, object, text: &str| Level { kind, object, text: text.into() };
    let outermost = LEVELS.with(|levels| {
        let mut levels = levels.borrow_mut();
        if levels.is_empty() && outer.0 != Kind::Plain as u8 {
            levels.push(level(outer.0, outer.1, ""));
        }
        levels.push(level(kind as u8, object, text));
        levels[0].kind
    });
    SCOPE.set((outermost | DETAILED, 0));
    Left { outer }
}

/// Runs `body` as part of a public call on an object, whose number is the same on all ranks.
#[inline]
pub fn scope<R>(kind: Kind, object: u64, body: impl FnOnce() -> R) -> R {
    if in_scope() {
        let _left = enter(kind, object, "");
        return body();
    }
    SCOPE.set((kind as u8, object));
    let _ended = Ended;
    body()
}

/// For a call whose arguments, all in `detail`, must agree on all ranks.
pub fn scope_of<R>(kind: Kind, detail: &str, body: impl FnOnce() -> R) -> R {
    let _left = enter(kind, 0, detail);
    body()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::call::Signature;

    #[test]
    fn scopes_end_with_their_bodies() {
        let plain = Signature::here(Kind::Barrier);
        let outer = || {
            let outer = Signature::here(Kind::Barrier);
            scope_of(Kind::Described, "x", || ());
            assert_eq!(Signature::here(Kind::Barrier), outer);
            let unwound =
                std::panic::catch_unwind(|| scope(Kind::Free, 0, || panic!("ends the scope")));
            assert!(unwound.is_err());
            assert_eq!(Signature::here(Kind::Barrier), outer);
        };
        scope(Kind::Finalize, 3, outer);
        assert_eq!(Signature::here(Kind::Barrier), plain);
        assert!(LEVELS.with(|levels| levels.borrow().capacity() == 0));
    }
}
