//! Tests fences: a rank that learns that data has arrived finds the data.

use crate::child::{Ctx, own, step};
use crate::rng::Rng;
use mpi::ffi;
use portolan_base::layout::Shape;
use portolan_base::wait::Progress;
use portolan_engine::path::kernel::Scale;
use portolan_engine::transfer::{Transfer, TransferKind};

const TAG: i32 = 77;

fn int_type() -> ffi::MPI_Datatype {
    // SAFETY: `RSMPI_INT32_T` is a constant of the bindings.
    unsafe { ffi::RSMPI_INT32_T }
}

/// Sends a number through MPI itself, bypassing the engine.
pub fn send_number(to: usize, value: i32) {
    // SAFETY: `value` is one int, which lives until the call returns.
    unsafe {
        let world = ffi::RSMPI_COMM_WORLD;
        let rc = ffi::MPI_Send((&raw const value).cast(), 1, int_type(), to as i32, TAG, world);
        assert_eq!(rc, 0, "MPI_Send");
    }
}

/// Receives a number sent by `send_number`. If a thread serves this rank, the call blocks inside
/// MPI, so only the fence can have completed the data.
pub fn receive_number(ctx: &Ctx, from: usize) -> i32 {
    let engine = &*ctx.engine;
    let (mut value, mut flag) = (0i32, 0);
    // SAFETY: `value` and `flag` are one int each and live until the calls return.
    unsafe {
        let (world, ignore) = (ffi::RSMPI_COMM_WORLD, ffi::RSMPI_STATUS_IGNORE);
        while engine.has_messages() && !engine.has_thread() && flag == 0 {
            ffi::MPI_Iprobe(from as i32, TAG, world, &mut flag, ignore);
            engine.poll().expect("poll");
            // A simulated thread that polls and never yields moves the clock by less than 1 us a poll.
            std::thread::yield_now();
        }
        let rc =
            ffi::MPI_Recv((&raw mut value).cast(), 1, int_type(), from as i32, TAG, world, ignore);
        assert_eq!(rc, 0, "MPI_Recv");
    }
    value
}

/// Puts or accumulates, fences, then sends a message: the target checks its own memory.
pub fn fences(ctx: &Ctx) {
    const BYTES: usize = 300_000;
    let engine = &*ctx.engine;
    let segment = ctx.allocate(BYTES);
    let (right, left) = ((ctx.me + 1) % ctx.n, (ctx.me + ctx.n - 1) % ctx.n);
    let at = segment.part(right).address();
    for round in 0..if ctx.quick { 10 } else { 40 } {
        for bytes in [8, 104, 5000, 50_000, BYTES] {
            step(format!("fences: round {round}, {bytes} bytes"));
            own(&segment).fill(0);
            ctx.barrier();
            let content = |rank: usize| {
                let mut rng = Rng::new(ctx.seed, &[rank as u64, round, bytes as u64]);
                (0..bytes / 8).map(|_| rng.below(1000) as f64).collect::<Vec<f64>>()
            };
            let mine = content(ctx.me);
            let source = mine.as_ptr().cast::<u8>().cast_mut();
            let whole = Shape::contiguous(bytes);
            let rows = Shape::strided(&[4, bytes / 4], &[4], &[4]).expect("a shape");
            // SAFETY: `mine` holds all bytes and lives until the wait below.
            unsafe {
                match round % 4 {
                    0 => engine.put(right, at, source, bytes).expect("put"),
                    1 => engine
                        .implicit(&Transfer::new(TransferKind::Put, right, at, source, &whole))
                        .expect("put"),
                    2 => engine
                        .blocking(&Transfer::new(TransferKind::Put, right, at, source, &rows))
                        .expect("put"),
                    _ => {
                        let add = TransferKind::Accumulate(Scale::Double(1.0));
                        engine
                            .implicit(&Transfer::new(add, right, at, source, &whole))
                            .expect("acc");
                    }
                }
            }
            if round % 3 == 0 {
                engine.fence_all().expect("fence");
            } else {
                engine.fence(right).expect("fence");
            }
            send_number(right, bytes as i32);
            assert_eq!(receive_number(ctx, left), bytes as i32);
            let want = content(left);
            let found = &own(&segment)[..bytes];
            if let Some(i) =
                found.iter().zip(bytemuck::cast_slice(&want)).position(|(a, b): (_, &u8)| a != b)
            {
                panic!("round {round}: byte {i} of {bytes} is not there after the fence");
            }
            engine.wait_implicit().expect("wait");
            ctx.barrier();
        }
    }
    ctx.free(segment);
}
