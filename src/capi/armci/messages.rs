//! `armci_msg_*`: messages, broadcasts, reductions.
//!
//! Scopes: all ranks of the group, those of the caller's node, or the first of
//! each node. A rank outside a scope returns at once.

use super::groups::{self, Scope};
use super::types::{self, ArmciGroup};
use crate::capi::boundary::{self, or_abort};
use crate::collective::{self, Element, Operator};
use crate::error::{Result, fail};
use crate::group::Group;
use crate::mpi::{self, p2p};
use crate::runtime::{Engine, current};
use crate::wait;
use std::os::raw::{c_char, c_double, c_int, c_long, c_longlong, c_void};
use std::sync::Arc;

/// The caller's rank.
#[unsafe(no_mangle)]
pub extern "C" fn armci_msg_me() -> c_int {
    or_abort("armci_msg_me", |engine| Ok(engine.rank() as c_int))
}

/// The number of ranks.
#[unsafe(no_mangle)]
pub extern "C" fn armci_msg_nproc() -> c_int {
    or_abort("armci_msg_nproc", |engine| Ok(engine.size() as c_int))
}

/// Ends all ranks.
#[unsafe(no_mangle)]
pub extern "C" fn armci_msg_abort(code: c_int) {
    let rank = current().map_or_else(|_| "?".into(), |e| e.rank().to_string());
    boundary::abort(&format!("[{rank}] armci_msg_abort"), code)
}

/// Seconds since some moment in the past.
#[unsafe(no_mangle)]
pub extern "C" fn armci_timer() -> c_double {
    or_abort("armci_timer", |_| Ok(mpi::wtime()))
}

/// # Safety
/// `buffer` must be valid for `len` bytes.
unsafe fn bytes_mut<'a>(buffer: *mut c_void, len: c_int) -> Result<&'a mut [u8]> {
    let len = types::length(len)?;
    if len == 0 {
        return Ok(&mut []);
    }
    if buffer.is_null() {
        fail!(Argument, "the buffer is null, but has {len} bytes");
    }
    // SAFETY: the caller vouches for the buffer.
    Ok(unsafe { std::slice::from_raw_parts_mut(buffer.cast(), len) })
}

fn tag_of(tag: c_int) -> Result<i32> {
    if tag < 0 {
        fail!(Argument, "tag {tag} is negative");
    }
    Ok(tag)
}

fn send(engine: &Engine, tag: i32, data: &[u8], to: usize) -> Result<()> {
    engine.check_rank(to)?;
    let comm = groups::message_comm()?;
    if to == engine.rank() {
        // Nobody else can receive it while we wait: it is kept for the receive.
        return groups::send_to_self(&comm, tag, data);
    }
    // SAFETY: `data` is borrowed until the request has completed.
    let mut request = unsafe { p2p::isend(&comm, data.as_ptr(), data.len(), to, tag) }?;
    wait::until(engine, &|| format!("rank {to} to receive a message"), || request.test())
}

fn receive(engine: &Engine, tag: i32, data: &mut [u8], from: Option<usize>) -> Result<(usize, usize)> {
    let comm = groups::message_comm()?;
    let mut matched = None;
    wait::until(engine, &|| format!("a message of rank {from:?} with tag {tag}"), || {
        matched = p2p::improbe(&comm, from, Some(tag))?;
        Ok(matched.is_some())
    })?;
    let matched = matched.expect("the wait ended with a message");
    let (source, bytes) = (matched.source, matched.bytes);
    if bytes > data.len() {
        fail!(Argument, "a message of {bytes} bytes from rank {source} for {} bytes", data.len());
    }
    matched.receive(data)?;
    Ok((source, bytes))
}

/// Sends a message; returns when the buffer may be reused.
///
/// # Safety
/// `buffer` must be valid for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn armci_msg_snd(tag: c_int, buffer: *mut c_void, len: c_int, to: c_int) {
    or_abort("armci_msg_snd", |engine| {
        // SAFETY: the caller vouches for the buffer.
        let data = unsafe { bytes_mut(buffer, len) }?;
        send(engine, tag_of(tag)?, data, types::rank(to)?)
    })
}

/// Receives a message of a rank; `msglen`, where not null, gets its length.
///
/// # Safety
/// `buffer` must be valid for `buflen` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn armci_msg_rcv(
    tag: c_int,
    buffer: *mut c_void,
    buflen: c_int,
    msglen: *mut c_int,
    from: c_int,
) {
    or_abort("armci_msg_rcv", |engine| {
        let from = types::rank(from)?;
        engine.check_rank(from)?;
        // SAFETY: the caller vouches for the buffer and the place.
        unsafe {
            let data = bytes_mut(buffer, buflen)?;
            let (_, bytes) = receive(engine, tag_of(tag)?, data, Some(from))?;
            if !msglen.is_null() {
                *msglen = bytes as c_int;
            }
        }
        Ok(())
    })
}

/// Receives a message of any rank and returns which.
///
/// # Safety
/// As for `armci_msg_rcv`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn armci_msg_rcvany(
    tag: c_int,
    buffer: *mut c_void,
    buflen: c_int,
    msglen: *mut c_int,
) -> c_int {
    or_abort("armci_msg_rcvany", |engine| {
        // SAFETY: the caller vouches for the buffer and the place.
        unsafe {
            let data = bytes_mut(buffer, buflen)?;
            let (source, bytes) = receive(engine, tag_of(tag)?, data, None)?;
            if !msglen.is_null() {
                *msglen = bytes as c_int;
            }
            Ok(source as c_int)
        }
    })
}

super::twin! {
    /// Waits for all ranks.
    armci_msg_barrier / parmci_msg_barrier() {
        or_abort("armci_msg_barrier", |engine| {
            engine.world().barrier(engine)
        })
    }
}

super::twin! {
    /// Waits for all ranks of a group.
    armci_msg_group_barrier / parmci_msg_group_barrier(group: *mut ArmciGroup) {
        or_abort("armci_msg_group_barrier", |engine| {
            // SAFETY: the caller vouches for the group.
            unsafe { groups::find(engine, group) }?.barrier(engine)
        })
    }
}

/// The caller's place in the binary tree over a scope's ranks; -1 is none.
///
/// # Safety
/// The places must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn armci_msg_bintree(
    scope: c_int,
    root: *mut c_int,
    up: *mut c_int,
    left: *mut c_int,
    right: *mut c_int,
) {
    or_abort("armci_msg_bintree", |engine| {
        let ranks = Scope::from_c(scope)?.ranks(engine, engine.world());
        let at = |i: Option<usize>| i.and_then(|i| ranks.get(i)).map_or(-1, |&r| r as c_int);
        let me = ranks.iter().position(|&r| r == engine.rank());
        // SAFETY: the caller vouches for the places.
        unsafe {
            *root = at(Some(0));
            *up = at(me.and_then(|i| i.checked_sub(1)).map(|i| i / 2));
            *left = at(me.map(|i| 2 * i + 1));
            *right = at(me.map(|i| 2 * i + 2));
        }
        Ok(())
    })
}

fn broadcast(engine: &Engine, group: &Arc<Group>, scope: Scope, data: &mut [u8], root: usize) -> Result<()> {
    let Some(part) = groups::scoped(engine, group, scope)? else {
        return Ok(());
    };
    let Some(root) = part.rank_of(root) else {
        fail!(Rank, "the root {root} of the broadcast is not in the scope");
    };
    collective::broadcast(&*part.comm()?, engine, data, root)
}

macro_rules! broadcast_call {
    ($name:ident) => {
        /// Copies the root's buffer to all ranks.
        ///
        /// # Safety
        /// `buffer` must be valid for `len` bytes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(buffer: *mut c_void, len: c_int, root: c_int) {
            or_abort(stringify!($name), |engine| {
                // SAFETY: the caller vouches for the buffer.
                let data = unsafe { bytes_mut(buffer, len) }?;
                broadcast(engine, engine.world(), Scope::All, data, types::rank(root)?)
            })
        }
    };
}

broadcast_call!(armci_msg_bcast);
broadcast_call!(armci_msg_brdcst);

/// Copies the root's buffer to the ranks of a scope.
///
/// # Safety
/// `buffer` must be valid for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn armci_msg_bcast_scope(scope: c_int, buffer: *mut c_void, len: c_int, root: c_int) {
    or_abort("armci_msg_bcast_scope", |engine| {
        // SAFETY: the caller vouches for the buffer.
        let data = unsafe { bytes_mut(buffer, len) }?;
        broadcast(engine, engine.world(), Scope::from_c(scope)?, data, types::rank(root)?)
    })
}

/// As `armci_msg_bcast_scope` over a group; the root is a rank of the world.
///
/// # Safety
/// The pointers must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn armci_msg_group_bcast_scope(
    scope: c_int,
    buf: *mut c_void,
    len: c_int,
    root: c_int,
    group: *mut ArmciGroup,
) {
    or_abort("armci_msg_group_bcast_scope", |engine| {
        // SAFETY: the caller vouches for the buffer and the group.
        let (data, group) = unsafe { (bytes_mut(buf, len)?, groups::find(engine, group)?) };
        broadcast(engine, &group, Scope::from_c(scope)?, data, types::rank(root)?)
    })
}

/// Copies the buffer of the node's first rank to the others of the node.
///
/// # Safety
/// `buf` must be valid for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn armci_msg_clus_brdcst(buf: *mut c_void, len: c_int) {
    or_abort("armci_msg_clus_brdcst", |engine| {
        // SAFETY: the caller vouches for the buffer.
        let data = unsafe { bytes_mut(buf, len) }?;
        let root = engine.topology.ranks_of(engine.topology.my_node())[0];
        broadcast(engine, engine.world(), Scope::Node, data, root)
    })
}

/// Copies the buffer of rank `grp_master` of the group to the `grp_clus_nproc`
/// ranks of the group that begin with it; those call.
///
/// # Safety
/// The pointers must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn armci_grp_clus_brdcst(
    buf: *mut c_void,
    len: c_int,
    grp_master: c_int,
    grp_clus_nproc: c_int,
    mastergroup: *mut ArmciGroup,
) {
    /// Above the tags that programs use.
    const TAG: i32 = 32_101;
    or_abort("armci_grp_clus_brdcst", |engine| {
        // SAFETY: the caller vouches for the buffer and the group.
        let (data, group) = unsafe { (bytes_mut(buf, len)?, groups::find(engine, mastergroup)?) };
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

/// The element type of a reduction.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Type {
    Int,
    Long,
    Float,
    Double,
}

impl Type {
    /// `ARMCI_INT`, `_LONG`, `_LONG_LONG`, `_FLOAT`, `_DOUBLE`.
    fn from_c(raw: c_int) -> Result<Type> {
        Ok(match raw {
            0 => Type::Int,
            1 | 2 => Type::Long,
            3 => Type::Float,
            4 => Type::Double,
            _ => fail!(Type, "element type {raw} is none of ARMCI_INT to ARMCI_DOUBLE"),
        })
    }
}

/// # Safety
/// `op` must be a terminated string, or null.
unsafe fn operator(op: *const c_char) -> Result<Operator> {
    // SAFETY: the caller vouches for the string.
    let name = unsafe { boundary::text(op) };
    match Operator::from_name(name.trim_end()) {
        Some(operator) => Ok(operator),
        None => fail!(Type, "operator {name:?} is none of + * min max absmin absmax abs or && land || lor & band | bor"),
    }
}

/// # Safety
/// `x` must be valid for `n` elements.
unsafe fn reduce_typed<T: Element>(
    engine: &Engine,
    part: &Group,
    x: *mut c_void,
    n: usize,
    operator: Operator,
    root: Option<usize>,
) -> Result<()> {
    if !x.cast::<T>().is_aligned() {
        fail!(Type, "{x:p} is not aligned for the element type");
    }
    // SAFETY: the caller vouches for the array.
    let data = unsafe { std::slice::from_raw_parts_mut(x.cast::<T>(), n) };
    collective::reduce(&*part.comm()?, engine, data, operator, root)
}

/// # Safety
/// `x` must be valid for `n` elements of the type, `op` a terminated string.
#[expect(clippy::too_many_arguments, reason = "the interface's own arguments")]
unsafe fn reduce(
    engine: &Engine,
    group: &Arc<Group>,
    scope: c_int,
    x: *mut c_void,
    n: c_int,
    op: *const c_char,
    ty: c_int,
    everywhere: bool,
) -> Result<()> {
    let (n, ty) = (types::length(n)?, Type::from_c(ty)?);
    // SAFETY: the caller vouches for the string.
    let operator = unsafe { operator(op) }?;
    let bits = matches!(operator, Operator::And);
    if bits && matches!(ty, Type::Float | Type::Double) {
        fail!(Type, "a bitwise operation on floating-point numbers");
    }
    let Some(part) = groups::scoped(engine, group, Scope::from_c(scope)?)? else {
        return Ok(());
    };
    if n == 0 {
        return Ok(());
    }
    if x.is_null() {
        fail!(Argument, "the array is null, but has {n} elements");
    }
    let root = if everywhere { None } else { Some(0) };
    // SAFETY: the caller vouches for the array.
    unsafe {
        match ty {
            Type::Int => reduce_typed::<i32>(engine, &part, x, n, operator, root),
            Type::Long => reduce_typed::<i64>(engine, &part, x, n, operator, root),
            Type::Float => reduce_typed::<f32>(engine, &part, x, n, operator, root),
            Type::Double => reduce_typed::<f64>(engine, &part, x, n, operator, root),
        }
    }
}

/// Combines arrays over a scope; the result is everywhere in it.
///
/// # Safety
/// The pointers must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn armci_msg_gop_scope(scope: c_int, x: *mut c_void, n: c_int, op: *mut c_char, ty: c_int) {
    // SAFETY: the caller vouches for the array and the string.
    or_abort("armci_msg_gop_scope", |e| unsafe { reduce(e, e.world(), scope, x, n, op, ty, true) })
}

/// As `armci_msg_gop_scope`, over a group.
///
/// # Safety
/// The pointers must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn armci_msg_group_gop_scope(
    scope: c_int,
    x: *mut c_void,
    n: c_int,
    op: *mut c_char,
    ty: c_int,
    group: *mut ArmciGroup,
) {
    // SAFETY: the caller vouches for array, string and group.
    or_abort("armci_msg_group_gop_scope", |e| unsafe {
        reduce(e, &groups::find(e, group)?, scope, x, n, op, ty, true)
    })
}

/// Combines arrays over all ranks; the result is at rank 0.
///
/// # Safety
/// The pointers must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn armci_msg_reduce(x: *mut c_void, n: c_int, op: *mut c_char, ty: c_int) {
    // SAFETY: the caller vouches for the array and the string.
    or_abort("armci_msg_reduce", |e| unsafe { reduce(e, e.world(), 0, x, n, op, ty, false) })
}

/// As `armci_msg_reduce` over a scope; the result is at its first rank.
///
/// # Safety
/// The pointers must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn armci_msg_reduce_scope(scope: c_int, x: *mut c_void, n: c_int, op: *mut c_char, ty: c_int) {
    // SAFETY: the caller vouches for the array and the string.
    or_abort("armci_msg_reduce_scope", |e| unsafe {
        reduce(e, e.world(), scope, x, n, op, ty, false)
    })
}

/// The reductions of one type: over all ranks, over a group, over a node.
macro_rules! reductions {
    ($ty:ty, $number:expr, $all:ident, $group:ident, $node:ident) => {
        /// Combines arrays over all ranks; the result is everywhere.
        ///
        /// # Safety
        /// The pointers must be valid.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $all(x: *mut $ty, n: c_int, op: *mut c_char) {
            // SAFETY: the caller vouches for the array and the string.
            or_abort(stringify!($all), |e| unsafe {
                reduce(e, e.world(), 0, x.cast(), n, op, $number, true)
            })
        }
        /// Combines arrays over a group; the result is everywhere in it.
        ///
        /// # Safety
        /// The pointers must be valid.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $group(x: *mut $ty, n: c_int, op: *mut c_char, group: *mut ArmciGroup) {
            // SAFETY: the caller vouches for array, string and group.
            or_abort(stringify!($group), |e| unsafe {
                reduce(e, &groups::find(e, group)?, 0, x.cast(), n, op, $number, true)
            })
        }
        /// Combines arrays over the caller's node; the result is everywhere on it.
        ///
        /// # Safety
        /// The pointers must be valid.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $node(x: *mut $ty, n: c_int, op: *mut c_char) {
            // SAFETY: the caller vouches for the array and the string.
            or_abort(stringify!($node), |e| unsafe {
                reduce(e, e.world(), 1, x.cast(), n, op, $number, true)
            })
        }
    };
}

reductions!(c_int, 0, armci_msg_igop, armci_msg_group_igop, armci_msg_clus_igop);
reductions!(c_long, 1, armci_msg_lgop, armci_msg_group_lgop, armci_msg_clus_lgop);
reductions!(c_longlong, 2, armci_msg_llgop, armci_msg_group_llgop, armci_msg_clus_llgop);
reductions!(f32, 3, armci_msg_fgop, armci_msg_group_fgop, armci_msg_clus_fgop);
reductions!(f64, 4, armci_msg_dgop, armci_msg_group_dgop, armci_msg_clus_dgop);

/// What a rank contributes to a selection: whether, and its first element.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Candidate {
    contributes: u64,
    first: [u8; 8],
}

impl Candidate {
    fn is_better(&self, other: &Candidate, ty: Type, max: bool) -> bool {
        let four = |c: &Candidate| [c.first[0], c.first[1], c.first[2], c.first[3]];
        let (a, b) = (self, other);
        let order = match ty {
            Type::Int => i32::from_ne_bytes(four(a)).partial_cmp(&i32::from_ne_bytes(four(b))),
            Type::Long => i64::from_ne_bytes(a.first).partial_cmp(&i64::from_ne_bytes(b.first)),
            Type::Float => f32::from_ne_bytes(four(a)).partial_cmp(&f32::from_ne_bytes(four(b))),
            Type::Double => f64::from_ne_bytes(a.first).partial_cmp(&f64::from_ne_bytes(b.first)),
        };
        order == Some(if max { std::cmp::Ordering::Greater } else { std::cmp::Ordering::Less })
    }
}

/// # Safety
/// `x` must be valid for `n` bytes, `op` a terminated string.
unsafe fn select(
    engine: &Engine,
    scope: c_int,
    x: *mut c_void,
    n: c_int,
    op: *const c_char,
    ty: c_int,
    contribute: c_int,
) -> Result<()> {
    let ty = Type::from_c(ty)?;
    // SAFETY: the caller vouches for the string and the bytes.
    let (operator, data) = unsafe { (operator(op)?, bytes_mut(x, n)?) };
    let max = match operator {
        Operator::Max => true,
        Operator::Min => false,
        _ => fail!(Type, "a selection is by min or max"),
    };
    let size = if matches!(ty, Type::Int | Type::Float) { 4 } else { 8 };
    if data.len() < size {
        fail!(Argument, "{} bytes are less than one element", data.len());
    }
    let Some(part) = groups::scoped(engine, engine.world(), Scope::from_c(scope)?)? else {
        return Ok(());
    };
    let mut mine = Candidate { contributes: u64::from(contribute != 0), first: [0; 8] };
    mine.first[..size].copy_from_slice(&data[..size]);
    let comm = part.comm()?;
    let all = collective::allgather(&*comm, engine, &mine)?;
    let mut best: Option<usize> = None;
    for (rank, candidate) in all.iter().enumerate().filter(|(_, c)| c.contributes != 0) {
        if best.is_none_or(|b| candidate.is_better(&all[b], ty, max)) {
            best = Some(rank);
        }
    }
    match best {
        Some(root) => collective::broadcast(&*comm, engine, data, root),
        None => Ok(()),
    }
}

/// Selects, among the ranks that contribute, the `n` bytes at `x` whose first
/// element is the least (`min`) or greatest (`max`), and copies them to all.
///
/// # Safety
/// The pointers must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn armci_msg_sel(x: *mut c_void, n: c_int, op: *mut c_char, ty: c_int, contribute: c_int) {
    // SAFETY: the caller vouches for the bytes and the string.
    or_abort("armci_msg_sel", |e| unsafe { select(e, 0, x, n, op, ty, contribute) })
}

/// As `armci_msg_sel`, over a scope.
///
/// # Safety
/// The pointers must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn armci_msg_sel_scope(
    scope: c_int,
    x: *mut c_void,
    n: c_int,
    op: *mut c_char,
    ty: c_int,
    contribute: c_int,
) {
    // SAFETY: the caller vouches for the bytes and the string.
    or_abort("armci_msg_sel_scope", |e| unsafe { select(e, scope, x, n, op, ty, contribute) })
}

/// # Safety
/// `ptr_ar` must have `n` elements.
unsafe fn exchange(engine: &Engine, group: &Group, ptr_ar: *mut *mut c_void, n: c_int) -> Result<()> {
    let n = types::length(n)?;
    if n == 0 {
        return Ok(());
    }
    if ptr_ar.is_null() {
        fail!(Argument, "the array of addresses is null");
    }
    // SAFETY: the caller vouches for the array; an address has the size and
    // alignment of a long.
    let data = unsafe { std::slice::from_raw_parts_mut(ptr_ar.cast::<i64>(), n) };
    collective::reduce(&*group.comm()?, engine, data, Operator::Sum, None)
}

/// Gives every rank all addresses: each rank has filled its own entries and set
/// the others to null.
///
/// # Safety
/// `ptr_ar` must have `n` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn armci_exchange_address(ptr_ar: *mut *mut c_void, n: c_int) {
    // SAFETY: the caller vouches for the array.
    or_abort("armci_exchange_address", |e| unsafe { exchange(e, e.world(), ptr_ar, n) })
}

/// As `armci_exchange_address`, over a group.
///
/// # Safety
/// The pointers must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn armci_exchange_address_grp(
    ptr_arr: *mut *mut c_void,
    n: c_int,
    group: *mut ArmciGroup,
) {
    // SAFETY: the caller vouches for the array and the group.
    or_abort("armci_exchange_address_grp", |e| unsafe {
        exchange(e, &*groups::find(e, group)?, ptr_arr, n)
    })
}
