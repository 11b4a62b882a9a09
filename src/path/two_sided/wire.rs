//! The form of a request on the wire.
//!
//! A message is a [`RequestHeader`], then one dimension record for each dimension of the
//! shape, then, for vector requests, the addresses, then the payload. All ranks
//! of a job run the same build on the same architecture, so numbers travel as
//! they lie in memory; the sizes are checked all the same.

use crate::error::{Result, fail};
use crate::layout::{Dim, Shape};
use crate::path::kernel::Scale;
use crate::path::ops::Rmw;
use crate::peer::Weight;
use crate::trace;
use num_complex::Complex;
use std::mem::{offset_of, size_of};

/// What a message asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum RequestKind {
    /// Store the payload along the shape.
    Put = 1,
    /// Rendezvous: store bytes that follow in a message of their own, straight in place.
    PutRndv = 2,
    /// Accumulate the payload along the shape.
    Accumulate = 3,
    /// Send the bytes of the shape back.
    Get = 4,
    /// Combine a number and send back what was there.
    Rmw = 5,
    /// Nothing: what it asks for is that all credits come back (`ask_for_ack`).
    FlushReq = 6,
    /// Credits come back: how many requests and bytes were handled so far.
    CreditAck = 7,
    /// Take a mutex on behalf of the sender.
    Lock = 8,
    /// Try to.
    TryLock = 9,
    /// Release it.
    Unlock = 10,
    /// The sender's lock request was granted, or its predecessor has released.
    LockGrant = 11,
    /// The sender waits behind the receiver for a mutex.
    LockSuccessor = 12,
    /// Store the payload at a list of blocks.
    PutBlocks = 13,
    /// Accumulate it there.
    AccumulateBlocks = 14,
    /// Send the bytes of a list of blocks back.
    GetBlocks = 15,
    /// An eager active message.
    AmEager = 16,
    /// A request to send: an active message whose data follows.
    AmRts = 17,
    /// What its origin gets: acknowledgements, requests of gates.
    AmControl = 18,
    /// Announces a request that is longer than a posted receive, and follows on the data
    /// channel.
    Announce = 19,
}

impl RequestKind {
    /// One more than the highest number of a kind.
    pub const COUNT: usize = RequestKind::Announce as usize + 1;

    fn from_raw(raw: u8) -> Option<RequestKind> {
        use RequestKind::*;
        const ALL: [RequestKind; 19] = [
            Put,
            PutRndv,
            Accumulate,
            Get,
            Rmw,
            FlushReq,
            CreditAck,
            Lock,
            TryLock,
            Unlock,
            LockGrant,
            LockSuccessor,
            PutBlocks,
            AccumulateBlocks,
            GetBlocks,
            AmEager,
            AmRts,
            AmControl,
            Announce,
        ];
        ALL.get(usize::from(raw).wrapping_sub(1)).copied()
    }

    /// What the observer is told when it was served; nothing for what only answers, and for active messages, whose
    /// handlers are told of.
    pub(super) fn told_as(self) -> Option<trace::Served> {
        use RequestKind::*;
        Some(match self {
            Put | PutRndv | PutBlocks => trace::Served::Put,
            Get | GetBlocks => trace::Served::Get,
            Accumulate | AccumulateBlocks => trace::Served::Acc,
            Rmw => trace::Served::Rmw,
            Lock | TryLock | Unlock => trace::Served::Lock,
            FlushReq => trace::Served::Fence,
            CreditAck | LockGrant | LockSuccessor | AmEager | AmRts | AmControl | Announce => {
                return None;
            }
        })
    }

    /// The kind of a message.
    ///
    /// # Errors
    /// `Internal` where there is none.
    #[inline]
    pub fn of(message: &[u8]) -> Result<RequestKind> {
        match message.first().and_then(|&raw| RequestKind::from_raw(raw)) {
            Some(kind) => Ok(kind),
            None => fail!(Internal, "a message of {} bytes has no kind", message.len()),
        }
    }

    /// What it means to a fence.
    pub(crate) fn weight(self) -> Weight {
        match self {
            RequestKind::FlushReq => Weight::Flush,
            RequestKind::Lock | RequestKind::TryLock | RequestKind::Unlock | RequestKind::Rmw => {
                Weight::Bare
            }
            _ => Weight::Data,
        }
    }

    /// Whether the target counts it, so that a fence waits for it.
    pub fn is_counted(self) -> bool {
        !matches!(
            self,
            RequestKind::CreditAck
                | RequestKind::LockGrant
                | RequestKind::LockSuccessor
                | RequestKind::AmControl
                | RequestKind::Announce
        )
    }
}

/// The fixed part of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct RequestHeader {
    kind: u8,
    /// Element type of an accumulate, operation of a read-modify-write.
    element: u8,
    levels: u8,
    flags: u8,
    /// Tag of the answer, or of the bytes that follow.
    pub tag: u32,
    /// Address in the target's space.
    pub address: u64,
    /// Bytes of the shape's block, or of the whole where there is no shape.
    pub block: u64,
    /// Operands: scale, number, counts, or a mutex's name.
    pub operand: [u64; 3],
}

/// The fixed part of an active message, whose record follows it: as short as it can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(crate) struct AmHeader {
    kind: u8,
    _pad: [u8; 2],
    flags: u8,
    /// Tag of the bytes that follow.
    pub tag: u32,
}

impl AmHeader {
    /// Of a kind.
    pub(crate) fn new(kind: RequestKind, tag: u32) -> AmHeader {
        AmHeader { kind: kind as u8, _pad: [0; 2], flags: 0, tag }
    }

    /// Splits a message of such a kind after its header.
    ///
    /// # Errors
    /// `Internal` for one that is too short.
    pub(crate) fn split(message: &[u8]) -> Result<(AmHeader, &[u8])> {
        match message.split_at_checked(size_of::<AmHeader>()) {
            Some((header, record)) => Ok((bytemuck::pod_read_unaligned(header), record)),
            None => fail!(Internal, "an active message of {} bytes", message.len()),
        }
    }
}

/// Where all headers have their flags, and the one flag: all credits are to come back when the
/// request is handled.
const FLAGS: usize = offset_of!(RequestHeader, flags);
const _: () = assert!(FLAGS == offset_of!(AmHeader, flags));
const ACK: u8 = 1;

/// Has an encoded request ask for all credits when it is handled.
pub(crate) fn ask_for_ack(message: &mut [u8]) {
    if let Some(flags) = message.get_mut(FLAGS) {
        *flags |= ACK;
    }
}

/// Whether a request asks for that.
pub(crate) fn asks_for_ack(message: &[u8]) -> bool {
    message.get(FLAGS).is_some_and(|flags| flags & ACK != 0)
}

/// A dimension on the wire; the other side is packed.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct WireDim {
    n: u64,
    stride: i64,
}

/// A block of a list: where it lies at the target, and how long it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct WireBlock {
    /// Address in the target's space.
    pub address: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Reads `n` blocks from the front of a message's body; returns them and the
/// rest.
///
/// # Errors
/// `Internal` where the message is too short for them.
pub fn blocks(body: &[u8], n: u64) -> Result<(Vec<WireBlock>, &[u8])> {
    let len = usize::try_from(n).ok().and_then(|n| n.checked_mul(size_of::<WireBlock>()));
    let Some((list, rest)) = len.and_then(|len| body.split_at_checked(len)) else {
        fail!(Internal, "a message ends inside its list of {n} blocks");
    };
    let list =
        list.chunks_exact(size_of::<WireBlock>()).map(bytemuck::pod_read_unaligned).collect();
    Ok((list, rest))
}

/// Longest header with its shape.
pub const MAX_HEAD: usize =
    size_of::<RequestHeader>() + crate::layout::MAX_LEVELS * size_of::<WireDim>();

impl RequestHeader {
    /// A header without shape and operands.
    pub fn new(kind: RequestKind, address: usize) -> RequestHeader {
        RequestHeader {
            kind: kind as u8,
            element: 0,
            levels: 0,
            flags: 0,
            tag: 0,
            address: address as u64,
            block: 0,
            operand: [0; 3],
        }
    }

    /// What the message asks for.
    pub fn kind(&self) -> Result<RequestKind> {
        match RequestKind::from_raw(self.kind) {
            Some(kind) => Ok(kind),
            None => fail!(Internal, "a message of unknown kind {}", self.kind),
        }
    }

    /// Adds an accumulate's type and scale.
    pub fn with_scale(mut self, scale: Scale) -> RequestHeader {
        let (element, operand) = match scale {
            Scale::Int(s) => (0, [s as u32 as u64, 0]),
            Scale::Long(s) => (1, [s as u64, 0]),
            Scale::Float(s) => (2, [u64::from(s.to_bits()), 0]),
            Scale::Double(s) => (3, [s.to_bits(), 0]),
            Scale::FloatComplex(s) => (4, [s.re.to_bits().into(), s.im.to_bits().into()]),
            Scale::DoubleComplex(s) => (5, [s.re.to_bits(), s.im.to_bits()]),
        };
        self.element = element;
        self.operand[..2].copy_from_slice(&operand);
        self
    }

    /// An accumulate's type and scale.
    pub fn scale(&self) -> Result<Scale> {
        let [a, b, _] = self.operand;
        Ok(match self.element {
            0 => Scale::Int(a as u32 as i32),
            1 => Scale::Long(a as i64),
            2 => Scale::Float(f32::from_bits(a as u32)),
            3 => Scale::Double(f64::from_bits(a)),
            4 => Scale::FloatComplex(Complex::new(
                f32::from_bits(a as u32),
                f32::from_bits(b as u32),
            )),
            5 => Scale::DoubleComplex(Complex::new(f64::from_bits(a), f64::from_bits(b))),
            e => fail!(Internal, "an accumulate of unknown type {e}"),
        })
    }

    /// Adds a read-modify-write's operation and operand.
    pub fn with_rmw(mut self, op: Rmw) -> RequestHeader {
        let (element, value) = match op {
            Rmw::AddInt(v) => (0, i64::from(v)),
            Rmw::AddLong(v) => (1, v),
            Rmw::SwapInt(v) => (2, i64::from(v)),
            Rmw::SwapLong(v) => (3, v),
        };
        self.element = element;
        self.operand[0] = value as u64;
        self
    }

    /// A read-modify-write's operation and operand.
    pub fn rmw(&self) -> Result<Rmw> {
        let v = self.operand[0] as i64;
        Ok(match self.element {
            0 => Rmw::AddInt(v as i32),
            1 => Rmw::AddLong(v),
            2 => Rmw::SwapInt(v as i32),
            3 => Rmw::SwapLong(v),
            e => fail!(Internal, "a read-modify-write of unknown kind {e}"),
        })
    }
}

/// Appends a header and the remote side of a shape to `out`.
pub fn encode(mut header: RequestHeader, shape: &Shape, out: &mut Vec<u8>) {
    header.levels = shape.dims().len() as u8;
    header.block = shape.block() as u64;
    out.extend_from_slice(bytemuck::bytes_of(&header));
    for d in shape.dims() {
        let dim = WireDim { n: d.n as u64, stride: d.remote as i64 };
        out.extend_from_slice(bytemuck::bytes_of(&dim));
    }
}

/// Bytes that [`encode`] appends.
pub fn head_len(shape: &Shape) -> usize {
    size_of::<RequestHeader>()
        + std::mem::size_of_val(shape.dims()) / size_of::<Dim>() * size_of::<WireDim>()
}

/// Reads a message: the header, the shape with its local side packed, and the
/// payload.
///
/// # Errors
/// `Internal` for a message that is too short or makes no sense.
pub fn decode(message: &[u8]) -> Result<(RequestHeader, Shape, &[u8])> {
    let Some((head, mut rest)) = message.split_at_checked(size_of::<RequestHeader>()) else {
        fail!(Internal, "a message of {} bytes is shorter than its header", message.len());
    };
    let header: RequestHeader = bytemuck::pod_read_unaligned(head);
    if header.levels == 0 && isize::try_from(header.block).is_ok() {
        return Ok((header, Shape::contiguous(header.block as usize), rest));
    }
    let mut counts = vec![header.block as usize];
    let (mut local, mut remote) = (Vec::new(), Vec::new());
    let mut row = header.block as isize;
    for _ in 0..header.levels {
        let Some((dim, after)) = rest.split_at_checked(size_of::<WireDim>()) else {
            fail!(Internal, "a message ends inside its shape");
        };
        let dim: WireDim = bytemuck::pod_read_unaligned(dim);
        counts.push(dim.n as usize);
        local.push(row);
        remote.push(dim.stride as isize);
        row = row.saturating_mul(dim.n as isize);
        rest = after;
    }
    let shape = Shape::strided(&counts, &local, &remote)?;
    Ok((header, shape, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_survive_the_wire() {
        let shape = Shape::strided(&[8, 3, 5], &[16, 100], &[24, -200]).unwrap();
        let mut out = Vec::new();
        let header = RequestHeader::new(RequestKind::Put, 0x1234).with_scale(Scale::Float(1.5));
        encode(header, &shape, &mut out);
        assert_eq!(out.len(), head_len(&shape));
        out.extend_from_slice(b"payload");
        let (h, s, payload) = decode(&out).unwrap();
        assert_eq!(h.kind().unwrap(), RequestKind::Put);
        assert_eq!(h.scale().unwrap(), Scale::Float(1.5));
        assert_eq!(h.address, 0x1234);
        assert_eq!(s, shape.packed_local());
        assert_eq!(payload, b"payload");
    }

    #[test]
    fn operands_survive_the_wire() {
        for op in [Rmw::AddInt(-3), Rmw::AddLong(i64::MIN), Rmw::SwapInt(7), Rmw::SwapLong(-1)] {
            assert_eq!(RequestHeader::new(RequestKind::Rmw, 0).with_rmw(op).rmw().unwrap(), op);
        }
        let scale = Scale::DoubleComplex(Complex::new(-0.5, 2.0));
        assert_eq!(
            RequestHeader::new(RequestKind::Accumulate, 0).with_scale(scale).scale().unwrap(),
            scale
        );
        let scale = Scale::Int(-9);
        assert_eq!(
            RequestHeader::new(RequestKind::Accumulate, 0).with_scale(scale).scale().unwrap(),
            scale
        );
    }

    #[test]
    fn lists_of_blocks_are_checked() {
        let list = [WireBlock { address: 64, bytes: 8 }, WireBlock { address: 0, bytes: 16 }];
        let mut body = bytemuck::cast_slice::<_, u8>(&list).to_vec();
        body.push(7);
        let (read, rest) = blocks(&body, 2).unwrap();
        assert_eq!(read, list);
        assert_eq!(rest, [7]);
        assert!(blocks(&body, 3).is_err());
        assert!(blocks(&body, u64::MAX).is_err());
    }

    #[test]
    fn damaged_messages_are_refused() {
        assert!(decode(&[1, 2, 3]).is_err());
        let mut header = RequestHeader::new(RequestKind::Put, 0);
        header.levels = 3;
        header.block = 8;
        assert!(decode(bytemuck::bytes_of(&header)).is_err());
        header.kind = 99;
        assert!(header.kind().is_err());
    }
}
