//! Names of functions that are valid in every process.
//!
//! Programs and libraries lie at different addresses in each process. A name therefore consists of
//! the loaded object (program or library) that contains the function, and the offset there. A
//! build-id identifies the object or, without one, its file name and code size. The name of a
//! registered function also holds its index, which takes precedence if the target has a function
//! there.
//!
//! Invariant: a name denotes one function as long as no object with functions in use is unloaded.
//! Both directions are cached, until a function is registered or X10Lib starts or ends.

use super::function_table::{self, TABLE_SIZE};
use parking_lot::RwLock;
use portolan_engine::error::{Result, fail};
use std::collections::HashMap;
use std::ffi::CStr;
use std::os::raw::{c_int, c_void};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) type Function = unsafe extern "C" fn(*mut i64, c_int);

/// The name of a function in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(crate) struct Name {
    /// Key of the object, or 0 if only the index identifies the function.
    pub object: u64,
    /// Offset in the object in bytes.
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
    let found = objects().into_iter().find(|o| o.has_code(address));
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
    let Some(address) = objects().iter().find_map(code) else {
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

/// A loaded program or library.
struct Object {
    key: u64,
    base: usize,
    /// Address ranges of its code: start and end.
    code: Vec<(usize, usize)>,
}

impl Object {
    fn has_code(&self, address: usize) -> bool {
        self.code.iter().any(|&(from, to)| (from..to).contains(&address))
    }
}

/// Returns all loaded objects, the program first.
fn objects() -> Vec<Object> {
    let mut all: Vec<Object> = Vec::new();
    // SAFETY: `note` has the type of the callback and does not unwind. `all` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut all).cast()) };
    all
}

/// Adds an object to the vector `all`. Callback of `dl_iterate_phdr`.
unsafe extern "C" fn note(
    info: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    all: *mut c_void,
) -> c_int {
    // SAFETY: the system passes a valid description, and `all` points to the vector of `objects`.
    let (info, all) = unsafe { (&*info, &mut *all.cast::<Vec<Object>>()) };
    // A panic must not unwind into the C library.
    let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        // SAFETY: the system passes the description of a loaded object.
        unsafe { object(info) }
    }));
    all.extend(seen.ok());
    0
}

/// Reads the key and the code ranges of a loaded object.
///
/// # Safety
/// `info` must describe a loaded object.
unsafe fn object(info: &libc::dl_phdr_info) -> Object {
    let base = info.dlpi_addr as usize;
    // SAFETY: a loaded object has `dlpi_phnum` program headers at `dlpi_phdr`.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let range = |h: &libc::Elf64_Phdr| {
        let from = base.wrapping_add(h.p_vaddr as usize);
        (from, from.wrapping_add(h.p_memsz as usize))
    };
    let loaded = |h: &&libc::Elf64_Phdr| h.p_type == libc::PT_LOAD;
    let code: Vec<_> =
        headers.iter().filter(loaded).filter(|h| h.p_flags & libc::PF_X != 0).map(range).collect();
    let readable = |(from, to): (usize, usize)| {
        headers
            .iter()
            .filter(loaded)
            .filter(|h| h.p_flags & libc::PF_R != 0)
            .map(range)
            .any(|(lo, hi)| lo <= from && to <= hi)
    };
    let build_id = headers
        .iter()
        .filter(|h| h.p_type == libc::PT_NOTE)
        .map(|h| (range(h), if h.p_align == 8 { 8 } else { 4 }))
        .filter(|&(r, _)| readable(r))
        .find_map(|((from, to), align)| {
            // SAFETY: the notes lie in a readable loaded part of the object.
            let notes = unsafe { std::slice::from_raw_parts(from as *const u8, to - from) };
            build_id(notes, align)
        });
    let key = match build_id {
        Some(id) => key(b"build-id", id, 0),
        None => {
            let size = code.iter().map(|&(from, to)| (to - from) as u64).sum();
            key(b"file", file_name(info).as_bytes(), size)
        }
    };
    Object { key, base, code }
}

/// Returns the last component of the object's file name. The system gives the program no name.
fn file_name(info: &libc::dl_phdr_info) -> String {
    let path = if info.dlpi_name.is_null() {
        String::new()
    } else {
        // SAFETY: the system passes a NUL-terminated string, and it is not null.
        unsafe { CStr::from_ptr(info.dlpi_name) }.to_string_lossy().into_owned()
    };
    let path = if path.is_empty() {
        std::env::current_exe().map(|p| p.to_string_lossy().into_owned()).unwrap_or_default()
    } else {
        path
    };
    path.rsplit('/').next().unwrap_or_default().to_string()
}

/// Returns the build-id among the notes of an object.
fn build_id(mut notes: &[u8], align: usize) -> Option<&[u8]> {
    const GNU_BUILD_ID: u32 = 3;
    loop {
        let word = |i: usize| {
            let bytes = notes.get(4 * i..4 * i + 4)?;
            Some(u32::from_ne_bytes(bytes.try_into().ok()?))
        };
        let (name_len, id_len, kind) = (word(0)? as usize, word(1)? as usize, word(2)?);
        let id_at = (12 + name_len).next_multiple_of(align);
        let name = notes.get(12..12 + name_len)?;
        let id = notes.get(id_at..id_at + id_len)?;
        if kind == GNU_BUILD_ID && name == b"GNU\0" {
            return Some(id);
        }
        notes = notes.get((id_at + id_len).next_multiple_of(align)..)?;
    }
}

/// Returns the FNV-1a hash of the data that identifies an object, never 0.
fn key(kind: &[u8], id: &[u8], size: u64) -> u64 {
    let bytes = kind.iter().chain(id).copied().chain(size.to_ne_bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    hash.max(1)
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

    #[test]
    fn a_build_id_is_found_behind_other_notes() {
        let mut notes = Vec::new();
        for (kind, name, id) in [
            (1u32, &b"GNU\0"[..], &[9u8; 16][..]),
            (7, b"stapsdt\0", b"xy"),
            (3, b"GNU\0", b"id-8byte"),
        ] {
            for word in [name.len() as u32, id.len() as u32, kind] {
                notes.extend(word.to_ne_bytes());
            }
            notes.extend(name);
            notes.extend(id);
            notes.resize(notes.len().next_multiple_of(4), 0);
        }
        assert_eq!(build_id(&notes, 4), Some(&b"id-8byte"[..]));
        assert_eq!(build_id(&notes[..40], 4), None);
        assert_eq!(build_id(&[], 4), None);
    }
}
