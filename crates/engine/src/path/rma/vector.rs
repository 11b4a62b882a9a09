//! Vectors through windows: blocks of equal length at arbitrary addresses of one region. MPI takes
//! [`MOST_BLOCKS`] of them in one call, with a derived datatype on each side. A call for each block
//! takes 200 times as long, because each costs a message, and every 16 of them a flush.
//!
//! MPI requires that blocks that it writes do not overlap. If they do, the caller issues the blocks
//! one by one.

use super::{MAX_PART, begin, call, kind_and_base, window};
use crate::core::peer::RmaKind;
use crate::error::Result;
use crate::layout::Vector;
use crate::mpi::{DerivedType, WindowShape, WindowTransfer};
use crate::path::kernel;
use crate::path::ops::TransferKind;
use crate::path::{Paths, RemotePlace};
use std::sync::Arc;

/// Maximum number of blocks of a datatype. MPICH and Open MPI take longer for each block of longer
/// ones.
const MOST_BLOCKS: usize = 1 << 10;

/// Performs a transfer to or from the region of `place`, which begins at the first block. It is
/// complete locally on return. Returns false, and moves no byte, if blocks that are written
/// overlap.
///
/// # Safety
/// The local blocks must be valid: for writes in a get, else for reads. The remote blocks must lie
/// in the region.
pub(super) unsafe fn transfer(
    paths: &Paths,
    kind: TransferKind,
    place: &RemotePlace,
    vector: Vector<'_>,
) -> Result<bool> {
    let Vector { block, local, remote } = vector;
    let (rma_kind, base) = kind_and_base(kind);
    let written = if rma_kind == RmaKind::Get { local } else { remote };
    let Some(end) = end_if_apart(written, remote, block) else { return Ok(false) };
    let (region, range) = ((&place.arena, place.rank), (place.address, end));
    let mut pending = begin(paths, place.world, region, rma_kind, range)?;
    let most = (MAX_PART / block).clamp(1, MOST_BLOCKS);
    // The sources of accumulates, until they are complete.
    let mut copies = Vec::new();
    for (local, remote) in local.chunks(most).zip(remote.chunks(most)) {
        let bytes = block * local.len();
        let copy = match kind {
            TransferKind::Accumulate(scale) => {
                // MPI does not scale, so the scaled elements are copied.
                let mut copy = vec![0u8; bytes];
                for (to, &from) in copy.chunks_exact_mut(block).zip(local) {
                    // SAFETY: the caller guarantees the block.
                    unsafe { kernel::copy_block(from as *const u8, to.as_mut_ptr(), block) };
                }
                let to = copy.as_mut_ptr();
                // SAFETY: the copy has `bytes` bytes, of whole elements.
                unsafe { kernel::scaled(to, to, bytes, scale) };
                Some(copy)
            }
            _ => None,
        };
        let of = |addresses: &[usize]| {
            let apart = |&at: &usize| at.wrapping_sub(addresses[0]) as isize;
            let displacements: Vec<isize> = addresses.iter().map(apart).collect();
            let lies = DerivedType::blocks(base, block / base.size(), &displacements);
            lies.map(|lies| WindowShape::Derived(Arc::new(lies)))
        };
        let (origin, origin_shape) = match &copy {
            Some(copy) => (copy.as_ptr(), WindowShape::Row(bytes / base.size(), base)),
            None => (local[0] as *const u8, of(local)?),
        };
        let transfer = WindowTransfer {
            origin: origin.cast_mut(),
            origin_shape: &origin_shape,
            target: place.rank,
            offset: place.offset + (remote[0] - place.address),
            target_shape: &of(remote)?,
        };
        // SAFETY: the caller guarantees the blocks on both sides until this function returns, and
        // `copies` keeps the copy, which an accumulate only reads.
        unsafe { call(window(&place.arena), rma_kind, &transfer, false) }?;
        copies.extend(copy);
    }
    match rma_kind {
        RmaKind::Get => pending.flush()?,
        _ => window(&place.arena).flush_local(place.rank)?,
    }
    Ok(true)
}

/// Returns the end of the last remote block, or `None` if `written` blocks overlap.
fn end_if_apart(written: &[usize], remote: &[usize], block: usize) -> Option<usize> {
    let mut sorted = written.to_vec();
    sorted.sort_unstable();
    let apart = sorted.windows(2).all(|pair| pair[1] - pair[0] >= block);
    let end = remote.iter().max()? + block;
    apart.then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlaps_are_found() {
        assert_eq!(end_if_apart(&[64, 0, 32], &[200, 100, 300], 32), Some(332));
        assert_eq!(end_if_apart(&[64, 0, 33], &[200, 100, 300], 32), None);
        assert_eq!(end_if_apart(&[8, 8], &[8, 8], 8), None);
        assert_eq!(end_if_apart(&[], &[], 8), None);
    }
}
