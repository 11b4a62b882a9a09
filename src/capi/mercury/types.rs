//! What `mercury_types.h` defines, as Rust sees it.

use crate::rpc::checksum::Method;
use crate::rpc::failure::{Failure, Status};
use crate::rpc::proc::{Fault, Op};
use std::os::raw::c_int;

/// `hg_return_t`.
pub type HgReturn = c_int;

macro_rules! codes {
    ($($status:ident $name:ident,)*) => {
        $(#[doc = concat!("The code of [`Status::", stringify!($status), "`].")]
        pub const $name: HgReturn = Status::$status.0;)*

        /// All codes.
        pub const CODES: &[(HgReturn, &str)] = &[$(($name, stringify!($name))),*];
    };
}

codes! {
    FAIL HG_FAIL,
    SUCCESS HG_SUCCESS,
    NO_MATCH HG_NO_MATCH,
    PROTOCOL_ERROR HG_PROTOCOL_ERROR,
    CHECKSUM_ERROR HG_CHECKSUM_ERROR,
    TIMEOUT HG_TIMEOUT,
    NOMEM HG_NOMEM,
    INVALID_ARG HG_INVALID_ARG,
    OVERFLOW HG_OVERFLOW,
    MSGSIZE HG_MSGSIZE,
    NA_ERROR HG_NA_ERROR,
    PERMISSION HG_PERMISSION,
    INTERRUPT HG_INTERRUPT,
    AGAIN HG_AGAIN,
    ACCESS HG_ACCESS,
    FAULT HG_FAULT,
    BUSY HG_BUSY,
    EXIST HG_EXIST,
    NODEV HG_NODEV,
    PROTONOSUPPORT HG_PROTONOSUPPORT,
    OPNOTSUPPORTED HG_OPNOTSUPPORTED,
    ADDRINUSE HG_ADDRINUSE,
    ADDRNOTAVAIL HG_ADDRNOTAVAIL,
    HOSTUNREACH HG_HOSTUNREACH,
    CANCELED HG_CANCELED,
    IO_ERROR HG_IO_ERROR,
}

/// The code of a fault of a proc.
pub fn code(fault: &Fault) -> HgReturn {
    Failure::from(fault.clone()).status.0
}

/// `hg_proc_op_t` of an operation.
pub fn op_to_c(op: Op) -> c_int {
    match op {
        Op::Encode => 0,
        Op::Decode => 1,
        Op::Free => 2,
    }
}

/// `HG_INVALID`.
pub const HG_INVALID: c_int = 3;

/// The operation of an `hg_proc_op_t`.
pub fn op_from_c(op: c_int) -> Result<Op, Fault> {
    match op {
        0 => Ok(Op::Encode),
        1 => Ok(Op::Decode),
        2 => Ok(Op::Free),
        _ => Err(Fault::argument(format!("{op} is not HG_ENCODE, HG_DECODE or HG_FREE"))),
    }
}

/// The methods of `hg_proc_hash_t`, by number.
const HASHES: [Method; 5] =
    [Method::Crc16, Method::Crc64, Method::None, Method::Crc32c, Method::Adler32];

/// The method of an `hg_proc_hash_t`.
pub fn hash_from_c(hash: c_int) -> Result<Method, Fault> {
    let method = usize::try_from(hash).ok().and_then(|i| HASHES.get(i));
    method.copied().ok_or_else(|| Fault::argument(format!("{hash} is no hg_proc_hash_t")))
}

/// `hg_proc_hash_t` of a method.
pub fn hash_to_c(method: Method) -> c_int {
    HASHES.iter().position(|&m| m == method).map_or(2, |i| i as c_int)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_both_ways() {
        for op in [Op::Encode, Op::Decode, Op::Free] {
            assert_eq!(op_from_c(op_to_c(op)), Ok(op));
        }
        for method in Method::ALL {
            assert_eq!(hash_from_c(hash_to_c(method)), Ok(method));
        }
        for wrong in [-1, 5, c_int::MAX] {
            assert!(op_from_c(wrong).is_err() && hash_from_c(wrong).is_err());
        }
        assert!(op_from_c(HG_INVALID).is_err());
    }

    #[test]
    fn codes_follow_each_other() {
        // The enumeration of the header counts up from -1.
        let header = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/include/mercury_types.h"));
        let body = header.split("enum hg_return {").nth(1).expect("the enumeration");
        let names =
            body.lines().map(|line| line.trim().split([' ', ',', '=']).next().unwrap_or(""));
        let mut names = names.filter(|name| name.starts_with("HG_"));
        for (i, (value, name)) in CODES.iter().enumerate() {
            assert_eq!(*value, i as c_int - 1);
            assert_eq!(names.next(), Some(*name));
        }
        assert_eq!(names.next(), Some("HG_RETURN_MAX"));
    }
}
