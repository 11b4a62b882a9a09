//! `MPI_Barrier`, `MPI_Bcast`, `MPI_Reduce`, `MPI_Allreduce` and `MPI_Recv` of the host
//! program, while an engine runs that serves other nodes by messages, or whose ranks share
//! cores.
//!
//! MPI waits in these with its core and, in MPICH, with its global lock in hand, which it
//! gives away for moments only: the progress thread gets at MPI late, and with it every
//! rank that waits for this one. So they are started in their nonblocking form, and the
//! thread waits as in a call of ours, serving others meanwhile and giving up its core
//! when it has waited long. `PORTOLAN_MPI_WAITS=0` leaves them to MPI.
//!
//! Open MPI's nonblocking collectives of much data are slower than its blocking ones (reductions
//! of 1 MiB up to four times), and its waits give up the core by themselves: there only those of
//! at most [`SHORT`] bytes are done so. All ranks of a collective name as many bytes.
//!
//! **Invariant.** MPI matches a nonblocking collective only with a nonblocking one, so
//! all ranks of a communicator have to decide alike. They do: the engine spans all ranks
//! of the job, starts and stops collectively, and takes part for all of them or for none
//! (the engine's [`HostWaits`]); communicators with another job's ranks are left alone.

use super::Flavour;
use super::call::portolan_shim_request_null;
use mpi::ffi;
use std::os::raw::{c_int, c_void};
use std::sync::OnceLock;

/// A running engine in whose way a thread of the program waits.
pub(crate) trait HostWaits {
    /// Waits until `done` says so; false where the engine failed, and MPI has to wait.
    fn until(&self, what: &str, done: &mut dyn FnMut() -> bool) -> bool;
}

/// Finds the engine, where it takes part in the program's waits.
type Finder = fn() -> Option<Box<dyn HostWaits>>;

static FINDER: OnceLock<Finder> = OnceLock::new();

/// Has the program's waits ask for an engine.
pub(crate) fn set_host_waits(finder: Finder) {
    let _ = FINDER.set(finder);
}

fn engine() -> Option<Box<dyn HostWaits>> {
    FINDER.get().and_then(|find| find())
}

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
    fn PMPI_Type_size(datatype: ffi::MPI_Datatype, size: *mut c_int) -> c_int;
}

/// MPI_SUCCESS, which both MPIs define as zero.
const SUCCESS: c_int = 0;

/// Starts an operation and waits for it in the engine's way.
///
/// # Safety
/// What `start` is given must stay valid until the operation has completed.
unsafe fn wait(
    waiter: Box<dyn HostWaits>,
    what: &'static str,
    start: impl FnOnce(*mut ffi::MPI_Request) -> c_int,
) -> c_int {
    // SAFETY: the shim returns a constant.
    let mut request = unsafe { portolan_shim_request_null() };
    let started = start(&mut request);
    if started != SUCCESS {
        return started;
    }
    let mut code = SUCCESS;
    let waited = waiter.until(what, &mut || {
        let mut done: c_int = 0;
        // SAFETY: the request is live until MPI says that it is done.
        code = unsafe { PMPI_Test(&mut request, &mut done, no_status()) };
        done != 0 || code != SUCCESS
    });
    if waited {
        code
    } else {
        // SAFETY: as above.
        unsafe { PMPI_Wait(&mut request, no_status()) }
    }
}

/// Most bytes of a collective with Open MPI.
const SHORT: i64 = 64 << 10;

/// The engine's waiter for a collective of `comm` with `count` elements, unless that is an
/// intercommunicator, or MPI is faster by itself.
fn for_collective(
    comm: ffi::MPI_Comm,
    count: c_int,
    datatype: Option<ffi::MPI_Datatype>,
) -> Option<Box<dyn HostWaits>> {
    let waiter = engine()?;
    if let (Flavour::OpenMpi, Some(datatype)) = (Flavour::built(), datatype) {
        let mut size: c_int = 0;
        // SAFETY: the datatype is the caller's; a bad one is an error of MPI's.
        let code = unsafe { PMPI_Type_size(datatype, &mut size) };
        if code != SUCCESS || i64::from(count) * i64::from(size) > SHORT {
            return None;
        }
    }
    let mut inter: c_int = 0;
    // SAFETY: the communicator is the caller's; a bad one is an error of MPI's.
    let code = unsafe { PMPI_Comm_test_inter(comm, &mut inter) };
    (code == SUCCESS && inter == 0).then_some(waiter)
}

fn no_status() -> *mut ffi::MPI_Status {
    // SAFETY: a constant of the bindings.
    unsafe { ffi::RSMPI_STATUS_IGNORE }
}

/// Exports a collective call that serves other nodes meanwhile: begun and waited for, or called
/// where MPI is to wait.
macro_rules! collective {
    (
        $name:ident = $begin:ident or $call:ident,
        ($($arg:ident: $ty:ty),*), $count:expr, $datatype:expr
    ) => {
        unsafe extern "C" {
            fn $call($($arg: $ty,)* comm: ffi::MPI_Comm) -> c_int;
            fn $begin(
                $($arg: $ty,)* comm: ffi::MPI_Comm, request: *mut ffi::MPI_Request
            ) -> c_int;
        }

        #[doc = concat!("`", stringify!($name), "` that serves other nodes meanwhile.")]
        ///
        /// # Safety
        /// As MPI's own.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($arg: $ty,)* comm: ffi::MPI_Comm) -> c_int {
            // SAFETY: the arguments are passed on as they came.
            unsafe {
                match for_collective(comm, $count, $datatype) {
                    Some(w) => wait(w, stringify!($name), |r| $begin($($arg,)* comm, r)),
                    None => $call($($arg,)* comm),
                }
            }
        }
    };
}

collective!(MPI_Barrier = PMPI_Ibarrier or PMPI_Barrier, (), 0, None);
collective!(
    MPI_Bcast = PMPI_Ibcast or PMPI_Bcast,
    (data: *mut c_void, count: c_int, datatype: ffi::MPI_Datatype, root: c_int),
    count, Some(datatype)
);
collective!(
    MPI_Reduce = PMPI_Ireduce or PMPI_Reduce,
    (
        send: *const c_void, receive: *mut c_void, count: c_int, datatype: ffi::MPI_Datatype,
        op: ffi::MPI_Op, root: c_int
    ),
    count, Some(datatype)
);
collective!(
    MPI_Allreduce = PMPI_Iallreduce or PMPI_Allreduce,
    (
        send: *const c_void, receive: *mut c_void, count: c_int, datatype: ffi::MPI_Datatype,
        op: ffi::MPI_Op
    ),
    count, Some(datatype)
);

/// `MPI_Recv` that serves other nodes until the message is there, and then receives it: the
/// errors of a receive stay those of the communicator, which a request's are not in MPICH.
///
/// # Safety
/// As MPI's own.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn MPI_Recv(
    data: *mut c_void,
    count: c_int,
    datatype: ffi::MPI_Datatype,
    source: c_int,
    tag: c_int,
    comm: ffi::MPI_Comm,
    status: *mut ffi::MPI_Status,
) -> c_int {
    if let Some(waiter) = engine() {
        let mut code = SUCCESS;
        waiter.until("MPI_Recv", &mut || {
            let mut here: c_int = 0;
            // SAFETY: the flag is valid; the other arguments are the caller's.
            code = unsafe { PMPI_Iprobe(source, tag, comm, &mut here, no_status()) };
            here != 0 || code != SUCCESS
        });
        if code != SUCCESS {
            return code;
        }
    }
    // SAFETY: the arguments are passed on as they came.
    unsafe { PMPI_Recv(data, count, datatype, source, tag, comm, status) }
}
