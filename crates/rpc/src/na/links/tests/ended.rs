//! The flow-control windows of peers that do not exist or have ended.

use super::{End, Net, Status, meet, pump};
use crate::na::Options;
use crate::na::address::{INDEX_BITS, Peer};
use std::sync::mpsc;
use std::time::Duration;

/// A window has room for 17 messages of this length.
const LEN: usize = 60_000;
const MESSAGES: usize = 64;

/// The peer reports consumed bytes, and ends. The admitted messages find the connection broken.
fn end_after_a_report(net: &Net) {
    let (a, b, there) = net.pair();
    meet(&a, &b, &there);
    for n in 0..MESSAGES {
        b.receive();
        a.send(&there, n as u32, &[7; LEN]).unwrap();
    }
    pump(&a, &b, "some messages", || b.events.lock().len() >= 8);
    (0..1000).for_each(|_| b.turn());
    b.close();
    while a.events.lock().len() < MESSAGES {
        a.turn();
    }
    let events = std::mem::take(&mut *a.events.lock());
    let failed =
        events.iter().map(|event| event.status).filter(|&status| status != Status::SUCCESS);
    let failed: Vec<_> = failed.collect();
    assert!(!failed.is_empty(), "{net}");
    assert!(failed.iter().all(|&status| status == Status::HOSTUNREACH), "{net}: {failed:?}");
    a.close();
}

#[test]
fn messages_held_for_a_peer_that_ends_are_discarded() {
    for _ in 0..5 {
        for net in Net::all() {
            let (done, wait) = mpsc::channel();
            let name = net.to_string();
            std::thread::spawn(move || {
                end_after_a_report(&net);
                done.send(()).unwrap();
            });
            // The thread hangs, or has panicked, if nothing comes.
            assert!(wait.recv_timeout(Duration::from_secs(60)).is_ok(), "{name}");
        }
    }
}

#[test]
fn refused_messages_leave_the_window_open() {
    let a = Net::new("tcp").open();
    // Nobody listens at port 1.
    let nobody = a.class.lookup("tcp://127.0.0.1:1").unwrap();
    for n in 0..MESSAGES {
        let sent = a.send(&nobody, 1, &[7; LEN]);
        assert_eq!(sent.unwrap_err().status(), Status::HOSTUNREACH, "message {n}");
    }
    a.close();
}

#[test]
fn errors_name_the_network_as_the_program_wrote_it() {
    let a = End::with("ofi+tcp", false, Options::default());
    let nobody = a.class.lookup("ofi+tcp://127.0.0.1:1").unwrap();
    let refused = a.send(&nobody, 1, b"one").unwrap_err();
    assert!(refused.text().starts_with("ofi+tcp://127.0.0.1:1: "), "{}", refused.text());
    a.close();
}

#[test]
fn the_address_of_a_peer_that_has_left_does_not_disturb_its_successor() {
    let (a, b, there) = Net::new("tcp").pair();
    meet(&a, &b, &there);
    let (old, new) = (7, 7 + (1 << INDEX_BITS));
    let shared = &a.class;
    let admits = |bytes| shared.with_flow(Peer::Remote(new), |flow| flow.admit(0, bytes));
    shared.begin_flow(new);
    assert_eq!(admits(1 << 20), Some(true));
    shared.begin_flow(old);
    assert_eq!(admits(1 << 20), Some(false), "the window of the successor is as full as before");
    a.close();
    b.close();
}
