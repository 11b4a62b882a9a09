//! Memory of another process of the node, by `process_vm_readv` and
//! `process_vm_writev`.
//!
//! The kernel checks both sides, so a bad address is an error here and harms nobody.

use crate::error::{Error, ErrorKind, Result};
use crate::path::anywhere::Span;
use std::io;

/// Spans handed to the kernel at a time (IOV_MAX).
const MOST: usize = 1024;

/// Which way the bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the other process.
    Read,
    /// To it.
    Write,
}

fn vector(address: usize, bytes: usize) -> libc::iovec {
    libc::iovec { iov_base: address as *mut libc::c_void, iov_len: bytes }
}

/// Moves the bytes of all spans.
///
/// # Errors
/// `Address` where one side has no such memory, with the address at the other
/// process; `State` where the system does not allow it.
///
/// # Safety
/// The local bytes must be valid, for writes where they are read into.
pub unsafe fn transfer(pid: u32, spans: &[Span], direction: Direction) -> Result<()> {
    for part in spans.chunks(MOST) {
        let (mut at, mut skip) = (0, 0);
        while at < part.len() {
            let rest = |side: fn(&Span) -> usize| -> Vec<libc::iovec> {
                let first = vector(side(&part[at]) + skip, part[at].bytes - skip);
                let others = part[at + 1..].iter().map(|s| vector(side(s), s.bytes));
                std::iter::once(first).chain(others).collect()
            };
            let (local, remote) = (rest(|s| s.local), rest(|s| s.remote));
            // SAFETY: the caller vouches for the local bytes; the kernel checks the
            // remote ones.
            let moved = unsafe {
                let call = match direction {
                    Direction::Read => libc::process_vm_readv,
                    Direction::Write => libc::process_vm_writev,
                };
                let (n, m) = (local.len() as libc::c_ulong, remote.len() as libc::c_ulong);
                call(pid as libc::pid_t, local.as_ptr(), n, remote.as_ptr(), m, 0)
            };
            let mut moved = match usize::try_from(moved) {
                Ok(moved) if moved > 0 || part[at].bytes == skip => moved,
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
}
