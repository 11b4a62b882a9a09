//! Measures active messages. Each figure is printed with a reference from the same run.
//!
//!     cargo bench --bench am [-- --quick] [-- PART ...]
//!
//! The parts are latency, reaction, bandwidth, rate, updates and idle. The default is all of them.
//! The benchmark starts two ranks under the MPI launcher, once with rings and once with MPI
//! messages. The figures are medians of alternating rounds; *required* is the target of the
//! library.

#[path = "../support/mod.rs"]
mod support;
mod updates;

use mpi::ffi;
use portolan::Result;
use portolan_engine::am::{
    Accept, Am, Arrival, Data, Destination, Handler, HandlerId, Signals, Then,
};
use portolan_engine::runtime::Engine;
use std::ffi::c_void;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::{Row, launched, median};
use updates::{TABLES, Table, next, table};

fn launch() -> ExitCode {
    let well = ["node", "mpi"].map(|am| support::launch(&[("PORTOLAN_AM", am)]));
    if well == [true; 2] { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

static HITS: AtomicU64 = AtomicU64::new(0);

struct Count;
impl Handler for Count {
    fn arrive(&self, _: &Am, _: &Arrival<'_>) -> Result<Accept> {
        HITS.fetch_add(1, Ordering::Relaxed);
        Ok(Accept::DONE)
    }
}

/// Counts a message and answers it with a message to the handler that was registered first.
struct Answer;
impl Handler for Answer {
    fn arrive(&self, engine: &Am, message: &Arrival<'_>) -> Result<Accept> {
        engine.send_message(message.origin, *COUNT.get().expect("set"), message.header, &[])?;
        HITS.fetch_add(1, Ordering::Relaxed);
        Ok(Accept::DONE)
    }
}

static COUNT: std::sync::OnceLock<HandlerId> = std::sync::OnceLock::new();

struct Place(*mut u8);
// SAFETY: the memory outlives the handler, and only one message at a time writes to it.
unsafe impl Send for Place {}
// SAFETY: the handler's methods only copy the pointer, and one message at a time writes through it.
unsafe impl Sync for Place {}
impl Handler for Place {
    fn arrive(&self, _: &Am, _: &Arrival<'_>) -> Result<Accept> {
        let count = |_: &Am, _| {
            HITS.fetch_add(1, Ordering::Relaxed);
        };
        Ok(Accept { to: Destination::At(self.0), then: Then::Inline(Box::new(count)) })
    }
}

struct Bench {
    engine: Arc<Engine>,
    ids: Vec<HandlerId>,
    me: usize,
    over_mpi: bool,
    quick: bool,
}

impl Bench {
    fn barrier(&self) {
        self.engine.world().barrier(&*self.engine).expect("barrier");
    }

    fn wait_for(&self, hits: u64) {
        let reached = || Ok(HITS.load(Ordering::Relaxed) >= hits);
        self.engine.wait_until(&|| "messages".into(), reached).expect("wait");
    }

    fn ask(&self) {
        let hits = HITS.load(Ordering::Relaxed) + 1;
        self.engine.send_message(1, self.ids[1], &[0; 8], &[]).expect("send");
        self.wait_for(hits);
    }

    fn row(&self, row: &Row<'_>) {
        if self.me == 0 {
            let am = if self.over_mpi { "mpi" } else { "node" };
            row.print(am);
        }
    }

    /// Returns the nanoseconds of a round trip if both sides wait in the library.
    fn round_trip(&self, n: u32) -> f64 {
        let before = HITS.load(Ordering::Relaxed);
        self.barrier();
        let begun = Instant::now();
        if self.me == 0 {
            (0..n).for_each(|_| self.ask());
        } else {
            self.wait_for(before + u64::from(n));
        }
        let each = begun.elapsed().as_secs_f64() / f64::from(n) * 1e9;
        self.barrier();
        each
    }

    /// Like `round_trip`, with MPI messages of the buffer's size and answers of `answer` bytes.
    fn mpi_round_trip(&self, buffer: &mut [u8], n: u32, answer: usize) -> f64 {
        self.barrier();
        let begun = Instant::now();
        for _ in 0..n {
            let whole = buffer.len();
            if self.me == 0 {
                self.mpi_send(&buffer[..whole]);
                self.mpi_receive(&mut buffer[..answer]);
            } else {
                self.mpi_receive(&mut buffer[..whole]);
                self.mpi_send(&buffer[..answer]);
            }
        }
        begun.elapsed().as_secs_f64() / f64::from(n) * 1e9
    }

    fn mpi_send(&self, bytes: &[u8]) {
        // SAFETY: `bytes` is valid for reads of `bytes.len()` bytes, and MPI is running.
        let rc = unsafe {
            ffi::MPI_Send(
                bytes.as_ptr().cast::<c_void>(),
                bytes.len() as i32,
                ffi::RSMPI_UINT8_T,
                1 - self.me as i32,
                9,
                ffi::RSMPI_COMM_WORLD,
            )
        };
        assert_eq!(rc, 0, "MPI_Send");
    }

    fn mpi_receive(&self, bytes: &mut [u8]) {
        // SAFETY: `bytes` is valid for writes of `bytes.len()` bytes, and MPI is running.
        let rc = unsafe {
            ffi::MPI_Recv(
                bytes.as_mut_ptr().cast::<c_void>(),
                bytes.len() as i32,
                ffi::RSMPI_UINT8_T,
                1 - self.me as i32,
                9,
                ffi::RSMPI_COMM_WORLD,
                ffi::RSMPI_STATUS_IGNORE,
            )
        };
        assert_eq!(rc, 0, "MPI_Recv");
    }

    /// Returns the nanoseconds of a round trip between two flags in shared memory.
    fn flags(&self, words: [&AtomicU64; 2], n: u64) -> f64 {
        let base = words[0].load(Ordering::Relaxed);
        self.barrier();
        let begun = Instant::now();
        for i in base + 1..=base + n {
            if self.me == 0 {
                words[0].store(i, Ordering::Release);
            }
            while words[1 - self.me].load(Ordering::Acquire) < i {
                std::hint::spin_loop();
            }
            if self.me == 1 {
                words[1].store(i, Ordering::Release);
            }
        }
        begun.elapsed().as_secs_f64() / n as f64 * 1e9
    }

    fn latency(&self) {
        /// Large enough that the start of a round does not matter.
        const ROUND: u32 = 50_000;
        let engine = &*self.engine;
        let segment = engine.allocate(engine.world(), 256).expect("segment");
        let base = segment.part(0).address();
        let mapped =
            engine.memory.registry.find(0, base, 256).ok().map(|hit| (hit.region(), hit.offset));
        let rounds = if self.quick { 5 } else { 15 };
        let (mut ours, mut mpis, mut flags) = (Vec::new(), Vec::new(), Vec::new());
        self.round_trip(2000);
        for _ in 0..rounds {
            ours.push(self.round_trip(ROUND));
            mpis.push(self.mpi_round_trip(&mut [0; 8], ROUND, 8));
            if let Some((slice, offset)) = mapped
                && !slice.is_null()
            {
                // SAFETY: both words lie in the mapped segment, which outlives their uses.
                let word = |n: usize| unsafe { &*slice.add(offset + n * 128).cast::<AtomicU64>() };
                flags.push(self.flags([word(0), word(1)], 20_000));
            }
        }
        let (ours, mpi) = (median(ours), median(mpis));
        let limit = if self.over_mpi { 1.6 } else { 1.0 };
        let beside = format!("MPI's own {mpi:.0} ns");
        let ratio = ours / mpi;
        self.row(&Row {
            what: "round trip",
            value: ours,
            unit: "ns",
            beside: &beside,
            ratio,
            wanted: &format!("<= {limit}"),
            ok: ratio <= limit,
        });
        if !self.over_mpi && !flags.is_empty() {
            let flag = median(flags);
            let beside = format!("two bare flags {flag:.0} ns");
            self.row(&Row {
                what: "round trip",
                value: ours,
                unit: "ns",
                beside: &beside,
                ratio: ours / flag,
                wanted: "<= 2",
                ok: ours <= 2.0 * flag,
            });
        }
        engine.release(segment).expect("release");
    }

    fn reaction(&self) {
        self.barrier();
        let mut times = Vec::new();
        let all = Duration::from_millis(if self.quick { 600 } else { 2000 });
        let begun = Instant::now();
        if self.me == 0 {
            while begun.elapsed() + Duration::from_millis(50) < all {
                std::thread::sleep(Duration::from_millis(2));
                let asked = Instant::now();
                self.ask();
                times.push(asked.elapsed().as_secs_f64() * 1e6);
            }
        } else {
            let mut x = 1u64;
            while begun.elapsed() < all {
                x = std::hint::black_box(next(x));
            }
        }
        self.barrier();
        if self.me == 0 {
            let value = median(times);
            let (limit, wanted) = if self.over_mpi { (f64::MAX, "-") } else { (100.0, "< 100") };
            self.row(&Row {
                what: "reaction of a computing rank",
                value,
                unit: "us",
                beside: "",
                ratio: value,
                wanted,
                ok: value < limit,
            });
        }
    }

    fn bandwidth(&self) {
        const BYTES: usize = 16 << 20;
        let (mut ours, mut mpis) = (Vec::new(), Vec::new());
        let mut buffer = vec![1u8; BYTES];
        for _ in 0..if self.quick { 7 } else { 25 } {
            self.barrier();
            let begun = Instant::now();
            if self.me == 0 {
                let hits = HITS.load(Ordering::Relaxed) + 1;
                let data = Data::At(buffer.as_ptr(), BYTES);
                // SAFETY: the buffer lives unchanged until the answer, which follows the data.
                unsafe { self.engine.send_am(1, self.ids[2], &[], data, Signals::default()) }
                    .expect("send");
                self.wait_for(hits);
            } else {
                let hits = HITS.load(Ordering::Relaxed) + 1;
                self.wait_for(hits);
                self.engine.send_message(0, self.ids[0], &[], &[]).expect("answer");
            }
            ours.push(BYTES as f64 / begun.elapsed().as_secs_f64() / 1e9);
            mpis.push(BYTES as f64 / self.mpi_round_trip(&mut buffer, 1, 8));
        }
        let (ours, mpi) = (median(ours), median(mpis));
        let beside = format!("MPI's own {mpi:.2} GB/s");
        self.row(&Row {
            what: "16 MiB",
            value: ours,
            unit: "GB/s",
            beside: &beside,
            ratio: ours / mpi,
            wanted: ">= 0.85",
            ok: ours >= 0.85 * mpi,
        });
    }

    fn rate(&self) {
        let n = if self.quick { 300_000u64 } else { 2_000_000 };
        self.barrier();
        let begun = Instant::now();
        if self.me == 0 {
            for _ in 0..n {
                self.engine.send_message(1, self.ids[0], &[0; 8], &[]).expect("send");
            }
            self.engine.fence_messages(1).expect("fence");
        }
        let rate = n as f64 / begun.elapsed().as_secs_f64() / 1e6;
        self.row(&Row {
            what: "single messages, one way",
            value: rate,
            unit: "M/s",
            beside: "",
            ratio: rate,
            wanted: "-",
            ok: true,
        });
        self.barrier();
    }

    fn idle(&self) {
        self.barrier();
        let used = || {
            // SAFETY: `rusage` is valid if zeroed, and `getrusage` writes only to it.
            unsafe {
                let mut r: libc::rusage = std::mem::zeroed();
                libc::getrusage(libc::RUSAGE_SELF, &mut r);
                let time = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 * 1e-6;
                time(r.ru_utime) + time(r.ru_stime)
            }
        };
        std::thread::sleep(Duration::from_millis(300));
        let (seconds, before) = (if self.quick { 2 } else { 5 }, used());
        std::thread::sleep(Duration::from_secs(seconds));
        let mine = (used() - before) / seconds as f64 * 100.0;
        let all = self.engine.world().allgather(&*self.engine, &mine).expect("allgather");
        let worst = all.into_iter().fold(0.0, f64::max);
        self.row(&Row {
            what: "idle, of a core",
            value: worst,
            unit: "%",
            beside: "",
            ratio: worst,
            wanted: "< 1",
            ok: worst < 1.0,
        });
    }
}

fn main() -> ExitCode {
    if std::env::args().any(|a| a == "--test") {
        return ExitCode::SUCCESS; // `cargo test` runs benchmarks too
    }
    if !launched() {
        println!(
            "am    what                                  figure           beside                          ratio  required"
        );
        return launch();
    }
    // SAFETY: no communicator is passed, so none has to be live.
    let engine = unsafe { Engine::start(None) }.expect("start");
    assert_eq!(engine.size(), 2, "the benchmark is for two ranks");
    let mut table = table();
    let mut place = vec![0u8; 16 << 20];
    let table = table.as_mut_ptr();
    let handlers: Vec<(&str, Arc<dyn Handler>)> = vec![
        ("count", Arc::new(Count)),
        ("answer", Arc::new(Answer)),
        ("place", Arc::new(Place(place.as_mut_ptr()))),
        ("small table", Arc::new(Table(table, 1 << TABLES[0]))),
        ("table", Arc::new(Table(table, 1 << TABLES[1]))),
    ];
    let handlers = handlers.into_iter().map(|(name, h)| (name.to_string(), h)).collect();
    let ids = engine.register_handlers(handlers).expect("register");
    COUNT.set(ids[0]).expect("set once");
    let bench = Bench {
        me: engine.rank(),
        over_mpi: std::env::var("PORTOLAN_AM").is_ok_and(|v| v == "mpi"),
        quick: std::env::args().any(|a| a == "--quick"),
        ids,
        engine,
    };
    let parts: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|p| p == part);
    let run: [(&str, &dyn Fn()); 6] = [
        ("latency", &|| bench.latency()),
        ("reaction", &|| bench.reaction()),
        ("bandwidth", &|| bench.bandwidth()),
        ("rate", &|| bench.rate()),
        ("updates", &|| (0..2).for_each(|which| bench.updates(table, which))),
        ("idle", &|| bench.idle()),
    ];
    run.iter().filter(|(part, _)| wanted(part)).for_each(|(_, run)| run());
    drop(bench);
    Engine::stop().expect("stop");
    drop(place);
    ExitCode::SUCCESS
}
