//! Outstanding MPI requests: a single one, or a set that is polled together.

use super::Datatype;
use super::call::{call, count, portolan_shim_request_null};
use mpi::ffi;
use portolan_base::error::Result;
use std::mem::MaybeUninit;
use std::os::raw::c_int;

pub(super) fn received_bytes(status: &ffi::MPI_Status) -> usize {
    let mut n: c_int = 0;
    // SAFETY: MPI filled `status`. The count of a send is meaningless and unused.
    unsafe { ffi::MPI_Get_count(status, Datatype::Byte.raw(), &mut n) };
    usize::try_from(n).unwrap_or(0)
}

fn message_of(status: &ffi::MPI_Status) -> (usize, usize) {
    (status.MPI_SOURCE as usize, received_bytes(status))
}

/// Its memory must outlive it, so constructors are `unsafe` or tie it to the caller's wait.
#[derive(Debug)]
pub struct Request {
    pub(super) raw: ffi::MPI_Request,
}

// SAFETY: any thread may complete a request. The engine moves them only at `MPI_THREAD_MULTIPLE`.
unsafe impl Send for Request {}

impl Request {
    pub(super) fn null() -> Request {
        // SAFETY: the shim returns a constant.
        Request { raw: unsafe { portolan_shim_request_null() } }
    }

    /// Returns whether the request has completed, also when called again afterwards.
    pub fn test(&mut self) -> Result<bool> {
        let mut flag: c_int = 0;
        // SAFETY: `raw` is a live or null request.
        unsafe { call!(MPI_Test(&mut self.raw, &mut flag, ffi::RSMPI_STATUS_IGNORE)) }?;
        Ok(flag != 0)
    }
}

impl Request {
    /// Returns a message's source rank and length once; then the request must not be tested.
    pub fn test_message(&mut self) -> Result<Option<(usize, usize)>> {
        let mut flag: c_int = 0;
        let mut status = MaybeUninit::<ffi::MPI_Status>::uninit();
        // SAFETY: `raw` is a live request, and the status is valid for writes.
        unsafe { call!(MPI_Test(&mut self.raw, &mut flag, status.as_mut_ptr())) }?;
        if flag == 0 {
            return Ok(None);
        }
        // SAFETY: the receive has completed, so MPI has filled the status.
        Ok(Some(message_of(unsafe { status.assume_init_ref() })))
    }

    /// Cancels a receive that no message has matched, and waits until MPI has released it.
    pub fn cancel(&mut self) -> Result<()> {
        // SAFETY: the creator guarantees that the live request's memory outlives the wait.
        unsafe {
            call!(MPI_Cancel(&mut self.raw))?;
            call!(MPI_Wait(&mut self.raw, ffi::RSMPI_STATUS_IGNORE))
        }
    }
}

#[derive(Debug)]
pub struct Completed<T> {
    pub tag: T,
    pub bytes: usize,
}

/// One `MPI_Testsome` polls the set. Each request has a value attached.
#[derive(Debug)]
pub struct Requests<T> {
    raw: Vec<ffi::MPI_Request>,
    tags: Vec<T>,
    indices: Vec<c_int>,
    statuses: Vec<ffi::MPI_Status>,
}

// SAFETY: any thread may complete a request. The attached values are `Send`.
unsafe impl<T: Send> Send for Requests<T> {}

impl<T> Default for Requests<T> {
    fn default() -> Self {
        Requests { raw: Vec::new(), tags: Vec::new(), indices: Vec::new(), statuses: Vec::new() }
    }
}

impl<T> Requests<T> {
    pub fn len(&self) -> usize {
        self.raw.len()
    }

    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    pub fn push(&mut self, request: Request, tag: T) {
        self.raw.push(request.raw);
        self.tags.push(tag);
    }

    /// Moves the completed requests to `done`, in the order of their indices. The same MPI call
    /// tests `receive`, and returns the source rank and the length in bytes of its message once. If
    /// a request failed, returns `Mpi`, and the set must not be used afterwards.
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
            // SAFETY: zeros are a valid `MPI_Status`. MPI writes each status before it is read.
            self.statuses.resize(n, unsafe { MaybeUninit::zeroed().assume_init() });
        }
        let mut outcount: c_int = 0;
        // SAFETY: each array has at least `n` elements.
        let tested = unsafe {
            call!(MPI_Testsome(
                count(n)?,
                self.raw.as_mut_ptr(),
                &mut outcount,
                self.indices.as_mut_ptr(),
                self.statuses.as_mut_ptr(),
            ))
        };
        if let Some(receive) = receive {
            receive.raw = self.raw.pop().unwrap_or(receive.raw);
        }
        tested?;
        // The count is negative (`MPI_UNDEFINED`) if no request is active.
        let outcount = usize::try_from(outcount).unwrap_or(0);
        let mut message = None;
        let mut finished: Vec<(usize, usize)> = Vec::new();
        for (&index, status) in self.indices[..outcount].iter().zip(&self.statuses) {
            match index as usize {
                index if index < own => finished.push((index, received_bytes(status))),
                _ => message = Some(message_of(status)),
            }
        }
        // The highest index comes first, so that `swap_remove` moves only outstanding requests.
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
