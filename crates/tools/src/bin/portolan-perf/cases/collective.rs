//! Barriers, broadcasts and reductions, compared with the same operations of MPI.
//!
//! All ranks begin together. The time is measured at rank 0, the root of broadcasts and reductions.
//! A barrier at the end of each batch keeps ranks from running ahead of each other.

use crate::lab::{Contender, Lab, Library};
use crate::plan::Case;
use crate::result::Result;
use mpi::collective::SystemOperation;
use mpi::traits::{Communicator, CommunicatorCollectives, Root};
use portolan::reduce::Sum;

/// Returns Portolan's contender, and MPI's if MPI messages are a bound of this run.
fn both<'a>(
    lab: &'a Lab<'_>,
    mut ours: impl FnMut() -> portolan::Result<()> + 'a,
    mut mpis: impl FnMut() + 'a,
) -> Result<Vec<Contender<'a>>> {
    let body = move |n: usize| Ok((0..n).try_for_each(|_| ours())?);
    let mut all = vec![Contender::new("portolan", Library::Portolan, true, 1, body)];
    if lab.bounds.two_sided {
        let body = move |n: usize| {
            (0..n).for_each(|_| mpis());
            Ok(())
        };
        all.push(Contender::new("MPI", Library::Mpi, true, 1, body));
    }
    Ok(all)
}

fn numbers(case: Case) -> usize {
    (case.bytes / 8).max(1)
}

pub(super) fn barrier<'a>(lab: &'a Lab<'_>, _: Case) -> Result<Vec<Contender<'a>>> {
    let world = lab.rt.world();
    both(lab, move || world.barrier(), move || lab.mpi.barrier())
}

pub(super) fn broadcast<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let world = lab.rt.world();
    let mut data = vec![1u8; case.bytes];
    let mut other = data.clone();
    let root = lab.mpi.process_at_rank(0);
    let mpis = move || root.broadcast_into(&mut other[..]);
    both(lab, move || world.broadcast(0, &mut data), mpis)
}

pub(super) fn reduce<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let world = lab.rt.world();
    let mut data = vec![0f64; numbers(case)];
    let (from, mut to) = (data.clone(), data.clone());
    let (root, is_root) = (lab.mpi.process_at_rank(0), lab.me() == 0);
    let mpis = move || match is_root {
        true => root.reduce_into_root(&from[..], &mut to[..], SystemOperation::sum()),
        false => root.reduce_into(&from[..], SystemOperation::sum()),
    };
    both(lab, move || world.reduce(0, &mut data, Sum), mpis)
}

pub(super) fn allreduce<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let world = lab.rt.world();
    let mut data = vec![0f64; numbers(case)];
    let (from, mut to) = (data.clone(), data.clone());
    let mpis = move || lab.mpi.all_reduce_into(&from[..], &mut to[..], SystemOperation::sum());
    both(lab, move || world.all_reduce(&mut data, Sum), mpis)
}
