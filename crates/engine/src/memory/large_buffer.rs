//! A pool of large buffers.
//!
//! They hold encoded parameters that are too long for a message, and bulk memory of servers. Fresh
//! memory of this size costs many times more than the copy, because the kernel maps and clears
//! every page. A pool ([`super::pool`]) therefore keeps a few dropped buffers.
//!
//! A buffer that other processes read can be exported to the host ([`super::shm_export`]; called
//! `lent` here). A process then maps it and copies by itself, because reading another process's
//! memory through the kernel is slow for bytes that were just written. All other buffers come from
//! the C heap, so that a C program can free them.
//!
//! Invariant: every byte is initialized, if only with stale data, so that a `&[u8]` is sound.

use super::pool::{Pool, Pooled};
use super::shm_export::{ShmExport, ShmKey};
use std::hash::Hash;
use std::ops::{Deref, DerefMut};
use std::ptr;

/// Alignment of a buffer, and the unit of its size, in bytes.
const PAGE: usize = 4096;
const MOST: usize = 8;
const MOST_BYTES: usize = 32 << 20;
/// A buffer of more than 16 pages serves requests of at least its size divided by this.
const WASTE: usize = 4;
/// Exports beyond which temporary buffers leave the rest to memory that the program requests.
const MANY_LENT: usize = 32;

static KEPT: Pool<LargeBuffer> = Pool::new(MOST, MOST_BYTES);

/// Dropping it gives it to the pool.
#[derive(Debug)]
pub struct LargeBuffer {
    at: *mut u8,
    size: usize,
    lent: Option<ShmExport>,
    used: bool,
}

// SAFETY: the buffer owns its memory exclusively.
unsafe impl Send for LargeBuffer {}
// SAFETY: shared references to the buffer only read its memory.
unsafe impl Sync for LargeBuffer {}

impl LargeBuffer {
    /// Returns a buffer of at least `size` bytes on the heap, or `None` if the allocation fails.
    pub fn heap(size: usize) -> Option<LargeBuffer> {
        LargeBuffer::take(size, false).or_else(|| LargeBuffer::fresh(size))
    }

    /// In exported memory if possible and if this process exports little, else on the heap.
    pub fn lent(size: usize) -> Option<LargeBuffer> {
        let kept = LargeBuffer::take(size, true);
        let lent = kept.or_else(|| {
            (ShmExport::count() < MANY_LENT).then(|| LargeBuffer::fresh_lent(size)).flatten()
        });
        lent.or_else(|| LargeBuffer::heap(size))
    }

    /// In exported memory, with `size` zeroed bytes, or `None` if there is none.
    pub fn lent_zeroed(size: usize) -> Option<LargeBuffer> {
        match LargeBuffer::take(size, true) {
            Some(mut kept) => {
                kept[..size].fill(0);
                Some(kept)
            }
            None => LargeBuffer::fresh_lent(size),
        }
    }

    fn fresh_lent(size: usize) -> Option<LargeBuffer> {
        let size = size.checked_next_multiple_of(PAGE)?;
        let lent = ShmExport::new(size)?;
        Some(LargeBuffer { at: lent.address(), size, lent: Some(lent), used: true })
    }

    fn take(size: usize, lent: bool) -> Option<LargeBuffer> {
        let most = size.saturating_mul(WASTE).max(16 * PAGE);
        let is_kind = |long: &LargeBuffer| match &long.lent {
            Some(export) => lent && export.is_own(),
            None => !lent,
        };
        let mut long = KEPT.take_if(|l| (size..=most).contains(&l.size) && is_kind(l))?;
        long.used = true;
        Some(long)
    }

    fn fresh(size: usize) -> Option<LargeBuffer> {
        let size = size.max(1).checked_next_multiple_of(PAGE)?;
        let at = alloc(size);
        if at.is_null() {
            return None;
        }
        // SAFETY: `alloc` returned a block of `size` bytes.
        unsafe { ptr::write_bytes(at, 0, size) };
        Some(LargeBuffer { at, size, lent: None, used: true })
    }

    /// # Safety
    /// `at` must come from [`LargeBuffer::into_heap`] of `size` bytes, without other use.
    pub unsafe fn from_heap(at: *mut u8, size: usize) -> LargeBuffer {
        LargeBuffer { at, size, lent: None, used: true }
    }

    pub fn address(&self) -> *mut u8 {
        self.at
    }

    pub fn shm_key(&self) -> Option<ShmKey> {
        self.lent.as_ref().map(ShmExport::shm_key)
    }

    /// Permits processes without a common job to copy for the registration `id`, if exported.
    pub fn open(&self, id: u64, description: impl Hash) {
        if let Some(lent) = &self.lent {
            lent.open(id, description);
        }
    }

    /// Ends what [`LargeBuffer::open`] permits, after the copies in progress.
    pub fn close(&self) {
        self.lent.iter().for_each(ShmExport::close);
    }

    /// Releases the memory to the caller, who frees it with [`free`]. Returns `None` if exported.
    pub fn into_heap(mut self) -> Option<*mut u8> {
        if self.lent.is_some() {
            return None;
        }
        self.used = false;
        Some(std::mem::replace(&mut self.at, ptr::null_mut()))
    }
}

impl Deref for LargeBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `size` bytes are initialized. Peers write to an exported buffer only if it backs
        // a memory handle, and that memory is accessed by address, not through this reference.
        unsafe { std::slice::from_raw_parts(self.at, self.size) }
    }
}

impl DerefMut for LargeBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: `size` bytes are initialized, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.size) }
    }
}

impl Drop for LargeBuffer {
    fn drop(&mut self) {
        let copied = self.lent.as_ref().is_some_and(ShmExport::is_copied);
        if self.used && !copied {
            let (at, size) = (std::mem::replace(&mut self.at, ptr::null_mut()), self.size);
            KEPT.give(LargeBuffer { at, size, lent: self.lent.take(), used: false });
            return;
        }
        if self.lent.is_none() {
            // SAFETY: the pointer came from `alloc` or is null, and has no other use.
            unsafe { free(self.at) };
        }
    }
}

impl Pooled for LargeBuffer {
    fn bytes(&self) -> usize {
        self.size
    }
}

pub fn clear() {
    KEPT.clear();
}

/// Allocates `size` page-aligned bytes, which [`free`] or C's `free` releases, or returns null.
pub fn alloc(size: usize) -> *mut u8 {
    let mut buf = ptr::null_mut();
    // SAFETY: `buf` is a valid place, and the alignment is a power of two.
    let failed = unsafe { libc::posix_memalign(&mut buf, PAGE, size.max(1)) } != 0;
    if failed { ptr::null_mut() } else { buf.cast() }
}

/// # Safety
/// `buf` must come from [`alloc`] or [`LargeBuffer::into_heap`] or be null, without later use.
pub unsafe fn free(buf: *mut u8) {
    // SAFETY: `buf` came from `posix_memalign` or is null, by contract.
    unsafe { libc::free(buf.cast()) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;

    static ALONE: Mutex<()> = Mutex::new(());

    #[test]
    fn buffers_come_back() {
        let _alone = ALONE.lock();
        let mut first = LargeBuffer::heap(13 << 20).expect("memory");
        assert!(first.len() >= 13 << 20 && (first.address() as usize).is_multiple_of(PAGE));
        first.fill(7);
        let at = first.address();
        drop(first);
        assert_eq!(LargeBuffer::heap(12 << 20).expect("memory").address(), at, "it was kept");
        let other = LargeBuffer::heap(14 << 20).expect("memory").address();
        assert_ne!(other, at, "it is too short");
        assert_ne!(LargeBuffer::heap(10).expect("memory").address(), at, "it is much too long");
        drop(LargeBuffer::heap(40 << 20));
        assert_eq!(LargeBuffer::heap(12 << 20).expect("memory").address(), other, "it was kept");
    }

    #[test]
    fn lent_ones_are_kept_apart_and_few() {
        let _alone = ALONE.lock();
        let wanted = 2 * MANY_LENT;
        let mut many: Vec<LargeBuffer> =
            (0..wanted).filter_map(|_| LargeBuffer::lent(100_000)).collect();
        let lent = many.iter().filter(|l| l.shm_key().is_some()).count();
        assert!((1..wanted).contains(&lent), "{lent}");
        assert_eq!(many.len(), wanted, "the others are on the heap");
        many.iter_mut().for_each(|long| long.fill(7));
        drop(many);
        for _ in 0..2 * MOST {
            let zeroed = LargeBuffer::lent_zeroed(90_000).expect("lent");
            assert!(zeroed[..90_000].iter().all(|&b| b == 0));
            std::mem::forget(zeroed);
        }
        drop(LargeBuffer::lent_zeroed(1 << 20).expect("lent"));
        let again = LargeBuffer::lent(1 << 20).expect("memory");
        assert!(again.shm_key().is_some(), "what came back is lent again");
        assert!(again.into_heap().is_none(), "that memory cannot be freed by others");
    }

    #[test]
    fn a_forked_child_does_not_take_memory_that_it_shares_with_its_parent() {
        let _alone = ALONE.lock();
        clear();
        let lent = LargeBuffer::lent(1 << 20).expect("memory");
        let at = lent.address();
        drop(lent);
        // SAFETY: the child only allocates and ends. No other thread holds the lock of the pool.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let other = LargeBuffer::lent(1 << 20).is_some_and(|lent| lent.address() != at);
            // SAFETY: ends the child without its destructors.
            unsafe { libc::_exit(i32::from(!other)) };
        }
        let mut status = -1;
        // SAFETY: `status` is valid for a write.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(status, 0, "it took the memory");
        assert_eq!(LargeBuffer::lent(1 << 20).expect("memory").address(), at, "the parent may");
    }

    #[test]
    fn what_is_given_away_is_freed_by_its_owner() {
        let at = LargeBuffer::heap(5000).and_then(LargeBuffer::into_heap).expect("on the heap");
        // SAFETY: the buffer has 5000 bytes and was released to this test.
        unsafe {
            at.add(4999).write(1);
            free(at);
        }
        assert!(
            LargeBuffer::heap(usize::MAX).is_none()
                && LargeBuffer::heap(isize::MAX as usize).is_none()
        );
    }
}
