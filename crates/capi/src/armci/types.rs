//! Layouts of the C structures, and the argument checks that all calls share.

use crate::boundary::{self, array};
use num_complex::Complex;
use portolan_base::error::{Result, fail};
use portolan_base::layout::{MAX_LEVELS, Shape};
use portolan_engine::mpi::{CommHandle, Flavour};
use portolan_engine::path::kernel::Scale;
use std::os::raw::{c_int, c_long, c_void};

/// `armci_hdl_t`: two ints that are opaque to callers; see [`super::handles`].
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct ArmciHandle {
    pub target: c_int,
    pub aggregate: c_int,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct ArmciGroup {
    pub comm: CommHandle,
    /// Unused; always `MPI_COMM_NULL`.
    pub noncoll_pgroup_comm: CommHandle,
    /// World rank of each member.
    pub grp_to_abs: *mut c_int,
    /// Group rank of each world rank, or -1 outside the group.
    pub abs_to_grp: *mut c_int,
    /// The caller's group rank, or -1 outside the group.
    pub rank: c_int,
    pub size: c_int,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct ArmciGiov {
    pub src_ptr_array: *mut *mut c_void,
    pub dst_ptr_array: *mut *mut c_void,
    pub bytes: c_int,
    pub ptr_array_len: c_int,
}

pub(crate) type ArmciSize = c_long;

#[derive(Debug)]
#[repr(C)]
pub(crate) struct ArmcixMutexes {
    pub my_count: c_int,
    pub max_count: c_int,
    pub grp: ArmciGroup,
    /// Unused; always null.
    pub windows: *mut c_void,
    /// Unused; always null.
    pub bases: *mut *mut u8,
}

mod layout {
    use super::*;
    use crate::boundary::layout;
    use static_assertions::{const_assert, const_assert_eq};
    use std::mem::size_of;

    const COMM: usize = size_of::<CommHandle>();
    // MPICH's handles are ints. Those of Open MPI and of the standard interface are pointers.
    const GROUP: usize = if COMM == 4 { 32 } else { 40 };
    const_assert_eq!(size_of::<c_int>(), 4);
    const_assert!(COMM == 4 || COMM == 8);
    layout! {
        ArmciSize: 8;
        ArmciHandle: 8, target at 0, aggregate at 4;
        ArmciGiov: 24, dst_ptr_array at 8, bytes at 16, ptr_array_len at 20;
        ArmciGroup: GROUP, noncoll_pgroup_comm at COMM, grp_to_abs at 2 * COMM,
            abs_to_grp at 2 * COMM + 8, rank at 2 * COMM + 16, size at 2 * COMM + 20;
        ArmcixMutexes: 8 + GROUP + 16, grp at 8;
    }
}

/// Returns whether the sizes above match the MPI in use, which the assertions cannot know.
pub(crate) fn matches_flavour() -> bool {
    match Flavour::built() {
        _ if Flavour::is_standard_abi() => std::mem::size_of::<ArmciGroup>() == 40,
        Flavour::Mpich => std::mem::size_of::<ArmciGroup>() == 32,
        Flavour::OpenMpi => std::mem::size_of::<ArmciGroup>() == 40,
        Flavour::Other => true,
    }
}

/// Converts a rank from C. Fails with `Rank` if it is negative.
#[inline]
pub(crate) fn rank(proc: c_int) -> Result<usize> {
    match usize::try_from(proc) {
        Ok(rank) => Ok(rank),
        Err(_) => fail!(Rank, "rank {proc} is negative"),
    }
}

/// Converts a length or a count from C. Fails with `Argument` if it is negative.
#[inline]
pub(crate) fn length(bytes: c_int) -> Result<usize> {
    match usize::try_from(bytes) {
        Ok(bytes) => Ok(bytes),
        Err(_) => fail!(Argument, "the length or count {bytes} is negative"),
    }
}

/// Returns the shape of a strided call. `local` and `remote` are the stride arrays, in bytes.
///
/// # Safety
/// The stride arrays must be null or have `levels` elements, `count` null or `levels + 1`.
pub(crate) unsafe fn shape(
    local: *const c_int,
    remote: *const c_int,
    count: *const c_int,
    levels: c_int,
) -> Result<Shape> {
    let levels = match usize::try_from(levels) {
        Ok(levels) if levels <= MAX_LEVELS => levels,
        _ => fail!(Argument, "{levels} stride levels, but 0 to {MAX_LEVELS} are possible"),
    };
    // SAFETY: the caller guarantees the lengths of the arrays.
    let (counts, local, remote) = unsafe {
        (
            array(count, levels + 1, "the count array")?,
            array(local, levels, "the local stride array")?,
            array(remote, levels, "the remote stride array")?,
        )
    };
    for (i, ((&n, &l), &r)) in counts[1..].iter().zip(local).zip(remote).enumerate() {
        if n > 1 && (l < 0 || r < 0) {
            fail!(Argument, "strides {l} and {r} of level {i}: they cannot be negative");
        }
    }
    boundary::shape(counts, local, remote)
}

/// Returns the length in bytes of a strided call that moves one block: its shape would take longer
/// to make than an element to move. Leaves bad arguments to [`shape`].
///
/// # Safety
/// `count` must be null or have `levels + 1` elements.
#[inline(always)]
pub(crate) unsafe fn one_block(count: *const c_int, levels: c_int) -> Option<usize> {
    let levels = usize::try_from(levels).ok().filter(|levels| *levels <= MAX_LEVELS)?;
    // SAFETY: the caller guarantees the length of the array.
    let (bytes, more) = unsafe { array(count, levels + 1, "") }.ok()?.split_first()?;
    more.iter().all(|&n| n == 1).then(|| usize::try_from(*bytes).ok())?
}

/// # Safety
/// `scale` must be valid for one element of the type.
#[inline(always)] // keeps the result in registers
pub(crate) unsafe fn scale(datatype: c_int, scale: *const c_void) -> Result<Scale> {
    if !(0..=5).contains(&datatype) {
        fail!(Type, "datatype {datatype} is none of ARMCI_ACC_INT to ARMCI_ACC_DCP");
    }
    if scale.is_null() {
        fail!(Argument, "the scale is null");
    }
    // SAFETY: by contract, `scale` is valid for one element. It may be unaligned.
    unsafe {
        Ok(match datatype {
            0 => Scale::Int(scale.cast::<i32>().read_unaligned()),
            1 => Scale::Long(scale.cast::<i64>().read_unaligned()),
            2 => Scale::Float(scale.cast::<f32>().read_unaligned()),
            3 => Scale::Double(scale.cast::<f64>().read_unaligned()),
            4 => Scale::FloatComplex(scale.cast::<Complex<f32>>().read_unaligned()),
            _ => Scale::DoubleComplex(scale.cast::<Complex<f64>>().read_unaligned()),
        })
    }
}
