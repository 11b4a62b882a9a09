//! Safe programs that use function shipping after the runtime has ended, while it ends, and on
//! threads that may not call MPI: every object returns errors of kind `State` on every thread, and
//! nothing reaches MPI or freed memory.
#![forbid(unsafe_code)]

use crate::launch::{ALONE_BASE, Alone};
use portolan::rpc::bulk::{Buffer, Bulk, BulkOp, Permission};
use portolan::rpc::{Address, Call, Class, Context, Failure, Handle, Listen, Rpc, Status};
use portolan::{Error, ErrorKind, Runtime, ThreadLevel};
use portolan_rpc::na;
use portolan_rpc::na::Part;
use std::cell::RefCell;
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

const NODES: &[(&str, &str)] = &[("PORTOLAN_NODE_SIZE", "1")];
const BELOW: &[(&str, &str)] = &[("PORTOLAN_INTERPOSE", "waits")];
const BELOW_NODES: &[(&str, &str)] =
    &[("PORTOLAN_INTERPOSE", "waits"), ("PORTOLAN_NODE_SIZE", "1")];

const fn row(name: &'static str, env: &'static [(&'static str, &'static str)], run: fn()) -> Alone {
    Alone { name, label: "safe code", env, run, ..ALONE_BASE }
}

pub const ALONE: &[Alone] = &[
    row("attack_after", &[], after),
    row("attack_after_nodes", NODES, after),
    row("attack_while", &[], while_it_ends),
    row("attack_while_nodes", NODES, while_it_ends),
    row("attack_universe", &[], universe),
    row("attack_universe_nodes", NODES, universe),
    row("attack_again", &[], again),
    row("attack_in_callback", &[], in_callback),
    row("attack_beside", &[], beside),
    row("attack_below", BELOW, below),
    row("attack_below_nodes", BELOW_NODES, below),
];

const LONG: Duration = Duration::from_secs(3600);
const SHORT: Duration = Duration::from_millis(20);
/// Input sizes in bytes, from an eager message to one that is pulled in several chunks.
const SIZES: [usize; 4] = [10, 2000, 200_000, 3 << 20];

#[track_caller]
fn over<T: Debug>(what: &str, result: Result<T, Failure>) {
    match result {
        Err(failure) if failure.kind() == ErrorKind::State => {
            let error = Error::from(failure);
            assert_eq!(error.kind(), ErrorKind::State);
            assert!(error.to_string().contains("finalised"), "{what}: {error}");
        }
        other => panic!("{what} gives {other:?} instead of an error of kind State"),
    }
}

type Kept = Call<Vec<u8>, ()>;

#[derive(Clone)]
struct Net {
    class: Class,
    context: Context,
    network: na::Class,
    plain: na::Context,
    next: Address,
    next_plain: Address,
    echo: Rpc<Vec<u8>, Vec<u8>>,
    keep: Rpc<Vec<u8>, ()>,
    lend: Rpc<(), Bulk>,
    kept: Arc<Mutex<Vec<Kept>>>,
}

impl Net {
    fn new(rank: usize, size: usize) -> Net {
        let next = format!("mpi://{}", (rank + 1) % size);
        let class = Class::init("mpi", Listen::Yes).expect("a class");
        let network = na::Class::new("mpi", true).expect("a network");
        let kept: Arc<Mutex<Vec<_>>> = Arc::default();
        let (keeping, lent) = (kept.clone(), Bulk::from_bytes_of(&[rank as u8; 3 << 20], RW));
        let lent = lent.expect("memory");
        Net {
            echo: class.serve_fn("echo", Ok).expect("register"),
            keep: class
                .serve("keep", move |call| {
                    keeping.lock().expect("the calls").push(call);
                    Ok(())
                })
                .expect("register"),
            lend: class.serve_fn("lend", move |()| Ok(lent.clone())).expect("register"),
            context: class.context().expect("a context"),
            plain: network.context().expect("a context"),
            next: class.lookup(&next).expect("an address"),
            next_plain: network.lookup(&next).expect("an address"),
            class,
            network,
            kept,
        }
    }

    fn turn(&self) {
        self.context.progress(SHORT).expect("progress");
        self.context.trigger(10);
    }

    /// Makes calls of all sizes. Returns memory of the next rank, and a call that it never answers.
    fn use_it(&self, rt: &Runtime) -> (Bulk, Handle<Vec<u8>, ()>) {
        let theirs = self.context.call(&self.next, &self.lend, &(), LONG).expect("a call");
        for size in SIZES {
            let sent = vec![size as u8; size];
            let back = self.context.call(&self.next, &self.echo, &sent, LONG).expect("a call");
            assert_eq!(back, sent);
        }
        let never = self.context.handle(&self.next, &self.keep);
        never.start(&vec![1; 200_000]).expect("start");
        while self.kept.lock().expect("the calls").is_empty() {
            self.turn();
        }
        // Serve calls of the other ranks until all ranks are here.
        let all_here = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !all_here.load(SeqCst) {
                    self.turn();
                }
            });
            rt.world().barrier().expect("barrier");
            all_here.store(true, SeqCst);
        });
        (theirs, never)
    }
}

const RW: Permission = Permission::ReadWrite;

fn transfer(net: &Net, theirs: &Bulk, size: usize, op: BulkOp) -> Result<(), Failure> {
    let mine = Bulk::allocate(&[size], RW)?;
    net.context.transfer(op, &net.next, theirs.at(0), mine.at(0), size, drop).map(drop)
}

fn all_are_over(net: &Net, theirs: &Bulk, never: &Handle<Vec<u8>, ()>) {
    for size in SIZES {
        let (handle, bytes) = (net.context.handle(&net.next, &net.echo), vec![1; size]);
        over("start", handle.start(&bytes));
        over("forward", handle.forward(&bytes, drop));
        over("call", net.context.call(&net.next, &net.echo, &bytes, LONG));
        over("pull", transfer(net, theirs, size, BulkOp::Pull));
        over("push", transfer(net, theirs, size, BulkOp::Push));
        let mine = Bulk::from_bytes_of(&bytes, RW).expect("memory is this process's own");
        assert!(Bulk::from_bytes(&mine.to_bytes()).is_ok());
        let (local, remote) =
            (Part { mem: mine.mem(), offset: 0 }, Part { mem: theirs.mem(), offset: 0 });
        let none: na::Callback = Box::new(drop);
        let moved =
            net.plain.transfer(na::Direction::Get, &net.next_plain, local, remote, size, none);
        over("transfer", moved);
        let end: Arc<Mutex<Option<Result<(), Failure>>>> = Arc::default();
        let notified = end.clone();
        let buffer = Buffer::zeroed(size).expect("memory");
        net.context.pull(&net.next, theirs.at(0), buffer, size, move |result, _| {
            *notified.lock().expect("the end") = Some(result);
        });
        while end.lock().expect("the end").is_none() {
            net.context.trigger(1);
        }
        over("pull to a buffer", end.lock().expect("the end").take().expect("an end"));
    }
    if !never.is_done() {
        over("wait", never.wait(LONG));
    }
    over("progress", net.context.progress(LONG));
    over("lookup", net.class.lookup("mpi://0"));
    over("context", net.class.context());
    over("class", Class::over(&net.network, portolan::rpc::checksum::Method::None));
    let none = || -> na::Callback { Box::new(drop) };
    over("unexpected", net.plain.send_unexpected(&net.next_plain, 1, &[1; 99], none()));
    over("expected", net.plain.send_expected(&net.next_plain, 1, &[1; 9999], none()));
    over("receive", net.plain.recv_unexpected(none()));
    over("receive", net.plain.recv_expected(&net.next_plain, 1, none()));
    over("lookup", net.plain.lookup("mpi://0", none()));
    over("progress", net.plain.progress(LONG));
    // Callbacks of operations that ended before the runtime still run.
    while net.plain.queued() > 0 {
        net.plain.trigger(Duration::ZERO, 10).expect("trigger");
    }
    over("trigger", net.plain.trigger(LONG, 1));
    for call in std::mem::take(&mut *net.kept.lock().expect("the calls")) {
        over("answer", call.answer(&()));
        call.refuse(Status::FAIL);
    }
    never.cancel();
    assert!(never.is_done() && never.output().is_err());
}

/// Ends the remaining objects, which is not an error.
fn end(net: Net) {
    let Net { class, network, context, plain, .. } = net;
    context.destroy().expect("destroy");
    plain.clear();
    drop((context, plain));
    class.finalize().expect("finalize");
    network.finalize().expect("finalize");
}

fn on_a_thread<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::spawn(body).join().expect("the thread")
}

fn after() {
    let rt = Runtime::init().expect("init");
    let net = Net::new(rt.rank(), rt.size());
    let (theirs, never) = net.use_it(&rt);
    // Operations of every kind are under way.
    let flying = net.context.handle(&net.next, &net.echo);
    flying.start(&vec![7; 300_000]).expect("start");
    let pulled: Arc<Mutex<Option<Status>>> = Arc::default();
    let (mine, said) = (Bulk::allocate(&[3 << 20], RW).expect("bytes"), pulled.clone());
    let (there, here) = (theirs.at(0), mine.at(0));
    net.context
        .transfer(BulkOp::Pull, &net.next, there, here, 3 << 20, move |ended| {
            *said.lock().expect("whole") = Some(ended);
        })
        .expect("transfer");
    net.plain.recv_expected(&net.next_plain, 5, Box::new(drop)).expect("receive");
    rt.finalize().expect("finalize");
    // The transfer has ended, and its callback receives the status.
    net.context.trigger(10);
    let ended = pulled.lock().expect("whole").take().expect("the callback has run");
    assert!([Status::SUCCESS, Status::CANCELED].contains(&ended), "{ended:?}");
    let (there, bulk) = (net.clone(), theirs.clone());
    let never = on_a_thread(move || {
        all_are_over(&there, &bulk, &never);
        never
    });
    all_are_over(&net, &theirs, &never);
    drop((flying, never));
    on_a_thread(move || drop(theirs));
    end(net);
}

type Deed = fn(&Net, &Bulk) -> Result<(), Failure>;

const DEEDS: [(&str, Deed); 9] = [
    ("serves", |net, _| {
        net.context.trigger(9);
        net.context.progress(SHORT).map(drop)
    }),
    ("waits", |net, _| net.plain.progress(LONG).map(drop)),
    ("waits for an answer", |net, _| {
        let handle = net.context.handle(&net.next, &net.keep);
        handle.start(&vec![1; 100])?;
        handle.wait(LONG).map(drop)
    }),
    ("calls", |net, _| call(net, 10)),
    ("calls with more", |net, _| call(net, 2000)),
    ("calls with much", |net, _| call(net, 200_000)),
    ("pulls", |net, theirs| moved(net, theirs, BulkOp::Pull)),
    ("pushes", |net, theirs| moved(net, theirs, BulkOp::Push)),
    ("sends", |net, _| {
        let bulk = Bulk::from_bytes_of(&[7; 200_000], RW)?;
        Bulk::from_bytes(&bulk.to_bytes())?;
        net.plain.send_expected(&net.next_plain, 3, &[1; 1000], Box::new(drop)).map(drop)?;
        net.class.lookup("mpi://0").map(drop)
    }),
];

fn call(net: &Net, size: usize) -> Result<(), Failure> {
    let handle = net.context.handle(&net.next, &net.echo);
    handle.start(&vec![1; size])?;
    handle.wait(LONG).map(drop)
}

fn moved(net: &Net, theirs: &Bulk, op: BulkOp) -> Result<(), Failure> {
    transfer(net, theirs, 3 << 20, op)?;
    net.context.progress(SHORT).map(drop)
}

fn busy(net: &Net, theirs: &Bulk) -> Vec<JoinHandle<()>> {
    let begun = Arc::new(Barrier::new(DEEDS.len() + 1));
    let deeds = DEEDS.map(|(what, deed)| {
        let (net, theirs, begun) = (net.clone(), theirs.clone(), begun.clone());
        std::thread::spawn(move || {
            begun.wait();
            loop {
                match deed(&net, &theirs) {
                    Ok(()) => {}
                    // The other rank ended before this one.
                    Err(failure) if failure.kind() != ErrorKind::State => {}
                    Err(failure) => return over(what, Err::<(), _>(failure)),
                }
            }
        })
    });
    begun.wait();
    deeds.into()
}

fn while_it_ends() {
    let rt = Runtime::init().expect("init");
    let net = Net::new(rt.rank(), rt.size());
    let (theirs, never) = net.use_it(&rt);
    let threads = busy(&net, &theirs);
    std::thread::sleep(10 * SHORT);
    rt.finalize().expect("finalize");
    // The test is that all threads return from their calls.
    threads.into_iter().for_each(|thread| thread.join().expect("the thread"));
    all_are_over(&net, &theirs, &never);
    drop((never, theirs));
    end(net);
}

/// The program's own `MPI_Finalize`, called by a safe binding to MPI, ends the runtime.
fn universe() {
    let universe = mpi::initialize().expect("MPI");
    let rt = Runtime::init().expect("init");
    let net = Net::new(rt.rank(), rt.size());
    let (theirs, never) = net.use_it(&rt);
    let threads = busy(&net, &theirs);
    std::thread::sleep(10 * SHORT);
    drop(universe);
    threads.into_iter().for_each(|thread| thread.join().expect("the thread"));
    all_are_over(&net, &theirs, &never);
    drop((never, theirs));
    end(net);
    assert_eq!(rt.finalize().expect_err("it is over").kind(), ErrorKind::State);
}

/// Objects of an earlier runtime do not disturb a later one.
fn again() {
    let universe = mpi::initialize().expect("MPI");
    let mut old: Vec<Net> = Vec::new();
    for life in 0..3 {
        let rt = Runtime::init().expect("init");
        let net = Net::new(rt.rank(), rt.size());
        let (theirs, never) = net.use_it(&rt);
        for old in &old {
            over("progress", old.context.progress(LONG));
            over("lookup", old.class.lookup("mpi://0"));
            over("start", old.context.handle(&old.next, &old.echo).start(&vec![1; 5]));
        }
        if life == 1 && rt.rank() == 0 {
            old.drain(..).for_each(end);
        }
        let (theirs, never) = if life == 2 { net.use_it(&rt) } else { (theirs, never) };
        rt.finalize().expect("finalize");
        all_are_over(&net, &theirs, &never);
        old.push(net);
    }
    old.into_iter().for_each(end);
    drop(universe);
}

thread_local! {
    static RUNTIME: RefCell<Option<Runtime>> = const { RefCell::new(None) };
}

/// A callback that runs in `trigger` ends the runtime.
fn in_callback() {
    let rt = Runtime::init().expect("init");
    let net = Net::new(rt.rank(), rt.size());
    let (theirs, never) = net.use_it(&rt);
    RUNTIME.set(Some(rt));
    let ended = Arc::new(AtomicUsize::new(0));
    let count = ended.clone();
    for _ in 0..3 {
        let count = count.clone();
        net.context.defer(move || {
            if let Some(rt) = RUNTIME.take() {
                rt.finalize().expect("finalize");
            }
            count.fetch_add(1, SeqCst);
        });
    }
    while ended.load(SeqCst) < 3 {
        net.context.trigger(10);
    }
    all_are_over(&net, &theirs, &never);
    drop((never, theirs));
    end(net);
}

/// Classes without MPI work while the runtime runs, and after it has ended.
fn beside() {
    let rt = Runtime::init().expect("init");
    let class = Class::init("tcp", Listen::Yes).expect("a class");
    let context = class.context().expect("a context");
    let own = class.own_address();
    let answer = class.serve_fn("answer", |n: u32| Ok(n + 1)).expect("a function");
    let call = |n: u32| context.call(&own, &answer, &n, LONG).expect("a call");
    assert_eq!(call(1), 2);
    rt.finalize().expect("finalize");
    assert_eq!(call(2), 3);
    drop(context);
    class.finalize().expect("finalize");
}

fn below() {
    let (universe, _) = mpi::initialize_with_threading(mpi::Threading::Single).expect("MPI");
    let refused = on_a_thread(|| Runtime::init().map(drop));
    assert_eq!(refused.expect_err("only the main thread may").kind(), ErrorKind::State);
    let rt = Runtime::init().expect("init");
    assert!(rt.thread_level() < ThreadLevel::Multiple, "{:?}", rt.thread_level());
    let net = Net::new(rt.rank(), rt.size());
    let echo = |size| {
        let sent = vec![3; size];
        assert_eq!(net.context.call(&net.next, &net.echo, &sent, LONG).expect("a call"), sent);
    };
    let come = Arc::new(AtomicUsize::new(0));
    let count = come.clone();
    let meet = net.class.serve_fn("meet", move |()| {
        count.fetch_add(1, SeqCst);
        Ok(())
    });
    // Both ranks have registered their functions.
    rt.world().barrier().expect("barrier");
    let theirs = net.context.call(&net.next, &net.lend, &(), LONG).expect("a call");
    SIZES.into_iter().for_each(echo);
    let refused = on_a_thread(|| Class::init("mpi", Listen::Yes).map(drop));
    let threads = rt.nodes() == 1;
    let (there, bulk) = (net.clone(), theirs.clone());
    let tried = on_a_thread(move || {
        let handle = there.context.handle(&there.next, &there.echo);
        let mine = Bulk::from_bytes_of(&[1; 200_000], RW).expect("memory");
        drop(Bulk::from_bytes(&mine.to_bytes()));
        [
            handle.start(&vec![1; 100]),
            handle.start(&vec![1; 200_000]),
            there.context.progress(SHORT).map(drop),
            there.plain.progress(SHORT).map(drop),
            there.plain.send_expected(&there.next_plain, 3, &[1; 9], Box::new(drop)).map(drop),
            there.plain.recv_unexpected(Box::new(drop)).map(drop),
            there.class.lookup("mpi://0").map(drop),
            transfer(&there, &bulk, 200_000, BulkOp::Pull),
        ]
    });
    for result in tried.into_iter().filter(|_| !threads).chain([refused]) {
        let failure = result.expect_err("only the first thread may");
        assert_eq!(failure.kind(), ErrorKind::State, "{failure}");
        assert!(failure.text().contains("MPI_THREAD_MULTIPLE"), "{failure}");
    }
    // The first thread can still call. Serve calls of the other rank until it is here.
    SIZES.into_iter().for_each(echo);
    net.context.call(&net.next, &meet.expect("register"), &(), LONG).expect("a call");
    while come.load(SeqCst) == 0 {
        net.turn();
    }
    drop(theirs);
    rt.finalize().expect("finalize");
    over("progress", net.context.progress(LONG));
    end(net);
    drop(universe);
}
