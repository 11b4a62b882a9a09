//! What travels between classes: the head of a message.
//!
//! A head is the header of an active message, or the first bytes of a message
//! between jobs; the body is its data. Heads that make no sense are dropped with a
//! line in the log: their sender is no class of ours.

/// Bytes of a chunk.
pub(in crate::rpc::na) const CHUNK: usize = 1 << 20;

/// Bytes of a head.
pub(crate) const HEAD: usize = 16;
const VERSION: u8 = 1;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A message for which nobody needs to have posted a receive.
    Unexpected = 0,
    /// A message for a receive with its source and tag.
    Expected = 1,
    /// The answer to a call; goes to the layer above by its token.
    Reply = 2,
    /// That an answer's buffer is free again; by its token.
    Release = 3,
    /// So many bytes of messages were taken in.
    Credit = 4,
    /// Asks for bytes of registered memory (between jobs).
    Get = 5,
    /// Bytes that were asked for.
    GetData = 6,
    /// Bytes for registered memory (between jobs).
    Put = 7,
    /// The data of a put is in place, or why not.
    PutDone = 8,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Kind> {
        use Kind::*;
        [Unexpected, Expected, Reply, Release, Credit, Get, GetData, Put, PutDone]
            .into_iter()
            .find(|k| *k as u8 == byte)
    }
}

/// The head of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The kind of the message.
    pub kind: Kind,
    /// The number of the class, the same at both sides.
    pub class: u16,
    /// The tag; of a credit, which window.
    pub tag: u32,
    /// A token; of a credit, how many bytes.
    pub word: u64,
}

impl Head {
    /// As it travels.
    pub fn bytes(&self) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        bytes[0] = self.kind as u8;
        bytes[1] = VERSION;
        bytes[2..4].copy_from_slice(&self.class.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.tag.to_le_bytes());
        bytes[8..].copy_from_slice(&self.word.to_le_bytes());
        bytes
    }

    /// Of what came; `None` where it is no head.
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

/// A little-endian number of the first eight bytes (of fewer, where there are fewer).
pub(crate) fn number(bytes: &[u8]) -> u64 {
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
