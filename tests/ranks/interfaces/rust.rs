//! The typed Rust interface. It sees the memory of the check as elements of any type. An item becomes
//! one call, and an item of separate blocks one call for each of them.

mod teams;

use crate::child::Ctx;
use crate::interface::{
    Abilities, EVERY_WORD, FLAGS, Interface, Mode, Move, TYPES, Word, flag_at, rows,
};
use crate::model::Form;
use crate::rng::Rng;
use crate::teams::Teams;
use bytemuck::Zeroable;
use num_complex::Complex;
use portolan::internals::segment;
use portolan::mutex::{MutexGuard, MutexSet};
use portolan::transfer::{Block, Pending, PendingBuffer, Scope};
use portolan::{Accumulate, Atomic, Element, Result, Runtime, Segment};
use portolan_engine::path::kernel::Scale;
use portolan_engine::path::ops::Combine;
use portolan_engine::runtime::Engine;
use portolan_engine::transfer::TransferKind;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
pub use teams::RustTeams;

pub struct Rust<'a> {
    engine: Arc<Engine>,
    teams: RustTeams<'a>,
    shared: &'a Shared<'a>,
    /// The number of messages to and from each rank, which selects the call.
    sent: Vec<usize>,
    received: Vec<usize>,
    /// Each with its number and its rank.
    held: Vec<(usize, usize, MutexGuard<'a>)>,
}

/// Parts that live longer than the interface, which borrows them.
pub struct Shared<'a> {
    rt: &'a Runtime,
    mutexes: MutexSet<'a>,
    /// Each rank sets its own [`FLAGS`] at each rank.
    flags: Segment<'a, i32>,
    /// A lock of one word at each rank: 0 if it is free.
    word: Segment<'a, u64>,
}

impl<'a> Shared<'a> {
    /// Collective.
    pub fn new(rt: &'a Runtime) -> Result<Shared<'a>> {
        let world = rt.world();
        let flags = world.allocate(FLAGS * rt.size())?;
        Ok(Shared { rt, mutexes: world.mutexes(2)?, flags, word: world.allocate(1)? })
    }

    /// Collective.
    pub fn free(self) -> Result<()> {
        self.mutexes.free()?;
        self.flags.free()?;
        self.word.free()
    }
}

/// An item, or a block of it.
struct Transfer<'a, T: Element> {
    kind: TransferKind,
    scale: T,
    segment: Rc<Segment<'a, T>>,
    rank: usize,
    remote: Block,
    local: Block,
    buffer: Vec<T>,
    /// The elements of each block in the buffer, and the address of their bytes in the item's.
    places: Vec<(Range<usize>, *mut u8)>,
    /// The elements of the buffer and of the part, if they are contiguous on both sides.
    plain: Option<(Range<usize>, Range<usize>)>,
}

/// A transfer of any type.
trait AnyTransfer {
    fn perform(&mut self, rng: &mut Rng) -> Result<()>;

    /// Starts the transfer in a scope, or with a buffer of its own. Returns `None` if it is complete.
    fn start<'s, 'e>(
        &'e mut self,
        scope: &'s Scope<'s, 'e>,
        own: bool,
    ) -> Result<Option<Box<dyn Flight + 's>>>;

    /// Copies what a get has brought to the item's buffer.
    ///
    /// # Safety
    /// The item's buffer must be valid, and the transfer complete.
    unsafe fn hand_back(&self);
}

trait Flight {
    fn is_done(&self) -> Result<bool>;
    fn wait(self: Box<Self>) -> Result<()>;
    /// The end of the scope waits for it.
    fn is_scoped(&self) -> bool {
        true
    }
}

impl<B: PendingBuffer> Flight for Pending<'_, B> {
    fn is_done(&self) -> Result<bool> {
        Pending::is_done(self)
    }

    fn wait(self: Box<Self>) -> Result<()> {
        Pending::wait(*self).map(drop)
    }
}

/// A transfer with a buffer of its own, and the place of its elements after it.
struct Owned<'e, T: Element>(Pending<'e, Vec<T>>, &'e mut [T]);

impl<T: Element> Flight for Owned<'_, T> {
    fn is_done(&self) -> Result<bool> {
        self.0.is_done()
    }

    fn wait(self: Box<Self>) -> Result<()> {
        self.1.copy_from_slice(&self.0.wait()?);
        Ok(())
    }

    fn is_scoped(&self) -> bool {
        false
    }
}

impl<T: Accumulate> AnyTransfer for Transfer<'_, T> {
    fn perform(&mut self, rng: &mut Rng) -> Result<()> {
        let Transfer { kind, scale, segment, rank, remote, local, buffer, plain, .. } = self;
        let (s, rank, kind, scale) = (&**segment, *rank, *kind, *scale);
        let Some((here, there)) = plain.clone().filter(|_| !rng.one_in(4)) else {
            return match kind {
                TransferKind::Put => s.put_block(rank, remote, buffer, local),
                TransferKind::Get => s.get_block(rank, remote, buffer, local),
                _ => s.accumulate_block(rank, remote, scale, buffer, local),
            };
        };
        let (at, buffer) = (there.start, &mut buffer[here]);
        match (kind, buffer.len(), rng.below(3)) {
            (TransferKind::Put, 1, 0) => s.put_value(rank, at, buffer[0]),
            (TransferKind::Put, _, 1) => s.at(rank)?.slice(there)?.put(buffer),
            (TransferKind::Put, ..) => s.put(rank, at, buffer),
            (TransferKind::Get, 1, 0) => s.get_value(rank, at).map(|value| buffer[0] = value),
            (TransferKind::Get, _, 1) => s.at(rank)?.slice(there)?.get(buffer),
            (TransferKind::Get, _, 0) => {
                let got = s.at(rank)?.slice(at..)?.slice(..there.len())?.to_vec()?;
                buffer.copy_from_slice(&got);
                Ok(())
            }
            (TransferKind::Get, ..) => s.get(rank, at, buffer),
            (_, _, 0) => s.at(rank)?.slice(there)?.accumulate(scale, buffer),
            _ => s.accumulate(rank, at, scale, buffer),
        }
    }

    fn start<'s, 'e>(
        &'e mut self,
        scope: &'s Scope<'s, 'e>,
        own: bool,
    ) -> Result<Option<Box<dyn Flight + 's>>> {
        let Transfer { kind, scale, segment, rank, remote, local, buffer, plain, .. } = self;
        let (s, rank, scale) = (&**segment, *rank, *scale);
        Ok(Some(match (kind, plain.clone()) {
            (kind, Some((here, there))) if own => {
                let (at, buffer) = (there.start, &mut buffer[here]);
                let given = buffer.to_vec();
                let pending = match kind {
                    TransferKind::Put => s.start_put(rank, at, given),
                    TransferKind::Get => s.start_get(rank, at, given),
                    _ => s.start_accumulate(rank, at, scale, given),
                };
                Box::new(Owned(pending?, buffer))
            }
            (TransferKind::Put, Some((here, there))) => {
                Box::new(scope.put(s, rank, there.start, &buffer[here])?)
            }
            (TransferKind::Get, Some((here, there))) => {
                Box::new(scope.get(s, rank, there.start, &mut buffer[here])?)
            }
            (TransferKind::Accumulate(_), Some((here, there))) => {
                Box::new(scope.accumulate(s, rank, there.start, scale, &buffer[here])?)
            }
            (TransferKind::Put, None) => Box::new(scope.put_block(s, rank, remote, buffer, local)?),
            (TransferKind::Get, None) => Box::new(scope.get_block(s, rank, remote, buffer, local)?),
            (TransferKind::Accumulate(_), None) => {
                s.accumulate_block(rank, remote, scale, buffer, local)?;
                return Ok(None);
            }
        }))
    }

    unsafe fn hand_back(&self) {
        if self.kind != TransferKind::Get {
            return;
        }
        let mut rest = self.buffer.clone();
        for (range, bytes) in &self.places {
            let got: &[u8] = bytemuck::cast_slice(&self.buffer[range.clone()]);
            // SAFETY: by contract, the bytes of the block are valid.
            unsafe { got.as_ptr().copy_to(*bytes, got.len()) };
            rest[range.clone()].fill(T::zeroed());
        }
        let rest: &[u8] = bytemuck::cast_slice(&rest);
        assert!(rest.iter().all(|&byte| byte == 0), "elements beside a block of a get");
    }
}

impl<'a> Rust<'a> {
    /// Collective.
    pub fn start(ctx: &Ctx, shared: &'a Shared<'a>) -> Rust<'a> {
        shared.flags.local().fill(0);
        shared.rt.world().barrier().expect("barrier");
        let (sent, received) = (vec![0; ctx.n], vec![0; ctx.n]);
        let (engine, teams) = (ctx.engine.clone(), RustTeams::new(shared.rt));
        Rust { engine, teams, shared, sent, received, held: Vec::new() }
    }

    /// Returns the segment at an address of a rank, the number of the rank there, and the position.
    fn at<T: Element>(&self, target: usize, remote: usize) -> (Segment<'a, T>, usize, usize) {
        let memory = &self.engine.memory;
        let (id, part) = memory.registry.locate(target, remote).expect("a part of a segment");
        let inner = memory.segment_by_id(id).expect("a live segment");
        let segment = segment::<T>(self.shared.rt, &inner);
        let rank = segment.group().rank_of(target).expect("a member");
        (segment, rank, (remote - part.start) / size_of::<T>())
    }

    /// Returns the transfers of an item as elements of `T`, which it must be a multiple of.
    fn typed<T: Accumulate>(
        &self,
        it: &Move<'_>,
        scale: T,
        rng: &mut Rng,
    ) -> Vec<Box<dyn AnyTransfer + 'a>> {
        let (kind, size) = (it.item.kind, size_of::<T>());
        let (segment, rank, start) = self.at::<T>(it.item.target, it.remote);
        let segment = Rc::new(segment);
        let transfer = |remote: Block, local: Block, blocks: &[(usize, usize, usize)], len| {
            let mut buffer = vec![T::zeroed(); len];
            let mut places = Vec::new();
            let n = blocks.first().map_or(1, |block| block.2 / size);
            for (from, &(address, _, bytes)) in local.indices().step_by(n).zip(blocks) {
                let from = from as usize;
                let place = address as *mut u8;
                if kind != TransferKind::Get {
                    let to: &mut [u8] = bytemuck::cast_slice_mut(&mut buffer[from..from + n]);
                    // SAFETY: the caller of `perform` guarantees the local bytes.
                    unsafe { place.copy_to(to.as_mut_ptr(), bytes) };
                }
                places.push((from..from + n, place));
            }
            let row = |block: &Block| block.start()..block.start() + block.len();
            let plain = (blocks.len() == 1).then(|| (row(&local), row(&remote)));
            let segment = segment.clone();
            Transfer { kind, scale, segment, rank, remote, local, buffer, places, plain }
        };
        let blocks = it.blocks();
        let Form::Strided { counts, local, remote } = &it.item.form else {
            let each = |block: &(usize, usize, usize)| {
                let (at, n) = (start + (block.1 - it.remote) / size, block.2 / size);
                let (there, here) = (Block::contiguous(at..at + n), Block::contiguous(0..n));
                Box::new(transfer(there, here, std::slice::from_ref(block), n)) as Box<_>
            };
            return blocks.iter().map(each).collect();
        };
        let axes = |n: usize| counts[1..].iter().rev().copied().chain([n]).collect::<Vec<_>>();
        let counts = axes(counts[0] / size);
        let strides = |all: &[isize], unit: usize| {
            all.iter().rev().map(|s| s / unit as isize).chain([1]).collect::<Vec<_>>()
        };
        let there = Block::strided(start, &counts, &strides(remote, size)).expect("a block");
        // The local bytes are packed, or as many elements apart as they are bytes apart.
        let (here, len) = if rng.one_in(3) {
            (Block::contiguous(0..there.len()), there.len())
        } else {
            let here = Block::strided(it.item.local_at, &counts, &strides(local, 1));
            (here.expect("a block"), it.item.local_len)
        };
        vec![Box::new(transfer(there, here, &blocks, len))]
    }

    fn transfers(&self, it: &Move<'_>, rng: &mut Rng) -> Vec<Box<dyn AnyTransfer + 'a>> {
        if let TransferKind::Accumulate(scale) = it.item.kind {
            let unsigned = rng.one_in(2);
            return match scale {
                Scale::Byte(s) if unsigned => self.typed(it, s as u8, rng),
                Scale::Short(s) if unsigned => self.typed(it, s as u16, rng),
                Scale::Int(s) if unsigned => self.typed(it, s as u32, rng),
                Scale::Long(s) if unsigned => self.typed(it, s as u64, rng),
                Scale::Byte(s) => self.typed(it, s, rng),
                Scale::Short(s) => self.typed(it, s, rng),
                Scale::Int(s) => self.typed(it, s, rng),
                Scale::Long(s) => self.typed(it, s, rng),
                Scale::Float(s) => self.typed(it, s, rng),
                Scale::Double(s) => self.typed(it, s, rng),
                Scale::FloatComplex(s) => self.typed(it, s, rng),
                Scale::DoubleComplex(s) => self.typed(it, s, rng),
                Scale::Bool(_) => unreachable!("the Rust interface has no truth values"),
            };
        }
        let multiple = |size: usize| {
            it.item.at.is_multiple_of(size)
                && match &it.item.form {
                    Form::Vector { block, remote, .. } => {
                        [block].into_iter().chain(remote).all(|n| n.is_multiple_of(size))
                    }
                    Form::Strided { counts, remote, .. } => {
                        let used = remote.iter().zip(&counts[1..]).filter(|(_, n)| **n > 1);
                        counts[0].is_multiple_of(size)
                            && used.into_iter().all(|(s, _)| s.unsigned_abs().is_multiple_of(size))
                    }
                }
        };
        match rng.below(4) {
            0 if multiple(16) => self.typed(it, Complex::<f64>::zeroed(), rng),
            1 if multiple(4) => self.typed(it, 0f32, rng),
            _ if multiple(8) => self.typed(it, 0i64, rng),
            _ => self.typed(it, 0u8, rng),
        }
    }

    fn change<T: Atomic>(&self, word: &Word, remote: usize, of: fn(i64) -> T) -> T {
        let (s, rank, at) = self.at::<T>(word.target, remote);
        let value = of(word.value);
        let old = match word.op {
            Combine::Load => s.load(rank, at),
            Combine::Swap => s.swap(rank, at, value),
            Combine::Add => s.fetch_add(rank, at, value),
            Combine::And => s.fetch_and(rank, at, value),
            Combine::Or => s.fetch_or(rank, at, value),
            Combine::Xor => s.fetch_xor(rank, at, value),
            Combine::Min => s.fetch_min(rank, at, value),
            Combine::Max => s.fetch_max(rank, at, value),
            Combine::CompareSwap => s.compare_swap(rank, at, of(word.expected), value),
        };
        old.expect("an atomic operation")
    }
}

impl Interface for Rust<'_> {
    /// An aggregate step has transfers with buffers of their own.
    fn abilities(&self) -> Abilities {
        Abilities {
            gets: true,
            unit: 1,
            types: &TYPES[..8],
            modes: &[Mode::Blocking, Mode::Handle, Mode::Implicit, Mode::Aggregate],
            words: EVERY_WORD,
            tells: true,
            locks: 3,
            negative: true,
            anywhere: false,
        }
    }

    fn teams(&mut self) -> &mut dyn Teams {
        &mut self.teams
    }

    unsafe fn perform(&mut self, mode: Mode, moves: &[Move<'_>], rng: &mut Rng) {
        let mut list: Vec<_> = moves.iter().flat_map(|it| self.transfers(it, rng)).collect();
        if mode == Mode::Blocking {
            list.iter_mut().for_each(|it| it.perform(rng).expect("a transfer"));
        } else {
            let transfers = &mut list;
            let done = self.shared.rt.scope(move |scope| {
                let mut flights = Vec::new();
                for it in transfers {
                    let own = mode == Mode::Aggregate || (mode == Mode::Handle && rng.one_in(3));
                    flights.extend(it.start(scope, own)?);
                }
                rng.shuffle(&mut flights);
                if mode == Mode::Implicit && rng.one_in(2) {
                    scope.wait_all()?;
                    for flight in &flights {
                        assert!(flight.is_done()?, "a transfer after the wait for all");
                    }
                }
                for flight in flights {
                    while rng.one_in(2) && !flight.is_done()? {
                        std::thread::yield_now();
                    }
                    if mode != Mode::Implicit && (!flight.is_scoped() || rng.one_in(2)) {
                        flight.wait()?;
                    }
                }
                Ok(())
            });
            done.expect("a scope");
        }
        // SAFETY: the caller guarantees the local bytes, and all transfers are complete.
        list.iter().for_each(|it| unsafe { it.hand_back() });
    }

    fn nothing(&mut self, target: usize) {
        let Shared { rt, word, .. } = self.shared;
        let none = Block::contiguous(0..0);
        let done = rt.scope(|scope| {
            for at in [0, 1] {
                word.put(target, at, &[])?;
                word.get(target, at, &mut [])?;
                word.accumulate(target, at, 1, &[])?;
                word.put_block(target, &none, &[], &none)?;
                scope.get(word, target, at, &mut [])?.wait()?;
                word.start_put(target, at, Vec::new())?.wait()?;
                assert!(word.at(target)?.slice(at..at)?.to_vec()?.is_empty());
            }
            Ok(())
        });
        done.expect("transfers of nothing");
    }

    fn word(&mut self, word: &Word, remote: usize) -> i64 {
        match (word.wide, word.unsigned) {
            (true, false) => self.change(word, remote, |value| value),
            (true, true) => self.change(word, remote, |value| value as u64) as i64,
            (false, false) => self.change(word, remote, |value| value as i32).into(),
            (false, true) => (self.change(word, remote, |value| value as u32) as i32).into(),
        }
    }

    fn meet(&mut self, rng: &mut Rng) {
        let Shared { rt, word, .. } = self.shared;
        let fenced = match rng.below(4) {
            0 => return rt.world().barrier().expect("barrier"),
            1 => rt.fence_all(),
            2 => (0..rt.size()).try_for_each(|rank| rt.fence(rank)),
            _ => (0..rt.size()).try_for_each(|rank| word.fence(rank)),
        };
        fenced.expect("fence");
        super::mpi_barrier(&self.engine);
    }

    fn hand_over(&mut self, to: usize, remote: usize, bytes: &[u8]) {
        let Shared { rt, flags, .. } = self.shared;
        self.sent[to] += 1;
        let (number, flag) = (self.sent[to] as i32, flag_at(rt.rank(), self.sent[to]));
        let (s, rank, at) = self.at::<u8>(to, remote);
        let (apart, row) = rows(bytes);
        // From the last row to the first.
        let block = |at: usize, stride: usize| {
            Block::strided(at + 3 * stride, &[4, row], &[-(stride as isize), 1])
        };
        let done = match number % 4 {
            0 => s.put_notify(rank, at, bytes, flags, flag, number),
            1 => block(at, row).and_then(|there| {
                let here = block(0, row + 3)?;
                s.put_block_notify(rank, &there, &apart, &here, flags, flag, number)
            }),
            2 => rt
                .scope(|scope| scope.put(&s, rank, at, bytes).map(drop))
                .and_then(|()| s.put_notify(rank, at, &[], flags, flag, number)),
            _ => s
                .put(rank, at, bytes)
                .and_then(|()| s.fence(rank))
                .and_then(|()| flags.store(to, flag, number)),
        };
        done.expect("a put and a flag");
    }

    fn receive(&mut self, from: usize) {
        let Shared { rt, flags, .. } = self.shared;
        self.received[from] += 1;
        let (number, flag) = (self.received[from] as i32, flag_at(from, self.received[from]));
        if number % 4 != 3 {
            return flags.wait_notify(flag, number).expect("a flag");
        }
        while flags.load(rt.rank(), flag).expect("load") != number {
            std::thread::yield_now();
        }
    }

    fn lock(&mut self, number: usize, home: usize) {
        let Shared { rt, mutexes, word, .. } = self.shared;
        let guard = match number {
            0 => mutexes.lock(home, 0).expect("lock"),
            1 => match mutexes.try_lock(home, 1).expect("try") {
                Some(guard) => guard,
                None => mutexes.lock(home, 1).expect("lock"),
            },
            _ => {
                let me = rt.rank() as u64 + 1;
                while word.compare_swap(home, 0, 0, me).expect("compare_swap") != 0 {
                    std::thread::yield_now();
                }
                return;
            }
        };
        self.held.push((number, home, guard));
    }

    fn unlock(&mut self, number: usize, home: usize) {
        let held = self.held.iter().position(|it| (it.0, it.1) == (number, home));
        match held.map(|at| self.held.swap_remove(at).2) {
            Some(guard) if number == 0 => guard.unlock().expect("unlock"),
            Some(guard) => drop(guard),
            None => {
                self.shared.rt.fence_all().expect("fence");
                self.shared.word.store(home, 0, 0).expect("store");
            }
        }
    }

    fn end(&mut self) {
        assert!(self.held.is_empty(), "a mutex is locked");
    }
}
