//! Names of functions that are valid in every process: the [loaded object](crate::loaded) that
//! contains the function, the offset there, and the index of a registered function, which takes
//! precedence if the target has one there.
//!
//! Invariant: a name denotes one function as long as no object with functions in use is unloaded.
//! Both directions are cached until a function is registered or X10Lib starts or ends.

use super::function_table::{self, TABLE_SIZE};
use crate::loaded::{self, Object};
use parking_lot::RwLock;
use portolan_base::error::{Result, fail};
use std::collections::HashMap;
use std::os::raw::c_int;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) type Function = unsafe extern "C" fn(*mut i64, c_int);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(crate) struct Name {
    /// Key of the object, or 0 if only the index identifies the function.
    pub object: u64,
    pub offset: u64,
    /// Index in the tables, or 0 if the function is not registered.
    pub index: u32,
    /// Number of arguments. It travels with the name but is not part of it.
    pub n: u32,
}

static NAMES: LazyLock<RwLock<HashMap<usize, Name>>> = LazyLock::new(RwLock::default);
static ADDRESSES: LazyLock<RwLock<HashMap<(u64, u64), usize>>> = LazyLock::new(RwLock::default);

/// Incremented when the caches are dropped.
static GENERATION: AtomicU32 = AtomicU32::new(0);

pub(super) fn forget() {
    NAMES.write().clear();
    ADDRESSES.write().clear();
    GENERATION.fetch_add(1, Ordering::Release);
}

/// Returns a number that changes when names may change.
#[inline]
pub(super) fn generation() -> u32 {
    GENERATION.load(Ordering::Acquire)
}

/// Returns the name of the function at an address of this process. An index cast to an address
/// names the registered function. Fails with `Argument` if the address holds neither.
pub(crate) fn name(address: usize, n: u32) -> Result<Name> {
    if let Some(&known) = NAMES.read().get(&address) {
        return Ok(Name { n, ..known });
    }
    let name = find_name(address)?;
    NAMES.write().insert(address, name);
    Ok(Name { n, ..name })
}

fn find_name(address: usize) -> Result<Name> {
    if address == 0 {
        fail!(Argument, "the function is null");
    }
    if address <= TABLE_SIZE {
        return Ok(Name { object: 0, offset: 0, index: address as u32, n: 0 });
    }
    let index = function_table::index_of(address);
    let found = loaded::objects().into_iter().find(|o| o.has_code(address));
    match found {
        Some(object) => {
            let offset = (address - object.base) as u64;
            Ok(Name { object: object.key, offset, index, n: 0 })
        }
        None if index != 0 => Ok(Name { object: 0, offset: 0, index, n: 0 }),
        None => fail!(
            Argument,
            "no code of a program or library is at {address:#x}; a function that is generated at \
             run time must be registered at every place (x10_register)"
        ),
    }
}

/// Returns this process's function of a name. Fails with `Argument` if there is none.
pub(crate) fn resolve(name: &Name) -> Result<Function> {
    let address = match function_table::at(name.index) {
        0 => by_object(name)?,
        registered => registered,
    };
    // SAFETY: either the program has registered the address as a function, or the address is the
    // offset of a function of the sender, in code of the same build of the object.
    Ok(unsafe { std::mem::transmute::<usize, Function>(address) })
}

fn by_object(name: &Name) -> Result<usize> {
    if name.object == 0 {
        fail!(
            Argument,
            "the function of index {} is not registered at this place; register it at every \
             place, preferably with x10_init",
            name.index
        );
    }
    let key = (name.object, name.offset);
    if let Some(&known) = ADDRESSES.read().get(&key) {
        return Ok(known);
    }
    let code = |o: &Object| {
        let address = o.base.wrapping_add(name.offset as usize);
        (o.key == name.object && o.has_code(address)).then_some(address)
    };
    let Some(address) = loaded::objects().iter().find_map(code) else {
        fail!(
            Argument,
            "the function at offset {:#x} of object {:016x} is not in this process; run the same \
             build of the program, with the same libraries loaded, at every place, or register \
             the function (x10_register)",
            name.offset,
            name.object
        );
    };
    ADDRESSES.write().insert(key, address);
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" fn some_function(_: *mut i64, _: c_int) {}

    #[test]
    fn a_function_is_found_again() {
        let address = some_function as *const () as usize;
        let name = find_name(address).unwrap();
        assert_ne!(name.object, 0);
        assert_eq!(by_object(&name).unwrap(), address);
        let elsewhere = Name { object: name.object ^ 1, ..name };
        assert!(by_object(&elsewhere).is_err());
    }

    #[test]
    fn data_and_null_are_no_functions() {
        static DATA: u64 = 7;
        let heap = Box::new(1u8);
        assert!(find_name(0).is_err());
        assert!(find_name((&raw const *heap) as usize).is_err());
        assert!(find_name((&raw const DATA) as usize).is_err());
        assert_eq!(find_name(12).unwrap().index, 12);
    }
}
