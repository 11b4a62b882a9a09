//! Zeroed memory that the library allocates itself, for memory handles: on cache lines of
//! its own, and, where it is long, in pages that the kernel provides at first use.

use crate::rpc::failure::{Result, refuse};
use std::alloc::{Layout, alloc_zeroed, dealloc};

/// Memory begins on a cache line of its own.
pub(super) const LINE: usize = 64;
/// From this many bytes on, pages are provided at first use.
pub(super) const LAZY: usize = 2 * HUGE;
/// A large page. Memory of several is asked for as such: the kernel copies it faster
/// from process to process.
const HUGE: usize = 2 << 20;

/// Zeroed memory of the library's own, on a cache line of its own.
#[derive(Debug)]
pub(crate) struct ZeroedBuffer {
    at: *mut u8,
    from: Origin,
}

#[derive(Debug)]
enum Origin {
    Allocator(Layout),
    /// A mapping of its own: where it begins, and its bytes.
    Pages(usize, usize),
}

// SAFETY: the memory is the buffer's alone; code that uses it through the address orders
// its accesses itself.
unsafe impl Send for ZeroedBuffer {}
// SAFETY: as above.
unsafe impl Sync for ZeroedBuffer {}

impl ZeroedBuffer {
    /// A buffer of `bytes` bytes.
    ///
    /// # Errors
    /// `NOMEM`.
    pub(crate) fn new(bytes: usize) -> Result<ZeroedBuffer> {
        if bytes >= LAZY {
            return ZeroedBuffer::huge(bytes);
        }
        let layout = Layout::from_size_align(bytes.max(1), LINE).ok();
        // SAFETY: the layout has bytes.
        let at = layout.map_or(std::ptr::null_mut(), |layout| unsafe { alloc_zeroed(layout) });
        let (Some(layout), false) = (layout, at.is_null()) else {
            refuse!(NOMEM, "no memory for {bytes} bytes");
        };
        Ok(ZeroedBuffer { at, from: Origin::Allocator(layout) })
    }

    /// Fresh pages, which take memory when they are first used: others may have said how
    /// many there are to be.
    fn huge(bytes: usize) -> Result<ZeroedBuffer> {
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let Some(len) = bytes.checked_add(HUGE).filter(|&len| len <= isize::MAX as usize) else {
            refuse!(NOMEM, "no memory for {bytes} bytes");
        };
        // SAFETY: a fresh mapping touches nothing else.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            refuse!(NOMEM, "no memory for {bytes} bytes");
        }
        let skip = (base as usize).next_multiple_of(HUGE) - base as usize;
        let at = base.cast::<u8>().wrapping_add(skip);
        // SAFETY: the mapping is one large page longer than the bytes. Without large pages
        // the advice is refused, and nothing is lost.
        unsafe { libc::madvise(at.cast(), bytes / HUGE * HUGE, libc::MADV_HUGEPAGE) };
        Ok(ZeroedBuffer { at, from: Origin::Pages(base as usize, len) })
    }

    /// Where it begins.
    pub(crate) fn address(&self) -> *mut u8 {
        self.at
    }
}

impl Drop for ZeroedBuffer {
    fn drop(&mut self) {
        match self.from {
            // SAFETY: allocated with this layout.
            Origin::Allocator(layout) => unsafe { dealloc(self.at, layout) },
            // SAFETY: the mapping is the buffer's own.
            Origin::Pages(base, len) => unsafe {
                libc::munmap(base as *mut libc::c_void, len);
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::failure::Status;

    #[test]
    fn memory_of_any_length_is_zeroed_and_aligned() {
        for bytes in [0, 1, 100, HUGE, 2 * HUGE, 5 * HUGE + 17] {
            let buffer = ZeroedBuffer::new(bytes).unwrap();
            let align = if bytes >= 2 * HUGE { HUGE } else { LINE };
            assert!((buffer.address() as usize).is_multiple_of(align), "{bytes}");
            // SAFETY: the buffer has the bytes, and nobody else uses them.
            let all = unsafe { std::slice::from_raw_parts_mut(buffer.address(), bytes) };
            assert!(all.iter().all(|&b| b == 0), "{bytes}");
            all.fill(7);
        }
        assert_eq!(ZeroedBuffer::new(isize::MAX as usize).unwrap_err().status, Status::NOMEM);
        assert!(ZeroedBuffer::new(usize::MAX).is_err());
    }
}
