//! Bulk transfers whose callbacks run in `HG_Trigger`, and the operation handles that cancel them.
//!
//! An operation handle is removed when the callback of its transfer is queued. A handle that the
//! table no longer contains therefore belongs to a transfer that has ended.

use crate::mercury::entry::maybe;
use crate::mercury::table::{Number, Table, Token};
use portolan_rpc::failure::{Result, Status};
use portolan_rpc::hg::context::{ContextShared, Work};
use portolan_rpc::na::{Address, Callback, Direction, OpId, Part};
use std::sync::{Arc, OnceLock, Weak};

pub(super) struct Operations(Table<(Weak<ContextShared>, u64)>);

impl Operations {
    pub(super) const fn new(kind: u8) -> Operations {
        Operations(Table::new("bulk operation", kind))
    }

    /// Begins a transfer of `size` bytes. `notify` runs in `HG_Trigger` when it has ended.
    ///
    /// # Safety
    /// `op_id` must be null, `HG_OP_ID_IGNORE` or valid for writes.
    pub(super) unsafe fn begin(
        &'static self,
        context: &Arc<ContextShared>,
        (direction, peer): (Direction, &Address),
        (local, remote): (Part<'_>, Part<'_>),
        size: usize,
        notify: impl FnOnce(Status) + Send + 'static,
        op_id: *mut Token,
    ) -> Result<()> {
        let shared = context.clone();
        let name: Arc<OnceLock<Number>> = Arc::default();
        let named = name.clone();
        let done: Callback = Box::new(move |event| {
            if let Some(op) = named.get() {
                let _ = self.0.remove(op.token());
            }
            shared.push(Work::Run(Box::new(move || notify(event.status))));
        });
        let announce = |OpId(number)| {
            // SAFETY: by contract, `op_id` is null, `HG_OP_ID_IGNORE` or valid for writes. The
            // transfer has not started, so its callback has not freed the place.
            if let Some(to) = unsafe { maybe(op_id) } {
                *to = self.0.insert((Arc::downgrade(context), number));
                let _ = name.set(Number::of(*to));
            }
        };
        context.na.transfer_announced((direction, peer), local, remote, size, done, announce)?;
        Ok(())
    }

    /// Cancels a transfer. Fails with `INVALID_ARG` if `op_id` can never have named one.
    pub(super) fn cancel(&self, op_id: Token) -> Result<()> {
        let Ok((context, number)) = self.0.get(op_id) else {
            return self.0.was_one(op_id); // it has ended
        };
        match context.upgrade() {
            Some(context) => context.na.cancel(OpId(number)),
            None => Ok(()),
        }
    }
}
