//! Checks of the simulation itself: `portolan`'s own MPI wrappers on it, without an engine.

use crate::machine::{self, Behaviour, Outcome};
use crate::rng::Rng;
use portolan::mpi::{Comm, Requests, p2p};

const STACK: usize = 256 << 10;

fn seeded(seed: u64, ranks: usize, body: impl Fn(usize) + Send + Sync + 'static) -> Outcome {
    let behaviour = Behaviour::draw(&mut Rng::new(seed ^ 0xbeef), ranks);
    machine::run(seed, ranks, behaviour, STACK, body)
}

fn world() -> Comm {
    // SAFETY: the simulated world is live.
    unsafe { Comm::dup_of(Comm::world_handle()) }.unwrap()
}

/// Messages of a sender with one tag arrive in their order, each with its bytes, by receives
/// and by probes.
fn order(seed: u64) -> Outcome {
    const EACH: u64 = 40;
    seeded(seed, 8, move |rank| {
        let comm = world();
        let mut rng = Rng::new(seed ^ rank as u64);
        let mut sending = Requests::default();
        let mut done = Vec::new();
        for round in 0..EACH {
            for to in 0..comm.size() {
                let len = 16 + rng.below(300) as usize * 8;
                let mut bytes = vec![rank as u8 ^ round as u8; len];
                bytes[..8].copy_from_slice(&round.to_le_bytes());
                // SAFETY: the bytes travel with the request until it is done.
                let request = unsafe { p2p::isend(&comm, bytes.as_ptr(), len, to, 7) }.unwrap();
                sending.push(request, bytes);
            }
        }
        let mut next = vec![0u64; comm.size()];
        let mut got = 0;
        while got < EACH * comm.size() as u64 {
            sending.poll(&mut done).unwrap();
            let Some(message) = p2p::improbe(&comm, None, Some(7)).unwrap() else {
                std::thread::yield_now();
                continue;
            };
            let source = message.source;
            let mut bytes = vec![0; message.bytes];
            message.receive(&mut bytes).unwrap();
            let round = u64::from_le_bytes(bytes[..8].try_into().unwrap());
            assert_eq!(round, next[source], "the order of rank {source}'s messages");
            assert!(bytes[8..].iter().all(|&byte| byte == source as u8 ^ round as u8));
            next[source] += 1;
            got += 1;
        }
        while !sending.is_empty() {
            sending.poll(&mut done).unwrap();
            std::thread::yield_now();
        }
        let mut barrier = comm.ibarrier().unwrap();
        while !barrier.test().unwrap() {
            std::thread::yield_now();
        }
        comm.free().unwrap();
    })
}

pub fn all() {
    let begun = std::time::Instant::now();
    for seed in 0..50 {
        let first = order(seed);
        let again = order(seed);
        assert_eq!(first, again, "seed {seed}");
        println!(
            "{seed}: {} events, {} switches, {} ns, {:?}",
            first.events,
            first.switches,
            first.time,
            begun.elapsed()
        );
    }
    let last = order(3);
    println!(
        "{} events, {} switches, {} ns, {:?}",
        last.events,
        last.switches,
        last.time,
        begun.elapsed()
    );
}
