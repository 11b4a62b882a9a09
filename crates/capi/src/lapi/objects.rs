//! Code and data of this process, by address.
//!
//! Position-independent programs and shared libraries are loaded at different addresses in each
//! process, so an address of code is meaningless in another process. The *object* (the program or a
//! library, identified by a hash of its build identifier and layout) and the offset in it mean the
//! same everywhere.

use parking_lot::RwLock;
use std::ffi::CStr;
use std::os::raw::{c_int, c_void};
use std::sync::Arc;

#[derive(Debug)]
struct Object {
    key: u64,
    base: usize,
    /// The begin, end and flags of each mapped segment.
    parts: Vec<(usize, usize, u32)>,
}

static LOADED: RwLock<Option<Arc<Vec<Object>>>> = RwLock::new(None);

/// Adds bytes to an FNV-1a hash.
fn mix(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

unsafe extern "C" fn visit(
    info: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    list: *mut c_void,
) -> c_int {
    // SAFETY: `list` is the list that `load` passed, and dl_iterate_phdr passes a valid `info`
    // whose headers are mapped. Only notes in a readable part are read.
    unsafe {
        let (info, list) = (&*info, &mut *list.cast::<Vec<Object>>());
        let base = info.dlpi_addr as usize;
        let mut key = 0xcbf2_9ce4_8422_2325;
        if !info.dlpi_name.is_null() {
            let name = CStr::from_ptr(info.dlpi_name).to_bytes();
            key = mix(key, name.rsplit(|&b| b == b'/').next().unwrap_or(name));
        }
        let (mut parts, mut notes) = (Vec::new(), Vec::new());
        for i in 0..usize::from(info.dlpi_phnum) {
            let header = &*info.dlpi_phdr.add(i);
            let begin = base + header.p_vaddr as usize;
            let end = begin + header.p_memsz as usize;
            match header.p_type {
                libc::PT_LOAD => {
                    parts.push((begin, end, header.p_flags));
                    for number in [header.p_vaddr, header.p_memsz, u64::from(header.p_flags)] {
                        key = mix(key, &number.to_le_bytes());
                    }
                }
                // Notes contain the build identifier.
                libc::PT_NOTE => notes.push((begin, end)),
                _ => {}
            }
        }
        for (begin, end) in notes {
            let holds = |part: &&(usize, usize, u32)| part.0 <= begin && end <= part.1;
            if parts.iter().find(holds).is_some_and(|part| part.2 & libc::PF_R != 0) {
                key = mix(key, std::slice::from_raw_parts(begin as *const u8, end - begin));
            }
        }
        list.push(Object { key: key.max(1), base, parts });
    }
    0
}

fn load() -> Arc<Vec<Object>> {
    let mut list: Vec<Object> = Vec::new();
    // SAFETY: `visit` fills the list, which outlives the call, and keeps no reference to it.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut list).cast()) };
    let list = Arc::new(list);
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
    let search = |list: &[Object]| {
        let part = |o: &Object| o.parts.iter().find(|p| (p.0..p.1).contains(&address)).map(|p| p.2);
        list.iter().find_map(part)
    };
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

/// Returns the object and offset of code at an address.
pub(crate) fn locate(address: usize) -> Option<(u64, u64)> {
    find(|list| {
        let inside = |o: &&Object| {
            let holds =
                |p: &(usize, usize, u32)| (p.0..p.1).contains(&address) && p.2 & libc::PF_X != 0;
            o.parts.iter().any(holds)
        };
        list.iter().find(inside).map(|o| (o.key, (address - o.base) as u64))
    })
}

pub(crate) fn resolve(key: u64, offset: u64) -> Option<usize> {
    let base = find(|list| list.iter().find(|o| o.key == key).map(|o| o.base))?;
    let address = base.checked_add(usize::try_from(offset).ok()?)?;
    is_code(address).then_some(address)
}

/// Returns whether at most 16 bytes at an address can be read. Assumes so if the kernel does not
/// permit the check.
pub(crate) fn is_mapped(address: usize, bytes: usize) -> bool {
    debug_assert!(bytes <= 16, "more bytes than there is room for");
    let mut copy = [0u8; 16];
    let local = libc::iovec { iov_base: copy.as_mut_ptr().cast(), iov_len: bytes };
    let remote = libc::iovec { iov_base: address as *mut c_void, iov_len: bytes };
    // SAFETY: `copy` has space for the bytes, and the kernel checks the remote address itself.
    let read = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
    read == bytes as isize
        || read < 0 && std::io::Error::last_os_error().raw_os_error() != Some(libc::EFAULT)
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
        assert!(is_mapped(&raw const WORD as usize, 8));
        assert!(!is_mapped(8, 8));
        static ZERO: u64 = 0;
        assert!(is_constant(&raw const ZERO as usize));
    }
}
