//! The handle of a distributed array: creation, freeing, and queries.

use super::axis::Dims;
use super::check::Checker;
use super::distribution::{Distribution, Layout, OwnBox};
use super::exclusive::{Exclusive, Window};
use super::ghosts::{self, Halo};
use super::patch::Patch;
use super::views::Fragment;
use crate::in_call::InCall;
use crate::in_call::public;
use crate::{Element, Group};
use ndarray::{Dimension, IntoDimension};
use portolan_base::error::{Result, fail};
use portolan_engine::collective::{self, Kind};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::OnceLock;

/// A dense array of `D` dimensions whose elements are distributed over the ranks of a group.
///
/// The handle is one pointer. The [module documentation](super) has an example and the rules of
/// completion. An array that is dropped without being freed keeps its memory until the runtime
/// ends, as a segment does.
#[derive(Debug)]
pub struct DistArray<'rt, T: Element, D: Dimension> {
    pub(super) inner: Box<Inner<'rt, T>>,
    _dim: PhantomData<D>,
}

#[derive(Debug)]
pub(super) struct Inner<'rt, T: Element> {
    pub group: Group<'rt>,
    pub name: String,
    pub layout: Layout,
    pub part: Exclusive<'rt, T>,
    /// Coordinates of this rank in the grid, or `None` if the rank lies outside the grid.
    pub coords: Option<Dims>,
    pub periodic: Vec<bool>,
    /// The ghost cell exchange, prepared by the first update.
    pub halo: OnceLock<Halo<'rt>>,
    pub check: Option<Checker>,
}

/// The meaning of the ghost cells beyond the ends of an axis; see [`Options::boundaries`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Boundary {
    /// Updates do not write ghost cells beyond the ends of the array. These cells start as zero,
    /// unless the array is created with [`Options::unfilled`].
    #[default]
    Open,
    /// The ghost cells beyond one end of the array hold the elements of the other end.
    Periodic,
}

/// Options for creating an array; see [`DistArray::with`].
///
/// ```
/// use portolan::array::{Boundary, Distribution, Options};
/// let field = Options::named("temperature")
///     .distribution(Distribution::Rows)
///     .ghosts([1, 1])
///     .boundaries([Boundary::Open, Boundary::Periodic]);
/// # let _ = field;
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use = "options create no array; pass them to `DistArray::with`"]
pub struct Options {
    name: String,
    distribution: Distribution,
    ghosts: Vec<usize>,
    periodic: Vec<bool>,
    unfilled: bool,
}

impl Options {
    /// Creates options with a name for the array. Errors and reports show the name.
    pub fn named(name: impl Into<String>) -> Options {
        Options { name: name.into(), ..Options::default() }
    }

    /// Sets which rank owns which elements. The default is [`Distribution::Block`].
    pub fn distribution(mut self, distribution: Distribution) -> Options {
        self.distribution = distribution;
        self
    }

    /// Sets the width of the ghost cells on both sides of a rank's block, in elements for each
    /// axis. The default is no ghost cells.
    pub fn ghosts(mut self, widths: impl Into<Vec<usize>>) -> Options {
        self.ghosts = widths.into();
        self
    }

    /// Sets the boundary of the array on each axis. The default is [`Boundary::Open`] on all axes.
    pub fn boundaries(mut self, axes: impl Into<Vec<Boundary>>) -> Options {
        self.periodic = axes.into().into_iter().map(|axis| axis == Boundary::Periodic).collect();
        self
    }

    /// Leaves the initial elements unspecified, as `NGA_Create` does, instead of zero. Creation is
    /// then several times faster. Use this for arrays that are filled immediately.
    pub fn unfilled(mut self) -> Options {
        self.unfilled = true;
        self
    }
}

/// Describes an element type for the comparison of ranks. Different types can have the same name.
pub(super) fn elements<T>() -> String {
    format!("{}-byte elements of type {}", size_of::<T>(), std::any::type_name::<T>())
}

impl<'rt, T: Element, D: Dimension> DistArray<'rt, T, D> {
    /// Creates an array of zeros, in nearly equal blocks over all ranks of a group. Collective: all
    /// ranks pass the same shape.
    ///
    /// ```no_run
    /// # use portolan::array::DistArray;
    /// # fn make(rt: &portolan::Runtime) -> portolan::Result<()> {
    /// let matrix = DistArray::<f64, _>::zeros(&rt.world(), [1000, 2000])?;
    /// # matrix.free()
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns `Argument` if the shape has no axes or more than 16, or the array exceeds the
    /// address space, `Memory` on all ranks if the allocation fails on one rank, and `State` if the
    /// group was freed.
    #[track_caller]
    #[doc(alias = "new")]
    pub fn zeros(
        group: &Group<'rt>,
        shape: impl IntoDimension<Dim = D>,
    ) -> Result<DistArray<'rt, T, D>> {
        public("DistArray::zeros", || {
            DistArray::make(group, shape.into_dimension(), Options::default())
        })
    }

    /// Creates an array with the given name, distribution and ghost cells. The elements are zero
    /// unless the options say otherwise. Collective: all ranks pass the same arguments.
    ///
    /// # Errors
    /// Returns the same errors as [`DistArray::zeros`], and `Argument` if the distribution does not
    /// fit the shape or the group, or if a block is smaller than the ghost cells that it has to
    /// fill.
    #[track_caller]
    pub fn with(
        group: &Group<'rt>,
        shape: impl IntoDimension<Dim = D>,
        options: Options,
    ) -> Result<DistArray<'rt, T, D>> {
        public("DistArray::with", || DistArray::make(group, shape.into_dimension(), options))
    }

    fn make(group: &Group<'rt>, shape: D, options: Options) -> Result<DistArray<'rt, T, D>> {
        let shape = shape.slice();
        let Options { mut name, distribution, ghosts: mut widths, mut periodic, unfilled } =
            options;
        if name.is_empty() {
            name = "unnamed".into();
        }
        if widths.is_empty() {
            widths = vec![0; shape.len()];
        }
        if periodic.is_empty() {
            periodic = vec![false; shape.len()];
        }
        if periodic.len() != shape.len() {
            fail!(
                Argument,
                "array \"{name}\" of shape {shape:?} has {} axes, but boundaries are given for {}",
                shape.len(),
                periodic.len()
            );
        }
        let layout = Layout::new(shape, size_of::<T>(), group.size(), &distribution, &widths);
        let layout = layout.map_err(|e| {
            crate::Error::new(e.kind(), format!("array \"{name}\": {}", e.detail()))
        })?;
        ghosts::check(&name, &layout, &periodic)?;
        let fills = if unfilled { "unfilled" } else { "zeros" };
        let ends =
            if periodic.contains(&true) { format!("periodic {periodic:?}, ") } else { "".into() };
        let text = format!(
            "\"{name}\" of shape {shape:?}, {}, {distribution:?}, ghosts {widths:?}, {ends}{fills}",
            elements::<T>()
        );
        let part = collective::scope_of(Kind::CreateArray, &text, || {
            Exclusive::new(group, layout.part_len(group.rank()), !unfilled)
        })?;
        let coords = layout.coords(group.rank());
        let check = Checker::new(group);
        let halo = OnceLock::new();
        let group = group.clone();
        Ok(DistArray::of(Inner { group, name, layout, part, coords, periodic, halo, check }))
    }

    pub(super) fn of(inner: Inner<'rt, T>) -> DistArray<'rt, T, D> {
        DistArray { inner: Box::new(inner), _dim: PhantomData }
    }

    /// Completes all transfers and frees the memory. Collective.
    ///
    /// # Errors
    /// Fails as [`DistArray::access`] does.
    #[track_caller]
    pub fn free(self) -> Result<()> {
        let number = self.inner.part.segment().number();
        let body = || {
            let checked = self.check_races();
            let Inner { part, halo, .. } = *self.inner;
            if let Some(halo) = halo.into_inner() {
                halo.free()?;
            }
            part.free()?;
            checked
        };
        public("DistArray::free", || collective::scope(Kind::FreeArray, number, body))
    }

    /// Completes all operations that the ranks of the group have issued, to any array, and waits
    /// for all ranks. Afterwards all ranks see the same elements. Collective.
    ///
    /// # Errors
    /// Fails as [`DistArray::access`] does.
    #[track_caller]
    pub fn sync(&self) -> Result<()> {
        public("DistArray::sync", || self.sync_inner())
    }

    pub(super) fn sync_inner(&self) -> Result<()> {
        let Inner { group, part, .. } = &*self.inner;
        collective::scope(Kind::SyncArray, part.segment().number(), || {
            group.barrier()?;
            self.check_races()
        })
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Gives the array another name.
    pub fn set_name(&mut self, name: impl Into<String>) {
        self.inner.name = name.into();
    }

    /// Returns the group of ranks that share the array.
    pub fn group(&self) -> &Group<'rt> {
        &self.inner.group
    }

    /// Returns the number of elements along each axis.
    pub fn shape(&self) -> &[usize] {
        &self.inner.layout.shape
    }

    /// Returns the shape in the form that `ndarray` uses for `D`, such as a tuple.
    pub fn dim(&self) -> D::Pattern {
        dimension::<D>(self.shape()).into_pattern()
    }

    /// Returns the number of axes.
    pub fn ndim(&self) -> usize {
        self.inner.layout.ndim()
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.shape().iter().product()
    }

    /// Returns whether the array is empty.
    pub fn is_empty(&self) -> bool {
        self.shape().contains(&0)
    }

    /// Returns the number of ranks along each axis.
    pub fn grid(&self) -> &[usize] {
        &self.inner.layout.grid
    }

    /// Returns the width of the ghost cells along each axis, in elements.
    pub fn ghosts(&self) -> &[usize] {
        &self.inner.layout.ghosts
    }

    /// Returns the patch of all elements.
    pub fn whole(&self) -> Patch {
        let ranges: Vec<Range<usize>> = self.shape().iter().map(|&n| 0..n).collect();
        Patch::from(&ranges[..])
    }

    /// Returns the rank that owns an element.
    ///
    /// # Errors
    /// Returns `Address` if the index lies outside the array.
    pub fn owner(&self, index: impl IntoDimension<Dim = D>) -> Result<usize> {
        Ok(self.locate(index.into_dimension().slice()).in_call("DistArray::owner")?.0)
    }

    /// Returns the global indices that a rank owns, or `None` if a block-cyclic layout spreads them
    /// over several boxes.
    ///
    /// # Errors
    /// Returns `Rank` if the rank lies outside the group.
    pub fn bounds(&self, rank: usize) -> Result<Option<Vec<Range<usize>>>> {
        self.check_rank(rank).in_call("DistArray::bounds")?;
        Ok(self.inner.layout.bounds(rank))
    }

    /// Returns the number of elements that a rank owns along each axis.
    ///
    /// # Errors
    /// Returns `Rank` if the rank lies outside the group.
    pub fn extents(&self, rank: usize) -> Result<Vec<usize>> {
        self.check_rank(rank).in_call("DistArray::extents")?;
        Ok(self.inner.layout.extents(rank).to_vec())
    }

    /// Returns the ranks that own elements of a patch, in ascending order.
    ///
    /// # Errors
    /// Returns `Argument` if the patch has another number of axes than the array, and `Address` if
    /// it leaves the array.
    pub fn owners(&self, patch: impl Into<Patch>) -> Result<Vec<usize>> {
        let patch = patch.into();
        patch.check(self.name(), self.shape()).in_call("DistArray::owners")?;
        let owners = |fragments: &[Fragment]| Ok(fragments.iter().map(|p| p.rank).collect());
        let once = patch.once(self.shape());
        let mut ranks: Vec<usize> =
            self.inner.layout.partition(&once, owners).in_call("DistArray::owners")?;
        ranks.sort_unstable();
        ranks.dedup();
        Ok(ranks)
    }

    fn check_rank(&self, rank: usize) -> Result<()> {
        let size = self.inner.group.size();
        if rank >= size {
            fail!(Rank, "array \"{}\": rank {rank} in a group of {size}", self.name());
        }
        Ok(())
    }

    /// Returns the owner of an element and its offset in the owner's part.
    #[inline]
    pub(super) fn locate(&self, index: &[usize]) -> Result<(usize, usize)> {
        let Inner { layout, name, .. } = &*self.inner;
        let shape = &layout.shape;
        if index.len() != shape.len() {
            fail!(
                Address,
                "array \"{name}\" of shape {shape:?}: index {index:?} has {} axes, the array {}",
                index.len(),
                shape.len()
            );
        }
        if index.iter().zip(shape).any(|(i, n)| i >= n) {
            fail!(
                Address,
                "array \"{name}\" of shape {shape:?}: index {index:?} is out of range; the \
                 bounds are 0..n along each axis"
            );
        }
        Ok(layout.locate(index))
    }

    /// Returns the window of this rank's elements in its part, with or without ghost cells.
    pub(super) fn window(&self, ghosts: bool) -> Window<D> {
        let layout = &self.inner.layout;
        let Some(coords) = &self.inner.coords else {
            return empty_window(layout.ndim());
        };
        let extents = layout.extents(self.inner.group.rank());
        if extents.contains(&0) {
            return Window { shape: dimension::<D>(&extents), ..empty_window(layout.ndim()) };
        }
        let (padded, strides) = layout.part(coords);
        let inside = strides.iter().zip(&layout.ghosts).map(|(s, g)| s * g).sum();
        let (start, shape) = if ghosts { (0, &padded) } else { (inside, &extents) };
        Window { start, shape: dimension(shape), strides: dimension(&strides) }
    }

    pub(super) fn own_boxes(&self) -> Vec<OwnBox> {
        self.inner.layout.own_boxes(self.inner.group.rank())
    }
}

fn empty_window<D: Dimension>(ndim: usize) -> Window<D> {
    let zeros = D::zeros(ndim);
    Window { start: 0, shape: zeros.clone(), strides: zeros }
}

pub(super) fn dimension<D: Dimension>(numbers: &[usize]) -> D {
    let mut dim = D::zeros(numbers.len());
    dim.slice_mut().copy_from_slice(numbers);
    dim
}
