//! The listener without MPI: clients and outsiders over loopback, and a substitute for MPI.

use super::greeting::{self, Greeted, Lifeline, Refusal, Sign};
use super::listener::{Door, LIMITS, Limits, Meet};
use super::*;
use crate::failure::refuse;
use crate::na::secret::{Key, Part, Proof, Token};
use crate::na::timed::Timed;
use parking_lot::Condvar;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

/// One side of a connection.
struct Line {
    to: Sender<Vec<u8>>,
    from: Receiver<Vec<u8>>,
}

fn pair() -> (Line, Line) {
    let ((a, b), (c, d)) = (channel(), channel());
    (Line { to: a, from: d }, Line { to: c, from: b })
}

enum At {
    Open,
    Connected(Line),
    CalledOff,
}

/// Ports as MPI provides them: accept waits indefinitely until a client connects.
#[derive(Default)]
struct Net {
    ports: Mutex<HashMap<String, At>>,
    changed: Condvar,
    accepting: AtomicUsize,
    ended: AtomicUsize,
}

impl Net {
    fn connect(&self, name: &str) -> Line {
        let (mine, theirs) = pair();
        let before = self.ports.lock().insert(name.into(), At::Connected(theirs));
        assert!(matches!(before, Some(At::Open)), "{name} is not open");
        self.changed.notify_all();
        mine
    }
}

#[derive(Clone)]
struct Fake(Arc<Net>);

impl Meet for Fake {
    type Port = String;
    type Line = Line;

    fn open(&self) -> Result<(String, String)> {
        let name = format!("the-port-of-mpi-{}", self.0.accepting.fetch_add(1, Ordering::SeqCst));
        self.0.ports.lock().insert(name.clone(), At::Open);
        Ok((name.clone(), name))
    }

    fn accept(&self, _: usize, port: &String) -> Result<Line> {
        let mut ports = self.0.ports.lock();
        loop {
            match ports.get(port) {
                Some(At::Open) => self.0.changed.wait(&mut ports),
                Some(At::Connected(_)) => match ports.remove(port) {
                    Some(At::Connected(line)) => return Ok(line),
                    _ => unreachable!(),
                },
                _ => refuse!(NA_ERROR, "called off"),
            }
        }
    }

    fn call_off(&self, port: &String) {
        self.0.ports.lock().insert(port.clone(), At::CalledOff);
        self.0.changed.notify_all();
    }

    fn close(&self, port: String) {
        self.0.ports.lock().remove(&port);
    }

    fn exchange(&self, line: &Line, mine: &Proof, end: Instant) -> Result<Vec<u8>> {
        let _ = line.to.send(mine.to_vec());
        match line.from.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(theirs) => Ok(theirs),
            Err(_) => refuse!(TIMEOUT, "silent"),
        }
    }

    fn end(&self, _: Line) {
        self.0.ended.fetch_add(1, Ordering::SeqCst);
    }

    fn finish(self) {}
}

struct House {
    door: Option<Door<Fake>>,
    net: Arc<Net>,
    place: String,
    key: Key,
    joined: Arc<Mutex<Vec<(Line, Lifeline)>>>,
}

const LONG: Duration = Duration::from_secs(60);

/// Time limits that no test reaches, so that every wait ends by an event.
const PATIENT: Limits =
    Limits { greeting: LONG, turn: LONG, meeting: LONG, called_off: LONG, guests: 64 };

impl House {
    fn open(limits: Limits) -> House {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = socket.local_addr().unwrap().to_string();
        let key = Key::new(&Token::new().unwrap(), Some(b"the secret of the site"));
        let (net, joined) = (Arc::new(Net::default()), Arc::new(Mutex::default()));
        let list: Arc<Mutex<Vec<_>>> = joined.clone();
        let on_joined = move |line, lifeline| list.lock().push((line, lifeline));
        let fake = Fake(net.clone());
        let door =
            Door::open(socket, place.clone(), key.clone(), fake, limits, Box::new(on_joined));
        House { door: Some(door.unwrap()), net, place, key, joined }
    }

    fn reach(&self) -> TcpStream {
        TcpStream::connect(&self.place).unwrap()
    }

    /// Runs a client with the given key up to the welcome.
    fn welcomed(&self, key: &Key) -> std::result::Result<(TcpStream, Greeted, String), Refusal> {
        let stream = self.reach();
        let mut with = Timed::new(&stream, Instant::now() + LONG);
        let greeted = greeting::introduce(&mut with, key, &self.place)?;
        let name = greeting::await_welcome(&mut with, key, &self.place, &greeted)?;
        Ok((stream, greeted, name))
    }

    /// Runs a complete client. Retries if the client was dropped in favour of others.
    fn client(&self) -> (Line, TcpStream) {
        loop {
            match self.welcomed(&self.key) {
                Ok((stream, greeted, name)) => {
                    let mut with = Timed::new(&stream, Instant::now() + LONG);
                    greeting::say_coming(&mut with).unwrap();
                    let line = self.net.connect(&name);
                    greeting::say_joined(&mut with).unwrap();
                    let mine = greeted.inside(&self.key, &self.place, Part::ClientInside);
                    line.to.send(mine.to_vec()).unwrap();
                    let theirs = line.from.recv().unwrap();
                    let part = Part::ServerInside;
                    assert!(greeted.is_inside(&self.key, &self.place, part, &theirs));
                    return (line, stream);
                }
                Err(Refusal::Left | Refusal::Busy) => std::thread::yield_now(),
                Err(other) => panic!("{other}"),
            }
        }
    }

    fn wait(&self, what: &str, done: impl Fn(&House) -> bool) {
        let end = Instant::now() + LONG;
        while !done(self) {
            assert!(Instant::now() < end, "{what}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn refused(&self) -> u64 {
        self.door.as_ref().unwrap().refused()
    }

    fn await_refused(&self, count: u64) {
        self.wait("refused attempts are counted", |house| house.refused() >= count);
    }

    fn close(&mut self) {
        self.door.take().unwrap().close();
    }
}

/// Returns everything that an outsider receives after it has sent `said`.
fn heard(house: &House, said: &[u8]) -> Vec<u8> {
    let mut stream = house.reach();
    let _ = stream.write_all(said);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    all
}

#[test]
fn clients_come_in_one_after_the_other_and_at_once() {
    let mut house = House::open(PATIENT);
    for _ in 0..10 {
        house.client();
    }
    std::thread::scope(|scope| {
        (0..20).for_each(|_| drop(scope.spawn(|| house.client())));
    });
    house.wait("all are in", |house| house.joined.lock().len() == 30);
    assert_eq!(house.refused(), 0);
    house.close();
}

#[test]
fn the_socket_tells_how_a_peer_ends() {
    let mut house = House::open(PATIENT);
    let (_line, stream) = house.client();
    house.wait("it is in", |house| house.joined.lock().len() == 1);
    let (_, server) = house.joined.lock().pop().unwrap();
    let client = Lifeline::new(stream).unwrap();
    assert_eq!(server.sign(), Sign::None);
    client.say_bye();
    house.wait("it says so", |_| server.sign() == Sign::Bye);
    drop(client);
    house.wait("it is gone", |_| server.sign() == Sign::Gone);
    house.close();
}

#[test]
fn strangers_are_told_nothing_and_keep_out_nobody() {
    let mut house = House::open(PATIENT);
    // Clients that send nothing and stay connected.
    let silent: Vec<TcpStream> = (0..10).map(|_| house.reach()).collect();
    house.client();
    let mut refused = 0;
    for rubbish in [&b""[..], b"portolan", b"GET / HTTP/1.0\r\n\r\n", &[0; 500], b"ptlnrpc\x02"] {
        let answer = heard(&house, rubbish);
        assert!(answer.is_empty(), "{rubbish:?} was told {answer:?}");
        refused += 1;
    }
    // An outsider that receives the challenge but cannot answer it.
    let opening = [&b"ptlnrpc\x01"[..], &[7; 32]].concat();
    for proof in [&[0u8; 32][..], &[255; 32], &[1; 100], &[1; 5], b""] {
        let answer = heard(&house, &[&opening[..], proof].concat());
        assert!(answer.len() <= 41, "{} bytes", answer.len());
        assert!(!answer.windows(8).any(|part| part == b"the-port"));
        refused += 1;
    }
    house.await_refused(refused);
    house.client();
    house.wait("both are in", |house| house.joined.lock().len() == 2);
    assert_eq!(house.net.accepting.load(Ordering::SeqCst), 2, "MPI heard of clients alone");
    house.close();
    drop(silent);
}

#[test]
fn another_token_or_secret_is_refused() {
    let mut house = House::open(PATIENT);
    let token = Token::new().unwrap();
    for key in [Key::new(&token, Some(b"the secret of the site")), Key::new(&token, None)] {
        let refused = house.welcomed(&key).map(|_| ()).unwrap_err();
        assert_eq!(refused, Refusal::Refused);
    }
    house.await_refused(2);
    house.close();
}

#[test]
fn a_recorded_greeting_cannot_be_used_again() {
    let mut house = House::open(PATIENT);
    // A client's greeting passes through an outsider that records it.
    let tap = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = tap.local_addr().unwrap();
    let recorded = std::thread::scope(|scope| {
        let relay = scope.spawn(|| {
            let (mut client, _) = tap.accept().unwrap();
            let mut server = house.reach();
            let mut said = [0; 40];
            client.read_exact(&mut said).unwrap();
            server.write_all(&said).unwrap();
            let mut challenge = [0; 40];
            server.read_exact(&mut challenge).unwrap();
            client.write_all(&challenge).unwrap();
            let mut proof = [0; 32];
            client.read_exact(&mut proof).unwrap();
            server.write_all(&proof).unwrap();
            let mut verdict = [0];
            server.read_exact(&mut verdict).unwrap();
            assert_eq!(verdict, [1], "the recorded one is right");
            [&said[..], &proof].concat()
        });
        let stream = TcpStream::connect(at).unwrap();
        let mut with = Timed::new(&stream, Instant::now() + LONG);
        greeting::introduce(&mut with, &house.key, &house.place).unwrap();
        relay.join().unwrap()
    });
    for _ in 0..3 {
        let answer = heard(&house, &recorded);
        assert_eq!(answer.get(40), Some(&2), "refused");
        assert_eq!(answer.len(), 41);
    }
    // The three replays, and the relay that left half-way.
    house.await_refused(4);
    house.client();
    house.close();
}

#[test]
fn a_proof_for_another_place_is_none() {
    let mut house = House::open(PATIENT);
    let stream = house.reach();
    let mut with = Timed::new(&stream, Instant::now() + LONG);
    let greeted = greeting::introduce(&mut with, &house.key, "10.0.0.1:9").unwrap();
    let answer = greeting::await_welcome(&mut with, &house.key, "10.0.0.1:9", &greeted);
    assert_eq!(answer, Err(Refusal::Refused));
    house.close();
}

#[test]
fn a_false_server_is_not_believed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap().to_string();
    let key = Key::new(&Token::new().unwrap(), None);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut guest, _) = listener.accept().unwrap();
            guest.read_exact(&mut [0; 40]).unwrap();
            guest.write_all(&[&b"ptlnrpc\x01"[..], &[9; 32]].concat()).unwrap();
            guest.read_exact(&mut [0; 32]).unwrap();
            guest.write_all(&[&[1, 4, 0][..], b"port", &[3; 32]].concat()).unwrap();
        });
        let stream = TcpStream::connect(&place).unwrap();
        let mut with = Timed::new(&stream, Instant::now() + LONG);
        let greeted = greeting::introduce(&mut with, &key, &place).unwrap();
        let answer = greeting::await_welcome(&mut with, &key, &place, &greeted);
        assert_eq!(answer, Err(Refusal::Unproven));
    });
}

#[test]
fn a_thousand_strangers_keep_out_nobody() {
    let mut house = House::open(PATIENT);
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let strangers = scope.spawn(|| {
            let mut kept = std::collections::VecDeque::new();
            for n in 0..1000 {
                let Ok(mut stream) = TcpStream::connect(&house.place) else { continue };
                let said = ["", "p", "ptlnrpc\x01", "rubbish!"][n % 4].as_bytes();
                let _ = stream.write_all(said);
                kept.push_back(stream);
                if kept.len() > 200 {
                    kept.pop_front();
                }
            }
            stop.store(true, Ordering::SeqCst);
            kept
        });
        let mut came = 0;
        while !stop.load(Ordering::SeqCst) || came < 3 {
            house.client();
            came += 1;
        }
        drop(strangers.join().unwrap());
        house.wait("clients are in", |house| house.joined.lock().len() == came);
    });
    house.await_refused(900);
    house.client();
    house.close();
}

#[test]
fn guests_who_leave_half_way_free_their_desks() {
    let mut house = House::open(PATIENT);
    for n in 0..40 {
        let (stream, _, name) = loop {
            match house.welcomed(&house.key) {
                Ok(welcomed) => break welcomed,
                Err(Refusal::Left | Refusal::Busy) => {}
                Err(other) => panic!("{other}"),
            }
        };
        let mut with = Timed::new(&stream, Instant::now() + LONG);
        match n % 4 {
            0 => {}
            1 => greeting::say_coming(&mut with).unwrap(),
            2 => {
                // It sends something other than `J`, and leaves.
                greeting::say_coming(&mut with).unwrap();
                with.write_all(b"x").unwrap();
            }
            _ => {
                // It connects through MPI, and leaves before it reports this.
                greeting::say_coming(&mut with).unwrap();
                drop(house.net.connect(&name));
            }
        }
        drop(stream);
    }
    house.await_refused(40);
    house.client();
    house.close();
}

#[test]
fn guests_who_stay_half_way_free_their_desks_in_time() {
    let short = Duration::from_millis(100);
    let mut house = House::open(Limits { greeting: LONG, turn: LONG, meeting: short, ..PATIENT });
    let stay: Vec<_> = (0..8)
        .map(|_| {
            let (stream, ..) = house.welcomed(&house.key).unwrap();
            greeting::say_coming(&mut Timed::new(&stream, Instant::now() + LONG)).unwrap();
            stream
        })
        .collect();
    house.await_refused(8);
    drop(stay);
    house.close();
    let mut house = House::open(Limits { greeting: short, ..PATIENT });
    let silent: Vec<_> = (0..20).map(|_| house.reach()).collect();
    house.await_refused(20);
    drop(silent);
    house.close();
}

#[test]
fn who_guesses_the_port_is_not_let_in() {
    let mut house = House::open(PATIENT);
    let (stream, greeted, name) = house.welcomed(&house.key).unwrap();
    let mut with = Timed::new(&stream, Instant::now() + LONG);
    greeting::say_coming(&mut with).unwrap();
    // Another process connects first.
    let thief = house.net.connect(&name);
    greeting::say_joined(&mut with).unwrap();
    let said = greeted.inside(&house.key, &house.place, Part::ServerInside);
    thief.to.send(said.to_vec()).unwrap();
    house.await_refused(1);
    assert!(house.joined.lock().is_empty());
    assert_eq!(house.net.ended.load(Ordering::SeqCst), 1);
    house.close();
}

#[test]
fn the_door_closes_whatever_its_guests_do() {
    let mut house = House::open(PATIENT);
    let mut kept = Vec::new();
    for n in 0..12 {
        kept.push(match n % 3 {
            0 => house.reach(),
            1 => {
                let mut stream = house.reach();
                stream.write_all(b"ptlnrpc\x01").unwrap();
                stream
            }
            // The four accept slots are taken by clients that do not connect.
            _ => {
                let (stream, ..) = house.welcomed(&house.key).unwrap();
                greeting::say_coming(&mut Timed::new(&stream, Instant::now() + LONG)).unwrap();
                stream
            }
        });
    }
    // Another client waits for a slot.
    let waits = house.reach();
    let mut with = Timed::new(&waits, Instant::now() + LONG);
    greeting::introduce(&mut with, &house.key, &house.place).unwrap();
    let begun = Instant::now();
    house.close();
    assert!(begun.elapsed() < LONG / 2, "it took {:?}", begun.elapsed());
    assert!(house.net.ports.lock().is_empty(), "nobody is left in accept");
    assert!(TcpStream::connect(&house.place).is_err(), "nobody listens any more");
    drop(kept);
}

#[test]
fn addresses_have_a_place_and_a_token() {
    let token = Token::new().unwrap();
    for place in ["host:1", "[::1]:7", "10.0.0.1:40000"] {
        let text = format!("{place}/{}", token.text());
        let published = Published::parse(&text).unwrap();
        assert!(published.place == place && published.token == token);
    }
    for bad in ["host:1", "host:1/", "host:1/123", &format!("/{}", token.text())] {
        let refused = Published::parse(bad).map(|_| ()).unwrap_err();
        assert_eq!(refused.status(), Status::INVALID_ARG);
    }
    let long = format!("host:1/{}0", token.text());
    let refused = Published::parse(&long).map(|_| ()).unwrap_err();
    assert!(!refused.text().contains(&token.text()), "a token is not shown");
    const { assert!(LIMITS.guests > super::listener::DESKS) };
}
