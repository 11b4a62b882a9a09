//! Initialisation, termination, errors.
//!
//! Calls of `ARMCI_Init` nest: as many calls of `ARMCI_Finalize` end the
//! runtime. It can be initialised again afterwards, also over other ranks; while it runs,
//! a call that names a communicator must name one of the same ranks.

use super::{group_table, handles, notify, sync, twin, types};
use crate::capi::boundary::{self, guard, reported};
use crate::error::{Result, fail};
use crate::mpi::CommHandle;
use crate::mpi::init::ThreadLevel;
use crate::runtime;
use crate::sharing;
use parking_lot::Mutex;
use std::os::raw::{c_char, c_int};

/// How many initialisations have not been finalised.
static DEPTH: Mutex<usize> = Mutex::new(0);

/// # Safety
/// `comm`, where given, must be a live communicator.
unsafe fn init(call: &'static str, comm: Option<CommHandle>) -> c_int {
    guard(call, reported, || {
        let mut depth = DEPTH.lock();
        if !runtime::is_running() {
            *depth = 0; // MPI_Finalize has closed an earlier one
        }
        if *depth == 0 {
            if !types::matches_flavour() {
                fail!(Internal, "the layout of ARMCI_Group is not that of this MPI");
            }
            // SAFETY: passed on from the caller.
            unsafe { sharing::attach(comm) }?;
            group_table::start()?;
            notify::start()?;
        } else if let Some(comm) = comm {
            // SAFETY: passed on from the caller.
            unsafe { runtime::current()?.check_same(comm) }?;
        }
        *depth += 1;
        Ok(0)
    })
}

fn finalize() -> Result<c_int> {
    let mut depth = DEPTH.lock();
    if *depth == 0 {
        return Ok(0); // one too many does no harm
    }
    *depth -= 1;
    if *depth > 0 {
        return Ok(0);
    }
    handles::clear();
    sync::clear();
    if runtime::is_running() {
        group_table::stop()?;
        sharing::detach()?;
    } else {
        group_table::forget();
    }
    Ok(0)
}

twin! {
    /// Starts the runtime over all ranks; MPI too, unless the program has.
    ARMCI_Init / PARMCI_Init() -> c_int {
        // SAFETY: no communicator is given.
        unsafe { init("ARMCI_Init", None) }
    }
}

twin! {
    /// As `ARMCI_Init`; the arguments are not needed.
    ARMCI_Init_args / PARMCI_Init_args(_argc: *mut c_int, _argv: *mut *mut *mut c_char) -> c_int {
        // SAFETY: no communicator is given.
        unsafe { init("ARMCI_Init_args", None) }
    }
}

twin! {
    /// As `ARMCI_Init`, at a thread level of MPI's. Where MPI runs at a lower
    /// level already, that is an error.
    ARMCI_Init_thread / PARMCI_Init_thread(armci_requested: c_int) -> c_int {
        // SAFETY: no communicator is given.
        unsafe { init_thread("ARMCI_Init_thread", armci_requested, None) }
    }
}

twin! {
    /// As `ARMCI_Init_thread`, over the ranks of a communicator.
    ARMCI_Init_thread_comm / PARMCI_Init_thread_comm(
        armci_requested: c_int, comm: CommHandle,
    ) -> c_int {
        // SAFETY: the caller vouches for the communicator.
        unsafe { init_thread("ARMCI_Init_thread_comm", armci_requested, Some(comm)) }
    }
}

twin! {
    /// As `ARMCI_Init`, over the ranks of a communicator. Ranks outside it do not call.
    ARMCI_Init_mpi_comm / PARMCI_Init_mpi_comm(comm: CommHandle) -> c_int {
        // SAFETY: the caller vouches for the communicator.
        unsafe { init("ARMCI_Init_mpi_comm", Some(comm)) }
    }
}

/// # Safety
/// `comm`, where given, must be a live communicator.
unsafe fn init_thread(call: &'static str, requested: c_int, comm: Option<CommHandle>) -> c_int {
    let known = ThreadLevel::ALL.iter().any(|level| level.raw() == requested);
    let code = match known {
        // SAFETY: passed on from the caller.
        true => unsafe { init(call, comm) },
        false => guard(call, reported, || {
            let [single, funneled, serialized, multiple] = ThreadLevel::ALL.map(ThreadLevel::raw);
            fail!(
                Argument,
                "{requested} is no thread level of MPI: expected MPI_THREAD_SINGLE ({single}), \
                 MPI_THREAD_FUNNELED ({funneled}), MPI_THREAD_SERIALIZED ({serialized}) or \
                 MPI_THREAD_MULTIPLE ({multiple})"
            )
        }),
    };
    if code != 0 {
        return code;
    }
    boundary::code(call, |engine| {
        let level = engine.thread_level().raw();
        if level < requested {
            fail!(State, "thread level {requested} is asked, but MPI was initialised at {level}");
        }
        Ok(())
    })
}

twin! {
    /// How many initialisations have not been finalised; 0 is none.
    ARMCI_Initialized / PARMCI_Initialized() -> c_int {
        if runtime::is_running() { c_int::try_from(*DEPTH.lock()).unwrap_or(c_int::MAX) } else { 0 }
    }
}

twin! {
    /// Ends the runtime: completes everything and frees all memory. MPI goes on
    /// unless `ARMCI_Init` started it.
    ARMCI_Finalize / PARMCI_Finalize() -> c_int {
        guard("ARMCI_Finalize", reported, finalize)
    }
}

/// Releases system resources before the program ends itself by `MPI_Abort`. The
/// files behind shared memory have no names, so that there is nothing that could
/// stay behind; what the program has printed is written out.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ARMCI_Cleanup() {
    use std::io::Write;
    let _ = std::io::stdout().flush();
    // SAFETY: a null stream means all streams of the C library.
    unsafe { libc::fflush(std::ptr::null_mut()) };
}

/// Prints a message with the rank and ends all ranks; the exit code is `code`,
/// or 1 where that is 0, since an error is never a success.
///
/// # Safety
/// `msg` must be null or a terminated string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ARMCI_Error(msg: *const c_char, code: c_int) {
    ARMCI_Cleanup();
    // SAFETY: the caller vouches for the string.
    let text = unsafe { boundary::text(msg) };
    boundary::abort(&format!("ARMCI error: {text}"), code)
}
