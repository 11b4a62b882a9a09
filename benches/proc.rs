//! Encoding and decoding of 4 KiB of parameters, with each checksum.
//!
//! ```sh
//! MPICC=mpicc.mpich CARGO_TARGET_DIR=target/mpich cargo bench --bench proc
//! ```
//!
//! `fields` encodes 512 numbers of 8 bytes one by one, as a generated proc does. `struct` encodes
//! 128 serde structs, and `raw` one block. `memcpy` is the cost of copying the block.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use portolan_rpc::checksum::Method;
use portolan_rpc::proc::{self, Op, Proc};
use serde::{Deserialize, Serialize};
use std::hint::black_box;

const BYTES: usize = 4096;
/// Size of the buffer in bytes, with space for the trailer.
const ROOM: usize = BYTES + 16;

#[derive(Serialize, Deserialize, Clone, Copy)]
struct Record {
    id: u32,
    flags: u32,
    offset: u64,
    length: u64,
    scale: f64,
}

fn encode(c: &mut Criterion) {
    let mut group = c.benchmark_group("encode 4 KiB");
    group.throughput(Throughput::Bytes(BYTES as u64));
    let numbers: Vec<u64> = (0..BYTES as u64 / 8).collect();
    let bytes: &[u8] = bytemuck::cast_slice(&numbers);
    let records = [Record { id: 1, flags: 2, offset: 3, length: 4, scale: 5.0 }; 128];
    let mut buf = vec![0u8; ROOM + 8];
    group.bench_function("memcpy", |b| {
        b.iter(|| buf[..BYTES].copy_from_slice(black_box(bytes)));
    });
    for &method in Method::ALL {
        group.bench_function(BenchmarkId::new("fields", method.name()), |b| {
            b.iter(|| {
                let mut proc = Proc::encoder(&mut buf, method);
                for number in black_box(&numbers) {
                    // SAFETY: the pointer is valid for eight bytes, and an encoder only reads them.
                    let done = unsafe { proc.transfer(std::ptr::from_ref(number) as *mut u8, 8) };
                    done.expect("room");
                }
                proc.finish().expect("room")
            });
        });
        group.bench_function(BenchmarkId::new("struct", method.name()), |b| {
            b.iter(|| proc::to_slice(black_box(&records[..]), &mut buf, method).expect("room"));
        });
        group.bench_function(BenchmarkId::new("raw", method.name()), |b| {
            b.iter(|| {
                let mut proc = Proc::encoder(&mut buf, method);
                proc.put(black_box(bytes)).expect("room");
                proc.finish().expect("room")
            });
        });
    }
    group.finish();
}

fn decode(c: &mut Criterion) {
    let mut group = c.benchmark_group("decode 4 KiB");
    group.throughput(Throughput::Bytes(BYTES as u64));
    let records = vec![Record { id: 1, flags: 2, offset: 3, length: 4, scale: 5.0 }; 128];
    let numbers = vec![7u64; BYTES / 8];
    for &method in Method::ALL {
        let bytes = proc::to_vec(&records, method).expect("memory");
        group.bench_function(BenchmarkId::new("struct", method.name()), |b| {
            b.iter(|| proc::from_slice::<Vec<Record>>(black_box(&bytes), method).expect("bytes"));
        });
        let mut sent = Proc::encoder(&mut [], method);
        sent.put(bytemuck::cast_slice(&numbers)).expect("memory");
        sent.finish().expect("memory");
        group.bench_function(BenchmarkId::new("fields", method.name()), |b| {
            b.iter(|| {
                let mut proc = Proc::decoder(black_box(sent.encoded()), method);
                assert!(proc.op() == Op::Decode);
                let mut sum = 0u64;
                for _ in 0..BYTES / 8 {
                    sum ^= u64::from_le_bytes(proc.take_array().expect("bytes"));
                }
                proc.finish().expect("a checksum");
                sum
            });
        });
    }
    group.finish();
}

criterion_group!(benches, encode, decode);
criterion_main!(benches);
