//! Conversion between statuses and the `hg_return_t` of 2.4.

use portolan_rpc::failure::Status;
use std::ffi::CStr;
use std::os::raw::c_int;

macro_rules! codes {
    ($($status:ident $name:literal,)*) => {
        [$((
            Status::$status,
            c_text(concat!("HG_", $name, "\0")),
            c_text(concat!("NA_", $name, "\0")),
        )),*]
    };
}

const fn c_text(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("the text ends with its only zero"),
    }
}

/// The statuses, and the names of their codes in HG and in NA. The index of an entry is its code.
/// NA has those up to `HOSTFIREWALL`.
const CODES: [(Status, &CStr, &CStr); 27] = codes! {
    SUCCESS "SUCCESS",
    PERMISSION "PERMISSION",
    NO_MATCH "NOENTRY",
    INTERRUPT "INTERRUPT",
    AGAIN "AGAIN",
    NOMEM "NOMEM",
    ACCESS "ACCESS",
    FAULT "FAULT",
    BUSY "BUSY",
    EXIST "EXIST",
    NODEV "NODEV",
    INVALID_ARG "INVALID_ARG",
    PROTOCOL_ERROR "PROTOCOL_ERROR",
    OVERFLOW "OVERFLOW",
    MSGSIZE "MSGSIZE",
    PROTONOSUPPORT "PROTONOSUPPORT",
    OPNOTSUPPORTED "OPNOTSUPPORTED",
    ADDRINUSE "ADDRINUSE",
    ADDRNOTAVAIL "ADDRNOTAVAIL",
    HOSTUNREACH "HOSTUNREACH",
    TIMEOUT "TIMEOUT",
    CANCELED "CANCELED",
    IO_ERROR "IO_ERROR",
    HOSTFIREWALL "HOSTFIREWALL",
    CHECKSUM_ERROR "CHECKSUM_ERROR",
    NA_ERROR "NA_ERROR",
    FAIL "OTHER_ERROR",
};

/// Converts a status to a code. A program's own status, outside `CODES`, keeps its number.
pub(crate) fn to_code(status: Status) -> c_int {
    let at = CODES.iter().position(|(known, ..)| *known == status);
    at.map_or(status.0, |at| at as c_int)
}

/// Converts a code to a status. A code that is not in `CODES` keeps its number.
pub(crate) fn to_status(code: c_int) -> Status {
    known(code).map_or(Status(code), |(status, ..)| *status)
}

fn known(code: c_int) -> Option<&'static (Status, &'static CStr, &'static CStr)> {
    usize::try_from(code).ok().and_then(|at| CODES.get(at))
}

/// Returns the name of a code, or `HG_RETURN_MAX` if the code is unknown.
pub(super) fn name(code: c_int) -> &'static CStr {
    known(code).map_or(c"HG_RETURN_MAX", |(_, name, _)| name)
}

/// Returns the name of a code of NA, or `NA_RETURN_MAX` if the code is unknown.
pub(super) fn na_name(code: c_int) -> &'static CStr {
    let known = known(code).filter(|(status, ..)| is_of_na(*status));
    known.map_or(c"NA_RETURN_MAX", |(.., name)| name)
}

/// Returns whether `na_return_t` has a code for a status.
pub(super) fn is_of_na(status: Status) -> bool {
    to_code(status) <= to_code(Status::HOSTFIREWALL)
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
        for (at, (status, text, _)) in CODES.iter().enumerate() {
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
        assert_eq!((na_name(2), na_name(23)), (c"NA_NOENTRY", c"NA_HOSTFIREWALL"));
        assert_eq!((na_name(24), na_name(-1)), (c"NA_RETURN_MAX", c"NA_RETURN_MAX"));
    }
}
