//! Copies of rows whose length the shapes do not know.
//!
//! The C library copies rows of some kilobytes by one instruction, `rep movsb`. On processors of AMD this
//! takes many times as long where the target lies a few bytes behind the source, counted
//! modulo a page: 8 KiB take 2,258 ns instead of 76 where these are 4 or 8 bytes, and 167 where they are 16
//! (Zen 4, glibc 2.36). And they often are 16: large memory from `malloc` begins 16 bytes behind a page's
//! start, a segment at one. Such rows are copied by vectors here, in 84 ns.

use std::ops::Range;

/// The lengths at which that is so. Longer rows are copied otherwise, or as fast as memory is.
const LENGTHS: Range<usize> = 2048..1 << 20;
/// How many bytes behind the source are few.
const FEW: usize = 64;
const PAGE: usize = 4096;

/// Copies bytes; the two rows may overlap.
///
/// # Safety
/// `src` must be valid for reads and `dst` for writes of `bytes` bytes.
#[inline]
pub(super) unsafe fn copy(src: *const u8, dst: *mut u8, bytes: usize) {
    // SAFETY: passed on from the caller.
    unsafe {
        if LENGTHS.contains(&bytes) {
            copy_long(src, dst, bytes)
        } else {
            std::ptr::copy(src, dst, bytes)
        }
    }
}

/// Out of the way of short rows.
///
/// # Safety
/// As for [`copy`].
#[inline(never)]
unsafe fn copy_long(src: *const u8, dst: *mut u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    if lie_badly(src, dst, bytes) && is_x86_feature_detected!("avx2") {
        // SAFETY: passed on from the caller; the rows do not overlap, and the processor has AVX2.
        unsafe { copy_vectors(src, dst, bytes) };
        return;
    }
    // SAFETY: passed on from the caller.
    unsafe { std::ptr::copy(src, dst, bytes) };
}

/// Whether the target lies a few bytes behind the source in the page, and does not overlap it.
#[inline]
fn lie_badly(src: *const u8, dst: *mut u8, bytes: usize) -> bool {
    let behind = (dst as usize).wrapping_sub(src as usize);
    let few = (1..FEW).contains(&(behind % PAGE));
    few && behind >= bytes && behind.wrapping_neg() >= bytes
}

/// # Safety
/// As for [`copy`]; the rows do not overlap, and the processor has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn copy_vectors(src: *const u8, dst: *mut u8, bytes: usize) {
    use std::arch::x86_64::{__m256i, _mm256_loadu_si256 as load, _mm256_storeu_si256 as store};
    const STEP: usize = 4 * size_of::<__m256i>();
    let mut at = dst.align_offset(size_of::<__m256i>()).min(bytes);
    // SAFETY: `at` never passes `bytes`, for which the caller vouches on both sides.
    unsafe {
        std::ptr::copy_nonoverlapping(src, dst, at);
        while at + STEP <= bytes {
            let (from, to) = (src.add(at).cast::<__m256i>(), dst.add(at).cast::<__m256i>());
            let four = [load(from), load(from.add(1)), load(from.add(2)), load(from.add(3))];
            for (i, vector) in four.into_iter().enumerate() {
                store(to.add(i), vector);
            }
            at += STEP;
            super::kernel::keep_loop(); // else it would become a call of the C library
        }
        std::ptr::copy_nonoverlapping(src.add(at), dst.add(at), bytes - at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_copied_however_they_lie() {
        let source: Vec<u8> = (0..100_000usize).map(|i| (i * 7 % 251) as u8).collect();
        let mut target = vec![0u8; source.len() + 2 * PAGE];
        let lengths = [1, 2047, 2048, 2100, 4096, 8192 + 77, 65_536];
        for (bytes, start) in lengths.into_iter().flat_map(|n| [(n, 0), (n, 1), (n, 40)]) {
            for behind in [0, 1, 4, 8, 16, 31, 32, 63, 64, 2048, 4095] {
                target.fill(0xff);
                let src = source[start..].as_ptr();
                let apart = (src as usize + behind).wrapping_sub(target.as_ptr() as usize);
                let at = apart % PAGE;
                // SAFETY: both have so many bytes from there on, and do not overlap.
                unsafe { copy(src, target.as_mut_ptr().add(at), bytes) };
                let dst = target[at..].as_mut_ptr();
                assert_eq!(
                    lie_badly(src, dst, bytes),
                    (1..FEW).contains(&behind),
                    "{behind} bytes behind"
                );
                assert!(target[at..at + bytes] == source[start..start + bytes]);
                let others = target[..at].iter().chain(&target[at + bytes..]);
                assert!(others.into_iter().all(|byte| *byte == 0xff), "nothing else is written");
            }
        }
    }

    #[test]
    fn rows_may_overlap() {
        for behind in [8usize, 16, PAGE + 16] {
            for (from, to) in [(0, behind), (behind, 0)] {
                let mut bytes: Vec<u8> = (0..20_000usize).map(|i| (i * 7 % 251) as u8).collect();
                let mut expected = bytes.clone();
                expected.copy_within(from..from + 9000, to);
                let start = bytes.as_mut_ptr();
                // SAFETY: both rows lie in the vector.
                unsafe { copy(start.add(from), start.add(to), 9000) };
                assert!(bytes == expected, "from {from} to {to}");
            }
        }
    }
}
