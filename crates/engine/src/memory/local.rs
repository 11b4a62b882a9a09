//! Memory that only its own rank uses, for `ARMCI_Malloc_local`. Blocks of at least a page are
//! aligned to a page, smaller ones to a cache line. Live blocks are recorded: freeing another
//! address is an error.

use parking_lot::Mutex;
use portolan_base::error::{Result, fail};
use std::alloc::{Layout, alloc, dealloc};
use std::collections::HashMap;

#[derive(Debug, Default)]
pub struct LocalMemory {
    blocks: Mutex<HashMap<usize, Layout>>,
}

impl LocalMemory {
    /// Returns null for zero bytes. Fails with `Memory` if the system has not enough memory.
    pub fn allocate(&self, bytes: usize) -> Result<*mut u8> {
        if bytes == 0 {
            return Ok(std::ptr::null_mut());
        }
        let align = if bytes >= 4096 { 4096 } else { 64 };
        let Ok(layout) = Layout::from_size_align(bytes, align) else {
            fail!(Memory, "{bytes} bytes of local memory exceed the address space");
        };
        // SAFETY: the size of the layout is not zero.
        let block = unsafe { alloc(layout) };
        if block.is_null() {
            fail!(Memory, "cannot allocate {bytes} bytes of local memory");
        }
        self.blocks.lock().insert(block as usize, layout);
        Ok(block)
    }

    /// Ignores null. Fails with `Address` unless the block is live memory of this object.
    #[expect(
        clippy::not_unsafe_ptr_arg_deref,
        reason = "a pointer that is not a live block is refused"
    )]
    pub fn free(&self, block: *mut u8) -> Result<()> {
        if block.is_null() {
            return Ok(());
        }
        match self.blocks.lock().remove(&(block as usize)) {
            // SAFETY: the block was allocated with this layout, and was in the map until now.
            Some(layout) => unsafe { dealloc(block, layout) },
            None => fail!(Address, "{block:p} is not live local memory; nothing was freed"),
        }
        Ok(())
    }
}

impl Drop for LocalMemory {
    fn drop(&mut self) {
        for (block, layout) in self.blocks.get_mut().drain() {
            // SAFETY: the block was allocated with this layout, and was in the map until now.
            unsafe { dealloc(block as *mut u8, layout) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freeing_twice_or_elsewhere_is_an_error() {
        let memory = LocalMemory::default();
        let block = memory.allocate(100).unwrap();
        assert_eq!(block as usize % 64, 0);
        assert!(memory.free(block.wrapping_add(8)).is_err());
        memory.free(block).unwrap();
        assert!(memory.free(block).is_err());
        assert!(memory.allocate(0).unwrap().is_null());
        memory.free(std::ptr::null_mut()).unwrap();
    }
}
