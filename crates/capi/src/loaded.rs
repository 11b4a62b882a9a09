//! The programs and libraries that are loaded in this process.
//!
//! An address of position-independent code means nothing in another process. Its object and the
//! offset in it do. A build-id identifies the object or, without one, its file name and code size.

use super::boundary::array;
use std::ffi::CStr;
use std::os::raw::{c_int, c_void};

#[derive(Debug)]
pub(crate) struct Object {
    /// Identifies the object in every process, never 0.
    pub key: u64,
    pub base: usize,
    /// The begin, end and flags (`PF_X` and others) of each mapped segment.
    segments: Vec<(usize, usize, u32)>,
}

impl Object {
    pub(crate) fn flags(&self, address: usize) -> Option<u32> {
        let holds = |&&(from, to, _): &&(usize, usize, u32)| (from..to).contains(&address);
        self.segments.iter().find(holds).map(|segment| segment.2)
    }

    pub(crate) fn has_code(&self, address: usize) -> bool {
        self.flags(address).is_some_and(|flags| flags & libc::PF_X != 0)
    }
}

pub(crate) fn objects() -> Vec<Object> {
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

/// # Safety
/// `info` must describe a loaded object.
unsafe fn object(info: &libc::dl_phdr_info) -> Object {
    let base = info.dlpi_addr as usize;
    // SAFETY: a loaded object has `dlpi_phnum` program headers at `dlpi_phdr`.
    let headers = unsafe { array(info.dlpi_phdr, info.dlpi_phnum.into(), "the headers") };
    let headers = headers.unwrap_or_default();
    let range = |h: &libc::Elf64_Phdr| {
        let from = base.wrapping_add(h.p_vaddr as usize);
        (from, from.wrapping_add(h.p_memsz as usize))
    };
    let segments: Vec<_> = headers
        .iter()
        .filter(|h| h.p_type == libc::PT_LOAD)
        .map(|h| (range(h).0, range(h).1, h.p_flags))
        .collect();
    let readable = |(from, to): (usize, usize)| {
        segments.iter().any(|&(lo, hi, flags)| lo <= from && to <= hi && flags & libc::PF_R != 0)
    };
    let build_id = headers
        .iter()
        .filter(|h| h.p_type == libc::PT_NOTE)
        .map(|h| (range(h), if h.p_align == 8 { 8 } else { 4 }))
        .filter(|&(r, _)| readable(r))
        .find_map(|((from, to), align)| {
            // SAFETY: the notes lie in a readable loaded part of the object.
            let notes = unsafe { array(from as *const u8, to - from, "the notes") };
            build_id(notes.ok()?, align)
        });
    let key = match build_id {
        Some(id) => key(b"build-id", id, 0),
        None => {
            let code = segments.iter().filter(|segment| segment.2 & libc::PF_X != 0);
            let size = code.map(|&(from, to, _)| (to - from) as u64).sum();
            key(b"file", file_name(info).as_bytes(), size)
        }
    };
    Object { key, base, segments }
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
