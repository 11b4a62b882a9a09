//! A server with many clients that are connected and do nothing.

use super::roles::{
    Client, Dir, Process, end_server, raise_limit, start_server, text_of, wait_for,
};
use portolan::rpc::Listen;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

/// Memory that a connection may cost the server, in bytes.
const EACH: u64 = 4096;

pub fn memory(process: &Process) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.0.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

fn used(process: &Process) -> Duration {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", process.0.id())).unwrap();
    let nanoseconds = |task: std::io::Result<std::fs::DirEntry>| {
        let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    };
    Duration::from_nanos(tasks.filter_map(nanoseconds).sum())
}

fn share(process: &Process, time: Duration) -> f64 {
    let before = used(process);
    std::thread::sleep(time);
    (used(process) - before).as_secs_f64() / time.as_secs_f64()
}

/// Role: many connected classes of one process. Each calls, waits for the file, and calls again.
pub fn many(address: &str, count: usize, file: &Path) {
    raise_limit();
    let clients: Vec<Client> = (0..count).map(|_| Client::open("tcp", Listen::No)).collect();
    let call_all = || {
        for (n, client) in clients.iter().enumerate() {
            let echo = client.class.client::<Vec<u8>, (u64, Vec<u8>)>("echo").unwrap();
            let there = client.class.lookup(address).unwrap();
            let bytes = n.to_le_bytes().to_vec();
            let (_, back) =
                client.context.call(&there, &echo, &bytes, Duration::from_secs(60)).unwrap();
            assert_eq!(back, bytes);
        }
    };
    call_all();
    std::fs::write(file.with_extension("connected"), "").unwrap();
    text_of(file);
    call_all();
    clients.into_iter().for_each(Client::close);
}

/// Role: this number of sockets, which greet the server and then do nothing.
pub fn crowd(address: &str, count: usize, ready: &Path) {
    raise_limit();
    let place = address.strip_prefix("tcp://").unwrap();
    let mut sockets = Vec::new();
    for n in 0..count {
        let mut socket = TcpStream::connect(place).unwrap();
        let own = format!("crowd.{n}:0");
        let (mut nonce, len) = ([0; 32], (own.len() as u16).to_le_bytes());
        nonce[..8].copy_from_slice(&n.to_le_bytes());
        let front = [b"ptlntcp\x07", &[0][..], &[0; 8], &nonce].concat();
        let hello = [&front[..], &len, own.as_bytes(), &[0; 32]].concat();
        socket.write_all(&hello).unwrap();
        let mut welcome = [0; 49 + 34];
        socket.read_exact(&mut welcome).unwrap();
        assert_eq!((welcome[49], welcome[82]), (1, 0));
        sockets.push(socket);
    }
    std::fs::write(ready, "").unwrap();
    std::thread::sleep(Duration::from_secs(3600));
}

#[test]
fn idle_clients_cost_little_memory_and_are_answered() {
    const PROCESSES: usize = 3;
    const CLASSES: usize = 170;
    let dir = Dir::new("idle");
    let (mut server, address) = start_server("tcp", &dir.file("address"));
    let alone = memory(&server);
    let mut clients: Vec<Process> = (0..PROCESSES)
        .map(|n| {
            let file = dir.file(&format!("go-{n}"));
            let arguments = [&address, &CLASSES.to_string(), file.to_str().unwrap()];
            Process::start("many", &arguments)
        })
        .collect();
    for (n, client) in clients.iter_mut().enumerate() {
        let connected = dir.file(&format!("go-{n}.connected"));
        wait_for("connected clients", || {
            client.must_live("a client");
            connected.exists()
        });
    }
    let each = memory(&server).saturating_sub(alone) / (PROCESSES * CLASSES) as u64;
    println!("{each} bytes for each connection");
    // The first calls also touch memory that does not grow with their number.
    assert!(each < 3 * EACH, "{each} bytes for each connection");
    for n in 0..PROCESSES {
        std::fs::write(dir.file(&format!("go-{n}")), "").unwrap();
    }
    clients.iter_mut().for_each(|client| client.must_end("the clients"));
    end_server(&address);
    server.must_end("the server");
}

/// Prints what an idle server costs. It measures time, so it needs a quiet machine.
#[test]
#[ignore = "a measurement; scripts/bench.py rpc --idle runs it"]
fn measure_10_000_idle_connections() {
    let count = 10_000;
    let limit = raise_limit();
    let dir = Dir::new("crowd");
    let (mut server, address) = start_server("tcp", &dir.file("address"));
    std::thread::sleep(Duration::from_secs(1));
    let (alone, none) = (memory(&server), share(&server, Duration::from_secs(10)));
    println!("no connection: {:.3} % of a core, {} KiB", none * 100.0, alone >> 10);
    if limit < count + 100 {
        println!(
            "the system permits {limit} open files only: no measurement with {count} connections"
        );
        return;
    }
    let ready = dir.file("ready");
    let arguments = [&address, &count.to_string(), ready.to_str().unwrap()];
    let mut crowd = Process::start("crowd", &arguments);
    wait_for("the crowd", || {
        crowd.must_live("the crowd");
        ready.exists()
    });
    std::thread::sleep(Duration::from_secs(1));
    let (all, share) = (memory(&server), share(&server, Duration::from_secs(10)));
    println!("{count} connections: {:.3} % of a core, {} KiB", share * 100.0, all >> 10);
    assert!(none <= 0.001, "an idle server uses {:.3} % of a core", none * 100.0);
    assert!(share <= 0.01, "with {count} connections {:.3} %", share * 100.0);
    assert!(all <= 64 << 20, "{} KiB with {count} connections", all >> 10);
    drop(crowd);
    end_server(&address);
    server.must_end("the server");
}
