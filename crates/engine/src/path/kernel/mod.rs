//! The inner loops: copy and accumulate along a shape, on local addresses.
//!
//! Addresses may be unaligned. Blocks of the usual element sizes have their own loops, because a
//! call of memcpy costs more than the copy of a number. Rows a page or more apart, such as matrix
//! columns, are prefetched ([`AHEAD`]). Long accumulates are compiled for several processors and
//! selected at run time. All give the same bits, because they round the multiplication and the
//! addition separately.

use super::long_copy;
use crate::memory::runs::{Direction, Span};
use num_complex::Complex;
use portolan_base::layout::{Dim, Shape};
use std::ops::{Add, Mul, Neg};
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};

/// Copies from `src` to `dst` along `shape`. With `put`, the source is the local side.
///
/// # Safety
/// Every byte of the shape must be valid for reads at `src` and for writes at `dst`.
#[inline]
pub unsafe fn copy(src: *const u8, dst: *mut u8, shape: &Shape, put: bool) {
    let (block, dims) = (shape.block(), shape.dims());
    // SAFETY: the caller guarantees both extents.
    unsafe {
        match dims {
            [] => copy_block(src, dst, block),
            _ => copy_dims(src, dst, block, dims, put),
        }
    }
}

/// Copies the blocks on the local side of `shape` to consecutive memory.
///
/// # Safety
/// `src` must be valid for reads of the local extent, and `dst` for writes of the shape's bytes.
#[inline]
pub unsafe fn pack(src: *const u8, dst: *mut u8, shape: &Shape) {
    let block = shape.block();
    // SAFETY: the caller guarantees both sides.
    unsafe {
        match *shape.dims() {
            // The usual cases need no new shape.
            [] => copy_block(src, dst, block),
            [Dim { n, local, .. }] if local == block as isize => copy_block(src, dst, n * block),
            [Dim { n, local, .. }] => {
                copy_dims(src, dst, block, &[Dim { n, local, remote: block as isize }], true)
            }
            _ => copy(src, dst, &shape.packed_remote(), true),
        }
    }
}

/// # Safety
/// `src` must be valid for reads and `dst` for writes of `bytes` bytes. They may overlap.
#[inline]
pub unsafe fn copy_block(src: *const u8, dst: *mut u8, bytes: usize) {
    // SAFETY: the caller guarantees both rows.
    unsafe {
        match bytes {
            8 => dst.cast::<u64>().write_unaligned(src.cast::<u64>().read_unaligned()),
            4 => dst.cast::<u32>().write_unaligned(src.cast::<u32>().read_unaligned()),
            _ => long_copy::copy(src, dst, bytes),
        }
    }
}

/// Evaluates an expression with a type of `$block` bytes if this is a usual length, so that the
/// compiler knows the length.
macro_rules! with_type_of {
    ($block:expr, $T:ident => $known:expr, else $other:expr) => {
        with_type_of!(@ $block, $T, $known, $other,
            1 u8, 2 u16, 4 u32, 8 u64, 16 [u64; 2], 24 [u64; 3], 32 [u64; 4], 40 [u64; 5],
            48 [u64; 6], 56 [u64; 7], 64 [u64; 8], 128 [u64; 16], 256 [u64; 32], 512 [u64; 64])
    };
    (@ $block:expr, $T:ident, $known:expr, $other:expr, $($bytes:literal $type:ty),+) => {
        match $block {
            $($bytes => { type $T = $type; $known })+
            _ => $other,
        }
    };
}

#[inline]
fn strides(dim: &Dim, put: bool) -> (isize, isize) {
    if put { (dim.local, dim.remote) } else { (dim.remote, dim.local) }
}

unsafe fn copy_dims(src: *const u8, dst: *mut u8, block: usize, dims: &[Dim], put: bool) {
    // SAFETY: the offsets stay inside the extents that the caller guarantees.
    unsafe {
        let (outer, inner) = dims.split_last().expect("at least one dimension");
        let (s, d) = strides(outer, put);
        if !inner.is_empty() {
            for i in 0..outer.n as isize {
                copy_dims(src.offset(i * s), dst.offset(i * d), block, inner, put);
            }
            return;
        }
        with_type_of!(block, T => copy_rows::<T>(src, dst, outer.n, s, d), else {
            for i in 0..outer.n as isize {
                long_copy::copy(src.offset(i * s), dst.offset(i * d), block);
            }
        });
    }
}

/// Copies within this process: to the local sides of spans from the remote sides, or back.
///
/// # Safety
/// Both sides must be valid, the sources for reads and the destinations for writes.
#[inline]
pub unsafe fn copy_spans(spans: impl IntoIterator<Item = Span>, direction: Direction) {
    for Span { local, remote, bytes } in spans {
        let (local, remote) = (local as *mut u8, remote as *mut u8);
        // SAFETY: the caller guarantees both sides.
        unsafe {
            match direction {
                Direction::Get => copy_block(remote, local, bytes),
                Direction::Put => copy_block(local, remote, bytes),
            }
        }
    }
}

/// Copies blocks of equal length from each first to each second address.
///
/// # Safety
/// The blocks must be valid, for reads at the first addresses and for writes at the second ones. A
/// block may overlap its copy.
#[inline]
pub unsafe fn copy_blocks(block: usize, pairs: impl Iterator<Item = (*const u8, *mut u8)>) {
    // SAFETY: the caller guarantees the blocks.
    unsafe {
        with_type_of!(block, T => {
            pairs.for_each(|(src, dst)| {
                dst.cast::<T>().write_unaligned(src.cast::<T>().read_unaligned());
            });
        }, else pairs.for_each(|(src, dst)| long_copy::copy(src, dst, block)));
    }
}

/// Row distance in bytes at which hardware prefetchers, which stop at the end of a page, fail.
const FAR: usize = 4096;

/// Number of far rows fetched at once: more than a processor overlaps by itself, and about as many
/// as one set of the first-level cache holds, because rows a power of two apart share a set.
const AHEAD: usize = 16;

/// # Safety
/// `n` blocks must be valid, for reads at `src` and for writes at `dst`, `s` and `d` bytes apart.
#[inline]
unsafe fn copy_rows<T: Copy>(mut src: *const u8, mut dst: *mut u8, n: usize, s: isize, d: isize) {
    let mut left = n;
    let from_far = s.unsigned_abs() >= d.unsigned_abs();
    let (first, step) = if from_far { (src, s) } else { (dst.cast_const(), d) };
    let is_column = n >= 2 * AHEAD && size_of::<T>() <= 64;
    #[cfg(target_arch = "x86_64")]
    if is_column && !from_far && n >= CROWD && d % FEW_SETS == 0 && long_copy::is_amd() {
        // SAFETY: the caller guarantees `n` blocks.
        return unsafe { store_crowded_rows::<T>(src, dst, n, s, d) };
    }
    if step.unsigned_abs() >= FAR && is_column {
        left = AHEAD;
        let ahead = step.wrapping_mul(AHEAD as isize);
        (0..AHEAD as isize).for_each(|i| prefetch(first.wrapping_offset(step.wrapping_mul(i))));
        for _ in AHEAD..n {
            if from_far {
                prefetch(src.wrapping_offset(ahead));
            } else {
                prefetch(dst.wrapping_offset(ahead));
                // Unrolled stores to lines of the same cache set would evict each other.
                keep_loop();
            }
            // SAFETY: the caller guarantees `n` blocks; this copies the first `n - AHEAD`.
            unsafe { copy_row::<T>(&mut src, &mut dst, s, d) };
        }
    }
    for _ in 0..left {
        // SAFETY: of the caller's `n` blocks, `left` remain.
        unsafe { copy_row::<T>(&mut src, &mut dst, s, d) };
    }
}

/// Rows at a multiple of this distance in bytes are in at most two sets of a first-level cache.
#[cfg(target_arch = "x86_64")]
const FEW_SETS: isize = 2048;

/// Number of rows that two sets cannot hold. With fewer rows, the pairs only cost time.
#[cfg(target_arch = "x86_64")]
const CROWD: usize = 64;

/// Copies to rows of few cache sets, on AMD's processors: stores to one set that queue up take
/// longer there than stores in pairs. The lines are fetched into the second-level cache, which has
/// more room. A put of 1,024 doubles, 8 KiB apart, takes about 5 us instead of 8 if it is repeated,
/// and 8 instead of 10.8 if they are not in the cache (Zen 5).
///
/// # Safety
/// See [`copy_rows`].
#[cfg(target_arch = "x86_64")]
#[inline(never)]
unsafe fn store_crowded_rows<T: Copy>(
    mut src: *const u8,
    mut dst: *mut u8,
    n: usize,
    s: isize,
    d: isize,
) {
    use std::arch::x86_64::{_MM_HINT_T1, _mm_lfence, _mm_prefetch};
    let ahead = d.wrapping_mul(2 * AHEAD as isize);
    for i in 0..n {
        // SAFETY: a prefetch faults at no address, and the caller guarantees `n` blocks.
        unsafe {
            _mm_prefetch::<_MM_HINT_T1>(dst.wrapping_offset(ahead).cast());
            copy_row::<T>(&mut src, &mut dst, s, d);
        }
        if i % 2 == 1 {
            // SAFETY: every x86-64 processor has the instruction.
            unsafe { _mm_lfence() };
        }
    }
}

/// Copies one block and advances both pointers. They wrap, because they may pass the end.
#[inline(always)]
unsafe fn copy_row<T: Copy>(src: &mut *const u8, dst: &mut *mut u8, s: isize, d: isize) {
    // SAFETY: the caller guarantees one block at both.
    unsafe { dst.cast::<T>().write_unaligned(src.cast::<T>().read_unaligned()) };
    *src = src.wrapping_offset(s);
    *dst = dst.wrapping_offset(d);
}

#[inline(always)]
fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch faults at no address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a prefetch faults at no address.
    unsafe {
        use std::arch::asm;
        asm!("prfm pldl1keep, [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = at;
}

/// A loop for [`with_vectors`].
///
/// The compiler uses the vector instructions only in code that is inlined. So implementations of `run`
/// are `#[inline(always)]`, and so are all functions with loops that they call. They are not closures,
/// which cannot have this attribute.
pub trait Vectors {
    /// The result of the loop.
    type Output;

    /// Runs the loop.
    fn run(self) -> Self::Output;
}

/// Runs a loop that is compiled for the processor. All processors give the same bits, because
/// multiplications and additions are rounded separately.
#[inline]
pub fn with_vectors<V: Vectors>(body: V) -> V::Output {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        fn with_avx2<V: Vectors>(body: V) -> V::Output {
            body.run()
        }
        if std::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2.
            return unsafe { with_avx2(body) };
        }
    }
    body.run()
}

/// Distance in bytes at which a reduction prefetches. Reductions of memory that is not in the cache
/// take about a tenth less time with it, in huge pages too.
const LATER: usize = 2048;

/// Prefetches a part of the length of a slice, at a distance behind it. The memory may end before.
#[inline(always)]
pub fn prefetch_after<T>(slice: &[T]) {
    let first = slice.as_ptr().cast::<u8>().wrapping_add(LATER);
    (0..size_of_val(slice)).step_by(64).for_each(|at| prefetch(first.wrapping_add(at)));
}

/// Keeps the compiler from unrolling or vectorizing the loop around the call.
#[inline(always)]
pub(super) fn keep_loop() {
    #[cfg(all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64")))]
    // SAFETY: the assembly contains no instruction.
    unsafe {
        std::arch::asm!("", options(nomem, nostack, preserves_flags));
    }
}

/// The element type, as in C, and the scale of an accumulate: `target += scale * source`. Elements of
/// `Bool` are bytes, true if not zero, and their sum is a disjunction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    Bool(bool),
    Byte(i8),
    Short(i16),
    Int(i32),
    Long(i64),
    Float(f32),
    Double(f64),
    FloatComplex(Complex<f32>),
    DoubleComplex(Complex<f64>),
}

impl Scale {
    pub fn element(self) -> usize {
        match self {
            Scale::Bool(_) | Scale::Byte(_) => 1,
            Scale::Short(_) => 2,
            Scale::Int(_) | Scale::Float(_) => 4,
            Scale::Long(_) | Scale::Double(_) | Scale::FloatComplex(_) => 8,
            Scale::DoubleComplex(_) => 16,
        }
    }

    /// Returns whether read-modify-writes change elements of the type, too.
    #[inline]
    pub fn is_integer(&self) -> bool {
        matches!(self, Scale::Int(_) | Scale::Long(_))
    }
}

/// Length in bytes below which selecting a loop costs more than it gains.
#[cfg(target_arch = "x86_64")]
const LONG: usize = 128;

/// Computes `dst[i] += scale * src[i]` over `bytes` bytes, a multiple of the element size. Not
/// atomic: the caller holds the lock (`crate::atomics`).
///
/// # Safety
/// `src` must be valid for reads and `dst` for writes of `bytes` bytes; equal or disjoint.
pub unsafe fn accumulate(src: *const u8, dst: *mut u8, bytes: usize, scale: &Scale) {
    #[cfg(target_arch = "x86_64")]
    if bytes >= LONG && std::is_x86_feature_detected!("avx2") {
        // SAFETY: the caller guarantees both sides, and the processor has AVX2.
        unsafe { accumulate_avx2(src, dst, bytes, scale) };
        return;
    }
    // SAFETY: the caller guarantees both sides.
    unsafe { accumulate_each(src, dst, bytes, scale) };
}

/// # Safety
/// See [`accumulate`]; the processor must have AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn accumulate_avx2(src: *const u8, dst: *mut u8, bytes: usize, scale: &Scale) {
    if let Scale::Long(scale) = *scale
        && scale != 1
        && std::is_x86_feature_detected!("avx512dq")
    {
        // SAFETY: the caller guarantees both sides; the processor has AVX-512 DQ.
        unsafe { accumulate_longs_avx512(src, dst, bytes, scale) };
        return;
    }
    // SAFETY: the caller guarantees both sides.
    unsafe { accumulate_each(src, dst, bytes, scale) };
}

/// AVX-512 is faster only for 64-bit integers, because no older extension multiplies vectors of
/// them. In assembly, because the oldest supported compiler lacks the intrinsics.
///
/// # Safety
/// See [`accumulate`]; the processor must have AVX-512 DQ.
#[cfg(target_arch = "x86_64")]
unsafe fn accumulate_longs_avx512(src: *const u8, dst: *mut u8, bytes: usize, scale: i64) {
    const VECTOR: usize = 64;
    let whole = bytes / VECTOR * VECTOR;
    if whole > 0 {
        // SAFETY: the loop ends at `whole`, and the caller guarantees both sides.
        unsafe {
            std::arch::asm!(
                "vpbroadcastq zmm0, {scale}",
                "2:",
                "vpmullq zmm1, zmm0, [{src} + rcx]",
                "vpaddq zmm1, zmm1, [{dst} + rcx]",
                "vmovdqu64 [{dst} + rcx], zmm1",
                "add rcx, 64",
                "cmp rcx, {whole}",
                "jb 2b",
                "vzeroupper",
                scale = in(reg) scale, src = in(reg) src, dst = in(reg) dst, whole = in(reg) whole,
                inout("rcx") 0usize => _, clobber_abi("C"), options(nostack),
            );
        }
    }
    // SAFETY: the caller guarantees both sides, with `bytes - whole` bytes left.
    unsafe {
        let (src, dst) = (src.add(whole), dst.add(whole));
        accumulate_each(src, dst, bytes - whole, &Scale::Long(scale));
    }
}

/// Inlined, so that the loops use the target features of the caller.
///
/// # Safety
/// See [`accumulate`].
#[inline(always)]
unsafe fn accumulate_each(src: *const u8, dst: *mut u8, bytes: usize, scale: &Scale) {
    // SAFETY: the caller guarantees both sides.
    unsafe {
        match *scale {
            Scale::Bool(s) => axpy(src, dst, bytes, |y: u8, x: u8| y | u8::from(s && x != 0)),
            Scale::Byte(s) => {
                axpy(src, dst, bytes, |y: i8, x: i8| y.wrapping_add(s.wrapping_mul(x)))
            }
            Scale::Short(s) => {
                axpy(src, dst, bytes, |y: i16, x: i16| y.wrapping_add(s.wrapping_mul(x)))
            }
            Scale::Int(s) => {
                axpy(src, dst, bytes, |y: i32, x: i32| y.wrapping_add(s.wrapping_mul(x)))
            }
            Scale::Long(s) => {
                axpy(src, dst, bytes, |y: i64, x: i64| y.wrapping_add(s.wrapping_mul(x)))
            }
            Scale::Float(s) => axpy(src, dst, bytes, |y: f32, x: f32| y + s * x),
            Scale::Double(s) => axpy(src, dst, bytes, |y: f64, x: f64| y + s * x),
            Scale::FloatComplex(s) => axpy_complex(src, dst, bytes, s),
            Scale::DoubleComplex(s) => axpy_complex(src, dst, bytes, s),
        }
    }
}

/// Like [`accumulate`], with atomic additions, for integers used in read-modify-writes.
///
/// # Safety
/// See [`accumulate`]; `dst` must be aligned.
#[cold]
pub(crate) unsafe fn accumulate_atomically(
    src: *const u8,
    dst: *mut u8,
    bytes: usize,
    scale: &Scale,
) {
    // SAFETY: the caller guarantees both sides, and `dst` is aligned.
    unsafe {
        match *scale {
            Scale::Int(s) => {
                let (src, dst) = (src.cast::<i32>(), dst.cast::<AtomicI32>());
                for i in 0..bytes / 4 {
                    let x = s.wrapping_mul(src.add(i).read_unaligned());
                    (*dst.add(i)).fetch_add(x, Ordering::Relaxed);
                }
            }
            Scale::Long(s) => {
                let (src, dst) = (src.cast::<i64>(), dst.cast::<AtomicI64>());
                for i in 0..bytes / 8 {
                    let x = s.wrapping_mul(src.add(i).read_unaligned());
                    (*dst.add(i)).fetch_add(x, Ordering::Relaxed);
                }
            }
            _ => unreachable!("read-modify-writes change integers only"),
        }
    }
}

/// # Safety
/// `src` must be valid for reads and `dst` for writes of 8 bytes.
#[inline]
pub(crate) unsafe fn accumulate_one(src: *const f64, dst: *mut f64, scale: f64) {
    // SAFETY: the caller guarantees the number on both sides.
    unsafe { dst.write_unaligned(dst.read_unaligned() + scale * src.read_unaligned()) };
}

#[inline(always)]
unsafe fn axpy<T: Copy>(src: *const u8, dst: *mut u8, bytes: usize, f: impl Fn(T, T) -> T) {
    let n = bytes / std::mem::size_of::<T>();
    let (src, dst) = (src.cast::<T>(), dst.cast::<T>());
    for i in 0..n {
        // SAFETY: the caller guarantees `n` elements.
        unsafe {
            let x = src.add(i).read_unaligned();
            let y = dst.add(i).read_unaligned();
            dst.add(i).write_unaligned(f(y, x));
        }
    }
}

/// Computes `dst[i] += s * src[i]` for complex numbers of parts `T`, with vectors in memory order:
/// each result uses the part at its position and its neighbour. Deinterleaving, which the compiler
/// would do, takes three times as long.
#[inline(always)]
unsafe fn axpy_complex<T>(src: *const u8, dst: *mut u8, bytes: usize, s: Complex<T>)
where
    T: Copy + Add<Output = T> + Mul<Output = T> + Neg<Output = T>,
{
    const GROUP: usize = 16;
    let crossed = [-s.im, s.im];
    let (n, mut i) = (bytes / size_of::<T>(), 0);
    let (src, dst) = (src.cast::<T>(), dst.cast::<T>());
    while i + GROUP <= n {
        // SAFETY: the caller guarantees `n` parts, and the group ends by `n`.
        unsafe { add_products::<T, GROUP>(src.add(i), dst.add(i), s.re, crossed) };
        i += GROUP;
        keep_loop(); // across groups the compiler would deinterleave again
    }
    while i < n {
        // SAFETY: the caller guarantees `n` parts, and `n` is even.
        unsafe { add_products::<T, 2>(src.add(i), dst.add(i), s.re, crossed) };
        i += 2;
    }
}

#[inline(always)]
unsafe fn add_products<T, const N: usize>(src: *const T, dst: *mut T, re: T, crossed: [T; 2])
where
    T: Copy + Add<Output = T> + Mul<Output = T>,
{
    // SAFETY: the caller guarantees `N` parts on both sides.
    unsafe {
        let x = src.cast::<[T; N]>().read_unaligned();
        let y = dst.cast::<[T; N]>().read_unaligned();
        let sum = |k: usize| y[k] + (re * x[k] + crossed[k % 2] * x[k ^ 1]);
        dst.cast::<[T; N]>().write_unaligned(std::array::from_fn(sum));
    }
}

#[cfg(test)]
mod tests;
