//! Handles for C programs: numbers that look like addresses but are never dereferenced.
//!
//! A C handle is a handle of [`Handles`] with the kind of the object in its upper byte. A handle
//! that was freed, belongs to another table or is garbage is therefore refused.

use portolan_base::handles::Handles;
use portolan_base::sync::biased_lock::BiasedLock;
use portolan_rpc::failure::{Failure, Result, Status};
use portolan_rpc::na::{Class, Context};
use std::os::raw::c_void;
use std::sync::LazyLock;

pub(crate) type Token = *mut c_void;

/// A handle as a number. Unlike [`Token`], it is `Send` and `Sync`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Number(usize);

impl Number {
    pub(crate) fn of(token: Token) -> Number {
        Number(token as usize)
    }

    pub(crate) fn token(self) -> Token {
        self.0 as Token
    }
}

#[derive(Debug)]
pub(crate) struct Table<T> {
    what: &'static str,
    kind: u64,
    things: LazyLock<BiasedLock<Things<T>>>,
}

/// The handles below the kind byte: 32 bits of slot, 24 bits of generation.
type Things<T> = Handles<T, 32, 24>;

pub(super) static NA_CLASSES: Table<Class> = Table::new("NA class", 0x11);
pub(super) static NA_CONTEXTS: Table<Context> = Table::new("NA context", 0x12);

impl<T> Table<T> {
    /// Creates an empty table. `kind` must be below 128, and no other table may use it.
    pub(crate) const fn new(what: &'static str, kind: u8) -> Table<T> {
        let none = || BiasedLock::new(Handles::new());
        Table { what, kind: (kind as u64) << 56, things: LazyLock::new(none) }
    }

    /// Converts a handle of [`Handles`] to a C handle, and back. A C handle of another kind becomes
    /// a number that [`Handles`] does not contain.
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

    fn is_of_kind(&self, token: Token) -> bool {
        self.handle(token) >> 56 == 0
    }

    pub(crate) fn insert(&self, thing: T) -> Token {
        self.token(self.things.lock().insert(thing))
    }

    #[cold]
    fn refusal(&self, token: Token) -> Failure {
        let (number, what) = (token as usize as u64, self.what);
        let text = match number {
            0 => format!("the {what} is null"),
            _ if self.is_of_kind(token) => {
                format!("the {what} {number:#x} was freed")
            }
            _ => format!("{number:#x} is not a valid {what}"),
        };
        Failure::new(Status::INVALID_ARG, text)
    }

    /// Removes an object. Fails with `INVALID_ARG` if `token` is not a live handle of this table.
    pub(crate) fn remove(&self, token: Token) -> Result<T> {
        let handle = self.handle(token);
        self.things.with(|things| things.remove(handle)).ok_or_else(|| self.refusal(token))
    }

    /// Removes an object if `gone` returns true. `gone` runs under the table's lock and must not
    /// use the table. Fails like `gone` and [`Table::remove`].
    pub(crate) fn remove_if(
        &self,
        token: Token,
        gone: impl FnOnce(&mut T) -> Result<bool>,
    ) -> Result<Option<T>> {
        let handle = self.handle(token);
        let mut things = self.things.lock();
        let thing = things.get_mut(handle).ok_or_else(|| self.refusal(token))?;
        Ok(if gone(thing)? { things.remove(handle) } else { None })
    }

    /// Fails with `INVALID_ARG` if `token` can never have been a handle of this table.
    pub(crate) fn was_one(&self, token: Token) -> Result<()> {
        if self.is_of_kind(token) { Ok(()) } else { Err(self.refusal(token)) }
    }

    pub(crate) fn drain(&self) -> Vec<T> {
        self.things.lock().drain()
    }

    /// `show` runs under the table's lock and must not use the table.
    pub(crate) fn each(&self, mut show: impl FnMut(Token, &T)) {
        let things = self.things.lock();
        things.iter().for_each(|(handle, thing)| show(self.token(handle), thing));
    }

    /// Returns the first value of `body`, with the object's handle. `body` runs under the table's
    /// lock and must not use the table.
    pub(crate) fn search<R>(&self, body: impl Fn(&T) -> Option<R>) -> Option<(Token, R)> {
        let things = self.things.lock();
        let found = |(handle, thing)| Some((self.token(handle), body(thing)?));
        things.iter().find_map(found)
    }

    pub(crate) fn find(&self, is: impl Fn(&T) -> bool) -> Option<Token> {
        self.search(|thing| is(thing).then_some(())).map(|(token, ())| token)
    }

    /// Runs `body` with the object of `token`. `body` runs under the table's lock and must not use
    /// the table. Fails with `INVALID_ARG` if `token` is not a live handle of this table.
    #[inline(always)]
    pub(crate) fn with<R>(&self, token: Token, body: impl Fn(&mut T) -> R) -> Result<R> {
        let handle = self.handle(token);
        let find = |things: &mut Things<T>| things.get_mut(handle).map(&body);
        self.things.with(find).ok_or_else(|| self.refusal(token))
    }
}

impl<T: Clone> Table<T> {
    #[inline]
    pub(crate) fn get(&self, token: Token) -> Result<T> {
        self.with(token, |thing| thing.clone())
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
        assert_eq!(a.remove_if(x, |v| Ok(*v == 10)).unwrap(), Some(10));
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
