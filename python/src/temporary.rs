//! Operands that only the expression refers to, such as `sqrt(a)` in `sqrt(a) + 1`.
//!
//! The program cannot use such an operand again, so a result can take over its memory, as in NumPy.
//! The number of references alone does not show this: extension modules, and NumPy for arrays of
//! objects, call operators with the only reference to an object that they keep. So the evaluation
//! loop of the interpreter must have called the operator. Python 3.14 answers this question. For
//! earlier versions, the return addresses on the stack answer it: all functions between this module
//! and the evaluation loop belong to Python.

use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::LazyLock;

/// Returns whether only the expression that is evaluated refers to an operand of an operator. A
/// temporary object may be missed.
pub fn is_temporary(operand: &Bound<'_, PyAny>) -> bool {
    static IS_TEMPORARY: LazyLock<Option<IsTemporary>> = LazyLock::new(|| {
        let found = symbol(c"PyUnstable_Object_IsUniqueReferencedTemporary");
        // SAFETY: Python's function of this name has this type.
        (!found.is_null())
            .then(|| unsafe { std::mem::transmute::<*mut c_void, IsTemporary>(found) })
    });
    has_one_reference(operand)
        && match *IS_TEMPORARY {
            // SAFETY: the object is alive, and this thread holds the interpreter.
            Some(is_temporary) => (unsafe { is_temporary(operand.as_ptr()) }) == 1,
            None => is_called_by_interpreter(),
        }
}

/// Returns whether there is one reference to an operand. Such operands may be temporary.
pub fn has_one_reference(operand: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the object is alive, and this thread holds the interpreter.
    unsafe { ffi::Py_REFCNT(operand.as_ptr()) == 1 }
}

type IsTemporary = unsafe extern "C" fn(*mut ffi::PyObject) -> c_int;

/// Returns the address of a symbol of the process, or null.
fn symbol(name: &CStr) -> *mut c_void {
    // SAFETY: the name ends with zero.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// Frames of this module and of Python's operators, with some to spare.
const FRAMES: usize = 32;

#[cfg(target_env = "gnu")]
fn is_called_by_interpreter() -> bool {
    static LOOP: LazyLock<usize> = LazyLock::new(|| symbol(c"_PyEval_EvalFrameDefault").addr());
    static HERE: LazyLock<usize> =
        LazyLock::new(|| place(is_called_by_interpreter as *const () as usize).0);
    static PYTHON: LazyLock<usize> = LazyLock::new(|| place(*LOOP).0);
    let mut frames = [std::ptr::null_mut(); FRAMES];
    // SAFETY: the array has `FRAMES` elements.
    let n = unsafe { libc::backtrace(frames.as_mut_ptr(), FRAMES as c_int) };
    frames[..n.unsigned_abs() as usize]
        .iter()
        // A return address may stand behind the last instruction of its function.
        .map(|address| place(address.addr().wrapping_sub(1)))
        .skip_while(|(module, _)| *module == *HERE)
        .take_while(|(module, _)| *module == *PYTHON)
        .any(|(_, function)| function == *LOOP && function != 0)
}

#[cfg(not(target_env = "gnu"))]
fn is_called_by_interpreter() -> bool {
    false
}

/// Returns the addresses of the module and of the exported function that contain an instruction.
#[cfg(target_env = "gnu")]
fn place(address: usize) -> (usize, usize) {
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the call only writes to the structure, whose bits may all be zero.
    let found = unsafe {
        libc::dladdr(std::ptr::without_provenance(address), found.as_mut_ptr());
        found.assume_init()
    };
    (found.dli_fbase.addr(), found.dli_saddr.addr())
}
