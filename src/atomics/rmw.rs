//! Read-modify-write of an `int` or a `long`.

use crate::error::{Result, fail};
use crate::ops::Ops;
use crate::path::ops::Rmw;
use crate::path::{self, Path, rma, shm_atomics};

impl Ops {
    /// Combines the number at `remote` of `target` and returns what was there.
    /// Blocking and complete on return, whatever the path.
    ///
    /// # Errors
    /// `Rank`, `Address`, or `Type` where the number is not aligned.
    #[inline]
    pub fn rmw(&self, target: usize, remote: usize, op: Rmw) -> Result<i64> {
        self.check_rank(target)?;
        let find = || self.memory.registry.find(target, remote, op.size());
        let mut hit = find()?;
        if !remote.is_multiple_of(op.size()) {
            fail!(
                Type,
                "read-modify-write of {} bytes at {remote:#x} of rank {target}, which is not a \
                 multiple of {}",
                op.size(),
                op.size()
            );
        }
        let slice = hit.slice();
        match path::for_atomics(hit.slab(), slice) {
            Path::Direct => {
                if self.is_out_of_order(target) {
                    drop(hit);
                    hit = self.find_in_order(target, slice, find)?;
                }
                // SAFETY: the registry says that the number lies in the slice,
                // which stays mapped while `hit` is held.
                Ok(unsafe { shm_atomics::rmw(slice, hit.offset, op) })
            }
            Path::Message => {
                drop(hit);
                self.order_before(target, Path::Message)?;
                self.two_sided()?.rmw(self, target, remote, op)
            }
            Path::Rma => {
                let place = rma::RmaTarget {
                    slab: hit.slab().clone(),
                    world: target,
                    rank: hit.group_rank(),
                    offset: hit.offset,
                };
                drop(hit);
                self.order_before(target, Path::Rma)?;
                rma::rmw(self, &place, op)
            }
        }
    }
}
