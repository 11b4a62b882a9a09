//! Tests limits of file sizes, trace files, forked children, and waits for handlers that never end.

use crate::child::{Ctx, directory, own, rank_of_launcher, start, step};
use crate::trace_file::{Read, trace_dir};
use portolan::{ErrorKind, Result, Runtime, Segment};
use portolan_engine::am::{Accept, Am, Arrival, Destination, Handler, Then};
use portolan_engine::runtime::Engine;
use portolan_trace_format::format::file_name;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

fn set_trace_dir() {
    // SAFETY: the engine does not run yet, and no other thread exists.
    unsafe { std::env::set_var("PORTOLAN_TRACE", trace_dir()) };
}

fn put_to_self(runtime: &Runtime, segment: &Segment<'_, u64>, times: usize) {
    for n in 0..times {
        segment.put(runtime.rank(), 0, &[n as u64]).expect("put");
    }
}

/// A trace replaces an earlier trace, but neither another file nor a symbolic link.
pub fn trace_of_others() {
    std::fs::create_dir_all(trace_dir()).expect("the directory");
    let me = rank_of_launcher();
    let path = trace_dir().join(file_name(me));
    let other = directory().join(format!("precious.{me}"));
    std::fs::write(&other, "precious").expect("a file");
    match me {
        0 => std::fs::write(&path, "precious").expect("a file"),
        1 => std::os::unix::fs::symlink(&other, &path).expect("a link"),
        _ => std::fs::write(&path, "PTRACE").expect("the head of a trace that was killed"),
    }
    if me == 0 {
        std::fs::write(trace_dir().join(file_name(7)), "precious").expect("a file");
    }
    set_trace_dir();
    let runtime = Runtime::init().expect("start");
    let segment = runtime.world().allocate(1).expect("allocate");
    put_to_self(&runtime, &segment, 10);
    segment.free().expect("free");
    runtime.finalize().expect("the end");
    let text = |path: &std::path::Path| std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(text(&other), "precious");
    match me {
        0 => assert_eq!(text(&path), "precious"),
        1 => assert!(path.is_symlink()),
        _ => {
            Read::own(me);
            let mode = std::fs::metadata(&path).expect("the trace").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }
    assert_eq!(text(&trace_dir().join(file_name(7))), "precious");
}

/// A trace that outgrows `ulimit -f` is abandoned with a warning.
pub fn trace_too_long() {
    set_trace_dir();
    let runtime = Runtime::init().expect("start");
    let segment = runtime.world().allocate(1).expect("allocate");
    // SAFETY: the structure is initialised, and the test itself writes no file that grows.
    let rc = unsafe {
        let limit = libc::rlimit { rlim_cur: 4096, rlim_max: libc::RLIM_INFINITY };
        libc::setrlimit(libc::RLIMIT_FSIZE, &limit)
    };
    assert_eq!(rc, 0);
    put_to_self(&runtime, &segment, 100_000);
    segment.free().expect("free");
    runtime.finalize().expect("the end");
}

/// Calls in a child that a rank has forked return errors, and the parent goes on.
pub fn forked() {
    let runtime = Runtime::init().expect("start");
    let world = runtime.world();
    let segment = world.allocate::<i64>(1).expect("allocate");
    let next = (runtime.rank() + 1) % runtime.size();
    world.barrier().expect("barrier");
    step("a child");
    // SAFETY: the child makes only calls that are refused, and exits without any clean-up.
    let status = unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::alarm(20);
            let refused = |result: Result<()>| {
                result.is_err_and(|error| {
                    error.kind() == ErrorKind::State && error.to_string().contains("forked")
                })
            };
            let well = refused(segment.put(next, 0, &[1]))
                && refused(segment.get(next, 0, &mut [0]))
                && refused(segment.accumulate(next, 0, 1, &[1]))
                && refused(segment.fetch_add(next, 0, 1).map(drop))
                && refused(world.barrier())
                && refused(world.allocate::<u8>(1).map(drop))
                && refused(Runtime::init().map(drop));
            libc::_exit(if well { 77 } else { 78 });
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        status
    };
    assert_eq!((libc::WIFEXITED(status), libc::WEXITSTATUS(status)), (true, 77), "{status:#x}");
    world.barrier().expect("barrier");
    assert_eq!(segment.local().read(0), 0, "a child has written");
    segment.free().expect("free");
    runtime.finalize().expect("the end");
}

struct Sleeps;

impl Handler for Sleeps {
    fn arrive(&self, _: &Am, _: &Arrival<'_>) -> Result<Accept> {
        let sleep = |_: &Am, _| loop {
            std::thread::sleep(std::time::Duration::from_secs(1));
        };
        Ok(Accept { to: Destination::Taken, then: Then::Later(Box::new(sleep)) })
    }
}

/// A completion handler of rank 1 never ends. The ranks wait for it in rounds of short waits.
pub fn silent_quiescence() {
    let ctx = Ctx::new(start());
    let handler: Arc<dyn Handler> = Arc::new(Sleeps);
    let ids = ctx.engine.register_handlers(vec![("sleeps".into(), handler)]).expect("register");
    ctx.barrier();
    step("hanging");
    if ctx.me == 0 {
        ctx.engine.send_message(1, ids[0], &[], &[]).expect("send");
    }
    ctx.engine.quiesce().expect("quiesce");
    panic!("a handler that sleeps has ended");
}

struct Rests(Arc<std::sync::atomic::AtomicU32>);

impl Handler for Rests {
    fn arrive(&self, _: &Am, _: &Arrival<'_>) -> Result<Accept> {
        let notified = self.0.clone();
        let rest = move |am: &Am, _| {
            let error = am.quiesce().expect_err("quiescence in a completion handler");
            assert_eq!(error.kind(), ErrorKind::State);
            notified.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        };
        Ok(Accept { to: Destination::Taken, then: Then::Later(Box::new(rest)) })
    }
}

/// A completion handler cannot wait until all handlers have ended.
pub fn quiescence_in_a_handler(ctx: &Ctx) {
    let notified = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let handler: Arc<dyn Handler> = Arc::new(Rests(notified.clone()));
    let ids = ctx.engine.register_handlers(vec![("rests".into(), handler)]).expect("register");
    ctx.barrier();
    ctx.engine.send_message((ctx.me + 1) % ctx.n, ids[0], &[], &[]).expect("send");
    ctx.engine.quiesce().expect("quiesce");
    assert_eq!(notified.load(std::sync::atomic::Ordering::Relaxed), 1);
    ctx.engine.unregister_handlers(&ids).expect("unregister");
}

/// A segment larger than `ulimit -f` is an error on all ranks, and smaller ones still work.
pub fn long_files() {
    let ctx = Ctx::new(start());
    let set = |bytes| {
        // SAFETY: the structure is initialised.
        let rc = unsafe {
            let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
            libc::setrlimit(libc::RLIMIT_FSIZE, &limit)
        };
        assert_eq!(rc, 0);
    };
    set(32 << 20);
    ctx.barrier();
    let text = crate::child::refused(
        ErrorKind::Memory,
        "a file beyond the limit",
        ctx.engine.allocate(ctx.engine.world(), 100 << 20),
    );
    assert!(text.contains("ulimit -f") && text.contains("33554432"), "{text}");
    let small = ctx.allocate(5000);
    own(&small).fill(1);
    ctx.barrier();
    ctx.free(small);
    set(libc::RLIM_INFINITY);
    drop(ctx);
    Engine::stop().expect("stop");
}
