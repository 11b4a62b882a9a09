//! Indices in NumPy's notation.
//!
//! [`parse`] handles integers, slices and Ellipsis. The result is a [`Selection`], which knows the
//! patch of the array and how a NumPy array of the result's shape corresponds to it. A patch has
//! one range for each axis, in ascending order: an integer is a range of length 1, and a negative
//! step is a positive one with the local array reversed. `None` (newaxis) adds an axis of length 1 to
//! the result. Index arrays are left to the Python part, which converts them to lists of indices.

use crate::text::Tuple;
use ndarray::{ArrayBase, Axis, IxDyn, OwnedRepr, RawData};
use portolan::array::Patch;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyInt, PyList, PyRange, PySlice, PyTuple};
use smallvec::SmallVec;
use std::ops::Range;

/// The selected indices of one axis, or an axis of length 1 that the result has in addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pick {
    At(usize),
    Slice { start: usize, count: usize, step: isize },
    New,
}

/// A selection of elements by integers and slices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection(SmallVec<[Pick; 4]>);

/// What an index selects.
pub enum Key {
    Element(SmallVec<[usize; 4]>),
    Patch(Selection),
    /// The index contains arrays.
    Arrays,
}

/// The array that an index belongs to, for errors.
pub struct Indexed<'a> {
    pub name: &'a str,
    pub shape: &'a [usize],
}

impl Indexed<'_> {
    pub fn error(&self, what: impl std::fmt::Display) -> PyErr {
        let Indexed { name, shape } = self;
        let shape = Tuple(shape);
        PyIndexError::new_err(format!("array \"{name}\" of shape {shape}: {what}"))
    }

    fn at(&self, axis: usize, index: isize) -> PyResult<usize> {
        let n = self.shape[axis];
        let found = if index < 0 { index.checked_add_unsigned(n) } else { Some(index) };
        match found.and_then(|i| usize::try_from(i).ok()).filter(|i| *i < n) {
            Some(found) => Ok(found),
            None => Err(self.error(format_args!(
                "index {index} is out of bounds for axis {axis} with size {n}"
            ))),
        }
    }

    /// Returns the selection of one item of an index, or `None` if the item is an array.
    fn pick(&self, axis: usize, item: &Bound<'_, PyAny>) -> PyResult<Option<Pick>> {
        if item.is_exact_instance_of::<PyInt>() {
            let index = item.extract::<isize>();
            let index = index.map_err(|_| self.error(format_args!("index {item} is too large")))?;
            return Ok(Some(Pick::At(self.at(axis, index)?)));
        }
        if let Ok(slice) = item.cast::<PySlice>() {
            let found = slice.indices(self.shape[axis] as isize)?;
            let (count, step) = (found.slicelength, found.step);
            let start = if count == 0 { 0 } else { found.start as usize };
            return Ok(Some(Pick::Slice { start, count, step }));
        }
        let is_array = item.is_instance_of::<PyList>()
            || item.is_instance_of::<PyTuple>()
            || item.is_instance_of::<PyBool>()
            || item.is_instance_of::<PyRange>()
            || item.cast::<numpy::PyUntypedArray>().is_ok()
            || is_bool(item)?;
        if is_array {
            return Ok(None);
        }
        match item.extract::<isize>() {
            Ok(index) => Ok(Some(Pick::At(self.at(axis, index)?))),
            // A distributed array, or an array of another package.
            Err(_) if item.hasattr("__array__")? => Ok(None),
            Err(_) => Err(self.error(
                "only integers, slices, ellipsis (...) and integer or boolean arrays are indices",
            )),
        }
    }
}

/// Returns whether an item is a bool of NumPy, which some versions convert to an integer.
fn is_bool(item: &Bound<'_, PyAny>) -> PyResult<bool> {
    match item.getattr_opt("dtype")? {
        Some(dtype) => Ok(dtype.getattr("kind")?.extract::<char>()? == 'b'),
        None => Ok(false),
    }
}

/// Returns whether an item selects along an axis. A bool is an array without axes.
fn has_axis(item: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(!item.is_none() && !item.is_instance_of::<PyBool>() && !is_bool(item)?)
}

/// Interprets an index of an array.
pub fn parse(key: &Bound<'_, PyAny>, of: &Indexed<'_>) -> PyResult<Key> {
    let ndim = of.shape.len();
    let whole = |axis: usize| Pick::Slice { start: 0, count: of.shape[axis], step: 1 };
    let (mut picks, mut has_dots) = (SmallVec::new(), key.is_instance_of::<PyEllipsis>());
    let mut axis = 0;
    if let Ok(items) = key.cast::<PyTuple>() {
        let items: SmallVec<[_; 4]> = items.iter_borrowed().collect();
        let is_dots = |item: &Borrowed<'_, '_, PyAny>| item.is_instance_of::<PyEllipsis>();
        let dots = items.iter().filter(|item| is_dots(item)).count();
        let given = items.len() - dots - items.iter().filter(|item| item.is_none()).count();
        has_dots = dots > 0;
        if dots > 1 {
            return Err(of.error("an index can have only one ellipsis (...)"));
        }
        for item in &items {
            if is_dots(item) {
                let upto = (ndim + axis).saturating_sub(given).min(ndim);
                (axis..upto).for_each(|axis| picks.push(whole(axis)));
                axis = axis.max(upto);
                continue;
            }
            if item.is_none() {
                picks.push(Pick::New);
                continue;
            }
            if axis == ndim && has_axis(item)? {
                return Err(
                    of.error(format_args!("too many indices: {given} were given for {ndim} axes"))
                );
            }
            match of.pick(axis.min(ndim - 1), item)? {
                Some(pick) => picks.push(pick),
                None => return Ok(Key::Arrays),
            }
            axis += 1;
        }
    } else if key.is_none() {
        picks.push(Pick::New);
    } else if !key.is_instance_of::<PyEllipsis>() {
        match of.pick(0, key)? {
            Some(pick) => picks.push(pick),
            None => return Ok(Key::Arrays),
        }
        axis = 1;
    }
    (axis..ndim).for_each(|axis| picks.push(whole(axis)));
    let element = |pick: &Pick| match pick {
        Pick::At(index) => Some(*index),
        Pick::Slice { .. } | Pick::New => None,
    };
    Ok(match picks.iter().map(element).collect() {
        // With an ellipsis, NumPy returns an array without axes.
        Some(index) if !has_dots => Key::Element(index),
        _ => Key::Patch(Selection(picks)),
    })
}

impl Selection {
    /// Selects one element, as an array without axes.
    pub fn element(index: &[usize]) -> Selection {
        Selection(index.iter().map(|i| Pick::At(*i)).collect())
    }

    /// Returns the shape of the result.
    pub fn shape(&self) -> SmallVec<[usize; 4]> {
        let counts = self.0.iter().filter_map(|pick| match pick {
            Pick::At(_) => None,
            Pick::Slice { count, .. } => Some(*count),
            Pick::New => Some(1),
        });
        counts.collect()
    }

    /// Returns the selected indices of the axes of the array.
    fn of_axes(&self) -> impl Iterator<Item = Pick> + '_ {
        self.0.iter().copied().filter(|pick| *pick != Pick::New)
    }

    pub fn patch(&self) -> portolan::Result<Patch> {
        let range = |pick: Pick| -> Range<usize> {
            match pick {
                Pick::At(index) => index..index + 1,
                Pick::Slice { count: 0, .. } | Pick::New => 0..0,
                Pick::Slice { start, count, step } => {
                    let reach = (count - 1) * step.unsigned_abs();
                    if step > 0 { start..start + reach + 1 } else { start - reach..start + 1 }
                }
            }
        };
        let step = |pick: Pick| match pick {
            Pick::Slice { count, step, .. } if count > 0 => step.unsigned_abs(),
            _ => 1,
        };
        let ranges: SmallVec<[Range<usize>; 4]> = self.of_axes().map(range).collect();
        let steps: SmallVec<[usize; 4]> = self.of_axes().map(step).collect();
        let patch = Patch::from(&ranges[..]);
        if steps.iter().all(|s| *s == 1) { Ok(patch) } else { patch.every(&steps) }
    }

    /// Converts a view of the result's shape to the axes and the order of the patch.
    pub fn to_patch<S: RawData>(&self, mut view: ArrayBase<S, IxDyn>) -> ArrayBase<S, IxDyn> {
        let mut axis = 0;
        for pick in &self.0 {
            match pick {
                Pick::At(_) => view = view.insert_axis(Axis(axis)),
                Pick::Slice { step, .. } if *step < 0 => view.invert_axis(Axis(axis)),
                Pick::Slice { .. } => {}
                Pick::New => view = view.index_axis_move(Axis(axis), 0),
            }
            axis += usize::from(*pick != Pick::New);
        }
        view
    }

    /// Converts an array of the patch's shape to the axes and the order of the result.
    pub fn to_result<T>(
        &self,
        mut array: ArrayBase<OwnedRepr<T>, IxDyn>,
    ) -> ArrayBase<OwnedRepr<T>, IxDyn> {
        let mut axis = array.ndim();
        for pick in self.0.iter().rev() {
            axis -= usize::from(*pick != Pick::New);
            match pick {
                Pick::At(_) => array = array.index_axis_move(Axis(axis), 0),
                Pick::Slice { step, .. } if *step < 0 => array.invert_axis(Axis(axis)),
                Pick::Slice { .. } => {}
                Pick::New => array = array.insert_axis(Axis(axis)),
            }
        }
        array
    }
}
