//! Fences, barrier, read-modify-write and mutexes.

use super::group_table;
use super::types::{self, ArmciGroup, ArmcixMutexes};
use crate::boundary::{code, export, guard, or_abort, reported};
use parking_lot::Mutex;
use portolan_base::error::{Error, ErrorKind, Result, fail};
use portolan_base::sync::brlock::BrLock;
use portolan_base::wait::Progress;
use portolan_engine::atomics::Rmw;
use portolan_engine::atomics::mutex::MutexSet;
use portolan_engine::runtime::current;
use std::collections::HashMap;
use std::os::raw::{c_int, c_void};
use std::sync::{Arc, LazyLock};

export! {
    ARMCI_Fence / PARMCI_Fence(proc: c_int) = or_abort(|engine| engine.fence(types::rank(proc)?));

    ARMCI_AllFence / PARMCI_AllFence() = or_abort(|engine| engine.fence_all());

    ARMCI_Barrier / PARMCI_Barrier() = or_abort(|engine| engine.barrier_of(engine.world()));

    ARMCIX_Progress() = or_abort(|engine| engine.poll().map(drop));

    /// `ARMCI_SWAP` swaps in `*ploc`.
    ARMCI_Rmw / PARMCI_Rmw(
        op: c_int, ploc: *mut c_void, prem: *mut c_void, value: c_int, proc: c_int,
    ) -> c_int = code(|engine| {
        if ploc.is_null() {
            fail!(Argument, "the local address is null");
        }
        // SAFETY: by contract, `ploc` is valid for a number of the type. It may be unaligned.
        unsafe {
            let op = match op {
                0 => Rmw::add(value),
                1 => Rmw::add(i64::from(value)),
                2 => Rmw::swap(ploc.cast::<i32>().read_unaligned()),
                3 => Rmw::swap(ploc.cast::<i64>().read_unaligned()),
                _ => fail!(Type, "operation {op} is none of ARMCI_FETCH_AND_ADD to ARMCI_SWAP_LONG"),
            };
            let old = engine.rmw(types::rank(proc)?, prem as usize, op)?;
            match op.size() {
                4 => ploc.cast::<i32>().write_unaligned(old as i32),
                _ => ploc.cast::<i64>().write_unaligned(old),
            }
        }
        Ok(())
    });
}

/// The set of `ARMCI_Create_mutexes`. A `BrLock` is read without a locked instruction.
static SET: LazyLock<BrLock<Option<Arc<MutexSet>>>> = LazyLock::new(BrLock::default);
/// The sets of the C interface, keyed by the handle's address.
static HANDLES: Mutex<Option<HashMap<usize, Arc<MutexSet>>>> = Mutex::new(None);

pub(super) fn clear() {
    SET.change(Option::take);
    HANDLES.lock().take();
}

fn set() -> Result<Arc<MutexSet>> {
    SET.read().clone().ok_or_else(|| {
        Error::new(ErrorKind::State, "no mutexes exist; create them with ARMCI_Create_mutexes")
    })
}

fn number(count: c_int) -> Result<usize> {
    match usize::try_from(count) {
        Ok(count) => Ok(count),
        Err(_) => fail!(Argument, "a count of {count} mutexes is negative"),
    }
}

fn index(mutex: c_int) -> Result<usize> {
    match usize::try_from(mutex) {
        Ok(index) => Ok(index),
        Err(_) => fail!(Argument, "mutex {mutex} is negative"),
    }
}

export! {
    ARMCI_Create_mutexes / PARMCI_Create_mutexes(count: c_int) -> c_int = code(|engine| {
        if SET.read().is_some() {
            fail!(State, "mutexes exist already; destroy them first");
        }
        let made = engine.create_mutexes(engine.world(), number(count))?;
        SET.change(|set| *set = Some(made));
        Ok(())
    });

    ARMCI_Destroy_mutexes / PARMCI_Destroy_mutexes() -> c_int = code(|engine| {
        let set = set()?;
        SET.change(Option::take);
        engine.destroy_mutexes(&set)
    });

    ARMCI_Lock / PARMCI_Lock(mutex: c_int, proc: c_int) =
        or_abort(|engine| engine.lock(&*set()?, index(mutex)?, types::rank(proc)?));

    ARMCI_Unlock / PARMCI_Unlock(mutex: c_int, proc: c_int) =
        or_abort(|engine| engine.unlock(&*set()?, index(mutex)?, types::rank(proc)?));
}

fn no_handle(hdl: *mut ArmcixMutexes) -> Error {
    Error::new(ErrorKind::Handle, format!("{hdl:p} is not a handle of live mutexes"))
}

fn by_handle(hdl: *mut ArmcixMutexes) -> Result<Arc<MutexSet>> {
    let found = HANDLES.lock().as_ref().and_then(|h| h.get(&(hdl as usize)).cloned());
    found.ok_or_else(|| no_handle(hdl))
}

/// Removes a handle, so that only one of several concurrent callers gets its set.
fn take_handle(hdl: *mut ArmcixMutexes) -> Result<Arc<MutexSet>> {
    let found = HANDLES.lock().as_mut().and_then(|h| h.remove(&(hdl as usize)));
    found.ok_or_else(|| no_handle(hdl))
}

export! {
    ARMCIX_Create_mutexes_hdl(count: c_int, pgroup: *mut ArmciGroup) -> *mut ArmcixMutexes {
        let failed = |error: &Error| {
            reported(error);
            std::ptr::null_mut()
        };
        guard("ARMCIX_Create_mutexes_hdl", failed, || {
            let engine = current()?;
            // SAFETY: the caller guarantees that `pgroup` is valid.
            let (group, grp) = unsafe { (group_table::find(engine, pgroup)?, *pgroup) };
            let set = engine.create_mutexes(&group, number(count))?;
            let most = set.counts().iter().max().copied().unwrap_or(0);
            let hdl = Box::into_raw(Box::new(ArmcixMutexes {
                my_count: count as c_int,
                max_count: most as c_int,
                grp,
                windows: std::ptr::null_mut(),
                bases: std::ptr::null_mut(),
            }));
            HANDLES.lock().get_or_insert_default().insert(hdl as usize, set);
            Ok(hdl)
        })
    }

    /// `hdl` must be a handle of `ARMCIX_Create_mutexes_hdl`.
    ARMCIX_Destroy_mutexes_hdl(hdl: *mut ArmcixMutexes) -> c_int = code(|engine| {
        let set = take_handle(hdl)?;
        // SAFETY: the handle was in the table, so it is a box from `ARMCIX_Create_mutexes_hdl`.
        // Only this thread has removed it from the table.
        drop(unsafe { Box::from_raw(hdl) });
        engine.destroy_mutexes(&set)
    });
}

/// Translates a world rank to a rank of the set's group. Fails if it is not a member.
fn member(set: &MutexSet, proc: c_int) -> Result<usize> {
    match set.group().rank_of(types::rank(proc)?) {
        Some(rank) => Ok(rank),
        None => fail!(Rank, "rank {proc} is not in the group of the mutexes"),
    }
}

export! {
    ARMCIX_Lock_hdl(hdl: *mut ArmcixMutexes, mutex: c_int, proc: c_int) = or_abort(|engine| {
        let set = by_handle(hdl)?;
        engine.lock(&set, index(mutex)?, member(&set, proc)?)
    });

    ARMCIX_Trylock_hdl(
        hdl: *mut ArmcixMutexes, mutex: c_int, proc: c_int,
    ) -> c_int = guard(|error| -reported(error), || {
        let engine = current()?;
        let set = by_handle(hdl)?;
        let got = engine.try_lock(&set, index(mutex)?, member(&set, proc)?)?;
        Ok(if got { 0 } else { 1 })
    });

    ARMCIX_Unlock_hdl(hdl: *mut ArmcixMutexes, mutex: c_int, proc: c_int) = or_abort(|engine| {
        let set = by_handle(hdl)?;
        engine.unlock(&set, index(mutex)?, member(&set, proc)?)
    });

    /// Returns 1 if a rank is on the caller's node, else 0. An invalid rank is reported and yields
    /// 0.
    ARMCI_Same_node(proc: c_int) -> c_int {
        let no = |error: &Error| {
            reported(error);
            0
        };
        guard("ARMCI_Same_node", no, || {
            let engine = current()?;
            let rank = types::rank(proc)?;
            engine.check_rank(rank)?;
            Ok(c_int::from(engine.topology.same_node(engine.rank(), rank)))
        })
    }
}
