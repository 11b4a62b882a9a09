//! Initialisation, finalisation and errors.
//!
//! Calls of `ARMCI_Init` nest: the last matching call of `ARMCI_Finalize` ends the runtime, which
//! can then be initialised again, also over other ranks. While it runs, a call that names a
//! communicator must name one of the same ranks.

use super::{group_table, handles, notify, sync, types};
use crate::boundary::{self, export, guard, reported};
use parking_lot::Mutex;
use portolan_base::error::{Result, fail};
use portolan_engine::collective::{self, Kind};
use portolan_engine::mpi::CommHandle;
use portolan_engine::mpi::init::{self, ThreadLevel};
use portolan_engine::runtime;
use portolan_engine::runtime::sharing;
use std::os::raw::{c_char, c_int};

/// For the log, and for `portolan-info PROGRAM`, which searches programs for it.
const IDENTITY: &str = concat!("Portolan ", env!("CARGO_PKG_VERSION"), " provides ARMCI");

static DEPTH: Mutex<usize> = Mutex::new(0);

fn check_level(level: ThreadLevel, requested: ThreadLevel) -> Result<()> {
    if level < requested {
        let (level, requested) = (level.name(), requested.name());
        fail!(State, "{requested} was requested, but MPI was initialised at {level}");
    }
    Ok(())
}

/// Starts the runtime, or counts a nested initialisation. Changes nothing if the thread level of
/// MPI is below `requested`.
///
/// # Safety
/// `comm`, if given, must be a live communicator.
unsafe fn init(call: &'static str, requested: ThreadLevel, comm: Option<CommHandle>) -> c_int {
    guard(call, reported, || {
        let mut depth = DEPTH.lock();
        if !runtime::is_running() {
            *depth = 0; // MPI_Finalize has ended an earlier runtime
        }
        if let Some(level) = init::level() {
            check_level(level, requested)?;
        }
        if *depth == 0 {
            if !types::matches_flavour() {
                fail!(Internal, "the layout of ARMCI_Group is not that of this MPI");
            }
            let engine = boundary::starting(call, || {
                // SAFETY: the caller guarantees that `comm`, if given, is a live communicator.
                let engine = unsafe { sharing::attach(comm) }?;
                if let Err(error) = check_level(engine.thread_level(), requested) {
                    sharing::detach()?;
                    return Err(error);
                }
                Ok(engine)
            })?;
            if engine.rank() == 0 {
                log::info!("{IDENTITY}");
            }
            if let Err(error) = group_table::start().and_then(|()| notify::start()) {
                // All ranks have the error, so all detach.
                group_table::stop()?;
                sharing::detach()?;
                return Err(error);
            }
        } else if let Some(comm) = comm {
            // SAFETY: the caller guarantees that `comm` is a live communicator.
            unsafe { runtime::current()?.check_same(comm) }?;
        }
        *depth += 1;
        Ok(0)
    })
}

fn finalize() -> Result<c_int> {
    let mut depth = DEPTH.lock();
    if *depth == 0 {
        return Ok(0); // an extra call has no effect
    }
    *depth -= 1;
    if *depth > 0 {
        return Ok(0);
    }
    handles::clear();
    sync::clear();
    if runtime::is_running() {
        collective::scope(Kind::Finalize, 0, || {
            notify::stop()?;
            group_table::stop()?;
            sharing::detach()
        })?;
    } else {
        notify::stop()?;
        group_table::forget();
    }
    Ok(0)
}

export! {
    ARMCI_Init / PARMCI_Init() -> c_int {
        // SAFETY: no communicator is given.
        unsafe { init("ARMCI_Init", ThreadLevel::Single, None) }
    }

    ARMCI_Init_args / PARMCI_Init_args(_argc: *mut c_int, _argv: *mut *mut *mut c_char) -> c_int {
        // SAFETY: no communicator is given.
        unsafe { init("ARMCI_Init_args", ThreadLevel::Single, None) }
    }

    ARMCI_Init_thread / PARMCI_Init_thread(armci_requested: c_int) -> c_int {
        // SAFETY: no communicator is given.
        unsafe { init_thread("ARMCI_Init_thread", armci_requested, None) }
    }

    ARMCI_Init_thread_comm / PARMCI_Init_thread_comm(
        armci_requested: c_int, comm: CommHandle,
    ) -> c_int {
        // SAFETY: the caller guarantees that `comm` is a live communicator.
        unsafe { init_thread("ARMCI_Init_thread_comm", armci_requested, Some(comm)) }
    }

    ARMCI_Init_mpi_comm / PARMCI_Init_mpi_comm(comm: CommHandle) -> c_int {
        // SAFETY: the caller guarantees that `comm` is a live communicator.
        unsafe { init("ARMCI_Init_mpi_comm", ThreadLevel::Single, Some(comm)) }
    }
}

/// # Safety
/// `comm`, if given, must be a live communicator.
unsafe fn init_thread(call: &'static str, requested: c_int, comm: Option<CommHandle>) -> c_int {
    match ThreadLevel::ALL.into_iter().find(|level| level.raw() == requested) {
        // SAFETY: the caller guarantees that `comm`, if given, is a live communicator.
        Some(requested) => unsafe { init(call, requested, comm) },
        None => guard(call, reported, || {
            let [single, funneled, serialized, multiple] = ThreadLevel::ALL.map(ThreadLevel::raw);
            fail!(
                Argument,
                "{requested} is not a thread level of MPI: expected MPI_THREAD_SINGLE ({single}), \
                 MPI_THREAD_FUNNELED ({funneled}), MPI_THREAD_SERIALIZED ({serialized}) or \
                 MPI_THREAD_MULTIPLE ({multiple})"
            )
        }),
    }
}

/// Flushes the output streams of Rust and C.
fn flush() {
    use std::io::Write;
    let _ = std::io::stdout().flush();
    // SAFETY: `fflush` with a null stream flushes all streams of the C library.
    unsafe { libc::fflush(std::ptr::null_mut()) };
}

export! {
    ARMCI_Initialized / PARMCI_Initialized() -> c_int {
        if runtime::is_running() { c_int::try_from(*DEPTH.lock()).unwrap_or(c_int::MAX) } else { 0 }
    }

    ARMCI_Finalize / PARMCI_Finalize() -> c_int = guard(reported, finalize);

    /// There is nothing to clean up but output: shared memory is unnamed.
    ARMCI_Cleanup() { flush() }

    /// The exit code is 1 if the low eight bits of `code` are zero, because an error must not look
    /// like success.
    ARMCI_Error(msg: *const c_char, code: c_int) {
        flush();
        // SAFETY: the caller guarantees that `msg` is null or a terminated string.
        let text = unsafe { boundary::text(msg) };
        boundary::abort(&format!("ARMCI error: {text}"), code)
    }
}
