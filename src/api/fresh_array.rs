//! Arrays of a shape that a caller gives: the shape may have more elements than there is memory for,
//! which is an error and not the end of the process.
#![warn(clippy::arithmetic_side_effects)]

use super::Element;
use crate::error::{Result, fail, reserve};
use ndarray::{Array, Dimension};
use std::mem::MaybeUninit;

/// The number of elements of an array.
///
/// # Errors
/// `Argument` if `ndarray` cannot have an array of the shape: the bytes, an axis without elements
/// counted as one, are more than an address space has.
fn count<T>(shape: &[usize]) -> Result<usize> {
    let whole = shape.iter().try_fold(size_of::<T>(), |all, &n| all.checked_mul(n.max(1)));
    if whole.is_none_or(|bytes| isize::try_from(bytes).is_err()) {
        fail!(Argument, "an array of shape {shape:?} has more bytes than an address space");
    }
    Ok(shape.iter().fold(1, |all, &n| all.saturating_mul(n)))
}

fn of_shape<T, D: Dimension>(shape: D, elements: Vec<T>) -> Result<Array<T, D>> {
    match Array::from_shape_vec(shape, elements) {
        Ok(array) => Ok(array),
        Err(error) => {
            fail!(Internal, "the array does not have the number of its elements: {error}")
        }
    }
}

/// An array of zeros.
///
/// # Errors
/// `Argument` for more elements than an address space has; `Memory` if there is no memory for them.
pub(crate) fn zeros<T: Element, D: Dimension>(shape: D) -> Result<Array<T, D>> {
    let count = count::<T>(shape.slice())?;
    match bytemuck::allocation::try_zeroed_vec(count) {
        Ok(elements) => of_shape(shape, elements),
        Err(()) => fail!(Memory, "there is no memory here for an array of shape {shape:?}"),
    }
}

/// An array whose elements are yet to be written.
///
/// # Errors
/// As for [`zeros`].
pub(crate) fn uninit<T: Element, D: Dimension>(shape: D) -> Result<Array<MaybeUninit<T>, D>> {
    let (count, mut elements) = (count::<T>(shape.slice())?, Vec::new());
    reserve(&mut elements, count, "elements")?;
    // SAFETY: `reserve` has made room for `count` elements, which need not be initialised.
    unsafe { elements.set_len(count) };
    of_shape(shape, elements)
}
