//! RMA windows over memory that the caller owns.
//!
//! A window is created over existing memory (`MPI_Win_create`), locked for all
//! targets at once and unlocked only when it is freed, so that operations need
//! no epoch of their own.

use super::call::{check, count, portolan_shim_mode_nocheck, portolan_shim_win_null};
use super::{Comm, Datatype, DerivedType, Op, Request};
use crate::error::{Result, fail};
use crate::watchdog::{Call, Inside};
use mpi::ffi;
use std::os::raw::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

/// An RMA window in a permanent shared lock.
#[derive(Debug)]
pub struct Window {
    raw: ffi::MPI_Win,
    freed: AtomicBool,
}

// SAFETY: windows are process-wide; see the module's note on threads.
unsafe impl Send for Window {}
// SAFETY: as above.
unsafe impl Sync for Window {}

/// How the bytes of one side of an operation lie.
#[derive(Debug, Clone, Copy)]
pub enum Shape<'a> {
    /// This many elements of a predefined type in a row.
    Row(usize, Datatype),
    /// One element of a derived type.
    Derived(&'a DerivedType),
}

impl Shape<'_> {
    fn raw(&self) -> Result<(c_int, ffi::MPI_Datatype)> {
        Ok(match self {
            Shape::Row(n, t) => (count(*n)?, t.raw()),
            Shape::Derived(t) => (1, t.raw()),
        })
    }
}

/// One side at the origin, the other at the target.
#[derive(Debug, Clone, Copy)]
pub struct Transfer<'a> {
    /// Memory of the calling rank.
    pub origin: *mut u8,
    /// How it lies there.
    pub origin_shape: Shape<'a>,
    /// Rank in the window's group.
    pub target: usize,
    /// Byte offset in the target's window.
    pub offset: usize,
    /// How it lies there.
    pub target_shape: Shape<'a>,
}

/// Starts a transfer by one of two calls of MPI, of which the second gives a request.
macro_rules! start {
    ($window:ident, $t:ident, $request:ident, $call:ident, $with_request:ident $(, $op:expr)?) => {{
        let (on, ot) = $t.origin_shape.raw()?;
        let (tn, tt) = $t.target_shape.raw()?;
        let (origin, target, at) = ($t.origin.cast(), $t.target as c_int, $t.offset as ffi::MPI_Aint);
        let (window, mut r) = ($window.raw, Request::null());
        if $request {
            let rc = ffi::$with_request(origin, on, ot, target, at, tn, tt, $($op,)? window, &mut r.raw);
            check(rc, stringify!($with_request))?;
            return Ok(Some(r));
        }
        check(ffi::$call(origin, on, ot, target, at, tn, tt, $($op,)? window), stringify!($call))?;
        Ok(None)
    }};
}

impl Window {
    /// Makes a window of each rank's `len` bytes at `base`. Collective.
    ///
    /// # Safety
    /// The memory must stay mapped until [`Window::free`].
    pub unsafe fn create(comm: &Comm, base: *mut u8, len: usize) -> Result<Window> {
        let _inside = Inside::enter(Call::WinCreate, None);
        // SAFETY: the shim returns a constant.
        let mut raw = unsafe { portolan_shim_win_null() };
        // SAFETY: the caller keeps the memory mapped. Errors at creation are
        // those of the communicator, which returns them.
        unsafe {
            check(
                ffi::MPI_Win_create(
                    base.cast::<c_void>(),
                    len as ffi::MPI_Aint,
                    1,
                    ffi::RSMPI_INFO_NULL,
                    comm.live()?,
                    &mut raw,
                ),
                "MPI_Win_create",
            )?;
            check(
                ffi::MPI_Win_set_errhandler(raw, ffi::RSMPI_ERRORS_RETURN),
                "MPI_Win_set_errhandler",
            )?;
            check(ffi::MPI_Win_lock_all(portolan_shim_mode_nocheck(), raw), "MPI_Win_lock_all")?;
        }
        Ok(Window { raw, freed: AtomicBool::new(false) })
    }

    /// Unlocks and frees. Collective, once; no operation may follow.
    pub fn free(&self) -> Result<()> {
        let _inside = Inside::enter(Call::WinFree, None);
        let mut raw = self.live()?;
        self.freed.store(true, Ordering::Relaxed);
        // SAFETY: it is live, and is given to MPI no more.
        unsafe {
            check(ffi::MPI_Win_unlock_all(raw), "MPI_Win_unlock_all")?;
            check(ffi::MPI_Win_free(&mut raw), "MPI_Win_free")
        }
    }

    /// The handle.
    ///
    /// # Errors
    /// `State` after it was freed: a program may finalise MPI under objects that use it.
    #[inline]
    fn live(&self) -> Result<ffi::MPI_Win> {
        if self.freed.load(Ordering::Relaxed) {
            fail!(State, "the window was freed, as by the end of the runtime");
        }
        Ok(self.raw)
    }

    /// Puts; with `request`, as an operation that can be tested.
    ///
    /// # Safety
    /// The origin's memory must stay valid and unchanged until the operation
    /// has completed locally; the target's must lie in its window.
    pub unsafe fn put(&self, t: &Transfer<'_>, request: bool) -> Result<Option<Request>> {
        // SAFETY: the caller vouches for both sides.
        unsafe { start!(self, t, request, MPI_Put, MPI_Rput) }
    }

    /// Gets; with `request`, as an operation that can be tested.
    ///
    /// # Safety
    /// The origin's memory must stay valid, and not be read, until the
    /// operation has completed; the target's must lie in its window.
    pub unsafe fn get(&self, t: &Transfer<'_>, request: bool) -> Result<Option<Request>> {
        // SAFETY: the caller vouches for both sides.
        unsafe { start!(self, t, request, MPI_Get, MPI_Rget) }
    }

    /// Accumulates with `MPI_SUM`; with `request`, as an operation that can be
    /// tested.
    ///
    /// # Safety
    /// As for [`Window::put`]; both shapes must be of one predefined type.
    pub unsafe fn accumulate(&self, t: &Transfer<'_>, request: bool) -> Result<Option<Request>> {
        // SAFETY: the caller vouches for both sides.
        unsafe { start!(self, t, request, MPI_Accumulate, MPI_Raccumulate, Op::Sum.raw()) }
    }

    /// Fetches the element at `offset` and combines it with `value`; returns
    /// when the old value is here.
    ///
    /// # Safety
    /// `value` and `result` must hold one element of `datatype`, and the
    /// target's element must lie in its window.
    pub unsafe fn fetch_and_op(
        &self,
        value: *const u8,
        result: *mut u8,
        datatype: Datatype,
        target: usize,
        offset: usize,
        op: Op,
    ) -> Result<()> {
        // SAFETY: the caller vouches for the memory.
        unsafe {
            check(
                ffi::MPI_Fetch_and_op(
                    value.cast(),
                    result.cast(),
                    datatype.raw(),
                    target as c_int,
                    offset as ffi::MPI_Aint,
                    op.raw(),
                    self.live()?,
                ),
                "MPI_Fetch_and_op",
            )?;
        }
        self.flush(target)
    }

    /// Puts `new` where `expected` stands; returns what stood there.
    ///
    /// # Safety
    /// The target's `long` must lie in its window.
    pub unsafe fn compare_and_swap(
        &self,
        expected: i64,
        new: i64,
        target: usize,
        offset: usize,
    ) -> Result<i64> {
        let mut found = 0i64;
        // SAFETY: the three values outlive the flush below.
        unsafe {
            check(
                ffi::MPI_Compare_and_swap(
                    (&raw const new).cast(),
                    (&raw const expected).cast(),
                    (&raw mut found).cast(),
                    Datatype::Long.raw(),
                    target as c_int,
                    offset as ffi::MPI_Aint,
                    self.live()?,
                ),
                "MPI_Compare_and_swap",
            )?;
        }
        self.flush(target)?;
        Ok(found)
    }

    /// Waits until everything issued to `target` is done there.
    pub fn flush(&self, target: usize) -> Result<()> {
        let _inside = Inside::enter(Call::WinFlush, Some(target));
        // SAFETY: the window is live and locked.
        check(unsafe { ffi::MPI_Win_flush(target as c_int, self.live()?) }, "MPI_Win_flush")
    }

    /// Waits until the origin's buffers of everything issued to `target` may be
    /// used again.
    pub fn flush_local(&self, target: usize) -> Result<()> {
        let _inside = Inside::enter(Call::WinFlushLocal, Some(target));
        // SAFETY: the window is live and locked.
        check(
            unsafe { ffi::MPI_Win_flush_local(target as c_int, self.live()?) },
            "MPI_Win_flush_local",
        )
    }

    /// Makes the window's public and private copies agree (they are one memory
    /// on the machines that have a unified model).
    pub fn sync(&self) -> Result<()> {
        // SAFETY: the window is live.
        check(unsafe { ffi::MPI_Win_sync(self.live()?) }, "MPI_Win_sync")
    }
}
