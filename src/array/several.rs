//! Collective calls on several arrays at once. Each has one exchange of the ranks, and not one for
//! each array. The arrays may differ in their element types. Bindings to other languages use them
//! (`internals::binding`). It also creates arrays that are placed like another one.

use super::axis::Dims;
use super::check::Checker;
use super::dist_array::{DistArray, Inner, elements};
use super::distribution::Layout;
use super::exclusive::Exclusive;
use crate::in_call::public;
use crate::{Element, Group};
use ndarray::Dimension;
use portolan_base::error::{Result, fail};
use portolan_engine::collective::{self, Kind};
use std::sync::OnceLock;

mod sealed {
    pub trait Sealed {}
}

/// Only this module makes the internal calls of [`AnyArray`].
#[derive(Debug)]
pub struct Internal(());

/// The group, the distribution and the name of an array.
#[derive(Debug)]
pub struct Placement<'a, 'rt> {
    group: &'a Group<'rt>,
    name: &'a str,
    number: u64,
    layout: &'a Layout,
    coords: &'a Option<Dims>,
    periodic: &'a [bool],
}

/// A [`DistArray`] of any element type and dimension.
pub trait AnyArray<'rt>: sealed::Sealed {
    #[doc(hidden)]
    fn placement(&self, _: Internal) -> Placement<'_, 'rt>;
    /// After a barrier with exclusive parts, or before one.
    #[doc(hidden)]
    fn set_exclusive(&mut self, exclusive: bool, _: Internal) -> Result<()>;
    #[doc(hidden)]
    fn compare(&self, _: Internal) -> Result<()>;
}

impl<T: Element, D: Dimension> sealed::Sealed for DistArray<'_, T, D> {}

impl<'rt, T: Element, D: Dimension> AnyArray<'rt> for DistArray<'rt, T, D> {
    fn placement(&self, _: Internal) -> Placement<'_, 'rt> {
        let Inner { group, name, layout, part, coords, periodic, .. } = &*self.inner;
        Placement { group, name, number: part.segment().number(), layout, coords, periodic }
    }

    fn set_exclusive(&mut self, exclusive: bool, _: Internal) -> Result<()> {
        if !exclusive {
            self.finish_ghosts()?;
        }
        self.inner.part.set_exclusive(exclusive);
        Ok(())
    }

    fn compare(&self, _: Internal) -> Result<()> {
        self.check_races()
    }
}

/// Returns whether each rank owns the same elements in both arrays, in the same group.
pub fn are_distributed_alike<'rt>(a: &dyn AnyArray<'rt>, b: &dyn AnyArray<'rt>) -> bool {
    let (a, b) = (a.placement(Internal(())), b.placement(Internal(())));
    a.group.key() == b.group.key() && a.layout.owns_like(b.layout)
}

/// Runs a collective call in a scope for each array.
fn in_scopes<'rt, R>(
    kind: Kind,
    arrays: &[&mut dyn AnyArray<'rt>],
    body: &mut dyn FnMut() -> Result<R>,
) -> Result<R> {
    match arrays.split_first() {
        None => body(),
        Some((first, others)) => {
            let number = first.placement(Internal(())).number;
            collective::scope(kind, number, || in_scopes(kind, others, body))
        }
    }
}

fn group_of<'rt>(arrays: &[&mut dyn AnyArray<'rt>]) -> Result<Group<'rt>> {
    let Some(first) = arrays.first() else {
        fail!(Argument, "a call for several arrays without an array");
    };
    let group = first.placement(Internal(())).group.clone();
    for other in arrays {
        let other = other.placement(Internal(()));
        if other.group.key() != group.key() {
            fail!(Argument, "array \"{}\" belongs to another group than the first", other.name);
        }
    }
    Ok(group)
}

/// Completes all transfers and gives every rank exclusive access to its own parts of several
/// arrays, as [`DistArray::access`] does for one. `resume` returns the accesses.
/// Collective: all ranks pass the same arrays.
///
/// # Errors
/// Returns `Argument` if the arrays belong to different groups or there is none, and fails as
/// [`DistArray::access`] does.
#[track_caller]
pub fn access_all<'rt>(arrays: &mut [&mut dyn AnyArray<'rt>]) -> Result<()> {
    public("access_all", || {
        let group = group_of(arrays)?;
        in_scopes(Kind::Access, arrays, &mut || group.barrier())?;
        arrays.iter_mut().try_for_each(|array| array.set_exclusive(true, Internal(())))?;
        arrays.iter().try_for_each(|array| array.compare(Internal(())))
    })
}

/// Ends the accesses of [`access_all`], and returns the least `value` of all ranks, for example the
/// number of the first rank that has failed. Collective.
///
/// # Errors
/// Fails as [`access_all`] and [`super::Access::release`] do.
#[track_caller]
pub fn release_all<'rt>(arrays: &mut [&mut dyn AnyArray<'rt>], value: u64) -> Result<u64> {
    public("release_all", || {
        let group = group_of(arrays)?;
        // The updates of ghost cells end before the exchange.
        arrays.iter_mut().try_for_each(|array| array.set_exclusive(false, Internal(())))?;
        let least = in_scopes(Kind::Release, arrays, &mut || group.barrier_with(value))?;
        arrays.iter().try_for_each(|array| array.compare(Internal(())))?;
        Ok(least)
    })
}

/// Creates an array with the shape, distribution, ghost cells and group of another array. The
/// elements are zero if `zeros` is set, and otherwise have any values. Collective.
///
/// # Errors
/// Returns `Argument` if the array exceeds the address space, or `D` has another number of axes than
/// `model`, and `Memory` on all ranks if the allocation fails on one rank.
pub fn placed_like<'rt, T: Element, D: Dimension>(
    model: &dyn AnyArray<'rt>,
    name: &str,
    zeros: bool,
) -> Result<DistArray<'rt, T, D>> {
    let Placement { group, name: other, number, layout, coords, periodic } =
        model.placement(Internal(()));
    if D::NDIM.is_some_and(|axes| axes != layout.ndim()) {
        fail!(Argument, "array \"{name}\" like \"{other}\", which has {} axes", layout.ndim());
    }
    layout.check_bytes(size_of::<T>())?;
    // Names need not be unique, so the number identifies the other array.
    let text = format!("\"{name}\" like \"{other}\" (number {number}), {}", elements::<T>());
    let part = collective::scope_of(Kind::CreateArray, &text, || {
        Exclusive::new(group, layout.part_len(group.rank()), zeros)
    })?;
    Ok(DistArray::of(Inner {
        group: group.clone(),
        name: name.into(),
        layout: layout.clone(),
        part,
        coords: coords.clone(),
        periodic: periodic.to_vec(),
        halo: OnceLock::new(),
        check: Checker::new(group),
    }))
}

impl<'rt, T: Element, D: Dimension> DistArray<'rt, T, D> {
    /// Creates an array of zeros with the shape, distribution, ghost cells and group of this array.
    /// The element type may differ. Collective.
    ///
    /// # Errors
    /// Returns `Argument` if the array exceeds the address space, and `Memory` on all ranks if the
    /// allocation fails on one rank.
    #[track_caller]
    pub fn like<U: Element>(&self, name: &str) -> Result<DistArray<'rt, U, D>> {
        public("DistArray::like", || placed_like(self, name, true))
    }
}
