//! Measures shipped calls. Each figure is printed with a reference from the same run.
//!
//!     cargo bench --bench rpc [-- [--quick] [latency|rate|inputs|bulk|idle ...]]
//!
//! Two ranks of one node, a client and a server, run under the MPI launcher without and with
//! checksums. The figures are medians of rounds that alternate with their references; *required* is
//! the target of the library. `benches/c/rpc_bench.c` does the same with the C interface.

mod by_mpi;
#[path = "../support/mod.rs"]
mod support;

use portolan::Runtime;
use portolan::rpc::bulk::{Access, Buffer, Bulk};
use portolan::rpc::checksum::Method;
use portolan::rpc::{Address, Call, Class, Context, Failure, Handle, Listen, Rpc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::{Row, launched, median};

struct Bytes(Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Bytes;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("bytes")
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(bytes.to_vec()))
            }
        }
        from.deserialize_bytes(Visitor)
    }
}

static STOP: AtomicBool = AtomicBool::new(false);

struct Calls {
    null: Rpc<(), ()>,
    take: Rpc<Bytes, u64>,
    pull: Rpc<Bulk, f64>,
    stop: Rpc<(), ()>,
}

struct Bench {
    rt: Runtime,
    class: Class,
    context: Context,
    calls: Calls,
    server: Address,
    me: usize,
    checksum: &'static str,
    quick: bool,
}

/// Pulls all of the caller's memory and answers with the time in seconds.
fn pull(call: Call<Bulk, f64>) -> Result<(), Failure> {
    let data = call.input()?;
    let (context, origin, size) = (call.context(), call.source(), data.len());
    let mut buffer = Buffer::zeroed(size)?;
    buffer.fill(1); // touches all pages
    let begun = Instant::now();
    context.pull(&origin, data.at(0), buffer, size, move |ended, buffer| {
        let seconds = begun.elapsed().as_secs_f64();
        ended.expect("pull");
        assert_eq!(buffer[size - 1], 7, "the last byte of the client's memory");
        call.answer(&seconds).expect("answer");
    });
    Ok(())
}

impl Bench {
    fn new(rt: Runtime, method: Method, quick: bool) -> Bench {
        let class = Class::init_with("mpi", Listen::Yes, method).expect("class");
        let calls = Calls {
            null: class.serve_fn("null", |()| Ok(())).expect("serve"),
            take: class.serve_fn("take", |bytes: Bytes| Ok(bytes.0.len() as u64)).expect("serve"),
            pull: class.serve("pull", pull).expect("serve"),
            stop: class
                .serve_fn("stop", |()| {
                    STOP.store(true, Ordering::Relaxed);
                    Ok(())
                })
                .expect("serve"),
        };
        let context = class.context().expect("context");
        let server = class.rank(1).expect("rank 1");
        let me = rt.rank();
        Bench { rt, class, context, calls, server, me, checksum: method.name(), quick }
    }

    fn end(self) -> Runtime {
        let Bench { rt, class, context, calls, .. } = self;
        drop((context, calls));
        class.finalize().expect("finalize");
        rt
    }

    fn barrier(&self) {
        self.rt.world().barrier().expect("barrier");
    }

    fn row(&self, row: &Row<'_>) {
        if self.me == 0 {
            row.print(self.checksum);
        }
    }

    fn turn(&self) {
        self.context.progress(Duration::ZERO).expect("progress");
        self.context.trigger(64);
    }

    fn poll_until<I: Serialize, O: serde::de::DeserializeOwned>(&self, handle: &Handle<I, O>) {
        while !handle.is_done() {
            self.turn();
        }
    }

    /// Runs the client, whose figure it returns, while the server waits for up to `wait` at a time.
    fn phase(&self, wait: Duration, client: impl FnOnce() -> f64) -> f64 {
        self.barrier();
        if self.me == 1 {
            while !STOP.swap(false, Ordering::Relaxed) {
                self.context.progress(wait).expect("progress");
                self.context.trigger(64);
            }
            return 0.0;
        }
        let value = client();
        let stop = self.context.handle(&self.server, &self.calls.stop);
        stop.start(&()).expect("stop");
        self.poll_until(&stop);
        value
    }

    /// Returns the nanoseconds of a call. Calls follow one another.
    fn null(&self, n: u32) -> f64 {
        let handle = self.context.handle(&self.server, &self.calls.null);
        let begun = Instant::now();
        for _ in 0..n {
            handle.start(&()).expect("start");
            self.poll_until(&handle);
        }
        begun.elapsed().as_secs_f64() / f64::from(n) * 1e9
    }

    fn latency(&self) {
        let (rounds, n) = if self.quick { (5, 2000) } else { (15, 5000) };
        let (mut polling, mut waiting, mut mpis) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..=rounds {
            let figures = [
                self.phase(Duration::ZERO, || self.null(n)),
                self.mpi_round_trip(&mut [0; 8], None, n),
                self.phase(Duration::from_millis(100), || self.null(n)),
            ];
            if round > 0 {
                polling.push(figures[0]);
                mpis.push(figures[1]);
                waiting.push(figures[2]);
            }
        }
        let (polling, waiting, mpi) = (median(polling), median(waiting), median(mpis));
        self.row(&Row {
            what: "null call, both poll",
            value: polling,
            unit: "ns",
            beside: &format!("MPI's round trip {mpi:.0} ns"),
            ratio: polling / mpi,
            wanted: "<= 1.3",
            ok: polling <= 1.3 * mpi,
        });
        let limit = (4.0 * polling).max(5000.0);
        self.row(&Row {
            what: "null call, the server waits",
            value: waiting,
            unit: "ns",
            beside: &format!("polling {polling:.0} ns"),
            ratio: waiting / polling,
            wanted: &format!("<= {limit:.0} ns"),
            ok: waiting <= limit,
        });
    }

    /// Returns million calls per second, with 64 calls in progress.
    fn many(&self, n: u64) -> f64 {
        struct Flight {
            handle: Handle<(), ()>,
            again: AtomicU64,
            ended: AtomicU64,
        }
        fn forward(flight: &Arc<Flight>) {
            let mine = flight.clone();
            let next = move |ended: Result<(), _>| {
                ended.expect("call");
                mine.ended.fetch_add(1, Ordering::Relaxed);
                if mine.again.fetch_sub(1, Ordering::Relaxed) > 1 {
                    forward(&mine);
                }
            };
            flight.handle.forward(&(), next).expect("forward");
        }
        const FLIGHTS: u64 = 64;
        let each = n / FLIGHTS;
        let flights: Vec<Arc<Flight>> = (0..FLIGHTS)
            .map(|_| {
                let handle = self.context.handle(&self.server, &self.calls.null);
                Arc::new(Flight { handle, again: each.into(), ended: 0.into() })
            })
            .collect();
        let begun = Instant::now();
        flights.iter().for_each(forward);
        while flights.iter().any(|f| f.ended.load(Ordering::Relaxed) < each) {
            for _ in 0..100 {
                self.turn();
            }
        }
        (each * FLIGHTS) as f64 / begun.elapsed().as_secs_f64() / 1e6
    }

    fn rate(&self) {
        let (rounds, n) = if self.quick { (3, 100_000) } else { (9, 500_000) };
        let (mut ours, mut mpis) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            ours.push(self.phase(Duration::ZERO, || self.many(n)));
            mpis.push(self.mpi_many(n));
        }
        let (ours, mpi) = (median(ours), median(mpis));
        let limit = (0.5 * mpi).max(1.2);
        self.row(&Row {
            what: "null calls, 64 under way",
            value: ours,
            unit: "M/s",
            beside: &format!("MPI, two messages {mpi:.2} M/s"),
            ratio: ours / mpi,
            wanted: &format!(">= {limit:.2} M/s"),
            ok: ours >= limit,
        });
    }

    /// Compares with two kinds of MPI messages: one that is never written, so that both processors'
    /// caches keep it, and one that is copied into place first, as the input of a call is.
    fn inputs(&self) {
        for (kib, n) in [(4, 2000), (64, 500), (1024, 100)] {
            let (rounds, n) = if self.quick { (3, n / 4) } else { (11, n) };
            let bytes = kib << 10;
            let input = Bytes(vec![5; bytes]);
            let (mut ours, mut kept, mut fresh) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..=rounds {
                ours.push(self.phase(Duration::ZERO, || {
                    let handle = self.context.handle(&self.server, &self.calls.take);
                    let begun = Instant::now();
                    for _ in 0..n {
                        handle.start(&input).expect("start");
                        self.poll_until(&handle);
                        assert_eq!(handle.output().expect("output"), bytes as u64);
                    }
                    begun.elapsed().as_secs_f64() / f64::from(n) * 1e9
                }));
                let mut message = vec![5; bytes];
                kept.push(self.mpi_round_trip(&mut message, None, n));
                fresh.push(self.mpi_round_trip(&mut message, Some(&input.0), n));
            }
            let (ours, kept, fresh) = (median(ours), median(kept), median(fresh));
            for (name, mpi) in [("unchanged", kept), ("just written", fresh)] {
                if name == "unchanged" && bytes > 64 << 10 {
                    continue;
                }
                self.row(&Row {
                    what: &format!("input of {kib} KiB"),
                    value: ours / 1e3,
                    unit: "us",
                    beside: &format!("MPI's, {name} {:.2} us", mpi / 1e3),
                    ratio: ours / mpi,
                    wanted: "<= 2",
                    ok: ours <= 2.0 * mpi,
                });
            }
        }
    }

    /// Returns the GB/s of pulls of a client's memory, as measured by the server.
    fn pulls(&self, sizes: &[usize], n: usize) -> f64 {
        self.phase(Duration::ZERO, || {
            let bytes: usize = sizes.iter().sum();
            let data = Bulk::allocate(sizes, Access::ReadOnly).expect("memory");
            data.write(0, &vec![7; bytes]).expect("write");
            let handle = self.context.handle(&self.server, &self.calls.pull);
            let seconds = (0..n).map(|_| {
                handle.start(&data).expect("start");
                self.poll_until(&handle);
                handle.output().expect("output")
            });
            bytes as f64 / median(seconds.collect()) / 1e9
        })
    }

    fn copies(bytes: usize, n: usize) -> f64 {
        let (from, mut to) = (vec![7u8; bytes], vec![1u8; bytes]);
        let seconds = (0..n).map(|_| {
            let begun = Instant::now();
            to.copy_from_slice(std::hint::black_box(&from));
            std::hint::black_box(&mut to);
            begun.elapsed().as_secs_f64()
        });
        bytes as f64 / median(seconds.collect()) / 1e9
    }

    fn bulk(&self) {
        let rounds = if self.quick { 3 } else { 9 };
        let mut one_mib = 0.0;
        for (mib, n) in [(1usize, 50), (16, 9)] {
            let bytes = mib << 20;
            let (mut ours, mut copies) = (Vec::new(), Vec::new());
            for _ in 0..rounds {
                ours.push(self.pulls(&[bytes], n));
                copies.push(Bench::copies(bytes, n));
            }
            let (ours, copy) = (median(ours), median(copies));
            if mib == 1 {
                one_mib = ours;
            }
            self.row(&Row {
                what: &format!("pull of {mib} MiB"),
                value: ours,
                unit: "GB/s",
                beside: &format!("memcpy {copy:.2} GB/s"),
                ratio: ours / copy,
                wanted: ">= 0.85",
                ok: ours >= 0.85 * copy,
            });
        }
        let ours = median((0..rounds).map(|_| self.pulls(&[1024; 1024], 50)).collect());
        self.row(&Row {
            what: "pull of 1,024 segments of 1 KiB",
            value: ours,
            unit: "GB/s",
            beside: &format!("contiguous {one_mib:.2} GB/s"),
            ratio: ours / one_mib,
            wanted: ">= 0.5",
            ok: ours >= 0.5 * one_mib,
        });
    }

    /// Measures the CPU time of a waiting server without calls, and how fast it answers then.
    fn idle(&self) {
        let all = Duration::from_secs(if self.quick { 2 } else { 5 });
        let before = processor_seconds();
        let begun = Instant::now();
        self.phase(Duration::from_secs(1), || {
            std::thread::sleep(all);
            0.0
        });
        let used = (processor_seconds() - before) / begun.elapsed().as_secs_f64() * 100.0;
        let used = self.rt.world().all_gather(used).expect("gather")[1];
        self.row(&Row {
            what: "idle server, of a core",
            value: used,
            unit: "%",
            beside: "",
            ratio: used,
            wanted: "< 1",
            ok: used < 1.0,
        });
        let n = if self.quick { 50 } else { 300 };
        let wake = self.phase(Duration::from_secs(1), || {
            let times = (0..n).map(|_| {
                std::thread::sleep(Duration::from_millis(10));
                self.null(1)
            });
            median(times.collect()) / 1e3
        });
        self.row(&Row {
            what: "call to an idle server",
            value: wake,
            unit: "us",
            beside: "after 10 ms of silence",
            ratio: wake,
            wanted: "<= 100",
            ok: wake <= 100.0,
        });
    }

    fn run(&self) {
        let parts: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
        let wanted = |part: &str| parts.is_empty() || parts.iter().any(|name| name == part);
        let run: &[(&str, &dyn Fn())] = &[
            ("latency", &|| self.latency()),
            ("rate", &|| self.rate()),
            ("inputs", &|| self.inputs()),
            ("bulk", &|| self.bulk()),
            ("idle", &|| self.idle()),
        ];
        run.iter().filter(|(part, _)| wanted(part)).for_each(|(_, run)| run());
    }
}

fn processor_seconds() -> f64 {
    // SAFETY: `rusage` is valid if zeroed, and `getrusage` writes only to it.
    unsafe {
        let mut r: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut r);
        let time = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 * 1e-6;
        time(r.ru_utime) + time(r.ru_stime)
    }
}

fn main() -> ExitCode {
    if std::env::args().any(|a| a == "--test") {
        return ExitCode::SUCCESS; // `cargo test` runs benchmarks too
    }
    if !launched() {
        println!(
            "sum    what                                  figure           beside                          ratio  required"
        );
        let well = support::launch(&[]);
        return if well { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let quick = std::env::args().any(|a| a == "--quick");
    let mut rt = Runtime::init().expect("start");
    assert_eq!(rt.size(), 2, "the benchmark is for two ranks");
    for method in [Method::None, Method::Crc64] {
        let bench = Bench::new(rt, method, quick);
        bench.run();
        rt = bench.end();
    }
    rt.finalize().expect("finalize");
    ExitCode::SUCCESS
}
