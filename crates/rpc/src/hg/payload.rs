//! Encoded parameters in their various locations.

use crate::checksum::Method;
use crate::failure::Result;
use crate::na::class::Bytes;
use crate::na::{Mem, Permission, Run};
use crate::proc::{Encoded, Overflow};
use portolan_base::thread::fast_tls;
use std::sync::Arc;

/// Encodes parameters into a buffer, or into an allocated buffer if they do not fit.
pub trait Encode: FnOnce(&mut [u8], Method) -> Result<Encoded> {}
impl<T: FnOnce(&mut [u8], Method) -> Result<Encoded>> Encode for T {}

/// The encoded parameters of a received request or answer.
#[derive(Debug)]
pub enum Payload {
    Empty,
    Bytes {
        bytes: Bytes,
        start: usize,
    },
    Pulled(Arc<Mem>),
    /// Encoded in this process and longer than a message.
    Overflow(Overflow),
}

impl Payload {
    /// Wraps the parameters of a call to the own process. Those that fit are in `buffer`.
    pub fn own(encoded: Encoded, buffer: &[u8]) -> Payload {
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
                // SAFETY: the handle owns the memory, which is one segment of `len` bytes. The pull
                // has ended, so nothing writes to it any more.
                unsafe { std::slice::from_raw_parts(address as *const u8, len) }
            }
        }
    }
}

/// Encoded parameters that are kept until the other rank has pulled them.
#[derive(Debug)]
pub struct Kept(Arc<Mem>);

/// The kind of memory handles for encoded parameters.
pub(crate) const PARAMETERS: u8 = 2;

impl Kept {
    pub fn new(bytes: Overflow) -> Result<Kept> {
        let (long, len) = bytes.into_parts();
        let mem = Mem::over(long, len, Permission::ReadOnly)?;
        mem.register();
        Ok(Kept(mem))
    }

    /// Returns the length in bytes.
    pub fn size(&self) -> usize {
        self.0.len()
    }

    pub fn handle(&self) -> Vec<u8> {
        self.0.to_bytes(PARAMETERS)
    }
}

fast_tls! {
    static SCRATCH: Vec<u8> = Vec::new();
}

/// Runs `body` with a buffer of `bytes` bytes of unspecified content.
#[inline]
pub(crate) fn with_scratch<R>(bytes: usize, body: impl FnOnce(&mut [u8]) -> R) -> R {
    let mut scratch = SCRATCH.take();
    if scratch.len() < bytes {
        scratch.resize(bytes, 0);
    }
    let result = body(&mut scratch[..bytes]);
    SCRATCH.set(scratch);
    result
}
