//! Clients that stop in the middle of calls with long parameters, and strangers in large numbers.
//! Other clients are served meanwhile, and what the server spends on them is bounded.

use super::idle::memory;
use super::roles::{Client, Dir, PATIENCE, Process, end_server, start_server, wait_for};
use portolan::rpc::{Listen, Status};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

/// Number of calls of a client that stops, and the length of their parameters, which fit in a
/// message or do not.
const LONG: (usize, usize) = (60, 8 << 20);
const SHORT: (usize, usize) = (5000, 60_000);
/// Memory that such a client may take up at the server with long and with short outputs: its share,
/// the output of a call that had begun before, and copies that the server makes.
const SHARES: [u64; 2] = [(64 << 20) + 6 * LONG.1 as u64, 48 << 20];

/// Role: starts calls with long inputs, or with outputs, and then makes no progress.
pub fn stopping(address: &str, kind: &str, ready: &Path) {
    let client = Client::open(address.split("://").next().unwrap(), Listen::No);
    let there = client.class.lookup(address).unwrap();
    let echo = client.class.client::<Vec<u8>, (u64, Vec<u8>)>("echo").unwrap();
    let zeros = client.class.client::<u64, Vec<u8>>("zeros").unwrap();
    // The connection must exist, because this process makes no progress later.
    client.context.call(&there, &zeros, &1, PATIENCE).unwrap();
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    let (calls, len) = if kind == "short outputs" { SHORT } else { LONG };
    for _ in 0..calls {
        if kind == "inputs" {
            let call = client.context.handle(&there, &echo);
            call.start(&vec![1; len]).unwrap();
            inputs.push(call);
        } else {
            let call = client.context.handle(&there, &zeros);
            call.start(&(len as u64)).unwrap();
            outputs.push(call);
        }
    }
    std::fs::write(ready, "").unwrap();
    std::thread::sleep(Duration::from_secs(3600));
}

fn run(info: &str, kind: &str) {
    let dir = Dir::new(&format!("limits-{}-{kind}", info.replace('+', "-")).replace(' ', "-"));
    let (mut server, address) = start_server(info, &dir.file("address"));
    let client = Client::open(info, Listen::No);
    let there = client.class.lookup(&address).unwrap();
    let echo = client.class.client::<Vec<u8>, (u64, Vec<u8>)>("echo").unwrap();
    let call = |len: usize| {
        let (_, back) = client.context.call(&there, &echo, &vec![1; len], PATIENCE).unwrap();
        assert_eq!(back.len(), len);
    };
    call(1 << 20);
    let alone = memory(&server);
    let ready = dir.file("ready");
    let mut stopping = Process::start("stopping", &[&address, kind, ready.to_str().unwrap()]);
    wait_for("the calls", || {
        stopping.must_live("the client that stops");
        ready.exists()
    });
    stopping.signal(libc::SIGSTOP);
    for len in [1, 1 << 20].repeat(20) {
        call(len);
    }
    let used = memory(&server).saturating_sub(alone);
    println!("{info}, {kind}: {} MiB for a stopped client", used >> 20);
    // The server may have mapped the client's inputs, which costs it nothing.
    let most = SHARES[usize::from(kind == "short outputs")];
    assert!(kind == "inputs" || used < most, "{info}: {} MiB", used >> 20);
    drop(stopping);
    drop(echo);
    client.close();
    end_server(&address);
    server.must_end("the server");
}

#[test]
fn clients_that_stop_before_their_inputs_are_pulled_delay_nobody() {
    run("na+sm", "inputs");
    run("tcp", "inputs");
}

#[test]
fn clients_that_pull_no_outputs_take_up_a_share() {
    run("na+sm", "outputs");
    run("tcp", "outputs");
}

#[test]
fn clients_that_read_no_outputs_take_up_a_share() {
    run("na+sm", "short outputs");
    run("tcp", "short outputs");
}

#[test]
fn one_way_calls_to_a_stopped_server_are_refused_at_last() {
    for info in ["na+sm", "tcp"] {
        let dir = Dir::new("one-way");
        let (server, address) = start_server(info, &dir.file("address"));
        let client = Client::open(info, Listen::No);
        let there = client.class.lookup(&address).unwrap();
        let note = client.class.client::<Vec<u8>, ()>("echo").unwrap().without_answer();
        server.signal(libc::SIGSTOP);
        let bytes = vec![1; SHORT.1];
        let refused = (0..SHORT.0).find_map(|_| {
            let call = client.context.handle(&there, &note);
            call.start(&bytes).err()
        });
        let refused = refused.expect("all calls wait in this process");
        assert_eq!(refused.status(), Status::AGAIN, "{refused}");
        server.signal(libc::SIGCONT);
        wait_for("room", || {
            client.context.progress(Duration::from_millis(10)).unwrap();
            client.context.handle(&there, &note).start(&bytes).is_ok()
        });
        drop(note);
        client.close();
    }
}

/// Connects as a client without a key that claims an address.
fn stranger(server: &str, claim: &str) -> std::io::Result<TcpStream> {
    let mut socket = TcpStream::connect(server.strip_prefix("tcp://").unwrap())?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let len = (claim.len() as u16).to_le_bytes();
    let hello = [&b"ptlntcp\x07"[..], &[0; 41], &len, claim.as_bytes(), &[0; 32]].concat();
    socket.write_all(&hello)?;
    Ok(socket)
}

#[test]
fn strangers_do_not_take_the_last_descriptors() {
    const FILES: u64 = 64;
    let dir = Dir::new("descriptors");
    let (mut server, address) = start_server("tcp", &dir.file("address"));
    let client = Client::open("tcp", Listen::No);
    let there = client.class.lookup(&address).unwrap();
    let zeros = client.class.client::<u64, Vec<u8>>("zeros").unwrap();
    let call = || client.context.call(&there, &zeros, &(1 << 20), PATIENCE).unwrap().len();
    assert_eq!(call(), 1 << 20);
    server.limit_files(FILES);
    // The reply of a server that admits a stranger, of 83 bytes.
    let is_admitted = |mut socket: &TcpStream| socket.read_exact(&mut [0; 83]).is_ok();
    let all: Vec<_> = (0..FILES).filter_map(|_| stranger(&address, "x.1:0").ok()).collect();
    let admitted = all.iter().filter(|socket| is_admitted(socket)).count();
    assert!(admitted > 20 && admitted < all.len(), "{admitted} of {}", all.len());
    assert!(server.files() as u64 <= FILES - FILES / 8, "{} descriptors", server.files());
    assert_eq!(call(), 1 << 20);
    drop(all);
    drop(zeros);
    client.close();
    end_server(&address);
    server.must_end("the server");
}
