//! The simulated MPI: the functions that the engine calls, under their MPI names.
//!
//! The linker binds the engine's references to these functions and not to the MPI library, which is
//! linked but never initialised. A handle contains a number of [`crate::network`].

use crate::machine::{self, Machine};
use crate::network::{Kind, WORLD};
use crate::threads;
use mpi::ffi::{
    self, MPI_Comm, MPI_Datatype, MPI_Errhandler, MPI_Group, MPI_Info, MPI_Message, MPI_Op,
    MPI_Request, MPI_Status,
};
use std::os::raw::{c_char, c_int, c_void};
use std::sync::Arc;

const OK: c_int = 0;
/// `MPI_ERR_TRUNCATE` and `MPI_ERR_OTHER`. MPICH and Open MPI use the same values.
const ERR_TRUNCATE: c_int = 15;
const ERR_OTHER: c_int = 16;

unsafe extern "C" {
    fn portolan_shim_type(which: c_int) -> MPI_Datatype;
    fn portolan_shim_in_place() -> *mut c_void;
}

/// Converts a number to a handle. Handles are integers or pointers, depending on the MPI.
fn handle<H: Copy>(number: u32) -> H {
    let (narrow, wide) = (number, u64::from(number));
    // SAFETY: a handle is a plain integer or pointer, and the source has its size.
    unsafe {
        match size_of::<H>() {
            4 => std::mem::transmute_copy::<u32, H>(&narrow),
            8 => std::mem::transmute_copy::<u64, H>(&wide),
            _ => unreachable!("a handle has four or eight bytes"),
        }
    }
}

fn raw<H: Copy>(handle: H) -> u64 {
    // SAFETY: a handle is a plain integer or pointer, and the target has its size.
    unsafe {
        match size_of::<H>() {
            4 => u64::from(std::mem::transmute_copy::<H, u32>(&handle)),
            8 => std::mem::transmute_copy::<H, u64>(&handle),
            _ => unreachable!("a handle has four or eight bytes"),
        }
    }
}

fn number<H: Copy>(handle: H) -> u32 {
    u32::try_from(raw(handle)).unwrap_or(u32::MAX)
}

fn context(comm: MPI_Comm) -> u32 {
    // SAFETY: the static is a constant of the bindings that nothing writes to.
    if raw(comm) == raw(unsafe { ffi::RSMPI_COMM_WORLD }) { WORLD } else { number(comm) }
}

fn is_null(request: MPI_Request) -> bool {
    // SAFETY: the static is a constant of the bindings that nothing writes to.
    raw(request) == raw(unsafe { ffi::RSMPI_REQUEST_NULL })
}

/// A handle of a contiguous datatype is this bit and the size of the type.
const DERIVED: u32 = 1 << 31;

/// Returns the size in bytes of an element of a datatype.
fn size_of_type(datatype: MPI_Datatype) -> usize {
    const SIZES: [usize; 9] = [1, 4, 8, 4, 8, 8, 16, 8, 2];
    if number(datatype) != u32::MAX && number(datatype) & DERIVED != 0 {
        return (number(datatype) & !DERIVED) as usize;
    }
    // SAFETY: the static is a constant of the bindings that nothing writes to.
    if raw(unsafe { ffi::RSMPI_INT32_T }) == raw(datatype) {
        return 4;
    }
    // SAFETY: the function only returns a constant.
    let is = |which: &usize| raw(unsafe { portolan_shim_type(*which as c_int) }) == raw(datatype);
    match (0..SIZES.len()).find(is) {
        Some(which) => SIZES[which],
        None => machine::fail("a datatype that the simulated MPI does not know"),
    }
}

/// Another thread may run before the call. The events that are due for the rank happen first.
fn call<R>(name: &'static str, body: impl FnOnce(&mut Machine, usize) -> R) -> R {
    if !machine::simulated() {
        eprintln!("{name} is called outside of a simulated rank");
        std::process::abort();
    }
    threads::point(name, false, 500);
    machine::with(|machine| {
        let rank = machine::rank();
        machine.progress(rank);
        body(machine, rank)
    })
}

/// Waits for a request as MPI's blocking calls do: without making progress outside MPI.
fn block(name: &'static str, request: u32) -> (usize, i32, usize) {
    loop {
        if let Some(done) = call(name, |machine, rank| machine.test(rank, request)) {
            return done;
        }
        threads::point(name, true, 500);
    }
}

/// # Safety
/// `status` is valid for writes, null, or `MPI_STATUS_IGNORE`.
unsafe fn fill(status: *mut MPI_Status, source: usize, tag: i32, bytes: usize) {
    // SAFETY: the static is a constant of the bindings that nothing writes to.
    if status.is_null() || status == unsafe { ffi::RSMPI_STATUS_IGNORE } {
        return;
    }
    // SAFETY: the caller guarantees that `status` is valid for writes. The field for errors holds
    // the count, because these calls report no error in it.
    unsafe {
        (*status).MPI_SOURCE = source as c_int;
        (*status).MPI_TAG = tag;
        (*status).MPI_ERROR = bytes as c_int;
    }
}

fn wanted(machine: &Machine, comm: u32, source: c_int, tag: c_int) -> (Option<usize>, Option<i32>) {
    // SAFETY: the statics are constants of the bindings that nothing writes to.
    let (any_source, any_tag) = unsafe { (ffi::RSMPI_ANY_SOURCE, ffi::RSMPI_ANY_TAG) };
    let source = (source != any_source).then(|| machine.members(comm)[source as usize]);
    (source, (tag != any_tag).then_some(tag))
}

macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {$(
        /// # Safety
        /// The contract of the MPI function applies.
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments, reason = "they are MPI's")]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            // SAFETY: the caller upholds the requirements of the MPI function.
            #[allow(unused_unsafe)]
            unsafe { $body }
        }
    )*};
}

mod collectives;
mod communicators;
mod messages;

functions! {
    fn MPI_Initialized(flag: *mut c_int) {
        *flag = c_int::from(machine::simulated());
        OK
    }

    fn MPI_Finalized(flag: *mut c_int) {
        *flag = 0;
        OK
    }

    fn MPI_Query_thread(provided: *mut c_int) {
        *provided = ffi::RSMPI_THREAD_MULTIPLE;
        OK
    }

    fn MPI_Abort(_comm: MPI_Comm, code: c_int) {
        machine::fail(&format!("MPI_Abort with code {code}"))
    }

    fn MPI_Error_string(code: c_int, text: *mut c_char, len: *mut c_int) {
        let words = format!("simulated error {code}\0");
        std::ptr::copy_nonoverlapping(words.as_ptr(), text.cast(), words.len());
        *len = words.len() as c_int - 1;
        OK
    }

    fn MPI_Comm_set_errhandler(_comm: MPI_Comm, _handler: MPI_Errhandler) {
        OK
    }

    fn MPI_Win_create(
        _base: *mut c_void,
        _len: ffi::MPI_Aint,
        _unit: c_int,
        _info: MPI_Info,
        _comm: MPI_Comm,
        _win: *mut ffi::MPI_Win,
    ) {
        ERR_OTHER
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn MPI_Wtime() -> f64 {
    threads::tick(300) as f64 * 1e-9
}
