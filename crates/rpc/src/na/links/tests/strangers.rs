//! TCP classes facing processes without the key, with recorded or damaged greetings, that stop
//! half-way, that claim the address of another process, or that come in large numbers. The greeting
//! is written here from its description.

use super::{Address, Direction, End, Mem, Net, Options, Status, What, filled, meet, pump, set};
use crate::na::secret::{Key, random};
use crate::na::wire::{Head, Kind};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

const SECRET: &[u8] = b"one key";

fn with(key: &'static [u8]) -> Options<'static> {
    Options::default().auth_key(key)
}

fn tcp() -> End {
    End::open("tcp", Options::default())
}

fn reach(place: &str) -> TcpStream {
    let socket = TcpStream::connect(place).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket
}

/// Returns all bytes until the server closes the socket.
fn heard(mut socket: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A reset ends the bytes like a close.
    let _ = socket.read_to_end(&mut bytes);
    bytes
}

const MAGIC: &[u8] = b"ptlntcp\x07";
/// Length of the first bytes of each side, without the address.
const FRONT: usize = 49;
/// The address of a client that does not listen.
const NOBODY: &str = "x.1:0";

fn front(flags: u8, nonce: &[u8; 32]) -> Vec<u8> {
    [MAGIC, &[flags], &[0; 8], nonce].concat()
}

fn hello(flags: u8, nonce: &[u8; 32], place: &str) -> Vec<u8> {
    let len = (place.len() as u16).to_le_bytes();
    [&front(flags, nonce)[..], &len, place.as_bytes()].concat()
}

/// Returns the parts that identify a connection to this address of a server without TLS.
fn binding(server: std::net::SocketAddr) -> Vec<u8> {
    let (ip, port) = (server.ip(), server.port());
    assert!(ip.is_loopback());
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let network = std::fs::read_link("/proc/self/ns/net").unwrap();
    format!("address {ip} {port} {} {}", boot.trim(), network.display()).into_bytes()
}

/// Greets a server with the right key, up to the proof. Returns the socket, and what was sent.
fn proven(place: &str) -> (TcpStream, Vec<u8>) {
    let mut socket = reach(place);
    let client = random().unwrap();
    let mut said = hello(1, &client, NOBODY);
    socket.write_all(&said).unwrap();
    let mut server = [0; FRONT];
    socket.read_exact(&mut server).unwrap();
    assert_eq!((&server[..8], server[8]), (MAGIC, 1));
    let binding = binding(socket.peer_addr().unwrap());
    let proof = Key::of_secret(SECRET).prove(&[&[1], &said, &server, &binding, b""]);
    socket.write_all(&proof).unwrap();
    said.extend(proof);
    (socket, said)
}

fn admits(server: &End) {
    let client = End::open("tcp", with(SECRET));
    let there = client.class.lookup(&server.name()).unwrap();
    server.receive();
    let before = server.events.lock().len();
    client.send(&there, 1, b"x").unwrap();
    pump(&client, server, "a message", || server.events.lock().len() > before);
    client.close();
}

/// Checks that a call to the server is refused.
fn is_refused(client: &End, server: &End) {
    let there = client.class.lookup(&server.name()).unwrap();
    assert_eq!(client.send(&there, 1, b"x").unwrap_err().status(), Status::PERMISSION);
}

/// Makes progress until the server has refused this many clients.
fn refuses(server: &End, count: u64) {
    server.pump("refusals", || server.class.refused() >= count);
    assert_eq!(server.class.refused(), count);
}

#[test]
fn keys_must_agree() {
    let server = End::open("tcp", with(SECRET));
    for options in [Options::default(), with(b"another key")] {
        let client = End::open("tcp", options);
        is_refused(&client, &server);
        client.close();
    }
    admits(&server);
    refuses(&server, 2);
    let (client, open) = (End::open("tcp", with(SECRET)), tcp());
    is_refused(&client, &open);
    [server, client, open].into_iter().for_each(End::close);
}

#[test]
fn what_is_no_greeting_learns_nothing() {
    let server = End::open("tcp", with(SECRET));
    let place = server.place();
    let long = [&front(1, &[0; 32])[..], &u16::MAX.to_le_bytes()].concat();
    let says: [&[u8]; 6] =
        [b"", b"ptln", b"GET / HTTP/1.0\r\n\r\n", &[0; 1000], b"ptlntcp\x03", &long];
    // Addresses that end early in C, change a log, or are no HOST:PORT.
    let places = ["x.1:0\0:0", "x\n:0", "x\x1b[31m:0", "", "x", ":1", "x:1x", "x:+1", "x y:1"];
    let claims = places.map(|place| hello(1, &[1; 32], place));
    let says: Vec<&[u8]> = says.into_iter().chain(claims.iter().map(|c| &c[..])).collect();
    for said in &says {
        let mut socket = reach(&place);
        socket.write_all(said).unwrap();
        let _ = socket.shutdown(std::net::Shutdown::Write);
        assert_eq!(heard(socket), b"", "{said:?}");
    }
    refuses(&server, says.len() as u64);
    admits(&server);
    server.close();
}

#[test]
fn wrong_proofs_and_replays_are_refused() {
    let server = End::open("tcp", with(SECRET));
    let place = server.place();
    let nonce = random().unwrap();
    for proof in [vec![0; 32], vec![0xff; 500], nonce.to_vec()] {
        let mut socket = reach(&place);
        socket.write_all(&[hello(1, &nonce, NOBODY), proof].concat()).unwrap();
        let answer = heard(socket);
        assert!(answer.len() == FRONT || answer[FRONT..] == [2], "{answer:?}");
    }
    // A recorded greeting proves nothing, because the server's number differs.
    let (mut socket, said) = proven(&place);
    let mut welcome = [0; 34];
    socket.read_exact(&mut welcome).unwrap();
    assert_eq!((welcome[0], welcome[33]), (1, 0));
    for _ in 0..3 {
        let mut socket = reach(&place);
        socket.write_all(&said).unwrap();
        let answer = heard(socket);
        assert!(answer.len() == FRONT || answer[FRONT..] == [2], "{answer:?}");
    }
    refuses(&server, 6);
    admits(&server);
    server.close();
}

#[test]
fn clients_that_stop_half_way_block_nobody() {
    let server = End::open("tcp", with(SECRET));
    let place = server.place();
    let greeting = [hello(1, &random().unwrap(), NOBODY), vec![7; 32]].concat();
    let mut open = Vec::new();
    for n in (0..greeting.len()).chain(0..greeting.len()) {
        let mut socket = reach(&place);
        // The server may have dropped this client for later ones.
        let _ = socket.write_all(&greeting[..n]);
        open.push(socket);
    }
    for _ in 0..3 {
        open.push(proven(&place).0);
    }
    admits(&server);
    drop(open);
    admits(&server);
    server.close();
}

#[test]
fn a_flood_of_strangers_disturbs_nobody() {
    let (a, b, there) = Net::new("tcp").pair();
    let place = b.place();
    let flood = || {
        let mut strangers = std::collections::VecDeque::new();
        for n in 0..1000 {
            let mut stranger = reach(&place);
            let _ = stranger.write_all([&b""[..], b"p", MAGIC, &[b'x'; 200]][n % 4]);
            strangers.push_back(stranger);
            if strangers.len() > 100 {
                strangers.pop_front();
            }
        }
        strangers
    };
    let mut sent = 0;
    let send = |sent: &mut usize| {
        b.receive();
        a.send(&there, 1, b"x").unwrap();
        *sent += 1;
        pump(&a, &b, "a message", || b.events.lock().len() == *sent);
    };
    let open = std::thread::scope(|scope| {
        let flood = scope.spawn(flood);
        while !flood.is_finished() {
            send(&mut sent);
        }
        flood.join().unwrap()
    });
    let late = tcp();
    let there = late.class.lookup(&b.name()).unwrap();
    late.send(&there, 1, b"x").unwrap();
    send(&mut sent);
    pump(&a, &b, "refusals", || b.class.refused() >= 900);
    drop(open);
    [late, a, b].into_iter().for_each(End::close);
}

#[test]
fn a_false_server_is_not_believed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let there = format!("tcp://{}", listener.local_addr().unwrap());
    let client = End::open("tcp", with(SECRET));
    let there = client.class.lookup(&there).unwrap();
    let front = |flags| front(flags, &[5; 32]);
    let says = [
        (front(0), Status::PERMISSION),
        ([front(1), vec![1], vec![0; 32], vec![0]].concat(), Status::PERMISSION),
        ([front(1), vec![2]].concat(), Status::PERMISSION),
        ([front(1), vec![9]].concat(), Status::HOSTUNREACH),
        (vec![b'x'; 100], Status::HOSTUNREACH),
    ];
    for (said, status) in says {
        let sent = std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut socket, _) = listener.accept().unwrap();
                socket.write_all(&said).unwrap();
                // Closing a socket with unread bytes would reset it.
                let _ = socket.shutdown(std::net::Shutdown::Write);
                heard(socket);
            });
            client.send(&there, 1, b"x")
        });
        assert_eq!(sent.unwrap_err().status(), status, "{said:?}");
    }
    client.close();
}

#[test]
fn a_silent_host_delays_nobody() {
    let (a, b, there) = Net::new("tcp").pair();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let nowhere = a.class.lookup(&format!("tcp://{}", silent.local_addr().unwrap())).unwrap();
    let begun = Instant::now();
    a.send(&nowhere, 1, b"x").unwrap();
    assert!(begun.elapsed() < Duration::from_secs(4), "the call has waited for the connection");
    // Its client waits for an answer now.
    let guest = silent.accept().unwrap();
    meet(&a, &b, &there);
    a.context.recv_expected(&nowhere, 1, a.callback()).unwrap();
    assert!(a.events.lock().is_empty());
    drop((guest, silent));
    pump(&a, &b, "the failure", || !a.events.lock().is_empty());
    assert_eq!(a.events.lock()[0].status, Status::HOSTUNREACH);
    [a, b].into_iter().for_each(End::close);
}

#[test]
fn what_is_sent_during_a_slow_connection_arrives_in_order() {
    let (a, b, _) = Net::new("tcp").pair();
    let slow = TcpListener::bind("127.0.0.1:0").unwrap();
    let there = a.class.lookup(&format!("tcp://{}", slow.local_addr().unwrap())).unwrap();
    let place = b.place();
    let forward = std::thread::spawn(move || {
        let (mut guest, _) = slow.accept().unwrap();
        std::thread::sleep(Duration::from_millis(200));
        let mut server = reach(&place);
        let (mut from, mut to) = (server.try_clone().unwrap(), guest.try_clone().unwrap());
        let back = std::thread::spawn(move || std::io::copy(&mut from, &mut to));
        let _ = std::io::copy(&mut guest, &mut server);
        let _ = server.shutdown(std::net::Shutdown::Write);
        let _ = back.join();
    });
    for n in 0..20 {
        a.send(&there, n, &[n as u8]).unwrap();
        b.receive();
    }
    pump(&a, &b, "the messages", || b.events.lock().len() == 20);
    for (n, event) in b.events.lock().iter().enumerate() {
        let What::RecvUnexpected { tag, .. } = event.what else { panic!("{event:?}") };
        assert_eq!(tag as usize, n);
    }
    [a, b].into_iter().for_each(End::close);
    forward.join().unwrap();
}

/// Forwards bytes until one side ends.
fn forward(mut from: TcpStream, mut to: TcpStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(std::net::Shutdown::Both);
}

#[test]
fn a_greeting_with_a_key_cannot_be_forwarded() {
    let (server, victim) = (End::open("tcp", with(SECRET)), End::open("tcp", with(SECRET)));
    let place = server.place();
    // The victim connects to a process without the key, which forwards everything.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let there = format!("tcp://{}", listener.local_addr().unwrap());
    let there = victim.class.lookup(&there).unwrap();
    let refused = std::thread::scope(|scope| {
        scope.spawn(|| {
            let (guest, _) = listener.accept().unwrap();
            let host = reach(&place);
            let (back, forth) = (host.try_clone().unwrap(), guest.try_clone().unwrap());
            scope.spawn(move || forward(back, forth));
            forward(guest, host);
        });
        victim.send(&there, 1, b"x")
    });
    let refused = refused.expect_err("the server admits a forwarded client");
    assert_eq!(refused.status(), Status::PERMISSION);
    assert!(refused.text().contains("tunnel"), "{refused}");
    refuses(&server, 1);
    admits(&server);
    [server, victim].into_iter().for_each(End::close);
}

#[test]
fn a_claimed_name_is_not_resolved_unless_the_program_has_looked_it_up() {
    let server = tcp();
    for looked_up in [false, true] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = format!("localhost:{}", listener.local_addr().unwrap().port());
        if looked_up {
            server.class.lookup(&format!("tcp://{place}")).unwrap();
        }
        // The process at this address confirms everything that it is asked.
        let confirm = std::thread::spawn(move || {
            listener.set_nonblocking(true).unwrap();
            let end = Instant::now() + Duration::from_secs(if looked_up { 60 } else { 2 });
            while Instant::now() < end {
                if let Ok((mut asked, _)) = listener.accept() {
                    asked.set_nonblocking(false).unwrap();
                    asked.write_all(&[1]).unwrap();
                    heard(asked);
                    return true;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            false
        });
        let mut socket = claims(&server, &place, &random().unwrap());
        let source = source_of(&mut socket, &server);
        let is_named = server.class.text_of(&source) == format!("tcp://{place}");
        assert_eq!(is_named, looked_up);
        assert_eq!(confirm.join().unwrap(), looked_up);
    }
    server.close();
}

/// Greets a server without a key, as a client that claims an address. Returns the socket.
fn claims(server: &End, place: &str, nonce: &[u8; 32]) -> TcpStream {
    let mut socket = reach(&server.place());
    socket.write_all(&[hello(0, nonce, place), vec![0; 32]].concat()).unwrap();
    let mut welcome = [0; FRONT + 34];
    socket.read_exact(&mut welcome).unwrap();
    assert_eq!((welcome[FRONT], welcome[FRONT + 33]), (1, 0));
    socket
}

/// Sends a message from a client. Returns its source, as the server knows it.
fn source_of(client: &mut TcpStream, server: &End) -> Address {
    let before = server.events.lock().len();
    server.receive();
    let head = Head { kind: Kind::Unexpected, class: 0, tag: 1, word: 0 };
    client.write_all(&[&0u32.to_le_bytes()[..], &head.bytes()].concat()).unwrap();
    server.pump("a message", || server.events.lock().len() > before);
    match server.events.lock()[before].what {
        What::RecvUnexpected { source, .. } => source,
        _ => panic!("no message"),
    }
}

#[test]
fn nobody_gets_the_address_of_another_process() {
    let (server, real) = (tcp(), tcp());
    let looked_up = server.class.lookup(&real.name()).unwrap();
    let absent = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().to_string()
    };
    // A real process, this server, nobody, a process that does not answer, and another host.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_place = silent.local_addr().unwrap().to_string();
    let places = [real.place(), server.place(), absent, silent_place, "192.0.2.1:80".into()];
    let mut sockets = Vec::new();
    for place in &places {
        let mut socket = claims(&server, place, &random().unwrap());
        let own = socket.local_addr().unwrap().to_string();
        let source = source_of(&mut socket, &server);
        assert_ne!(source, looked_up, "{place}");
        assert_eq!(server.class.text_of(&source), format!("tcp://{own}"), "claimed {place}");
        sockets.push(socket);
    }
    // The real process is still at its address.
    meet(&server, &real, &looked_up);
    [server, real].into_iter().for_each(End::close);
}

#[test]
fn a_forwarded_greeting_proves_nothing() {
    let (server, victim) = (tcp(), tcp());
    // The victim connects to an impostor, which forwards its greeting to the server.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let there = format!("tcp://{}", listener.local_addr().unwrap());
    let there = victim.class.lookup(&there).unwrap();
    let mut socket = std::thread::scope(|scope| {
        let impostor = scope.spawn(|| {
            let (mut guest, _) = listener.accept().unwrap();
            let mut said = vec![0; hello(0, &[0; 32], &victim.place()).len()];
            guest.read_exact(&mut said).unwrap();
            let nonce = said[17..FRONT].try_into().unwrap();
            // The victim is still in its greeting now.
            claims(&server, &victim.place(), &nonce)
        });
        // It is refused, now or later.
        let _ = victim.send(&there, 1, b"x");
        impostor.join().unwrap()
    });
    let source = source_of(&mut socket, &server);
    assert_ne!(server.class.text_of(&source), victim.name());
    [server, victim].into_iter().for_each(End::close);
}

#[test]
fn a_client_that_does_not_listen_keeps_its_address_while_it_is_connected() {
    let server = tcp();
    let client = End::with("tcp", false, Options::default());
    let there = client.class.lookup(&server.name()).unwrap();
    meet(&client, &server, &there);
    let back = server.class.lookup(&client.name()).unwrap();
    let socket = claims(&server, &client.place(), &random().unwrap());
    // The impostor is connected as somebody else.
    meet(&server, &client, &back);
    meet(&client, &server, &there);
    drop(socket);
    [server, client].into_iter().for_each(End::close);
}

#[test]
fn a_client_cannot_pass_memory_of_the_server_off_as_its_own() {
    let server = tcp();
    let mut socket = claims(&server, NOBODY, &random().unwrap());
    let source = source_of(&mut socket, &server);
    let (owned, local) = (filled(&[10], 1).0, filled(&[10], 2).0);
    let sent_back = Mem::from_bytes(&owned.to_bytes(0), 0).unwrap();
    let refused = server.transfer(Direction::Get, &source, &local, &sent_back, 10);
    assert_eq!(refused.unwrap_err().status(), Status::INVALID_ARG);
    server.close();
}

#[test]
fn a_transfer_from_a_silent_peer_lets_the_program_wait() {
    let server = tcp();
    let mut socket = claims(&server, NOBODY, &random().unwrap());
    let source = source_of(&mut socket, &server);
    let (named, local) = (filled(&[10], 1).0, filled(&[10], 2).0);
    let remote = Mem::from_foreign_bytes(&named.to_bytes(0));
    server.transfer(Direction::Get, &source, &local, &remote, 10).unwrap();
    let fd = server.context.wait_descriptor().unwrap().expect("tcp wakes its threads");
    let readable = |milliseconds| {
        let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: `poll` is one live element.
        unsafe { libc::poll(&mut poll, 1, milliseconds) == 1 }
    };
    server.pump("leave to wait", || server.context.arm(|| false));
    assert!(!readable(50));
    // The request of 24 bytes, and its answer.
    let mut request = [0; 20 + 24];
    socket.read_exact(&mut request).unwrap();
    let token = u64::from_le_bytes(request[12..20].try_into().unwrap());
    let head = Head { kind: Kind::Moved, class: 0, tag: 0, word: token };
    socket.write_all(&[&10u32.to_le_bytes()[..], &head.bytes(), b"0123456789"].concat()).unwrap();
    assert!(readable(60_000));
    server.pump("the end", || server.events.lock().len() == 2);
    assert_eq!(server.events.lock()[1].status, Status::SUCCESS);
    server.pump("leave to wait", || server.context.arm(|| false));
    server.close();
}

#[test]
fn a_put_that_is_answered_before_it_is_read_does_not_use_memory_that_was_withdrawn() {
    const LEN: usize = 1 << 20;
    /// More puts than the buffers of a socket have room for. Tokens of a class count from 1.
    const EARLIER: u64 = 8;
    let server = tcp();
    let mut socket = claims(&server, NOBODY, &random().unwrap());
    let source = source_of(&mut socket, &server);
    let (named, earlier, (local, bytes)) =
        (filled(&[LEN], 1).0, filled(&[LEN], 2).0, filled(&[LEN], 3));
    let remote = Mem::from_foreign_bytes(&named.to_bytes(0));
    for mem in std::iter::repeat_n(&earlier, EARLIER as usize).chain([&local]) {
        server.transfer(Direction::Put, &source, mem, &remote, LEN).unwrap();
    }
    let answer = |socket: &mut TcpStream, token| {
        let head = Head { kind: Kind::Moved, class: 0, tag: 0, word: token };
        socket.write_all(&[&0u32.to_le_bytes()[..], &head.bytes()].concat()).unwrap();
    };
    answer(&mut socket, EARLIER + 1);
    server.pump("the early end", || server.events.lock().len() == 2);
    local.deregister();
    set(&local, &[0; LEN]);
    let mut arrived = vec![1; (EARLIER as usize + 1) * (20 + 24 + LEN)];
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| socket.read_exact(&mut arrived));
        server.pump("the bytes", || reading.is_finished());
        reading.join().unwrap().unwrap();
    });
    assert!(arrived.ends_with(&bytes), "the peer got other bytes");
    (1..=EARLIER).for_each(|token| answer(&mut socket, token));
    server.pump("the end", || server.events.lock().len() == 2 + EARLIER as usize);
    server.close();
}
