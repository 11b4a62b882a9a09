//! Initialisation, adoption and finalisation of MPI, and the checks for the right MPI and launcher.
//! A program may call `MPI_Init` itself or leave it to this library. The side that initialised MPI
//! also finalises it. If the program calls `MPI_Init` after the library, both must finalise
//! (`life`). If the program calls `MPI_Finalize` before it finalises the library, a delete callback
//! on `MPI_COMM_SELF` first closes the engine while MPI still works.

use super::call::{call, check, portolan_shim_at_finalize, portolan_shim_forget_finalize};
use super::{Flavour, launcher, life};
use mpi::ffi;
use parking_lot::Mutex;
use portolan_base::error::{Result, fail};
use std::io::Write;
use std::os::raw::{c_int, c_void};
use std::ptr;
use std::time::Duration;

/// In ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ThreadLevel {
    Single,
    Funneled,
    Serialized,
    Multiple,
}

impl ThreadLevel {
    #[doc(hidden)]
    pub const ALL: [ThreadLevel; 4] = [
        ThreadLevel::Single,
        ThreadLevel::Funneled,
        ThreadLevel::Serialized,
        ThreadLevel::Multiple,
    ];

    fn from_raw(raw: c_int) -> ThreadLevel {
        let level = ThreadLevel::ALL.into_iter().find(|level| level.raw() == raw);
        level.unwrap_or(ThreadLevel::Single)
    }

    pub fn name(self) -> &'static str {
        match self {
            ThreadLevel::Single => "MPI_THREAD_SINGLE",
            ThreadLevel::Funneled => "MPI_THREAD_FUNNELED",
            ThreadLevel::Serialized => "MPI_THREAD_SERIALIZED",
            ThreadLevel::Multiple => "MPI_THREAD_MULTIPLE",
        }
    }

    pub fn raw(self) -> i32 {
        // SAFETY: the `RSMPI_` names are constants of the bindings.
        unsafe {
            match self {
                ThreadLevel::Single => ffi::RSMPI_THREAD_SINGLE,
                ThreadLevel::Funneled => ffi::RSMPI_THREAD_FUNNELED,
                ThreadLevel::Serialized => ffi::RSMPI_THREAD_SERIALIZED,
                ThreadLevel::Multiple => ffi::RSMPI_THREAD_MULTIPLE,
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Started {
    /// The library must call `finalize`: it initialised MPI, now or at an earlier start.
    pub ours: bool,
    pub level: ThreadLevel,
}

pub fn is_running() -> bool {
    is_initialised() && !is_finalised()
}

fn is_initialised() -> bool {
    let mut initialised = 0;
    // SAFETY: the function may be called at any time.
    unsafe { ffi::MPI_Initialized(&mut initialised) };
    initialised != 0
}

fn is_finalised() -> bool {
    let mut finalised = 0;
    // SAFETY: the function may be called at any time.
    unsafe { ffi::MPI_Finalized(&mut finalised) };
    finalised != 0
}

pub fn level() -> Option<ThreadLevel> {
    let mut provided = 0;
    // SAFETY: MPI is initialised.
    let known = is_running() && unsafe { ffi::MPI_Query_thread(&mut provided) } == 0;
    known.then(|| ThreadLevel::from_raw(provided))
}

/// Initialises MPI at `MPI_THREAD_MULTIPLE`, or adopts an MPI that already runs. Fails with `State`
/// if MPI was finalised, is not the MPI of this build, was initialised below
/// `MPI_THREAD_SERIALIZED` by another thread, or (with `check_launcher`) does not match its
/// launcher.
pub fn start(check_launcher: bool) -> Result<Started> {
    guard_library()?;
    portolan_base::process::set_end(abort);
    if is_finalised() {
        fail!(State, "MPI is already finalised and cannot be initialised again");
    }
    let mut provided = 0;
    let ours = !is_initialised();
    if ours {
        // SAFETY: null pointers for argc and argv are legal since MPI-2.
        unsafe {
            call!(MPI_Init_thread(
                ptr::null_mut(),
                ptr::null_mut(),
                ffi::RSMPI_THREAD_MULTIPLE,
                &mut provided,
            ))
        }?;
        life::begun();
    } else {
        // SAFETY: MPI is initialised.
        unsafe { call!(MPI_Query_thread(&mut provided)) }?;
    }
    let level = ThreadLevel::from_raw(provided);
    if level < ThreadLevel::Serialized && !life::is_main_thread() {
        fail!(
            State,
            "MPI was initialised below MPI_THREAD_SERIALIZED by another thread, and only that \
             thread may call it: start the runtime there, or initialise MPI at MPI_THREAD_MULTIPLE"
        );
    }
    let ours = ours || life::joined();
    let started = Started { ours, level };
    if check_launcher {
        guard_launcher()?;
    }
    Ok(started)
}

/// Does nothing if the program has finalised MPI or must do so later.
pub fn finalize() -> Result<()> {
    if !life::library_ends() || !is_running() {
        return Ok(());
    }
    // SAFETY: MPI is running, and the engine has freed its MPI objects.
    unsafe { call!(MPI_Finalize()) }
}

/// Maximum time for `MPI_Abort`. On a host without network, MPICH waits for an answer of the
/// launcher that never arrives.
const ABORT_TAKES: Duration = Duration::from_secs(5);

/// Ends all ranks (`process::end_job`), after 100 ms for the launcher to read the output, which it
/// drops when the job aborts. If `MPI_Abort` does not return, exits after `ABORT_TAKES`.
pub fn abort(code: i32) -> ! {
    let code = if code == 0 { 1 } else { code };
    if portolan_base::process::is_forked() {
        portolan_base::process::end_job(code);
    }
    if guard_library().is_ok() && is_running() {
        let _ = std::io::stdout().flush();
        std::thread::sleep(Duration::from_millis(100));
        let last_resort = move || {
            std::thread::sleep(ABORT_TAKES);
            // SAFETY: `_exit` ends the process and runs no exit handlers.
            unsafe { libc::_exit(code) }
        };
        let _ = std::thread::Builder::new().name("portolan-abort".into()).spawn(last_resort);
        // SAFETY: MPI is running.
        unsafe { ffi::MPI_Abort(ffi::RSMPI_COMM_WORLD, code) };
    }
    std::process::exit(code)
}

pub fn library_version() -> String {
    let mut text = vec![0u8; 16384];
    let mut len = 0;
    // SAFETY: the buffer exceeds the `MPI_MAX_LIBRARY_VERSION_STRING` of both MPIs (8192 and 256).
    // The function may be called before `MPI_Init`.
    let rc = unsafe { ffi::MPI_Get_library_version(text.as_mut_ptr().cast(), &mut len) };
    if rc != 0 {
        return "unknown".into();
    }
    text.truncate(usize::try_from(len).unwrap_or(0));
    String::from_utf8_lossy(&text).trim_end_matches(['\0', '\n']).to_string()
}

/// Fails with `State` if the program's MPI is not that of this build, even before `MPI_Init`.
pub fn guard_library() -> Result<()> {
    let version = library_version();
    let (built, running) = (Flavour::built(), Flavour::of(&version));
    if built != running {
        fail!(
            State,
            "this library was built for {} but the program runs on {} ({}); \
             link the program with the libarmci of its own MPI",
            built.name(),
            running.name(),
            version.lines().next().unwrap_or("")
        );
    }
    Ok(())
}

/// Fails if the job has one rank, but the launcher meant it as one of several.
fn guard_launcher() -> Result<()> {
    let mut size = 0;
    // SAFETY: MPI is running.
    unsafe { call!(MPI_Comm_size(ffi::RSMPI_COMM_WORLD, &mut size)) }?;
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<i64>().ok());
    if size == 1
        && let Some(why) = launcher::stray(Flavour::built(), number)
    {
        fail!(State, "{why}");
    }
    Ok(())
}

/// The functions to run before and within `MPI_Finalize`, and the attribute key of the second.
type Hook = (fn(), fn(), c_int);

static HOOK: Mutex<Option<Hook>> = Mutex::new(None);

/// The program calls `MPI_Finalize`. Returns false if the first function of the hook panicked.
pub fn before_finalize() -> bool {
    let hook = *HOOK.lock();
    hook.is_none_or(|(before, ..)| std::panic::catch_unwind(before).is_ok())
}

unsafe extern "C" fn run_hook(
    _comm: ffi::MPI_Comm,
    _key: c_int,
    _value: *mut c_void,
    _extra: *mut c_void,
) -> c_int {
    let hook = *HOOK.lock();
    if let Some((_, within, _)) = hook
        && std::panic::catch_unwind(within).is_err()
    {
        return ffi::MPI_ERR_OTHER as c_int;
    }
    ffi::MPI_SUCCESS as c_int
}

/// Registers functions for a call of `MPI_Finalize` by the program: `before` runs before it, and
/// `within` inside it while MPI still works.
pub fn at_finalize(before: fn(), within: fn()) -> Result<()> {
    let mut key = 0;
    *HOOK.lock() = Some((before, within, 0));
    check(
        // SAFETY: MPI is running. `run_hook` has the required type and never unwinds.
        unsafe { portolan_shim_at_finalize(Some(run_hook), &mut key) },
        "MPI_Comm_set_attr",
    )?;
    *HOOK.lock() = Some((before, within, key));
    Ok(())
}

/// Removes the functions of [`at_finalize`] without running them.
pub(crate) fn forget_at_finalize() -> Result<()> {
    let taken = HOOK.lock().take();
    match taken {
        Some((.., mut key)) => {
            // SAFETY: MPI is running, and `at_finalize` created `key`.
            check(unsafe { portolan_shim_forget_finalize(&mut key) }, "MPI_Comm_delete_attr")
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_name_their_flavour() {
        assert_eq!(Flavour::of("Open MPI v4.1.4, package"), Flavour::OpenMpi);
        assert_eq!(Flavour::of("MPICH Version:\t4.0.2"), Flavour::Mpich);
        assert_eq!(Flavour::of("Fujitsu"), Flavour::Other);
    }
}
