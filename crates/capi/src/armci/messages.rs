//! `armci_msg_*`: messages, barriers and broadcasts.
//!
//! A scope selects the ranks that take part: all ranks of the group, the ranks of the caller's
//! node, or the first rank of each node. A rank outside the scope returns at once.

use super::group_table;
use super::scopes::Scope;
use super::types::{self, ArmciGroup};
use crate::boundary::{self, array_mut, export, or_abort, or_abort_alone};
use portolan_base::config::Config;
use portolan_base::error::{Result, fail};
use portolan_base::trace::{Awaited, Call, CallInfo, Cause, PathTaken};
use portolan_base::wait;
use portolan_engine::collective::group::Group;
use portolan_engine::mpi::{self, Comm, init, p2p};
use portolan_engine::runtime::{Engine, current};
use std::os::raw::{c_char, c_double, c_int, c_void};
use std::sync::Arc;

/// Fails with `State` unless the engine or MPI is running.
fn check_mpi() -> Result<()> {
    if current().is_err() && !init::is_running() {
        fail!(State, "MPI is not running: it was not initialised yet, or was finalised already");
    }
    Ok(())
}

/// Returns the caller's rank and the number of ranks, from the engine or `MPI_COMM_WORLD`: programs
/// may ask before `ARMCI_Init` and after `ARMCI_Finalize`.
fn place() -> Result<(usize, usize)> {
    if let Ok(engine) = current() {
        return Ok((engine.rank(), engine.size()));
    }
    check_mpi()?;
    // SAFETY: `check_mpi` has found MPI running, so MPI_COMM_WORLD is live.
    unsafe { Comm::place_in(Comm::world_handle()) }
}

export! {
    /// The pointers are not dereferenced.
    armci_msg_init(_argc: *mut c_int, _argv: *mut *mut *mut c_char) = or_abort_alone(|| {
        if !init::is_running() {
            init::start(Config::from_env()?.launcher_check)?;
        }
        Ok(())
    });

    armci_msg_finalize() = or_abort_alone(init::finalize);

    armci_msg_me() -> c_int = or_abort_alone(|| Ok(place()?.0 as c_int));

    armci_msg_nproc() -> c_int = or_abort_alone(|| Ok(place()?.1 as c_int));

    armci_msg_abort(code: c_int) { boundary::abort("armci_msg_abort", code) }

    armci_timer() -> c_double = or_abort_alone(|| {
        check_mpi()?;
        Ok(mpi::wtime())
    });
}

/// The buffer may be null if `len` is 0.
///
/// # Safety
/// `buffer` must be null or valid for `len` bytes.
pub(super) unsafe fn bytes_mut<'a>(buffer: *mut c_void, len: c_int) -> Result<&'a mut [u8]> {
    // SAFETY: the caller guarantees that `buffer` is null or valid for `len` bytes.
    unsafe { array_mut(buffer.cast(), types::length(len)?, "the buffer") }
}

fn tag_of(tag: c_int) -> Result<i32> {
    if tag < 0 {
        fail!(Argument, "tag {tag} is negative");
    }
    Ok(tag)
}

pub(super) fn send(engine: &Engine, tag: i32, data: &[u8], to: usize) -> Result<()> {
    engine.check_rank(to)?;
    let comm = group_table::message_comm()?;
    if to == engine.rank() {
        // Only this rank can receive the message, so waiting for the receive would deadlock.
        return group_table::send_to_self(&comm, tag, data);
    }
    // SAFETY: `data` stays borrowed until the wait below has completed the request.
    let mut request = unsafe { p2p::isend(&comm, data.as_ptr(), data.len(), to, tag) }?;
    let what = || format!("rank {to} to receive a message");
    engine.observed(
        || CallInfo::new(Call::Send).to(to).moves(data.len()).by(PathTaken::Message),
        || wait::until(engine, Awaited::of(Cause::Message, to), &what, || request.test()),
    )
}

fn receive(
    engine: &Engine,
    tag: i32,
    data: &mut [u8],
    from: Option<usize>,
) -> Result<(usize, usize)> {
    let comm = group_table::message_comm()?;
    let mut matched = None;
    let whose = || from.map_or("any rank".to_string(), |from| format!("rank {from}"));
    let awaited = Awaited { peer: from, ..Cause::Message.into() };
    // Not a posted receive: MPICH reports a message that is longer than the buffer to the error
    // handler of MPI_COMM_WORLD, which ends the job before this call can name the error.
    wait::until(engine, awaited, &|| format!("a message of {} with tag {tag}", whose()), || {
        matched = p2p::improbe(&comm, from, Some(tag))?;
        Ok(matched.is_some())
    })?;
    let matched = matched.expect("the wait ended with a message");
    let (source, bytes) = (matched.source, matched.bytes);
    if bytes > data.len() {
        fail!(
            Argument,
            "a message of {bytes} bytes from rank {source} exceeds the buffer of {} bytes",
            data.len()
        );
    }
    matched.receive(data)?;
    Ok((source, bytes))
}

export! {
    /// `buffer` must be valid for `len` bytes.
    armci_msg_snd(tag: c_int, buffer: *mut c_void, len: c_int, to: c_int) = or_abort(|engine| {
        // SAFETY: the caller guarantees that `buffer` is valid for `len` bytes.
        let data = unsafe { bytes_mut(buffer, len) }?;
        send(engine, tag_of(tag)?, data, types::rank(to)?)
    });

    /// `buffer` must be valid for `buflen` bytes, and `msglen` must be null or valid for writes.
    armci_msg_rcv(
        tag: c_int, buffer: *mut c_void, buflen: c_int, msglen: *mut c_int, from: c_int,
    ) = or_abort(|engine| {
        let from = types::rank(from)?;
        engine.check_rank(from)?;
        // SAFETY: by contract, `buffer` has `buflen` bytes; `msglen` is null or valid for writes.
        unsafe {
            let data = bytes_mut(buffer, buflen)?;
            let (_, bytes) = receive(engine, tag_of(tag)?, data, Some(from))?;
            if !msglen.is_null() {
                *msglen = bytes as c_int;
            }
        }
        Ok(())
    });

    armci_msg_rcvany(
        tag: c_int, buffer: *mut c_void, buflen: c_int, msglen: *mut c_int,
    ) -> c_int = or_abort(|engine| {
        // SAFETY: by contract, `buffer` has `buflen` bytes; `msglen` is null or valid for writes.
        unsafe {
            let data = bytes_mut(buffer, buflen)?;
            let (source, bytes) = receive(engine, tag_of(tag)?, data, None)?;
            if !msglen.is_null() {
                *msglen = bytes as c_int;
            }
            Ok(source as c_int)
        }
    });

    armci_msg_barrier / parmci_msg_barrier() = or_abort(|engine| {
        engine.world().barrier(engine)
    });

    armci_msg_group_barrier / parmci_msg_group_barrier(group: *mut ArmciGroup) = or_abort(|engine| {
        // SAFETY: the caller guarantees that `group` is valid.
        unsafe { group_table::find(engine, group) }?.barrier(engine)
    });

    armci_msg_bintree(
        scope: c_int, root: *mut c_int, up: *mut c_int, left: *mut c_int, right: *mut c_int,
    ) = or_abort(|engine| {
        if [root, up, left, right].contains(&std::ptr::null_mut()) {
            fail!(Argument, "a null pointer");
        }
        let ranks = Scope::from_c(scope)?.ranks(engine, engine.world());
        let at = |i: Option<usize>| i.and_then(|i| ranks.get(i)).map_or(-1, |&r| r as c_int);
        let me = ranks.iter().position(|&r| r == engine.rank());
        // SAFETY: the caller guarantees that the four pointers are valid for writes.
        unsafe {
            *root = at(Some(0));
            *up = at(me.and_then(|i| i.checked_sub(1)).map(|i| i / 2));
            *left = at(me.map(|i| 2 * i + 1));
            *right = at(me.map(|i| 2 * i + 2));
        }
        Ok(())
    });
}

fn broadcast(
    engine: &Engine,
    group: &Arc<Group>,
    scope: Scope,
    data: &mut [u8],
    root: usize,
) -> Result<()> {
    let Some(part) = group_table::scoped(engine, group, scope)? else {
        return Ok(());
    };
    let Some(root) = part.rank_of(root) else {
        fail!(Rank, "the root {root} of the broadcast is not in the scope");
    };
    part.broadcast(engine, data, root)
}

/// # Safety
/// `buffer` must be valid for `len` bytes.
unsafe fn broadcast_in(
    engine: &Engine,
    scope: Scope,
    (buffer, len): (*mut c_void, c_int),
    root: c_int,
) -> Result<()> {
    // SAFETY: the caller guarantees that `buffer` is valid for `len` bytes.
    let data = unsafe { bytes_mut(buffer, len) }?;
    broadcast(engine, engine.world(), scope, data, types::rank(root)?)
}

export! {
    /// `buffer` must be valid for `len` bytes.
    armci_msg_bcast(buffer: *mut c_void, len: c_int, root: c_int) =
        // SAFETY: the caller guarantees that `buffer` is valid for `len` bytes.
        or_abort(|engine| unsafe { broadcast_in(engine, Scope::All, (buffer, len), root) });

    /// `buffer` must be valid for `len` bytes.
    armci_msg_brdcst(buffer: *mut c_void, len: c_int, root: c_int) =
        // SAFETY: the caller guarantees that `buffer` is valid for `len` bytes.
        or_abort(|engine| unsafe { broadcast_in(engine, Scope::All, (buffer, len), root) });

    /// `buffer` must be valid for `len` bytes.
    armci_msg_bcast_scope(scope: c_int, buffer: *mut c_void, len: c_int, root: c_int) =
        or_abort(|engine| {
            let scope = Scope::from_c(scope)?;
            // SAFETY: the caller guarantees that `buffer` is valid for `len` bytes.
            unsafe { broadcast_in(engine, scope, (buffer, len), root) }
        });

    /// `buf` must be valid for `len` bytes, and `group` must be valid.
    armci_msg_group_bcast_scope(
        scope: c_int, buf: *mut c_void, len: c_int, root: c_int, group: *mut ArmciGroup,
    ) = or_abort(|engine| {
        // SAFETY: by contract, `buf` is valid for `len` bytes, and `group` is valid.
        let (data, group) = unsafe { (bytes_mut(buf, len)?, group_table::find(engine, group)?) };
        broadcast(engine, &group, Scope::from_c(scope)?, data, types::rank(root)?)
    });

    /// `buf` must be valid for `len` bytes.
    armci_msg_clus_brdcst(buf: *mut c_void, len: c_int) = or_abort(|engine| {
        // SAFETY: the caller guarantees that `buf` is valid for `len` bytes.
        let data = unsafe { bytes_mut(buf, len) }?;
        let root = engine.topology.ranks_of(engine.topology.my_node())[0];
        broadcast(engine, engine.world(), Scope::Node, data, root)
    });

    /// `buf` must be valid for `len` bytes, and `mastergroup` must be valid.
    armci_grp_clus_brdcst(
        buf: *mut c_void, len: c_int, grp_master: c_int, grp_clus_nproc: c_int,
        mastergroup: *mut ArmciGroup,
    ) {
        /// Above the tags that programs use.
        const TAG: i32 = 32_101;
        or_abort("armci_grp_clus_brdcst", |engine| {
            // SAFETY: by contract, `buf` is valid for `len` bytes, and `mastergroup` is valid.
            let (data, group) =
                unsafe { (bytes_mut(buf, len)?, group_table::find(engine, mastergroup)?) };
            let (master, n) = (types::rank(grp_master)?, types::length(grp_clus_nproc)?);
            let root = group.world_rank(master)?;
            if engine.rank() == root {
                for rank in master + 1..master + n {
                    send(engine, TAG, data, group.world_rank(rank)?)?;
                }
                return Ok(());
            }
            let (_, bytes) = receive(engine, TAG, data, Some(root))?;
            if bytes != data.len() {
                fail!(Argument, "the root sent {bytes} bytes, {} were expected", data.len());
            }
            Ok(())
        })
    }
}
