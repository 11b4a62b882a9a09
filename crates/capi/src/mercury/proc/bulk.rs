//! Bulk handles as parameters.
//!
//! A handle is encoded as the size of its serialised form and that form, a null handle as size 0.
//! Invariant: after decoding or freeing, the slot holds a handle or null.

use super::codes::HgReturn;
use super::procs;
use crate::mercury::interface::Interface;
use crate::mercury::objects::bulk::{self, BULKS};
use crate::mercury::params::EAGER;
use crate::mercury::table::Token;
use portolan_rpc::failure::Failure;
use portolan_rpc::proc::{Fault, Op, Proc};
use std::os::raw::c_void;
use std::ptr;

/// Longer memory is pulled, because a message copies its bytes more than once.
const MOST_EAGER: usize = 4096;

pub(in crate::mercury) fn go_over(
    interface: Interface,
    proc: &mut Proc<'static>,
    slot: &mut Token,
) -> Result<(), Fault> {
    let failed =
        |failure: Failure| Fault::Bulk { status: failure.status().0, text: failure.text().into() };
    match proc.op() {
        Op::Encode if slot.is_null() => proc.put_size(0),
        Op::Encode => {
            let held = BULKS.get(*slot).map_err(|f| proc.fail(failed(f)))?;
            crate::mercury::objects::handle::lend(proc.attached.handle, *slot);
            // Mercury, too, sends short memory with its handle if it fits into the message.
            let with_data = proc.attached.flags & EAGER != 0
                && held.bulk.len() <= MOST_EAGER
                && proc.left() >= size_of::<u64>() + held.serialized_len(true);
            let bytes = held.serialized(with_data);
            proc.put_size(bytes.len())?;
            proc.put(&bytes)
        }
        Op::Decode => {
            *slot = ptr::null_mut();
            let size = proc.take_size()?;
            if size > 0 {
                let bytes = proc.take(size)?;
                let class = match interface {
                    Interface::V2013 => ptr::null_mut(),
                    Interface::V2_4 => proc.attached.class,
                };
                let parsed = interface.decoded(bulk::parse(class, bytes));
                *slot = parsed.map_err(|f| proc.fail(failed(f)))?;
            }
            Ok(())
        }
        Op::Free => bulk::release(std::mem::replace(slot, ptr::null_mut())).map_err(failed),
    }
}

procs! {
    /// `data` must be null or the address of an `hg_bulk_t`, which to encode or free must hold a
    /// handle or null.
    hg_proc_hg_bulk_t(data: *mut c_void), |proc| {
        // SAFETY: by contract, `data` is null or a slot that holds a handle or null if it is read.
        match unsafe { data.cast::<Token>().as_mut() } {
            Some(slot) => go_over(Interface::V2013, proc, slot),
            None => Err(proc.fail(Fault::argument("the bulk handle's address is null"))),
        }
    };
}
