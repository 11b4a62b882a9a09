//! LAPI by its C symbols, as `lapi.h` declares them.

use crate::child::Ctx;
use crate::interface::{Abilities, Interface, Mode, Move, Word};
use crate::model::Form;
use crate::rng::Rng;
use crate::teams::{EngineTeams, Teams};
use parking_lot::Mutex;
use portolan_engine::path::ops::Combine;
use portolan_engine::runtime::Engine;
use portolan_engine::transfer::TransferKind;
use std::os::raw::{c_int, c_uint, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

pub(super) type Ptr = *mut c_void;
pub(super) type Counter = [i64; 2];

#[repr(C)]
pub(super) struct Vectors {
    pub kind: c_int,
    pub number: c_uint,
    pub info: *const usize,
    pub len: *const usize,
}

const IOVECTOR: c_int = 0;
const STRIDED: c_int = 1;
const GENERIC: c_int = 2;

unsafe extern "C" {
    pub(super) fn LAPI_Init(hndl: *mut c_uint, info: *mut [u64; 16]) -> c_int;
    pub(super) fn LAPI_Term(hndl: c_uint) -> c_int;
    pub(super) fn LAPI_Address_init(hndl: c_uint, mine: Ptr, table: *mut Ptr) -> c_int;
    fn LAPI_Put(
        hndl: c_uint,
        tgt: c_uint,
        len: usize,
        tgt_addr: Ptr,
        org_addr: Ptr,
        tgt_cntr: Ptr,
        org: *mut Counter,
        cmpl: *mut Counter,
    ) -> c_int;
    pub(super) fn LAPI_Get(
        hndl: c_uint,
        tgt: c_uint,
        len: usize,
        tgt_addr: Ptr,
        org_addr: Ptr,
        tgt_cntr: Ptr,
        org: *mut Counter,
    ) -> c_int;
    fn LAPI_Putv(
        hndl: c_uint,
        tgt: c_uint,
        tgt_vec: *mut Vectors,
        org_vec: *mut Vectors,
        tgt_cntr: Ptr,
        org: *mut Counter,
        cmpl: *mut Counter,
    ) -> c_int;
    fn LAPI_Getv(
        hndl: c_uint,
        tgt: c_uint,
        tgt_vec: *mut Vectors,
        org_vec: *mut Vectors,
        tgt_cntr: Ptr,
        org: *mut Counter,
    ) -> c_int;
    fn LAPI_Rmw(
        hndl: c_uint,
        op: c_int,
        tgt: c_uint,
        var: Ptr,
        value: *mut i32,
        prev: *mut i32,
        org: *mut Counter,
    ) -> c_int;
    fn LAPI_Rmw64(
        hndl: c_uint,
        op: c_int,
        tgt: c_uint,
        var: Ptr,
        value: *mut i64,
        prev: *mut i64,
        org: *mut Counter,
    ) -> c_int;
    /// The structure consists of 64-bit words; two 32-bit members share a word.
    pub(super) fn LAPI_Xfer(hndl: c_uint, xfer: *mut [usize; 16]) -> c_int;
    pub(super) fn LAPI_Waitcntr(
        hndl: c_uint,
        cntr: *mut Counter,
        value: c_int,
        left: *mut c_int,
    ) -> c_int;
    fn LAPI_Getcntr(hndl: c_uint, cntr: *mut Counter, value: *mut c_int) -> c_int;
    pub(super) fn LAPI_Probe(hndl: c_uint) -> c_int;
    pub(super) fn LAPI_Fence(hndl: c_uint) -> c_int;
    pub(super) fn LAPI_Gfence(hndl: c_uint) -> c_int;
}

pub struct Lapi {
    engine: Arc<Engine>,
    teams: EngineTeams,
    hndl: c_uint,
    me: usize,
    /// A counter for each task, which that task counts by its puts, and one that all items count.
    counters: Vec<Counter>,
    /// The addresses of the other tasks' counters.
    table: Vec<Ptr>,
    /// The number of items by target.
    items: Vec<i32>,
    calls: usize,
}

fn ok(code: c_int) {
    assert_eq!(code, 0, "a call of LAPI");
}

/// The handlers at the origin that are still to run.
static HOOKS: AtomicUsize = AtomicUsize::new(0);
/// The memory that gets had filled when their handlers ran: addresses and bytes.
static GOT: Mutex<Vec<(usize, Vec<u8>)>> = Mutex::new(Vec::new());

/// The parameter of a handler of a get: the memory that it has filled.
struct Landing(usize, usize);

/// After the data of a put, or the old value of a variable, has left or come.
extern "C" fn has_left(handle: *mut c_uint, info: Ptr, about: *const c_uint) {
    // SAFETY: the library passes a live handle and structure.
    let (reason, handle) = unsafe { (*about.add(1), *handle) };
    assert_eq!((reason, info.addr()), (0, handle as usize));
    HOOKS.fetch_sub(1, SeqCst);
}

/// After the data of a get has come. It may call the library.
extern "C" fn has_come(handle: *mut c_uint, info: Ptr) {
    // SAFETY: the parameter is from [`hook`], and the memory lives until the item is complete.
    unsafe {
        let Landing(at, len) = *Box::from_raw(info.cast());
        if len > 0 {
            GOT.lock().push((at, std::slice::from_raw_parts(at as *const u8, len).to_vec()));
        }
        ok(LAPI_Probe(*handle));
    }
    HOOKS.fetch_sub(1, SeqCst);
}

/// Returns a handler at the origin and its parameter.
fn hook(hndl: c_uint, landing: Option<Landing>) -> [usize; 2] {
    HOOKS.fetch_add(1, SeqCst);
    match landing {
        Some(landing) => [has_come as *const () as usize, Box::into_raw(Box::new(landing)).addr()],
        None => [has_left as *const () as usize, hndl as usize],
    }
}

/// The address lists of an item, which must live until it is complete.
struct Lists {
    local: Vec<usize>,
    remote: Vec<usize>,
    len: Vec<usize>,
    org: Vectors,
    tgt: Vectors,
}

/// Describes the blocks one by one or, if there is one level, by a stride.
fn lists(it: &Move<'_>, rng: &mut Rng) -> Box<Lists> {
    let blocks = it.blocks();
    let row = match &it.item.form {
        Form::Strided { counts, local, remote }
            if counts.len() == 2 && counts[1] > 1 && !blocks.is_empty() =>
        {
            let longer = |stride: isize| stride >= counts[0] as isize;
            (longer(local[0]) && longer(remote[0])).then(|| (counts[0], local[0], remote[0]))
        }
        _ => None,
    };
    let vectors = |kind| Vectors {
        kind,
        number: blocks.len() as c_uint,
        info: [].as_ptr(),
        len: [].as_ptr(),
    };
    let kind = match row {
        Some(_) if !rng.one_in(3) => STRIDED,
        _ if rng.one_in(2) => IOVECTOR,
        _ => GENERIC,
    };
    let mut all = Box::new(Lists {
        local: blocks.iter().map(|b| b.0).collect(),
        remote: blocks.iter().map(|b| b.1).collect(),
        len: blocks.iter().map(|b| b.2).collect(),
        org: vectors(kind),
        tgt: vectors(kind),
    });
    if let (STRIDED, Some((block, l, r))) = (kind, row) {
        all.local = vec![it.local as usize, block, l as usize];
        all.remote = vec![it.remote, block, r as usize];
    }
    (all.org.info, all.org.len) = (all.local.as_ptr(), all.len.as_ptr());
    (all.tgt.info, all.tgt.len) = (all.remote.as_ptr(), all.len.as_ptr());
    all
}

impl Lapi {
    /// Collective.
    pub fn start(ctx: &Ctx) -> Lapi {
        let mut it = Lapi {
            engine: Arc::clone(&ctx.engine),
            teams: EngineTeams::new(&ctx.engine),
            hndl: 0,
            me: ctx.me,
            counters: vec![[0; 2]; ctx.n + 1],
            table: vec![null_mut(); ctx.n],
            items: vec![0; ctx.n],
            calls: 0,
        };
        // SAFETY: the array of zeros is larger than `lapi_info_t`.
        ok(unsafe { LAPI_Init(&mut it.hndl, &mut [0; 16]) });
        it.exchange();
        it
    }

    fn exchange(&mut self) {
        let mine = self.counters.as_mut_ptr().cast();
        // SAFETY: the table has an entry for each task.
        ok(unsafe { LAPI_Address_init(self.hndl, mine, self.table.as_mut_ptr()) });
    }

    /// Returns the address of a counter of another task.
    fn counter_at(&self, task: usize, i: usize) -> Ptr {
        self.table[task].wrapping_add(size_of::<Counter>() * i)
    }

    /// Waits for the handlers at the origin. The data of a get must be complete when its handler runs.
    fn finish_hooks(&self) {
        while HOOKS.load(SeqCst) > 0 {
            // SAFETY: LAPI is initialised.
            ok(unsafe { LAPI_Probe(self.hndl) });
            std::thread::yield_now();
        }
        for (at, bytes) in GOT.lock().drain(..) {
            // SAFETY: the memory of the items lives until the caller of `perform` has checked it.
            let now = unsafe { std::slice::from_raw_parts(at as *const u8, bytes.len()) };
            assert!(now == bytes, "the handler of a get runs before its data has come");
        }
    }

    fn wait(&self, counter: *mut Counter, value: usize) {
        let mut left = -1;
        // SAFETY: the counter is live.
        ok(unsafe { LAPI_Waitcntr(self.hndl, counter, value as c_int, &mut left) });
        assert_eq!(left, 0, "a counter after its wait");
    }

    /// Issues an item, which counts once when it is complete. Returns what must live until then.
    ///
    /// # Safety
    /// The addresses and the counter must be valid until the item is complete.
    unsafe fn issue(
        &mut self,
        it: &Move<'_>,
        done: *mut Counter,
        rng: &mut Rng,
    ) -> Option<Box<Lists>> {
        let (hndl, tgt) = (self.hndl, it.item.target as c_uint);
        let counter = self.counter_at(it.item.target, self.table.len());
        self.items[it.item.target] += 1;
        let gets = it.item.kind == TransferKind::Get;
        let by_xfer = rng.one_in(3);
        let mut x = [usize::MAX; 16];
        // SAFETY: the caller guarantees the addresses.
        unsafe {
            if let Some(n) = it.plain().filter(|_| !rng.one_in(4)) {
                let (local, remote): (Ptr, Ptr) = (it.local.cast(), it.remote as Ptr);
                x[1..5].copy_from_slice(&[tgt as usize, it.remote, it.local as usize, n]);
                ok(match (gets, by_xfer) {
                    (true, false) => LAPI_Get(hndl, tgt, n, remote, local, counter, done),
                    (false, false) => {
                        LAPI_Put(hndl, tgt, n, remote, local, counter, null_mut(), done)
                    }
                    (true, true) => {
                        let [f, info] = hook(hndl, Some(Landing(it.local as usize, n)));
                        x[0] = 0;
                        x[5..9].copy_from_slice(&[counter.addr(), done as usize, f, info]);
                        LAPI_Xfer(hndl, &mut x)
                    }
                    (false, true) => {
                        let [f, info] = hook(hndl, None);
                        x[0] = 2;
                        x[5..10].copy_from_slice(&[f, info, counter.addr(), 0, done as usize]);
                        LAPI_Xfer(hndl, &mut x)
                    }
                });
                return None;
            }
            let mut lists = lists(it, rng);
            let (org, to) = (&raw mut lists.org, &raw mut lists.tgt);
            let (o, t, d, c) = (org as usize, to as usize, done as usize, counter.addr());
            ok(match (gets, by_xfer) {
                (true, false) => LAPI_Getv(hndl, tgt, to, org, counter, done),
                (false, false) => LAPI_Putv(hndl, tgt, to, org, counter, null_mut(), done),
                (true, true) => {
                    let (at, _, len) = it.blocks().first().copied().unwrap_or_default();
                    let [f, info] = hook(hndl, Some(Landing(at, len)));
                    x[..8].copy_from_slice(&[3, tgt as usize, o, t, c, d, f, info]);
                    LAPI_Xfer(hndl, &mut x)
                }
                (false, true) => {
                    let [f, info] = hook(hndl, None);
                    x[..9].copy_from_slice(&[4, tgt as usize, f, info, o, t, c, 0, d]);
                    LAPI_Xfer(hndl, &mut x)
                }
            });
            Some(lists)
        }
    }
}

impl Interface for Lapi {
    fn abilities(&self) -> Abilities {
        Abilities {
            gets: true,
            unit: 1,
            types: &[],
            modes: &[Mode::Blocking, Mode::Handle, Mode::Implicit],
            words: &[Combine::Add, Combine::Or, Combine::Swap, Combine::CompareSwap],
            tells: false,
            locks: 0,
            negative: true,
            anywhere: true,
        }
    }

    fn teams(&mut self) -> &mut dyn Teams {
        &mut self.teams
    }

    /// An implicit step has one counter for all items, and the others have one each.
    unsafe fn perform(&mut self, mode: Mode, moves: &[Move<'_>], rng: &mut Rng) {
        let mut counters: Vec<Counter> = vec![[0; 2]; moves.len().max(1)];
        let first = counters.as_mut_ptr();
        let of = |i| if mode == Mode::Implicit { first } else { first.wrapping_add(i) };
        let mut lists = Vec::new();
        for (i, it) in moves.iter().enumerate() {
            // SAFETY: the caller guarantees the addresses; the counters live until the waits.
            lists.push(unsafe { self.issue(it, of(i), rng) });
        }
        if mode == Mode::Implicit {
            self.wait(first, moves.len());
        } else {
            let mut order: Vec<usize> = (0..moves.len()).collect();
            rng.shuffle(&mut order);
            order.iter().for_each(|&i| self.wait(of(i), 1));
        }
        self.finish_hooks();
    }

    fn nothing(&mut self, target: usize) {
        let (hndl, tgt, no) = (self.hndl, target as c_uint, null_mut());
        let mut empty = Vectors { kind: IOVECTOR, number: 0, info: null(), len: null() };
        let (list, mut done) = (&raw mut empty, [0; 2]);
        // SAFETY: the calls move no bytes, and the counter lives until the wait.
        unsafe {
            ok(LAPI_Put(hndl, tgt, 0, no, no, no, null_mut(), &mut done));
            ok(LAPI_Get(hndl, tgt, 0, no, no, no, &mut done));
            ok(LAPI_Putv(hndl, tgt, list, list, no, &mut done, null_mut()));
            ok(LAPI_Getv(hndl, tgt, list, list, no, &mut done));
        }
        self.wait(&mut done, 4);
    }

    fn word(&mut self, word: &Word, remote: usize) -> i64 {
        self.calls += 1;
        let (hndl, tgt, var) = (self.hndl, word.target as c_uint, remote as Ptr);
        let op = match word.op {
            Combine::Add => 0,
            Combine::Or => 1,
            Combine::Swap => 2,
            Combine::CompareSwap => 3,
            other => unreachable!("LAPI has no {other:?}"),
        };
        let pair = [word.expected, word.value];
        let mut long = if word.op == Combine::CompareSwap { pair } else { [word.value, 0] };
        let mut short = long.map(|value| value as i32);
        let (mut old, mut old_short, mut org) = (-1i64, -1i32, [0; 2]);
        let (place, prev) = match word.wide {
            true => ((&raw mut long) as usize, (&raw mut old) as usize),
            false => ((&raw mut short) as usize, (&raw mut old_short) as usize),
        };
        // SAFETY: the operands and the counter live until the wait.
        ok(unsafe {
            match (self.calls % 3, word.wide) {
                (0, wide) => {
                    let bits = if wide { 64 } else { 32 };
                    let mut x = [usize::MAX; 16];
                    x[..2].copy_from_slice(&[6 | op << 32, tgt as usize | bits << 32]);
                    x[2..6].copy_from_slice(&[remote, place, prev, (&raw mut org) as usize]);
                    x[6..8].copy_from_slice(&hook(hndl, None));
                    LAPI_Xfer(hndl, &mut x)
                }
                (_, true) => LAPI_Rmw64(
                    hndl,
                    op as c_int,
                    tgt,
                    var,
                    place as *mut i64,
                    prev as *mut i64,
                    &mut org,
                ),
                (_, false) => LAPI_Rmw(
                    hndl,
                    op as c_int,
                    tgt,
                    var,
                    place as *mut i32,
                    prev as *mut i32,
                    &mut org,
                ),
            }
        });
        self.wait(&mut org, 1);
        self.finish_hooks();
        let old = if word.wide { old } else { old_short.into() };
        match (word.op, old) {
            // 1 if it swapped, else 0.
            (Combine::CompareSwap, 1) => word.expected,
            (Combine::CompareSwap, 0) => !word.expected,
            (Combine::CompareSwap, other) => panic!("a compare-and-swap returned {other}"),
            _ => old,
        }
    }

    fn meet(&mut self, rng: &mut Rng) {
        // SAFETY: LAPI is initialised.
        unsafe {
            if rng.one_in(2) {
                return ok(LAPI_Gfence(self.hndl));
            }
            ok(LAPI_Fence(self.hndl));
        }
        if rng.one_in(2) { self.exchange() } else { super::mpi_barrier(&self.engine) }
    }

    fn hand_over(&mut self, to: usize, remote: usize, bytes: &[u8]) {
        let counter = self.counter_at(to, self.me);
        let (src, dst): (Ptr, Ptr) = (bytes.as_ptr().cast_mut().cast(), remote as Ptr);
        let mut org = [0; 2];
        // SAFETY: `bytes` and the counter outlive the wait.
        ok(unsafe {
            LAPI_Put(self.hndl, to as c_uint, bytes.len(), dst, src, counter, &mut org, null_mut())
        });
        self.wait(&mut org, 1);
    }

    fn receive(&mut self, from: usize) {
        let counter = &raw mut self.counters[from];
        let mut left = -1;
        // SAFETY: the counter is live.
        unsafe {
            ok(LAPI_Waitcntr(self.hndl, counter, 1, &mut left));
            ok(LAPI_Getcntr(self.hndl, counter, &mut left));
        }
        assert!(left >= 0, "a counter of {left}");
    }

    fn end(&mut self) {
        let world = self.engine.world();
        let counted = |target: usize| -> i32 {
            world.allgather(&*self.engine, &self.items[target]).expect("allgather").iter().sum()
        };
        let counted: Vec<i32> = (0..self.items.len()).map(counted).collect();
        let (tasks, value) = (self.items.len(), counted[self.me] as usize);
        let of_items = &raw mut self.counters[tasks];
        self.wait(of_items, value);
        // SAFETY: no call is under way.
        unsafe {
            ok(LAPI_Gfence(self.hndl));
            ok(LAPI_Term(self.hndl));
        }
    }
}
