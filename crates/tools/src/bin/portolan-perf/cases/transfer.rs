//! Contiguous put, get and accumulate.
//!
//! The operations of a window go to different offsets at the target. All contenders do this, so
//! that caches do not favour one of them.

use crate::Result;
use crate::bounds::rma::{self, Operation};
use crate::bounds::{copies, plain, two_sided};
use crate::measure::{Body, By, Contender, Lab};
use crate::plan::{Case, Type, region};
use portolan::{Accumulate, Complex, Segment};
use std::cell::OnceCell;
use std::hint::black_box;

/// Bytes of the largest accumulate.
pub const ACCUMULATE: usize = 16 << 20;

/// Returns Portolan's contender for an operation that only origins execute.
pub(super) fn ours<'a>(ops: usize, body: Body<'a>) -> Contender<'a> {
    Contender { name: "portolan", by: By::Portolan, both: false, body, ops: ops as f64 }
}

/// Adds the bounds of a transfer with `window` operations in flight.
fn bounds<'a>(
    lab: &'a Lab<'_>,
    case: Case,
    (operation, window): (Operation, usize),
    all: &mut Vec<Contender<'a>>,
) -> Result<()> {
    if lab.bounds.plain && operation != Operation::Add {
        all.push(copies(lab, case, window));
    }
    if lab.bounds.two_sided && lab.size() > 1 {
        all.push(if window > 1 {
            two_sided::windows(lab, case, window)
        } else {
            two_sided::round_trips(lab, case, (case.bytes, case.bytes), 2.0)
        });
    }
    if lab.bounds.rma {
        all.push(rma::flushed(lab, case, operation, window)?);
    }
    Ok(())
}

/// Returns a buffer of `bytes` bytes at origins, and an empty one elsewhere.
fn source(lab: &Lab<'_>, case: Case, bytes: usize) -> Vec<u8> {
    vec![1; if lab.targets(case.pattern).is_empty() { 0 } else { bytes }]
}

pub(super) fn put_lat<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let targets = lab.targets(case.pattern);
    let from = source(lab, case, case.bytes);
    let body = move |n: usize| {
        for turn in (0..n).filter(|_| !targets.is_empty()) {
            let target = targets[turn % targets.len()];
            lab.data.put(target, 0, &from)?;
            lab.data.fence(target)?;
        }
        Ok(())
    };
    let mut all = vec![ours(1, Box::new(body))];
    bounds(lab, case, (Operation::Put, 1), &mut all)?;
    Ok(all)
}

pub(super) fn put_bw<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let targets = lab.targets(case.pattern);
    let (window, from) = (case.window(), source(lab, case, case.bytes));
    let body = move |n: usize| {
        for turn in (0..n).filter(|_| !targets.is_empty()) {
            let target = targets[turn % targets.len()];
            for place in 0..window {
                lab.data.put(target, place * case.bytes, &from)?;
            }
            lab.data.fence(target)?;
        }
        Ok(())
    };
    let mut all = vec![ours(window, Box::new(body))];
    bounds(lab, case, (Operation::Put, window), &mut all)?;
    Ok(all)
}

pub(super) fn nbput_bw<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let targets = lab.targets(case.pattern);
    let (window, from) = (case.window(), source(lab, case, case.bytes));
    let body = move |n: usize| {
        for turn in (0..n).filter(|_| !targets.is_empty()) {
            let target = targets[turn % targets.len()];
            // The end of the scope completes all puts issued in it.
            lab.rt.scope(|scope| {
                for place in 0..window {
                    scope.put(&lab.data, target, place * case.bytes, &from)?;
                }
                Ok(())
            })?;
            lab.data.fence(target)?;
        }
        Ok(())
    };
    let mut all = vec![ours(window, Box::new(body))];
    bounds(lab, case, (Operation::Put, window), &mut all)?;
    Ok(all)
}

pub(super) fn get_lat<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let targets = lab.targets(case.pattern);
    let mut to = source(lab, case, case.bytes);
    let body = move |n: usize| {
        for turn in (0..n).filter(|_| !targets.is_empty()) {
            lab.data.get(targets[turn % targets.len()], 0, &mut to)?;
        }
        Ok(())
    };
    let mut all = vec![ours(1, Box::new(body))];
    bounds(lab, case, (Operation::Get, 1), &mut all)?;
    Ok(all)
}

pub(super) fn get_bw<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    let targets = lab.targets(case.pattern);
    let window = case.window();
    let mut to = source(lab, case, case.bytes * window);
    let body = move |n: usize| {
        for turn in (0..n).filter(|_| !targets.is_empty()) {
            let (target, parts) = (targets[turn % targets.len()], to.chunks_exact_mut(case.bytes));
            lab.rt.scope(|scope| {
                for (place, part) in parts.enumerate() {
                    scope.get(&lab.data, target, place * case.bytes, part)?;
                }
                Ok(())
            })?;
        }
        Ok(())
    };
    let mut all = vec![ours(window, Box::new(body))];
    bounds(lab, case, (Operation::Get, window), &mut all)?;
    Ok(all)
}

/// Segments of each number type, allocated when a test first needs them.
#[derive(Default)]
pub struct Started<'rt> {
    i32s: OnceCell<Segment<'rt, i32>>,
    i64s: OnceCell<Segment<'rt, i64>>,
    f32s: OnceCell<Segment<'rt, f32>>,
    f64s: OnceCell<Segment<'rt, f64>>,
    c32s: OnceCell<Segment<'rt, Complex<f32>>>,
    c64s: OnceCell<Segment<'rt, Complex<f64>>>,
}

pub(super) fn free(started: Started<'_>) -> Result<()> {
    fn one<T: Accumulate>(segment: OnceCell<Segment<'_, T>>) -> Result<()> {
        Ok(segment.into_inner().map_or(Ok(()), Segment::free)?)
    }
    one(started.i32s)?;
    one(started.i64s)?;
    one(started.f32s)?;
    one(started.f64s)?;
    one(started.c32s)?;
    one(started.c64s)
}

fn accumulate<'a>(lab: &'a Lab<'_>, case: Case, window: usize) -> Result<Vec<Contender<'a>>> {
    let cells = &lab.services.numbers;
    match case.element {
        Type::I32 => added(lab, case, window, &cells.i32s),
        Type::I64 => added(lab, case, window, &cells.i64s),
        Type::F32 => added(lab, case, window, &cells.f32s),
        Type::F64 => added(lab, case, window, &cells.f64s),
        Type::C32 => added(lab, case, window, &cells.c32s),
        Type::C64 => added(lab, case, window, &cells.c64s),
    }
}

fn added<'a, 'rt, T: Accumulate + std::ops::AddAssign + std::ops::Mul<Output = T>>(
    lab: &'a Lab<'rt>,
    case: Case,
    window: usize,
    cell: &'a OnceCell<Segment<'rt, T>>,
) -> Result<Vec<Contender<'a>>> {
    if cell.get().is_none() {
        let bytes = region(ACCUMULATE.min(lab.region));
        let _ = cell.set(lab.rt.world().allocate(bytes / size_of::<T>())?);
    }
    let segment = cell.get().expect("set above");
    let targets = lab.targets(case.pattern);
    let length = case.bytes / size_of::<T>();
    let origin = !targets.is_empty();
    // A scale of one and a source of zeros keep the numbers from growing without bound.
    let from = vec![T::zeroed(); if origin { length } else { 0 }];
    let body = move |n: usize| {
        for turn in (0..n).filter(|_| origin) {
            let target = targets[turn % targets.len()];
            for place in 0..window {
                segment.accumulate(target, place * length, T::ONE, &from)?;
            }
            segment.fence(target)?;
        }
        Ok(())
    };
    let mut all = vec![ours(window, Box::new(body))];
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
        all.push(plain("loop", window, Box::new(body)));
    }
    // MPI messages cannot add. MPI windows can, and this bound uses double precision.
    if lab.bounds.rma && case.element == Type::F64 {
        all.push(rma::flushed(lab, case, Operation::Add, window)?);
    }
    Ok(all)
}

pub(super) fn acc_lat<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    accumulate(lab, case, 1)
}

pub(super) fn acc_bw<'a>(lab: &'a Lab<'_>, case: Case) -> Result<Vec<Contender<'a>>> {
    accumulate(lab, case, case.window())
}
