//! MPI's windows: memory that `MPI_Win_allocate` makes, open to all ranks all the time.

use crate::Result;
use crate::two_sided::World;
use bytemuck::Pod;
use mpi::ffi;
use std::ffi::{c_int, c_void};

/// A window with the same number of elements on every rank. Its elements are zero at first.
#[derive(Debug)]
pub struct Window<T: Pod> {
    handle: ffi::MPI_Win,
    base: *mut T,
    len: usize,
}

/// Operations of MPI's accumulates.
#[derive(Debug, Clone, Copy)]
pub enum Operation {
    /// Adds.
    Sum,
    /// Combines by exclusive or.
    Xor,
}

impl Operation {
    fn handle(self) -> ffi::MPI_Op {
        // SAFETY: the constants of MPI are only read.
        unsafe {
            match self {
                Operation::Sum => ffi::RSMPI_SUM,
                Operation::Xor => ffi::RSMPI_BXOR,
            }
        }
    }
}

fn check(code: c_int, call: &str) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(format!("{call} returned {code}").into()) }
}

impl<T: Pod> Window<T> {
    /// Makes a window with `len` elements on each rank. Collective.
    pub fn new(world: World, len: usize) -> Result<Window<T>> {
        // MPICH 4.0 needs sizes that are multiples of 16 bytes.
        let bytes = (len * size_of::<T>()).next_multiple_of(64).max(64);
        let mut base: *mut c_void = std::ptr::null_mut();
        // SAFETY: the pointers are of this function, and every rank passes the same size.
        let handle = unsafe {
            let mut handle = ffi::RSMPI_WIN_NULL;
            ffi::MPI_Comm_set_errhandler(ffi::RSMPI_COMM_WORLD, ffi::RSMPI_ERRORS_RETURN);
            let made = ffi::MPI_Win_allocate(
                bytes as ffi::MPI_Aint,
                1,
                ffi::RSMPI_INFO_NULL,
                ffi::RSMPI_COMM_WORLD,
                (&raw mut base).cast(),
                &mut handle,
            );
            ffi::MPI_Comm_set_errhandler(ffi::RSMPI_COMM_WORLD, ffi::RSMPI_ERRORS_ARE_FATAL);
            check(made, "MPI_Win_allocate")?;
            base.cast::<u8>().write_bytes(0, bytes);
            check(ffi::MPI_Win_lock_all(0, handle), "MPI_Win_lock_all")?;
            handle
        };
        let window = Window { handle, base: base.cast(), len };
        window.sync();
        world.barrier();
        Ok(window)
    }

    fn place(&self, at: usize, count: usize) -> ffi::MPI_Aint {
        assert!(at <= self.len && count <= self.len - at, "{count} elements at {at}");
        (at * size_of::<T>()) as ffi::MPI_Aint
    }

    /// Starts to put elements.
    ///
    /// # Safety
    /// `elements` must not be changed or freed before the next flush.
    pub unsafe fn put(&self, rank: usize, at: usize, elements: &[T]) {
        let place = self.place(at, elements.len());
        let bytes = size_of_val(elements) as c_int;
        let byte = byte();
        // SAFETY: the caller keeps the elements, and the target has this place.
        unsafe {
            ffi::MPI_Put(
                elements.as_ptr().cast(),
                bytes,
                byte,
                rank as c_int,
                place,
                bytes,
                byte,
                self.handle,
            )
        };
    }

    /// Starts to get elements.
    ///
    /// # Safety
    /// `into` must not be used or freed before the next flush.
    pub unsafe fn get(&self, rank: usize, at: usize, into: &mut [T]) {
        let place = self.place(at, into.len());
        let bytes = size_of_val(into) as c_int;
        let byte = byte();
        // SAFETY: the caller leaves the elements alone, and the target has this place.
        unsafe {
            ffi::MPI_Get(
                into.as_mut_ptr().cast(),
                bytes,
                byte,
                rank as c_int,
                place,
                bytes,
                byte,
                self.handle,
            )
        };
    }

    /// Completes all operations to `rank`.
    pub fn flush(&self, rank: usize) {
        // SAFETY: the window is alive and locked.
        unsafe { ffi::MPI_Win_flush(rank as c_int, self.handle) };
    }

    /// Completes all operations.
    pub fn flush_all(&self) {
        // SAFETY: the window is alive and locked.
        unsafe { ffi::MPI_Win_flush_all(self.handle) };
    }

    /// Makes what other ranks have written visible here, and the reverse.
    pub fn sync(&self) {
        // SAFETY: the window is alive and locked.
        unsafe { ffi::MPI_Win_sync(self.handle) };
    }

    /// Reads an own element, which another rank may be changing.
    pub fn read(&self, at: usize) -> T {
        self.place(at, 1);
        // SAFETY: the place is inside the part, and any bytes are a value.
        unsafe { self.base.add(at).read_volatile() }
    }

    /// Writes an own element.
    pub fn write(&self, at: usize, value: T) {
        self.place(at, 1);
        // SAFETY: the place is inside the part.
        unsafe { self.base.add(at).write_volatile(value) }
    }

    /// Returns the own elements.
    ///
    /// # Safety
    /// No rank may access them while the slice is alive.
    #[expect(
        clippy::mut_from_ref,
        reason = "the memory belongs to MPI, and the caller excludes others"
    )]
    pub unsafe fn local(&self) -> &mut [T] {
        // SAFETY: the part has `len` elements, and the caller excludes other accesses.
        unsafe { std::slice::from_raw_parts_mut(self.base, self.len) }
    }

    /// Frees the window. Collective.
    pub fn free(mut self) {
        // SAFETY: the window is alive and locked, and is not used any more.
        unsafe {
            ffi::MPI_Win_unlock_all(self.handle);
            ffi::MPI_Win_free(&mut self.handle);
        }
    }
}

impl Window<u64> {
    /// Starts to combine an element with `value`.
    ///
    /// # Safety
    /// `value` must not be changed or freed before the next flush.
    pub unsafe fn accumulate(&self, rank: usize, at: usize, value: &u64, how: Operation) {
        let place = self.place(at, 1);
        // SAFETY: the caller keeps the value, and the target has this place.
        unsafe {
            ffi::MPI_Accumulate(
                std::ptr::from_ref(value).cast(),
                1,
                ffi::RSMPI_UINT64_T,
                rank as c_int,
                place,
                1,
                ffi::RSMPI_UINT64_T,
                how.handle(),
                self.handle,
            )
        };
    }

    /// Adds, and returns the element's value before.
    pub fn fetch_add(&self, rank: usize, at: usize, value: u64) -> u64 {
        let place = self.place(at, 1);
        let mut old = 0u64;
        // SAFETY: both values live until the flush, and the target has this place.
        unsafe {
            ffi::MPI_Fetch_and_op(
                (&raw const value).cast(),
                (&raw mut old).cast(),
                ffi::RSMPI_UINT64_T,
                rank as c_int,
                place,
                ffi::RSMPI_SUM,
                self.handle,
            );
        }
        self.flush(rank);
        old
    }

    /// Stores `new` if the element equals `expected`. Returns the element's value before.
    pub fn compare_swap(&self, rank: usize, at: usize, expected: u64, new: u64) -> u64 {
        let place = self.place(at, 1);
        let mut old = 0u64;
        // SAFETY: the values live until the flush, and the target has this place.
        unsafe {
            ffi::MPI_Compare_and_swap(
                (&raw const new).cast(),
                (&raw const expected).cast(),
                (&raw mut old).cast(),
                ffi::RSMPI_UINT64_T,
                rank as c_int,
                place,
                self.handle,
            );
        }
        self.flush(rank);
        old
    }
}

fn byte() -> ffi::MPI_Datatype {
    // SAFETY: the constant of MPI is only read.
    unsafe { ffi::RSMPI_UINT8_T }
}
