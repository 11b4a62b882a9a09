//! PRK nstream: `A += B + 3 C` on each rank's own vectors. It is the bound of memory.
//!
//! On Portolan the vectors are distributed arrays, and on MPI's side they are private memory.

use crate::{Job, Kernel, Outcome, Result, Side, job::Sample, version};
use ndarray::Ix1;
use portolan::array::{Access, DistArray};

/// The kernel.
pub const KERNEL: Kernel = Kernel {
    name: "nstream",
    size_is: "elements of a vector, per rank",
    size: 4 << 20,
    small: 3000,
    unit: "GB/s",
    versions: &[
        version(Side::Portolan, "array", arrays),
        version(Side::TwoSided, "private", private),
    ],
};

const SCALAR: f64 = 3.0;
const START: [f64; 3] = [0.0, 2.0, 2.0];

fn step(a: &mut [f64], b: &[f64], c: &[f64]) {
    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
        *a += b + SCALAR * c;
    }
}

fn outcome(job: &Job<'_>, size: usize, samples: Vec<Sample>, a: &[f64]) -> Result<Outcome> {
    let expected = START[0] + job.repeats as f64 * (START[1] + SCALAR * START[2]);
    let right = a.len() == size && a.iter().all(|v| *v == expected);
    // Two vectors are read; one is read and written.
    let work = 4.0 * 8.0 * (size * job.n()) as f64 / 1e9;
    Ok(Outcome { samples, work, verified: job.all_true(right)? })
}

fn arrays(job: &Job<'_>, size: usize) -> Result<Outcome> {
    let world = job.rt()?.world();
    let make = || DistArray::<f64, Ix1>::zeros(&world, size * job.n());
    let (mut a, mut b, mut c) = (make()?, make()?, make()?);
    a.fill(START[0])?;
    b.fill(START[1])?;
    c.fill(START[2])?;
    let (mut own_a, own_b, own_c) = (a.access()?, b.access()?, c.access()?);
    let samples = {
        let mut view = own_a.local_mut();
        let a = view.as_slice_mut().ok_or("a vector is contiguous")?;
        let (b, c) = (own_b.local(), own_c.local());
        let (b, c) = (b.to_slice().ok_or("contiguous")?, c.to_slice().ok_or("contiguous")?);
        job.repeat(|| {
            step(a, b, c);
            Ok(())
        })?
    };
    let outcome = outcome(job, size, samples, own_a.local().as_slice().unwrap_or(&[]))?;
    [own_a, own_b, own_c].into_iter().try_for_each(Access::release)?;
    [a, b, c].into_iter().try_for_each(DistArray::free)?;
    Ok(outcome)
}

fn private(job: &Job<'_>, size: usize) -> Result<Outcome> {
    let [mut a, b, c] = START.map(|value| vec![value; size]);
    let samples = job.repeat(|| {
        step(&mut a, &b, &c);
        Ok(())
    })?;
    outcome(job, size, samples, &a)
}
