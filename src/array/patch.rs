//! Patches: which elements of an array a transfer takes, by global index.
//!
//! A patch has one range for each axis. Its ranges may have a step, and may be *periodic*: an index
//! below 0 or beyond the axis is then taken modulo its length. The array that belongs to a patch has
//! its shape: as many elements along each axis as the range has.
#![warn(clippy::arithmetic_side_effects)]

use crate::error::{Result, fail};
use ndarray::Dimension;
use smallvec::SmallVec;
use std::fmt;
use std::ops::Range;

/// Indices of one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Span {
    pub start: isize,
    pub count: usize,
    pub step: usize,
}

/// A box of elements of a distributed array, by global index.
///
/// Ranges of `usize` make one, `[2..5, 0..10]`, and so does a slice of them; one range makes that of an
/// array of one axis. The others are made here:
///
/// ```
/// use portolan::array::Patch;
/// assert_eq!(Patch::from([2..5, 0..10]).shape(), [3, 10]);
/// assert_eq!(Patch::from(2..5).shape(), [3]);
/// // Every second row, every third column.
/// let strided = Patch::strided([0..7, 0..9], [2, 3])?;
/// assert_eq!(strided.shape(), [4, 3]);
/// // Around the corner: rows -1, 0 and 1.
/// let periodic = Patch::periodic([-1..2, 0..10]);
/// assert_eq!(periodic.shape(), [3, 10]);
/// # Ok::<(), portolan::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Patch {
    spans: SmallVec<[Span; 3]>,
    periodic: bool,
}

impl Patch {
    /// Every `steps[i]`th index of a range, from its first on.
    ///
    /// # Errors
    /// `Argument` for a step of 0.
    pub fn strided<const N: usize>(ranges: [Range<usize>; N], steps: [usize; N]) -> Result<Patch> {
        Patch::from(ranges).every(&steps)
    }

    /// The same ranges, with steps.
    ///
    /// # Errors
    /// `Argument` for a step of 0, if there are not as many steps as axes, or if a range has steps
    /// already and its length overflows.
    pub fn every(self, steps: &[usize]) -> Result<Patch> {
        if steps.contains(&0) || steps.len() != self.spans.len() {
            fail!(Argument, "steps {steps:?} for {self}: a step of at least 1 for each axis");
        }
        let mut stepped = self.clone();
        for (span, &step) in stepped.spans.iter_mut().zip(steps) {
            let Some(whole) = span.count.checked_mul(span.step) else {
                fail!(Argument, "steps {steps:?} for {self}: its ranges are too long");
            };
            (span.count, span.step) = (whole.div_ceil(step), step);
        }
        Ok(stepped)
    }

    /// Ranges that may leave their axes: indices are taken modulo the axis' length.
    pub fn periodic<const N: usize>(ranges: [Range<isize>; N]) -> Patch {
        Patch::periodic_of(&ranges)
    }

    /// [`Patch::periodic`] for any number of axes.
    pub fn periodic_of(ranges: &[Range<isize>]) -> Patch {
        let span = |r: &Range<isize>| Span {
            start: r.start,
            count: if r.is_empty() { 0 } else { r.end.abs_diff(r.start) },
            step: 1,
        };
        Patch { spans: ranges.iter().map(span).collect(), periodic: true }
    }

    /// The number of axes.
    pub fn ndim(&self) -> usize {
        self.spans.len()
    }

    /// Elements along each axis.
    pub fn shape(&self) -> Vec<usize> {
        self.counts().collect()
    }

    /// The number of elements; `usize::MAX` for a larger number.
    pub fn len(&self) -> usize {
        if self.is_empty() { 0 } else { self.counts().fold(1, usize::saturating_mul) }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.counts().any(|n| n == 0)
    }

    pub(super) fn counts(&self) -> impl Iterator<Item = usize> + '_ {
        self.spans.iter().map(|s| s.count)
    }

    /// The shape as `ndarray` has it; the patch has as many axes.
    pub(super) fn dimension<D: Dimension>(&self) -> D {
        let mut shape = D::zeros(self.ndim());
        shape.slice_mut().iter_mut().zip(self.counts()).for_each(|(n, count)| *n = count);
        shape
    }

    /// The spans of a patch whose indices follow each other and lie inside; it was checked.
    #[inline]
    pub(super) fn plain(&self) -> Option<&[Span]> {
        let plain = !self.periodic && self.spans.iter().all(|s| s.step == 1);
        plain.then_some(&self.spans[..])
    }

    /// A patch with the same elements in which every axis has at most `n` indices, the length of the
    /// array's axis: a periodic patch begins again after `n` steps.
    pub(super) fn once(&self, shape: &[usize]) -> Patch {
        let mut once = self.clone();
        once.spans.iter_mut().zip(shape).for_each(|(span, &n)| span.count = span.count.min(n));
        once
    }

    #[cfg(test)]
    pub(super) fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Checks the patch against the shape of the array `name`.
    #[inline]
    pub(super) fn check(&self, name: &str, shape: &[usize]) -> Result<()> {
        if self.spans.len() != shape.len() {
            fail!(
                Argument,
                "array \"{name}\" of shape {shape:?}: the patch {self} has {} axes",
                self.spans.len()
            );
        }
        for (axis, (span, &n)) in self.spans.iter().zip(shape).enumerate() {
            let inside = if self.periodic {
                n > 0 || span.count == 0
            } else {
                span.start >= 0 && span.last().is_none_or(|last| last < n as isize)
            };
            if !inside {
                fail!(
                    Address,
                    "array \"{name}\" of shape {shape:?}: the patch {self} leaves axis {axis}, \
                     whose bounds are 0..{n}"
                );
            }
        }
        // The size of the array bounds other patches.
        if self.periodic && isize::try_from(self.len()).is_err() {
            fail!(
                Argument,
                "array \"{name}\" of shape {shape:?}: the patch {self} has more elements than an \
                 address space"
            );
        }
        Ok(())
    }

    /// The parts of an axis of length `n` that are ranges of it: start, count, step, and the number
    /// in the patch of the first. The patch was checked.
    pub(super) fn straight(
        &self,
        axis: usize,
        n: usize,
        mut part: impl FnMut(usize, usize, usize, usize),
    ) {
        let Span { start, count, step } = self.spans[axis];
        if !self.periodic {
            return part(start.unsigned_abs(), count, step, 0);
        }
        // An axis has at most isize::MAX indices, so that sums of two of them can be counted.
        let length = isize::try_from(n).unwrap_or(isize::MAX);
        let mut index = start.checked_rem_euclid(length).unwrap_or(0).unsigned_abs();
        let mut done = 0usize;
        while done < count {
            let left = count.saturating_sub(done);
            let here = n.saturating_sub(index).div_ceil(step).min(left);
            part(index, here, step, done);
            done = done.saturating_add(here);
            let last = index.saturating_add(here.saturating_sub(1).saturating_mul(step));
            let next = last.saturating_add(step.checked_rem(n).unwrap_or(0));
            index = next.checked_rem(n).unwrap_or(0);
        }
    }

    /// The most calls that [`Patch::straight`] makes.
    pub(super) fn most_parts(&self, axis: usize, n: usize) -> usize {
        let Span { count, step, .. } = self.spans[axis];
        if !self.periodic {
            return 1;
        }
        let rounds = count.saturating_mul(step).checked_div(n).unwrap_or(0);
        rounds.saturating_add(2).min(count)
    }
}

impl Span {
    /// The last index; `None` where there is none.
    fn last(&self) -> Option<isize> {
        let far = self.count.checked_sub(1)?.saturating_mul(self.step);
        Some(self.start.saturating_add(isize::try_from(far).unwrap_or(isize::MAX)))
    }
}

impl<const N: usize> From<[Range<usize>; N]> for Patch {
    #[inline]
    fn from(ranges: [Range<usize>; N]) -> Patch {
        Patch::from(&ranges[..])
    }
}

/// Of an array of one axis.
impl From<Range<usize>> for Patch {
    #[inline]
    fn from(range: Range<usize>) -> Patch {
        Patch::from(&[range][..])
    }
}

/// The same, beside tuples of indices.
impl From<(Range<usize>,)> for Patch {
    #[inline]
    fn from((range,): (Range<usize>,)) -> Patch {
        Patch::from(range)
    }
}

impl From<&[Range<usize>]> for Patch {
    #[inline]
    fn from(ranges: &[Range<usize>]) -> Patch {
        let span = |r: &Range<usize>| Span {
            // What is beyond this is beyond any array.
            start: isize::try_from(r.start).unwrap_or(isize::MAX),
            count: r.end.saturating_sub(r.start),
            step: 1,
        };
        Patch { spans: ranges.iter().map(span).collect(), periodic: false }
    }
}

impl From<&Patch> for Patch {
    fn from(patch: &Patch) -> Patch {
        patch.clone()
    }
}

impl fmt::Display for Patch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, span) in self.spans.iter().enumerate() {
            let end = span.last().map_or(span.start, |last| last.saturating_add(1));
            let comma = if i > 0 { ", " } else { "" };
            write!(f, "{comma}{}..{end}", span.start)?;
            if span.step > 1 {
                write!(f, " step {}", span.step)?;
            }
        }
        f.write_str(if self.periodic { "] periodic" } else { "]" })
    }
}
