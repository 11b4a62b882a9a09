//! Lists of elements, and counters. Each owner of listed elements has one transfer, all in flight.

use super::check::Kind;
use super::dist_array::DistArray;
use super::views::Lists;
use crate::in_call::InCall;
use crate::{Accumulate, Atomic, Element};
use ndarray::{Dimension, IntoDimension};
use portolan_engine::error::{Result, fail};

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
        const CALL: &str = "DistArray::gather";
        let lists = self.by_owner(indices, Kind::Get).in_call(CALL)?;
        let mut values = vec![T::zeroed(); indices.len()];
        self.inner.part.gather(lists, &mut values).in_call(CALL)?;
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
        const CALL: &str = "DistArray::scatter";
        self.as_many(indices.len(), values.len()).in_call(CALL)?;
        let lists = self.by_owner(indices, Kind::Put).in_call(CALL)?;
        self.inner.part.scatter(lists, values).in_call(CALL)
    }

    fn as_many(&self, indices: usize, values: usize) -> Result<()> {
        self.check_shared()?;
        if indices != values {
            fail!(Argument, "array \"{}\": {indices} indices and {values} values", self.name());
        }
        Ok(())
    }

    #[track_caller]
    fn by_owner<I>(&self, indices: &[I], kind: Kind) -> Result<Lists>
    where
        I: Clone + IntoDimension<Dim = D>,
    {
        // The position of each rank's list in `lists`.
        let mut known = vec![usize::MAX; self.inner.layout.ranks()];
        let share = indices.len().div_ceil(known.len());
        let mut lists = Lists::new();
        for (place, index) in indices.iter().enumerate() {
            let index = index.clone().into_dimension();
            let (rank, offset) = self.locate(index.slice())?;
            self.note_index(kind, index.slice());
            if known[rank] == usize::MAX {
                known[rank] = lists.len();
                lists.push((rank, Vec::with_capacity(share), Vec::with_capacity(share)));
            }
            let (_, offsets, places) = &mut lists[known[rank]];
            offsets.push(offset);
            places.push(place);
        }
        Ok(lists)
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
        const CALL: &str = "DistArray::scatter_add";
        self.as_many(indices.len(), values.len()).in_call(CALL)?;
        let lists = self.by_owner(indices, Kind::Add).in_call(CALL)?;
        self.inner.part.scatter_add(lists, alpha, values).in_call(CALL)
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
