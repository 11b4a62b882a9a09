//! Memory of a peer that this process maps and copies itself, without the peer's help.

use super::{Arc, Direction, End, Mem, Net, Permission, Status};
use super::{filled, get, meet, pattern, pump, remote_copy, set};
use std::sync::atomic::{AtomicBool, Ordering};

const LEN: usize = 1 << 20;

/// Exported memory of the second end, and its handle as the first end has it.
fn exported(access: Permission) -> (Arc<Mem>, Arc<Mem>) {
    let owned = Mem::allocate_to_lend(&[LEN], access).unwrap();
    assert!(owned.shm_key().is_some());
    owned.register();
    let remote = remote_copy(&owned);
    (owned, remote)
}

/// Starts a transfer of all bytes.
fn start(
    a: &End,
    there: &super::Address,
    direction: Direction,
    local: &Arc<Mem>,
    remote: &Arc<Mem>,
) {
    a.events.lock().clear();
    a.transfer(direction, there, local, remote, LEN).unwrap();
}

/// Waits for the end of a transfer and returns its status.
fn status(a: &End, b: &End) -> Status {
    pump(a, b, "a transfer", || !a.events.lock().is_empty());
    a.events.lock()[0].status
}

#[test]
fn a_peer_that_does_nothing_is_not_needed() {
    for net in [Net::new("na+sm"), Net::new("tcp").auto_sm()] {
        let (a, b, there) = net.pair();
        meet(&a, &b, &there);
        let (owned, remote) = exported(Permission::ReadWrite);
        let (local, bytes) = filled(&[LEN / 4, 3 * LEN / 4], 4);
        for (direction, want) in [(Direction::Put, bytes), (Direction::Get, pattern(LEN, 9))] {
            if direction == Direction::Get {
                set(&owned, &want);
            }
            start(&a, &there, direction, &local, &remote);
            a.turn();
            assert_eq!(a.events.lock()[0].status, Status::SUCCESS, "{net}");
            assert!(get(&owned) == want && get(&local) == want, "{net} {direction:?}");
        }
        owned.deregister();
        start(&a, &there, Direction::Get, &local, &remote);
        a.turn();
        assert!(a.events.lock().is_empty(), "{net}: only the owner can answer now");
        assert_eq!(status(&a, &b), Status::ACCESS);
        [a, b].into_iter().for_each(End::close);
    }
}

#[test]
fn the_owner_copies_from_and_to_exported_memory() {
    let (a, b, there) = Net::new("na+sm").pair();
    meet(&a, &b, &there);
    let (local, _) = exported(Permission::ReadWrite);
    let (owned, theirs) = filled(&[LEN / 4, 3 * LEN / 4], 4);
    let remote = remote_copy(&owned);
    let ours = pattern(LEN, 9);
    for (direction, want) in [(Direction::Get, theirs), (Direction::Put, ours)] {
        if direction == Direction::Put {
            set(&local, &want);
        }
        start(&a, &there, direction, &local, &remote);
        assert_eq!(status(&a, &b), Status::SUCCESS);
        assert!(get(&owned) == want && get(&local) == want, "{direction:?}");
    }
    [a, b].into_iter().for_each(End::close);
}

#[test]
fn a_handle_that_says_more_than_its_owner_is_refused() {
    let (a, b, there) = Net::new("na+sm").pair();
    meet(&a, &b, &there);
    let (owned, _) = exported(Permission::ReadOnly);
    let mut bytes = owned.to_bytes(0);
    bytes[4] |= Permission::ReadWrite.flags();
    let forged = Mem::from_forged_bytes(&bytes, bytes.len());
    let (local, _) = filled(&[LEN], 4);
    start(&a, &there, Direction::Put, &local, &forged);
    assert_ne!(status(&a, &b), Status::SUCCESS);
    assert!(get(&owned).iter().all(|byte| *byte == 0));
    [a, b].into_iter().for_each(End::close);
}

#[test]
fn nothing_is_written_after_memory_was_withdrawn() {
    let (a, b, there) = Net::new("na+sm").pair();
    meet(&a, &b, &there);
    let (owned, remote) = exported(Permission::ReadWrite);
    let (local, _) = filled(&[LEN], 3);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..300 {
                owned.deregister();
                let bytes = pattern(LEN, n);
                set(&owned, &bytes);
                std::thread::yield_now();
                assert!(get(&owned) == bytes, "a late put");
                owned.register();
                std::thread::yield_now();
            }
            done.store(true, Ordering::Release);
        });
        while !done.load(Ordering::Acquire) {
            start(&a, &there, Direction::Put, &local, &remote);
            status(&a, &b);
        }
    });
    [a, b].into_iter().for_each(End::close);
}
