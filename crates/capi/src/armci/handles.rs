//! Non-blocking handles.
//!
//! `armci_hdl_t` is eight bytes that the caller owns: a mark, a kind, and a number in a table
//! ([`Handles`]). Any other contents are an idle handle, which counts as complete. So does a handle
//! that was waited for, because its number is not used again for a long time.
//!
//! A transfer that is complete when it is issued needs no slot, and the handle stays idle. A call
//! on a plain handle in use first completes its earlier transfers ([`prepare`]).

use super::types::{self, ArmciHandle};
use crate::boundary::{code, export, guard, or_abort, reported};
use parking_lot::Mutex;
use portolan_base::error::{Result, fail};
use portolan_base::handles::Handles;
use portolan_base::layout::{Shape, Vector};
use portolan_engine::runtime::{Engine, current};
use portolan_engine::transfer::{Handle, Transfer, TransferKind};
use std::os::raw::c_int;
use std::sync::Arc;

/// The upper half of `aggregate`. The lower half has the kind and the upper bits of the number.
const MARK: u32 = 0x504f;
const KIND_SHIFT: u32 = 13;
const PLAIN: u32 = 1;
const AGGREGATE: u32 = 2;
/// Aggregate handles that have collected puts, gets or accumulates since their last wait.
const AGGREGATE_PUT: u32 = 3;
const AGGREGATE_GET: u32 = 4;
const AGGREGATE_ACC: u32 = 5;

/// `target` has the lower 32 bits of a number, and `aggregate` 13 more, below the kind.
type HandleTable = Handles<Arc<Mutex<Handle>>, 20, { 12 + KIND_SHIFT }>;

static TABLE: Mutex<HandleTable> = Mutex::new(HandleTable::new());

fn encoded(kind: u32, number: u64) -> ArmciHandle {
    let high = (number >> 32) as u32;
    let aggregate = (MARK << 16 | kind << KIND_SHIFT | high) as c_int;
    ArmciHandle { target: number as c_int, aggregate }
}

fn number_of(hdl: &ArmciHandle) -> u64 {
    let high = hdl.aggregate as u32 & ((1 << KIND_SHIFT) - 1);
    u64::from(high) << 32 | u64::from(hdl.target as u32)
}

/// Whether the bytes of a handle have the mark of this module. The handle may still be idle.
#[inline]
fn is_marked(hdl: &ArmciHandle) -> bool {
    hdl.aggregate as u32 >> 16 == MARK
}

/// Returns the kind of a handle, which may still be idle, or `None` without the mark.
fn kind_of(hdl: &ArmciHandle) -> Option<u32> {
    let kind = hdl.aggregate as u32 >> KIND_SHIFT & 7;
    (is_marked(hdl) && (PLAIN..=AGGREGATE_ACC).contains(&kind)).then_some(kind)
}

fn set_kind(hdl: &mut ArmciHandle, kind: u32) {
    let others = hdl.aggregate as u32 & !(7 << KIND_SHIFT);
    hdl.aggregate = (others | kind << KIND_SHIFT) as c_int;
}

enum Found {
    /// Never used, or already waited for.
    Idle,
    /// In use, with its kind and the entry in the table.
    Live(u32, Arc<Mutex<Handle>>),
}

fn insert(table: &mut HandleTable, kind: u32, handle: Handle) -> Result<ArmciHandle> {
    if table.is_full() {
        fail!(Handle, "{} handles are in use and were never waited for", HandleTable::MOST);
    }
    Ok(encoded(kind, table.insert(Arc::new(Mutex::new(handle)))))
}

fn find(table: &HandleTable, hdl: &ArmciHandle) -> Found {
    let live = kind_of(hdl).and_then(|kind| Some((kind, table.get(number_of(hdl))?.clone())));
    live.map_or(Found::Idle, |(kind, handle)| Found::Live(kind, handle))
}

pub(super) fn clear() {
    drop(TABLE.lock().drain());
}

/// Returns the state of a handle. Takes no lock for one that is idle in most programs.
#[inline]
fn state_of(hdl: &ArmciHandle) -> Found {
    if is_marked(hdl) { find(&TABLE.lock(), hdl) } else { Found::Idle }
}

/// Removes a handle in use from the table.
fn remove(hdl: &mut ArmciHandle) {
    let removed = TABLE.lock().remove(number_of(hdl));
    drop(removed); // outside the lock
    *hdl = IDLE;
}

const IDLE: ArmciHandle = ArmciHandle { target: 0, aggregate: 0 };

/// Prepares a handle for a transfer: a plain handle in use completes its earlier transfers, and
/// stale bytes become idle. Fails with `Handle` if the handle has collected transfers of another
/// kind, and with the error of the earlier transfers.
fn prepare(engine: &Engine, hdl: &mut ArmciHandle, kind: TransferKind) -> Result<()> {
    let found = state_of(hdl);
    match found {
        Found::Live(PLAIN, earlier) => {
            let mut earlier = earlier.lock();
            let result = earlier.wait(engine);
            done_with(hdl, &earlier);
            result
        }
        Found::Live(AGGREGATE, _) => Ok(()),
        Found::Live(collected, _) if collected == collecting(kind) => Ok(()),
        Found::Live(..) => fail!(
            Handle,
            "puts, gets or accumulates are mixed on one aggregate handle; wait for it in between"
        ),
        Found::Idle => {
            *hdl = IDLE;
            Ok(())
        }
    }
}

/// Records that an aggregate handle in use has got a transfer of this kind.
fn collected(hdl: &mut ArmciHandle, kind: TransferKind) {
    if kind_of(hdl) == Some(AGGREGATE) {
        set_kind(hdl, collecting(kind));
    }
}

fn collecting(kind: TransferKind) -> u32 {
    match kind {
        TransferKind::Put => AGGREGATE_PUT,
        TransferKind::Get => AGGREGATE_GET,
        TransferKind::Accumulate(_) => AGGREGATE_ACC,
    }
}

/// Runs `body` on the handle behind the caller's eight bytes. If they are idle, `body` gets a new
/// handle, which enters the table only if it is then pending or aggregate.
///
/// # Safety
/// `hdl` must be valid for reads and writes.
unsafe fn with(hdl: *mut ArmciHandle, body: impl FnOnce(&mut Handle) -> Result<()>) -> Result<()> {
    // SAFETY: the caller guarantees that `hdl` is valid for reads and writes.
    let hdl = unsafe { &mut *hdl };
    let found = state_of(hdl);
    match found {
        Found::Live(_, handle) => body(&mut handle.lock()),
        Found::Idle => {
            let mut handle = Handle::default();
            let result = body(&mut handle);
            *hdl = if handle.is_pending() || handle.is_aggregate() {
                let kind = if handle.is_aggregate() { AGGREGATE } else { PLAIN };
                insert(&mut TABLE.lock(), kind, handle)?
            } else {
                IDLE
            };
            result
        }
    }
}

/// The transfers have `bytes` bytes in all.
///
/// # Safety
/// `hdl` must be valid for reads and writes.
unsafe fn transfers(
    engine: &Engine,
    hdl: *mut ArmciHandle,
    kind: TransferKind,
    bytes: usize,
    body: impl FnOnce(&mut Handle) -> Result<()>,
) -> Result<()> {
    // SAFETY: the caller guarantees that `hdl` is valid for reads and writes.
    unsafe {
        prepare(engine, &mut *hdl, kind)?;
        with(hdl, body)?;
        if bytes > 0 {
            collected(&mut *hdl, kind);
        }
    }
    Ok(())
}

/// Issues a transfer on a handle, or an implicit one if `hdl` is null.
///
/// # Safety
/// The contract of [`Handle::issue`] applies, and `hdl` must be null or valid.
pub(super) unsafe fn issue(
    engine: &Engine,
    hdl: *mut ArmciHandle,
    transfer: &Transfer<'_>,
) -> Result<()> {
    // SAFETY: the caller upholds the contract of `Handle::issue`, and `hdl` is null or valid.
    unsafe {
        if hdl.is_null() {
            return engine.implicit(transfer);
        }
        transfers(engine, hdl, transfer.kind, transfer.shape.bytes(), |handle| {
            handle.issue(engine, transfer)
        })
    }
}

/// # Safety
/// The contract of [`issue`] applies.
#[inline(always)]
pub(super) unsafe fn contiguous(
    engine: &Engine,
    hdl: *mut ArmciHandle,
    kind: &TransferKind,
    target: usize,
    remote: usize,
    local: *mut u8,
    bytes: usize,
) -> Result<()> {
    // SAFETY: the caller upholds the contract of `issue`.
    unsafe {
        // A handle that collects transfers of this kind already needs no preparation.
        let prepares =
            !hdl.is_null() && is_marked(&*hdl) && kind_of(&*hdl) != Some(collecting(*kind));
        // An observed call is recorded when it is issued, so it must not take this shortcut.
        if !prepares
            && !engine.is_observed()
            && engine.try_direct(kind, target, remote, local, bytes)?
        {
            return Ok(());
        }
        let shape = &Shape::contiguous(bytes);
        issue(engine, hdl, &Transfer { kind: *kind, target, remote, local, shape })
    }
}

/// Puts a value. The handle keeps a copy. If `hdl` is null, the put is blocking.
///
/// # Safety
/// `hdl` must be valid or null.
pub(super) unsafe fn value(
    engine: &Engine,
    hdl: *mut ArmciHandle,
    target: usize,
    remote: usize,
    bytes: &[u8],
) -> Result<()> {
    if hdl.is_null() {
        // SAFETY: the bytes are borrowed for the call, and a blocking put is then done with them.
        return unsafe { engine.put(target, remote, bytes.as_ptr(), bytes.len()) };
    }
    // SAFETY: the caller guarantees that `hdl` is valid, and it is not null.
    unsafe {
        transfers(engine, hdl, TransferKind::Put, bytes.len(), |handle| {
            handle.put_value(engine, target, remote, bytes)
        })
    }
}

/// Issues vector transfers on a handle, or implicit ones if `hdl` is null.
///
/// # Safety
/// The local blocks must satisfy the contract of [`issue`], and `hdl` must be null or valid.
pub(super) unsafe fn vectors(
    engine: &Engine,
    hdl: *mut ArmciHandle,
    kind: TransferKind,
    target: usize,
    list: &[Vector<'_>],
) -> Result<()> {
    // SAFETY: by contract, the local blocks are valid until completion, and `hdl` is null or valid.
    unsafe {
        if hdl.is_null() {
            return engine.implicit_vectors(kind, target, list);
        }
        let bytes = list.iter().map(|set| set.local.len() * set.block).sum();
        transfers(engine, hdl, kind, bytes, |handle| {
            handle.issue_vectors(engine, kind, target, list)
        })
    }
}

fn not_null(hdl: *mut ArmciHandle) -> Result<()> {
    if hdl.is_null() {
        fail!(Handle, "the handle is null");
    }
    Ok(())
}

export! {
    ARMCI_Wait / PARMCI_Wait(hdl: *mut ArmciHandle) -> c_int = code(|engine| {
        not_null(hdl)?;
        // SAFETY: the caller guarantees that the handle is valid, and it is not null.
        let hdl = unsafe { &mut *hdl };
        let found = state_of(hdl);
        let Found::Live(_, handle) = found else {
            return Ok(());
        };
        let mut handle = handle.lock();
        let result = handle.wait(engine);
        done_with(hdl, &handle);
        result
    });

    ARMCI_Test / PARMCI_Test(
        hdl: *mut ArmciHandle,
    ) -> c_int = guard(|error| reported(error).max(2), || {
        let engine = current()?;
        not_null(hdl)?;
        // SAFETY: the caller guarantees that the handle is valid, and it is not null.
        let hdl = unsafe { &mut *hdl };
        let found = state_of(hdl);
        let Found::Live(_, handle) = found else {
            return Ok(0);
        };
        let mut handle = handle.lock();
        let done = handle.test(engine);
        if !matches!(done, Ok(false)) {
            done_with(hdl, &handle);
        }
        Ok(if done? { 0 } else { 1 })
    });
}

/// After a wait, a plain handle leaves the table, and an aggregate one becomes empty.
fn done_with(hdl: &mut ArmciHandle, handle: &Handle) {
    if handle.is_aggregate() {
        set_kind(hdl, AGGREGATE);
    } else {
        remove(hdl);
    }
}

export! {
    ARMCI_WaitProc / PARMCI_WaitProc(proc: c_int) -> c_int =
        code(|engine| engine.wait_implicit_to(types::rank(proc)?));

    ARMCI_WaitAll / PARMCI_WaitAll() -> c_int = code(|engine| engine.wait_implicit());

    ARMCI_INIT_HANDLE(hdl: *mut ArmciHandle) {
        if !hdl.is_null() {
            // SAFETY: the caller guarantees that `hdl` is valid for writes, and it is not null.
            unsafe { *hdl = IDLE };
        }
    }

    ARMCI_SET_AGGREGATE_HANDLE(handle: *mut ArmciHandle) = or_abort(|_| {
        not_null(handle)?;
        // SAFETY: the caller guarantees that the handle is valid, and it is not null.
        unsafe {
            with(handle, Handle::set_aggregate)?;
            if kind_of(&*handle).is_none_or(|kind| kind == PLAIN) {
                set_kind(&mut *handle, AGGREGATE);
            }
        }
        Ok(())
    });

    ARMCI_UNSET_AGGREGATE_HANDLE(handle: *mut ArmciHandle) = or_abort(|engine| {
        not_null(handle)?;
        // SAFETY: the caller guarantees that the handle is valid, and it is not null.
        let hdl = unsafe { &mut *handle };
        let found = state_of(hdl);
        let Found::Live(_, live) = found else {
            return Ok(());
        };
        let mut live = live.lock();
        live.unset_aggregate(engine)?;
        if live.is_pending() {
            set_kind(hdl, PLAIN);
        } else {
            remove(hdl);
        }
        Ok(())
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn garbage_and_stale_copies_are_idle() {
        let mut table = HandleTable::new();
        let is_idle = |table: &HandleTable, hdl| matches!(find(table, &hdl), Found::Idle);
        for bits in [0, -1, 0x5a5a_5a5a, 12345, 0x504f_2001] {
            assert!(is_idle(&table, ArmciHandle { target: bits, aggregate: bits }));
        }
        let mut last = IDLE;
        // More often than `target` alone has generations.
        for n in 0..3 << 12 {
            let mut hdl = insert(&mut table, PLAIN, Handle::default()).unwrap();
            assert!(matches!(find(&table, &hdl), Found::Live(PLAIN, _)), "{n}");
            assert_ne!((hdl.target, hdl.aggregate), (last.target, last.aggregate));
            assert!(is_idle(&table, last));
            set_kind(&mut hdl, AGGREGATE_ACC);
            assert!(matches!(find(&table, &hdl), Found::Live(AGGREGATE_ACC, _)));
            assert!(table.remove(number_of(&hdl)).is_some());
            assert!(is_idle(&table, hdl));
            last = hdl;
        }
        assert!(is_idle(&table, encoded(PLAIN, 77)));
    }
}
