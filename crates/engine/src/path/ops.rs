//! Descriptions of operations, independent of the path.

use super::kernel::Scale;
use bytemuck::{Pod, Zeroable};

/// The kind of a transfer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TransferKind {
    /// Stores local bytes at the target.
    Put,
    /// Loads bytes from the target.
    Get,
    /// Adds scaled local elements to the elements of the target.
    Accumulate(Scale),
}

impl TransferKind {
    /// Returns the unit in bytes: lengths must be multiples of it.
    pub fn unit(self) -> usize {
        match self {
            TransferKind::Put | TransferKind::Get => 1,
            TransferKind::Accumulate(scale) => scale.element(),
        }
    }
}

/// A read-modify-write operation with its operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rmw {
    /// Adds to a 32-bit integer, with wrap-around.
    AddInt(i32),
    /// Adds to a 64-bit integer, with wrap-around.
    AddLong(i64),
    /// Replaces a 32-bit integer.
    SwapInt(i32),
    /// Replaces a 64-bit integer.
    SwapLong(i64),
}

impl Rmw {
    /// Returns the size of the number in bytes.
    #[inline]
    pub fn size(self) -> usize {
        match self {
            Rmw::AddInt(_) | Rmw::SwapInt(_) => 4,
            Rmw::AddLong(_) | Rmw::SwapLong(_) => 8,
        }
    }

    /// Returns whether the operation is an addition.
    pub fn adds(self) -> bool {
        matches!(self, Rmw::AddInt(_) | Rmw::AddLong(_))
    }

    /// Returns the operand.
    pub fn value(self) -> i64 {
        match self {
            Rmw::AddInt(v) | Rmw::SwapInt(v) => v.into(),
            Rmw::AddLong(v) | Rmw::SwapLong(v) => v,
        }
    }

    /// Returns the operation with another operand, truncated to the size of the number.
    pub(crate) fn with_value(self, value: i64) -> Rmw {
        match self {
            Rmw::AddInt(_) => Rmw::AddInt(value as i32),
            Rmw::AddLong(_) => Rmw::AddLong(value),
            Rmw::SwapInt(_) => Rmw::SwapInt(value as i32),
            Rmw::SwapLong(_) => Rmw::SwapLong(value),
        }
    }
}

/// A contiguous run of bytes to move: its addresses at this rank and at the other rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Span {
    /// Address in the calling process.
    pub local: usize,
    /// Address in the process of the other rank.
    pub remote: usize,
    /// Length in bytes.
    pub bytes: usize,
}

impl Span {
    /// Returns the span as the other rank sees it, with the two addresses swapped.
    pub fn turned(self) -> Span {
        Span { local: self.remote, remote: self.local, ..self }
    }
}
