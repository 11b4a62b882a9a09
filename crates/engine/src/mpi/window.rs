//! RMA windows over existing memory (`MPI_Win_create`). A window is locked for all targets until it
//! is freed, so that operations do not need their own epochs.

use super::call::{call, count, portolan_shim_mode_nocheck, portolan_shim_win_null};
use super::{Comm, Datatype, DerivedType, Request};
use crate::error::{Result, fail};
use crate::thread::blocked::InMpi;
use mpi::ffi;
use std::os::raw::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug)]
pub struct Window {
    raw: ffi::MPI_Win,
    freed: AtomicBool,
}

// SAFETY: valid in the whole process; shared only at a thread level that allows this.
unsafe impl Send for Window {}
// SAFETY: a window is shared between threads only at a thread level that allows this.
unsafe impl Sync for Window {}

/// How the bytes of one side lie.
#[derive(Debug, Clone)]
pub enum WindowShape {
    /// Contiguous bytes.
    Row(usize),
    Derived(Arc<DerivedType>),
}

impl WindowShape {
    fn raw(&self) -> Result<(c_int, ffi::MPI_Datatype)> {
        Ok(match self {
            WindowShape::Row(n) => (count(*n)?, Datatype::Byte.raw()),
            WindowShape::Derived(t) => (1, t.raw()),
        })
    }
}

#[derive(Debug, Clone, Copy)]
pub struct WindowTransfer<'a> {
    pub origin: *mut u8,
    pub origin_shape: &'a WindowShape,
    /// In the group of the window.
    pub target: usize,
    pub offset: usize,
    pub target_shape: &'a WindowShape,
}

/// Starts a transfer by one of two MPI calls, the second with a request.
macro_rules! start {
    ($window:ident, $t:ident, $request:ident, $call:ident, $with_request:ident) => {{
        let (on, ot) = $t.origin_shape.raw()?;
        let (tn, tt) = $t.target_shape.raw()?;
        let (origin, target, at) =
            ($t.origin.cast(), $t.target as c_int, $t.offset as ffi::MPI_Aint);
        let (window, mut r) = ($window.live()?, Request::null());
        if $request {
            call!($with_request(origin, on, ot, target, at, tn, tt, window, &mut r.raw))?;
            return Ok(Some(r));
        }
        call!($call(origin, on, ot, target, at, tn, tt, window))?;
        Ok(None)
    }};
}

impl Window {
    /// # Safety
    /// The memory must stay mapped until [`Window::free`].
    pub unsafe fn create(comm: &Comm, base: *mut u8, len: usize) -> Result<Window> {
        let _inside = InMpi::enter(&"MPI_Win_create", None);
        // SAFETY: the shim returns a constant.
        let mut raw = unsafe { portolan_shim_win_null() };
        // SAFETY: the caller keeps the memory mapped. The communicator returns errors.
        unsafe {
            call!(MPI_Win_create(
                base.cast::<c_void>(),
                len as ffi::MPI_Aint,
                1,
                ffi::RSMPI_INFO_NULL,
                comm.live()?,
                &mut raw,
            ))?;
            call!(MPI_Win_set_errhandler(raw, ffi::RSMPI_ERRORS_RETURN))?;
            call!(MPI_Win_lock_all(portolan_shim_mode_nocheck(), raw))?;
        }
        Ok(Window { raw, freed: AtomicBool::new(false) })
    }

    /// Collective, and called once. Later operations fail.
    pub fn free(&self) -> Result<()> {
        let _inside = InMpi::enter(&"MPI_Win_free", None);
        let mut raw = self.live()?;
        self.freed.store(true, Ordering::Relaxed);
        // SAFETY: the handle is live, and the caller issues no operation afterwards.
        unsafe {
            call!(MPI_Win_unlock_all(raw))?;
            call!(MPI_Win_free(&mut raw))
        }
    }

    /// Fails with `State` after `free`: a program may finalise MPI while objects still use it.
    #[inline]
    fn live(&self) -> Result<ffi::MPI_Win> {
        if self.freed.load(Ordering::Relaxed) {
            fail!(State, "the window was freed, as by the end of the runtime");
        }
        Ok(self.raw)
    }

    /// # Safety
    /// The origin's memory must be valid and unchanged until the operation has completed locally.
    /// The target's memory must lie in its window.
    pub unsafe fn put(&self, t: &WindowTransfer<'_>, request: bool) -> Result<Option<Request>> {
        // SAFETY: the caller guarantees the memory on both sides.
        unsafe { start!(self, t, request, MPI_Put, MPI_Rput) }
    }

    /// # Safety
    /// The origin's memory must be valid and not read until the operation has completed. The
    /// target's memory must lie in its window.
    pub unsafe fn get(&self, t: &WindowTransfer<'_>, request: bool) -> Result<Option<Request>> {
        // SAFETY: the caller guarantees the memory on both sides.
        unsafe { start!(self, t, request, MPI_Get, MPI_Rget) }
    }

    pub fn flush(&self, target: usize) -> Result<()> {
        let _inside = InMpi::enter(&"MPI_Win_flush", Some(target));
        // SAFETY: the window is live and locked.
        unsafe { call!(MPI_Win_flush(target as c_int, self.live()?)) }
    }

    pub fn flush_local(&self, target: usize) -> Result<()> {
        let _inside = InMpi::enter(&"MPI_Win_flush_local", Some(target));
        // SAFETY: the window is live and locked.
        unsafe { call!(MPI_Win_flush_local(target as c_int, self.live()?)) }
    }

    /// Synchronises the public and private copies, which are one in the unified memory model.
    pub fn sync(&self) -> Result<()> {
        // SAFETY: the window is live.
        unsafe { call!(MPI_Win_sync(self.live()?)) }
    }
}
