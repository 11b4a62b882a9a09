//! Transfers between the memory of two bulk handles.

use super::Bulk;
use crate::failure::{Result, Status};
use crate::hg::context::Work;
use crate::hg::{BulkOp, Context};
use crate::na::{self, Address, Direction, OpId, Part};

impl Context {
    /// Moves `size` bytes between the memory of a peer's bulk handle and a local one. `callback`
    /// runs in trigger with the status when the transfer has ended.
    ///
    /// # Errors
    /// Fails like [`na::Context::transfer`].
    pub fn transfer(
        &self,
        op: BulkOp,
        origin: &Address,
        (remote, remote_offset): (&Bulk, usize),
        (local, local_offset): (&Bulk, usize),
        size: usize,
        callback: impl FnOnce(Status) + Send + 'static,
    ) -> Result<OpId> {
        let direction = match op {
            BulkOp::Push => Direction::Put,
            BulkOp::Pull => Direction::Get,
        };
        let shared = self.shared.clone();
        let done: na::Callback = Box::new(move |event| {
            shared.push(Work::Run(Box::new(move || callback(event.status))));
        });
        self.shared.na.transfer(
            direction,
            origin,
            Part { mem: local.mem(), offset: local_offset },
            Part { mem: remote.mem(), offset: remote_offset },
            size,
            done,
        )
    }
}
