//! Batches of items of one type.

use crate::in_call::InCall;
use crate::one_thread::OneThread;
use bytemuck::Pod;
use portolan_base::error::Result;
use portolan_engine::am::Am;
use portolan_engine::am::aggregate::Aggregator;
use std::marker::PhantomData;

/// Collects items of one type, one batch for each rank.
///
/// A batch is sent when it is full, when it is a millisecond old, by [`Batches::flush`] and by
/// [`Messages::quiesce`](super::Messages::quiesce).
#[derive(Debug, Clone, Copy)]
#[must_use = "a batch contains nothing until items are pushed"]
pub struct Batches<'a, I> {
    engine: &'a Am,
    aggregator: &'a Aggregator,
    _items: PhantomData<(I, OneThread)>,
}

impl<'a, I: Pod + Send + Sync> Batches<'a, I> {
    pub(super) fn new(engine: &'a Am, aggregator: &'a Aggregator) -> Batches<'a, I> {
        Batches { engine, aggregator, _items: PhantomData }
    }

    /// Adds an item to the batch for `rank`, which may be the calling rank. On the thread that
    /// makes most of the pushes, this takes a few nanoseconds. If the item fills the batch, the
    /// call sends it and waits for buffer space if necessary.
    ///
    /// # Errors
    /// Returns `Rank` if `rank` is outside the job, or the error of the send.
    #[inline]
    pub fn push(&self, rank: usize, item: I) -> Result<()> {
        self.aggregator.push_value(self.engine, rank, item).in_call("Batches::push")
    }

    /// Adds the items of an iterator, each with its rank, in order. This takes fewer instructions
    /// than a [`Batches::push`] for each item.
    ///
    /// # Errors
    /// Fails as [`Batches::push`] does. The items before the one that failed are added.
    #[inline]
    pub fn push_all(&self, items: impl IntoIterator<Item = (usize, I)>) -> Result<()> {
        self.aggregator.push_values(self.engine, items).in_call("Batches::push_all")
    }

    /// Sends the collected items.
    ///
    /// # Errors
    /// Returns the error of a send.
    pub fn flush(&self) -> Result<()> {
        self.aggregator.flush(self.engine).in_call("Batches::flush")
    }
}
