//! A non-blocking transfer of a patch that owns its array.

use crate::transfer::pending;
use crate::{Element, Segment};
use ndarray::{Array, Dimension};
use portolan_engine::error::Result;
use portolan_engine::peer::CompletionCounter;
use std::sync::Arc;

/// A transfer of a patch that may be in flight and owns its elements. Created by
/// [`DistArray::start_get`], [`DistArray::start_put`] and [`DistArray::start_accumulate`].
///
/// Dropping it waits. It borrows the distributed array, which can be neither freed nor accessed
/// meanwhile:
///
/// ```compile_fail,E0505
/// # use portolan::array::DistArray;
/// # use ndarray::Ix1;
/// fn early(a: DistArray<'_, f64, Ix1>) -> portolan::Result<()> {
///     let pending = a.start_get([0..8])?;
///     a.free()?;
///     pending.wait().map(drop)
/// }
/// ```
///
/// [`DistArray::start_get`]: crate::array::DistArray::start_get
/// [`DistArray::start_put`]: crate::array::DistArray::start_put
/// [`DistArray::start_accumulate`]: crate::array::DistArray::start_accumulate
#[derive(Debug)]
#[must_use = "dropping a transfer waits for it"]
pub struct PendingArray<'a, T: Element, D: Dimension> {
    pub(super) segment: &'a Segment<'a, T>,
    pub(super) counter: Arc<CompletionCounter>,
    pub(super) buffer: Option<Array<T, D>>,
}

impl<T: Element, D: Dimension> PendingArray<'_, T, D> {
    /// Waits until the transfer is complete locally and returns the array. After a get it holds the
    /// elements; after a put or accumulate it may be reused.
    ///
    /// # Errors
    /// Returns `Address` or `Mpi` if the transfer failed. The array is then lost.
    pub fn wait(mut self) -> Result<Array<T, D>> {
        pending::wait_for(self.segment.engine(), &self.counter)
            .map_err(|e| e.in_call("PendingArray::wait"))?;
        Ok(self.buffer.take().expect("there until the wait, which is made once"))
    }

    /// Returns whether [`PendingArray::wait`] would return at once. Makes progress.
    ///
    /// # Errors
    /// Returns `Mpi` if making progress fails.
    pub fn is_done(&self) -> Result<bool> {
        pending::is_done(self.segment.engine(), &self.counter)
            .map_err(|e| e.in_call("PendingArray::is_done"))
    }
}

impl<T: Element, D: Dimension> Drop for PendingArray<'_, T, D> {
    fn drop(&mut self) {
        if let Err(error) = pending::wait_for(self.segment.engine(), &self.counter) {
            log::error!("a non-blocking transfer failed: {error:#}");
        }
    }
}
