//! Contiguous put, get and accumulate.
//!
//! The operations of a window go to different offsets at the target. All contenders do this, so
//! that caches do not favour one of them.

use crate::bounds::{copies, plain, rma, two_sided};
use crate::lab::{Contender, Lab, Operation, get_or_create};
use crate::plan::{Case, NumberType, region};
use crate::result::Result;
use portolan::{Accumulate, Segment};
use std::cell::OnceCell;
use std::hint::black_box;

/// Bytes of the largest accumulate.
pub const ACCUMULATE: usize = 16 << 20;

/// Returns the contenders of a transfer. `step` has `window` operations in flight.
fn bounded<'a>(
    lab: &'a Lab<'_>,
    case: Case,
    (operation, window): (Operation, usize),
    step: impl FnMut(usize) -> Result<()> + 'a,
) -> Result<Vec<Contender<'a>>> {
    let mut all = vec![Contender::at_targets(lab, case, window, step)];
    all.extend(copies(lab, case, window));
    all.extend(if window > 1 {
        two_sided::windows(lab, case, window)
    } else {
        two_sided::round_trips(lab, case, (case.bytes, case.bytes), 2)
    });
    all.extend(rma::flushed(lab, case, operation, window)?);
    Ok(all)
}

/// Returns a buffer of `bytes` bytes at origins, and an empty one elsewhere.
fn source(lab: &Lab<'_>, case: Case, bytes: usize) -> Vec<u8> {
    vec![1; if lab.targets(case.pattern).is_empty() { 0 } else { bytes }]
}

pub(super) fn put_lat<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let from = source(lab, case, case.bytes);
    let step = move |target| {
        lab.data.put(target, 0, &from)?;
        Ok(lab.data.fence(target)?)
    };
    bounded(lab, case, (Operation::Put, 1), step)
}

pub(super) fn put_bw<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let (window, from) = (case.window(), source(lab, case, case.bytes));
    let step = move |target| {
        for place in 0..window {
            lab.data.put(target, place * case.bytes, &from)?;
        }
        Ok(lab.data.fence(target)?)
    };
    bounded(lab, case, (Operation::Put, window), step)
}

pub(super) fn nbput_bw<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let (window, from) = (case.window(), source(lab, case, case.bytes));
    let step = move |target| {
        // The end of the scope completes all puts issued in it.
        lab.rt.scope(|scope| {
            for place in 0..window {
                scope.put(&lab.data, target, place * case.bytes, &from)?;
            }
            Ok(())
        })?;
        Ok(lab.data.fence(target)?)
    };
    bounded(lab, case, (Operation::Put, window), step)
}

pub(super) fn get_lat<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let mut to = source(lab, case, case.bytes);
    let step = move |target| Ok(lab.data.get(target, 0, &mut to)?);
    bounded(lab, case, (Operation::Get, 1), step)
}

pub(super) fn get_bw<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let window = case.window();
    let mut to = source(lab, case, case.bytes * window);
    let step = move |target| {
        let parts = to.chunks_exact_mut(case.bytes);
        Ok(lab.rt.scope(|scope| {
            for (place, part) in parts.enumerate() {
                scope.get(&lab.data, target, place * case.bytes, part)?;
            }
            Ok(())
        })?)
    };
    bounded(lab, case, (Operation::Get, window), step)
}

fn accumulate<'a>(lab: &'a Lab<'_>, case: Case, window: usize) -> Result<Vec<Contender<'a>>> {
    let cells = &lab.resources;
    match case.element {
        NumberType::I32 => added(lab, case, window, &cells.i32s),
        NumberType::I64 => added(lab, case, window, &cells.i64s),
        NumberType::F32 => added(lab, case, window, &cells.f32s),
        NumberType::F64 => added(lab, case, window, &cells.f64s),
        NumberType::C32 => added(lab, case, window, &cells.c32s),
        NumberType::C64 => added(lab, case, window, &cells.c64s),
    }
}

fn added<'a, 'rt, T: Accumulate + std::ops::AddAssign + std::ops::Mul<Output = T>>(
    lab: &'a Lab<'rt>,
    case: Case,
    window: usize,
    cell: &'a OnceCell<Segment<'rt, T>>,
) -> Result<Vec<Contender<'a>>> {
    let segment = get_or_create(cell, || {
        let bytes = region(ACCUMULATE.min(lab.region));
        Ok(lab.rt.world().allocate(bytes / size_of::<T>())?)
    })?;
    let length = case.bytes / size_of::<T>();
    let origin = !lab.targets(case.pattern).is_empty();
    // A scale of one and a source of zeros keep the numbers from growing without bound.
    let from = vec![T::zeroed(); if origin { length } else { 0 }];
    let step = move |target| {
        for place in 0..window {
            segment.accumulate(target, place * length, T::ONE, &from)?;
        }
        Ok(segment.fence(target)?)
    };
    let mut all = vec![Contender::at_targets(lab, case, window, step)];
    if lab.bounds.plain {
        let from = vec![T::zeroed(); if origin { length } else { 0 }];
        let mut sums = vec![T::zeroed(); from.len() * window];
        let body = move |n: usize| {
            for _ in 0..n {
                for part in sums.chunks_exact_mut(length) {
                    let scale = black_box(T::ONE);
                    part.iter_mut().zip(black_box(&from)).for_each(|(sum, x)| *sum += scale * *x);
                }
                black_box(&mut sums);
            }
            Ok(())
        };
        all.push(plain("loop", window, body));
    }
    // MPI messages cannot add. MPI windows can, and this bound uses double precision.
    if case.element == NumberType::F64 {
        all.extend(rma::flushed(lab, case, Operation::Add, window)?);
    }
    Ok(all)
}

pub(super) fn acc_lat<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    accumulate(lab, case, 1)
}

pub(super) fn acc_bw<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    accumulate(lab, case, case.window())
}
