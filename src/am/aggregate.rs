//! Many small items to many targets, in few messages.
//!
//! An [`Aggregator`] collects items of one size for one handler, a buffer for each
//! target. A buffer goes out as one message, the items bare one after the other,
//! when it is full, when asked ([`Aggregator::flush`]), when it is older than
//! `PORTOLAN_AGGREGATE_US` (the progress thread looks), and when the job comes to
//! rest ([`Engine::quiesce`]). The handler sees a whole batch at once.

use super::HandlerId;
use crate::error::Result;
use crate::runtime::Engine;
use std::sync::Arc;

/// Collects items of one size for one handler.
#[derive(Debug)]
pub struct Aggregator {}

impl Aggregator {
    /// Collects items of `item` bytes (0 is legal: only their number travels) for
    /// `handler`. Its messages have `header` with the number of items behind it as
    /// eight bytes, and the items as data. A buffer is full at `limit` bytes (at
    /// least one item).
    pub fn new(
        engine: &Engine,
        handler: HandlerId,
        header: &[u8],
        item: usize,
        limit: usize,
    ) -> Result<Arc<Aggregator>> {
        let _ = (engine, handler, header, item, limit);
        todo!()
    }

    /// Adds an item for `target`. The thread that pushes most often pays least.
    ///
    /// # Errors
    /// `Rank`; `Argument` where the item has another size.
    #[inline]
    pub fn push(&self, engine: &Engine, target: usize, item: &[u8]) -> Result<()> {
        let _ = (engine, target, item);
        todo!()
    }

    /// Sends what is collected.
    pub fn flush(&self, engine: &Engine) -> Result<()> {
        let _ = engine;
        todo!()
    }
}
