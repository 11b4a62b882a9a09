//! Universal functions of arrays that are distributed alike.
//!
//! A call whose function and kinds of operands have occurred before runs no code of Python, apart
//! from the function itself and the creation of the result. So it takes little time for small
//! arrays, and NumPy's warnings name the line of the program, which is the innermost one. All other
//! calls go to `portolan._ufuncs`, which finds the dtypes of the results and the loop of the function,
//! and notes this plan here ([`_learn`]). The result of an operator of large arrays takes over the
//! memory of a temporary operand ([`crate::home`]).

use crate::apply::{Operands, apply};
use crate::array::PyArray;
use crate::core::Core;
use crate::dtype::{DType, with_type};
use crate::temporary::{has_one_reference, is_temporary};
use portolan::internals::binding::are_distributed_alike;
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict, PyDict, PyTuple};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{LazyLock, Mutex};

/// The function, and the dtype of each array or the type of each other operand.
type Key = SmallVec<[usize; 4]>;

/// The effect of a function on operands of some kinds.
struct Plan {
    /// For `portolan._ufuncs`.
    noted: Py<PyAny>,
    /// The dtype of the result, if there is one result and arrays can have its dtype.
    dtype: Option<DType>,
    /// The arguments that choose a loop of the function.
    options: Option<Py<PyDict>>,
    /// The objects of the key, whose addresses no others can have meanwhile.
    _kinds: Vec<Py<PyAny>>,
}

/// Limit on the plans. If there are more, all are forgotten.
const PLANS: usize = 1000;

static KNOWN: LazyLock<Mutex<HashMap<Key, Plan>>> = LazyLock::new(Mutex::default);

fn address(object: &Bound<'_, PyAny>) -> usize {
    object.as_ptr().addr()
}

fn core_of<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<Option<&'a Rc<Core>>> {
    value.cast::<PyArray>().ok().map(|array| array.get().core()).transpose()
}

fn key(ufunc: &Bound<'_, PyAny>, operands: &[Bound<'_, PyAny>]) -> PyResult<Key> {
    let mut key = Key::from_slice(&[address(ufunc)]);
    for operand in operands {
        key.push(match core_of(operand)? {
            // No object has such an address.
            Some(core) => core.dtype as usize,
            None => operand.get_type_ptr().addr(),
        });
    }
    Ok(key)
}

fn with_plans<R>(body: impl FnOnce(&mut HashMap<Key, Plan>) -> R) -> PyResult<R> {
    let mut plans = KNOWN.lock().map_err(|_| PyRuntimeError::new_err("a thread has panicked"))?;
    Ok(body(&mut plans))
}

/// Notes the dtypes of the results of a function, and a dictionary of the arguments that choose its
/// loop. An operand that is not distributed is a scalar, and only its type has an effect.
#[pyfunction]
pub fn _learn(
    ufunc: &Bound<'_, PyAny>,
    operands: &Bound<'_, PyTuple>,
    plan: (Bound<'_, PyAny>, Bound<'_, PyDict>),
) -> PyResult<()> {
    let py = ufunc.py();
    let operands: Operands<'_> = operands.iter().collect();
    let (dtypes, options) = &plan;
    let dtype = match dtypes.len()? {
        1 => DType::of(&dtypes.get_item(0)?).ok(),
        _ => None,
    };
    let types = operands.iter().map(|operand| operand.get_type().into_any().unbind());
    let plan = Plan {
        dtype,
        options: (!options.is_empty()).then(|| options.clone().unbind()),
        _kinds: types.chain([ufunc.clone().unbind()]).collect(),
        noted: plan.into_pyobject(py)?.into_any().unbind(),
    };
    let key = key(ufunc, &operands)?;
    with_plans(|plans| {
        // The plans are dropped after the lock, because this may run code of Python.
        let old = if plans.len() >= PLANS { std::mem::take(plans) } else { HashMap::new() };
        (plans.insert(key, plan), old)
    })
    .map(drop)
}

/// Returns what was noted for these kinds of operands, or None.
#[pyfunction]
pub fn _recall(
    ufunc: &Bound<'_, PyAny>,
    operands: &Bound<'_, PyTuple>,
) -> PyResult<Option<Py<PyAny>>> {
    let operands: Operands<'_> = operands.iter().collect();
    let key = key(ufunc, &operands)?;
    with_plans(|plans| plans.get(&key).map(|plan| plan.noted.clone_ref(ufunc.py())))
}

fn are_alike(a: &Rc<Core>, b: &Rc<Core>) -> PyResult<bool> {
    let alike = || a.with(|a| b.with(|b| Ok(are_distributed_alike(a.as_part(), b.as_part()))));
    Ok(Rc::ptr_eq(a, b) || alike()?)
}

static ARRAY: Function = Function::new("portolan._array", "Array");

/// Operands whose memory the result of an operator may take over.
type Offers = [Option<Rc<Core>>; 2];

/// Returns an operand that only the expression refers to. Small results take over spare arrays, which
/// costs less.
fn offered(operand: &Bound<'_, PyAny>) -> PyResult<Option<Rc<Core>>> {
    if !has_one_reference(operand) || !operand.get_type().is(ARRAY.get(operand.py())?) {
        return Ok(None);
    }
    let Some(core) = core_of(operand)? else { return Ok(None) };
    let is_offered = core.is_large()? && core.is_unused() && is_temporary(operand);
    Ok(is_offered.then(|| core.clone()))
}

/// Carries out a call without arguments other than `out`, if there is a plan and all arrays are
/// distributed alike. Returns None otherwise, before any collective call. The result may take over
/// one of the `offers`, which are in the order of the operands.
fn known<'py>(
    ufunc: &Bound<'py, PyAny>,
    operands: &[Bound<'py, PyAny>],
    out: Option<&Bound<'py, PyAny>>,
    offers: Offers,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let (py, key) = (ufunc.py(), key(ufunc, operands)?);
    let plan = with_plans(|plans| {
        let plan = plans.get(&key)?;
        Some((plan.dtype?, plan.options.as_ref().map(|options| options.clone_ref(py))))
    })?;
    let Some((dtype, options)) = plan else { return Ok(None) };
    let mut model: Option<(&Bound<'py, PyAny>, &Rc<Core>)> = None;
    for value in operands.iter().chain(out) {
        let Some(core) = core_of(value)? else { continue };
        match model {
            None => model = Some((value, core)),
            Some((_, first)) if are_alike(first, core)? => {}
            Some(_) => return Ok(None),
        }
    }
    let Some((model, core)) = model else { return Ok(None) };
    let mut operands: Operands<'py> = operands.into();
    let out = match out {
        Some(out) => match core_of(out)? {
            Some(core) if core.dtype == dtype => out.clone(),
            _ => return Ok(None),
        },
        None => {
            let name = ufunc.getattr(intern!(py, "__name__"))?;
            let (result, dtype) = (dtype, with_type!(dtype, T => numpy::dtype::<T>(py)));
            let mut fitting = offers.iter().enumerate().filter_map(|(n, offer)| {
                offer.as_ref().filter(|operand| operand.dtype == result).map(|core| (n, core))
            });
            let fitting = fitting.next();
            let like = || model.call_method1(intern!(py, "_like"), (dtype, name, true));
            let made = core.home.offering(fitting.map(|(_, operand)| operand), like)?;
            match fitting {
                Some((n, operand)) if operand.known().is_err() => operands[n] = made.clone(),
                _ => {}
            }
            made
        }
    };
    let options = options.as_ref().map(|options| options.bind(py));
    apply(ufunc, &operands, std::slice::from_ref(&out), None, options)?;
    Ok(Some(out))
}

/// A function of NumPy, or of this package, which is looked up once.
pub struct Function {
    module: &'static str,
    name: &'static str,
    found: PyOnceLock<Py<PyAny>>,
}

impl Function {
    pub const fn new(module: &'static str, name: &'static str) -> Function {
        Function { module, name, found: PyOnceLock::new() }
    }

    fn get<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAny>> {
        let find = || Ok::<_, PyErr>(py.import(self.module)?.getattr(self.name)?.unbind());
        Ok(self.found.get_or_try_init(py, find)?.bind(py))
    }

    /// Carries out `a OPERATOR b`, where `other` is the operand that need not be an array.
    pub fn of_two<'py>(
        &self,
        a: &Bound<'py, PyAny>,
        b: &Bound<'py, PyAny>,
        other: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, ufunc) = (a.py(), self.get(a.py())?);
        let offers = [offered(a)?, offered(b)?];
        if let Some(found) = known(ufunc, &[a.clone(), b.clone()], None, offers)? {
            return Ok(found);
        }
        // Such classes want no universal function.
        let protocol = other.getattr_opt(intern!(py, "__array_ufunc__"))?;
        if protocol.is_some_and(|protocol| protocol.is_none()) {
            return Ok(py.NotImplemented().into_bound(py));
        }
        ufunc.call1((a, b))
    }

    /// Carries out `a OPERATOR= b`.
    pub fn in_place<'py>(&self, a: &Bound<'py, PyAny>, b: &Bound<'py, PyAny>) -> PyResult<()> {
        let ufunc = self.get(a.py())?;
        if known(ufunc, &[a.clone(), b.clone()], Some(a), Offers::default())?.is_none() {
            let out = [(intern!(a.py(), "out"), a)].into_py_dict(a.py())?;
            ufunc.call((a, b), Some(&out))?;
        }
        Ok(())
    }

    pub fn of_one<'py>(&self, a: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let ufunc = self.get(a.py())?;
        let offers = [offered(a)?, None];
        match known(ufunc, std::slice::from_ref(a), None, offers)? {
            Some(found) => Ok(found),
            None => ufunc.call1((a,)),
        }
    }
}

static SLOW: Function = Function::new("portolan._ufuncs", "array_ufunc");

/// Carries out `__array_ufunc__`.
pub fn array_ufunc<'py>(
    ufunc: &Bound<'py, PyAny>,
    method: &Bound<'py, PyAny>,
    operands: &Bound<'py, PyTuple>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = ufunc.py();
    let out = match options {
        Some(options) => options.get_item(intern!(py, "out"))?,
        None => None,
    };
    let is_plain = options.map_or(0, |options| options.len()) == usize::from(out.is_some());
    if is_plain && method.eq(intern!(py, "__call__"))? {
        let given: Operands<'py> = operands.iter().collect();
        // `known` refuses functions with several results.
        let out = out.map(|out| out.get_item(0)).transpose()?;
        if let Some(found) = known(ufunc, &given, out.as_ref(), Offers::default())? {
            return Ok(found);
        }
    }
    let options = options.map_or_else(|| PyDict::new(py), Bound::clone);
    SLOW.get(py)?.call1((ufunc, method, operands, options))
}
