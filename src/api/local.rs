//! A rank's own part of a segment.
//!
//! Other ranks may write the memory at any moment, so it is not borrowed as a
//! slice unless the caller vouches that they do not. The safe functions copy:
//! what they read may be old, new, or a mixture, but is always a value, because
//! [`Element`]s take any bytes.

use super::Element;
use crate::path::kernel;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// This rank's own part of a segment.
///
/// Positions outside the part panic, as those outside a slice do.
#[derive(Debug, Clone, Copy)]
pub struct Local<'a, T: Element> {
    base: NonNull<T>,
    len: usize,
    _segment: PhantomData<&'a [T]>,
}

impl<'a, T: Element> Local<'a, T> {
    /// # Safety
    /// `base` must be aligned and valid for reads and writes of `len` elements
    /// for the lifetime, by this process and by others; it may be null where
    /// `len` is 0.
    pub(super) unsafe fn new(base: *mut T, len: usize) -> Local<'a, T> {
        let base = NonNull::new(base).unwrap_or(NonNull::dangling());
        Local { base, len, _segment: PhantomData }
    }

    /// The number of elements.
    #[inline]
    pub fn len(self) -> usize {
        self.len
    }

    /// Whether this rank has no part.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Reads an element.
    ///
    /// # Panics
    /// Where `index` is outside the part.
    #[inline]
    #[track_caller]
    pub fn read(self, index: usize) -> T {
        self.check(index, 1);
        // SAFETY: the index is inside the part. Volatile, since the value may
        // change between two reads; any bytes are a value.
        unsafe { self.base.add(index).read_volatile() }
    }

    /// Writes an element.
    ///
    /// # Panics
    /// Where `index` is outside the part.
    #[inline]
    #[track_caller]
    pub fn write(self, index: usize, value: T) {
        self.check(index, 1);
        // SAFETY: the index is inside the part. Volatile, since others may read.
        unsafe { self.base.add(index).write_volatile(value) };
    }

    /// Copies `source` to `offset`.
    ///
    /// # Panics
    /// Where the elements do not all lie in the part.
    #[inline]
    #[track_caller]
    pub fn copy_from_slice(self, offset: usize, source: &[T]) {
        self.check(offset, source.len());
        // SAFETY: checked above; the kernel copies raw bytes, as it does when
        // another rank puts them.
        unsafe {
            let to = self.base.add(offset).as_ptr().cast();
            kernel::copy_block(source.as_ptr().cast(), to, size_of_val(source));
        }
    }

    /// Copies the elements at `offset` to `target`.
    ///
    /// # Panics
    /// Where the elements do not all lie in the part.
    #[inline]
    #[track_caller]
    pub fn copy_to_slice(self, offset: usize, target: &mut [T]) {
        self.check(offset, target.len());
        // SAFETY: as in `copy_from_slice`; any bytes are values.
        unsafe {
            let from = self.base.add(offset).as_ptr().cast();
            kernel::copy_block(from, target.as_mut_ptr().cast(), size_of_val(target));
        }
    }

    /// A copy of the part.
    pub fn to_vec(self) -> Vec<T> {
        let mut copy = vec![T::zeroed(); self.len];
        self.copy_to_slice(0, &mut copy);
        copy
    }

    /// Writes `value` to every element.
    pub fn fill(self, value: T) {
        for index in 0..self.len {
            self.write(index, value);
        }
    }

    /// The part as a slice.
    ///
    /// # Safety
    /// While the slice lives, nobody writes the elements: no other rank by put,
    /// accumulate or an atomic operation, and this rank neither so nor through
    /// [`Local`] nor through a slice of [`Local::as_mut_slice`]. The usual ways
    /// to be sure are a barrier before and after, or a mutex.
    #[inline]
    pub unsafe fn as_slice(self) -> &'a [T] {
        // SAFETY: `new` vouches for alignment, length and lifetime; the caller
        // vouches that nobody writes.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }

    /// The part as a slice to write to.
    ///
    /// # Safety
    /// While the slice lives, nobody else reads or writes the elements: no other
    /// rank by any operation, and this rank only through this slice.
    #[inline]
    pub unsafe fn as_mut_slice(self) -> &'a mut [T] {
        // SAFETY: as in `as_slice`; the caller vouches that this is the only
        // access.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }

    /// Where the part begins, for foreign code; dangling where it is empty.
    #[inline]
    pub fn as_ptr(self) -> *mut T {
        self.base.as_ptr()
    }

    #[inline]
    #[track_caller]
    fn check(self, offset: usize, count: usize) {
        if offset > self.len || count > self.len - offset {
            outside(offset, count, self.len);
        }
    }
}

#[cold]
#[track_caller]
fn outside(offset: usize, count: usize, len: usize) -> ! {
    panic!("{count} elements at {offset} leave this rank's part, which has {len}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_stay_inside() {
        let mut memory = [0u32; 6];
        // SAFETY: the array lives to the end of the test.
        let local = unsafe { Local::new(memory.as_mut_ptr(), 6) };
        local.copy_from_slice(2, &[7, 8, 9]);
        local.write(5, 1);
        assert_eq!(local.to_vec(), [0, 0, 7, 8, 9, 1]);
        let mut two = [0; 2];
        local.copy_to_slice(3, &mut two);
        assert_eq!((two, local.read(2)), ([8, 9], 7));
        for (offset, count) in [(6, 1), (5, 2), (7, 0), (usize::MAX, 2)] {
            let outside =
                std::panic::catch_unwind(|| local.copy_from_slice(offset, &vec![0; count]));
            assert!(outside.is_err(), "{count} at {offset}");
        }
        local.copy_from_slice(6, &[]);
    }

    #[test]
    fn an_empty_part_has_no_memory() {
        // SAFETY: no elements.
        let local = unsafe { Local::<f64>::new(std::ptr::null_mut(), 0) };
        assert!(local.is_empty());
        // SAFETY: no elements.
        assert!(unsafe { local.as_slice() }.is_empty());
        assert_eq!(local.to_vec(), Vec::<f64>::new());
    }
}
