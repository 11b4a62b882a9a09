//! A pool of long buffers.
//!
//! Parameters that are too long for a message are encoded into a buffer of their own, the
//! other side pulls them into a second one, and servers allocate bulk memory for a call. Fresh
//! memory of such length costs many times what moving the bytes does: the kernel gives and
//! clears every page anew. So a few buffers are kept when they are dropped, within a number
//! and a number of bytes.
//!
//! A buffer that other ranks are to read can be *lent* ([`super::shm_export`]): a rank of the same
//! node then maps it and copies by itself. Reading another process's memory through the kernel
//! is slow for bytes that were just written. All other buffers are on the heap of the C
//! library, so that a C program can free a buffer that it is given.
//!
//! Invariant: every byte of a buffer is initialised, to zero or to stale data of this process;
//! so a `&[u8]` of it is sound.

use super::shm_export::{ShmExport, ShmKey};
use parking_lot::Mutex;
use std::ops::{Deref, DerefMut};
use std::ptr;

/// Buffers begin on a page, and are a whole number of them.
const PAGE: usize = 4096;
/// Buffers that are kept.
const MOST: usize = 8;
/// Bytes that they have together, at most.
const MOST_BYTES: usize = 32 << 20;
/// A buffer is not used for much less than it has.
const WASTE: usize = 4;
/// Where this process lends this many files already, buffers that are soon free again are not
/// lent: the remaining files are for memory that the program asks for.
const MANY_LENT: usize = 32;

static KEPT: Mutex<Vec<LargeBuffer>> = Mutex::new(Vec::new());

/// A long buffer.
#[derive(Debug)]
pub(crate) struct LargeBuffer {
    at: *mut u8,
    size: usize,
    /// The file, where it is lent; else it is on the heap.
    lent: Option<ShmExport>,
    /// It has just come out of use, and is to be kept.
    used: bool,
}

// SAFETY: the memory is the buffer's alone.
unsafe impl Send for LargeBuffer {}
// SAFETY: as above.
unsafe impl Sync for LargeBuffer {}

impl LargeBuffer {
    /// At least `size` bytes on the heap; `None` where there is no memory.
    pub(crate) fn heap(size: usize) -> Option<LargeBuffer> {
        LargeBuffer::take(size, false).or_else(|| LargeBuffer::fresh(size))
    }

    /// At least `size` bytes, in a file of `dir` where that is possible and few are lent
    /// already, else on the heap.
    pub(crate) fn lent(size: usize, dir: &str) -> Option<LargeBuffer> {
        let kept = LargeBuffer::take(size, true);
        let lent = kept.or_else(|| {
            (ShmExport::count() < MANY_LENT).then(|| LargeBuffer::fresh_lent(size, dir)).flatten()
        });
        lent.or_else(|| LargeBuffer::heap(size))
    }

    /// At least `size` bytes in a file, all zero; `None` where that is not possible.
    pub(crate) fn lent_zeroed(size: usize, dir: &str) -> Option<LargeBuffer> {
        match LargeBuffer::take(size, true) {
            Some(mut kept) => {
                kept[..size].fill(0);
                Some(kept)
            }
            None => LargeBuffer::fresh_lent(size, dir),
        }
    }

    fn fresh_lent(size: usize, dir: &str) -> Option<LargeBuffer> {
        let size = size.checked_next_multiple_of(PAGE)?;
        let lent = ShmExport::new(dir, size)?;
        Some(LargeBuffer { at: lent.address(), size, lent: Some(lent), used: true })
    }

    /// The smallest kept buffer that is long enough.
    fn take(size: usize, lent: bool) -> Option<LargeBuffer> {
        let most = size.saturating_mul(WASTE).max(16 * PAGE);
        let mut kept = KEPT.lock();
        let fits =
            |long: &LargeBuffer| long.lent.is_some() == lent && (size..=most).contains(&long.size);
        let (at, _) =
            kept.iter().enumerate().filter(|(_, l)| fits(l)).min_by_key(|(_, l)| l.size)?;
        let mut long = kept.remove(at);
        long.used = true;
        Some(long)
    }

    fn fresh(size: usize) -> Option<LargeBuffer> {
        let size = size.max(1).checked_next_multiple_of(PAGE)?;
        let at = alloc(size);
        if at.is_null() {
            return None;
        }
        // SAFETY: the buffer has that many bytes.
        unsafe { ptr::write_bytes(at, 0, size) };
        Some(LargeBuffer { at, size, lent: None, used: true })
    }

    /// Takes back what [`LargeBuffer::into_heap`] has given away.
    ///
    /// # Safety
    /// It must be that, of that size, and not be used by anything else any more.
    pub(crate) unsafe fn from_heap(at: *mut u8, size: usize) -> LargeBuffer {
        LargeBuffer { at, size, lent: None, used: true }
    }

    /// Address of the first byte.
    pub(crate) fn address(&self) -> *mut u8 {
        self.at
    }

    /// What other ranks of the node need to find it, where it is lent.
    pub(crate) fn shm_key(&self) -> Option<ShmKey> {
        self.lent.as_ref().map(ShmExport::shm_key)
    }

    /// Gives the memory away, for [`free`]; only where it is on the heap.
    pub(crate) fn into_heap(mut self) -> Option<*mut u8> {
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
        // SAFETY: the buffer has that many bytes, all of which are initialised. Peers write to
        // a lent one only where it is memory of a handle, which goes by its address.
        unsafe { std::slice::from_raw_parts(self.at, self.size) }
    }
}

impl DerefMut for LargeBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; the borrow is the only one here.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.size) }
    }
}

impl Drop for LargeBuffer {
    fn drop(&mut self) {
        if self.used && self.size <= MOST_BYTES / 2 {
            let (at, size) = (std::mem::replace(&mut self.at, ptr::null_mut()), self.size);
            keep(LargeBuffer { at, size, lent: self.lent.take(), used: false });
            return;
        }
        if self.lent.is_none() {
            // SAFETY: it came from `alloc`, or is null, and nothing else uses it.
            unsafe { free(self.at) };
        }
    }
}

/// Keeps a buffer, in the place of the oldest kept ones where they are too many.
fn keep(long: LargeBuffer) {
    let mut kept = KEPT.lock();
    kept.push(long);
    let mut bytes: usize = kept.iter().map(|l| l.size).sum();
    let mut over = 0;
    while kept.len() - over > MOST || bytes > MOST_BYTES {
        bytes -= kept[over].size;
        over += 1;
    }
    let gone: Vec<LargeBuffer> = kept.drain(..over).collect();
    drop(kept);
    drop(gone); // without the lock
}

/// Frees all kept buffers.
pub(crate) fn clear() {
    let kept = std::mem::take(&mut *KEPT.lock());
    drop(kept); // without the lock
}

/// A buffer on a page of its own, or null. [`free`] frees it, as `free` of the C library does.
pub(crate) fn alloc(size: usize) -> *mut u8 {
    let mut buf = ptr::null_mut();
    // SAFETY: `buf` is written only; the alignment is a power of two.
    let failed = unsafe { libc::posix_memalign(&mut buf, PAGE, size.max(1)) } != 0;
    if failed { ptr::null_mut() } else { buf.cast() }
}

/// Frees a buffer of [`alloc`] or [`LargeBuffer::into_heap`].
///
/// # Safety
/// `buf` must be one, or null, and not be used any more.
pub(crate) unsafe fn free(buf: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { libc::free(buf.cast()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The store is the process's.
    static ALONE: Mutex<()> = Mutex::new(());

    fn held() -> (usize, usize) {
        let kept = KEPT.lock();
        (kept.len(), kept.iter().map(|l| l.size).sum())
    }

    #[test]
    fn buffers_come_back_and_are_bounded() {
        let _alone = ALONE.lock();
        // Tests beside this one use none as long.
        let mut first = LargeBuffer::heap(13 << 20).expect("memory");
        assert!(first.len() >= 13 << 20 && (first.address() as usize).is_multiple_of(PAGE));
        first.fill(7);
        let at = first.address();
        drop(first);
        assert_eq!(LargeBuffer::heap(12 << 20).expect("memory").address(), at, "it was kept");
        assert_ne!(LargeBuffer::heap(14 << 20).expect("memory").address(), at, "it is too short");
        assert_ne!(LargeBuffer::heap(10).expect("memory").address(), at, "it is much too long");
        clear();
        for size in [1, 70_000, 1 << 20, 9 << 20, 40 << 20] {
            let many: Vec<LargeBuffer> = (0..20).filter_map(|_| LargeBuffer::heap(size)).collect();
            assert_eq!(many.len(), 20);
            drop(many);
            let (buffers, bytes) = held();
            assert!(buffers <= MOST && bytes <= MOST_BYTES, "{buffers} of {bytes} bytes");
        }
    }

    #[test]
    fn lent_ones_are_kept_apart_and_few() {
        let _alone = ALONE.lock();
        let wanted = 2 * MANY_LENT;
        let mut many: Vec<LargeBuffer> =
            (0..wanted).filter_map(|_| LargeBuffer::lent(100_000, "/dev/shm")).collect();
        let lent = many.iter().filter(|l| l.shm_key().is_some()).count();
        assert!((1..wanted).contains(&lent), "{lent}");
        assert_eq!(many.len(), wanted, "the others are on the heap");
        many.iter_mut().for_each(|long| long.fill(7));
        drop(many);
        for _ in 0..2 * MOST {
            let zeroed = LargeBuffer::lent_zeroed(90_000, "/dev/shm").expect("lent");
            assert!(zeroed[..90_000].iter().all(|&b| b == 0));
            std::mem::forget(zeroed);
        }
        assert!(LargeBuffer::lent_zeroed(90_000, "/no/such/directory").is_none());
        drop(LargeBuffer::lent_zeroed(1 << 20, "/dev/shm").expect("lent"));
        let again = LargeBuffer::lent(1 << 20, "/dev/shm").expect("memory");
        assert!(again.shm_key().is_some(), "what came back is lent again");
        assert!(again.into_heap().is_none(), "that memory cannot be freed by others");
        assert!(LargeBuffer::lent(1 << 20, "/no/such/directory").is_some());
    }

    #[test]
    fn what_is_given_away_is_freed_by_its_owner() {
        let at = LargeBuffer::heap(5000).and_then(LargeBuffer::into_heap).expect("on the heap");
        // SAFETY: it was given away just now.
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
