//! What travels: the head of a message, the same on rings and in MPI's messages.
//!
//! A record is a [`Head`], then the header, then the data where it travels along. A short
//! message that nobody waits for has a [`Brief`] for its head, so that more of it lies in
//! one cell of a ring.
//! All ranks of a job run the same build, so numbers travel as they lie in memory;
//! lengths are checked all the same.

use super::HandlerId;
use crate::error::{Result, fail};
use bytemuck::{Pod, Zeroable};
use std::mem::size_of;

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A message with its data.
    Whole = 1,
    /// A message whose data waits at the origin, at [`Source::address`].
    Long = 2,
    /// The message that [`Head::token`] names was handled.
    Handled = 3,
    /// The data that [`Source::token`] names has left.
    Left = 4,
    /// Send the data that [`Source::token`] names in pieces, for the landing
    /// [`Head::token`] of the target.
    Pull = 5,
    /// A piece for the landing [`Head::token`], at offset [`Head::len`].
    Piece = 6,
    /// A message whose data follows in the next records of the ring.
    Begin = 7,
    /// The next part of the data of the last [`Kind::Begin`] in the ring.
    Next = 8,
    /// Tell when the messages for the gate of the handler are in place that are held now.
    Ask = 9,
    /// Send nothing more through gates, or, with a token of 0, go on.
    Stop = 10,
}

/// The fixed part of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Head {
    pub(super) kind: u8,
    pub(super) _pad: u8,
    pub(super) handler: u16,
    /// Bytes of the header.
    pub header: u32,
    /// Bytes of the data.
    pub len: u64,
    /// What the origin awaits with the completion; 0 nothing.
    pub token: u64,
}

/// Tells a [`Brief`] from a head: no [`Kind`].
const BRIEF: u8 = 0x42;

/// The head of a [`Kind::Whole`] without a token and with a short header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Brief {
    brief: u8,
    header: u8,
    handler: u16,
    len: u32,
}

impl Brief {
    fn message(handler: HandlerId, header: usize, len: usize) -> Option<Brief> {
        let (header, len) = (header.try_into().ok()?, len.try_into().ok()?);
        Some(Brief { brief: BRIEF, header, handler: handler.0, len })
    }

    fn head(self) -> Head {
        let Brief { header, handler, len, .. } = self;
        Head::message(Kind::Whole, HandlerId(handler), header.into(), len as usize, 0)
    }
}

/// The head of a message with its data, as short as it can be.
#[derive(Debug, Clone, Copy)]
pub enum Whole {
    /// Its lengths are small, and nobody awaits its completion.
    Brief(Brief),
    /// Any.
    Head(Head),
}

impl Whole {
    /// Of a message.
    #[inline]
    pub fn message(handler: HandlerId, header: usize, len: usize, token: u64) -> Whole {
        match Brief::message(handler, header, len) {
            Some(brief) if token == 0 => Whole::Brief(brief),
            _ => Whole::Head(Head::message(Kind::Whole, handler, header, len, token)),
        }
    }

    /// As it travels.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Whole::Brief(brief) => bytemuck::bytes_of(brief),
            Whole::Head(head) => bytemuck::bytes_of(head),
        }
    }
}

/// What follows the head of a [`Kind::Long`], [`Kind::Left`] or [`Kind::Pull`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Source {
    /// Where the data lies at the origin.
    pub address: u64,
    /// The origin's name for it.
    pub token: u64,
}

impl Head {
    /// A head of a kind, without anything else.
    pub fn new(kind: Kind) -> Head {
        Head { kind: kind as u8, ..Zeroable::zeroed() }
    }

    /// The head of a message.
    pub fn message(kind: Kind, handler: HandlerId, header: usize, len: usize, token: u64) -> Head {
        Head {
            kind: kind as u8,
            _pad: 0,
            handler: handler.0,
            header: header as u32,
            len: len as u64,
            token,
        }
    }

    /// What the record is.
    #[inline]
    pub fn kind(&self) -> Result<Kind> {
        Ok(match self.kind {
            1 => Kind::Whole,
            2 => Kind::Long,
            3 => Kind::Handled,
            4 => Kind::Left,
            5 => Kind::Pull,
            6 => Kind::Piece,
            7 => Kind::Begin,
            8 => Kind::Next,
            9 => Kind::Ask,
            10 => Kind::Stop,
            kind => fail!(Internal, "an active message of unknown kind {kind}"),
        })
    }

    /// The handler that a message names.
    pub fn handler(&self) -> HandlerId {
        HandlerId(self.handler)
    }
}

/// Splits a record after its head, or what stands for one.
///
/// # Errors
/// `Internal` for one that is too short.
#[inline]
pub fn split(record: &[u8]) -> Result<(Head, &[u8])> {
    if let Some((brief, rest)) = record.split_at_checked(size_of::<Brief>())
        && brief[0] == BRIEF
    {
        return Ok((bytemuck::pod_read_unaligned::<Brief>(brief).head(), rest));
    }
    match record.split_at_checked(size_of::<Head>()) {
        Some((head, rest)) => Ok((bytemuck::pod_read_unaligned(head), rest)),
        None => fail!(Internal, "an active message of {} bytes", record.len()),
    }
}

/// Splits the rest of a record after its source.
pub fn source(rest: &[u8]) -> Result<(Source, &[u8])> {
    match rest.split_at_checked(size_of::<Source>()) {
        Some((source, rest)) => Ok((bytemuck::pod_read_unaligned(source), rest)),
        None => fail!(Internal, "an active message that ends inside its source"),
    }
}

/// Splits the rest of a record after the header of a message.
#[inline]
pub fn header<'a>(head: &Head, rest: &'a [u8]) -> Result<(&'a [u8], &'a [u8])> {
    match rest.split_at_checked(head.header as usize) {
        Some(parts) => Ok(parts),
        None => fail!(Internal, "an active message that ends inside its header"),
    }
}

/// A structure at the front of a message.
///
/// # Errors
/// `Internal` where the message is shorter.
pub(crate) fn read_pod<T: Pod>(bytes: &[u8]) -> Result<T> {
    match bytes.get(..size_of::<T>()) {
        Some(bytes) => Ok(bytemuck::pod_read_unaligned(bytes)),
        None => fail!(Internal, "a message of {} bytes is too short", bytes.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_apart_as_they_were_put_together() {
        use Kind::*;
        for kind in [Whole, Long, Handled, Left, Pull, Piece, Begin, Next, Ask, Stop] {
            assert_eq!(Head::new(kind).kind().unwrap(), kind);
        }
        let head = Head::message(Kind::Long, HandlerId(7), 3, 1 << 40, 99);
        let mut record = bytemuck::bytes_of(&head).to_vec();
        record.extend(bytemuck::bytes_of(&Source { address: 5, token: 6 }));
        record.extend(b"abcdata");
        let (read, rest) = split(&record).unwrap();
        assert_eq!(read, head);
        assert_eq!((read.kind().unwrap(), read.handler()), (Kind::Long, HandlerId(7)));
        let (from, rest) = source(rest).unwrap();
        assert_eq!((from.address, from.token), (5, 6));
        assert_eq!(header(&read, rest).unwrap(), (&b"abc"[..], &b"data"[..]));
    }

    #[test]
    fn brief_heads_stand_for_whole_ones() {
        let id = HandlerId(0xfedc);
        let (brief, whole) = (size_of::<Brief>(), size_of::<Head>());
        for (header, len, token, size) in [
            (255, 70_000, 0, brief),
            (0, u32::MAX as usize, 0, brief),
            (256, 0, 0, whole),
            (0, 1 << 32, 0, whole),
            (8, 8, 77, whole),
        ] {
            let mut record = Whole::message(id, header, len, token).bytes().to_vec();
            assert_eq!(record.len(), size);
            assert!(split(&record[..7]).is_err());
            record.extend(b"rest");
            let (head, rest) = split(&record).unwrap();
            assert_eq!(head, Head::message(Kind::Whole, id, header, len, token));
            assert_eq!(rest, b"rest");
        }
        assert!(Head { kind: BRIEF, ..Head::zeroed() }.kind().is_err());
    }

    #[test]
    fn damaged_records_are_refused() {
        assert!(split(&[1; 10]).is_err());
        assert!(source(&[1; 10]).is_err());
        let head = Head::message(Kind::Whole, HandlerId(0), 30, 0, 0);
        assert!(header(&head, &[0; 29]).is_err());
        assert!(Head::zeroed().kind().is_err());
    }
}
