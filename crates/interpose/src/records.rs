//! Records the program's blocking MPI calls in statistics and traces
//! ([`portolan_engine::runtime::host::record`]). Without them, a wrapper costs one load and calls
//! MPI.
//!
//! Calls that start or test an operation are not wrapped, so the ranks that a call of the wait
//! family waits for are unknown.

use crate::waits::no_status;
use mpi::ffi::{self, MPI_Comm, MPI_Datatype, MPI_Op, MPI_Request, MPI_Status};
use std::os::raw::{c_int, c_void};

unsafe extern "C" {
    fn PMPI_Type_size(datatype: MPI_Datatype, size: *mut c_int) -> c_int;
    fn PMPI_Comm_size(comm: MPI_Comm, size: *mut c_int) -> c_int;
    fn PMPI_Comm_test_inter(comm: MPI_Comm, flag: *mut c_int) -> c_int;
}

/// Exports the MPI call `$name`, which calls `$body` and records it. `$info` is the communicator,
/// the peer's rank in it or -1, and the bytes. If it reads `$status`, MPI always writes one.
macro_rules! recorded {
    (
        $call:ident: $name:ident = $body:ident($($arg:ident: $ty:ty),* $(,)?)
            $(with $status:ident)? => $info:expr
    ) => {
        #[doc = concat!("`", stringify!($name), "`, which statistics and traces record.")]
        ///
        /// # Safety
        /// The requirements of the MPI function apply.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> ::std::os::raw::c_int {
            // SAFETY: the arguments are passed on, so the caller's guarantees hold for MPI. `$info`
            // uses them only after a successful call.
            unsafe {
                if !portolan_engine::runtime::host::records() {
                    return $body($($arg),*);
                }
                $(
                    let mut own = ::std::mem::MaybeUninit::uninit();
                    let $status = $crate::records::or($status, &mut own);
                )?
                portolan_engine::runtime::host::record(
                    portolan_base::trace::MpiCall::$call,
                    || $body($($arg),*),
                    || $info,
                )
            }
        }
    };
}
pub(crate) use recorded;

/// Returns `status`, or `own` if the program ignores the status.
pub(crate) fn or(
    status: *mut MPI_Status,
    own: &mut std::mem::MaybeUninit<MPI_Status>,
) -> *mut MPI_Status {
    if status == no_status() { own.as_mut_ptr() } else { status }
}

/// The rank that a message came from.
///
/// # Safety
/// MPI must have written the status.
pub(crate) unsafe fn source(status: *const MPI_Status) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { (*status).MPI_SOURCE }
}

/// The size of `count` elements. Returns 0 for a null datatype, which MPI permits for elements that
/// it ignores.
///
/// # Safety
/// The datatype must be valid or null.
pub(crate) unsafe fn bytes(count: c_int, datatype: MPI_Datatype) -> u64 {
    let mut size: c_int = 0;
    // SAFETY: the constant belongs to the bindings, and the caller guarantees the datatype.
    unsafe {
        if datatype != ffi::RSMPI_DATATYPE_NULL {
            PMPI_Type_size(datatype, &mut size);
        }
    }
    u64::try_from(count).unwrap_or(0) * u64::try_from(size).unwrap_or(0)
}

/// Adds the sizes of the parts of all ranks. `size` gets the rank and the count of its part. Returns
/// 0 for an intercommunicator, whose arrays have other lengths.
///
/// # Safety
/// The communicator must be live. `counts` must have an entry for each of its ranks.
unsafe fn all(comm: MPI_Comm, counts: *const c_int, size: impl Fn(usize, c_int) -> u64) -> u64 {
    let (mut ranks, mut inter): (c_int, c_int) = (0, 0);
    // SAFETY: the caller guarantees the communicator and the array.
    unsafe {
        PMPI_Comm_test_inter(comm, &mut inter);
        if inter == 0 {
            PMPI_Comm_size(comm, &mut ranks);
        }
        (0..ranks as usize).map(|rank| size(rank, counts.add(rank).read())).sum()
    }
}

/// If the send buffer is `MPI_IN_PLACE`, MPI ignores its count and type.
fn in_place(buffer: *const c_void) -> bool {
    portolan_engine::mpi::is_in_place(buffer)
}

/// Exports the MPI calls that are only recorded.
macro_rules! calls {
    ($($call:ident: $name:ident = $body:ident($($arg:ident: $ty:ty),* $(,)?)
        $(with $status:ident)? => $info:expr;)*) => {$(
        unsafe extern "C" {
            fn $body($($arg: $ty),*) -> c_int;
        }
        recorded!($call: $name = $body($($arg: $ty),*) $(with $status)? => $info);
    )*};
}

type Sent = *const c_void;
type Received = *mut c_void;
type Counts = *const c_int;
type Types = *const MPI_Datatype;
type Status = *mut MPI_Status;

calls! {
    Gather: MPI_Gather = PMPI_Gather(
        send: Sent, n: c_int, datatype: MPI_Datatype, receive: Received, of_each: c_int,
        received: MPI_Datatype, root: c_int, comm: MPI_Comm,
    ) => (Some(comm), root, if in_place(send) { bytes(of_each, received) } else { bytes(n, datatype) });
    Gatherv: MPI_Gatherv = PMPI_Gatherv(
        send: Sent, n: c_int, datatype: MPI_Datatype, receive: Received, counts: Counts,
        places: Counts, received: MPI_Datatype, root: c_int, comm: MPI_Comm,
    ) => (Some(comm), root, if in_place(send) { 0 } else { bytes(n, datatype) });
    Scatter: MPI_Scatter = PMPI_Scatter(
        send: Sent, to_each: c_int, sent: MPI_Datatype, receive: Received, n: c_int,
        datatype: MPI_Datatype, root: c_int, comm: MPI_Comm,
    ) => (Some(comm), root, if in_place(receive) { bytes(to_each, sent) } else { bytes(n, datatype) });
    Scatterv: MPI_Scatterv = PMPI_Scatterv(
        send: Sent, counts: Counts, places: Counts, sent: MPI_Datatype, receive: Received,
        n: c_int, datatype: MPI_Datatype, root: c_int, comm: MPI_Comm,
    ) => (Some(comm), root, if in_place(receive) { 0 } else { bytes(n, datatype) });
    Allgather: MPI_Allgather = PMPI_Allgather(
        send: Sent, n: c_int, datatype: MPI_Datatype, receive: Received, of_each: c_int,
        received: MPI_Datatype, comm: MPI_Comm,
    ) => (Some(comm), -1, if in_place(send) { bytes(of_each, received) } else { bytes(n, datatype) });
    Allgatherv: MPI_Allgatherv = PMPI_Allgatherv(
        send: Sent, n: c_int, datatype: MPI_Datatype, receive: Received, counts: Counts,
        places: Counts, received: MPI_Datatype, comm: MPI_Comm,
    ) => (Some(comm), -1, if in_place(send) { 0 } else { bytes(n, datatype) });
    Alltoall: MPI_Alltoall = PMPI_Alltoall(
        send: Sent, n: c_int, datatype: MPI_Datatype, receive: Received, of_each: c_int,
        received: MPI_Datatype, comm: MPI_Comm,
    ) => (Some(comm), -1, {
        let of_one = bytes(of_each, received);
        let mut ranks = 0;
        PMPI_Comm_size(comm, &mut ranks);
        of_one * ranks as u64
    });
    Alltoallv: MPI_Alltoallv = PMPI_Alltoallv(
        send: Sent, n: Counts, places: Counts, datatype: MPI_Datatype, receive: Received,
        of_each: Counts, to: Counts, received: MPI_Datatype, comm: MPI_Comm,
    ) => (Some(comm), -1, all(comm, of_each, |_, n| bytes(n, received)));
    Alltoallw: MPI_Alltoallw = PMPI_Alltoallw(
        send: Sent, n: Counts, places: Counts, datatypes: Types, receive: Received,
        of_each: Counts, to: Counts, received: Types, comm: MPI_Comm,
    ) => (Some(comm), -1, all(comm, of_each, |rank, n| bytes(n, received.add(rank).read())));
    ReduceScatter: MPI_Reduce_scatter = PMPI_Reduce_scatter(
        send: Sent, receive: Received, counts: Counts, datatype: MPI_Datatype, op: MPI_Op,
        comm: MPI_Comm,
    ) => (Some(comm), -1, all(comm, counts, |_, n| bytes(n, datatype)));
    ReduceScatterBlock: MPI_Reduce_scatter_block = PMPI_Reduce_scatter_block(
        send: Sent, receive: Received, n: c_int, datatype: MPI_Datatype, op: MPI_Op,
        comm: MPI_Comm,
    ) => (Some(comm), -1, bytes(n, datatype));
    Scan: MPI_Scan = PMPI_Scan(
        send: Sent, receive: Received, n: c_int, datatype: MPI_Datatype, op: MPI_Op,
        comm: MPI_Comm,
    ) => (Some(comm), -1, bytes(n, datatype));
    Exscan: MPI_Exscan = PMPI_Exscan(
        send: Sent, receive: Received, n: c_int, datatype: MPI_Datatype, op: MPI_Op,
        comm: MPI_Comm,
    ) => (Some(comm), -1, bytes(n, datatype));
    Send: MPI_Send = PMPI_Send(
        data: Sent, n: c_int, datatype: MPI_Datatype, to: c_int, tag: c_int, comm: MPI_Comm,
    ) => (Some(comm), to, bytes(n, datatype));
    Ssend: MPI_Ssend = PMPI_Ssend(
        data: Sent, n: c_int, datatype: MPI_Datatype, to: c_int, tag: c_int, comm: MPI_Comm,
    ) => (Some(comm), to, bytes(n, datatype));
    Rsend: MPI_Rsend = PMPI_Rsend(
        data: Sent, n: c_int, datatype: MPI_Datatype, to: c_int, tag: c_int, comm: MPI_Comm,
    ) => (Some(comm), to, bytes(n, datatype));
    Sendrecv: MPI_Sendrecv = PMPI_Sendrecv(
        send: Sent, n: c_int, datatype: MPI_Datatype, to: c_int, tag: c_int, receive: Received,
        most: c_int, received: MPI_Datatype, from: c_int, its_tag: c_int, comm: MPI_Comm,
        status: Status,
    ) with status => (Some(comm), source(status), bytes(n, datatype));
    SendrecvReplace: MPI_Sendrecv_replace = PMPI_Sendrecv_replace(
        data: Received, n: c_int, datatype: MPI_Datatype, to: c_int, tag: c_int, from: c_int,
        its_tag: c_int, comm: MPI_Comm, status: Status,
    ) with status => (Some(comm), source(status), bytes(n, datatype));
    Probe: MPI_Probe = PMPI_Probe(
        from: c_int, tag: c_int, comm: MPI_Comm, status: Status,
    ) with status => (Some(comm), source(status), 0);
    Wait: MPI_Wait = PMPI_Wait(request: *mut MPI_Request, status: Status) => (None, -1, 0);
    Waitall: MPI_Waitall = PMPI_Waitall(
        n: c_int, requests: *mut MPI_Request, statuses: Status,
    ) => (None, -1, 0);
    Waitany: MPI_Waitany = PMPI_Waitany(
        n: c_int, requests: *mut MPI_Request, which: *mut c_int, status: Status,
    ) => (None, -1, 0);
    Waitsome: MPI_Waitsome = PMPI_Waitsome(
        n: c_int, requests: *mut MPI_Request, done: *mut c_int, which: *mut c_int,
        statuses: Status,
    ) => (None, -1, 0);
    CommDup: MPI_Comm_dup = PMPI_Comm_dup(comm: MPI_Comm, new: *mut MPI_Comm)
        => (Some(comm), -1, 0);
    CommSplit: MPI_Comm_split = PMPI_Comm_split(
        comm: MPI_Comm, colour: c_int, key: c_int, new: *mut MPI_Comm,
    ) => (Some(comm), -1, 0);
    WinFence: MPI_Win_fence = PMPI_Win_fence(assert: c_int, window: ffi::MPI_Win) => (None, -1, 0);
}
