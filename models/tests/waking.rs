//! Threads that sleep or stop polling miss no record, and threads that sleep in RPC miss no
//! notification.

use loom::thread::spawn;
use portolan_models::am::poll_state::PollState;
use portolan_models::am::shm_transport::ShmTransport;
use portolan_models::futex;
use portolan_models::rpc::eventcount::EventCount;
use portolan_models::sync::atomic::{AtomicU32, Ordering};
use portolan_models::sync::{check, check_without_fences};
use std::sync::Arc;
use std::time::Duration;

/// The timeout of a sleep that only a wake-up ends.
const LONG: Duration = Duration::MAX;

/// A rank with two rings that hold at most one record each.
#[derive(Debug, Default)]
struct Rank {
    node: ShmTransport,
    presence: PollState,
    waiters: AtomicU32,
    rings: [AtomicU32; 2],
    handled: AtomicU32,
}

impl Rank {
    /// Sends a record from another rank.
    fn send(&self, ring: usize) {
        self.rings[ring].store(1, Ordering::Release);
        self.node.door.alert();
    }
    fn ready(&self) -> bool {
        self.rings.iter().any(|ring| ring.load(Ordering::Acquire) == 1)
    }
    /// Handles the records that have arrived and wakes the threads of the rank.
    fn poll(&self) {
        for ring in &self.rings {
            if ring.compare_exchange(1, 2, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                self.handled.fetch_add(1, Ordering::SeqCst);
                self.node.wake_own();
            }
        }
    }
    fn wait_begins(&self) {
        self.waiters.fetch_add(1, Ordering::SeqCst);
        self.presence.arrive(&self.node);
    }
    fn wait_ends(&self) {
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        if self.presence.depart(&self.node, &self.waiters, true) {
            self.poll();
        }
    }
    /// Sleeps within a wait.
    fn nap(&self, idle: impl Fn() -> bool) {
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        if self.presence.sleep(&self.node, &self.waiters) {
            self.poll();
        }
        self.node.door.sleep(|| (!self.ready() && idle()).then_some(LONG));
        self.waiters.fetch_add(1, Ordering::SeqCst);
        self.presence.arrive(&self.node);
    }
    /// Runs the progress thread until `records` are handled.
    fn serve(&self, records: u32) {
        loop {
            self.poll();
            let idle = || self.handled.load(Ordering::SeqCst) < records;
            if !idle() {
                return;
            }
            let lingers = self.presence.lingers();
            let nap = if lingers { Duration::ZERO } else { LONG };
            self.node.door.sleep(|| (!self.ready() && idle()).then_some(nap));
            if self.presence.lingers() && self.presence.check(&self.node, &self.waiters) {
                self.poll();
            }
        }
    }
}

fn two_senders_and_a_sleeper() {
    let rank = Arc::new(Rank::default());
    for ring in 0..2 {
        let rank = rank.clone();
        spawn(move || rank.send(ring));
    }
    rank.serve(2);
}

#[test]
fn a_record_wakes_the_progress_thread() {
    check(3, two_senders_and_a_sleeper);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_record_is_overlooked_without_fences() {
    check_without_fences(3, two_senders_and_a_sleeper);
}

fn a_wait_ends_as_a_record_comes() {
    let rank = Arc::new(Rank::default());
    let (sender, waiter) = (rank.clone(), rank.clone());
    spawn(move || sender.send(0));
    spawn(move || {
        waiter.wait_begins();
        waiter.poll();
        waiter.wait_ends();
    });
    rank.serve(1);
}

#[test]
fn who_stops_waiting_overlooks_nothing() {
    check(3, a_wait_ends_as_a_record_comes);
}

#[test]
#[should_panic(expected = "deadlock")]
fn who_stops_waiting_needs_the_fences() {
    check_without_fences(3, a_wait_ends_as_a_record_comes);
}

#[test]
fn a_wait_that_sleeps_wakes() {
    check(3, || {
        let rank = Arc::new(Rank::default());
        let sender = rank.clone();
        spawn(move || sender.send(0));
        rank.wait_begins();
        loop {
            rank.poll();
            let idle = || rank.handled.load(Ordering::SeqCst) == 0;
            if !idle() {
                break;
            }
            rank.nap(idle);
        }
        rank.wait_ends();
    });
}

fn lingering() -> Arc<Rank> {
    let rank = Arc::new(Rank::default());
    // A rank lingers only after a number of waits.
    while !rank.presence.lingers() {
        rank.presence.touch(1, &rank.node, true);
    }
    rank
}

/// The progress thread that is woken for lingering may run before anything else happens.
#[test]
fn the_first_look_leaves_a_rank_lingering() {
    check(0, || {
        let rank = lingering();
        let check = || rank.presence.check(&rank.node, &rank.waiters);
        assert!(!check() && rank.presence.lingers(), "at once");
        assert!(check() && !rank.presence.lingers(), "no wait came since");
    });
}

fn a_rank_that_lingers(with_waiter: bool) {
    let rank = lingering();
    assert!(!rank.presence.check(&rank.node, &rank.waiters), "the first look");
    let (sender, waiter) = (rank.clone(), rank.clone());
    spawn(move || sender.send(0));
    if with_waiter {
        spawn(move || {
            waiter.wait_begins();
            waiter.wait_ends();
        });
    }
    rank.serve(1);
}

#[test]
fn lingering_is_taken_back() {
    check(3, || a_rank_that_lingers(false));
}

#[test]
fn lingering_is_taken_back_around_a_wait() {
    check(2, || a_rank_that_lingers(true));
}

#[test]
#[should_panic(expected = "deadlock")]
fn lingering_needs_the_fences() {
    check_without_fences(3, || a_rank_that_lingers(false));
}

/// A thread notifies twice while another waits for both notifications.
fn notifications(by_doorbell: bool) {
    let shared = Arc::new((EventCount::default(), AtomicU32::new(0), ShmTransport::default()));
    let teller = shared.clone();
    spawn(move || {
        let (events, value, node) = &*teller;
        for n in 1..3 {
            value.store(n, Ordering::Relaxed);
            events.notify(|word| {
                futex::wake_all(word);
                node.wake_own();
            });
        }
    });
    let (events, value, node) = &*shared;
    let come = || Ok::<bool, ()>(value.load(Ordering::Relaxed) == 2);
    while come() == Ok(false) {
        let found = events.sleep(come, |word, now| {
            if by_doorbell {
                node.door.sleep(|| (word.load(Ordering::SeqCst) == now).then_some(LONG));
            } else {
                futex::wait(word, now, LONG);
            }
        });
        assert!(found.is_ok());
    }
}

#[test]
fn notifications_wake_sleepers() {
    check(4, || notifications(false));
}

#[test]
fn notifications_wake_sleepers_on_the_doorbell() {
    check(4, || notifications(true));
}

#[test]
#[should_panic(expected = "deadlock")]
fn notifications_are_overlooked_without_fences() {
    check_without_fences(4, || notifications(false));
}
