//! Descriptions of operations, independent of the path.

use super::kernel::Scale;
use portolan_base::layout::Shape;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TransferKind {
    Put,
    Get,
    Accumulate(Scale),
}

impl TransferKind {
    /// Returns the unit in bytes, of which lengths must be multiples.
    pub fn unit(self) -> usize {
        match self {
            TransferKind::Put | TransferKind::Get => 1,
            TransferKind::Accumulate(scale) => scale.element(),
        }
    }
}

/// A transfer along a shape.
#[derive(Debug, Clone, Copy)]
pub struct Transfer<'a> {
    pub kind: TransferKind,
    /// World rank.
    pub target: usize,
    pub remote: usize,
    pub local: *mut u8,
    pub shape: &'a Shape,
}

impl<'a> Transfer<'a> {
    pub fn new(
        kind: TransferKind,
        target: usize,
        remote: usize,
        local: *mut u8,
        shape: &'a Shape,
    ) -> Transfer<'a> {
        Transfer { kind, target, remote, local, shape }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number {
    /// A 32-bit number is extended by its highest bit, signed or not. This keeps the order of both.
    value: i64,
    wide: bool,
    signed: bool,
}

macro_rules! numbers {
    ($($ty:ty: $bits:ty, $wide:literal, $signed:literal;)+) => {
        $(impl From<$ty> for Number {
            #[inline]
            fn from(value: $ty) -> Number {
                Number { value: (value as $bits).into(), wide: $wide, signed: $signed }
            }
        })+
    };
}

numbers! {
    i32: i32, false, true;
    u32: i32, false, false;
    i64: i64, true, true;
    u64: i64, true, false;
}

impl Number {
    /// A 32-bit number is extended by its highest bit.
    #[inline]
    pub fn value(self) -> i64 {
        self.value
    }

    #[inline]
    pub fn is_wide(self) -> bool {
        self.wide
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, bytemuck::CheckedBitPattern)]
#[repr(u8)]
pub enum Combine {
    Load = 0,
    Swap = 1,
    /// Wraps around.
    Add = 2,
    And = 3,
    Or = 4,
    Xor = 5,
    Min = 6,
    Max = 7,
    CompareSwap = 8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rmw {
    combine: Combine,
    operand: Number,
    /// For [`Combine::CompareSwap`].
    expected: i64,
}

impl Rmw {
    #[inline]
    pub fn new(combine: Combine, operand: impl Into<Number>) -> Rmw {
        Rmw { combine, operand: operand.into(), expected: 0 }
    }

    #[inline]
    pub fn load<N: Into<Number> + Default>() -> Rmw {
        Rmw::new(Combine::Load, N::default())
    }

    #[inline]
    pub fn add<N: Into<Number>>(operand: N) -> Rmw {
        Rmw::new(Combine::Add, operand)
    }

    #[inline]
    pub fn swap<N: Into<Number>>(new: N) -> Rmw {
        Rmw::new(Combine::Swap, new)
    }

    #[inline]
    pub fn compare_swap<N: Into<Number>>(expected: N, new: N) -> Rmw {
        Rmw { expected: expected.into().value, ..Rmw::new(Combine::CompareSwap, new) }
    }

    #[inline]
    pub fn size(self) -> usize {
        if self.operand.wide { 8 } else { 4 }
    }

    #[inline]
    pub fn combine(self) -> Combine {
        self.combine
    }

    #[inline]
    pub fn operand(self) -> Number {
        self.operand
    }

    /// Returns the operation with another operand, truncated to the number's size.
    pub(crate) fn with_value(self, value: i64) -> Rmw {
        let value = if self.operand.wide { value } else { i64::from(value as i32) };
        Rmw { operand: Number { value, ..self.operand }, ..self }
    }

    /// Returns the new number, to be truncated to the size of the number.
    #[inline]
    pub fn apply(self, old: i64) -> i64 {
        let Number { value, signed, .. } = self.operand;
        match self.combine {
            Combine::Load => old,
            Combine::Swap => value,
            Combine::Add => old.wrapping_add(value),
            Combine::And => old & value,
            Combine::Or => old | value,
            Combine::Xor => old ^ value,
            Combine::Min if signed => old.min(value),
            Combine::Min => (old as u64).min(value as u64) as i64,
            Combine::Max if signed => old.max(value),
            Combine::Max => (old as u64).max(value as u64) as i64,
            Combine::CompareSwap if old == self.expected => value,
            Combine::CompareSwap => old,
        }
    }

    /// Returns the kind, the operand, and the expected value.
    pub(crate) fn encode(self) -> (u8, [u64; 2]) {
        let flags = u8::from(self.operand.wide) << 4 | u8::from(self.operand.signed) << 5;
        (self.combine as u8 | flags, [self.operand.value as u64, self.expected as u64])
    }

    pub(crate) fn decode(kind: u8, [value, expected]: [u64; 2]) -> Option<Rmw> {
        let (wide, signed) = (kind & 1 << 4 != 0, kind & 1 << 5 != 0);
        let combine = bytemuck::checked::try_cast(kind & !(3 << 4)).ok()?;
        let operand = Number { value: 0, wide, signed };
        let op = Rmw { combine, operand, expected: expected as i64 };
        Some(op.with_value(value as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(op: Rmw, old: u32) -> u32 {
        op.apply(i64::from(old as i32)) as u32
    }

    #[test]
    fn numbers_are_combined_in_their_own_type() {
        let big = 1u32 << 31;
        assert_eq!(small(Rmw::add(big), big), 0);
        assert_eq!(small(Rmw::swap(7u32), big), 7);
        assert_eq!(small(Rmw::load::<u32>(), big), big);
        assert_eq!(small(Rmw::new(Combine::Min, 5u32), big), 5);
        assert_eq!(small(Rmw::new(Combine::Max, 5u32), big), big);
        assert_eq!(small(Rmw::new(Combine::Min, 5i32), big), big);
        assert_eq!(small(Rmw::new(Combine::Max, 5i32), big), 5);
        assert_eq!(small(Rmw::new(Combine::Xor, u32::MAX), 5), !5);
        assert_eq!(small(Rmw::compare_swap(big, 1), big), 1);
        assert_eq!(small(Rmw::compare_swap(big + 1, 1), big), big);
        let (low, high) = (3u64, u64::MAX - 1);
        assert_eq!(Rmw::new(Combine::Min, high).apply(low as i64) as u64, low);
        assert_eq!(Rmw::new(Combine::Max, high).apply(low as i64) as u64, high);
        assert_eq!(Rmw::new(Combine::Max, high as i64).apply(low as i64) as u64, low);
        assert_eq!(Rmw::new(Combine::And, 6i64).apply(-3), 4);
        assert_eq!(Rmw::new(Combine::Or, 6i64).apply(-8), -2);
    }

    #[test]
    fn operations_survive_their_encoding() {
        for combine in (0u8..9).map(bytemuck::checked::cast::<u8, Combine>) {
            for operand in [(-3i32).into(), 9u32.into(), i64::MIN.into(), Number::from(u64::MAX)] {
                let op = Rmw { combine, operand, expected: -1 };
                let (kind, operands) = op.encode();
                assert_eq!(Rmw::decode(kind, operands), Some(op));
            }
        }
        for kind in [9, 15, 1 << 6, 1 << 7] {
            assert_eq!(Rmw::decode(kind, [0; 2]), None);
        }
    }
}
