//! This rank's own slice of a slab: which parts of it are free, and which have memory behind
//! them.
//!
//! The slice lies in the file that the ranks of the node share. Memory is reserved before a
//! piece is given out (invariant 7), some kilobytes at a time, and goes back when a long tail
//! of the slice is free.

use super::free_list::FreeList;
use super::slab::HEADER;
use crate::error::{Error, ErrorKind, Result};
use crate::shm::SharedFile;
use parking_lot::Mutex;

/// Memory is reserved and given back in multiples of this, so that small pieces do not each pay
/// a system call.
pub(super) const GRAIN: usize = 64 << 10;
/// A free tail of a slice longer than this gives its memory back at once.
const TRIM_BYTES: usize = 32 << 20;

#[derive(Debug)]
struct Cutting {
    free: FreeList,
    committed: usize,
    /// From here on nothing was given out before, so that bytes outside of live pieces are zero, as
    /// the system gives them.
    used: usize,
}

/// The owner's view of its slice.
#[derive(Debug)]
pub(super) struct OwnSlice {
    file: SharedFile,
    /// Where the slice begins in the file.
    offset: usize,
    len: usize,
    cutting: Mutex<Cutting>,
}

impl OwnSlice {
    /// The `len` bytes at `offset` of a file, with memory behind the header.
    ///
    /// # Errors
    /// `Memory` where there is none.
    pub(super) fn new(file: SharedFile, offset: usize, len: usize) -> Result<OwnSlice> {
        let reserved = file.reserve(offset, HEADER);
        reserved.map_err(|e| {
            let text = format!("no room for the {HEADER}-byte header of a slab: {e}");
            Error::new(ErrorKind::Memory, text)
        })?;
        let cutting = Mutex::new(Cutting {
            free: FreeList::new(HEADER, len),
            committed: HEADER,
            used: HEADER,
        });
        Ok(OwnSlice { file, offset, len, cutting })
    }

    /// Address of the first byte.
    pub(super) fn base(&self) -> *mut u8 {
        self.file.base().wrapping_add(self.offset)
    }

    /// The whole file, mapped.
    pub(super) fn file(&self) -> &SharedFile {
        &self.file
    }

    /// Address of the file, and where the slice begins in it.
    pub(super) fn in_file(&self) -> (*mut u8, usize) {
        (self.file.base(), self.offset)
    }

    /// Its length.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory behind it.
    pub(super) fn committed(&self) -> usize {
        self.cutting.lock().committed
    }

    /// Cuts `len` bytes (a multiple of [`super::slab::ALIGN`]) out and makes sure that memory is
    /// behind them. `Ok(None)` where no free part is long enough, an error where there is no
    /// memory.
    pub(super) fn cut(&self, len: usize) -> Result<Option<usize>> {
        let mut cutting = self.cutting.lock();
        let Some(offset) = cutting.free.take(len) else {
            return Ok(None);
        };
        let end = offset + len;
        if end > cutting.committed {
            let from = cutting.committed;
            let to = end.next_multiple_of(GRAIN).min(self.len);
            if let Err(e) = self.file.reserve(self.offset + from, to - from) {
                cutting.free.give(offset, len);
                self.file.release(self.offset + from, to - from);
                let room = self.file.room();
                let text = format!("{len} bytes asked, {room} bytes free in shared memory: {e}");
                return Err(Error::new(ErrorKind::Memory, text));
            }
            cutting.committed = to;
        }
        Ok(Some(offset))
    }

    /// How many bytes at the start of a piece may be other than zero, before anything is written to it:
    /// those that an earlier piece had.
    pub(super) fn stale(&self, offset: usize, len: usize) -> usize {
        self.cutting.lock().used.saturating_sub(offset).min(len)
    }

    /// Gives a piece back. Some memory is kept for the next piece.
    pub(super) fn give_back(&self, offset: usize, len: usize) {
        self.give_back_keeping(offset, len, TRIM_BYTES);
    }

    /// Undoes a cut that came to nothing, for want of memory elsewhere: all memory
    /// behind the last piece goes back, so that others can have it.
    pub(super) fn uncut(&self, offset: usize, len: usize) {
        self.give_back_keeping(offset, len, 0);
    }

    fn give_back_keeping(&self, offset: usize, len: usize, keep: usize) {
        let mut cutting = self.cutting.lock();
        cutting.free.give(offset, len);
        cutting.used = cutting.used.max(offset + len);
        let tail = cutting.free.tail().next_multiple_of(GRAIN);
        if tail + keep < cutting.committed {
            if self.file.release(self.offset + tail, cutting.committed - tail) {
                cutting.used = cutting.used.min(tail);
            }
            cutting.committed = tail;
        }
    }
}
