//! Transfers of many blocks: strided rows, and blocks at irregular offsets.

use crate::bounds::{plain, two_sided};
use crate::lab::{Contender, Lab, get_or_create};
use crate::plan::Case;
use crate::result::Result;
use portolan::internals::engine;
use portolan::transfer::Block;
use portolan_base::layout::Vector;
use portolan_engine::transfer::TransferKind;
use std::hint::black_box;

/// Bytes of a row. Rows begin `STRIDE` bytes apart.
const ROW: usize = 512;
const STRIDE: usize = 2 * ROW;
/// Largest number of blocks in a vector transfer.
const BLOCKS: usize = 64;

/// Returns the number of rows of a case and the bytes of each. A short case is a single row.
fn rows(case: Case) -> (usize, usize) {
    (case.bytes.div_ceil(ROW), case.bytes.min(ROW))
}

/// Returns a contender that copies `count` rows of `row` bytes, which begin `stride` bytes apart, in
/// a loop. `None` if plain operations are not a bound of this run.
pub(super) fn loops<'a>(
    lab: &Lab<'_>,
    case: Case,
    (count, row): (usize, usize),
    stride: usize,
) -> Option<Contender<'a>> {
    let origin = !lab.targets(case.pattern).is_empty();
    let (from, mut to) = (vec![1u8; count * stride], vec![0u8; count * stride]);
    let body = move |n: usize| {
        for _ in (0..n).filter(|_| origin) {
            for (to, from) in to.chunks_mut(stride).zip(black_box(&from).chunks(stride)) {
                to[..row].copy_from_slice(&from[..row]);
            }
            black_box(&mut to);
        }
        Ok(())
    };
    lab.bounds.plain.then(|| plain("loop", 1, body))
}

/// Returns the contenders of a transfer of many blocks.
fn bounded<'a>(
    lab: &'a Lab<'_>,
    case: Case,
    step: impl FnMut(usize) -> Result<()> + 'a,
) -> Vec<Contender<'a>> {
    let mut all = vec![Contender::at_targets(lab, case, 1, step)];
    all.extend(loops(lab, case, rows(case), STRIDE));
    // MPI sends the same number of bytes, which are packed already.
    all.extend(two_sided::round_trips(lab, case, (case.bytes, case.bytes), 2));
    all
}

pub(super) fn strided_put<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let (count, row) = rows(case);
    let block = Block::strided(0, &[count, row], &[STRIDE as isize, 1])?;
    let from = vec![1u8; count * STRIDE];
    let step = move |target| {
        lab.data.put_block(target, &block, &from, &block)?;
        Ok(lab.data.fence(target)?)
    };
    Ok(bounded(lab, case, step))
}

pub(super) fn strided_get<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let (count, row) = rows(case);
    let block = Block::strided(0, &[count, row], &[STRIDE as isize, 1])?;
    let mut to = vec![1u8; count * STRIDE];
    let step = move |target| Ok(lab.data.get_block(target, &block, &mut to, &block)?);
    Ok(bounded(lab, case, step))
}

pub(super) fn vector_put<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let segment = get_or_create(&lab.resources.addressed, || {
        let world = engine(lab.rt).world().clone();
        Ok(engine(lab.rt).allocate(&world, lab.region)?)
    })?;
    let (count, block) = (BLOCKS.min(case.bytes), case.bytes.div_ceil(BLOCKS));
    let from = vec![1u8; count * block];
    // The blocks are listed in descending order, so that no block continues the one before it. At
    // the target they are two blocks apart.
    let places = move |base: usize, stride: usize| -> Vec<usize> {
        (0..count).rev().map(|i| base + i * stride).collect()
    };
    let local = places(from.as_ptr() as usize, block);
    let remote: Vec<Vec<usize>> =
        (0..lab.size()).map(|rank| places(segment.part(rank).address(), 2 * block)).collect();
    let step = move |target: usize| {
        debug_assert_eq!(from.len(), count * block, "the addresses in `local` are in it");
        let vector = Vector { block, local: &local, remote: &remote[target] };
        // SAFETY: the local addresses lie in `from`. The assertion above makes the closure capture
        // and own `from`, whose heap memory does not move with the closure. The call returns only
        // after it has read the blocks.
        unsafe { engine(lab.rt).vector(TransferKind::Put, target, &[vector]) }?;
        Ok(lab.rt.fence(target)?)
    };
    Ok(bounded(lab, case, step))
}
