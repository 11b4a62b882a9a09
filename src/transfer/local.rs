//! A rank's own part of a segment. Other ranks may write the memory at any time, so it is borrowed
//! as a slice only if the caller guarantees that they do not.

use crate::Element;
use crate::one_thread::OneThread;
use portolan_engine::path::kernel;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// This rank's own part of a segment.
///
/// Indices and offsets are in elements. An index out of bounds causes a panic, as for a slice. The
/// safe functions copy. If another rank writes at the same time, they read old values, new ones or
/// a mixture, which are all valid values of an [`Element`].
#[derive(Debug, Clone, Copy)]
#[must_use = "a part moves no data by itself"]
pub struct Local<'a, T: Element> {
    base: NonNull<T>,
    len: usize,
    _segment: PhantomData<&'a [T]>,
    _thread: OneThread,
}

impl<'a, T: Element> Local<'a, T> {
    /// # Safety
    /// `base` must be aligned and valid for reads and writes of `len` elements for the lifetime, by
    /// this process and by others. It may be null if `len` is 0.
    pub(crate) unsafe fn new(base: *mut T, len: usize) -> Local<'a, T> {
        let base = NonNull::new(base).unwrap_or(NonNull::dangling());
        Local { base, len, _segment: PhantomData, _thread: OneThread::default() }
    }

    /// Returns the number of elements.
    #[inline]
    pub fn len(self) -> usize {
        self.len
    }

    /// Returns whether this rank's part is empty.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Reads an element.
    ///
    /// # Panics
    /// Panics if `index` is outside the part.
    #[inline]
    #[track_caller]
    pub fn read(self, index: usize) -> T {
        self.check(index, 1);
        // SAFETY: the index is inside the part, and any bytes are a valid value. The read is
        // volatile because another rank may change the element at any time.
        unsafe { self.base.add(index).read_volatile() }
    }

    /// Writes an element.
    ///
    /// # Panics
    /// Panics if `index` is outside the part.
    #[inline]
    #[track_caller]
    pub fn write(self, index: usize, value: T) {
        self.check(index, 1);
        // SAFETY: the index is inside the part. Volatile, because other ranks may read it.
        unsafe { self.base.add(index).write_volatile(value) };
    }

    /// Copies `source` into the part, from element `offset` on.
    ///
    /// # Panics
    /// Panics if the elements do not all lie in the part.
    #[inline]
    #[track_caller]
    #[doc(alias = "copy_from_slice")]
    pub fn write_slice(self, offset: usize, source: &[T]) {
        self.check(offset, source.len());
        // SAFETY: the check above keeps the elements in the part. The kernel copies raw bytes, as
        // it does for a put of another rank.
        unsafe {
            let to = self.base.add(offset).as_ptr().cast();
            kernel::copy_block(source.as_ptr().cast(), to, size_of_val(source));
        }
    }

    /// Copies elements of the part into `target`, from element `offset` on.
    ///
    /// # Panics
    /// Panics if the elements do not all lie in the part.
    #[inline]
    #[track_caller]
    #[doc(alias = "copy_to_slice")]
    pub fn read_slice(self, offset: usize, target: &mut [T]) {
        self.check(offset, target.len());
        // SAFETY: the check above keeps the elements in the part. The kernel copies raw bytes, and
        // any bytes are valid values of the target's elements.
        unsafe {
            let from = self.base.add(offset).as_ptr().cast();
            kernel::copy_block(from, target.as_mut_ptr().cast(), size_of_val(target));
        }
    }

    /// Returns a copy of the part.
    pub fn to_vec(self) -> Vec<T> {
        let mut copy = vec![T::zeroed(); self.len];
        self.read_slice(0, &mut copy);
        copy
    }

    /// Writes `value` to every element.
    pub fn fill(self, value: T) {
        for index in 0..self.len {
            self.write(index, value);
        }
    }

    /// Returns the part as a slice.
    ///
    /// # Safety
    /// While the slice is alive, no rank may write the elements: other ranks must not put,
    /// accumulate or apply atomic operations to them, and this rank must not write them by such an
    /// operation, through [`Local`], or through a slice of [`Local::as_mut_slice`]. The usual ways
    /// to ensure this are a barrier before and after, or a mutex.
    #[inline]
    pub unsafe fn as_slice(self) -> &'a [T] {
        // SAFETY: the contract of `new` covers alignment, length and lifetime. By contract, no rank
        // writes the elements.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }

    /// Returns the part as a mutable slice.
    ///
    /// # Safety
    /// While the slice is alive, there must be no other access to the elements: no other rank may
    /// operate on them in any way, and this rank may access them only through this slice.
    #[inline]
    pub unsafe fn as_mut_slice(self) -> &'a mut [T] {
        // SAFETY: the contract of `new` covers alignment, length and lifetime. By contract, this
        // slice is the only access.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }

    /// Returns a pointer to the first element, for foreign code. Dangling if the part is empty.
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
    panic!("{count} elements at {offset} exceed this rank's part, which has {len}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_stay_inside() {
        let mut memory = [0u32; 6];
        // SAFETY: the array has six aligned elements and lives until the end of the test.
        let local = unsafe { Local::new(memory.as_mut_ptr(), 6) };
        local.write_slice(2, &[7, 8, 9]);
        local.write(5, 1);
        assert_eq!(local.to_vec(), [0, 0, 7, 8, 9, 1]);
        let mut two = [0; 2];
        local.read_slice(3, &mut two);
        assert_eq!((two, local.read(2)), ([8, 9], 7));
        for (offset, count) in [(6, 1), (5, 2), (7, 0), (usize::MAX, 2)] {
            let outside = std::panic::catch_unwind(|| local.write_slice(offset, &vec![0; count]));
            assert!(outside.is_err(), "{count} at {offset}");
        }
        local.write_slice(6, &[]);
    }

    #[test]
    fn an_empty_part_has_no_memory() {
        // SAFETY: a part of no elements may have a null base.
        let local = unsafe { Local::<f64>::new(std::ptr::null_mut(), 0) };
        assert!(local.is_empty());
        // SAFETY: the part is empty, so no write can conflict with the slice.
        assert!(unsafe { local.as_slice() }.is_empty());
        assert_eq!(local.to_vec(), Vec::<f64>::new());
    }
}
