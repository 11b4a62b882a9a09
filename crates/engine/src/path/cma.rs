//! Access to the memory of another process of the node through `process_vm_readv` and
//! `process_vm_writev` (cross-memory attach).
//!
//! The kernel checks both sides, so a bad address is only an error. For each iovec it looks up the
//! pages of the other process again, so short iovecs are several times slower per byte. Spans that
//! are adjacent in the other process are therefore passed as one iovec. Spans with small gaps
//! between them are read together with the gaps into a buffer, and copied from there.
//!
//! Invariant: no byte is written outside the local sides of the spans in this process, or outside
//! their remote sides in the other process.

use crate::memory::runs::{Direction, Span};
use portolan_base::error::{Error, ErrorKind, Result};
use std::cell::Cell;
use std::io;

/// Maximum number of spans in one call (IOV_MAX).
const MOST: usize = 1024;
/// Longest gap that is read with its neighbours, in bytes.
const GAP: usize = 1024;
/// Minimum number of gaps that is worth the buffer.
const FEW: usize = 4;
/// Maximum size of the buffer in bytes, within a core's private cache.
const COVER: usize = 128 << 10;

fn vector(address: usize, bytes: usize) -> libc::iovec {
    libc::iovec { iov_base: address as *mut libc::c_void, iov_len: bytes }
}

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
/// The local bytes must be valid for reads, or for writes if `direction` is `Get`.
unsafe fn call(
    pid: u32,
    local: &[libc::iovec],
    remote: &[libc::iovec],
    direction: Direction,
) -> Option<usize> {
    // SAFETY: the caller guarantees the local bytes; the kernel checks the others.
    let moved = unsafe {
        let call = match direction {
            Direction::Get => libc::process_vm_readv,
            Direction::Put => libc::process_vm_writev,
        };
        let (n, m) = (local.len() as libc::c_ulong, remote.len() as libc::c_ulong);
        call(pid as libc::pid_t, local.as_ptr(), n, remote.as_ptr(), m, 0)
    };
    usize::try_from(moved).ok()
}

/// Transfers the bytes of all spans from or to process `pid`. Fails with `Address` if a side is not
/// mapped, and with `State` for other failures, for example a lack of permission.
///
/// # Safety
/// The local bytes must be valid for reads, or for writes if `direction` is `Get`.
pub unsafe fn transfer(pid: u32, spans: &[Span], direction: Direction) -> Result<()> {
    let (mut done, mut at) = (0, 0);
    while direction == Direction::Get && at < spans.len() {
        let (n, gaps) = group(&spans[at..]);
        // SAFETY: the caller guarantees the local bytes.
        unsafe {
            if gaps >= FEW {
                each(pid, &spans[done..at], direction)?;
                done = at;
                // If a gap is not mapped, this fails and the spans go one by one.
                if read_covering(pid, &spans[at..at + n]) {
                    done = at + n;
                }
            }
        }
        at += n;
    }
    // SAFETY: the caller guarantees the local bytes.
    unsafe { each(pid, &spans[done..], direction) }
}

/// Like [`transfer`], for addresses that another process supplied: only the kernel accesses the
/// bytes, so an unmapped local address is an error too.
///
/// # Safety
/// The mapped local bytes must meet the requirements of [`transfer`].
pub(crate) unsafe fn transfer_checked(
    pid: u32,
    spans: &[Span],
    direction: Direction,
) -> Result<()> {
    // SAFETY: the caller guarantees the mapped local bytes; the kernel refuses others.
    unsafe { each(pid, spans, direction) }
}

/// Returns how many of the first spans form a group, and the number of its gaps. The spans of a
/// group ascend in the other process with gaps of at most [`GAP`] bytes, and cover at most
/// [`COVER`].
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

/// Reads a [`group`] with its gaps, and copies the spans from the buffer. Returns false, and writes
/// nothing, if it cannot be read as a whole.
///
/// # Safety
/// The local bytes must be valid for writes.
unsafe fn read_covering(pid: u32, spans: &[Span]) -> bool {
    let Some((first, last)) = spans.first().zip(spans.last()) else { return true };
    let bytes = last.remote + last.bytes - first.remote;
    // An exit handler runs after the thread-local variables were dropped.
    let mut buffer = BUFFER.try_with(Cell::take).unwrap_or_default();
    if buffer.len() < bytes {
        buffer.resize(bytes.next_power_of_two(), 0);
    }
    let local = [vector(buffer.as_mut_ptr() as usize, bytes)];
    let remote = [vector(first.remote, bytes)];
    // SAFETY: the buffer has at least `bytes` bytes.
    let whole = unsafe { call(pid, &local, &remote, Direction::Get) } == Some(bytes);
    if whole {
        for span in spans {
            let from = &buffer[span.remote - first.remote..][..span.bytes];
            // SAFETY: the caller guarantees the local bytes, disjoint from the buffer.
            unsafe {
                std::ptr::copy_nonoverlapping(from.as_ptr(), span.local as *mut u8, span.bytes)
            };
        }
    }
    let _ = BUFFER.try_with(|spare| spare.set(buffer));
    whole
}

/// # Safety
/// See [`transfer`].
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
            // SAFETY: the caller guarantees the local bytes.
            let moved = unsafe { call(pid, &local, &remote, direction) };
            let mut moved = match moved {
                Some(moved) if moved > 0 || part[at].bytes == skip => moved,
                _ => return Err(failed(pid, &part[at], skip)),
            };
            // The kernel may transfer only a part, which may end inside a span.
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
            "{} bytes at {:#x} of process {pid}, or at {:#x} here, cannot be accessed: {error}",
            span.bytes - skip,
            span.remote + skip,
            span.local + skip
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
        unsafe { transfer(me, &spans, Direction::Get) }.unwrap();
        for i in 0..2500 {
            assert_eq!(to[i * 4..i * 4 + 4], from[(2499 - i) * 4..][..4]);
        }
        let nowhere = [Span { local: to.as_ptr() as usize, remote: 8, bytes: 8 }];
        // SAFETY: the local side lies in the vector.
        let error = unsafe { transfer(me, &nowhere, Direction::Put) }.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Address);
    }

    #[test]
    fn pieces_with_gaps_are_read_and_nothing_else_is_written() {
        let me = std::process::id();
        let from: Vec<u8> = (0..3_000_000u32).map(|i| (i / 7 * 31 + i) as u8).collect();
        for (bytes, step) in [(1, 2), (100, 100), (1000, 1001), (64, 1000), (1024, 3000), (8, 1032)]
        {
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
            unsafe { transfer(me, &spans, Direction::Get) }.unwrap();
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
        // SAFETY: the test maps the pages, and only the kernel accesses the protected one.
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
        // Five gaps in the first page, then one that covers the protected page.
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
            transfer(me, &spans, Direction::Get).unwrap();
        }
        assert_eq!(to[..56], [7; 56]);
        assert_eq!(to[56..], [0; 4]);
        // SAFETY: the test has mapped the pages and no longer uses them.
        unsafe { libc::munmap(base as *mut libc::c_void, 3 * PAGE) };
    }
}
