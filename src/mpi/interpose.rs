//! `MPI_Init` and `MPI_Init_thread`, in C and Fortran, for programs linked with
//! the C library: they raise the thread level to `MPI_THREAD_MULTIPLE`, without
//! which there can be no progress thread, and pass everything else on through
//! MPI's profiling interface. `PORTOLAN_RAISE_THREAD_LEVEL=0` turns it off.
//!
//! These are the only calls of `PMPI_` names in the crate; all other traffic is
//! visible to the user's own MPI tools. The Fortran names are looked up at run
//! time, because a C program is not linked with MPI's Fortran library.

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
pub unsafe extern "C" fn MPI_Init(argc: *mut c_int, argv: *mut *mut *mut c_char) -> c_int {
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
pub unsafe extern "C" fn MPI_Init_thread(
    argc: *mut c_int,
    argv: *mut *mut *mut c_char,
    required: c_int,
    provided: *mut c_int,
) -> c_int {
    // SAFETY: the arguments are passed on as they came.
    unsafe { PMPI_Init_thread(argc, argv, wanted(required), provided) }
}

/// The Fortran `pmpi_init_thread_`: (required, provided, ierror).
type FortranInitThread =
    unsafe extern "C" fn(*mut ffi::RSMPI_Fint, *mut ffi::RSMPI_Fint, *mut ffi::RSMPI_Fint);

fn fortran(name: &CStr) -> Option<FortranInitThread> {
    // SAFETY: dlsym is given a valid name; the symbol, where it exists, is
    // MPI's Fortran routine of this signature.
    unsafe {
        let found: *mut c_void = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
        (!found.is_null()).then(|| std::mem::transmute::<*mut c_void, FortranInitThread>(found))
    }
}

/// # Safety
/// `provided` and `ierror` must be valid or null.
unsafe fn init_fortran(
    required: ffi::RSMPI_Fint,
    provided: *mut ffi::RSMPI_Fint,
    ierror: *mut ffi::RSMPI_Fint,
) {
    let (mut required, mut got, mut rc) = (wanted(required), 0, 0);
    // SAFETY: all pointers are to locals; the C call takes null arguments.
    unsafe {
        match fortran(c"pmpi_init_thread_") {
            Some(init) => init(&mut required, &mut got, &mut rc),
            None => {
                rc =
                    PMPI_Init_thread(std::ptr::null_mut(), std::ptr::null_mut(), required, &mut got)
            }
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
pub unsafe extern "C" fn mpi_init_(ierror: *mut ffi::RSMPI_Fint) {
    // SAFETY: passed on; RSMPI_THREAD_SINGLE is a constant.
    unsafe { init_fortran(ffi::RSMPI_THREAD_SINGLE, std::ptr::null_mut(), ierror) }
}

/// Fortran's `MPI_INIT_THREAD`.
///
/// # Safety
/// The pointers must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mpi_init_thread_(
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
pub unsafe extern "C" fn mpi_init_f08_(ierror: *mut ffi::RSMPI_Fint) {
    // SAFETY: passed on; RSMPI_THREAD_SINGLE is a constant.
    unsafe { init_fortran(ffi::RSMPI_THREAD_SINGLE, std::ptr::null_mut(), ierror) }
}

/// `MPI_INIT_THREAD` of Fortran's module `mpi_f08`.
///
/// # Safety
/// The pointers must be valid; `ierror` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mpi_init_thread_f08_(
    required: *mut ffi::RSMPI_Fint,
    provided: *mut ffi::RSMPI_Fint,
    ierror: *mut ffi::RSMPI_Fint,
) {
    // SAFETY: the caller's pointers are valid.
    unsafe { init_fortran(*required, provided, ierror) }
}
