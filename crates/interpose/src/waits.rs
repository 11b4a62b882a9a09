//! Wrappers of the program's `MPI_Barrier`, `MPI_Bcast`, `MPI_Reduce`, `MPI_Allreduce` and
//! `MPI_Recv`. They are active while an engine runs that serves other nodes by messages, or whose
//! ranks share cores.
//!
//! In these calls MPI busy-waits and, in MPICH, holds its global lock, which it releases only
//! briefly. The progress thread then reaches MPI late and delays every rank that waits for this
//! one. The wrappers therefore start the nonblocking form of the call and wait as a call of this
//! library does: the thread serves other ranks, and yields its core after a long wait.
//! `PORTOLAN_INTERPOSE=init` leaves the calls to MPI.
//!
//! With Open MPI the wrappers replace only collectives of at most `SHORT` bytes. Its nonblocking
//! collectives are slower than the blocking ones for large data (reductions of 1 MiB up to four
//! times), and its own waits yield the core.
//!
//! **Invariant.** MPI matches a nonblocking collective only with a nonblocking one, so all ranks of
//! a communicator must decide alike. They do: the engine spans all ranks of the job, starts and
//! stops collectively, and takes part for all of them or for none ([`HostWait`]). It takes no part
//! if the program has requested `MPI_THREAD_MULTIPLE`, because another thread may start or stop the
//! engine during a collective. Collectives over intercommunicators, which may join ranks of another
//! job, are left to MPI.

use crate::records::{bytes, recorded, source};
use mpi::ffi;
use portolan_engine::mpi::Flavour;
use portolan_engine::runtime::host::HostWait;
use std::os::raw::{c_int, c_void};

unsafe extern "C" {
    fn PMPI_Recv(
        data: *mut c_void,
        count: c_int,
        datatype: ffi::MPI_Datatype,
        source: c_int,
        tag: c_int,
        comm: ffi::MPI_Comm,
        status: *mut ffi::MPI_Status,
    ) -> c_int;
    fn PMPI_Iprobe(
        source: c_int,
        tag: c_int,
        comm: ffi::MPI_Comm,
        flag: *mut c_int,
        status: *mut ffi::MPI_Status,
    ) -> c_int;
    fn PMPI_Test(
        request: *mut ffi::MPI_Request,
        flag: *mut c_int,
        status: *mut ffi::MPI_Status,
    ) -> c_int;
    fn PMPI_Wait(request: *mut ffi::MPI_Request, status: *mut ffi::MPI_Status) -> c_int;
    fn PMPI_Comm_test_inter(comm: ffi::MPI_Comm, flag: *mut c_int) -> c_int;
}

/// Zero in both MPIs.
const SUCCESS: c_int = 0;

/// Starts a nonblocking operation and waits for it in the engine's wait loop. Returns MPI's code.
///
/// # Safety
/// The arguments that `start` passes to MPI must stay valid until the operation has completed.
unsafe fn wait(
    waiter: HostWait,
    what: &'static str,
    start: impl FnOnce(*mut ffi::MPI_Request) -> c_int,
) -> c_int {
    // SAFETY: `RSMPI_REQUEST_NULL` is a constant of the bindings.
    let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
    let started = start(&mut request);
    if started != SUCCESS {
        return started;
    }
    let mut code = SUCCESS;
    let waited = waiter.until(what, || {
        let mut done: c_int = 0;
        // SAFETY: the request is live until MPI reports its completion.
        code = unsafe { PMPI_Test(&mut request, &mut done, no_status()) };
        done != 0 || code != SUCCESS
    });
    if waited {
        code
    } else {
        // SAFETY: the request is live, or null if the last test completed it.
        unsafe { PMPI_Wait(&mut request, no_status()) }
    }
}

const SHORT: u64 = 64 << 10;

/// Returns `None` if `comm` is an intercommunicator or if MPI's blocking form is faster.
fn for_collective(
    comm: ffi::MPI_Comm,
    count: c_int,
    datatype: Option<ffi::MPI_Datatype>,
) -> Option<HostWait> {
    let waiter = HostWait::of_running()?;
    if let (Flavour::OpenMpi, Some(datatype)) = (Flavour::built(), datatype) {
        // SAFETY: the caller passes the datatype, and MPI reports an invalid one as an error.
        if unsafe { bytes(count, datatype) } > SHORT {
            return None;
        }
    }
    let mut inter: c_int = 0;
    // SAFETY: the caller passes the communicator, and MPI reports an invalid one as an error.
    let code = unsafe { PMPI_Comm_test_inter(comm, &mut inter) };
    (code == SUCCESS && inter == 0).then_some(waiter)
}

pub(crate) fn no_status() -> *mut ffi::MPI_Status {
    // SAFETY: `RSMPI_STATUS_IGNORE` is a constant of the bindings.
    unsafe { ffi::RSMPI_STATUS_IGNORE }
}

/// Defines a collective call that starts the nonblocking form and waits for it, or calls the
/// blocking form if MPI should wait.
macro_rules! collective {
    (
        $call:ident, $name:ident = $waiting:ident: $begin:ident or $blocking:ident,
        ($($arg:ident: $ty:ty),*), $root:expr, $count:expr, $datatype:expr
    ) => {
        unsafe extern "C" {
            fn $blocking($($arg: $ty,)* comm: ffi::MPI_Comm) -> c_int;
            fn $begin(
                $($arg: $ty,)* comm: ffi::MPI_Comm, request: *mut ffi::MPI_Request
            ) -> c_int;
        }

        unsafe fn $waiting($($arg: $ty,)* comm: ffi::MPI_Comm) -> c_int {
            // SAFETY: the arguments are passed on, so the caller's guarantees hold for MPI.
            unsafe {
                match for_collective(comm, $count, $datatype) {
                    Some(w) => wait(w, stringify!($name), |r| $begin($($arg,)* comm, r)),
                    None => $blocking($($arg,)* comm),
                }
            }
        }

        recorded!(
            $call: $name = $waiting($($arg: $ty,)* comm: ffi::MPI_Comm)
                => (Some(comm), $root, $datatype.map_or(0, |datatype| bytes($count, datatype)))
        );
    };
}

collective!(
    Barrier, MPI_Barrier = barrier: PMPI_Ibarrier or PMPI_Barrier, (), -1, 0, None
);
collective!(
    Bcast, MPI_Bcast = bcast: PMPI_Ibcast or PMPI_Bcast,
    (data: *mut c_void, count: c_int, datatype: ffi::MPI_Datatype, root: c_int),
    root, count, Some(datatype)
);
collective!(
    Reduce, MPI_Reduce = reduce: PMPI_Ireduce or PMPI_Reduce,
    (
        send: *const c_void, receive: *mut c_void, count: c_int, datatype: ffi::MPI_Datatype,
        op: ffi::MPI_Op, root: c_int
    ),
    root, count, Some(datatype)
);
collective!(
    Allreduce, MPI_Allreduce = allreduce: PMPI_Iallreduce or PMPI_Allreduce,
    (
        send: *const c_void, receive: *mut c_void, count: c_int, datatype: ffi::MPI_Datatype,
        op: ffi::MPI_Op
    ),
    -1, count, Some(datatype)
);

/// Serves other nodes until a message has arrived, and then receives it. It probes instead of using
/// a nonblocking receive, because in MPICH the errors of a request do not reach the communicator's
/// error handler.
///
/// # Safety
/// The requirements of `MPI_Recv` apply.
unsafe fn receive(
    data: *mut c_void,
    count: c_int,
    datatype: ffi::MPI_Datatype,
    source: c_int,
    tag: c_int,
    comm: ffi::MPI_Comm,
    status: *mut ffi::MPI_Status,
) -> c_int {
    if let Some(waiter) = HostWait::of_running() {
        let mut code = SUCCESS;
        waiter.until("MPI_Recv", || {
            let mut here: c_int = 0;
            // SAFETY: the flag is valid, and the caller guarantees the other arguments.
            code = unsafe { PMPI_Iprobe(source, tag, comm, &mut here, no_status()) };
            here != 0 || code != SUCCESS
        });
        if code != SUCCESS {
            return code;
        }
    }
    // SAFETY: the arguments are passed on unchanged, so the caller's guarantees hold for MPI.
    unsafe { PMPI_Recv(data, count, datatype, source, tag, comm, status) }
}

recorded!(
    Recv: MPI_Recv = receive(
        data: *mut c_void, count: c_int, datatype: ffi::MPI_Datatype, source_rank: c_int,
        tag: c_int, comm: ffi::MPI_Comm, status: *mut ffi::MPI_Status,
    ) with status => (Some(comm), source(status), bytes(count, datatype))
);
