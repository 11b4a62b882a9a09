//! Reduction operators, their meaning for each element type, and their MPI operations.

use crate::error::Result;
use crate::mpi::{Datatype, ReduceOp};
use bytemuck::Pod;
use std::os::raw::{c_int, c_void};

/// A reduction operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operator {
    /// Sum. Integers wrap.
    Sum,
    /// Product. Integers wrap.
    Product,
    /// Minimum.
    Min,
    /// Maximum.
    Max,
    /// Minimum of the absolute values.
    AbsMin,
    /// Maximum of the absolute values.
    AbsMax,
    /// Absolute value of each rank's own elements. Nothing is combined.
    Abs,
    /// Bitwise or of integers. Equal to [`Operator::LogicalOr`] for floats.
    Or,
    /// 1 if all values are nonzero, else 0.
    LogicalAnd,
    /// 1 if any value is nonzero, else 0.
    LogicalOr,
    /// Bitwise and of integers. Equal to [`Operator::LogicalAnd`] for floats.
    And,
}

/// The operator names of ARMCI. If one name is a prefix of another, the longer one comes first.
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
    /// `&& land || lor & band | bor`. `at(i)` returns character `i` of the text.
    ///
    /// As in ARMCI, only the leading characters matter, and the text need not end after them:
    /// programs pass the address of a single character. Therefore `at` is called in order, and
    /// never for a character after the one that determines the operator.
    pub fn from_prefix(at: impl Fn(usize) -> u8) -> Option<Operator> {
        let begins = |name: &[u8]| name.iter().enumerate().all(|(i, &c)| at(i) == c);
        NAMES.iter().find(|(name, _)| begins(name)).map(|&(_, operator)| operator)
    }

    /// Returns the name of an operator, given as a number, for the error of a collective.
    pub(super) fn name_of(number: u8) -> &'static str {
        const NAMES: [&str; 11] = [
            "sum",
            "product",
            "min",
            "max",
            "absmin",
            "absmax",
            "abs",
            "or",
            "logical and",
            "logical or",
            "and",
        ];
        NAMES.get(usize::from(number)).unwrap_or(&"unknown operator")
    }

    /// Performs [`Operator::from_prefix`] on a text of known length.
    pub fn from_name(name: &str) -> Option<Operator> {
        Operator::from_prefix(|i| name.as_bytes().get(i).copied().unwrap_or(0))
    }
}

/// A type whose values can be reduced: `i32`, `i64`, `f32`, `f64`.
pub trait Reducible: Pod + sealed::Sealed {
    /// The MPI datatype.
    #[doc(hidden)]
    const DATATYPE: Datatype;
    /// Combines `self` with `b`. `self` is the value of the lower rank.
    #[doc(hidden)]
    fn combine(self, b: Self, operator: Operator) -> Self;
    /// Returns the absolute value.
    #[doc(hidden)]
    fn absolute(self) -> Self;
    /// Returns the result of a reduction over a single rank.
    #[doc(hidden)]
    fn alone(self, operator: Operator) -> Self {
        match operator {
            Operator::AbsMin | Operator::AbsMax | Operator::Abs => self.absolute(),
            Operator::Or | Operator::And | Operator::LogicalAnd | Operator::LogicalOr => {
                self.combine(self, operator)
            }
            _ => self,
        }
    }
    #[doc(hidden)]
    fn reduce_op(operator: Operator) -> Result<ReduceOp>;
}

/// Combines two arrays element by element. `into` is the array of the lower rank, and receives the
/// result.
pub(super) fn fold<T: Reducible>(into: &mut [T], from: &[T], operator: Operator) {
    macro_rules! each {
        ($($name:ident)+) => {
            match operator {
                // A separate loop for each operator, which the compiler can vectorise.
                $(Operator::$name => {
                    for (a, b) in into.iter_mut().zip(from) {
                        *a = a.combine(*b, Operator::$name);
                    }
                })+
            }
        };
    }
    each!(Sum Product Min Max AbsMin AbsMax Abs Or LogicalAnd LogicalOr And);
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for i32 {}
    impl Sealed for i64 {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// Defines an MPI reduction function for each operator over the element type.
macro_rules! reduce_functions {
    ($ty:ty: $($name:ident = $operator:ident),+) => {
        $(
            unsafe extern "C" fn $name(
                input: *mut c_void,
                inout: *mut c_void,
                len: *mut c_int,
                _: *mut crate::mpi::RawDatatype,
            ) {
                // SAFETY: MPI passes two arrays of `*len` elements that are aligned for their type
                // and do not overlap.
                let (a, b) = unsafe {
                    let n = usize::try_from(*len).unwrap_or(0);
                    (
                        std::slice::from_raw_parts(input.cast::<$ty>(), n),
                        std::slice::from_raw_parts_mut(inout.cast::<$ty>(), n),
                    )
                };
                for (x, y) in a.iter().zip(b) {
                    *y = x.combine(*y, Operator::$operator);
                }
            }
        )+
        fn reduce_op(operator: Operator) -> Result<ReduceOp> {
            let function: crate::mpi::ReduceFn = match operator {
                $(Operator::$operator => $name,)+
            };
            // SAFETY: the function is for this type. It does not unwind, because nothing in
            // `combine` panics.
            unsafe { ReduceOp::new(function) }
        }
    };
}

macro_rules! element {
    ($ty:ty, $datatype:ident, $add:expr, $mul:expr, $abs:expr, $or:expr, $and:expr) => {
        impl Reducible for $ty {
            const DATATYPE: Datatype = Datatype::$datatype;
            #[inline]
            fn combine(self, b: Self, operator: Operator) -> Self {
                match operator {
                    Operator::Sum => $add(self, b),
                    Operator::Product => $mul(self, b),
                    Operator::Min => {
                        if b < self {
                            b
                        } else {
                            self
                        }
                    }
                    Operator::Max => {
                        if b > self {
                            b
                        } else {
                            self
                        }
                    }
                    Operator::AbsMin => {
                        let (x, y) = (self.absolute(), b.absolute());
                        if y < x { y } else { x }
                    }
                    Operator::AbsMax => {
                        let (x, y) = (self.absolute(), b.absolute());
                        if y > x { y } else { x }
                    }
                    Operator::Abs => b.absolute(),
                    Operator::Or => $or(self, b),
                    Operator::And => $and(self, b),
                    Operator::LogicalAnd => truth(self != zero() && b != zero()),
                    Operator::LogicalOr => truth(self != zero() || b != zero()),
                }
            }
            fn absolute(self) -> Self {
                $abs(self)
            }
            fn reduce_op(operator: Operator) -> Result<ReduceOp> {
                functions::<$ty>(operator)
            }
        }
    };
}

/// Selects the functions of a type.
fn functions<T: Functions>(operator: Operator) -> Result<ReduceOp> {
    T::reduce_op(operator)
}

trait Functions {
    fn reduce_op(operator: Operator) -> Result<ReduceOp>;
}

macro_rules! functions_for {
    ($module:ident, $ty:ty) => {
        mod $module {
            use super::*;
            reduce_functions!($ty: sum = Sum, product = Product, min = Min, max = Max,
                abs_min = AbsMin, abs_max = AbsMax, abs = Abs, or = Or,
                logical_and = LogicalAnd, logical_or = LogicalOr, and = And);
            impl Functions for $ty {
                fn reduce_op(operator: Operator) -> Result<ReduceOp> {
                    reduce_op(operator)
                }
            }
        }
    };
}

functions_for!(int, i32);
functions_for!(long, i64);
functions_for!(float, f32);
functions_for!(double, f64);

fn zero<T: Pod>() -> T {
    T::zeroed()
}

fn truth<T: From<bool>>(value: bool) -> T {
    T::from(value)
}

fn float_or<T: Pod + PartialEq + From<bool>>(a: T, b: T) -> T {
    truth(a != zero() || b != zero())
}

fn float_and<T: Pod + PartialEq + From<bool>>(a: T, b: T) -> T {
    truth(a != zero() && b != zero())
}

element!(
    i32,
    Int,
    i32::wrapping_add,
    i32::wrapping_mul,
    i32::wrapping_abs,
    |a, b| a | b,
    |a, b| a & b
);
element!(
    i64,
    Long,
    i64::wrapping_add,
    i64::wrapping_mul,
    i64::wrapping_abs,
    |a, b| a | b,
    |a, b| a & b
);
element!(f32, Float, |a, b| a + b, |a, b| a * b, f32::abs, float_or, float_and);
element!(f64, Double, |a, b| a + b, |a, b| a * b, f64::abs, float_or, float_and);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_combine() {
        assert_eq!((-5i32).combine(3, Operator::AbsMax), 5);
        assert_eq!((-5i64).combine(3, Operator::AbsMin), 3);
        assert_eq!(4i32.combine(1, Operator::Or), 5);
        assert_eq!(0.0f64.combine(2.0, Operator::Or), 1.0);
        assert_eq!(i32::MAX.combine(1, Operator::Sum), i32::MIN);
        assert_eq!(6i32.combine(3, Operator::And), 2);
        assert_eq!(6i64.combine(0, Operator::LogicalAnd), 0);
        assert_eq!(6.5f32.combine(0.0, Operator::LogicalOr), 1.0);
        assert_eq!(Operator::from_name("absmax"), Some(Operator::AbsMax));
        assert_eq!(Operator::from_name("avg"), None);
    }

    #[test]
    fn operators_are_told_by_their_first_characters() {
        for (name, operator) in NAMES {
            let furthest = std::cell::Cell::new(0);
            let found = Operator::from_prefix(|i| {
                furthest.set(furthest.get().max(i));
                name.get(i).copied().unwrap_or(b'!')
            });
            assert_eq!(found, Some(operator));
            // Only the next character distinguishes "&" from "&&", and "abs" from "absmax".
            let longer = matches!(name, b"&" | b"|" | b"abs");
            assert_eq!(furthest.get(), name.len() - usize::from(!longer), "{name:?}");
        }
        assert_eq!(Operator::from_name("maximum"), Some(Operator::Max));
        assert_eq!(Operator::from_name("absolute"), Some(Operator::Abs));
        assert_eq!(Operator::from_name("or "), Some(Operator::Or));
        for none in ["", "m", "mi", "ab", "o", "la", " +"] {
            assert_eq!(Operator::from_name(none), None, "{none}");
        }
    }
}
