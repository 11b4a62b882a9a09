//! Transfers between the memory of two bulk handles.

use super::BulkOffset;
use crate::failure::{Result, Status};
use crate::hg::context::Work;
use crate::hg::{BulkOp, Context};
use crate::na::{self, Address, Direction, OpId, Part};

impl Context {
    /// Moves `size` bytes between the memory of a peer's bulk handle and a local one. `callback`
    /// runs in trigger with the status when the transfer has ended.
    ///
    /// # Errors
    /// Returns `PERMISSION` if a handle does not permit the access, `ACCESS` if a handle is not
    /// registered, `OVERFLOW` if a range exceeds its handle, `ADDRNOTAVAIL` if the address belongs
    /// to another class, and `INVALID_ARG` if the context is destroyed, `local` does not belong to
    /// this process, or `remote` does not belong to the peer.
    pub fn transfer(
        &self,
        op: BulkOp,
        origin: &Address,
        remote: BulkOffset<'_>,
        local: BulkOffset<'_>,
        size: usize,
        callback: impl FnOnce(Status) + Send + 'static,
    ) -> Result<OpId> {
        self.shared.check_open()?;
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
            Part { mem: local.bulk.mem(), offset: local.offset },
            Part { mem: remote.bulk.mem(), offset: remote.offset },
            size,
            done,
        )
    }
}
