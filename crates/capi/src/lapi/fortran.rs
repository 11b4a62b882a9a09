//! The Fortran binding (`lapif.h`): lower-case names with a trailing underscore, arguments by
//! reference, and the return code as the last argument.
//!
//! `LAPI_ADDR_NULL` is eight bytes of zeros among the program's constants. Counters and writable
//! buffers cannot be there, so it differs from a variable that is zero. A procedure argument is the
//! address of the code; `lapif.h` maps calls with one to the names with `_proc_`.

use super::types::{Counter, Handle, Info, MAX_ERR_STRING, MsgInfo, Vector, Xfer};
use super::{
    addresses, amsend, counter_calls, environment, fences, group, lifecycle, messages, objects,
    progress, putget, rmw, util, vectors, xfer,
};
use crate::boundary::{array_mut, export};
use std::os::raw::{c_int, c_long, c_longlong, c_uint, c_ulong, c_void};

/// Exports calls and their profiling twins. The bodies evaluate to the return code.
macro_rules! fortran {
    ($(
        $(#[$doc:meta])* $name:ident / $twin:ident($($arg:ident: $ty:ty),* $(,)?) = $body:expr;
    )*) => {
        $(export! {
            $(#[$doc])*
            $name / $twin($($arg: *mut $ty,)* ierror: *mut c_int) {
                // SAFETY: Fortran passes references to variables of the types in lapif.h.
                unsafe {
                    let code: c_int = $body;
                    ierror.write_unaligned(code);
                }
            }
        })*
    };
}

/// Exports a call that takes code, under two names. Under the first, `$code` is a procedure or a
/// variable that holds an address or index; under the second, `$code` is the procedure itself.
macro_rules! fortran_of_code {
    (
        $name:ident / $twin:ident, $name_proc:ident / $twin_proc:ident
        ($($arg:ident: $ty:ty),* $(,)?)
        |$code:ident| $body:expr
    ) => {
        fortran! {
            $name / $twin($($arg: $ty),*) = {
                let $code = procedure($code) as *mut c_void;
                $body
            };
            $name_proc / $twin_proc($($arg: $ty),*) = $body;
        }
    };
}

/// # Safety
/// `reference` must point to a readable value of type `T`, aligned or not.
unsafe fn value<T: Copy>(reference: *const T) -> T {
    // SAFETY: the caller guarantees that `reference` points to a readable value.
    unsafe { reference.read_unaligned() }
}

/// Returns the address of a variable, or null if the argument is `LAPI_ADDR_NULL`.
///
/// # Safety
/// `reference` must be null or point to a variable or constant.
unsafe fn variable<T>(reference: *mut T) -> *mut T {
    let constant = objects::is_constant(reference as usize);
    // SAFETY: `LAPI_ADDR_NULL` has eight bytes. A shorter constant is read with the bytes behind
    // it. These are mapped, because no constant is at the end of its segment's pages.
    let null = constant && unsafe { reference.cast::<u64>().read_unaligned() } == 0;
    if null { std::ptr::null_mut() } else { reference }
}

/// An empty header may be at any address.
///
/// # Safety
/// Both arguments must be valid references as `LAPI_Amsend` requires.
unsafe fn user_header(uhdr: *mut c_void, len: *const c_uint) -> *mut c_void {
    // SAFETY: the caller guarantees that both references are valid.
    unsafe { if value(len) == 0 { uhdr } else { variable(uhdr) } }
}

/// # Safety
/// `reference` must point to a variable that holds an address.
unsafe fn address(reference: *const c_void) -> u64 {
    // SAFETY: the caller guarantees that `reference` points to an address.
    unsafe { value(reference.cast::<u64>()) }
}

/// Returns the address of a procedure, or the address or index that a variable holds.
///
/// # Safety
/// `reference` must be the address of a procedure or point to such a variable.
unsafe fn procedure(reference: *const c_void) -> u64 {
    if objects::is_procedure(reference as usize) {
        return reference as u64;
    }
    // SAFETY: the caller guarantees that `reference` points to a variable, as it is not code.
    unsafe { address(reference) }
}

/// Returns the vector, given it or a variable that holds its address. A vector begins with its type
/// (0 to 2), and the lower 32 bits of an address are not that small.
///
/// # Safety
/// `reference` must point to a vector or to a variable that holds the address of one.
unsafe fn vector(reference: *mut c_void) -> *mut Vector {
    // SAFETY: by contract, `reference` points to a vector or an address, both of at least 8 bytes.
    let word = unsafe { address(reference) };
    match word as u32 {
        _ if word == 0 && objects::is_constant(reference as usize) => std::ptr::null_mut(),
        0..=2 => reference.cast(),
        _ => word as *mut Vector,
    }
}

fortran! {
    lapi_init_ / plapi_init_(hndl: Handle, info: Info) =
        lifecycle::PLAPI_Init(variable(hndl), variable(info));
    lapi_term_ / plapi_term_(hndl: Handle) = lifecycle::PLAPI_Term(value(hndl));
    lapi_qenv_ / plapi_qenv_(hndl: Handle, query: c_int, ret_val: c_int) =
        environment::PLAPI_Qenv(value(hndl), value(query), variable(ret_val));
    lapi_senv_ / plapi_senv_(hndl: Handle, query: c_int, set_val: c_int) =
        environment::PLAPI_Senv(value(hndl), value(query), value(set_val));
    /// Pads the text with blanks.
    lapi_msg_string_ / plapi_msg_string_(error_code: c_int, buf: c_void) = {
        let buf = variable(buf);
        let code = messages::PLAPI_Msg_string(value(error_code), buf);
        if let Ok(text) = array_mut(buf.cast::<u8>(), MAX_ERR_STRING, "the text") {
            let end = text.iter().position(|&b| b == 0).unwrap_or(MAX_ERR_STRING);
            text[end..].fill(b' ');
        }
        code
    };
    lapi_address_ / plapi_address_(my_addr: c_void, ret_addr: c_ulong) =
        addresses::PLAPI_Address(variable(my_addr), variable(ret_addr));
    lapi_address_proc_ / plapi_address_proc_(my_addr: c_void, ret_addr: c_ulong) =
        addresses::PLAPI_Address(my_addr, variable(ret_addr));
    /// Exchanges the address that `my_addr` holds.
    lapi_address_init_ / plapi_address_init_(
        hndl: Handle, my_addr: c_void, add_tab: *mut c_void,
    ) = addresses::PLAPI_Address_init(
        value(hndl), address(my_addr) as *mut c_void, variable(add_tab),
    );
}
fortran_of_code! {
    lapi_addr_set_ / plapi_addr_set_, lapi_addr_set_proc_ / plapi_addr_set_proc_(
        hndl: Handle, addr: c_void, addr_hndl: c_int,
    )
    |addr| addresses::PLAPI_Addr_set(value(hndl), addr, value(addr_hndl))
}
fortran! {
    lapi_addr_get_ / plapi_addr_get_(hndl: Handle, addr: *mut c_void, addr_hndl: c_int) =
        addresses::PLAPI_Addr_get(value(hndl), variable(addr), value(addr_hndl));
}

fortran_of_code! {
    lapi_amsend_ / plapi_amsend_, lapi_amsend_proc_ / plapi_amsend_proc_(
        hndl: Handle, tgt: c_uint, hdr_hdl: c_void, uhdr: c_void, uhdr_len: c_uint,
        udata: c_void, udata_len: c_long, tgt_cntr: c_void, org_cntr: Counter,
        cmpl_cntr: Counter,
    )
    |hdr_hdl| amsend::PLAPI_Amsend(
        value(hndl), value(tgt), hdr_hdl, user_header(uhdr, uhdr_len), value(uhdr_len),
        address(udata) as *mut c_void, value(udata_len) as c_ulong,
        address(tgt_cntr) as *mut Counter, variable(org_cntr), variable(cmpl_cntr),
    )
}
fortran_of_code! {
    lapi_amsendv_ / plapi_amsendv_, lapi_amsendv_proc_ / plapi_amsendv_proc_(
        hndl: Handle, tgt: c_uint, hdr_hdl: c_void, uhdr: c_void, uhdr_len: c_uint,
        org_vec: c_void, tgt_cntr: c_void, org_cntr: Counter, cmpl_cntr: Counter,
    )
    |hdr_hdl| vectors::PLAPI_Amsendv(
        value(hndl), value(tgt), hdr_hdl, user_header(uhdr, uhdr_len), value(uhdr_len),
        vector(org_vec), address(tgt_cntr) as *mut Counter, variable(org_cntr),
        variable(cmpl_cntr),
    )
}
fortran! {
    lapi_xfer_ / plapi_xfer_(hndl: Handle, xfer_cmd: Xfer) =
        xfer::PLAPI_Xfer(value(hndl), variable(xfer_cmd));
    lapi_put_ / plapi_put_(
        hndl: Handle, tgt: c_uint, len: c_long, tgt_addr: c_void, org_addr: c_void,
        tgt_cntr: c_void, org_cntr: Counter, cmpl_cntr: Counter,
    ) = putget::PLAPI_Put(
        value(hndl), value(tgt), value(len) as c_ulong, address(tgt_addr) as *mut c_void,
        variable(org_addr), address(tgt_cntr) as *mut Counter, variable(org_cntr),
        variable(cmpl_cntr),
    );
    lapi_get_ / plapi_get_(
        hndl: Handle, tgt: c_uint, len: c_long, tgt_addr: c_void, org_addr: c_void,
        tgt_cntr: c_void, org_cntr: Counter,
    ) = putget::PLAPI_Get(
        value(hndl), value(tgt), value(len) as c_ulong, address(tgt_addr) as *mut c_void,
        address(org_addr) as *mut c_void, address(tgt_cntr) as *mut Counter, variable(org_cntr),
    );
    lapi_putv_ / plapi_putv_(
        hndl: Handle, tgt: c_uint, tgt_vec: c_void, org_vec: c_void, tgt_cntr: c_void,
        org_cntr: Counter, cmpl_cntr: Counter,
    ) = vectors::PLAPI_Putv(
        value(hndl), value(tgt), vector(tgt_vec), vector(org_vec),
        address(tgt_cntr) as *mut Counter, variable(org_cntr), variable(cmpl_cntr),
    );
    lapi_getv_ / plapi_getv_(
        hndl: Handle, tgt: c_uint, tgt_vec: c_void, org_vec: c_void, tgt_cntr: c_void,
        org_cntr: Counter,
    ) = vectors::PLAPI_Getv(
        value(hndl), value(tgt), vector(tgt_vec), vector(org_vec),
        address(tgt_cntr) as *mut Counter, variable(org_cntr),
    );
    lapi_rmw_ / plapi_rmw_(
        hndl: Handle, op: c_int, tgt: c_uint, tgt_var: c_void, in_val: c_int,
        prev_tgt_val: c_int, org_cntr: Counter,
    ) = rmw::PLAPI_Rmw(
        value(hndl), value(op), value(tgt), address(tgt_var) as *mut c_int, in_val,
        variable(prev_tgt_val), variable(org_cntr),
    );
    lapi_rmw64_ / plapi_rmw64_(
        hndl: Handle, op: c_int, tgt: c_uint, tgt_var: c_void, in_val: c_longlong,
        prev_tgt_val: c_longlong, org_cntr: Counter,
    ) = rmw::PLAPI_Rmw64(
        value(hndl), value(op), value(tgt), address(tgt_var) as *mut c_longlong, in_val,
        variable(prev_tgt_val), variable(org_cntr),
    );
    lapi_setcntr_ / plapi_setcntr_(hndl: Handle, cntr: Counter, val: c_int) =
        counter_calls::PLAPI_Setcntr(value(hndl), variable(cntr), value(val));
    lapi_getcntr_ / plapi_getcntr_(hndl: Handle, cntr: Counter, val: c_int) =
        counter_calls::PLAPI_Getcntr(value(hndl), variable(cntr), variable(val));
    lapi_waitcntr_ / plapi_waitcntr_(
        hndl: Handle, cntr: Counter, val: c_int, cur_cntr_val: c_int,
    ) = counter_calls::PLAPI_Waitcntr(
        value(hndl), variable(cntr), value(val), variable(cur_cntr_val),
    );
    lapi_nopoll_wait_ / plapi_nopoll_wait_(
        hndl: Handle, cntr: Counter, val: c_int, cur_cntr_val: c_int,
    ) = counter_calls::PLAPI_Nopoll_wait(
        value(hndl), variable(cntr), value(val), variable(cur_cntr_val),
    );
    lapi_probe_ / plapi_probe_(hndl: Handle) = progress::PLAPI_Probe(value(hndl));
    lapi_msgpoll_ / plapi_msgpoll_(hndl: Handle, cnt: c_uint, info: MsgInfo) =
        progress::PLAPI_Msgpoll(value(hndl), value(cnt), variable(info));
    lapi_fence_ / plapi_fence_(hndl: Handle) = fences::PLAPI_Fence(value(hndl));
    lapi_gfence_ / plapi_gfence_(hndl: Handle) = fences::PLAPI_Gfence(value(hndl));
    lapi_purge_totask_ / plapi_purge_totask_(hndl: Handle, dest: c_uint) =
        fences::PLAPI_Purge_totask(value(hndl), value(dest));
    lapi_resume_totask_ / plapi_resume_totask_(hndl: Handle, dest: c_uint) =
        fences::PLAPI_Resume_totask(value(hndl), value(dest));
    lapi_util_ / plapi_util_(hndl: Handle, util_p: c_int) =
        util::PLAPI_Util(value(hndl), variable(util_p));
    /// Exchanges the address that `my_addr` holds.
    lapi_address_init64_ / plapi_address_init64_(hndl: Handle, my_addr: c_void, add_tab: u64) =
        addresses::PLAPI_Address_init64(value(hndl), address(my_addr), variable(add_tab));
    lapi_setcntr_wstatus_ / plapi_setcntr_wstatus_(
        hndl: Handle, cntr: Counter, val: c_int, dest: c_uint, dest_status: c_int,
    ) = counter_calls::PLAPI_Setcntr_wstatus(
        value(hndl), variable(cntr), value(val), variable(dest), variable(dest_status),
    );
    lapi_group_create_ / plapi_group_create_(
        hndl: Handle, num_tasks: c_uint, task_list: c_uint, group: c_uint,
    ) = group::PLAPI_Group_create(
        value(hndl), value(num_tasks), variable(task_list), variable(group),
    );
    lapi_group_free_ / plapi_group_free_(hndl: Handle, group: c_uint) =
        group::PLAPI_Group_free(value(hndl), value(group));
}

#[cfg(test)]
mod tests {
    /// Fixed form ignores what follows column 72. There, a line that continues has the sign of free
    /// form.
    #[test]
    fn the_header_is_valid_in_fixed_and_free_form() {
        let header = include_str!("../../../../include/lapif.h");
        for line in header.lines().filter(|line| !line.starts_with('!')) {
            match line.strip_suffix('&') {
                Some(begin) => assert_eq!(begin.len(), 72, "{line}"),
                None => assert!(line.len() <= 72, "{line}"),
            }
        }
    }
}
