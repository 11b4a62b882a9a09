//! Property tests of the parts that need no ranks: shapes, the index of the parts in a region, free
//! lists, and all decoders.
//!
//! Each test either compares with a simple, slow model, or checks that arbitrary bytes are accepted
//! or rejected without a panic and without reads outside the input.

use portolan_base::layout::{Dim, Shape, Side, Vector};
use portolan_compose::file::{self, Place};
use portolan_engine::am::wire as am;
use portolan_engine::memory::block_index::{Block, BlockIndex};
use portolan_engine::memory::free_list::FreeList;
use portolan_engine::memory::runs;
use portolan_engine::path::two_sided::wire;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;

// ------------------------------------------------------------------------ shapes

/// Generates counts and strides of up to five dimensions. Some dimensions are contiguous.
fn arrays() -> impl Strategy<Value = (Vec<usize>, Vec<isize>, Vec<isize>)> {
    let level = (0usize..5, -100isize..200, -100isize..200, any::<bool>(), any::<bool>());
    (0usize..20, vec(level, 0..6)).prop_map(|(block, levels)| {
        let (mut counts, mut local, mut remote) = (vec![block], Vec::new(), Vec::new());
        for (n, l, r, on_l, on_r) in levels {
            // The stride that makes this dimension continue the one before.
            let next = |strides: &[isize]| match strides.last() {
                Some(s) => s * counts[strides.len()] as isize,
                None => block as isize,
            };
            local.push(if on_l { next(&local) } else { l });
            remote.push(if on_r { next(&remote) } else { r });
            counts.push(n);
        }
        (counts, local, remote)
    })
}

fn pairs_of(counts: &[usize], local: &[isize], remote: &[isize]) -> Vec<(isize, isize)> {
    let mut starts = vec![(0, 0)];
    for i in (1..counts.len()).rev() {
        starts = starts
            .iter()
            .flat_map(|&(l, r)| {
                (0..counts[i] as isize).map(move |n| (l + n * local[i - 1], r + n * remote[i - 1]))
            })
            .collect();
    }
    let block = counts[0] as isize;
    starts.iter().flat_map(|&(l, r)| (0..block).map(move |i| (l + i, r + i))).collect()
}

fn pairs(shape: &Shape, at: (isize, isize)) -> Vec<(isize, isize)> {
    let mut all = Vec::new();
    shape.for_each(&mut |l, r| {
        all.extend((0..shape.block() as isize).map(|i| (at.0 + l + i, at.1 + r + i)));
    });
    all
}

proptest! {
    #[test]
    fn a_shape_is_its_loops((counts, local, remote) in arrays()) {
        let shape = Shape::strided(&counts, &local, &remote).unwrap();
        let want = pairs_of(&counts, &local, &remote);
        prop_assert_eq!(&pairs(&shape, (0, 0)), &want);
        prop_assert_eq!(shape.bytes(), want.len());
        prop_assert_eq!(shape.is_empty(), want.is_empty());
        if !want.is_empty() {
            for (side, offsets) in [
                (Side::Local, want.iter().map(|p| p.0).collect::<Vec<_>>()),
                (Side::Remote, want.iter().map(|p| p.1).collect()),
            ] {
                let (lo, hi) = shape.extent(side);
                prop_assert_eq!(Some(&lo), offsets.iter().min());
                prop_assert_eq!(Some(hi - 1), offsets.iter().max().copied());
                let row = offsets.iter().enumerate().all(|(i, o)| *o == i as isize);
                prop_assert!(!shape.is_contiguous_on(side) || row);
            }
        }
    }

    #[test]
    fn packing_changes_one_side_only((counts, local, remote) in arrays()) {
        let shape = Shape::strided(&counts, &local, &remote).unwrap();
        let all = pairs(&shape, (0, 0));
        let packed: Vec<_> = (0..all.len() as isize).zip(&all).map(|(i, p)| (i, p.1)).collect();
        prop_assert_eq!(pairs(&shape.packed_local(), (0, 0)), packed);
        let packed: Vec<_> = (0..all.len() as isize).zip(&all).map(|(i, p)| (p.0, i)).collect();
        prop_assert_eq!(pairs(&shape.packed_remote(), (0, 0)), packed);
        prop_assert!(shape.packed_local().is_contiguous_on(Side::Local));
        prop_assert!(shape.packed_remote().is_contiguous_on(Side::Remote));
    }

    #[test]
    fn pieces_make_up_the_shape(
        (counts, local, remote) in arrays(),
        max in 1usize..300,
        unit in prop::sample::select(vec![1usize, 2, 4, 8, 16]),
    ) {
        let counts: Vec<usize> =
            counts.iter().enumerate().map(|(i, n)| if i == 0 { n * unit } else { *n }).collect();
        let shape = Shape::strided(&counts, &local, &remote).unwrap();
        let mut joined = Vec::new();
        shape
            .split(max, unit, &mut |l, r, piece| {
                assert!(piece.bytes() <= max.max(unit));
                assert!(piece.bytes() % unit == 0);
                joined.extend(pairs(piece, (l, r)));
                Ok(())
            })
            .unwrap();
        prop_assert_eq!(joined, pairs(&shape, (0, 0)));
    }

    #[test]
    fn any_numbers_are_a_shape_or_refused(
        counts in vec(prop_oneof![any::<usize>(), 0usize..4, Just(1usize << 62)], 0..10),
        local in vec(any::<isize>(), 0..10),
        remote in vec(prop_oneof![any::<isize>(), -9isize..9], 0..10),
    ) {
        if let Ok(shape) = Shape::strided(&counts, &local, &remote) {
            usable(&shape)?;
        }
    }

    #[test]
    fn neighbours_of_a_vector_join(
        block in 1usize..9,
        steps in vec((0usize..3, 0usize..3), 0..30),
    ) {
        let (mut local, mut remote, mut at) = (Vec::new(), Vec::new(), (0, 1000));
        for (l, r) in steps {
            local.push(at.0);
            remote.push(at.1);
            at = (at.0 + block + l / 2, at.1 + block + r / 2);
        }
        let single = local.iter().zip(&remote).flat_map(|(l, r)| (0..block).map(move |i| (l + i, r + i)));
        let single: Vec<_> = single.collect();
        let list = Vector { block, local: &local, remote: &remote };
        let joined: Vec<_> = list.joined().collect();
        let bytes: Vec<_> =
            joined.iter().flat_map(|&(l, r, n)| (0..n).map(move |i| (l + i, r + i))).collect();
        prop_assert_eq!(bytes, single);
        let touching = joined.windows(2).any(|w| w[0].0 + w[0].2 == w[1].0 && w[0].1 + w[0].2 == w[1].1);
        prop_assert!(!touching, "blocks that continue each other were not joined");
    }
}

/// Checks the operations that the engine applies to a shape before it accesses memory.
fn usable(shape: &Shape) -> Result<(), TestCaseError> {
    prop_assert!(isize::try_from(shape.bytes()).is_ok(), "more bytes than an address space");
    for side in [Side::Local, Side::Remote] {
        let (lo, hi) = shape.extent(side);
        prop_assert!(lo <= 0 && hi >= 0 && lo <= hi);
        prop_assert!(hi - lo >= isize::from(!shape.is_empty()));
    }
    let dims: &[Dim] = shape.dims();
    prop_assert!(dims.iter().all(|d| d.n > 1));
    prop_assert_eq!(shape.packed_local().bytes(), shape.bytes());
    prop_assert_eq!(shape.packed_remote().bytes(), shape.bytes());
    Ok(())
}

// ---------------------------------------------------------------- parts of a region

#[derive(Debug, Clone)]
enum Step {
    Insert { at: usize, len: usize },
    Remove { which: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0usize..1 << 14, prop_oneof![1usize..200, 1usize..30_000])
            .prop_map(|(at, len)| Step::Insert { at, len }),
        1 => any::<usize>().prop_map(|which| Step::Remove { which }),
    ];
    vec(step, 1..120)
}

proptest! {
    #[test]
    fn the_index_finds_what_a_map_finds(
        steps in steps(),
        shift in 0u32..8,
        dense in any::<bool>(),
        offsets in vec(0usize..1 << 20, 40),
    ) {
        let slice = 1usize << (20 + shift);
        let mut index = BlockIndex::new(slice);
        let mut model: BTreeMap<usize, Block> = BTreeMap::new();
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Insert { at, len } => {
                    let start = (at * 64) << if dense { 0 } else { shift };
                    let piece = Block { start, len, segment: number as u64 };
                    // Parts begin at multiples of 64, even after parts of odd length.
                    let end = (start + len).next_multiple_of(64);
                    let clear = model.values().all(|p| {
                        (p.start + p.len).next_multiple_of(64) <= start || p.start >= end
                    });
                    if clear && end <= slice {
                        model.insert(start, piece);
                        index.insert(piece);
                    }
                }
                Step::Remove { which } if model.is_empty() => prop_assert_eq!(index.remove(which), None),
                Step::Remove { which } => {
                    let start = *model.keys().nth(which % model.len()).unwrap();
                    prop_assert_eq!(index.remove(start), model.remove(&start));
                    prop_assert_eq!(index.remove(start), None);
                }
            }
        }
        prop_assert_eq!(index.is_empty(), model.is_empty());
        let edges = model.values().flat_map(|p| {
            [p.start.wrapping_sub(1), p.start, p.start + p.len - 1, p.start + p.len, p.start + p.len + 1]
        });
        for offset in offsets.into_iter().map(|o| o << shift).chain(edges).filter(|o| *o < slice) {
            // The part that contains the byte, or otherwise a part that ends exactly there.
            let before = model.range(..=offset).next_back().map(|(_, p)| *p);
            let ending = model.range(..offset).next_back().map(|(_, p)| *p);
            let want = before
                .filter(|p| offset < p.start + p.len)
                .or(ending.filter(|p| p.start + p.len == offset));
            prop_assert_eq!(index.find(offset).map(|b| (b.start, b.len)), want.map(|p| (p.start, p.len)));
            prop_assert_eq!(index.segment_from(offset), model.get(&offset).map(|p| p.segment));
        }
    }

    #[test]
    fn free_lists_give_disjoint_pieces(
        sizes in vec((1usize..400, any::<bool>()), 1..200),
    ) {
        let mut list = FreeList::new(64, 16_384);
        let mut held: Vec<(usize, usize)> = Vec::new();
        for (size, give) in sizes {
            let size = size.next_multiple_of(64);
            if give && !held.is_empty() {
                let (at, len) = held.swap_remove(size % held.len());
                list.give(at, len);
            } else if let Some(at) = list.take(size) {
                prop_assert!(at >= 64 && at + size <= 16_384);
                prop_assert!(held.iter().all(|(a, l)| a + l <= at || *a >= at + size));
                held.push((at, size));
            } else {
                let used: usize = held.iter().map(|(_, l)| l).sum();
                prop_assert!(used + size > 16_320 || held.len() > 1, "there was room");
            }
        }
        let last = held.iter().map(|(a, l)| a + l).max().unwrap_or(64);
        prop_assert_eq!(list.tail(), last);
        for (at, len) in held {
            list.give(at, len);
        }
        prop_assert_eq!(list.take(16_320), Some(64));
    }
}

// ------------------------------------------------------------------ decoded messages

fn requests() -> impl Strategy<Value = Vec<u8>> {
    (1u8..20, arrays(), any::<u64>(), vec(any::<u8>(), 0..64)).prop_map(
        |(kind, (counts, local, remote), address, payload)| {
            let shape = Shape::strided(&counts, &local, &remote).unwrap();
            let mut out = Vec::new();
            wire::encode(
                wire::RequestHeader::new(wire::RequestKind::Put, address as usize),
                &shape,
                &mut out,
            );
            out[0] = kind;
            out.extend(payload);
            out
        },
    )
}

/// Generates bytes with some of them changed, and possibly truncated or extended.
fn damaged(good: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    (good, vec((any::<prop::sample::Index>(), any::<u8>()), 0..8), any::<Option<u16>>()).prop_map(
        |(mut bytes, changes, cut)| {
            for (at, value) in changes {
                if !bytes.is_empty() {
                    let at = at.index(bytes.len());
                    bytes[at] = value;
                }
            }
            if let Some(cut) = cut {
                bytes.resize(usize::from(cut) % (2 * bytes.len() + 2), 0x5a);
            }
            bytes
        },
    )
}

fn any_bytes(good: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![3 => damaged(good), 1 => vec(any::<u8>(), 0..300)]
}

proptest! {
    #[test]
    fn requests_are_read_or_refused(message in any_bytes(requests())) {
        if let Ok((header, shape, payload)) = wire::decode(&message) {
            usable(&shape)?;
            prop_assert!(payload.len() < message.len());
            let _ = (wire::RequestKind::of(&message), header.scale(), header.rmw());
        }
        for n in [0, 1, 3, u64::from(message.first().copied().unwrap_or(0)), u64::MAX, 1 << 60] {
            if let Ok((runs, total, rest)) = runs::list(&message, n) {
                prop_assert_eq!(runs::total(&runs), Some(total));
                prop_assert_eq!(runs.len() as u64, n);
                prop_assert_eq!(runs.len() * 16 + rest.len(), message.len());
            }
        }
    }

    #[test]
    fn requests_come_back_as_they_were((counts, local, remote) in arrays(), address in any::<usize>()) {
        let shape = Shape::strided(&counts, &local, &remote).unwrap();
        let mut out = Vec::new();
        wire::encode(wire::RequestHeader::new(wire::RequestKind::Get, address), &shape, &mut out);
        prop_assert_eq!(out.len(), wire::head_len(&shape));
        prop_assert!(out.len() <= wire::MAX_HEAD);
        out.extend(b"payload");
        let (header, read, payload) = wire::decode(&out).unwrap();
        prop_assert_eq!(wire::RequestKind::of(&out).unwrap(), wire::RequestKind::Get);
        prop_assert_eq!(header.address, address as u64);
        prop_assert_eq!(read, shape.packed_local());
        prop_assert_eq!(payload, b"payload");
    }

    #[test]
    fn active_messages_are_read_or_refused(record in vec(any::<u8>(), 0..200)) {
        if let Ok((head, rest)) = am::split(&record) {
            let _ = head.kind();
            for rest in [Some(rest), am::source(rest).ok().map(|(_, rest)| rest)].into_iter().flatten() {
                if let Ok((header, data)) = am::header(&head, rest) {
                    prop_assert_eq!(header.len(), head.header as usize);
                    prop_assert_eq!(header.len() + data.len(), rest.len());
                }
            }
        }
    }

    /// A record is read only if it is exactly what was written.
    #[test]
    fn stored_records_are_read_or_refused(
        body in vec(any::<u8>(), 0..100),
        at in any::<prop::sample::Index>(),
        change in 1u8..=255,
        cut in any::<prop::sample::Index>(),
        noise in vec(any::<u8>(), 0..200),
    ) {
        let here = Place { rank: 1, ranks: 3 };
        let good = file::encode(here, portolan_compose::CompositionKind::Mapped, &body).expect("a record");
        let read = |bytes: &[u8]| file::read(&mut &bytes[..], bytes.len() as u64, here, "the file");
        prop_assert_eq!(read(&good).unwrap().0.body, body);
        let mut bad = good.clone();
        bad[at.index(good.len())] ^= change;
        prop_assert!(read(&bad).is_err());
        prop_assert!(read(&good[..cut.index(good.len())]).is_err());
        prop_assert!(read(&noise).is_err());
        let mut longer = good.clone();
        longer.extend(noise);
        prop_assert_eq!(read(&longer).unwrap().1, good.len() as u64);
    }
}
