//! MPI's windows: operations that a flush completes, in a shared lock that lasts.
//!
//! rsmpi has no windows, so this file calls MPI itself; it is the program's only one that does.
//! [`Window`] checks every extent, so that its calls are safe to make with any arguments.

use crate::Result;
use crate::measure::{Body, By, Contender, Lab};
use crate::plan::Case;
use mpi::ffi;
use mpi::topology::SimpleCommunicator;
use mpi::traits::AsRaw;
use std::ffi::c_void;
use std::os::raw::c_int;

/// A window of memory that MPI has allocated, as many bytes on each rank.
pub struct Window {
    raw: ffi::MPI_Win,
    bytes: usize,
}

/// What is done at the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// `MPI_Put`
    Put,
    /// `MPI_Get`
    Get,
    /// `MPI_Accumulate` of double precision with `MPI_SUM`.
    Add,
    /// `MPI_Fetch_and_op` of 64-bit integers with `MPI_SUM`.
    FetchAdd,
}

fn check(code: c_int, call: &str) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(format!("{call} failed with code {code}").into()) }
}

impl Window {
    /// Allocates and locks for all ranks. Collective.
    pub fn allocate(comm: &SimpleCommunicator, bytes: usize) -> Result<Window> {
        let mut base: *mut c_void = std::ptr::null_mut();
        let mut raw = std::mem::MaybeUninit::<ffi::MPI_Win>::uninit();
        // SAFETY: the communicator is live, and both results are written before the call returns
        // its success, which is checked before the window is used. `MPI_Win_allocate` takes the
        // address of the pointer that it sets.
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
            Ok(Window { raw, bytes })
        }
    }

    /// Unlocks and frees. Collective.
    pub fn free(mut self) -> Result<()> {
        // SAFETY: the window is live and locked since `allocate`, and is used no more.
        unsafe {
            check(ffi::MPI_Win_unlock_all(self.raw), "MPI_Win_unlock_all")?;
            check(ffi::MPI_Win_free(&mut self.raw), "MPI_Win_free")
        }
    }

    /// Operations at offsets of a target, which a flush completes there.
    fn run(
        &self,
        operation: Operation,
        target: usize,
        local: &mut [u8],
        (length, times): (usize, usize),
    ) -> Result<()> {
        let distinct = if operation == Operation::Get { times } else { 1 };
        if local.len() < length * distinct || length * times > self.bytes {
            return Err(format!("{times} times {length} bytes lie outside the window").into());
        }
        let (count, rank) = (c_int::try_from(length)?, c_int::try_from(target)?);
        // SAFETY: the local memory is borrowed until after the flush, and has the bytes, as
        // the window of each rank has, by the check above; MPI checks the rank. The types are
        // constants; accumulates have whole numbers of theirs.
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

/// The operation, `window` times to one target and then a flush.
pub fn flushed<'a>(
    lab: &'a Lab<'_>,
    case: Case,
    operation: Operation,
    window: usize,
) -> Result<Contender<'a>> {
    let targets = lab.targets(case.pattern);
    let length = case.bytes;
    let copies = if operation == Operation::Get { window } else { 1 };
    let mut local = vec![0u8; if targets.is_empty() { 0 } else { length * copies }];
    let mpi = lab.window()?;
    let body: Body<'a> = Box::new(move |n| {
        if targets.is_empty() {
            return Ok(());
        }
        for turn in 0..n {
            mpi.run(operation, targets[turn % targets.len()], &mut local, (length, window))?;
        }
        Ok(())
    });
    Ok(Contender { name: "MPI RMA", by: By::Mpi, both: true, body, ops: window as f64 })
}
