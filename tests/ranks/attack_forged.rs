//! Bulk handles whose bytes a safe program has changed.
#![forbid(unsafe_code)]

use crate::launch::{ALONE_BASE, Alone};
use portolan::Runtime;
use portolan::rpc::bulk::{Buffer, Bulk, Permission};
use portolan::rpc::checksum::Method;
use portolan::rpc::{Class, Failure, Listen};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const fn row(name: &'static str, env: &'static [(&'static str, &'static str)]) -> Alone {
    Alone { name, label: "safe code", env, run: forged, ..ALONE_BASE }
}

pub const ALONE: &[Alone] =
    &[row("attack_forged", &[]), row("attack_forged_nodes", &[("PORTOLAN_NODE_SIZE", "1")])];

const LONG: Duration = Duration::from_secs(3600);
const SHORT: Duration = Duration::from_millis(20);
const RW: Permission = Permission::ReadWrite;

type Change<'a> = dyn Fn(&mut Vec<u8>) + 'a;

/// The program changes the encoding of a handle of another rank, with a correct checksum. It
/// reaches only memory that the handle named, with its permission.
fn forged() {
    let rt = Runtime::init().expect("init");
    let class = Class::init("mpi", Listen::Yes).expect("a class");
    let context = class.context().expect("a context");
    let next = class.rank((rt.rank() + 1) % rt.size()).expect("an address");
    let secret = vec![7u8; 1 << 20];
    let at = secret.as_ptr() as u64;
    let lent = [1000, 200_000].map(|size| Bulk::allocate(&[size], RW).expect("memory"));
    let fixed = Bulk::allocate(&[1000], Permission::ReadOnly).expect("memory");
    let own = [&lent[0], &lent[1], &fixed].map(Bulk::to_bytes);
    let mine = class.serve_fn("mine", move |n: usize| Ok((own[n].clone(), at)));
    let mine = mine.expect("register");
    let all_here = AtomicBool::new(false);
    let serve = || {
        context.progress(SHORT).expect("progress");
        context.trigger(10);
    };
    let meet = || {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !all_here.load(SeqCst) {
                    serve();
                }
            });
            rt.world().barrier().expect("barrier");
            all_here.store(true, SeqCst);
        });
        all_here.store(false, SeqCst);
    };
    meet();
    for (n, honest) in [(0, true), (0, false), (1, true), (1, false), (2, false)] {
        let (mut bytes, there) = context.call(&next, &mine, &n, LONG).expect("a call");
        let end = bytes.len() - 8;
        let run = end - 16;
        let changes: &[&Change<'_>] = match (n, honest) {
            (_, true) => &[&|_| ()],
            (2, _) => &[&|bytes| bytes[4] = 3],
            _ => &[
                &|bytes| bytes[run..run + 8].copy_from_slice(&there.to_le_bytes()),
                // Neither a number nor a place in the table.
                &|bytes| {
                    bytes[run..run + 8].copy_from_slice(&there.to_le_bytes());
                    bytes[6..8].fill(0);
                    bytes[24..32].fill(0);
                },
            ],
        };
        for change in changes {
            change(&mut bytes);
            let sum = Method::Crc64.sum(&bytes[..end]);
            bytes[end..].copy_from_slice(&sum.to_le_bytes());
            let theirs = Bulk::from_bytes(&bytes).expect("well-formed");
            let mut buffer = Buffer::zeroed(64).expect("memory");
            buffer.fill(0xee);
            let ended = Arc::new(Mutex::new(None));
            let end_of = ended.clone();
            let note =
                move |end: Result<(), Failure>, _| *end_of.lock().expect("the end") = Some(end);
            context.push(&next, theirs.at(0), buffer, 64, note);
            while ended.lock().expect("the end").is_none() {
                serve();
            }
            let end = ended.lock().expect("the end").take().expect("an end");
            assert_eq!(end.is_ok(), honest, "handle {n}: {end:?}");
        }
    }
    meet();
    assert!(secret.iter().all(|&byte| byte == 7), "memory that was not lent has changed");
    let mut bytes = [1; 64];
    fixed.read(0, &mut bytes).expect("own memory");
    assert_eq!(bytes, [0; 64]);
    lent.iter().for_each(|lent| {
        lent.read(0, &mut bytes).expect("own memory");
        assert_eq!(bytes, [0xee; 64]);
    });
    context.destroy().expect("destroy");
    drop((context, mine));
    class.finalize().expect("finalize");
    rt.finalize().expect("finalize");
}
