//! X10Lib by its C symbols, as `x10/x10lib.h` declares them.

use crate::child::Ctx;
use crate::interface::{Abilities, Interface, Mode, Move};
use crate::model::Form;
use crate::rng::Rng;
use crate::teams::{EngineTeams, Teams};
use portolan_engine::runtime::Engine;
use portolan_engine::transfer::TransferKind;
use std::os::raw::{c_int, c_long, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[repr(C)]
#[derive(Clone, Copy)]
struct GasRef {
    place: i32,
    addr: usize,
}

#[repr(C)]
struct Giov {
    remote: *const GasRef,
    local: *const Ptr,
    bytes: c_int,
    count: c_int,
}

type Ptr = *mut c_void;
type Switch = *mut c_void;
type Ints = *const c_int;
pub(super) type Async = extern "C" fn(*mut i64, c_int);

unsafe extern "C" {
    pub(super) fn x10_init(handlers: *const Async, n: c_int) -> c_int;
    pub(super) fn x10_finalize() -> c_int;
    pub(super) fn x10_fence() -> c_int;
    pub(super) fn x10_gfence() -> c_int;
    fn x10_addr_init(mine: Ptr, table: *mut Ptr) -> c_int;
    fn x10_make_gas_ref(place: i32, addr: Ptr) -> GasRef;

    fn x10_alloc_switch() -> Switch;
    fn x10_free_switch(sw: Switch) -> c_int;
    fn x10_decrement_switch(sw: Switch) -> c_int;
    fn x10_increment_switch(sw: Switch) -> c_int;
    fn x10_switch_value(sw: Switch, value: *mut c_int) -> c_int;
    fn x10_wait(sw: Switch) -> c_int;
    fn x10_test(sw: Switch, done: *mut c_int) -> c_int;

    fn x10_get(src: GasRef, dest: Ptr, n: c_int) -> c_int;
    fn x10_get_nb(src: GasRef, dest: Ptr, n: c_int, sw: Switch) -> c_int;
    fn x10_put(src: Ptr, dest: GasRef, n: c_int) -> c_int;
    fn x10_put_nb(src: Ptr, dest: GasRef, n: c_int, sw: Switch) -> c_int;
    fn x10_get_v(list: *mut Giov, len: c_int) -> c_int;
    fn x10_get_v_nb(list: *mut Giov, len: c_int, sw: Switch) -> c_int;
    fn x10_put_v(list: *mut Giov, len: c_int) -> c_int;
    fn x10_put_v_nb(list: *mut Giov, len: c_int, sw: Switch) -> c_int;
    fn x10_get_s(src: GasRef, ss: Ints, dest: Ptr, ds: Ints, count: Ints, levels: c_int) -> c_int;
    fn x10_get_s_nb(
        src: GasRef,
        ss: Ints,
        dest: Ptr,
        ds: Ints,
        count: Ints,
        levels: c_int,
        sw: Switch,
    ) -> c_int;
    fn x10_put_s(src: Ptr, ss: Ints, dest: GasRef, ds: Ints, count: Ints, levels: c_int) -> c_int;
    fn x10_put_s_nb(
        src: Ptr,
        ss: Ints,
        dest: GasRef,
        ds: Ints,
        count: Ints,
        levels: c_int,
        sw: Switch,
    ) -> c_int;

    fn x10_get_value_int(src: GasRef) -> c_int;
    fn x10_get_value_long(src: GasRef) -> c_long;
    fn x10_get_value_float(src: GasRef) -> f32;
    fn x10_get_value_double(src: GasRef) -> f64;
    fn x10_get_value_status() -> c_int;
    fn x10_put_value_int(v: c_int, dest: GasRef) -> c_int;
    fn x10_put_value_long(v: c_long, dest: GasRef) -> c_int;
    fn x10_put_value_float(v: f32, dest: GasRef) -> c_int;
    fn x10_put_value_double(v: f64, dest: GasRef) -> c_int;
    fn x10_put_value_int_nb(v: c_int, dest: GasRef, sw: Switch) -> c_int;
    fn x10_put_value_long_nb(v: c_long, dest: GasRef, sw: Switch) -> c_int;
    fn x10_put_value_float_nb(v: f32, dest: GasRef, sw: Switch) -> c_int;
    fn x10_put_value_double_nb(v: f64, dest: GasRef, sw: Switch) -> c_int;

    pub(super) fn x10_async_spawn_packed(
        dest: i32,
        n: c_int,
        f: usize,
        given: c_int,
        args: *const i64,
    ) -> c_int;
    pub(super) fn x10_async_spawn_agg_packed(
        dest: i32,
        n: c_int,
        f: usize,
        handle: c_int,
        given: c_int,
        args: *const i64,
    ) -> c_int;
    pub(super) fn x10_flush(n: c_int, handle: c_int) -> c_int;
}

/// The number of asyncs that have arrived of each place.
static ARRIVED: [AtomicUsize; 64] = [const { AtomicUsize::new(0) }; 64];

extern "C" fn arrive(args: *mut i64, n: c_int) {
    assert_eq!(n, 1, "arguments of an async");
    // SAFETY: an async has the arguments that were sent.
    ARRIVED[unsafe { *args } as usize].fetch_add(1, Ordering::Release);
}

pub struct X10 {
    engine: Arc<Engine>,
    teams: EngineTeams,
    me: usize,
    sent: usize,
    received: Vec<usize>,
    /// Its value is -1, so a test only makes progress.
    look: Switch,
}

fn ok(code: c_int) {
    assert_eq!(code, 0, "a call of X10Lib");
}

impl X10 {
    /// Collective.
    pub fn start(ctx: &Ctx) -> X10 {
        ARRIVED.iter().for_each(|count| count.store(0, Ordering::Relaxed));
        ctx.barrier();
        // SAFETY: no handlers are passed.
        let look = unsafe {
            ok(x10_init(std::ptr::null(), 0));
            x10_alloc_switch()
        };
        // SAFETY: the switch is new.
        ok(unsafe { x10_decrement_switch(look) });
        let engine = Arc::clone(&ctx.engine);
        let teams = EngineTeams::new(&engine);
        X10 { engine, teams, me: ctx.me, sent: 0, received: vec![0; ctx.n], look }
    }

    fn table(&self) {
        let of = |place: usize| (0xf000_0000_0000_0001 + 4096 * place) as Ptr;
        let mut table = vec![null_mut(); self.engine.size()];
        // SAFETY: the table has an entry for each place.
        ok(unsafe { x10_addr_init(of(self.me), table.as_mut_ptr()) });
        assert!(table.iter().enumerate().all(|(place, &address)| address == of(place)));
    }

    /// Issues an item: blocking, or on a switch.
    ///
    /// # Safety
    /// The addresses must be valid until the item is complete.
    unsafe fn issue(&self, it: &Move<'_>, sw: Option<Switch>, rng: &mut Rng) {
        let gets = it.item.kind == TransferKind::Get;
        let local: Ptr = it.local.cast();
        // SAFETY: the caller guarantees the addresses, and arrays have the lengths that are passed.
        ok(unsafe {
            let there = x10_make_gas_ref(it.item.target as i32, it.remote as Ptr);
            match &it.item.form {
                Form::Strided { .. } if it.plain().is_some() && !rng.one_in(4) => {
                    let n = it.plain().expect("contiguous bytes") as c_int;
                    let valued = matches!(n, 4 | 8) && rng.one_in(2);
                    if valued && Self::value(it, there, sw, rng.one_in(2)) {
                        return;
                    }
                    match (gets, sw) {
                        (true, None) => x10_get(there, local, n),
                        (true, Some(sw)) => x10_get_nb(there, local, n, sw),
                        (false, None) => x10_put(local, there, n),
                        (false, Some(sw)) => x10_put_nb(local, there, n, sw),
                    }
                }
                Form::Strided { counts, local: l, remote: r } => {
                    let ints = |all: &[isize]| all.iter().map(|&s| s as c_int).collect::<Vec<_>>();
                    let (l, r) = (ints(l), ints(r));
                    let counts: Vec<c_int> = counts.iter().map(|&n| n as c_int).collect();
                    let (levels, c) = (l.len() as c_int, counts.as_ptr());
                    let (l, r) = (l.as_ptr(), r.as_ptr());
                    match (gets, sw) {
                        (true, None) => x10_get_s(there, r, local, l, c, levels),
                        (true, Some(sw)) => x10_get_s_nb(there, r, local, l, c, levels, sw),
                        (false, None) => x10_put_s(local, l, there, r, c, levels),
                        (false, Some(sw)) => x10_put_s_nb(local, l, there, r, c, levels, sw),
                    }
                }
                Form::Vector { .. } => return Self::vectors(&[it], gets, sw),
            }
        });
    }

    /// Moves the blocks of all items in one call. They may have different targets.
    ///
    /// # Safety
    /// The addresses must be valid until the items are complete.
    unsafe fn vectors(items: &[&Move<'_>], gets: bool, sw: Option<Switch>) {
        let blocks = items.iter().map(|it| {
            let place = it.item.target as i32;
            let block = |(l, r, _)| (l as Ptr, GasRef { place, addr: r });
            it.blocks().into_iter().map(block).unzip::<_, _, Vec<_>, Vec<_>>()
        });
        let blocks: Vec<_> = blocks.collect();
        let mut list: Vec<Giov> = items
            .iter()
            .zip(&blocks)
            .map(|(it, (local, remote))| Giov {
                remote: remote.as_ptr(),
                local: local.as_ptr(),
                bytes: it.blocks().first().map_or(0, |block| block.2) as c_int,
                count: local.len() as c_int,
            })
            .collect();
        let (list, len) = (list.as_mut_ptr(), list.len() as c_int);
        // SAFETY: the caller guarantees the addresses, and the arrays have their lengths.
        ok(unsafe {
            match (gets, sw) {
                (true, None) => x10_get_v(list, len),
                (true, Some(sw)) => x10_get_v_nb(list, len, sw),
                (false, None) => x10_put_v(list, len),
                (false, Some(sw)) => x10_put_v_nb(list, len, sw),
            }
        });
    }

    /// Puts or gets 4 or 8 bytes as a number, real or whole. Returns false if no call does.
    ///
    /// # Safety
    /// The addresses must be valid until the item is complete.
    unsafe fn value(it: &Move<'_>, there: GasRef, sw: Option<Switch>, real: bool) -> bool {
        let gets = it.item.kind == TransferKind::Get;
        let (short, long): (*mut c_int, *mut c_long) = (it.local.cast(), it.local.cast());
        let (float, double): (*mut f32, *mut f64) = (it.local.cast(), it.local.cast());
        // SAFETY: the caller guarantees the addresses.
        unsafe {
            ok(match (gets, it.plain() == Some(8), real, sw) {
                (true, _, _, Some(_)) => return false,
                (true, wide, real, None) => {
                    match (wide, real) {
                        (false, false) => short.write_unaligned(x10_get_value_int(there)),
                        (true, false) => long.write_unaligned(x10_get_value_long(there)),
                        (false, true) => float.write_unaligned(x10_get_value_float(there)),
                        (true, true) => double.write_unaligned(x10_get_value_double(there)),
                    }
                    x10_get_value_status()
                }
                (_, false, false, None) => x10_put_value_int(short.read_unaligned(), there),
                (_, true, false, None) => x10_put_value_long(long.read_unaligned(), there),
                (_, false, true, None) => x10_put_value_float(float.read_unaligned(), there),
                (_, true, true, None) => x10_put_value_double(double.read_unaligned(), there),
                (_, false, false, Some(sw)) => {
                    x10_put_value_int_nb(short.read_unaligned(), there, sw)
                }
                (_, true, false, Some(sw)) => {
                    x10_put_value_long_nb(long.read_unaligned(), there, sw)
                }
                (_, false, true, Some(sw)) => {
                    x10_put_value_float_nb(float.read_unaligned(), there, sw)
                }
                (_, true, true, Some(sw)) => {
                    x10_put_value_double_nb(double.read_unaligned(), there, sw)
                }
            });
        }
        true
    }

    fn pause(&self) {
        let mut done = -1;
        // SAFETY: the switch is live.
        ok(unsafe { x10_test(self.look, &mut done) });
        assert_eq!(done, 0, "a switch of -1");
        std::thread::yield_now();
    }
}

impl Interface for X10 {
    fn abilities(&self) -> Abilities {
        Abilities {
            gets: true,
            unit: 1,
            types: &[],
            modes: &[Mode::Blocking, Mode::Handle, Mode::Implicit],
            words: &[],
            tells: false,
            locks: 0,
            negative: true,
            anywhere: true,
        }
    }

    fn teams(&mut self) -> &mut dyn Teams {
        &mut self.teams
    }

    /// An implicit step has one switch for all items, and the other non-blocking ones have one each.
    unsafe fn perform(&mut self, mode: Mode, moves: &[Move<'_>], rng: &mut Rng) {
        // SAFETY: X10Lib is initialised; the caller guarantees the addresses.
        unsafe {
            if mode == Mode::Blocking {
                return moves.iter().for_each(|it| self.issue(it, None, rng));
            }
            let number = if mode == Mode::Handle { moves.len() } else { 1 };
            let mut switches: Vec<Switch> = (0..number).map(|_| x10_alloc_switch()).collect();
            for gets in [true, false] {
                let of_kind = |it: &&Move<'_>| (it.item.kind == TransferKind::Get) == gets;
                let is_vector = |it: &&Move<'_>| matches!(it.item.form, Form::Vector { .. });
                let list: Vec<&Move<'_>> = moves.iter().filter(of_kind).filter(is_vector).collect();
                if mode == Mode::Implicit && !list.is_empty() {
                    Self::vectors(&list, gets, Some(switches[0]));
                }
            }
            for (i, it) in moves.iter().enumerate() {
                if mode == Mode::Handle {
                    self.issue(it, Some(switches[i]), rng);
                } else if !matches!(it.item.form, Form::Vector { .. }) {
                    self.issue(it, Some(switches[0]), rng);
                }
            }
            rng.shuffle(&mut switches);
            for sw in switches {
                let (mut done, mut value) = (0, -1);
                while rng.one_in(2) && done == 0 {
                    ok(x10_test(sw, &mut done));
                    std::thread::yield_now();
                }
                ok(x10_wait(sw));
                ok(x10_switch_value(sw, &mut value));
                assert_eq!(value, 0, "the value of a switch without transfers");
                ok(x10_free_switch(sw));
            }
        }
    }

    fn nothing(&mut self, target: usize) {
        let (no, counts, strides) = (null_mut(), [8, 0], [16]);
        // SAFETY: the calls move no bytes.
        unsafe {
            let there = x10_make_gas_ref(target as i32, no);
            ok(x10_get(there, no, 0));
            ok(x10_put(no, there, 0));
            ok(x10_get_v(null_mut(), 0));
            ok(x10_put_s(no, strides.as_ptr(), there, strides.as_ptr(), counts.as_ptr(), 1));
            let sw = x10_alloc_switch();
            ok(x10_put_nb(no, there, 0, sw));
            ok(x10_get_v_nb(null_mut(), 0, sw));
            ok(x10_get_s_nb(there, null(), no, null(), [0].as_ptr(), 0, sw));
            ok(x10_wait(sw));
            ok(x10_free_switch(sw));
        }
    }

    fn meet(&mut self, rng: &mut Rng) {
        // SAFETY: X10Lib is initialised.
        unsafe {
            if rng.one_in(2) {
                return ok(x10_gfence());
            }
            ok(x10_fence());
        }
        if rng.one_in(2) { self.table() } else { super::mpi_barrier(&self.engine) }
    }

    fn hand_over(&mut self, to: usize, remote: usize, bytes: &[u8]) {
        let (place, src, n) = (to as i32, bytes.as_ptr().cast_mut().cast(), bytes.len() as c_int);
        let (args, arrive) = ([self.me as i64], arrive as Async as usize);
        self.sent += 1;
        // SAFETY: `bytes` and `args` outlive the calls.
        unsafe {
            let there = x10_make_gas_ref(place, remote as Ptr);
            match self.sent % 3 {
                0 => {
                    let sw = x10_alloc_switch();
                    ok(x10_put_nb(src, there, n, sw));
                    ok(x10_wait(sw));
                    ok(x10_free_switch(sw));
                }
                _ => ok(x10_put(src, there, n)),
            }
            match self.sent % 2 {
                0 => ok(x10_async_spawn_packed(place, 1, arrive, 1, args.as_ptr())),
                _ => {
                    ok(x10_async_spawn_agg_packed(place, 1, arrive, 7, 1, args.as_ptr()));
                    ok(x10_flush(1, 7));
                }
            }
        }
    }

    fn receive(&mut self, from: usize) {
        self.received[from] += 1;
        while ARRIVED[from].load(Ordering::Acquire) < self.received[from] {
            self.pause();
        }
    }

    fn end(&mut self) {
        // SAFETY: the switch has no transfers, and no call is under way.
        unsafe {
            ok(x10_increment_switch(self.look));
            ok(x10_free_switch(self.look));
            ok(x10_finalize());
        }
    }
}
