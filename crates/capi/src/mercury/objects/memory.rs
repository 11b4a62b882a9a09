//! Memory handles of NA.

use crate::boundary::array;
use crate::mercury::entry::place;
use crate::mercury::table::{Table, Token};
use portolan_rpc::failure::Result;
use portolan_rpc::na::{Mem, Permission, Run};
use std::os::raw::{c_ulong, c_void};
use std::sync::Arc;

pub(crate) static MEMORY: Table<Arc<Mem>> = Table::new("memory handle", 0x14);

/// Distinguishes NA's memory handles from serialised bulk handles.
pub(crate) const KIND: u8 = 0;

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct NaSegment {
    address: u64,
    size: u64,
}

impl NaSegment {
    pub(crate) fn run(&self) -> Run {
        Run { address: self.address as usize, len: self.size as usize }
    }
}

/// # Safety
/// The runs must be valid for the accesses that the flags permit while the handle lives.
/// `mem_handle` must be null or valid for writes.
pub(crate) unsafe fn create(runs: Vec<Run>, flags: c_ulong, mem_handle: *mut Token) -> Result<()> {
    let access = Permission::from_flags(flags)?;
    // SAFETY: by contract, `mem_handle` is null or valid, and the runs are valid for these accesses
    // while the handle lives.
    unsafe {
        let to = place(mem_handle, "memory handle")?;
        *to = MEMORY.insert(Mem::expose(runs, access)?);
    }
    Ok(())
}

/// # Safety
/// `mem_handle` must be null or valid for writes, `buf` null or readable for `buf_size` bytes.
pub(crate) unsafe fn from_bytes(
    mem_handle: *mut Token,
    buf: *const c_void,
    buf_size: u64,
) -> Result<()> {
    // SAFETY: the caller guarantees that the pointers are null or valid.
    let (to, from) = unsafe {
        (
            place(mem_handle, "memory handle")?,
            array(buf.cast::<u8>(), buf_size as usize, "the serialised handle")?,
        )
    };
    *to = MEMORY.insert(Mem::from_bytes(from, KIND)?);
    Ok(())
}
