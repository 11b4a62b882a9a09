//! Numbers of compositions.
//!
//! A number is a slot and how often the slot was used before, so that a number which
//! was destroyed names nothing for a long time, also when its slot lives again. The
//! first composition has the number 1.
//!
//! The table belongs to one run of the runtime. Compositions of a run that has ended
//! hold addresses that mean nothing any more; the table of a later run is empty.

use crate::compose::{Composer, Composition};
use crate::error::{Result, fail};
use crate::runtime::{self, Engine};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::os::raw::c_int;
use std::sync::{Arc, Weak};

const SLOT_BITS: u32 = 20;
const SLOTS: usize = (1 << SLOT_BITS) - 1;
/// Uses of a slot that numbers tell apart; numbers stay positive.
const USES: u32 = 1 << (31 - SLOT_BITS);

#[derive(Debug)]
struct Slot {
    uses: u32,
    composition: Option<Composition>,
}

/// Compositions by number.
#[derive(Debug, Default)]
pub struct Table {
    slots: Vec<Slot>,
    /// Freed slots, the one that was freed first in front.
    free: VecDeque<usize>,
}

impl Table {
    /// Gives a composition a number.
    ///
    /// # Errors
    /// `Memory` where a million live.
    pub fn insert(&mut self, composition: Composition) -> Result<c_int> {
        let slot = match self.free.pop_front() {
            Some(slot) => slot,
            None if self.slots.len() == SLOTS => {
                fail!(Memory, "{SLOTS} compositions live; destroy those that are not needed")
            }
            None => {
                self.slots.push(Slot { uses: 0, composition: None });
                self.slots.len() - 1
            }
        };
        let entry = &mut self.slots[slot];
        entry.composition = Some(composition);
        Ok((entry.uses << SLOT_BITS) as c_int | (slot as c_int + 1))
    }

    /// The composition with a number.
    ///
    /// # Errors
    /// `Handle` where there is none.
    pub fn get(&mut self, number: c_int) -> Result<&mut Composition> {
        let found = self.slot(number).and_then(|slot| self.slots[slot].composition.as_mut());
        match found {
            Some(composition) => Ok(composition),
            None => fail!(Handle, "{number} is the number of no live composition"),
        }
    }

    fn slot(&self, number: c_int) -> Option<usize> {
        let number = u32::try_from(number).ok()?;
        let slot = ((number as usize) & SLOTS).checked_sub(1)?;
        (self.slots.get(slot)?.uses == number >> SLOT_BITS).then_some(slot)
    }

    /// Forgets a composition.
    ///
    /// # Errors
    /// `Handle` where there is none with this number.
    pub fn remove(&mut self, number: c_int) -> Result<()> {
        self.get(number)?;
        if let Some(slot) = self.slot(number) {
            let entry = &mut self.slots[slot];
            entry.composition = None;
            entry.uses = (entry.uses + 1) % USES;
            self.free.push_back(slot);
        }
        Ok(())
    }
}

/// What a run of the runtime has of this interface.
#[derive(Debug)]
pub struct Face {
    of: Weak<Engine>,
    /// For performing.
    pub composer: Arc<Composer>,
    /// The compositions.
    pub table: Table,
}

static FACE: Mutex<Option<Face>> = Mutex::new(None);

/// Runs something on the state of this run.
pub fn with<R>(engine: &Engine, body: impl FnOnce(&mut Face) -> Result<R>) -> Result<R> {
    let mut face = FACE.lock();
    // The memory of an engine is not used again while a weak reference is there.
    let of_now = face.as_ref().is_some_and(|f| std::ptr::eq(f.of.as_ptr(), engine));
    if !of_now {
        *face = Some(Face {
            of: Arc::downgrade(&runtime::current_arc()?),
            composer: Arc::default(),
            table: Table::default(),
        });
    }
    match face.as_mut() {
        Some(face) => body(face),
        None => fail!(Internal, "the state that was just made is gone"),
    }
}

/// The composer of this run.
pub fn composer(engine: &Engine) -> Result<Arc<Composer>> {
    with(engine, |face| Ok(face.composer.clone()))
}

/// Takes the state out.
pub fn take() -> Option<Face> {
    FACE.lock().take()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty() -> Composition {
        Composition::nothing()
    }

    #[test]
    fn numbers_are_positive_and_dead_ones_name_nothing() {
        let mut table = Table::default();
        assert_eq!(table.insert(empty()).unwrap(), 1);
        assert_eq!(table.insert(empty()).unwrap(), 2);
        let mut last = 1;
        for _ in 0..5000 {
            table.remove(last).unwrap();
            assert!(table.get(last).is_err());
            assert!(table.remove(last).is_err());
            let next = table.insert(empty()).unwrap();
            assert!(next > 0 && next != last && next != 2);
            assert!(table.get(last).is_err());
            last = next;
        }
        table.get(2).unwrap();
        for bad in [0, -1, 3, c_int::MIN, c_int::MAX, 1 << 20] {
            assert!(table.get(bad).is_err(), "{bad}");
        }
    }
}
