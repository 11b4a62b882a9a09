//! Compose and perform by its C symbols, as `cp.h` declares them.

use crate::child::Ctx;
use crate::interface::{Abilities, Interface, Mode, Move};
use crate::model::Form;
use crate::rng::Rng;
use crate::teams::{EngineTeams, Teams};
use std::os::raw::{c_int, c_uint, c_void};

type Ptr = *mut c_void;

unsafe extern "C" {
    fn cp_init() -> c_int;
    fn cp_finalize() -> c_int;
    fn cp_create(target: c_int) -> c_int;
    fn cp_destroy(comp: c_int) -> c_int;
    fn cp_add_adxpair(comp: c_int, local: Ptr, remote: Ptr) -> c_int;
    fn cp_add_adxpairvector(comp: c_int, local: *const Ptr, remote: *const Ptr, n: c_uint)
    -> c_int;
    fn cp_add_adxblock(comp: c_int, local: Ptr, remote: Ptr, len: c_uint) -> c_int;
    fn cp_add_adxblockvector(
        comp: c_int,
        local: *const Ptr,
        remote: *const Ptr,
        len: *const c_uint,
        n: c_uint,
    ) -> c_int;
    fn cp_add_adxslice(
        comp: c_int,
        local: Ptr,
        l_stride: Ptr,
        l_len: c_uint,
        l_n: c_uint,
        remote: Ptr,
        r_stride: Ptr,
        r_len: c_uint,
        r_n: c_uint,
    ) -> c_int;
    fn cp_merge(a: c_int, b: c_int) -> c_int;
    fn cp_map(comp: c_int) -> c_int;
    fn cp_sync() -> c_int;
    fn cp_perform(comp: c_int) -> c_int;
    fn cp_waitfor(n: c_int) -> c_int;
    fn cp_arrived() -> c_int;
}

pub struct Compose {
    teams: EngineTeams,
    /// Since the last meeting.
    received: c_int,
}

fn ok(code: c_int) -> c_int {
    assert!(code >= 0, "a call of compose and perform returned {code}");
    code
}

impl Compose {
    /// Collective.
    pub fn start(ctx: &Ctx) -> Compose {
        // SAFETY: a plain call.
        ok(unsafe { cp_init() });
        Compose { teams: EngineTeams::new(&ctx.engine), received: 0 }
    }

    /// Adds the triples of an item to a simple composition.
    ///
    /// # Safety
    /// The addresses must be valid for the item.
    unsafe fn add(comp: c_int, it: &Move<'_>, rng: &mut Rng) {
        let (local, remote): (Ptr, Ptr) = (it.local.cast(), it.remote as Ptr);
        // SAFETY: the caller guarantees the addresses, and arrays have the lengths that are passed.
        ok(unsafe {
            match (&it.item.form, it.plain()) {
                (_, Some(1)) => cp_add_adxpair(comp, local, remote),
                (_, Some(n)) if n % 2 == 0 && rng.one_in(3) => {
                    // Two blocks here, one there.
                    let (half, n) = (n as c_uint / 2, n as c_uint);
                    let stride = half as usize as Ptr;
                    cp_add_adxslice(comp, local, stride, half, 2, remote, stride, n, 1)
                }
                (_, Some(n)) if n <= 100 && rng.one_in(2) => {
                    let each = |start: Ptr| {
                        (0..n).rev().map(|i| start.wrapping_byte_add(i)).collect::<Vec<_>>()
                    };
                    let (l, r) = (each(local), each(remote));
                    cp_add_adxpairvector(comp, l.as_ptr(), r.as_ptr(), n as c_uint)
                }
                (_, Some(n)) => cp_add_adxblock(comp, local, remote, n as c_uint),
                (Form::Strided { counts, local: l, remote: r }, None)
                    if counts.len() == 2 && !counts.contains(&0) =>
                {
                    let (len, n) = (counts[0] as c_uint, counts[1] as c_uint);
                    cp_add_adxslice(comp, local, l[0] as Ptr, len, n, remote, r[0] as Ptr, len, n)
                }
                _ => {
                    let blocks = it.blocks();
                    let l: Vec<Ptr> = blocks.iter().map(|b| b.0 as Ptr).collect();
                    let r: Vec<Ptr> = blocks.iter().map(|b| b.1 as Ptr).collect();
                    let len: Vec<c_uint> = blocks.iter().map(|b| b.2 as c_uint).collect();
                    let n = blocks.len() as c_uint;
                    cp_add_adxblockvector(comp, l.as_ptr(), r.as_ptr(), len.as_ptr(), n)
                }
            }
        });
    }
}

impl Interface for Compose {
    fn abilities(&self) -> Abilities {
        Abilities {
            gets: false,
            unit: 1,
            types: &[],
            modes: &[Mode::Implicit],
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

    /// Performs one composition, merged from one of each item.
    unsafe fn perform(&mut self, _: Mode, moves: &[Move<'_>], rng: &mut Rng) {
        // SAFETY: compose is initialised; the caller guarantees the addresses.
        unsafe {
            let mut merged = ok(cp_create(0));
            for it in moves {
                let simple = ok(cp_create(it.item.target as c_int));
                Self::add(simple, it, rng);
                if rng.one_in(4) {
                    // A triple counts once.
                    Self::add(simple, it, rng);
                }
                let both = ok(cp_merge(merged, simple));
                ok(cp_destroy(merged));
                ok(cp_destroy(simple));
                merged = both;
            }
            let mapped = ok(cp_map(merged));
            ok(cp_destroy(merged));
            for _ in 0..rng.range(1, 3) {
                ok(cp_perform(mapped));
            }
            ok(cp_waitfor(0));
            ok(cp_destroy(mapped));
        }
    }

    fn meet(&mut self, _: &mut Rng) {
        self.received = 0;
        // SAFETY: compose is initialised.
        ok(unsafe { cp_sync() });
    }

    fn hand_over(&mut self, to: usize, remote: usize, bytes: &[u8]) {
        let (local, remote) = (bytes.as_ptr().cast_mut().cast(), remote as Ptr);
        // SAFETY: `bytes` outlives the wait.
        unsafe {
            let simple = ok(cp_create(to as c_int));
            ok(cp_add_adxblock(simple, local, remote, bytes.len() as c_uint));
            let mapped = ok(cp_map(simple));
            ok(cp_perform(mapped));
            ok(cp_waitfor(0));
            ok(cp_destroy(mapped));
            ok(cp_destroy(simple));
        }
    }

    /// Arrivals count whatever their source is.
    fn receive(&mut self, _: usize) {
        self.received += 1;
        // SAFETY: compose is initialised.
        unsafe {
            ok(cp_waitfor(self.received));
            assert!(cp_arrived() >= self.received, "arrivals after the wait for them");
        }
    }

    fn end(&mut self) {
        self.meet(&mut Rng::new(1, &[]));
        // SAFETY: no call is under way.
        ok(unsafe { cp_finalize() });
    }
}
