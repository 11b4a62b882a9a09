//! The description of a collective call, which ranks compare.
//!
//! Each collective has a [`Signature`], part of the word or message header that the ranks exchange
//! anyway ([`super::shared_area`], [`super::message_group`]). Two different signatures mean an
//! error in the program. Its message describes the call of each rank ([`Call::describe`]).
//!
//! A signature covers all scopes (`super::scope`) of the caller: two calls with the same outer
//! scope are equal only if the calls in it are.

use super::Operator;
use super::kind::Kind;
use super::scope::{self, DETAILED, Level};
use num_complex::Complex;
use portolan_base::config::agreed::listed;

/// Maximum length in bytes of the text of a [`Detail`].
const TEXT: usize = 156;

/// Each rank chooses its own number of elements.
pub(crate) const ANY_COUNT: usize = usize::MAX;

/// A number, and the size in bytes of a type longer than [`ElementType::MAX_NUMBERED`], or 0. Values of
/// a type that is too long for a signature count as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElementType(u8, usize);

impl ElementType {
    const NAMES: [&str; 16] = [
        "",
        "bytes",
        "i8",
        "u8",
        "i16",
        "u16",
        "i32",
        "u32",
        "i64",
        "u64",
        "f32",
        "f64",
        "Complex<f32>",
        "Complex<f64>",
        "isize",
        "usize",
    ];
    /// The number of an unnamed type of 0 bytes. Those of longer types follow.
    const UNNAMED: u8 = Self::NAMES.len() as u8;
    /// Bytes of the longest type with its own number. Counts of longer ones include their size.
    const MAX_NUMBERED: usize = 238;
    /// Bits of the number of elements of a longer type. The others are for the size.
    const COUNT_BITS: u32 = 36;

    pub const BYTES: ElementType = ElementType(1, 0);

    /// Types without a name here are distinguished by their size.
    pub fn of<T: 'static>() -> ElementType {
        use std::any::TypeId;
        let id = TypeId::of::<T>();
        macro_rules! among {
            ($($ty:ty = $number:literal),+) => {
                $(if id == TypeId::of::<$ty>() { return ElementType($number, 0); })+
            };
        }
        among!(
            i8 = 2,
            u8 = 3,
            i16 = 4,
            u16 = 5,
            i32 = 6,
            u32 = 7,
            i64 = 8,
            u64 = 9,
            f32 = 10,
            f64 = 11,
            Complex<f32> = 12,
            Complex<f64> = 13,
            isize = 14,
            usize = 15
        );
        match size_of::<T>() {
            size @ 0..=Self::MAX_NUMBERED => ElementType(Self::UNNAMED + size as u8, 0),
            size => ElementType(u8::MAX, size),
        }
    }

    /// Returns the number of the type and the count, as a signature contains them.
    #[inline]
    fn counted(self, count: usize) -> (u8, u64) {
        let limit = (1 << Self::COUNT_BITS) - 1;
        match self.1 {
            0 => (self.0, count as u64),
            size if size >> (u64::BITS - Self::COUNT_BITS) != 0 => {
                (Self::BYTES.0, size.saturating_mul(count) as u64)
            }
            size => (self.0, (size as u64) << Self::COUNT_BITS | (count as u64).min(limit)),
        }
    }

    fn describe(number: u8, counted: u64) -> String {
        let limit = (1 << Self::COUNT_BITS) - 1;
        let (count, any, size) = match number {
            u8::MAX => (counted & limit, limit, counted >> Self::COUNT_BITS),
            _ => (counted, ANY_COUNT as u64, u64::from(number.saturating_sub(Self::UNNAMED))),
        };
        let count = if count == any { "any".into() } else { count.to_string() };
        match Self::NAMES.get(usize::from(number)) {
            Some(name) => format!("{count} {name}"),
            None => format!("{count} elements of {size} bytes"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(crate) struct Signature {
    /// The [`Kind`] of the outermost public call (`Plain` without one), and [`DETAILED`].
    scope: u8,
    exchange: u8,
    element: u8,
    /// The operator + 1, or 0.
    operator: u8,
    /// The root + 1, or 0.
    root: u32,
    count: u64,
    /// The number of the object, or with [`DETAILED`] the digest of the levels.
    object: u64,
}

impl Signature {
    #[inline]
    pub(crate) fn here(exchange: Kind) -> Signature {
        let (scope, object) = scope::current();
        Signature {
            scope,
            exchange: exchange as u8,
            element: 0,
            operator: 0,
            root: 0,
            count: 0,
            object,
        }
    }

    /// Adds the levels of the caller's scope. Every signature that ranks compare has them. `key` is
    /// the same on all ranks.
    #[inline]
    pub(super) fn in_scope(self, key: u64) -> Signature {
        if self.is_detailed() { self.with_levels(key) } else { self }
    }

    #[cold]
    fn with_levels(mut self, key: u64) -> Signature {
        self.object = scope::digest_of_levels(key);
        self
    }

    #[inline]
    pub fn of(mut self, element: ElementType, count: usize) -> Signature {
        (self.element, self.count) = element.counted(count);
        self
    }

    #[inline]
    pub(crate) fn by(mut self, operator: Operator) -> Signature {
        self.operator = operator as u8 + 1;
        self
    }

    #[inline]
    pub(crate) fn rooted(mut self, root: usize) -> Signature {
        self.root = root as u32 + 1;
        self
    }

    #[inline]
    pub(super) fn is_detailed(&self) -> bool {
        self.scope & DETAILED != 0
    }

    /// A 48-bit digest. The secret prevents a program from choosing arguments with equal digests.
    /// It is part of a multiplier too: a sum or an exclusive or hides only the few bits that differ
    /// between two calls.
    #[inline]
    pub(super) fn digest(&self, secret: u64) -> u64 {
        let [a, b, c]: [u64; 3] = bytemuck::cast(*self);
        let mixed = (a ^ MULTIPLIERS[2] ^ secret)
            .wrapping_mul(MULTIPLIERS[0] ^ secret << 1)
            .rotate_left(29)
            .wrapping_add(b)
            .wrapping_mul(MULTIPLIERS[1])
            .rotate_left(31)
            .wrapping_add(c)
            .wrapping_mul(MULTIPLIERS[2]);
        mixed >> 16
    }
}

/// The multipliers of [`Signature::digest`]. Public for tests that look for equal digests.
pub const MULTIPLIERS: [u64; 3] =
    [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f, 0x1656_67b1_9e37_79f9];

/// The description of a scope with levels, abbreviated: what follows the name of the outermost one.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(super) struct Detail {
    /// Bytes of the text, and of its first part, about the outermost level.
    len: u16,
    outer: u16,
    text: [u8; TEXT],
}

/// Ends a text that was cut.
const MORE: &str = "...";

/// Cuts a text that is longer than `most` bytes, between two characters.
fn shorten(text: &mut String, most: usize) {
    if text.len() <= most {
        return;
    }
    let mut end = most.saturating_sub(MORE.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text.push_str(MORE);
}

/// Whether two texts are equal, as far as they were not cut.
fn may_be_equal(a: &str, b: &str) -> bool {
    let begins = |a: &str, b: &str| a.strip_suffix(MORE).is_some_and(|a| b.starts_with(a));
    a == b || begins(a, b) || begins(b, a)
}

impl Detail {
    pub(super) const NONE: Detail = Detail { len: 0, outer: 0, text: [0; TEXT] };

    /// A long text of the outermost level is cut so that the inner ones are complete, if possible.
    fn of(levels: &[Level]) -> Detail {
        let Some((outermost, inner)) = levels.split_first() else { return Detail::NONE };
        let inner = inner
            .iter()
            .map(|level| format!(", in its {}{}", Kind::name(level.kind), level.suffix()));
        let inner = inner.collect::<String>();
        let mut text = outermost.suffix();
        shorten(&mut text, TEXT.saturating_sub(inner.len()));
        let outer = text.len() as u16;
        text.push_str(&inner);
        shorten(&mut text, TEXT);
        let mut detail = Detail { len: text.len() as u16, outer, ..Detail::NONE };
        detail.text[..text.len()].copy_from_slice(text.as_bytes());
        detail
    }

    pub(super) fn here() -> Detail {
        scope::with_levels(Detail::of)
    }

    fn text(&self, complete: bool) -> std::borrow::Cow<'_, str> {
        let len = if complete { self.len } else { self.outer };
        String::from_utf8_lossy(&self.text[..usize::from(len).min(TEXT)])
    }
}

#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(super) struct Call {
    pub signature: Signature,
    pub detail: Detail,
}

impl Call {
    pub(super) fn here(signature: Signature) -> Call {
        let detail = if signature.is_detailed() { Detail::here() } else { Detail::NONE };
        Call { signature, detail }
    }

    fn describe_scope(&self, complete: bool) -> String {
        let own = &self.signature;
        let mut text = Kind::name(own.scope & !DETAILED).to_string();
        if own.is_detailed() {
            text.push_str(&self.detail.text(complete));
        } else if own.object != 0 {
            text.push_str(&format!(" (number {})", own.object));
        }
        text
    }

    /// For an error. Without `complete`, only the outermost public call is described, if any.
    /// `ranks` are the world ranks of the group.
    pub(super) fn describe(&self, complete: bool, ranks: &[usize]) -> String {
        let own = &self.signature;
        let mut text = String::new();
        if own.scope != Kind::Plain as u8 {
            text = self.describe_scope(complete);
            if !complete {
                return text;
            }
            text.push_str(", in its ");
        }
        text.push_str(Kind::name(own.exchange));
        if own.element != 0 {
            text.push_str(&format!(" of {}", ElementType::describe(own.element, own.count)));
        }
        if let Some(operator) = own.operator.checked_sub(1) {
            text.push_str(&format!(" ({})", Operator::name_of(operator)));
        }
        if let Some(root) = own.root.checked_sub(1) {
            let world = ranks.get(root as usize).copied().unwrap_or(root as usize);
            let gathers = own.operator != 0 || own.exchange == Kind::Gather as u8;
            let preposition = if gathers { "to" } else { "from" };
            text.push_str(&format!(" {preposition} rank {world}"));
        }
        text
    }
}

pub(super) fn differ(calls: &[(Vec<usize>, Call)], members: &[usize]) -> String {
    let first = calls[0].1.describe_scope(false);
    let same = calls.iter().all(|(_, call)| may_be_equal(&call.describe_scope(false), &first));
    let each = calls
        .iter()
        .map(|(ranks, call)| format!("{}: {}", listed(ranks), call.describe(same, members)));
    each.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{scope, scope_of};

    #[test]
    fn roots_and_differing_arrays_are_described() {
        let given = Signature::here(Kind::Broadcast).of(ElementType::of::<[u8; 24]>(), 3).rooted(1);
        let given = Call::here(given);
        assert_eq!(
            given.describe(true, &[4, 7]),
            "broadcast of 3 elements of 24 bytes from rank 7"
        );
        let (one, two) = (
            scope_of(Kind::CreateArray, "of shape [4, 4]", || {
                Call::here(Signature::here(Kind::Barrier))
            }),
            scope_of(Kind::CreateArray, "of shape [6, 4]", || {
                Call::here(Signature::here(Kind::Barrier))
            }),
        );
        assert_eq!(
            differ(&[(vec![0], one), (vec![1], two)], &[0, 1]),
            "rank 0: creation of an array of shape [4, 4]; rank 1: creation of an array of shape \
             [6, 4]"
        );
    }

    #[test]
    fn every_scope_counts() {
        let barrier = || Signature::here(Kind::Barrier).in_scope(7);
        let free = |number| move || scope(Kind::Free, number, barrier);
        let text = "x, in its free of a segment (number 7)";
        let calls = [
            barrier(),
            scope(Kind::Finalize, 0, barrier),
            scope(Kind::Finalize, 0, free(7)),
            scope(Kind::Finalize, 1, free(7)),
            scope(Kind::Finalize, 0, free(8)),
            scope(Kind::Finalize, 0, || scope(Kind::Free, 7, free(7))),
            scope_of(Kind::Described, "x", barrier),
            scope_of(Kind::Described, "x", free(7)),
            scope_of(Kind::Described, text, barrier),
            scope(Kind::Described, 0, || scope_of(Kind::Described, "x", barrier)),
        ];
        for (n, call) in calls.iter().enumerate() {
            assert!(!calls[..n].contains(call), "{n}: {call:?}");
        }
        let described = |call: &dyn Fn() -> Call| call().describe(true, &[]);
        let here = || Call::here(barrier());
        assert_eq!(
            described(&|| scope_of(Kind::Described, "x", || scope(Kind::Free, 7, here))),
            "call x, in its free of a segment (number 7), in its barrier"
        );
        let long = "y".repeat(200);
        let cut = described(&|| scope_of(Kind::Described, &long, || scope(Kind::Free, 7, here)));
        assert!(
            cut.starts_with("call yyy")
                && cut.ends_with("y..., in its free of a segment (number 7), in its barrier")
        );
        assert_eq!(
            described(&|| scope(Kind::FreeArray, 3, || scope(Kind::Free, 7, here))),
            "free of an array (number 3), in its free of a segment (number 7), in its barrier"
        );
    }

    #[test]
    fn a_difference_anywhere_changes_the_digest() {
        let base =
            Signature::here(Kind::AllReduce).of(ElementType::of::<f64>(), 2).by(Operator::Sum);
        const LONG: usize = 1 << 28;
        let long = base.of(ElementType::of::<[u8; LONG]>(), 1);
        let others = [
            long,
            base.of(ElementType::of::<[u8; LONG]>(), 2),
            base.of(ElementType::of::<[u8; LONG + 1]>(), 1),
            base.of(ElementType::of::<[u8; 2 * LONG - 1]>(), 1),
            Signature::here(Kind::Reduce).of(ElementType::of::<f64>(), 2).by(Operator::Sum),
            base.of(ElementType::of::<f64>(), 3),
            base.of(ElementType::of::<i64>(), 2),
            base.by(Operator::Max),
            base.rooted(0),
            base.rooted(1),
            scope(Kind::Free, 0, || Signature::here(Kind::AllReduce)),
            scope(Kind::Free, 1, || Signature::here(Kind::AllReduce)),
        ];
        let mut digests: Vec<u64> = others.iter().map(|call| call.digest(7)).collect();
        digests.push(base.digest(7));
        digests.push(base.digest(8));
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), others.len() + 2);
        assert!(digests.iter().all(|digest| digest >> 48 == 0));
    }

    /// The count gives the two calls equal digests if the secret is 0, and with no other secret.
    #[test]
    fn a_computed_count_does_not_give_a_call_the_digest_of_another() {
        let access = scope(Kind::Access, 0, || Signature::here(Kind::Barrier));
        let gather = Signature::here(Kind::Gather).of(ElementType::of::<()>(), 0).rooted(0);
        let first = |call: Signature| {
            let [word, ..]: [u64; 3] = bytemuck::cast(call);
            (word ^ MULTIPLIERS[2]).wrapping_mul(MULTIPLIERS[0]).rotate_left(29)
        };
        let count = first(access).wrapping_sub(first(gather)) as usize;
        let chosen = gather.of(ElementType::of::<()>(), count);
        assert_eq!(chosen.digest(0), access.digest(0));
        let equal = |secret: &u64| chosen.digest(*secret) == access.digest(*secret);
        let secrets = (1..10_000u64).map(|n| n.wrapping_mul(MULTIPLIERS[1]));
        assert_eq!(secrets.filter(equal).count(), 0);
    }
}
