//! Copies of rows whose length is known only at run time. The C library copies rows of some
//! kilobytes with `rep movsb`. On AMD processors this is many times slower if the destination lies
//! a few bytes after the source, modulo the page size: 8 KiB take 2,258 ns instead of 76 at 4 or 8
//! bytes, and 167 ns at 16 (Zen 4, glibc 2.36). 16 is common, because large memory from `malloc`
//! begins 16 bytes after the start of a page, and a segment at the start. Vectors take 84 ns. On
//! Intel processors, all distances take about the same time, and the C library is faster than
//! vectors: 512 rows of 4 KiB take 70 us instead of 94.

use std::ops::Range;
#[cfg(target_arch = "x86_64")]
use std::sync::atomic::{AtomicU8, Ordering};

/// Affected lengths in bytes. The C library copies longer rows otherwise, or at memory speed.
const LENGTHS: Range<usize> = 2048..1 << 20;
/// Affected distances are below this, in bytes modulo the page size.
const FEW: usize = 64;
const PAGE: usize = 4096;

/// # Safety
/// `src` must be valid for reads and `dst` for writes of `bytes` bytes. They may overlap.
#[inline]
pub(super) unsafe fn copy(src: *const u8, dst: *mut u8, bytes: usize) {
    // SAFETY: the caller guarantees both rows.
    unsafe {
        if LENGTHS.contains(&bytes) {
            copy_long(src, dst, bytes)
        } else {
            std::ptr::copy(src, dst, bytes)
        }
    }
}

/// Not inlined, to keep this code off the path of short rows.
///
/// # Safety
/// See [`copy`].
#[inline(never)]
unsafe fn copy_long(src: *const u8, dst: *mut u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    if lie_badly(src, dst, bytes) && is_amd() && is_x86_feature_detected!("avx2") {
        // SAFETY: the caller guarantees both rows. They are disjoint, and the processor has AVX2.
        unsafe { copy_vectors(src, dst, bytes) };
        return;
    }
    // SAFETY: the caller guarantees both rows.
    unsafe { std::ptr::copy(src, dst, bytes) };
}

/// Returns whether the processor is one of AMD's, or Hygon's of the same design. Asks it once,
/// because a virtual machine intercepts the instruction.
#[cfg(target_arch = "x86_64")]
pub(super) fn is_amd() -> bool {
    const UNKNOWN: u8 = 2;
    // Not a `OnceLock`: with one, two runs of a seed of the simulation differed.
    static FOUND: AtomicU8 = AtomicU8::new(UNKNOWN);
    let known = FOUND.load(Ordering::Relaxed);
    if known != UNKNOWN {
        return known == 1;
    }
    let found = is_from(b"Auth", b"enti", b"cAMD") || is_from(b"Hygo", b"nGen", b"uine");
    FOUND.store(u8::from(found), Ordering::Relaxed);
    found
}

#[cfg(target_arch = "x86_64")]
fn is_from(first: &[u8; 4], second: &[u8; 4], third: &[u8; 4]) -> bool {
    if cfg!(miri) {
        return false; // it cannot run the instruction
    }
    #[allow(unused_unsafe, reason = "a safe function in newer compilers")]
    // SAFETY: every x86-64 processor has the instruction.
    let id = unsafe { std::arch::x86_64::__cpuid(0) };
    [id.ebx, id.edx, id.ecx] == [first, second, third].map(|part| u32::from_le_bytes(*part))
}

/// Returns whether the rows are disjoint and at an affected distance.
#[inline]
fn lie_badly(src: *const u8, dst: *mut u8, bytes: usize) -> bool {
    let behind = (dst as usize).wrapping_sub(src as usize);
    let few = (1..FEW).contains(&(behind % PAGE));
    few && behind >= bytes && behind.wrapping_neg() >= bytes
}

/// # Safety
/// See [`copy`]. The rows must not overlap, and the processor must have AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn copy_vectors(src: *const u8, dst: *mut u8, bytes: usize) {
    use std::arch::x86_64::{__m256i, _mm256_loadu_si256 as load, _mm256_storeu_si256 as store};
    const STEP: usize = 4 * size_of::<__m256i>();
    let mut at = dst.align_offset(size_of::<__m256i>()).min(bytes);
    // SAFETY: `at` never exceeds `bytes`.
    unsafe {
        std::ptr::copy_nonoverlapping(src, dst, at);
        while at + STEP <= bytes {
            let (from, to) = (src.add(at).cast::<__m256i>(), dst.add(at).cast::<__m256i>());
            let four = [load(from), load(from.add(1)), load(from.add(2)), load(from.add(3))];
            for (i, vector) in four.into_iter().enumerate() {
                store(to.add(i), vector);
            }
            at += STEP;
            super::kernel::keep_loop(); // otherwise the compiler makes it a call of the C library
        }
        std::ptr::copy_nonoverlapping(src.add(at), dst.add(at), bytes - at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Copies = unsafe fn(*const u8, *mut u8, usize);

    /// Returns the copy that this processor would not choose too.
    fn ways() -> Vec<Copies> {
        let mut ways: Vec<Copies> = vec![copy];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the caller upholds the requirements, and the processor has AVX2.
            ways.push(|src, dst, bytes| unsafe { copy_vectors(src, dst, bytes) });
        }
        ways
    }

    #[test]
    fn rows_are_copied_however_they_lie() {
        let most = if cfg!(miri) { 2100 } else { 65_536 };
        let source: Vec<u8> = (0..most + 40).map(|i| (i * 7 % 251) as u8).collect();
        let blank = vec![0xffu8; source.len() + 2 * PAGE];
        let mut target = blank.clone();
        let lengths = [1, 2047, 2048, 2100, 4096, 8192 + 77, 65_536];
        let lengths = lengths.into_iter().filter(|bytes| *bytes <= most);
        for (bytes, start) in lengths.flat_map(|n| [(n, 0), (n, 1), (n, 40)]) {
            for behind in [0, 1, 4, 8, 16, 31, 32, 63, 64, 2048, 4095] {
                let src = source[start..].as_ptr();
                let apart = (src as usize + behind).wrapping_sub(target.as_ptr() as usize);
                let at = apart % PAGE;
                let dst = target[at..].as_mut_ptr();
                assert_eq!(
                    lie_badly(src, dst, bytes),
                    (1..FEW).contains(&behind),
                    "{behind} bytes behind"
                );
                for by in ways() {
                    target.fill(0xff);
                    // SAFETY: from there on, both vectors have `bytes` bytes, and are disjoint.
                    unsafe { by(src, target.as_mut_ptr().add(at), bytes) };
                    assert!(target[at..at + bytes] == source[start..start + bytes]);
                    let end = at + bytes;
                    assert!(target[..at] == blank[..at] && target[end..] == blank[end..]);
                }
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
