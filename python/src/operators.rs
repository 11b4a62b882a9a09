//! The operators of arrays that may warn, and NumPy's protocol of universal functions.
//!
//! They call the function without a frame of Python, so a warning of NumPy names the program's line.
//! `numpy.lib.mixins` has the other operators.

#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "methods in a macro, for which PyO3 makes such functions"
)]

use crate::ufunc::{Function, array_ufunc};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

type Returned<'py> = PyResult<Bound<'py, PyAny>>;

static POWER: Function = Function::new("numpy", "power");

/// A base of the class of arrays, with the operators that may warn. The others are in Python.
#[pyclass(name = "Operators", module = "portolan._native", subclass, frozen)]
pub struct Operators;

macro_rules! operators {
    (
        $($two:literal: $plain:ident $reflected:ident $in_place:ident;)+
        ; $($one:literal: $unary:ident;)+
    ) => {
        #[pymethods]
        impl Operators {
            $(
                fn $plain<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Returned<'py> {
                    static FUNCTION: Function = Function::new("numpy", $two);
                    FUNCTION.of_two(slf, other, other)
                }

                fn $reflected<'py>(
                    slf: &Bound<'py, Self>,
                    other: &Bound<'py, PyAny>,
                ) -> Returned<'py> {
                    static FUNCTION: Function = Function::new("numpy", $two);
                    FUNCTION.of_two(other, slf, other)
                }

                fn $in_place(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
                    static FUNCTION: Function = Function::new("numpy", $two);
                    FUNCTION.in_place(slf, other)
                }
            )+

            $(
                fn $unary<'py>(slf: &Bound<'py, Self>) -> Returned<'py> {
                    static FUNCTION: Function = Function::new("numpy", $one);
                    FUNCTION.of_one(slf)
                }
            )+

            fn __pow__<'py>(
                slf: &Bound<'py, Self>,
                other: &Bound<'py, PyAny>,
                _modulo: Option<&Bound<'py, PyAny>>,
            ) -> Returned<'py> {
                POWER.of_two(slf, other, other)
            }

            fn __rpow__<'py>(
                slf: &Bound<'py, Self>,
                other: &Bound<'py, PyAny>,
                _modulo: Option<&Bound<'py, PyAny>>,
            ) -> Returned<'py> {
                POWER.of_two(other, slf, other)
            }

            fn __ipow__(
                slf: &Bound<'_, Self>,
                other: &Bound<'_, PyAny>,
                _modulo: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<()> {
                POWER.in_place(slf, other)
            }

            /// NumPy's protocol of universal functions.
            #[pyo3(signature = (ufunc, method, *operands, **options))]
            fn __array_ufunc__<'py>(
                _slf: &Bound<'py, Self>,
                ufunc: &Bound<'py, PyAny>,
                method: &Bound<'py, PyAny>,
                operands: &Bound<'py, PyTuple>,
                options: Option<&Bound<'py, PyDict>>,
            ) -> Returned<'py> {
                array_ufunc(ufunc, method, operands, options)
            }
        }
    };
}

operators! {
    "add": __add__ __radd__ __iadd__;
    "subtract": __sub__ __rsub__ __isub__;
    "multiply": __mul__ __rmul__ __imul__;
    "true_divide": __truediv__ __rtruediv__ __itruediv__;
    "floor_divide": __floordiv__ __rfloordiv__ __ifloordiv__;
    "remainder": __mod__ __rmod__ __imod__;
    ; "negative": __neg__;
    "absolute": __abs__;
}
