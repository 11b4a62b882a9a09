//! Predefined and derived datatypes, and reduction operations.

use super::call::{call, count, portolan_shim_type};
use mpi::ffi;
use portolan_base::error::Result;
use std::mem::MaybeUninit;
use std::os::raw::{c_int, c_void};

/// The complex types are `MPI_C_FLOAT_COMPLEX` and `MPI_C_DOUBLE_COMPLEX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Datatype {
    Byte = 0,
    Int = 1,
    Long = 2,
    Float = 3,
    Double = 4,
    FloatComplex = 5,
    DoubleComplex = 6,
    Short = 7,
}

impl Datatype {
    pub(super) fn raw(self) -> ffi::MPI_Datatype {
        // SAFETY: the shim returns a constant.
        unsafe { portolan_shim_type(self as c_int) }
    }
}

pub type RawDatatype = ffi::MPI_Datatype;

pub type ReduceFn =
    unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut ffi::MPI_Datatype);

#[derive(Debug)]
pub struct ReduceOp {
    raw: ffi::MPI_Op,
}

// SAFETY: an `MPI_Op` is an immutable object, valid in the whole process.
unsafe impl Send for ReduceOp {}
// SAFETY: an `MPI_Op` is an immutable object, valid in the whole process.
unsafe impl Sync for ReduceOp {}

impl ReduceOp {
    /// # Safety
    /// `function` must combine `*len` elements of the type in use, and must not unwind.
    pub unsafe fn new(function: ReduceFn) -> Result<ReduceOp> {
        let mut raw = MaybeUninit::uninit();
        // SAFETY: the caller guarantees the function. MPI has filled `raw` if the call succeeded.
        unsafe {
            call!(MPI_Op_create(Some(function), 1, raw.as_mut_ptr()))?;
            Ok(ReduceOp { raw: raw.assume_init() })
        }
    }

    pub(super) fn raw(&self) -> ffi::MPI_Op {
        self.raw
    }
}

impl Drop for ReduceOp {
    fn drop(&mut self) {
        if super::init::is_running() {
            // SAFETY: `new` created the operation, and it is freed once.
            unsafe { ffi::MPI_Op_free(&mut self.raw) };
        }
    }
}

/// Dropping it frees it. Users get committed ones only.
#[derive(Debug)]
pub struct DerivedType {
    raw: ffi::MPI_Datatype,
}

// SAFETY: a committed datatype is an immutable object, valid in the whole process.
unsafe impl Send for DerivedType {}
// SAFETY: a committed datatype is an immutable object, valid in the whole process.
unsafe impl Sync for DerivedType {}

impl DerivedType {
    /// Calls a constructor of MPI, which stores the new datatype. It keeps what it refers to.
    fn make(constructor: impl FnOnce(*mut ffi::MPI_Datatype) -> Result<()>) -> Result<DerivedType> {
        let mut raw = MaybeUninit::uninit();
        constructor(raw.as_mut_ptr())?;
        // SAFETY: the call succeeded, so MPI has filled `raw`.
        Ok(DerivedType { raw: unsafe { raw.assume_init() } })
    }

    fn commit(mut self) -> Result<DerivedType> {
        // SAFETY: the datatype is live.
        unsafe { call!(MPI_Type_commit(&mut self.raw)) }?;
        Ok(self)
    }

    /// A block of `bytes` bytes, which level `i`, from the innermost, repeats
    /// `counts[i]` times at a distance of `strides[i]` bytes.
    pub fn strided(bytes: usize, counts: &[usize], strides: &[isize]) -> Result<DerivedType> {
        let (bytes, byte) = (count(bytes)?, Datatype::Byte.raw());
        // SAFETY: the type is predefined.
        let mut inner =
            DerivedType::make(|raw| unsafe { call!(MPI_Type_contiguous(bytes, byte, raw)) })?;
        for (&n, &stride) in counts.iter().zip(strides) {
            let (items, stride) = (count(n)?, stride as ffi::MPI_Aint);
            inner = if stride < 0 {
                // Open MPI 4.1 treats a vector as contiguous if its negative stride equals the
                // block length. It handles displacements correctly.
                let at: Vec<ffi::MPI_Aint> = (0..n as ffi::MPI_Aint).map(|i| i * stride).collect();
                let (at, of) = (at.as_ptr(), inner.raw);
                // SAFETY: the array has `n` displacements, and `inner` is live.
                DerivedType::make(|raw| unsafe {
                    call!(MPI_Type_create_hindexed_block(items, 1, at, of, raw))
                })?
            } else {
                // SAFETY: `inner` is live.
                DerivedType::make(|raw| unsafe {
                    call!(MPI_Type_create_hvector(items, 1, stride, inner.raw, raw))
                })?
            };
        }
        inner.commit()
    }

    /// Blocks of `bytes` bytes at the displacements `at`, in bytes.
    pub fn blocks(bytes: usize, at: &[isize]) -> Result<DerivedType> {
        let at: Vec<ffi::MPI_Aint> = at.iter().map(|&d| d as ffi::MPI_Aint).collect();
        let (n, bytes, byte) = (count(at.len())?, count(bytes)?, Datatype::Byte.raw());
        // SAFETY: the array has `n` displacements.
        let blocks = DerivedType::make(|raw| unsafe {
            call!(MPI_Type_create_hindexed_block(n, bytes, at.as_ptr(), byte, raw))
        });
        blocks?.commit()
    }

    pub(super) fn raw(&self) -> ffi::MPI_Datatype {
        self.raw
    }
}

impl Drop for DerivedType {
    fn drop(&mut self) {
        if super::init::is_running() {
            // SAFETY: freed once. MPI keeps the datatype for operations that still use it.
            unsafe { ffi::MPI_Type_free(&mut self.raw) };
        }
    }
}
