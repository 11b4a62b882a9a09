//! Distributed arrays. The memory of a group is an array of one element type, and an address stands
//! for an element of a rank's part. An item becomes one call: for a patch if its elements form one,
//! otherwise for runs of elements or for single elements. So an item has one owner;
//! [`arrays`](crate::arrays) tests patches of several owners.

use super::rust::RustTeams;
use crate::child::Ctx;
use crate::interface::{Abilities, Interface, Mode, Move, TYPES, Word};
use crate::rng::Rng;
use crate::teams::{Collective, Teams};
use ndarray::{Array2, ArrayD, ArrayViewMutD, Dimension, Ix2, IxDyn, Slice};
use portolan::array::{DistArray, Distribution, Options, Patch};
use portolan::transfer::Pending;
use portolan::{Accumulate, Result, Runtime};
use portolan_engine::path::kernel::Scale;
use portolan_engine::path::ops::Combine;
use portolan_engine::transfer::TransferKind;
use std::collections::BTreeMap;

type Array<'a, T> = DistArray<'a, T, IxDyn>;

/// [`DistArray::fetch_add`] of the types that have it.
pub type FetchAdd<T> = Option<fn(&Array<'_, T>, IxDyn, T) -> Result<T>>;

/// The distribution of an axis.
struct Axis {
    /// The number of indices of each coordinate.
    extents: Vec<usize>,
    /// The length of the blocks that are dealt out cyclically.
    block: Option<usize>,
}

impl Axis {
    fn global(&self, coord: usize, local: usize) -> usize {
        match self.block {
            None => self.extents[..coord].iter().sum::<usize>() + local,
            Some(n) => (local / n * self.extents.len() + coord) * n + local % n,
        }
    }
}

struct Memory<'a, T: Accumulate> {
    array: Array<'a, T>,
    axes: Vec<Axis>,
    /// The address and the bytes of each rank's part.
    bases: Vec<usize>,
    lens: Vec<usize>,
}

impl<T: Accumulate> Memory<'_, T> {
    /// Returns the index of an element of a rank's part, by its position in memory. The last axis
    /// varies fastest among the ranks and the elements.
    fn index(&self, mut rank: usize, mut at: usize) -> IxDyn {
        let mut index = vec![0; self.axes.len()];
        for (i, axis) in index.iter_mut().zip(&self.axes).rev() {
            let coord = rank % axis.extents.len();
            *i = axis.global(coord, at % axis.extents[coord]);
            (rank, at) = (rank / axis.extents.len(), at / axis.extents[coord]);
        }
        IxDyn(&index)
    }

    /// Returns the position of an index in row-major order.
    fn flat(&self, index: &IxDyn) -> usize {
        index.slice().iter().zip(self.array.shape()).fold(0, |at, (i, n)| at * n + i)
    }
}

/// Draws a distribution. The part of a rank has at least the rows that the rank requests.
fn distribute(rows: Vec<usize>, inner: Vec<usize>, rng: &mut Rng) -> (Vec<Axis>, Distribution) {
    let (mut rest, irregular) = (rows.len(), rng.one_in(3));
    let start = |rank: usize| rows[..rank].iter().sum();
    let mut starts = vec![(0..rest).map(start).collect::<Vec<usize>>()];
    starts.extend(inner.iter().map(|_| vec![0]));
    // Without bounds for each rank, all parts have one shape.
    let most = rows.iter().copied().max().unwrap_or(0);
    let mut extents = vec![if irregular { rows } else { vec![most] }];
    extents.extend(inner.into_iter().map(|n| vec![n]));
    for factor in [2, 3, 5, 7, rest] {
        while !irregular && rest > 1 && rest.is_multiple_of(factor) {
            let cut = rng.below(extents.len());
            extents[cut] = extents[cut].repeat(factor);
            rest /= factor;
        }
    }
    let grid: Vec<usize> = extents.iter().map(Vec::len).collect();
    let mut axes: Vec<Axis> =
        extents.into_iter().map(|extents| Axis { extents, block: None }).collect();
    if irregular {
        return (axes, Distribution::Irregular(starts));
    }
    if rng.one_in(2) {
        return (axes, Distribution::grid(grid));
    }
    let block: Vec<usize> = axes.iter().map(|_| rng.range(1, 3)).collect();
    for (axis, &n) in axes.iter_mut().zip(&block) {
        axis.extents.iter_mut().for_each(|extent| *extent = extent.next_multiple_of(n));
        axis.block = Some(n);
    }
    (axes, Distribution::BlockCyclic { block, grid: Some(grid) })
}

/// The part of a rank has at least the bytes that the rank requests.
struct ArrayTeams<'a, T: Accumulate> {
    groups: RustTeams<'a>,
    memory: BTreeMap<usize, Memory<'a, T>>,
}

impl<T: Accumulate> Teams for ArrayTeams<'_, T> {
    fn can(&self, team: usize, what: &Collective) -> bool {
        self.groups.can(team, what)
    }

    fn create(&mut self, team: usize, parent: usize, members: &[usize], rng: &mut Rng) {
        self.groups.create(team, parent, members, rng);
    }

    fn free(&mut self, team: usize) {
        self.groups.free(team);
    }

    fn allocate(&mut self, memory: usize, team: usize, bytes: usize, rng: &mut Rng) -> Vec<usize> {
        let group = &self.groups.teams[&team];
        let lens = group.all_gather(bytes).expect("all_gather");
        let inner: Vec<usize> = (0..rng.below(3)).map(|_| rng.range(1, 5)).collect();
        let row = size_of::<T>() * inner.iter().product::<usize>();
        let rows = lens.iter().map(|len| len.div_ceil(row)).collect();
        let (axes, distribution) = distribute(rows, inner, rng);
        let shape: Vec<usize> = axes.iter().map(|axis| axis.extents.iter().sum()).collect();
        let options = Options::named("memory").distribution(distribution);
        let mut array = Array::with(group, IxDyn(&shape), options).expect("an array");
        let access = array.access().expect("access");
        let own = access.local();
        let bits: &[u8] =
            bytemuck::cast_slice(own.as_slice().expect("elements in row-major order"));
        assert!(bits.len() >= bytes && bits.iter().all(|&byte| byte == 0), "new elements");
        let base = if bytes > 0 { bits.as_ptr() as usize } else { 0 };
        access.release().expect("release");
        let bases = group.all_gather(base).expect("all_gather");
        self.memory.insert(memory, Memory { array, axes, bases: bases.clone(), lens });
        bases
    }

    fn release(&mut self, memory: usize, _: &mut Rng) {
        self.memory.remove(&memory).expect("memory").array.free().expect("free");
    }

    fn collect(&mut self, team: usize, what: &Collective, data: &mut Vec<u8>, rng: &mut Rng) {
        self.groups.collect(team, what, data, rng);
    }

    fn under_lock(&mut self, team: usize, home: usize, times: usize, change: &mut dyn FnMut()) {
        self.groups.under_lock(team, home, times, change);
    }
}

impl<'a, T: Accumulate> ArrayTeams<'a, T> {
    /// Returns the memory with an address of a rank, the rank in its group, and the element.
    fn at(&self, target: usize, remote: usize) -> (&Memory<'a, T>, usize, usize) {
        let found = self.memory.values().find_map(|memory| {
            let rank = memory.array.group().rank_of(target)?;
            let at = remote.checked_sub(memory.bases[rank])?;
            (at < memory.lens[rank]).then_some((memory, rank, at / size_of::<T>()))
        });
        found.expect("an address of an array")
    }
}

enum Way {
    /// With the steps of the local view along each axis.
    Patch(Patch, Vec<isize>),
    Runs(Array2<usize>),
    List(Vec<IxDyn>),
}

/// The call of an item.
struct Transfer<'m, 'a, T: Accumulate> {
    kind: TransferKind,
    scale: T,
    array: &'m Array<'a, T>,
    way: Way,
    /// In the shape of the patch, or one row for each run.
    data: ArrayD<T>,
    /// The places of the elements of `data` in the item's buffer.
    places: Vec<*mut T>,
    /// The memory of the local view.
    wide: ArrayD<T>,
}

fn spread<'w, T>(wide: &'w mut ArrayD<T>, steps: &[isize]) -> ArrayViewMutD<'w, T> {
    wide.slice_each_axis_mut(|axis| Slice::new(0, None, steps[axis.axis.index()]))
}

/// Returns the elements, which may be in any order, as a patch, with its shape and their positions
/// in it. Returns `None` if they form no patch.
fn patch_of(
    shape: &[usize],
    indices: &[IxDyn],
    rng: &mut Rng,
) -> Option<(Patch, Vec<usize>, Vec<usize>)> {
    let (mut ranges, mut steps, mut counts) = (Vec::new(), Vec::new(), Vec::new());
    for axis in 0..shape.len() {
        let mut along: Vec<usize> = indices.iter().map(|index| index[axis]).collect();
        along.sort_unstable();
        along.dedup();
        let (first, last) = (along[0], along[along.len() - 1]);
        let step = if first == last { 1 } else { (last - first) / (along.len() - 1) };
        if !along.iter().copied().eq((first..=last).step_by(step)) {
            return None;
        }
        ranges.push(first..last + 1);
        steps.push(step);
        counts.push(along.len());
    }
    let place = |index: &IxDyn| {
        let axes = (0..shape.len()).zip(&counts);
        axes.fold(0, |at, (a, n)| at * n + (index[a] - ranges[a].start) / steps[a])
    };
    let places: Vec<usize> = indices.iter().map(place).collect();
    let mut each = places.clone();
    each.sort_unstable();
    if !each.into_iter().eq(0..counts.iter().product()) {
        return None;
    }
    let around = |(range, &n): (&std::ops::Range<usize>, &usize)| {
        range.start as isize - n as isize..range.end as isize - n as isize
    };
    let around: Vec<_> = ranges.iter().zip(shape).map(around).collect();
    let patch = if rng.one_in(4) { Patch::periodic_of(&around) } else { Patch::from(&ranges[..]) };
    Some((patch.every(&steps).expect("steps"), counts, places))
}

impl<'m, 'a, T: Accumulate> Transfer<'m, 'a, T> {
    /// # Safety
    /// The local bytes of the item must be valid.
    unsafe fn new(teams: &'m ArrayTeams<'a, T>, it: &Move<'_>, rng: &mut Rng) -> Option<Self> {
        let (kind, size, blocks) = (it.item.kind, size_of::<T>(), it.blocks());
        let len = blocks.first()?.2 / size;
        let (memory, rank, start) = teams.at(it.item.target, blocks[0].1);
        let scale = match kind {
            TransferKind::Accumulate(scale) => of_scale(scale),
            _ => T::ONE,
        };
        let (mut indices, mut places) = (Vec::new(), Vec::new());
        for (local, remote, _) in &blocks {
            let first = (start * size + remote - blocks[0].1) / size;
            indices.extend((first..first + len).map(|at| memory.index(rank, at)));
            places.extend((0..len).map(|i| (*local as *mut T).wrapping_byte_add(i * size)));
        }
        let flat: Vec<usize> = indices.iter().map(|index| memory.flat(index)).collect();
        let array = &memory.array;
        let patch = if rng.one_in(4) { None } else { patch_of(array.shape(), &indices, rng) };
        let (way, shape) = if let Some((patch, shape, order)) = patch {
            assert_eq!(array.owners(&patch).expect("owners"), [rank], "{patch}");
            let mut sorted = places.clone();
            order.iter().zip(&places).for_each(|(&at, &place)| sorted[at] = place);
            places = sorted;
            let step = |_: &usize| rng.range(1, 3) as isize * if rng.one_in(4) { -1 } else { 1 };
            (Way::Patch(patch, shape.iter().map(step).collect()), shape)
        } else if rng.one_in(2) {
            let count = indices.len();
            (Way::List(indices), vec![count])
        } else {
            // A block may go on at another place of the whole array.
            let whole = flat.chunks(len).all(|run| run.iter().copied().eq(run[0]..run[0] + len));
            let len = if whole { len } else { 1 };
            let firsts = indices.iter().step_by(len).flat_map(IxDyn::slice).copied().collect();
            let starts = Array2::from_shape_vec((indices.len() / len, array.ndim()), firsts);
            (Way::Runs(starts.expect("an index for each")), vec![indices.len() / len, len])
        };
        let mut data = ArrayD::from_elem(shape.clone(), T::zeroed());
        if kind != TransferKind::Get {
            for (x, place) in data.iter_mut().zip(&places) {
                // SAFETY: by contract, the bytes of the block are valid.
                *x = unsafe { place.read_unaligned() };
            }
        }
        let mut wide = ArrayD::from_elem(vec![0; shape.len()], T::zeroed());
        if let Way::Patch(_, steps) = &way {
            let lens = shape.iter().zip(steps).map(|(n, step)| n * step.unsigned_abs());
            wide = ArrayD::from_elem(lens.collect::<Vec<_>>(), T::zeroed());
            spread(&mut wide, steps).assign(&data);
        }
        Some(Transfer { kind, scale, array, way, data, places, wide })
    }

    fn perform(&mut self, rng: &mut Rng) -> Result<()> {
        let Transfer { kind, scale, array, way, data, wide, .. } = self;
        let (array, scale, n, len) = (*array, *scale, data.len(), data.shape()[data.ndim() - 1]);
        let flat = data.as_slice_mut().expect("row-major order");
        match (kind, way) {
            (TransferKind::Put, Way::Patch(patch, steps)) => {
                array.put(&*patch, &spread(wide, steps))
            }
            (TransferKind::Get, Way::Patch(patch, _)) if rng.one_in(3) => {
                *data = array.get(&*patch)?;
                Ok(())
            }
            (TransferKind::Get, Way::Patch(patch, steps)) => {
                array.get_into(&*patch, spread(wide, steps))?;
                self.unfold();
                Ok(())
            }
            (_, Way::Patch(patch, steps)) => array.accumulate(&*patch, scale, &spread(wide, steps)),
            (TransferKind::Put, Way::List(list)) if n == 1 && rng.one_in(2) => {
                array.put_value(list[0].clone(), flat[0])
            }
            (TransferKind::Get, Way::List(list)) if n == 1 && rng.one_in(2) => {
                flat[0] = array.get_value(list[0].clone())?;
                Ok(())
            }
            (TransferKind::Put, Way::List(list)) => array.scatter(list, flat),
            (TransferKind::Get, Way::List(list)) => {
                flat.copy_from_slice(&array.gather(list)?);
                Ok(())
            }
            (_, Way::List(list)) => array.scatter_add(list, scale, flat),
            (TransferKind::Put, Way::Runs(starts)) => array.scatter_runs(starts.view(), len, flat),
            (TransferKind::Get, Way::Runs(starts)) => array.gather_runs(starts.view(), len, flat),
            (_, Way::Runs(starts)) => array.scatter_add_runs(starts.view(), len, scale, flat),
        }
    }

    /// Starts the transfer with a buffer of its own. Lists of single elements are complete at once.
    fn start(&mut self, rng: &mut Rng) -> Result<Option<Pending<'m, ArrayD<T>>>> {
        let (array, scale, data) = (self.array, self.scale, self.data.clone());
        let len = data.shape()[data.ndim() - 1];
        let pending = match (self.kind, &self.way) {
            (_, Way::List(_)) => return self.perform(rng).map(|()| None),
            (TransferKind::Put, Way::Patch(patch, _)) => array.start_put(patch, data),
            (TransferKind::Get, Way::Patch(patch, _)) => array.start_get(patch),
            (_, Way::Patch(patch, _)) => array.start_accumulate(patch, scale, data),
            (TransferKind::Put, Way::Runs(at)) => array.start_scatter_runs(at.view(), len, data),
            (TransferKind::Get, Way::Runs(at)) => array.start_gather_runs(at.view(), len, data),
            (_, Way::Runs(at)) => array.start_scatter_add_runs(at.view(), len, scale, data),
        };
        pending.map(Some)
    }

    /// Takes the elements of a get from the local view.
    fn unfold(&mut self) {
        if let (TransferKind::Get, Way::Patch(_, steps)) = (self.kind, &self.way) {
            let mut view = spread(&mut self.wide, steps);
            self.data.assign(&view);
            view.fill(T::zeroed());
            let rest: &[u8] = bytemuck::cast_slice(self.wide.as_slice().expect("row-major order"));
            assert!(rest.iter().all(|&byte| byte == 0), "elements beside the view of a get");
        }
    }

    /// Copies what a get has brought to the item's buffer.
    ///
    /// # Safety
    /// The item's buffer must be valid, and the transfer complete.
    unsafe fn hand_back(&self) {
        if self.kind == TransferKind::Get {
            for (x, place) in self.data.iter().zip(&self.places) {
                // SAFETY: by contract, the bytes of the block are valid.
                unsafe { place.write_unaligned(*x) };
            }
        }
    }
}

fn of_scale<T: Accumulate>(scale: Scale) -> T {
    use bytemuck::{bytes_of, pod_read_unaligned};
    match scale {
        Scale::Byte(s) => pod_read_unaligned(bytes_of(&s)),
        Scale::Short(s) => pod_read_unaligned(bytes_of(&s)),
        Scale::Int(s) => pod_read_unaligned(bytes_of(&s)),
        Scale::Long(s) => pod_read_unaligned(bytes_of(&s)),
        Scale::Float(s) => pod_read_unaligned(bytes_of(&s)),
        Scale::Double(s) => pod_read_unaligned(bytes_of(&s)),
        Scale::FloatComplex(s) => pod_read_unaligned(bytes_of(&s)),
        Scale::DoubleComplex(s) => pod_read_unaligned(bytes_of(&s)),
        Scale::Bool(_) => unreachable!("the Rust interface has no truth values"),
    }
}

pub struct Arrays<'a, T: Accumulate> {
    rt: &'a Runtime,
    teams: ArrayTeams<'a, T>,
    fetch_add: FetchAdd<T>,
    /// At `[to, from]`, the messages that a rank has handed over to another.
    messages: Option<DistArray<'a, i64, Ix2>>,
    received: Vec<i64>,
}

impl<'a, T: Accumulate> Arrays<'a, T> {
    /// Collective.
    pub fn start(ctx: &Ctx, rt: &'a Runtime, fetch_add: FetchAdd<T>) -> Arrays<'a, T> {
        let messages = DistArray::zeros(&rt.world(), [ctx.n, ctx.n]).expect("an array");
        let teams = ArrayTeams { groups: RustTeams::new(rt), memory: BTreeMap::new() };
        let received = vec![0; ctx.n];
        Arrays { rt, teams, fetch_add, messages: Some(messages), received }
    }

    fn messages(&self) -> &DistArray<'a, i64, Ix2> {
        self.messages.as_ref().expect("the interface has not ended")
    }
}

impl<T: Accumulate> Interface for Arrays<'_, T> {
    fn abilities(&self) -> Abilities {
        let which = match T::ONE.scale() {
            Scale::Int(_) => 0,
            Scale::Long(_) => 1,
            Scale::Float(_) => 2,
            Scale::Double(_) => 3,
            Scale::FloatComplex(_) => 4,
            Scale::DoubleComplex(_) => 5,
            Scale::Byte(_) => 6,
            _ => 7,
        };
        Abilities {
            gets: true,
            unit: size_of::<T>(),
            types: &TYPES[which..=which],
            modes: &[Mode::Blocking, Mode::Handle, Mode::Implicit],
            words: if self.fetch_add.is_some() { &[Combine::Add] } else { &[] },
            tells: true,
            locks: 0,
            negative: true,
            anywhere: false,
        }
    }

    fn teams(&mut self) -> &mut dyn Teams {
        &mut self.teams
    }

    unsafe fn perform(&mut self, mode: Mode, moves: &[Move<'_>], rng: &mut Rng) {
        // SAFETY: the caller guarantees the local bytes.
        let made = moves.iter().filter_map(|it| unsafe { Transfer::new(&self.teams, it, rng) });
        let mut list: Vec<_> = made.collect();
        match mode {
            Mode::Blocking => list.iter_mut().for_each(|it| it.perform(rng).expect("a transfer")),
            Mode::Handle => {
                let mut flights = Vec::new();
                for (i, it) in list.iter_mut().enumerate() {
                    flights.extend(it.start(rng).expect("a transfer").map(|pending| (i, pending)));
                }
                rng.shuffle(&mut flights);
                for (i, pending) in flights {
                    while rng.one_in(2) && !pending.is_done().expect("a test") {
                        std::thread::yield_now();
                    }
                    list[i].data = pending.wait().expect("a transfer");
                }
            }
            _ => {
                let scoped = self.rt.scope(|scope| {
                    for it in &mut list {
                        let Transfer { kind, scale, array, way, data, wide, .. } = it;
                        match (*kind, &*way) {
                            (TransferKind::Put, Way::Patch(patch, _)) => {
                                scope.put_patch(array, patch, data).map(drop)?;
                            }
                            (TransferKind::Get, Way::Patch(patch, steps)) => {
                                scope.get_patch(array, patch, spread(wide, steps)).map(drop)?;
                            }
                            (_, Way::Patch(patch, _)) => {
                                scope.accumulate_patch(array, patch, *scale, data).map(drop)?;
                            }
                            _ => {}
                        }
                    }
                    Ok(())
                });
                scoped.expect("a scope");
                for it in &mut list {
                    match it.way {
                        Way::Patch(..) => it.unfold(),
                        _ => it.perform(rng).expect("a transfer"),
                    }
                }
            }
        }
        // SAFETY: the caller guarantees the local bytes, and all transfers are complete.
        list.iter().for_each(|it| unsafe { it.hand_back() });
    }

    fn nothing(&mut self, target: usize) {
        let array = self.messages();
        let (row, none) = ([target..target + 1, 1..1], Array2::zeros((1, 0)));
        array.put(row.clone(), &none).expect("put");
        array.accumulate(row.clone(), 3, &none).expect("accumulate");
        assert!(array.get(row).expect("get").is_empty());
        array.scatter_add::<[usize; 2]>(&[], 3, &[]).expect("scatter_add");
        array.gather_runs(Array2::zeros((0, 2)).view(), 1, &mut []).expect("gather_runs");
    }

    fn word(&mut self, word: &Word, remote: usize) -> i64 {
        let (memory, rank, at) = self.teams.at(word.target, remote);
        let (index, value) = (memory.index(rank, at), word.value.to_ne_bytes());
        assert_eq!(memory.array.owner(index.clone()).expect("owner"), rank);
        let value = bytemuck::pod_read_unaligned(&value[..size_of::<T>()]);
        let fetch_add = self.fetch_add.expect("the type has it");
        let old = fetch_add(&memory.array, index, value).expect("fetch_add");
        match bytemuck::bytes_of(&old).try_into() {
            Ok(all) => i64::from_ne_bytes(all),
            Err(_) => i64::from(bytemuck::pod_read_unaligned::<i32>(bytemuck::bytes_of(&old))),
        }
    }

    /// A sync of any array of the world completes the transfers of all arrays.
    fn meet(&mut self, rng: &mut Rng) {
        let any =
            self.teams.memory.values_mut().find(|it| it.array.group().size() == self.rt.size());
        match (any, rng.below(3)) {
            (Some(memory), 0) => memory.array.sync().expect("sync"),
            (Some(memory), 1) => {
                memory.array.access().expect("access").release().expect("release");
            }
            _ => self.messages().sync().expect("sync"),
        }
    }

    fn hand_over(&mut self, to: usize, remote: usize, bytes: &[u8]) {
        let (memory, rank, start) = self.teams.at(to, remote);
        let list: Vec<IxDyn> =
            (start..).take(bytes.len() / size_of::<T>()).map(|at| memory.index(rank, at)).collect();
        let values: Vec<T> = bytemuck::pod_collect_to_vec(bytes);
        memory.array.scatter(&list, &values).expect("scatter");
        self.rt.fence(to).expect("fence");
        self.messages().fetch_add([to, self.rt.rank()], 1).expect("fetch_add");
    }

    fn receive(&mut self, from: usize) {
        self.received[from] += 1;
        let here = [self.rt.rank(), from];
        while self.messages().fetch_add(here, 0).expect("fetch_add") < self.received[from] {
            std::thread::yield_now();
        }
    }

    fn end(&mut self) {
        assert!(self.teams.memory.is_empty(), "memory is left");
        self.messages.take().expect("the first end").free().expect("free");
    }
}
