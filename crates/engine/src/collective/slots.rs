//! The memory layout of a shared-memory collective area: the marks that record the steps of the
//! node's ranks, and the slots for their values.
//! The head contains the marks of the node, the alarm of the group, and the result of each turn.
//! Each rank then has a line of marks, its slots, and its most recent calls. The slots for longer
//! values follow on separate pages.

use super::call::{Call, Detail, Signature};
use super::shared_counter::SharedCounter;
use super::{Operator, Reducible, reduce};
use portolan_base::digest;
use portolan_base::error::Result;
use portolan_base::futex;
use portolan_base::shm::{self, SharedFile};
use std::mem::offset_of;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const LINE: usize = 64;
/// Number of slot sets. A rank begins a step when all have finished the step `TURNS` before.
pub(super) const TURNS: usize = 4;
/// Number of steps whose calls and digests are kept. Another rank may be `TURNS - 1` steps ahead of
/// this rank's step, and this rank looks back over `TURNS` steps.
pub(super) const KEPT: usize = 2 * TURNS;
pub(super) const SLOT: usize = LINE;
/// Bytes of a block of a longer value. One rank writes a block while the others use the previous.
pub(super) const BLOCK: usize = 8 << 10;
/// Longest text of an alarm in bytes, in shared memory and in messages.
pub(super) const TEXT: usize = 496;
/// Offset of the alarm text, behind the marks of release and fullness and the arrivals.
const ALARM: usize = (2 + TURNS) * LINE;
const HEAD: usize = (ALARM + TEXT).next_multiple_of(LINE);
const CALL: usize = size_of::<Call>().next_multiple_of(LINE);
/// Bytes of a rank's part: its marks, a slot for each turn, and the calls that are kept.
const OF_RANK: usize = LINE + TURNS * SLOT + KEPT * CALL;

/// Offset of the secret of the digests, in the cache line of the `full` mark.
const SECRET: usize = LINE + 8;

/// State and text length of the alarm, in the line of the `released` mark of every wait.
const ALARM_STATE: usize = 8;
const ALARM_LEN: usize = 12;
const CLAIMED: u32 = 1;
const RAISED: u32 = 2;

#[derive(Debug)]
pub(super) struct Slots {
    file: SharedFile,
    ranks: usize,
    crowded: bool,
}

/// Bytes, and the longest block that all ranks combine together. Caches hold a turn's slots.
fn long_slot(ranks: usize) -> usize {
    const TURN: usize = 512 << 10;
    const MAX_SLOT: usize = 64 << 10;
    (TURN / ranks / BLOCK * BLOCK).clamp(BLOCK, MAX_SLOT)
}

fn short_area(ranks: usize) -> usize {
    (HEAD + TURNS * SLOT + ranks * OF_RANK).next_multiple_of(shm::page())
}

fn long_word(file: &SharedFile, at: usize) -> &AtomicU64 {
    // SAFETY: the callers pass aligned words of the reserved part, which is mapped while the file
    // lives. They are zero initially and accessed only as atomics.
    unsafe { &*file.base().add(at).cast() }
}

impl Slots {
    pub(super) fn file_len(ranks: usize) -> usize {
        short_area(ranks) + (ranks + 1) * TURNS * long_slot(ranks)
    }

    /// Reserves that memory in a zeroed file and draws the secret, before other ranks use the file.
    pub(super) fn prepare(file: &SharedFile, ranks: usize) -> Result<()> {
        file.reserve(0, short_area(ranks))?;
        long_word(file, SECRET).store(digest::key(), Ordering::Release);
        Ok(())
    }

    pub(super) fn secret(&self) -> u64 {
        long_word(&self.file, SECRET).load(Ordering::Acquire)
    }

    pub(super) fn on(file: SharedFile, ranks: usize, crowded: bool) -> Slots {
        Slots { file, ranks, crowded }
    }

    pub(super) fn reserve_long(&self) -> bool {
        let at = short_area(self.ranks);
        self.file.reserve(at, Slots::file_len(self.ranks) - at).is_ok()
    }

    /// In bytes, a multiple of [`BLOCK`].
    pub(super) fn long_slot(&self) -> usize {
        long_slot(self.ranks)
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: the file is mapped while `self` lives. These words are aligned, lie in the
        // reserved part, zero initially, and are accessed only as atomics.
        unsafe { &*self.file.base().add(at).cast() }
    }

    fn mark(&self, at: usize) -> SharedCounter<'_> {
        SharedCounter { number: self.word(at), sleepers: self.word(at + 4), crowded: self.crowded }
    }

    pub(super) fn released(&self) -> SharedCounter<'_> {
        self.mark(0)
    }

    /// Last step at which all have arrived, which the leader or the root then completes.
    pub(super) fn full(&self) -> SharedCounter<'_> {
        self.mark(LINE)
    }

    /// Arrived ranks of a turn in the low 16 bits, and above them the sum of their digests.
    pub(super) fn arrived(&self, turn: usize) -> &AtomicU64 {
        long_word(&self.file, (2 + turn) * LINE)
    }

    #[inline]
    pub(super) fn is_alarmed(&self) -> bool {
        self.word(ALARM_STATE).load(Ordering::Acquire) == RAISED
    }

    /// Does nothing if the alarm is raised. Wakes all ranks that sleep on a mark.
    pub(super) fn set_alarm(&self, text: &[u8]) {
        let text = &text[..text.len().min(TEXT)];
        let state = self.word(ALARM_STATE);
        if state.compare_exchange(0, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            // SAFETY: `text` fits in its field, which only the rank that claimed the alarm writes.
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

    pub(super) fn alarm(&self) -> String {
        if !self.is_alarmed() {
            return String::new();
        }
        let len = (self.word(ALARM_LEN).load(Ordering::Relaxed) as usize).min(TEXT);
        // SAFETY: `len` is within the text field, which does not change once the alarm is raised.
        let text = unsafe { std::slice::from_raw_parts(self.file.base().add(ALARM), len) };
        String::from_utf8_lossy(text).into_owned()
    }

    fn call_at(&self, place: usize, step: u32) -> *mut u8 {
        let at = LINE + TURNS * SLOT + step as usize % KEPT * CALL;
        self.file.base().wrapping_add(self.own_line(place) + at)
    }

    #[inline]
    pub(super) fn write_call(&self, place: usize, step: u32, call: Signature) {
        let to = self.call_at(place, step);
        // SAFETY: `to` is aligned for a call, has its size, and is written only by the caller.
        unsafe { to.cast::<Signature>().write(call) };
        if call.is_detailed() {
            let detail = Detail::here();
            // SAFETY: the detail is a field of the call at `to`, which only the caller writes.
            unsafe { to.add(offset_of!(Call, detail)).cast::<Detail>().write(detail) };
        }
    }

    pub(super) fn read_call(&self, place: usize, step: u32) -> Call {
        // SAFETY: the memory is mapped and aligned for a call, and any bytes are a valid call.
        unsafe { std::ptr::read_volatile(self.call_at(place, step).cast()) }
    }

    fn own_line(&self, place: usize) -> usize {
        HEAD + TURNS * SLOT + place * OF_RANK
    }

    /// A rank's last step with a value for all ranks.
    pub(super) fn given(&self, place: usize) -> SharedCounter<'_> {
        self.mark(self.own_line(place))
    }

    pub(super) fn done(&self, place: usize) -> SharedCounter<'_> {
        self.mark(self.own_line(place) + 8)
    }

    pub(super) fn has_done(&self, place: usize) -> u32 {
        self.done(place).number.load(Ordering::Acquire)
    }

    /// Last step at which a rank has arrived. A rank that reads it also sees that call.
    pub(super) fn seen(&self, place: usize) -> &AtomicU32 {
        self.word(self.own_line(place) + 16)
    }

    /// Low half of the digest of a rank's calls up to a step, beside the `given` mark.
    pub(super) fn digest(&self, place: usize, step: u32) -> &AtomicU32 {
        const { assert!(24 + KEPT * size_of::<u32>() <= LINE) };
        self.word(self.own_line(place) + 24 + step as usize % KEPT * size_of::<u32>())
    }

    /// The slot of a rank, or of the result for `None`, for values of `len` bytes.
    fn slot(&self, place: Option<usize>, step: u32, len: usize) -> *mut u8 {
        let turn = step as usize % TURNS;
        let at = if len <= SLOT {
            place.map_or(HEAD, |place| self.own_line(place) + LINE) + turn * SLOT
        } else {
            let area = place.map_or(0, |place| place + 1);
            short_area(self.ranks) + (area * TURNS + turn) * self.long_slot()
        };
        self.file.base().wrapping_add(at)
    }

    pub(super) fn write(&self, place: Option<usize>, step: u32, data: &[u8]) {
        let slot = self.slot(place, step, data.len());
        // SAFETY: `block_len` limits the data to the reserved slot. By the invariant of
        // `shared_area`, no other rank uses the slot now.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), slot, data.len()) };
    }

    pub(super) fn read(&self, place: Option<usize>, step: u32, data: &mut [u8]) {
        let slot = self.slot(place, step, data.len());
        // SAFETY: the slot has `data.len()` bytes, not written before all have ended the step.
        unsafe { std::ptr::copy_nonoverlapping(slot, data.as_mut_ptr(), data.len()) };
    }

    pub(super) fn combine<T: Reducible>(&self, step: u32, count: usize, operator: Operator) {
        self.combine_part::<T>((step, count * size_of::<T>()), &(0..count), None, operator);
    }

    /// Combines `share` into the result and into `block`, which has the caller's elements.
    pub(super) fn combine_share<T: Reducible>(
        &self,
        me: usize,
        step: u32,
        (block, share): (&mut [T], &Range<usize>),
        operator: Operator,
    ) {
        let own = Some((me, &block[share.clone()]));
        let result = self.combine_part((step, size_of_val(block)), share, own, operator);
        block[share.clone()].copy_from_slice(result);
    }

    /// Combines the elements `part` of the values of all ranks, of `len` bytes each, into the
    /// result, in rank order. Returns this part of the result. `own` has the place of a rank and
    /// its elements, which are not in its slot.
    fn combine_part<T: Reducible>(
        &self,
        (step, len): (u32, usize),
        part: &Range<usize>,
        own: Option<(usize, &[T])>,
        operator: Operator,
    ) -> &[T] {
        let slot = |place| self.slot(place, step, len).cast::<T>().wrapping_add(part.start);
        // SAFETY: the part lies in the result's slot, aligned, and only the caller uses it now.
        let result = unsafe { std::slice::from_raw_parts_mut(slot(None), part.len()) };
        for place in 0..self.ranks {
            let theirs = match own {
                Some((me, elements)) if me == place => elements,
                // SAFETY: this rank has written these elements in this step, and no rank changes
                // them before all have finished the step.
                _ => unsafe { std::slice::from_raw_parts(slot(Some(place)), part.len()) },
            };
            match place {
                0 => result.copy_from_slice(theirs),
                _ => reduce::fold(result, theirs, operator),
            }
        }
        result
    }

    /// Writes the elements of a block outside of `share` to the slot of a rank.
    pub(super) fn write_around<T: Reducible>(
        &self,
        place: usize,
        step: u32,
        block: &[T],
        share: &Range<usize>,
    ) {
        let slot = self.slot(Some(place), step, size_of_val(block)).cast::<T>();
        for part in [0..share.start, share.end..block.len()] {
            // SAFETY: the slot has room for the block and is aligned for any element. By the
            // invariant of `shared_area`, no other rank uses it now.
            unsafe {
                let from = block.as_ptr().add(part.start);
                std::ptr::copy_nonoverlapping(from, slot.add(part.start), part.len());
            }
        }
    }

    /// Reads the elements of a block outside of `share` from the result.
    pub(super) fn read_around<T: Reducible>(
        &self,
        step: u32,
        block: &mut [T],
        share: &Range<usize>,
    ) {
        let slot = self.slot(None, step, size_of_val(block)).cast::<T>();
        for part in [0..share.start, share.end..block.len()] {
            // SAFETY: the slot has the block and is aligned for any element. It is not written
            // before all ranks have ended the step.
            unsafe {
                let to = block.as_mut_ptr().add(part.start);
                std::ptr::copy_nonoverlapping(slot.add(part.start), to, part.len());
            }
        }
    }
}
