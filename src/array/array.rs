//! The handle: creation, freeing, and what is asked about an array.

use super::check::Checker;
use super::common::Dims;
use super::common::InCall;
use super::distribution::{Distribution, Layout, OwnBox};
use super::ghosts::{self, Halo};
use super::patch::Patch;
use crate::api::in_call::public;
use crate::api::views::Piece;
use crate::api::{Element, Exclusive, Group, Window};
use crate::collective::{self, Kind};
use crate::error::{Result, fail};
use ndarray::{Dimension, IntoDimension};
use std::cell::OnceCell;
use std::marker::PhantomData;
use std::ops::Range;

/// A dense array of `D` dimensions whose elements belong to the ranks of a group.
///
/// The handle is a pointer. It is made by [`DistArray::new`] or [`DistArray::with`] and given back
/// by [`DistArray::free`], all collective; the module's page has an example and the rules of
/// completion. An array that is dropped and not freed keeps its memory until the runtime ends,
/// as a segment does.
#[derive(Debug)]
pub struct DistArray<'rt, T: Element, D: Dimension> {
    pub(super) inner: Box<Inner<'rt, T>>,
    _dim: PhantomData<D>,
}

/// What a handle points to.
#[derive(Debug)]
pub(super) struct Inner<'rt, T: Element> {
    pub group: Group<'rt>,
    pub name: String,
    pub layout: Layout,
    pub part: Exclusive<'rt, T>,
    /// This rank's place in the grid.
    pub coords: Option<Dims>,
    pub periodic: Vec<bool>,
    /// How ghost cells are exchanged; made by the first exchange.
    pub halo: OnceCell<Halo<'rt>>,
    pub check: Option<Checker>,
}

/// How an array is made; see [`DistArray::with`].
///
/// ```
/// use portolan::array::{Distribution, Options};
/// let field = Options::named("temperature")
///     .distribution(Distribution::Rows)
///     .ghosts([1, 1])
///     .periodic([false, true]);
/// # let _ = field;
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    name: String,
    distribution: Distribution,
    ghosts: Vec<usize>,
    periodic: Vec<bool>,
    unfilled: bool,
}

impl Options {
    /// A name, which errors and reports show.
    pub fn named(name: impl Into<String>) -> Options {
        Options { name: name.into(), ..Options::default() }
    }

    /// Which rank owns which elements; [`Distribution::Block`] where it is not said.
    pub fn distribution(mut self, distribution: Distribution) -> Options {
        self.distribution = distribution;
        self
    }

    /// Ghost cells on both sides of a rank's block, by axis; none where it is not said.
    pub fn ghosts(mut self, widths: impl Into<Vec<usize>>) -> Options {
        self.ghosts = widths.into();
        self
    }

    /// Whether the ghost cells at the array's ends are those of the other end, by axis. No axis is
    /// periodic where it is not said, and cells beyond the array then keep what they hold, at
    /// first zero.
    pub fn periodic(mut self, axes: impl Into<Vec<bool>>) -> Options {
        self.periodic = axes.into();
        self
    }

    /// Leaves elements what the memory held before, as `NGA_Create` does, instead of zeros: for arrays
    /// that are filled at once, because creation is several times faster then.
    pub fn unfilled(mut self) -> Options {
        self.unfilled = true;
        self
    }
}

impl<'rt, T: Element, D: Dimension> DistArray<'rt, T, D> {
    /// Makes an array of zeros in nearly equal blocks over all ranks of a group. Collective: all
    /// ranks give the same shape.
    ///
    /// ```no_run
    /// # use portolan::array::DistArray;
    /// # fn make(rt: &portolan::Runtime) -> portolan::Result<()> {
    /// let matrix = DistArray::<f64, _>::new(&rt.world(), [1000, 2000])?;
    /// # matrix.free()
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Argument` for no axes, or more elements than an address space has; `Memory` on all ranks
    /// where it cannot be had on one; `State` after the group was freed.
    #[track_caller]
    pub fn new(
        group: &Group<'rt>,
        shape: impl IntoDimension<Dim = D>,
    ) -> Result<DistArray<'rt, T, D>> {
        public("DistArray::new", || {
            DistArray::make(group, shape.into_dimension(), Options::default())
        })
    }

    /// Makes an array, of zeros where nothing else is said, with a name, a distribution, ghost cells. Collective: all ranks
    /// give the same arguments.
    ///
    /// # Errors
    /// As for [`DistArray::new`]; `Argument` where the distribution does not fit the shape or the
    /// group, or blocks are smaller than the ghost cells that they have to fill.
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
            fail!(Argument, "array \"{name}\" of shape {shape:?}: periodic axes {periodic:?}");
        }
        let layout = Layout::new(shape, size_of::<T>(), group.size(), &distribution, &widths);
        let layout = layout.map_err(|e| {
            crate::Error::new(e.kind(), format!("array \"{name}\": {}", e.detail()))
        })?;
        ghosts::check(&name, &layout, &periodic)?;
        let fills = if unfilled { "unfilled" } else { "zeros" };
        let text = format!(
            "\"{name}\" of shape {shape:?}, {distribution:?}, ghosts {widths:?}, {fills}, of {}",
            std::any::type_name::<T>()
        );
        let part = collective::scope_of(Kind::CreateArray, &text, || {
            Exclusive::new(group, layout.part_len(group.rank()), !unfilled)
        })?;
        let coords = layout.coords(group.rank());
        let check = Checker::new(group);
        let halo = OnceCell::new();
        let group = group.clone();
        let inner = Inner { group, name, layout, part, coords, periodic, halo, check };
        Ok(DistArray { inner: Box::new(inner), _dim: PhantomData })
    }

    /// Makes an array of zeros with this one's shape, distribution, ghost cells and group, but
    /// perhaps of other elements. Collective.
    ///
    /// # Errors
    /// `Memory` on all ranks where it cannot be had on one.
    pub fn like<U: Element>(&self, name: &str) -> Result<DistArray<'rt, U, D>> {
        let Inner { group, layout, coords, periodic, .. } = &*self.inner;
        const CALL: &str = "DistArray::like";
        layout.check_bytes(size_of::<U>()).in_call(CALL)?;
        let text =
            format!("\"{name}\" like \"{}\", of {}", self.name(), std::any::type_name::<U>());
        let part = collective::scope_of(Kind::CreateArray, &text, || {
            Exclusive::new(group, layout.part_len(group.rank()), true)
        })
        .in_call(CALL)?;
        let inner = Inner {
            group: group.clone(),
            name: name.into(),
            layout: layout.clone(),
            part,
            coords: coords.clone(),
            periodic: periodic.clone(),
            halo: OnceCell::new(),
            check: Checker::new(group),
        };
        Ok(DistArray { inner: Box::new(inner), _dim: PhantomData })
    }

    /// Completes all transfers and frees the memory. Collective.
    ///
    /// # Errors
    /// `Mpi`, where the transfers cannot be completed; `State` where `PORTOLAN_CHECK` finds a race.
    #[track_caller]
    pub fn free(self) -> Result<()> {
        const CALL: &str = "DistArray::free";
        let number = self.inner.part.segment().number();
        collective::scope(Kind::FreeArray, number, || {
            let checked = self.check_races();
            let Inner { part, halo, .. } = *self.inner;
            if let Some(halo) = halo.into_inner() {
                halo.free()?;
            }
            part.free()?;
            checked
        })
        .in_call(CALL)
    }

    /// Completes what every rank has issued to any array, and waits for all ranks of the group:
    /// afterwards all see the same elements. Collective.
    ///
    /// # Errors
    /// `Mpi`; `State` where `PORTOLAN_CHECK` finds a race.
    #[track_caller]
    pub fn sync(&self) -> Result<()> {
        public("DistArray::sync", || self.sync_inner())
    }

    #[track_caller]
    pub(super) fn sync_inner(&self) -> Result<()> {
        let Inner { group, part, .. } = &*self.inner;
        collective::scope(Kind::SyncArray, part.segment().number(), || {
            group.barrier()?;
            self.check_races()
        })
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The ranks that have the array.
    pub fn group(&self) -> &Group<'rt> {
        &self.inner.group
    }

    /// Elements along each axis.
    pub fn shape(&self) -> &[usize] {
        &self.inner.layout.shape
    }

    /// The shape as `ndarray` has it.
    pub fn dim(&self) -> D::Pattern {
        dimension::<D>(self.shape()).into_pattern()
    }

    /// The number of axes.
    pub fn ndim(&self) -> usize {
        self.inner.layout.ndim()
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.shape().iter().product()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.shape().contains(&0)
    }

    /// Ranks along each axis.
    pub fn grid(&self) -> &[usize] {
        &self.inner.layout.grid
    }

    /// Width of the ghost cells, by axis.
    pub fn ghosts(&self) -> &[usize] {
        &self.inner.layout.ghosts
    }

    /// The patch of all elements.
    pub fn whole(&self) -> Patch {
        let ranges: Vec<Range<usize>> = self.shape().iter().map(|&n| 0..n).collect();
        Patch::from(&ranges[..])
    }

    /// The rank that owns an element.
    ///
    /// # Errors
    /// `Address` outside the array.
    pub fn owner(&self, index: impl IntoDimension<Dim = D>) -> Result<usize> {
        Ok(self.locate(index.into_dimension().slice()).in_call("DistArray::owner")?.0)
    }

    /// The global indices of what a rank owns; `None` where blocks are dealt out in turns, so
    /// that it is not one box.
    ///
    /// # Errors
    /// `Rank` outside the group.
    pub fn bounds(&self, rank: usize) -> Result<Option<Vec<Range<usize>>>> {
        self.check_rank(rank).in_call("DistArray::bounds")?;
        Ok(self.inner.layout.bounds(rank))
    }

    /// Elements along each axis of what a rank owns.
    ///
    /// # Errors
    /// `Rank` outside the group.
    pub fn extents(&self, rank: usize) -> Result<Vec<usize>> {
        self.check_rank(rank).in_call("DistArray::extents")?;
        Ok(self.inner.layout.extents(rank).to_vec())
    }

    /// The ranks that own elements of a patch, ascending.
    ///
    /// # Errors
    /// `Argument` or `Address` where the patch is not of this array.
    pub fn owners(&self, patch: impl Into<Patch>) -> Result<Vec<usize>> {
        let patch = patch.into();
        patch.check(self.name(), self.shape()).in_call("DistArray::owners")?;
        let owners = |pieces: &[Piece]| Ok(pieces.iter().map(|p| p.rank).collect());
        let once = patch.once(self.shape());
        let mut ranks: Vec<usize> =
            self.inner.layout.cut(&once, owners).in_call("DistArray::owners")?;
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

    /// An element's owner, and its place there.
    #[inline]
    pub(super) fn locate(&self, index: &[usize]) -> Result<(usize, usize)> {
        let Inner { layout, name, .. } = &*self.inner;
        let shape = &layout.shape;
        if index.len() != shape.len() || index.iter().zip(shape).any(|(i, n)| i >= n) {
            fail!(
                Address,
                "array \"{name}\" of shape {shape:?}: there is no element {index:?}; its bounds \
                 are 0..n along each axis"
            );
        }
        Ok(layout.locate(index))
    }

    /// This rank's elements in its part: with the ghost cells around them, or without.
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

    /// The boxes of elements that this rank owns.
    pub(super) fn own_boxes(&self) -> Vec<OwnBox> {
        self.inner.layout.own_boxes(self.inner.group.rank())
    }
}

fn empty_window<D: Dimension>(ndim: usize) -> Window<D> {
    let zeros = D::zeros(ndim);
    Window { start: 0, shape: zeros.clone(), strides: zeros }
}

/// Numbers as a dimension of `ndarray`.
pub(super) fn dimension<D: Dimension>(numbers: &[usize]) -> D {
    let mut dim = D::zeros(numbers.len());
    dim.slice_mut().copy_from_slice(numbers);
    dim
}
