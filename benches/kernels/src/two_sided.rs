//! MPI's messages and collectives on slices of plain data, as bytes. All calls use
//! `MPI_COMM_WORLD`, whose errors end the job.

use bytemuck::{Pod, Zeroable};
use mpi::ffi;
use std::ffi::c_int;
use std::marker::PhantomData;

/// `MPI_COMM_WORLD`, and this rank in it.
#[derive(Debug, Clone, Copy)]
pub struct World {
    /// This rank.
    pub me: usize,
    /// The number of ranks.
    pub n: usize,
}

/// Panics above 2 GiB, which the sizes of the kernels do not reach.
fn bytes<T>(slice: &[T]) -> c_int {
    c_int::try_from(size_of_val(slice)).expect("at most 2 GiB in one call of MPI")
}

impl World {
    pub(crate) fn new() -> World {
        let (mut me, mut n) = (0, 0);
        // SAFETY: MPI is initialised, and the calls write one integer each.
        unsafe {
            ffi::MPI_Comm_rank(ffi::RSMPI_COMM_WORLD, &mut me);
            ffi::MPI_Comm_size(ffi::RSMPI_COMM_WORLD, &mut n);
        }
        World { me: me as usize, n: n as usize }
    }

    /// Ends all ranks, which would otherwise wait for one that has failed.
    pub fn abort() -> ! {
        // SAFETY: MPI is initialised, or the call itself reports that it is not.
        unsafe { ffi::MPI_Abort(ffi::RSMPI_COMM_WORLD, 1) };
        std::process::exit(1)
    }

    /// Waits for all ranks.
    pub fn barrier(&self) {
        // SAFETY: MPI is initialised.
        unsafe { ffi::MPI_Barrier(ffi::RSMPI_COMM_WORLD) };
    }

    /// Returns the elements of all ranks, which pass the same number of them.
    pub fn all_gather<T: Pod>(&self, mine: &[T]) -> Vec<T> {
        let mut all = vec![T::zeroed(); mine.len() * self.n];
        self.all_gather_into(mine, &mut all);
        all
    }

    /// Stores the elements of all ranks in `all`.
    pub fn all_gather_into<T: Pod>(&self, mine: &[T], all: &mut [T]) {
        assert_eq!(all.len(), mine.len() * self.n, "elements of all ranks");
        // SAFETY: `mine` is valid for reads and `all` for writes of these lengths.
        unsafe {
            ffi::MPI_Allgather(
                mine.as_ptr().cast(),
                bytes(mine),
                ffi::RSMPI_UINT8_T,
                all.as_mut_ptr().cast(),
                bytes(mine),
                ffi::RSMPI_UINT8_T,
                ffi::RSMPI_COMM_WORLD,
            )
        };
    }

    /// Sends `parts[r]` to each rank `r`. Returns the received elements in rank order, and the
    /// index of each rank's first element.
    pub fn exchange<T: Pod>(&self, parts: &[Vec<T>]) -> (Vec<T>, Vec<usize>) {
        let ends = parts.iter().scan(0, |sum, part| {
            *sum += part.len();
            Some(*sum)
        });
        let starts: Vec<usize> = std::iter::once(0).chain(ends).collect();
        self.exchange_flat(&parts.concat(), &starts)
    }

    /// Sends `flat[starts[r]..starts[r + 1]]` to each rank `r`. Returns the same as `exchange`.
    pub fn exchange_flat<T: Pod>(&self, flat: &[T], starts: &[usize]) -> (Vec<T>, Vec<usize>) {
        let size = size_of::<T>();
        let sent: Vec<c_int> =
            starts.windows(2).map(|range| bytes(&flat[range[0]..range[1]])).collect();
        let mut coming = vec![0 as c_int; self.n];
        // SAFETY: both buffers have an integer for each rank.
        unsafe {
            ffi::MPI_Alltoall(
                sent.as_ptr().cast(),
                1,
                ffi::RSMPI_INT32_T,
                coming.as_mut_ptr().cast(),
                1,
                ffi::RSMPI_INT32_T,
                ffi::RSMPI_COMM_WORLD,
            )
        };
        let before = |counts: &[c_int]| -> Vec<c_int> {
            counts
                .iter()
                .scan(0, |sum: &mut c_int, n| Some(std::mem::replace(sum, *sum + n)))
                .collect()
        };
        let (from, to) = (before(&sent), before(&coming));
        let all = coming.iter().map(|n| *n as usize).sum::<usize>() / size;
        let mut here = vec![T::zeroed(); all];
        // SAFETY: the counts and positions describe `flat` and `here`.
        unsafe {
            ffi::MPI_Alltoallv(
                flat.as_ptr().cast(),
                sent.as_ptr(),
                from.as_ptr(),
                ffi::RSMPI_UINT8_T,
                here.as_mut_ptr().cast(),
                coming.as_ptr(),
                to.as_ptr(),
                ffi::RSMPI_UINT8_T,
                ffi::RSMPI_COMM_WORLD,
            )
        };
        let mut starts: Vec<usize> = to.into_iter().map(|at| at as usize / size).collect();
        starts.push(all);
        (here, starts)
    }

    /// Sends elements.
    pub fn send<T: Pod>(&self, to: usize, tag: c_int, elements: &[T]) {
        // SAFETY: `elements` is valid for reads of its length.
        unsafe {
            ffi::MPI_Send(
                elements.as_ptr().cast(),
                bytes(elements),
                ffi::RSMPI_UINT8_T,
                to as c_int,
                tag,
                ffi::RSMPI_COMM_WORLD,
            )
        };
    }

    /// Receives up to `into.len()` elements, and returns the number received.
    pub fn receive<T: Pod>(&self, from: usize, tag: c_int, into: &mut [T]) -> usize {
        // SAFETY: a status is valid if zeroed; `into` is valid for writes of its length.
        unsafe {
            let mut status: ffi::MPI_Status = std::mem::zeroed();
            ffi::MPI_Recv(
                into.as_mut_ptr().cast(),
                bytes(into),
                ffi::RSMPI_UINT8_T,
                from as c_int,
                tag,
                ffi::RSMPI_COMM_WORLD,
                &mut status,
            );
            count_of::<T>(&status)
        }
    }

    /// Returns the rank and the tag of a message that has arrived.
    pub fn probe(&self) -> Option<(usize, c_int)> {
        let mut flag = 0;
        // SAFETY: a status is valid if zeroed, and the call writes to it and to the flag.
        let status = unsafe {
            let mut status: ffi::MPI_Status = std::mem::zeroed();
            ffi::MPI_Iprobe(
                ffi::RSMPI_ANY_SOURCE,
                ffi::RSMPI_ANY_TAG,
                ffi::RSMPI_COMM_WORLD,
                &mut flag,
                &mut status,
            );
            status
        };
        (flag != 0).then_some((status.MPI_SOURCE as usize, status.MPI_TAG))
    }
}

/// Returns the number of elements of a received message.
fn count_of<T>(status: &ffi::MPI_Status) -> usize {
    let mut count = 0;
    // SAFETY: the status is of a completed receive of bytes.
    unsafe { ffi::MPI_Get_count(status, ffi::RSMPI_UINT8_T, &mut count) };
    count as usize / size_of::<T>()
}

/// Transfers in progress, whose buffers stay borrowed until they end.
#[derive(Debug, Default)]
pub struct Requests<'b> {
    list: Vec<ffi::MPI_Request>,
    _buffers: PhantomData<&'b mut [u8]>,
}

impl<'b> Requests<'b> {
    /// Starts to send.
    pub fn send<T: Pod>(&mut self, to: usize, tag: c_int, elements: &'b [T]) {
        // SAFETY: `elements` stays borrowed until the request has ended, in `wait`.
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            ffi::MPI_Isend(
                elements.as_ptr().cast(),
                bytes(elements),
                ffi::RSMPI_UINT8_T,
                to as c_int,
                tag,
                ffi::RSMPI_COMM_WORLD,
                &mut request,
            );
            self.list.push(request);
        }
    }

    /// Starts to receive.
    pub fn receive<T: Pod>(&mut self, from: usize, tag: c_int, into: &'b mut [T]) {
        // SAFETY: `into` stays borrowed until the request has ended, in `wait`.
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            ffi::MPI_Irecv(
                into.as_mut_ptr().cast(),
                bytes(into),
                ffi::RSMPI_UINT8_T,
                from as c_int,
                tag,
                ffi::RSMPI_COMM_WORLD,
                &mut request,
            );
            self.list.push(request);
        }
    }

    /// Waits for all of them.
    pub fn wait(mut self) {
        self.end();
    }

    fn end(&mut self) {
        // SAFETY: the requests are active or null, and statuses are not asked for.
        unsafe {
            ffi::MPI_Waitall(
                self.list.len() as c_int,
                self.list.as_mut_ptr(),
                ffi::RSMPI_STATUSES_IGNORE,
            )
        };
        self.list.clear();
    }
}

impl Drop for Requests<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

/// A transfer of a buffer that the transfer owns.
#[derive(Debug)]
pub struct Owned<T: Pod> {
    buffer: Vec<T>,
    request: ffi::MPI_Request,
}

impl<T: Pod> Owned<T> {
    /// Starts to send a buffer.
    pub fn send(to: usize, tag: c_int, buffer: Vec<T>) -> Owned<T> {
        // SAFETY: the memory of `buffer` stays in place until the request has ended.
        let request = unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            ffi::MPI_Isend(
                buffer.as_ptr().cast(),
                bytes(&buffer),
                ffi::RSMPI_UINT8_T,
                to as c_int,
                tag,
                ffi::RSMPI_COMM_WORLD,
                &mut request,
            );
            request
        };
        Owned { buffer, request }
    }

    /// Starts to receive any message, of at most `most` elements.
    pub fn receive_any(most: usize, mut buffer: Vec<T>) -> Owned<T> {
        buffer.resize(most, Zeroable::zeroed());
        // SAFETY: the memory of `buffer` stays in place until the request has ended.
        let request = unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            ffi::MPI_Irecv(
                buffer.as_mut_ptr().cast(),
                bytes(&buffer),
                ffi::RSMPI_UINT8_T,
                ffi::RSMPI_ANY_SOURCE,
                ffi::RSMPI_ANY_TAG,
                ffi::RSMPI_COMM_WORLD,
                &mut request,
            );
            request
        };
        Owned { buffer, request }
    }

    /// Returns the buffer, the tag and the number of elements if the transfer has ended. (The last
    /// two are meaningful for receives.)
    pub fn test(mut self) -> std::result::Result<(Vec<T>, c_int, usize), Owned<T>> {
        let mut flag = 0;
        // SAFETY: the request is active or null, and a status is valid if zeroed.
        let status = unsafe {
            let mut status: ffi::MPI_Status = std::mem::zeroed();
            ffi::MPI_Test(&mut self.request, &mut flag, &mut status);
            status
        };
        if flag == 0 {
            return Err(self);
        }
        let buffer = std::mem::take(&mut self.buffer);
        let count = count_of::<T>(&status);
        Ok((buffer, status.MPI_TAG, count))
    }
}

impl<T: Pod> Owned<T> {
    /// Withdraws a receive that no message has matched.
    pub fn cancel(mut self) {
        // SAFETY: the request is active, and its buffer lives until the wait has ended.
        unsafe {
            ffi::MPI_Cancel(&mut self.request);
            ffi::MPI_Wait(&mut self.request, ffi::RSMPI_STATUS_IGNORE);
        }
    }
}

impl<T: Pod> Drop for Owned<T> {
    fn drop(&mut self) {
        // A request that is still active uses the memory, so the memory is never freed.
        // SAFETY: comparing handles reads nothing else.
        if self.request != unsafe { ffi::RSMPI_REQUEST_NULL } {
            std::mem::forget(std::mem::take(&mut self.buffer));
        }
    }
}

/// A barrier that is not waited for.
#[derive(Debug)]
pub struct AllArrived(ffi::MPI_Request);

impl AllArrived {
    /// Arrives.
    pub(crate) fn new() -> AllArrived {
        // SAFETY: MPI is initialised, and the call writes the request.
        AllArrived(unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            ffi::MPI_Ibarrier(ffi::RSMPI_COMM_WORLD, &mut request);
            request
        })
    }

    /// Returns whether all ranks have arrived.
    pub fn test(&mut self) -> bool {
        let mut flag = 0;
        // SAFETY: the request is active or null.
        unsafe { ffi::MPI_Test(&mut self.0, &mut flag, ffi::RSMPI_STATUS_IGNORE) };
        flag != 0
    }
}
