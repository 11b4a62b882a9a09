//! Memory that a process exposes to others for a while, and what uses it now.
//!
//! A description of exposed memory names its number, which no other exposure of the process
//! ever has, and its place in a table in the node's shared memory ([`Table`]). A rank that
//! copies between that memory and its own without the owner's help checks the table first; an
//! owner that copies for other ranks checks with [`enter`].
//!
//! **Guarantee.** When [`Exposure::withdraw`] has returned, no byte of the memory is read or
//! written for other ranks any more, although they keep its description: copies that had begun
//! are complete, and later ones are refused. Two things ensure that:
//!
//! - A rank of the node writes into a word of its own which exposure it copies from or to, then
//!   checks that the owner's place still has the number, and goes on only if so. The owner
//!   removes the number first and reads those words afterwards. Both sides order the two
//!   steps (all four accesses are sequentially consistent), so at least one sees the other: the
//!   rank finds the number gone, or the owner finds the word and waits until it changes. A
//!   process that has died in the middle is not waited for, since its copy has ended with it.
//! - Copies that the owner makes for others are counted while they last, in the same way.
//!   Their bytes may be under way in messages, so the owner makes progress while it waits.
//!
//! What is not covered: a rank that dies while its owner helps it to copy, in the few
//! microseconds of that piece; and a process that does not keep to this protocol: other
//! processes of the same user cannot be forced to.

use crate::error::{Error, ErrorKind, Result};
use crate::shm::SharedFile;
use crate::trace::Cause;
use crate::wait::{self, Boot, Progress};
use parking_lot::Mutex;
use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// Exposures of a rank that other ranks of its node can reach by themselves, at a time; the
/// owner serves the rest.
pub(crate) const PLACES: usize = 2000;
/// Copies of a rank at a time without the owners' help.
const COPIES: usize = 32;
/// How often the owner checks whether a process that it waits for still lives.
const LOOK: Duration = Duration::from_millis(20);

#[repr(C)]
struct ExposureEntry {
    /// The exposure's number; 0 for none.
    id: AtomicU64,
    /// The ranks of the node that have ever read this entry, a bit each, by their number
    /// modulo 64: the owner need not check the words of the others.
    seen: AtomicU64,
}

/// What a rank has in the node's shared memory; zeros to begin with.
#[repr(C, align(64))]
pub(crate) struct Area {
    pid: AtomicU32,
    /// What the rank copies from or to now: 0, or [`word`].
    copies: [AtomicU64; COPIES],
    places: [ExposureEntry; PLACES],
}

/// Names a place of a rank; never 0.
fn word(rank: usize, place: u32) -> u64 {
    (rank as u64 + 1) << 32 | u64::from(place)
}

/// The areas of a node's ranks.
#[derive(Debug)]
pub(crate) struct Table {
    file: Arc<SharedFile>,
    offset: usize,
    ranks: usize,
    me: usize,
    free: Mutex<Vec<u32>>,
}

/// A copy that its owner waits for.
#[derive(Debug)]
pub(crate) struct Copying<'a>(&'a AtomicU64);

impl Drop for Copying<'_> {
    fn drop(&mut self) {
        self.0.store(0, SeqCst);
    }
}

impl Table {
    /// Over a file that has an area for each rank from `offset` on, which is a multiple of a
    /// page; the caller's is reserved.
    pub(crate) fn new(file: Arc<SharedFile>, offset: usize, ranks: usize, me: usize) -> Table {
        let free = Mutex::new((0..PLACES as u32).rev().collect());
        let table = Table { file, offset, ranks, me, free };
        table.area(me).pid.store(std::process::id(), SeqCst);
        table
    }

    fn area(&self, rank: usize) -> &Area {
        assert!(rank < self.ranks, "rank {rank} of {}", self.ranks);
        // SAFETY: the file is mapped while the table lives and has an area for each rank
        // there; an area consists of atomics, and begins as zeros.
        unsafe { &*self.file.base().add(self.offset + rank * size_of::<Area>()).cast() }
    }

    /// Begins a copy from or to an exposure of another rank of the node. `None` where too many
    /// are under way: the owner is to be asked then.
    ///
    /// # Errors
    /// `Handle` where the memory was withdrawn.
    pub(crate) fn begin(&self, owner: usize, place: u32, id: u64) -> Result<Option<Copying<'_>>> {
        let Some(there) = self.area(owner).places.get(place as usize) else {
            return Err(withdrawn());
        };
        let bit = 1 << (self.me % 64);
        if there.seen.load(SeqCst) & bit == 0 {
            there.seen.fetch_or(bit, SeqCst);
        }
        let word = word(owner, place);
        let free = |copy: &&AtomicU64| copy.compare_exchange(0, word, SeqCst, SeqCst).is_ok();
        let Some(copy) = self.area(self.me).copies.iter().find(free) else { return Ok(None) };
        let copying = Copying(copy);
        if there.id.load(SeqCst) != id {
            return Err(withdrawn());
        }
        Ok(Some(copying))
    }

    fn open(&self, place: u32, id: u64) {
        let there = &self.area(self.me).places[place as usize];
        there.seen.store(0, SeqCst);
        there.id.store(id, SeqCst);
    }

    /// Removes the number, and waits for copies that have begun.
    fn close(&self, place: u32) {
        let there = &self.area(self.me).places[place as usize];
        there.id.store(0, SeqCst);
        let seen = there.seen.load(SeqCst);
        if seen == 0 {
            return;
        }
        let word = word(self.me, place);
        for rank in (0..self.ranks).filter(|rank| seen & 1 << (rank % 64) != 0) {
            for copy in self.area(rank).copies.iter().filter(|copy| copy.load(SeqCst) == word) {
                self.wait_for(rank, copy, word);
            }
        }
    }

    #[cold]
    fn wait_for(&self, rank: usize, copy: &AtomicU64, word: u64) {
        let pid = self.area(rank).pid.load(SeqCst);
        let what = || format!("process {pid} to end a copy of memory that is withdrawn");
        let mut looked = Instant::now();
        let ended = wait::until(&Boot, Cause::Other, &what, || {
            if copy.load(SeqCst) != word {
                return Ok(true);
            }
            if looked.elapsed() < LOOK {
                return Ok(false);
            }
            looked = Instant::now();
            Ok(!lives(pid))
        });
        if let Err(error) = ended {
            log::error!("{error}");
        }
    }
}

/// Whether a process has threads that run: a process that has ended exists until its parent
/// reaps it, and its first thread may end before the others.
fn lives(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    // The name, in parentheses, may hold anything.
    let state = stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next());
    let threads = || std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    !matches!(state, Some('Z' | 'X')) || threads() > 1
}

#[cold]
fn withdrawn() -> Error {
    Error::new(ErrorKind::Handle, "the memory is not exposed any more: its owner has withdrawn it")
}

/// Memory of this process that others may use.
#[derive(Debug)]
pub(crate) struct Exposure {
    id: u64,
    /// Address and length of each run, by address.
    runs: Vec<(usize, usize)>,
    readable: bool,
    writable: bool,
    open: AtomicBool,
    /// Copies that this process makes for others.
    inside: AtomicUsize,
    told: Mutex<Told>,
    /// Keeps the memory where that is the library's own.
    keeper: Option<Arc<dyn Any + Send + Sync>>,
}

/// What others can know of an exposure.
#[derive(Debug, Default)]
struct Told {
    /// It has a description; without one no rank can name it.
    described: bool,
    place: Option<(Arc<Table>, u32)>,
}

static LIVE: LazyLock<Mutex<HashMap<u64, Arc<Exposure>>>> = LazyLock::new(Mutex::default);

/// A copy that the owner makes for another process; the memory stays while it lasts.
#[derive(Debug)]
pub(crate) struct Inside(Arc<Exposure>);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, SeqCst);
    }
}

/// Begins a copy that this process makes for another one, which names an exposure and ranges
/// within it.
///
/// # Errors
/// `Handle` for an exposure that was withdrawn, or never was; `Address` for bytes that are
/// not exposed, or not for this.
pub(crate) fn enter(
    id: u64,
    write: bool,
    mut ranges: impl Iterator<Item = (usize, usize)>,
) -> Result<Inside> {
    let found = LIVE.lock().get(&id).cloned();
    let inside = found.ok_or_else(withdrawn)?.enter()?;
    let allowed = if write { inside.0.writable } else { inside.0.readable };
    if !allowed || !ranges.all(|range| inside.0.holds(range)) {
        let text = "bytes are asked for that are not exposed, or not for this";
        return Err(Error::new(ErrorKind::Address, text));
    }
    Ok(inside)
}

impl Exposure {
    /// Memory of this process, closed yet. `keeper` is dropped when the memory is no longer
    /// used.
    pub(crate) fn new(
        id: u64,
        mut runs: Vec<(usize, usize)>,
        (readable, writable): (bool, bool),
        keeper: Option<Arc<dyn Any + Send + Sync>>,
    ) -> Arc<Exposure> {
        runs.sort_unstable();
        Arc::new(Exposure {
            id,
            runs,
            readable,
            writable,
            open: AtomicBool::new(false),
            inside: AtomicUsize::new(0),
            told: Mutex::default(),
            keeper,
        })
    }

    fn holds(&self, (address, len): (usize, usize)) -> bool {
        let Some(end) = address.checked_add(len) else { return false };
        let within = |&(at, bytes): &(usize, usize)| at <= address && end <= at + bytes;
        let nearest = self.runs.partition_point(|&(at, _)| at <= address).checked_sub(1);
        // Runs may overlap, and then another run may hold the range.
        len == 0 || nearest.is_some_and(|n| within(&self.runs[n])) || self.runs.iter().any(within)
    }

    /// Whether others may use it.
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(SeqCst)
    }

    /// Lets others use it.
    pub(crate) fn open(self: &Arc<Exposure>) {
        let told = self.told.lock();
        self.open.store(true, SeqCst);
        if told.described {
            self.tell(&told);
        }
    }

    fn tell(self: &Arc<Exposure>, told: &Told) {
        LIVE.lock().insert(self.id, self.clone());
        if let Some((table, place)) = &told.place {
            table.open(*place, self.id);
        }
    }

    /// A rank gets a description: its place in the node's table (`table` gives that, where there
    /// is one) plus one; 0 where it has none.
    pub(crate) fn describe(
        self: &Arc<Exposure>,
        table: impl FnOnce() -> Option<Arc<Table>>,
    ) -> u32 {
        let mut told = self.told.lock();
        if !told.described {
            told.described = true;
            told.place = table().and_then(|table| {
                let free = table.free.lock().pop()?;
                Some((table, free))
            });
            if self.is_open() {
                self.tell(&told);
            }
        }
        told.place.as_ref().map_or(0, |(_, place)| place + 1)
    }

    /// Begins a use by this process on behalf of another rank.
    ///
    /// # Errors
    /// `Handle` where it was withdrawn.
    pub(crate) fn enter(self: &Arc<Exposure>) -> Result<Inside> {
        self.inside.fetch_add(1, SeqCst);
        let inside = Inside(self.clone());
        if self.is_open() { Ok(inside) } else { Err(withdrawn()) }
    }

    /// Refuses further uses by other ranks, and waits until none is under way, making
    /// `progress` meanwhile.
    pub(crate) fn withdraw(&self, progress: &dyn Progress) {
        let told = self.told.lock();
        if !self.open.swap(false, SeqCst) {
            return;
        }
        if told.described {
            LIVE.lock().remove(&self.id);
        }
        if let Some((table, place)) = &told.place {
            table.close(*place);
        }
        drop(told);
        if self.inside.load(SeqCst) > 0 {
            self.wait_until_left(progress);
        }
    }

    #[cold]
    fn wait_until_left(&self, progress: &dyn Progress) {
        let what = || format!("copies for others of memory that is withdrawn ({})", self.id);
        let done = || Ok(self.inside.load(SeqCst) == 0);
        let waited = wait::until(progress, Cause::Other, &what, done);
        // In a handler of active messages, which must not wait: memory of the library's own
        // is kept by the copy.
        if let Err(error) = waited
            && self.keeper.is_none()
        {
            log::error!("memory is withdrawn while it is copied for others: {error:#}");
        }
    }
}

impl Drop for Exposure {
    fn drop(&mut self) {
        if let Some((table, place)) = self.told.get_mut().place.take() {
            table.free.lock().push(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let len = 2 * size_of::<Area>();
        let file = SharedFile::create("/dev/shm", len, false).expect("a file");
        file.reserve(0, len).expect("room");
        let file = Arc::new(file);
        Table::new(file.clone(), 0, 2, 1); // the other rank is this process too
        Table::new(file, 0, 2, 0)
    }

    fn other(table: &Table) -> Table {
        Table::new(table.file.clone(), 0, 2, 1)
    }

    #[test]
    fn what_is_withdrawn_cannot_be_begun_and_what_has_begun_is_waited_for() {
        let mine = Arc::new(table());
        let theirs = other(&mine);
        let exposure = Exposure::new(77, vec![(4096, 100)], (true, true), None);
        *exposure.told.lock() = Told { described: true, place: Some((mine.clone(), 5)) };
        assert_eq!(theirs.begin(0, 5, 77).unwrap_err().kind(), ErrorKind::Handle);
        exposure.open();
        drop(theirs.begin(0, 5, 77).unwrap().expect("room"));
        assert!(theirs.begin(0, 5, 78).is_err() && theirs.begin(0, 6, 77).is_err());
        assert!(theirs.begin(0, PLACES as u32, 77).is_err());
        let copying = theirs.begin(0, 5, 77).unwrap();
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                exposure.withdraw(&Boot);
                assert!(ended.load(SeqCst), "a copy was not waited for");
            });
            while theirs.begin(0, 5, 77).is_ok() {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_millis(50));
            ended.store(true, SeqCst);
            drop(copying);
        });
        exposure.open();
        assert!(theirs.begin(0, 5, 77).unwrap().is_some(), "exposed again");
        exposure.withdraw(&Boot);
    }

    #[test]
    fn the_dead_are_not_waited_for() {
        let mine = table();
        let theirs = other(&mine);
        let mut child = std::process::Command::new("true").spawn().expect("true");
        theirs.area(1).pid.store(child.id(), SeqCst);
        mine.open(3, 9);
        std::mem::forget(theirs.begin(0, 3, 9).unwrap());
        mine.close(3); // not reaped yet
        child.wait().expect("wait");
        mine.open(3, 10);
        std::mem::forget(theirs.begin(0, 3, 10).unwrap());
        mine.close(3);
        assert!(lives(std::process::id()) && lives(1));
    }

    #[test]
    fn copies_by_the_owner_stay_within_what_is_exposed() {
        let id = u64::MAX - 5;
        let keeper = Arc::new(());
        let kept: Arc<dyn Any + Send + Sync> = keeper.clone();
        let exposure = Exposure::new(id, vec![(100, 10), (200, 5)], (true, false), Some(kept));
        let ask = |write, at, len| enter(id, write, std::iter::once((at, len))).map(drop);
        assert_eq!(ask(false, 100, 10).unwrap_err().kind(), ErrorKind::Handle);
        exposure.open();
        assert!(ask(false, 100, 10).is_err(), "nobody can know it");
        exposure.describe(|| None);
        assert!(ask(false, 100, 10).is_ok() && ask(false, 204, 1).is_ok());
        for (write, at, len) in [
            (true, 100, 1),
            (false, 99, 2),
            (false, 105, 6),
            (false, 110, 90),
            (false, usize::MAX, 2),
        ] {
            assert_eq!(ask(write, at, len).unwrap_err().kind(), ErrorKind::Address, "{at} {len}");
        }
        assert!(Arc::strong_count(&keeper) == 2);
        let inside = enter(id, false, std::iter::once((100, 1))).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| exposure.withdraw(&Boot));
            while ask(false, 100, 1).is_ok() {
                std::thread::yield_now();
            }
            drop(inside);
        });
        drop(exposure);
        assert_eq!(Arc::strong_count(&keeper), 1);
    }
}
