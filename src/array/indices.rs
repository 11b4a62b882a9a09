//! Lists of elements, and counters.
//!
//! A list is sorted by owner first: one transfer goes to each, and all are under way at once.

use super::array::DistArray;
use super::check::Kind;
use super::common::InCall;
use crate::api::views::Lists;
use crate::api::{Accumulate, Atomic, Element};
use crate::error::{Result, fail};
use ndarray::{Dimension, IntoDimension};

impl<T: Element, D: Dimension> DistArray<'_, T, D> {
    /// Gets elements, in the order of their indices.
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
    /// `Address` for an index outside the array.
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

    /// Puts elements. Where an index occurs twice, either value is left. On return the values may be
    /// reused.
    ///
    /// # Errors
    /// `Address` for an index outside the array, `Argument` where there are not as many values as
    /// indices, `State` while the parts are accessed.
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
        self.check_open()?;
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
        // By rank, the position of its list.
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
    /// Adds `alpha` times values to elements, each atomically; an index may occur repeatedly. On
    /// return the values may be reused.
    ///
    /// # Errors
    /// As for [`DistArray::scatter`].
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
    /// Adds to an element and returns what it was, in one step. Complete on return; sums wrap.
    ///
    /// # Errors
    /// `Address` outside the array, `State` while the parts are accessed.
    #[track_caller]
    pub fn read_inc(&self, index: impl IntoDimension<Dim = D>, value: T) -> Result<T> {
        const CALL: &str = "DistArray::read_inc";
        let index = index.into_dimension();
        let (rank, offset) = self.locate(index.slice()).in_call(CALL)?;
        self.check_open().in_call(CALL)?;
        self.note_index(Kind::Add, index.slice());
        self.inner.part.segment().fetch_add(rank, offset, value).in_call(CALL)
    }
}
