//! Reductions of all elements to one value. All are collective, and every rank gets the same bits.

use super::dist_array::{DistArray, Inner};
use super::exclusive::Window;
use super::tree::{self, Magnitude, Orderless};
use super::whole::SLAB;
use crate::Element;
use crate::in_call::public;
use ndarray::{ArrayView, Dimension, LinalgScalar};
use portolan_base::error::Result;
use portolan_engine::collective::{self, Kind};

/// The least or largest element of an array; see [`DistArray::min`] and [`DistArray::max`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Extremum<T> {
    /// The element.
    pub value: T,
    /// The global index of the element, for each axis.
    pub index: Vec<usize>,
}

impl<'rt, T: Element, D: Dimension> DistArray<'rt, T, D> {
    /// Returns a value of the own elements of each rank, in the order of the ranks. Completes all
    /// transfers first. Collective.
    fn reduced<R: Element>(&self, own: impl FnOnce(ArrayView<'_, T, D>) -> R) -> Result<Vec<R>> {
        let Inner { part, group, .. } = &*self.inner;
        collective::scope(Kind::ReduceArray, part.segment().number(), || {
            let window = self.window(false);
            let own = part.while_exclusive(|| {
                self.check_races()?;
                Ok(own(part.view(&window)))
            })?;
            group.all_gather(own)
        })
    }
}

impl<'rt, T: Element + LinalgScalar, D: Dimension> DistArray<'rt, T, D> {
    /// Returns the sum of all elements. Collective. The rounding error grows with the logarithm of
    /// the number of elements. For a number of ranks, equal elements give equal bits.
    ///
    /// # Errors
    /// Returns `Mpi` if communication fails.
    #[track_caller]
    pub fn sum(&self) -> Result<T> {
        public("DistArray::sum", || Ok(total(self.reduced(tree::sum)?)))
    }

    /// Returns the sum of the products of corresponding elements of both arrays. Complex elements
    /// are not conjugated. Collective.
    ///
    /// # Errors
    /// Returns `Argument` if the shapes or groups differ, and `Mpi` if communication fails.
    #[track_caller]
    pub fn dot(&self, other: &DistArray<'_, T, D>) -> Result<T> {
        public("DistArray::dot", || {
            self.check_alike(other)?;
            if self.inner.layout.owns_like(&other.inner.layout) {
                let (part, window) = (&other.inner.part, other.window(false));
                // All transfers are complete, and no rank starts one before the call ends.
                let own = |view: ArrayView<'_, T, D>| {
                    part.as_exclusive(|| tree::dot(view, part.view(&window)))
                };
                return Ok(total(self.reduced(own)?));
            }
            self.sync_inner()?;
            let mut sum = T::zero();
            for slab in self.own_boxes().iter().flat_map(|b| b.slabs(SLAB)) {
                sum = sum + tree::dot(self.slab(&slab)?.view(), other.slab(&slab)?.view());
            }
            Ok(total(self.group().all_gather(sum)?))
        })
    }
}

fn total<T: LinalgScalar>(parts: Vec<T>) -> T {
    parts.into_iter().fold(T::zero(), |sum, x| sum + x)
}

impl<T: Magnitude, D: Dimension> DistArray<'_, T, D> {
    /// Returns the square root of the sum of the squared magnitudes of all elements. Collective.
    ///
    /// # Errors
    /// Returns `Mpi` if communication fails.
    #[track_caller]
    pub fn norm(&self) -> Result<f64> {
        public("DistArray::norm", || Ok(total(self.reduced(tree::squares)?).sqrt()))
    }
}

impl<T: Element + PartialOrd, D: Dimension> DistArray<'_, T, D> {
    /// Returns the least element and its index, or `None` if the array is empty. Of several equal
    /// minima, the first in row-major order is returned. Values that cannot be ordered, such as
    /// NaN, are ignored unless all values are of this kind. Collective.
    ///
    /// # Errors
    /// Returns `Mpi` if communication fails.
    #[track_caller]
    pub fn min(&self) -> Result<Option<Extremum<T>>> {
        public("DistArray::min", || self.best(|a, b| a < b, Orderless::Worst))
    }

    /// Returns the largest element and its index, by the rules of [`DistArray::min`]. Collective.
    ///
    /// # Errors
    /// Returns `Mpi` if communication fails.
    #[track_caller]
    pub fn max(&self) -> Result<Option<Extremum<T>>> {
        public("DistArray::max", || self.best(|a, b| a > b, Orderless::Worst))
    }

    /// Returns the first element that cannot be ordered, such as NaN, if there is one, and otherwise
    /// the least element, as [`DistArray::min`] does. Collective.
    ///
    /// # Errors
    /// Returns `Mpi` if communication fails.
    #[track_caller]
    pub fn minimum(&self) -> Result<Option<Extremum<T>>> {
        public("DistArray::minimum", || self.best(|a, b| a < b, Orderless::Best))
    }

    /// Returns the largest element by the rules of [`DistArray::minimum`]. Collective.
    ///
    /// # Errors
    /// Returns `Mpi` if communication fails.
    #[track_caller]
    pub fn maximum(&self) -> Result<Option<Extremum<T>>> {
        public("DistArray::maximum", || self.best(|a, b| a > b, Orderless::Best))
    }

    fn best(
        &self,
        better: impl Fn(T, T) -> bool,
        orderless: Orderless,
    ) -> Result<Option<Extremum<T>>> {
        let Inner { part, group, .. } = &*self.inner;
        let shape = self.shape();
        let (values, places) =
            collective::scope(Kind::ReduceArray, part.segment().number(), || {
                let window = self.window(false);
                let own = part.while_exclusive(|| {
                    self.check_races()?;
                    Ok(tree::best(part.view(&window), &better, orderless))
                })?;
                let own = own.map(|(value, at)| (value, self.row_major(&window, at)));
                let (value, at) = own.unwrap_or((T::zeroed(), u64::MAX));
                Ok::<_, crate::Error>((group.all_gather(value)?, group.all_gather(at)?))
            })?;
        let mut all: Option<(T, u64)> = None;
        for (value, at) in values.into_iter().zip(places).filter(|(_, at)| *at != u64::MAX) {
            let is_better = all.is_none_or(|(known, place)| {
                let wins = |a, b| tree::wins(a, b, &better, orderless);
                wins(value, known) || (at < place && !wins(known, value))
            });
            if is_better {
                all = Some((value, at));
            }
        }
        Ok(all.map(|(value, at)| {
            let mut rest = at as usize;
            let mut index = vec![0; shape.len()];
            for (i, n) in index.iter_mut().zip(shape).rev() {
                (*i, rest) = (rest % n, rest / n);
            }
            Extremum { value, index }
        }))
    }

    /// Converts a position in the window of this rank's elements to one in the array, both in
    /// row-major order.
    fn row_major(&self, window: &Window<D>, at: usize) -> u64 {
        let Inner { layout, coords, .. } = &*self.inner;
        let (mut rest, mut stride, mut place) = (at, 1, 0);
        let axes = window.shape.slice().iter().zip(self.shape()).enumerate();
        for (axis, (own, n)) in axes.rev() {
            let coord = coords.as_ref().map_or(0, |coords| coords[axis]);
            place += layout.global(axis, coord, rest % own) as u64 * stride;
            (rest, stride) = (rest / own, stride * *n as u64);
        }
        place
    }
}
