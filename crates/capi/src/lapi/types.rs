//! Layouts of the C structures and values of `lapi.h`. Assertions check them against the binary
//! contract; the C tests check the header against the same numbers.

use std::os::raw::{c_int, c_long, c_uint, c_ulong, c_void};
use std::sync::atomic::AtomicU32;

pub(crate) type Handle = c_uint;

/// `lapi_cntr_t`. Only its first word is used, and every access to it is atomic.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Counter {
    pub value: AtomicU32,
    reserved: [u32; 3],
}

pub(crate) type ComplHandler = unsafe extern "C" fn(*mut Handle, *mut c_void);
pub(crate) type SendHandler = unsafe extern "C" fn(*mut Handle, *mut c_void, *mut SendInfo);
pub(crate) type HdrHandler = unsafe extern "C" fn(
    *mut Handle,
    *mut c_void,
    *mut c_uint,
    *mut c_ulong,
    *mut Option<ComplHandler>,
    *mut *mut c_void,
) -> *mut c_void;
pub(crate) type VecHdrHandler = unsafe extern "C" fn(
    *mut Handle,
    *mut c_void,
    *mut c_uint,
    *mut c_ulong,
    *mut Option<ComplHandler>,
    *mut *mut c_void,
) -> *mut Vector;
/// `LAPI_err_hndlr`. Arguments: handle, return code, [`ErrorOf`], this task, the other task.
pub(crate) type ErrHandler =
    unsafe extern "C" fn(*mut Handle, *mut c_int, *mut c_int, *mut c_int, *mut c_int);

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Info {
    /// `LAPI_INTERRUPT_OFF`, and bits without effect.
    pub protocol: c_int,
    /// The library version that the program was written for.
    pub lib_vers: c_int,
    /// Unused; must be zero, as the other unused fields.
    pub epoch_num: c_uint,
    /// Ignored: there is always one thread for completion handlers.
    pub num_compl_hndlr_thr: c_int,
    pub instance_no: c_uint,
    pub info6: c_int,
    /// The handler for errors that no call can return.
    pub err_hndlr: Option<ErrHandler>,
    pub lapi_thread_attr: *mut c_void,
    pub adapter_name: *mut c_void,
    pub add_info: *mut c_void,
}

/// `lapi_return_info_t`: the structure whose first member a header handler gets as `msg_len`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct ReturnInfo {
    pub msg_len: c_ulong,
    /// [`MAGIC`].
    pub magic: c_int,
    /// `LAPI_NORMAL`, or the bits [`LOCAL_STATE`] and [`SEND_REPLY`].
    pub ret_flags: c_int,
    /// [`DELIVER_MSG`], [`BURY_MSG`] or [`DROP_PKT`].
    pub ctl_flags: c_int,
    /// Must stay null: data gather/scatter programs are not supported.
    pub dgsp_handle: *mut c_void,
    /// See `msg_len`.
    pub bytes: c_ulong,
    pub src: c_int,
    /// The data if all of it arrived with the header, else null.
    pub udata_one_pkt_ptr: *mut c_void,
    pub recv_offset_dgsp_bytes: c_ulong,
}

/// `lapi_sh_info_t`: the argument of a send completion handler.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct SendInfo {
    pub src: c_uint,
    pub reason: c_uint,
    pub reserve: [c_ulong; 6],
}

#[derive(Debug)]
#[repr(C)]
pub(crate) struct MsgInfo {
    /// `LAPI_SEND_COMPLETE`, `LAPI_RECV_COMPLETE`, both, or `LAPI_DISP_CNTR` for neither.
    pub status: c_uint,
    pub reserve: [c_ulong; 10],
}

#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Statistics {
    /// Duplicate packets. Always zero: the transport is reliable.
    pub dup_pkt: u64,
    pub retrans_pkt: u64,
    pub gho_pkt: u64,
    pub pkt_sent: u64,
    pub pkt_recv: u64,
    pub data_sent: u64,
    pub data_recv: u64,
    pub ack_send: u64,
    pub ack_recv: u64,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Vector {
    /// [`IOVECTOR`], [`STRIDED`] or [`GENERIC`].
    pub vec_type: c_int,
    pub num_vecs: c_uint,
    /// The addresses of the blocks. For a strided vector: base, block size and stride.
    pub info: *mut *mut c_void,
    pub len: *mut c_ulong,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct GetXfer {
    pub xfer_type: c_int,
    pub flags: c_int,
    pub tgt: c_uint,
    pub pad: c_uint,
    pub tgt_addr: u64,
    pub org_addr: *mut c_void,
    pub len: c_ulong,
    pub tgt_cntr: u64,
    pub org_cntr: *mut Counter,
    pub chndlr: Option<ComplHandler>,
    pub cinfo: *mut c_void,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct AmXfer {
    pub xfer_type: c_int,
    pub flags: c_int,
    pub tgt: c_uint,
    pub pad: c_uint,
    pub hdr_hdl: u64,
    pub uhdr_len: c_uint,
    pub uhdr: *mut c_void,
    pub udata: *mut c_void,
    pub udata_len: c_ulong,
    pub shdlr: Option<SendHandler>,
    pub sinfo: *mut c_void,
    pub tgt_cntr: u64,
    pub org_cntr: *mut Counter,
    pub cmpl_cntr: *mut Counter,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct PutXfer {
    pub xfer_type: c_int,
    pub flags: c_int,
    pub tgt: c_uint,
    pub pad: c_uint,
    pub tgt_addr: u64,
    pub org_addr: *mut c_void,
    pub len: c_ulong,
    pub shdlr: Option<SendHandler>,
    pub sinfo: *mut c_void,
    pub tgt_cntr: u64,
    pub org_cntr: *mut Counter,
    pub cmpl_cntr: *mut Counter,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct GetvXfer {
    pub xfer_type: c_int,
    pub flags: c_int,
    pub tgt: c_uint,
    pub pad: c_uint,
    pub org_vec: *mut Vector,
    pub tgt_vec: *mut c_void,
    pub tgt_cntr: u64,
    pub org_cntr: *mut Counter,
    pub chndlr: Option<ComplHandler>,
    pub cinfo: *mut c_void,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct PutvXfer {
    pub xfer_type: c_int,
    pub flags: c_int,
    pub tgt: c_uint,
    pub pad: c_uint,
    pub shdlr: Option<SendHandler>,
    pub sinfo: *mut c_void,
    pub org_vec: *mut Vector,
    pub tgt_vec: *mut c_void,
    pub tgt_cntr: u64,
    pub org_cntr: *mut Counter,
    pub cmpl_cntr: *mut Counter,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct AmvXfer {
    pub xfer_type: c_int,
    pub flags: c_int,
    pub tgt: c_uint,
    pub pad: c_uint,
    pub hdr_hdl: u64,
    pub uhdr_len: c_uint,
    pub uhdr: *mut c_void,
    pub shdlr: Option<SendHandler>,
    pub sinfo: *mut c_void,
    pub org_vec: *mut Vector,
    pub tgt_cntr: u64,
    pub org_cntr: *mut Counter,
    pub cmpl_cntr: *mut Counter,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct RmwXfer {
    pub xfer_type: c_int,
    pub op: c_int,
    pub tgt: c_uint,
    pub size: c_uint,
    pub tgt_var: u64,
    pub in_val: *mut c_void,
    pub prev_tgt_val: *mut c_void,
    pub org_cntr: *mut Counter,
    pub shdlr: Option<SendHandler>,
    pub sinfo: *mut c_void,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct McXfer {
    pub xfer_type: c_int,
    pub flags: c_int,
    pub group: c_uint,
    pub pad: c_uint,
    pub hdr_hdl: u64,
    pub uhdr_len: c_uint,
    pub uhdr: *mut c_void,
    pub udata: *mut c_void,
    pub udata_len: c_ulong,
    pub shdlr: Option<SendHandler>,
    pub sinfo: *mut c_void,
}

/// `lapi_xfer_t`: a structure `lapi_get_t`, `lapi_am_t` and so on, by `xfer_type`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) union Xfer {
    pub xfer_type: c_int,
    pub get: GetXfer,
    pub am: AmXfer,
    pub put: PutXfer,
    pub getv: GetvXfer,
    pub putv: PutvXfer,
    pub amv: AmvXfer,
    pub rmw: RmwXfer,
    pub mc: McXfer,
}

impl std::fmt::Debug for Xfer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // SAFETY: every member of the union begins with the type, so it is always initialised.
        write!(f, "Xfer of type {}", unsafe { self.xfer_type })
    }
}

pub(crate) const LOCAL_STATE: c_int = 1;
pub(crate) const SEND_REPLY: c_int = 2;
pub(crate) const DELIVER_MSG: c_int = 0;
pub(crate) const BURY_MSG: c_int = 1;
pub(crate) const DROP_PKT: c_int = 2;
pub(crate) const MAGIC: c_int = 0x4c41_5049;

pub(crate) const IOVECTOR: c_int = 0;
pub(crate) const STRIDED: c_int = 1;
pub(crate) const GENERIC: c_int = 2;

pub(crate) const MAX_ERR_STRING: usize = 160;
pub(crate) const MAX_MSG_SZ: u64 = i64::MAX as u64;
/// The word size in bytes. User headers are padded to a multiple of it.
pub(crate) const WORD: usize = 8;

/// `lapi_err_t`: the kinds of operation that are reported to an error handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum ErrorOf {
    Get = 0,
    Put = 1,
    Rmw = 2,
    Am = 3,
    Internal = 4,
}

mod layout {
    use super::*;
    use crate::boundary::layout;
    use static_assertions::{const_assert, const_assert_eq};
    use std::mem::{align_of, size_of};

    const_assert_eq!(size_of::<c_int>(), 4);
    const_assert_eq!(size_of::<c_long>(), 8);
    const_assert_eq!(size_of::<Option<ErrHandler>>(), 8);
    const_assert_eq!(align_of::<Counter>(), 4);
    const_assert!(WORD == size_of::<usize>());
    layout! {
        Counter: 16, value at 0;
        ReturnInfo: 64, msg_len at 0, magic at 8, ret_flags at 12, ctl_flags at 16,
            dgsp_handle at 24, bytes at 32, src at 40, udata_one_pkt_ptr at 48,
            recv_offset_dgsp_bytes at 56;
        Info: 56, err_hndlr at 24;
        SendInfo: 56;
        MsgInfo: 88;
        Statistics: 72;
        Vector: 24, info at 8, len at 16;
        AmXfer: 96, hdr_hdl at 16, uhdr_len at 24, uhdr at 32, udata at 40, udata_len at 48,
            shdlr at 56, sinfo at 64, tgt_cntr at 72, org_cntr at 80, cmpl_cntr at 88;
        GetXfer: 72;
        PutXfer: 80;
        GetvXfer: 64;
        PutvXfer: 72;
        AmvXfer: 88;
        RmwXfer: 64;
        McXfer: 72, hdr_hdl at 16, udata_len at 48, sinfo at 64;
        Xfer: 96;
    }
}

/// A function of the program with its argument, which may be called on another thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hook<F>(pub F, pub *mut std::ffi::c_void);

// SAFETY: the program owns both, and lets the library call the function on any of its threads.
unsafe impl<F> Send for Hook<F> {}
// SAFETY: a shared `Hook` is only copied.
unsafe impl<F: Sync> Sync for Hook<F> {}

pub(crate) const GET_THREAD_FUNC: c_int = 7;
