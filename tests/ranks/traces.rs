//! Traces and statistics: every call is recorded, with its target, its bytes and its path.
//!
//! Each rank makes a known number of calls, ends the engine, and reads its own file.

use crate::child::{host_finalize, host_init, rank_of_launcher, step};
use crate::trace_file::{Read, read, trace_dir};
use portolan::internals::engine;
use portolan::{Result, Runtime};
use portolan_base::layout::Shape;
use portolan_engine::am::{Accept, Am, Arrival, Destination, Handler, Then};
use portolan_engine::atomics::Rmw;
use portolan_engine::collective::Operator;
use portolan_engine::mpi::init::ThreadLevel;
use portolan_engine::path::Path;
use portolan_engine::path::kernel::Scale;
use portolan_engine::runtime::Engine;
use portolan_engine::transfer::{Handle, Transfer, TransferKind};
use portolan_trace_format::alignment::{Alignment, Sample};
use portolan_trace_format::event::{
    Call, Cause, Event, Interface, PathTaken, Place, SOURCE_LINE, Served,
};
use portolan_trace_format::format::file_name;
use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

fn set(name: &str, value: impl AsRef<std::ffi::OsStr>) {
    // SAFETY: the engine does not run yet, and no other thread exists.
    unsafe { std::env::set_var(name, value) };
}

fn start() -> Runtime {
    let runtime = Runtime::init().expect("start");
    crate::child::check_size(runtime.size());
    runtime
}

struct Quiet;

impl Handler for Quiet {
    fn arrive(&self, _: &Am, _: &Arrival<'_>) -> Result<Accept> {
        Ok(Accept { to: Destination::Taken, then: Then::Nothing })
    }
}

const TIMES: usize = 3;

fn calls(engine: &Engine) -> Result<Vec<Path>> {
    let (me, world) = (engine.rank(), engine.world());
    let segment = engine.allocate(world, 4096)?;
    let set = engine.create_mutexes(world, Ok(2))?;
    let ids = engine.register_handlers(vec![("quiet".into(), Arc::new(Quiet))])?;
    engine.barrier_of(world)?;
    let mut local = [7u8; 64];
    let p = local.as_mut_ptr();
    let strided = Shape::strided(&[8, 3], &[8], &[32]).expect("a shape");
    for target in 0..engine.size() {
        let at = segment.part(target).address();
        let mine = at + 512 * (me + 1);
        for _ in 0..TIMES {
            // SAFETY: `local` has at least the bytes of each call, and lives until the waits below.
            unsafe {
                engine.put(target, mine, p, 8)?;
                engine.get(target, mine, p, 16)?;
                engine.accumulate(target, mine + 64, p, 32, Scale::Int(1))?;
                engine.blocking(&Transfer::new(TransferKind::Put, target, mine, p, &strided))?;
                engine.implicit(&Transfer::new(
                    TransferKind::Put,
                    target,
                    mine,
                    p,
                    &Shape::contiguous(24),
                ))?;
                engine.wait_implicit_to(target)?;
                let mut handle = Handle::default();
                let shape = Shape::contiguous(40);
                handle.issue(engine, &Transfer::new(TransferKind::Get, target, mine, p, &shape))?;
                handle.wait(engine)?;
            }
            engine.rmw(target, at, Rmw::add::<i64>(1))?;
            engine.fence(target)?;
            engine.lock(&set, 1, target)?;
            engine.unlock(&set, 1, target)?;
            engine.send_message(target, ids[0], &[1, 2], &[3; 100])?;
        }
    }
    engine.fence_all()?;
    world.reduce(engine, &mut [1i64, 2], Operator::Sum, None)?;
    engine.quiesce()?;
    let paths = (0..engine.size()).map(|to| engine.path_between(me, to)).collect();
    engine.destroy_mutexes(&set)?;
    engine.release(segment)?;
    Ok(paths)
}

/// Every call is in the file, with target, bytes, shape, place and path, and every served request.
pub fn every_call() {
    set("PORTOLAN_TRACE", trace_dir());
    // The statistics of all ranks are reduced at the end. These reductions are not recorded.
    set("PORTOLAN_STATS", "1");
    let runtime = start();
    let (me, n) = (runtime.rank(), runtime.size());
    step("calls");
    let truth = clock_of_rank_0(&runtime);
    let has_thread = runtime.has_progress_thread();
    let (paths, line) = {
        let _outer = runtime.region("all calls");
        runtime.mark("naïve mark");
        let paths = calls(engine(&runtime)).expect("calls");
        let _inner = runtime.region("inner");
        runtime.fence_all().expect("a fence");
        (paths, line!() - 1)
    };
    runtime.finalize().expect("the end");
    step("the file");
    let read = Read::own(me);
    assert_eq!((read.metadata.ranks, read.metadata.engine), (n as u64, 0));
    assert_eq!(read.metadata.progress_thread, u64::from(has_thread));
    assert!(read.metadata.program[0].contains("ranks"), "{:?}", read.metadata);
    let has_trace = |(name, _): &(String, String)| name == "PORTOLAN_TRACE";
    assert!(read.metadata.settings.iter().any(has_trace), "{:?}", read.metadata);
    assert_eq!(read.dropped, 0);
    read.check_nesting();
    for event in read.events() {
        if let Event::Wait { cause: Cause::Handle, peer, .. } = event {
            assert!(peer.is_some(), "a wait for a handle names no rank: {event:?}");
        }
    }
    #[cfg(target_arch = "x86_64")]
    sites(&read, &format!("/traces.rs:{line}"));
    let times = TIMES as u64;
    for (to, path) in paths.iter().enumerate() {
        let path = match path {
            Path::Direct => PathTaken::Direct,
            Path::Rma => PathTaken::Rma,
            Path::Message | Path::Installed => PathTaken::Message,
        };
        let put = read.calls(Call::Put, Some(to));
        // A put of 8 bytes, and a put of three blocks of 8 bytes.
        assert_eq!((put.0, put.2), (2 * times, times * 32), "puts to {to}");
        for (call, bytes) in [
            (Call::Get, 16),
            (Call::Acc, 32),
            (Call::PutNb, 24),
            (Call::GetNb, 40),
            (Call::Rmw, 8),
            (Call::Fence, 0),
            (Call::Lock, 0),
            (Call::Unlock, 0),
            (Call::Send, 102),
        ] {
            let found = read.calls(call, Some(to));
            assert_eq!((found.0, found.2), (times, times * bytes), "{call:?} to {to}");
            if to != me && matches!(call, Call::Get | Call::PutNb | Call::GetNb) {
                assert_eq!(found.1, [path], "{call:?} to {to}");
            }
        }
        if to != me {
            assert_eq!(put.1, [path], "puts to {to}");
        }
    }
    assert_eq!(read.calls(Call::FenceAll, None).0, 2);
    // The barrier of `calls`, and the one that ends the library.
    assert_eq!(read.calls(Call::Barrier, None).0, 2);
    if n > 1 {
        let reduce = read.calls(Call::Reduce, None);
        assert_eq!((reduce.0, reduce.2), (1, 16));
    }
    // A set of mutexes is a segment too.
    assert!(read.calls(Call::Allocate, None).0 >= 2);
    let strided = read.events().filter(|e| matches!(e, Event::Call { blocks: 3, bytes: 24, .. }));
    assert_eq!(strided.count(), TIMES * n);
    let rust = |e: &&Event<'_>| matches!(e, Event::Call { interface: Interface::Rust, .. });
    assert!(read.events().filter(rust).count() > 0);
    // All ranks use one number of each rank, and one mutex.
    let places = |wanted: Call| {
        let mut places: Vec<(Option<u32>, Place)> = read
            .events()
            .filter_map(|e| match *e {
                Event::Call { call, peer, place, .. } if call == wanted => Some((peer, place?)),
                _ => None,
            })
            .collect();
        places.sort_unstable();
        places.dedup();
        places
    };
    let (numbers, mutexes) = (places(Call::Rmw), places(Call::Lock));
    assert_eq!((numbers.len(), mutexes.len()), (n, n));
    assert!(numbers.iter().all(|(_, place)| place.offset == 0));
    assert!(mutexes.iter().all(|(_, place)| place.offset == 1));
    let segments: Vec<u64> = read
        .events()
        .filter_map(|e| match e {
            Event::Segment { segment, .. } => Some(*segment),
            _ => None,
        })
        .collect();
    let known = |(_, place): &(_, Place)| place.segment.is_some_and(|s| segments.contains(&s));
    assert!(numbers.iter().chain(&mutexes).all(known), "{segments:?}");
    regions(&read);
    // If a request needs its target, the target records that it served the request.
    let from = |origin: usize, wanted: Served| {
        let of = |e: &&Event<'_>| {
            matches!(e, Event::Served { kind, origin: Some(o), .. }
            if *kind == wanted && *o == origin as u32)
        };
        read.events().filter(of).count()
    };
    for other in (0..n).filter(|&other| other != me) {
        assert_eq!(from(other, Served::Handler), TIMES, "messages of {other}");
        if paths[other] == Path::Message {
            assert!(from(other, Served::Put) >= 3 * TIMES, "puts of {other}");
            assert!(from(other, Served::Get) >= 2 * TIMES, "gets of {other}");
            assert!(from(other, Served::Rmw) >= 1, "read-modify-writes of {other}");
            let waited = |cause| {
                let of = |e: &&Event<'_>| {
                    matches!(e, Event::Wait { cause: c, peer: Some(p), .. }
                    if *c == cause && *p == other as u32)
                };
                read.events().filter(of).count()
            };
            assert!(waited(Cause::Answer) >= TIMES, "answers of {other}");
            assert!(waited(Cause::Fence) >= 1, "fences to {other}");
        }
    }
    clocks(&read, me, truth);
    assert!(read.events().any(|e| matches!(e, Event::Counter { .. })));
}

/// Every call has a call site, which leads to an address in this program. The public call, a fence,
/// also has its source line.
#[cfg(target_arch = "x86_64")]
fn sites(read: &Read, line: &str) {
    let mut known = BTreeMap::new();
    for event in read.events() {
        if let Event::Site { site, caller, module, address } = *event {
            known.insert(site, (caller, module, address));
        }
    }
    let mut lines = Vec::new();
    for event in read.events() {
        let Event::Call { call, site, .. } = *event else { continue };
        let mut next = Some(site.unwrap_or_else(|| panic!("a {} without site", call.name())));
        let mut in_program = false;
        while let Some(site) = next {
            let (caller, module, address) = known[&site];
            if address == SOURCE_LINE {
                lines.push((call, read.strings[&module].as_str()));
            }
            in_program |= read.strings[&module].contains("/ranks-");
            next = caller;
        }
        assert!(in_program, "{event:?}");
    }
    let is_fence = |(call, at): &&(Call, &str)| *call == Call::FenceAll && at.ends_with(line);
    assert_eq!(lines.iter().filter(is_fence).count(), 1, "{lines:?}");
    assert!(
        lines.iter().all(|(call, _)| matches!(call, Call::FenceAll | Call::Barrier)),
        "{lines:?}"
    );
}

fn regions(read: &Read) {
    let text = |string: &u64| read.strings.get(string).map(String::as_str);
    let said: Vec<Option<&str>> = read
        .events()
        .filter_map(|e| match e {
            Event::RegionBegin { string, .. } | Event::Mark { string, .. } => Some(text(string)),
            Event::RegionEnd { .. } => Some(Some("end")),
            _ => None,
        })
        .collect();
    let expected = ["all calls", "naïve mark", "inner", "end", "end"];
    assert_eq!(said, expected.map(Some));
}

/// Returns the nanoseconds to add to this rank's monotonic clock to get rank 0's. The hosts of the
/// tests run on one kernel and share its real-time clock, so the result is known and not estimated
/// from messages.
fn clock_of_rank_0(runtime: &Runtime) -> i64 {
    let read = |clock| {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `now` is a valid structure for the call to fill.
        unsafe { libc::clock_gettime(clock, &mut now) };
        now.tv_sec * 1_000_000_000 + now.tv_nsec
    };
    let attempt = |_| {
        let before = read(libc::CLOCK_MONOTONIC);
        let day = read(libc::CLOCK_REALTIME);
        let after = read(libc::CLOCK_MONOTONIC);
        (after - before, day - before.midpoint(after))
    };
    let ahead = (0..20).map(attempt).min().map_or(0, |(_, ahead)| ahead);
    let engine = engine(runtime);
    let all = engine.world().allgather(engine, &ahead).expect("allgather");
    ahead - all[0]
}

/// A rank that represents a host has clock samples from the beginning and the end.
fn clocks(read: &Read, me: usize, truth: i64) {
    let samples: Vec<Sample> = read
        .events()
        .filter_map(|e| match *e {
            Event::Clock { time, offset, bound } => Some(Sample { time, offset, bound }),
            _ => None,
        })
        .collect();
    let speaks = read.metadata.host_number == me as u64;
    assert_eq!(samples.len(), if speaks { 2 } else { 0 });
    if speaks {
        let clock = Alignment::new(samples.clone());
        assert!(samples[0].time <= samples[1].time);
        assert!(me != 0 || samples.iter().all(|s| s.offset == 0));
        for sample in &samples {
            let error = sample.offset.abs_diff(truth);
            // The reading of the true offset is itself less exact than a microsecond or two.
            assert!(error <= sample.bound + 50_000, "{sample:?}, and {truth} in truth");
        }
        println!("rank {me}: rank 0's clock is {truth} ns ahead; found {samples:?}");
        assert!(clock.bound(samples[0].time).is_some_and(|bound| bound < 1_000_000_000));
    }
}

fn puts(runtime: &Runtime, times: usize) {
    let engine = engine(runtime);
    let segment = engine.allocate(engine.world(), 64).expect("allocate");
    let at = segment.part(runtime.rank()).address();
    for _ in 0..times {
        // SAFETY: the array has 8 bytes and lives until the call returns.
        unsafe { engine.put(runtime.rank(), at, [1u8; 8].as_ptr(), 8) }.expect("put");
    }
    engine.release(segment).expect("release");
}

/// A file has a size limit, and events beyond it are counted.
pub fn limited() {
    const TIMES: usize = 200_000;
    set("PORTOLAN_TRACE", trace_dir());
    set("PORTOLAN_TRACE_BYTES", "256K");
    let runtime = start();
    let me = runtime.rank();
    puts(&runtime, TIMES);
    assert!(runtime.stats().dropped_events() > 0);
    runtime.finalize().expect("the end");
    let read = Read::own(me);
    let found = read.calls(Call::Put, None).0;
    assert!(found > 0 && read.dropped > 0 && found + read.dropped >= TIMES as u64);
    let length = trace_dir().join(file_name(me)).metadata().expect("the file").len();
    // Definitions and the number of dropped events are written in any case.
    assert!(length < 290 << 10, "{length} bytes");
}

/// While the job runs, the file lacks at most the last second, which is all that a killed job
/// loses.
pub fn while_running() {
    set("PORTOLAN_TRACE", trace_dir());
    let runtime = start();
    puts(&runtime, 1000);
    step("a rank that computes");
    let path = trace_dir().join(file_name(runtime.rank()));
    let mut tries = 0;
    // The file is written twice a second, unless the machine is too busy for the writer thread.
    while read(&path).calls(Call::Put, None).0 < 1000 {
        tries += 1;
        assert!(tries < 200, "the file does not get what was recorded");
        std::thread::sleep(Duration::from_millis(100));
    }
    runtime.finalize().expect("the end");
    assert_eq!(Read::own(rank_of_launcher()).calls(Call::Put, None).0, 1000);
}

/// The variable that makes this program the job that the test kills.
const VICTIM: &str = "PORTOLAN_TEST_VICTIM";

/// A job that is killed, and one that crashes, leave a readable trace.
pub fn killed() {
    if std::env::var_os(VICTIM).is_some() {
        return victim();
    }
    for signal in [libc::SIGKILL, libc::SIGSEGV] {
        let _ = std::fs::remove_dir_all(trace_dir());
        let mut command = std::process::Command::new("/proc/self/exe");
        // Start a job of its own, without a launcher.
        for (name, _) in std::env::vars() {
            if ["PMI", "OMPI_", "HYDRA", "PRTE", "MPI"].iter().any(|p| name.starts_with(p)) {
                command.env_remove(name);
            }
        }
        command.env(VICTIM, "1").env("PORTOLAN_LAUNCHER_CHECK", "0");
        let mut job = command.spawn().expect("a job");
        let path = trace_dir().join(file_name(0));
        step(format!("a job that gets signal {signal}"));
        let mut tries = 0;
        // Wait until the file has a head and events.
        while !File::open(&path).is_ok_and(|mut file| {
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut file, &mut bytes).is_ok_and(|n| n > 5_000)
        }) {
            tries += 1;
            assert!(tries < 400, "the job has no trace");
            assert!(job.try_wait().expect("its state").is_none(), "the job has ended");
            std::thread::sleep(Duration::from_millis(50));
        }
        // Open MPI's fault handler returns and relies on the fault to occur again, so send the
        // signal until the job ends.
        let end = loop {
            // SAFETY: this process started the job and has not waited for it, so the id is valid.
            assert_eq!(unsafe { libc::kill(job.id() as i32, signal) }, 0);
            std::thread::sleep(Duration::from_millis(50));
            if let Some(end) = job.try_wait().expect("its state") {
                break end;
            }
        };
        assert!(!end.success());
        let read = read(&path);
        assert_eq!((read.metadata.rank, read.metadata.ranks), (0, 1));
        assert!(read.calls(Call::Put, None).0 >= 1000, "{:?}", read.damage);
        // Only the last block, which was being written, may be damaged.
        assert!(read.damage.len() <= 1, "{:?}", read.damage);
        assert!(!read.is_complete());
    }
}

fn victim() {
    set("PORTOLAN_TRACE", trace_dir());
    let runtime = Runtime::init().expect("start");
    puts(&runtime, 1000);
    loop {
        puts(&runtime, 1);
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub fn no_directory() {
    set("PORTOLAN_TRACE", "/proc/there/is/no/such");
    let runtime = start();
    puts(&runtime, 10);
    runtime.finalize().expect("the end");
}

/// The file is a pipe that takes nothing.
pub fn slow_disk() {
    std::fs::create_dir_all(trace_dir()).expect("the directory");
    let path = trace_dir().join(file_name(rank_of_launcher()));
    let name = std::ffi::CString::new(path.to_str().expect("UTF-8")).expect("no zero");
    // SAFETY: `name` is a NUL-terminated string.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let pipe = File::options().read(true).write(true).open(&path).expect("the pipe");
    set("PORTOLAN_TRACE", trace_dir());
    let runtime = start();
    puts(&runtime, 1_000_000);
    assert!(runtime.stats().dropped_events() > 0);
    runtime.finalize().expect("the end");
    drop(pipe);
}

pub fn restarted() {
    set("PORTOLAN_TRACE", trace_dir());
    // MPI must outlive the first start.
    host_init(ThreadLevel::Multiple);
    let own = start();
    let me = own.rank();
    puts(&own, 10);
    own.finalize().expect("the end");
    let again = start();
    puts(&again, 20);
    again.finalize().expect("the end");
    assert_eq!(Read::own(me).calls(Call::Put, None).0, 10);
    let second = read(&trace_dir().join("start-2").join(file_name(me)));
    assert_eq!((second.calls(Call::Put, None).0, second.metadata.engine), (20, 1));
    host_finalize();
}

/// Statistics count calls since their last reset, and the table is written at the end.
pub fn statistics() {
    set("PORTOLAN_STATS", "1");
    let runtime = start();
    let (me, n) = (runtime.rank(), runtime.size());
    let paths = calls(engine(&runtime)).expect("calls");
    let stats = runtime.stats();
    assert!(stats.is_complete());
    let count = |call: &str| {
        let all = stats.calls();
        let of = all.iter().filter(|c| c.call == call);
        of.fold((0, 0), |sum, c| (sum.0 + c.calls, sum.1 + c.bytes))
    };
    let times = (TIMES * n) as u64;
    assert_eq!(count("put"), (2 * times, 32 * times));
    assert_eq!(count("get"), (times, 16 * times));
    assert_eq!(count("accumulate"), (times, 32 * times));
    assert_eq!(count("read-modify-write"), (times, 8 * times));
    assert_eq!(count("message"), (times, 102 * times));
    assert_eq!((count("lock").0, count("unlock").0, count("fence").0), (times, times, times));
    let waited = stats.waited_for();
    for other in (0..n).filter(|&other| other != me && paths[other] == Path::Message) {
        assert!(waited.iter().any(|of| of.rank == other && !of.time.is_zero()), "{waited:?}");
    }
    let elsewhere = paths.contains(&Path::Message);
    assert_eq!(stats.served().iter().any(|served| served.what == "put"), elsewhere);
    assert_eq!(stats.calls().iter().any(|c| c.call == "put" && c.path == "message"), elsewhere);
    assert!(stats.peak_memory() > 1 << 20);
    runtime.reset_stats();
    assert!(runtime.stats().calls().is_empty());
    puts(&runtime, 5);
    assert_eq!(runtime.stats().calls().iter().find(|c| c.call == "put").map(|c| c.calls), Some(5));
    runtime.finalize().expect("the end");
}
