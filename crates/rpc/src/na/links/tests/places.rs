//! Own addresses, and those that programs choose.

use super::net::Net;
use super::{End, meet, pump};
use crate::failure::Status;
use crate::na::{Class, Options};

#[test]
fn a_process_reaches_itself() {
    for net in Net::all() {
        let (a, b, _) = net.pair();
        for bad in ["na+sm://x", "na+sm://1", "tcp://host", "tcp://:1", "tcp://host:x", "mpi://0"] {
            assert!(a.class.lookup(bad).is_err(), "{bad}");
        }
        assert!(a.class.lookup(&a.name()).unwrap().is_self());
        let own = a.class.own_address();
        a.receive();
        a.send(&own, 1, b"me").unwrap();
        pump(&a, &b, "an own message", || a.events.lock().len() == 2);
        a.close();
        b.close();
    }
}

#[test]
fn a_class_without_an_address_avoids_those_that_others_have_asked_for() {
    let open = |place: &str| Class::with(place, true, Options::default());
    let first = End::open("na+sm", Options::default());
    let name = first.name();
    let (place, n) = name.rsplit_once('-').unwrap();
    let next = n.parse::<u32>().unwrap() + 1;
    // Other tests use some of these addresses.
    let asked: Vec<Class> =
        (next..next + 20).filter_map(|n| open(&format!("{place}-{n}")).ok()).collect();
    assert!(!asked.is_empty());
    End::open("na+sm", Options::default()).close();
    asked.into_iter().for_each(|class| class.finalize().unwrap());
    first.close();
}

#[test]
fn a_class_listens_at_the_address_that_it_asks_for() {
    let asked = format!("na+sm://{}-4000000000", std::process::id());
    // The second round uses the address again after its class has ended.
    for _ in 0..2 {
        let server = End::open(&asked, Options::default());
        assert_eq!(server.name(), asked);
        let second = Class::with(&asked, true, Options::default()).map(drop);
        assert_eq!(second.unwrap_err().status(), Status::ADDRNOTAVAIL);
        let client = End::with("na+sm", false, Options::default());
        let there = client.class.lookup(&asked).unwrap();
        meet(&client, &server, &there);
        client.close();
        server.close();
    }
    let client = End::with(&asked, false, Options::default());
    let other = End::open("na+sm://host:7000", Options::default());
    assert!(client.name() != asked && !other.name().contains("host"));
    client.close();
    other.close();
    let short = End::open("sm", Options::default());
    assert!(short.name().starts_with("na+sm://"));
    short.close();
}
