//! The memory of a board: where the ranks of a node note their steps, and what they give.
//!
//! The head has the marks of the node and the result of each turn; a line of marks and slots for
//! each rank follow. Behind them, on pages of their own, are slots for longer values, for which
//! there is memory from when it is first needed.

use super::mark::Mark;
use super::{Element, Operator, reduce};
use crate::shm::{self, SharedFile};
use std::sync::atomic::{AtomicU32, Ordering};

const LINE: usize = 64;
/// Sets of slots.
pub(super) const TURNS: usize = 4;
/// Bytes of a slot, and of one in the area for longer values.
pub(super) const SLOT: usize = LINE;
pub(super) const LONG_SLOT: usize = 8 << 10;
/// The marks of release and of fullness, and the arrivals of each turn.
const HEAD: usize = (2 + TURNS) * LINE;

/// The file of the board of so many ranks.
#[derive(Debug)]
pub(super) struct Slots {
    file: SharedFile,
    ranks: usize,
    /// Ranks outnumber cores.
    crowded: bool,
}

/// Bytes before the area for longer values.
fn short_area(ranks: usize) -> usize {
    (HEAD + TURNS * SLOT + ranks * (LINE + TURNS * SLOT)).next_multiple_of(shm::page())
}

impl Slots {
    /// How long the file is.
    pub(super) fn file_len(ranks: usize) -> usize {
        short_area(ranks) + (ranks + 1) * TURNS * LONG_SLOT
    }

    /// How much of it there must be memory for from the beginning.
    pub(super) fn reserved_len(ranks: usize) -> usize {
        short_area(ranks)
    }

    /// In a file of zeros.
    pub(super) fn on(file: SharedFile, ranks: usize, crowded: bool) -> Slots {
        Slots { file, ranks, crowded }
    }

    /// Gets memory for longer values; whether there is some.
    pub(super) fn reserve_long(&self) -> bool {
        let at = short_area(self.ranks);
        self.file.reserve(at, Slots::file_len(self.ranks) - at).is_ok()
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: the file is mapped while the board lives; these words are aligned, within
        // the part that is reserved, only used as atomics, and begin as zeros.
        unsafe { &*self.file.base().add(at).cast() }
    }

    fn mark(&self, at: usize) -> Mark<'_> {
        Mark { number: self.word(at), sleepers: self.word(at + 4), crowded: self.crowded }
    }

    /// The last step from which all were released.
    pub(super) fn released(&self) -> Mark<'_> {
        self.mark(0)
    }

    /// The last step with a representative at which all have arrived.
    pub(super) fn full(&self) -> Mark<'_> {
        self.mark(LINE)
    }

    /// How many have arrived at the step that uses a turn.
    pub(super) fn arrived(&self, turn: usize) -> &AtomicU32 {
        self.word((2 + turn) * LINE)
    }

    fn own_line(&self, place: usize) -> usize {
        HEAD + TURNS * SLOT + place * (LINE + TURNS * SLOT)
    }

    /// The last step in which a rank gave something to all.
    pub(super) fn given(&self, place: usize) -> Mark<'_> {
        self.mark(self.own_line(place))
    }

    /// The last step that a rank has done with.
    pub(super) fn done(&self, place: usize) -> Mark<'_> {
        self.mark(self.own_line(place) + 8)
    }

    pub(super) fn has_done(&self, place: usize) -> u32 {
        self.done(place).number.load(Ordering::Acquire)
    }

    /// The last step at which a rank has arrived, for reports.
    pub(super) fn seen(&self, place: usize) -> &AtomicU32 {
        self.word(self.own_line(place) + 16)
    }

    /// The slot of a rank, or of the result (`None`), for values of a length.
    fn slot(&self, place: Option<usize>, step: u32, len: usize) -> *mut u8 {
        let turn = step as usize % TURNS;
        let at = if len <= SLOT {
            place.map_or(HEAD, |place| self.own_line(place) + LINE) + turn * SLOT
        } else {
            let area = place.map_or(0, |place| place + 1);
            short_area(self.ranks) + (area * TURNS + turn) * LONG_SLOT
        };
        self.file.base().wrapping_add(at)
    }

    pub(super) fn write(&self, place: Option<usize>, step: u32, data: &[u8]) {
        let slot = self.slot(place, step, data.len());
        // SAFETY: the slot has room for the data and memory behind it (`piece_len`), and by the
        // module's invariant nobody uses it now but the caller.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), slot, data.len()) };
    }

    pub(super) fn read(&self, place: Option<usize>, step: u32, data: &mut [u8]) {
        let slot = self.slot(place, step, data.len());
        // SAFETY: as in `write`; nobody writes a slot before all have done with the step.
        unsafe { std::ptr::copy_nonoverlapping(slot, data.as_mut_ptr(), data.len()) };
    }

    /// Combines what all have given in a step into the result, in the order of ranks.
    pub(super) fn combine<T: Element>(&self, step: u32, count: usize, operator: Operator) {
        let len = count * size_of::<T>();
        // SAFETY: all have given so many elements in this step, in slots that are aligned for
        // any element and nobody changes before all have done with the step; the result's
        // is used by nobody but the caller now.
        unsafe {
            let slot = |place| self.slot(place, step, len).cast::<T>();
            let result = std::slice::from_raw_parts_mut(slot(None), count);
            result.copy_from_slice(std::slice::from_raw_parts(slot(Some(0)), count));
            for place in 1..self.ranks {
                let theirs = std::slice::from_raw_parts(slot(Some(place)), count);
                reduce::fold(result, theirs, operator);
            }
        }
    }
}
