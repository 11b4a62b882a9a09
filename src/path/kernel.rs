//! The inner loops: copy and accumulate along a shape, on local addresses.
//!
//! All other modules move bytes through these. Addresses may be unaligned.
//! Blocks of the usual element sizes have loops of their own, because a call of
//! memcpy costs more than the copy of a number. Long accumulates are compiled twice and
//! chosen by what the processor has, as the C library does with memcpy; both give the same
//! bits, because multiplication and addition are rounded apart in either.

use crate::layout::{Dim, Shape};
use num_complex::Complex;

/// Copies from `src` to `dst` along `shape`, whose local side is the source and
/// remote side the destination when `put`, else the reverse.
///
/// # Safety
/// Every byte of the shape must be valid for reads at `src` and for writes at
/// `dst`.
#[inline]
pub(crate) unsafe fn copy(src: *const u8, dst: *mut u8, shape: &Shape, put: bool) {
    let (block, dims) = (shape.block(), shape.dims());
    // SAFETY: passed on from the caller.
    unsafe {
        match dims {
            [] => copy_block(src, dst, block),
            _ => copy_dims(src, dst, block, dims, put),
        }
    }
}

/// Copies one row of bytes; the two may overlap.
///
/// # Safety
/// `src` must be valid for reads and `dst` for writes of `bytes` bytes.
#[inline]
pub(crate) unsafe fn copy_block(src: *const u8, dst: *mut u8, bytes: usize) {
    // SAFETY: passed on from the caller.
    unsafe {
        match bytes {
            8 => dst.cast::<u64>().write_unaligned(src.cast::<u64>().read_unaligned()),
            4 => dst.cast::<u32>().write_unaligned(src.cast::<u32>().read_unaligned()),
            _ => std::ptr::copy(src, dst, bytes),
        }
    }
}

#[inline]
fn strides(dim: &Dim, put: bool) -> (isize, isize) {
    if put { (dim.local, dim.remote) } else { (dim.remote, dim.local) }
}

unsafe fn copy_dims(src: *const u8, dst: *mut u8, block: usize, dims: &[Dim], put: bool) {
    // SAFETY: passed on; offsets stay inside the extents that the caller vouches for.
    unsafe {
        let (outer, inner) = dims.split_last().expect("at least one dimension");
        let (s, d) = strides(outer, put);
        if !inner.is_empty() {
            for i in 0..outer.n as isize {
                copy_dims(src.offset(i * s), dst.offset(i * d), block, inner, put);
            }
            return;
        }
        match block {
            1 => copy_rows::<u8>(src, dst, outer.n, s, d),
            2 => copy_rows::<u16>(src, dst, outer.n, s, d),
            4 => copy_rows::<u32>(src, dst, outer.n, s, d),
            8 => copy_rows::<u64>(src, dst, outer.n, s, d),
            16 => copy_rows::<[u64; 2]>(src, dst, outer.n, s, d),
            24 => copy_rows::<[u64; 3]>(src, dst, outer.n, s, d),
            32 => copy_rows::<[u64; 4]>(src, dst, outer.n, s, d),
            64 => copy_rows::<[u64; 8]>(src, dst, outer.n, s, d),
            128 => copy_rows::<[u64; 16]>(src, dst, outer.n, s, d),
            256 => copy_rows::<[u64; 32]>(src, dst, outer.n, s, d),
            512 => copy_rows::<[u64; 64]>(src, dst, outer.n, s, d),
            _ => {
                for i in 0..outer.n as isize {
                    std::ptr::copy(src.offset(i * s), dst.offset(i * d), block);
                }
            }
        }
    }
}

/// `n` blocks of the size of `T`, the loop over them unrolled by the compiler.
#[inline]
unsafe fn copy_rows<T: Copy>(mut src: *const u8, mut dst: *mut u8, n: usize, s: isize, d: isize) {
    for _ in 0..n {
        // SAFETY: passed on. The pointers may step past the end after the last
        // block, so they step with wrapping arithmetic.
        unsafe { dst.cast::<T>().write_unaligned(src.cast::<T>().read_unaligned()) };
        src = src.wrapping_offset(s);
        dst = dst.wrapping_offset(d);
    }
}

/// The element type and scale of an accumulate: `target += scale * source`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// C `int`
    Int(i32),
    /// C `long`
    Long(i64),
    /// C `float`
    Float(f32),
    /// C `double`
    Double(f64),
    /// Two floats.
    FloatComplex(Complex<f32>),
    /// Two doubles.
    DoubleComplex(Complex<f64>),
}

impl Scale {
    /// Bytes of one element.
    pub fn element(self) -> usize {
        match self {
            Scale::Int(_) | Scale::Float(_) => 4,
            Scale::Long(_) | Scale::Double(_) | Scale::FloatComplex(_) => 8,
            Scale::DoubleComplex(_) => 16,
        }
    }

    /// What addresses of elements must be multiples of.
    #[inline]
    pub fn alignment(self) -> usize {
        match self {
            Scale::Int(_) | Scale::Float(_) | Scale::FloatComplex(_) => 4,
            Scale::Long(_) | Scale::Double(_) | Scale::DoubleComplex(_) => 8,
        }
    }

    /// Whether the scale is one, so that elements are only added.
    pub fn is_one(self) -> bool {
        match self {
            Scale::Int(s) => s == 1,
            Scale::Long(s) => s == 1,
            Scale::Float(s) => s == 1.0,
            Scale::Double(s) => s == 1.0,
            Scale::FloatComplex(s) => s == Complex::new(1.0, 0.0),
            Scale::DoubleComplex(s) => s == Complex::new(1.0, 0.0),
        }
    }
}

/// Below so many bytes the choice of a loop would cost more than it gains.
#[cfg(target_arch = "x86_64")]
const LONG: usize = 128;

/// `dst[i] += scale * src[i]` over `bytes` bytes, a multiple of the element.
/// Not atomic: callers hold the lock (see `crate::atomics`).
///
/// # Safety
/// `src` must be valid for reads and `dst` for writes of `bytes` bytes, and they
/// must not overlap except by being equal.
pub unsafe fn accumulate(src: *const u8, dst: *mut u8, bytes: usize, scale: Scale) {
    #[cfg(target_arch = "x86_64")]
    if bytes >= LONG && std::is_x86_feature_detected!("avx2") {
        // SAFETY: passed on from the caller; the processor has AVX2.
        unsafe { accumulate_avx2(src, dst, bytes, scale) };
        return;
    }
    // SAFETY: passed on from the caller.
    unsafe { accumulate_each(src, dst, bytes, scale) };
}

/// # Safety
/// As for [`accumulate`], and the processor has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn accumulate_avx2(src: *const u8, dst: *mut u8, bytes: usize, scale: Scale) {
    // SAFETY: passed on from the caller.
    unsafe { accumulate_each(src, dst, bytes, scale) };
}

/// The loops, compiled for whatever processor the caller is compiled for.
///
/// # Safety
/// As for [`accumulate`].
#[inline(always)]
unsafe fn accumulate_each(src: *const u8, dst: *mut u8, bytes: usize, scale: Scale) {
    // SAFETY: passed on from the caller.
    unsafe {
        match scale {
            Scale::Int(s) => {
                axpy(src, dst, bytes, |y: i32, x: i32| y.wrapping_add(s.wrapping_mul(x)))
            }
            Scale::Long(s) => {
                axpy(src, dst, bytes, |y: i64, x: i64| y.wrapping_add(s.wrapping_mul(x)))
            }
            Scale::Float(s) => axpy(src, dst, bytes, |y: f32, x: f32| y + s * x),
            Scale::Double(s) => axpy(src, dst, bytes, |y: f64, x: f64| y + s * x),
            Scale::FloatComplex(s) => {
                axpy(src, dst, bytes, |y: Complex<f32>, x: Complex<f32>| y + s * x)
            }
            Scale::DoubleComplex(s) => {
                axpy(src, dst, bytes, |y: Complex<f64>, x: Complex<f64>| y + s * x)
            }
        }
    }
}

/// [`accumulate`] of one double, by far the most frequent number.
///
/// # Safety
/// `src` must be valid for reads and `dst` for writes of 8 bytes.
#[inline]
pub(crate) unsafe fn accumulate_one(src: *const f64, dst: *mut f64, scale: f64) {
    // SAFETY: passed on from the caller.
    unsafe { dst.write_unaligned(dst.read_unaligned() + scale * src.read_unaligned()) };
}

/// `dst[i] = scale * src[i]`: what MPI's own accumulate is given.
///
/// # Safety
/// As for [`accumulate`].
pub(crate) unsafe fn scaled(src: *const u8, dst: *mut u8, bytes: usize, scale: Scale) {
    // SAFETY: passed on from the caller.
    unsafe {
        match scale {
            Scale::Int(s) => axpy(src, dst, bytes, |_: i32, x: i32| s.wrapping_mul(x)),
            Scale::Long(s) => axpy(src, dst, bytes, |_: i64, x: i64| s.wrapping_mul(x)),
            Scale::Float(s) => axpy(src, dst, bytes, |_: f32, x: f32| s * x),
            Scale::Double(s) => axpy(src, dst, bytes, |_: f64, x: f64| s * x),
            Scale::FloatComplex(s) => axpy(src, dst, bytes, |_, x: Complex<f32>| s * x),
            Scale::DoubleComplex(s) => axpy(src, dst, bytes, |_, x: Complex<f64>| s * x),
        }
    }
}

#[inline(always)]
unsafe fn axpy<T: Copy>(src: *const u8, dst: *mut u8, bytes: usize, f: impl Fn(T, T) -> T) {
    let n = bytes / std::mem::size_of::<T>();
    let (src, dst) = (src.cast::<T>(), dst.cast::<T>());
    for i in 0..n {
        // SAFETY: `i` is below the number of elements that the caller vouches for.
        unsafe {
            let x = src.add(i).read_unaligned();
            let y = dst.add(i).read_unaligned();
            dst.add(i).write_unaligned(f(y, x));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_follow_the_shape() {
        let src: Vec<u8> = (0..=255).collect();
        for block in [1, 2, 3, 4, 8, 16] {
            let shape = Shape::strided(&[block, 3, 2], &[19, 70], &[17, 60]).unwrap();
            let mut dst = vec![0u8; 256];
            let mut expected = dst.clone();
            shape.for_each(&mut |l, r| {
                let (l, r) = (l as usize, r as usize);
                expected[r..r + block].copy_from_slice(&src[l..l + block]);
            });
            // SAFETY: the extents, 70+2*19+16 and 60+2*17+16, are below 256.
            unsafe { copy(src.as_ptr(), dst.as_mut_ptr(), &shape, true) };
            assert_eq!(dst, expected);
            let mut back = vec![0u8; 256];
            // SAFETY: as above.
            unsafe { copy(dst.as_ptr(), back.as_mut_ptr(), &shape, false) };
            shape.for_each(&mut |l, _| {
                let l = l as usize;
                assert_eq!(back[l..l + block], src[l..l + block]);
            });
        }
    }

    #[test]
    fn accumulates_scale_and_add() {
        let src = [1.0f64, -2.0, 3.5];
        let mut dst = [10.0f64, 10.0, 10.0];
        // SAFETY: both arrays have 24 bytes.
        unsafe { accumulate(src.as_ptr().cast(), dst.as_mut_ptr().cast(), 24, Scale::Double(2.0)) };
        assert_eq!(dst, [12.0, 6.0, 17.0]);
        let x = [Complex::new(1.0f32, 2.0)];
        let mut y = [Complex::new(0.5f32, 0.0)];
        let i = Scale::FloatComplex(Complex::new(0.0, 1.0));
        // SAFETY: both arrays have 8 bytes.
        unsafe { accumulate(x.as_ptr().cast(), y.as_mut_ptr().cast(), 8, i) };
        assert_eq!(y[0], Complex::new(-1.5, 1.0));
        let mut z = [i32::MAX];
        // SAFETY: one element each.
        unsafe { accumulate([1i32].as_ptr().cast(), z.as_mut_ptr().cast(), 4, Scale::Int(1)) };
        assert_eq!(z[0], i32::MIN);
    }

    /// Long accumulates, whose loop the processor chooses, give the bits that one element
    /// after the other gives, from any address.
    #[test]
    fn long_accumulates_round_as_short_ones() {
        let scales = [
            Scale::Int(-3),
            Scale::Long(1 << 40),
            Scale::Float(1.1),
            Scale::Double(-0.3),
            Scale::FloatComplex(Complex::new(0.7, -1.3)),
            Scale::DoubleComplex(Complex::new(1.0 / 3.0, 1e-7)),
        ];
        for scale in scales {
            let element = scale.element();
            for (bytes, shift) in [(96, 0), (128, 1), (1040, 0), (4096, 3), (4112, 8)] {
                // Exponents stay small, so that there are no NaNs, whose bits mean nothing.
                let byte = |i: usize, salt: usize| {
                    if i % 4 == 3 { 0x3f } else { (i * salt % 251) as u8 }
                };
                let src: Vec<u8> = (0..bytes + shift).map(|i| byte(i, 37)).collect();
                let mut long: Vec<u8> = (0..bytes + shift).map(|i| byte(i, 59)).collect();
                let mut short = long.clone();
                // SAFETY: both have `shift` and `bytes` bytes.
                unsafe {
                    let (x, y) = (src.as_ptr().add(shift), long.as_mut_ptr().add(shift));
                    accumulate(x, y, bytes, scale);
                    for at in (0..bytes).step_by(element) {
                        accumulate(x.add(at), short.as_mut_ptr().add(shift + at), element, scale);
                    }
                }
                assert_eq!(long, short, "{scale:?}, {bytes} bytes");
            }
        }
    }
}
