//! Runs of memory of a handle: their offsets, and the pairing of runs on two sides.

use crate::failure::{Result, refuse};
pub use portolan_engine::memory::runs::Run;
use portolan_engine::memory::runs::Span;
use portolan_engine::memory::shm_export::Mapped;

/// Returns the offset of each run within the handle, and the total length in bytes. Returns
/// `INVALID_ARG` if a run is at the null address or too long.
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

/// Returns the spans with their remote addresses replaced by those in a mapping. Returns `None` if
/// the mapping lacks one.
pub(in crate::na) fn to_mapped(mapped: &Mapped, spans: &[Span]) -> Option<Vec<Span>> {
    let at = |span: &Span| {
        let remote = mapped.at(span.remote, span.bytes)? as usize;
        Some(Span { remote, ..*span })
    };
    spans.iter().map(at).collect()
}

/// Pairs the parts of two ranges of equal size, which are given as runs.
pub(in crate::na) fn pair(
    here: impl Iterator<Item = Run>,
    there: impl Iterator<Item = Run>,
) -> Vec<Span> {
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
