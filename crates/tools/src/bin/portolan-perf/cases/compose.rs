//! Compositions of 64 blocks, built once and performed many times.

use super::shape::loops;
use crate::bounds::two_sided;
use crate::lab::{Contender, Lab, Library, get_or_create};
use crate::plan::Case;
use crate::result::Result;
use portolan::compose::Composer;
use portolan::transfer::Block;

const BLOCKS: usize = 64;

pub(super) fn perform<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let composer = get_or_create(&lab.resources.composer, || Ok(Composer::new(lab.rt)?))?;
    let (count, block) = (BLOCKS.min(case.bytes), case.bytes.div_ceil(BLOCKS));
    let rows = |start| Block::strided(start, &[count, block], &[2 * block as isize, 1]);
    let mut mapped = Vec::new();
    for target in lab.targets(case.pattern) {
        let mut simple = composer.simple(target)?;
        // Write to the upper half of the region, because a rank may be its own target.
        let (from, to) = (rows(0)?, rows(lab.region / 2)?);
        simple.add_block(&lab.data, &from, &lab.data, target, &to)?;
        mapped.push(simple.map()?);
    }
    let (me, size, pattern) = (lab.me(), lab.size(), case.pattern);
    let body = move |n: usize| -> Result<()> {
        for turn in 0..n {
            composer.sync()?;
            if !mapped.is_empty() {
                composer.perform(&mapped[turn % mapped.len()])?;
            }
            // Compositions that arrive in this turn: those up to it, minus those before it.
            let due = pattern.inbound(me, size, turn + 1) - pattern.inbound(me, size, turn);
            composer.wait_for(due as u32)?;
        }
        Ok(())
    };
    let mut all = vec![Contender::new("portolan", Library::Portolan, true, 1, body)];
    all.extend(loops(lab, case, (count, block), 2 * block));
    // MPI sends one message of packed bytes, and an empty reply replaces the sync.
    all.extend(two_sided::round_trips(lab, case, (case.bytes, 0), 1));
    Ok(all)
}
