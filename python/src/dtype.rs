//! Element types: the correspondence between NumPy's dtypes and Rust's types, and the operations
//! that only some types have.
//!
//! [`DType`] is the value, [`Scalar`] the type. [`with_type`] goes from one to the other.

use crate::Dist;
use ndarray::LinalgScalar;
use num_complex::Complex;
use numpy::{PyArrayDescr, PyArrayDescrMethods};
use portolan::array::{Extremum, Magnitude, NpyElement};
use portolan::reduce::{And, Max, Min, Or, Product, Sum, Xor};
use portolan::{Accumulate, Error, Group};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt};

/// Why a call failed: an error of the library, or an operation that the elements do not have.
pub enum Failure {
    Library(Error),
    Type(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Library(error)
    }
}

pub type Outcome<T> = Result<T, Failure>;

/// An operator of reductions.
#[derive(Debug, Clone, Copy)]
pub enum Op {
    Sum,
    Product,
    Min,
    Max,
    And,
    Or,
    Xor,
}

impl Op {
    pub fn of(name: &str) -> PyResult<Op> {
        Ok(match name {
            "sum" => Op::Sum,
            "prod" => Op::Product,
            "min" => Op::Min,
            "max" => Op::Max,
            "and" => Op::And,
            "or" => Op::Or,
            "xor" => Op::Xor,
            _ => {
                return Err(PyValueError::new_err(format!(
                    "operator '{name}'; known are sum, prod, min, max, and, or, xor"
                )));
            }
        })
    }
}

/// An element type of arrays.
pub trait Scalar: numpy::Element + NpyElement + Magnitude + LinalgScalar + Accumulate {
    /// NumPy's name.
    const NAME: &'static str;

    /// Converts a Python or NumPy number that this type can hold.
    fn from_py(value: &Bound<'_, PyAny>) -> PyResult<Self>;

    fn lacks<R>(what: &str) -> Outcome<R> {
        Err(Failure::Type(format!("elements of type {} {what}", Self::NAME)))
    }

    fn fetch_add(_: &Dist<Self>, _: &[usize], _value: Self) -> Outcome<Self> {
        Self::lacks("have no fetch_add; int32, int64, uint32 and uint64 have")
    }
    fn extremum(_: &Dist<Self>, _max: bool) -> Outcome<Option<Extremum<Self>>> {
        Self::lacks("have no order")
    }
    fn all_reduce(_: &Group<'_>, _: &mut [Self], _: Op) -> Outcome<()>;
}

/// Converts a bool of NumPy, which Python's own conversions refuse as an integer. Returns `None`
/// for other values. Fails for a complex scalar of NumPy if the dtype is not complex, because
/// Python's conversions would drop the imaginary part.
fn numpy_number<'py>(
    value: &Bound<'py, PyAny>,
    dtype: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if value.is_exact_instance_of::<PyFloat>() || value.is_exact_instance_of::<PyInt>() {
        return Ok(None);
    }
    let Some(descr) = value.getattr_opt("dtype")? else { return Ok(None) };
    match descr.getattr("kind")?.extract::<char>()? {
        'b' => value.call_method0("item").map(Some),
        'c' if !dtype.starts_with("complex") => Err(PyTypeError::new_err(format!(
            "cannot cast values from {} to dtype('{dtype}') (same_kind)",
            descr.repr()?
        ))),
        _ => Ok(None),
    }
}

/// Replaces the text of an overflow error with the text that NumPy uses.
#[cold]
fn out_of_bounds(error: PyErr, value: &Bound<'_, PyAny>, dtype: &str) -> PyErr {
    match value.str() {
        Ok(text) if error.is_instance_of::<PyOverflowError>(value.py()) => {
            PyOverflowError::new_err(format!("{text} is out of bounds for {dtype}"))
        }
        _ => error,
    }
}

macro_rules! scalar {
    ($ty:ty, $name:literal, [$($what:ident)*], [$($op:ident)*]) => {
        impl Scalar for $ty {
            const NAME: &'static str = $name;

            fn from_py(value: &Bound<'_, PyAny>) -> PyResult<Self> {
                let number = numpy_number(value, Self::NAME)?;
                let found = number.as_ref().unwrap_or(value).extract::<$ty>();
                found.map_err(|error| out_of_bounds(error, value, Self::NAME))
            }

            fn all_reduce(group: &Group<'_>, data: &mut [Self], op: Op) -> Outcome<()> {
                match op {
                    $(Op::$op => Ok(group.all_reduce(data, $op)?),)*
                    #[allow(unreachable_patterns, reason = "integers have all operators")]
                    other => Self::lacks(&format!("have no operator {other:?}")),
                }
            }

            $(scalar!(@$what);)*
        }
    };
    (@atomic) => {
        fn fetch_add(array: &Dist<Self>, index: &[usize], value: Self) -> Outcome<Self> {
            Ok(array.fetch_add(index, value)?)
        }
    };
    (@order) => {
        fn extremum(array: &Dist<Self>, max: bool) -> Outcome<Option<Extremum<Self>>> {
            Ok(if max { array.maximum()? } else { array.minimum()? })
        }
    };
}

scalar!(i8, "int8", [order], [Sum Product Min Max And Or Xor]);
scalar!(u8, "uint8", [order], [Sum Product Min Max And Or Xor]);
scalar!(i16, "int16", [order], [Sum Product Min Max And Or Xor]);
scalar!(u16, "uint16", [order], [Sum Product Min Max And Or Xor]);
scalar!(i32, "int32", [order atomic], [Sum Product Min Max And Or Xor]);
scalar!(u32, "uint32", [order atomic], [Sum Product Min Max And Or Xor]);
scalar!(i64, "int64", [order atomic], [Sum Product Min Max And Or Xor]);
scalar!(u64, "uint64", [order atomic], [Sum Product Min Max And Or Xor]);
scalar!(f32, "float32", [order], [Sum Product Min Max]);
scalar!(f64, "float64", [order], [Sum Product Min Max]);
scalar!(Complex<f32>, "complex64", [], [Sum Product]);
scalar!(Complex<f64>, "complex128", [], [Sum Product]);

macro_rules! dtypes {
    ($($variant:ident $ty:ty;)+) => {
        /// An element type, as a value.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum DType {
            $($variant,)+
        }

        impl DType {
            /// Finds the element type of anything that `numpy.dtype` accepts.
            pub fn of(value: &Bound<'_, PyAny>) -> PyResult<DType> {
                let py = value.py();
                let found = PyArrayDescr::new(py, value)?;
                // NumPy has one object for each of its own dtypes.
                $(if found.is(&numpy::dtype::<$ty>(py)) {
                    return Ok(DType::$variant);
                })+
                $(if found.is_equiv_to(&numpy::dtype::<$ty>(py)) {
                    return Ok(DType::$variant);
                })+
                Err(PyTypeError::new_err(format!(
                    "arrays of dtype {found} are not supported; supported are {}",
                    [$(<$ty as Scalar>::NAME),+].join(", "),
                )))
            }
        }

        /// Evaluates an expression in which the name is the type of a [`DType`].
        macro_rules! with_type {
            ($dtype:expr, $T:ident => $body:expr) => {
                match $dtype {
                    $($crate::dtype::DType::$variant => {
                        type $T = $ty;
                        $body
                    })+
                }
            };
        }
        pub(crate) use with_type;
    };
}

dtypes! {
    Bool crate::boolean::Bool;
    I8 i8;
    U8 u8;
    I16 i16;
    U16 u16;
    I32 i32;
    U32 u32;
    I64 i64;
    U64 u64;
    F32 f32;
    F64 f64;
    C64 num_complex::Complex<f32>;
    C128 num_complex::Complex<f64>;
}

/// Creates NumPy's scalar of a value.
#[inline]
pub fn scalar<'py, T: Scalar>(py: Python<'py>, mut value: T) -> PyResult<Bound<'py, PyAny>> {
    let descr = numpy::dtype::<T>(py);
    // SAFETY: the pointer is valid for one element of the dtype, which the function copies. The
    // function borrows the dtype and returns a new reference, or null with an exception.
    unsafe {
        let made = numpy::PY_ARRAY_API.PyArray_Scalar(
            py,
            std::ptr::from_mut(&mut value).cast(),
            descr.as_dtype_ptr(),
            std::ptr::null_mut(),
        );
        Bound::from_owned_ptr_or_err(py, made)
    }
}
