//! Elements of NumPy's dtype `bool`.
//!
//! Rust's `bool` cannot be an element of an array: other ranks write the memory, and only two bit
//! patterns are valid. [`Bool`] is a byte: all its patterns are valid, and NumPy sees it as `bool`.
//! As in NumPy, a sum is a logical or, and a product a logical and.

use crate::Dist;
use crate::dtype::{Op, Outcome, Scalar};
use bytemuck::{Pod, Zeroable};
use num_traits::{One, Zero};
use numpy::PyArrayDescr;
use portolan::array::{Extremum, Magnitude, NpyElement};
use portolan::internals::binding::{Scale, Sealed};
use portolan::reduce::{And, Or, Xor};
use portolan::{Accumulate, Group};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use std::ops::{Add, Div, Mul, Sub};

/// False if zero, otherwise true.
#[derive(Debug, Clone, Copy, Zeroable, Pod)]
#[repr(transparent)]
pub struct Bool(u8);

impl Bool {
    fn get(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Bool {
    fn from(value: bool) -> Bool {
        Bool(value.into())
    }
}

impl PartialEq for Bool {
    fn eq(&self, other: &Bool) -> bool {
        self.get() == other.get()
    }
}

impl PartialOrd for Bool {
    fn partial_cmp(&self, other: &Bool) -> Option<std::cmp::Ordering> {
        self.get().partial_cmp(&other.get())
    }
}

// SAFETY: the type is plain data of one byte, as the elements of NumPy's `bool` are. NumPy takes
// each byte that is not zero for true.
unsafe impl numpy::Element for Bool {
    const IS_COPY: bool = true;

    fn get_dtype(py: Python<'_>) -> Bound<'_, PyArrayDescr> {
        numpy::dtype::<bool>(py)
    }

    fn clone_ref(&self, _: Python<'_>) -> Bool {
        *self
    }

    fn vec_from_slice(_: Python<'_>, slice: &[Bool]) -> Vec<Bool> {
        slice.to_vec()
    }
}

macro_rules! operators {
    ($($name:ident $function:ident: $operator:tt;)+) => {
        $(impl $name for Bool {
            type Output = Bool;
            #[expect(clippy::suspicious_arithmetic_impl, reason = "the arithmetic of truth values")]
            fn $function(self, other: Bool) -> Bool {
                Bool::from(self.get() $operator other.get())
            }
        })+
    };
}

// `LinalgScalar` requires all four. Only sums and products are used.
operators! {
    Add add: |;
    Mul mul: &;
    Sub sub: ^;
    Div div: &;
}

impl Zero for Bool {
    fn zero() -> Bool {
        Bool(0)
    }
    fn is_zero(&self) -> bool {
        !self.get()
    }
}

impl One for Bool {
    fn one() -> Bool {
        Bool(1)
    }
}

impl NpyElement for Bool {
    const DESCR: &'static str = "|b1";
}

impl Magnitude for Bool {
    fn squared(self) -> f64 {
        f64::from(u8::from(self.get()))
    }
}

impl Sealed for Bool {}

impl Accumulate for Bool {
    const ONE: Bool = Bool(1);

    fn scale(self) -> Scale {
        Scale::Bool(self.get())
    }
}

impl Scalar for Bool {
    const NAME: &'static str = "bool";

    /// Takes bools, and the integers 0 and 1.
    fn from_py(value: &Bound<'_, PyAny>) -> PyResult<Bool> {
        if let Ok(found) = value.extract::<bool>() {
            return Ok(found.into());
        }
        match value.extract::<i64>() {
            Ok(number @ (0 | 1)) => Ok(Bool(number as u8)),
            Ok(number) => {
                Err(PyOverflowError::new_err(format!("{number} is out of bounds for bool")))
            }
            Err(_) => Err(PyTypeError::new_err(format!(
                "{} is not a bool",
                value.repr().map_or_else(|_| "the value".into(), |text| text.to_string())
            ))),
        }
    }

    fn extremum(array: &Dist<Bool>, max: bool) -> Outcome<Option<Extremum<Bool>>> {
        Ok(if max { array.max()? } else { array.min()? })
    }

    fn all_reduce(group: &Group<'_>, data: &mut [Bool], op: Op) -> Outcome<()> {
        // The operators below combine bits, so each byte has to be 0 or 1.
        data.iter_mut().for_each(|value| *value = value.get().into());
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(data);
        match op {
            Op::Sum | Op::Max | Op::Or => group.all_reduce(bytes, Or)?,
            Op::Product | Op::Min | Op::And => group.all_reduce(bytes, And)?,
            Op::Xor => group.all_reduce(bytes, Xor)?,
        }
        Ok(())
    }
}
