//! Reductions (`armci_msg_*gop`, `_reduce`), selections (`_sel`) and the exchange of addresses.

use super::group_table;
use super::messages::bytes_mut;
use super::scopes::Scope;
use super::types::{self, ArmciGroup};
use crate::boundary::{array, array_mut, export, or_abort};
use portolan_base::error::{Result, fail};
use portolan_base::trace::{Call, CallInfo};
use portolan_engine::collective::group::Group;
use portolan_engine::collective::{Operator, Reducible};
use portolan_engine::runtime::Engine;
use std::cell::Cell;
use std::os::raw::{c_char, c_int, c_long, c_longlong, c_void};
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Type {
    Int,
    Long,
    Float,
    Double,
}

impl Type {
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
/// `op` must be null or readable up to the character that determines the operator.
unsafe fn operator(op: *const c_char) -> Result<Operator> {
    if op.is_null() {
        fail!(Argument, "the operator is null");
    }
    let read = Cell::new(0);
    let at = |i: usize| {
        read.set(read.get().max(i + 1));
        // SAFETY: `from_prefix` reads the characters in order and stops at the one that determines
        // the operator. By contract, `op` is readable up to there.
        unsafe { *op.cast::<u8>().add(i) }
    };
    match Operator::from_prefix(at) {
        Some(operator) => Ok(operator),
        None => {
            // SAFETY: the closure above has read `read.get()` characters at `op`.
            let begin = unsafe { array(op.cast::<u8>(), read.get(), "the operator")? };
            fail!(
                Type,
                "an operator that begins with \"{}\" is none of + * min max absmin absmax abs or \
                 && land || lor & band | bor",
                begin.escape_ascii()
            )
        }
    }
}

/// Reduces `n` elements at `x` in place. Only `root` gets the result, or all ranks if it is `None`.
///
/// # Safety
/// `x` must be valid for `n` elements of type `T`.
unsafe fn reduce_typed<T: Reducible>(
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
    // SAFETY: by contract, `x` is valid for `n` elements.
    let data = unsafe { array_mut(x.cast::<T>(), n, "the array") }?;
    part.reduce(engine, data, operator, root)
}

/// The result goes to all ranks of the scope if `everywhere`, otherwise to the first.
///
/// # Safety
/// `x` must be valid for `n` elements of the type. [`operator`] defines the requirement for `op`.
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
    // SAFETY: the caller guarantees that `op` is readable up to the deciding character.
    let operator = unsafe { operator(op) }?;
    // "or" is defined for all types.
    // SAFETY: the call above has read the first character.
    let bits = matches!(unsafe { *op.cast::<u8>() }, b'&' | b'|' | b'b')
        && matches!(operator, Operator::And | Operator::Or);
    if bits && matches!(ty, Type::Float | Type::Double) {
        fail!(Type, "a bitwise operation on floating-point numbers");
    }
    let Some(part) = group_table::scoped(engine, group, Scope::from_c(scope)?)? else {
        return Ok(());
    };
    if n == 0 {
        return Ok(());
    }
    if x.is_null() {
        fail!(Argument, "the array is null, but has {n} elements");
    }
    let root = if everywhere { None } else { Some(0) };
    // SAFETY: the caller guarantees that `x` is valid for `n` elements of type `ty`.
    unsafe {
        match ty {
            Type::Int => reduce_typed::<i32>(engine, &part, x, n, operator, root),
            Type::Long => reduce_typed::<i64>(engine, &part, x, n, operator, root),
            Type::Float => reduce_typed::<f32>(engine, &part, x, n, operator, root),
            Type::Double => reduce_typed::<f64>(engine, &part, x, n, operator, root),
        }
    }
}

export! {
    armci_msg_gop_scope(scope: c_int, x: *mut c_void, n: c_int, op: *mut c_char, ty: c_int) =
        // SAFETY: the caller guarantees that `x` and `op` are valid.
        or_abort(|e| unsafe { reduce(e, e.world(), scope, x, n, op, ty, true) });

    armci_msg_group_gop_scope(
        scope: c_int, x: *mut c_void, n: c_int, op: *mut c_char, ty: c_int, group: *mut ArmciGroup,
    ) =
        // SAFETY: the caller guarantees that `x`, `op` and `group` are valid.
        or_abort(|e| unsafe {
            reduce(e, &group_table::find(e, group)?, scope, x, n, op, ty, true)
        });

    armci_msg_reduce(x: *mut c_void, n: c_int, op: *mut c_char, ty: c_int) =
        // SAFETY: the caller guarantees that `x` and `op` are valid.
        or_abort(|e| unsafe { reduce(e, e.world(), 0, x, n, op, ty, false) });

    armci_msg_reduce_scope(scope: c_int, x: *mut c_void, n: c_int, op: *mut c_char, ty: c_int) =
        // SAFETY: the caller guarantees that `x` and `op` are valid.
        or_abort(|e| unsafe {
            reduce(e, e.world(), scope, x, n, op, ty, false)
        });
}

/// Defines the reductions of one type: over all ranks, over a group and over a node.
macro_rules! reductions {
    ($ty:ty, $number:expr, $all:ident, $group:ident, $node:ident) => {
        export! {
            $all(x: *mut $ty, n: c_int, op: *mut c_char) =
                // SAFETY: the caller guarantees that `x` and `op` are valid.
                or_abort(|e| unsafe { reduce(e, e.world(), 0, x.cast(), n, op, $number, true) });

            $group(x: *mut $ty, n: c_int, op: *mut c_char, group: *mut ArmciGroup) =
                // SAFETY: the caller guarantees that `x`, `op` and `group` are valid.
                or_abort(|e| unsafe {
                    reduce(e, &group_table::find(e, group)?, 0, x.cast(), n, op, $number, true)
                });

            $node(x: *mut $ty, n: c_int, op: *mut c_char) =
                // SAFETY: the caller guarantees that `x` and `op` are valid.
                or_abort(|e| unsafe { reduce(e, e.world(), 1, x.cast(), n, op, $number, true) });
        }
    };
}

reductions!(c_int, 0, armci_msg_igop, armci_msg_group_igop, armci_msg_clus_igop);
reductions!(c_long, 1, armci_msg_lgop, armci_msg_group_lgop, armci_msg_clus_lgop);
reductions!(c_longlong, 2, armci_msg_llgop, armci_msg_group_llgop, armci_msg_clus_llgop);
reductions!(f32, 3, armci_msg_fgop, armci_msg_group_fgop, armci_msg_clus_fgop);
reductions!(f64, 4, armci_msg_dgop, armci_msg_group_dgop, armci_msg_clus_dgop);

#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Candidate {
    contributes: u64,
    first: [u8; 8],
}

impl Candidate {
    /// A NaN wins over nothing, and any number over a NaN.
    fn is_better(&self, other: &Candidate, ty: Type, max: bool) -> bool {
        fn wins<T: PartialOrd>(a: T, b: T, max: bool) -> bool {
            let is_nan = |x: &T| x.partial_cmp(x).is_none();
            let beats = if max { a > b } else { a < b };
            beats || !is_nan(&a) && is_nan(&b)
        }
        let four = |c: &Candidate| [c.first[0], c.first[1], c.first[2], c.first[3]];
        let (a, b) = (self, other);
        match ty {
            Type::Int => wins(i32::from_ne_bytes(four(a)), i32::from_ne_bytes(four(b)), max),
            Type::Long => wins(i64::from_ne_bytes(a.first), i64::from_ne_bytes(b.first), max),
            Type::Float => wins(f32::from_ne_bytes(four(a)), f32::from_ne_bytes(four(b)), max),
            Type::Double => wins(f64::from_ne_bytes(a.first), f64::from_ne_bytes(b.first), max),
        }
    }
}

/// # Safety
/// `x` must be valid for `n` bytes. [`operator`] defines the requirement for `op`.
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
    // SAFETY: by contract, `x` has `n` bytes, and `op` is readable up to the deciding character.
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
    let Some(part) = group_table::scoped(engine, engine.world(), Scope::from_c(scope)?)? else {
        return Ok(());
    };
    let mut mine = Candidate { contributes: u64::from(contribute != 0), first: [0; 8] };
    mine.first[..size].copy_from_slice(&data[..size]);
    let call_info = CallInfo::new(Call::Reduce).moves(data.len());
    engine.observed(
        || call_info,
        || {
            let all = part.allgather(engine, &mine)?;
            let mut best: Option<usize> = None;
            for (rank, candidate) in all.iter().enumerate().filter(|(_, c)| c.contributes != 0) {
                if best.is_none_or(|b| candidate.is_better(&all[b], ty, max)) {
                    best = Some(rank);
                }
            }
            best.map_or(Ok(()), |root| part.broadcast(engine, data, root))
        },
    )
}

export! {
    armci_msg_sel(x: *mut c_void, n: c_int, op: *mut c_char, ty: c_int, contribute: c_int) =
        // SAFETY: the caller guarantees that `x` and `op` are valid.
        or_abort(|e| unsafe { select(e, 0, x, n, op, ty, contribute) });

    armci_msg_sel_scope(
        scope: c_int, x: *mut c_void, n: c_int, op: *mut c_char, ty: c_int, contribute: c_int,
    ) =
        // SAFETY: the caller guarantees that `x` and `op` are valid.
        or_abort(|e| unsafe { select(e, scope, x, n, op, ty, contribute) });
}

/// Sums the arrays of all ranks of `group`; see `armci_exchange_address`.
///
/// # Safety
/// `ptr_ar` must be null or valid for `n` elements.
unsafe fn exchange(
    engine: &Engine,
    group: &Group,
    ptr_ar: *mut *mut c_void,
    n: c_int,
) -> Result<()> {
    let n = types::length(n)?;
    if n == 0 {
        return Ok(());
    }
    // SAFETY: by contract, `ptr_ar` has `n` elements. A pointer has size and alignment of `i64`.
    let data = unsafe { array_mut(ptr_ar.cast::<i64>(), n, "the array of addresses") }?;
    engine.observed(
        || CallInfo::new(Call::Exchange).moves(n * 8),
        || group.reduce(engine, data, Operator::Sum, None),
    )
}

export! {
    /// `ptr_ar` must be null or valid for `n` elements.
    armci_exchange_address(ptr_ar: *mut *mut c_void, n: c_int) =
        // SAFETY: the caller guarantees that `ptr_ar` is null or valid for `n` elements.
        or_abort(|e| unsafe { exchange(e, e.world(), ptr_ar, n) });

    armci_exchange_address_grp(ptr_arr: *mut *mut c_void, n: c_int, group: *mut ArmciGroup) =
        // SAFETY: the caller guarantees that `ptr_arr` and `group` are valid.
        or_abort(|e| unsafe {
            exchange(e, &*group_table::find(e, group)?, ptr_arr, n)
        });
}
