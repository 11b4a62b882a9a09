//! Patches: the elements of an array that a transfer selects, by global index. The local array of a
//! transfer has the shape of the patch: the number of indices that each range selects.
#![warn(clippy::arithmetic_side_effects)]

use ndarray::Dimension;
use portolan_base::error::{Result, fail};
use smallvec::SmallVec;
use std::fmt;
use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Span {
    pub start: isize,
    pub count: usize,
    pub step: usize,
}

/// A box of elements of a distributed array, by global index.
///
/// A patch has one range for each axis. An array or a slice of `usize` ranges converts to a patch,
/// as in `[2..5, 0..10]`; a single range converts to a patch of a one-dimensional array. Patches
/// with steps and periodic patches have their own constructors:
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
    /// Selects every `steps[i]`th index of the range of axis `i`, starting with its first index.
    ///
    /// # Errors
    /// Returns `Argument` if a step is 0.
    pub fn strided<const N: usize>(ranges: [Range<usize>; N], steps: [usize; N]) -> Result<Patch> {
        Patch::from(ranges).every(&steps)
    }

    /// Returns the patch with every `steps[i]`th index along axis `i`, starting with the first.
    ///
    /// # Errors
    /// Returns `Argument` if a step is 0, if the number of steps differs from the number of axes,
    /// or if a range already has a step and its product with the new one overflows.
    pub fn every(self, steps: &[usize]) -> Result<Patch> {
        if steps.contains(&0) || steps.len() != self.spans.len() {
            fail!(Argument, "steps {steps:?} for {self}: a step of at least 1 for each axis");
        }
        let mut stepped = self.clone();
        for (span, &step) in stepped.spans.iter_mut().zip(steps) {
            let Some(both) = span.step.checked_mul(step) else {
                fail!(Argument, "steps {steps:?} for {self}: their products are too large");
            };
            (span.count, span.step) = (span.count.div_ceil(step), both);
        }
        Ok(stepped)
    }

    /// Creates a patch whose ranges may leave the array: indices are modulo the length of the axis.
    pub fn periodic<const N: usize>(ranges: [Range<isize>; N]) -> Patch {
        Patch::periodic_of(&ranges)
    }

    /// Creates a periodic patch with any number of axes; see [`Patch::periodic`].
    pub fn periodic_of(ranges: &[Range<isize>]) -> Patch {
        let span = |r: &Range<isize>| Span {
            start: r.start,
            count: if r.is_empty() { 0 } else { r.end.abs_diff(r.start) },
            step: 1,
        };
        Patch { spans: ranges.iter().map(span).collect(), periodic: true }
    }

    /// Returns the number of axes.
    pub fn ndim(&self) -> usize {
        self.spans.len()
    }

    /// Returns the number of elements along each axis.
    pub fn shape(&self) -> Vec<usize> {
        self.counts().collect()
    }

    /// Returns the number of elements, or `usize::MAX` if the number overflows.
    pub fn len(&self) -> usize {
        if self.is_empty() { 0 } else { self.counts().fold(1, usize::saturating_mul) }
    }

    /// Returns whether the patch is empty.
    pub fn is_empty(&self) -> bool {
        self.counts().any(|n| n == 0)
    }

    pub(super) fn counts(&self) -> impl Iterator<Item = usize> + '_ {
        self.spans.iter().map(|s| s.count)
    }

    /// `D` must have the patch's number of axes.
    pub(super) fn dimension<D: Dimension>(&self) -> D {
        let mut shape = D::zeros(self.ndim());
        shape.slice_mut().iter_mut().zip(self.counts()).for_each(|(n, count)| *n = count);
        shape
    }

    /// Returns the spans if the patch is neither periodic nor strided. In a patch that was checked,
    /// their indices are contiguous and lie inside the array.
    #[inline]
    pub(super) fn plain(&self) -> Option<&[Span]> {
        let plain = !self.periodic && self.spans.iter().all(|s| s.step == 1);
        plain.then_some(&self.spans[..])
    }

    /// Returns a patch with the same elements in which no range is longer than the axis. A periodic
    /// patch repeats itself after that.
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
                    "array \"{name}\" of shape {shape:?}: the patch {self} is out of range for \
                     axis {axis}, whose bounds are 0..{n}"
                );
            }
        }
        // Other patches lie inside the array, whose size bounds theirs.
        if self.periodic && isize::try_from(self.len()).is_err() {
            fail!(
                Argument,
                "array \"{name}\" of shape {shape:?}: the patch {self} exceeds the address \
                 space"
            );
        }
        Ok(())
    }

    /// Splits the indices of an axis of length `n` at the wrap-around points and calls `part` for
    /// each range with its start, count, step, and the position of its first index in the patch.
    /// The patch must have been checked.
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
        // An axis has at most isize::MAX indices, so the sum of two indices does not overflow.
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

    /// Returns an upper bound for the number of calls that [`Patch::straight`] makes.
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
    /// Returns the last index, or `None` if the span is empty.
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

/// Creates a patch of a one-dimensional array.
impl From<Range<usize>> for Patch {
    #[inline]
    fn from(range: Range<usize>) -> Patch {
        Patch::from(&[range][..])
    }
}

/// Creates a patch of a one-dimensional array from a tuple, as `ndarray` writes such an index.
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
            // A start beyond isize::MAX lies outside any array, so it may be clamped.
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
