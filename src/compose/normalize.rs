//! The form in which a set of pairs is one list: sorted, joined, without doubles.
//!
//! Everything is ordered by address at the target, where no byte may be written
//! twice. After sorting, a run that overlaps the one before it either says the
//! same of the bytes that they share, and is joined to it, or is a conflict. Runs
//! that touch and go on in each other are joined too.
//!
//! A shape need not be taken apart for that as long as nothing else lies in the
//! addresses that it spans, and it writes none twice itself. So large regular
//! slices stay as small as they were described; those that lie in each other, as
//! the faces of a block do, become runs, and [`super::loop_detect`] makes shapes of what
//! is regular among them.
//!
//! Invariant: in a [`Normal`] no two pairs share a byte at the target, and runs and
//! pieces are sorted by it.

use super::part::{Part, Piece, Run};
use crate::error::{Result, fail};
use crate::layout::{Dim, Shape};

/// Sorted pairs of addresses towards one target.
#[derive(Debug, Clone, Default)]
pub struct Normal {
    /// Runs, none of which goes on in another.
    pub runs: Vec<Run>,
    /// Shapes.
    pub pieces: Vec<Piece>,
}

/// Turns negative strides at the target round and puts the dimensions in the
/// order of their strides there; `None` where blocks of the shape then lie in each
/// other, or are not in order.
fn upright(piece: &Piece) -> Option<Piece> {
    let (mut local, mut remote) = (piece.local, piece.remote);
    let mut dims: Vec<Dim> = piece.shape.dims().to_vec();
    for d in &mut dims {
        if d.remote < 0 {
            let last = d.n as isize - 1;
            remote = remote.wrapping_add_signed(last * d.remote);
            local = local.wrapping_add_signed(last.checked_mul(d.local)?);
            (d.local, d.remote) = (d.local.checked_neg()?, d.remote.checked_neg()?);
        }
    }
    dims.sort_by_key(|d| d.remote);
    let mut inner = isize::try_from(piece.shape.block()).ok()?;
    let mut counts = vec![piece.shape.block()];
    for d in &dims {
        if d.remote < inner {
            return None;
        }
        inner += (d.n as isize - 1) * d.remote;
        counts.push(d.n);
    }
    let locals: Vec<isize> = dims.iter().map(|d| d.local).collect();
    let remotes: Vec<isize> = dims.iter().map(|d| d.remote).collect();
    Some(Piece { local, remote, shape: Shape::strided(&counts, &locals, &remotes).ok()? })
}

/// Brings parts towards `target` into one form. `whole(first, end)` says whether
/// addresses of the target may stay in one shape.
///
/// # Errors
/// `Argument` where two local bytes go to one byte of the target; it names the
/// three addresses.
pub(crate) fn normalize(
    target: usize,
    parts: &[&Part],
    whole: &mut dyn FnMut(usize, usize) -> bool,
) -> Result<Normal> {
    let mut runs: Vec<Run> = Vec::with_capacity(parts.iter().map(|p| p.runs().len()).sum());
    for part in parts {
        runs.extend_from_slice(part.runs());
    }
    let mut pieces: Vec<Piece> = Vec::new();
    for piece in parts.iter().flat_map(|p| p.pieces()) {
        match upright(piece) {
            Some(piece) => pieces.push(piece),
            None => piece.unroll(&mut runs),
        }
    }
    sort(&mut runs);
    join(target, &mut runs)?;
    pieces.sort_by_key(|p| (p.remote, p.local));
    pieces.dedup();
    let pieces = alone(pieces, &mut runs, whole);
    sort(&mut runs);
    join(target, &mut runs)?;
    Ok(Normal { runs, pieces })
}

fn sort(runs: &mut [Run]) {
    if !runs.is_sorted_by_key(|r| r.remote) {
        runs.sort_unstable();
    }
}

/// Keeps the pieces in whose span nothing else lies; the other pieces become runs, behind
/// those that are there, which are sorted and joined.
fn alone(
    pieces: Vec<Piece>,
    runs: &mut Vec<Run>,
    whole: &mut dyn FnMut(usize, usize) -> bool,
) -> Vec<Piece> {
    let spans: Vec<(usize, usize)> = pieces.iter().map(Piece::remote_span).collect();
    let joined = runs.len();
    // The furthest end of all pieces before each.
    let mut reach = 0;
    let mut kept = Vec::with_capacity(pieces.len());
    for (i, piece) in pieces.into_iter().enumerate() {
        let (first, end) = spans[i];
        let before = reach > first;
        reach = reach.max(end);
        let after = spans.get(i + 1).is_some_and(|next| next.0 < end);
        let next = runs[..joined].partition_point(|r| r.end() <= first);
        let taken = runs[next..joined].first().is_some_and(|r| r.remote < end);
        if before || after || taken || !whole(first, end) {
            piece.unroll(runs);
        } else {
            kept.push(piece);
        }
    }
    kept
}

/// Joins sorted runs that say the same, or go on in each other.
fn join(target: usize, runs: &mut Vec<Run>) -> Result<()> {
    let mut kept = 0;
    for i in 1..runs.len() {
        let run = runs[i];
        let last = &mut runs[kept];
        if run.remote <= last.end() && run.skew() == last.skew() {
            last.bytes = last.bytes.max(run.end() - last.remote);
        } else if run.remote < last.end() {
            fail!(
                Argument,
                "the bytes at {:#x} and at {:#x} here both go to {:#x} of rank {target}; a byte \
                 can come from one place only",
                run.remote.wrapping_add(last.skew()),
                run.local,
                run.remote
            );
        } else {
            kept += 1;
            runs[kept] = run;
        }
    }
    runs.truncate(kept + 1);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::slice::Blocks;
    use super::*;
    use std::collections::BTreeMap;

    fn yes(_: usize, _: usize) -> bool {
        true
    }

    /// The bytes by address at the target.
    fn bytes(n: &Normal) -> BTreeMap<usize, usize> {
        let mut runs = n.runs.clone();
        n.pieces.iter().for_each(|p| p.unroll(&mut runs));
        let mut all = BTreeMap::new();
        for r in runs {
            for i in 0..r.bytes {
                assert!(all.insert(r.remote + i, r.local + i).is_none(), "a byte is there twice");
            }
        }
        all
    }

    #[test]
    fn doubles_are_one_and_neighbours_join() {
        let mut part = Part::default();
        for i in (0..100).rev() {
            part.add(1000 + i, 5000 + i, 1).unwrap();
            part.add(1000 + i, 5000 + i, 1).unwrap();
        }
        part.add(1090, 5090, 30).unwrap();
        let n = normalize(1, &[&part, &part], &mut yes).unwrap();
        assert_eq!(n.runs, [Run { remote: 5000, local: 1000, bytes: 120 }]);
    }

    #[test]
    fn one_source_may_go_to_many_places_but_not_back() {
        let mut part = Part::default();
        part.add(1000, 5000, 8).unwrap();
        part.add(1000, 6000, 8).unwrap();
        assert_eq!(normalize(1, &[&part], &mut yes).unwrap().runs.len(), 2);
        part.add(2000, 5007, 1).unwrap();
        let error = normalize(3, &[&part], &mut yes).unwrap_err();
        for text in ["0x3ef", "0x7d0", "0x138f", "rank 3"] {
            assert!(error.detail().contains(text), "{text} in {error}");
        }
    }

    #[test]
    fn a_shape_stays_while_it_is_alone() {
        let rows = |local, remote| {
            let mut part = Part::default();
            let l = Blocks { start: local, stride: 64, block: 8, count: 100 };
            let r = Blocks { start: remote, stride: 32, block: 8, count: 100 };
            part.add_slice(l, r).unwrap();
            part
        };
        let a = rows(10_000, 100_000);
        let n = normalize(0, &[&a, &a], &mut yes).unwrap();
        assert_eq!((n.pieces.len(), n.runs.len()), (1, 0));
        // Between the rows of the first: both are taken apart.
        let b = rows(50_000, 100_016);
        let n = normalize(0, &[&a, &b], &mut yes).unwrap();
        assert_eq!((n.pieces.len(), n.runs.len()), (0, 200));
        assert_eq!(bytes(&n).len(), 1600);
        // On top of rows of the first, the same and not the same.
        let mut c = Part::default();
        c.add(10_000 + 64, 100_032, 8).unwrap();
        assert_eq!(bytes(&normalize(0, &[&a, &c], &mut yes).unwrap()).len(), 800);
        c.add(10_000 + 64, 100_064, 8).unwrap();
        assert!(normalize(0, &[&a, &c], &mut yes).is_err());
        // Where the addresses are not of one piece.
        assert_eq!(normalize(0, &[&a], &mut |_, _| false).unwrap().runs.len(), 100);
    }

    #[test]
    fn a_shape_that_writes_twice_is_a_conflict() {
        let mut part = Part::default();
        let shape = Shape::strided(&[8, 10], &[8], &[4]).unwrap();
        part.add_shape(1 << 16, 1 << 20, shape).unwrap();
        assert!(normalize(0, &[&part], &mut yes).is_err());
        let mut part = Part::default();
        let shape = Shape::strided(&[8, 10], &[4], &[4]).unwrap();
        part.add_shape(1 << 16, 1 << 20, shape).unwrap();
        let n = normalize(0, &[&part], &mut yes).unwrap();
        assert_eq!(n.runs, [Run { remote: 1 << 20, local: 1 << 16, bytes: 44 }]);
    }

    #[test]
    fn strides_down_are_turned_up() {
        let mut part = Part::default();
        let shape = Shape::strided(&[8, 10, 5], &[8, 200], &[-16, 1000]).unwrap();
        part.add_shape(1 << 16, 1 << 20, shape).unwrap();
        let n = normalize(0, &[&part], &mut yes).unwrap();
        assert_eq!((n.pieces.len(), n.runs.len()), (1, 0));
        let apart = normalize(0, &[&part], &mut |_, _| false).unwrap();
        assert_eq!(bytes(&n), bytes(&apart));
    }
}
