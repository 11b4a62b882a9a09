//! Encoded parameters, wherever they lie.

use crate::rpc::checksum::Method;
use crate::rpc::failure::Result;
use crate::rpc::na::class::Bytes;
use crate::rpc::na::{Access, Mem, Run};
use crate::rpc::proc::{Encoded, Spilled};
use crate::thread::of_thread;
use std::sync::Arc;

/// Encodes parameters into a buffer, or into memory of their own where they do not fit.
pub trait Encode: FnOnce(&mut [u8], Method) -> Result<Encoded> {}
impl<T: FnOnce(&mut [u8], Method) -> Result<Encoded>> Encode for T {}

/// Parameters that have come.
#[derive(Debug)]
pub enum Body {
    /// None.
    Empty,
    /// With a head before them.
    Bytes {
        /// Head and parameters.
        bytes: Bytes,
        /// Where the parameters begin.
        start: usize,
    },
    /// Pulled.
    Pulled(Arc<Mem>),
    /// Encoded in this process.
    Spilled(Spilled),
}

impl Body {
    /// Parameters that stay in this process; those that fit are in `buffer`.
    pub fn own(encoded: Encoded, buffer: &[u8]) -> Body {
        let bytes = match encoded {
            Encoded::Fits(len) => Bytes::from_slice(&buffer[..len]),
            Encoded::Spilled(bytes) => return Body::Spilled(bytes),
        };
        Body::Bytes { bytes, start: 0 }
    }
}

impl std::ops::Deref for Body {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Body::Empty => &[],
            Body::Bytes { bytes, start } => &bytes[*start..],
            Body::Spilled(bytes) => bytes,
            Body::Pulled(mem) => {
                let Run { address, len } = mem.runs()[0];
                // SAFETY: the memory is the handle's own, of one segment, and nobody
                // writes to it any more after it was pulled.
                unsafe { std::slice::from_raw_parts(address as *const u8, len) }
            }
        }
    }
}

/// Bytes that stay until the other side has pulled them.
#[derive(Debug)]
pub struct Kept(Arc<Mem>);

/// Tells handles of encoded parameters from others.
pub const PARAMETERS: u8 = 2;

impl Kept {
    /// Exposes the bytes.
    pub fn new(bytes: Spilled) -> Result<Kept> {
        let (long, len) = bytes.into_parts();
        let mem = Mem::over(long, len, Access::ReadOnly)?;
        mem.register();
        Ok(Kept(mem))
    }

    /// The bytes of the handle.
    pub fn handle(&self) -> Vec<u8> {
        self.0.to_bytes(PARAMETERS)
    }
}

of_thread! {
    static SCRATCH: Vec<u8> = Vec::new();
}

/// Runs something with a buffer of at least so many bytes, whatever they are.
pub fn with_scratch<R>(bytes: usize, body: impl FnOnce(&mut [u8]) -> R) -> R {
    let mut scratch = SCRATCH.take();
    if scratch.len() < bytes {
        scratch.resize(bytes, 0);
    }
    let result = body(&mut scratch[..bytes]);
    SCRATCH.set(scratch);
    result
}
