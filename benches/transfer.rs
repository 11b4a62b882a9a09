//! Transfers to another rank, compared with a plain copy of the same bytes.
//!
//! Rank 0 measures with criterion. The other ranks wait in a barrier and serve requests of any path
//! there:
//!
//! ```sh
//! MPICC=mpicc.mpich CARGO_TARGET_DIR=target/mpich cargo bench --bench transfer --no-run
//! ./mpirun.sh --mpi mpich -n 2 target/mpich/release/deps/transfer-* --bench
//! ```
//!
//! `PORTOLAN_PATH` and `PORTOLAN_NODE_SIZE` select the path. At the end the benchmark prints the
//! ratios to the plain copies.

use criterion::{BenchmarkId, Criterion, Throughput};
use portolan_base::layout::Shape;
use portolan_engine::atomics::Rmw;
use portolan_engine::path::kernel::Scale;
use portolan_engine::runtime::Engine;
use portolan_engine::transfer::{Transfer, TransferKind};
use std::hint::black_box;
use std::time::{Duration, Instant};

const SIZES: [usize; 4] = [8, 4 << 10, 64 << 10, 1 << 20];

/// Returns the median of timings that each have enough calls for the resolution of the clock.
fn median(mut f: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..15)
        .map(|_| {
            let (start, mut calls) = (Instant::now(), 0u32);
            while start.elapsed() < Duration::from_millis(4) {
                f();
                calls += 1;
            }
            start.elapsed().as_secs_f64() / f64::from(calls)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn measure(engine: &Engine, target: usize, remote: usize) {
    let mut c = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(600))
        .configure_from_args();
    let mut local = vec![1u8; 1 << 20];
    let mut copy = vec![0u8; 1 << 20];
    let mut ratios = Vec::new();
    for bytes in SIZES {
        let mut group = c.benchmark_group("contiguous");
        group.throughput(Throughput::Bytes(bytes as u64));
        let p = local.as_mut_ptr();
        // SAFETY: `local` has at least `bytes` bytes, which nothing else accesses during the calls.
        let put = || unsafe { engine.put(target, remote, p, bytes) }.expect("put");
        // SAFETY: `local` has at least `bytes` bytes, which nothing else accesses during the calls.
        let get = || unsafe { engine.get(target, remote, p, bytes) }.expect("get");
        group.bench_function(BenchmarkId::new("put", bytes), |b| b.iter(put));
        group.bench_function(BenchmarkId::new("get", bytes), |b| b.iter(get));
        let both = [median(put), median(get)];
        let source = vec![2u8; bytes];
        let mut plain = || copy[..bytes].copy_from_slice(black_box(&source));
        group.bench_function(BenchmarkId::new("memcpy", bytes), |b| b.iter(&mut plain));
        let beside = median(plain);
        ratios.push((bytes, both[0] / beside, both[1] / beside));
        group.finish();
    }
    let mut group = c.benchmark_group("other");
    let p = local.as_mut_ptr();
    let shape = Shape::strided(&[512, 64], &[512], &[1024]).expect("a shape");
    let put = Transfer::new(TransferKind::Put, target, remote, p, &shape);
    // SAFETY: the shape spans 32 KiB of `local` and 64 KiB of the segment.
    let strided = || unsafe { engine.blocking(&put) }.expect("put");
    group.bench_function("strided 64 x 64 doubles", |b| b.iter(strided));
    let row = Shape::contiguous(4096);
    let kind = TransferKind::Accumulate(Scale::Double(2.5));
    let add = Transfer::new(kind, target, remote, p, &row);
    // SAFETY: the shape spans 4 KiB of `local`, which nothing else accesses.
    let acc = || unsafe { engine.blocking(&add) }.expect("accumulate");
    group.bench_function("accumulate 512 doubles", |b| b.iter(acc));
    let add = || black_box(engine.rmw(target, remote, Rmw::add::<i64>(1)).expect("rmw"));
    group.bench_function("fetch-and-add", |b| b.iter(add));
    group.bench_function("put 8 + fence", |b| {
        b.iter(|| {
            // SAFETY: `local` has at least eight bytes, and nothing else accesses them.
            unsafe { engine.put(target, remote, p, 8) }.expect("put");
            engine.fence(target).expect("fence");
        });
    });
    group.finish();
    c.final_summary();
    println!("path {}", engine.path_between(engine.rank(), target).name());
    for (bytes, put, get) in ratios {
        println!("{bytes:>8} bytes: put {put:.2}, get {get:.2} times memcpy");
    }
}

fn main() {
    // SAFETY: no communicator is passed, so none has to be live.
    let engine = unsafe { Engine::start(None) }.expect("the runtime starts");
    let world = engine.world().clone();
    let segment = engine.allocate(&world, 2 << 20).expect("a segment");
    // SAFETY: the memory is this rank's own part, which no other rank accesses before the barrier.
    unsafe { std::ptr::write_bytes(segment.my_base(), 0, 2 << 20) };
    engine.barrier_of(&world).expect("barrier");
    if engine.rank() == 0 {
        let target = usize::from(engine.size() > 1);
        measure(&engine, target, segment.part(target).address());
    }
    engine.barrier_of(&world).expect("barrier");
    engine.release(segment).expect("release");
    drop(world);
    drop(engine);
    Engine::stop().expect("the runtime stops");
}
