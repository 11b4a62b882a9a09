//! Runs of bytes that an owner reads or writes for others.
//!
//! Three services do this. The bytes of the runs follow each other in a message or buffer:
//!
//! | service | channel | what the owner checks | the requester awaits |
//! |---|---|---|---|
//! | `path::two_sided::serve` | requests of the message path | the bytes lie in its segments | a receive |
//! | `any_memory::owner_served` | active messages | the registration, and its mappings | [`crate::core::answers`] |
//! | `rpc::na::service` | connections | its record of the handle | [`crate::core::answers`] |
//!
//! They copy in different ways. The first stores blocks in order, because the last may be a flag,
//! and also accumulates. The second lets the kernel copy, which finds bad addresses. The third
//! copies as [`shared_bytes`], because the threads of safe programs may use the memory meanwhile.
//! An entry of a list has 8 bytes in requests of the message path ([`crate::path::Batch`]) and 16
//! in the others.
//!
//! Invariant: a list is used only with its total length, which does not overflow. So a buffer of
//! that length has the bytes of all runs, whatever a peer has sent.

use super::shared_bytes;
use bytemuck::{AnyBitPattern, Pod, Zeroable};
use portolan_base::error::{Result, fail};
use std::borrow::Cow;

/// A contiguous range of bytes in the owner's address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(C)]
pub struct Run {
    pub address: usize,
    /// The length in bytes.
    pub len: usize,
}

impl Run {
    /// Returns the end of the run, or `None` if it exceeds the address space.
    pub(crate) fn end(&self) -> Option<usize> {
        self.address.checked_add(self.len)
    }
}

/// Whether bytes go to the memory of the other rank or process, or come from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Put,
    Get,
}

impl Direction {
    /// Returns the direction as the other side sees it.
    pub fn turned(self) -> Direction {
        match self {
            Direction::Put => Direction::Get,
            Direction::Get => Direction::Put,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Span {
    /// In the calling process.
    pub local: usize,
    /// In the process of the other rank.
    pub remote: usize,
    pub bytes: usize,
}

impl Span {
    /// Returns the span as the other rank sees it.
    pub fn turned(self) -> Span {
        Span { local: self.remote, remote: self.local, ..self }
    }

    pub fn local_run(&self) -> Run {
        Run { address: self.local, len: self.bytes }
    }

    pub fn remote_run(&self) -> Run {
        Run { address: self.remote, len: self.bytes }
    }
}

/// Returns the total length in bytes, or `None` if it overflows.
pub fn total(runs: &[Run]) -> Option<usize> {
    runs.iter().try_fold(0usize, |sum, run| sum.checked_add(run.len))
}

/// Returns the list as a message has it.
pub fn as_bytes(runs: &[Run]) -> &[u8] {
    bytemuck::cast_slice(runs)
}

/// Returns the first `n` runs of a message, their total length in bytes, and the rest. Fails with
/// `Internal` if the message is too short, or if the total overflows.
pub fn list(message: &[u8], n: u64) -> Result<(Vec<Run>, usize, &[u8])> {
    list_of(message, n, |run| run)
}

/// Like [`list`], for a list whose entries have another form.
pub fn list_of<E: AnyBitPattern>(
    message: &[u8],
    n: u64,
    run: impl Fn(E) -> Run,
) -> Result<(Vec<Run>, usize, &[u8])> {
    let len = usize::try_from(n).ok().and_then(|n| n.checked_mul(size_of::<E>()));
    let Some((list, rest)) = len.and_then(|len| message.split_at_checked(len)) else {
        fail!(Internal, "a message ends inside its list of {n} runs");
    };
    let entries = list.chunks_exact(size_of::<E>()).map(bytemuck::pod_read_unaligned);
    let runs: Vec<Run> = entries.map(run).collect();
    match total(&runs) {
        Some(total) => Ok((runs, total, rest)),
        None => fail!(Internal, "{n} runs in a message are longer than any memory"),
    }
}

/// Returns what is left of the runs after their first `skip` bytes.
pub fn after(runs: &[Run], mut skip: usize) -> impl Iterator<Item = Run> + '_ {
    runs.iter().filter_map(move |run| {
        let gone = skip.min(run.len);
        skip -= gone;
        (gone < run.len).then(|| Run { address: run.address + gone, len: run.len - gone })
    })
}

/// Pairs each run with its part of a buffer that has the bytes of all runs.
pub fn beside(
    runs: impl IntoIterator<Item = Run>,
    mut buffer: usize,
) -> impl Iterator<Item = Span> {
    runs.into_iter().map(move |Run { address, len }| {
        let local = buffer;
        buffer += len;
        Span { local, remote: address, bytes: len }
    })
}

/// Splits spans so that none is longer than `most` bytes.
pub fn split(spans: &[Span], most: usize) -> Cow<'_, [Span]> {
    if spans.iter().all(|span| span.bytes <= most) {
        return Cow::Borrowed(spans);
    }
    let each = |span: &Span| {
        let Span { local, remote, bytes } = *span;
        (0..bytes).step_by(most).map(move |at| Span {
            local: local + at,
            remote: remote + at,
            bytes: most.min(bytes - at),
        })
    };
    Cow::Owned(spans.iter().flat_map(each).collect())
}

/// Copies the first bytes of the runs to `to`, as [`shared_bytes`]. Returns their number.
///
/// # Safety
/// The runs must be valid for atomic reads.
pub unsafe fn gather(runs: impl IntoIterator<Item = Run>, mut to: &mut [u8]) -> usize {
    let all = to.len();
    for run in runs {
        let (now, rest) = to.split_at_mut(run.len.min(to.len()));
        // SAFETY: the caller guarantees the run.
        unsafe { shared_bytes::load(run.address as *const u8, now) };
        to = rest;
        if to.is_empty() {
            break;
        }
    }
    all - to.len()
}

/// Copies `from` to the runs until they are full, as [`shared_bytes`]. Returns the number of copied
/// bytes.
///
/// # Safety
/// The runs must be valid for atomic writes.
pub unsafe fn scatter(mut from: &[u8], runs: impl IntoIterator<Item = Run>) -> usize {
    let all = from.len();
    for run in runs {
        let (now, rest) = from.split_at(run.len.min(from.len()));
        // SAFETY: the caller guarantees the run.
        unsafe { shared_bytes::store(now, run.address as *mut u8) };
        from = rest;
        if from.is_empty() {
            break;
        }
    }
    all - from.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_checked() {
        let runs = [Run { address: 64, len: 8 }, Run { address: 0, len: 16 }];
        let mut message = as_bytes(&runs).to_vec();
        message.push(7);
        let (read, total, rest) = list(&message, 2).unwrap();
        assert_eq!((&read[..], total, rest), (&runs[..], 24, &[7][..]));
        assert!(list(&message, 3).is_err());
        assert!(list(&message, u64::MAX).is_err());
        let over = [Run { address: 64, len: 100 }, Run { address: 64, len: usize::MAX - 9 }];
        assert!(list(as_bytes(&over), 2).is_err(), "they are 90 bytes, modulo 2^64");
        assert_eq!(list(as_bytes(&over), 1).unwrap().1, 100);
    }

    #[test]
    fn bytes_are_skipped_across_runs() {
        let runs = [(100, 3), (200, 0), (300, 5)].map(|(address, len)| Run { address, len });
        assert_eq!(total(&runs), Some(8));
        for skip in 0..=8 {
            let left: Vec<Run> = after(&runs, skip).collect();
            assert_eq!(total(&left), Some(8 - skip));
        }
        let left: Vec<Run> = after(&runs, 4).collect();
        assert_eq!(left, [Run { address: 301, len: 4 }]);
    }

    #[test]
    fn bytes_go_to_and_come_from_runs_in_order() {
        let mut there = [1u8, 2, 3, 4, 5, 6, 7, 8];
        let at = there.as_mut_ptr() as usize;
        let runs = [(4, 3), (8, 0), (0, 2)].map(|(n, len)| Run { address: at + n, len });
        let spans: Vec<Span> = beside(runs, 1000).collect();
        assert_eq!(spans.iter().map(|s| s.local).collect::<Vec<_>>(), [1000, 1003, 1003]);
        assert!(spans.iter().map(Span::remote_run).eq(runs));
        for len in 0..8 {
            let mut to = vec![0; len];
            // SAFETY: the runs lie within the array.
            assert_eq!(unsafe { gather(runs, &mut to) }, len.min(5));
            assert_eq!(to[..len.min(5)], [5, 6, 7, 1, 2][..len.min(5)]);
        }
        // SAFETY: the runs lie within the array.
        assert_eq!(unsafe { scatter(&[9; 4], runs) }, 4);
        assert_eq!(there, [9, 2, 3, 4, 9, 9, 9, 8]);
    }
}
