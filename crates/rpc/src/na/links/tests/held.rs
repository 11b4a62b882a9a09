//! Messages that callbacks send while more callbacks follow.

use super::{End, Net, meet, pump};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A message that is not held arrives within this time.
const SOON: Duration = Duration::from_millis(10);

fn send(a: &End, b: &End, there: &super::Address, tag: u32) {
    b.receive();
    a.send(there, tag, b"held").unwrap();
}

#[test]
fn held_messages_are_transmitted_together() {
    let (a, b, there) = Net::new("tcp").pair();
    meet(&a, &b, &there);
    let plugin = a.class.plugin.as_deref().unwrap();
    let mut held = 0;
    // On a busy machine, a tick may come during a round.
    for round in 0..500 {
        if held > 0 && round >= 20 {
            break;
        }
        plugin.hold(true);
        (0..3).for_each(|n| send(&a, &b, &there, n));
        (0..20).for_each(|_| b.turn());
        held += usize::from(b.events.lock().is_empty());
        plugin.hold(false);
        plugin.transmit();
        pump(&a, &b, "held messages", || b.events.lock().len() == 3);
        b.events.lock().clear();
        assert!(!a.events.lock().is_empty(), "round {round}");
    }
    assert!(held > 0, "no message was held");
    a.close();
    b.close();
}

#[test]
fn a_thread_that_holds_messages_and_does_nothing_more_delays_them_only_shortly() {
    let (a, b, there) = Net::new("tcp").pair();
    meet(&a, &b, &there);
    let plugin = a.class.plugin.as_deref().unwrap();
    for pause in [0, 0, 0, 1200] {
        std::thread::sleep(Duration::from_millis(pause)); // the thread that transmits falls asleep
        plugin.hold(true);
        send(&a, &b, &there, 1);
        let begun = Instant::now();
        while b.events.lock().is_empty() {
            b.turn();
            assert!(begun.elapsed() < Duration::from_secs(10), "after {pause} ms");
        }
        b.events.lock().clear();
        plugin.hold(false);
    }
    a.close();
    b.close();
}

/// Runs two callbacks in one trigger. The first sends a message and returns how long it waits.
fn round(a: &Arc<End>, b: &Arc<End>, there: super::Address) -> Duration {
    let waited = Arc::new(Mutex::new(None));
    let callback = {
        let (a, b, waited) = (a.clone(), b.clone(), waited.clone());
        move |_| {
            let begun = Instant::now();
            send(&a, &b, &there, 1);
            pump(&a, &b, "a held message", || !b.events.lock().is_empty());
            *waited.lock() = Some(begun.elapsed());
        }
    };
    let name = a.name();
    a.context.lookup(&name, Box::new(callback)).unwrap();
    a.context.lookup(&name, Box::new(drop)).unwrap();
    pump(a, b, "a callback", || waited.lock().is_some());
    b.events.lock().clear();
    waited.lock().take().unwrap()
}

#[test]
fn a_callback_can_wait_for_the_message_that_it_has_sent() {
    for net in Net::all() {
        let (a, b, there) = net.pair();
        meet(&a, &b, &there);
        let (a, b) = (Arc::new(a), Arc::new(b));
        let shortest = (0..20).map(|_| round(&a, &b, there)).min().unwrap();
        assert!(shortest < SOON, "{net}: {shortest:?}");
        for end in [a, b] {
            Arc::into_inner(end).expect("all callbacks have run").close();
        }
    }
}
