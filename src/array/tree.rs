//! Reductions of this rank's own elements, in place.
//!
//! Leaves of [`LEAF`] elements are combined in pairs, pairs of pairs, and so on. So the rounding error
//! of a sum grows with the logarithm of the number of elements, as in NumPy. The order depends only on
//! the shape, so equal elements give equal bits. Leaves are slices with several independent lanes,
//! which the compiler turns into vector instructions ([`Vectors`]).

use crate::Element;
use ndarray::{ArrayView, ArrayView1, Dimension, LinalgScalar};
use num_complex::Complex;
use portolan_engine::path::kernel::{Vectors, prefetch_after, with_vectors};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::ops::Add;

/// Elements of a leaf.
const LEAF: usize = 256;
/// Independent lanes of a leaf.
const LANES: usize = 16;

/// Combines results in pairs, or returns `None` if there are none.
#[inline(always)]
fn in_pairs<R>(leaves: impl Iterator<Item = R>, join: impl Fn(R, R) -> R) -> Option<R> {
    let mut parts: SmallVec<[R; 32]> = SmallVec::new();
    for (n, leaf) in leaves.enumerate() {
        let mut part = leaf;
        // The parts have the sizes of the binary digits of `n`.
        for _ in 0..n.trailing_ones() {
            part = match parts.pop() {
                Some(left) => join(left, part),
                None => part,
            };
        }
        parts.push(part);
    }
    parts.into_iter().rev().reduce(|right, left| join(left, right))
}

/// Returns the elements of a row, copied if they are not contiguous.
fn contiguous<T: Copy>(row: ArrayView1<'_, T>) -> Cow<'_, [T]> {
    match row.to_slice() {
        Some(slice) => Cow::Borrowed(slice),
        None => Cow::Owned(row.to_vec()),
    }
}

/// Leaves, and how their results are made and combined. `leaf` is `#[inline(always)]`.
struct Leaves<I, L, J> {
    leaves: I,
    leaf: L,
    join: J,
}

impl<I: Iterator, R, L: Fn(I::Item) -> R, J: Fn(R, R) -> R> Vectors for Leaves<I, L, J> {
    type Output = Option<R>;

    #[inline(always)]
    fn run(self) -> Option<R> {
        in_pairs(self.leaves.map(self.leaf), self.join)
    }
}

/// Combines the results of the leaves of a view.
fn of_view<T: Copy, D: Dimension, R>(
    view: ArrayView<'_, T, D>,
    leaf: impl Fn(&[T]) -> R + Copy,
    join: impl Fn(R, R) -> R + Copy,
) -> Option<R> {
    let of_slice = |x: &[T]| with_vectors(Leaves { leaves: x.chunks(LEAF), leaf, join });
    match view.as_slice() {
        Some(slice) => of_slice(slice),
        None => in_pairs(view.rows().into_iter().filter_map(|x| of_slice(&contiguous(x))), join),
    }
}

/// Returns the sum of lanes, in pairs.
#[inline(always)]
fn sum_of_lanes<T: LinalgScalar>(mut lanes: [T; LANES]) -> T {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] = lanes[lane] + lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// Returns the sum of the elements.
pub(super) fn sum<T: LinalgScalar, D: Dimension>(view: ArrayView<'_, T, D>) -> T {
    of_view(view, sum_of_leaf, T::add).unwrap_or_else(T::zero)
}

#[inline(always)]
fn sum_of_leaf<T: LinalgScalar>(leaf: &[T]) -> T {
    let (groups, rest) = leaf.as_chunks::<LANES>();
    let mut lanes = [T::zero(); LANES];
    for group in groups {
        prefetch_after(group);
        lanes.iter_mut().zip(group).for_each(|(lane, x)| *lane = *lane + *x);
    }
    rest.iter().fold(sum_of_lanes(lanes), |sum, x| sum + *x)
}

/// Returns the sum of the products of corresponding elements of views of the same shape.
pub(super) fn dot<T: LinalgScalar, D: Dimension>(
    a: ArrayView<'_, T, D>,
    b: ArrayView<'_, T, D>,
) -> T {
    let of_slices = |a: &[T], b: &[T]| {
        let leaves = a.chunks(LEAF).zip(b.chunks(LEAF));
        with_vectors(Leaves { leaves, leaf: dot_of_leaf, join: T::add })
    };
    let sum = match (a.as_slice(), b.as_slice()) {
        (Some(a), Some(b)) => of_slices(a, b),
        _ => {
            let rows = a.rows().into_iter().zip(b.rows());
            let of_rows = rows.filter_map(|(a, b)| of_slices(&contiguous(a), &contiguous(b)));
            in_pairs(of_rows, T::add)
        }
    };
    sum.unwrap_or_else(T::zero)
}

#[inline(always)]
fn dot_of_leaf<T: LinalgScalar>((a, b): (&[T], &[T])) -> T {
    let ((groups, rest), (others, last)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut lanes = [T::zero(); LANES];
    for (group, other) in groups.iter().zip(others) {
        prefetch_after(group);
        prefetch_after(other);
        for lane in 0..LANES {
            lanes[lane] = lanes[lane] + group[lane] * other[lane];
        }
    }
    rest.iter().zip(last).fold(sum_of_lanes(lanes), |sum, (a, b)| sum + *a * *b)
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

/// Returns the sum of the squared magnitudes of the elements.
pub(super) fn squares<T: Magnitude, D: Dimension>(view: ArrayView<'_, T, D>) -> f64 {
    of_view(view, squares_of_leaf, f64::add).unwrap_or(0.0)
}

#[inline(always)]
fn squares_of_leaf<T: Magnitude>(leaf: &[T]) -> f64 {
    let (groups, rest) = leaf.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for group in groups {
        prefetch_after(group);
        lanes.iter_mut().zip(group).for_each(|(lane, x)| *lane += x.squared());
    }
    rest.iter().fold(sum_of_lanes(lanes), |sum, x| sum + x.squared())
}

/// Returns whether a value cannot be ordered, such as NaN.
#[inline(always)]
#[expect(clippy::eq_op, reason = "such values differ from themselves")]
pub(super) fn is_orderless<T: PartialOrd>(value: T) -> bool {
    value != value
}

/// The rank of values that cannot be ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Orderless {
    /// Any other value is better.
    Worst,
    /// No other value is better.
    Best,
}

/// Returns the best element of a view, and its position in row-major order: the first of several
/// that are equally good. `better` is `>` or `<`.
pub(super) fn best<T: Element + PartialOrd, D: Dimension>(
    view: ArrayView<'_, T, D>,
    better: &impl Fn(T, T) -> bool,
    orderless: Orderless,
) -> Option<(T, usize)> {
    if let Some(slice) = view.as_slice() {
        return with_vectors(Best { slice, better, orderless });
    }
    let mut found: Option<(T, usize)> = None;
    let mut copy = Vec::new();
    for (n, row) in view.rows().into_iter().enumerate() {
        copy.clear();
        copy.extend(row.iter().copied());
        let of_row = with_vectors(Best { slice: &copy, better, orderless });
        let Some((value, at)) = of_row else { continue };
        if found.is_none_or(|(known, _)| wins(value, known, better, orderless)) {
            found = Some((value, n * copy.len() + at));
        }
    }
    found
}

/// Returns whether a value is better than another one.
pub(super) fn wins<T: PartialOrd + Copy>(
    value: T,
    known: T,
    better: &impl Fn(T, T) -> bool,
    orderless: Orderless,
) -> bool {
    let (a, b) = match orderless {
        Orderless::Worst => (known, value),
        Orderless::Best => (value, known),
    };
    better(value, known) || is_orderless(a) && !is_orderless(b)
}

struct Best<'a, T, B> {
    slice: &'a [T],
    better: &'a B,
    orderless: Orderless,
}

impl<T: Element + PartialOrd, B: Fn(T, T) -> bool> Vectors for Best<'_, T, B> {
    type Output = Option<(T, usize)>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        best_of_slice(self.slice, self.better, self.orderless)
    }
}

/// First finds the best value of each leaf, without positions, and then the position in one leaf.
#[inline(always)]
fn best_of_slice<T: Element + PartialOrd>(
    slice: &[T],
    better: &impl Fn(T, T) -> bool,
    orderless: Orderless,
) -> Option<(T, usize)> {
    let is_best = orderless == Orderless::Best;
    let start = slice.iter().position(|x| !is_orderless(*x)).filter(|at| *at == 0 || !is_best);
    let Some(mut place) = start else { return slice.first().map(|x| (*x, 0)) };
    let mut best = slice[place];
    for (n, leaf) in slice[place..].chunks(LEAF).enumerate() {
        let first = start.unwrap_or(0) + n * LEAF;
        let (groups, rest) = leaf.as_chunks::<LANES>();
        if is_best {
            // Without a branch for each element.
            let orderless = |found, x: &T| found | u64::from(is_orderless(*x));
            let of_groups = groups.iter().fold(0, |found, group| {
                prefetch_after(group);
                group.iter().fold(found, orderless)
            });
            if rest.iter().fold(of_groups, orderless) != 0 {
                let at = leaf.iter().position(|x| is_orderless(*x)).unwrap_or(0);
                return Some((leaf[at], first + at));
            }
        }
        let choose = |known: T, x: T| if better(x, known) { x } else { known };
        let mut lanes = [best; LANES];
        for group in groups {
            prefetch_after(group);
            for lane in 0..LANES {
                lanes[lane] = choose(lanes[lane], group[lane]);
            }
        }
        let value = lanes.iter().chain(rest).copied().fold(best, choose);
        if better(value, best) {
            (best, place) = (value, first);
        }
    }
    let at = slice[place..].iter().position(|x| *x == best).unwrap_or(0);
    Some((best, place + at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array1, Array2, s};

    #[test]
    fn sums_of_many_small_numbers_are_accurate() {
        let x = Array1::from_elem(10_000_000, 0.1f32);
        let exact = f64::from(0.1f32) * 1e7;
        assert!((f64::from(sum(x.view())) / exact - 1.0).abs() < 4e-7);
        assert!(
            (f64::from(dot(x.view(), x.view())) / (exact * f64::from(0.1f32)) - 1.0).abs() < 4e-7
        );
        assert!((squares(x.view()) / (exact * f64::from(0.1f32)) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn every_element_counts_once() {
        let whole = Array2::from_shape_fn((70, 45), |(i, j)| (i * 45 + j) as i64);
        for (rows, columns) in
            [(0..70, 0..45), (3..66, 2..40), (1..2, 0..45), (0..70, 7..8), (5..5, 0..3)]
        {
            let view = whole.slice(s![rows, columns]);
            let all: Vec<i64> = view.iter().copied().collect();
            assert_eq!(sum(view), all.iter().sum::<i64>());
            assert_eq!(dot(view, view), all.iter().map(|x| x * x).sum::<i64>());
            assert_eq!(squares(view), all.iter().map(|x| (x * x) as f64).sum::<f64>());
            let most = best(view, &|a, b| a > b, Orderless::Best);
            assert_eq!(most, all.last().map(|x| (*x, all.len() - 1)));
            let least = best(view, &|a, b| a < b, Orderless::Worst);
            assert_eq!(least, all.first().map(|x| (*x, 0)));
        }
    }

    #[test]
    fn the_first_of_equal_elements_is_the_best() {
        let more = |a: f64, b: f64| a > b;
        for n in [1, 7, 8, 9, 127, 128, 129, 3000] {
            for at in [0, n / 3, n / 2, n - 1] {
                let mut x = vec![1.0; n];
                x[at..].fill(5.0);
                for orderless in [Orderless::Best, Orderless::Worst] {
                    assert_eq!(best_of_slice(&x, &more, orderless), Some((5.0, at)));
                }
                x[at] = f64::NAN;
                let (value, place) = best_of_slice(&x, &more, Orderless::Best).unwrap();
                assert!(value.is_nan() && place == at);
                let (value, place) = best_of_slice(&x, &more, Orderless::Worst).unwrap();
                let rest = if at + 1 < n { (5.0, at + 1) } else { (1.0, 0) };
                assert!(n == 1 && value.is_nan() || (value, place) == rest, "{n} {at} {value}");
            }
        }
        let x = vec![f64::NAN; 300];
        assert_eq!(best_of_slice(&x, &more, Orderless::Worst).unwrap().1, 0);
        assert_eq!(best_of_slice::<f64>(&[], &more, Orderless::Worst), None);
    }
}
