//! Memory registrations of this process, and the copies that use them.
//!
//! A description of registered memory has the number of the registration, which is never reused in
//! the process, and its index in a table in the node's shared memory ([`Table`]). A rank that
//! copies without the owner's help checks the table first. An owner that copies on behalf of
//! another rank checks with [`enter`].
//!
//! **Guarantee.** After [`Registration::withdraw`] returns, no byte of the memory is accessed for
//! other ranks. Earlier copies are complete, later ones are refused. Two mechanisms ensure this:
//!
//! - A rank of the node writes the registration that it copies from or to into a word of its own.
//!   It proceeds only if the owner's table entry still has the number. The owner removes the number
//!   first and reads those words afterwards. All four accesses are sequentially consistent, so
//!   either the rank finds the number removed, or the owner finds the word and waits until it
//!   changes or the rank's process dies.
//! - Copies that the owner makes for others are counted. Those of the engine ([`enter`]) may travel
//!   in messages, so the owner makes progress while it waits. They end with the engine. The others
//!   ([`Registration::enter`]) are short: a thread must not run user code or wait for a peer during
//!   one. The owner waits for them even without an engine. An access that lasts until a peer reads
//!   its bytes must end when `recall` of [`Registration::withdraw`] runs.
//!
//! Two cases are not covered: if a rank dies while the owner helps with its copy, the owner may
//! continue for the few microseconds of the current block, and a process of the same user can
//! ignore this protocol.

use super::runs::{Direction, Run};
use parking_lot::Mutex;
use portolan_base::digest;
use portolan_base::error::{Error, ErrorKind, Result};
use portolan_base::shm::SharedFile;
use portolan_base::trace::Cause;
use portolan_base::wait::times::ALIVE;
use portolan_base::wait::{self, Boot, Progress};
use std::any::Any;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// Maximum number of registrations of a rank that are accessible without its help.
pub const PLACES: usize = 2000;
/// Maximum number of concurrent copies of a rank without the owners' help.
const COPIES: usize = 32;

#[repr(C)]
struct RegistrationEntry {
    id: AtomicU64,
    /// Bitmap (rank modulo 64) of ranks that have ever accessed this entry. Owners skip others.
    /// Bits stay set, because a rank may be about to copy when the entry is opened again.
    seen: AtomicU64,
    digest: AtomicU64,
}

#[repr(C, align(64))]
pub(crate) struct Area {
    pid: AtomicU32,
    /// Random number, part of the digests of the rank's descriptions.
    secret: AtomicU64,
    /// Registrations that the rank copies from or to now ([`word`]), or 0.
    copies: [AtomicU64; COPIES],
    places: [RegistrationEntry; PLACES],
}

fn word(rank: usize, place: u32) -> u64 {
    (rank as u64 + 1) << 32 | u64::from(place)
}

#[derive(Debug)]
pub struct Table {
    file: Arc<SharedFile>,
    offset: usize,
    ranks: usize,
    me: usize,
    free: Mutex<Vec<u32>>,
}

/// A copy in progress. The owner of the memory waits for it.
#[derive(Debug)]
pub struct Copying<'a>(&'a AtomicU64);

impl Drop for Copying<'_> {
    fn drop(&mut self) {
        self.0.store(0, SeqCst);
    }
}

impl Table {
    /// Creates the table in a file with one area per rank from `offset` on, a multiple of the page
    /// size. The memory of the caller's area is reserved.
    pub fn new(file: Arc<SharedFile>, offset: usize, ranks: usize, me: usize) -> Table {
        let free = Mutex::new((0..PLACES as u32).rev().collect());
        let table = Table { file, offset, ranks, me, free };
        table.area(me).pid.store(std::process::id(), SeqCst);
        table.area(me).secret.store(digest::key(), SeqCst);
        table
    }

    fn area(&self, rank: usize) -> &Area {
        assert!(rank < self.ranks, "rank {rank} of {}", self.ranks);
        // SAFETY: the file stays mapped and has an area for each rank at this offset. An area
        // consists of atomics, so it may be shared, and zeros are valid.
        unsafe { &*self.file.base().add(self.offset + rank * size_of::<Area>()).cast() }
    }

    /// With the owner's secret, so that a program cannot compute it.
    pub fn digest(&self, owner: usize, description: impl Hash) -> u64 {
        digest::keyed(self.area(owner).secret.load(SeqCst), description)
    }

    /// Begins a copy from or to registered memory of another rank of the node. Returns `None` if
    /// too many copies are in progress or the digest does not match: the caller then asks the
    /// owner, who checks the request. Fails with `Handle` if the registration was withdrawn.
    pub fn begin(
        &self,
        owner: usize,
        place: u32,
        id: u64,
        digest: u64,
    ) -> Result<Option<Copying<'_>>> {
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
        Ok((there.digest.load(SeqCst) == digest).then_some(copying))
    }

    fn open(&self, place: u32, id: u64, digest: u64) {
        let there = &self.area(self.me).places[place as usize];
        there.digest.store(digest, SeqCst);
        there.id.store(id, SeqCst);
    }

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
        wait_for_copy(pid, Duration::MAX, || copy.load(SeqCst) != word, || lives(pid));
    }
}

/// Waits until a copy by process `pid` has ended, the process is dead, or `limit` has passed.
pub fn wait_for_copy(
    pid: u32,
    limit: Duration,
    has_ended: impl Fn() -> bool,
    lives: impl Fn() -> bool,
) {
    let what = || format!("process {pid} to end a copy of memory that is withdrawn");
    let (begun, mut checked) = (Instant::now(), Instant::now());
    let ended = wait::until(&Boot, Cause::Other, &what, || {
        if has_ended() {
            return Ok(true);
        }
        if checked.elapsed() < ALIVE {
            return Ok(false);
        }
        checked = Instant::now();
        if begun.elapsed() > limit {
            let text = format!(
                "process {pid} has not ended its copy of withdrawn memory after {limit:?}; was it \
                 stopped?"
            );
            return Err(Error::new(ErrorKind::State, text));
        }
        Ok(!lives())
    });
    if let Err(error) = ended {
        log::error!("{error}");
    }
}

/// Returns whether a process has running threads. An ended process exists until its parent reaps
/// it, and its first thread may end before the others.
pub(super) fn lives(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    // The name in parentheses may contain any character.
    let state = stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next());
    let threads = || std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    !matches!(state, Some('Z' | 'X')) || threads() > 1
}

#[cold]
fn withdrawn() -> Error {
    Error::new(ErrorKind::Handle, "the memory is not exposed any more: its owner has withdrawn it")
}

#[derive(Debug)]
pub struct Registration {
    id: u64,
    /// Sorted by address.
    runs: Vec<Run>,
    readable: bool,
    writable: bool,
    open: AtomicBool,
    inside: AtomicUsize,
    /// Number of copies whose bytes may travel in messages.
    in_messages: AtomicUsize,
    traced: Mutex<Told>,
    /// Keeps the memory alive if it belongs to the library.
    keeper: Option<Arc<dyn Any + Send + Sync>>,
}

#[derive(Debug, Default)]
struct Told {
    /// Without a description, no rank can name the registration.
    described: bool,
    /// The node's table, and the index and digest there.
    place: Option<(Arc<Table>, u32, u64)>,
}

static LIVE: LazyLock<Mutex<HashMap<u64, Arc<Registration>>>> = LazyLock::new(Mutex::default);

#[derive(Debug)]
pub struct Inside {
    registration: Arc<Registration>,
    how: How,
}

#[derive(Debug, Clone, Copy)]
enum How {
    Briefly,
    InMessages,
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.registration.count(self.how).fetch_sub(1, SeqCst);
    }
}

/// Begins a copy for another process, which names the registration and the runs. Fails with
/// `Handle` if the registration was withdrawn or never existed, and with `Address` if a run is not
/// registered for this kind of access.
pub fn enter(id: u64, direction: Direction, mut runs: impl Iterator<Item = Run>) -> Result<Inside> {
    let found = LIVE.lock().get(&id).cloned();
    let inside = found.ok_or_else(withdrawn)?.begin(How::InMessages)?;
    let registration = &inside.registration;
    let allowed = match direction {
        Direction::Put => registration.writable,
        Direction::Get => registration.readable,
    };
    if !allowed || !runs.all(|run| registration.holds(run)) {
        let text = "the requested bytes are not exposed, or not for this kind of access";
        return Err(Error::new(ErrorKind::Address, text));
    }
    Ok(inside)
}

impl Registration {
    /// Creates a registration that is not open. `keeper` lives while the memory is in use.
    pub fn new(
        id: u64,
        mut runs: Vec<Run>,
        (readable, writable): (bool, bool),
        keeper: Option<Arc<dyn Any + Send + Sync>>,
    ) -> Arc<Registration> {
        runs.sort_unstable();
        Arc::new(Registration {
            id,
            runs,
            readable,
            writable,
            open: AtomicBool::new(false),
            inside: AtomicUsize::new(0),
            in_messages: AtomicUsize::new(0),
            traced: Mutex::default(),
            keeper,
        })
    }

    fn holds(&self, part: Run) -> bool {
        let Some(end) = part.end() else { return false };
        let within = |run: &Run| run.address <= part.address && end <= run.address + run.len;
        let nearest = self.runs.partition_point(|run| run.address <= part.address).checked_sub(1);
        // Runs may overlap, so a run other than the nearest one may contain it.
        part.len == 0
            || nearest.is_some_and(|n| within(&self.runs[n]))
            || self.runs.iter().any(within)
    }

    pub fn is_open(&self) -> bool {
        self.open.load(SeqCst)
    }

    pub fn open(self: &Arc<Registration>) {
        let traced = self.traced.lock();
        self.open.store(true, SeqCst);
        if traced.described {
            self.record(&traced);
        }
    }

    fn record(self: &Arc<Registration>, traced: &Told) {
        LIVE.lock().insert(self.id, self.clone());
        if let Some((table, place, digest)) = &traced.place {
            table.open(*place, self.id, *digest);
        }
    }

    /// Prepares the registration for a description that is sent to another rank. Returns its index
    /// in the node's table (from `table`) plus one, or 0 if it has none. The other rank hashes
    /// `description` ([`Table::digest`]).
    pub fn describe(
        self: &Arc<Registration>,
        description: impl Hash,
        table: impl FnOnce() -> Option<Arc<Table>>,
    ) -> u32 {
        let mut traced = self.traced.lock();
        if !traced.described {
            traced.described = true;
            traced.place = table().and_then(|table| {
                let free = table.free.lock().pop()?;
                let digest = table.digest(table.me, description);
                Some((table, free, digest))
            });
            if self.is_open() {
                self.record(&traced);
            }
        }
        traced.place.as_ref().map_or(0, |(_, place, _)| place + 1)
    }

    fn count(&self, how: How) -> &AtomicUsize {
        match how {
            How::Briefly => &self.inside,
            How::InMessages => &self.in_messages,
        }
    }

    fn begin(self: &Arc<Registration>, how: How) -> Result<Inside> {
        self.count(how).fetch_add(1, SeqCst);
        let inside = Inside { registration: self.clone(), how };
        if self.is_open() { Ok(inside) } else { Err(withdrawn()) }
    }

    /// Begins a short access for another process. Fails with `Handle` after `withdraw`.
    pub fn enter(self: &Arc<Registration>) -> Result<Inside> {
        self.begin(How::Briefly)
    }

    /// Calls `recall`, which ends accesses that wait for a peer, and waits until none is left.
    pub fn withdraw(&self, progress: &dyn Progress, recall: impl FnOnce()) {
        let traced = self.traced.lock();
        let first = self.open.swap(false, SeqCst);
        if first && traced.described {
            LIVE.lock().remove(&self.id);
        }
        if first && let Some((table, place, _)) = &traced.place {
            table.close(*place);
        }
        drop(traced);
        if first {
            recall();
        }
        if self.others_inside() > 0 {
            self.wait_until_left(progress);
        }
    }

    fn others_inside(&self) -> usize {
        self.inside.load(SeqCst) + self.in_messages.load(SeqCst)
    }

    #[cold]
    fn wait_until_left(&self, progress: &dyn Progress) {
        let what = || {
            format!(
                "copies for other ranks to end before exposed memory is withdrawn ({})",
                self.id
            )
        };
        let done = || Ok(self.others_inside() == 0);
        // The wait fails without an engine, and in a handler, which must not wait for messages.
        let Err(error) = wait::until(progress, Cause::Other, &what, done) else { return };
        let briefly = || Ok(self.inside.load(SeqCst) == 0);
        if let Err(error) = wait::until(&Boot, Cause::Other, &what, briefly) {
            log::error!("{error:#}");
        }
        // Memory of the library is safe even then, because each copy keeps it alive.
        if self.in_messages.load(SeqCst) > 0 && self.keeper.is_none() {
            log::error!(
                "exposed memory is withdrawn while it is copied for other ranks: {error:#}"
            );
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some((table, place, _)) = self.traced.get_mut().place.take() {
            table.free.lock().push(place);
        }
    }
}

#[cfg(test)]
mod tests;
