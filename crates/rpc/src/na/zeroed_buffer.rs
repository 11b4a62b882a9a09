//! Zeroed memory for memory handles. A buffer starts on a cache line of its own.

use crate::failure::{Result, refuse};
use portolan_base::shm::HUGE_PAGE as HUGE;
use std::alloc::{Layout, alloc_zeroed, dealloc};

pub(super) const LINE: usize = 64;
/// Buffers of at least this many bytes are mapped, so that their pages are provided on first use. The
/// kernel copies huge pages faster between processes.
pub(super) const LAZY: usize = 2 * HUGE;

#[derive(Debug)]
pub struct ZeroedBuffer {
    at: *mut u8,
    from: Origin,
}

#[derive(Debug)]
enum Origin {
    Allocator(Layout),
    /// A separate mapping: its base address and its length in bytes.
    Pages(usize, usize),
}

// SAFETY: the buffer owns its memory, and users of its address synchronise their accesses.
unsafe impl Send for ZeroedBuffer {}
// SAFETY: a shared reference only yields the address, whose users synchronise their accesses.
unsafe impl Sync for ZeroedBuffer {}

impl ZeroedBuffer {
    /// Allocates a buffer, or returns `NOMEM`.
    pub fn new(bytes: usize) -> Result<ZeroedBuffer> {
        if bytes >= LAZY {
            return ZeroedBuffer::huge(bytes);
        }
        let layout = Layout::from_size_align(bytes.max(1), LINE).ok();
        // SAFETY: the layout has a nonzero size.
        let at = layout.map_or(std::ptr::null_mut(), |layout| unsafe { alloc_zeroed(layout) });
        let (Some(layout), false) = (layout, at.is_null()) else {
            refuse!(NOMEM, "no memory for {bytes} bytes");
        };
        Ok(ZeroedBuffer { at, from: Origin::Allocator(layout) })
    }

    /// Maps fresh pages, which take up memory only on first use. The length may have been chosen by
    /// a peer, so it must not cost memory before the bytes arrive.
    fn huge(bytes: usize) -> Result<ZeroedBuffer> {
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let Some(len) = bytes.checked_add(HUGE).filter(|&len| len <= isize::MAX as usize) else {
            refuse!(NOMEM, "no memory for {bytes} bytes");
        };
        // SAFETY: a mapping at an address that the kernel chooses affects no other memory.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            refuse!(NOMEM, "no memory for {bytes} bytes");
        }
        let skip = (base as usize).next_multiple_of(HUGE) - base as usize;
        let at = base.cast::<u8>().wrapping_add(skip);
        // SAFETY: the range lies within the mapping, which is one huge page longer than `bytes`. A
        // kernel without huge pages rejects the advice, which is harmless.
        unsafe { libc::madvise(at.cast(), bytes / HUGE * HUGE, libc::MADV_HUGEPAGE) };
        Ok(ZeroedBuffer { at, from: Origin::Pages(base as usize, len) })
    }

    pub fn address(&self) -> *mut u8 {
        self.at
    }
}

impl Drop for ZeroedBuffer {
    fn drop(&mut self) {
        match self.from {
            // SAFETY: `self.at` was allocated with this layout.
            Origin::Allocator(layout) => unsafe { dealloc(self.at, layout) },
            // SAFETY: the buffer owns the mapping, and nothing uses it after the drop.
            Origin::Pages(base, len) => unsafe {
                libc::munmap(base as *mut libc::c_void, len);
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Status;

    #[test]
    fn memory_of_any_length_is_zeroed_and_aligned() {
        for bytes in [0, 1, 100, HUGE, 2 * HUGE, 5 * HUGE + 17] {
            let buffer = ZeroedBuffer::new(bytes).unwrap();
            let align = if bytes >= 2 * HUGE { HUGE } else { LINE };
            assert!((buffer.address() as usize).is_multiple_of(align), "{bytes}");
            // SAFETY: the buffer has `bytes` initialised bytes, and no other code uses them.
            let all = unsafe { std::slice::from_raw_parts_mut(buffer.address(), bytes) };
            assert!(all.iter().all(|&b| b == 0), "{bytes}");
            all.fill(7);
        }
        assert_eq!(ZeroedBuffer::new(isize::MAX as usize).unwrap_err().status(), Status::NOMEM);
        assert!(ZeroedBuffer::new(usize::MAX).is_err());
    }
}
