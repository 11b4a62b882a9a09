//! What an operation is, in the words that every path understands.

use super::kernel::Scale;
use bytemuck::{Pod, Zeroable};

/// What a transfer does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TransferKind {
    /// Store local bytes at the target.
    Put,
    /// Load bytes of the target.
    Get,
    /// Add scaled local elements to the target's.
    Accumulate(Scale),
}

impl TransferKind {
    /// What lengths must be multiples of.
    pub fn unit(self) -> usize {
        match self {
            TransferKind::Put | TransferKind::Get => 1,
            TransferKind::Accumulate(scale) => scale.element(),
        }
    }
}

/// An operation and its operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rmw {
    /// Add to a 32-bit integer; it wraps.
    AddInt(i32),
    /// Add to a 64-bit integer; it wraps.
    AddLong(i64),
    /// Replace a 32-bit integer.
    SwapInt(i32),
    /// Replace a 64-bit integer.
    SwapLong(i64),
}

impl Rmw {
    /// Bytes of the number.
    #[inline]
    pub fn size(self) -> usize {
        match self {
            Rmw::AddInt(_) | Rmw::SwapInt(_) => 4,
            Rmw::AddLong(_) | Rmw::SwapLong(_) => 8,
        }
    }

    /// Whether it adds.
    pub(crate) fn adds(self) -> bool {
        matches!(self, Rmw::AddInt(_) | Rmw::AddLong(_))
    }

    /// Its operand.
    pub(crate) fn value(self) -> i64 {
        match self {
            Rmw::AddInt(v) | Rmw::SwapInt(v) => v.into(),
            Rmw::AddLong(v) | Rmw::SwapLong(v) => v,
        }
    }

    /// The same with another operand, of which the number's bits are taken.
    pub(crate) fn with_value(self, value: i64) -> Rmw {
        match self {
            Rmw::AddInt(_) => Rmw::AddInt(value as i32),
            Rmw::AddLong(_) => Rmw::AddLong(value),
            Rmw::SwapInt(_) => Rmw::SwapInt(value as i32),
            Rmw::SwapLong(_) => Rmw::SwapLong(value),
        }
    }
}

/// A run of bytes to move: where it lies here and at the other rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Span {
    /// Address in the calling process.
    pub local: usize,
    /// Address in the other rank's process.
    pub remote: usize,
    /// Bytes.
    pub bytes: usize,
}

impl Span {
    /// As the other rank sees it.
    pub fn turned(self) -> Span {
        Span { local: self.remote, remote: self.local, ..self }
    }
}
