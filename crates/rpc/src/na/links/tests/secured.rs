//! Classes over TCP with TLS: refused peers, and attacks on the connection.

use super::super::tls::tests::{Authority, Member};
use super::{End, Net, Options, Status, meet, pump, streams};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn open(member: &Member) -> End {
    End::open("tcp", Options::default().tls_dir(member.dir()))
}

fn refuses(server: &End, client: &End, why: &str) {
    let there = client.class.lookup(&server.name()).unwrap();
    let refused = client.send(&there, 1, b"x").unwrap_err();
    assert_eq!(refused.status(), Status::PERMISSION, "{refused}");
    assert!(refused.text().contains(why), "{refused}");
}

#[test]
fn members_of_one_authority_connect_to_each_other() {
    let authority = Authority::new();
    let (one, two) = (authority.member(), authority.member());
    let (a, b) = (open(&one), open(&two));
    let there = a.class.lookup(&b.name()).unwrap();
    meet(&a, &b, &there);
    let back = b.class.lookup(&a.name()).unwrap();
    meet(&b, &a, &back);
    for end in [&a, &b] {
        let streams = streams(end);
        assert!(streams.contains("Sealed"), "{streams}");
        assert_eq!(streams.lines().count(), 1, "{streams}");
    }
    [a, b].into_iter().for_each(End::close);
}

#[test]
fn others_are_refused() {
    let (authority, another) = (Authority::new(), Authority::new());
    let (member, stranger) = (authority.member(), another.member());
    // It trusts the server's authority, but its own certificate is another one's.
    let mixed = authority.member();
    mixed.copy_from(&stranger, &["cert.pem", "key.pem"]);
    let (server, client) = (open(&member), open(&stranger));
    refuses(&server, &client, "TLS: invalid peer certificate: UnknownIssuer");
    refuses(&client, &server, "TLS: invalid peer certificate: UnknownIssuer");
    for auto_sm in [false, true] {
        let plain = End::open("tcp", Options::default().auto_sm(auto_sm));
        refuses(&server, &plain, "it uses TLS, and this process does not");
        refuses(&plain, &server, "it does not use TLS, which this process demands");
        plain.close();
    }
    assert_eq!(server.class.refused(), 3);
    let late = open(&authority.member());
    let there = late.class.lookup(&server.name()).unwrap();
    meet(&late, &server, &there);
    [late, server, client].into_iter().for_each(End::close);
}

#[test]
fn clients_without_an_accepted_certificate_are_refused() {
    use super::super::tls::tests::refused_by;
    let (authority, another) = (Authority::new(), Authority::new());
    let member = authority.member();
    let server = open(&member);
    // These clients trust the server, which does not trust them.
    let expired = authority.sign(|params| params.not_after = rcgen::date_time_ymd(2020, 1, 1));
    let cases = [
        (None, "CertificateRequired"),
        (Some(another.member()), "UnknownCA"),
        (Some(expired), "CertificateExpired"),
    ];
    for (certificate, alert) in &cases {
        let refused = refused_by(&server.place(), &member, certificate.as_ref());
        assert!(refused.contains(alert), "{refused}");
    }
    server.pump("refusals", || server.class.refused() == cases.len() as u64);
    server.close();
}

#[test]
fn keys_are_compared_inside_tls() {
    let authority = Authority::new();
    let member = authority.member();
    let with = |key: &'static [u8]| {
        let options = Options::default().tls_dir(member.dir()).auth_key(key).auto_sm(true);
        End::open("tcp", options)
    };
    let (a, b, c) = (with(b"one key"), with(b"one key"), with(b"another"));
    refuses(&b, &c, "it refuses the proof");
    refuses(&b, &open(&member), "it refuses the proof");
    let there = a.class.lookup(&b.name()).unwrap();
    meet(&a, &b, &there);
    assert!(streams(&a).contains("Rings"), "shared memory, after TLS");
    [a, b, c].into_iter().for_each(End::close);
}

#[test]
fn clients_that_stop_half_way_block_nobody_and_are_dropped() {
    let net = Net::tls();
    let server = net.open();
    // The first byte, which announces TLS; a record that never ends; and too long a record.
    let says: [&[u8]; 3] = [&[22], &[22, 3, 1, 2, 0, 1, 0, 1, 252], &[22, 3, 1, 255, 255]];
    let mut sockets = Vec::new();
    for n in 0..150 {
        let mut socket = TcpStream::connect(server.place()).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let _ = socket.write_all(says[n % says.len()]);
        sockets.push(socket);
    }
    let client = net.open();
    let there = client.class.lookup(&server.name()).unwrap();
    meet(&client, &server, &there);
    // The greeting has a deadline: the server closes the sockets that are left.
    for mut socket in sockets {
        // A reset ends them as well. A time-out would not.
        let ended = socket.read_to_end(&mut Vec::new());
        assert!(ended.map_or_else(|e| e.kind() == std::io::ErrorKind::ConnectionReset, |_| true));
    }
    assert_eq!(server.class.refused(), 150);
    [client, server].into_iter().for_each(End::close);
}

/// The treatment of the client's bytes by a relay between two processes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Deed {
    Forward,
    /// Forwards each byte alone.
    Divide,
    Damage,
    Cut,
}

/// Forwards bytes, and applies `deed` once `now` is true. Returns the bytes.
fn relay(mut from: TcpStream, mut to: TcpStream, deed: Deed, now: &AtomicBool) -> Vec<u8> {
    let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        seen.extend_from_slice(&buffer[..n]);
        if now.load(Ordering::Acquire) {
            match deed {
                // A byte of the first record. Later records may be in the buffer too.
                Deed::Damage => buffer[20.min(n - 1)] ^= 1,
                Deed::Cut => break,
                _ => {}
            }
        }
        let step = if deed == Deed::Divide { 1 } else { n };
        if buffer[..n].chunks(step).any(|part| to.write_all(part).is_err()) {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
    let _ = from.shutdown(std::net::Shutdown::Both);
    seen
}

#[test]
fn a_relay_can_only_end_the_connection() {
    for deed in [Deed::Forward, Deed::Divide, Deed::Damage, Deed::Cut] {
        let net = Net::tls();
        let (client, server) = (net.open(), net.open());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let there = format!("tcp://{}", listener.local_addr().unwrap());
        let there = client.class.lookup(&there).unwrap();
        let (now, place) = (AtomicBool::new(false), server.place());
        let (now, place) = (&now, &place);
        let seen = std::thread::scope(|scope| {
            let relaying = scope.spawn(move || {
                let (near, _) = listener.accept().unwrap();
                drop(listener); // the client cannot connect again
                let far = TcpStream::connect(place).unwrap();
                far.set_nodelay(true).unwrap();
                near.set_nodelay(true).unwrap();
                let (back, forth) = (far.try_clone().unwrap(), near.try_clone().unwrap());
                let returning = scope.spawn(move || relay(back, forth, Deed::Forward, now));
                let mut seen = relay(near, far, deed, now);
                seen.extend(returning.join().unwrap());
                seen
            });
            meet(&client, &server, &there);
            now.store(true, Ordering::Release);
            client.context.recv_expected(&there, 1, client.callback()).unwrap();
            for n in 0..20 {
                server.receive();
                let sent = client.send(&there, n, &b"the secret of this test ".repeat(100));
                // Later messages may find the connection at its end.
                assert!(sent.is_ok() || matches!(deed, Deed::Damage | Deed::Cut));
            }
            let received = || server.events.lock().len();
            match deed {
                Deed::Forward | Deed::Divide => {
                    pump(&client, &server, "messages", || received() == 20);
                }
                Deed::Damage | Deed::Cut => {
                    let lost =
                        || client.events.lock().iter().any(|e| e.status == Status::HOSTUNREACH);
                    pump(&client, &server, "the end", lost);
                    assert_eq!(received(), 0, "a damaged message arrives");
                }
            }
            client.close();
            server.close();
            relaying.join().unwrap()
        });
        let clear = b"the secret of this test";
        assert!(!seen.windows(clear.len()).any(|bytes| bytes == clear));
    }
}
