//! Bulk transfers whose callbacks run in `HG_Trigger`, and the operation handles that cancel them.
//!
//! An operation handle is removed when the callback of its transfer is queued. An operation handle
//! that the table no longer contains therefore belongs to a transfer that has ended.

use super::entry::maybe;
use super::table::{Table, Token};
use portolan_rpc::failure::{Result, Status};
use portolan_rpc::hg::context::{ContextShared, Work};
use portolan_rpc::na::{Address, Callback, Direction, OpId, Part};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// The operation handle of a transfer, if the program wants one.
///
/// The transfer can end before its handle is stored here, because the network numbers a transfer
/// when it starts it. Whichever of [`OperationName::set`] and [`OperationName::end`] comes second
/// removes the handle.
#[derive(Debug, Default)]
struct OperationName(AtomicUsize);

impl OperationName {
    /// The value after [`OperationName::end`]. No handle has it.
    const ENDED: usize = 1;

    /// Stores the handle. Returns false if the transfer has ended.
    fn set(&self, op: Token) -> bool {
        self.0.compare_exchange(0, op as usize, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Marks the transfer as ended. Returns its handle if one is stored.
    fn end(&self) -> Option<Token> {
        Some(self.0.swap(OperationName::ENDED, Ordering::AcqRel))
            .filter(|&op| op != 0)
            .map(|op| op as Token)
    }
}

/// The transfers of one interface that are in progress.
pub(super) struct Operations(Table<(Weak<ContextShared>, u64)>);

impl Operations {
    pub(super) const fn new(kind: u8) -> Operations {
        Operations(Table::new("bulk operation", kind))
    }

    /// Begins a transfer of `size` bytes. `notify` runs in `HG_Trigger` when the transfer has
    /// ended.
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
        let name = Arc::new(OperationName::default());
        let named = name.clone();
        let done: Callback = Box::new(move |event| {
            // The operation handle ends with the transfer.
            if let Some(op) = named.end() {
                let _ = self.0.remove(op);
            }
            shared.push(Work::Run(Box::new(move || notify(event.status))));
        });
        let OpId(number) = context.na.transfer(direction, peer, local, remote, size, done)?;
        // SAFETY: the caller guarantees that `op_id` is null, `HG_OP_ID_IGNORE` or valid for
        // writes.
        if let Some(to) = unsafe { maybe(op_id) } {
            *to = self.0.insert((Arc::downgrade(context), number));
            if !name.set(*to) {
                let _ = self.0.remove(*to);
            }
        }
        Ok(())
    }

    /// Cancels a transfer. Its callback receives `HG_CANCELED`. A transfer that has ended is not
    /// affected.
    ///
    /// # Errors
    /// Returns `INVALID_ARG` if `op_id` can never have named a transfer.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_of_naming_and_ending_removes_the_handle() {
        let op = 0x33 as Token;
        let name = OperationName::default();
        assert!(name.set(op));
        assert_eq!(name.end(), Some(op));
        let name = OperationName::default();
        assert_eq!(name.end(), None);
        assert!(!name.set(op));
    }
}
