//! What C programs hold: numbers that look like addresses, never addresses.
//!
//! A handle is one of [`Handles`] with the kind of thing in its upper byte, so that one that
//! was freed, belongs to something else, or is rubbish, is found out and not followed.

use crate::handles::Handles;
use crate::memory::biased_lock::BiasedLock;
use crate::rpc::failure::{Failure, Result, Status};
use crate::rpc::hg;
use crate::rpc::na::{Address, Class, Context};
use std::os::raw::c_void;
use std::sync::LazyLock;

/// A handle, as C has it.
pub(crate) type Token = *mut c_void;

/// A handle that threads may share: it is a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Number(usize);

impl Number {
    /// Of a handle.
    pub(crate) fn of(token: Token) -> Number {
        Number(token as usize)
    }

    /// The handle.
    pub(crate) fn token(self) -> Token {
        self.0 as Token
    }
}

/// Things of one kind.
#[derive(Debug)]
pub(crate) struct Table<T> {
    what: &'static str,
    /// In its upper byte: what handles of this table have there.
    kind: u64,
    things: LazyLock<BiasedLock<Things<T>>>,
}

/// Below the byte of the kind.
type Things<T> = Handles<T, 32, 24>;

/// Classes of `na.h`.
pub(super) static CLASSES: Table<Class> = Table::new("NA class", 0x11);
/// Contexts of `na.h`.
pub(super) static CONTEXTS: Table<Context> = Table::new("NA context", 0x12);
/// Addresses, of all calls.
pub(super) static ADDRESSES: Table<Address> = Table::new("address", 0x13);
/// Classes of `HG_Init_opt`.
pub(super) static HG_CLASSES: Table<hg::Class> = Table::new("class", 0x31);
/// Contexts of `HG_Context_create`, with their classes.
pub(super) static HG_CONTEXTS: Table<(Number, hg::Context)> = Table::new("context", 0x32);

impl<T> Table<T> {
    /// None yet. `kind` is a number below 128 that no other table has.
    pub(crate) const fn new(what: &'static str, kind: u8) -> Table<T> {
        let none = || BiasedLock::new(Handles::new());
        Table { what, kind: (kind as u64) << 56, things: LazyLock::new(none) }
    }

    /// The handle of C for one of the table, and back: one of another kind is none then.
    #[inline]
    fn of_kind(&self, handle: u64) -> u64 {
        handle ^ self.kind
    }

    #[inline]
    fn token(&self, handle: u64) -> Token {
        self.of_kind(handle) as usize as Token
    }

    #[inline]
    fn handle(&self, token: Token) -> u64 {
        self.of_kind(token as usize as u64)
    }

    /// Whether it may have been a handle of the table.
    fn is_of_kind(&self, token: Token) -> bool {
        self.handle(token) >> 56 == 0
    }

    /// A handle for a thing.
    pub(crate) fn insert(&self, thing: T) -> Token {
        self.token(self.things.lock().insert(thing))
    }

    /// Why a handle is refused.
    #[cold]
    fn refusal(&self, token: Token) -> Failure {
        let (number, what) = (token as usize as u64, self.what);
        let text = match number {
            0 => format!("the {what} is null"),
            _ if self.is_of_kind(token) => {
                format!("the {what} {number:#x} was freed")
            }
            _ => format!("{number:#x} is no {what}"),
        };
        Failure::new(Status::INVALID_ARG, text)
    }

    /// Takes a thing out.
    ///
    /// # Errors
    /// `INVALID_ARG` for what is no handle, or none any more.
    pub(crate) fn remove(&self, token: Token) -> Result<T> {
        let handle = self.handle(token);
        self.things.with(|things| things.remove(handle)).ok_or_else(|| self.refusal(token))
    }

    /// Takes a thing out where `gone` says so; `gone` must not use the table.
    ///
    /// # Errors
    /// That of `gone`; `INVALID_ARG` for what is no handle, or none any more.
    pub(crate) fn remove_if(
        &self,
        token: Token,
        gone: impl FnOnce(&T) -> Result<bool>,
    ) -> Result<Option<T>> {
        let handle = self.handle(token);
        let mut things = self.things.lock();
        let thing = things.get(handle).ok_or_else(|| self.refusal(token))?;
        Ok(if gone(thing)? { things.remove(handle) } else { None })
    }

    /// # Errors
    /// `INVALID_ARG` for what can never have been a handle of the table.
    pub(crate) fn was_one(&self, token: Token) -> Result<()> {
        if self.is_of_kind(token) { Ok(()) } else { Err(self.refusal(token)) }
    }

    /// Takes everything out.
    pub(crate) fn drain(&self) -> Vec<T> {
        self.things.lock().drain()
    }

    /// Shows all things with their handles; `show` must not use the table.
    pub(crate) fn each(&self, mut show: impl FnMut(Token, &T)) {
        let things = self.things.lock();
        things.iter().for_each(|(handle, thing)| show(self.token(handle), thing));
    }

    /// The handle of the first thing of which `is` says so.
    pub(crate) fn find(&self, is: impl Fn(&T) -> bool) -> Option<Token> {
        let things = self.things.lock();
        let (handle, _) = things.iter().find(|(_, thing)| is(thing))?;
        Some(self.token(handle))
    }
}

impl<T: Clone> Table<T> {
    /// The thing of a handle.
    ///
    /// # Errors
    /// `INVALID_ARG` for what is no handle, or none any more.
    #[inline]
    pub(crate) fn get(&self, token: Token) -> Result<T> {
        let handle = self.handle(token);
        let find = |things: &mut Things<T>| things.get(handle).cloned();
        self.things.with(find).ok_or_else(|| self.refusal(token))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_foreign_and_rubbish_handles_are_found_out() {
        let (a, b) = (Table::new("thing", 1), Table::new("other", 2));
        let (x, y) = (a.insert(10), b.insert(20));
        assert_eq!(a.get(x).unwrap(), 10);
        assert!(a.get(y).is_err() && b.get(x).is_err());
        assert_eq!(a.find(|&v| v == 10), Some(x));
        assert_eq!(a.remove_if(x, |_| Ok(false)).unwrap(), None);
        assert_eq!(a.remove_if(x, |&v| Ok(v == 10)).unwrap(), Some(10));
        let x = a.insert(10);
        assert_eq!(a.remove(x).unwrap(), 10);
        assert!(a.get(x).is_err() && a.remove(x).is_err());
        let z = a.insert(30);
        assert_ne!(z, x);
        for rubbish in [0usize, 1, 77, usize::MAX, (&raw const a) as usize] {
            assert!(a.get(rubbish as Token).is_err());
        }
        assert_eq!(a.drain(), [30]);
        assert!(a.get(z).is_err());
    }
}
