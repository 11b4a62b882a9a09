//! A pool of calls.

use super::origin::Origin;
use crate::hg::context::ContextShared;
use crate::hg::target::Function;
use crate::na::Address;
use portolan_base::sync::biased_lock::BiasedLock;
use std::sync::Arc;

/// A pool of unused calls, for an interface that creates a call for each request. A pooled call
/// holds a reference to its context.
#[derive(Debug, Default)]
pub struct CallPool(BiasedLock<Vec<Arc<Origin>>>);

impl CallPool {
    /// Maximum number of calls in the pool.
    const MOST: usize = 64;

    /// Creates a call like [`Origin::new`], or reuses a pooled call of the same context.
    pub fn origin(
        &self,
        context: &Arc<ContextShared>,
        target: Address,
        function: Arc<Function>,
    ) -> Arc<Origin> {
        let spare = self.0.lock().pop();
        if let Some(mut spare) = spare
            && Arc::ptr_eq(spare.context(), context)
            && let Some(origin) = Arc::get_mut(&mut spare)
        {
            origin.renew(target, function);
            return spare;
        }
        Origin::new(context, target, function)
    }

    /// Puts a call into the pool if this is the only reference to it and the pool has room.
    pub fn give(&self, mut origin: Arc<Origin>) {
        if let Some(alone) = Arc::get_mut(&mut origin) {
            alone.clear();
            let mut spares = self.0.lock();
            if spares.len() < CallPool::MOST {
                spares.push(origin);
            }
        }
    }

    pub fn clear(&self) {
        let spares = std::mem::take(&mut *self.0.lock());
        drop(spares); // outside the lock
    }
}
