//! RMA windows over existing memory (`MPI_Win_create`). A window is locked for all targets until it
//! is freed, so that operations do not need their own epochs.

use super::call::{call, count, portolan_shim_mode_nocheck, portolan_shim_win_null};
use super::{Comm, Datatype, DerivedType, Request};
use mpi::ffi;
use portolan_base::error::{Result, fail};
use portolan_base::thread::blocked::InMpi;
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

/// A put or a get.
#[derive(Debug, Clone)]
pub struct WindowTransfer {
    pub is_get: bool,
    /// Address in this process.
    pub origin: usize,
    pub origin_shape: WindowShape,
    /// In the group of the window.
    pub target: usize,
    pub offset: usize,
    pub target_shape: WindowShape,
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

    /// Starts a transfer. With `request`, returns a request that can be tested.
    ///
    /// # Safety
    /// The target's memory must lie in its window. The origin's memory must be valid and unchanged
    /// until a put has completed locally, and valid and not read until a get has completed.
    pub unsafe fn start(&self, t: &WindowTransfer, request: bool) -> Result<Option<Request>> {
        let ((on, ot), (tn, tt)) = (t.origin_shape.raw()?, t.target_shape.raw()?);
        let (from, to) = (t.origin as *const c_void, t.origin as *mut c_void);
        let (target, at) = (t.target as c_int, t.offset as ffi::MPI_Aint);
        let (window, mut r) = (self.live()?, Request::null());
        // SAFETY: the caller guarantees the memory on both sides.
        unsafe {
            match (t.is_get, request) {
                (false, false) => call!(MPI_Put(from, on, ot, target, at, tn, tt, window)),
                (false, true) => {
                    call!(MPI_Rput(from, on, ot, target, at, tn, tt, window, &mut r.raw))
                }
                (true, false) => call!(MPI_Get(to, on, ot, target, at, tn, tt, window)),
                (true, true) => {
                    call!(MPI_Rget(to, on, ot, target, at, tn, tt, window, &mut r.raw))
                }
            }
        }?;
        Ok(request.then_some(r))
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
