//! Memory that only its rank uses, for `ARMCI_Malloc_local`.
//!
//! Page-aligned above a page, else aligned to a cache line. Each block is known
//! until it is freed, so that freeing anything else is an error and not damage.

use crate::error::{Result, fail};
use parking_lot::Mutex;
use std::alloc::{Layout, alloc, dealloc};
use std::collections::HashMap;

/// The live blocks.
#[derive(Debug, Default)]
pub struct LocalMemory {
    blocks: Mutex<HashMap<usize, Layout>>,
}

impl LocalMemory {
    /// Allocates; null for zero bytes.
    ///
    /// # Errors
    /// `Memory` where the system has none.
    pub fn allocate(&self, bytes: usize) -> Result<*mut u8> {
        if bytes == 0 {
            return Ok(std::ptr::null_mut());
        }
        let align = if bytes >= 4096 { 4096 } else { 64 };
        let Ok(layout) = Layout::from_size_align(bytes, align) else {
            fail!(Memory, "{bytes} bytes of local memory are more than an address space holds");
        };
        // SAFETY: the layout has a size above zero.
        let block = unsafe { alloc(layout) };
        if block.is_null() {
            fail!(Memory, "{bytes} bytes of local memory cannot be had");
        }
        self.blocks.lock().insert(block as usize, layout);
        Ok(block)
    }

    /// Frees a block; null is nothing.
    ///
    /// # Errors
    /// `Address` for a pointer that [`LocalMemory::allocate`] did not give or
    /// that was freed.
    pub fn free(&self, block: *mut u8) -> Result<()> {
        if block.is_null() {
            return Ok(());
        }
        match self.blocks.lock().remove(&(block as usize)) {
            // SAFETY: the block was allocated with this layout and is freed once.
            Some(layout) => unsafe { dealloc(block, layout) },
            None => fail!(Address, "{block:p} is not live local memory; nothing was freed"),
        }
        Ok(())
    }
}

impl Drop for LocalMemory {
    fn drop(&mut self) {
        for (block, layout) in self.blocks.get_mut().drain() {
            // SAFETY: as in `free`.
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
