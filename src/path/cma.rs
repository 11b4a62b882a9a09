//! Memory of another process of the node, by `process_vm_readv` and
//! `process_vm_writev`.
//!
//! This is the field's *cross-memory attach*. The kernel checks both sides, so a bad address is
//! an error here and harms no process. It looks up the pages of each iovec at the other process
//! anew, so that a KiB by itself takes several times as long as a KiB within a long iovec:
//! spans that are neighbours there are passed as one, and spans with small gaps between them
//! are read together with the gaps, and spread from a buffer.
//!
//! Invariant: no byte outside the local sides of the spans is written here, and none
//! outside their remote sides there.

use crate::error::{Error, ErrorKind, Result};
use crate::path::ops::Span;
use std::cell::Cell;
use std::io;

/// Spans handed to the kernel at a time (IOV_MAX).
const MOST: usize = 1024;
/// Longest gap that is read too.
const GAP: usize = 1024;
/// Fewer gaps than this are not worth the buffer.
const FEW: usize = 4;
/// Bytes of the buffer: what fits into a processor's own cache.
const COVER: usize = 128 << 10;

/// Which way the bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From the other process.
    Read,
    /// To it.
    Write,
}

fn vector(address: usize, bytes: usize) -> libc::iovec {
    libc::iovec { iov_base: address as *mut libc::c_void, iov_len: bytes }
}

/// A vector of a side's runs, neighbours as one.
fn vectors(runs: impl Iterator<Item = (usize, usize)>) -> Vec<libc::iovec> {
    let mut vectors: Vec<libc::iovec> = Vec::new();
    for (address, bytes) in runs {
        match vectors.last_mut() {
            Some(last) if last.iov_base as usize + last.iov_len == address => last.iov_len += bytes,
            _ => vectors.push(vector(address, bytes)),
        }
    }
    vectors
}

/// # Safety
/// The local bytes must be valid, for writes where they are read into.
unsafe fn call(
    pid: u32,
    local: &[libc::iovec],
    remote: &[libc::iovec],
    direction: Direction,
) -> Option<usize> {
    // SAFETY: the caller vouches for the local bytes; the kernel checks the remote ones.
    let moved = unsafe {
        let call = match direction {
            Direction::Read => libc::process_vm_readv,
            Direction::Write => libc::process_vm_writev,
        };
        let (n, m) = (local.len() as libc::c_ulong, remote.len() as libc::c_ulong);
        call(pid as libc::pid_t, local.as_ptr(), n, remote.as_ptr(), m, 0)
    };
    usize::try_from(moved).ok()
}

/// Moves the bytes of all spans.
///
/// # Errors
/// `Address` where one side has no such memory, with the address at the other
/// process; `State` where the system does not allow it.
///
/// # Safety
/// The local bytes must be valid, for writes where they are read into.
pub(crate) unsafe fn transfer(pid: u32, spans: &[Span], direction: Direction) -> Result<()> {
    let (mut done, mut at) = (0, 0);
    while direction == Direction::Read && at < spans.len() {
        let (n, gaps) = group(&spans[at..]);
        // SAFETY: passed on from the caller, here and below.
        unsafe {
            if gaps >= FEW {
                each(pid, &spans[done..at], direction)?;
                done = at;
                // A gap may have no pages behind it.
                if read_covering(pid, &spans[at..at + n]) {
                    done = at + n;
                }
            }
        }
        at += n;
    }
    // SAFETY: passed on from the caller.
    unsafe { each(pid, &spans[done..], direction) }
}

/// [`transfer`] by the kernel alone, for addresses that others name: one that is not mapped
/// on either side is an error.
///
/// # Errors
/// As for [`transfer`].
///
/// # Safety
/// As for [`transfer`], where the local bytes are mapped.
pub(crate) unsafe fn transfer_checked(
    pid: u32,
    spans: &[Span],
    direction: Direction,
) -> Result<()> {
    // SAFETY: passed on from the caller; the kernel checks what is mapped.
    unsafe { each(pid, spans, direction) }
}

/// How many of the first spans follow each other closely at the other side, in the
/// buffer's size, and with how many gaps.
fn group(spans: &[Span]) -> (usize, usize) {
    let (begin, mut end, mut gaps) =
        (spans[0].remote, spans[0].remote.wrapping_add(spans[0].bytes), 0);
    for (n, span) in spans.iter().enumerate().skip(1) {
        let gap = span.remote.wrapping_sub(end);
        let Some(next) = span.remote.checked_add(span.bytes) else { return (n, gaps) };
        if gap > GAP || next - begin > COVER {
            return (n, gaps);
        }
        gaps += usize::from(gap > 0);
        end = next;
    }
    (spans.len(), gaps)
}

thread_local! {
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Reads a [`group`] with its gaps, and spreads it; false where that cannot be.
///
/// # Safety
/// The local bytes must be valid for writes.
unsafe fn read_covering(pid: u32, spans: &[Span]) -> bool {
    let Some((first, last)) = spans.first().zip(spans.last()) else { return true };
    let bytes = last.remote + last.bytes - first.remote;
    let mut buffer = BUFFER.take();
    if buffer.len() < bytes {
        buffer.resize(bytes.next_power_of_two(), 0);
    }
    let local = [vector(buffer.as_mut_ptr() as usize, bytes)];
    let remote = [vector(first.remote, bytes)];
    // SAFETY: the buffer is as long as that.
    let whole = unsafe { call(pid, &local, &remote, Direction::Read) } == Some(bytes);
    if whole {
        for span in spans {
            let from = &buffer[span.remote - first.remote..][..span.bytes];
            // SAFETY: the caller vouches for the local bytes; the buffer is not among
            // them.
            unsafe {
                std::ptr::copy_nonoverlapping(from.as_ptr(), span.local as *mut u8, span.bytes)
            };
        }
    }
    BUFFER.set(buffer);
    whole
}

/// Has the kernel move each span by itself.
///
/// # Safety
/// As for [`transfer`].
unsafe fn each(pid: u32, spans: &[Span], direction: Direction) -> Result<()> {
    for part in spans.chunks(MOST) {
        let (mut at, mut skip) = (0, 0);
        while at < part.len() {
            let rest = |side: fn(&Span) -> usize| {
                let first = (side(&part[at]) + skip, part[at].bytes - skip);
                let others = part[at + 1..].iter().map(move |s| (side(s), s.bytes));
                vectors(std::iter::once(first).chain(others))
            };
            let (local, remote) = (rest(|s| s.local), rest(|s| s.remote));
            // SAFETY: passed on from the caller.
            let moved = unsafe { call(pid, &local, &remote, direction) };
            let mut moved = match moved {
                Some(moved) if moved > 0 || part[at].bytes == skip => moved,
                _ => return Err(failed(pid, &part[at], skip)),
            };
            // The kernel may stop in the middle.
            while at < part.len() && moved >= part[at].bytes - skip {
                moved -= part[at].bytes - skip;
                (at, skip) = (at + 1, 0);
            }
            skip += moved;
        }
    }
    Ok(())
}

#[cold]
fn failed(pid: u32, span: &Span, skip: usize) -> Error {
    let error = io::Error::last_os_error();
    let kind = match error.raw_os_error() {
        Some(libc::EFAULT) => ErrorKind::Address,
        _ => ErrorKind::State,
    };
    Error::new(
        kind,
        format!(
            "{} bytes at {:#x} of process {pid} cannot be reached: {error}",
            span.bytes - skip,
            span.remote + skip
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_memory_is_read_and_written() {
        let from: Vec<u8> = (0..=255).cycle().take(10_000).collect();
        let mut to = vec![0u8; 10_000];
        let spans: Vec<Span> = (0..2500)
            .map(|i| Span {
                local: to.as_mut_ptr() as usize + i * 4,
                remote: from.as_ptr() as usize + (2499 - i) * 4,
                bytes: 4,
            })
            .collect();
        let me = std::process::id();
        // SAFETY: the spans lie in the two vectors.
        unsafe { transfer(me, &spans, Direction::Read) }.unwrap();
        for i in 0..2500 {
            assert_eq!(to[i * 4..i * 4 + 4], from[(2499 - i) * 4..][..4]);
        }
        let nowhere = [Span { local: to.as_ptr() as usize, remote: 8, bytes: 8 }];
        // SAFETY: the local side lies in the vector.
        let error = unsafe { transfer(me, &nowhere, Direction::Write) }.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Address);
    }

    #[test]
    fn pieces_with_gaps_are_read_and_nothing_else_is_written() {
        let me = std::process::id();
        let from: Vec<u8> = (0..3_000_000u32).map(|i| (i / 7 * 31 + i) as u8).collect();
        for (bytes, step) in [(1, 2), (100, 100), (1000, 1001), (64, 1000), (1024, 3000), (8, 1032)]
        {
            // Every 300th step is longer, so that groups end.
            let mut to = vec![0xeeu8; 2_000_000];
            let (mut remote, mut spans) = (5, Vec::new());
            while remote + bytes < from.len() && (spans.len() + 1) * (bytes + 3) < to.len() {
                spans.push(Span {
                    local: to.as_mut_ptr() as usize + spans.len() * (bytes + 3),
                    remote: from.as_ptr() as usize + remote,
                    bytes,
                });
                remote += step + if spans.len().is_multiple_of(300) { 5000 } else { 0 };
            }
            // SAFETY: the spans lie in the two vectors.
            unsafe { transfer(me, &spans, Direction::Read) }.unwrap();
            for (n, span) in spans.iter().enumerate() {
                let at = n * (bytes + 3);
                let there = span.remote - from.as_ptr() as usize;
                assert_eq!(to[at..at + bytes], from[there..there + bytes], "{bytes} {step} {n}");
                assert_eq!(to[at + bytes..at + bytes + 3], [0xee; 3], "{bytes} {step} {n}");
            }
        }
    }

    #[test]
    fn a_gap_without_pages_does_no_harm() {
        const PAGE: usize = 4096;
        // SAFETY: fresh pages, one of which must not be read from then on.
        let base = unsafe {
            let (protection, flags) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            let base = libc::mmap(std::ptr::null_mut(), 3 * PAGE, protection, flags, -1, 0);
            assert_ne!(base, libc::MAP_FAILED);
            std::ptr::write_bytes(base.cast::<u8>(), 7, 3 * PAGE);
            libc::mprotect(base.add(PAGE), PAGE, libc::PROT_NONE);
            base as usize
        };
        let mut to = [0u8; 60];
        // Five gaps in the first page, then one over the page that cannot be read.
        let mut spans: Vec<Span> = (0..6)
            .map(|i| Span {
                local: to.as_mut_ptr() as usize + i * 8,
                remote: base + PAGE - 100 + i * 16,
                bytes: 8,
            })
            .collect();
        let last = Span { local: to.as_mut_ptr() as usize + 48, remote: base + 2 * PAGE, bytes: 8 };
        spans.push(last);
        let me = std::process::id();
        // SAFETY: the local sides lie in the array.
        unsafe {
            assert!(!read_covering(me, &spans));
            assert_eq!(to, [0; 60]);
            transfer(me, &spans, Direction::Read).unwrap();
        }
        assert_eq!(to[..56], [7; 56]);
        assert_eq!(to[56..], [0; 4]);
        // SAFETY: the pages are this test's own.
        unsafe { libc::munmap(base as *mut libc::c_void, 3 * PAGE) };
    }
}
