//! The rings of a node: sending, receiving, and waking a rank that sleeps.
//!
//! A file of shared memory contains, for each rank of the node, a *mailbox* page, a ring from each
//! rank of the node, and a table of memory registrations ([`registered`]). The memory of a ring is
//! reserved at its first use, so unused rings take only address space.
//!
//! **Waking.** A thread that has written to a ring alerts the target (see the module `doorbell`). A
//! thread that goes to sleep, or stops attending, checks the rings once more.
//!
//! **Full rings.** A sender that may wait polls until there is room. Records that a handler sends
//! are kept in order, and later polls send them.

use super::doorbell::Doorbell;
use super::wire::{MAX_HEADER, RecordHead, RecordKind};
use super::work_split::{JOBS, SplitJob};
use crate::collective::group::Group;
use crate::memory::registered;
use crate::topology::Topology;
use parking_lot::Mutex;
use portolan_base::config::Config;
use portolan_base::error::Result;
use portolan_base::shm::SharedFile;
use portolan_base::sync::ring::{Reader, Writer};
use portolan_base::sync::ring_memory::{self, Mapped};
use portolan_base::trace::{Awaited, Cause};
use portolan_base::wait::{self, Progress};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

const PAGE: usize = 4096;
/// Bytes of a fragment. The target copies one while the origin writes the next.
pub(crate) const FRAGMENT: usize = 8 << 10;
/// The bits in a mailbox.
const MOST_RANKS: usize = 1024;
/// Limit of all stores of a rank in bytes, unless they were below [`SMALLEST_STORE`].
const ALL_STORES: usize = 16 << 20;
/// The node index of a rank on another node.
const ELSEWHERE: u32 = u32::MAX;
const SMALLEST_STORE: usize = 32 << 10;

#[repr(C, align(64))]
struct Mailbox {
    door: Doorbell,
    /// The process ID, and the address of a number that peers try to read.
    pid: AtomicU32,
    mark: AtomicU64,
    _line: [u64; 6],
    jobs: [SplitJob; JOBS],
    /// Bitmap of the node's ranks that have opened their ring to this rank.
    opened: [AtomicU64; MOST_RANKS / 64],
}

const _: () = assert!(size_of::<Mailbox>() <= PAGE);

#[derive(Debug, Default)]
struct Outgoing {
    writer: Option<Writer<Mapped>>,
    messages: u64,
    /// Records that did not fit in the ring.
    kept: VecDeque<Vec<u8>>,
}

#[derive(Debug)]
pub struct ShmTransport {
    file: Arc<SharedFile>,
    registrations: Arc<registered::Table>,
    ranks: Vec<usize>,
    index: Vec<u32>,
    me: usize,
    store: usize,
    out: Vec<Mutex<Outgoing>>,
    keeping: AtomicBool,
}

/// The reading side, under the dispatcher's lock.
#[derive(Debug, Default)]
pub struct Incoming {
    readers: Vec<Option<Reader<Mapped>>>,
    open: Vec<usize>,
    known: Vec<u64>,
}

static MARK: u64 = 0x506f_7274_6f6c_616e;

fn mailbox(file: &SharedFile, index: usize) -> &Mailbox {
    // SAFETY: the file begins with a page per rank. A mailbox consists of atomics; zeros are valid.
    unsafe { &*file.base().add(index * PAGE).cast() }
}

impl ShmTransport {
    /// Collective. `None` on all ranks if a node lacks shared memory or exceeds [`MOST_RANKS`].
    pub fn create(
        world: &Group,
        topology: &Topology,
        config: &Config,
        progress: &dyn Progress,
    ) -> Result<Option<ShmTransport>> {
        let ranks = topology.ranks_of(topology.my_node()).to_vec();
        let me = ranks.iter().position(|&r| r == topology.me()).unwrap_or(0);
        let n = ranks.len();
        let store = config.am_ring_bytes.min((ALL_STORES / n).max(SMALLEST_STORE));
        let store = store.next_multiple_of(PAGE);
        let ring = ring_memory::bytes(store).next_multiple_of(PAGE);
        let areas = n * PAGE + n * n * ring;
        let area = size_of::<registered::Area>();
        let len = areas + (n * area).next_multiple_of(PAGE);
        let fits = topology.largest_node() <= MOST_RANKS;
        if !fits {
            return Ok(None);
        }
        let prepare = |file: &SharedFile| {
            file.reserve(areas + me * area, area)?;
            file.reserve(me * PAGE, PAGE)?;
            let mine = mailbox(file, me);
            mine.mark.store(&raw const MARK as u64, Ordering::Relaxed);
            mine.pid.store(std::process::id(), Ordering::Release);
            Ok(())
        };
        let team = world.live_team()?;
        let Some(file) = team.share_if_possible(progress, &config.shm_dir, len, prepare)? else {
            return Ok(None);
        };
        let file = Arc::new(file);
        Ok(Some(ShmTransport {
            registrations: Arc::new(registered::Table::new(file.clone(), areas, n, me)),
            file,
            me,
            store,
            out: (0..n).map(|_| Mutex::default()).collect(),
            keeping: AtomicBool::new(false),
            index: (0..topology.size())
                .map(|rank| ranks.binary_search(&rank).map_or(ELSEWHERE, |index| index as u32))
                .collect(),
            ranks,
        }))
    }

    fn mailbox(&self, index: usize) -> &Mailbox {
        mailbox(&self.file, index)
    }

    fn ring_offset(&self, from: usize, to: usize) -> usize {
        let n = self.ranks.len();
        let ring = ring_memory::bytes(self.store).next_multiple_of(PAGE);
        n * PAGE + (to * n + from) * ring
    }

    #[inline]
    pub fn index_of(&self, world: usize) -> Option<usize> {
        self.index.get(world).filter(|&&index| index != ELSEWHERE).map(|&index| index as usize)
    }

    pub fn rank_of(&self, index: usize) -> usize {
        self.ranks[index]
    }

    pub fn longest(&self) -> usize {
        self.store / 4
    }

    /// In bytes.
    #[inline]
    pub fn eager_limit(&self) -> usize {
        self.longest() - size_of::<RecordHead>() - MAX_HEADER
    }

    fn open(&self, index: usize) -> Result<Writer<Mapped>> {
        let offset = self.ring_offset(self.me, index);
        self.file.reserve(offset, ring_memory::bytes(self.store)).map_err(|error| {
            let rank = self.ranks[index];
            let text = format!(
                "messages to rank {rank}: {} (PORTOLAN_AM_RING_BYTES makes rings smaller)",
                error.detail()
            );
            error.reworded(text)
        })?;
        // SAFETY: the file stays mapped while the transport lives. The ring lies in it on pages of
        // its own, and this rank is its only writer.
        let memory = unsafe { Mapped::new(self.file.base().add(offset), self.store) };
        let opened = &self.mailbox(index).opened[self.me / 64];
        opened.fetch_or(1 << (self.me % 64), Ordering::Release);
        Ok(Writer::new(memory))
    }

    /// The caller has written a record for the rank before.
    #[inline]
    fn alert(&self, index: usize) {
        self.mailbox(index).door.alert();
    }

    /// Counts a message. Without room, waits if allowed, and keeps the record otherwise.
    #[inline]
    pub fn send(
        &self,
        progress: &impl Progress,
        index: usize,
        parts: &[&[u8]],
        message: bool,
        may_wait: impl Fn() -> bool,
    ) -> Result<()> {
        loop {
            {
                let mut out = self.out[index].lock();
                if out.kept.is_empty() {
                    // Counted before it leaves, as quiescence requires.
                    out.messages += u64::from(message);
                    let written = self.write(index, &mut out, parts);
                    if let Ok(true) = written {
                        drop(out);
                        self.alert(index);
                        return Ok(());
                    }
                    out.messages -= u64::from(message);
                    written?;
                }
                if !may_wait() {
                    out.messages += u64::from(message);
                    out.kept.push_back(parts.concat());
                    self.keeping.store(true, Ordering::Release);
                    return Ok(());
                }
            }
            self.wait_for_room(progress, index, parts)?;
        }
    }

    /// Sends a message whose data follows its header in separate, consecutive records, so that the
    /// target copies the first while this rank writes the next. Sends nothing and returns false if
    /// not all fit.
    pub(crate) fn send_in_fragments(
        &self,
        index: usize,
        head: &RecordHead,
        header: &[u8],
        data: &[u8],
    ) -> Result<bool> {
        let mut out = self.out[index].lock();
        let next = RecordHead::new(RecordKind::EagerFragment);
        let next = bytemuck::bytes_of(&next);
        let records = 1 + data.len().div_ceil(FRAGMENT);
        let bytes =
            size_of::<RecordHead>() + header.len() + (records - 1) * next.len() + data.len();
        let out = &mut *out;
        let room = match &mut out.writer {
            Some(writer) => writer.has_room_for(records, bytes, FRAGMENT + next.len()) == Ok(true),
            // The first message in a single record opens the ring.
            None => false,
        };
        if !room || !out.kept.is_empty() {
            return Ok(false);
        }
        out.messages += 1;
        let mut written = self.write(index, out, &[bytemuck::bytes_of(head), header])?;
        self.alert(index);
        for chunk in data.chunks(FRAGMENT) {
            written &= self.write(index, out, &[next, chunk])?;
        }
        self.alert(index);
        assert!(written, "there was room for {records} records of {bytes} bytes");
        Ok(true)
    }

    #[inline]
    fn write(&self, index: usize, out: &mut Outgoing, parts: &[&[u8]]) -> Result<bool> {
        match &mut out.writer {
            Some(writer) => Ok(writer.write(parts)),
            none => Ok(none.insert(self.open(index)?).write(parts)),
        }
    }

    #[cold]
    fn wait_for_room(&self, progress: &impl Progress, index: usize, parts: &[&[u8]]) -> Result<()> {
        let size = parts.iter().map(|p| p.len()).sum();
        let rank = self.ranks[index];
        wait::until(
            progress,
            Awaited::of(Cause::Ring, rank),
            &|| {
                format!(
                    "ring space for a message to rank {rank}, which has not yet taken earlier ones"
                )
            },
            || {
                let mut out = self.out[index].lock();
                self.send_kept(index, &mut out);
                Ok(out.kept.is_empty()
                    && out.writer.as_mut().is_none_or(|w| w.has_room(size) != Ok(false)))
            },
        )
    }

    /// Returns each rank of the node with the number of messages sent to it.
    pub fn messages(&self) -> impl Iterator<Item = (usize, u64)> {
        self.ranks.iter().zip(&self.out).map(|(rank, out)| (*rank, out.lock().messages))
    }

    /// Writes a control record if there is room now and none is kept before it. Returns whether it
    /// did.
    pub(crate) fn try_send(&self, index: usize, parts: &[&[u8]]) -> Result<bool> {
        let mut out = self.out[index].lock();
        let written = out.kept.is_empty() && self.write(index, &mut out, parts)?;
        drop(out);
        if written {
            self.alert(index);
        }
        Ok(written)
    }

    fn send_kept(&self, index: usize, out: &mut Outgoing) -> bool {
        let Outgoing { writer: Some(writer), kept, .. } = out else { return false };
        let mut any = false;
        while let Some(record) = kept.front() {
            if !writer.write(&[record]) {
                break;
            }
            any = true;
            kept.pop_front();
        }
        if any {
            self.alert(index);
        }
        any
    }

    #[inline]
    pub(crate) fn send_all_kept(&self) -> bool {
        self.keeping.load(Ordering::Acquire) && self.send_all_kept_now()
    }

    #[cold]
    fn send_all_kept_now(&self) -> bool {
        let (mut any, mut left) = (false, false);
        self.keeping.store(false, Ordering::SeqCst);
        for (index, out) in self.out.iter().enumerate() {
            let mut out = out.lock();
            any |= self.send_kept(index, &mut out);
            left |= !out.kept.is_empty();
        }
        if left {
            self.keeping.store(true, Ordering::SeqCst);
        }
        any
    }

    pub fn keeps(&self) -> bool {
        self.keeping.load(Ordering::Relaxed)
    }

    /// Number of records written to a rank, for fences, or `None` while some are kept.
    pub fn written(&self, index: usize) -> Option<u64> {
        let mut out = self.out[index].lock();
        self.send_kept(index, &mut out);
        let written = out.writer.as_ref().map_or(0, Writer::written);
        out.kept.is_empty().then_some(written)
    }

    /// Number of records that the rank has finished, or `u64::MAX` if none was sent.
    pub fn taken(&self, index: usize) -> u64 {
        self.out[index].lock().writer.as_ref().map_or(u64::MAX, Writer::done)
    }

    /// Returns the process ID of a rank, and the address and the value of its mark.
    pub fn process(&self, index: usize) -> (u32, u64, u64) {
        let mailbox = self.mailbox(index);
        (mailbox.pid.load(Ordering::Acquire), mailbox.mark.load(Ordering::Relaxed), MARK)
    }

    #[inline]
    pub(crate) fn set_attended(&self, attended: bool) {
        self.mailbox(self.me).door.set_attended(attended);
    }

    pub fn sleep(&self, nap: impl FnOnce() -> Option<Duration>) {
        self.mailbox(self.me).door.sleep(nap);
    }

    pub(crate) fn is_attended(&self, index: usize) -> bool {
        self.mailbox(index).door.is_attended()
    }

    pub fn rest(&self, sleep: impl FnOnce()) {
        self.mailbox(self.me).door.rest(sleep);
    }

    pub fn rests(&self, index: usize) -> bool {
        self.mailbox(index).door.rests()
    }

    pub fn me(&self) -> usize {
        self.me
    }

    pub fn registrations(&self) -> &Arc<registered::Table> {
        &self.registrations
    }

    pub(crate) fn split_job(&self, index: usize, place: usize) -> &SplitJob {
        &self.mailbox(index).jobs[place]
    }

    pub(crate) fn wake_own(&self) {
        self.mailbox(self.me).door.wake();
    }
}

impl Incoming {
    pub fn new(node: &ShmTransport) -> Incoming {
        let n = node.ranks.len();
        Incoming {
            readers: (0..n).map(|_| None).collect(),
            open: Vec::new(),
            known: vec![0; n.div_ceil(64)],
        }
    }

    #[inline]
    pub(crate) fn look_for_new(&mut self, node: &ShmTransport) {
        let opened = &node.mailbox(node.me).opened;
        for (word, opened) in opened.iter().enumerate().take(self.known.len()) {
            let now = opened.load(Ordering::Acquire);
            if now != self.known[word] {
                self.open_new(node, word, now);
            }
        }
    }

    #[cold]
    fn open_new(&mut self, node: &ShmTransport, word: usize, now: u64) {
        for bit in 0..64 {
            let index = word * 64 + bit;
            if now & !self.known[word] & 1 << bit != 0 && index < self.readers.len() {
                let offset = node.ring_offset(index, node.me);
                // SAFETY: the file stays mapped while the transport lives. The ring was reserved
                // before its bit was set, and this is its only reader.
                let memory = unsafe { Mapped::new(node.file.base().add(offset), node.store) };
                self.readers[index] = Some(Reader::new(memory));
                self.open.push(index);
            }
        }
        self.known[word] = now;
    }

    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Returns the origin's node index and the reader of the `n`th open ring.
    #[inline]
    pub fn ring(&mut self, n: usize) -> (usize, &mut Reader<Mapped>) {
        let index = self.open[n];
        match &mut self.readers[index] {
            Some(reader) => (index, reader),
            None => unreachable!("an open ring has its reader"),
        }
    }

    pub fn ready(&self, node: &ShmTransport) -> bool {
        let opened = &node.mailbox(node.me).opened;
        let new = |(word, known): (usize, &u64)| opened[word].load(Ordering::Acquire) != *known;
        self.open.iter().any(|&i| self.readers[i].as_ref().is_some_and(Reader::ready))
            || self.known.iter().enumerate().any(new)
    }
}
