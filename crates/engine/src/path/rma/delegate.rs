//! Compare-and-swaps of a rank's own numbers that another rank executes. Open MPI 4.1 crashes in
//! `MPI_Compare_and_swap` if the target is the caller (tests/mpi-bugs/compare_and_swap.c). The
//! caller therefore asks the next rank to make the call, and polls MPI while it waits, so that it
//! completes. With Open MPI, windows are over all ranks only, so the next rank reaches the number.

use super::operations;
use crate::error::Result;
use crate::mpi::Flavour;
use crate::path::ops::Rmw;
use crate::path::two_sided::service::{Served, Service};
use crate::path::two_sided::wire::{self, RequestHeader, RequestKind};
use crate::path::{Paths, RemotePlace};

pub(super) fn is_needed(paths: &Paths, place: &RemotePlace) -> bool {
    Flavour::built() == Flavour::OpenMpi && place.world == paths.rank()
}

pub(super) fn ask(paths: &Paths, place: &RemotePlace, op: Rmw) -> Result<i64> {
    let helper = (place.world + 1) % paths.size();
    let header = RequestHeader::new(RequestKind::RmwOfSender, place.address).with_rmw(op);
    paths.two_sided()?.ask(paths, helper, header)
}

#[derive(Debug)]
pub(crate) struct Delegate;

impl Delegate {
    pub(crate) const KINDS: [RequestKind; 1] = [RequestKind::RmwOfSender];
}

impl Service for Delegate {
    fn serve(
        &self,
        paths: &Paths,
        source: usize,
        _: RequestKind,
        message: &[u8],
    ) -> Result<Served> {
        let (header, ..) = wire::decode(message)?;
        let op = header.rmw()?;
        let address = header.address as usize;
        let hit = paths.memory.registry.find(source, address, op.size())?;
        let (arena, rank, offset) = (hit.arena().clone(), hit.group_rank(), hit.offset);
        drop(hit);
        let place = RemotePlace { arena, world: source, rank, offset, address };
        // SAFETY: the registry has found the number in the region of the sender.
        let old = unsafe { operations::apply(&place, op) }?;
        paths.two_sided()?.answer_number(source, header.tag, old)?;
        Ok(Served::Done)
    }
}
