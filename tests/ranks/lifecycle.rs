//! Tests start and stop, with MPI initialised by the engine or by the program.

use crate::child::{self, Ctx, own, refused, step};
use crate::trace_file::trace_dir;
use mpi::ffi;
use portolan::internals::binding;
use portolan::mpi::topology::Color;
use portolan::mpi::traits::Communicator;
use portolan::{ErrorKind, Runtime};
use portolan_base::process;
use portolan_engine::collective;
use portolan_engine::mpi::init::{self, ThreadLevel};
use portolan_engine::mpi::{Window, WindowShape, WindowTransfer, p2p};
use portolan_engine::runtime::{self, Engine};
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicBool, Ordering};

/// Allocates and puts a little. Leaves the segment behind if `leave` is set.
fn use_engine(leave: bool) {
    let engine = runtime::current_arc().expect("a running engine");
    child::check_size(engine.size());
    let ctx = Ctx::new(engine);
    let segment = ctx.allocate(64);
    own(&segment).fill(0);
    ctx.barrier();
    let right = (ctx.me + 1) % ctx.n;
    ctx.put(right, segment.part(right).address(), &[7; 16]);
    ctx.barrier();
    assert_eq!(own(&segment)[..16], [7; 16]);
    ctx.barrier();
    if !leave {
        ctx.free(segment);
    }
}

pub fn start_and_stop() {
    child::start();
    Engine::stop().expect("stop");
}

/// If the engine initialises MPI, it also finalises it, and MPI cannot be initialised again.
pub fn own_mpi() {
    refused(ErrorKind::State, "before start", runtime::current());
    refused(ErrorKind::State, "stop before start", Engine::stop());
    assert!(!init::is_running());
    drop(child::start());
    assert!(init::is_running() && runtime::is_running());
    // SAFETY: no communicator is passed, so none has to be valid.
    refused(ErrorKind::State, "starting twice", unsafe { Engine::start(None) });
    use_engine(true);
    step("stop");
    Engine::stop().expect("stop");
    assert!(!init::is_running() && !runtime::is_running());
    refused(ErrorKind::State, "after stop", runtime::current());
    refused(ErrorKind::State, "stopping twice", Engine::stop());
    // SAFETY: no communicator is passed, so none has to be valid.
    refused(ErrorKind::State, "MPI cannot come again", unsafe { Engine::start(None) });
}

/// If the program initialises MPI, the engine may start repeatedly.
pub fn restart() {
    let level = child::host_init(ThreadLevel::Multiple);
    for i in 0..4 {
        step(format!("restart: {i}"));
        let engine = child::start();
        assert_eq!(engine.thread_level(), level);
        use_engine(i % 2 == 1);
        // A reference that outlives the engine does no harm.
        Engine::stop().expect("stop");
        refused(ErrorKind::State, "after stop", runtime::current());
        assert!(init::is_running(), "MPI is the host's to finalise");
        drop(engine);
    }
    step("MPI_Finalize");
    child::host_finalize();
}

/// The program finalises MPI while the engine runs, and stops the engine afterwards.
pub fn host_finalizes() {
    child::host_init(ThreadLevel::Multiple);
    drop(child::start());
    use_engine(true);
    step("MPI_Finalize");
    child::host_finalize();
    step("stop after MPI_Finalize");
    assert!(!runtime::is_running(), "the engine was closed by MPI_Finalize");
    refused(ErrorKind::State, "after MPI_Finalize", Engine::stop());
    // SAFETY: no communicator is passed, so none has to be valid.
    refused(ErrorKind::State, "MPI cannot come again", unsafe { Engine::start(None) });
}

/// A program that asks for the lowest thread level gets the level that the progress thread needs,
/// unless the environment forbids it.
pub fn raised() {
    let level = child::host_init(ThreadLevel::Single);
    assert_eq!(level, ThreadLevel::Multiple, "the level that MPI_Init_thread gave");
    let engine = child::start();
    assert_eq!(engine.thread_level(), ThreadLevel::Multiple);
    drop(engine);
    use_engine(false);
    Engine::stop().expect("stop");
    child::host_finalize();
}

pub fn part_of_world() {
    child::host_init(ThreadLevel::Multiple);
    let (mut rank, mut part) = (0, portolan_engine::mpi::Comm::null_handle());
    // SAFETY: MPI is initialised, and the communicator is freed below.
    unsafe {
        ffi::MPI_Comm_rank(ffi::RSMPI_COMM_WORLD, &mut rank);
        let color = i32::from(rank == 2);
        let rc = ffi::MPI_Comm_split(ffi::RSMPI_COMM_WORLD, color, -rank, &mut part);
        assert_eq!(rc, 0, "MPI_Comm_split");
    }
    // SAFETY: `part` is a live communicator.
    let engine = unsafe { Engine::start(Some(part)) }.expect("start");
    let expected = if rank == 2 { (0, 1) } else { (1 - rank as usize, 2) };
    assert_eq!((engine.rank(), engine.size()), expected);
    let ctx = Ctx::new(engine);
    let segment = ctx.allocate(8);
    let other = (ctx.me + 1) % ctx.n;
    ctx.store(other, segment.part(other).address(), 40 + ctx.me as i64);
    ctx.barrier();
    assert_eq!(own(&segment), (40 + other as i64).to_ne_bytes());
    ctx.free(segment);
    drop(ctx);
    Engine::stop().expect("stop");
    // SAFETY: `part` was created above and is freed once.
    unsafe { ffi::MPI_Comm_free(&mut part) };
    child::host_finalize();
}

/// A runtime over a communicator of the crate `mpi`, which the program then frees.
pub fn over_communicator() {
    let universe = portolan::mpi::initialize().expect("MPI starts once");
    let world = universe.world();
    let color = Color::with_value(i32::from(world.rank() == 2));
    let part = world.split_by_color_with_key(color, -world.rank()).expect("a part");
    let rt = Runtime::init_over(&part).expect("start");
    drop(part);
    let expected = if world.rank() == 2 { (0, 1) } else { (1 - world.rank() as usize, 2) };
    assert_eq!((rt.rank(), rt.size()), expected);
    assert_eq!(rt.world().all_gather(world.rank()).expect("gather").len(), rt.size());
    refused(ErrorKind::State, "a second runtime", Runtime::init_over(&world));
    rt.finalize().expect("the end");
}

/// Settings that must agree differ on one rank: no rank starts, and all report the difference.
pub fn settings_differ() {
    child::host_init(ThreadLevel::Multiple);
    let odd = child::rank_of_launcher() == 1;
    for (name, value, text) in [
        ("PORTOLAN_PATH", "message", "auto on ranks 0, 2, message on rank 1"),
        ("PORTOLAN_NODE_SIZE", "1", "0 on ranks 0, 2, 1 on rank 1"),
        ("PORTOLAN_AM", "mpi", "auto on ranks 0, 2, mpi on rank 1"),
        ("PORTOLAN_AM_RING_BYTES", "128K", "on rank 1"),
        ("PORTOLAN_SLAB_BYTES", "8M", "8388608 on rank 1"),
        ("PORTOLAN_CHUNK_BYTES", "8K", "8192 on rank 1"),
        ("PORTOLAN_FLIGHT_BYTES", "64K", "65536 on rank 1"),
        ("PORTOLAN_CHECK", "1", "off on ranks 0, 2, on on rank 1"),
        ("PORTOLAN_STATS", "1", "off on ranks 0, 2, on on rank 1"),
        ("PORTOLAN_TRACE", "trace", "not set on ranks 0, 2, set on rank 1"),
    ] {
        step(format!("settings_differ: {name}"));
        // SAFETY: no engine runs, so no thread reads the environment.
        unsafe {
            if odd {
                std::env::set_var(name, value);
            }
            let text_of_error = refused(ErrorKind::Argument, name, Engine::start(None));
            assert!(text_of_error.contains(&format!("{name} differs between ranks: ")));
            assert!(text_of_error.contains(text), "{text_of_error}");
            std::env::remove_var(name);
        }
    }
    drop(child::start());
    use_engine(false);
    Engine::stop().expect("stop");
    child::host_finalize();
}

/// Functions that the program gives for one runtime are not called for the next one.
pub fn functions_end() {
    static STOPS: AtomicBool = AtomicBool::new(false);
    child::host_init(ThreadLevel::Multiple);
    let builder = binding::caller(Runtime::builder(), || Some("program:1".into()));
    // SAFETY: no wait of this runtime is interrupted.
    let builder = unsafe { binding::interrupted(builder, || STOPS.load(Ordering::Relaxed)) };
    let first = builder.init().expect("start");
    assert_eq!(process::caller().as_deref(), Some("program:1"));
    first.finalize().expect("the end");
    STOPS.store(true, Ordering::Relaxed);
    assert_eq!(process::caller(), None);
    let second = Runtime::init().expect("start");
    if second.rank() == 0 {
        std::thread::sleep(std::time::Duration::from_millis(300));
    }
    second.world().barrier().expect("not interrupted");
    second.finalize().expect("the end");
    child::host_finalize();
}

/// A process of another job, here rank 1, holds the directory of traces.
pub fn traces_in_use() {
    child::host_init(ThreadLevel::Multiple);
    let dir = trace_dir();
    std::fs::create_dir_all(&dir).expect("the directory");
    // SAFETY: no engine runs, so no thread reads the environment.
    unsafe { std::env::set_var("PORTOLAN_TRACE", &dir) };
    let meet = || {
        // SAFETY: MPI is initialised.
        assert_eq!(unsafe { ffi::MPI_Barrier(ffi::RSMPI_COMM_WORLD) }, 0, "MPI_Barrier");
    };
    let mut held = None;
    if child::rank_of_launcher() == 1 {
        let mut options = std::fs::File::options();
        let file = options.write(true).create(true).truncate(false).open(dir.join(".lock"));
        let file = file.expect("the lock");
        // SAFETY: zeros are a valid lock of all bytes, and the descriptor is open.
        let taken = unsafe {
            let mut lock: libc::flock = std::mem::zeroed();
            lock.l_type = libc::F_WRLCK as libc::c_short;
            libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &raw const lock)
        };
        assert_eq!(taken, 0, "the lock is free");
        held = Some(file);
    }
    meet();
    // SAFETY: no communicator is passed, so none has to be valid.
    let text = refused(ErrorKind::State, "in use", unsafe { Engine::start(None) });
    assert!(text.contains("PORTOLAN_TRACE") && text.contains(dir.to_str().expect("UTF-8")));
    meet();
    drop(held);
    meet();
    drop(child::start());
    use_engine(false);
    Engine::stop().expect("stop");
    child::host_finalize();
}

/// A rank aborts while MPI runs, but before the runtime has started.
pub fn abort_before_start() {
    child::host_init(ThreadLevel::Multiple);
    step("abort");
    if child::rank_of_launcher() == 0 {
        Runtime::abort(7);
    }
    // SAFETY: MPI is running.
    unsafe { ffi::MPI_Barrier(ffi::RSMPI_COMM_WORLD) };
}

/// One rank fails while the other waits for it.
pub fn fail_on_purpose() {
    let ctx = Ctx::new(child::start());
    step("on purpose");
    assert!(ctx.me == 0, "a check that fails");
    ctx.barrier();
}

/// One rank never arrives.
pub fn hang_on_purpose() {
    let ctx = Ctx::new(child::start());
    step("hanging");
    if ctx.me == 1 {
        loop {
            std::thread::sleep(std::time::Duration::from_secs(1));
        }
    }
    ctx.barrier();
}

pub fn freed_window() {
    let ctx = Ctx::new(child::start());
    let comm = ctx.engine.world().comm().expect("the world's communicator");
    let mut memory = vec![0u8; 64];
    // SAFETY: the memory outlives the window, which is freed below.
    let window = unsafe { Window::create(&comm, memory.as_mut_ptr(), memory.len()) };
    let window = window.expect("a window");
    let mut value = 7u64.to_ne_bytes();
    let row = WindowShape::Row(8);
    let transfer = WindowTransfer {
        is_get: false,
        origin: value.as_mut_ptr() as usize,
        origin_shape: row.clone(),
        target: ctx.me,
        offset: 0,
        target_shape: row,
    };
    // SAFETY: the value lives until the flush, and the bytes lie in the window.
    unsafe { window.start(&transfer, false) }.expect("a put");
    window.flush(ctx.me).expect("a flush");
    assert_eq!(memory[..8], value);
    window.free().expect("the end of the window");
    // SAFETY: the value is alive, and a freed window takes no transfer.
    let late = [true, false].map(|request| unsafe { window.start(&transfer, request) });
    for late in late {
        assert_eq!(late.expect_err("the window was freed").kind(), ErrorKind::State);
    }
    drop((window, comm, ctx));
    Engine::stop().expect("stop");
}

/// A message that no rank receives ends with its communicator. MPI keeps the sender's bytes until the
/// message is received, because it is long.
pub fn freed_communicator() {
    let ctx = Ctx::new(child::start());
    let comm =
        ctx.engine.world().comm().and_then(|comm| collective::dup(&comm)).expect("a communicator");
    let bytes = vec![1u8; 4 << 20];
    let right = (ctx.me + 1) % ctx.n;
    // SAFETY: the bytes outlive the request, which completes below.
    let sent = unsafe { p2p::isend(&comm, bytes.as_ptr(), bytes.len(), right, 1) };
    let mut sent = sent.expect("a send");
    // Messages of two ranks do not overtake each other, so the long one has arrived after it.
    let mut barrier = comm.ibarrier().expect("a barrier");
    while !barrier.test().expect("a test of the barrier") {
        std::thread::yield_now();
    }
    comm.free().expect("the end of the communicator");
    step("the send without a receive");
    while !sent.test().expect("a test") {
        std::thread::yield_now();
    }
    let late = p2p::improbe(&comm, None, None).expect_err("the communicator was freed");
    assert_eq!(late.kind(), ErrorKind::State);
    drop(ctx);
    Engine::stop().expect("stop");
}
