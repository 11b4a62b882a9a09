//! Transfers of many blocks: strided rows, and blocks at irregular offsets.

use crate::Result;
use crate::bounds::{plain, two_sided};
use crate::lab::{Contender, Lab, get_or_create};
use crate::plan::Case;
use portolan::internals::engine;
use portolan::transfer::Block;
use portolan_engine::layout::Vector;
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

fn loops<'a>(lab: &'a Lab<'_>, case: Case) -> Contender<'a> {
    let (count, row) = rows(case);
    let origin = !lab.targets(case.pattern).is_empty();
    let (from, mut to) = (vec![1u8; count * STRIDE], vec![0u8; count * STRIDE]);
    let body = move |n: usize| {
        for _ in (0..n).filter(|_| origin) {
            for (to, from) in to.chunks_mut(STRIDE).zip(black_box(&from).chunks(STRIDE)) {
                to[..row].copy_from_slice(&from[..row]);
            }
            black_box(&mut to);
        }
        Ok(())
    };
    plain("loop", 1, body)
}

fn bounds<'a>(lab: &'a Lab<'_>, case: Case, all: &mut Vec<Contender<'a>>) {
    if lab.bounds.plain {
        all.push(loops(lab, case));
    }
    // MPI sends the same number of bytes, which are packed already.
    all.extend(two_sided::round_trips(lab, case, (case.bytes, case.bytes), 2));
}

pub(super) fn strided_put<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let targets = lab.targets(case.pattern);
    let (count, row) = rows(case);
    let block = Block::strided(0, &[count, row], &[STRIDE as isize, 1])?;
    let from = vec![1u8; count * STRIDE];
    let body = move |n: usize| {
        for turn in (0..n).filter(|_| !targets.is_empty()) {
            let target = targets[turn % targets.len()];
            lab.data.put_block(target, &block, &from, &block)?;
            lab.data.fence(target)?;
        }
        Ok(())
    };
    let mut all = vec![Contender::ours(1, body)];
    bounds(lab, case, &mut all);
    Ok(all)
}

pub(super) fn strided_get<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let targets = lab.targets(case.pattern);
    let (count, row) = rows(case);
    let block = Block::strided(0, &[count, row], &[STRIDE as isize, 1])?;
    let mut to = vec![1u8; count * STRIDE];
    let body = move |n: usize| {
        for turn in (0..n).filter(|_| !targets.is_empty()) {
            lab.data.get_block(targets[turn % targets.len()], &block, &mut to, &block)?;
        }
        Ok(())
    };
    let mut all = vec![Contender::ours(1, body)];
    bounds(lab, case, &mut all);
    Ok(all)
}

pub(super) fn vector_put<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let segment = get_or_create(&lab.resources.addressed, || {
        let world = engine(lab.rt).world().clone();
        Ok(engine(lab.rt).allocate(&world, lab.region)?)
    })?;
    let targets = lab.targets(case.pattern);
    let (count, block) = (BLOCKS.min(case.bytes), case.bytes.div_ceil(BLOCKS));
    let from = vec![1u8; count * block];
    // The blocks are listed in descending order, so that no block continues the one before it. At
    // the target they are two blocks apart.
    let places = move |base: usize, stride: usize| -> Vec<usize> {
        (0..count).rev().map(|i| base + i * stride).collect()
    };
    let local = places(from.as_ptr() as usize, block);
    let remote: Vec<Vec<usize>> =
        targets.iter().map(|&target| places(segment.part(target).address(), 2 * block)).collect();
    let body = move |n: usize| {
        debug_assert_eq!(from.len(), count * block, "the addresses in `local` are in it");
        for turn in (0..n).filter(|_| !targets.is_empty()) {
            let place = turn % targets.len();
            let vector = Vector { block, local: &local, remote: &remote[place] };
            // SAFETY: the local addresses lie in `from`. The assertion above makes the closure
            // capture and own `from`, whose heap memory does not move with the closure. The call
            // returns only after it has read the blocks.
            unsafe { engine(lab.rt).vector(TransferKind::Put, targets[place], &[vector]) }?;
            lab.rt.fence(targets[place])?;
        }
        Ok(())
    };
    let mut all = vec![Contender::ours(1, body)];
    bounds(lab, case, &mut all);
    Ok(all)
}
