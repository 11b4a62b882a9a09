//! The operators of reductions and scans, as types.

use num_complex::Complex;
use portolan_engine::collective::{self, Reducible};

mod sealed {
    pub trait Sealed {}
}

/// An operator of reductions and scans for elements of type `T`.
///
/// Operators are types, so the compiler refuses an operator that is not defined for the elements:
///
/// ```compile_fail,E0277
/// use portolan::num_complex::Complex;
/// use portolan::reduce::Max;
///
/// fn largest(group: &portolan::Group<'_>) -> portolan::Result<()> {
///     let mut values = [Complex::new(1.0f64, 2.0)];
///     group.all_reduce(&mut values, Max) // complex numbers have no order
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "the operator `{Self}` is not defined for elements of type `{T}`",
    label = "no operator for elements of type `{T}`",
    note = "`Sum` and `Product` combine integers, floats and complex numbers; `Min` and `Max` combine integers and floats; `And`, `Or` and `Xor` combine integers"
)]
pub trait Operator<T: Reducible>: Copy + sealed::Sealed {
    #[doc(hidden)]
    const OPERATOR: collective::Operator;
}

macro_rules! operators {
    ($($(#[$doc:meta])+ $name:ident: $($ty:ty)+;)+) => {
        $(
            $(#[$doc])+
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub struct $name;

            impl sealed::Sealed for $name {}

            $(impl Operator<$ty> for $name {
                const OPERATOR: collective::Operator = collective::Operator::$name;
            })+
        )+
    };
}

operators! {
    /// The sum. Integers wrap.
    Sum: i8 i16 i32 i64 isize u8 u16 u32 u64 usize f32 f64 Complex<f32> Complex<f64>;
    /// The product. Integers wrap.
    Product: i8 i16 i32 i64 isize u8 u16 u32 u64 usize f32 f64 Complex<f32> Complex<f64>;
    /// The minimum. It is NaN if one of the floats is NaN.
    Min: i8 i16 i32 i64 isize u8 u16 u32 u64 usize f32 f64;
    /// The maximum. It is NaN if one of the floats is NaN.
    Max: i8 i16 i32 i64 isize u8 u16 u32 u64 usize f32 f64;
    /// Bitwise and.
    And: i8 i16 i32 i64 isize u8 u16 u32 u64 usize;
    /// Bitwise or.
    Or: i8 i16 i32 i64 isize u8 u16 u32 u64 usize;
    /// Bitwise exclusive or.
    Xor: i8 i16 i32 i64 isize u8 u16 u32 u64 usize;
}
