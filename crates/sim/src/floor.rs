//! Checks of the simulation itself: Portolan's MPI wrappers run on it without an engine.

use crate::behaviour::Behaviour;
use crate::dice::Dice;
use crate::machine::{self, Outcome};
use portolan_base::wait::Boot;
use portolan_engine::collective::{self, Operator};
use portolan_engine::mpi::{Comm, Requests, p2p};

const STACK: usize = 256 << 10;

fn seeded(seed: u64, ranks: usize, body: impl Fn(usize) + Send + Sync + 'static) -> Outcome {
    let behaviour = Behaviour::draw(&mut Dice::new(seed ^ 0xbeef), ranks);
    machine::run(seed, ranks, behaviour, STACK, body)
}

fn world() -> Comm {
    // SAFETY: the world communicator of the simulated MPI is live.
    unsafe { collective::dup_of(Comm::world_handle()) }.unwrap()
}

/// Messages of one sender with one tag arrive in order and intact, by receives and by probes.
pub fn order(seed: u64, ranks: usize) -> Outcome {
    const EACH: u64 = 40;
    seeded(seed, ranks, move |rank| {
        let comm = world();
        let mut rng = Dice::new(seed ^ rank as u64);
        let mut sending = Requests::default();
        let mut done = Vec::new();
        for round in 0..EACH {
            for to in 0..comm.size() {
                let len = 16 + rng.below(300) as usize * 8;
                let mut bytes = vec![rank as u8 ^ round as u8; len];
                bytes[..8].copy_from_slice(&round.to_le_bytes());
                // SAFETY: the request owns the bytes until it is done.
                let request = unsafe { p2p::isend(&comm, bytes.as_ptr(), len, to, 7) }.unwrap();
                sending.push(request, bytes);
            }
        }
        let mut next = vec![0u64; comm.size()];
        let mut got = 0;
        while got < EACH * comm.size() as u64 {
            sending.poll(None, &mut done).unwrap();
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
            sending.poll(None, &mut done).unwrap();
            std::thread::yield_now();
        }
        let mut barrier = comm.ibarrier().unwrap();
        while !barrier.test().unwrap() {
            std::thread::yield_now();
        }
        comm.free().unwrap();
    })
}

/// Collectives on the world and on subsets: each rank gets the contributions of all members.
pub fn collectives(seed: u64, ranks: usize) -> Outcome {
    seeded(seed, ranks, move |rank| {
        let comm = world();
        for round in 0..10u64 {
            let all = collective::allgather(&comm, &Boot, &(rank as u64 + round)).unwrap();
            assert!(all.iter().enumerate().all(|(i, &got)| got == i as u64 + round));
            let mut sum = [rank as i64, round as i64];
            collective::reduce(&comm, &Boot, &mut sum, Operator::Sum, None).unwrap();
            let n = comm.size() as i64;
            assert_eq!(sum, [n * (n - 1) / 2, round as i64 * n]);
            let root = round as usize % comm.size();
            let mut data = [rank as u8; 100];
            collective::broadcast(&comm, &Boot, &mut data, root).unwrap();
            assert_eq!(data, [root as u8; 100]);
            let members: Vec<usize> = (0..comm.size()).filter(|r| r % 2 == rank % 2).collect();
            let half = comm.create_group(&members, rank as i32 % 2).unwrap();
            assert_eq!(collective::allgather(&half, &Boot, &rank).unwrap(), members);
            half.free().unwrap();
        }
        comm.free().unwrap();
    })
}
