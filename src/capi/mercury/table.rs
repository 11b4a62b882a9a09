//! What C programs hold: numbers that look like addresses, never addresses.
//!
//! A handle names a slot, its generation and the kind of thing, so that one that was
//! freed, belongs to something else, or is rubbish, is found out and not followed.

use crate::memory::biased::Biased;
use crate::rpc::failure::{Failure, Result, Status};
use crate::rpc::hg;
use crate::rpc::na::{Address, Class, Context};
use slab::Slab;
use std::os::raw::c_void;
use std::sync::LazyLock;

/// A handle, as C has it.
pub type Token = *mut c_void;

/// A handle that threads may share: it is a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Number(usize);

impl Number {
    /// Of a handle.
    pub fn of(token: Token) -> Number {
        Number(token as usize)
    }

    /// The handle.
    pub fn token(self) -> Token {
        self.0 as Token
    }
}

/// Things of one kind.
#[derive(Debug)]
pub struct Table<T> {
    what: &'static str,
    kind: u8,
    slots: LazyLock<Biased<Slots<T>>>,
}

#[derive(Debug)]
struct Slots<T> {
    /// With the upper half of their handles.
    slab: Slab<(u32, T)>,
    generation: u32,
}

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

const GENERATIONS: u32 = (1 << 24) - 1;

/// The handle of what lies in a slot.
fn token(upper: u32, key: usize) -> Token {
    (u64::from(upper) << 32 | (key as u64 + 1)) as usize as Token
}

impl<T> Slots<T> {
    #[inline]
    fn add(&mut self, kind: u8, thing: T) -> Token {
        self.generation = (self.generation % GENERATIONS) + 1;
        let upper = u32::from(kind) << 24 | self.generation;
        token(upper, self.slab.insert((upper, thing)))
    }

    /// The slot of a handle, if that is the handle of what lies there.
    #[inline]
    fn find(&self, token: Token) -> Option<usize> {
        let number = token as usize as u64;
        let key = (number as u32).wrapping_sub(1) as usize;
        match self.slab.get(key) {
            Some((upper, _)) if *upper == (number >> 32) as u32 => Some(key),
            _ => None,
        }
    }

    #[inline]
    fn take(&mut self, token: Token) -> Option<T> {
        self.find(token).map(|key| self.slab.remove(key).1)
    }
}

impl<T> Table<T> {
    /// None yet. `kind` is a number below 128 that no other table has.
    pub const fn new(what: &'static str, kind: u8) -> Table<T> {
        let none = || Biased::new(Slots { slab: Slab::new(), generation: 0 });
        Table { what, kind, slots: LazyLock::new(none) }
    }

    /// A handle for a thing.
    pub fn insert(&self, thing: T) -> Token {
        self.slots.lock().add(self.kind, thing)
    }

    /// Why a handle is refused.
    #[cold]
    fn refusal(&self, token: Token) -> Failure {
        let (number, what) = (token as usize as u64, self.what);
        let text = match number {
            0 => format!("the {what} is null"),
            _ if number >> 56 == u64::from(self.kind) => {
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
    pub fn remove(&self, token: Token) -> Result<T> {
        self.slots.with(|slots| slots.take(token)).ok_or_else(|| self.refusal(token))
    }

    /// Takes a thing out where `gone` says so; `gone` must not use the table.
    ///
    /// # Errors
    /// That of `gone`; `INVALID_ARG` for what is no handle, or none any more.
    pub fn remove_if(
        &self,
        token: Token,
        gone: impl FnOnce(&T) -> Result<bool>,
    ) -> Result<Option<T>> {
        let mut slots = self.slots.lock();
        let key = slots.find(token).ok_or_else(|| self.refusal(token))?;
        Ok(gone(&slots.slab[key].1)?.then(|| slots.slab.remove(key).1))
    }

    /// # Errors
    /// `INVALID_ARG` for what can never have been a handle of the table.
    pub fn was_one(&self, token: Token) -> Result<()> {
        let number = token as usize as u64;
        if number >> 56 != u64::from(self.kind) {
            return Err(self.refusal(token));
        }
        Ok(())
    }

    /// Takes everything out.
    pub fn drain(&self) -> Vec<T> {
        let slab = std::mem::take(&mut self.slots.lock().slab);
        slab.into_iter().map(|(_, (_, thing))| thing).collect()
    }

    /// Shows all things with their handles; `show` must not use the table.
    pub fn each(&self, mut show: impl FnMut(Token, &T)) {
        let slots = self.slots.lock();
        slots.slab.iter().for_each(|(key, (upper, thing))| show(token(*upper, key), thing));
    }

    /// The handle of the first thing of which `is` says so.
    pub fn find(&self, is: impl Fn(&T) -> bool) -> Option<Token> {
        let slots = self.slots.lock();
        let (key, (upper, _)) = slots.slab.iter().find(|(_, (_, thing))| is(thing))?;
        Some(token(*upper, key))
    }
}

impl<T: Clone> Table<T> {
    /// The thing of a handle.
    ///
    /// # Errors
    /// `INVALID_ARG` for what is no handle, or none any more.
    #[inline]
    pub fn get(&self, token: Token) -> Result<T> {
        let find = |slots: &mut Slots<T>| slots.find(token).map(|key| slots.slab[key].1.clone());
        self.slots.with(find).ok_or_else(|| self.refusal(token))
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
