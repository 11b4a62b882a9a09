//! The C interfaces, called by their symbols, under the model of [`random`](crate::random) and the
//! checks of [`contention`](crate::contention). All of them run on the engine of the check.

mod armci;
mod compose;
mod lapi;
mod x10;

use crate::child::Ctx;
use crate::interface::Interface;
use crate::rng::Rng;
use crate::{contention, random};
use mpi::ffi;

// Links the symbols.
use portolan_tests_capi as _;

/// Synchronises all ranks without the library's calls, so only a fence can have completed data.
fn mpi_barrier() {
    // SAFETY: MPI is initialised.
    assert_eq!(unsafe { ffi::MPI_Barrier(ffi::RSMPI_COMM_WORLD) }, 0, "MPI_Barrier");
}

/// Starts the interface twice: counts, locks and handles of its first life must not stay.
fn drive<I: Interface>(ctx: &Ctx, start: fn(&Ctx) -> I, size: (usize, usize)) {
    let mut calls = start(ctx);
    contention::run(ctx, &mut calls);
    calls.end();
    let mut calls = start(ctx);
    random::run(ctx, &mut calls, size);
    contention::hand_overs(ctx, &mut calls, &mut Rng::new(ctx.seed, &[1]));
    calls.end();
}

fn size(ctx: &Ctx) -> (usize, usize) {
    if ctx.quick { (2, 30) } else { (4, 30) }
}

pub fn armci(ctx: &Ctx) {
    drive(ctx, armci::Armci::start, size(ctx));
}

pub fn x10(ctx: &Ctx) {
    drive(ctx, x10::X10::start, size(ctx));
}

pub fn lapi(ctx: &Ctx) {
    drive(ctx, lapi::Lapi::start, size(ctx));
}

/// A rank performs once in each phase, because nothing orders its performances within one.
pub fn compose(ctx: &Ctx) {
    drive(ctx, compose::Compose::start, (if ctx.quick { 6 } else { 12 }, 1));
}
