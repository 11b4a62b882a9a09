//! Tests that compare the transfers of a patch with the owner of each element.

use super::axis::Dims;
use super::distribution::{Distribution, Layout};
use super::patch::Patch;
use super::views::{BlockAxis, Fragment, MAX_LEVELS};
use crate::random::{cases, extreme, list};
use fastrand::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// In row-major order.
fn indices(counts: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for &n in counts {
        all = all
            .iter()
            .flat_map(|i| (0..n).map(move |k| i.iter().copied().chain([k]).collect()))
            .collect();
    }
    all
}

/// Returns the ranks of a distribution, and the distribution.
fn distribution(rng: &mut Rng, shape: &[usize]) -> (usize, Distribution) {
    let grid = |rng: &mut Rng| list(rng, shape.len(), |rng| rng.usize(1..4));
    match rng.u32(0..5) {
        0 => (rng.usize(1..13), Distribution::Block),
        1 => (rng.usize(1..13), Distribution::Rows),
        2 => {
            let grid = grid(rng);
            (grid.iter().product(), Distribution::Grid(grid))
        }
        3 => {
            let starts = |&n: &usize| {
                let more = rng.usize(0..3);
                let mut starts = list(rng, more, |rng| rng.usize(0..=n));
                starts.push(0);
                starts.sort_unstable();
                starts
            };
            let starts: Vec<Vec<usize>> = shape.iter().map(starts).collect();
            (starts.iter().map(Vec::len).product(), Distribution::Irregular(starts))
        }
        _ => {
            let block = list(rng, shape.len(), |rng| rng.usize(1..5));
            let grid = grid(rng);
            let ranks = grid.iter().product();
            (ranks, Distribution::BlockCyclic { block, grid: rng.bool().then_some(grid) })
        }
    }
}

fn layout(rng: &mut Rng) -> (Layout, usize) {
    let ndim = rng.usize(1..4);
    let shape = list(rng, ndim, |rng| rng.usize(1..12));
    let (ranks, distribution) = distribution(rng, &shape);
    let widest = usize::from(!matches!(distribution, Distribution::BlockCyclic { .. })) * 2;
    let ghosts = list(rng, ndim, |rng| rng.usize(0..=widest));
    (Layout::new(&shape, 8, ranks, &distribution, &ghosts).expect("a layout"), ranks)
}

fn with_patch(rng: &mut Rng) -> (Layout, Patch) {
    let (layout, _) = layout(rng);
    let shape = || layout.shape.iter();
    let patch = if rng.bool() {
        let ranges: Vec<Range<usize>> = shape()
            .map(|&n| {
                let (a, b) = (rng.usize(0..=n), rng.usize(0..=n));
                a.min(b)..a.max(b)
            })
            .collect();
        Patch::from(&ranges[..])
    } else {
        let around = |&n: &usize| {
            let start = rng.isize(-20..20);
            start..start + rng.isize(0..=2 * n as isize + 3)
        };
        Patch::periodic_of(&shape().map(around).collect::<Vec<_>>())
    };
    let steps = list(rng, layout.shape.len(), |rng| rng.usize(1..5));
    let patch = patch.every(&steps).expect("steps");
    (layout, patch)
}

fn global(layout: &Layout, patch: &Patch, number: &[usize]) -> Vec<usize> {
    let each = patch.spans().iter().zip(number).zip(&layout.shape);
    each.map(|((s, i), n)| (s.start + (i * s.step) as isize).rem_euclid(*n as isize) as usize)
        .collect()
}

fn partition(layout: &Layout, patch: &Patch) -> Vec<Fragment> {
    layout.partition(patch, |fragments| Ok(fragments.to_vec())).expect("few pieces")
}

/// Returns the position in the patch, the owner and the offset there of each moved element.
fn moved(fragments: &[Fragment]) -> BTreeMap<Vec<usize>, (usize, usize)> {
    let mut moved = BTreeMap::new();
    for fragment in fragments {
        let counts: Vec<usize> = fragment.axes.iter().map(|a| a.n * a.repeat).collect();
        for inner in indices(&counts) {
            let (mut number, mut offset) = (Vec::new(), fragment.offset);
            for (a, i) in fragment.axes.iter().zip(inner) {
                let (again, i) = (i / a.n, i % a.n);
                number.push(a.at + again * a.at_stride + i);
                offset += again * a.repeat_stride + i * a.stride;
            }
            assert!(moved.insert(number, (fragment.rank, offset)).is_none(), "moved twice");
        }
    }
    moved
}

#[test]
fn every_element_has_one_owner_and_one_place() {
    cases(2000, |rng| {
        let (layout, ranks) = layout(rng);
        let mut seen = BTreeSet::new();
        for index in indices(&layout.shape) {
            let (rank, offset) = layout.locate(&index);
            assert!(rank < ranks && offset < layout.part_len(rank));
            assert!(seen.insert((rank, offset)), "{index:?} shares its place");
            let coords = layout.coords(rank).expect("in the grid");
            let (_, strides) = layout.part(&coords);
            let mut rest = offset;
            for axis in 0..layout.ndim() {
                let local = rest / strides[axis] - layout.ghosts[axis];
                rest %= strides[axis];
                assert_eq!(layout.global(axis, coords[axis], local), index[axis]);
            }
            if let Some(bounds) = layout.bounds(rank) {
                assert!(bounds.iter().zip(&index).all(|(b, i)| b.contains(i)));
            }
        }
        let own: usize = (0..ranks).map(|r| layout.extents(r).iter().product::<usize>()).sum();
        assert_eq!(own, layout.shape.iter().product::<usize>());
    });
}

#[test]
fn a_patch_is_cut_into_its_elements() {
    cases(2000, |rng| {
        let (layout, patch) = with_patch(rng);
        patch.check("a", &layout.shape).expect("inside");
        let moved = moved(&partition(&layout, &patch));
        assert_eq!(moved.len(), patch.len());
        for (number, place) in &moved {
            assert_eq!(layout.locate(&global(&layout, &patch, number)), *place);
        }
    });
}

#[test]
fn an_owner_of_blocks_has_one_transfer() {
    cases(2000, |rng| {
        let (layout, patch) = with_patch(rng);
        // A patch that wraps around may have several parts at one owner.
        let plain = patch
            .spans()
            .iter()
            .zip(&layout.shape)
            .all(|(s, n)| s.start >= 0 && s.start as usize + s.count * s.step < *n + s.step);
        let fragments = partition(&layout, &patch);
        let owners: BTreeSet<usize> = fragments.iter().map(|p| p.rank).collect();
        if plain && layout.bounds(0).is_some() {
            assert_eq!(owners.len(), fragments.len());
        } else if plain && patch.spans().iter().all(|s| s.step == 1) {
            assert!(fragments.len() <= owners.len() * 3usize.pow(layout.ndim() as u32));
        }
    });
}

/// Returns a shape, ranks, a distribution and ghost cells, not necessarily compatible.
fn wild(rng: &mut Rng) -> (Vec<usize>, usize, Distribution, Vec<usize>) {
    let ndim = rng.usize(1..4);
    let some = |rng: &mut Rng| list(rng, ndim, extreme);
    let distribution = match rng.u32(0..5) {
        0 => Distribution::Block,
        1 => Distribution::Rows,
        2 => Distribution::Grid(some(rng)),
        3 => Distribution::Irregular(list(rng, ndim, |rng| {
            let parts = rng.usize(1..3);
            list(rng, parts, extreme)
        })),
        _ => {
            let block = some(rng);
            Distribution::BlockCyclic { block, grid: rng.bool().then(|| some(rng)) }
        }
    };
    (some(rng), rng.usize(1..13), distribution, some(rng))
}

#[test]
fn any_numbers_make_a_layout_or_an_error() {
    cases(20_000, |rng| {
        let (shape, ranks, distribution, ghosts) = wild(rng);
        let spans = list(rng, shape.len(), |rng| (extreme(rng), extreme(rng), extreme(rng)));
        let periodic = rng.bool();
        let none = vec![0; shape.len()];
        for ghosts in [&none, &ghosts] {
            let Ok(layout) = Layout::new(&shape, 8, ranks, &distribution, ghosts) else { continue };
            let patch = if periodic {
                let ranges: Vec<_> =
                    spans.iter().map(|&(a, b, _)| a as isize..b as isize).collect();
                Patch::periodic_of(&ranges)
            } else {
                Patch::from(&spans.iter().map(|&(a, b, _)| a..b).collect::<Vec<_>>()[..])
            };
            let steps: Vec<usize> = spans.iter().map(|s| s.2).collect();
            let _ = layout.part_len(ranks - 1);
            for patch in [Ok(patch.clone()), patch.every(&steps)].into_iter().flatten() {
                let (len, _) = (patch.len(), patch.to_string());
                // Longer lists would take too long.
                let short = |patch: &Patch| patch.len() < 1 << 10;
                if patch.check("a", &shape).is_ok() {
                    let once = patch.once(&shape);
                    if short(&once) && patch.counts().all(|n| n < 1 << 20) {
                        let fragments = partition(&layout, &once);
                        assert!(fragments.iter().all(|p| p.offset < layout.part_len(p.rank)));
                    }
                    if !short(&patch) && once.is_empty() {
                        assert_eq!(len, 0);
                    }
                }
            }
        }
    });
}

#[test]
#[expect(clippy::single_range_in_vec_init, reason = "a patch of one axis")]
fn numbers_beyond_an_address_space_are_refused() {
    let of = |shape: &[usize], distribution: Distribution, ghosts: &[usize]| {
        Layout::new(shape, 8, 4, &distribution, ghosts)
    };
    for g in [1 << 60, 1 << 62, 1 << 63, usize::MAX] {
        assert!(of(&[16], Distribution::Block, &[g]).is_err(), "{g} ghost cells");
    }
    assert!(of(&[0, 1 << 60], Distribution::Block, &[0, 0]).is_err());
    assert!(of(&[1 << 60], Distribution::Block, &[0]).is_err());
    let long = of(&[16], Distribution::BlockCyclic { block: vec![usize::MAX], grid: None }, &[0]);
    let long = long.expect("one block");
    assert_eq!((long.own_boxes(0).len(), long.own_boxes(1).len()), (1, 0));

    let far = Patch::from(0..usize::MAX).every(&[2]).expect("half of them");
    assert!(far.clone().every(&[usize::MAX]).is_err(), "a step that overflows");
    assert!(far.clone().every(&[3]).expect("a sixth of them").check("h", &[10]).is_err());
    assert!(far.check("h", &[10]).is_err());
    assert_eq!(Patch::from([0..usize::MAX, 0..2]).len(), usize::MAX);
    assert_eq!(Patch::from([0..usize::MAX, 2..2]).len(), 0);
    let all = Patch::periodic([isize::MIN..isize::MAX]);
    assert_eq!(all.len(), usize::MAX);
    assert!(all.check("h", &[10]).is_err());
    // The patch selects each index once, however often it wraps around.
    let often = Patch::periodic([-(1 << 61)..1 << 61]).every(&[3]).expect("steps");
    often.check("h", &[10]).expect("a patch around the ends");
    let layout = of(&[10], Distribution::Block, &[0]).expect("a layout");
    let seen: usize = partition(&layout, &often.once(&[10])).iter().map(|p| p.axes[0].n).sum();
    assert_eq!(seen, 10);
    let error = layout.partition(&often, |_| Ok(())).expect_err("2^60 parts");
    assert_eq!(error.kind(), portolan_base::error::ErrorKind::Memory);
}

/// A block-cyclic layout along all six axes needs more strides than a transfer can have.
#[test]
fn pieces_have_as_many_strides_as_a_transfer() {
    let distribution = Distribution::BlockCyclic { block: vec![1; 6], grid: Some(vec![2; 6]) };
    let layout = Layout::new(&[4; 6], 8, 64, &distribution, &[0; 6]).expect("a layout");
    let patch = Patch::from([0..4, 0..3, 1..4, 0..4, 0..4, 0..4]);
    let fragments = partition(&layout, &patch);
    for fragment in &fragments {
        let strides = |a: &BlockAxis| usize::from(a.n > 1) + usize::from(a.repeat > 1);
        assert!(fragment.axes.iter().map(strides).sum::<usize>() <= MAX_LEVELS, "{fragment:?}");
    }
    let moved = moved(&fragments);
    assert_eq!(moved.len(), patch.len());
    for (number, place) in &moved {
        assert_eq!(layout.locate(&global(&layout, &patch, number)), *place);
    }
}

#[test]
#[expect(clippy::single_range_in_vec_init, reason = "a patch of one axis")]
fn steps_of_a_stepped_patch_count_its_own_indices() {
    let second = Patch::strided([0..9], [2]).expect("steps");
    let sixth = second.every(&[3]).expect("steps");
    assert_eq!(sixth, Patch::strided([0..9], [6]).expect("steps"));
    assert_eq!(sixth.shape(), [2]);
}

#[test]
fn grids_have_little_surface() {
    let grid = |shape: &[usize], ranks| {
        Layout::new(shape, 8, ranks, &Distribution::Block, &vec![0; shape.len()])
            .expect("a grid")
            .grid
    };
    let is = |numbers: &[usize]| Dims::from(numbers);
    assert_eq!(grid(&[100, 100], 4), is(&[2, 2]));
    assert_eq!(grid(&[100, 100], 2), is(&[2, 1])); // rows stay whole
    assert_eq!(grid(&[10, 1000], 6), is(&[1, 6]));
    assert_eq!(grid(&[64, 64, 64], 8), is(&[2, 2, 2]));
    assert_eq!(grid(&[64, 64, 64], 12), is(&[3, 2, 2]));
    assert_eq!(grid(&[3, 1000], 7), is(&[1, 7]));
    assert_eq!(grid(&[5], 4), is(&[4]));
}

#[test]
fn errors_name_what_does_not_fit() {
    let of = |distribution: Distribution, ghosts: &[usize]| {
        Layout::new(&[10, 20], 8, 4, &distribution, ghosts)
            .expect_err("it does not fit")
            .to_string()
    };
    let none = &[0, 0];
    assert!(of(Distribution::grid([2, 3]), none).contains("[2, 3]"));
    assert!(of(Distribution::grid([2]), none).contains("axes differ"));
    assert!(of(Distribution::grid([0, 2]), none).contains("[0, 2]"));
    assert!(of(Distribution::Irregular(vec![vec![1], vec![0]]), none).contains("not at 0"));
    assert!(
        of(Distribution::Irregular(vec![vec![0, 11], vec![0]]), none).contains("not ascending")
    );
    assert!(of(Distribution::block_cyclic([0, 2]), none).contains("no elements"));
    assert!(of(Distribution::block_cyclic([2, 2]), &[1, 0]).contains("block-cyclic distribution"));

    let patch = |patch: Patch| patch.check("h", &[10, 20]).expect_err("it leaves").to_string();
    assert!(
        patch([0..11, 0..20].into()).contains("\"h\" of shape [10, 20]: the patch [0..11, 0..20]")
    );
    assert!(patch([0..1, 19..21].into()).contains("axis 1, whose bounds are 0..20"));
    assert!(patch(Patch::from((0..3,))).contains("1 axes"));
    assert!(Patch::from([10..10, 3..3]).check("h", &[10, 20]).is_ok(), "empty");
    assert!(Patch::from(0..3).every(&[0]).is_err());
    let far = Patch::from(usize::MAX - 1..usize::MAX);
    assert!(far.check("h", &[10]).is_err());
    assert!(Patch::periodic_of(std::slice::from_ref(&(-1..1))).check("h", &[0]).is_err());
}
