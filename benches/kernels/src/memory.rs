//! The operations that Portolan's segments and MPI's windows have in common.

use crate::window::{Operation, Window};
use crate::{Job, Result};
use bytemuck::Pod;
use portolan::Segment;
use portolan::transfer::{Block, Pending};
use std::collections::VecDeque;

type Get<'scope, 'env, T> = Pending<'scope, &'env mut [T]>;

/// Most operations under way between two flushes of a window.
const FLIGHT: usize = 1024;
/// Bytes of a strided request.
const MESSAGE: usize = 256 << 10;

/// A get: rank, position, and the destination of the elements.
pub type Wanted<'b, T> = (usize, usize, &'b mut [T]);

/// Memory with a part on each rank.
pub trait Memory<T: Pod> {
    /// Puts elements. The source may be reused on return.
    fn put(&self, rank: usize, at: usize, elements: &[T]) -> Result<()>;
    /// Gets elements.
    fn get(&self, rank: usize, at: usize, into: &mut [T]) -> Result<()>;
    /// Gets several runs of elements, all of them under way together.
    fn get_all(&self, wanted: Vec<Wanted<'_, T>>) -> Result<()>;
    /// Gets `run` elements from each place (rank and position), and calls `each` with the number of
    /// the place and the elements, in this order. The buffer has room for the runs under way.
    fn get_each(
        &self,
        places: &[(usize, usize)],
        run: usize,
        buffer: &mut [T],
        mut each: impl FnMut(usize, &[T]),
    ) -> Result<()> {
        let together = buffer.len() / run;
        for (n, list) in places.chunks(together).enumerate() {
            let places = list.iter().zip(buffer.chunks_exact_mut(run));
            self.get_all(places.map(|(&(rank, at), into)| (rank, at, into)).collect())?;
            let got = buffer.chunks_exact(run).take(list.len());
            got.enumerate().for_each(|(k, got)| each(n * together + k, got));
        }
        Ok(())
    }
    /// Completes all operations of this rank.
    fn fence(&self) -> Result<()>;
    /// Reads an own element.
    fn read(&self, at: usize) -> T;
    /// Writes an own element.
    fn write(&self, at: usize, value: T);
    /// Calls `f` with each of the first own elements. No rank may write them meanwhile.
    fn each_own(&self, len: usize, f: impl FnMut(T));
    /// Frees the memory. Collective.
    fn free(self) -> Result<()>;
}

/// Memory of numbers with atomic operations.
pub trait Words: Memory<u64> {
    /// Adds, and returns the value before.
    fn fetch_add(&self, rank: usize, at: usize, value: u64) -> Result<u64>;
    /// Stores `new` if the element equals `expected`. Returns the value before.
    fn compare_swap(&self, rank: usize, at: usize, expected: u64, new: u64) -> Result<u64>;
    /// Reads an element that other ranks change.
    fn load(&self, rank: usize, at: usize) -> Result<u64>;
    /// Adds each value to an element: rank, position, value.
    fn add_all(&self, updates: impl Iterator<Item = (usize, usize, u64)>) -> Result<()>;
    /// Combines each value with an element by exclusive or.
    fn xor_all(&self, updates: impl Iterator<Item = (usize, usize, u64)>) -> Result<()>;
}

/// Allocates a segment. Collective.
pub fn segment<'a, T: Pod>(job: &Job<'a>, len: usize) -> Result<Segment<'a, T>> {
    Ok(job.rt()?.world().allocate(len)?)
}

/// Allocates a window. Collective.
pub fn window<T: Pod>(job: &Job<'_>, len: usize) -> Result<Window<T>> {
    Window::new(job.world, len)
}

/// Returns the number of first places that are on one rank and at the same distance.
fn regular(places: &[(usize, usize)]) -> usize {
    let same = |pair: &&[(usize, usize)]| {
        pair[0].0 == pair[1].0
            && places[0].0 == pair[0].0
            && pair[1].1.wrapping_sub(pair[0].1) == places[1].1.wrapping_sub(places[0].1)
    };
    1 + places.windows(2).take_while(same).count()
}

impl<T: Pod> Memory<T> for Segment<'_, T> {
    #[inline]
    fn put(&self, rank: usize, at: usize, elements: &[T]) -> Result<()> {
        Ok(Segment::put(self, rank, at, elements)?)
    }

    #[inline]
    fn get(&self, rank: usize, at: usize, into: &mut [T]) -> Result<()> {
        Ok(Segment::get(self, rank, at, into)?)
    }

    fn get_all(&self, wanted: Vec<Wanted<'_, T>>) -> Result<()> {
        let rt = self.group().runtime();
        if rt.nodes() == 1 {
            // A get from a rank of the node is complete on return.
            for (rank, at, into) in wanted {
                Segment::get(self, rank, at, into)?;
            }
            return Ok(());
        }
        rt.scope(|scope| {
            for (rank, at, into) in wanted {
                scope.get(self, rank, at, into)?;
            }
            Ok(())
        })?;
        Ok(())
    }

    fn get_each(
        &self,
        places: &[(usize, usize)],
        run: usize,
        buffer: &mut [T],
        mut each: impl FnMut(usize, &[T]),
    ) -> Result<()> {
        let rt = self.group().runtime();
        if rt.nodes() == 1 {
            // A single run under way stays in the cache.
            let into = &mut buffer[..run];
            for (k, &(rank, at)) in places.iter().enumerate() {
                Segment::get(self, rank, at, into)?;
                each(k, into);
            }
            return Ok(());
        }
        // Places at the same distance are one request, up to the length of a message.
        let together = (MESSAGE / (run * size_of::<T>())).clamp(1, buffer.len() / run);
        let mut places = places;
        rt.scope(|scope| {
            let mut next = |into| -> portolan::Result<Option<(usize, Get<'_, '_, T>)>> {
                let n = regular(&places[..places.len().min(together)]);
                let Some(&(rank, at)) = places.first() else {
                    return Ok(None);
                };
                let stride = places.get(1).map_or(0, |second| second.1 as isize - at as isize);
                let from = Block::strided(at, &[n, run], &[stride, 1])?;
                places = &places[n..];
                let get =
                    scope.get_block(self, rank, &from, into, &Block::contiguous(0..n * run))?;
                Ok(Some((n, get)))
            };
            let mut under_way = VecDeque::new();
            for into in buffer.chunks_exact_mut(together * run) {
                under_way.extend(next(into)?);
            }
            let mut k = 0;
            while let Some((n, first)) = under_way.pop_front() {
                let got = first.wait()?;
                for got in got.chunks_exact(run).take(n) {
                    each(k, got);
                    k += 1;
                }
                under_way.extend(next(got)?);
            }
            Ok(())
        })?;
        Ok(())
    }

    fn fence(&self) -> Result<()> {
        Ok(self.group().runtime().fence_all()?)
    }

    #[inline]
    fn read(&self, at: usize) -> T {
        self.local().read(at)
    }

    #[inline]
    fn write(&self, at: usize, value: T) {
        self.local().write(at, value);
    }

    #[inline]
    fn each_own(&self, len: usize, mut f: impl FnMut(T)) {
        let own = self.local();
        (0..len).for_each(|at| f(own.read(at)));
    }

    fn free(self) -> Result<()> {
        Ok(Segment::free(self)?)
    }
}

impl Words for Segment<'_, u64> {
    #[inline]
    fn fetch_add(&self, rank: usize, at: usize, value: u64) -> Result<u64> {
        Ok(Segment::fetch_add(self, rank, at, value)?)
    }

    #[inline]
    fn compare_swap(&self, rank: usize, at: usize, expected: u64, new: u64) -> Result<u64> {
        Ok(Segment::compare_swap(self, rank, at, expected, new)?)
    }

    #[inline]
    fn load(&self, rank: usize, at: usize) -> Result<u64> {
        Ok(Segment::load(self, rank, at)?)
    }

    fn add_all(&self, updates: impl Iterator<Item = (usize, usize, u64)>) -> Result<()> {
        let near = self.group().runtime().nodes() == 1;
        for (rank, at, value) in updates {
            // On the node an atomic is one instruction. An accumulate needs no answer.
            if near {
                Segment::fetch_add(self, rank, at, value)?;
            } else {
                self.accumulate(rank, at, 1, &[value])?;
            }
        }
        Ok(())
    }

    fn xor_all(&self, updates: impl Iterator<Item = (usize, usize, u64)>) -> Result<()> {
        for (rank, at, value) in updates {
            self.fetch_xor(rank, at, value)?;
        }
        Ok(())
    }
}

impl<T: Pod> Memory<T> for Window<T> {
    fn put(&self, rank: usize, at: usize, elements: &[T]) -> Result<()> {
        // SAFETY: the elements stay borrowed until the flush.
        unsafe { Window::put(self, rank, at, elements) };
        self.flush(rank);
        Ok(())
    }

    fn get(&self, rank: usize, at: usize, into: &mut [T]) -> Result<()> {
        // SAFETY: the elements stay borrowed until the flush.
        unsafe { Window::get(self, rank, at, into) };
        self.flush(rank);
        Ok(())
    }

    fn get_all(&self, wanted: Vec<Wanted<'_, T>>) -> Result<()> {
        for (i, (rank, at, into)) in wanted.into_iter().enumerate() {
            // SAFETY: the elements stay borrowed during this call, which ends with a flush.
            unsafe { Window::get(self, rank, at, into) };
            if i % FLIGHT == FLIGHT - 1 {
                self.flush_all();
            }
        }
        self.flush_all();
        Ok(())
    }

    fn fence(&self) -> Result<()> {
        self.flush_all();
        Ok(())
    }

    fn read(&self, at: usize) -> T {
        self.sync();
        Window::read(self, at)
    }

    fn write(&self, at: usize, value: T) {
        Window::write(self, at, value);
        self.sync();
    }

    #[inline]
    fn each_own(&self, len: usize, f: impl FnMut(T)) {
        self.sync();
        // SAFETY: the caller excludes writes.
        unsafe { &self.local()[..len] }.iter().copied().for_each(f);
    }

    fn free(self) -> Result<()> {
        Window::free(self);
        Ok(())
    }
}

impl Window<u64> {
    fn combine_all(
        &self,
        updates: impl Iterator<Item = (usize, usize, u64)>,
        how: Operation,
    ) -> Result<()> {
        let mut values = vec![0; FLIGHT];
        for (i, (rank, at, value)) in updates.enumerate() {
            let slot = i % FLIGHT;
            values[slot] = value;
            // SAFETY: the value stays in its slot until the flush after the last slot.
            unsafe { self.accumulate(rank, at, &values[slot], how) };
            if slot == FLIGHT - 1 {
                self.flush_all();
            }
        }
        self.flush_all();
        Ok(())
    }
}

impl Words for Window<u64> {
    fn fetch_add(&self, rank: usize, at: usize, value: u64) -> Result<u64> {
        Ok(Window::fetch_add(self, rank, at, value))
    }

    fn compare_swap(&self, rank: usize, at: usize, expected: u64, new: u64) -> Result<u64> {
        Ok(Window::compare_swap(self, rank, at, expected, new))
    }

    fn load(&self, rank: usize, at: usize) -> Result<u64> {
        Ok(Window::fetch_add(self, rank, at, 0))
    }

    fn add_all(&self, updates: impl Iterator<Item = (usize, usize, u64)>) -> Result<()> {
        self.combine_all(updates, Operation::Sum)
    }

    fn xor_all(&self, updates: impl Iterator<Item = (usize, usize, u64)>) -> Result<()> {
        self.combine_all(updates, Operation::Xor)
    }
}
