//! Collectives. All are nonblocking and return a [`Request`]. The engine waits for it in its own
//! loop, which makes progress for other ranks and yields the core when idle.

use super::call::{count, portolan_shim_in_place, start};
use super::{Comm, Datatype, DerivedType, ReduceOp, Request};
use portolan_base::error::Result;
use std::os::raw::{c_int, c_void};

impl Comm {
    pub fn ibarrier(&self) -> Result<Request> {
        // SAFETY: `live` returns a live communicator.
        unsafe { start!(self, MPI_Ibarrier()) }
    }

    /// # Safety
    /// `data` must be valid for `len` bytes and not accessed until the request has completed.
    pub unsafe fn ibcast(&self, data: *mut u8, len: usize, root: usize) -> Result<Request> {
        let (n, t, root) = (count(len)?, Datatype::Byte.raw(), root as c_int);
        // SAFETY: the caller keeps `data` valid until the request has completed.
        unsafe { start!(self, MPI_Ibcast(data.cast(), n, t, root)) }
    }

    /// # Safety
    /// `from` (`len` bytes) and `to` (`len` bytes for each rank) must be disjoint and valid until
    /// the request has completed.
    pub unsafe fn iallgather(&self, from: *const u8, to: *mut u8, len: usize) -> Result<Request> {
        let (n, t) = (count(len)?, Datatype::Byte.raw());
        // SAFETY: the caller keeps both buffers valid until the request has completed.
        unsafe { start!(self, MPI_Iallgather(from.cast(), n, t, to.cast(), n, t)) }
    }

    /// Starts a reduction in place. The result is at `root`, or at all ranks for `None`.
    ///
    /// # Safety
    /// `data` must be valid for `n` elements of `datatype` and not accessed until the request has
    /// completed.
    pub unsafe fn ireduce(
        &self,
        data: *mut c_void,
        n: usize,
        datatype: Datatype,
        op: &ReduceOp,
        root: Option<usize>,
    ) -> Result<Request> {
        let (n, t, op) = (count(n)?, datatype.raw(), op.raw());
        // SAFETY: the caller keeps `data` valid until completion. MPI_IN_PLACE is passed only where
        // the standard allows it: in an allreduce, and at the root of a reduce.
        unsafe {
            let here = portolan_shim_in_place();
            let Some(root) = root else {
                return start!(self, MPI_Iallreduce(here, data, n, t, op));
            };
            let from = if root == self.rank() { here } else { data };
            start!(self, MPI_Ireduce(from, data, n, t, op, root as c_int))
        }
    }

    /// Starts a scan in place over this rank and all lower ones, or only the lower ones if
    /// `exclusive`. An exclusive scan does not change the data of rank 0.
    ///
    /// # Safety
    /// `data` must be valid for `n` elements of `datatype` and not accessed until the request has
    /// completed.
    pub unsafe fn iscan(
        &self,
        data: *mut c_void,
        n: usize,
        datatype: Datatype,
        op: &ReduceOp,
        exclusive: bool,
    ) -> Result<Request> {
        let (n, datatype) = (count(n)?, datatype.raw());
        // SAFETY: the caller keeps `data` valid until the request has completed.
        unsafe {
            let here = portolan_shim_in_place();
            match exclusive {
                false => start!(self, MPI_Iscan(here, data, n, datatype, op.raw())),
                true => start!(self, MPI_Iexscan(here, data, n, datatype, op.raw())),
            }
        }
    }

    /// # Safety
    /// `from` must be valid for `n` elements, and `to` at the root for `n` elements from each rank,
    /// until the request has completed. They must not overlap.
    pub unsafe fn igather(
        &self,
        from: *const c_void,
        to: *mut c_void,
        n: usize,
        element: &DerivedType,
        root: usize,
    ) -> Result<Request> {
        let (n, t, root) = (count(n)?, element.raw(), root as c_int);
        // SAFETY: the caller keeps both buffers valid until the request has completed.
        unsafe { start!(self, MPI_Igather(from, n, t, to, n, t, root)) }
    }

    /// # Safety
    /// `to` must be valid for `n` elements, and `from` at the root for `n` elements for each rank,
    /// until the request has completed. They must not overlap.
    pub unsafe fn iscatter(
        &self,
        from: *const c_void,
        to: *mut c_void,
        n: usize,
        element: &DerivedType,
        root: usize,
    ) -> Result<Request> {
        let (n, t, root) = (count(n)?, element.raw(), root as c_int);
        // SAFETY: the caller keeps both buffers valid until the request has completed.
        unsafe { start!(self, MPI_Iscatter(from, n, t, to, n, t, root)) }
    }

    /// # Safety
    /// Both buffers must be disjoint and valid for `n` elements for each rank until the request has
    /// completed.
    pub unsafe fn ialltoall(
        &self,
        from: *const c_void,
        to: *mut c_void,
        n: usize,
        element: &DerivedType,
    ) -> Result<Request> {
        let (n, t) = (count(n)?, element.raw());
        // SAFETY: the caller keeps both buffers valid until the request has completed.
        unsafe { start!(self, MPI_Ialltoall(from, n, t, to, n, t)) }
    }

    /// Each side has the number of elements for each rank, and their offsets.
    ///
    /// # Safety
    /// The buffers must contain the described elements and must not overlap. All arguments must be
    /// valid until the request has completed.
    pub unsafe fn ialltoallv(
        &self,
        (from, sends): (*const c_void, &(Vec<c_int>, Vec<c_int>)),
        (to, receives): (*mut c_void, &(Vec<c_int>, Vec<c_int>)),
        element: &DerivedType,
    ) -> Result<Request> {
        let t = element.raw();
        let [s, so, r, ro] = [&sends.0, &sends.1, &receives.0, &receives.1].map(|v| v.as_ptr());
        // SAFETY: the caller keeps buffers and lists valid until the request has completed.
        unsafe { start!(self, MPI_Ialltoallv(from, s, so, t, to, r, ro, t)) }
    }
}
