//! Encodes serde types with a proc. `portolan::rpc::encoding` defines the encoding of each type.

use super::text::NAME;
use super::{Fault, Proc};
use serde::ser::{self, Serialize};

#[derive(Debug)]
pub struct Encoder<'p, 'a> {
    proc: &'p mut Proc<'a>,
    /// Whether the value is the content of an [`HgString`](super::HgString).
    text: bool,
}

impl<'p, 'a> Encoder<'p, 'a> {
    pub fn new(proc: &'p mut Proc<'a>) -> Encoder<'p, 'a> {
        Encoder { proc, text: false }
    }

    fn nested<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        self.proc.enter()?;
        value.serialize(&mut *self)?;
        self.proc.leave();
        Ok(())
    }

    fn index(&mut self, index: u32) -> Result<(), Fault> {
        self.proc.put(&index.to_le_bytes())
    }
}

macro_rules! numbers {
    ($($method:ident: $ty:ty),*) => {
        $(#[inline]
        fn $method(self, value: $ty) -> Result<(), Fault> {
            self.proc.put(&value.to_le_bytes())
        })*
    };
}

impl<'e, 'p, 'a> ser::Serializer for &'e mut Encoder<'p, 'a> {
    type Ok = ();
    type Error = Fault;
    type SerializeSeq = Counted<'e, 'p, 'a>;
    type SerializeTuple = Fields<'e, 'p, 'a>;
    type SerializeTupleStruct = Fields<'e, 'p, 'a>;
    type SerializeTupleVariant = Fields<'e, 'p, 'a>;
    type SerializeMap = Counted<'e, 'p, 'a>;
    type SerializeStruct = Fields<'e, 'p, 'a>;
    type SerializeStructVariant = Fields<'e, 'p, 'a>;

    numbers!(serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64);
    numbers!(serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64);
    numbers!(serialize_i128: i128, serialize_u128: u128, serialize_f32: f32, serialize_f64: f64);

    fn is_human_readable(&self) -> bool {
        false
    }

    fn serialize_bool(self, value: bool) -> Result<(), Fault> {
        self.proc.put(&[u8::from(value)])
    }

    fn serialize_char(self, value: char) -> Result<(), Fault> {
        self.proc.put(&u32::from(value).to_le_bytes())
    }

    fn serialize_str(self, value: &str) -> Result<(), Fault> {
        self.proc.put_text(Some(value.as_bytes()))
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Fault> {
        if self.text {
            return self.proc.put_text(Some(value));
        }
        self.proc.put_size(value.len())?;
        self.proc.put(value)
    }

    fn serialize_none(self) -> Result<(), Fault> {
        if self.text { self.proc.put_text(None) } else { self.proc.put(&[0]) }
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Fault> {
        if !self.text {
            self.proc.put(&[1])?;
        }
        self.nested(value)
    }

    fn serialize_unit(self) -> Result<(), Fault> {
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), Fault> {
        Ok(())
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        index: u32,
        _variant: &'static str,
    ) -> Result<(), Fault> {
        self.index(index)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Fault> {
        let outer = std::mem::replace(&mut self.text, name == NAME);
        let done = self.nested(value);
        self.text = outer;
        done
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        index: u32,
        _variant: &'static str,
        value: &T,
    ) -> Result<(), Fault> {
        self.index(index)?;
        self.nested(value)
    }

    fn serialize_seq(self, _len: Option<usize>) -> Result<Counted<'e, 'p, 'a>, Fault> {
        Counted::new(self)
    }

    fn serialize_tuple(self, _len: usize) -> Result<Fields<'e, 'p, 'a>, Fault> {
        Fields::new(self)
    }

    fn serialize_tuple_struct(
        self,
        _name: &'static str,
        _len: usize,
    ) -> Result<Fields<'e, 'p, 'a>, Fault> {
        Fields::new(self)
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        index: u32,
        _variant: &'static str,
        _len: usize,
    ) -> Result<Fields<'e, 'p, 'a>, Fault> {
        self.index(index)?;
        Fields::new(self)
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<Counted<'e, 'p, 'a>, Fault> {
        Counted::new(self)
    }

    fn serialize_struct(
        self,
        _name: &'static str,
        _len: usize,
    ) -> Result<Fields<'e, 'p, 'a>, Fault> {
        Fields::new(self)
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        index: u32,
        _variant: &'static str,
        _len: usize,
    ) -> Result<Fields<'e, 'p, 'a>, Fault> {
        self.index(index)?;
        Fields::new(self)
    }
}

/// The fields of a struct, tuple or array.
#[derive(Debug)]
pub struct Fields<'e, 'p, 'a>(&'e mut Encoder<'p, 'a>);

impl<'e, 'p, 'a> Fields<'e, 'p, 'a> {
    fn new(encoder: &'e mut Encoder<'p, 'a>) -> Result<Self, Fault> {
        encoder.proc.enter()?;
        Ok(Fields(encoder))
    }

    fn end(self) -> Result<(), Fault> {
        self.0.proc.leave();
        Ok(())
    }
}

macro_rules! fields {
    ($($trait:ident :: $method:ident ($($name:ident)?)),*) => {
        $(impl ser::$trait for Fields<'_, '_, '_> {
            type Ok = ();
            type Error = Fault;

            #[inline]
            fn $method<T: Serialize + ?Sized>(
                &mut self,
                $($name: &'static str,)?
                value: &T,
            ) -> Result<(), Fault> {
                value.serialize(&mut *self.0)
            }

            fn end(self) -> Result<(), Fault> {
                Fields::end(self)
            }
        })*
    };
}

fields!(
    SerializeTuple::serialize_element(),
    SerializeTupleStruct::serialize_field(),
    SerializeTupleVariant::serialize_field(),
    SerializeStruct::serialize_field(_name),
    SerializeStructVariant::serialize_field(_name)
);

/// Elements preceded by their count, which is written when the last element is encoded.
#[derive(Debug)]
pub struct Counted<'e, 'p, 'a> {
    encoder: &'e mut Encoder<'p, 'a>,
    count_at: usize,
    count: u64,
}

impl<'e, 'p, 'a> Counted<'e, 'p, 'a> {
    fn new(encoder: &'e mut Encoder<'p, 'a>) -> Result<Self, Fault> {
        encoder.proc.enter()?;
        let count_at = encoder.proc.used();
        encoder.proc.put_size(0)?;
        Ok(Counted { encoder, count_at, count: 0 })
    }

    /// Encodes an element, which must have at least one byte: a receiver rejects a count that
    /// exceeds the number of bytes that follow.
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        let before = self.encoder.proc.used();
        value.serialize(&mut *self.encoder)?;
        if self.encoder.proc.used() == before {
            let fault = Fault::protocol("a sequence of zero-sized elements cannot be encoded");
            return Err(self.encoder.proc.fail(fault));
        }
        self.count += 1;
        Ok(())
    }

    fn finish(self) -> Result<(), Fault> {
        self.encoder.proc.patch(self.count_at, &self.count.to_le_bytes())?;
        self.encoder.proc.leave();
        Ok(())
    }
}

impl ser::SerializeSeq for Counted<'_, '_, '_> {
    type Ok = ();
    type Error = Fault;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        self.element(value)
    }

    fn end(self) -> Result<(), Fault> {
        self.finish()
    }
}

impl ser::SerializeMap for Counted<'_, '_, '_> {
    type Ok = ();
    type Error = Fault;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Fault> {
        self.element(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        value.serialize(&mut *self.encoder)
    }

    fn end(self) -> Result<(), Fault> {
        self.finish()
    }
}
