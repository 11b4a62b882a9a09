//! C strings as parameters: without NUL inside, not necessarily UTF-8, possibly null.

use super::fault::Fault;
use super::state::Proc;
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};
use std::ffi::{CStr, CString};
use std::fmt;

/// Bytes that follow a string that is not null. Mercury stores there how its string object was
/// allocated. They are 0 here, and ignored when they are received.
const FLAGS: [u8; 2] = [0; 2];

/// The name that identifies an [`HgString`] to the codec.
pub(super) const NAME: &str = "portolan::hg_string_t";

/// A `hg_string_t`, which may be null. A non-null UTF-8 string has the encoding of a `String`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct HgString(pub Option<CString>);

impl From<&CStr> for HgString {
    fn from(text: &CStr) -> HgString {
        HgString(Some(text.to_owned()))
    }
}

/// A string that serialises as its bytes alone.
struct Bytes<'a>(&'a CStr);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0.to_bytes())
    }
}

impl Serialize for HgString {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(NAME, &self.0.as_deref().map(Bytes))
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = HgString;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string without zeros, or null")
    }

    fn visit_none<E: de::Error>(self) -> Result<HgString, E> {
        Ok(HgString(None))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<HgString, D::Error> {
        deserializer.deserialize_bytes(self)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<HgString, D::Error> {
        inner.deserialize_option(self)
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<HgString, E> {
        CString::new(bytes).map(|text| HgString(Some(text))).map_err(E::custom)
    }
}

impl<'de> Deserialize<'de> for HgString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<HgString, D::Error> {
        deserializer.deserialize_newtype_struct(NAME, TextVisitor)
    }
}

impl<'a> Proc<'a> {
    /// Appends a C string, passed without its terminating NUL; `None` encodes a null string.
    /// Returns `Protocol` if the string contains a NUL, `Memory` if the buffer cannot grow.
    pub fn put_text(&mut self, text: Option<&[u8]>) -> Result<(), Fault> {
        let Some(text) = text else { return self.put_size(0) };
        if text.contains(&0) {
            return Err(self.fail(Fault::protocol(
                "a string with an interior zero byte cannot be encoded for C",
            )));
        }
        self.put_size(text.len() + 1)?;
        self.put(text)?;
        self.put(&[0])?;
        self.put(&FLAGS)
    }

    /// Consumes a C string and returns it without its terminating NUL; `None` is a null string.
    /// Returns `Overflow` if bytes are missing, `Protocol` if the first NUL is not the last byte.
    pub fn take_text(&mut self) -> Result<Option<&'a [u8]>, Fault> {
        let size = self.take_size()?;
        if size == 0 {
            return Ok(None);
        }
        let bytes = self.take(size)?;
        match bytes.iter().position(|&b| b == 0) {
            Some(end) if end + 1 == size => {
                self.take(FLAGS.len())?;
                Ok(Some(&bytes[..end]))
            }
            Some(end) => {
                Err(self
                    .fail(Fault::Protocol(format!("a string of {size} bytes ends after {end}"))))
            }
            None => Err(self.fail(Fault::protocol("a string is not terminated"))),
        }
    }
}
