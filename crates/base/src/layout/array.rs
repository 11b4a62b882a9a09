//! Arrays that a caller passes as an address and a count.
//!
//! [`borrow`] and [`borrow_mut`] check everything that can be checked without reading the memory:
//! the address is not null, it is aligned, and the array lies in the address space. A count from a
//! C program can have any value, so its product with the element size is checked too. `clippy.toml`
//! forbids `std::slice::from_raw_parts` in crates that receive such arrays. [`collect`] makes a
//! list of that many elements without ending the process if memory is exhausted.

use crate::error::{Result, fail};

/// Returns the array as a slice, which is empty if `count` is 0. Fails with `Argument` if there are
/// elements and `at` is null or not aligned, or if they exceed the address space.
///
/// # Safety
/// If `at` is not null, its `count` elements must be valid for reads for `'a`, as far as they lie
/// in the address space.
#[inline]
pub unsafe fn borrow<'a, T>(at: *const T, count: usize, what: &str) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    if !is_array(at, count) {
        return refused(at, count, what);
    }
    // SAFETY: the array is not null, aligned and at most `isize::MAX` bytes long. By contract, its
    // elements are readable.
    Ok(unsafe { std::slice::from_raw_parts(at, count) })
}

/// Like [`borrow`], for an array that the caller lends for writes.
///
/// # Safety
/// The contract of [`borrow`] applies, for reads and writes without other accesses during `'a`.
#[inline]
pub unsafe fn borrow_mut<'a, T>(at: *mut T, count: usize, what: &str) -> Result<&'a mut [T]> {
    if count == 0 {
        return Ok(&mut []);
    }
    if !is_array(at, count) {
        return refused(at, count, what);
    }
    // SAFETY: the array is not null, aligned and at most `isize::MAX` bytes long. By contract, only
    // the caller of this function uses its elements.
    Ok(unsafe { std::slice::from_raw_parts_mut(at, count) })
}

/// Addresses of programs are at most `isize::MAX`.
#[inline]
fn is_array<T>(at: *const T, count: usize) -> bool {
    let end = count.checked_mul(size_of::<T>()).and_then(|bytes| bytes.checked_add(at as usize));
    !at.is_null() && at.is_aligned() && end.is_some_and(|end| end <= isize::MAX as usize)
}

#[cold]
#[inline(never)]
fn refused<T, R>(at: *const T, count: usize, what: &str) -> Result<R> {
    let size = size_of::<T>();
    let number = if size == 1 {
        format!("{count} bytes")
    } else {
        format!("{count} elements of {size} bytes")
    };
    if at.is_null() {
        fail!(Argument, "{what} is null, but has {number}");
    }
    if !at.is_aligned() {
        fail!(Argument, "{what} at {at:p} is not aligned to {} bytes", align_of::<T>());
    }
    fail!(Argument, "{what} at {at:p} has {number}, too many for any memory")
}

/// Collects the items of a list whose length a caller has chosen. Fails with `Memory`.
pub fn collect<T>(items: impl ExactSizeIterator<Item = T>, what: &str) -> Result<Vec<T>> {
    let mut list = Vec::new();
    if list.try_reserve_exact(items.len()).is_err() {
        fail!(Memory, "no memory for a list of {} {what}", items.len());
    }
    list.extend(items);
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn an_array_outside_of_the_address_space_is_refused() {
        let words = [7u64; 2];
        let at = words.as_ptr();
        // SAFETY: the elements of the arrays that are accepted are those of `words`.
        let given = |at: *const u64, count| unsafe { borrow(at, count, "the array") };
        assert_eq!(given(at, 2).unwrap(), words);
        assert!(given(at, 0).unwrap().is_empty() && given(std::ptr::null(), 0).unwrap().is_empty());
        let null = std::ptr::null();
        let odd = (at as usize + 4) as *const u64;
        let last = (isize::MAX as usize - 7) as *const u64;
        for (at, count) in [(null, 1), (odd, 1), (last, 1), (at, usize::MAX)]
            .into_iter()
            // The products wrap to 0, 8 and 2^62 bytes, or exceed `isize::MAX`.
            .chain([61, 60, 63].map(|bits| (at, 1 << bits)))
            .chain([(at, (1 << 61) + 1), (at, (1 << 60) - 1)])
        {
            assert_eq!(given(at, count).unwrap_err().kind(), ErrorKind::Argument, "{count}");
        }
        let mut word = 7u64;
        // SAFETY: the array that is accepted is `word`.
        let mut given = |count| unsafe { borrow_mut(&raw mut word, count, "the array") };
        assert_eq!(given(1 << 61).unwrap_err().kind(), ErrorKind::Argument);
        assert_eq!(given(1).unwrap(), [7]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri ends if memory cannot be allocated")]
    fn a_list_that_is_too_long_is_an_error() {
        let refused = collect(0..1usize << 58, "numbers").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Memory, "{refused}");
        assert_eq!(collect(0..3, "numbers").unwrap(), [0, 1, 2]);
    }
}
