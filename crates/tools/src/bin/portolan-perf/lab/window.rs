//! MPI windows: one-sided operations that a flush completes, under a lock that is held throughout.
//! rsmpi lacks windows, so this file, and no other of this program, calls MPI directly.
//! [`MpiWindow`] checks the extent of every transfer.

use crate::result::Result;
use mpi::ffi;
use mpi::topology::SimpleCommunicator;
use mpi::traits::AsRaw;
use std::ffi::c_void;
use std::os::raw::c_int;

/// A window in memory that MPI has allocated, of the same size on each rank.
pub struct MpiWindow {
    raw: ffi::MPI_Win,
    bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Put,
    Get,
    /// `MPI_Accumulate` of double-precision numbers with `MPI_SUM`.
    Add,
    /// `MPI_Fetch_and_op` of 64-bit integers with `MPI_SUM`.
    FetchAdd,
}

fn check(code: c_int, call: &str) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(format!("{call} failed with code {code}").into()) }
}

impl MpiWindow {
    /// Allocates a window of `bytes` bytes on each rank and locks it for all ranks. Collective.
    pub fn allocate(comm: &SimpleCommunicator, bytes: usize) -> Result<MpiWindow> {
        let mut base: *mut c_void = std::ptr::null_mut();
        let mut raw = std::mem::MaybeUninit::<ffi::MPI_Win>::uninit();
        // SAFETY: the communicator is live. `MPI_Win_allocate` takes the address of the pointer
        // that it sets. The pointer and the window are used only after the call has returned
        // success, which means that both are set and that `base` has `bytes` bytes.
        unsafe {
            let place = (&raw mut base).cast::<c_void>();
            let size = bytes as ffi::MPI_Aint;
            let comm = comm.as_raw();
            check(
                ffi::MPI_Win_allocate(size, 1, ffi::RSMPI_INFO_NULL, comm, place, raw.as_mut_ptr()),
                "MPI_Win_allocate",
            )?;
            let raw = raw.assume_init();
            std::ptr::write_bytes(base.cast::<u8>(), 0, bytes);
            check(ffi::MPI_Win_lock_all(0, raw), "MPI_Win_lock_all")?;
            Ok(MpiWindow { raw, bytes })
        }
    }

    /// Unlocks and frees the window. Collective.
    pub fn free(mut self) -> Result<()> {
        // SAFETY: the window has been live and locked since `allocate`, and is not used afterwards.
        unsafe {
            check(ffi::MPI_Win_unlock_all(self.raw), "MPI_Win_unlock_all")?;
            check(ffi::MPI_Win_free(&mut self.raw), "MPI_Win_free")
        }
    }

    /// Runs the operation `times` times at the target and completes it with a flush. Transfers have
    /// `length` bytes and go to consecutive offsets.
    pub fn run(
        &self,
        operation: Operation,
        target: usize,
        local: &mut [u8],
        (length, times): (usize, usize),
    ) -> Result<()> {
        let distinct = if operation == Operation::Get { times } else { 1 };
        if local.len() < length * distinct || length * times > self.bytes {
            return Err(format!("{times} times {length} bytes exceed the window").into());
        }
        let (count, rank) = (c_int::try_from(length)?, c_int::try_from(target)?);
        // `FetchAdd` accesses the first 8 bytes of a window, and `Lab::window` allocates far more.
        // An accumulate transfers only the doubles that lie entirely within `length`.
        // SAFETY: `local` and the operands outlive the flush. The check above keeps all transfers
        // inside `local` and the window, which has the same size on each rank. MPI checks the rank.
        unsafe {
            let (byte, double) = (ffi::RSMPI_UINT8_T, ffi::RSMPI_DOUBLE);
            for turn in 0..times {
                let at = (turn * length) as ffi::MPI_Aint;
                let here = local.as_mut_ptr().cast::<c_void>();
                let code = match operation {
                    Operation::Put => {
                        ffi::MPI_Put(here, count, byte, rank, at, count, byte, self.raw)
                    }
                    Operation::Get => {
                        let here = here.add(turn * length);
                        ffi::MPI_Get(here, count, byte, rank, at, count, byte, self.raw)
                    }
                    Operation::Add => {
                        let (n, sum) = (count / 8, ffi::RSMPI_SUM);
                        ffi::MPI_Accumulate(here, n, double, rank, at, n, double, sum, self.raw)
                    }
                    Operation::FetchAdd => {
                        let (one, was) = (1i64, &mut [0i64]);
                        let (from, long) = ((&raw const one).cast(), ffi::RSMPI_INT64_T);
                        let to = was.as_mut_ptr().cast();
                        let sum = ffi::RSMPI_SUM;
                        ffi::MPI_Fetch_and_op(from, to, long, rank, 0, sum, self.raw);
                        ffi::MPI_Win_flush(rank, self.raw)
                    }
                };
                check(code, "an operation of an MPI window")?;
            }
            check(ffi::MPI_Win_flush(rank, self.raw), "MPI_Win_flush")
        }
    }
}
