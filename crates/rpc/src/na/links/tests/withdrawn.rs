//! Memory that its owner withdraws while peers read it.

use super::{Direction, Net, Status, filled, get, pump, remote_copy, set};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Length of a transfer: the chunks that are in flight at a time.
const LEN: usize = 4 << 20;

#[test]
fn what_waits_for_a_peer_that_does_not_read_is_copied_when_the_memory_is_withdrawn() {
    for net in Net::all() {
        let (a, b, there) = net.pair();
        super::meet(&a, &b, &there);
        let (owned, before) = filled(&[LEN], 1);
        let remote = remote_copy(&owned);
        let into: Vec<_> = (0..8).map(|n| filled(&[LEN], 10 + n).0).collect();
        for local in &into {
            a.transfer(Direction::Get, &there, local, &remote, LEN).unwrap();
        }
        // The replies fill the connection, and the rest waits.
        for _ in 0..1000 {
            b.turn();
        }
        owned.deregister();
        set(&owned, &vec![0; LEN]);
        pump(&a, &b, "transfers", || a.events.lock().len() == into.len());
        assert!(a.events.lock().iter().all(|event| event.status == Status::SUCCESS), "{net}");
        assert!(into.iter().all(|local| get(local) == before), "{net}");
        owned.register();
        a.events.lock().clear();
        a.transfer(Direction::Get, &there, &into[0], &remote, LEN).unwrap();
        pump(&a, &b, "a transfer", || !a.events.lock().is_empty());
        assert!(get(&into[0]) == vec![0; LEN], "{net}: registered again");
        [a, b].into_iter().for_each(super::End::close);
    }
}

#[test]
fn memory_is_withdrawn_again_and_again_while_it_is_read() {
    for net in Net::all() {
        let (a, b, there) = net.pair();
        super::meet(&a, &b, &there);
        let (local, _) = filled(&[LEN], 3);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    b.turn();
                }
            });
            for round in 0..60u64 {
                let (owned, bytes) = filled(&[LEN], 5);
                let remote = remote_copy(&owned);
                a.transfer(Direction::Get, &there, &local, &remote, LEN).unwrap();
                std::thread::sleep(Duration::from_micros(round * 37 % 1500));
                owned.deregister();
                set(&owned, &vec![0xee; LEN]);
                while a.events.lock().is_empty() {
                    a.turn();
                }
                let ended = a.events.lock().remove(0).status;
                match ended {
                    Status::SUCCESS => assert!(get(&local) == bytes, "{net} {round}"),
                    refused => assert_eq!(refused, Status::ACCESS, "{net} {round}"),
                }
            }
            done.store(true, Ordering::Release);
        });
        [a, b].into_iter().for_each(super::End::close);
    }
}

#[test]
fn classes_of_one_process_reach_each_others_memory() {
    use crate::na::Mem;
    for net in Net::all() {
        let (a, b, there) = net.pair();
        let (local, ours) = filled(&[LEN, 3], 1);
        let (owned, theirs) = filled(&[LEN + 3], 2);
        let remote = Mem::from_bytes(&owned.to_bytes(0), 0).unwrap();
        // The classes are connected the second time.
        for round in 0..2 {
            for (direction, from, to, bytes) in
                [(Direction::Get, &owned, &local, &theirs), (Direction::Put, &local, &owned, &ours)]
            {
                set(from, bytes);
                set(to, &vec![0; LEN + 3]);
                a.transfer(direction, &there, &local, &remote, LEN + 3).unwrap();
                pump(&a, &b, "a transfer", || !a.events.lock().is_empty());
                assert_eq!(a.events.lock().remove(0).status, Status::SUCCESS, "{net} {round}");
                assert!(get(to) == *bytes, "{net} {round} {direction:?}");
            }
        }
        [a, b].into_iter().for_each(super::End::close);
    }
}
