//! Predefined and derived datatypes, and reduction operations.

use super::call::{check, count, portolan_shim_op, portolan_shim_type};
use crate::error::Result;
use mpi::ffi;
use std::mem::MaybeUninit;
use std::os::raw::{c_int, c_void};

/// The predefined datatypes that the engine uses, with the names of the C binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Datatype {
    /// `MPI_BYTE`
    Byte = 0,
    /// `MPI_INT`
    Int = 1,
    /// `MPI_LONG`
    Long = 2,
    /// `MPI_FLOAT`
    Float = 3,
    /// `MPI_DOUBLE`
    Double = 4,
    /// `MPI_C_FLOAT_COMPLEX`
    FloatComplex = 5,
    /// `MPI_C_DOUBLE_COMPLEX`
    DoubleComplex = 6,
    /// `MPI_LONG_LONG`
    LongLong = 7,
    /// `MPI_SHORT`
    Short = 8,
}

impl Datatype {
    pub(super) fn raw(self) -> ffi::MPI_Datatype {
        // SAFETY: the shim returns a constant.
        unsafe { portolan_shim_type(self as c_int) }
    }

    /// Returns the size of one element in bytes.
    pub fn size(self) -> usize {
        match self {
            Datatype::Byte => 1,
            Datatype::Short => 2,
            Datatype::Int | Datatype::Float => 4,
            Datatype::Long | Datatype::Double | Datatype::FloatComplex | Datatype::LongLong => 8,
            Datatype::DoubleComplex => 16,
        }
    }
}

/// The predefined operations that the engine passes to MPI's accumulate calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Op {
    /// `MPI_SUM`
    Sum = 0,
    /// `MPI_REPLACE`
    Replace = 1,
    /// `MPI_NO_OP`
    NoOp = 2,
    /// `MPI_BAND`
    And = 3,
    /// `MPI_BOR`
    Or = 4,
    /// `MPI_BXOR`
    Xor = 5,
    /// `MPI_MIN`
    Min = 6,
    /// `MPI_MAX`
    Max = 7,
}

impl Op {
    pub(super) fn raw(self) -> ffi::MPI_Op {
        // SAFETY: the shim returns a constant.
        unsafe { portolan_shim_op(self as c_int) }
    }
}

/// MPI's handle of a datatype, as passed to reduction functions.
pub type RawDatatype = ffi::MPI_Datatype;

/// The function type of a user-defined reduction, as MPI calls it.
pub type ReduceFn =
    unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut ffi::MPI_Datatype);

/// A reduction operation created from a function. Dropping it frees it.
#[derive(Debug)]
pub struct ReduceOp {
    raw: ffi::MPI_Op,
}

// SAFETY: an `MPI_Op` is an immutable object, valid in the whole process.
unsafe impl Send for ReduceOp {}
// SAFETY: an `MPI_Op` is an immutable object, valid in the whole process.
unsafe impl Sync for ReduceOp {}

impl ReduceOp {
    /// Creates a commutative operation.
    ///
    /// # Safety
    /// `function` must combine `*len` elements of the type that the reductions with this operation
    /// use, and must not unwind.
    pub unsafe fn new(function: ReduceFn) -> Result<ReduceOp> {
        let mut raw = MaybeUninit::uninit();
        // SAFETY: the caller guarantees that the function is valid. MPI has filled `raw` if the
        // call succeeded.
        unsafe {
            check(ffi::MPI_Op_create(Some(function), 1, raw.as_mut_ptr()), "MPI_Op_create")?;
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

/// A committed derived datatype. Dropping it frees it.
#[derive(Debug)]
pub struct DerivedType {
    raw: ffi::MPI_Datatype,
}

// SAFETY: a committed datatype is an immutable object, valid in the whole process.
unsafe impl Send for DerivedType {}
// SAFETY: a committed datatype is an immutable object, valid in the whole process.
unsafe impl Sync for DerivedType {}

/// A datatype under construction, which is freed unless it is committed.
struct Building(ffi::MPI_Datatype);

impl Drop for Building {
    fn drop(&mut self) {
        // SAFETY: an `MPI_Type_` constructor created the datatype, and it is freed once.
        unsafe { ffi::MPI_Type_free(&mut self.0) };
    }
}

impl Building {
    fn commit(mut self) -> Result<DerivedType> {
        // SAFETY: `self.0` is a live datatype.
        check(unsafe { ffi::MPI_Type_commit(&mut self.0) }, "MPI_Type_commit")?;
        let raw = self.0;
        std::mem::forget(self);
        Ok(DerivedType { raw })
    }
}

impl DerivedType {
    /// Creates a datatype of nested levels. The innermost block has `elements` contiguous elements
    /// of `base`. Level `i`, counted from the innermost, repeats it `counts[i]` times at a distance
    /// of `strides[i]` bytes.
    pub fn strided(
        base: Datatype,
        elements: usize,
        counts: &[usize],
        strides: &[isize],
    ) -> Result<DerivedType> {
        let mut raw = MaybeUninit::uninit();
        check(
            // SAFETY: `base` is predefined.
            unsafe { ffi::MPI_Type_contiguous(count(elements)?, base.raw(), raw.as_mut_ptr()) },
            "MPI_Type_contiguous",
        )?;
        // SAFETY: the call succeeded, so MPI has filled `raw`.
        let mut inner = Building(unsafe { raw.assume_init() });
        for (&n, &stride) in counts.iter().zip(strides) {
            let mut raw = MaybeUninit::uninit();
            if stride < 0 {
                // Open MPI 4.1 treats a vector as contiguous if its negative stride equals the
                // block length. It handles displacements correctly.
                let at: Vec<ffi::MPI_Aint> =
                    (0..n as ffi::MPI_Aint).map(|i| i * stride as ffi::MPI_Aint).collect();
                check(
                    // SAFETY: the array has `n` displacements. `inner` is a live datatype, and the
                    // new one keeps its own reference to it.
                    unsafe {
                        ffi::MPI_Type_create_hindexed_block(
                            count(n)?,
                            1,
                            at.as_ptr(),
                            inner.0,
                            raw.as_mut_ptr(),
                        )
                    },
                    "MPI_Type_create_hindexed_block",
                )?;
                // SAFETY: the call succeeded, so MPI has filled `raw`.
                inner = Building(unsafe { raw.assume_init() });
                continue;
            }
            check(
                // SAFETY: `inner` is a live datatype, and the new one keeps its own reference to
                // it.
                unsafe {
                    ffi::MPI_Type_create_hvector(
                        count(n)?,
                        1,
                        stride as ffi::MPI_Aint,
                        inner.0,
                        raw.as_mut_ptr(),
                    )
                },
                "MPI_Type_create_hvector",
            )?;
            // SAFETY: the call succeeded, so MPI has filled `raw`.
            inner = Building(unsafe { raw.assume_init() });
        }
        inner.commit()
    }

    /// Creates a datatype of blocks at the byte displacements `at`. Each block has `elements`
    /// contiguous elements of `base`.
    pub fn blocks(base: Datatype, elements: usize, at: &[isize]) -> Result<DerivedType> {
        let at: Vec<ffi::MPI_Aint> = at.iter().map(|&d| d as ffi::MPI_Aint).collect();
        let mut raw = MaybeUninit::uninit();
        check(
            // SAFETY: the displacement array has `at.len()` elements.
            unsafe {
                ffi::MPI_Type_create_hindexed_block(
                    count(at.len())?,
                    count(elements)?,
                    at.as_ptr(),
                    base.raw(),
                    raw.as_mut_ptr(),
                )
            },
            "MPI_Type_create_hindexed_block",
        )?;
        // SAFETY: the call succeeded, so MPI has filled `raw`.
        Building(unsafe { raw.assume_init() }).commit()
    }

    pub(super) fn raw(&self) -> ffi::MPI_Datatype {
        self.raw
    }
}

impl Drop for DerivedType {
    fn drop(&mut self) {
        if super::init::is_running() {
            // SAFETY: this object owns the datatype and frees it once. MPI keeps it alive for
            // operations that still use it.
            unsafe { ffi::MPI_Type_free(&mut self.raw) };
        }
    }
}
