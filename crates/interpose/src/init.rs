//! `MPI_Init`, `MPI_Init_thread` and `MPI_Finalize`, in C and Fortran. The first two raise the
//! thread level to `MPI_THREAD_MULTIPLE`, which a progress thread needs (unless
//! `PORTOLAN_INTERPOSE` excludes `init`), and succeed if the library has already initialised MPI.
//! `MPI_Finalize` leaves the end to the library while the library still uses MPI
//! ([`portolan_engine::mpi::life`]). All else is passed on through MPI's profiling interface. If a
//! tool defines these functions itself, its definitions are called instead, and must not initialise
//! MPI a second time.
//!
//! Only this crate calls `PMPI_` names, so the user's MPI tools see all other traffic.
//! The Fortran names are resolved at run time, because a C program is not linked with MPI's Fortran
//! library.

use mpi::ffi;
use portolan_base::config::{Config, VARIABLES};
use portolan_base::process::message;
use portolan_engine::mpi::Flavour;
use portolan_engine::mpi::init;
use portolan_engine::mpi::life::{self, End};
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

/// Reads only this variable. The start of the runtime reports an invalid value.
fn raise() -> bool {
    let mut config = Config::default();
    let row = VARIABLES.iter().find(|v| v.name == "PORTOLAN_INTERPOSE");
    if let Some((row, value)) = row.and_then(|row| Some((row, row.current()?))) {
        let _ = (row.set)(&mut config, &value);
    }
    config.raise_thread_level
}

/// Records the level that the program requests, and returns the level to request from MPI. Ends the
/// process if the program runs on another MPI, whose handles this library would truncate.
fn wanted(asked: c_int) -> c_int {
    if let Err(error) = init::guard_library() {
        message::say(&error.to_string());
        std::process::exit(1);
    }
    // SAFETY: `RSMPI_THREAD_MULTIPLE` is a constant of the bindings.
    let multiple = unsafe { ffi::RSMPI_THREAD_MULTIPLE };
    life::requested(asked == multiple);
    if raise() { multiple.max(asked) } else { asked }
}

/// `MPI_Init` that requests `MPI_THREAD_MULTIPLE`.
///
/// # Safety
/// The requirements of `MPI_Init` apply: the pointers are null or the arguments of `main`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Init(argc: *mut c_int, argv: *mut *mut *mut c_char) -> c_int {
    // SAFETY: `RSMPI_THREAD_SINGLE` is a constant of the bindings.
    let single = unsafe { ffi::RSMPI_THREAD_SINGLE };
    let wanted = wanted(single);
    if life::program_begins() {
        return ffi::MPI_SUCCESS as c_int;
    }
    let mut provided = 0;
    // SAFETY: the arguments are passed on unchanged, so the caller's guarantees hold for MPI.
    unsafe {
        if wanted == single {
            PMPI_Init(argc, argv)
        } else {
            PMPI_Init_thread(argc, argv, wanted, &mut provided)
        }
    }
}

/// `MPI_Init_thread` that requests `MPI_THREAD_MULTIPLE`.
///
/// # Safety
/// The requirements of `MPI_Init_thread` apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Init_thread(
    argc: *mut c_int,
    argv: *mut *mut *mut c_char,
    required: c_int,
    provided: *mut c_int,
) -> c_int {
    let wanted = wanted(required);
    // SAFETY: the arguments are passed on unchanged, so the caller's guarantees hold for MPI. If
    // MPI already runs, it stores its level.
    unsafe {
        if life::program_begins() {
            PMPI_Query_thread(provided)
        } else {
            PMPI_Init_thread(argc, argv, wanted, provided)
        }
    }
}

/// If the library initialised MPI and still uses it, MPI keeps running. Otherwise `end`, which is
/// MPI's own function, ends it.
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

#[unsafe(no_mangle)]
pub extern "C" fn MPI_Finalize() -> c_int {
    // SAFETY: MPI rejects an illegal call itself.
    finalize(|| unsafe { PMPI_Finalize() })
}

/// Arguments: required, provided, ierror.
type FortranInitThread =
    unsafe extern "C" fn(*mut ffi::RSMPI_Fint, *mut ffi::RSMPI_Fint, *mut ffi::RSMPI_Fint);

/// Argument: ierror.
type FortranFinalize = unsafe extern "C" fn(*mut ffi::RSMPI_Fint);

/// Returns MPI's Fortran routine with this name, if the program contains it.
fn fortran(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name is null-terminated.
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
    if Flavour::built() == Flavour::OpenMpi {
        life::calls_unrecorded();
    }
    // SAFETY: all pointers passed to MPI are to locals or null, which the C call accepts. The
    // symbol, if it exists, is MPI's Fortran routine of this signature. The caller guarantees
    // `provided` and `ierror`.
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

/// # Safety
/// `ierror` must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mpi_init_(ierror: *mut ffi::RSMPI_Fint) {
    // SAFETY: the caller guarantees `ierror`, and `RSMPI_THREAD_SINGLE` is a constant.
    unsafe { init_fortran(ffi::RSMPI_THREAD_SINGLE, std::ptr::null_mut(), ierror) }
}

/// # Safety
/// The pointers must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mpi_init_thread_(
    required: *mut ffi::RSMPI_Fint,
    provided: *mut ffi::RSMPI_Fint,
    ierror: *mut ffi::RSMPI_Fint,
) {
    // SAFETY: the caller guarantees that the pointers are valid.
    unsafe { init_fortran(*required, provided, ierror) }
}

/// # Safety
/// `ierror` must be valid, or null if the program omits it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mpi_init_f08_(ierror: *mut ffi::RSMPI_Fint) {
    life::calls_unrecorded();
    // SAFETY: the caller guarantees `ierror`, and `RSMPI_THREAD_SINGLE` is a constant.
    unsafe { init_fortran(ffi::RSMPI_THREAD_SINGLE, std::ptr::null_mut(), ierror) }
}

/// # Safety
/// The pointers must be valid. `ierror` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mpi_init_thread_f08_(
    required: *mut ffi::RSMPI_Fint,
    provided: *mut ffi::RSMPI_Fint,
    ierror: *mut ffi::RSMPI_Fint,
) {
    life::calls_unrecorded();
    // SAFETY: the caller guarantees that the pointers are valid and `ierror` may be null.
    unsafe { init_fortran(*required, provided, ierror) }
}

/// # Safety
/// `ierror` must be valid or null.
unsafe fn finalize_fortran(ierror: *mut ffi::RSMPI_Fint) {
    let rc = finalize(|| {
        let mut rc = 0;
        // SAFETY: the symbol, if it exists, is MPI's Fortran routine of this signature.
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
        // SAFETY: the caller guarantees that `ierror` is valid if it is not null.
        unsafe { *ierror = rc };
    }
}

/// # Safety
/// `ierror` must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mpi_finalize_(ierror: *mut ffi::RSMPI_Fint) {
    // SAFETY: the caller guarantees that `ierror` is valid.
    unsafe { finalize_fortran(ierror) }
}

/// # Safety
/// `ierror` must be valid, or null if the program omits it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mpi_finalize_f08_(ierror: *mut ffi::RSMPI_Fint) {
    // SAFETY: the caller guarantees that `ierror` is valid or null.
    unsafe { finalize_fortran(ierror) }
}
