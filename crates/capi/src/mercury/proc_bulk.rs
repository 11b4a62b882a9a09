//! Bulk handles as parameters.
//!
//! A handle is encoded as the size of its serialised form, followed by that form. A null handle is
//! encoded as size 0. Invariant: after decoding or freeing, the slot holds a handle or null.

use super::bulk::{
    HG_Bulk_handle_deserialize, HG_Bulk_handle_free, HG_Bulk_handle_get_serialize_size,
    HG_Bulk_handle_serialize,
};
use super::proc::{HgProc, with};
use super::types::{HG_SUCCESS, HgReturn};
use portolan_rpc::proc::{Fault, Op};
use std::os::raw::c_void;
use std::ptr;

/// Encodes, decodes or frees an `hg_bulk_t`.
///
/// # Safety
/// `proc` must be null or a live proc. `data` must be null or the address of an `hg_bulk_t`. To
/// encode or free, the `hg_bulk_t` must hold a handle or null.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hg_proc_hg_bulk_t(proc: HgProc, data: *mut c_void) -> HgReturn {
    let slot = data.cast::<*mut c_void>();
    let refused = |status: HgReturn, what: &str| {
        let text = format!("the bulk handle cannot be {what} (error {status})");
        Fault::Bulk { status, text }
    };
    // SAFETY: the caller guarantees that `proc` is null or live, and that `data` is null or a slot
    // that holds a handle or null if it is read.
    unsafe {
        with("hg_proc_hg_bulk_t", proc, |proc| {
            if slot.is_null() {
                return Err(proc.fail(Fault::argument("the bulk handle's address is null")));
            }
            match proc.op() {
                Op::Encode if (*slot).is_null() => proc.put_size(0),
                Op::Encode => {
                    let size = HG_Bulk_handle_get_serialize_size(*slot);
                    if size == 0 {
                        return Err(proc.fail(refused(super::types::HG_INVALID_ARG, "serialised")));
                    }
                    proc.put_size(size)?;
                    let place = proc.reserve(size)?;
                    match HG_Bulk_handle_serialize(place.cast(), size, *slot) {
                        HG_SUCCESS => Ok(()),
                        code => Err(proc.fail(refused(code, "serialised"))),
                    }
                }
                Op::Decode => {
                    *slot = ptr::null_mut();
                    let size = proc.take_size()?;
                    if size == 0 {
                        return Ok(());
                    }
                    let bytes = proc.take(size)?;
                    match HG_Bulk_handle_deserialize(slot, bytes.as_ptr().cast(), size) {
                        HG_SUCCESS => Ok(()),
                        code => {
                            *slot = ptr::null_mut();
                            Err(proc.fail(refused(code, "deserialised")))
                        }
                    }
                }
                Op::Free if (*slot).is_null() => Ok(()),
                Op::Free => {
                    match HG_Bulk_handle_free(std::mem::replace(&mut *slot, ptr::null_mut())) {
                        HG_SUCCESS => Ok(()),
                        code => Err(refused(code, "freed")),
                    }
                }
            }
        })
    }
}
