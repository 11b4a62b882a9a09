//! This rank's own region of an arena: its free ranges, and the memory behind them. Memory is
//! reserved before a block is handed out (invariant 7). Free memory is kept for later blocks, with
//! its pages mapped, within the limit of the caller.

use super::arena::HEADER;
use super::free_list::FreeList;
use parking_lot::Mutex;
use portolan_base::error::Result;
use portolan_base::shm::SharedFile;

/// Unit of reserved memory in bytes, so that most small blocks need no system call.
pub(super) const GRAIN: usize = 64 << 10;

#[derive(Debug)]
struct Cutting {
    free: FreeList,
    committed: usize,
    /// Bytes of all blocks.
    taken: usize,
    /// End of the blocks freed since their memory was last released. Free bytes beyond are zero.
    used: usize,
}

#[derive(Debug)]
pub struct OwnRegion {
    file: SharedFile,
    offset: usize,
    len: usize,
    cutting: Mutex<Cutting>,
}

impl OwnRegion {
    /// Blocks begin at the offset `start`.
    pub fn new(file: SharedFile, offset: usize, len: usize, start: usize) -> Result<OwnRegion> {
        file.reserve(offset, HEADER)?;
        let cutting = Mutex::new(Cutting {
            free: FreeList::new(start, len),
            committed: HEADER,
            taken: 0,
            used: HEADER,
        });
        Ok(OwnRegion { file, offset, len, cutting })
    }

    pub(super) fn base(&self) -> *mut u8 {
        self.file.base().wrapping_add(self.offset)
    }

    pub(super) fn file(&self) -> &SharedFile {
        &self.file
    }

    pub(super) fn in_file(&self) -> (*mut u8, usize) {
        (self.file.base(), self.offset)
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns how many bytes, from the start of the region, are reserved.
    pub(super) fn committed(&self) -> usize {
        self.cutting.lock().committed
    }

    /// Allocates and reserves `len` bytes (a multiple of [`super::arena::ALIGN`]). Returns their
    /// offset, `Ok(None)` if no free range is long enough, or the error `Memory`.
    pub(super) fn partition(&self, len: usize) -> Result<Option<usize>> {
        let mut cutting = self.cutting.lock();
        let Some(offset) = cutting.free.take(len) else {
            return Ok(None);
        };
        let end = offset + len;
        if end > cutting.committed {
            let from = cutting.committed;
            let to = end.next_multiple_of(GRAIN).min(self.len);
            if let Err(error) = self.file.reserve(self.offset + from, to - from) {
                cutting.free.give(offset, len);
                self.file.release(self.offset + from, to - from);
                return Err(error);
            }
            cutting.committed = to;
        }
        cutting.taken += len;
        Ok(Some(offset))
    }

    /// Returns how many reserved bytes no block uses.
    pub(super) fn unused(&self) -> usize {
        let cutting = self.cutting.lock();
        cutting.committed.saturating_sub(HEADER + cutting.taken)
    }

    /// Returns the length of the prefix of a new block that may have stale data.
    pub(super) fn stale(&self, offset: usize, len: usize) -> usize {
        self.cutting.lock().used.saturating_sub(offset).min(len)
    }

    pub(super) fn give_back(&self, offset: usize, len: usize) {
        let mut cutting = self.cutting.lock();
        cutting.free.give(offset, len);
        cutting.taken -= len;
        cutting.used = cutting.used.max(offset + len);
    }

    /// For an allocation that another rank cannot match.
    pub(super) fn uncut(&self, offset: usize, len: usize) {
        self.give_back(offset, len);
        self.trim();
    }

    /// Releases all memory behind the last block.
    pub(super) fn trim(&self) {
        let mut cutting = self.cutting.lock();
        let tail = cutting.free.tail().next_multiple_of(GRAIN);
        if tail < cutting.committed {
            if self.file.release(self.offset + tail, cutting.committed - tail) {
                cutting.used = cutting.used.min(tail);
            }
            cutting.committed = tail;
        }
    }
}
