//! ARMCI by its C symbols.

mod symbols;
mod teams;

use crate::child::{Ctx, own};
use crate::interface::{Abilities, Interface, Mode, Move, TYPES, Word, rows};
use crate::model::Form;
use crate::rng::Rng;
use crate::teams::Teams;
use portolan_engine::memory::segment::Segment;
use portolan_engine::path::kernel::Scale;
use portolan_engine::path::ops::Combine;
use portolan_engine::runtime::Engine;
use portolan_engine::transfer::TransferKind;
use std::os::raw::{c_int, c_long, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;
use symbols::*;
use teams::ArmciTeams;

pub struct Armci {
    engine: Arc<Engine>,
    teams: ArmciTeams,
    /// An int for each rank, which that rank sets by puts with a flag.
    flags: Arc<Segment>,
    /// The number of messages to and from each rank, which selects the call.
    sent: Vec<usize>,
    received: Vec<usize>,
    notified: Vec<c_int>,
    mutexes: Ptr,
}

fn ok(code: c_int) {
    assert_eq!(code, 0, "a call of ARMCI");
}

fn at(address: usize) -> Ptr {
    address as Ptr
}

/// The code of the type, and the address of the scale.
fn typed(scale: &Scale) -> (c_int, Ptr) {
    match scale {
        Scale::Int(s) => (0, (&raw const *s).cast_mut().cast()),
        Scale::Long(s) => (1, (&raw const *s).cast_mut().cast()),
        Scale::Float(s) => (2, (&raw const *s).cast_mut().cast()),
        Scale::Double(s) => (3, (&raw const *s).cast_mut().cast()),
        Scale::FloatComplex(s) => (4, (&raw const *s).cast_mut().cast()),
        Scale::DoubleComplex(s) => (5, (&raw const *s).cast_mut().cast()),
        other => unreachable!("ARMCI has no {other:?}"),
    }
}

impl Armci {
    /// Collective.
    pub fn start(ctx: &Ctx) -> Armci {
        let flags = ctx.allocate(4 * ctx.n);
        own(&flags).fill(0);
        let mut world = Group::nobody();
        // SAFETY: ARMCI fills the group in.
        let mutexes = unsafe {
            ok(ARMCI_Init());
            ok(ARMCI_Create_mutexes(2));
            ARMCI_Group_get_world(&mut world);
            ARMCIX_Create_mutexes_hdl(2, &mut world)
        };
        assert!(!mutexes.is_null(), "ARMCIX_Create_mutexes_hdl");
        let (sent, received, notified) = (vec![0; ctx.n], vec![0; ctx.n], vec![0; ctx.n]);
        let (engine, teams) = (ctx.engine.clone(), ArmciTeams::new(ctx));
        Armci { engine, teams, flags, sent, received, notified, mutexes }
    }

    /// Issues an item: blocking, or with a handle, which may be null.
    ///
    /// # Safety
    /// The addresses must be valid until the item is complete.
    unsafe fn issue(&self, it: &Move<'_>, hdl: Option<*mut Hdl>, rng: &mut Rng) {
        let proc = it.item.target as c_int;
        let (local, remote) = (it.local.cast::<c_void>(), at(it.remote));
        let gets = it.item.kind == TransferKind::Get;
        let (src, dst) = if gets { (remote, local) } else { (local, remote) };
        match &it.item.form {
            Form::Strided { .. } if it.plain().is_some() && !rng.one_in(4) => {
                let n = it.plain().expect("contiguous bytes");
                // SAFETY: the caller guarantees the addresses.
                unsafe {
                    if matches!(n, 4 | 8) && rng.one_in(2) && Self::value(it, hdl, rng.one_in(2)) {
                        return;
                    }
                    let flagged =
                        n >= 4 && it.remote.is_multiple_of(4) && hdl.is_none() && rng.one_in(3);
                    match &it.item.kind {
                        TransferKind::Put if flagged => {
                            let value = it.local.cast::<c_int>().read_unaligned();
                            let (src, dst) = (it.local.wrapping_add(4).cast(), at(it.remote + 4));
                            ok(ARMCI_Put_flag(src, dst, n as c_int - 4, remote, value, proc));
                        }
                        TransferKind::Put => ok(match hdl {
                            None => ARMCI_Put(src, dst, n as c_int, proc),
                            Some(hdl) => ARMCI_NbPut(src, dst, n as c_int, proc, hdl),
                        }),
                        TransferKind::Get => ok(match hdl {
                            None => ARMCI_Get(src, dst, n as c_int, proc),
                            Some(hdl) => ARMCI_NbGet(src, dst, n as c_int, proc, hdl),
                        }),
                        TransferKind::Accumulate(scale) => {
                            let (ty, scale) = typed(scale);
                            ok(match hdl {
                                None => ARMCI_Acc(ty, scale, src, dst, n as c_int, proc),
                                Some(hdl) => {
                                    ARMCI_NbAcc(ty, scale, src, dst, n as c_int, proc, hdl)
                                }
                            });
                        }
                    }
                }
            }
            Form::Strided { counts, local: l, remote: r } => {
                let ints = |all: &[isize]| all.iter().map(|&s| s as c_int).collect::<Vec<_>>();
                let (l, r) = (ints(l), ints(r));
                let counts: Vec<c_int> = counts.iter().map(|&n| n as c_int).collect();
                let levels = l.len() as c_int;
                // The addresses of arrays without elements may be null.
                let first = |all: &Vec<c_int>| if all.is_empty() { null() } else { all.as_ptr() };
                let (ss, ds) = if gets { (first(&r), first(&l)) } else { (first(&l), first(&r)) };
                let c = counts.as_ptr();
                // SAFETY: the caller guarantees the addresses, and the arrays have all levels.
                ok(unsafe {
                    match (&it.item.kind, hdl) {
                        (TransferKind::Put, None) => ARMCI_PutS(src, ss, dst, ds, c, levels, proc),
                        (TransferKind::Get, None) => ARMCI_GetS(src, ss, dst, ds, c, levels, proc),
                        (TransferKind::Put, Some(h)) => {
                            ARMCI_NbPutS(src, ss, dst, ds, c, levels, proc, h)
                        }
                        (TransferKind::Get, Some(h)) => {
                            ARMCI_NbGetS(src, ss, dst, ds, c, levels, proc, h)
                        }
                        (TransferKind::Accumulate(scale), None) => {
                            let (ty, scale) = typed(scale);
                            ARMCI_AccS(ty, scale, src, ss, dst, ds, c, levels, proc)
                        }
                        (TransferKind::Accumulate(scale), Some(h)) => {
                            let (ty, scale) = typed(scale);
                            ARMCI_NbAccS(ty, scale, src, ss, dst, ds, c, levels, proc, h)
                        }
                    }
                });
            }
            Form::Vector { block, .. } => {
                let (local, remote): (Vec<Ptr>, Vec<Ptr>) =
                    it.blocks().into_iter().map(|(l, r, _)| (at(l), at(r))).unzip();
                let (src, dst) = if gets { (&remote, &local) } else { (&local, &remote) };
                // Half of the calls have two sets, and the first may be empty.
                let cut = if rng.one_in(2) { src.len() } else { rng.below(src.len()) };
                let set = |from: usize, to: usize| Giov {
                    src: src[from..].as_ptr(),
                    dst: dst[from..].as_ptr(),
                    bytes: *block as c_int,
                    len: (to - from) as c_int,
                };
                let mut sets = vec![set(0, cut)];
                sets.extend((cut < src.len()).then(|| set(cut, src.len())));
                let (iov, n) = (sets.as_mut_ptr(), sets.len() as c_int);
                // SAFETY: the caller guarantees the addresses, and the sets have their lengths.
                ok(unsafe {
                    match (&it.item.kind, hdl) {
                        (TransferKind::Put, None) => ARMCI_PutV(iov, n, proc),
                        (TransferKind::Get, None) => ARMCI_GetV(iov, n, proc),
                        (TransferKind::Put, Some(h)) => ARMCI_NbPutV(iov, n, proc, h),
                        (TransferKind::Get, Some(h)) => ARMCI_NbGetV(iov, n, proc, h),
                        (TransferKind::Accumulate(scale), None) => {
                            let (ty, scale) = typed(scale);
                            ARMCI_AccV(ty, scale, iov, n, proc)
                        }
                        (TransferKind::Accumulate(scale), Some(h)) => {
                            let (ty, scale) = typed(scale);
                            ARMCI_NbAccV(ty, scale, iov, n, proc, h)
                        }
                    }
                });
            }
        }
    }

    /// Puts or gets 4 or 8 bytes as a number, real or whole. Returns false if no call does.
    ///
    /// # Safety
    /// The addresses must be valid until the item is complete.
    unsafe fn value(it: &Move<'_>, hdl: Option<*mut Hdl>, real: bool) -> bool {
        let (proc, remote) = (it.item.target as c_int, at(it.remote));
        // SAFETY: the caller guarantees the addresses.
        unsafe {
            let short: *mut c_int = it.local.cast();
            let long: *mut c_long = it.local.cast();
            match (it.item.kind, it.plain() == Some(8), real, hdl) {
                (TransferKind::Put, false, false, None) => {
                    ok(ARMCI_PutValueInt(short.read_unaligned(), remote, proc));
                }
                (TransferKind::Put, true, false, None) => {
                    ok(ARMCI_PutValueLong(long.read_unaligned(), remote, proc));
                }
                (TransferKind::Put, false, true, None) => {
                    ok(ARMCI_PutValueFloat(short.cast::<f32>().read_unaligned(), remote, proc));
                }
                (TransferKind::Put, true, true, None) => {
                    ok(ARMCI_PutValueDouble(long.cast::<f64>().read_unaligned(), remote, proc));
                }
                (TransferKind::Put, false, false, Some(h)) => {
                    ok(ARMCI_NbPutValueInt(short.read_unaligned(), remote, proc, h));
                }
                (TransferKind::Put, true, false, Some(h)) => {
                    ok(ARMCI_NbPutValueLong(long.read_unaligned(), remote, proc, h));
                }
                (TransferKind::Put, false, true, Some(h)) => {
                    ok(ARMCI_NbPutValueFloat(
                        short.cast::<f32>().read_unaligned(),
                        remote,
                        proc,
                        h,
                    ));
                }
                (TransferKind::Put, true, true, Some(h)) => {
                    ok(ARMCI_NbPutValueDouble(
                        long.cast::<f64>().read_unaligned(),
                        remote,
                        proc,
                        h,
                    ));
                }
                (TransferKind::Get, false, false, None) => {
                    short.write_unaligned(ARMCI_GetValueInt(remote, proc));
                }
                (TransferKind::Get, true, false, None) => {
                    long.write_unaligned(ARMCI_GetValueLong(remote, proc));
                }
                (TransferKind::Get, false, true, None) => {
                    short.cast::<f32>().write_unaligned(ARMCI_GetValueFloat(remote, proc));
                }
                (TransferKind::Get, true, true, None) => {
                    long.cast::<f64>().write_unaligned(ARMCI_GetValueDouble(remote, proc));
                }
                _ => return false,
            }
        }
        true
    }

    /// A pause that serves other ranks.
    fn pause() {
        // SAFETY: ARMCI is initialised.
        unsafe { ARMCIX_Progress() };
        std::thread::yield_now();
    }
}

impl Interface for Armci {
    fn abilities(&self) -> Abilities {
        Abilities {
            gets: true,
            unit: 1,
            types: &TYPES[..6],
            modes: &[Mode::Blocking, Mode::Handle, Mode::Implicit, Mode::Aggregate],
            words: &[Combine::Add, Combine::Swap],
            tells: false,
            locks: 4,
            negative: false,
            anywhere: false,
        }
    }

    fn teams(&mut self) -> &mut dyn Teams {
        &mut self.teams
    }

    unsafe fn perform(&mut self, mode: Mode, moves: &[Move<'_>], rng: &mut Rng) {
        // A handle may contain any bytes before its first use.
        let mut handles = vec![Hdl([rng.next() as c_int; 2]); moves.len() + 1];
        let first = handles.as_mut_ptr();
        let handle = |i: usize| first.wrapping_add(i);
        if mode == Mode::Aggregate {
            // SAFETY: the handle lives until the end of this call.
            unsafe {
                ARMCI_INIT_HANDLE(first);
                ARMCI_SET_AGGREGATE_HANDLE(first);
            }
        }
        for (i, it) in moves.iter().enumerate() {
            let hdl = match mode {
                Mode::Blocking => None,
                Mode::Handle => Some(handle(i)),
                Mode::Implicit => Some(null_mut()),
                Mode::Aggregate => Some(first),
            };
            // SAFETY: the caller guarantees the addresses, and the handles live until the waits.
            unsafe { self.issue(it, hdl, rng) };
        }
        let mut order: Vec<usize> = (0..moves.len()).collect();
        rng.shuffle(&mut order);
        // SAFETY: the handles live until the end of this call.
        unsafe {
            match mode {
                Mode::Blocking => {}
                Mode::Handle => {
                    for i in order {
                        let mut pending = true;
                        while pending && rng.one_in(2) {
                            Self::pause();
                            pending = ARMCI_Test(handle(i)) == 1;
                        }
                        if pending || rng.one_in(2) {
                            ok(ARMCI_Wait(handle(i)));
                        }
                        ok(ARMCI_Test(handle(i)));
                    }
                }
                Mode::Implicit if rng.one_in(2) => ok(ARMCI_WaitAll()),
                Mode::Implicit => {
                    order.iter().for_each(|&i| ok(ARMCI_WaitProc(moves[i].item.target as c_int)));
                }
                Mode::Aggregate => {
                    ok(ARMCI_Wait(first));
                    ARMCI_UNSET_AGGREGATE_HANDLE(first);
                }
            }
        }
    }

    fn nothing(&mut self, target: usize) {
        let (no, proc, mut hdl) = (null_mut(), target as c_int, Hdl([-1; 2]));
        let mut empty = Giov { src: null(), dst: null(), bytes: 8, len: 0 };
        let (strides, counts) = ([16, 32], [[0, 2, 2], [8, 0, 2], [8, 2, 0]]);
        // SAFETY: the calls move no bytes.
        unsafe {
            ok(ARMCI_Put(no, no, 0, proc));
            ok(ARMCI_Get(no, no, 0, proc));
            ok(ARMCI_NbPut(no, no, 0, proc, &mut hdl));
            ok(ARMCI_Test(&mut hdl));
            ok(ARMCI_NbGet(no, no, 0, proc, no.cast()));
            ok(ARMCI_PutV(null_mut(), 0, proc));
            ok(ARMCI_GetV(&mut empty, 1, proc));
            ok(ARMCI_NbPutV(&mut empty, 1, proc, &mut hdl));
            ok(ARMCI_Wait(&mut hdl));
            for count in counts {
                let (s, c) = (strides.as_ptr(), count.as_ptr());
                ok(ARMCI_PutS(no, s, no, s, c, 2, proc));
                ok(ARMCI_GetS(no, s, no, s, c, 2, proc));
            }
            ok(ARMCI_WaitAll());
        }
    }

    fn word(&mut self, word: &Word, remote: usize) -> i64 {
        const GUARD: u64 = 0x5a5a_5a5a_5a5a_5a5a;
        let bytes = word.bytes();
        // The number lies between bytes that must not change.
        let mut local = [GUARD; 3];
        let place: &mut [u8] = &mut bytemuck::bytes_of_mut(&mut local)[8..8 + bytes];
        place.copy_from_slice(&word.value.to_ne_bytes()[..bytes]);
        let op = c_int::from(word.op == Combine::Swap) * 2 + c_int::from(word.wide);
        let add = if word.op == Combine::Add { word.value as c_int } else { 77 };
        let ploc = place.as_mut_ptr().cast();
        // SAFETY: `ploc` has a number of the type.
        ok(unsafe { ARMCI_Rmw(op, ploc, at(remote), add, word.target as c_int) });
        let old = local[1] as i64;
        assert_eq!([local[0], local[2]], [GUARD; 2], "the bytes beside a number");
        if word.wide {
            return old;
        }
        assert_eq!(local[1] >> 32, GUARD >> 32, "the bytes behind an int");
        (old as i32).into()
    }

    fn meet(&mut self, rng: &mut Rng) {
        // SAFETY: ARMCI is initialised.
        unsafe {
            match rng.below(3) {
                0 => return ARMCI_Barrier(),
                1 => ARMCI_AllFence(),
                _ => (0..self.engine.size()).for_each(|rank| ARMCI_Fence(rank as c_int)),
            }
            // MPI's own barrier completes nothing of the library.
            match rng.below(2) {
                0 => armci_msg_barrier(),
                _ => super::mpi_barrier(&self.engine),
            }
        }
    }

    fn hand_over(&mut self, to: usize, remote: usize, bytes: &[u8]) {
        let (src, dst, proc) = (bytes.as_ptr().cast_mut().cast(), at(remote), to as c_int);
        let flag = at(self.flags.part(to).address() + 4 * self.engine.rank());
        self.sent[to] += 1;
        let (number, n) = (self.sent[to] as c_int, bytes.len() as c_int);
        let (mut apart, row) = rows(bytes);
        let row = row as c_int;
        let (rows, gaps, stride) = ([row, 4], [row + 3], [row]);
        let mut hdl = Hdl([-1; 2]);
        // SAFETY: `bytes` outlives the calls, and the shape is that of `bytes`.
        unsafe {
            match number % 4 {
                0 if number % 8 == 0 => ok(ARMCI_Put_flag(src, dst, n, flag, number, proc)),
                0 => {
                    ok(ARMCI_Put(src, dst, n, proc));
                    ARMCI_Fence(proc);
                    ok(ARMCI_Put_flag(null_mut(), null_mut(), 0, flag, number, proc));
                }
                1 => {
                    let (s, d, c) = (gaps.as_ptr(), stride.as_ptr(), rows.as_ptr());
                    let src = apart.as_mut_ptr().cast();
                    ok(ARMCI_PutS_flag(src, s, dst, d, c, 1, flag, number, proc));
                }
                _ => {
                    ok(ARMCI_NbPut(src, dst, n, proc, &mut hdl));
                    ok(ARMCI_Wait(&mut hdl));
                    self.notified[to] += 1;
                    assert_eq!(armci_notify(proc), self.notified[to], "armci_notify");
                }
            }
        }
    }

    fn receive(&mut self, from: usize) {
        self.received[from] += 1;
        let number = self.received[from];
        if number % 4 >= 2 {
            let (mut waited, want) = (-1, number / 4 * 2 + number % 4 - 1);
            // SAFETY: `waited` is an int.
            let came = unsafe { armci_notify_wait(from as c_int, &mut waited) };
            assert_eq!(waited as usize, want, "notifications waited for");
            assert!(came >= waited, "{came} notifications came, but {waited} were waited for");
            return;
        }
        let flag: *const c_int = (&raw const own(&self.flags)[4 * from]).cast();
        // SAFETY: the flag is mapped and aligned. Another rank sets it, so the read is volatile.
        while (unsafe { flag.read_volatile() } as usize) < number {
            Self::pause();
        }
        std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
    }

    fn lock(&mut self, number: usize, home: usize) {
        let (mutex, proc) = (number as c_int % 2, home as c_int);
        // SAFETY: ARMCI is initialised and has these mutexes.
        unsafe {
            match number {
                0 | 1 => ARMCI_Lock(mutex, proc),
                2 => ARMCIX_Lock_hdl(self.mutexes, mutex, proc),
                _ => {
                    while ARMCIX_Trylock_hdl(self.mutexes, mutex, proc) != 0 {
                        Self::pause();
                    }
                }
            }
        }
    }

    fn unlock(&mut self, number: usize, home: usize) {
        let (mutex, proc) = (number as c_int % 2, home as c_int);
        // SAFETY: ARMCI is initialised, and the caller has the mutex.
        unsafe {
            ARMCI_AllFence();
            match number {
                0 | 1 => ARMCI_Unlock(mutex, proc),
                _ => ARMCIX_Unlock_hdl(self.mutexes, mutex, proc),
            }
        }
    }

    fn end(&mut self) {
        // SAFETY: ARMCI is initialised, and no call is under way.
        unsafe {
            ok(ARMCIX_Destroy_mutexes_hdl(self.mutexes));
            ok(ARMCI_Destroy_mutexes());
            ok(ARMCI_Finalize());
        }
        self.engine.release(self.flags.clone()).expect("release");
    }
}
