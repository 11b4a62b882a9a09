//! Selection of the path of a transfer along a shape.

use super::check_elements;
use crate::core::peer::CompletionCounter;
use crate::ops::{Ops, check_local};
use crate::path::ops::{Transfer, TransferKind};
use crate::path::{self, Completion, Path, RemotePlace, kernel, shm_atomics};
use portolan_base::error::{Error, Result};
use portolan_base::layout::Side;
use portolan_base::trace::{Awaited, Cause};
use portolan_base::wait::Progress as _;
use std::sync::Arc;

impl Ops {
    /// Issues a transfer without recording it. `counter` counts it if it is not complete on return.
    /// Without `counter`, waits until it is complete locally. Returns the path of the transfer, and
    /// `None` without bytes.
    ///
    /// # Safety
    /// See [`Ops::blocking`]; this must hold until the counter is done.
    pub unsafe fn issue_by_path(
        &self,
        transfer: &Transfer<'_>,
        counter: Option<&Arc<CompletionCounter>>,
    ) -> Result<Option<Path>> {
        let &Transfer { kind, target, remote, local, shape } = transfer;
        self.check_rank(target)?;
        if shape.is_empty() {
            return Ok(None);
        }
        check_local(local)?;
        if let TransferKind::Accumulate(scale) = kind {
            check_elements(scale, shape.block())?;
        }
        let (lo, hi) = shape.extent(Side::Remote);
        let first = remote.wrapping_add_signed(lo);
        let extent = hi.wrapping_sub(lo) as usize;
        let hit = self.memory.registry.find(target, first, extent)?;
        let region = hit.region();
        let offset = hit.offset.wrapping_sub(lo as usize);
        let path = path::for_kind(&kind, hit.arena(), region);
        if path == Path::Direct {
            let _open = self.in_order(target, hit, (first, extent))?;
            // SAFETY: the registry has checked the remote extent, mapped while `_open` is held. The
            // caller guarantees `local`.
            unsafe {
                match &kind {
                    TransferKind::Put => {
                        kernel::copy(local, region.wrapping_add(offset), shape, true)
                    }
                    TransferKind::Get => {
                        kernel::copy(region.wrapping_add(offset), local, shape, false)
                    }
                    TransferKind::Accumulate(s) => {
                        shm_atomics::accumulate(region, offset, local, shape, s)
                    }
                }
            }
            return Ok(Some(path));
        }
        let place = RemotePlace::of(hit, target, offset, remote);
        let completion = Completion::new(counter);
        match counter {
            Some(counter) => counter.toward(target),
            // The caller waits for the bytes. Other kinds may complete when they start.
            None if matches!(kind, TransferKind::Get) => self.may_wait()?,
            None => (),
        }
        self.order_before(target, path)?;
        let transport = self.transport(path)?;
        // SAFETY: the registry has checked the remote extent, and the caller keeps the local one
        // valid.
        if let Err(error) = unsafe { transport.start(self, transfer, &place, &completion) } {
            self.abort_partial(kind, target, &error);
        }
        if let Some(counter) = completion.into_awaited() {
            let what = || format!("{kind:?} with rank {target}");
            self.complete(Awaited::of(Cause::Answer, target), &what, &counter)?;
        }
        Ok(Some(path))
    }

    /// The arguments were checked, so MPI failed and may still use the caller's memory.
    #[cold]
    pub(super) fn abort_partial(&self, kind: TransferKind, target: usize, error: &Error) -> ! {
        log::error!("{kind:?} with rank {target} cannot be completed: {error:#}");
        portolan_base::process::end_job(error.kind().code());
    }
}
