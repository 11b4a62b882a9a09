//! Items of one type.

use crate::am::Am;
use crate::am::aggregate::Aggregator;
use crate::api::in_call::InCall;
use crate::error::Result;
use bytemuck::Pod;
use std::marker::PhantomData;

/// Collects items of one type, a batch for each rank.
///
/// A batch goes out when it is full, by [`Batches::flush`], when it is as old as
/// `PORTOLAN_AGGREGATE_US` says, and in [`Messages::quiesce`](super::Messages::quiesce).
#[derive(Debug, Clone, Copy)]
pub struct Batches<'a, I> {
    engine: &'a Am,
    aggregator: &'a Aggregator,
    _items: PhantomData<(I, *const ())>,
}

impl<'a, I: Pod + Send + Sync> Batches<'a, I> {
    pub(super) fn new(engine: &'a Am, aggregator: &'a Aggregator) -> Batches<'a, I> {
        Batches { engine, aggregator, _items: PhantomData }
    }

    /// Adds an item to the batch for `rank`, which may be this rank itself. This costs
    /// a few nanoseconds on the thread that pushes mostly; where a batch is full, it
    /// sends it, and waits for room where there is none.
    ///
    /// # Errors
    /// `Rank` outside the job; those of sending.
    #[inline]
    pub fn push(&self, rank: usize, item: I) -> Result<()> {
        self.aggregator.push_value(self.engine, rank, item).in_call("Batches::push")
    }

    /// Sends what is collected.
    ///
    /// # Errors
    /// Those of sending.
    pub fn flush(&self) -> Result<()> {
        self.aggregator.flush(self.engine).in_call("Batches::flush")
    }
}
