//! Calls that create, free and query groups.

use super::group_table::{
    FREED, GROUPS, default_group, find, free_arrays, key, not_started, register,
};
use super::types::{self, ArmciGroup};
use crate::boundary::{array, code, export, guard, or_abort};
use portolan_base::error::{Result, fail};
use portolan_engine::mpi::{Comm, CommHandle};
use portolan_engine::runtime::{Engine, current};
use std::os::raw::c_int;

/// The ranks in `pid_list` are ranks of `parent`.
///
/// # Safety
/// `pid_list` must have `grp_size` elements, and `parent` and `out` must be valid.
unsafe fn create(
    engine: &Engine,
    grp_size: c_int,
    pid_list: *const c_int,
    parent: *const ArmciGroup,
    out: *mut ArmciGroup,
) -> Result<()> {
    if out.is_null() {
        fail!(Argument, "the pointer to the new group is null");
    }
    let n = match usize::try_from(grp_size) {
        Ok(n) => n,
        Err(_) => fail!(Argument, "a group of {grp_size} ranks"),
    };
    // SAFETY: the caller guarantees that `pid_list`, `parent` and `out` are valid.
    unsafe {
        let ranks = array(pid_list, n, "the list of ranks")?;
        let ranks = ranks.iter().map(|&r| types::rank(r)).collect::<Result<Vec<usize>>>()?;
        let parent = find(engine, parent)?;
        *out = register(engine, engine.create_group(&parent, &ranks)?)?;
    }
    Ok(())
}

export! {
    armci_group_comm(group: *mut ArmciGroup) -> CommHandle = or_abort(|engine| {
        // SAFETY: the caller guarantees that `group` is valid.
        unsafe {
            if !group.is_null() && key((*group).comm) == key(Comm::null_handle()) {
                return Ok(Comm::null_handle());
            }
            find(engine, group)?.comm_handle()
        }
    });

    /// `pid_list` must have `grp_size` elements, and `group_out` must be valid.
    ARMCI_Group_create(
        grp_size: c_int, pid_list: *mut c_int, group_out: *mut ArmciGroup,
    ) = or_abort(|engine| {
        let parent = default_group()?;
        // SAFETY: the caller guarantees that `pid_list` and `group_out` are valid.
        unsafe { create(engine, grp_size, pid_list, &parent, group_out) }
    });

    /// `pid_list` must have `grp_size` elements, and `group_out` and `group_parent` must be valid.
    ARMCI_Group_create_child(
        grp_size: c_int, pid_list: *mut c_int, group_out: *mut ArmciGroup,
        group_parent: *mut ArmciGroup,
    ) =
        // SAFETY: the caller guarantees that `pid_list`, `group_out` and `group_parent` are valid.
        or_abort(|engine| unsafe {
            create(engine, grp_size, pid_list, group_parent, group_out)
        });

    ARMCI_Group_free(group: *mut ArmciGroup) = or_abort(|engine| {
        if group.is_null() {
            fail!(Argument, "the group is null");
        }
        // SAFETY: the caller guarantees that `group` is valid.
        let given = unsafe { &mut *group };
        if given.rank == FREED {
            fail!(State, "the group was freed already");
        }
        if key(given.comm) == key(Comm::null_handle()) {
            return Ok(()); // a rank outside the group has nothing to free
        }
        // SAFETY: `given` is a reference to the caller's group.
        let found = unsafe { find(engine, given) }?;
        engine.check_freeable(&found)?;
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
        // Every member of a scope has the scope's group in its table, so these calls are
        // collective. Sorting gives all ranks the same order.
        gone.sort_by_key(|g| g.key());
        for scope in gone.iter().filter(|g| g.key() != found.key()) {
            engine.free_group_unordered(scope)?;
        }
        engine.free_group_unordered(&found)?;
        if let Some(groups) = &mut *GROUPS.lock() {
            groups.by_comm.remove(&key(given.comm));
        }
        free_arrays(given);
        Ok(())
    });

    /// Errors are not written to standard error.
    ARMCI_Group_rank(group: *mut ArmciGroup, rank: *mut c_int) -> c_int {
        let quiet = |error: &portolan_base::error::Error| error.kind().code();
        guard("ARMCI_Group_rank", quiet, || {
            if group.is_null() || rank.is_null() {
                fail!(Argument, "a null pointer");
            }
            // SAFETY: the caller guarantees that both pointers are valid, and they are not null.
            let found = unsafe {
                *rank = (*group).rank.max(-1);
                *rank
            };
            if found < 0 {
                fail!(Rank, "the caller is not a member of the group");
            }
            Ok(0)
        })
    }

    ARMCI_Group_size(group: *mut ArmciGroup, size: *mut c_int) = or_abort(|_| {
        if group.is_null() || size.is_null() {
            fail!(Argument, "a null pointer");
        }
        // SAFETY: the caller guarantees that both pointers are valid, and they are not null.
        unsafe { *size = (*group).size };
        Ok(())
    });

    ARMCI_Group_set_default(group: *mut ArmciGroup) = or_abort(|engine| {
        // SAFETY: the caller guarantees that `group` is valid.
        let given = unsafe {
            find(engine, group)?;
            *group
        };
        if let Some(groups) = &mut *GROUPS.lock() {
            groups.default = given;
        }
        Ok(())
    });
}

fn check_out(group_out: *mut ArmciGroup) -> Result<()> {
    if group_out.is_null() {
        fail!(Argument, "null pointer to a group");
    }
    Ok(())
}

export! {
    ARMCI_Group_get_default(group_out: *mut ArmciGroup) = or_abort(|_| {
        check_out(group_out)?;
        // SAFETY: the caller guarantees that `group_out` is valid.
        unsafe { *group_out = default_group()? };
        Ok(())
    });

    ARMCI_Group_get_world(group_out: *mut ArmciGroup) = or_abort(|_| match &*GROUPS.lock() {
        Some(groups) => {
            check_out(group_out)?;
            // SAFETY: the caller guarantees that `group_out` is valid.
            unsafe { *group_out = groups.world };
            Ok(())
        }
        None => not_started(),
    });

    ARMCI_Absolute_id(group: *mut ArmciGroup, group_rank: c_int) -> c_int {
        let world = || -> Result<c_int> {
            // SAFETY: the caller guarantees that `group` is valid.
            let group = unsafe { find(current()?, group) }?;
            Ok(group.world_rank(types::rank(group_rank)?)? as c_int)
        };
        guard("ARMCI_Absolute_id", |_| -1, world)
    }
}

/// If `new_group` is null on one rank, all ranks fail and none waits. An invalid `parent` is an
/// error of its rank alone, as in `ARMCI_Malloc_group`.
///
/// # Safety
/// `parent` and `new_group` must be null or valid.
unsafe fn split(
    engine: &Engine,
    parent: *const ArmciGroup,
    color: c_int,
    sort_key: c_int,
    new_group: *mut ArmciGroup,
) -> Result<()> {
    // SAFETY: the caller guarantees that `parent` is null or valid.
    let parent = unsafe { find(engine, parent) }?;
    let all = parent.allgather(engine, &[color, sort_key, c_int::from(new_group.is_null())])?;
    if new_group.is_null() {
        fail!(Argument, "the pointer to the new group is null");
    }
    if let Some(rank) = all.iter().position(|[.., refused]| *refused != 0) {
        let rank = parent.members()[rank];
        fail!(Argument, "the pointer to the new group is null on rank {rank}");
    }
    let mut mine: Vec<usize> = (0..all.len()).filter(|&r| all[r][0] == color).collect();
    mine.sort_by_key(|&r| (all[r][1], r));
    let made = if color < 0 { None } else { engine.create_group(&parent, &mine)? };
    // SAFETY: the caller guarantees that `new_group` is valid, and it is not null.
    unsafe { *new_group = register(engine, made)? };
    Ok(())
}

export! {
    ARMCIX_Group_split(
        parent: *mut ArmciGroup, color: c_int, sort_key: c_int, new_group: *mut ArmciGroup,
    ) -> c_int =
        // SAFETY: the caller guarantees that `parent` and `new_group` are valid.
        code(|engine| unsafe {
            split(engine, parent, color, sort_key, new_group)
        });

    ARMCIX_Group_dup(parent: *mut ArmciGroup, new_group: *mut ArmciGroup) -> c_int =
        // SAFETY: the caller guarantees that `parent` and `new_group` are valid.
        code(|engine| unsafe { split(engine, parent, 0, 0, new_group) });
}
