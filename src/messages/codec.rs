//! The wire format of typed messages: a head and the encoded value. A value that fits is sent in
//! the header. A longer one precedes the payload in the data.

use bytemuck::{Pod, Zeroable};
use portolan_base::error::{Result, fail};
use portolan_engine::am::MAX_HEADER;
use postcard::ser_flavors::Flavor;
use serde::Serialize;
use serde::de::DeserializeOwned;
use smallvec::SmallVec;
use std::mem::size_of;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Head {
    /// The token of the caller that waits for the reply, or 0 if none waits.
    pub token: u64,
    /// The length of the encoded value in the data, or [`IN_HEADER`].
    pub encoded: u64,
}

const IN_HEADER: u64 = u64::MAX;
const HEAD: usize = size_of::<Head>();

/// The inline capacity suffices for most messages.
type Buffer = SmallVec<[u8; 256]>;

struct Appended<'a>(&'a mut Buffer);

impl Flavor for Appended<'_> {
    type Output = ();
    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }
    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
pub(super) struct Encoded {
    buffer: Buffer,
    in_header: bool,
}

impl Encoded {
    /// Encodes `value` for the caller that waits with `token`. `name` names the type in errors.
    pub(super) fn new<T: Serialize>(token: u64, value: &T, name: &str) -> Result<Encoded> {
        let mut buffer = Buffer::new();
        buffer.extend_from_slice(&[0; HEAD]);
        if let Err(why) = postcard::serialize_with_flavor(value, Appended(&mut buffer)) {
            fail!(Argument, "a value of {name} cannot be encoded: {why}");
        }
        let in_header = buffer.len() <= MAX_HEADER;
        let encoded = if in_header { IN_HEADER } else { (buffer.len() - HEAD) as u64 };
        buffer[..HEAD].copy_from_slice(bytemuck::bytes_of(&Head { token, encoded }));
        Ok(Encoded { buffer, in_header })
    }

    pub(super) fn header(&self) -> &[u8] {
        if self.in_header { &self.buffer } else { &self.buffer[..HEAD] }
    }

    pub(super) fn before_payload(&self) -> &[u8] {
        if self.in_header { &[] } else { &self.buffer[HEAD..] }
    }
}

pub(super) fn split(header: &[u8]) -> Result<(Head, &[u8])> {
    match header.split_at_checked(HEAD) {
        Some((head, rest)) => Ok((bytemuck::pod_read_unaligned(head), rest)),
        None => fail!(Internal, "a typed message with a header of {} bytes", header.len()),
    }
}

/// Returns the encoded value, and the offset of the payload in the data.
pub(super) fn parts<'a>(head: &Head, rest: &'a [u8], data: &'a [u8]) -> Result<(&'a [u8], usize)> {
    if head.encoded == IN_HEADER {
        return Ok((rest, 0));
    }
    let found = usize::try_from(head.encoded).ok().and_then(|n| Some((data.get(..n)?, n)));
    match found {
        Some(found) => Ok(found),
        None => fail!(Internal, "a typed message of {} bytes ends inside its value", data.len()),
    }
}

/// The value must use all `bytes`.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8], name: &str, origin: usize) -> Result<T> {
    let why = match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => return Ok(value),
        Ok((_, left)) => format!("{} bytes are left over", left.len()),
        Err(why) => why.to_string(),
    };
    fail!(
        Argument,
        "cannot decode {} bytes from rank {origin} as {name}: {why}; check that its Deserialize \
         reads what its Serialize writes",
        bytes.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(value: &Vec<u32>) -> (usize, usize) {
        let encoded = Encoded::new(7, value, "numbers").unwrap();
        let data = [encoded.before_payload(), b"payload"].concat();
        let (head, rest) = split(encoded.header()).unwrap();
        assert_eq!(head.token, 7);
        let (bytes, at) = parts(&head, rest, &data).unwrap();
        assert_eq!(&decode::<Vec<u32>>(bytes, "numbers", 0).unwrap(), value);
        assert_eq!(&data[at..], b"payload");
        (encoded.header().len(), data.len())
    }

    #[test]
    fn values_travel_in_the_header_or_the_data() {
        assert_eq!(round(&vec![]), (HEAD + 1, 7));
        assert_eq!(round(&vec![1; 100]), (HEAD + 101, 7));
        let (header, data) = round(&vec![u32::MAX; 3000]);
        assert_eq!(header, HEAD);
        assert!(data > 12_000);
        // The longest value that fits in the header, and one byte more.
        let most = MAX_HEADER - HEAD - 2;
        assert_eq!(round(&vec![1; most]), (MAX_HEADER, 7));
        assert_eq!(round(&vec![1; most + 1]).0, HEAD);
    }

    #[test]
    fn damaged_values_are_refused() {
        assert!(split(&[0; HEAD - 1]).is_err());
        let head = Head { token: 0, encoded: 9 };
        assert!(parts(&head, &[], &[0; 8]).is_err());
        assert_eq!(decode::<String>(&[1, b'a'], "a name", 3).unwrap(), "a");
        assert!(decode::<String>(&[1, b'a', 0], "a name", 3).is_err());
        let error = decode::<String>(&[5, b'a'], "a name", 3).unwrap_err();
        assert!(error.detail().contains("rank 3") && error.detail().contains("a name"));
    }
}
