//! Selection of the path of a transfer along a shape.

use super::{check_elements, check_local, differs_by_row};
use crate::core::peer::CompletionCounter;
use crate::error::{Error, Result};
use crate::layout::{Shape, Side};
use crate::memory::arena::Domain;
use crate::ops::Ops;
use crate::path::ops::TransferKind;
use crate::path::{self, Path, RemotePlace, kernel, shm_atomics};
use crate::wait::Progress as _;
use std::sync::Arc;

#[derive(Debug, Default)]
pub struct Issued {
    /// The path of the transfer, or of its first row. `None` without bytes.
    pub path: Option<Path>,
    /// The new counter, if one is needed and the caller passed none.
    pub counter: Option<Arc<CompletionCounter>>,
}

impl Ops {
    /// Issues a transfer without recording it. `counter` counts it if it is not complete on return.
    /// Returns a new counter if one is needed and `counter` is `None`.
    ///
    /// # Safety
    /// See [`Ops::blocking`]; this must hold until the counter is done.
    pub unsafe fn issue_by_path(
        &self,
        kind: TransferKind,
        target: usize,
        remote: usize,
        local: *mut u8,
        shape: &Shape,
        counter: Option<&Arc<CompletionCounter>>,
    ) -> Result<Issued> {
        self.check_rank(target)?;
        if shape.is_empty() {
            return Ok(Issued::default());
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
        let path = path::for_kind(&kind, hit.arena(), region, remote);
        if hit.arena().domain() == Domain::Mpi && differs_by_row(kind, shape) {
            drop(hit);
            // SAFETY: the caller keeps `local` valid until the counter is done.
            let counter = unsafe { self.issue_rows(kind, target, remote, local, shape, counter) }?;
            return Ok(Issued { path: Some(path), counter });
        }
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
            return Ok(Issued { path: Some(path), counter: None });
        }
        let place = RemotePlace {
            arena: hit.arena().clone(),
            world: target,
            rank: hit.group_rank(),
            offset,
            address: remote,
        };
        drop(hit);
        match counter {
            Some(counter) => counter.toward(target),
            // The caller waits for the bytes. Other kinds may complete when they start.
            None if matches!(kind, TransferKind::Get) => self.may_wait()?,
            None => (),
        }
        self.order_before(target, path)?;
        // SAFETY: the registry has checked the remote extent, and the caller keeps `local` valid.
        let started =
            unsafe { self.transport(path)?.start(self, kind, &place, local, shape, counter) };
        match started {
            Ok(counter) => Ok(Issued { path: Some(path), counter }),
            Err(error) => self.abort_partial(kind, target, &error),
        }
    }

    /// The arguments were checked, so MPI failed and may still use the caller's memory.
    #[cold]
    pub(super) fn abort_partial(&self, kind: TransferKind, target: usize, error: &Error) -> ! {
        log::error!("{kind:?} with rank {target} cannot be completed: {error:#}");
        crate::process::end_job(error.kind().code());
    }

    /// # Safety
    /// See [`Ops::issue_by_path`], whose checks have passed.
    unsafe fn issue_rows(
        &self,
        kind: TransferKind,
        target: usize,
        remote: usize,
        local: *mut u8,
        shape: &Shape,
        counter: Option<&Arc<CompletionCounter>>,
    ) -> Result<Option<Arc<CompletionCounter>>> {
        let mut rows = Vec::with_capacity(shape.bytes() / shape.block());
        shape.for_each(&mut |l, r| {
            let from = local.wrapping_offset(l) as usize;
            rows.push((from, remote.wrapping_add_signed(r), shape.block()));
        });
        let fresh = counter.is_none().then(Arc::<CompletionCounter>::default);
        let counted = counter.or(fresh.as_ref()).expect("one of the two is there");
        self.order_before_all(target)?;
        // SAFETY: the caller keeps each row valid until the counter is done.
        unsafe { self.issue_blocks(kind, target, rows.into_iter(), None, counted) }?;
        Ok(fresh)
    }
}
