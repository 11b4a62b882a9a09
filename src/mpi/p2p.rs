//! Two-sided messages of bytes.

use super::call::{check, count};
use super::request::received_bytes;
use super::{Comm, Datatype, Request};
use crate::error::Result;
use mpi::ffi;
use std::mem::MaybeUninit;
use std::os::raw::{c_int, c_void};

/// Starts a send.
///
/// # Safety
/// `data` must stay valid and unchanged for `len` bytes until the request has
/// completed.
pub unsafe fn isend(
    comm: &Comm,
    data: *const u8,
    len: usize,
    to: usize,
    tag: i32,
) -> Result<Request> {
    let mut request = Request::null();
    check(
        // SAFETY: the caller keeps `data` valid.
        unsafe {
            ffi::MPI_Isend(
                data.cast::<c_void>(),
                count(len)?,
                Datatype::Byte.raw(),
                to as c_int,
                tag,
                comm.live()?,
                &mut request.raw,
            )
        },
        "MPI_Isend",
    )?;
    Ok(request)
}

/// Posts a receive.
///
/// # Safety
/// `data` must stay valid for writes of `len` bytes, and not be read, until the
/// request has completed.
pub(crate) unsafe fn irecv(
    comm: &Comm,
    data: *mut u8,
    len: usize,
    from: Option<usize>,
    tag: i32,
) -> Result<Request> {
    let mut request = Request::null();
    check(
        // SAFETY: the caller keeps `data` valid; RSMPI_ANY_SOURCE is a constant.
        unsafe {
            let source = from.map_or(ffi::RSMPI_ANY_SOURCE, |r| r as c_int);
            ffi::MPI_Irecv(
                data.cast::<c_void>(),
                count(len)?,
                Datatype::Byte.raw(),
                source,
                tag,
                comm.live()?,
                &mut request.raw,
            )
        },
        "MPI_Irecv",
    )?;
    Ok(request)
}

/// Gives MPI an occasion to make progress, on a communicator that carries no
/// messages of ours.
pub(crate) fn poke(comm: &Comm) -> Result<()> {
    let mut flag: c_int = 0;
    check(
        // SAFETY: the flag is valid, and the status is ignored.
        unsafe {
            ffi::MPI_Iprobe(
                ffi::RSMPI_ANY_SOURCE,
                ffi::RSMPI_ANY_TAG,
                comm.live()?,
                &mut flag,
                ffi::RSMPI_STATUS_IGNORE,
            )
        },
        "MPI_Iprobe",
    )
}

/// A message that a matched probe has taken off the queue.
#[derive(Debug)]
pub struct Matched {
    message: ffi::MPI_Message,
    /// The sender.
    pub source: usize,
    /// Its length.
    pub bytes: usize,
}

/// Takes one waiting message, if there is one.
pub fn improbe(comm: &Comm, from: Option<usize>, tag: Option<i32>) -> Result<Option<Matched>> {
    let mut flag: c_int = 0;
    let mut message = MaybeUninit::uninit();
    let mut status = MaybeUninit::<ffi::MPI_Status>::uninit();
    // SAFETY: the out-parameters are valid; MPI fills them when `flag` is set.
    unsafe {
        let source = from.map_or(ffi::RSMPI_ANY_SOURCE, |r| r as c_int);
        let tag = tag.unwrap_or(ffi::RSMPI_ANY_TAG);
        check(
            ffi::MPI_Improbe(
                source,
                tag,
                comm.live()?,
                &mut flag,
                message.as_mut_ptr(),
                status.as_mut_ptr(),
            ),
            "MPI_Improbe",
        )?;
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
    /// Takes the message off without its bytes.
    pub fn discard(mut self) {
        // SAFETY: no byte is stored, and the message is consumed once. MPI reports that it was
        // longer; what else it may report leaves nothing to do.
        unsafe {
            ffi::MPI_Mrecv(
                std::ptr::null_mut(),
                0,
                Datatype::Byte.raw(),
                &mut self.message,
                ffi::RSMPI_STATUS_IGNORE,
            )
        };
    }

    /// Receives the message into `data`, which must have at least
    /// [`Matched::bytes`] bytes. The message is already here or on its way, so
    /// this waits at most for the wire.
    pub fn receive(mut self, data: &mut [u8]) -> Result<()> {
        assert!(data.len() >= self.bytes, "receive buffer shorter than the message");
        check(
            // SAFETY: the buffer is long enough, and the message is consumed once.
            unsafe {
                ffi::MPI_Mrecv(
                    data.as_mut_ptr().cast(),
                    count(self.bytes)?,
                    Datatype::Byte.raw(),
                    &mut self.message,
                    ffi::RSMPI_STATUS_IGNORE,
                )
            },
            "MPI_Mrecv",
        )
    }

    /// Starts the receive of the message.
    ///
    /// # Safety
    /// `data` must stay valid for writes of [`Matched::bytes`] bytes, and not
    /// be read, until the request has completed.
    pub unsafe fn start(mut self, data: *mut u8) -> Result<Request> {
        let mut request = Request::null();
        check(
            // SAFETY: the caller keeps `data` valid; the message is consumed once.
            unsafe {
                ffi::MPI_Imrecv(
                    data.cast(),
                    count(self.bytes)?,
                    Datatype::Byte.raw(),
                    &mut self.message,
                    &mut request.raw,
                )
            },
            "MPI_Imrecv",
        )?;
        Ok(request)
    }
}
