//! Element types: which types can be transferred, accumulated, and updated atomically.

use bytemuck::Pod;
use num_complex::Complex;
use portolan_engine::atomics::Number;
use portolan_engine::path::kernel::Scale;

/// A type that segments can hold: plain data in which every bit pattern is a valid value.
///
/// Every [`Pod`] type implements it: integers, floats, complex numbers, arrays of these, and
/// structures that derive `bytemuck::Pod`. The bound makes one-sided access safe: whatever other
/// ranks write, and however two writes mix, a read returns a valid value.
///
/// ```compile_fail,E0277
/// fn booleans(group: &portolan::Group<'_>) {
///     let _ = group.allocate::<bool>(8); // 2 is no bool
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an element of a segment or a collective",
    label = "no plain data in which every bit pattern is valid",
    note = "elements are integers, floats, complex numbers, arrays of these, and structures that derive `bytemuck::Pod`",
    note = "other values can be sent as messages: see `portolan::messages`"
)]
pub trait Element: Pod {}

#[diagnostic::do_not_recommend]
impl<T: Pod> Element for T {}

/// Bindings implement [`Accumulate`] for truth values.
pub(crate) mod sealed {
    /// Seals the trait.
    pub trait Sealed {}
}

/// An [`Element`] that can be accumulated: integers, floats and complex numbers of these. Integer
/// sums wrap.
#[diagnostic::on_unimplemented(
    message = "elements of type `{Self}` cannot be accumulated",
    label = "no element type of accumulates",
    note = "accumulates add integers of up to 64 bits, `f32`, `f64`, `Complex<f32>` and `Complex<f64>`"
)]
pub trait Accumulate: Element + sealed::Sealed {
    /// The neutral scale factor.
    const ONE: Self;
    #[doc(hidden)]
    fn scale(self) -> Scale;
}

macro_rules! accumulate {
    ($($ty:ty: $one:expr, |$s:ident| $scale:expr;)+) => {
        $(
            impl sealed::Sealed for $ty {}
            impl Accumulate for $ty {
                const ONE: Self = $one;
                #[inline]
                fn scale(self) -> Scale {
                    let $s = self;
                    $scale
                }
            }
        )+
    };
}

accumulate! {
    i8: 1, |s| Scale::Byte(s);
    u8: 1, |s| Scale::Byte(s as i8);
    i16: 1, |s| Scale::Short(s);
    u16: 1, |s| Scale::Short(s as i16);
    i32: 1, |s| Scale::Int(s);
    u32: 1, |s| Scale::Int(s as i32);
    i64: 1, |s| Scale::Long(s);
    u64: 1, |s| Scale::Long(s as i64);
    isize: 1, |s| Scale::Long(s as i64);
    usize: 1, |s| Scale::Long(s as i64);
    f32: 1.0, |s| Scale::Float(s);
    f64: 1.0, |s| Scale::Double(s);
    Complex<f32>: Complex::new(1.0, 0.0), |s| Scale::FloatComplex(s);
    Complex<f64>: Complex::new(1.0, 0.0), |s| Scale::DoubleComplex(s);
}

/// An integer that supports atomic read-modify-write operations: of 4 or 8 bytes.
#[diagnostic::on_unimplemented(
    message = "elements of type `{Self}` have no atomic operations",
    label = "no element type of atomic operations",
    note = "atomic operations change `i32`, `u32`, `i64`, `u64`, `isize` and `usize`; `Segment::accumulate` also adds floats and complex numbers atomically"
)]
pub trait Atomic: Accumulate {
    #[doc(hidden)]
    fn number(self) -> Number;
    #[doc(hidden)]
    fn from_old(old: i64) -> Self;
}

macro_rules! atomic {
    ($($ty:ty as $number:ty,)+) => {
        $(
            impl Atomic for $ty {
                #[inline]
                fn number(self) -> Number {
                    (self as $number).into()
                }
                #[inline]
                fn from_old(old: i64) -> Self {
                    old as $ty
                }
            }
        )+
    };
}

atomic!(i32 as i32, u32 as u32, i64 as i64, u64 as u64, isize as i64, usize as u64,);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_agree_with_the_engine() {
        fn size<T: Accumulate>() {
            assert_eq!(T::ONE.scale().element(), size_of::<T>());
        }
        size::<i8>();
        size::<u8>();
        size::<i16>();
        size::<u16>();
        size::<i32>();
        size::<u32>();
        size::<i64>();
        size::<u64>();
        size::<usize>();
        size::<f32>();
        size::<f64>();
        size::<Complex<f32>>();
        size::<Complex<f64>>();
    }

    #[test]
    fn unsigned_numbers_keep_their_bits() {
        assert_eq!(u32::MAX.number().value(), -1);
        assert_eq!(u32::from_old(-1), u32::MAX);
        assert_eq!(u64::from_old(-1), u64::MAX);
        assert_eq!(i32::from_old(-7), -7);
    }
}
