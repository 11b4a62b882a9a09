//! Kills or stops a server and clients one at a time, at random. The others continue, and the dead
//! ones leave nothing behind.

use super::roles::{Dir, Process, counts, end_server, start_server, wait_for};
use super::rounds::{rounds, seed};
use portolan_kernels::rng::Rng;
use std::path::PathBuf;
use std::time::Duration;

const CLIENTS: usize = 3;

struct Cast {
    info: String,
    dir: Dir,
    server: Process,
    address: String,
    clients: Vec<Process>,
    seed: u64,
}

impl Cast {
    fn new(info: &str, seed: u64) -> Cast {
        let dir = Dir::new(&format!("faults-{}", info.replace('+', "-")));
        let (server, address) = start_server(info, &dir.file("address"));
        let mut cast = Cast { info: info.into(), dir, server, address, clients: Vec::new(), seed };
        cast.clients = (0..CLIENTS).map(|n| cast.client(n)).collect();
        cast
    }

    fn counts(&self, n: usize) -> PathBuf {
        self.dir.file(&format!("counts-{n}"))
    }

    fn client(&self, n: usize) -> Process {
        let (address, counts) = (self.dir.file("address"), self.counts(n));
        let _ = std::fs::remove_file(&counts);
        // The first client listens too, so its connections have an address that it proves.
        let listen = if n == 0 { "listen" } else { "-" };
        let (address, counts) = (address.to_str().unwrap(), counts.to_str().unwrap());
        let seed = (self.seed + n as u64).to_string();
        Process::start("client", &[&self.info, listen, address, counts, &seed])
    }

    fn server_again(&mut self) {
        self.server.signal(libc::SIGKILL);
        self.server.0.wait().unwrap();
        // Over TCP the successor has the same address.
        let info = if self.info == "tcp" { self.address.clone() } else { self.info.clone() };
        let started = start_server(&info, &self.dir.file("address"));
        assert!(self.info != "tcp" || started.1 == self.address);
        (self.server, self.address) = started;
    }

    /// Waits until every client has made this number of good calls more.
    fn all_go_on(&mut self, calls: u64) {
        let before: Vec<u64> = (0..CLIENTS).map(|n| counts(&self.counts(n)).0).collect();
        for (n, before) in before.into_iter().enumerate() {
            let file = self.counts(n);
            wait_for("good calls", || {
                self.clients[n].must_live("a client");
                self.server.must_live("the server");
                counts(&file).0 >= before + calls
            });
        }
    }
}

/// Kills or stops processes at random.
fn run(info: &str, full: usize) {
    let seed = seed();
    let mut rng = Rng::new(seed, 1);
    let mut cast = Cast::new(info, seed);
    cast.all_go_on(5);
    for round in 0..rounds(full) {
        let victim = rng.below(CLIENTS + 1);
        let kills = round % 2 == 0;
        match (victim, kills) {
            (CLIENTS, true) => cast.server_again(),
            (n, true) => cast.clients[n] = cast.client(n),
            (_, false) => {
                let process = cast.clients.get(victim).unwrap_or(&cast.server);
                process.signal(libc::SIGSTOP);
                std::thread::sleep(Duration::from_millis(rng.below(40) as u64));
                process.signal(libc::SIGCONT);
            }
        }
        std::thread::sleep(Duration::from_millis(rng.below(30) as u64));
        if rng.below(4) == 0 {
            cast.all_go_on(1);
        }
    }
    cast.all_go_on(5);
    let with_clients = cast.server.files();
    cast.clients.clear();
    // Each client had at least one descriptor.
    let server = &cast.server;
    wait_for("closed connections", || server.files() + CLIENTS <= with_clients);
    end_server(&cast.address);
    cast.server.must_end("the server");
}

#[test]
fn processes_are_killed_and_stopped_on_shared_memory() {
    run("na+sm", 200);
}

#[test]
fn processes_are_killed_and_stopped_on_tcp() {
    run("tcp", 200);
}

/// Clients that are killed one after the other leave nothing at their server.
#[test]
fn dead_clients_leave_nothing() {
    for info in ["na+sm", "tcp"] {
        let seed = seed();
        let dir = Dir::new(&format!("dead-{}", info.replace('+', "-")));
        let (mut server, address) = start_server(info, &dir.file("address"));
        let (file, counted) = (dir.file("address"), dir.file("counts"));
        let arguments =
            [info, "-", file.to_str().unwrap(), counted.to_str().unwrap(), &seed.to_string()];
        let idle = server.files();
        for _ in 0..rounds(100) {
            let _ = std::fs::remove_file(&counted);
            let mut client = Process::start("client", &arguments);
            wait_for("a call", || {
                client.must_live("the client");
                counts(&counted).0 > 0
            });
        }
        // The server keeps a few of its own exported buffers.
        wait_for("closed connections", || server.files() <= idle + 8);
        end_server(&address);
        server.must_end("the server");
    }
}
