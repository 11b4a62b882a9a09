//! X10Lib's asyncs under the model of [`am_model`]: alone and aggregated, by function and by index,
//! with any number of arguments, and with the lock.

use super::x10::{
    Async, x10_async_spawn_agg_packed, x10_async_spawn_packed, x10_fence, x10_finalize, x10_flush,
    x10_gfence, x10_init,
};
use crate::am_model::{self, Sender, Stamp, WORDS};
use crate::child::Ctx;
use crate::rng::Rng;
use portolan_engine::runtime::Engine;
use std::os::raw::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

unsafe extern "C" {
    fn x10_register(f: *mut c_void, index: c_int) -> c_int;
    fn x10_lock() -> c_int;
    fn x10_unlock() -> c_int;
    fn x10_flush_func(n: c_int, f: usize, handle: c_int) -> c_int;
}

/// Arguments beside the stamp, at most.
const MORE: usize = 32 - WORDS;
const INDEX: usize = 7;

static ME: AtomicUsize = AtomicUsize::new(0);
static LOCKED: AtomicBool = AtomicBool::new(false);
/// The number of short asyncs that came, and the sum of their arguments; and what was spawned.
static SHORT: [AtomicI64; 2] = [const { AtomicI64::new(0) }; 2];
static SPAWNED: [AtomicI64; 2] = [const { AtomicI64::new(0) }; 2];

fn ok(code: c_int) {
    assert_eq!(code, 0, "a call of X10Lib");
}

fn arguments(stamp: &Stamp) -> Vec<i64> {
    let mut rng = stamp.rng(1);
    let more = *rng.pick(&[0, 0, 1, 3, MORE]);
    let words: [u64; WORDS] = bytemuck::cast(*stamp);
    let more = (0..more).map(|_| rng.next() as i64);
    words.iter().map(|&word| word as i64).chain(more).collect()
}

/// Batches do not keep their place among the asyncs that are sent alone.
fn is_alone(stamp: &Stamp) -> bool {
    stamp.rng(2).one_in(2)
}

fn handle(stamp: &Stamp) -> c_int {
    *stamp.rng(3).pick(&[0, 1, 2, 500, 501, 502, 503])
}

fn receive(args: *mut i64, n: c_int) {
    assert!(!LOCKED.load(SeqCst), "an async runs while its place is locked");
    // SAFETY: the library passes `n` arguments, which the async owns.
    let args = unsafe { std::slice::from_raw_parts_mut(args, n as usize) };
    let words: [i64; WORDS] = args[..WORDS].try_into().expect("the stamp");
    let stamp: Stamp = bytemuck::cast(words);
    assert!(*args == *arguments(&stamp), "the arguments of {stamp:?}");
    args.fill(-1);
    if is_alone(&stamp) {
        am_model::seen(&stamp);
    }
    let me = ME.load(SeqCst);
    am_model::came(&stamp, me).into_iter().for_each(|(to, child)| spawn(to, &child));
}

extern "C" fn plain(args: *mut i64, n: c_int) {
    receive(args, n);
}

extern "C" fn registered(args: *mut i64, n: c_int) {
    receive(args, n);
}

/// An async with one argument or none; its number of arguments says which.
extern "C" fn short(args: *mut i64, n: c_int) {
    SHORT[0].fetch_add(1, SeqCst);
    if n == 1 {
        // SAFETY: the library passes one argument, which the async owns.
        SHORT[1].fetch_add(unsafe { args.replace(-1) }, SeqCst);
    }
}

fn spawn(to: usize, stamp: &Stamp) {
    let (mut args, mut rng) = (arguments(stamp), stamp.rng(4));
    let n = args.len() as c_int;
    let f = *rng.pick(&[plain as Async as usize, registered as Async as usize, INDEX]);
    // SAFETY: the arguments are valid for the calls.
    unsafe {
        if is_alone(stamp) {
            let before = am_model::number_here();
            ok(x10_async_spawn_packed(to as i32, n, f, n, args.as_ptr()));
            let ran = am_model::number_here() > before;
            assert!(ran || to != ME.load(SeqCst), "an async at the own place did not run at once");
        } else {
            let handle = handle(stamp);
            ok(x10_async_spawn_agg_packed(to as i32, n, f, handle, n, args.as_ptr()));
        }
        args.fill(-2);
        if rng.one_in(3) {
            let (n, word) = (rng.below(2) as c_int, (rng.next() >> 40) as i64);
            let f = short as Async as usize;
            SPAWNED[0].fetch_add(1, SeqCst);
            SPAWNED[1].fetch_add(if n == 1 { word } else { 0 }, SeqCst);
            ok(match rng.one_in(2) {
                true => x10_async_spawn_packed(to as i32, n, f, n, &word),
                false => x10_async_spawn_agg_packed(to as i32, n, f, handle(stamp), n, &word),
            });
        }
    }
}

struct X10 {
    engine: Arc<Engine>,
}

impl Sender for X10 {
    fn begin(&mut self, _: usize) {}

    fn send(&mut self, to: &[usize], stamp: Stamp, _: &mut Rng) {
        spawn(to[0], &stamp);
    }

    /// Flushes, fences, or keeps asyncs from running at this place.
    fn pause(&mut self, rng: &mut Rng) {
        let (n, handle) = ((WORDS + *rng.pick(&[0, 1, 3, MORE])) as c_int, *rng.pick(&[0, 1, 500]));
        // SAFETY: X10Lib is initialised.
        unsafe {
            match rng.below(4) {
                0 => ok(x10_flush(n, handle)),
                1 => ok(x10_flush_func(n, plain as Async as usize, handle)),
                2 => ok(x10_fence()),
                _ => {
                    ok(x10_lock());
                    ok(x10_lock());
                    LOCKED.store(true, SeqCst);
                    std::thread::sleep(Duration::from_millis(2));
                    ok(x10_unlock());
                    std::thread::sleep(Duration::from_millis(1));
                    LOCKED.store(false, SeqCst);
                    ok(x10_unlock());
                }
            }
        }
    }

    fn complete(&mut self) {
        // SAFETY: X10Lib is initialised.
        ok(unsafe { x10_fence() });
    }

    fn rest(&mut self, _: u64) {
        // SAFETY: X10Lib is initialised.
        ok(unsafe { x10_gfence() });
        let numbers = [&SHORT[0], &SHORT[1], &SPAWNED[0], &SPAWNED[1]];
        let (engine, mine) = (&*self.engine, numbers.map(|number| number.load(SeqCst)));
        let all: Vec<[i64; 4]> = engine.world().allgather(engine, &mine).expect("allgather");
        let sum = |i: usize| all.iter().map(|x| x[i]).sum::<i64>();
        assert_eq!((sum(0), sum(1)), (sum(2), sum(3)), "short asyncs and their arguments");
        // SAFETY: X10Lib is initialised.
        ok(unsafe { x10_gfence() });
    }
}

pub fn run(ctx: &Ctx) {
    ME.store(ctx.me, SeqCst);
    // SAFETY: the functions are asyncs.
    unsafe {
        ok(x10_init(&(registered as Async), 1));
        ok(x10_register(plain as Async as *mut c_void, INDEX as c_int));
        ok(x10_gfence());
        am_model::run(ctx, &mut X10 { engine: Arc::clone(&ctx.engine) }, false);
        ok(x10_finalize());
    }
}
