//! Lists of elements, and counters. Each owner of listed elements has one transfer, all in flight.

use super::check::Kind;
use super::dist_array::DistArray;
use super::distribution::Layout;
use super::views::Runs;
use crate::in_call::InCall;
use crate::transfer::Pending;
use crate::{Accumulate, Atomic, Element};
use ndarray::{Array, ArrayView2, Dimension, IntoDimension};
use portolan_base::error::{Result, fail};
use portolan_base::thread::PublicCall;
use std::collections::HashMap;

impl<T: Element, D: Dimension> DistArray<'_, T, D> {
    /// Gets elements and returns them in the order of their indices.
    ///
    /// ```no_run
    /// # fn diagonal(a: &portolan::array::DistArray<'_, f64, ndarray::Ix2>) -> portolan::Result<f64> {
    /// let indices: Vec<[usize; 2]> = (0..100).map(|i| [i, i]).collect();
    /// let diagonal = a.gather(&indices)?;
    /// # Ok(diagonal.iter().sum())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns `Address` if an index lies outside the array.
    #[track_caller]
    pub fn gather<I>(&self, indices: &[I]) -> Result<Vec<T>>
    where
        I: Clone + IntoDimension<Dim = D>,
    {
        let call = PublicCall::enter("DistArray::gather");
        let lists = self.by_owner(indices, Kind::Get).in_call(call.name())?;
        let mut values = vec![T::zeroed(); indices.len()];
        self.inner.part.gather(lists, &mut values).in_call(call.name())?;
        Ok(values)
    }

    /// Puts elements. If an index occurs twice, the element holds either of the two values
    /// afterwards. The values may be reused on return.
    ///
    /// # Errors
    /// Returns `Address` if an index lies outside the array, `Argument` if the numbers of indices
    /// and values differ, and `State` during an access.
    #[track_caller]
    pub fn scatter<I>(&self, indices: &[I], values: &[T]) -> Result<()>
    where
        I: Clone + IntoDimension<Dim = D>,
    {
        let call = PublicCall::enter("DistArray::scatter");
        self.check_shared().in_call(call.name())?;
        self.as_many(indices.len(), values.len()).in_call(call.name())?;
        let lists = self.by_owner(indices, Kind::Put).in_call(call.name())?;
        self.inner.part.scatter(lists, values).in_call(call.name())
    }

    /// Gets runs of elements into a slice. Each run has `len` elements that are consecutive in
    /// row-major order, and begins at an index, which is a row of `indices`. So `len` is 1 for
    /// single elements, and the length of a row for whole rows of a matrix, which move as blocks.
    ///
    /// ```no_run
    /// # fn rows(a: &portolan::array::DistArray<'_, f64, ndarray::Ix2>) -> portolan::Result<Vec<f64>> {
    /// let (columns, starts) = (a.shape()[1], ndarray::array![[7, 0], [2, 0], [9, 0]]);
    /// let mut rows = vec![0.0; 3 * columns];
    /// a.gather_runs(starts.view(), columns, &mut rows)?; // rows 7, 2 and 9
    /// # Ok(rows)
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns `Address` if a run leaves the array, and `Argument` if the target does not have
    /// `len` elements for each index, or an index has another number of axes than the array.
    #[track_caller]
    pub fn gather_runs(
        &self,
        indices: ArrayView2<'_, usize>,
        len: usize,
        target: &mut [T],
    ) -> Result<()> {
        let call = PublicCall::enter("DistArray::gather_runs");
        let lists =
            self.runs_by_owner(indices, len, target.len(), Kind::Get).in_call(call.name())?;
        self.inner.part.gather(lists, target).in_call(call.name())
    }

    /// Puts runs of elements; see [`DistArray::gather_runs`]. If an element occurs twice, it holds
    /// either of the two values afterwards. The values may be reused on return.
    ///
    /// # Errors
    /// Returns the same errors as [`DistArray::gather_runs`], and `State` during an access.
    #[track_caller]
    pub fn scatter_runs(
        &self,
        indices: ArrayView2<'_, usize>,
        len: usize,
        values: &[T],
    ) -> Result<()> {
        let call = PublicCall::enter("DistArray::scatter_runs");
        self.check_shared().in_call(call.name())?;
        let lists =
            self.runs_by_owner(indices, len, values.len(), Kind::Put).in_call(call.name())?;
        self.inner.part.scatter(lists, values).in_call(call.name())
    }

    /// Starts to get runs of elements into an array, whose elements are in row-major order; see
    /// [`DistArray::gather_runs`]. [`Pending::wait`] returns the array.
    ///
    /// # Errors
    /// Returns the same errors as [`DistArray::gather_runs`], and `Argument` for an array of
    /// another order.
    #[track_caller]
    pub fn start_gather_runs<E: Dimension>(
        &self,
        indices: ArrayView2<'_, usize>,
        len: usize,
        target: Array<T, E>,
    ) -> Result<Pending<'_, Array<T, E>>> {
        let call = PublicCall::enter("DistArray::start_gather_runs");
        let lists =
            self.runs_by_owner(indices, len, target.len(), Kind::Get).in_call(call.name())?;
        self.inner.part.start_gather(lists, target).in_call(call.name())
    }

    /// Starts to put the elements of an array, in row-major order, as runs of elements; see
    /// [`DistArray::scatter_runs`]. [`Pending::wait`] returns the array for reuse.
    ///
    /// # Errors
    /// Returns the same errors as [`DistArray::scatter_runs`], and `Argument` for an array of
    /// another order.
    #[track_caller]
    pub fn start_scatter_runs<E: Dimension>(
        &self,
        indices: ArrayView2<'_, usize>,
        len: usize,
        values: Array<T, E>,
    ) -> Result<Pending<'_, Array<T, E>>> {
        let call = PublicCall::enter("DistArray::start_scatter_runs");
        self.check_shared().in_call(call.name())?;
        let lists =
            self.runs_by_owner(indices, len, values.len(), Kind::Put).in_call(call.name())?;
        self.inner.part.start_scatter(lists, values).in_call(call.name())
    }

    fn as_many(&self, indices: usize, values: usize) -> Result<()> {
        if indices != values {
            fail!(Argument, "array \"{}\": {indices} indices and {values} values", self.name());
        }
        Ok(())
    }

    #[track_caller]
    fn by_owner<I>(&self, indices: &[I], kind: Kind) -> Result<Vec<Runs>>
    where
        I: Clone + IntoDimension<Dim = D>,
    {
        let mut lists = Sorted::new(&self.inner.layout, indices.len());
        for (place, index) in indices.iter().enumerate() {
            let index = index.clone().into_dimension();
            let (rank, offset) = self.locate(index.slice())?;
            self.note_index(kind, index.slice());
            lists.push(rank, offset, place);
        }
        Ok(lists.in_order(kind, self.group().rank()))
    }

    #[track_caller]
    fn runs_by_owner(
        &self,
        indices: ArrayView2<'_, usize>,
        len: usize,
        values: usize,
        kind: Kind,
    ) -> Result<Vec<Runs>> {
        let (layout, shape) = (&self.inner.layout, self.shape());
        let (count, ndim) = indices.dim();
        self.as_many(count.saturating_mul(len), values)?;
        if ndim != shape.len() {
            fail!(Argument, "array \"{}\" of shape {shape:?}: indices of {ndim} axes", self.name());
        }
        if values == 0 {
            return Ok(Vec::new());
        }
        let mut lists = Sorted::new(layout, count);
        if let ([n], Some(starts), 1) = (shape, indices.as_slice(), len) {
            // Elements of a vector need no more than the owner.
            if let Some(index) = starts.iter().find(|index| **index >= *n) {
                self.locate(&[*index])?; // fails
            }
            for (place, &index) in starts.iter().enumerate() {
                let (rank, offset) = layout.locate(&[index]);
                self.note_index(kind, &[index]);
                lists.push(rank, offset, place);
            }
            return Ok(lists.in_order(kind, self.group().rank()));
        }
        let joined = layout.joined_from();
        let mut index = vec![0; ndim];
        for (n, row) in indices.rows().into_iter().enumerate() {
            index.iter_mut().zip(row).for_each(|(to, from)| *to = *from);
            let mut done = 0;
            loop {
                let (rank, offset) = self.locate(&index)?;
                let piece = layout.joined_len(joined, &index).min(len - done);
                self.note_run(kind, &index, piece);
                lists.push_run(rank, piece, offset, n * len + done);
                done += piece;
                if done == len {
                    break;
                }
                advance(&mut index, shape, piece);
            }
        }
        Ok(lists.in_order(kind, self.group().rank()))
    }

    /// Records an access to consecutive elements.
    #[track_caller]
    fn note_run(&self, kind: Kind, first: &[usize], len: usize) {
        if self.inner.check.is_some() {
            let mut index = first.to_vec();
            for _ in 0..len {
                self.note_index(kind, &index);
                advance(&mut index, self.shape(), 1);
            }
        }
    }
}

/// Moves an index forward in row-major order. At the end of the array, the first axis exceeds it.
fn advance(index: &mut [usize], shape: &[usize], by: usize) {
    let mut carry = by;
    for (axis, (i, n)) in index.iter_mut().zip(shape).enumerate().rev() {
        *i += carry;
        if axis == 0 {
            break;
        }
        (carry, *i) = (*i / n, *i % n);
    }
}

/// Runs of elements by their owners and lengths.
struct Sorted {
    /// The position in `lists` of each rank's single elements.
    known: Vec<usize>,
    /// The position in `lists` of other runs.
    runs: HashMap<(usize, usize), usize>,
    last: usize,
    share: usize,
    lists: Vec<Runs>,
}

impl Sorted {
    fn new(layout: &Layout, count: usize) -> Sorted {
        let ranks = layout.ranks();
        Sorted {
            known: vec![usize::MAX; ranks],
            runs: HashMap::new(),
            last: 0,
            share: count.div_ceil(ranks),
            lists: Vec::new(),
        }
    }

    /// Returns the runs. Ranks that write with the same indices begin with their own memory, so that
    /// they do not write to the same lines at the same time.
    fn in_order(mut self, kind: Kind, own: usize) -> Vec<Runs> {
        let ranks = self.known.len();
        if kind != Kind::Get {
            self.lists.sort_by_key(|runs| (runs.rank + ranks - own) % ranks);
        }
        self.lists
    }

    fn add_list(&mut self, rank: usize, len: usize) -> usize {
        let (offsets, places) = (Vec::with_capacity(self.share), Vec::with_capacity(self.share));
        self.lists.push(Runs { rank, len, offsets, places });
        self.lists.len() - 1
    }

    #[inline]
    fn push(&mut self, rank: usize, offset: usize, place: usize) {
        if self.known[rank] == usize::MAX {
            self.known[rank] = self.add_list(rank, 1);
        }
        let list = &mut self.lists[self.known[rank]];
        list.offsets.push(offset);
        list.places.push(place);
    }

    fn push_run(&mut self, rank: usize, len: usize, offset: usize, place: usize) {
        let is_last = |list: &&mut Runs| (list.rank, list.len) == (rank, len);
        if self.lists.get_mut(self.last).filter(is_last).is_none() {
            self.last = match self.runs.get(&(rank, len)) {
                Some(at) => *at,
                None => self.add_list(rank, len),
            };
            self.runs.insert((rank, len), self.last);
        }
        let list = &mut self.lists[self.last];
        list.offsets.push(offset);
        list.places.push(place);
    }
}

impl<T: Accumulate, D: Dimension> DistArray<'_, T, D> {
    /// Adds `alpha` times a value to each element, atomically. An index may occur more than once.
    /// The values may be reused on return.
    ///
    /// # Errors
    /// Returns the same errors as [`DistArray::scatter`].
    #[track_caller]
    pub fn scatter_add<I>(&self, indices: &[I], alpha: T, values: &[T]) -> Result<()>
    where
        I: Clone + IntoDimension<Dim = D>,
    {
        let call = PublicCall::enter("DistArray::scatter_add");
        self.check_shared().in_call(call.name())?;
        self.as_many(indices.len(), values.len()).in_call(call.name())?;
        let lists = self.by_owner(indices, Kind::Add).in_call(call.name())?;
        self.inner.part.scatter_add(lists, alpha, values).in_call(call.name())
    }

    /// Adds `alpha` times runs of values, each element atomically; see [`DistArray::gather_runs`].
    /// An element may occur more than once. The values may be reused on return.
    ///
    /// # Errors
    /// Returns the same errors as [`DistArray::scatter_runs`].
    #[track_caller]
    pub fn scatter_add_runs(
        &self,
        indices: ArrayView2<'_, usize>,
        len: usize,
        alpha: T,
        values: &[T],
    ) -> Result<()> {
        let call = PublicCall::enter("DistArray::scatter_add_runs");
        self.check_shared().in_call(call.name())?;
        let lists =
            self.runs_by_owner(indices, len, values.len(), Kind::Add).in_call(call.name())?;
        self.inner.part.scatter_add(lists, alpha, values).in_call(call.name())
    }

    /// Starts to add `alpha` times the elements of an array, in row-major order, to runs of
    /// elements; see [`DistArray::scatter_add_runs`]. [`Pending::wait`] returns the array.
    ///
    /// # Errors
    /// Returns the same errors as [`DistArray::start_scatter_runs`].
    #[track_caller]
    pub fn start_scatter_add_runs<E: Dimension>(
        &self,
        indices: ArrayView2<'_, usize>,
        len: usize,
        alpha: T,
        values: Array<T, E>,
    ) -> Result<Pending<'_, Array<T, E>>> {
        let call = PublicCall::enter("DistArray::start_scatter_add_runs");
        self.check_shared().in_call(call.name())?;
        let lists =
            self.runs_by_owner(indices, len, values.len(), Kind::Add).in_call(call.name())?;
        self.inner.part.start_scatter_add(lists, alpha, values).in_call(call.name())
    }
}

impl<T: Atomic, D: Dimension> DistArray<'_, T, D> {
    /// Atomically adds `value` to an element and returns the previous value. The operation is
    /// complete on return. Sums wrap.
    ///
    /// # Errors
    /// Returns `Address` if the index lies outside the array, and `State` during an access.
    #[track_caller]
    #[doc(alias = "read_inc")]
    pub fn fetch_add(&self, index: impl IntoDimension<Dim = D>, value: T) -> Result<T> {
        const CALL: &str = "DistArray::fetch_add";
        let index = index.into_dimension();
        let (rank, offset) = self.locate(index.slice()).in_call(CALL)?;
        self.check_shared().in_call(CALL)?;
        self.note_index(Kind::Add, index.slice());
        self.inner.part.segment().fetch_add(rank, offset, value).in_call(CALL)
    }
}
