//! Rust counterparts of the definitions in `mercury_types.h`.

use portolan_rpc::checksum::Method;
use portolan_rpc::failure::{Failure, Status};
use portolan_rpc::proc::{Fault, Op};
use std::os::raw::c_int;

pub(crate) type HgReturn = c_int;

pub(crate) const HG_FAIL: HgReturn = Status::FAIL.0;
pub(crate) const HG_SUCCESS: HgReturn = Status::SUCCESS.0;

pub(crate) fn code(fault: &Fault) -> HgReturn {
    Failure::from(fault.clone()).status().0
}

pub(crate) fn op_to_c(op: Op) -> c_int {
    match op {
        Op::Encode => 0,
        Op::Decode => 1,
        Op::Free => 2,
    }
}

/// `HG_INVALID`: the operation that is reported for a null proc.
pub(crate) const HG_INVALID: c_int = 3;

pub(crate) fn op_from_c(op: c_int) -> Result<Op, Fault> {
    match op {
        0 => Ok(Op::Encode),
        1 => Ok(Op::Decode),
        2 => Ok(Op::Free),
        _ => Err(Fault::argument(format!("{op} is not HG_ENCODE, HG_DECODE or HG_FREE"))),
    }
}

/// The checksum methods in the order of `hg_proc_hash_t`.
const HASHES: [Method; 5] =
    [Method::Crc16, Method::Crc64, Method::None, Method::Crc32c, Method::Adler32];

pub(crate) fn hash_from_c(hash: c_int) -> Result<Method, Fault> {
    let method = usize::try_from(hash).ok().and_then(|i| HASHES.get(i));
    method
        .copied()
        .ok_or_else(|| Fault::argument(format!("{hash} is not a value of hg_proc_hash_t")))
}

pub(crate) fn hash_to_c(method: Method) -> c_int {
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
        for &method in Method::ALL {
            assert_eq!(hash_from_c(hash_to_c(method)), Ok(method));
        }
        for wrong in [-1, 5, c_int::MAX] {
            assert!(op_from_c(wrong).is_err() && hash_from_c(wrong).is_err());
        }
        assert!(op_from_c(HG_INVALID).is_err());
    }

    #[test]
    fn codes_follow_each_other() {
        // The enumeration in the header counts up from -1.
        let header =
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../include/mercury_types.h"));
        let body = header.split("enum hg_return {").nth(1).expect("the enumeration");
        let names =
            body.lines().map(|line| line.trim().split([' ', ',', '=']).next().unwrap_or(""));
        let mut names = names.filter(|name| name.starts_with("HG_"));
        for code in Status::FAIL.0..=Status::IO_ERROR.0 {
            assert_eq!(names.next(), Some(&*format!("HG_{}", Status(code).name())));
        }
        assert_eq!(names.next(), Some("HG_RETURN_MAX"));
    }
}
