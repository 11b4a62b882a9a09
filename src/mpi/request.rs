//! Outstanding MPI requests: one, or a set polled together.

use super::Datatype;
use super::call::{check, count, portolan_shim_request_null};
use crate::error::Result;
use mpi::ffi;
use std::mem::MaybeUninit;
use std::os::raw::c_int;

pub(super) fn received_bytes(status: &ffi::MPI_Status) -> usize {
    let mut n: c_int = 0;
    // SAFETY: `status` was filled by MPI for a request of bytes; for a send the
    // count is meaningless and is not looked at.
    unsafe { ffi::MPI_Get_count(status, Datatype::Byte.raw(), &mut n) };
    usize::try_from(n).unwrap_or(0)
}

/// The source and the length of a received message.
fn message_of(status: &ffi::MPI_Status) -> (usize, usize) {
    (status.MPI_SOURCE as usize, received_bytes(status))
}

/// One outstanding request. The memory it names must outlive it: see the
/// constructors, which are `unsafe` or tie the memory to the caller's wait.
#[derive(Debug)]
pub struct Request {
    pub(super) raw: ffi::MPI_Request,
}

// SAFETY: an MPI request may be completed by any thread; the engine moves
// requests between threads only at MPI_THREAD_MULTIPLE.
unsafe impl Send for Request {}

impl Request {
    pub(super) fn null() -> Request {
        // SAFETY: the shim returns a constant.
        Request { raw: unsafe { portolan_shim_request_null() } }
    }

    /// Whether the request has completed; true again ever after.
    pub fn test(&mut self) -> Result<bool> {
        let mut flag: c_int = 0;
        check(
            // SAFETY: `raw` is a live or null request.
            unsafe { ffi::MPI_Test(&mut self.raw, &mut flag, ffi::RSMPI_STATUS_IGNORE) },
            "MPI_Test",
        )?;
        Ok(flag != 0)
    }
}

impl Request {
    /// Whether a receive has completed: its source and its length, once.
    pub fn test_message(&mut self) -> Result<Option<(usize, usize)>> {
        let mut flag: c_int = 0;
        let mut status = MaybeUninit::<ffi::MPI_Status>::uninit();
        check(
            // SAFETY: `raw` is a live request, the status is valid for writes.
            unsafe { ffi::MPI_Test(&mut self.raw, &mut flag, status.as_mut_ptr()) },
            "MPI_Test",
        )?;
        if flag == 0 {
            return Ok(None);
        }
        // SAFETY: MPI has filled the status of a completed receive.
        Ok(Some(message_of(unsafe { status.assume_init_ref() })))
    }

    /// Takes a receive back that nothing has matched, and waits until it is gone.
    pub fn cancel(&mut self) -> Result<()> {
        // SAFETY: `raw` is a live request; the memory that it names outlives the
        // wait, by the promise of the caller that started the receive.
        unsafe {
            check(ffi::MPI_Cancel(&mut self.raw), "MPI_Cancel")?;
            check(ffi::MPI_Wait(&mut self.raw, ffi::RSMPI_STATUS_IGNORE), "MPI_Wait")
        }
    }
}

/// A completed request of a [`Requests`] set.
#[derive(Debug)]
pub struct Completed<T> {
    /// What the caller attached to the request.
    pub tag: T,
    /// Bytes received (for a receive).
    pub bytes: usize,
}

/// A set of outstanding requests, each with something attached, polled by one
/// `MPI_Testsome`.
#[derive(Debug)]
pub struct Requests<T> {
    raw: Vec<ffi::MPI_Request>,
    tags: Vec<T>,
    indices: Vec<c_int>,
    statuses: Vec<ffi::MPI_Status>,
}

// SAFETY: as for Request; the attached values are moved with the set.
unsafe impl<T: Send> Send for Requests<T> {}

impl<T> Default for Requests<T> {
    fn default() -> Self {
        Requests { raw: Vec::new(), tags: Vec::new(), indices: Vec::new(), statuses: Vec::new() }
    }
}

impl<T> Requests<T> {
    /// How many are outstanding.
    pub fn len(&self) -> usize {
        self.raw.len()
    }

    /// Whether none is outstanding.
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// Adds a request.
    pub fn push(&mut self, request: Request, tag: T) {
        self.raw.push(request.raw);
        self.tags.push(tag);
    }

    /// Takes out the requests that have completed and appends them to `done`. Looks for the
    /// message of `receive` with the same call of MPI: its source and its length, once.
    ///
    /// # Errors
    /// `Mpi` where a request failed; the set is then not to be used further.
    pub fn poll(
        &mut self,
        receive: Option<&mut Request>,
        done: &mut Vec<Completed<T>>,
    ) -> Result<Option<(usize, usize)>> {
        let own = self.raw.len();
        if own == 0 {
            return receive.map_or(Ok(None), Request::test_message);
        }
        self.raw.extend(receive.as_ref().map(|receive| receive.raw));
        let n = self.raw.len();
        self.indices.resize(n, 0);
        if self.statuses.len() < n {
            // SAFETY: MPI_Status is plain old data; MPI writes each status
            // that it reports before it is read.
            self.statuses.resize(n, unsafe { MaybeUninit::zeroed().assume_init() });
        }
        let mut outcount: c_int = 0;
        let tested = check(
            // SAFETY: the arrays have `n` elements each.
            unsafe {
                ffi::MPI_Testsome(
                    count(n)?,
                    self.raw.as_mut_ptr(),
                    &mut outcount,
                    self.indices.as_mut_ptr(),
                    self.statuses.as_mut_ptr(),
                )
            },
            "MPI_Testsome",
        );
        if let Some(receive) = receive {
            receive.raw = self.raw.pop().unwrap_or(receive.raw);
        }
        tested?;
        // MPI_UNDEFINED is negative.
        let outcount = usize::try_from(outcount).unwrap_or(0);
        let mut message = None;
        let mut finished: Vec<(usize, usize)> = Vec::new();
        for (&index, status) in self.indices[..outcount].iter().zip(&self.statuses) {
            match index as usize {
                index if index < own => finished.push((index, received_bytes(status))),
                _ => message = Some(message_of(status)),
            }
        }
        // From the highest index down, so that swap_remove moves only live ones.
        finished.sort_unstable_by_key(|&(index, _)| std::cmp::Reverse(index));
        let first = done.len();
        for (index, bytes) in finished {
            self.raw.swap_remove(index);
            done.push(Completed { tag: self.tags.swap_remove(index), bytes });
        }
        done[first..].reverse();
        Ok(message)
    }
}
