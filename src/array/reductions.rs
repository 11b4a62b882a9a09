//! Reductions of all elements to one value. All are collective, and every rank gets the same bits.

use super::dist_array::DistArray;
use super::whole::SLAB;
use crate::Element;
use crate::in_call::InCall;
use ndarray::{Dimension, LinalgScalar};
use num_complex::Complex;
use portolan_engine::error::Result;

/// The least or largest element of an array; see [`DistArray::min`] and [`DistArray::max`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Extremum<T> {
    /// The element.
    pub value: T,
    /// The global index of the element, for each axis.
    pub index: Vec<usize>,
}

/// A number type with a magnitude.
pub trait Magnitude: Element {
    /// Returns the square of the magnitude.
    fn squared(self) -> f64;
}

macro_rules! magnitude {
    ($($ty:ty: |$x:ident| $squared:expr;)+) => {
        $(impl Magnitude for $ty {
            #[inline]
            fn squared(self) -> f64 {
                let $x = self;
                $squared
            }
        })+
    };
}

magnitude! {
    f32: |x| f64::from(x) * f64::from(x);
    f64: |x| x * x;
    i8: |x| f64::from(x) * f64::from(x);
    u8: |x| f64::from(x) * f64::from(x);
    i16: |x| f64::from(x) * f64::from(x);
    u16: |x| f64::from(x) * f64::from(x);
    i32: |x| f64::from(x) * f64::from(x);
    u32: |x| f64::from(x) * f64::from(x);
    i64: |x| x as f64 * x as f64;
    u64: |x| x as f64 * x as f64;
    Complex<f32>: |x| f64::from(x.re).powi(2) + f64::from(x.im).powi(2);
    Complex<f64>: |x| x.norm_sqr();
}

impl<'rt, T: Element, D: Dimension> DistArray<'rt, T, D> {
    fn fold<A>(
        &self,
        start: A,
        mut fold: impl FnMut(A, ndarray::ArrayView<'_, T, D>) -> A,
    ) -> Result<A> {
        let mut value = start;
        for slab in self.own_boxes().iter().flat_map(|b| b.slabs(SLAB)) {
            value = fold(value, self.slab(&slab)?.view());
        }
        Ok(value)
    }

    /// Returns the best element according to `better`, the first in row-major order if several are
    /// equally good, and its index.
    fn best(&self, better: impl Fn(T, T) -> bool) -> Result<Option<Extremum<T>>> {
        self.sync_inner()?;
        let shape = self.shape();
        let mut best: Option<(T, u64)> = None;
        let take = |value: T, at: u64, best: &mut Option<(T, u64)>| {
            let wins = match *best {
                Some((known, place)) => {
                    better(value, known) || (at < place && !better(known, value))
                }
                None => true,
            };
            if wins {
                *best = Some((value, at));
            }
        };
        for slab in self.own_boxes().iter().flat_map(|b| b.slabs(SLAB)) {
            // In row-major order, so the first of equal elements of a slab wins.
            let elements = self.slab(&slab)?;
            let mut values = elements.iter().copied().enumerate();
            let Some(first) = values.next() else { continue };
            let (mut n, value) =
                values.fold(
                    first,
                    |(n, known), (other, value)| {
                        if better(value, known) { (other, value) } else { (n, known) }
                    },
                );
            let mut at = 0;
            let mut stride = 1;
            for (range, size) in slab.global.iter().zip(shape).rev() {
                at += (range.start + n % range.len()) as u64 * stride;
                (n, stride) = (n / range.len(), stride * *size as u64);
            }
            take(value, at, &mut best);
        }
        let group = self.group();
        let (value, at) = best.unwrap_or((T::zeroed(), u64::MAX));
        let (values, places) = (group.all_gather(value)?, group.all_gather(at)?);
        let mut all = None;
        for (value, at) in values.into_iter().zip(places).filter(|(_, at)| *at != u64::MAX) {
            take(value, at, &mut all);
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
}

/// Sums elements with a rounding error that grows with the logarithm of their number.
fn pairwise<T: LinalgScalar>(elements: &[T]) -> T {
    const FEW: usize = 512;
    if elements.len() <= FEW {
        return ndarray::aview1(elements).sum();
    }
    let (a, b) = elements.split_at(elements.len() / 2);
    pairwise(a) + pairwise(b)
}

impl<'rt, T: Element + LinalgScalar, D: Dimension> DistArray<'rt, T, D> {
    /// Returns the sum of all elements. Collective.
    ///
    /// # Errors
    /// Returns `Mpi` if communication fails.
    #[track_caller]
    pub fn sum(&self) -> Result<T> {
        const CALL: &str = "DistArray::sum";
        self.sync_inner().in_call(CALL)?;
        let add = |sum, slab: ndarray::ArrayView<'_, T, D>| match slab.as_slice() {
            Some(elements) => sum + pairwise(elements),
            None => sum + slab.sum(),
        };
        let own = self.fold(T::zero(), add).in_call(CALL)?;
        self.total(own).in_call(CALL)
    }

    /// Returns the sum of the products of corresponding elements of both arrays. Complex elements
    /// are not conjugated. Collective.
    ///
    /// # Errors
    /// Returns `Argument` if the shapes or groups differ, and `Mpi` if communication fails.
    #[track_caller]
    pub fn dot(&self, other: &DistArray<'_, T, D>) -> Result<T> {
        const CALL: &str = "DistArray::dot";
        self.check_alike(other).in_call(CALL)?;
        self.sync_inner().in_call(CALL)?;
        let mut sum = T::zero();
        for slab in self.own_boxes().iter().flat_map(|b| b.slabs(SLAB)) {
            let (a, b) = (self.slab(&slab).in_call(CALL)?, other.slab(&slab).in_call(CALL)?);
            // Both are freshly allocated, and therefore contiguous.
            let rows = (a.as_slice_memory_order(), b.as_slice_memory_order());
            if let (Some(a), Some(b)) = rows {
                sum = sum + ndarray::aview1(a).dot(&ndarray::aview1(b));
            }
        }
        self.total(sum).in_call(CALL)
    }

    fn total(&self, own: T) -> Result<T> {
        Ok(self.group().all_gather(own)?.into_iter().fold(T::zero(), |sum, x| sum + x))
    }
}

impl<T: Magnitude, D: Dimension> DistArray<'_, T, D> {
    /// Returns the square root of the sum of the squared magnitudes of all elements. Collective.
    ///
    /// # Errors
    /// Returns `Mpi` if communication fails.
    #[track_caller]
    pub fn norm(&self) -> Result<f64> {
        const CALL: &str = "DistArray::norm";
        self.sync_inner().in_call(CALL)?;
        let squares = |sum, slab: ndarray::ArrayView<'_, T, D>| {
            sum + slab.iter().map(|x| x.squared()).sum::<f64>()
        };
        let own = self.fold(0.0, squares).in_call(CALL)?;
        let all = self.group().all_gather(own).in_call(CALL)?;
        Ok(all.into_iter().sum::<f64>().sqrt())
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
        self.best(|a, b| a < b || (orderless(b) && !orderless(a))).in_call("DistArray::min")
    }

    /// Returns the largest element and its index, by the rules of [`DistArray::min`]. Collective.
    ///
    /// # Errors
    /// Returns `Mpi` if communication fails.
    #[track_caller]
    pub fn max(&self) -> Result<Option<Extremum<T>>> {
        self.best(|a, b| a > b || (orderless(b) && !orderless(a))).in_call("DistArray::max")
    }
}

fn orderless<T: PartialOrd>(value: T) -> bool {
    value.partial_cmp(&value).is_none()
}
