//! The groups of this rank, by communicator. Callers own an `ARMCI_Group` and may copy it. Its
//! communicator is the key to the group here.

use super::scopes::Scope;
use super::types::ArmciGroup;
use parking_lot::Mutex;
use portolan_base::error::{Result, fail};
use portolan_engine::collective::{self, group::Group};
use portolan_engine::mpi::{Comm, CommHandle, Request, p2p};
use portolan_engine::runtime::{Engine, current_arc};
use std::collections::HashMap;
use std::os::raw::c_int;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Groups {
    pub by_comm: HashMap<usize, Arc<Group>>,
    pub world: ArmciGroup,
    pub default: ArmciGroup,
    pub scoped: HashMap<(u64, Scope), Option<Arc<Group>>>,
    messages: Arc<Comm>,
    /// Messages from this rank to itself that have not been received yet.
    to_self: Vec<(Request, Box<[u8]>)>,
}

// SAFETY: the raw pointers in an `ArmciGroup` are arrays that only this module and C use.
unsafe impl Send for Groups {}

pub(super) static GROUPS: Mutex<Option<Groups>> = Mutex::new(None);

/// Returns a communicator handle as a number, for the handle type of any MPI.
pub(super) fn key(comm: CommHandle) -> usize {
    let mut bytes = [0u8; 8];
    let raw = std::ptr::from_ref(&comm).cast::<u8>();
    let n = std::mem::size_of::<CommHandle>();
    // SAFETY: a handle is an int or a pointer, so it has at most eight bytes.
    unsafe { std::ptr::copy_nonoverlapping(raw, bytes.as_mut_ptr(), n) };
    usize::from_ne_bytes(bytes)
}

/// Returns a `malloc`ed copy of the values, or null without memory. [`free_arrays`] frees it.
fn c_array(values: impl ExactSizeIterator<Item = c_int>) -> *mut c_int {
    let values: Box<[c_int]> = values.collect();
    // SAFETY: the array has room for all values, and the copy runs only if it is not null.
    unsafe {
        let array = libc::malloc((values.len().max(1)) * 4).cast::<c_int>();
        if !array.is_null() {
            std::ptr::copy_nonoverlapping(values.as_ptr(), array, values.len());
        }
        array
    }
}

fn describe(engine: &Engine, group: &Group) -> Result<ArmciGroup> {
    let all = 0..engine.size();
    Ok(ArmciGroup {
        comm: group.comm_handle()?,
        noncoll_pgroup_comm: Comm::null_handle(),
        grp_to_abs: c_array(group.members().iter().map(|&w| w as c_int)),
        abs_to_grp: c_array(all.map(|w| group.rank_of(w).map_or(-1, |r| r as c_int))),
        rank: group.rank() as c_int,
        size: group.size() as c_int,
    })
}

fn nobody() -> ArmciGroup {
    ArmciGroup {
        comm: Comm::null_handle(),
        noncoll_pgroup_comm: Comm::null_handle(),
        grp_to_abs: std::ptr::null_mut(),
        abs_to_grp: std::ptr::null_mut(),
        rank: -1,
        size: 0,
    }
}

/// The value of `rank` in the structure of a freed group. On ranks outside a group it is -1.
pub(super) const FREED: c_int = -2;

pub(super) fn free_arrays(group: &mut ArmciGroup) {
    // SAFETY: the arrays come from `c_array` or are null.
    unsafe {
        libc::free(group.grp_to_abs.cast());
        libc::free(group.abs_to_grp.cast());
    }
    *group = ArmciGroup { rank: FREED, ..nobody() };
}

/// Registers the world group. Collective, after the engine has started.
pub(super) fn start() -> Result<()> {
    let engine = current_arc()?;
    let world = engine.world().clone();
    let described = describe(&engine, &world)?;
    let messages = Arc::new(collective::dup(&*world.comm()?)?);
    let by_comm = HashMap::from([(key(described.comm), world)]);
    *GROUPS.lock() = Some(Groups {
        by_comm,
        world: described,
        default: described,
        scoped: HashMap::new(),
        messages,
        to_self: Vec::new(),
    });
    Ok(())
}

/// Collective, before the engine stops.
pub(super) fn stop() -> Result<()> {
    let Some(mut groups) = GROUPS.lock().take() else {
        return Ok(());
    };
    free_arrays(&mut groups.world);
    // MPI may need the copies in `to_self` until the messages are gone.
    groups.messages.free()
}

/// Like [`stop`], after MPI has been finalised.
pub(super) fn forget() {
    if let Some(mut groups) = GROUPS.lock().take() {
        free_arrays(&mut groups.world);
    }
}

pub(super) fn not_started<T>() -> Result<T> {
    fail!(State, "ARMCI is not initialised")
}

pub(super) fn message_comm() -> Result<Arc<Comm>> {
    match &*GROUPS.lock() {
        Some(groups) => Ok(groups.messages.clone()),
        None => not_started(),
    }
}

pub(super) fn send_to_self(comm: &Comm, tag: i32, data: &[u8]) -> Result<()> {
    let Some(groups) = &mut *GROUPS.lock() else {
        return not_started();
    };
    groups.to_self.retain_mut(|(request, _)| !request.test().unwrap_or(true));
    let copy: Box<[u8]> = data.into();
    // SAFETY: the boxed copy does not move, and `to_self` keeps it until the request has completed.
    let request = unsafe { p2p::isend(comm, copy.as_ptr(), copy.len(), comm.rank(), tag) }?;
    groups.to_self.push((request, copy));
    Ok(())
}

/// # Safety
/// `group` must be null or valid for reads.
pub(super) unsafe fn find(_: &Engine, group: *const ArmciGroup) -> Result<Arc<Group>> {
    if group.is_null() {
        fail!(Argument, "the group is null");
    }
    // SAFETY: the caller guarantees that `group` is valid for reads, and it is not null.
    let comm = unsafe { (*group).comm };
    let groups = GROUPS.lock();
    let Some(groups) = &*groups else {
        return not_started();
    };
    match groups.by_comm.get(&key(comm)) {
        Some(group) => Ok(group.clone()),
        None => fail!(State, "the group was freed, or the caller is not a member of it"),
    }
}

pub(super) fn register(engine: &Engine, group: Option<Arc<Group>>) -> Result<ArmciGroup> {
    let Some(group) = group else {
        return Ok(nobody());
    };
    let described = describe(engine, &group)?;
    if let Some(groups) = &mut *GROUPS.lock() {
        groups.by_comm.insert(key(described.comm), group);
    }
    Ok(described)
}

pub(super) fn default_group() -> Result<ArmciGroup> {
    match &*GROUPS.lock() {
        Some(groups) => Ok(groups.default),
        None => not_started(),
    }
}

/// Returns the group of the ranks of `group` in a scope, or `None` outside. Collective at first.
pub(super) fn scoped(
    engine: &Engine,
    group: &Arc<Group>,
    scope: Scope,
) -> Result<Option<Arc<Group>>> {
    if scope == Scope::All {
        return Ok(Some(group.clone()));
    }
    let name = (group.key(), scope);
    match &*GROUPS.lock() {
        Some(groups) => {
            if let Some(found) = groups.scoped.get(&name) {
                return Ok(found.clone());
            }
        }
        None => return not_started(),
    }
    let ranks = scope.ranks(engine, group);
    let _own = engine.observer().exclude_calls();
    let made = engine.create_group(group, &ranks)?;
    if let Some(groups) = &mut *GROUPS.lock() {
        groups.scoped.insert(name, made.clone());
    }
    Ok(made)
}
