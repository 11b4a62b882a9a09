//! Reductions of this rank's own elements, in place.
//!
//! The elements are split in halves down to [`LEAF`] elements, and the results of the halves are
//! combined. So the rounding error of a sum grows with the logarithm of the number of elements, as
//! in NumPy. The order depends only on the shape, so equal elements give equal bits. Leaves are
//! slices with several independent lanes, which the compiler turns into vector instructions.

use super::reductions::Magnitude;
use crate::Element;
use ndarray::{ArrayView, Axis, Dimension, LinalgScalar, aview1};

/// Elements of a leaf.
const LEAF: usize = 128;
/// Independent lanes of a leaf.
const LANES: usize = 8;

/// Where to split `n` elements.
fn middle(n: usize) -> usize {
    let half = n / 2;
    if half > LANES { half - half % LANES } else { half }
}

fn longest<T, D: Dimension>(view: &ArrayView<'_, T, D>) -> Axis {
    // The outermost, because the rows of a part are contiguous.
    Axis(view.shape().iter().position(|n| *n > 1).unwrap_or(0))
}

/// Combines the results of the leaves of a view, which has elements.
fn of_view<T: Copy, D: Dimension, R>(
    view: ArrayView<'_, T, D>,
    leaf: &impl Fn(&[T]) -> R,
    join: &impl Fn(R, R) -> R,
) -> R {
    if let Some(slice) = view.as_slice() {
        return of_slice(slice, leaf, join);
    }
    if view.len() <= LEAF {
        return leaf(&view.iter().copied().collect::<Vec<T>>());
    }
    let axis = longest(&view);
    let at = view.len_of(axis) / 2;
    let (a, b) = view.split_at(axis, at);
    join(of_view(a, leaf, join), of_view(b, leaf, join))
}

fn of_slice<T, R>(slice: &[T], leaf: &impl Fn(&[T]) -> R, join: &impl Fn(R, R) -> R) -> R {
    if slice.len() <= LEAF {
        return leaf(slice);
    }
    let (a, b) = slice.split_at(middle(slice.len()));
    join(of_slice(a, leaf, join), of_slice(b, leaf, join))
}

/// Returns the sum of the elements.
pub(super) fn sum<T: LinalgScalar, D: Dimension>(view: ArrayView<'_, T, D>) -> T {
    if view.is_empty() {
        return T::zero();
    }
    of_view(view, &|slice: &[T]| aview1(slice).sum(), &|a, b| a + b)
}

/// Returns the sum of the products of corresponding elements of views of the same shape.
pub(super) fn dot<T: LinalgScalar, D: Dimension>(
    a: ArrayView<'_, T, D>,
    b: ArrayView<'_, T, D>,
) -> T {
    if let (Some(a), Some(b)) = (a.as_slice(), b.as_slice()) {
        return dot_of_slices(a, b);
    }
    if a.len() <= LEAF {
        let copy = |view: &ArrayView<'_, T, D>| view.iter().copied().collect::<Vec<T>>();
        return dot_of_slices(&copy(&a), &copy(&b));
    }
    let axis = longest(&a);
    let at = a.len_of(axis) / 2;
    let ((a, c), (b, d)) = (a.split_at(axis, at), b.split_at(axis, at));
    dot(a, b) + dot(c, d)
}

fn dot_of_slices<T: LinalgScalar>(a: &[T], b: &[T]) -> T {
    if a.len() > LEAF {
        let at = middle(a.len());
        let ((a, c), (b, d)) = (a.split_at(at), b.split_at(at));
        return dot_of_slices(a, b) + dot_of_slices(c, d);
    }
    let ((groups, rest), (others, last)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut lanes = [T::zero(); LANES];
    for (group, other) in groups.iter().zip(others) {
        for lane in 0..LANES {
            lanes[lane] = lanes[lane] + group[lane] * other[lane];
        }
    }
    let rest = rest.iter().zip(last).fold(T::zero(), |sum, (a, b)| sum + *a * *b);
    lanes.iter().fold(rest, |sum, lane| sum + *lane)
}

/// Returns the sum of the squared magnitudes of the elements.
pub(super) fn squares<T: Magnitude, D: Dimension>(view: ArrayView<'_, T, D>) -> f64 {
    let leaf = |slice: &[T]| {
        let (groups, rest) = slice.as_chunks::<LANES>();
        let mut lanes = [0.0; LANES];
        for group in groups {
            lanes.iter_mut().zip(group).for_each(|(lane, x)| *lane += x.squared());
        }
        lanes.iter().sum::<f64>() + rest.iter().map(|x| x.squared()).sum::<f64>()
    };
    if view.is_empty() { 0.0 } else { of_view(view, &leaf, &|a, b| a + b) }
}

/// Returns whether a value cannot be ordered, such as NaN.
pub(super) fn is_orderless<T: PartialOrd>(value: T) -> bool {
    value.partial_cmp(&value).is_none()
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
        return best_of_slice(slice, better, orderless);
    }
    let mut found: Option<(T, usize)> = None;
    let mut copy = Vec::new();
    for (n, row) in view.rows().into_iter().enumerate() {
        copy.clear();
        copy.extend(row.iter().copied());
        let Some((value, at)) = best_of_slice(&copy, better, orderless) else { continue };
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

/// First finds the best value of each leaf, without positions, and then the position in one leaf.
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
        // Without a branch for each element.
        let orderless = |found, x: &T| found | u64::from(is_orderless(*x));
        if is_best && leaf.iter().fold(0, orderless) != 0 {
            let at = leaf.iter().position(|x| is_orderless(*x)).unwrap_or(0);
            return Some((leaf[at], first + at));
        }
        let (groups, rest) = leaf.as_chunks::<LANES>();
        let choose = |known: T, x: T| if better(x, known) { x } else { known };
        let mut lanes = [best; LANES];
        for group in groups {
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
