//! The wire format of records, the same in rings and in MPI messages. A record consists of a
//! [`RecordHead`], the header, and eager data. A short message whose completion is not awaited has
//! a [`ShortHead`], so that more of it fits in one cell of a ring. All ranks run the same build, so
//! numbers are sent in their memory representation. Lengths are checked nevertheless.

use bytemuck::{Pod, Zeroable};
use portolan_base::error::{Result, fail};
use std::mem::size_of;

/// In bytes.
pub const MAX_HEADER: usize = 2048;

/// The number is equal on all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HandlerId(pub u16);

#[derive(Debug, Clone, Copy, PartialEq, Eq, bytemuck::CheckedBitPattern)]
#[repr(u8)]
pub enum RecordKind {
    Eager = 1,
    /// Request to send: the data waits at the origin, at [`Source::address`].
    Rts = 2,
    /// The message named by [`RecordHead::token`] was handled.
    Ack = 3,
    /// The data named by [`Source::token`] has left, and its memory is free.
    Fin = 4,
    /// Clear to send: requests [`Source::token`] in fragments, for message [`RecordHead::token`].
    Cts = 5,
    /// A fragment of [`RecordHead::token`] at the byte offset [`RecordHead::len`].
    RndvFragment = 6,
    /// The head of an eager message whose data follows in the next records of the ring.
    EagerFirst = 7,
    /// The next fragment of the last [`RecordKind::EagerFirst`] in the ring.
    EagerFragment = 8,
    /// The target answers when all that the handler's deferral queue holds now is in place.
    DeferralFence = 9,
    /// Stops messages to deferral queues, or, with a token of 0, allows them again.
    DeferralStop = 10,
    /// Offers to share a copy whose spans follow: the place [`RecordHead::len`] has the job
    /// [`RecordHead::header`], and with a token, the copy writes to the target.
    HelpOffer = 11,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct RecordHead {
    pub(super) kind: u8,
    pub(super) _pad: u8,
    pub(super) handler: u16,
    pub header: u32,
    pub len: u64,
    /// Token of the awaited completion, or 0.
    pub token: u64,
}

/// Marks a [`ShortHead`] in place of a [`RecordKind`].
const SHORT: u8 = 0x42;

/// A [`RecordKind::Eager`] without a token, with a header of at most 255 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct ShortHead {
    short: u8,
    header: u8,
    handler: u16,
    len: u32,
}

impl ShortHead {
    fn message(handler: HandlerId, header: usize, len: usize) -> Option<ShortHead> {
        let (header, len) = (header.try_into().ok()?, len.try_into().ok()?);
        Some(ShortHead { short: SHORT, header, handler: handler.0, len })
    }

    fn head(self) -> RecordHead {
        let ShortHead { header, handler, len, .. } = self;
        RecordHead::message(RecordKind::Eager, HandlerId(handler), header.into(), len as usize, 0)
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum EagerHead {
    /// For small lengths and no awaited completion.
    Short(ShortHead),
    Full(RecordHead),
}

impl EagerHead {
    #[inline]
    pub fn message(handler: HandlerId, header: usize, len: usize, token: u64) -> EagerHead {
        match ShortHead::message(handler, header, len) {
            Some(short) if token == 0 => EagerHead::Short(short),
            _ => {
                EagerHead::Full(RecordHead::message(RecordKind::Eager, handler, header, len, token))
            }
        }
    }

    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match self {
            EagerHead::Short(short) => bytemuck::bytes_of(short),
            EagerHead::Full(head) => bytemuck::bytes_of(head),
        }
    }
}

/// Follows the head of a [`RecordKind::Rts`], [`RecordKind::Fin`] or [`RecordKind::Cts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Source {
    pub address: u64,
    pub token: u64,
}

impl RecordHead {
    pub fn new(kind: RecordKind) -> RecordHead {
        RecordHead { kind: kind as u8, ..Zeroable::zeroed() }
    }

    pub fn message(
        kind: RecordKind,
        handler: HandlerId,
        header: usize,
        len: usize,
        token: u64,
    ) -> RecordHead {
        RecordHead {
            kind: kind as u8,
            _pad: 0,
            handler: handler.0,
            header: header as u32,
            len: len as u64,
            token,
        }
    }

    /// Fails with `Internal` if unknown.
    #[inline]
    pub fn kind(&self) -> Result<RecordKind> {
        match bytemuck::checked::try_cast(self.kind) {
            Ok(kind) => Ok(kind),
            Err(_) => fail!(Internal, "an active message of unknown kind {}", self.kind),
        }
    }

    pub fn handler(&self) -> HandlerId {
        HandlerId(self.handler)
    }
}

/// Expands a short head. Fails with `Internal` if the record is too short.
#[inline]
pub fn split(record: &[u8]) -> Result<(RecordHead, &[u8])> {
    if let Some((short, rest)) = record.split_at_checked(size_of::<ShortHead>())
        && short[0] == SHORT
    {
        return Ok((bytemuck::pod_read_unaligned::<ShortHead>(short).head(), rest));
    }
    match record.split_at_checked(size_of::<RecordHead>()) {
        Some((head, rest)) => Ok((bytemuck::pod_read_unaligned(head), rest)),
        None => fail!(Internal, "an active message of {} bytes", record.len()),
    }
}

/// Returns the source and the bytes behind it, or `Internal` if `rest` is too short.
pub fn source(rest: &[u8]) -> Result<(Source, &[u8])> {
    match rest.split_at_checked(size_of::<Source>()) {
        Some((source, rest)) => Ok((bytemuck::pod_read_unaligned(source), rest)),
        None => fail!(Internal, "an active message that ends inside its source"),
    }
}

/// Returns the header and the bytes behind it, or `Internal` if `rest` is too short.
#[inline]
pub fn header<'a>(head: &RecordHead, rest: &'a [u8]) -> Result<(&'a [u8], &'a [u8])> {
    match rest.split_at_checked(head.header as usize) {
        Some(parts) => Ok(parts),
        None => fail!(Internal, "an active message that ends inside its header"),
    }
}

/// Fails with `Internal` if the message is shorter.
pub fn read_pod<T: Pod>(bytes: &[u8]) -> Result<T> {
    match bytes.get(..size_of::<T>()) {
        Some(bytes) => Ok(bytemuck::pod_read_unaligned(bytes)),
        None => fail!(Internal, "a message of {} bytes is too short", bytes.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brief_heads_stand_for_whole_ones() {
        let id = HandlerId(0xfedc);
        let (short, whole) = (size_of::<ShortHead>(), size_of::<RecordHead>());
        for (header, len, token, size) in [
            (255, 70_000, 0, short),
            (0, u32::MAX as usize, 0, short),
            (256, 0, 0, whole),
            (0, 1 << 32, 0, whole),
            (8, 8, 77, whole),
        ] {
            let mut record = EagerHead::message(id, header, len, token).bytes().to_vec();
            assert_eq!(record.len(), size);
            assert!(split(&record[..7]).is_err());
            record.extend(b"rest");
            let (head, rest) = split(&record).unwrap();
            assert_eq!(head, RecordHead::message(RecordKind::Eager, id, header, len, token));
            assert_eq!(rest, b"rest");
        }
        assert!(RecordHead { kind: SHORT, ..RecordHead::zeroed() }.kind().is_err());
    }

    #[test]
    fn damaged_records_are_refused() {
        assert!(split(&[1; 10]).is_err());
        assert!(source(&[1; 10]).is_err());
        let head = RecordHead::message(RecordKind::Eager, HandlerId(0), 30, 0, 0);
        assert!(header(&head, &[0; 29]).is_err());
        assert!(RecordHead::zeroed().kind().is_err());
    }
}
