//! Handles: numbers that refer to values, and that are refused after the value was removed. A
//! handle consists of the number of a slot, starting at 1, and above it the generation of the slot,
//! which is the number of earlier uses. 0 is never a handle.
//!
//! Invariant: the generation of a slot grows when its value is removed. A slot that has used up its
//! generations is not used again while other slots are available. A removed handle is therefore
//! refused until all numbers of the table were used: never with the 64 bits of most tables.

use std::collections::VecDeque;

/// A table of values by handles of `SLOT_BITS` + `GENERATION_BITS` bits. Not synchronised.
#[derive(Debug)]
pub struct Handles<T, const SLOT_BITS: u32 = 32, const GENERATION_BITS: u32 = 32> {
    slots: Vec<Slot<T>>,
    /// Slots without a value, the last emptied one at the end.
    free: Vec<u32>,
    /// Slots that have used up their generations, the first one in front.
    worn: VecDeque<u32>,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

impl<T, const S: u32, const G: u32> Default for Handles<T, S, G> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const SLOT_BITS: u32, const GENERATION_BITS: u32> Handles<T, SLOT_BITS, GENERATION_BITS> {
    const SLOT_MASK: u64 = (1 << SLOT_BITS) - 1;
    const LAST_GENERATION: u32 = u32::MAX >> (32 - GENERATION_BITS);

    pub const MOST: usize = Self::SLOT_MASK as usize;

    pub const fn new() -> Self {
        const { assert!(1 <= SLOT_BITS && SLOT_BITS <= 32) };
        const { assert!(1 <= GENERATION_BITS && GENERATION_BITS <= 32) };
        Handles { slots: Vec::new(), free: Vec::new(), worn: VecDeque::new() }
    }

    #[inline]
    fn handle(index: usize, generation: u32) -> u64 {
        u64::from(generation) << SLOT_BITS | (index as u64 + 1)
    }

    #[inline]
    fn index(handle: u64) -> usize {
        (handle & Self::SLOT_MASK).wrapping_sub(1) as usize
    }

    pub fn is_full(&self) -> bool {
        self.slots.len() == Self::MOST && self.free.is_empty() && self.worn.is_empty()
    }

    /// Panics if the table [is full](Handles::is_full).
    #[inline]
    pub fn insert(&mut self, value: T) -> u64 {
        let index = match self.free.pop() {
            Some(index) => index as usize,
            None => self.fresh_slot(),
        };
        let slot = &mut self.slots[index];
        slot.value = Some(value);
        Self::handle(index, slot.generation)
    }

    #[cold]
    fn fresh_slot(&mut self) -> usize {
        if self.slots.len() < Self::MOST {
            self.slots.push(Slot { generation: 0, value: None });
            return self.slots.len() - 1;
        }
        match self.worn.pop_front() {
            Some(index) => {
                self.slots[index as usize].generation = 0;
                index as usize
            }
            None => panic!("a table of {} handles is full", Self::MOST),
        }
    }

    #[inline]
    pub fn get(&self, handle: u64) -> Option<&T> {
        let slot = self.slots.get(Self::index(handle))?;
        if u64::from(slot.generation) == handle >> SLOT_BITS { slot.value.as_ref() } else { None }
    }

    #[inline]
    pub fn get_mut(&mut self, handle: u64) -> Option<&mut T> {
        let slot = self.slots.get_mut(Self::index(handle))?;
        if u64::from(slot.generation) == handle >> SLOT_BITS { slot.value.as_mut() } else { None }
    }

    #[inline]
    pub fn remove(&mut self, handle: u64) -> Option<T> {
        let index = Self::index(handle);
        let slot = self.slots.get_mut(index)?;
        if u64::from(slot.generation) != handle >> SLOT_BITS {
            return None;
        }
        let value = slot.value.take()?;
        self.retire(index);
        Some(value)
    }

    #[inline]
    fn retire(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        if slot.generation == Self::LAST_GENERATION {
            self.worn.push_back(index as u32);
        } else {
            slot.generation += 1;
            self.free.push(index as u32);
        }
    }

    /// If so, a refused handle was most likely removed; otherwise it was never valid.
    pub fn has_slot(&self, handle: u64) -> bool {
        Self::index(handle) < self.slots.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| {
            let value = slot.value.as_ref()?;
            Some((Self::handle(index, slot.generation), value))
        })
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().filter_map(|slot| slot.value.as_mut())
    }

    pub fn is_empty(&self) -> bool {
        self.free.len() + self.worn.len() == self.slots.len()
    }

    pub fn drain(&mut self) -> Vec<T> {
        let mut all = Vec::new();
        for index in 0..self.slots.len() {
            if let Some(value) = self.slots[index].value.take() {
                self.retire(index);
                all.push(value);
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn the_first_handle_is_1_and_0_is_none() {
        let mut table: Handles<&str> = Handles::new();
        assert!(table.is_empty() && table.get(0).is_none() && table.get(1).is_none());
        assert_eq!((table.insert("a"), table.insert("b")), (1, 2));
        assert_eq!(table.get(1), Some(&"a"));
        assert_eq!(table.get_mut(2), Some(&mut "b"));
        for rubbish in [0, 3, 1 << 32 | 1, u64::MAX, u64::MAX - 1, 1 << 63 | 2] {
            assert!(table.get(rubbish).is_none() && table.remove(rubbish).is_none(), "{rubbish}");
        }
    }

    #[test]
    fn numbers_come_again_only_when_all_were_used() {
        let mut table: Handles<u32, 2, 2> = Handles::new();
        let numbers: Vec<u64> = (0..12)
            .map(|value| {
                let handle = table.insert(value);
                table.remove(handle).unwrap();
                handle
            })
            .collect();
        let mut distinct = numbers.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), 12);
        assert!(distinct.iter().all(|&handle| 0 < handle && handle < 16));
        // The numbers repeat, starting with the slot that was used up first.
        assert_eq!(table.insert(0), numbers[0]);
    }

    #[test]
    fn a_full_table_says_so() {
        let mut table: Handles<u32, 2, 2> = Handles::new();
        let handles = [0, 1, 2].map(|value| table.insert(value));
        assert!(table.is_full());
        table.remove(handles[1]).unwrap();
        assert!(!table.is_full());
        table.insert(4);
        assert!(table.is_full());
    }

    #[test]
    fn what_is_drained_is_gone_for_good() {
        let mut table: Handles<u32> = Handles::new();
        let handles: Vec<u64> = (0..5).map(|value| table.insert(value)).collect();
        table.remove(handles[2]).unwrap();
        assert_eq!(table.drain(), [0, 1, 3, 4]);
        assert!(table.is_empty());
        for value in 0..5 {
            assert!(!handles.contains(&table.insert(value)));
        }
        assert!(handles.iter().all(|&handle| table.get(handle).is_none()));
    }

    #[test]
    fn it_does_what_a_map_of_numbers_never_used_twice_does() {
        let (mut table, mut model) = (Handles::<u64, 4, 28>::new(), HashMap::new());
        let (mut gone, mut random) = (Vec::new(), fastrand::Rng::with_seed(1));
        for step in 0..if cfg!(miri) { 300 } else { 20_000 } {
            let choice = random.usize(..);
            let some: Option<u64> = model.keys().copied().nth(choice % 16);
            match some {
                Some(handle) if choice.is_multiple_of(3) || table.is_full() => {
                    assert_eq!(table.remove(handle), model.remove(&handle));
                    gone.push(handle);
                }
                _ if table.is_full() => {}
                _ => assert!(model.insert(table.insert(step), step).is_none()),
            }
            let mut all: Vec<_> = table.iter().map(|(handle, &value)| (handle, value)).collect();
            let mut expected: Vec<_> = model.iter().map(|(&h, &v)| (h, v)).collect();
            all.sort_unstable();
            expected.sort_unstable();
            assert_eq!(all, expected);
            let old = gone.get(choice % gone.len().max(1));
            assert!(old.is_none_or(|&old| table.get(old).is_none()));
        }
    }
}
