//! Return codes and their texts.

use super::twin;
use super::types::MAX_ERR_STRING;
use std::os::raw::{c_int, c_void};

macro_rules! codes {
    ($($name:ident = $value:literal, $c:literal, $text:literal;)+) => {
        $(
            #[doc = concat!("`", $c, "`: ", $text, ".")]
            pub const $name: c_int = $value;
        )+
        /// All codes: the number, the name, the text.
        pub const CODES: &[(c_int, &str, &str)] = &[$(($value, $c, $text)),+];
    };
}

codes! {
    SUCCESS = 0, "LAPI_SUCCESS", "the call was successful";
    UNKNOWN = 400, "LAPI_ERR_UNKNOWN", "the library below reported a failure; standard error says which";
    ALL_HNDL_IN_USE = 401, "LAPI_ERR_ALL_HNDL_IN_USE", "the handle is in use; LAPI_Term frees it";
    INFO_NULL = 405, "LAPI_ERR_INFO_NULL", "the pointer to lapi_info_t is null";
    HDR_HNDLR_NULL = 409, "LAPI_ERR_HDR_HNDLR_NULL", "there is no header handler";
    HNDL_INVALID = 417, "LAPI_ERR_HNDL_INVALID", "the handle is not initialised or was terminated";
    RET_PTR_NULL = 418, "LAPI_ERR_RET_PTR_NULL", "the pointer to what is to be returned is null";
    ADDR_HNDL_RANGE = 419, "LAPI_ERR_ADDR_HNDL_RANGE", "the index is outside the address table";
    ADDR_TBL_NULL = 420, "LAPI_ERR_ADDR_TBL_NULL", "the table for the addresses is null";
    TGT_PURGED = 421, "LAPI_ERR_TGT_PURGED", "the target was purged; LAPI_Resume_totask admits it again";
    MULTIPLE_WAITERS = 422, "LAPI_ERR_MULTIPLE_WAITERS", "another thread waits for the counter";
    MEMORY_EXHAUSTED = 423, "LAPI_ERR_MEMORY_EXHAUSTED", "there is no memory left";
    INFO_NONZERO = 424, "LAPI_ERR_INFO_NONZERO", "fields of lapi_info_t that are not used must be zero";
    ORG_ADDR_NULL = 425, "LAPI_ERR_ORG_ADDR_NULL", "the address at the origin is null, but there are bytes to move";
    TGT_ADDR_NULL = 426, "LAPI_ERR_TGT_ADDR_NULL", "the address at the target is null or not in use there";
    DATA_LEN = 427, "LAPI_ERR_DATA_LEN", "the length is larger than LAPI_MAX_MSG_SZ";
    TGT = 428, "LAPI_ERR_TGT", "the target is outside the tasks of the job";
    UHDR_NULL = 429, "LAPI_ERR_UHDR_NULL", "the user header is null, but its length is not zero";
    UHDR_LEN = 430, "LAPI_ERR_UHDR_LEN", "the user header is longer than MAX_UHDR_SZ or not a multiple of eight bytes long";
    HDR_LEN = 431, "LAPI_ERR_HDR_LEN", "the length of the user header is not a multiple of the word";
    ORG_EXTENT = 432, "LAPI_ERR_ORG_EXTENT", "the extent of the origin's vector is larger than LAPI_MAX_MSG_SZ";
    ORG_STRIDE = 433, "LAPI_ERR_ORG_STRIDE", "the stride of the origin's vector is less than its block";
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
    TGT_VEC_NULL = 451, "LAPI_ERR_TGT_VEC_NULL", "the target's vector is null";
    TGT_VEC_TYPE = 452, "LAPI_ERR_TGT_VEC_TYPE", "the target's vector is of unknown type";
    VEC_NUM_DIFF = 453, "LAPI_ERR_VEC_NUM_DIFF", "the two vectors have different numbers of blocks";
    VEC_TYPE_DIFF = 454, "LAPI_ERR_VEC_TYPE_DIFF", "the two vectors are of different types";
    VEC_LEN_DIFF = 455, "LAPI_ERR_VEC_LEN_DIFF", "the two vectors have blocks of different lengths";
    MSG_INFO_NULL = 456, "LAPI_ERR_MSG_INFO_NULL", "the pointer to lapi_msg_info_t is null";
    CNTR_NULL = 458, "LAPI_ERR_CNTR_NULL", "the pointer to the counter is null";
    CNTR_VAL = 459, "LAPI_ERR_CNTR_VAL", "the value to wait for is too small";
    QUERY_TYPE = 460, "LAPI_ERR_QUERY_TYPE", "there is no such query, or the value cannot be set";
    IN_VAL_NULL = 461, "LAPI_ERR_IN_VAL_NULL", "the pointer to the operand is null";
    RMW_OP = 462, "LAPI_ERR_RMW_OP", "there is no such read-modify-write operation";
    TGT_VAR_NULL = 463, "LAPI_ERR_TGT_VAR_NULL", "the address of the target's variable is null";
    SET_VAL = 464, "LAPI_ERR_SET_VAL", "the value to set is outside its range";
    OP_SZ = 474, "LAPI_ERR_OP_SZ", "the size of a read-modify-write is neither 32 nor 64";
    XFER_CMD = 476, "LAPI_ERR_XFER_CMD", "there is no such type of transfer";
    CODE_UNKNOWN = 519, "LAPI_ERR_CODE_UNKNOWN", "the return code is unknown";
}

/// Name and text of a code.
pub fn describe(code: c_int) -> Option<String> {
    let (_, name, text) = CODES.iter().find(|(c, ..)| *c == code)?;
    Some(format!("{name} ({code}): {text}"))
}

twin! {
    /// Writes the text of a return code to `buf`, which has room for
    /// `LAPI_MAX_ERR_STRING` bytes. Legal at any time.
    LAPI_Msg_string / PLAPI_Msg_string(error_code: c_int, buf: *mut c_void) -> c_int {
        if buf.is_null() {
            return RET_PTR_NULL;
        }
        let known = describe(error_code);
        let text = known.clone().unwrap_or_else(|| format!("return code {error_code} is unknown"));
        let bytes = &text.as_bytes()[..text.len().min(MAX_ERR_STRING - 1)];
        // SAFETY: the caller has room for MAX_ERR_STRING bytes; one is left for the
        // end of the string.
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
