//! Code and data of this process, by address, in a cached list of [objects](crate::loaded).

use crate::loaded::{self, Object};
use parking_lot::RwLock;
use std::sync::Arc;

static LOADED: RwLock<Option<Arc<Vec<Object>>>> = RwLock::new(None);

fn load() -> Arc<Vec<Object>> {
    let list = Arc::new(loaded::objects());
    *LOADED.write() = Some(list.clone());
    list
}

/// Searches the cached list of objects, and then a fresh one if nothing matches.
fn find<T>(search: impl Fn(&[Object]) -> Option<T>) -> Option<T> {
    let known = LOADED.read().clone();
    if let Some(found) = known.and_then(|list| search(&list)) {
        return Some(found);
    }
    search(&load())
}

/// The flags of the segment that contains an address. Searches only the cache unless `fresh`.
fn flags(address: usize, fresh: bool) -> Option<u32> {
    let search = |list: &[Object]| list.iter().find_map(|object| object.flags(address));
    if fresh {
        return find(search);
    }
    // Two statements, because a read guard lives to the end of its statement, and `load` takes the
    // write lock.
    let known = LOADED.read().clone();
    search(&known.unwrap_or_else(load))
}

pub(crate) fn is_code(address: usize) -> bool {
    flags(address, true).is_some_and(|f| f & libc::PF_X != 0)
}

/// Like [`is_code`], but searches only the cached list of objects, which is cheap.
pub(crate) fn is_procedure(address: usize) -> bool {
    flags(address, false).is_some_and(|f| f & libc::PF_X != 0)
}

/// Returns whether an address is in code or constants of an object. Searches only the cache.
pub(crate) fn is_constant(address: usize) -> bool {
    flags(address, false).is_some_and(|f| f & libc::PF_W == 0)
}

pub(crate) fn locate(address: usize) -> Option<(u64, u64)> {
    find(|list| {
        let inside = list.iter().find(|object| object.has_code(address))?;
        Some((inside.key, (address - inside.base) as u64))
    })
}

pub(crate) fn resolve(key: u64, offset: u64) -> Option<usize> {
    let base = find(|list| list.iter().find(|o| o.key == key).map(|o| o.base))?;
    let address = base.checked_add(usize::try_from(offset).ok()?)?;
    is_code(address).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_again() {
        let here = functions_are_found_again as *const () as usize;
        assert!(is_code(here) && is_constant(here));
        let (key, offset) = locate(here).unwrap();
        assert_eq!(resolve(key, offset), Some(here));
        assert!(resolve(key ^ 1, offset).is_none());
        let far = libc::getpid as *const () as usize;
        let (other, offset) = locate(far).unwrap();
        assert_eq!(resolve(other, offset), Some(far));
    }

    #[test]
    fn data_is_no_code() {
        static mut WORD: u64 = 0;
        let local = 5u8;
        assert!(!is_code(&raw const WORD as usize) && !is_constant(&raw const WORD as usize));
        assert!(!is_code(&raw const local as usize) && locate(&raw const local as usize).is_none());
        static ZERO: u64 = 0;
        assert!(is_constant(&raw const ZERO as usize));
    }
}
