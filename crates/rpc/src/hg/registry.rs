//! Functions by name. `R` is the type that runs a call at its server.
//!
//! The number of a function is a hash of its name, so both ranks know it without a message.
//! Registering a name with the number of another one fails. Between processes, the second hash in
//! every request detects such a collision.
//!
//! A program may instead choose a 64-bit number ([`Function::number`]), whose lower half travels as
//! the number and whose upper half as the second hash.

use crate::failure::{Result, refuse};
use parking_lot::RwLock;
use std::any::Any;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub struct Function<R> {
    /// The number of the function: lower half of [`Function::number`].
    pub id: u32,
    /// The second hash: upper half of [`Function::number`].
    pub check: u32,
    pub name: String,
    /// Runs a call; `None` on a client.
    pub rpc: Option<R>,
    pub extra: Option<Arc<dyn Any + Send + Sync>>,
    quiet: AtomicBool,
}

impl<R> std::fmt::Debug for Function<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({:#x})", self.name, self.id)
    }
}

impl<R> Function<R> {
    pub fn number(&self) -> u64 {
        u64::from(self.check) << 32 | u64::from(self.id)
    }

    /// Returns whether calls are one-way, without an answer.
    pub fn is_quiet(&self) -> bool {
        self.quiet.load(Ordering::Relaxed)
    }

    pub fn set_quiet(&self, quiet: bool) {
        self.quiet.store(quiet, Ordering::Relaxed);
    }
}

/// Returns the number of a name: its 32-bit FNV-1a hash, never zero.
pub(crate) fn id_of(name: &str) -> u32 {
    let hash = |h: u32, b: u8| (h ^ u32::from(b)).wrapping_mul(0x0100_0193);
    name.bytes().fold(0x811c_9dc5, hash).max(1)
}

/// Returns the second hash of a name, independent of the first.
pub fn check_of(name: &str) -> u32 {
    let hash = |h: u64, b: u8| {
        let h = (h.rotate_left(5) ^ u64::from(b)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        h ^ (h >> 32)
    };
    name.bytes().fold(0x5851_f42d_4c95_7f2d, hash) as u32
}

/// A cheap hasher for numbers, because most of them are hashes already.
#[derive(Debug, Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.0 = self.0 << 8 | u64::from(b));
    }
    fn write_u32(&mut self, number: u32) {
        self.0 = number.into();
    }
    fn write_u64(&mut self, number: u64) {
        self.0 = number ^ number >> 32;
    }
}

type ById<K, R> = RwLock<HashMap<K, Arc<Function<R>>, BuildHasherDefault<IdHasher>>>;

/// The functions of a class.
#[derive(Debug)]
pub struct Registry<R> {
    by_id: ById<u32, R>,
    /// Functions with a number that the program has chosen.
    chosen: ById<u64, R>,
}

impl<R> Default for Registry<R> {
    fn default() -> Self {
        Registry { by_id: RwLock::default(), chosen: RwLock::default() }
    }
}

impl<R> Registry<R> {
    /// Registers a function, replacing an earlier one of the same name. Returns `EXIST` if another
    /// function has the same number, and `INVALID_ARG` if the name is empty.
    pub fn add(
        &self,
        name: &str,
        rpc: Option<R>,
        extra: Option<Arc<dyn Any + Send + Sync>>,
    ) -> Result<Arc<Function<R>>> {
        if name.is_empty() {
            refuse!(INVALID_ARG, "a function must have a name");
        }
        let (id, check) = (id_of(name), check_of(name));
        let number = u64::from(check) << 32 | u64::from(id);
        let mut by_id = self.by_id.write();
        if self.chosen.read().contains_key(&number) {
            refuse!(
                EXIST,
                "the number {number:#x} of the function '{name}' was chosen for another"
            );
        }
        if let Some(other) = by_id.get(&id).filter(|other| other.name != name) {
            refuse!(
                EXIST,
                "the functions '{name}' and '{}' have the same number {id:#x}; rename one",
                other.name
            );
        }
        let quiet = AtomicBool::new(by_id.get(&id).is_some_and(|old| old.is_quiet()));
        let function = Arc::new(Function { id, check, name: name.into(), rpc, extra, quiet });
        let replaced = by_id.insert(id, function.clone());
        drop(by_id);
        drop(replaced); // outside the lock, because it drops values of the program
        Ok(function)
    }

    pub fn get(&self, id: u32) -> Option<Arc<Function<R>>> {
        self.by_id.read().get(&id).cloned()
    }

    /// Registers a function under a chosen number, replacing an earlier one. Returns `EXIST` if a
    /// named function has this number.
    pub fn add_chosen(
        &self,
        number: u64,
        rpc: Option<R>,
        extra: Option<Arc<dyn Any + Send + Sync>>,
    ) -> Result<Arc<Function<R>>> {
        let (id, check) = (number as u32, (number >> 32) as u32);
        // The lock is held, so that no thread registers the name meanwhile.
        let by_id = self.by_id.read();
        if let Some(named) = by_id.get(&id).filter(|named| named.check == check) {
            refuse!(EXIST, "the number {number:#x} is that of the function '{}'", named.name);
        }
        let mut chosen = self.chosen.write();
        let quiet = AtomicBool::new(chosen.get(&number).is_some_and(|old| old.is_quiet()));
        let name = format!("{number:#x}");
        let function = Arc::new(Function { id, check, name, rpc, extra, quiet });
        let replaced = chosen.insert(number, function.clone());
        drop((chosen, by_id));
        drop(replaced); // outside the lock, because it drops values of the program
        Ok(function)
    }

    pub fn numbered(&self, number: u64) -> Option<Arc<Function<R>>> {
        self.find(number as u32, (number >> 32) as u32)
    }

    pub fn find(&self, id: u32, check: u32) -> Option<Arc<Function<R>>> {
        let named = self.get(id).filter(|function| function.check == check);
        let number = u64::from(check) << 32 | u64::from(id);
        named.or_else(|| self.chosen.read().get(&number).cloned())
    }

    /// Removes the function with a 64-bit number. Returns `NO_MATCH` if no function has it.
    pub fn remove_numbered(&self, number: u64) -> Result<()> {
        let removed = self.chosen.write().remove(&number);
        if removed.is_some() {
            return Ok(());
        }
        match self.numbered(number) {
            Some(named) => self.remove(named.id),
            None => refuse!(NO_MATCH, "no function has the number {number:#x}"),
        }
    }

    pub fn named(&self, name: &str) -> Option<Arc<Function<R>>> {
        self.get(id_of(name)).filter(|function| function.name == name)
    }

    /// Removes a named function. Returns `NO_MATCH` if no function has this number.
    pub fn remove(&self, id: u32) -> Result<()> {
        let removed = self.by_id.write().remove(&id);
        if removed.is_none() {
            refuse!(NO_MATCH, "no function has the number {id:#x}");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Status;

    #[test]
    fn collisions_are_errors() {
        // Two names with the same 32-bit FNV-1a hash.
        let (a, b) = ("costarring", "liquid");
        assert_eq!(id_of(a), id_of(b));
        assert_ne!(check_of(a), check_of(b));
        let registry = Registry::<()>::default();
        let first = registry.add(a, None, None).unwrap();
        assert_eq!(registry.add(b, None, None).unwrap_err().status(), Status::EXIST);
        assert_eq!(registry.add(a, None, None).unwrap().id, first.id);
        assert!(registry.named(b).is_none() && registry.named(a).is_some());
        registry.remove(first.id).unwrap();
        assert!(registry.remove(first.id).is_err());
        assert!(registry.add(b, None, None).is_ok());
        assert!(registry.add("", None, None).is_err());
    }

    #[test]
    fn chosen_numbers_live_beside_names() {
        let registry = Registry::<()>::default();
        let named = registry.add("sum", None, None).unwrap();
        assert_eq!(registry.numbered(named.number()).unwrap().name, "sum");
        let refused = registry.add_chosen(named.number(), None, None).unwrap_err();
        assert_eq!(refused.status(), Status::EXIST);
        // Several numbers that share their lower half with each other and with the name.
        let low = u64::from(named.id);
        for number in [low, 1 << 40 | low, u64::MAX, 0] {
            let chosen = registry.add_chosen(number, None, None).unwrap();
            assert_eq!(chosen.number(), number);
            assert_eq!(registry.numbered(number).unwrap().name, format!("{number:#x}"));
            registry.numbered(number).unwrap().set_quiet(true);
            assert!(registry.add_chosen(number, None, None).unwrap().is_quiet());
        }
        assert!(registry.numbered(2 << 40 | low).is_none());
        let number = u64::from(check_of("mean")) << 32 | u64::from(id_of("mean"));
        registry.add_chosen(number, None, None).unwrap();
        assert_eq!(registry.add("mean", None, None).unwrap_err().status(), Status::EXIST);
        registry.remove_numbered(low).unwrap();
        assert_eq!(registry.remove_numbered(low).unwrap_err().status(), Status::NO_MATCH);
        registry.remove_numbered(named.number()).unwrap();
        assert!(registry.named("sum").is_none() && registry.numbered(u64::MAX).is_some());
    }
}
