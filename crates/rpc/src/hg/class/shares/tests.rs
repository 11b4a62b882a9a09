//! Peers that do not do their part, and others that call the same server meanwhile.

use super::*;
use crate::checksum::Method;
use crate::failure::Status;
use crate::hg::payload::PARAMETERS;
use crate::hg::target::Target;
use crate::hg::typed::{Handle, Rpc};
use crate::hg::wire::{CallRequest, REQUEST};
use crate::hg::{Class, Context, Listen};
use crate::na::{self, Address, Mem, Options, Permission};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// Time limit for everything that a test waits for.
const LONG: Duration = Duration::from_secs(60);
/// Length of an output. Three of them make a peer full.
const OUTPUT: usize = PEER_BYTES / 3 + 1;

const NETWORKS: [&str; 2] = ["tcp", "na+sm"];

/// A server with the functions `length` and `zeros`, which counts their calls.
struct Server {
    class: Class,
    context: Context,
    calls: Arc<AtomicUsize>,
}

impl Server {
    fn open(network: &str) -> Server {
        let class = Class::init(network, Listen::Yes).unwrap();
        let (context, calls) = (class.context().unwrap(), Arc::<AtomicUsize>::default());
        let counted = calls.clone();
        class.serve_fn("length", |bytes: Vec<u8>| Ok(bytes.len())).unwrap();
        let zeros = move |len: usize| {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok(vec![0u8; len])
        };
        class.serve_fn("zeros", zeros).unwrap();
        let counted = calls.clone();
        let count = move |target: Arc<Target>| {
            assert_eq!(target.input(), [7; 300]);
            counted.fetch_add(1, Ordering::Relaxed);
            target.answer_failure(Status::SUCCESS);
            Status::SUCCESS
        };
        class.shared.functions.add("count", Some(Arc::new(count)), None).unwrap();
        Server { class, context, calls }
    }

    fn name(&self) -> String {
        self.class.address_text(&self.class.own_address())
    }

    fn shares(&self) -> &Shares<super::super::Pull, Arc<Target>> {
        &self.class.shared.shares
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    /// Returns whether nothing is pulled, kept or held.
    fn is_free(&self) -> bool {
        let table = self.shares().table.lock();
        table.peers.is_empty() && table.pulls == 0 && !self.shares().has_full()
    }

    fn turn(&self) {
        self.context.progress(Duration::ZERO).unwrap();
        self.context.trigger(100);
    }

    /// Makes progress, also with `beside`, until `done`.
    fn pump(&self, what: &str, mut beside: impl FnMut(), mut done: impl FnMut() -> bool) {
        let end = Instant::now() + LONG;
        while !done() {
            self.turn();
            beside();
            assert!(Instant::now() < end, "{what}");
        }
    }

    /// Makes progress until the server has done what it can do without `client`'s help.
    fn settle(&self) {
        let mut last = (Instant::now(), self.calls());
        self.pump(
            "calm",
            || {},
            || {
                if self.calls() != last.1 {
                    last = (Instant::now(), self.calls());
                }
                last.0.elapsed() > Duration::from_millis(50)
            },
        );
    }

    fn close(self) {
        self.context.destroy().unwrap();
        drop(self.context);
        self.class.finalize().unwrap();
    }
}

/// A client with a well-behaved program.
struct Client {
    class: Class,
    context: Context,
    there: Address,
    length: Rpc<Vec<u8>, usize>,
    zeros: Rpc<usize, Vec<u8>>,
}

impl Client {
    fn of(server: &Server, network: &str) -> Client {
        let class = Class::init(network, Listen::No).unwrap();
        Client {
            context: class.context().unwrap(),
            there: class.lookup(&server.name()).unwrap(),
            length: class.client("length").unwrap(),
            zeros: class.client("zeros").unwrap(),
            class,
        }
    }

    fn turn(&self) {
        self.context.progress(Duration::ZERO).unwrap();
        self.context.trigger(100);
    }

    /// Makes calls with short and long parameters.
    fn is_served(&self, server: &Server) {
        for len in [1, 1 << 20] {
            let call = self.context.handle(&self.there, &self.length);
            call.start(&vec![1; len]).unwrap();
            server.pump("a call with an input", || self.turn(), || call.is_done());
            assert_eq!(call.output().unwrap(), len);
            let call = self.start_zeros(len);
            server.pump("a call with an output", || self.turn(), || call.is_done());
            assert_eq!(call.output().unwrap().len(), len);
        }
    }

    fn start_zeros(&self, len: usize) -> Handle<usize, Vec<u8>> {
        let call = self.context.handle(&self.there, &self.zeros);
        call.start(&len).unwrap();
        call
    }

    fn close(self) {
        self.context.destroy().unwrap();
        drop(self.context);
        self.class.finalize().unwrap();
    }
}

/// A client whose inputs are in its memory, which it makes no progress for.
struct Silent {
    class: na::Class,
    context: na::Context,
    there: Address,
    /// The handle of the input as another process would send it.
    input: Vec<u8>,
    _memory: Arc<Mem>,
}

impl Silent {
    fn of(server: &Server, network: &str) -> Silent {
        let class = na::Class::with(network, false, Options::default()).unwrap();
        let memory = Mem::allocate(&[300], Permission::ReadWrite).unwrap();
        memory.register();
        let [run] = memory.runs() else { panic!("one run") };
        // SAFETY: the handle owns the run, and nothing else accesses it now.
        unsafe { std::ptr::write_bytes(run.address as *mut u8, 7, run.len) };
        let mut input = memory.to_bytes(PARAMETERS);
        input[16] ^= 1; // the process
        let end = input.len() - 8;
        let sum = Method::Crc64.sum(&input[..end]).to_le_bytes();
        input[end..].copy_from_slice(&sum);
        Silent {
            context: class.context().unwrap(),
            there: class.lookup(&server.name()).unwrap(),
            input,
            _memory: memory,
            class,
        }
    }

    /// Calls `count` with the input. Returns whether the request was sent.
    fn call(&self, server: &Server) -> bool {
        let function = server.class.shared.functions.named("count").unwrap();
        let request = CallRequest {
            id: function.id,
            check: function.check,
            method: Method::None,
            token: 0,
            quiet: false,
            long: true,
            more: false,
            context: 0,
            origin_context: 0,
        };
        let mut body = vec![0; REQUEST];
        request.write(&mut body);
        body.extend(&self.input);
        self.context.send_unexpected(&self.there, 0, &body, Box::new(|_| ())).is_ok()
    }

    fn turn(&self) {
        self.context.progress(Duration::ZERO).unwrap();
        self.context.trigger(Duration::ZERO, 100).unwrap();
    }

    fn close(self) {
        self.context.clear();
        drop(self.context);
        self.class.finalize().unwrap();
    }
}

#[test]
fn peers_that_do_not_serve_pulls_delay_nobody() {
    for network in NETWORKS {
        let server = Server::open(network);
        let silent: Vec<Silent> = (0..3).map(|_| Silent::of(&server, network)).collect();
        let client = Client::of(&server, network);
        for _ in 0..50 {
            assert!(silent.iter().all(|silent| silent.call(&server)));
        }
        server.settle();
        let pulls = server.shares().table.lock().pulls;
        assert_eq!(pulls, MOST_PULLS + 1, "each peer has at least one");
        client.is_served(&server);
        assert_eq!(server.calls(), 2, "the client's");
        // Nothing is lost.
        let all = || silent.iter().for_each(Silent::turn);
        server.pump("the calls", all, || server.calls() == 2 + 150);
        client.is_served(&server);
        server.pump("the release", || client.turn(), || server.is_free());
        silent.into_iter().for_each(Silent::close);
        client.close();
        server.close();
    }
}

#[test]
fn a_peer_that_does_not_serve_pulls_is_given_up() {
    for network in NETWORKS {
        let server = Server::open(network);
        let (silent, client) = (Silent::of(&server, network), Client::of(&server, network));
        assert!((0..50).all(|_| silent.call(&server)));
        server.settle();
        assert_eq!(server.shares().table.lock().pulls, PEER_PULLS);
        server.shares().set_patience(Duration::from_millis(100));
        server.pump("the end of the pulls", || {}, || server.is_free());
        assert_eq!(server.calls(), 0);
        server.shares().set_patience(LONG);
        client.is_served(&server);
        // The peer can connect again, once it has noticed the end.
        let call = || {
            silent.turn();
            silent.call(&server);
        };
        server.pump("a call", call, || server.calls() > 2);
        silent.close();
        client.close();
        server.close();
    }
}

#[test]
fn calls_of_a_peer_that_pulls_no_outputs_wait() {
    for network in NETWORKS {
        let server = Server::open(network);
        let (hoarder, client) = (Client::of(&server, network), Client::of(&server, network));
        let calls: Vec<_> = (0..5).map(|_| hoarder.start_zeros(OUTPUT)).collect();
        server.settle();
        assert_eq!(server.calls(), 3);
        let more: Vec<_> = (0..20).map(|_| hoarder.start_zeros(1)).collect();
        server.settle();
        assert_eq!(server.calls(), 3);
        client.is_served(&server);
        assert_eq!(server.calls(), 5);
        // Nothing is lost.
        for call in calls.iter().chain(&more) {
            server.pump("a call", || hoarder.turn(), || call.is_done());
            assert!(matches!(call.output().unwrap().len(), 1 | OUTPUT));
        }
        server.pump("the release", || hoarder.turn(), || server.is_free());
        drop((calls, more));
        hoarder.close();
        client.close();
        server.close();
    }
}

#[test]
fn calls_of_a_peer_that_reads_no_outputs_wait() {
    const CALLS: usize = 1000;
    for network in NETWORKS {
        let server = Server::open(network);
        let (hoarder, client) = (Client::of(&server, network), Client::of(&server, network));
        let calls: Vec<_> = (0..CALLS).map(|_| hoarder.start_zeros(60_000)).collect();
        server.settle();
        let begun = server.calls();
        assert!(begun < CALLS * 3 / 4, "{begun} calls have run");
        client.is_served(&server);
        // Nothing is lost.
        for call in &calls {
            server.pump("a call", || hoarder.turn(), || call.is_done());
            assert_eq!(call.output().unwrap().len(), 60_000);
        }
        drop(calls);
        client.close();
        server.pump("the end", || hoarder.turn(), || server.is_free());
        hoarder.close();
        server.close();
    }
}

#[test]
fn calls_of_a_peer_that_pulls_no_outputs_fail_in_the_end() {
    for network in NETWORKS {
        let server = Server::open(network);
        let hoarder = Client::of(&server, network);
        let calls: Vec<_> = (0..5).map(|_| hoarder.start_zeros(OUTPUT)).collect();
        server.settle();
        server.shares().set_patience(Duration::from_millis(100));
        let refused = || server.shares().table.lock().peers.values().all(|s| s.calls.is_empty());
        server.pump("the refusal", || {}, refused);
        server.shares().set_patience(LONG);
        for (n, call) in calls.iter().enumerate() {
            server.pump("a call", || hoarder.turn(), || call.is_done());
            match call.output() {
                Ok(output) => assert!(output.len() == OUTPUT && n < 3),
                Err(failure) => assert!(failure.status() == Status::NOMEM && n >= 3, "{failure}"),
            }
        }
        // Pulled outputs make room.
        let call = hoarder.start_zeros(1);
        server.pump("a call", || hoarder.turn(), || call.is_done());
        assert_eq!(call.output().unwrap(), [0]);
        drop((call, calls));
        hoarder.close();
        server.close();
    }
}

#[test]
fn outputs_of_calls_that_have_begun_are_bounded() {
    let shares = Shares::<(), ()>::default();
    let (one, other) = (Peer::Remote(1), Peer::Remote(2));
    shares.begin_output(one, 2 * MOST_OUTPUTS).unwrap();
    assert!(!shares.has_full(), "a single output may have any length");
    let refused = shares.begin_output(one, 1).unwrap_err();
    assert_eq!(refused.status(), Status::NOMEM);
    assert!(!shares.end_output(one, 2 * MOST_OUTPUTS));
    let len = MOST_OUTPUTS / 4 - OVERHEAD;
    (0..4).for_each(|_| shares.begin_output(one, len).unwrap());
    assert_eq!(shares.begin_output(one, len).unwrap_err().status(), Status::NOMEM);
    shares.begin_output(other, len).unwrap();
    let ends: Vec<bool> = (0..4).map(|_| shares.end_output(one, len)).collect();
    assert_eq!(ends, [false, false, true, false]);
    shares.end_output(other, len);
    assert!(shares.table.lock().peers.is_empty());
}

/// A client of a server that is stopped cancels its calls and makes others.
#[test]
fn cancelled_calls_of_a_client_are_bounded() {
    const SHORT: usize = 60_000;
    for network in NETWORKS {
        let server = Server::open(network);
        let client = Client::of(&server, network);
        let ran = Arc::<AtomicUsize>::default();
        let counted = ran.clone();
        let sink = move |bytes: Vec<u8>| {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok(bytes.len())
        };
        server.class.serve_fn("sink", sink).unwrap();
        let sink = client.class.client::<Vec<u8>, usize>("sink").unwrap();
        let (short, long) = (vec![1; SHORT], vec![1; PEER_BYTES / 8]);
        for _ in 0..30 {
            for input in [&short, &long] {
                let call = client.context.handle(&client.there, &sink);
                call.start(input).unwrap();
                call.cancel();
                assert!(call.wait(LONG).unwrap());
            }
        }
        let kept = client.class.shared.calls.lock().iter().count();
        assert!(kept < 9, "{kept} inputs are kept");
        // Requests beyond the window are withdrawn.
        let call = client.context.handle(&client.there, &sink);
        call.start(&short).unwrap();
        server.pump("the call", || client.turn(), || call.is_done());
        assert_eq!(call.output().unwrap(), SHORT);
        let ran = ran.load(Ordering::Relaxed);
        assert!(ran <= (1 << 20) / SHORT + 1 + kept, "{ran} calls have run");
        drop((call, sink));
        client.close();
        server.close();
    }
}

#[test]
fn what_is_held_ends_with_its_server() {
    for network in NETWORKS {
        let server = Server::open(network);
        let (silent, hoarder) = (Silent::of(&server, network), Client::of(&server, network));
        let calls: Vec<_> = (0..5).map(|_| hoarder.start_zeros(OUTPUT)).collect();
        assert!((0..50).all(|_| silent.call(&server)));
        server.settle();
        let pulling = server.shares().table.lock().pulls;
        assert_eq!((pulling, server.calls()), (PEER_PULLS, 3));
        silent.close(); // its pulls end
        std::thread::scope(|scope| {
            scope.spawn(|| server.close());
            for (n, call) in calls.iter().enumerate() {
                assert!(call.wait(LONG).unwrap());
                assert_eq!(call.output().is_ok(), n < 3, "call {n}");
            }
        });
        drop(calls);
        hoarder.close();
    }
}
