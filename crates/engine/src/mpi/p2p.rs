//! Two-sided messages of bytes.

use super::call::{call, count, start};
use super::request::received_bytes;
use super::{Comm, Datatype, Request};
use mpi::ffi;
use portolan_base::error::Result;
use std::mem::MaybeUninit;
use std::os::raw::c_int;

/// # Safety
/// `data` must stay valid and unchanged for `len` bytes until the request has completed.
#[inline]
pub unsafe fn isend(
    comm: &Comm,
    data: *const u8,
    len: usize,
    to: usize,
    tag: i32,
) -> Result<Request> {
    let (n, t) = (count(len)?, Datatype::Byte.raw());
    // SAFETY: the caller keeps `data` valid until the request has completed.
    unsafe { start!(comm, MPI_Isend(data.cast(), n, t, to as c_int, tag)) }
}

/// Receives at most `len` bytes from rank `from`, or from any rank for `None`.
///
/// # Safety
/// `data` must be valid for writes of `len` bytes and not read until the request has completed.
pub(crate) unsafe fn irecv(
    comm: &Comm,
    data: *mut u8,
    len: usize,
    from: Option<usize>,
    tag: i32,
) -> Result<Request> {
    let (n, t) = (count(len)?, Datatype::Byte.raw());
    // SAFETY: the caller keeps `data` valid until completion. `RSMPI_ANY_SOURCE` is a constant.
    unsafe {
        let source = from.map_or(ffi::RSMPI_ANY_SOURCE, |r| r as c_int);
        start!(comm, MPI_Irecv(data.cast(), n, t, source, tag))
    }
}

/// Lets MPI make progress by a probe on `comm`, which carries no messages of the engine.
pub(crate) fn poke(comm: &Comm) -> Result<()> {
    let mut flag: c_int = 0;
    // SAFETY: the flag is valid, and the status is ignored.
    unsafe {
        let (source, tag) = (ffi::RSMPI_ANY_SOURCE, ffi::RSMPI_ANY_TAG);
        call!(MPI_Iprobe(source, tag, comm.live()?, &mut flag, ffi::RSMPI_STATUS_IGNORE))
    }
}

#[derive(Debug)]
pub struct Matched {
    message: ffi::MPI_Message,
    pub source: usize,
    pub bytes: usize,
}

/// Takes one message that has arrived, if any. `None` for `from` or `tag` matches all.
pub fn improbe(comm: &Comm, from: Option<usize>, tag: Option<i32>) -> Result<Option<Matched>> {
    let mut flag: c_int = 0;
    let mut message = MaybeUninit::uninit();
    let mut status = MaybeUninit::<ffi::MPI_Status>::uninit();
    // SAFETY: the out-parameters are valid, and are read only if MPI has set `flag`.
    unsafe {
        let source = from.map_or(ffi::RSMPI_ANY_SOURCE, |r| r as c_int);
        let tag = tag.unwrap_or(ffi::RSMPI_ANY_TAG);
        call!(MPI_Improbe(
            source,
            tag,
            comm.live()?,
            &mut flag,
            message.as_mut_ptr(),
            status.as_mut_ptr(),
        ))?;
        if flag == 0 {
            return Ok(None);
        }
        let status = status.assume_init();
        Ok(Some(Matched {
            message: message.assume_init(),
            source: status.MPI_SOURCE as usize,
            bytes: received_bytes(&status),
        }))
    }
}

impl Matched {
    /// `data` must have [`Matched::bytes`] bytes. Waits only for a message that is on its way.
    pub fn receive(mut self, data: &mut [u8]) -> Result<()> {
        assert!(data.len() >= self.bytes, "the receive buffer is shorter than the message");
        let (to, n, t) = (data.as_mut_ptr().cast(), count(self.bytes)?, Datatype::Byte.raw());
        // SAFETY: the buffer is long enough, and the message is consumed once.
        unsafe { call!(MPI_Mrecv(to, n, t, &mut self.message, ffi::RSMPI_STATUS_IGNORE)) }
    }

    /// # Safety
    /// `data` must be valid for writes of [`Matched::bytes`] bytes and not read until the request
    /// has completed.
    pub unsafe fn start(mut self, data: *mut u8) -> Result<Request> {
        let (mut request, n, t) = (Request::null(), count(self.bytes)?, Datatype::Byte.raw());
        // SAFETY: the caller keeps `data` valid until completion. The message is consumed once.
        unsafe { call!(MPI_Imrecv(data.cast(), n, t, &mut self.message, &mut request.raw)) }?;
        Ok(request)
    }
}
