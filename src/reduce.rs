//! Reductions and scans: the operators and the element types.
//!
//! A reduction combines the elements of all ranks of a [`Group`](crate::Group), each with the
//! elements at the same index on the other ranks: [`reduce`](crate::Group::reduce),
//! [`all_reduce`](crate::Group::all_reduce) and
//! [`all_reduce_value`](crate::Group::all_reduce_value). A scan combines those of the ranks up to
//! the caller: [`scan`](crate::Group::scan) and [`scan_exclusive`](crate::Group::scan_exclusive).
//!
//! ```
//! use portolan::Runtime;
//! use portolan::reduce::{Max, Or, Sum};
//!
//! fn main() -> portolan::Result<()> {
//!     let rt = Runtime::init()?;
//!     let world = rt.world();
//!     let found = 10 + rt.rank(); // elements that this rank has found
//!     let most = world.all_reduce_value(found as u64, Max)?;
//!     let some = world.all_reduce_value(u8::from(found > 12), Or)? != 0;
//!     // The position of this rank's elements if the ranks write one after the other.
//!     let mut begin = [found as u64];
//!     world.scan_exclusive(&mut begin, Sum)?;
//!     println!("{most} at most, {some}, from {} on", begin[0]);
//!     rt.finalize()
//! }
//! ```
//!
//! | operator | integers | floats | complex numbers |
//! |---|---|---|---|
//! | [`Sum`], [`Product`] | yes, they wrap | yes | yes |
//! | [`Min`], [`Max`] | yes | yes | |
//! | [`And`], [`Or`], [`Xor`] | yes | | |
//!
//! # Order
//! Reductions do not always combine values in rank order. The order depends on the number of ranks,
//! on their nodes and on the root, and so do the last bits of a sum of floats. All ranks of
//! [`all_reduce`](crate::Group::all_reduce) get the same bits for up to 64 KiB of data.
use num_complex::Complex;
use portolan_engine::collective;
#[doc(inline)]
pub use portolan_engine::collective::Reducible;

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

/// The sum. Integers wrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sum;

/// The product. Integers wrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Product;

/// The minimum. It is NaN if one of the floats is NaN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Min;

/// The maximum. It is NaN if one of the floats is NaN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Max;

/// Bitwise and.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct And;

/// Bitwise or.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Or;

/// Bitwise exclusive or.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Xor;

macro_rules! defined_for {
    ($($name:ident: $($ty:ty)+;)+) => {
        $(
            impl sealed::Sealed for $name {}

            $(impl Operator<$ty> for $name {
                const OPERATOR: collective::Operator = collective::Operator::$name;
            })+
        )+
    };
}

defined_for! {
    Sum: i8 i16 i32 i64 isize u8 u16 u32 u64 usize f32 f64 Complex<f32> Complex<f64>;
    Product: i8 i16 i32 i64 isize u8 u16 u32 u64 usize f32 f64 Complex<f32> Complex<f64>;
    Min: i8 i16 i32 i64 isize u8 u16 u32 u64 usize f32 f64;
    Max: i8 i16 i32 i64 isize u8 u16 u32 u64 usize f32 f64;
    And: i8 i16 i32 i64 isize u8 u16 u32 u64 usize;
    Or: i8 i16 i32 i64 isize u8 u16 u32 u64 usize;
    Xor: i8 i16 i32 i64 isize u8 u16 u32 u64 usize;
}
