//! The structs of the headers.

use super::codes::to_code;
use crate::mercury::objects::class::Counts;
use crate::mercury::table::Token;
use portolan_rpc::failure::Status;
use std::ffi::CStr;
use std::os::raw::{c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug)]
#[repr(C)]
pub(crate) struct NaInitInfo {
    ip_subnet: *const c_char,
    /// The secret that both sides of a TCP connection must know, or null.
    auth_key: *const c_char,
    max_unexpected_size: usize,
    max_expected_size: usize,
    progress_mode: u8,
    addr_format: c_int,
    max_contexts: u8,
    thread_mode: u8,
    request_mem_device: bool,
}

impl NaInitInfo {
    /// Returns the key, if there is one. Every version of the structure has it at this place.
    ///
    /// # Safety
    /// `this` must be null or a structure of any version, whose key is null or terminated for `'a`.
    pub(super) unsafe fn key<'a>(this: *const NaInitInfo) -> Option<&'a [u8]> {
        if this.is_null() {
            return None;
        }
        // SAFETY: `this` is a structure, whose beginning has a key. The caller guarantees the text.
        unsafe {
            let key = (*this).auth_key;
            (!key.is_null()).then(|| CStr::from_ptr(key).to_bytes())
        }
    }
}

/// `struct hg_init_info`. The structs of 2.2 and 2.3 are prefixes of it, so there may be no
/// reference to this one: it would cover memory that the program's struct does not have.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct HgInitInfo {
    pub(super) na_init_info: NaInitInfo,
    pub(super) na_class: Token,
    request_post_init: u32,
    request_post_incr: i32,
    pub(super) auto_sm: u8,
    sm_info_string: *const c_char,
    pub(super) checksum_level: c_int,
    pub(super) no_bulk_eager: u8,
    no_loopback: u8,
    stats: u8,
    no_multi_recv: u8,
    release_input_early: u8,
    traffic_class: c_int,
    pub(super) no_overflow: bool,
    multi_recv_op_max: c_uint,
    multi_recv_copy_threshold: c_uint,
}

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

impl From<&Counts> for Counters {
    fn from(counts: &Counts) -> Counters {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counters {
            rpc_req_sent: of(&counts.req_sent),
            rpc_req_recv: of(&counts.req_recv),
            rpc_resp_sent: of(&counts.resp_sent),
            rpc_resp_recv: of(&counts.resp_recv),
            rpc_req_extra: of(&counts.req_extra),
            rpc_resp_extra: of(&counts.resp_extra),
            rpc_req_recv_active: of(&counts.active),
            rpc_multi_recv_copy: 0,
            bulk: of(&counts.bulk),
        }
    }
}

#[derive(Debug)]
#[repr(C)]
pub(crate) struct ProtocolInfo {
    pub(super) next: *mut ProtocolInfo,
    pub(super) class_name: *mut c_char,
    pub(super) protocol_name: *mut c_char,
    pub(super) device_name: *mut c_char,
}

#[derive(Debug)]
#[repr(C)]
pub(crate) struct BulkAttr {
    pub(super) mem_type: c_int,
    device: u64,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct BulkInfo {
    pub(super) origin_handle: Token,
    pub(super) local_handle: Token,
    pub(super) op: c_int,
    pub(super) size: u64,
}

pub(super) const CB_LOOKUP: c_int = 0;
pub(super) const CB_FORWARD: c_int = 1;
pub(super) const CB_RESPOND: c_int = 2;
pub(super) const CB_BULK: c_int = 3;

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) union InfoOf {
    pub(super) handle: Token,
    pub(super) bulk: BulkInfo,
}

#[repr(C)]
pub(crate) struct CbInfo {
    info: InfoOf,
    arg: *mut c_void,
    kind: c_int,
    ret: c_int,
}

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

pub(crate) type HgCallback = Option<unsafe extern "C-unwind" fn(*const CbInfo) -> c_int>;
pub(crate) type CoreCallback = Option<unsafe extern "C-unwind" fn(*const CoreCbInfo) -> c_int>;

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

pub(super) struct Caller {
    pub callback: Callback,
    pub arg: *mut c_void,
    pub kind: c_int,
    pub info: InfoOf,
}

// SAFETY: the handles are numbers. The program does not use `arg` until the callback has run.
unsafe impl Send for Caller {}

impl Caller {
    pub(super) fn notify(self, status: Status) {
        let Caller { callback, arg, kind, info } = self;
        let ret = to_code(status);
        match callback {
            Callback::Hg(Some(callback)) => {
                let info = CbInfo { info, arg, kind, ret };
                // SAFETY: the program supplied the callback and `arg`; `info` outlives the call.
                unsafe { callback(&info) };
            }
            Callback::Core(Some(callback)) => {
                // SAFETY: callbacks of the core get a handle or an address, so `handle` was set.
                let handle = unsafe { info.handle };
                let info = CoreCbInfo { handle, arg, kind, ret };
                // SAFETY: the program supplied the callback and `arg`; `info` outlives the call.
                unsafe { callback(&info) };
            }
            _ => {}
        }
    }
}
