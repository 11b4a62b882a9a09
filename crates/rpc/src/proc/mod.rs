//! The codec of function shipping: parameters to bytes and back.
//!
//! A [`Proc`] makes one pass over parameters, in one of three modes ([`Op`]): it encodes them into
//! a buffer, decodes them from a buffer, or frees the memory that decoding has allocated. C
//! programs describe parameters by functions that call a proc (`hg_proc_*`, `MERCURY_GEN_PROC`).
//! Rust programs derive serde's traits and call [`to_vec`] and [`from_slice`]. Both produce the
//! same bytes.
//!
//! | module | contents |
//! |---|---|
//! | `state` | [`Proc`]: the buffer, its growth, the checksum |
//! | `trailer` | the end of a pass: checksum and trailer |
//! | `overflow` | [`Overflow`]: parameters in an allocated buffer |
//! | `ser`, `de` | serde types over a proc |
//! | `text` | [`HgString`]: C strings |
//! | `fault` | errors of encoding and decoding |
//!
//! ```
//! use portolan::rpc::checksum::Method;
//! use portolan::rpc::proc::{from_slice, to_vec};
//! use serde::{Deserialize, Serialize};
//!
//! // MERCURY_GEN_PROC(open_in_t, ((hg_string_t)(path)) ((int32_t)(flags)))
//! #[derive(Debug, PartialEq, Serialize, Deserialize)]
//! struct OpenIn {
//!     path: String,
//!     flags: i32,
//! }
//!
//! # fn main() -> Result<(), portolan::rpc::proc::Fault> {
//! let sent = OpenIn { path: "/tmp/x".into(), flags: 2 };
//! let mut bytes = to_vec(&sent, Method::Crc64)?;
//! assert_eq!(from_slice::<OpenIn>(&bytes, Method::Crc64)?, sent);
//! bytes[0] ^= 1;
//! assert!(from_slice::<OpenIn>(&bytes, Method::Crc64).is_err());
//! # Ok(())
//! # }
//! ```
//!
//! # The bytes
//!
//! Parameters follow each other without gaps, alignment or names. Integers and floats are
//! little-endian. *Sizes* and *counts* are unsigned and take 8 bytes.
//!
//! | C | Rust (serde) | bytes |
//! |---|---|---|
//! | `int8_t` .. `int64_t`, `uint8_t` .. `uint64_t` | `i8` .. `i64`, `u8` .. `u64` | 1, 2, 4, 8 |
//! | | `i128`, `u128` | 16 |
//! | `float`, `double` | `f32`, `f64` | 4, 8: IEEE 754 |
//! | `hg_bool_t`, `bool` | `bool` | 1: 0 or 1 (`hg_bool_t` accepts any byte; non-zero is true) |
//! | `char` | `u8` | 1 |
//! | `size_t`, `hg_size_t`, `hg_ptr_t` | `u64` | 8 |
//! | `hg_id_t` | `u32` | 4 |
//! | raw bytes (`hg_proc_raw`) | arrays, tuples of `u8` | the bytes; both sides know their number |
//! | `hg_string_t`, not null | `String`, `&str`, [`HgString`] | size, the bytes, NUL |
//! | `hg_string_t`, null | [`HgString`] of `None` | size 0, nothing else |
//! | `hg_bulk_t`, not null | serde's bytes | size, then the serialised handle |
//! | `hg_bulk_t`, null | empty bytes | size 0 |
//! | a struct | struct, tuple, array | its fields in order; a nested struct likewise |
//! | | `Vec`, sets | count, the elements |
//! | | maps | count, then key and value in turn |
//! | | `Option` | 1 byte: 0, or 1 and the value |
//! | | enums | `u32`: the variant's index from 0, then its fields |
//! | | `char` | `u32` |
//! | | `()`, unit structs | nothing |
//!
//! The size of a string counts its terminating NUL. A string contains no other NUL.
//!
//! **The trailer.** If a checksum method is set, a message ends with the number of bytes before the
//! trailer (8 bytes) and their checksum (2, 4 or 8 bytes, see [`checksum`](crate::checksum)).
//! Decoding computes the checksum of the bytes that it has consumed. This detects damage, and also
//! a parameter that was encoded but not decoded, or decoded but not encoded.
//!
//! For example `{ int32_t fd = -2; hg_string_t path = "ab"; }` with `crc32c`:
//!
//! ```text
//! fe ff ff ff | 03 00 00 00 00 00 00 00 | 61 62 00 | 0f 00 00 00 00 00 00 00 | 4 bytes
//! fd          | size                    | path     | 15 bytes before         | crc32c
//! ```
//!
//! # Untrusted bytes
//!
//! Bytes from another rank are not trusted. A size or count is checked against the number of bytes
//! left before anything is allocated. Nesting is limited to [`MAX_DEPTH`]. Missing bytes are a
//! [`Fault`], and so are bytes left over. After its first fault every call to a proc fails with
//! that fault, so that a function that ignores an error cannot turn invalid bytes into parameters.

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
    /// Ends the pass of a proc and returns its encoded parameters.
    ///
    /// # Errors
    /// Fails like [`Proc::finish`]; returns `Memory` if the parameters must be copied and memory is
    /// exhausted.
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
