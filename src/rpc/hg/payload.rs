//! Encoded parameters, wherever they lie.

use crate::rpc::checksum::Method;
use crate::rpc::failure::Result;
use crate::rpc::na::class::Bytes;
use crate::rpc::na::{Access, Mem, Run};
use crate::rpc::proc::{Encoded, Overflow};
use crate::thread::fast_tls;
use std::sync::Arc;

/// Encodes parameters into a buffer, or into memory of their own where they do not fit.
pub(crate) trait Encode: FnOnce(&mut [u8], Method) -> Result<Encoded> {}
impl<T: FnOnce(&mut [u8], Method) -> Result<Encoded>> Encode for T {}

/// The encoded parameters of a received request or answer.
#[derive(Debug)]
pub(crate) enum Payload {
    /// No parameters.
    Empty,
    /// Within a message, behind its head.
    Bytes {
        /// Head and parameters.
        bytes: Bytes,
        /// Where the parameters begin.
        start: usize,
    },
    /// Pulled from the other rank.
    Pulled(Arc<Mem>),
    /// Encoded in this process, longer than a message.
    Overflow(Overflow),
}

impl Payload {
    /// Parameters of a call to oneself; those that fit are in `buffer`.
    pub(crate) fn own(encoded: Encoded, buffer: &[u8]) -> Payload {
        let bytes = match encoded {
            Encoded::Fits(len) => Bytes::from_slice(&buffer[..len]),
            Encoded::Overflow(bytes) => return Payload::Overflow(bytes),
        };
        Payload::Bytes { bytes, start: 0 }
    }
}

impl std::ops::Deref for Payload {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Payload::Empty => &[],
            Payload::Bytes { bytes, start } => &bytes[*start..],
            Payload::Overflow(bytes) => bytes,
            Payload::Pulled(mem) => {
                let Run { address, len } = mem.runs()[0];
                // SAFETY: the memory is the handle's own, of one segment, and nobody
                // writes to it any more after it was pulled.
                unsafe { std::slice::from_raw_parts(address as *const u8, len) }
            }
        }
    }
}

/// Encoded parameters that are kept until the other rank has pulled them.
#[derive(Debug)]
pub(crate) struct Kept(Arc<Mem>);

/// The tag of memory handles of encoded parameters.
pub(crate) const PARAMETERS: u8 = 2;

impl Kept {
    /// Exposes the bytes.
    pub(crate) fn new(bytes: Overflow) -> Result<Kept> {
        let (long, len) = bytes.into_parts();
        let mem = Mem::over(long, len, Access::ReadOnly)?;
        mem.register();
        Ok(Kept(mem))
    }

    /// The bytes of the handle.
    pub(crate) fn handle(&self) -> Vec<u8> {
        self.0.to_bytes(PARAMETERS)
    }
}

fast_tls! {
    static SCRATCH: Vec<u8> = Vec::new();
}

/// Runs `body` with a buffer of `bytes` bytes of any value.
pub(crate) fn with_scratch<R>(bytes: usize, body: impl FnOnce(&mut [u8]) -> R) -> R {
    let mut scratch = SCRATCH.take();
    if scratch.len() < bytes {
        scratch.resize(bytes, 0);
    }
    let result = body(&mut scratch[..bytes]);
    SCRATCH.set(scratch);
    result
}
