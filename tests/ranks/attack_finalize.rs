//! Safe programs that finalise MPI through a safe binding while the runtime and its borrowers are
//! alive: calls return errors of kind `State`, or access memory that is still mapped.
#![forbid(unsafe_code)]

use crate::launch::{ALONE_BASE, Alone};
use portolan::messages::{Handlers, Message};
use portolan::reduce::Sum;
use portolan::{ErrorKind, Runtime};
use serde::{Deserialize, Serialize};

const fn row(name: &'static str, env: &'static [(&'static str, &'static str)]) -> Alone {
    Alone { name, label: "safe code", env, run: views_after_mpi_finalize, ..ALONE_BASE }
}

pub const ALONE: &[Alone] = &[
    row("attack_views", &[]),
    row("attack_views_nodes", &[("PORTOLAN_NODE_SIZE", "1")]),
    row("attack_views_message", &[("PORTOLAN_NODE_SIZE", "1"), ("PORTOLAN_PATH", "message")]),
    row("attack_views_rma", &[("PORTOLAN_PATH", "rma")]),
];

#[derive(Debug, Serialize, Deserialize)]
struct Note(Vec<u8>);

impl Message for Note {
    type Reply = usize;

    fn handle(self, _: &portolan::messages::Delivery<'_>) -> usize {
        self.0.len()
    }
}

fn views_after_mpi_finalize() {
    let universe = mpi::initialize().expect("MPI");
    let rt = Runtime::init().expect("init");
    let (world, next) = (rt.world(), (rt.rank() + 1) % rt.size());
    let segment = world.allocate::<u64>(1000).expect("allocate");
    let messages = Handlers::new().message::<Note>().register(&rt).expect("register");
    let local = segment.local();
    segment.put(next, 0, &[rt.rank() as u64; 1000]).expect("put");
    world.barrier().expect("barrier");
    assert_eq!(messages.call(next, &Note(vec![1; 9])).expect("call").wait().expect("answer"), 9);
    drop(universe);

    // This rank's own part is still mapped.
    assert_eq!(local.read(999), next as u64);
    local.write(5, 7);
    let mut got = [0; 1000];
    for at in [0, 500] {
        assert!(segment.put(next, at, &[1; 500]).is_err());
        assert!(segment.get(next, at, &mut got[..500]).is_err());
    }
    // Operations that ranks of a node perform in shared memory alone may still succeed. No call
    // hangs or reaches MPI or unmapped memory.
    let _ = segment.accumulate(next, 0, 1, &[1; 10]);
    let _ = segment.fetch_add(next, 0, 1);
    let _ = segment.fence(next);
    let _ = rt.fence_all();
    let _ = world.barrier();
    let _ = world.all_reduce(&mut [1i64], Sum);
    let _ = messages.spawn(next, &Note(vec![1; 10]));
    let _ = messages.spawn(next, &Note(vec![1; 100_000]));
    let _ = messages.poll();
    let _ = messages.quiesce();
    let reply = messages.call(next, &Note(vec![1; 10]));
    assert!(reply.and_then(|reply| reply.wait()).is_err());
    assert!(world.allocate::<u64>(10).is_err());
    assert!(segment.free().is_err());
    assert_eq!(rt.finalize().expect_err("it is over").kind(), ErrorKind::State);
}
