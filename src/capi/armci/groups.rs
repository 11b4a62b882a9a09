//! Groups, and the groups that scopes mean.
//!
//! An `ARMCI_Group` is a structure of the caller's that is copied freely; its
//! communicator names the group in a table here.

use super::sync;
use super::types::{self, ArmciGroup};
use crate::capi::boundary::{code, guard, or_abort};
use crate::collective;
use crate::error::{Result, fail};
use crate::group::Group;
use crate::mpi::{Comm, CommHandle, Request, p2p};
use crate::runtime::{Engine, current, current_arc};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::os::raw::c_int;
use std::sync::Arc;

#[derive(Debug)]
struct Groups {
    by_comm: HashMap<usize, Arc<Group>>,
    world: ArmciGroup,
    default: ArmciGroup,
    scoped: HashMap<(u64, Scope), Option<Arc<Group>>>,
    messages: Arc<Comm>,
    /// Messages of this rank to itself that were not received yet.
    to_self: Vec<(Request, Box<[u8]>)>,
}

// SAFETY: the raw pointers in an ArmciGroup are arrays that this module
// allocated and frees; they are only handed on to C.
unsafe impl Send for Groups {}

static GROUPS: Mutex<Option<Groups>> = Mutex::new(None);

/// A communicator handle as a number, whatever its type is.
fn key(comm: CommHandle) -> usize {
    let mut bytes = [0u8; 8];
    let raw = std::ptr::from_ref(&comm).cast::<u8>();
    let n = std::mem::size_of::<CommHandle>();
    // SAFETY: a handle is an int or a pointer, of at most eight bytes.
    unsafe { std::ptr::copy_nonoverlapping(raw, bytes.as_mut_ptr(), n) };
    usize::from_ne_bytes(bytes)
}

/// An array that C may keep: freed by [`free_arrays`].
fn c_array(values: impl ExactSizeIterator<Item = c_int>) -> *mut c_int {
    let values: Box<[c_int]> = values.collect();
    // SAFETY: malloc of a size above zero; every element is written.
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

fn free_arrays(group: &mut ArmciGroup) {
    // SAFETY: the arrays come from `c_array`, or are null.
    unsafe {
        libc::free(group.grp_to_abs.cast());
        libc::free(group.abs_to_grp.cast());
    }
    *group = nobody();
}

/// Makes the world's group known. Collective, after the engine has started.
pub(super) fn start() -> Result<()> {
    let engine = current_arc()?;
    let world = engine.world().clone();
    let described = describe(&engine, &world)?;
    let messages = Arc::new(world.comm()?.dup()?);
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

/// Frees what [`start`] made. Collective, before the engine stops.
pub(super) fn stop() -> Result<()> {
    sync::clear();
    let Some(mut groups) = GROUPS.lock().take() else {
        return Ok(());
    };
    free_arrays(&mut groups.world);
    // What nobody has received goes, so that MPI needs none of our copies any more.
    while let Some(message) = p2p::improbe(&groups.messages, None, None)? {
        let mut rest = vec![0; message.bytes];
        message.receive(&mut rest)?;
    }
    groups.messages.free()
}

/// As [`stop`], where MPI is gone already.
pub(super) fn forget() {
    sync::clear();
    if let Some(mut groups) = GROUPS.lock().take() {
        free_arrays(&mut groups.world);
    }
}

fn not_started<T>() -> Result<T> {
    fail!(State, "ARMCI is not initialised")
}

/// The communicator of `armci_msg_snd` and its kin.
pub(super) fn message_comm() -> Result<Arc<Comm>> {
    match &*GROUPS.lock() {
        Some(groups) => Ok(groups.messages.clone()),
        None => not_started(),
    }
}

/// Sends a copy of `data` to this rank itself; done when it is received.
pub(super) fn send_to_self(comm: &Comm, tag: i32, data: &[u8]) -> Result<()> {
    let Some(groups) = &mut *GROUPS.lock() else {
        return not_started();
    };
    groups.to_self.retain_mut(|(request, _)| !request.test().unwrap_or(true));
    let copy: Box<[u8]> = data.into();
    // SAFETY: the copy is kept, at its place, until the request has completed.
    let request = unsafe { p2p::isend(comm, copy.as_ptr(), copy.len(), comm.rank(), tag) }?;
    groups.to_self.push((request, copy));
    Ok(())
}

/// The group behind a caller's structure.
///
/// # Safety
/// `group` must be valid for reads, or null.
pub(super) unsafe fn find(_: &Engine, group: *const ArmciGroup) -> Result<Arc<Group>> {
    if group.is_null() {
        fail!(Argument, "the group is null");
    }
    // SAFETY: the caller vouches for the structure.
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

fn register(engine: &Engine, group: Option<Arc<Group>>) -> Result<ArmciGroup> {
    let Some(group) = group else {
        return Ok(nobody());
    };
    let described = describe(engine, &group)?;
    if let Some(groups) = &mut *GROUPS.lock() {
        groups.by_comm.insert(key(described.comm), group);
    }
    Ok(described)
}

/// # Safety
/// `pid_list` must have `grp_size` elements; `parent` and `out` must be valid.
unsafe fn create(
    engine: &Engine,
    grp_size: c_int,
    pid_list: *const c_int,
    parent: *const ArmciGroup,
    out: *mut ArmciGroup,
) -> Result<()> {
    if out.is_null() {
        fail!(Argument, "the place for the new group is null");
    }
    let n = match usize::try_from(grp_size) {
        Ok(n) => n,
        Err(_) => fail!(Argument, "a group of {grp_size} ranks"),
    };
    // SAFETY: the caller vouches for the list, the parent and the result.
    unsafe {
        let ranks = types::array(pid_list, n, "the list of ranks")?;
        let ranks = ranks.iter().map(|&r| types::rank(r)).collect::<Result<Vec<usize>>>()?;
        let parent = find(engine, parent)?;
        *out = register(engine, engine.create_group(&parent, &ranks)?)?;
    }
    Ok(())
}

fn default_group() -> Result<ArmciGroup> {
    match &*GROUPS.lock() {
        Some(groups) => Ok(groups.default),
        None => not_started(),
    }
}

/// The communicator of a group, for calls of MPI among its ranks; `MPI_COMM_NULL` at ranks
/// outside it.
///
/// # Safety
/// `group` must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn armci_group_comm(group: *mut ArmciGroup) -> CommHandle {
    or_abort("armci_group_comm", |engine| {
        // SAFETY: the caller vouches for the group.
        unsafe {
            if !group.is_null() && key((*group).comm) == key(Comm::null_handle()) {
                return Ok(Comm::null_handle());
            }
            find(engine, group)?.comm_handle()
        }
    })
}

/// Makes a group of ranks of the default group. Collective over those ranks;
/// others may call too and get a group without members.
///
/// # Safety
/// As for all calls: the pointers must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ARMCI_Group_create(
    grp_size: c_int,
    pid_list: *mut c_int,
    group_out: *mut ArmciGroup,
) {
    or_abort("ARMCI_Group_create", |engine| {
        let parent = default_group()?;
        // SAFETY: the caller vouches for the list and the result.
        unsafe { create(engine, grp_size, pid_list, &parent, group_out) }
    })
}

/// Makes a group of ranks of `group_parent`.
///
/// # Safety
/// As for all calls: the pointers must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ARMCI_Group_create_child(
    grp_size: c_int,
    pid_list: *mut c_int,
    group_out: *mut ArmciGroup,
    group_parent: *mut ArmciGroup,
) {
    // SAFETY: the caller vouches for list, result and parent.
    or_abort("ARMCI_Group_create_child", |engine| unsafe {
        create(engine, grp_size, pid_list, group_parent, group_out)
    })
}

/// Frees a group. Collective over it; memory allocated over it stays until it is
/// freed.
///
/// # Safety
/// `group` must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ARMCI_Group_free(group: *mut ArmciGroup) {
    or_abort("ARMCI_Group_free", |engine| {
        if group.is_null() {
            fail!(Argument, "the group is null");
        }
        // SAFETY: the caller vouches for the group.
        let given = unsafe { &mut *group };
        if key(given.comm) == key(Comm::null_handle()) {
            return Ok(()); // of a rank that is no member
        }
        // SAFETY: as above.
        let found = unsafe { find(engine, given) }?;
        let mut gone = Vec::new();
        if let Some(groups) = &mut *GROUPS.lock() {
            if key(groups.default.comm) == key(given.comm) {
                groups.default = groups.world;
            }
            let mine = found.key();
            let scopes: Vec<_> =
                groups.scoped.keys().filter(|(k, _)| *k == mine).copied().collect();
            gone.extend(scopes.iter().filter_map(|s| groups.scoped.remove(s).flatten()));
        }
        // Every member of a scope has it in its table, so these are collective.
        gone.sort_by_key(|g| g.key());
        for scope in gone.iter().filter(|g| g.key() != found.key()) {
            engine.free_group(scope)?;
        }
        engine.free_group(&found)?;
        if let Some(groups) = &mut *GROUPS.lock() {
            groups.by_comm.remove(&key(given.comm));
        }
        free_arrays(given);
        Ok(())
    })
}

/// The caller's rank in a group; outside it -1, and the call returns the code of
/// a rank error.
///
/// # Safety
/// The pointers must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ARMCI_Group_rank(group: *mut ArmciGroup, rank: *mut c_int) -> c_int {
    let quiet = |error: &crate::error::Error| error.kind().code();
    guard("ARMCI_Group_rank", quiet, || {
        if group.is_null() || rank.is_null() {
            fail!(Argument, "a null pointer");
        }
        // SAFETY: the caller vouches for both.
        let found = unsafe {
            *rank = (*group).rank;
            *rank
        };
        if found < 0 {
            fail!(Rank, "the caller is not a member of the group");
        }
        Ok(0)
    })
}

/// The number of a group's ranks.
///
/// # Safety
/// The pointers must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ARMCI_Group_size(group: *mut ArmciGroup, size: *mut c_int) {
    or_abort("ARMCI_Group_size", |_| {
        if group.is_null() || size.is_null() {
            fail!(Argument, "a null pointer");
        }
        // SAFETY: the caller vouches for both.
        unsafe { *size = (*group).size };
        Ok(())
    })
}

/// Makes a group the parent of those that `ARMCI_Group_create` makes.
///
/// # Safety
/// `group` must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ARMCI_Group_set_default(group: *mut ArmciGroup) {
    or_abort("ARMCI_Group_set_default", |engine| {
        // SAFETY: the caller vouches for the group.
        let given = unsafe {
            find(engine, group)?;
            *group
        };
        if let Some(groups) = &mut *GROUPS.lock() {
            groups.default = given;
        }
        Ok(())
    })
}

/// The default group.
///
/// # Safety
/// `group_out` must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ARMCI_Group_get_default(group_out: *mut ArmciGroup) {
    or_abort("ARMCI_Group_get_default", |_| {
        // SAFETY: the caller vouches for the place.
        unsafe { *group_out = default_group()? };
        Ok(())
    })
}

/// The group of all ranks.
///
/// # Safety
/// `group_out` must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ARMCI_Group_get_world(group_out: *mut ArmciGroup) {
    or_abort("ARMCI_Group_get_world", |_| match &*GROUPS.lock() {
        Some(groups) => {
            // SAFETY: the caller vouches for the place.
            unsafe { *group_out = groups.world };
            Ok(())
        }
        None => not_started(),
    })
}

/// The world rank of a group's rank; -1 where there is none.
///
/// # Safety
/// `group` must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ARMCI_Absolute_id(group: *mut ArmciGroup, group_rank: c_int) -> c_int {
    let world = || -> Result<c_int> {
        // SAFETY: the caller vouches for the group.
        let group = unsafe { find(current()?, group) }?;
        Ok(group.world_rank(types::rank(group_rank)?)? as c_int)
    };
    guard("ARMCI_Absolute_id", |_| -1, world)
}

/// Splits a group by colour, in the order of keys; a negative colour joins none.
/// Collective over the parent.
///
/// # Safety
/// The pointers must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ARMCIX_Group_split(
    parent: *mut ArmciGroup,
    color: c_int,
    sort_key: c_int,
    new_group: *mut ArmciGroup,
) -> c_int {
    code("ARMCIX_Group_split", |engine| {
        if new_group.is_null() {
            fail!(Argument, "the place for the new group is null");
        }
        // SAFETY: the caller vouches for the parent.
        let parent = unsafe { find(engine, parent) }?;
        let all = collective::allgather(&*parent.comm()?, engine, &[color, sort_key])?;
        let mut mine: Vec<usize> = (0..all.len()).filter(|&r| all[r][0] == color).collect();
        mine.sort_by_key(|&r| (all[r][1], r));
        let made = if color < 0 { None } else { engine.create_group(&parent, &mine)? };
        // SAFETY: the caller vouches for the place.
        unsafe { *new_group = register(engine, made)? };
        Ok(())
    })
}

/// A group of the same ranks. Collective.
///
/// # Safety
/// The pointers must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ARMCIX_Group_dup(
    parent: *mut ArmciGroup,
    new_group: *mut ArmciGroup,
) -> c_int {
    code("ARMCIX_Group_dup", |engine| {
        if new_group.is_null() {
            fail!(Argument, "the place for the new group is null");
        }
        // SAFETY: the caller vouches for the parent and the place.
        unsafe {
            let parent = find(engine, parent)?;
            let all: Vec<usize> = (0..parent.size()).collect();
            *new_group = register(engine, engine.create_group(&parent, &all)?)?;
        }
        Ok(())
    })
}

/// Which ranks of a group take part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Scope {
    /// All.
    All,
    /// Those of the caller's node.
    Node,
    /// The first of each node.
    Masters,
}

impl Scope {
    /// `SCOPE_ALL`, `SCOPE_NODE`, `SCOPE_MASTERS`.
    pub fn from_c(scope: c_int) -> Result<Scope> {
        Ok(match scope {
            0 => Scope::All,
            1 => Scope::Node,
            2 => Scope::Masters,
            _ => fail!(Argument, "scope {scope} is none of SCOPE_ALL, SCOPE_NODE, SCOPE_MASTERS"),
        })
    }

    /// The ranks of `group` (numbered in it) that take part with the caller.
    pub fn ranks(self, engine: &Engine, group: &Group) -> Vec<usize> {
        let node = |r: &usize| engine.topology.node_of(group.members()[*r]);
        let all = 0..group.size();
        match self {
            Scope::All => all.collect(),
            Scope::Node => all.filter(|r| node(r) == engine.topology.my_node()).collect(),
            Scope::Masters => {
                let mut seen = Vec::new();
                all.filter(|r| {
                    let new = !seen.contains(&node(r));
                    seen.push(node(r));
                    new
                })
                .collect()
            }
        }
    }
}

/// The group of the ranks of `group` that a scope means; `None` where the caller
/// is not among them. Collective over those ranks the first time.
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
    let made = engine.create_group(group, &ranks)?;
    if let Some(groups) = &mut *GROUPS.lock() {
        groups.scoped.insert(name, made.clone());
    }
    Ok(made)
}
