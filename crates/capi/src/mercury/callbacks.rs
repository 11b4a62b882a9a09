//! The structs of `mercury.h` that C callbacks receive.

use super::table::Token;
use portolan_rpc::failure::Status;
use std::os::raw::{c_int, c_void};

#[derive(Debug)]
#[repr(C)]
pub(crate) struct HgInfo {
    pub(super) hg_class: Token,
    pub(super) context: Token,
    pub(super) addr: Token,
    pub(super) context_id: u8,
    pub(super) id: u32,
}

// SAFETY: the handles are numbers and are never dereferenced.
unsafe impl Send for HgInfo {}
// SAFETY: the handles are numbers and are never dereferenced.
unsafe impl Sync for HgInfo {}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct BulkInfo {
    pub(super) origin_handle: Token,
    pub(super) local_handle: Token,
    pub(super) op: c_int,
    pub(super) size: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) union HgInfoOf {
    pub(super) handle: Token,
    pub(super) bulk: BulkInfo,
}

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

pub(crate) type HgCallback = Option<unsafe extern "C-unwind" fn(*const HgCallbackInfo) -> c_int>;

pub(crate) const CB_LOOKUP: c_int = 0;
pub(crate) const CB_FORWARD: c_int = 1;
pub(crate) const CB_RESPOND: c_int = 2;
pub(crate) const CB_BULK: c_int = 3;

pub(super) struct Caller {
    pub callback: HgCallback,
    pub arg: *mut c_void,
    pub kind: c_int,
    pub info: HgInfoOf,
}

// SAFETY: the program does not use `arg` until the callback has run. The handles are numbers.
unsafe impl Send for Caller {}

impl Caller {
    pub(super) fn notify(self, status: Status) {
        let Caller { callback, arg, kind, info } = self;
        if let Some(callback) = callback {
            let info = HgCallbackInfo { arg, ret: status.0, kind, info };
            // SAFETY: the program supplied the callback with `arg`, and `info` outlives the call.
            unsafe { callback(&info) };
        }
    }
}
