//! Rust definitions of the structs in the headers.

use super::codes::{to_code, to_status};
pub(crate) use crate::mercury::callbacks::{BulkInfo, CB_BULK, CB_FORWARD, CB_LOOKUP, CB_RESPOND};
use crate::mercury::table::Token;
use portolan_rpc::failure::Status;
use std::os::raw::{c_char, c_int, c_uint, c_void};

/// Frees data that a program has attached.
pub(crate) type FreeCallback = Option<unsafe extern "C" fn(*mut c_void)>;
/// `hg_rpc_cb_t`, `hg_core_rpc_cb_t`.
pub(crate) type RpcCallback = Option<unsafe extern "C" fn(Token) -> c_int>;
/// `hg_proc_cb_t`.
pub(crate) type ProcCallback = Option<unsafe extern "C" fn(Token, *mut c_void) -> c_int>;
/// Runs for every new handle. It refuses the handle by returning another code than `HG_SUCCESS`.
pub(crate) type CreateCallback = Option<unsafe extern "C" fn(Token, *mut c_void) -> c_int>;

/// A program's pointer with the function that frees it. Dropping this calls the function.
#[derive(Debug, Default)]
pub(super) struct Attached {
    data: usize,
    free: FreeCallback,
}

impl Attached {
    pub(super) fn new(data: *mut c_void, free: FreeCallback) -> Attached {
        Attached { data: data as usize, free }
    }

    pub(super) fn data(&self) -> *mut c_void {
        self.data as *mut c_void
    }

    /// Drops the pointer without freeing the program's data.
    pub(super) fn forget(mut self) {
        self.data = 0;
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if let Some(free) = self.free.filter(|_| self.data != 0) {
            // SAFETY: the program supplied `free` for this pointer.
            unsafe { free(self.data()) };
        }
    }
}

/// `struct hg_info` and `struct hg_core_info`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct HgInfo {
    pub(super) hg_class: Token,
    pub(super) context: Token,
    pub(super) addr: Token,
    pub(super) id: u64,
    pub(super) context_id: u8,
}

// SAFETY: the handles are numbers, and they are never dereferenced.
unsafe impl Send for HgInfo {}
// SAFETY: the handles are numbers, and they are never dereferenced.
unsafe impl Sync for HgInfo {}

/// `struct na_init_info_4_0`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct NaInitInfo {
    ip_subnet: *const c_char,
    auth_key: *const c_char,
    max_unexpected_size: usize,
    max_expected_size: usize,
    progress_mode: u8,
    addr_format: c_int,
    max_contexts: u8,
    thread_mode: u8,
    request_mem_device: bool,
}

/// `struct hg_init_info`. The structs of 2.2 and 2.3 are prefixes of it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct HgInitInfo {
    na_init_info: NaInitInfo,
    pub(super) na_class: Token,
    request_post_init: u32,
    request_post_incr: i32,
    auto_sm: u8,
    sm_info_string: *const c_char,
    pub(super) checksum_level: c_int,
    no_bulk_eager: u8,
    no_loopback: u8,
    stats: u8,
    no_multi_recv: u8,
    release_input_early: u8,
    traffic_class: c_int,
    pub(super) no_overflow: bool,
    multi_recv_op_max: c_uint,
    multi_recv_copy_threshold: c_uint,
}

/// `struct hg_diag_counters`.
#[derive(Debug, Default, Clone, Copy)]
#[repr(C)]
pub(crate) struct Counters {
    pub(super) rpc_req_sent: u64,
    pub(super) rpc_req_recv: u64,
    pub(super) rpc_resp_sent: u64,
    pub(super) rpc_resp_recv: u64,
    pub(super) rpc_req_extra: u64,
    pub(super) rpc_resp_extra: u64,
    pub(super) rpc_req_recv_active: u64,
    pub(super) rpc_multi_recv_copy: u64,
    pub(super) bulk: u64,
}

/// `struct na_protocol_info`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct ProtocolInfo {
    pub(super) next: *mut ProtocolInfo,
    pub(super) class_name: *mut c_char,
    pub(super) protocol_name: *mut c_char,
    pub(super) device_name: *mut c_char,
}

/// `struct hg_bulk_attr`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct BulkAttr {
    pub(super) mem_type: c_int,
    device: u64,
}

/// The union of `struct hg_cb_info`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) union InfoOf {
    pub(super) handle: Token,
    pub(super) bulk: BulkInfo,
}

/// `struct hg_cb_info`.
#[repr(C)]
pub(crate) struct CbInfo {
    info: InfoOf,
    arg: *mut c_void,
    kind: c_int,
    ret: c_int,
}

/// `struct hg_core_cb_info`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct CoreCbInfo {
    handle: Token,
    arg: *mut c_void,
    kind: c_int,
    ret: c_int,
}

impl std::fmt::Debug for CbInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CbInfo").field("ret", &self.ret).finish_non_exhaustive()
    }
}

/// `hg_cb_t`.
pub(crate) type HgCallback = Option<unsafe extern "C" fn(*const CbInfo) -> c_int>;
/// `hg_core_cb_t`.
pub(crate) type CoreCallback = Option<unsafe extern "C" fn(*const CoreCbInfo) -> c_int>;

/// A callback of either layer.
#[derive(Clone, Copy)]
pub(super) enum Callback {
    Hg(HgCallback),
    Core(CoreCallback),
}

impl Callback {
    pub(super) fn is_none(self) -> bool {
        matches!(self, Callback::Hg(None) | Callback::Core(None))
    }
}

/// A callback and the contents of its info struct.
pub(super) struct Caller {
    pub callback: Callback,
    pub arg: *mut c_void,
    pub kind: c_int,
    pub info: InfoOf,
}

// SAFETY: the handles are numbers, and the program leaves `arg` to the library until the callback
// has run.
unsafe impl Send for Caller {}

impl Caller {
    pub(super) fn tell(self, status: Status) {
        let Caller { callback, arg, kind, info } = self;
        let ret = to_code(status);
        match callback {
            Callback::Hg(Some(callback)) => {
                let info = CbInfo { info, arg, kind, ret };
                // SAFETY: the program supplied this callback for `arg`, and `info` is live during
                // the call.
                unsafe { callback(&info) };
            }
            Callback::Core(Some(callback)) => {
                // SAFETY: callbacks of the core get a handle or an address, so `handle` is the
                // field that was set.
                let handle = unsafe { info.handle };
                let info = CoreCbInfo { handle, arg, kind, ret };
                // SAFETY: the program supplied this callback for `arg`, and `info` is live during
                // the call.
                unsafe { callback(&info) };
            }
            _ => {}
        }
    }
}

/// The callback for new handles of a class or context.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OnCreate {
    callback: CreateCallback,
    arg: usize,
}

impl OnCreate {
    pub(super) fn new(callback: CreateCallback, arg: *mut c_void) -> OnCreate {
        OnCreate { callback, arg: arg as usize }
    }

    /// Passes a new handle to the callback. Returns its status; any but `SUCCESS` refuses the
    /// handle.
    pub(super) fn tell(self, handle: Token) -> Status {
        match self.callback {
            // SAFETY: the program supplied this callback together with `arg`.
            Some(callback) => to_status(unsafe { callback(handle, self.arg as *mut c_void) }),
            None => Status::SUCCESS,
        }
    }
}
