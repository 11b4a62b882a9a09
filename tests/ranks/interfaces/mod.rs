//! The C interfaces, called by their symbols, the typed Rust interface and distributed arrays under
//! the model of [`random`](crate::random) and the checks of [`contention`](crate::contention). All of
//! them run on the engine of the check.

mod armci;
mod arrays;
mod compose;
mod lapi;
mod lapi_am;
mod rust;
mod x10;
mod x10_am;

use crate::child::Ctx;
use crate::interface::Interface;
use crate::rng::Rng;
use crate::{contention, random, team_plans};
use mpi::ffi;
use portolan::internals::runtime;
use portolan::{Accumulate, Atomic, Runtime};
use portolan_base::wait::Progress as _;
use portolan_engine::runtime::Engine;

// Links the symbols.
use portolan_tests_capi as _;

/// Synchronises all ranks without the library's fences, so only a fence before it can have completed
/// data. Without a progress thread, the waiting ranks serve the others by their polls.
pub fn mpi_barrier(engine: &Engine) {
    if engine.has_thread() {
        // SAFETY: MPI is initialised.
        return assert_eq!(unsafe { ffi::MPI_Barrier(ffi::RSMPI_COMM_WORLD) }, 0, "MPI_Barrier");
    }
    let mut done = 0;
    // SAFETY: MPI is initialised, and the request lives until it is complete.
    unsafe {
        let mut request = ffi::RSMPI_REQUEST_NULL;
        assert_eq!(ffi::MPI_Ibarrier(ffi::RSMPI_COMM_WORLD, &mut request), 0, "MPI_Ibarrier");
        while done == 0 {
            assert_eq!(
                ffi::MPI_Test(&mut request, &mut done, ffi::RSMPI_STATUS_IGNORE),
                0,
                "MPI_Test"
            );
            engine.poll().expect("poll");
        }
    }
}

/// Starts the interface twice: counts, locks and handles of its first life must not stay.
fn drive<I: Interface>(ctx: &Ctx, start: impl Fn(&Ctx) -> I, size: (usize, usize)) {
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

/// The groups of an interface that has some.
fn drive_teams<I: Interface>(ctx: &Ctx, mut calls: I) {
    team_plans::run(ctx, &mut calls);
    calls.end();
}

pub fn armci(ctx: &Ctx) {
    drive(ctx, armci::Armci::start, size(ctx));
    drive_teams(ctx, armci::Armci::start(ctx));
}

pub fn x10(ctx: &Ctx) {
    drive(ctx, x10::X10::start, size(ctx));
    x10_am::run(ctx);
}

pub fn lapi(ctx: &Ctx) {
    drive(ctx, lapi::Lapi::start, size(ctx));
    lapi_am::run(ctx);
}

pub fn rust(ctx: &Ctx) {
    let rt = runtime(&ctx.engine);
    let shared = rust::Shared::new(&rt).expect("the memory of the interface");
    drive(ctx, |ctx| rust::Rust::start(ctx, &shared), size(ctx));
    drive_teams(ctx, rust::Rust::start(ctx, &shared));
    shared.free().expect("free");
}

/// Arrays of some element types, which the seed selects.
pub fn arrays(ctx: &Ctx) {
    use num_complex::Complex;
    type Run = fn(&Ctx, &Runtime);
    fn plain<T: Accumulate>(ctx: &Ctx, rt: &Runtime) {
        typed(ctx, arrays::Arrays::<T>::start(ctx, rt, None));
    }
    fn words<T: Atomic>(ctx: &Ctx, rt: &Runtime) {
        let start = || arrays::Arrays::<T>::start(ctx, rt, Some(|a, at, x| a.fetch_add(at, x)));
        let mut calls = start();
        contention::run(ctx, &mut calls);
        calls.end();
        typed(ctx, start());
    }
    fn typed(ctx: &Ctx, mut calls: impl Interface) {
        random::run(ctx, &mut calls, (2, if ctx.quick { 15 } else { 30 }));
        calls.end();
    }
    let mut rng = Rng::new(ctx.seed, &[ctx.n as u64, 6]);
    let mut types: [Run; 8] = [
        plain::<f32>,
        plain::<f64>,
        plain::<Complex<f32>>,
        plain::<Complex<f64>>,
        plain::<i8>,
        plain::<u8>,
        plain::<i16>,
        plain::<u16>,
    ];
    rng.shuffle(&mut types);
    let counters: [Run; 4] = [words::<i32>, words::<i64>, words::<u32>, words::<u64>];
    let rt = runtime(&ctx.engine);
    rng.pick(&counters)(ctx, &rt);
    types[..if ctx.quick { 2 } else { 4 }].iter().for_each(|run| run(ctx, &rt));
}

/// A rank performs once in each phase, because nothing orders its performances within one.
pub fn compose(ctx: &Ctx) {
    drive(ctx, compose::Compose::start, (if ctx.quick { 6 } else { 12 }, 1));
}
