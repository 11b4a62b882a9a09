//! Arrays whose shape the caller gives. If they exceed the memory, the caller gets an error.
#![warn(clippy::arithmetic_side_effects)]

use crate::Element;
use ndarray::{Array, Dimension};
use portolan_base::error::{Result, fail, reserve};
use std::mem::MaybeUninit;

/// Returns the number of elements of an array. Fails with `Argument` if its bytes, with empty axes
/// counted as one element long, exceed the address space: `ndarray` cannot represent the shape.
fn count<T>(shape: &[usize]) -> Result<usize> {
    let whole = shape.iter().try_fold(size_of::<T>(), |all, &n| all.checked_mul(n.max(1)));
    if whole.is_none_or(|bytes| isize::try_from(bytes).is_err()) {
        fail!(Argument, "an array of shape {shape:?} exceeds the address space");
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

/// Returns an array of zeros. Fails with `Argument` if the shape exceeds the address space, and
/// with `Memory` if memory runs out.
pub(crate) fn zeros<T: Element, D: Dimension>(shape: D) -> Result<Array<T, D>> {
    let count = count::<T>(shape.slice())?;
    match bytemuck::allocation::try_zeroed_vec(count) {
        Ok(elements) => of_shape(shape, elements),
        Err(()) => fail!(Memory, "no memory on this rank for an array of shape {shape:?}"),
    }
}

/// Returns an array with uninitialised elements. Fails as [`zeros`] does.
pub(crate) fn uninit<T: Element, D: Dimension>(shape: D) -> Result<Array<MaybeUninit<T>, D>> {
    let (count, mut elements) = (count::<T>(shape.slice())?, Vec::new());
    reserve(&mut elements, count, "elements")?;
    // SAFETY: `reserve` has allocated space for `count` elements, which need no initialisation.
    unsafe { elements.set_len(count) };
    of_shape(shape, elements)
}
