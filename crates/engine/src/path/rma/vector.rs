//! Vectors through windows: blocks of equal length at arbitrary addresses of one region. MPI takes
//! [`MOST_BLOCKS`] of them in one call, with a derived datatype on each side. A call for each block
//! takes 200 times as long, because each costs a message, and every 16 of them a flush.
//!
//! MPI requires that blocks that it writes do not overlap. If they do, the caller issues the blocks
//! one by one.

use super::types::blocks;
use super::{MAX_PART, Rma, window};
use crate::mpi::WindowTransfer;
use crate::path::{Paths, RemotePlace};
use portolan_base::error::Result;
use portolan_base::layout::Vector;

/// Maximum number of blocks of a datatype. MPICH and Open MPI take longer for each block of longer
/// ones.
const MOST_BLOCKS: usize = 1 << 10;

impl Rma {
    /// Performs a transfer to or from the region of `place`, which begins at the first block. It is
    /// complete locally on return. Returns false, and moves no byte, if blocks that are written
    /// overlap.
    ///
    /// # Safety
    /// The local blocks must be valid: for writes in a get, else for reads. The remote blocks must
    /// lie in the region.
    pub(super) unsafe fn transfer_vector(
        &self,
        paths: &Paths,
        is_get: bool,
        place: &RemotePlace,
        vector: Vector<'_>,
    ) -> Result<bool> {
        let Vector { block, local, remote } = vector;
        let written = if is_get { local } else { remote };
        let Some(end) = end_if_apart(written, remote, block) else { return Ok(false) };
        let region = (&place.arena, place.rank);
        let pending = self.begin(paths, place.world, region, is_get, place.address..end)?;
        let most = (MAX_PART / block).clamp(1, MOST_BLOCKS);
        for (local, remote) in local.chunks(most).zip(remote.chunks(most)) {
            let transfer = WindowTransfer {
                is_get,
                origin: local[0],
                origin_shape: blocks(block, local.iter().copied())?,
                target: place.rank,
                offset: place.offset + (remote[0] - place.address),
                target_shape: blocks(block, remote.iter().copied())?,
            };
            // SAFETY: the caller guarantees the blocks on both sides until this function returns.
            unsafe { window(&place.arena).start(&transfer, false) }?;
        }
        drop(pending);
        self.complete_locally(place.world, (&place.arena, place.rank), is_get)?;
        Ok(true)
    }
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
