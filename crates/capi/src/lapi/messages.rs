//! Return codes and their texts.

use super::types::MAX_ERR_STRING;
use crate::boundary::export;
use std::os::raw::{c_int, c_void};

macro_rules! codes {
    ($($name:ident = $value:literal, $c:literal, $text:literal;)+) => {
        $(
            #[doc = concat!("`", $c, "`: ", $text, ".")]
            #[allow(dead_code, reason = "the table below includes codes that only other LAPIs return")]
            pub(crate) const $name: c_int = $value;
        )+
        /// Number, name and text, in ascending order of the number.
        pub(crate) const CODES: &[(c_int, &str, &str)] = &[$(($value, $c, $text)),+];
    };
}

codes! {
    SUCCESS = 0, "LAPI_SUCCESS", "the call was successful";
    UNKNOWN = 400, "LAPI_ERR_UNKNOWN", "the underlying library reported a failure; see standard error";
    ALL_HNDL_IN_USE = 401, "LAPI_ERR_ALL_HNDL_IN_USE", "the handle is in use; LAPI_Term frees it";
    BOTH_NETSTR_SET = 402, "LAPI_ERR_BOTH_NETSTR_SET", "two networks are named for one instance";
    CKPT_LOAD_FAILED = 403, "LAPI_ERR_CKPT_LOAD_FAILED", "the support of checkpoints cannot be loaded";
    CSS_LOAD_FAILED = 404, "LAPI_ERR_CSS_LOAD_FAILED", "the library of the network cannot be loaded";
    INFO_NULL = 405, "LAPI_ERR_INFO_NULL", "the pointer to lapi_info_t is null";
    MSG_API = 406, "LAPI_ERR_MSG_API", "the environment variable MP_MSG_API has an error in it";
    NO_NETSTR_SET = 407, "LAPI_ERR_NO_NETSTR_SET", "no network is named for the task";
    NO_UDP_HNDLR = 408, "LAPI_ERR_NO_UDP_HNDLR", "the handler for UDP is null";
    HDR_HNDLR_NULL = 409, "LAPI_ERR_HDR_HNDLR_NULL", "the header handler is null";
    PSS_NON_ROOT = 410, "LAPI_ERR_PSS_NON_ROOT", "only root may start this kind of instance";
    WARN_PARM_NULL = 411, "LAPI_WARN_PARM_NULL", "warning: an address is null";
    SHM_KE_NOT_LOADED = 412, "LAPI_ERR_SHM_KE_NOT_LOADED", "the kernel lacks the extension for shared memory";
    TIMEOUT = 413, "LAPI_ERR_TIMEOUT", "the time-out of communication has passed";
    REG_TIMER = 414, "LAPI_ERR_REG_TIMER", "a timer cannot be set again";
    UDP_PKT_SZ = 415, "LAPI_ERR_UDP_PKT_SZ", "the size of UDP packets is outside its range";
    USER_UDP_HNDLR_FAIL = 416, "LAPI_ERR_USER_UDP_HNDLR_FAIL", "the program's handler for UDP has failed";
    HNDL_INVALID = 417, "LAPI_ERR_HNDL_INVALID", "the handle is not initialised or was terminated";
    RET_PTR_NULL = 418, "LAPI_ERR_RET_PTR_NULL", "the pointer to the result is null";
    ADDR_HNDL_RANGE = 419, "LAPI_ERR_ADDR_HNDL_RANGE", "the index is outside the address table";
    ADDR_TBL_NULL = 420, "LAPI_ERR_ADDR_TBL_NULL", "the table for the addresses is null";
    TGT_PURGED = 421, "LAPI_ERR_TGT_PURGED", "the target was purged; LAPI_Resume_totask admits it again";
    MULTIPLE_WAITERS = 422, "LAPI_ERR_MULTIPLE_WAITERS", "another thread waits for the counter";
    MEMORY_EXHAUSTED = 423, "LAPI_ERR_MEMORY_EXHAUSTED", "out of memory";
    INFO_NONZERO = 424, "LAPI_ERR_INFO_NONZERO", "fields of lapi_info_t that are not used must be zero";
    ORG_ADDR_NULL = 425, "LAPI_ERR_ORG_ADDR_NULL", "the address at the origin is null, but the length is not zero";
    TGT_ADDR_NULL = 426, "LAPI_ERR_TGT_ADDR_NULL", "the address at the target is null or not in use there";
    DATA_LEN = 427, "LAPI_ERR_DATA_LEN", "the length is larger than LAPI_MAX_MSG_SZ";
    TGT = 428, "LAPI_ERR_TGT", "the target is outside the tasks of the job";
    UHDR_NULL = 429, "LAPI_ERR_UHDR_NULL", "the user header is null, but its length is not zero";
    UHDR_LEN = 430, "LAPI_ERR_UHDR_LEN", "the user header is longer than MAX_UHDR_SZ";
    HDR_LEN = 431, "LAPI_ERR_HDR_LEN", "the length of the user header is not a multiple of the word; not returned here";
    ORG_EXTENT = 432, "LAPI_ERR_ORG_EXTENT", "the extent of the origin's vector is larger than LAPI_MAX_MSG_SZ";
    ORG_STRIDE = 433, "LAPI_ERR_ORG_STRIDE", "the stride of the origin's vector is less than its block";
    NO_CONNECTIVITY = 434, "LAPI_ERR_NO_CONNECTIVITY", "there is no connection to the task";
    ADAPTERS_DOWN = 435, "LAPI_ERR_ADAPTERS_DOWN", "no network adapter is up";
    RECV_INCOMP = 436, "LAPI_ERR_RECV_INCOMP", "a message was not received completely";
    SEND_INCOMP = 437, "LAPI_ERR_SEND_INCOMP", "a message was not sent completely";
    SEND_TIMEOUT = 438, "LAPI_ERR_SEND_TIMEOUT", "a message could not be sent within the time-out";
    SHM_SETUP = 439, "LAPI_ERR_SHM_SETUP", "the shared memory cannot be set up";
    ORG_VEC_ADDR = 440, "LAPI_ERR_ORG_VEC_ADDR", "an address in the origin's vector is null, but its length is not zero";
    ORG_VEC_LEN = 441, "LAPI_ERR_ORG_VEC_LEN", "the origin's vector is longer than LAPI_MAX_MSG_SZ";
    ORG_VEC_NULL = 442, "LAPI_ERR_ORG_VEC_NULL", "the origin's vector is null";
    ORG_VEC_TYPE = 443, "LAPI_ERR_ORG_VEC_TYPE", "the origin's vector is of unknown type";
    STRIDE_ORG_VEC_ADDR_NULL = 444, "LAPI_ERR_STRIDE_ORG_VEC_ADDR_NULL", "the address of the origin's strided vector is null";
    STRIDE_TGT_VEC_ADDR_NULL = 445, "LAPI_ERR_STRIDE_TGT_VEC_ADDR_NULL", "the address of the target's strided vector is null";
    TGT_EXTENT = 446, "LAPI_ERR_TGT_EXTENT", "the extent of the target's vector is larger than LAPI_MAX_MSG_SZ";
    TGT_STRIDE = 447, "LAPI_ERR_TGT_STRIDE", "the stride of the target's vector is less than its block";
    TGT_VEC_ADDR = 448, "LAPI_ERR_TGT_VEC_ADDR", "an address in the target's vector is null, but its length is not zero";
    TGT_VEC_LEN = 449, "LAPI_ERR_TGT_VEC_LEN", "the target's vector is longer than LAPI_MAX_MSG_SZ";
    CKPT = 450, "LAPI_ERR_CKPT", "a checkpoint or a restart has failed";
    TGT_VEC_NULL = 451, "LAPI_ERR_TGT_VEC_NULL", "the target's vector is null";
    TGT_VEC_TYPE = 452, "LAPI_ERR_TGT_VEC_TYPE", "the target's vector is of unknown type";
    VEC_NUM_DIFF = 453, "LAPI_ERR_VEC_NUM_DIFF", "the two vectors have different numbers of blocks";
    VEC_TYPE_DIFF = 454, "LAPI_ERR_VEC_TYPE_DIFF", "the two vectors are of different types";
    VEC_LEN_DIFF = 455, "LAPI_ERR_VEC_LEN_DIFF", "the two vectors have blocks of different lengths";
    MSG_INFO_NULL = 456, "LAPI_ERR_MSG_INFO_NULL", "the pointer to lapi_msg_info_t is null";
    POLLING_NET = 457, "LAPI_ERR_POLLING_NET", "another thread polls; try again later";
    CNTR_NULL = 458, "LAPI_ERR_CNTR_NULL", "the pointer to the counter is null";
    CNTR_VAL = 459, "LAPI_ERR_CNTR_VAL", "the value to wait for is too small";
    QUERY_TYPE = 460, "LAPI_ERR_QUERY_TYPE", "the query is unknown, or its value cannot be set";
    IN_VAL_NULL = 461, "LAPI_ERR_IN_VAL_NULL", "the pointer to the operand is null";
    RMW_OP = 462, "LAPI_ERR_RMW_OP", "the read-modify-write operation is unknown";
    TGT_VAR_NULL = 463, "LAPI_ERR_TGT_VAR_NULL", "the address of the target's variable is null";
    SET_VAL = 464, "LAPI_ERR_SET_VAL", "the value to set is outside its range";
    DGSP = 465, "LAPI_ERR_DGSP", "the data gather/scatter program is null or not registered; none are supported";
    DGSP_ATOM = 466, "LAPI_ERR_DGSP_ATOM", "the atom size of the data gather/scatter program is invalid";
    DGSP_BRANCH = 467, "LAPI_ERR_DGSP_BRANCH", "the data gather/scatter program branches to a wrong place";
    DGSP_CTL = 468, "LAPI_ERR_DGSP_CTL", "the control block of the data gather/scatter program is invalid";
    DGSP_COPY_SZ = 469, "LAPI_ERR_DGSP_COPY_SZ", "the data gather/scatter program copies an invalid number of bytes";
    DGSP_FREE = 470, "LAPI_ERR_DGSP_FREE", "a data gather/scatter program that does not exist cannot be freed";
    DGSP_OPC = 471, "LAPI_ERR_DGSP_OPC", "the data gather/scatter program has an unknown instruction";
    DGSP_REPS = 472, "LAPI_ERR_DGSP_REPS", "the data gather/scatter program has a negative number of repetitions";
    DGSP_STACK = 473, "LAPI_ERR_DGSP_STACK", "the data gather/scatter program has no stack";
    OP_SZ = 474, "LAPI_ERR_OP_SZ", "the size of a read-modify-write is neither 32 nor 64";
    UDP_PORT_INFO = 475, "LAPI_ERR_UDP_PORT_INFO", "the information on UDP ports is null";
    XFER_CMD = 476, "LAPI_ERR_XFER_CMD", "the type of transfer is unknown or not supported";
    UTIL_CMD = 477, "LAPI_ERR_UTIL_CMD", "the command of LAPI_Util is unknown or not supported";
    CATALOG_FAIL = 478, "LAPI_ERR_CATALOG_FAIL", "the catalogue of messages cannot be opened";
    PACK_SZ = 479, "LAPI_ERR_PACK_SZ", "the buffer to pack into is too small";
    DGSP_OTHER = 480, "LAPI_ERR_DGSP_OTHER", "the data gather/scatter program has another error";
    UDP_SOCKET = 481, "LAPI_ERR_UDP_SOCKET", "an operation of a UDP socket has failed";
    COLLECTIVE_PSS = 482, "LAPI_ERR_COLLECTIVE_PSS", "this kind of instance cannot make collective calls";
    DMA_HNDL = 483, "LAPI_ERR_DMA_HNDL", "the handle of direct memory access is invalid";
    DMA_TAG = 484, "LAPI_ERR_DMA_TAG", "the tag of direct memory access is invalid";
    ATT_FR_SETUP_INTERNAL = 485, "LAPI_ATT_FR_SETUP_INTERNAL", "attention: failover cannot be set up";
    ATT_FR_SETUP_NONAM = 486, "LAPI_ATT_FR_SETUP_NONAM", "attention: failover cannot be set up without the network's availability service";
    ATT_FR_SETUP_NOHAGS = 487, "LAPI_ATT_FR_SETUP_NOHAGS", "attention: failover cannot be set up without group services";
    ATT_FR_SETUP_BADPOE = 488, "LAPI_ATT_FR_SETUP_BADPOE", "attention: failover cannot be set up with this parallel environment";
    ATT_FR_SETUP_NOPOE = 489, "LAPI_ATT_FR_SETUP_NOPOE", "attention: failover cannot be set up without a parallel environment";
    ATT_FR_SETUP_NONSNX = 490, "LAPI_ATT_FR_SETUP_NONSNX", "attention: failover cannot be set up with this network device";
    ATT_FR_HALTED = 491, "LAPI_ATT_FR_HALTED", "attention: failover has ended";
    TGT_CONTEXT = 492, "LAPI_ERR_TGT_CONTEXT", "the context at the target is invalid";
    SRC_CONTEXT = 493, "LAPI_ERR_SRC_CONTEXT", "the context at the source is invalid";
    TGT_BUFHNDL = 494, "LAPI_ERR_TGT_BUFHNDL", "the handle of the target's buffer is invalid";
    SRC_BUFHNDL = 495, "LAPI_ERR_SRC_BUFHNDL", "the handle of the source's buffer is invalid";
    TGT_OFFSET = 496, "LAPI_ERR_TGT_OFFSET", "the offset at the target is invalid";
    SRC_OFFSET = 497, "LAPI_ERR_SRC_OFFSET", "the offset at the source is invalid";
    NO_RDMA_RESOURCE = 498, "LAPI_ERR_NO_RDMA_RESOURCE", "no resources for remote direct memory access are left";
    ATT_BULK_ENABLED = 499, "LAPI_ATT_BULK_ENABLED", "attention: bulk transfers are enabled";
    ATT_COMM_TIMEOUT = 500, "LAPI_ATT_COMM_TIMEOUT", "attention: several tasks do not answer in time";
    ATT_VERSION = 501, "LAPI_ATT_VERSION", "attention: the version of the library";
    ATT_SHMINIT_FAIL = 502, "LAPI_ATT_SHMINIT_FAIL", "attention: the shared memory cannot be set up";
    ATT_SHMINIT_CKPT_FAIL = 503, "LAPI_ATT_SHMINIT_CKPT_FAIL", "attention: the shared memory cannot be set up for a checkpoint";
    ATT_SHM_SINGLE_TASK = 504, "LAPI_ATT_SHM_SINGLE_TASK", "attention: the task is alone on its node and uses no shared memory";
    ATT_SHM_CREATE_FAIL = 505, "LAPI_ATT_SHM_CREATE_FAIL", "attention: a segment of shared memory cannot be created";
    ATT_SHM_GET_FAIL = 506, "LAPI_ATT_SHM_GET_FAIL", "attention: a segment of shared memory cannot be found";
    ATT_SHM_ATT_FAIL = 507, "LAPI_ATT_SHM_ATT_FAIL", "attention: a segment of shared memory cannot be attached";
    ATT_SHM_NO_SEGATT = 508, "LAPI_ATT_SHM_NO_SEGATT", "attention: no segment for copies between processes is left";
    ATT_PORT_START = 509, "LAPI_ATT_PORT_START", "attention: a port begins to pass messages";
    NO_ENV_VAR = 510, "LAPI_ERR_NO_ENV_VAR", "a required environment variable is not set";
    NO_CALLBACK_REG = 511, "LAPI_ERR_NO_CALLBACK_REG", "no callback is registered";
    NO_CNTR_REG = 512, "LAPI_ERR_NO_CNTR_REG", "no counter is registered";
    XLATE_FAILED = 513, "LAPI_ERR_XLATE_FAILED", "an address cannot be prepared for remote direct memory access";
    RDMA_RESOURCES = 514, "LAPI_ERR_RDMA_RESOURCES", "there are no resources for remote direct memory access";
    LW_DATA_LEN = 515, "LAPI_ERR_LW_DATA_LEN", "header and data are too long for a light active message";
    NO_HNDLR_SET = 516, "LAPI_ERR_NO_HNDLR_SET", "a light active message needs the index of a header handler that is set";
    OFFSET_LEN = 517, "LAPI_ERR_OFFSET_LEN", "the offset of the data gather/scatter program is outside its range";
    RCXT_CANCEL = 518, "LAPI_ERR_RCXT_CANCEL", "a remote context cannot be given back";
    CODE_UNKNOWN = 519, "LAPI_ERR_CODE_UNKNOWN", "the return code is unknown";
    ATT_PREEMPT_SETUP_INTERNAL = 520, "LAPI_ATT_PREEMPT_SETUP_INTERNAL", "attention: preemption cannot be set up";
    DUP_TRIGGER = 521, "LAPI_ERR_DUP_TRIGGER", "a trigger of this name is registered already";
    TRIGGER_UNKNOWN = 522, "LAPI_ERR_TRIGGER_UNKNOWN", "no trigger of this name is registered";
    TASK_NUM = 523, "LAPI_ERR_TASK_NUM", "the number of tasks of a group is zero or too large";
    NULL_LIST = 524, "LAPI_ERR_NULL_LIST", "the list of tasks of a group is null";
    GRP_MEMBER = 525, "LAPI_ERR_GRP_MEMBER", "a member of the group is not a task of the job, or is in the list twice";
    NULL_GRP = 526, "LAPI_ERR_NULL_GRP", "the pointer to the group is null";
    GRP = 527, "LAPI_ERR_GRP", "the group was not made by this task, or was freed";
    STAT_SAVE_FAIL = 528, "LAPI_ERR_STAT_SAVE_FAIL", "the statistics cannot be saved";
}

pub(crate) fn describe(code: c_int) -> Option<String> {
    let (_, name, text) = CODES.iter().find(|(c, ..)| *c == code)?;
    Some(format!("{name} ({code}): {text}"))
}

export! {
    LAPI_Msg_string / PLAPI_Msg_string(error_code: c_int, buf: *mut c_void) -> c_int {
        if buf.is_null() {
            return RET_PTR_NULL;
        }
        let known = describe(error_code);
        let text = known.clone().unwrap_or_else(|| format!("return code {error_code} is unknown"));
        let bytes = &text.as_bytes()[..text.len().min(MAX_ERR_STRING - 1)];
        // SAFETY: by contract, `buf` has MAX_ERR_STRING bytes; `bytes` leaves one for the zero.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), buf.cast(), bytes.len());
            *buf.cast::<u8>().add(bytes.len()) = 0;
        }
        if known.is_some() { SUCCESS } else { CODE_UNKNOWN }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_fit_and_codes_are_unique() {
        for (i, (code, name, _)) in CODES.iter().enumerate() {
            assert!(describe(*code).unwrap().len() < MAX_ERR_STRING, "{name}");
            assert!(CODES[..i].iter().all(|(c, n, _)| c < code && n != name), "{name}");
        }
        assert!(describe(1).is_none());
    }
}
