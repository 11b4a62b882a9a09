//! Compositions of 64 blocks, built once and performed many times.

use crate::Result;
use crate::bounds::{plain, two_sided};
use crate::measure::{By, Contender, Lab};
use crate::plan::Case;
use portolan::{Composer, Slice};
use std::cell::OnceCell;
use std::hint::black_box;

/// Largest number of blocks in a composition.
const BLOCKS: usize = 64;

/// The composer, created when a test first needs it.
pub(super) type Started<'rt> = OnceCell<Composer<'rt>>;

pub(super) fn free(started: Started<'_>) -> Result<()> {
    Ok(started.into_inner().map_or(Ok(()), Composer::free)?)
}

pub(super) fn perform<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let cell = &lab.services.compose;
    if cell.get().is_none() {
        let _ = cell.set(Composer::new(lab.rt)?);
    }
    let composer = cell.get().expect("set above");
    let targets = lab.targets(case.pattern);
    let (count, block) = (BLOCKS.min(case.bytes), case.bytes.div_ceil(BLOCKS));
    let rows = Slice { start: 0, block, stride: 2 * block, count };
    let mut mapped = Vec::new();
    for &target in &targets {
        let mut simple = composer.simple(target)?;
        // Write to the upper half of the region, because a rank may be its own target.
        let to = Slice { start: lab.region / 2, ..rows };
        simple.add_slice(&lab.data, rows, &lab.data, target, to)?;
        mapped.push(simple.map()?);
    }
    let (me, size, pattern) = (lab.me(), lab.size(), case.pattern);
    let body = move |n: usize| -> Result<()> {
        for turn in 0..n {
            composer.sync()?;
            if !mapped.is_empty() {
                composer.perform(&mapped[turn % mapped.len()])?;
            }
            // Compositions that arrive in this turn: those up to and including it, minus those
            // before.
            let due = pattern.inbound(me, size, turn + 1) - pattern.inbound(me, size, turn);
            composer.wait_for(due as u32)?;
        }
        Ok(())
    };
    let body = Box::new(body);
    let mut all =
        vec![Contender { name: "portolan", by: By::Portolan, both: true, body, ops: 1.0 }];
    if lab.bounds.plain {
        let (from, mut to) = (vec![1u8; 2 * count * block], vec![0u8; 2 * count * block]);
        let origin = !targets.is_empty();
        let body = move |n: usize| {
            for _ in (0..n).filter(|_| origin) {
                for (to, from) in to.chunks_mut(2 * block).zip(black_box(&from).chunks(2 * block)) {
                    to[..block].copy_from_slice(&from[..block]);
                }
                black_box(&mut to);
            }
            Ok(())
        };
        all.push(plain("loop", 1, Box::new(body)));
    }
    if lab.bounds.two_sided && lab.size() > 1 {
        // MPI sends one message of packed bytes, and an empty reply replaces the sync.
        all.push(two_sided::round_trips(lab, case, (case.bytes, 0), 1.0));
    }
    Ok(all)
}
