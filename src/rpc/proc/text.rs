//! A string as C has it: no zero inside, perhaps not UTF-8, perhaps null.

use super::fault::Fault;
use super::state::Proc;
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};
use std::ffi::{CStr, CString};
use std::fmt;

/// The name by which the codec knows an [`HgString`].
pub(super) const NAME: &str = "portolan::hg_string_t";

/// `hg_string_t`, null or not. Where a string is neither null nor other than
/// UTF-8, a plain `String` has the same bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct HgString(pub Option<CString>);

impl From<&CStr> for HgString {
    fn from(text: &CStr) -> HgString {
        HgString(Some(text.to_owned()))
    }
}

/// The bytes alone, on their way into the codec.
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
    /// Appends a string as C has it, without its terminating zero; none is null.
    pub fn put_text(&mut self, text: Option<&[u8]>) -> Result<(), Fault> {
        let Some(text) = text else { return self.put_size(0) };
        if text.contains(&0) {
            return Err(self.fail(Fault::protocol("a string with a zero inside has no form in C")));
        }
        self.put_size(text.len() + 1)?;
        self.put(text)?;
        self.put(&[0])
    }

    /// Consumes a string as C has it; without its terminating zero.
    pub fn take_text(&mut self) -> Result<Option<&'a [u8]>, Fault> {
        let size = self.take_size()?;
        if size == 0 {
            return Ok(None);
        }
        let bytes = self.take(size)?;
        match bytes.iter().position(|&b| b == 0) {
            Some(end) if end + 1 == size => Ok(Some(&bytes[..end])),
            Some(end) => {
                Err(self
                    .fail(Fault::Protocol(format!("a string of {size} bytes ends after {end}"))))
            }
            None => Err(self.fail(Fault::protocol("a string is not terminated"))),
        }
    }
}
