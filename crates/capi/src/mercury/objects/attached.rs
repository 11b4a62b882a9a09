//! Pointers and callbacks that programs attach to objects.

use crate::mercury::table::Token;
use crate::mercury::v2_4::codes::to_status;
use parking_lot::Mutex;
use portolan_rpc::failure::Status;
use std::os::raw::{c_int, c_void};

pub(crate) type FreeCallback = Option<unsafe extern "C-unwind" fn(*mut c_void)>;
/// Runs for every new handle. Any code but `HG_SUCCESS` refuses the handle.
pub(crate) type CreateCallback = Option<unsafe extern "C-unwind" fn(Token, *mut c_void) -> c_int>;

/// A program's pointer with the function that frees it, which dropping this calls.
#[derive(Debug, Default)]
pub(crate) struct Attached {
    data: usize,
    free: FreeCallback,
}

impl Attached {
    pub(crate) fn new(data: *mut c_void, free: FreeCallback) -> Attached {
        Attached { data: data as usize, free }
    }

    pub(crate) fn data(&self) -> *mut c_void {
        self.data as *mut c_void
    }

    /// Replaces attached data and frees the data that was attached before, outside the lock.
    pub(crate) fn replace(place: &Mutex<Attached>, by: Attached) {
        let before = std::mem::replace(&mut *place.lock(), by);
        drop(before);
    }

    /// Replaces attached data without freeing the old data: in Mercury 2.4, the program frees it.
    pub(crate) fn overwrite(place: &Mutex<Attached>, by: Attached) {
        std::mem::replace(&mut *place.lock(), by).forget();
    }

    pub(crate) fn forget(mut self) {
        self.data = 0;
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if let Some(free) = self.free.filter(|_| self.data != 0) {
            // SAFETY: the program supplied `free` for this pointer, and drop runs only once.
            unsafe { free(self.data()) };
        }
    }
}

/// The create callback of a class or of a context. Only Mercury 2.4 has it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OnCreate {
    callback: CreateCallback,
    arg: usize,
}

impl OnCreate {
    pub(crate) fn new(callback: CreateCallback, arg: *mut c_void) -> OnCreate {
        OnCreate { callback, arg: arg as usize }
    }

    pub(crate) fn notify(self, handle: Token) -> Status {
        match self.callback {
            // SAFETY: the program supplied this callback together with `arg`.
            Some(callback) => to_status(unsafe { callback(handle, self.arg as *mut c_void) }),
            None => Status::SUCCESS,
        }
    }
}
