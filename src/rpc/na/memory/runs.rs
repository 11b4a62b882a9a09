//! Runs of memory: measured, and those of two sides paired.

use crate::any_memory::Span;
use crate::rpc::failure::{Result, refuse};

/// A run of bytes in its owner's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Where it begins.
    pub address: usize,
    /// Bytes.
    pub len: usize,
}

/// Where each run begins within the whole, and the bytes of the whole.
pub(super) fn measure(runs: &[Run]) -> Result<(Vec<usize>, usize)> {
    let (mut starts, mut total) = (Vec::with_capacity(runs.len()), 0usize);
    for (n, run) in runs.iter().enumerate() {
        starts.push(total);
        if run.address == 0 && run.len > 0 {
            refuse!(INVALID_ARG, "segment {n} has {} bytes at the null address", run.len);
        }
        let sum = total.checked_add(run.len);
        let end = run.address.checked_add(run.len);
        let (Some(sum), Some(_)) = (sum.filter(|&s| s <= isize::MAX as usize), end) else {
            refuse!(INVALID_ARG, "segment {n} of {} bytes is too long for any memory", run.len);
        };
        total = sum;
    }
    Ok((starts, total))
}

/// Pairs the parts of two ranges of the same size, given as runs.
pub(super) fn pair(here: impl Iterator<Item = Run>, there: impl Iterator<Item = Run>) -> Vec<Span> {
    let mut here = here.filter(|r| r.len > 0);
    let mut there = there.filter(|r| r.len > 0);
    let (mut a, mut b) = (here.next(), there.next());
    let mut spans = Vec::new();
    while let (Some(x), Some(y)) = (&mut a, &mut b) {
        let bytes = x.len.min(y.len);
        spans.push(Span { local: x.address, remote: y.address, bytes });
        *x = Run { address: x.address + bytes, len: x.len - bytes };
        *y = Run { address: y.address + bytes, len: y.len - bytes };
        let (x_done, y_done) = (x.len == 0, y.len == 0);
        if x_done {
            a = here.next();
        }
        if y_done {
            b = there.next();
        }
    }
    spans
}
