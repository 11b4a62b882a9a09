//! The encoding of requests. A message consists of a [`RequestHeader`], a record for each dimension
//! of the shape, the list of blocks (vector requests only), and the payload. All ranks run the same
//! build, so numbers are sent in their memory representation. Lengths are checked nevertheless.

use crate::core::peer::Weight;
use crate::memory::runs::{self, Run};
use crate::path::batch::NearBlock;
use crate::path::kernel::Scale;
use crate::path::ops::Rmw;
use bytemuck::checked;
use num_complex::Complex;
use portolan_base::error::{Result, fail};
use portolan_base::layout::{Dim, Shape};
use portolan_base::trace;
use std::mem::{offset_of, size_of};

#[derive(Debug, Clone, Copy, PartialEq, Eq, bytemuck::CheckedBitPattern)]
#[repr(u8)]
pub enum RequestKind {
    Put = 1,
    /// Stores bytes that follow in a separate message, received in place.
    PutRndv = 2,
    Accumulate = 3,
    Get = 4,
    Rmw = 5,
    /// Does nothing. Its flag asks for all credits (`ask_for_ack`).
    FlushReq = 6,
    /// Returns credits: the number of requests and of bytes handled so far.
    CreditAck = 7,
    Lock = 8,
    TryLock = 9,
    Unlock = 10,
    /// The sender's lock request was granted, or its predecessor has released.
    LockGrant = 11,
    PutBlocks = 12,
    AccumulateBlocks = 13,
    GetBlocks = 14,
    AmEager = 15,
    /// An active message whose data follows.
    AmRts = 16,
    AmControl = 17,
    /// Announces a request that is longer than a posted receive and follows on the data channel.
    Announce = 18,
    /// The sender no longer waits for a mutex.
    LockWithdrawal = 19,
}

impl RequestKind {
    pub const COUNT: usize = RequestKind::LockWithdrawal as usize + 1;

    /// `None` for answers, and for active messages, whose handlers are recorded instead.
    pub(super) fn traced_as(self) -> Option<trace::Served> {
        use RequestKind::*;
        Some(match self {
            Put | PutRndv | PutBlocks => trace::Served::Put,
            Get | GetBlocks => trace::Served::Get,
            Accumulate | AccumulateBlocks => trace::Served::Acc,
            Rmw => trace::Served::Rmw,
            Lock | TryLock | Unlock | LockWithdrawal => trace::Served::Lock,
            FlushReq => trace::Served::Fence,
            CreditAck | LockGrant | AmEager | AmRts | AmControl | Announce => {
                return None;
            }
        })
    }

    /// Fails with `Internal` if the kind is missing or unknown.
    #[inline]
    pub fn of(message: &[u8]) -> Result<RequestKind> {
        match message.first().map(|&raw| checked::try_cast(raw)) {
            Some(Ok(kind)) => Ok(kind),
            _ => fail!(Internal, "a message of {} bytes has no kind", message.len()),
        }
    }

    pub fn weight(self) -> Weight {
        match self {
            RequestKind::FlushReq => Weight::Flush,
            RequestKind::Lock
            | RequestKind::TryLock
            | RequestKind::Unlock
            | RequestKind::LockWithdrawal
            | RequestKind::Rmw => Weight::Bare,
            _ => Weight::Data,
        }
    }

    /// Counted requests need credit, and fences wait for them.
    pub fn is_counted(self) -> bool {
        !matches!(
            self,
            RequestKind::CreditAck
                | RequestKind::LockGrant
                | RequestKind::AmControl
                | RequestKind::Announce
        )
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct RequestHeader {
    kind: u8,
    /// Element type of an accumulate, or kind of a read-modify-write.
    element: u8,
    levels: u8,
    flags: u8,
    /// Of the answer, or of the data that follows.
    pub tag: u32,
    pub address: u64,
    /// Length in bytes of the shape's block, or of all bytes without a shape.
    pub block: u64,
    /// The scale, a number, counts, the name of a mutex, a number to increment, or the length of the
    /// parts of an answer.
    pub operand: [u64; 3],
}

/// The fixed part of an active message. The record follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(crate) struct AmHeader {
    kind: u8,
    _pad: [u8; 2],
    flags: u8,
    pub tag: u32,
}

impl AmHeader {
    pub fn new(kind: RequestKind, tag: u32) -> AmHeader {
        AmHeader { kind: kind as u8, _pad: [0; 2], flags: 0, tag }
    }

    /// Splits into header and record. Fails with `Internal` if the message is too short.
    pub fn split(message: &[u8]) -> Result<(AmHeader, &[u8])> {
        match message.split_at_checked(size_of::<AmHeader>()) {
            Some((header, record)) => Ok((bytemuck::pod_read_unaligned(header), record)),
            None => fail!(Internal, "an active message of {} bytes", message.len()),
        }
    }
}

const FLAGS: usize = offset_of!(RequestHeader, flags);
const _: () = assert!(FLAGS == offset_of!(AmHeader, flags));
/// The target returns all credits when it has handled the request.
const ACK: u8 = 1;

pub(crate) fn ask_for_ack(message: &mut [u8]) {
    if let Some(flags) = message.get_mut(FLAGS) {
        *flags |= ACK;
    }
}

pub(crate) fn asks_for_ack(message: &[u8]) -> bool {
    message.get(FLAGS).is_some_and(|flags| flags & ACK != 0)
}

/// A dimension at the target. The other side is packed.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct WireDim {
    n: u64,
    stride: i64,
}

/// In bytes, with the shape.
pub const MAX_HEAD: usize =
    size_of::<RequestHeader>() + portolan_base::layout::MAX_LEVELS * size_of::<WireDim>();

impl RequestHeader {
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

    pub fn with_scale(mut self, scale: Scale) -> RequestHeader {
        let (element, operand) = match scale {
            Scale::Int(s) => (0, [s as u32 as u64, 0]),
            Scale::Long(s) => (1, [s as u64, 0]),
            Scale::Float(s) => (2, [u64::from(s.to_bits()), 0]),
            Scale::Double(s) => (3, [s.to_bits(), 0]),
            Scale::FloatComplex(s) => (4, [s.re.to_bits().into(), s.im.to_bits().into()]),
            Scale::DoubleComplex(s) => (5, [s.re.to_bits(), s.im.to_bits()]),
            Scale::Bool(s) => (6, [u64::from(s), 0]),
            Scale::Byte(s) => (7, [s as u8 as u64, 0]),
            Scale::Short(s) => (8, [s as u16 as u64, 0]),
        };
        self.element = element;
        self.operand[..2].copy_from_slice(&operand);
        self
    }

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
            6 => Scale::Bool(a != 0),
            7 => Scale::Byte(a as u8 as i8),
            8 => Scale::Short(a as u16 as i16),
            e => fail!(Internal, "an accumulate of unknown type {e}"),
        })
    }

    /// Makes the target of a put increment the `int` at `address` after the bytes.
    pub fn then_increment(mut self, address: Option<usize>) -> RequestHeader {
        if let Some(address) = address {
            self.operand[0] = address as u64;
        }
        self
    }

    pub fn with_rmw(mut self, op: Rmw) -> RequestHeader {
        let (kind, operands) = op.encode();
        self.element = kind;
        self.operand[..2].copy_from_slice(&operands);
        self
    }

    pub fn rmw(&self) -> Result<Rmw> {
        let [value, expected, _] = self.operand;
        match Rmw::decode(self.element, [value, expected]) {
            Some(op) => Ok(op),
            None => fail!(Internal, "a read-modify-write of unknown kind {}", self.element),
        }
    }
}

#[inline]
pub fn encode(mut header: RequestHeader, shape: &Shape, out: &mut Vec<u8>) {
    header.levels = shape.dims().len() as u8;
    header.block = shape.block() as u64;
    out.extend_from_slice(bytemuck::bytes_of(&header));
    for d in shape.dims() {
        let dim = WireDim { n: d.n as u64, stride: d.remote as i64 };
        out.extend_from_slice(bytemuck::bytes_of(&dim));
    }
}

pub fn head_len(shape: &Shape) -> usize {
    size_of::<RequestHeader>()
        + std::mem::size_of_val(shape.dims()) / size_of::<Dim>() * size_of::<WireDim>()
}

pub(super) fn moved_bytes(kind: RequestKind, message: &[u8]) -> usize {
    let Ok((header, shape, body)) = decode(message) else { return 0 };
    match kind {
        RequestKind::Put | RequestKind::Get | RequestKind::Accumulate => shape.bytes(),
        RequestKind::PutRndv => header.operand[0] as usize,
        RequestKind::PutBlocks | RequestKind::GetBlocks | RequestKind::AccumulateBlocks => {
            blocks(&header, body).map_or(0, |(_, total, _)| total)
        }
        RequestKind::Rmw => header.rmw().map_or(0, |op| op.size()),
        _ => 0,
    }
}

/// Returns the blocks that a request lists, their total length in bytes, and the payload. Fails as
/// [`runs::list`].
pub(super) fn blocks<'a>(
    header: &RequestHeader,
    body: &'a [u8],
) -> Result<(Vec<Run>, usize, &'a [u8])> {
    runs::list_of(body, header.operand[2], |block: NearBlock| Run {
        address: (header.address as usize).wrapping_add_signed(block.offset as isize),
        len: block.len as usize,
    })
}

/// Decodes a message into the header, the shape with a packed local side, and the payload. Fails
/// with `Internal` if the message is too short, or with the error of [`Shape::strided`].
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
    fn served_bytes_are_those_that_move() {
        let shape = Shape::strided(&[8, 3], &[8], &[24]).unwrap();
        let message = |header: RequestHeader| {
            let mut out = Vec::new();
            encode(header, &shape, &mut out);
            moved_bytes(RequestKind::of(&out).unwrap(), &out)
        };
        let of = |kind| RequestHeader::new(kind, 64);
        assert_eq!((message(of(RequestKind::Get)), message(of(RequestKind::Put))), (24, 24));
        assert_eq!(message(of(RequestKind::Rmw).with_rmw(Rmw::add(3i32))), 4);
        assert_eq!(message(of(RequestKind::FlushReq)), 0);
        assert_eq!(moved_bytes(RequestKind::Get, &[1, 2]), 0);
    }

    #[test]
    fn operands_survive_the_wire() {
        for op in [Rmw::add(-3), Rmw::swap(u64::MAX), Rmw::compare_swap(i64::MIN, 7)] {
            assert_eq!(RequestHeader::new(RequestKind::Rmw, 0).with_rmw(op).rmw().unwrap(), op);
        }
        let pair = Scale::DoubleComplex(Complex::new(-0.5, 2.0));
        for scale in [pair, Scale::Bool(true), Scale::Byte(-9), Scale::Short(-9), Scale::Int(-9)] {
            let header = RequestHeader::new(RequestKind::Accumulate, 0).with_scale(scale);
            assert_eq!(header.scale().unwrap(), scale);
        }
    }

    #[test]
    fn lists_of_blocks_are_checked() {
        let mut header = RequestHeader::new(RequestKind::PutBlocks, 4096);
        header.operand[2] = 2;
        let list = [NearBlock { offset: 0, len: 1 }, NearBlock { offset: -96, len: 2 }];
        let mut body = bytemuck::cast_slice(&list).to_vec();
        body.extend_from_slice(b"abc");
        let (read, total, payload) = blocks(&header, &body).unwrap();
        let places = read.iter().map(|run| (run.address, run.len)).collect::<Vec<_>>();
        assert_eq!((places, total, payload), (vec![(4096, 1), (4000, 2)], 3, &b"abc"[..]));
        for n in [3, u64::MAX] {
            header.operand[2] = n;
            assert!(blocks(&header, &body).is_err());
        }
    }
}
