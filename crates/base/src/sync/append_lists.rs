//! A list of bytes for each target. One thread appends to the lists without a lock.
//!
//! The first thread that claims the lists becomes the *owner* and has lists of its own. All other
//! threads share a second set of lists and append under the lock. The owner makes any number of
//! appends between two stores to `turns`, and may run other code between them, even code that uses
//! the lists.
//!
//! A buffer is attached to a list while the list has items. Another thread takes the owner's items
//! in one of two ways. If the owner is outside, the thread detaches the buffer. Otherwise it copies
//! the items that are complete, because the owner may stay inside for long.
//!
//! Invariants:
//!
//! - Only the owner appends to its lists, between odd and even `turns`, or under the lock.
//! - A buffer of the owner's lists is attached or detached only under the lock, by the owner or by
//!   a thread that marked the lists as wanted and then found the owner outside.
//! - The bytes below `used` of an attached buffer are complete and do not change.

use super::membarrier::{heavy, light};
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use crate::sync::{Instant, Mutex, MutexGuard, this_thread};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::AtomicPtr;
use std::time::Duration;

#[derive(Debug)]
pub struct AppendLists {
    owner: AtomicUsize,
    /// Odd while the owner is inside without the lock.
    turns: AtomicU32,
    /// Another thread detaches buffers, so the owner must take the lock.
    wanted: AtomicBool,
    /// Number of attached buffers. Changes under the lock.
    attached: AtomicUsize,
    own: Box<[List]>,
    /// The lists of the other threads, allocated at their first append.
    shared: OnceLock<Box<[List]>>,
    /// An entry for each list. The owner's lists come first.
    held: Mutex<Vec<LockedPart>>,
    place: usize,
    limit: usize,
}

#[derive(Debug, Default)]
struct List {
    /// Valid for reads and writes of `room` bytes and one more place.
    start: AtomicPtr<u8>,
    /// In bytes, without the place of the last item. 0 if no buffer is attached.
    room: AtomicUsize,
    used: AtomicUsize,
}

/// The part of a list that is accessed only under the lock.
#[derive(Debug, Default)]
struct LockedPart {
    /// The attached buffer, or empty.
    buffer: Vec<u8>,
    /// Items before this offset have been copied.
    copied: usize,
    /// Time of the first call of [`Locked::is_old`] that found the items.
    seen: Option<Instant>,
}

/// Items of one list: a buffer, and the range of it that contains them.
pub type Batch = (Vec<u8>, Range<usize>);

fn lists(targets: usize) -> Box<[List]> {
    (0..targets).map(|_| List::default()).collect()
}

impl List {
    /// Returns false if only the last place is free, or without a buffer.
    ///
    /// # Safety
    /// Only the owner may call this for its lists, inside or under the lock. For a shared list, the
    /// caller holds the lock.
    #[inline]
    unsafe fn append(&self, item: &[u8]) -> bool {
        let used = self.used.load(Ordering::Relaxed);
        let end = used + item.len().max(1);
        if end > self.room.load(Ordering::Relaxed) {
            return false;
        }
        // SAFETY: the attached buffer has `room` bytes. It is not detached meanwhile, and other
        // threads read only the bytes below `used`, by the contract of this function.
        unsafe {
            let start = self.start.load(Ordering::Relaxed).add(used);
            start.copy_from_nonoverlapping(item.as_ptr(), item.len());
        }
        self.used.store(end, Ordering::Release);
        true
    }
}

/// The owner, inside. `!Send`, because it is a thread.
#[derive(Debug)]
pub struct Appending<'a>(&'a [List], PhantomData<*const ()>);

impl Appending<'_> {
    /// Appends an item. Returns false for the first and the last item of a batch, and for a target
    /// out of range.
    #[inline]
    pub fn append(&self, target: usize, item: &[u8]) -> bool {
        // SAFETY: the owner is inside while this exists.
        self.0.get(target).is_some_and(|list| unsafe { list.append(item) })
    }
}

#[derive(Debug)]
struct Inside<'a>(&'a AtomicU32, u32);

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.store(self.1, Ordering::Release);
    }
}

impl AppendLists {
    /// Creates lists for `targets` targets. A batch has at most `limit` items of `place` bytes, and
    /// at least one. Items without bytes take a place of one byte.
    pub fn new(targets: usize, place: usize, limit: usize) -> AppendLists {
        AppendLists {
            owner: AtomicUsize::new(0),
            turns: AtomicU32::new(0),
            wanted: AtomicBool::new(false),
            attached: AtomicUsize::new(0),
            own: lists(targets),
            shared: OnceLock::new(),
            held: Mutex::new((0..targets).map(|_| LockedPart::default()).collect()),
            place,
            limit,
        }
    }

    /// Runs `f` inside, or returns `None` if this thread must take the lock. `f` may use the lists.
    #[inline]
    pub fn appending<R>(&self, f: impl FnOnce(&Appending<'_>) -> R) -> Option<R> {
        if self.owner.load(Ordering::Relaxed) != this_thread() {
            return None;
        }
        // Only the owner writes `turns`, so a plain load and store suffice.
        let turns = self.turns.load(Ordering::Relaxed);
        let mut _inside = None;
        if turns & 1 == 0 {
            self.turns.store(turns.wrapping_add(1), Ordering::Relaxed);
            light();
            _inside = Some(Inside(&self.turns, turns.wrapping_add(2)));
            if self.wanted.load(Ordering::Acquire) {
                return None;
            }
        }
        Some(f(&Appending(&self.own, PhantomData)))
    }

    /// A thread that appends or takes under the lock. Must not be called with the lock held.
    pub fn lock(&self) -> Locked<'_> {
        let held = self.held.lock();
        let is_owner = self.owner.load(Ordering::Relaxed) == this_thread();
        Locked { lists: self, held, is_owner, alone: is_owner.then_some(true) }
    }

    /// Returns whether no list has items.
    pub fn is_empty(&self) -> bool {
        self.attached.load(Ordering::Relaxed) == 0
    }
}

#[derive(Debug)]
pub struct Locked<'a> {
    lists: &'a AppendLists,
    held: MutexGuard<'a, Vec<LockedPart>>,
    is_owner: bool,
    /// Whether buffers of the owner may be detached, once that is known.
    alone: Option<bool>,
}

impl Locked<'_> {
    /// Makes this thread the owner if there is none.
    pub fn claim(&mut self) {
        if self.lists.owner.load(Ordering::Relaxed) == 0 {
            self.lists.owner.store(this_thread(), Ordering::Relaxed);
            self.is_owner = true;
            self.alone = Some(true);
        }
    }

    fn list(&self, index: usize) -> &List {
        let own = &self.lists.own;
        match index.checked_sub(own.len()) {
            None => &own[index],
            Some(index) => &self.lists.shared.get().expect("allocated with its entry")[index],
        }
    }

    /// Appends an item. The first item of a batch gets a buffer of the size of a batch from
    /// `fresh`. Returns the batch if the item is its last.
    pub fn append(
        &mut self,
        target: usize,
        item: &[u8],
        fresh: impl FnOnce() -> Vec<u8>,
    ) -> Option<Batch> {
        let (place, limit) = (self.lists.place, self.lists.limit);
        let targets = self.lists.own.len();
        assert!(target < targets && item.len().max(1) == place);
        let index = if self.is_owner {
            target
        } else {
            self.lists.shared.get_or_init(|| {
                self.held.resize_with(2 * targets, LockedPart::default);
                lists(targets)
            });
            targets + target
        };
        if self.held[index].buffer.is_empty() {
            let mut buffer = fresh();
            assert!(buffer.len() == place * limit);
            let start = buffer.as_mut_ptr();
            self.held[index].buffer = buffer;
            let list = self.list(index);
            list.start.store(start, Ordering::Relaxed);
            list.room.store(place * (limit - 1), Ordering::Relaxed);
            self.count_attached(1);
        }
        let list = self.list(index);
        // SAFETY: this thread owns the list, or the list is shared and this thread has the lock.
        if unsafe { list.append(item) } {
            return None;
        }
        list.room.store(place * limit, Ordering::Relaxed);
        // SAFETY: this thread still owns the list or has the lock. The buffer has one more place.
        unsafe { list.append(item) };
        self.take(index)
    }

    fn count_attached(&self, more: usize) {
        let attached = &self.lists.attached;
        attached.store(attached.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    /// The first list with a buffer, from index `from`.
    pub fn attached(&self, from: usize) -> Option<usize> {
        let held = self.held.get(from..)?;
        held.iter().position(|held| !held.buffer.is_empty()).map(|index| from + index)
    }

    /// Returns whether the list has had items since a call of this method `age` ago.
    pub fn is_old(&mut self, index: usize, now: Instant, age: Duration) -> bool {
        now - *self.held[index].seen.get_or_insert(now) >= age
    }

    /// The target of the list with this index.
    pub fn target(&self, index: usize) -> usize {
        index % self.lists.own.len()
    }

    /// Takes the items of a list. The range is empty if they were copied before.
    /// Returns `None` if the list has no buffer, or if the owner is inside and has appended nothing
    /// since.
    pub fn take(&mut self, index: usize) -> Option<Batch> {
        if self.held.get(index)?.buffer.is_empty() {
            return None;
        }
        let alone = index >= self.lists.own.len() || self.is_alone();
        let used = self.list(index).used.load(Ordering::Acquire);
        let from = self.held[index].copied;
        self.held[index].seen = None;
        if alone {
            let list = self.list(index);
            list.room.store(0, Ordering::Relaxed);
            list.used.store(0, Ordering::Relaxed);
            self.held[index].copied = 0;
            self.count_attached(usize::MAX);
            return Some((std::mem::take(&mut self.held[index].buffer), from..used));
        }
        self.held[index].copied = used;
        let start = self.list(index).start.load(Ordering::Relaxed);
        // SAFETY: the buffer stays attached under the lock, and the owner completed the bytes below
        // `used` before it stored `used`.
        let items = unsafe { std::slice::from_raw_parts(start.add(from), used - from) };
        (used > from).then(|| (items.to_vec(), 0..used - from))
    }

    /// Returns whether the owner cannot append while this thread has the lock.
    fn is_alone(&mut self) -> bool {
        *self.alone.get_or_insert_with(|| {
            self.lists.wanted.store(true, Ordering::Relaxed);
            heavy();
            self.lists.turns.load(Ordering::Acquire) & 1 == 0
        })
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        if !self.is_owner && self.alone.is_some() {
            self.lists.wanted.store(false, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    const LIMIT: usize = 5;

    fn numbers((buffer, used): &Batch) -> Vec<u64> {
        buffer[used.clone()].chunks(8).map(|b| u64::from_ne_bytes(b.try_into().unwrap())).collect()
    }

    fn push(lists: &AppendLists, target: usize, value: u64) -> Option<Batch> {
        let item = value.to_ne_bytes();
        let added = lists.appending(|owner| owner.append(target, &item)) == Some(true);
        if added {
            return None;
        }
        let mut lists = lists.lock();
        lists.claim();
        lists.append(target, &item, || vec![0; 8 * LIMIT])
    }

    #[test]
    fn a_batch_is_returned_when_it_is_full() {
        let lists = AppendLists::new(2, 8, LIMIT);
        assert!(lists.is_empty());
        for round in 0..3 {
            for value in 0..LIMIT as u64 {
                assert!(push(&lists, 0, 100 + value).is_none() || value == 4);
                if value < 4 {
                    assert!(push(&lists, 1, 10 * round + value).is_none());
                }
            }
            let one = lists.lock().take(1).unwrap();
            assert_eq!(numbers(&one), (0..4).map(|v| 10 * round + v).collect::<Vec<_>>());
            assert!(lists.is_empty() && lists.lock().take(1).is_none());
        }
        let single = AppendLists::new(1, 1, 1);
        let batch = single.lock().append(0, &[], || vec![0]).unwrap();
        assert_eq!(batch.1, 0..1);
    }

    #[test]
    fn the_owner_may_use_the_lists_between_its_appends() {
        let lists = AppendLists::new(1, 8, LIMIT);
        assert!(push(&lists, 0, 0).is_none());
        let taken = lists.appending(|owner| {
            assert!(owner.append(0, &1u64.to_ne_bytes()));
            assert!(push(&lists, 0, 2).is_none());
            assert!(owner.append(0, &3u64.to_ne_bytes()));
            let taken = lists.lock().take(0).unwrap();
            assert!(!owner.append(0, &4u64.to_ne_bytes()), "the batch is gone");
            taken
        });
        assert_eq!(numbers(&taken.unwrap()), [0, 1, 2, 3]);
        assert!(lists.is_empty());
    }

    #[test]
    fn items_of_an_owner_inside_are_copied() {
        let lists = AppendLists::new(1, 8, LIMIT);
        assert!(push(&lists, 0, 0).is_none());
        let take = || std::thread::scope(|s| s.spawn(|| lists.lock().take(0)).join().unwrap());
        lists.appending(|owner| {
            assert!(owner.append(0, &1u64.to_ne_bytes()));
            assert_eq!(numbers(&take().unwrap()), [0, 1]);
            assert!(take().is_none() && !lists.is_empty());
            assert!(owner.append(0, &2u64.to_ne_bytes()));
            assert_eq!(numbers(&take().unwrap()), [2]);
            assert!(owner.append(0, &3u64.to_ne_bytes()));
        });
        let last = push(&lists, 0, 4).unwrap();
        assert_eq!(numbers(&last), [3, 4]);
        assert!(push(&lists, 0, 5).is_none());
        assert_eq!(numbers(&take().unwrap()), [5]);
        assert!(lists.is_empty());
    }

    #[test]
    fn nothing_is_lost_or_repeated_between_threads() {
        let count = if cfg!(miri) { 60 } else { 200_000 };
        let lists = AppendLists::new(1, 8, LIMIT);
        let received = Mutex::new(Vec::new());
        let receive = |batch: Option<Batch>| received.lock().extend(batch.iter().flat_map(numbers));
        receive(push(&lists, 0, 0)); // this thread becomes the owner
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| (0..count).for_each(|v| receive(push(&lists, 0, v << 32))));
            let taker = scope.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    for index in 0..2 {
                        receive(lists.lock().take(index));
                    }
                    std::thread::yield_now();
                }
            });
            (1..count).for_each(|value| receive(push(&lists, 0, value)));
            other.join().unwrap();
            done.store(true, Ordering::Release);
            taker.join().unwrap();
        });
        for index in 0..2 {
            receive(lists.lock().take(index));
        }
        assert!(lists.is_empty());
        let mut received = received.into_inner();
        received.sort_unstable();
        let mut expected: Vec<u64> = (0..count).chain((0..count).map(|v| v << 32)).collect();
        expected.sort_unstable();
        assert_eq!(received, expected);
    }
}
