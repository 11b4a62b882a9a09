//! The memory of a board: where the ranks of a node note their steps, and what they give.
//!
//! The head has the marks of the node, the group's alarm, and the result of each turn. For each rank
//! follow a line of marks, slots, and the calls that it made in the last steps. Behind them, on
//! pages of their own, are slots for longer values, for which there is memory from when it is first
//! needed.

use super::call::{Call, Detail, Signature};
use super::mark::Mark;
use super::{Element, Operator, alarm, reduce};
use crate::futex;
use crate::shm::{self, SharedFile};
use std::mem::offset_of;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const LINE: usize = 64;
/// Sets of slots. A rank begins a step when all have done with the one `TURNS` steps before.
pub(super) const TURNS: usize = 4;
/// Steps whose calls and digests are kept. Another rank may be `TURNS - 1` steps ahead of a step
/// that this rank is in, and this rank looks back by `TURNS` steps.
pub(super) const KEPT: usize = 2 * TURNS;
/// Bytes of a slot, and of one in the area for longer values.
pub(super) const SLOT: usize = LINE;
pub(super) const LONG_SLOT: usize = 8 << 10;
/// The marks of release and of fullness, the arrivals of each turn, and the alarm's text.
const ALARM: usize = (2 + TURNS) * LINE;
const HEAD: usize = (ALARM + alarm::TEXT).next_multiple_of(LINE);
/// Bytes of a call.
const CALL: usize = size_of::<Call>().next_multiple_of(LINE);
/// Bytes for each rank: its marks, a slot for each turn, and the calls that are kept.
const OF_RANK: usize = LINE + TURNS * SLOT + KEPT * CALL;

/// Where the alarm stands: its state, and behind it the length of its text. It is beside the mark that
/// all wait for.
const ALARM_STATE: usize = 8;
const ALARM_LEN: usize = 12;
const CLAIMED: u32 = 1;
const RAISED: u32 = 2;

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
    (HEAD + TURNS * SLOT + ranks * OF_RANK).next_multiple_of(shm::page())
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

    /// Those that have arrived at the step that uses a turn: their number in the low 16 bits, and
    /// above it the sum of the digests of their calls.
    pub(super) fn arrived(&self, turn: usize) -> &AtomicU64 {
        // SAFETY: as in `word`; lines are aligned for 64 bits.
        unsafe { &*self.file.base().add((2 + turn) * LINE).cast() }
    }

    /// Whether the group's alarm is raised.
    #[inline]
    pub(super) fn is_alarmed(&self) -> bool {
        self.word(ALARM_STATE).load(Ordering::Acquire) == RAISED
    }

    /// Raises the alarm, unless it is raised, and wakes all that sleep on the board.
    pub(super) fn set_alarm(&self, text: &[u8]) {
        let text = &text[..text.len().min(alarm::TEXT)];
        let state = self.word(ALARM_STATE);
        if state.compare_exchange(0, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            // SAFETY: the area has room for the text, and belongs to the rank that claimed it.
            unsafe {
                let to = self.file.base().add(ALARM);
                std::ptr::copy_nonoverlapping(text.as_ptr(), to, text.len());
            }
            self.word(ALARM_LEN).store(text.len() as u32, Ordering::Relaxed);
            state.store(RAISED, Ordering::Release);
        }
        let own = (0..self.ranks).flat_map(|place| [self.given(place), self.done(place)]);
        own.chain([self.released(), self.full()]).for_each(|mark| {
            futex::wake_all(mark.number);
        });
    }

    /// The alarm's text, once it is raised.
    pub(super) fn alarm(&self) -> String {
        if !self.is_alarmed() {
            return String::new();
        }
        let len = (self.word(ALARM_LEN).load(Ordering::Relaxed) as usize).min(alarm::TEXT);
        // SAFETY: the text is within the area, and nobody changes it any more.
        let text = unsafe { std::slice::from_raw_parts(self.file.base().add(ALARM), len) };
        String::from_utf8_lossy(text).into_owned()
    }

    fn call_at(&self, place: usize, step: u32) -> *mut u8 {
        let at = LINE + TURNS * SLOT + step as usize % KEPT * CALL;
        self.file.base().wrapping_add(self.own_line(place) + at)
    }

    /// Notes the call that the rank at `place`, the caller, makes in a step.
    #[inline]
    pub(super) fn write_call(&self, place: usize, step: u32, call: Signature) {
        let to = self.call_at(place, step);
        // SAFETY: the area has room for a call and is aligned for it, and only the caller writes it.
        unsafe { to.cast::<Signature>().write(call) };
        if call.is_detailed() {
            let detail = Detail::here();
            // SAFETY: as above.
            unsafe { to.add(offset_of!(Call, detail)).cast::<Detail>().write(detail) };
        }
    }

    /// The call of a rank that has arrived at a step.
    pub(super) fn read_call(&self, place: usize, step: u32) -> Call {
        // SAFETY: the area is mapped and aligned for a call, of which any bytes are a value.
        unsafe { std::ptr::read_volatile(self.call_at(place, step).cast()) }
    }

    fn own_line(&self, place: usize) -> usize {
        HEAD + TURNS * SLOT + place * OF_RANK
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

    /// The low half of the digest of a rank's calls up to a step. It is beside the mark of what the
    /// rank gives.
    pub(super) fn digest(&self, place: usize, step: u32) -> &AtomicU32 {
        const { assert!(24 + KEPT * size_of::<u32>() <= LINE) };
        self.word(self.own_line(place) + 24 + step as usize % KEPT * size_of::<u32>())
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
