//! Non-blocking handles.
//!
//! `armci_hdl_t` is eight bytes that the caller owns. They hold a mark and a token. The mark
//! identifies a handle of this module and distinguishes plain from aggregate ones. The token is a
//! table index with a generation. Any other contents, including zeros and garbage, are a handle
//! that was never used; it counts as complete. If the slot has a later generation than the token,
//! the handle is a copy of one that was already waited for, which is an error.
//!
//! A transfer that is complete when it is issued, as on the direct path, needs no slot. The handle
//! then stays idle.

use super::twin;
use super::types::{self, ArmciHandle};
use crate::boundary::{code, guard, or_abort, reported};
use parking_lot::Mutex;
use portolan_engine::error::{Result, fail};
use portolan_engine::layout::{Shape, Vector};
use portolan_engine::runtime::{Engine, current};
use portolan_engine::transfer::{Handle, TransferKind};
use std::os::raw::c_int;
use std::sync::Arc;

const PLAIN: c_int = 0x504f_5201;
const AGGREGATE: c_int = 0x504f_5202;
/// Marks of an aggregate handle that has collected puts, gets or accumulates since its last wait.
const AGGREGATE_PUT: c_int = 0x504f_5203;
const AGGREGATE_GET: c_int = 0x504f_5204;
const AGGREGATE_ACC: c_int = 0x504f_5205;
const INDEX_BITS: u32 = 20;
const INDEX_MASK: u32 = (1 << INDEX_BITS) - 1;

#[derive(Debug)]
struct HandleSlot {
    generation: u32,
    handle: Option<Arc<Mutex<Handle>>>,
}

#[derive(Debug)]
struct HandleTable {
    slots: Vec<HandleSlot>,
    free: Vec<u32>,
}

static TABLE: Mutex<HandleTable> = Mutex::new(HandleTable { slots: Vec::new(), free: Vec::new() });

/// The state of the caller's eight bytes.
enum Found {
    /// Never used, or already waited for.
    Idle,
    /// In use, with an entry in the table.
    Live(Arc<Mutex<Handle>>),
}

impl HandleTable {
    fn insert(&mut self, handle: Handle) -> Result<u32> {
        let handle = Some(Arc::new(Mutex::new(handle)));
        if let Some(index) = self.free.pop() {
            let slot = &mut self.slots[index as usize];
            slot.handle = handle;
            return Ok(index | slot.generation << INDEX_BITS);
        }
        let index = self.slots.len() as u32;
        if index > INDEX_MASK {
            fail!(Handle, "{index} handles are in use and were never waited for");
        }
        self.slots.push(HandleSlot { generation: 1, handle });
        Ok(index | 1 << INDEX_BITS)
    }

    fn find(&self, hdl: &ArmciHandle) -> Result<Found> {
        if !(PLAIN..=AGGREGATE_ACC).contains(&hdl.aggregate) {
            return Ok(Found::Idle);
        }
        let token = hdl.target as u32;
        match self.slots.get((token & INDEX_MASK) as usize) {
            Some(slot) if slot.generation == token >> INDEX_BITS => match &slot.handle {
                Some(handle) => Ok(Found::Live(handle.clone())),
                None => Ok(Found::Idle),
            },
            Some(_) => fail!(Handle, "the handle is a copy of one that was waited for already"),
            None => fail!(Handle, "the handle is damaged: it names no transfer"),
        }
    }

    fn remove(&mut self, hdl: &ArmciHandle) {
        let index = hdl.target as u32 & INDEX_MASK;
        let slot = &mut self.slots[index as usize];
        slot.handle = None;
        slot.generation = (slot.generation + 1) & (u32::MAX >> INDEX_BITS);
        self.free.push(index);
    }
}

/// Invalidates all handles. Called at the end of the runtime.
pub(super) fn clear() {
    let mut table = TABLE.lock();
    for index in 0..table.slots.len() {
        let slot = &mut table.slots[index];
        if slot.handle.take().is_some() {
            slot.generation = (slot.generation + 1) & (u32::MAX >> INDEX_BITS);
            table.free.push(index as u32);
        }
    }
}

const IDLE: ArmciHandle = ArmciHandle { target: 0, aggregate: 0 };

/// Runs `body` on the handle behind the caller's eight bytes. If they are idle, `body` gets a new
/// handle, which enters the table only if it is then pending or aggregate.
///
/// # Safety
/// `hdl` must be valid for reads and writes.
unsafe fn with(hdl: *mut ArmciHandle, body: impl FnOnce(&mut Handle) -> Result<()>) -> Result<()> {
    // SAFETY: the caller guarantees that `hdl` is valid for reads and writes.
    let hdl = unsafe { &mut *hdl };
    let found = TABLE.lock().find(hdl)?;
    match found {
        Found::Live(handle) => body(&mut handle.lock()),
        Found::Idle => {
            let mut handle = Handle::default();
            let result = body(&mut handle);
            *hdl = if handle.is_pending() || handle.is_aggregate() {
                let mark = if handle.is_aggregate() { AGGREGATE } else { PLAIN };
                ArmciHandle { target: TABLE.lock().insert(handle)? as c_int, aggregate: mark }
            } else {
                IDLE
            };
            result
        }
    }
}

/// Issues a transfer on a handle, or an implicit one if `hdl` is null.
///
/// # Safety
/// The contract of [`Handle::issue`] applies, and `hdl` must be null or valid.
pub(super) unsafe fn issue(
    engine: &Engine,
    hdl: *mut ArmciHandle,
    kind: TransferKind,
    target: usize,
    remote: usize,
    local: *mut u8,
    shape: &Shape,
) -> Result<()> {
    // SAFETY: the caller upholds the contract of `Handle::issue`, and `hdl` is null or valid.
    unsafe {
        if hdl.is_null() {
            return engine.implicit(kind, target, remote, local, shape);
        }
        one_kind(&mut *hdl, kind)?;
        with(hdl, |handle| handle.issue(engine, kind, target, remote, local, shape))
    }
}

/// Like [`issue`], for contiguous bytes.
///
/// # Safety
/// The contract of [`issue`] applies.
#[inline(always)]
pub(super) unsafe fn contiguous(
    engine: &Engine,
    hdl: *mut ArmciHandle,
    kind: TransferKind,
    target: usize,
    remote: usize,
    local: *mut u8,
    bytes: usize,
) -> Result<()> {
    if !hdl.is_null() {
        // SAFETY: the caller guarantees that `hdl` is valid, and it is not null.
        one_kind(unsafe { &mut *hdl }, kind)?;
    }
    // SAFETY: the caller upholds the contract of `issue`.
    unsafe {
        // An observed call is recorded when it is issued, so it must not take this shortcut.
        if !engine.is_observed() && engine.try_direct(kind, target, remote, local, bytes)? {
            return Ok(());
        }
        issue(engine, hdl, kind, target, remote, local, &Shape::contiguous(bytes))
    }
}

/// Marks an aggregate handle with the kind of its transfers. Fails if the handle holds transfers of
/// another kind.
#[inline]
fn one_kind(hdl: &mut ArmciHandle, kind: TransferKind) -> Result<()> {
    if !(AGGREGATE..=AGGREGATE_ACC).contains(&hdl.aggregate) {
        return Ok(());
    }
    let mark = match kind {
        TransferKind::Put => AGGREGATE_PUT,
        TransferKind::Get => AGGREGATE_GET,
        TransferKind::Accumulate(_) => AGGREGATE_ACC,
    };
    if hdl.aggregate == AGGREGATE {
        hdl.aggregate = mark;
    } else if hdl.aggregate != mark {
        fail!(
            Handle,
            "puts, gets or accumulates are mixed on one aggregate handle; wait for it in between"
        );
    }
    Ok(())
}

/// Puts a value. The handle keeps a copy of it; if `hdl` is null, the put is blocking.
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
        // SAFETY: the bytes are borrowed for the call, and a blocking put is done with them on
        // return.
        return unsafe { engine.put(target, remote, bytes.as_ptr(), bytes.len()) };
    }
    // SAFETY: the caller guarantees that `hdl` is valid, and it is not null.
    unsafe {
        one_kind(&mut *hdl, TransferKind::Put)?;
        with(hdl, |handle| handle.put_value(engine, target, remote, bytes))
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
    // SAFETY: the caller guarantees that the local blocks stay valid until the transfers are
    // complete, and that `hdl` is null or valid.
    unsafe {
        if hdl.is_null() {
            return engine.implicit_vectors(kind, target, list);
        }
        one_kind(&mut *hdl, kind)?;
        with(hdl, |handle| handle.issue_vectors(engine, kind, target, list))
    }
}

fn not_null(hdl: *mut ArmciHandle) -> Result<()> {
    if hdl.is_null() {
        fail!(Handle, "the handle is null");
    }
    Ok(())
}

twin! {
    /// Waits for the transfers of a handle. The handle may then be reused.
    ARMCI_Wait / PARMCI_Wait(hdl: *mut ArmciHandle) -> c_int {
        code("ARMCI_Wait", |engine| {
            not_null(hdl)?;
            // SAFETY: the caller guarantees that the handle is valid, and it is not null.
            let hdl = unsafe { &mut *hdl };
            let found = TABLE.lock().find(hdl)?;
            let Found::Live(handle) = found else {
                return Ok(());
            };
            let mut handle = handle.lock();
            let result = handle.wait(engine);
            done_with(hdl, &handle);
            result
        })
    }
}

twin! {
    /// Returns 0 if the transfers of a handle are complete, 1 if not, or an error code of at least
    /// 2.
    ARMCI_Test / PARMCI_Test(hdl: *mut ArmciHandle) -> c_int {
        guard("ARMCI_Test", |error| reported(error).max(2), || {
            let engine = current()?;
            not_null(hdl)?;
            // SAFETY: the caller guarantees that the handle is valid, and it is not null.
            let hdl = unsafe { &mut *hdl };
            let found = TABLE.lock().find(hdl)?;
            let Found::Live(handle) = found else {
                return Ok(0);
            };
            let mut handle = handle.lock();
            let done = handle.test(engine);
            if !matches!(done, Ok(false)) {
                done_with(hdl, &handle);
            }
            Ok(if done? { 0 } else { 1 })
        })
    }
}

/// Updates the caller's handle after a wait: a plain handle leaves the table, and an aggregate
/// handle becomes empty.
fn done_with(hdl: &mut ArmciHandle, handle: &Handle) {
    if handle.is_aggregate() {
        hdl.aggregate = AGGREGATE;
    } else {
        TABLE.lock().remove(hdl);
        *hdl = IDLE;
    }
}

twin! {
    /// Waits for all transfers to one rank that were issued without a handle.
    ARMCI_WaitProc / PARMCI_WaitProc(proc: c_int) -> c_int {
        code("ARMCI_WaitProc", |engine| engine.wait_implicit_to(types::rank(proc)?))
    }
}

twin! {
    /// Waits for all transfers that were issued without a handle.
    ARMCI_WaitAll / PARMCI_WaitAll() -> c_int {
        code("ARMCI_WaitAll", |engine| engine.wait_implicit())
    }
}

/// Resets a handle to the state of one that was never used. Does nothing if `hdl` is null.
///
/// # Safety
/// `hdl` must be null or valid for writes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ARMCI_INIT_HANDLE(hdl: *mut ArmciHandle) {
    if !hdl.is_null() {
        // SAFETY: the caller guarantees that `hdl` is valid for writes, and it is not null.
        unsafe { *hdl = IDLE };
    }
}

/// Makes a handle aggregate: it collects transfers until it is waited for. Ends the job if
/// transfers of the handle are unfinished.
///
/// # Safety
/// `handle` must be valid for reads and writes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ARMCI_SET_AGGREGATE_HANDLE(handle: *mut ArmciHandle) {
    or_abort("ARMCI_SET_AGGREGATE_HANDLE", |_| {
        not_null(handle)?;
        // SAFETY: the caller guarantees that the handle is valid, and it is not null.
        unsafe {
            with(handle, Handle::set_aggregate)?;
            (*handle).aggregate = AGGREGATE;
        }
        Ok(())
    });
}

/// Makes an aggregate handle an ordinary one and issues the transfers that it has collected.
///
/// # Safety
/// `handle` must be valid for reads and writes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ARMCI_UNSET_AGGREGATE_HANDLE(handle: *mut ArmciHandle) {
    or_abort("ARMCI_UNSET_AGGREGATE_HANDLE", |engine| {
        not_null(handle)?;
        // SAFETY: the caller guarantees that the handle is valid, and it is not null.
        let hdl = unsafe { &mut *handle };
        let found = TABLE.lock().find(hdl)?;
        let Found::Live(live) = found else {
            return Ok(());
        };
        let mut live = live.lock();
        live.unset_aggregate(engine)?;
        if live.is_pending() {
            hdl.aggregate = PLAIN;
        } else {
            TABLE.lock().remove(hdl);
            *hdl = IDLE;
        }
        Ok(())
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use portolan_engine::error::{Error, ErrorKind};

    #[test]
    fn garbage_is_idle_and_stale_copies_are_errors() {
        let mut table = HandleTable { slots: Vec::new(), free: Vec::new() };
        for bits in [0, -1, 0x5a5a_5a5a, 12345] {
            let garbage = ArmciHandle { target: bits, aggregate: bits };
            assert!(matches!(table.find(&garbage), Ok(Found::Idle)));
        }
        let token = table.insert(Handle::default()).unwrap();
        let hdl = ArmciHandle { target: token as c_int, aggregate: PLAIN };
        assert!(matches!(table.find(&hdl), Ok(Found::Live(_))));
        table.remove(&hdl);
        assert_eq!(table.find(&hdl).err().map(|e: Error| e.kind()), Some(ErrorKind::Handle));
        let again = table.insert(Handle::default()).unwrap();
        assert_ne!(again, token);
        let damaged = ArmciHandle { target: 77, aggregate: PLAIN };
        assert!(table.find(&damaged).is_err());
    }
}
