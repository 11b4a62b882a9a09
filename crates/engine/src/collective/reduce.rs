//! Reduction operators, their meaning for each element type, and their MPI operations.

use crate::mpi::{Datatype, ReduceFn, ReduceOp};
use bytemuck::Pod;
use num_complex::Complex;
use portolan_base::error::Result;
use std::os::raw::{c_int, c_void};

macro_rules! operators {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Operator { $($(#[$doc])* $name,)+ }

        const ALL: &[Operator] = &[$(Operator::$name,)+];

        impl Operator {
            pub(super) fn name_of(number: u8) -> &'static str {
                [$($text,)+].get(usize::from(number)).unwrap_or(&"unknown operator")
            }
        }

        fn function_for_mpi<T: Reducible>(operator: Operator) -> ReduceFn {
            match operator {
                $(Operator::$name => combine_for_mpi::<T, { Operator::$name as usize }>,)+
            }
        }

        /// `into` is the array of the lower rank, and receives the result.
        pub(super) fn fold<T: Reducible>(into: &mut [T], from: &[T], operator: Operator) {
            match operator {
                // The compiler can vectorise a loop per operator.
                $(Operator::$name => {
                    for (a, b) in into.iter_mut().zip(from) {
                        *a = a.combine(*b, Operator::$name);
                    }
                })+
            }
        }
    };
}

operators! {
    /// Integers wrap.
    Sum = "sum",
    /// Integers wrap.
    Product = "product",
    /// NaN if a value is NaN.
    Min = "min",
    /// NaN if a value is NaN.
    Max = "max",
    /// Of the absolute values.
    AbsMin = "absmin",
    /// Of the absolute values.
    AbsMax = "absmax",
    /// Of each rank's own elements. Nothing is combined.
    Abs = "abs",
    /// Bitwise for integers. Equal to [`Operator::LogicalOr`] for floats.
    Or = "or",
    /// 1 if all values are nonzero, else 0.
    LogicalAnd = "logical and",
    /// 1 if any value is nonzero, else 0.
    LogicalOr = "logical or",
    /// Bitwise for integers. Equal to [`Operator::LogicalAnd`] for floats.
    And = "and",
    /// Bitwise for integers. For floats, 1 if exactly one of two values is nonzero, else 0.
    Xor = "xor",
}

/// ARMCI's names. A name comes after longer ones of which it is a prefix.
const NAMES: [(&[u8], Operator); 16] = [
    (b"+", Operator::Sum),
    (b"*", Operator::Product),
    (b"min", Operator::Min),
    (b"max", Operator::Max),
    (b"absmin", Operator::AbsMin),
    (b"absmax", Operator::AbsMax),
    (b"abs", Operator::Abs),
    (b"or", Operator::Or),
    (b"&&", Operator::LogicalAnd),
    (b"land", Operator::LogicalAnd),
    (b"||", Operator::LogicalOr),
    (b"lor", Operator::LogicalOr),
    (b"&", Operator::And),
    (b"band", Operator::And),
    (b"|", Operator::Or),
    (b"bor", Operator::Or),
];

impl Operator {
    /// Returns the operator whose ARMCI name starts a text: `+ * min max absmin absmax abs or`, and
    /// `&& land || lor & band | bor`. `at(i)` returns character `i` of the text. It may continue
    /// after the name: programs pass the address of a single character. Therefore `at` is called in
    /// order, and never past the character that decides.
    pub fn from_prefix(at: impl Fn(usize) -> u8) -> Option<Operator> {
        let begins = |name: &[u8]| name.iter().enumerate().all(|(i, &c)| at(i) == c);
        NAMES.iter().find(|(name, _)| begins(name)).map(|&(_, operator)| operator)
    }
}

/// Integers of 1 to 8 bytes, also `isize` and `usize`, floats and complex numbers.
#[diagnostic::on_unimplemented(
    message = "elements of type `{Self}` cannot be reduced",
    label = "no element type of reductions",
    note = "reductions combine integers of 1 to 8 bytes (`i8` to `i64`, `u8` to `u64`, `isize`, `usize`), `f32`, `f64`, `Complex<f32>` and `Complex<f64>`"
)]
pub trait Reducible: Pod + sealed::Sealed {
    /// An MPI datatype of the same size.
    #[doc(hidden)]
    const DATATYPE: Datatype;
    #[doc(hidden)]
    fn allows(_: Operator) -> bool {
        true
    }
    /// `self` is the value of the lower rank, and the result if the operator is not defined.
    #[doc(hidden)]
    fn combine(self, b: Self, operator: Operator) -> Self;
    #[doc(hidden)]
    fn absolute(self) -> Self;
    /// Changes no other value.
    #[doc(hidden)]
    fn identity(operator: Operator) -> Self;
    /// The result of a reduction over a single rank.
    #[doc(hidden)]
    fn alone(self, operator: Operator) -> Self {
        match operator {
            Operator::AbsMin | Operator::AbsMax | Operator::Abs => self.absolute(),
            Operator::Or | Operator::And | Operator::LogicalAnd | Operator::LogicalOr => {
                self.combine(self, operator)
            }
            // The result of floats is 0 or 1.
            Operator::Xor => self.combine(Self::identity(operator), operator),
            _ => self,
        }
    }
    #[doc(hidden)]
    fn reduce_op(operator: Operator) -> Result<ReduceOp> {
        // SAFETY: the function is for this type. It does not unwind: `combine` never panics.
        unsafe { ReduceOp::new(function_for_mpi::<Self>(operator)) }
    }
}

/// # Safety
/// `input` and `inout` must be valid for `*len` elements and must not overlap.
unsafe extern "C" fn combine_for_mpi<T: Reducible, const OPERATOR: usize>(
    input: *mut c_void,
    inout: *mut c_void,
    len: *mut c_int,
    _: *mut crate::mpi::RawDatatype,
) {
    // SAFETY: MPI passes two disjoint arrays of `*len` aligned elements.
    let (a, b) = unsafe {
        let n = usize::try_from(*len).unwrap_or(0);
        (
            std::slice::from_raw_parts(input.cast::<T>(), n),
            std::slice::from_raw_parts_mut(inout.cast::<T>(), n),
        )
    };
    for (x, y) in a.iter().zip(b) {
        *y = x.combine(*y, const { ALL[OPERATOR] });
    }
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! ordered {
    ($a:ident, $b:ident, $operator:ident) => {
        match $operator {
            Operator::Min if $b < $a => $b,
            Operator::Max if $b > $a => $b,
            Operator::Min | Operator::Max => $a,
            Operator::AbsMin | Operator::AbsMax => {
                let (x, y) = ($a.absolute(), $b.absolute());
                let second = if $operator == Operator::AbsMin { y < x } else { y > x };
                if second { y } else { x }
            }
            _ => $b.absolute(),
        }
    };
}

fn truth<T: Pod + PartialEq>(value: T) -> bool {
    value != T::zeroed()
}

macro_rules! integers {
    ($($ty:ty: $datatype:ident, $abs:expr;)+) => {$(
        impl sealed::Sealed for $ty {}

        impl Reducible for $ty {
            const DATATYPE: Datatype = Datatype::$datatype;

            #[inline]
            fn combine(self, b: Self, operator: Operator) -> Self {
                match operator {
                    Operator::Sum => self.wrapping_add(b),
                    Operator::Product => self.wrapping_mul(b),
                    Operator::Or => self | b,
                    Operator::And => self & b,
                    Operator::Xor => self ^ b,
                    Operator::LogicalAnd => (truth(self) && truth(b)).into(),
                    Operator::LogicalOr => (truth(self) || truth(b)).into(),
                    _ => ordered!(self, b, operator),
                }
            }

            fn absolute(self) -> Self {
                $abs(self)
            }

            fn identity(operator: Operator) -> Self {
                match operator {
                    Operator::Product | Operator::LogicalAnd => 1,
                    Operator::Min | Operator::AbsMin => Self::MAX,
                    Operator::Max => Self::MIN,
                    Operator::And => !0,
                    _ => 0,
                }
            }
        }
    )+};
}

macro_rules! floats {
    ($($ty:ty: $datatype:ident;)+) => {$(
        impl sealed::Sealed for $ty {}

        impl Reducible for $ty {
            const DATATYPE: Datatype = Datatype::$datatype;

            #[inline]
            fn combine(self, b: Self, operator: Operator) -> Self {
                match operator {
                    Operator::Sum => self + b,
                    Operator::Product => self * b,
                    Operator::And | Operator::LogicalAnd => (truth(self) && truth(b)).into(),
                    Operator::Or | Operator::LogicalOr => (truth(self) || truth(b)).into(),
                    Operator::Xor => (truth(self) != truth(b)).into(),
                    // NaN wins in any order: MPI does not combine in the order of the ranks.
                    Operator::Min | Operator::Max if b.is_nan() => b,
                    _ => ordered!(self, b, operator),
                }
            }

            fn absolute(self) -> Self {
                self.abs()
            }

            fn identity(operator: Operator) -> Self {
                match operator {
                    Operator::Product | Operator::And | Operator::LogicalAnd => 1.0,
                    Operator::Min | Operator::AbsMin => Self::INFINITY,
                    Operator::Max => Self::NEG_INFINITY,
                    _ => 0.0,
                }
            }
        }
    )+};
}

macro_rules! complex {
    ($($ty:ty: $datatype:ident;)+) => {$(
        impl sealed::Sealed for Complex<$ty> {}

        impl Reducible for Complex<$ty> {
            const DATATYPE: Datatype = Datatype::$datatype;

            fn allows(operator: Operator) -> bool {
                matches!(operator, Operator::Sum | Operator::Product)
            }

            #[inline]
            fn combine(self, b: Self, operator: Operator) -> Self {
                match operator {
                    Operator::Sum => self + b,
                    Operator::Product => self * b,
                    _ => self,
                }
            }

            fn absolute(self) -> Self {
                self
            }

            fn identity(operator: Operator) -> Self {
                let one = operator == Operator::Product;
                Complex::new(if one { 1.0 } else { 0.0 }, 0.0)
            }
        }
    )+};
}

integers! {
    i8: Byte, i8::wrapping_abs;
    u8: Byte, u8::from;
    i16: Short, i16::wrapping_abs;
    u16: Short, u16::from;
    i32: Int, i32::wrapping_abs;
    u32: Int, u32::from;
    i64: Long, i64::wrapping_abs;
    u64: Long, u64::from;
    isize: Long, isize::wrapping_abs;
    usize: Long, usize::from;
}

const _: () = assert!(size_of::<usize>() == size_of::<i64>());

floats! {
    f32: Float;
    f64: Double;
}

complex! {
    f32: FloatComplex;
    f64: DoubleComplex;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_name(name: &str) -> Option<Operator> {
        Operator::from_prefix(|i| name.as_bytes().get(i).copied().unwrap_or(0))
    }

    #[test]
    fn operators_combine_short_integers_and_complex_numbers() {
        assert_eq!(200u8.combine(100, Operator::Sum), 44);
        assert_eq!(u64::MAX.combine(1, Operator::Max), u64::MAX);
        assert_eq!((-7i8).combine(-8, Operator::Min), -8);
        assert_eq!(0b1100u16.combine(0b1010, Operator::Xor), 0b0110);
        let (i, two) = (Complex::new(0.0, 1.0), Complex::new(2.0, 0.0));
        assert_eq!(i.combine(i, Operator::Product), -two / 2.0);
        assert_eq!(i.combine(two, Operator::Sum), Complex::new(2.0, 1.0));
        assert!(!Complex::<f32>::allows(Operator::Min));
        assert_eq!(by_name("absmax"), Some(Operator::AbsMax));
        assert_eq!(by_name("avg"), None);
    }

    #[test]
    fn identities_change_nothing() {
        fn check<T: Reducible + PartialEq + std::fmt::Debug>(values: [T; 3]) {
            for &operator in ALL.iter().filter(|&&op| T::allows(op) && op != Operator::Abs) {
                for x in values {
                    let x = x.alone(operator);
                    let identity = T::identity(operator);
                    assert_eq!(identity.combine(x, operator), x, "{operator:?} of {x:?}");
                    assert_eq!(x.combine(identity, operator), x, "{operator:?} of {x:?}");
                }
            }
        }
        check([0i8, 5, i8::MAX]);
        check([0u8, 5, u8::MAX]);
        check([-3i64, 0, i64::MAX]);
        check([3u64, 0, u64::MAX]);
        check([-3isize, 0, isize::MAX]);
        check([3usize, 0, usize::MAX]);
        check([-1.5f32, 0.0, f32::MAX]);
        check([-1.5f64, 0.0, 4.0]);
        check([Complex::new(1.0f64, -2.0), Complex::new(0.0, 0.0), Complex::new(0.5, 3.0)]);
    }

    #[test]
    fn operators_are_recognised_by_their_first_characters() {
        for (name, operator) in NAMES {
            let furthest = std::cell::Cell::new(0);
            let found = Operator::from_prefix(|i| {
                furthest.set(furthest.get().max(i));
                name.get(i).copied().unwrap_or(b'!')
            });
            assert_eq!(found, Some(operator));
            let longer = matches!(name, b"&" | b"|" | b"abs");
            assert_eq!(furthest.get(), name.len() - usize::from(!longer), "{name:?}");
        }
        assert_eq!(by_name("maximum"), Some(Operator::Max));
        assert_eq!(by_name("absolute"), Some(Operator::Abs));
        assert_eq!(by_name("or "), Some(Operator::Or));
        for none in ["", "m", "mi", "ab", "o", "la", " +"] {
            assert_eq!(by_name(none), None, "{none}");
        }
    }
}
