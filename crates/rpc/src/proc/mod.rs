//! The codec of function shipping: parameters to bytes and back.
//!
//! A [`Proc`] makes one pass over parameters ([`Op`]): it encodes them, decodes them, or frees the
//! memory that decoding has allocated. C programs describe parameters by functions that call a proc
//! (`hg_proc_*`, `MERCURY_GEN_PROC`), Rust programs by serde's traits. Both produce the same bytes,
//! defined in the documentation of `portolan::rpc::encoding`.
//!
//! # Untrusted bytes
//!
//! A size or count is checked against the number of bytes left before anything is allocated.
//! Nesting is limited to [`MAX_DEPTH`]. Missing and left-over bytes are a [`Fault`]. After its
//! first fault every call to a proc fails with it, so ignored errors cannot turn invalid bytes into
//! parameters.

pub mod de;
pub mod fault;
mod overflow;
pub mod ser;
pub mod state;
#[cfg(test)]
mod tests;
pub mod text;
pub mod trailer;

pub use de::Decoder;
pub use fault::Fault;
pub use overflow::Overflow;
pub use overflow::Source;
pub use ser::Encoder;
pub use state::{MAX_DEPTH, Op, Proc};
pub use text::HgString;

use crate::checksum::Method;
use portolan_engine::memory::large_buffer::LargeBuffer;
use serde::{Deserialize, Serialize};

/// Encodes a value, with a trailer unless `method` is [`Method::None`].
///
/// # Errors
/// Returns `Protocol` if the value has no encoding (a string that contains a NUL, a sequence
/// element without bytes, nesting deeper than [`MAX_DEPTH`]) and `Memory` if memory is exhausted.
pub fn to_vec<T: Serialize + ?Sized>(value: &T, method: Method) -> Result<Vec<u8>, Fault> {
    let mut proc = Proc::encoder(&mut [], method);
    value.serialize(&mut Encoder::new(&mut proc))?;
    proc.finish()?;
    Ok(proc.encoded().to_vec())
}

/// Encodes a value into `buf` if it fits, else into an allocated buffer.
///
/// # Errors
/// Fails like [`to_vec`].
pub fn to_slice<T: Serialize + ?Sized>(
    value: &T,
    buf: &mut [u8],
    method: Method,
) -> Result<Encoded, Fault> {
    to_slice_or(value, buf, method, LargeBuffer::heap)
}

/// Encodes a value like [`to_slice`]; `source` allocates the buffer for a value that does not fit.
pub(crate) fn to_slice_or<T: Serialize + ?Sized>(
    value: &T,
    buf: &mut [u8],
    method: Method,
    source: Source,
) -> Result<Encoded, Fault> {
    let mut proc = Proc::encoder(buf, method);
    proc.set_source(source);
    value.serialize(&mut Encoder::new(&mut proc))?;
    Encoded::of(&mut proc)
}

/// The location of encoded parameters.
#[derive(Debug, PartialEq, Eq)]
pub enum Encoded {
    /// In the buffer of the caller: its first bytes, this many.
    Fits(usize),
    /// In an allocated buffer, because the buffer of the caller is too short.
    Overflow(Overflow),
}

impl Encoded {
    /// Ends the pass of a proc and returns its encoded parameters. Fails like [`Proc::finish`], and
    /// with `Memory` if a required copy cannot be allocated.
    pub fn of(proc: &mut Proc<'_>) -> Result<Encoded, Fault> {
        let len = proc.finish()?;
        if !proc.overflow() {
            return Ok(Encoded::Fits(len));
        }
        match proc.take_encoded().or_else(|| Overflow::copy(proc.encoded(), proc.source)) {
            Some(overflow) => Ok(Encoded::Overflow(overflow)),
            None => Err(proc.fail(Fault::Memory(len))),
        }
    }
}

/// Decodes a value from all of `bytes`. Strings and byte slices in the value may borrow from them.
///
/// # Errors
/// Returns `Overflow` if bytes are missing, `Protocol` if bytes are invalid or left over, and
/// `Length` or `Checksum` if the trailer does not match the consumed bytes.
pub fn from_slice<'de, T: Deserialize<'de>>(bytes: &'de [u8], method: Method) -> Result<T, Fault> {
    let mut proc = Proc::decoder(bytes, method);
    let value = T::deserialize(&mut Decoder::new(&mut proc))?;
    proc.finish()?;
    Ok(value)
}
