//! What callbacks of C are given, and what programs attach to functions and handles: the
//! structs of `mercury.h`.

use super::table::{HG_CONTEXTS, Token};
use crate::rpc::failure::Status;
use crate::rpc::hg::context::ContextShared;
use std::os::raw::{c_int, c_void};
use std::ptr;
use std::sync::Arc;

/// Frees what a program has attached.
pub(crate) type FreeCallback = Option<unsafe extern "C" fn(*mut c_void)>;

/// Something of the program's, freed by it when nobody needs it any more.
#[derive(Debug, Default)]
pub(super) struct Attached {
    pub data: usize,
    pub free: FreeCallback,
}

impl Drop for Attached {
    fn drop(&mut self) {
        if let Some(free) = self.free.filter(|_| self.data != 0) {
            // SAFETY: the program's function, with what it was given for.
            unsafe { free(self.data as *mut c_void) };
        }
    }
}

/// `struct hg_info`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct HgInfo {
    pub(super) hg_class: Token,
    pub(super) context: Token,
    pub(super) addr: Token,
    pub(super) context_id: u8,
    pub(super) id: u32,
}

// SAFETY: the handles are numbers.
unsafe impl Send for HgInfo {}
// SAFETY: as above.
unsafe impl Sync for HgInfo {}

/// The bulk part of `struct hg_cb_info`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct BulkInfo {
    pub(super) origin_handle: Token,
    pub(super) local_handle: Token,
    pub(super) op: c_int,
    pub(super) size: u64,
}

/// The union of `struct hg_cb_info`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) union HgInfoOf {
    pub(super) handle: Token,
    pub(super) bulk: BulkInfo,
}

/// `struct hg_cb_info`.
#[repr(C)]
pub(crate) struct HgCallbackInfo {
    arg: *mut c_void,
    ret: c_int,
    kind: c_int,
    info: HgInfoOf,
}

impl std::fmt::Debug for HgCallbackInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HgCallbackInfo").field("ret", &self.ret).finish_non_exhaustive()
    }
}

/// `hg_cb_t`.
pub(crate) type HgCallback = Option<unsafe extern "C" fn(*const HgCallbackInfo) -> c_int>;

pub(crate) const CB_LOOKUP: c_int = 0;
pub(crate) const CB_FORWARD: c_int = 1;
pub(crate) const CB_RESPOND: c_int = 2;
pub(crate) const CB_BULK: c_int = 3;

/// A callback and what it is told.
pub(super) struct Caller {
    pub callback: HgCallback,
    pub arg: *mut c_void,
    pub kind: c_int,
    pub info: HgInfoOf,
}

// SAFETY: the argument is the program's, given away until the callback has run.
unsafe impl Send for Caller {}

impl Caller {
    pub(super) fn tell(self, status: Status) {
        let Caller { callback, arg, kind, info } = self;
        if let Some(callback) = callback {
            let info = HgCallbackInfo { arg, ret: status.0, kind, info };
            // SAFETY: the program's function, with what it was given for.
            unsafe { callback(&info) };
        }
    }
}

/// The handles of a context and its class; null for those of `HG_Init`.
pub(super) fn tokens_of(context: &Arc<ContextShared>) -> (Token, Token) {
    let Some(token) = HG_CONTEXTS.find(|(_, known)| Arc::ptr_eq(&known.shared, context)) else {
        return (ptr::null_mut(), ptr::null_mut());
    };
    let class = HG_CONTEXTS.get(token).map_or(ptr::null_mut(), |(class, _)| class.token());
    (class, token)
}
