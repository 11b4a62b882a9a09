//! Ranges of a rank's part, with known bounds.

use crate::in_call::InCall;
use crate::{Accumulate, Element, Segment};
use portolan_base::error::{Result, fail};
use std::ops::{Bound, RangeBounds};

/// A range of elements in one rank's part of a segment. Created by [`Segment::at`].
///
/// ```no_run
/// # fn neighbours(segment: &portolan::Segment<'_, f64>) -> portolan::Result<()> {
/// let part = segment.at(1)?;
/// part.slice(10..13)?.put(&[1.0, 2.0, 3.0])?;
/// let tail = part.slice(90..)?.to_vec()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a range moves no data by itself"]
pub struct Remote<'a, 'rt, T: Element> {
    segment: &'a Segment<'rt, T>,
    rank: usize,
    start: usize,
    len: usize,
}

impl<'rt, T: Element> Segment<'rt, T> {
    /// Returns the part of `rank` as a range that can be sliced.
    ///
    /// # Errors
    /// Returns `Rank` if `rank` is outside the group.
    pub fn at(&self, rank: usize) -> Result<Remote<'_, 'rt, T>> {
        let len = self.len_at(rank).in_call("Segment::at")?;
        Ok(Remote { segment: self, rank, start: 0, len })
    }
}

impl<T: Element> Clone for Remote<'_, '_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Element> Copy for Remote<'_, '_, T> {}

impl<'a, 'rt, T: Element> Remote<'a, 'rt, T> {
    /// Returns the rank that owns the elements.
    pub fn rank(self) -> usize {
        self.rank
    }

    /// Returns the offset of the first element in the part, in elements.
    pub fn offset(self) -> usize {
        self.start
    }

    /// Returns the number of elements.
    pub fn len(self) -> usize {
        self.len
    }

    /// Returns whether the range is empty.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Returns a range of these elements.
    ///
    /// # Errors
    /// Returns `Address` if `range` does not lie inside.
    pub fn slice(self, range: impl RangeBounds<usize>) -> Result<Remote<'a, 'rt, T>> {
        self.slice_inner(range).in_call("Remote::slice")
    }

    fn slice_inner(self, range: impl RangeBounds<usize>) -> Result<Remote<'a, 'rt, T>> {
        let start = match range.start_bound() {
            Bound::Included(&n) => Some(n),
            Bound::Excluded(&n) => n.checked_add(1),
            Bound::Unbounded => Some(0),
        };
        let end = match range.end_bound() {
            Bound::Included(&n) => n.checked_add(1),
            Bound::Excluded(&n) => Some(n),
            Bound::Unbounded => Some(self.len),
        };
        match (start, end) {
            (Some(start), Some(end)) if start <= end && end <= self.len => {
                Ok(Remote { start: self.start + start, len: end - start, ..self })
            }
            _ => fail!(
                Address,
                "the range {:?} to {:?} leaves {} elements of rank {}",
                range.start_bound(),
                range.end_bound(),
                self.len,
                self.rank
            ),
        }
    }

    fn same_len(self, len: usize) -> Result<()> {
        if len != self.len {
            fail!(Argument, "{len} elements here, {} at rank {}", self.len, self.rank);
        }
        Ok(())
    }

    /// Puts `source` to these elements, with the completion of [`Segment::put`].
    ///
    /// # Errors
    /// Returns `Argument` if the lengths differ, or `Mpi` if the transfer fails.
    pub fn put(self, source: &[T]) -> Result<()> {
        const CALL: &str = "Remote::put";
        self.same_len(source.len()).in_call(CALL)?;
        self.segment.put_inner(self.rank, self.start, source).in_call(CALL)
    }

    /// Gets these elements into `target`, with the completion of [`Segment::get`].
    ///
    /// # Errors
    /// Fails as [`Remote::put`] does.
    pub fn get(self, target: &mut [T]) -> Result<()> {
        const CALL: &str = "Remote::get";
        self.same_len(target.len()).in_call(CALL)?;
        self.segment.get_inner(self.rank, self.start, target).in_call(CALL)
    }

    /// Gets these elements and returns them.
    ///
    /// # Errors
    /// Returns `Mpi` if the transfer fails.
    pub fn to_vec(self) -> Result<Vec<T>> {
        let mut copy = vec![T::zeroed(); self.len];
        self.segment.get_inner(self.rank, self.start, &mut copy).in_call("Remote::to_vec")?;
        Ok(copy)
    }
}

impl<T: Accumulate> Remote<'_, '_, T> {
    /// Adds `scale * source` to these elements, as [`Segment::accumulate`] does.
    ///
    /// # Errors
    /// Fails as [`Remote::put`] does.
    pub fn accumulate(self, scale: T, source: &[T]) -> Result<()> {
        const CALL: &str = "Remote::accumulate";
        self.same_len(source.len()).in_call(CALL)?;
        self.segment.accumulate_inner(self.rank, self.start, scale, source).in_call(CALL)
    }
}
