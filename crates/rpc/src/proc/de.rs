//! Decodes serde types with a proc.
//!
//! The table in `portolan::rpc::encoding` defines the encoding of each type. Invariant: nothing is
//! allocated for a count or size that exceeds the number of bytes left.

use super::text::NAME;
use super::{Fault, Proc};
use serde::de::{self, DeserializeSeed, IntoDeserializer, Visitor};

#[derive(Debug)]
pub struct Decoder<'p, 'de> {
    proc: &'p mut Proc<'de>,
}

impl<'p, 'de> Decoder<'p, 'de> {
    pub fn new(proc: &'p mut Proc<'de>) -> Decoder<'p, 'de> {
        Decoder { proc }
    }

    fn fail<T>(&mut self, text: impl Into<String>) -> Result<T, Fault> {
        Err(self.proc.fail(Fault::protocol(text)))
    }

    fn nested<T>(&mut self, body: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        self.proc.enter()?;
        let value = body(self)?;
        self.proc.leave();
        Ok(value)
    }

    fn fields<V: Visitor<'de>>(&mut self, left: usize, visitor: V) -> Result<V::Value, Fault> {
        self.nested(|decoder| visitor.visit_seq(Elements { decoder, left }))
    }

    fn text(&mut self) -> Result<Option<&'de [u8]>, Fault> {
        self.proc.take_text()
    }

    fn tag(&mut self, what: &str) -> Result<bool, Fault> {
        match self.proc.take_array::<1>()? {
            [0] => Ok(false),
            [1] => Ok(true),
            [other] => self.fail(format!("{what} is {other}, not 0 or 1")),
        }
    }
}

macro_rules! numbers {
    ($($method:ident $visit:ident $ty:ty),*) => {
        $(#[inline]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            visitor.$visit(<$ty>::from_le_bytes(self.proc.take_array()?))
        })*
    };
}

impl<'de> de::Deserializer<'de> for &mut Decoder<'_, 'de> {
    type Error = Fault;

    numbers!(
        deserialize_i8 visit_i8 i8, deserialize_i16 visit_i16 i16, deserialize_i32 visit_i32 i32,
        deserialize_i64 visit_i64 i64, deserialize_i128 visit_i128 i128,
        deserialize_u8 visit_u8 u8, deserialize_u16 visit_u16 u16, deserialize_u32 visit_u32 u32,
        deserialize_u64 visit_u64 u64, deserialize_u128 visit_u128 u128,
        deserialize_f32 visit_f32 f32, deserialize_f64 visit_f64 f64
    );

    fn is_human_readable(&self) -> bool {
        false
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Fault> {
        self.fail("the encoding is not self-describing: the type must determine it")
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_any(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_any(visitor)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_bool(self.tag("a bool")?)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let code = u32::from_le_bytes(self.proc.take_array()?);
        match char::from_u32(code) {
            Some(c) => visitor.visit_char(c),
            None => self.fail(format!("{code:#x} is not a character")),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let Some(bytes) = self.text()? else {
            return self.fail("the string is null; decode it as HgString");
        };
        match std::str::from_utf8(bytes) {
            Ok(text) => visitor.visit_borrowed_str(text),
            Err(_) => self.fail("the string is not UTF-8; decode it as HgString"),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let size = self.proc.take_size()?;
        visitor.visit_borrowed_bytes(self.proc.take(size)?)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        if self.tag("the mark of an option")? {
            self.nested(|decoder| visitor.visit_some(decoder))
        } else {
            visitor.visit_none()
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        if name == NAME {
            return match self.text()? {
                Some(bytes) => visitor.visit_borrowed_bytes(bytes),
                None => visitor.visit_none(),
            };
        }
        self.nested(|decoder| visitor.visit_newtype_struct(decoder))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let count = self.proc.take_size()?;
        self.fields(count, visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Fault> {
        self.fields(len, visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.fields(len, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let left = self.proc.take_size()?;
        self.nested(|decoder| visitor.visit_map(Elements { decoder, left }))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.fields(fields.len(), visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.nested(|decoder| visitor.visit_enum(Variant { decoder }))
    }
}

/// Fields or elements; `left` of them are still to be decoded.
struct Elements<'d, 'p, 'de> {
    decoder: &'d mut Decoder<'p, 'de>,
    left: usize,
}

impl<'de> Elements<'_, '_, 'de> {
    fn next<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        seed.deserialize(&mut *self.decoder).map(Some)
    }
}

impl<'de> de::SeqAccess<'de> for Elements<'_, '_, 'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Fault> {
        self.next(seed)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

impl<'de> de::MapAccess<'de> for Elements<'_, '_, 'de> {
    type Error = Fault;

    fn next_key_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Fault> {
        self.next(seed)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Fault> {
        seed.deserialize(&mut *self.decoder)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

struct Variant<'d, 'p, 'de> {
    decoder: &'d mut Decoder<'p, 'de>,
}

impl<'de> de::EnumAccess<'de> for Variant<'_, '_, 'de> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Fault> {
        let index = u32::from_le_bytes(self.decoder.proc.take_array()?);
        let index: de::value::U32Deserializer<Fault> = index.into_deserializer();
        Ok((seed.deserialize(index)?, self))
    }
}

impl<'de> de::VariantAccess<'de> for Variant<'_, '_, 'de> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        self.decoder.nested(|decoder| seed.deserialize(decoder))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Fault> {
        self.decoder.fields(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.decoder.fields(fields.len(), visitor)
    }
}
