//! Parameters as bytes: the codec of function shipping.
//!
//! A [`Proc`] goes over parameters in one of three ways ([`Op`]): it encodes them
//! into a buffer, decodes them from one, or frees what decoding has allocated. C
//! programs describe parameters by functions (`hg_proc_*`, `MERCURY_GEN_PROC`)
//! that call a proc; Rust programs derive serde's traits and call [`to_vec`] and
//! [`from_slice`]. Both give the same bytes.
//!
//! | module | owns |
//! |---|---|
//! | `state` | [`Proc`]: the buffer, its growth, the checksum |
//! | `trailer` | the end of a pass: checksum and trailer |
//! | `overflow` | [`Overflow`]: parameters in a buffer of their own |
//! | `ser`, `de` | serde types over a proc |
//! | `text` | [`HgString`]: a string as C has it |
//! | `fault` | what can be wrong |
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
//! Parameters follow each other without gaps, alignment or names. Integers and
//! floats are little-endian. *Sizes* and *counts* are unsigned and take 8 bytes.
//!
//! | C | Rust (serde) | bytes |
//! |---|---|---|
//! | `int8_t` .. `int64_t`, `uint8_t` .. `uint64_t` | `i8` .. `i64`, `u8` .. `u64` | 1, 2, 4, 8 |
//! | | `i128`, `u128` | 16 |
//! | `float`, `double` | `f32`, `f64` | 4, 8: IEEE 754 |
//! | `hg_bool_t`, `bool` | `bool` | 1: 0 or 1 (`hg_bool_t`: any, not 0 is true) |
//! | `char` | `u8` | 1 |
//! | `size_t`, `hg_size_t`, `hg_ptr_t` | `u64` | 8 |
//! | `hg_id_t` | `u32` | 4 |
//! | raw bytes (`hg_proc_raw`) | arrays and tuples of `u8` | the bytes alone; both sides know how many |
//! | `hg_string_t`, not null | `String`, `&str`, [`HgString`] | size with the terminating zero, the bytes, a zero; no other zero |
//! | `hg_string_t`, null | [`HgString`] of none | size 0, nothing else |
//! | `hg_bulk_t`, not null | serde's bytes | size, as many bytes: the serialised handle |
//! | `hg_bulk_t`, null | empty bytes | size 0 |
//! | a struct | struct, tuple, array | its fields in order; a nested struct likewise |
//! | | `Vec`, sets | count, the elements |
//! | | maps | count, then key and value in turn |
//! | | `Option` | 1 byte: 0, or 1 and the value |
//! | | enums | `u32`: the variant's index from 0, then its fields |
//! | | `char` | `u32` |
//! | | `()`, unit structs | nothing |
//!
//! **The trailer.** Where a checksum method is chosen, a message ends with the
//! number of bytes before the trailer (8 bytes) and the checksum over those bytes
//! ([`checksum`](crate::rpc::checksum)'s 2, 4 or 8 bytes). Decoding computes the
//! checksum over the bytes that it has consumed. So it sees damage as well as a
//! parameter that was encoded but not decoded, or the other way round.
//!
//! For example `{ int32_t fd = -2; hg_string_t path = "ab"; }` with `crc32c`:
//!
//! ```text
//! fe ff ff ff | 03 00 00 00 00 00 00 00 | 61 62 00 | 0f 00 00 00 00 00 00 00 | 4 bytes
//! fd          | size                    | path     | 15 bytes before         | crc32c
//! ```
//!
//! # What may come
//!
//! Bytes from another rank are not trusted. A size or count is checked against
//! the bytes that are left before anything is allocated, nesting is limited to
//! [`MAX_DEPTH`], and bytes that are not consumed are a [`Fault`] as bytes that are
//! missing are. After its first fault a proc goes on failing with it, so that a
//! function that overlooks one cannot turn rubbish into parameters.

pub(crate) mod de;
pub(crate) mod fault;
mod overflow;
pub(crate) mod ser;
pub(crate) mod state;
#[cfg(test)]
mod tests;
pub(crate) mod text;
pub(crate) mod trailer;

pub use de::Decoder;
pub use fault::Fault;
pub use overflow::Overflow;
pub(crate) use overflow::Source;
pub use ser::Encoder;
pub use state::{MAX_DEPTH, Op, Proc};
pub use text::HgString;

use crate::memory::large_buffer::LargeBuffer;
use crate::rpc::checksum::Method;
use serde::{Deserialize, Serialize};

/// Encodes a value, with a trailer unless `method` is none.
///
/// # Errors
/// `Protocol` for what has no form on the wire (a string with a zero in it, an
/// element without bytes, nesting deeper than [`MAX_DEPTH`]); `Memory`.
pub fn to_vec<T: Serialize + ?Sized>(value: &T, method: Method) -> Result<Vec<u8>, Fault> {
    let mut proc = Proc::encoder(&mut [], method);
    value.serialize(&mut Encoder::new(&mut proc))?;
    proc.finish()?;
    Ok(proc.encoded().to_vec())
}

/// Encodes a value into `buf` where it fits, and returns the length; else returns
/// the bytes in memory of their own.
///
/// # Errors
/// As [`to_vec`].
pub fn to_slice<T: Serialize + ?Sized>(
    value: &T,
    buf: &mut [u8],
    method: Method,
) -> Result<Encoded, Fault> {
    to_slice_or(value, buf, method, LargeBuffer::heap)
}

/// [`to_slice`], with that memory from somewhere.
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

/// Where encoded parameters lie.
#[derive(Debug, PartialEq, Eq)]
pub enum Encoded {
    /// In the buffer: that many bytes.
    Fits(usize),
    /// The buffer is too short: here they are.
    Overflow(Overflow),
}

impl Encoded {
    /// What a proc has encoded, whose pass ends here.
    ///
    /// # Errors
    /// Those of [`Proc::finish`]; `Memory`.
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

/// Decodes a value from all of `bytes`; strings and bytes may be borrowed from
/// them.
///
/// # Errors
/// `Overflow` where bytes are missing; `Protocol` where they make no sense or are
/// left over; `Checksum`.
pub fn from_slice<'de, T: Deserialize<'de>>(bytes: &'de [u8], method: Method) -> Result<T, Fault> {
    let mut proc = Proc::decoder(bytes, method);
    let value = T::deserialize(&mut Decoder::new(&mut proc))?;
    proc.finish()?;
    Ok(value)
}
