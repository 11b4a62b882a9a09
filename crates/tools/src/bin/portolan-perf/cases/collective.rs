//! Barriers, broadcasts and reductions, compared with the same operations of MPI.
//!
//! All ranks begin together. The time is measured at rank 0, the root of broadcasts and reductions.
//! A barrier at the end of each batch keeps ranks from running ahead of each other.

use crate::Result;
use crate::lab::{Contender, Lab, Library};
use crate::plan::Case;
use mpi::collective::SystemOperation;
use mpi::traits::{Communicator, CommunicatorCollectives, Root};
use portolan::reduce::Sum;

/// Returns Portolan's contender, and MPI's if MPI messages are a bound of this run.
fn both<'a>(
    lab: &'a Lab<'_>,
    ours: impl FnMut(usize) -> Result<()> + 'a,
    mpis: impl FnMut(usize) -> Result<()> + 'a,
) -> Result<Vec<Contender<'a>>> {
    let mut all = vec![Contender::new("portolan", Library::Portolan, true, 1, ours)];
    if lab.bounds.two_sided {
        all.push(Contender::new("MPI", Library::Mpi, true, 1, mpis));
    }
    Ok(all)
}

fn numbers(case: Case) -> usize {
    (case.bytes / 8).max(1)
}

pub(super) fn barrier<'a>(lab: &'a Lab<'_>, _: Case) -> Result<Vec<Contender<'a>>> {
    let world = lab.rt.world();
    let ours = move |n: usize| {
        for _ in 0..n {
            world.barrier()?;
        }
        Ok(())
    };
    let mpis = move |n: usize| {
        (0..n).for_each(|_| lab.mpi.barrier());
        Ok(())
    };
    both(lab, ours, mpis)
}

pub(super) fn broadcast<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let world = lab.rt.world();
    let mut data = vec![1u8; case.bytes];
    let mut other = data.clone();
    let ours = move |n: usize| {
        for _ in 0..n {
            world.broadcast(0, &mut data)?;
        }
        Ok(())
    };
    let mpis = move |n: usize| {
        let root = lab.mpi.process_at_rank(0);
        (0..n).for_each(|_| root.broadcast_into(&mut other[..]));
        Ok(())
    };
    both(lab, ours, mpis)
}

pub(super) fn reduce<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let world = lab.rt.world();
    let mut data = vec![0f64; numbers(case)];
    let (from, mut to) = (data.clone(), data.clone());
    let ours = move |n: usize| {
        for _ in 0..n {
            world.reduce(0, &mut data, Sum)?;
        }
        Ok(())
    };
    let root = lab.me() == 0;
    let mpis = move |n: usize| {
        let process = lab.mpi.process_at_rank(0);
        for _ in 0..n {
            if root {
                process.reduce_into_root(&from[..], &mut to[..], SystemOperation::sum());
            } else {
                process.reduce_into(&from[..], SystemOperation::sum());
            }
        }
        Ok(())
    };
    both(lab, ours, mpis)
}

pub(super) fn allreduce<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let world = lab.rt.world();
    let mut data = vec![0f64; numbers(case)];
    let (from, mut to) = (data.clone(), data.clone());
    let ours = move |n: usize| {
        for _ in 0..n {
            world.all_reduce(&mut data, Sum)?;
        }
        Ok(())
    };
    let mpis = move |n: usize| {
        (0..n).for_each(|_| {
            lab.mpi.all_reduce_into(&from[..], &mut to[..], SystemOperation::sum());
        });
        Ok(())
    };
    both(lab, ours, mpis)
}
