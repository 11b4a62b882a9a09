//! Two classes of this process talk to each other over each network.

use crate::failure::{Result, Status};
use crate::na::{Address, Class, Context, Direction, Event, Mem, OpId, Options, Part};
use crate::na::{Permission, What};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};

mod ended;
mod exported;
mod held;
mod net;
mod places;
#[cfg(feature = "tls")]
mod secured;
mod strangers;
mod withdrawn;

use net::Net;

struct End {
    class: Class,
    context: Context,
    events: Arc<Mutex<Vec<Event>>>,
}

impl End {
    fn open(info: &str, options: Options<'_>) -> End {
        End::with(info, true, options)
    }

    fn with(info: &str, listen: bool, options: Options<'_>) -> End {
        let class = Class::with(info, listen, options).unwrap();
        let context = class.context().unwrap();
        End { class, context, events: Arc::default() }
    }

    fn callback(&self) -> Box<dyn FnOnce(Event) + Send> {
        let events = self.events.clone();
        Box::new(move |event| events.lock().push(event))
    }

    fn name(&self) -> String {
        self.class.text_of(&self.class.own_address())
    }

    /// Returns the name without the network.
    fn place(&self) -> String {
        self.name().split_once("://").unwrap().1.into()
    }

    fn send(&self, there: &Address, tag: u32, body: &[u8]) -> Result<OpId> {
        self.context.send_unexpected(there, tag, body, self.callback())
    }

    fn receive(&self) {
        self.context.recv_unexpected(self.callback()).unwrap();
    }

    /// Transfers the first `len` bytes of two handles.
    fn transfer(
        &self,
        direction: Direction,
        there: &Address,
        local: &Arc<Mem>,
        remote: &Arc<Mem>,
        len: usize,
    ) -> Result<OpId> {
        let (here, far) = (Part { mem: local, offset: 0 }, Part { mem: remote, offset: 0 });
        self.context.transfer(direction, there, here, far, len, self.callback())
    }

    fn turn(&self) {
        self.context.progress(Duration::ZERO).unwrap();
        self.context.trigger(Duration::ZERO, 100).unwrap();
    }

    /// Makes progress on this end until `done`.
    fn pump(&self, what: &str, done: impl FnMut() -> bool) {
        pump(self, self, what, done);
    }

    fn close(self) {
        self.context.clear();
        drop(self.context);
        self.class.finalize().unwrap();
    }
}

/// Makes progress on both ends until `done`.
fn pump(a: &End, b: &End, what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !done() {
        a.turn();
        b.turn();
        assert!(Instant::now() < end, "{what}");
    }
}

/// Connects `a` to `b` by a message, and forgets the events.
fn meet(a: &End, b: &End, there: &Address) {
    b.receive();
    a.send(there, 1, b"x").unwrap();
    pump(a, b, "a message", || !a.events.lock().is_empty() && !b.events.lock().is_empty());
    a.events.lock().clear();
    b.events.lock().clear();
}

fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|n| (n * 7 + seed * 13 + n / 251) as u8).collect()
}

#[test]
fn messages_of_all_lengths_arrive_in_order() {
    for net in Net::all() {
        let (a, b, there) = net.pair();
        let lens = [0, 1, 19, 20, 100, 4095, 4096, 65_000, a.class.max_unexpected()];
        let rounds = 40;
        for n in 0..rounds * lens.len() {
            let body = pattern(lens[n % lens.len()], n);
            a.send(&there, n as u32, &body).unwrap();
            b.receive();
        }
        pump(&a, &b, "messages", || b.events.lock().len() == rounds * lens.len());
        let mut source = None;
        for (n, event) in b.events.lock().iter().enumerate() {
            let What::RecvUnexpected { body, source: from, tag } = &event.what else {
                panic!("{event:?}")
            };
            assert_eq!((*tag as usize, event.status), (n, Status::SUCCESS));
            assert!(*body == pattern(lens[n % lens.len()], n), "{net} message {n}");
            source = Some(*from);
        }
        // The receiver answers by the same connection.
        let back = source.unwrap();
        assert_eq!(b.class.text_of(&back), a.name());
        assert_eq!(b.class.lookup(&a.name()).unwrap(), back);
        a.events.lock().clear();
        a.context.recv_expected(&there, 5, a.callback()).unwrap();
        b.context.send_expected(&back, 5, b"answer", b.callback()).unwrap();
        pump(&a, &b, "an answer", || !a.events.lock().is_empty());
        let what = a.events.lock()[0].what.clone();
        assert_eq!(what, What::RecvExpected { body: b"answer".to_vec() });
        a.close();
        b.close();
    }
}

/// Refused connections are logged, and a service's process has no runtime to install a logger.
#[test]
fn a_class_without_mpi_has_a_log() {
    Net::new("tcp").open().close();
    assert!(log::log_enabled!(log::Level::Warn));
}

fn filled(sizes: &[usize], seed: usize) -> (Arc<Mem>, Vec<u8>) {
    let mem = Mem::allocate(sizes, Permission::ReadWrite).unwrap();
    mem.register();
    let bytes = pattern(sizes.iter().sum(), seed);
    set(&mem, &bytes);
    (mem, bytes)
}

fn set(mem: &Mem, bytes: &[u8]) {
    let mut rest = bytes;
    for run in mem.runs() {
        let (part, more) = rest.split_at(run.len);
        // SAFETY: the handle owns the run, and nothing else accesses it now.
        unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), run.address as *mut u8, run.len) };
        rest = more;
    }
}

fn get(mem: &Mem) -> Vec<u8> {
    // SAFETY: the handle owns the runs, and nothing else accesses them now.
    let bytes = |run: &crate::na::Run| unsafe {
        std::slice::from_raw_parts(run.address as *const u8, run.len).to_vec()
    };
    mem.runs().iter().flat_map(bytes).collect()
}

#[test]
fn transfers_move_every_byte_once() {
    for net in Net::all() {
        let (a, b, there) = net.pair();
        let cases: [(&[usize], &[usize]); 4] = [
            (&[100], &[40, 60]),
            (&[3 << 20], &[1 << 20, 2 << 20]),
            (&[5_000_000, 0, 77], &[5_000_077]),
            (&[10; 1000], &[10_000]),
        ];
        for (seed, (here_sizes, there_sizes)) in cases.into_iter().enumerate() {
            let (local, ours) = filled(here_sizes, seed);
            let (owned, theirs) = filled(there_sizes, seed + 50);
            let process = b.class.text_of(&there);
            let remote = remote_copy(&owned);
            let total = ours.len();
            let parts = |mem, offset| Part { mem, offset };
            for direction in [Direction::Get, Direction::Put] {
                a.events.lock().clear();
                set(&local, &ours);
                set(&owned, &theirs);
                let (from, to, len) = (3, 5, total - 8);
                let (here, far) = (parts(&local, from), parts(&remote, to));
                a.context.transfer(direction, &there, here, far, len, a.callback()).unwrap();
                pump(&a, &b, "a transfer", || !a.events.lock().is_empty());
                assert_eq!(a.events.lock()[0].status, Status::SUCCESS, "{process}");
                let (mut want_here, mut want_there) = (ours.clone(), theirs.clone());
                match direction {
                    Direction::Get => {
                        want_here[from..from + len].copy_from_slice(&theirs[to..to + len]);
                    }
                    Direction::Put => {
                        want_there[to..to + len].copy_from_slice(&ours[from..from + len]);
                    }
                }
                assert!(get(&local) == want_here, "{net} {direction:?} {seed}");
                assert!(get(&owned) == want_there, "{net} {direction:?} {seed}");
            }
            // The owner has the last word about its memory.
            owned.deregister();
            a.events.lock().clear();
            a.transfer(Direction::Get, &there, &local, &remote, 8).unwrap();
            pump(&a, &b, "a refusal", || !a.events.lock().is_empty());
            assert_ne!(a.events.lock()[0].status, Status::SUCCESS);
        }
        a.close();
        b.close();
    }
}

/// A handle as another process has it. Both ends of these tests live in one process, so its
/// serialised form gets another process number.
fn remote_copy(mem: &Arc<Mem>) -> Arc<Mem> {
    Mem::from_foreign_bytes(&mem.to_bytes(0))
}

#[test]
fn the_end_of_a_peer_is_noticed_and_its_successor_is_reached() {
    for net in Net::all() {
        let (a, b, there) = net.pair();
        let name = b.name();
        meet(&a, &b, &there);
        a.context.recv_expected(&there, 1, a.callback()).unwrap();
        b.close();
        a.pump("the end", || !a.events.lock().is_empty());
        assert_eq!(a.events.lock()[0].status, Status::HOSTUNREACH);
        let gone = a.send(&there, 1, b"x").unwrap_err();
        assert_eq!(gone.status(), Status::HOSTUNREACH, "{gone}");
        assert_eq!(a.class.lookup(&name).unwrap(), there);
        if net.info == "tcp" {
            let successor = End::open(&name, net.options());
            assert_eq!(successor.name(), name);
            successor.receive();
            a.send(&there, 9, b"again").unwrap();
            pump(&a, &successor, "a message", || !successor.events.lock().is_empty());
            successor.close();
        }
        a.close();
    }
}

#[test]
fn a_peer_that_breaks_the_protocol_loses_its_connection_only() {
    use crate::na::wire::{Head, Kind};
    for net in Net::all() {
        let (a, b, there) = net.pair();
        let bad = net.open();
        let from_bad = bad.class.lookup(&b.name()).unwrap();
        meet(&bad, &b, &from_bad);
        let head = Head { kind: Kind::Moved, class: 0, tag: 0, word: 99 };
        let none = portolan_engine::am::Data::NONE;
        bad.class.transmit(from_bad.peer, &head, none).unwrap();
        bad.context.recv_expected(&from_bad, 1, bad.callback()).unwrap();
        pump(&bad, &b, "the end", || !bad.events.lock().is_empty());
        assert_eq!(bad.events.lock()[0].status, Status::HOSTUNREACH);
        meet(&a, &b, &there);
        [bad, a, b].into_iter().for_each(End::close);
    }
}

#[test]
fn a_thread_that_was_woken_before_it_slept_does_not_sleep() {
    for net in Net::all() {
        let (a, b, _) = net.pair();
        while a.class.poll().unwrap() {}
        let plugin = a.class.plugin.as_ref().unwrap();
        plugin.prepare_sleep();
        plugin.wake();
        assert!(a.class.poll().unwrap(), "{net}");
        assert!(!a.class.poll().unwrap(), "{net}");
        a.close();
        b.close();
    }
}

#[test]
fn an_idle_thread_is_woken_by_a_message_and_by_a_thread() {
    for net in Net::all() {
        let (a, b, there) = net.pair();
        b.receive();
        b.receive();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while b.events.lock().len() < 2 {
                        // Only an event can end this wait in time.
                        b.context.progress(Duration::from_secs(3600)).unwrap();
                        b.context.trigger(Duration::ZERO, 1).unwrap();
                    }
                    // The other thread may still wait: an event of this process wakes it.
                    let own = b.class.own_address();
                    b.send(&own, 1, b"").unwrap();
                });
            }
            for n in 0..2 {
                std::thread::sleep(Duration::from_millis(20));
                a.send(&there, n, b"x").unwrap();
            }
            // On a busy machine, the connection may be made after the calls have returned.
            while b.events.lock().len() < 2 {
                a.turn();
            }
        });
        a.close();
        b.close();
    }
}

#[test]
fn a_server_reaches_a_client_that_does_not_listen_while_it_is_connected() {
    for net in Net::all() {
        let (server, other) = (net.open(), net.open());
        let client = End::with(net.info, false, net.options());
        let there = client.class.lookup(&server.name()).unwrap();
        meet(&client, &server, &there);
        // The client passes its address on, for example with a bound bulk handle.
        let back = server.class.lookup(&client.name()).unwrap();
        assert_eq!(server.class.text_of(&back), client.name());
        meet(&server, &client, &back);
        let stranger = other.class.lookup(&client.name()).unwrap();
        if net.info == "na+sm" {
            meet(&other, &client, &stranger);
        } else {
            let refused = other.send(&stranger, 1, b"x");
            assert_eq!(refused.unwrap_err().status(), Status::HOSTUNREACH);
        }
        [client, server, other].into_iter().for_each(End::close);
    }
}

#[test]
fn clients_that_have_left_cost_no_memory_and_stay_lost() {
    use crate::na::address::{Peer, index_of};
    for net in Net::all() {
        let (server, mut sources) = (net.open(), Vec::<Address>::new());
        for _ in 0..6 {
            let client = End::with(net.info, false, net.options());
            let there = client.class.lookup(&server.name()).unwrap();
            server.receive();
            client.send(&there, 1, b"x").unwrap();
            pump(&client, &server, "a message", || !server.events.lock().is_empty());
            let What::RecvUnexpected { source, .. } = server.events.lock().remove(0).what else {
                panic!("a message")
            };
            server.context.recv_expected(&source, 1, server.callback()).unwrap();
            client.close();
            server.pump("the end", || !server.events.lock().is_empty());
            server.events.lock().clear();
            assert!(!sources.contains(&source), "{net}");
            sources.push(source);
        }
        for source in sources {
            let Peer::Remote(n) = source.peer else { panic!("{source:?}") };
            assert!(index_of(n) < 4, "{net}: {n:#x}");
            let lost = server.context.send_expected(&source, 1, b"x", server.callback());
            assert_eq!(lost.unwrap_err().status(), Status::HOSTUNREACH, "{net}");
        }
        server.close();
    }
}

/// Sends a message each way, without an order between the two, and checks who it is from.
fn exchange(a: &End, to_b: Address, b: &End, to_a: Address) {
    for end in [a, b] {
        end.events.lock().clear();
        end.receive();
    }
    a.send(&to_b, 1, b"x").unwrap();
    b.send(&to_a, 1, b"x").unwrap();
    pump(a, b, "messages", || a.events.lock().len() == 2 && b.events.lock().len() == 2);
    for (end, there) in [(a, to_b), (b, to_a)] {
        let events = std::mem::take(&mut *end.events.lock());
        let source = events.iter().find_map(|event| match event.what {
            What::RecvUnexpected { source, .. } => Some(source),
            _ => None,
        });
        assert_eq!(source, Some(there));
    }
}

#[test]
fn a_peer_has_one_address() {
    let mut nets = Net::all();
    nets.push(Net::new("tcp").auto_sm());
    #[cfg(feature = "tls")]
    nets.push(Net::tls().auto_sm());
    for net in nets {
        let open = || net.open();
        // Both look the other one up, and then one of them connects, or both do at the same time.
        let (a, b, c) = (open(), open(), open());
        let (to_b, to_a) = (a.class.lookup(&b.name()).unwrap(), b.class.lookup(&a.name()).unwrap());
        exchange(&a, to_b, &b, to_a);
        exchange(&a, to_b, &b, to_a);
        let to_c = b.class.lookup(&c.name()).unwrap();
        meet(&b, &c, &to_c);
        let back = c.class.lookup(&b.name()).unwrap();
        exchange(&b, to_c, &c, back);
        // Threads that connect to each other at the same time.
        for _ in 0..20 {
            let (d, e) = (open(), open());
            let (to_e, to_d) =
                (d.class.lookup(&e.name()).unwrap(), e.class.lookup(&d.name()).unwrap());
            let both = std::sync::Barrier::new(2);
            std::thread::scope(|scope| {
                for (end, there) in [(&d, to_e), (&e, to_d)] {
                    let both = &both;
                    scope.spawn(move || {
                        both.wait();
                        for tag in 0..10 {
                            end.send(&there, tag, b"x").unwrap();
                        }
                    });
                }
            });
            for end in [&d, &e] {
                end.events.lock().clear();
                (0..10).for_each(|_| {
                    end.receive();
                });
            }
            let received = |end: &End, there: Address| {
                let tags: Vec<u32> = end
                    .events
                    .lock()
                    .iter()
                    .filter_map(|event| match event.what {
                        What::RecvUnexpected { source, tag, .. } if source == there => Some(tag),
                        _ => None,
                    })
                    .collect();
                tags == (0..10).collect::<Vec<_>>()
            };
            pump(&d, &e, "messages in order", || received(&d, to_e) && received(&e, to_d));
            // Messages sent before a close arrive, by either connection.
            d.events.lock().clear();
            d.context.recv_expected(&to_e, 99, d.callback()).unwrap();
            e.context.send_expected(&to_d, 99, b"last", e.callback()).unwrap();
            e.context.clear();
            std::thread::scope(|scope| {
                let closing = scope.spawn(|| e.close());
                while d.events.lock().is_empty() {
                    d.turn();
                }
                let last = What::RecvExpected { body: b"last".to_vec() };
                assert_eq!(d.events.lock()[0].what, last, "{net}");
                while !closing.is_finished() {
                    d.turn();
                }
            });
            d.close();
        }
        [a, b, c].into_iter().for_each(End::close);
    }
}

fn sharing(auto_sm: bool) -> End {
    End::open("tcp", Options::default().auto_sm(auto_sm))
}

/// Returns the streams of the open connections, one per line.
fn streams(end: &End) -> String {
    end.class.plugin.as_ref().unwrap().describe()
}

#[test]
fn two_processes_of_a_host_switch_to_shared_memory_if_both_want_to() {
    for (ours, theirs) in [(true, true), (true, false), (false, true), (false, false)] {
        let (a, b) = (sharing(ours), sharing(theirs));
        let there = a.class.lookup(&b.name()).unwrap();
        meet(&a, &b, &there);
        for end in [&a, &b] {
            let streams = streams(end);
            assert_eq!(streams.contains("Rings"), ours && theirs, "{streams}");
            assert_eq!(streams.contains("Connected"), !(ours && theirs), "{streams}");
        }
        // Both know each other by their TCP addresses, and the server calls back.
        let back = b.class.lookup(&a.name()).unwrap();
        meet(&b, &a, &back);
        assert_eq!(streams(&b).lines().count(), 1, "one connection");
        assert_eq!(b.class.text_of(&back), a.name());
        assert_eq!(a.class.text_of(&there), b.name());
        a.context.recv_expected(&there, 1, a.callback()).unwrap();
        b.close();
        a.pump("the end", || !a.events.lock().is_empty());
        assert_eq!(a.events.lock()[0].status, Status::HOSTUNREACH);
        a.close();
    }
}

#[test]
fn shared_memory_needs_the_same_key() {
    let options = |key: &'static [u8]| Options::default().auth_key(key).auto_sm(true);
    let (a, b) = (End::open("tcp", options(b"one key")), End::open("tcp", options(b"another")));
    let there = a.class.lookup(&b.name()).unwrap();
    let refused = a.send(&there, 1, b"x").unwrap_err();
    assert_eq!(refused.status(), Status::PERMISSION);
    let c = End::open("tcp", options(b"one key"));
    let there = a.class.lookup(&c.name()).unwrap();
    meet(&a, &c, &there);
    assert!(streams(&a).contains("Rings"));
    [a, b, c].into_iter().for_each(End::close);
}
