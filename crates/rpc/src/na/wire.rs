//! The header of a message between classes: of an active message, or of a frame of a connection. A
//! message with an invalid header does not come from this library: it is dropped and logged.

pub(in crate::na) const CHUNK: usize = 1 << 20;

pub const HEAD: usize = 16;
const VERSION: u8 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A message that needs no posted receive.
    Unexpected = 0,
    /// A message for a receive with its source and tag.
    Expected = 1,
    /// A reply to a call, passed to the upper layer by its token.
    Reply = 2,
    /// A notice that the buffer of a reply may be reused, identified by its token.
    Release = 3,
    /// A report of consumed message bytes.
    Credit = 4,
    /// A request to send bytes of registered memory over a connection, or to copy them to the memory
    /// of the sender, on a host.
    Get = 5,
    /// A request to store the bytes that follow in registered memory, or to copy them from the memory
    /// of the sender, on a host.
    Put = 6,
    /// The answer to these, with its status. It carries the bytes of a get that were not copied.
    Moved = 7,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Kind> {
        use Kind::*;
        const ALL: [Kind; 8] = [Unexpected, Expected, Reply, Release, Credit, Get, Put, Moved];
        ALL.into_iter().find(|k| *k as u8 == byte)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub kind: Kind,
    /// The class on both sides. Ignored over connections, which number classes independently.
    pub class: u16,
    /// The message tag; for a credit, the window (0 unexpected, 1 expected).
    pub tag: u32,
    /// A token or a word of the upper layer; for a credit, the number of bytes.
    pub word: u64,
}

impl Head {
    pub fn bytes(&self) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        bytes[0] = self.kind as u8;
        bytes[1] = VERSION;
        bytes[2..4].copy_from_slice(&self.class.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.tag.to_le_bytes());
        bytes[8..].copy_from_slice(&self.word.to_le_bytes());
        bytes
    }

    pub fn parse(bytes: &[u8]) -> Option<Head> {
        let bytes: &[u8; HEAD] = bytes.try_into().ok()?;
        if bytes[1] != VERSION {
            return None;
        }
        Some(Head {
            kind: Kind::from_byte(bytes[0])?,
            class: u16::from_le_bytes([bytes[2], bytes[3]]),
            tag: u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
            word: number(&bytes[8..]),
        })
    }
}

/// Decodes a little-endian number from the first eight bytes, or from all bytes if there are fewer.
pub fn number(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    let n = bytes.len().min(8);
    word[..n].copy_from_slice(&bytes[..n]);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_come_back_and_rubbish_does_not() {
        let head = Head { kind: Kind::Reply, class: 3, tag: 77, word: u64::MAX - 5 };
        assert_eq!(Head::parse(&head.bytes()), Some(head));
        let mut bytes = head.bytes();
        bytes[0] = 200;
        assert_eq!(Head::parse(&bytes), None);
        bytes = head.bytes();
        bytes[1] = 0;
        assert_eq!(Head::parse(&bytes), None);
        assert_eq!(Head::parse(&head.bytes()[..15]), None);
        assert_eq!(Head::parse(&[]), None);
    }
}
