//! A server and clients over a network that delays, loses and cuts connections: a proxy, in this
//! process, between the two. Every call ends in time, and no call has a wrong result.

use super::roles::{Dir, Process, counts, end_server, start_server, wait_for};
use super::rounds::{rounds, seed};
use portolan_kernels::rng::Rng;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const CLIENTS: usize = 4;

/// The treatment of the bytes of a connection in one direction.
#[derive(Debug, Clone, Copy)]
enum Fate {
    /// They arrive late, in small parts, and the connection is cut after this number.
    Late(u64),
    /// The connection is cut after this number of bytes.
    Cut(u64),
    /// All bytes after this number are lost, and the connection is cut a while later.
    Lost(u64),
}

impl Fate {
    fn choose(rng: &mut Rng) -> Fate {
        let most = [60, 300, 5000, 1_000_000][rng.below(4)];
        let bytes = rng.below(most) as u64;
        match rng.below(3) {
            0 => Fate::Late(bytes),
            1 => Fate::Cut(bytes),
            _ => Fate::Lost(bytes),
        }
    }

    fn end(self) -> u64 {
        match self {
            Fate::Late(end) | Fate::Cut(end) | Fate::Lost(end) => end,
        }
    }
}

struct Proxy {
    seed: u64,
    calm: AtomicBool,
    connections: AtomicU64,
}

impl Proxy {
    /// Starts a proxy for a server. Returns it with its address.
    fn start(server: &str, seed: u64) -> (Arc<Proxy>, String) {
        let proxy = Proxy { seed, calm: AtomicBool::new(false), connections: AtomicU64::new(0) };
        let (proxy, listener) = (Arc::new(proxy), TcpListener::bind("127.0.0.1:0").unwrap());
        let place = listener.local_addr().unwrap().to_string();
        let (own, server) = (proxy.clone(), server.to_string());
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let n = own.connections.fetch_add(1, Ordering::Relaxed);
                let Ok(there) = TcpStream::connect(&server) else { continue };
                let mut rng = Rng::new(own.seed, n as usize);
                for (from, to) in [(&client, &there), (&there, &client)] {
                    let fate = Fate::choose(&mut rng);
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let (own, rng) = (own.clone(), rng.clone());
                    std::thread::spawn(move || own.forward(from, to, fate, rng));
                }
            }
        });
        (proxy, place)
    }

    fn forward(&self, mut from: TcpStream, mut to: TcpStream, fate: Fate, mut rng: Rng) {
        let (mut buffer, mut passed) = (vec![0; 64 << 10], 0);
        from.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        loop {
            let late = matches!(fate, Fate::Late(_)) && !self.calm.load(Ordering::Relaxed);
            let most = if late { 1 + rng.below(40_000) } else { buffer.len() };
            let bytes = match from.read(&mut buffer[..most]) {
                Ok(0) => break,
                Ok(bytes) => bytes as u64,
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => continue,
                Err(_) => break,
            };
            let passes = match self.calm.load(Ordering::Relaxed) {
                true => bytes,
                false => bytes.min(fate.end().saturating_sub(passed)),
            };
            if late {
                std::thread::sleep(Duration::from_micros(rng.below(4000) as u64));
            }
            if to.write_all(&buffer[..passes as usize]).is_err() {
                break;
            }
            passed += passes;
            if passes < bytes {
                if matches!(fate, Fate::Lost(_)) {
                    // Neither side learns anything for a while.
                    std::thread::sleep(Duration::from_millis(100 + rng.below(400) as u64));
                }
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}

#[test]
fn a_network_that_delays_loses_and_cuts() {
    let seed = seed();
    let dir = Dir::new("bad-network");
    let (mut server, address) = start_server("tcp", &dir.file("real"));
    let idle = server.files();
    let (proxy, place) = Proxy::start(address.strip_prefix("tcp://").unwrap(), seed);
    std::fs::write(dir.file("address"), format!("tcp://{place}")).unwrap();
    let file = dir.file("address");
    let counted: Vec<_> = (0..CLIENTS).map(|n| dir.file(&format!("counts-{n}"))).collect();
    let mut clients: Vec<Process> = counted
        .iter()
        .enumerate()
        .map(|(n, counts)| {
            let listen = if n == 0 { "listen" } else { "-" };
            let seed = (seed + n as u64).to_string();
            let arguments =
                ["tcp", listen, file.to_str().unwrap(), counts.to_str().unwrap(), &seed];
            Process::start("client", &arguments)
        })
        .collect();
    let mut alive = |clients: &mut [Process]| {
        clients.iter_mut().for_each(|client| client.must_live("a client"));
        server.must_live("the server");
    };
    for round in 1..=rounds(100) as u64 {
        // Every client connects once per round.
        wait_for("connections", || {
            alive(&mut clients);
            proxy.connections.load(Ordering::Relaxed) >= round * CLIENTS as u64
        });
    }
    let (good, bad) =
        counted.iter().map(|file| counts(file)).fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
    println!("{good} calls succeeded and {bad} failed");
    assert!(bad > 0, "the network was good");
    // The network recovers, and so do all.
    proxy.calm.store(true, Ordering::Relaxed);
    for file in &counted {
        let before = counts(file).0;
        wait_for("good calls", || {
            alive(&mut clients);
            counts(file).0 >= before + 10
        });
    }
    clients.clear();
    wait_for("closed connections", || server.files() <= idle);
    end_server(&address);
    server.must_end("the server");
}
