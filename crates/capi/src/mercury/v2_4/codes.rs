//! Conversion between statuses and the `hg_return_t` of 2.4.

use portolan_rpc::failure::Status;
use std::ffi::CStr;
use std::os::raw::c_int;

/// The index of an entry is its number.
const CODES: [(Status, &CStr); 27] = [
    (Status::SUCCESS, c"HG_SUCCESS"),
    (Status::PERMISSION, c"HG_PERMISSION"),
    (Status::NO_MATCH, c"HG_NOENTRY"),
    (Status::INTERRUPT, c"HG_INTERRUPT"),
    (Status::AGAIN, c"HG_AGAIN"),
    (Status::NOMEM, c"HG_NOMEM"),
    (Status::ACCESS, c"HG_ACCESS"),
    (Status::FAULT, c"HG_FAULT"),
    (Status::BUSY, c"HG_BUSY"),
    (Status::EXIST, c"HG_EXIST"),
    (Status::NODEV, c"HG_NODEV"),
    (Status::INVALID_ARG, c"HG_INVALID_ARG"),
    (Status::PROTOCOL_ERROR, c"HG_PROTOCOL_ERROR"),
    (Status::OVERFLOW, c"HG_OVERFLOW"),
    (Status::MSGSIZE, c"HG_MSGSIZE"),
    (Status::PROTONOSUPPORT, c"HG_PROTONOSUPPORT"),
    (Status::OPNOTSUPPORTED, c"HG_OPNOTSUPPORTED"),
    (Status::ADDRINUSE, c"HG_ADDRINUSE"),
    (Status::ADDRNOTAVAIL, c"HG_ADDRNOTAVAIL"),
    (Status::HOSTUNREACH, c"HG_HOSTUNREACH"),
    (Status::TIMEOUT, c"HG_TIMEOUT"),
    (Status::CANCELED, c"HG_CANCELED"),
    (Status::IO_ERROR, c"HG_IO_ERROR"),
    (Status::HOSTFIREWALL, c"HG_HOSTFIREWALL"),
    (Status::CHECKSUM_ERROR, c"HG_CHECKSUM_ERROR"),
    (Status::NA_ERROR, c"HG_NA_ERROR"),
    (Status::FAIL, c"HG_OTHER_ERROR"),
];

/// Converts a status to a code. A program's own status, outside `CODES`, keeps its number.
pub(crate) fn to_code(status: Status) -> c_int {
    let at = CODES.iter().position(|(known, _)| *known == status);
    at.map_or(status.0, |at| at as c_int)
}

/// Converts a code to a status. A code that is not in `CODES` keeps its number.
pub(crate) fn to_status(code: c_int) -> Status {
    let known = usize::try_from(code).ok().and_then(|at| CODES.get(at));
    known.map_or(Status(code), |(status, _)| *status)
}

/// Returns the name of a code, or `HG_RETURN_MAX` if the code is unknown.
pub(super) fn name(code: c_int) -> &'static CStr {
    let known = usize::try_from(code).ok().and_then(|at| CODES.get(at));
    known.map_or(c"HG_RETURN_MAX", |(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_go_both_ways_and_stand_in_the_header_so() {
        let header =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../include/mercury2/mercury_core_types.h");
        let header = std::fs::read_to_string(header).expect("the header");
        let body = header.split("enum hg_return {").nth(1).expect("the enumeration");
        let mut names = body.lines().map(|line| line.trim().trim_end_matches(','));
        let mut names = names.by_ref().filter(|name| name.starts_with("HG_"));
        for (at, (status, text)) in CODES.iter().enumerate() {
            let code = at as c_int;
            assert_eq!((to_code(*status), to_status(code)), (code, *status));
            assert_eq!(names.next(), text.to_str().ok());
            assert_eq!(name(code), *text);
        }
        assert_eq!(names.next(), Some("HG_RETURN_MAX"));
        for own in [100, -77] {
            assert_eq!((to_code(Status(own)), to_status(own)), (own, Status(own)));
            assert_eq!(name(own), c"HG_RETURN_MAX");
        }
    }
}
