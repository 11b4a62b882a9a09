//! Builds shapes from arbitrary numbers. An accepted shape and its parts stay within its extent.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portolan_base::layout::{Shape, Side, Vector};

/// Maximum number of parts or blocks that are checked.
const MOST: usize = 1000;

type Input = (Vec<usize>, Vec<isize>, Vec<isize>, u16, u8, bool, Vec<(usize, usize)>);

fuzz_target!(|input: Input| {
    let (mut counts, mut local, mut remote, max, unit, small, blocks) = input;
    if small {
        counts.iter_mut().for_each(|n| *n %= 7);
        local.iter_mut().chain(&mut remote).for_each(|s| *s %= 300);
    }
    if let Ok(shape) = Shape::strided(&counts, &local, &remote) {
        stays_inside(&shape, (usize::from(max)).max(1), 1 << (unit % 5));
    }
    vectors(counts.first().copied().unwrap_or(1), &blocks);
});

fn stays_inside(shape: &Shape, max: usize, unit: usize) {
    let (l, r) = (shape.extent(Side::Local), shape.extent(Side::Remote));
    assert!(l.0 <= 0 && r.0 <= 0 && isize::try_from(shape.bytes()).is_ok());
    assert_eq!(shape.packed_local().bytes(), shape.bytes());
    assert_eq!(shape.packed_remote().bytes(), shape.bytes());
    if shape.bytes() / max.max(unit) > MOST || shape.dims().iter().any(|d| d.n > MOST) {
        return;
    }
    let blocks = shape.dims().iter().try_fold(1usize, |n, d| n.checked_mul(d.n));
    if blocks.is_none_or(|n| n > MOST) {
        return;
    }
    let mut bytes = 0;
    let within = |at: isize, end: isize, extent: (isize, isize)| at >= extent.0 && end <= extent.1;
    shape
        .split(max, unit, &mut |local, remote, piece| {
            let (pl, pr) = (piece.extent(Side::Local), piece.extent(Side::Remote));
            assert!(
                within(local + pl.0, local + pl.1, l) && within(remote + pr.0, remote + pr.1, r)
            );
            bytes += piece.bytes();
            Ok(())
        })
        .expect("nothing fails");
    assert_eq!(bytes, shape.bytes());
    let size = shape.block() as isize;
    shape.for_each(&mut |local, remote| {
        assert!(within(local, local + size, l) && within(remote, remote + size, r));
    });
}

fn vectors(block: usize, blocks: &[(usize, usize)]) {
    let (local, remote): (Vec<_>, Vec<_>) = blocks.iter().copied().unzip();
    let mut sum = 0u128;
    for (l, r, bytes) in (Vector { block, local: &local, remote: &remote }).joined() {
        assert!(local.contains(&l) && remote.contains(&r));
        sum += bytes as u128;
    }
    assert_eq!(sum, block as u128 * blocks.len() as u128);
}
