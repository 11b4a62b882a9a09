//! `MPI_Init`, `MPI_Init_thread` and `MPI_Finalize`, in C and Fortran, for programs linked
//! with the C library. The first two raise the thread level to `MPI_THREAD_MULTIPLE`, without
//! which there can be no progress thread (`PORTOLAN_RAISE_THREAD_LEVEL=0` turns it off), and
//! succeed where the library has begun MPI before the program. `MPI_Finalize` then leaves the
//! end to the library, if that still runs ([`super::life`]). Everything else is passed on
//! through MPI's profiling interface. A tool with such calls of its own is asked instead of
//! these, and must not begin MPI a second time.
//!
//! These and `blocking`'s are the only calls of `PMPI_` names in the crate; all other traffic is
//! visible to the user's own MPI tools. The Fortran names are looked up at run
//! time, because a C program is not linked with MPI's Fortran library.

use super::init;
use super::life::{self, End};
use crate::config::{Config, VARIABLES};
use mpi::ffi;
use std::ffi::CStr;
use std::os::raw::{c_char, c_int, c_void};

unsafe extern "C" {
    fn PMPI_Init(argc: *mut c_int, argv: *mut *mut *mut c_char) -> c_int;
    fn PMPI_Init_thread(
        argc: *mut c_int,
        argv: *mut *mut *mut c_char,
        required: c_int,
        provided: *mut c_int,
    ) -> c_int;
    fn PMPI_Query_thread(provided: *mut c_int) -> c_int;
    fn PMPI_Finalize() -> c_int;
}

/// Only this one variable is read here, and leniently: a bad value elsewhere is
/// reported when the runtime starts.
fn raise() -> bool {
    let row = VARIABLES.iter().find(|v| v.name == "PORTOLAN_RAISE_THREAD_LEVEL");
    match row.and_then(|v| v.current()) {
        Some(value) => !matches!(value.trim(), "0" | "off" | "no" | "false"),
        None => Config::default().raise_thread_level,
    }
}

fn wanted(asked: c_int) -> c_int {
    // SAFETY: a constant of the bindings.
    let multiple = unsafe { ffi::RSMPI_THREAD_MULTIPLE };
    if raise() { multiple.max(asked) } else { asked }
}

/// `MPI_Init` that asks for `MPI_THREAD_MULTIPLE`.
///
/// # Safety
/// As MPI's own: the pointers are null or those of `main`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn MPI_Init(argc: *mut c_int, argv: *mut *mut *mut c_char) -> c_int {
    if life::program_begins() {
        return ffi::MPI_SUCCESS as c_int;
    }
    let mut provided = 0;
    // SAFETY: the arguments are passed on as they came.
    unsafe {
        if raise() {
            PMPI_Init_thread(argc, argv, ffi::RSMPI_THREAD_MULTIPLE, &mut provided)
        } else {
            PMPI_Init(argc, argv)
        }
    }
}

/// `MPI_Init_thread` that asks for `MPI_THREAD_MULTIPLE`.
///
/// # Safety
/// As MPI's own.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn MPI_Init_thread(
    argc: *mut c_int,
    argv: *mut *mut *mut c_char,
    required: c_int,
    provided: *mut c_int,
) -> c_int {
    // SAFETY: the arguments are passed on as they came; where MPI runs it tells its level.
    unsafe {
        if life::program_begins() {
            PMPI_Query_thread(provided)
        } else {
            PMPI_Init_thread(argc, argv, wanted(required), provided)
        }
    }
}

/// `MPI_Finalize` that leaves an MPI of the library's to it, while it runs. `end` is MPI's
/// own.
fn finalize(end: impl FnOnce() -> c_int) -> c_int {
    match life::program_ends() {
        End::Now if !init::before_finalize() => ffi::MPI_ERR_OTHER as c_int,
        End::Now => end(),
        End::Later => ffi::MPI_SUCCESS as c_int,
        End::Again => {
            log::error!("MPI_Finalize is called a second time; the library still uses MPI");
            ffi::MPI_ERR_OTHER as c_int
        }
    }
}

/// `MPI_Finalize`, which ends MPI when the library needs it no more.
#[unsafe(no_mangle)]
pub(super) extern "C" fn MPI_Finalize() -> c_int {
    // SAFETY: MPI refuses by itself what is not legal.
    finalize(|| unsafe { PMPI_Finalize() })
}

/// The Fortran `pmpi_init_thread_`: (required, provided, ierror).
type FortranInitThread =
    unsafe extern "C" fn(*mut ffi::RSMPI_Fint, *mut ffi::RSMPI_Fint, *mut ffi::RSMPI_Fint);

/// The Fortran `pmpi_finalize_`: (ierror).
type FortranFinalize = unsafe extern "C" fn(*mut ffi::RSMPI_Fint);

/// MPI's Fortran routine of that name, where it is in the program.
fn fortran(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: dlsym is given a valid name.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// # Safety
/// `provided` and `ierror` must be valid or null.
unsafe fn init_fortran(
    required: ffi::RSMPI_Fint,
    provided: *mut ffi::RSMPI_Fint,
    ierror: *mut ffi::RSMPI_Fint,
) {
    let (mut required, mut got, mut rc) = (wanted(required), 0, 0);
    // SAFETY: all pointers are to locals; the C call takes null arguments. The symbol, where
    // it exists, is MPI's Fortran routine of this signature.
    unsafe {
        if life::program_begins() {
            rc = PMPI_Query_thread(&mut got);
        } else if let Some(init) = fortran(c"pmpi_init_thread_") {
            let init = std::mem::transmute::<*mut c_void, FortranInitThread>(init);
            init(&mut required, &mut got, &mut rc);
        } else {
            let none = std::ptr::null_mut();
            rc = PMPI_Init_thread(none, std::ptr::null_mut(), required, &mut got);
        }
        if !provided.is_null() {
            *provided = got;
        }
        if !ierror.is_null() {
            *ierror = rc;
        }
    }
}

/// Fortran's `MPI_INIT`.
///
/// # Safety
/// `ierror` must be valid.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mpi_init_(ierror: *mut ffi::RSMPI_Fint) {
    // SAFETY: passed on; RSMPI_THREAD_SINGLE is a constant.
    unsafe { init_fortran(ffi::RSMPI_THREAD_SINGLE, std::ptr::null_mut(), ierror) }
}

/// Fortran's `MPI_INIT_THREAD`.
///
/// # Safety
/// The pointers must be valid.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mpi_init_thread_(
    required: *mut ffi::RSMPI_Fint,
    provided: *mut ffi::RSMPI_Fint,
    ierror: *mut ffi::RSMPI_Fint,
) {
    // SAFETY: the caller's pointers are valid.
    unsafe { init_fortran(*required, provided, ierror) }
}

/// `MPI_INIT` of Fortran's module `mpi_f08`.
///
/// # Safety
/// `ierror` must be valid, or null where the program leaves it out.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mpi_init_f08_(ierror: *mut ffi::RSMPI_Fint) {
    // SAFETY: passed on; RSMPI_THREAD_SINGLE is a constant.
    unsafe { init_fortran(ffi::RSMPI_THREAD_SINGLE, std::ptr::null_mut(), ierror) }
}

/// `MPI_INIT_THREAD` of Fortran's module `mpi_f08`.
///
/// # Safety
/// The pointers must be valid; `ierror` may be null.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mpi_init_thread_f08_(
    required: *mut ffi::RSMPI_Fint,
    provided: *mut ffi::RSMPI_Fint,
    ierror: *mut ffi::RSMPI_Fint,
) {
    // SAFETY: the caller's pointers are valid.
    unsafe { init_fortran(*required, provided, ierror) }
}

/// # Safety
/// `ierror` must be valid or null.
unsafe fn finalize_fortran(ierror: *mut ffi::RSMPI_Fint) {
    let rc = finalize(|| {
        let mut rc = 0;
        // SAFETY: the symbol, where it exists, is MPI's Fortran routine of this signature.
        unsafe {
            match fortran(c"pmpi_finalize_") {
                Some(end) => {
                    std::mem::transmute::<*mut c_void, FortranFinalize>(end)(&mut rc);
                }
                None => rc = PMPI_Finalize(),
            }
        }
        rc
    });
    if !ierror.is_null() {
        // SAFETY: the caller vouches for it.
        unsafe { *ierror = rc };
    }
}

/// Fortran's `MPI_FINALIZE`.
///
/// # Safety
/// `ierror` must be valid.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mpi_finalize_(ierror: *mut ffi::RSMPI_Fint) {
    // SAFETY: passed on from the caller.
    unsafe { finalize_fortran(ierror) }
}

/// `MPI_FINALIZE` of Fortran's module `mpi_f08`.
///
/// # Safety
/// `ierror` must be valid, or null where the program leaves it out.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mpi_finalize_f08_(ierror: *mut ffi::RSMPI_Fint) {
    // SAFETY: passed on from the caller.
    unsafe { finalize_fortran(ierror) }
}
