//! Read-modify-write of an integer of 4 or 8 bytes.

use super::node_queue::{NodeFile, combined};
use crate::ops::Ops;
use crate::path::ops::{Combine, Rmw};
use crate::path::{self, Path, RemotePlace, shm_atomics};
use portolan_base::error::{Result, fail};
use portolan_base::trace::{Call, CallInfo, Entered};

impl Ops {
    /// Returns the previous value. The operation is complete on return, on every path. Fails with
    /// `Rank` for an invalid target, `Address` if the number is not in a segment, and `Type` if
    /// `remote` is not a multiple of the size of the number.
    #[inline(always)]
    pub fn rmw(&self, target: usize, remote: usize, op: Rmw) -> Result<i64> {
        if self.is_observed() {
            return self.rmw_traced(target, remote, op);
        }
        Ok(self.rmw_by_path(target, remote, op)?.0)
    }

    #[cold]
    #[inline(never)]
    fn rmw_traced(&self, target: usize, remote: usize, op: Rmw) -> Result<i64> {
        let near = || target < self.size() && self.reaches_directly(target, self.rank());
        let leave = |entered: Entered<'_>, &(_, path): &(i64, Path)| {
            entered.leave_by(Call::Rmw, path.into(), op.size(), |entered| {
                let place = self.place_of(entered, target, remote);
                let call_info = CallInfo::new(Call::Rmw).to(target).moves(op.size());
                call_info.by(path.into()).at(place)
            });
        };
        Ok(self.record(near, leave, || self.rmw_by_path(target, remote, op))?.0)
    }

    #[inline(always)]
    fn rmw_by_path(&self, target: usize, remote: usize, op: Rmw) -> Result<(i64, Path)> {
        self.check_rank(target)?;
        let mut hit = self.memory.registry.find(target, remote, op.size())?;
        if !remote.is_multiple_of(op.size()) {
            fail!(
                Type,
                "read-modify-write of {} bytes at {remote:#x} of rank {target}, which is not a \
                 multiple of {}",
                op.size(),
                op.size()
            );
        }
        let region = hit.region();
        let path = path::for_atomics(hit.arena(), region);
        let old = match path {
            Path::Direct => {
                if self.is_out_of_order(target) {
                    drop(hit);
                    hit = self.find_in_order(target, region, (remote, op.size()))?;
                }
                // SAFETY: the registry has checked the number, whose region is mapped with `hit`.
                unsafe { shm_atomics::rmw(region, hit.offset, op) }
            }
            remote_path => {
                let offset = hit.offset;
                let place = RemotePlace::of(hit, target, offset, remote);
                self.order_before(target, remote_path)?;
                let transport = self.transport(remote_path)?;
                let send = |op| transport.rmw(self, &place, op);
                let combines =
                    |_: &NodeFile| op.combine() == Combine::Add && transport.is_idle(self, target);
                match NodeFile::of(self, &place.arena).filter(combines) {
                    Some(file) => combined(
                        self,
                        file.queue(target, remote, u64::from(op.size() == 4)),
                        op,
                        &send,
                    )?,
                    None => send(op)?,
                }
            }
        };
        Ok((old, path))
    }
}
