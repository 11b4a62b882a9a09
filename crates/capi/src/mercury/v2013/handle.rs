//! Handles of 2013: calls that this process serves. The program frees each of them once.

use crate::mercury::objects::address;
use crate::mercury::table::{Number, Table, Token};
use parking_lot::Mutex;
use portolan_rpc::failure::Result;
use portolan_rpc::hg::Context;
use portolan_rpc::hg::target::Target;
use portolan_rpc::na::memory::ZeroedBuffer;
use std::sync::{Arc, OnceLock};

/// Size in bytes of the buffer for an output that a program encodes itself.
pub(super) const OUTPUT: usize = 4096;

#[derive(Debug)]
pub(super) struct HandleEntry {
    pub target: Arc<Target>,
    /// The address handle that the program has received for the peer. Freed with this handle.
    address: Mutex<Option<Number>>,
    output: OnceLock<ZeroedBuffer>,
}

pub(super) static HANDLES: Table<Arc<HandleEntry>> = Table::new("handle", 0x22);

pub(super) fn hold(target: Arc<Target>) -> Token {
    let (address, output) = (Mutex::default(), OnceLock::new());
    HANDLES.insert(Arc::new(HandleEntry { target, address, output }))
}

pub(super) fn drop_those_of(context: &Context) {
    let mut gone = Vec::new();
    HANDLES.each(|token, held| {
        if Arc::ptr_eq(held.target.context(), &context.shared) {
            gone.push(token);
        }
    });
    gone.into_iter().for_each(|token| drop(HANDLES.remove(token)));
}

impl HandleEntry {
    /// Returns the handle of the peer's address, the same each time.
    pub(super) fn address(&self) -> Token {
        let keep = || Number::of(address::keep_alone(self.target.source()));
        self.address.lock().get_or_insert_with(keep).token()
    }

    pub(super) fn output(&self) -> Result<*mut u8> {
        if let Some(buffer) = self.output.get() {
            return Ok(buffer.address());
        }
        let fresh = ZeroedBuffer::new(OUTPUT)?;
        Ok(self.output.get_or_init(|| fresh).address())
    }
}

impl Drop for HandleEntry {
    fn drop(&mut self) {
        if let Some(address) = self.address.get_mut() {
            // The program may have freed the address handle itself.
            let _ = address::release(address.token());
        }
    }
}
