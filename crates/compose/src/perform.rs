//! The composer: stores and loads compositions, and performs them (sync, perform, wait). A
//! performance waits for a target only for flow control, for flushes of MPI windows, and for
//! transfers to memory outside segments. The rank serves others meanwhile.

use super::composition::Composition;
use super::file::{self, Files};
use super::notify::ArrivalCounters;
use super::plan::{Plan, Toward};
use super::store::{self, Trust};
use parking_lot::Mutex;
use portolan_base::error::{Error, ErrorKind, Result};
use portolan_base::trace::{Awaited, Call, CallInfo, Cause};
use portolan_base::wait::{self, Progress as _};
use portolan_engine::any_memory::Direction;
use portolan_engine::core::peer::CompletionCounter;
use portolan_engine::path::Path;
use portolan_engine::runtime::Engine;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// The counters of arrivals, the transfers that still read local memory, and the files.
#[derive(Debug, Default)]
pub struct Composer {
    arrivals: OnceLock<ArrivalCounters>,
    /// Performances that still read local memory, and notifications in flight.
    leaving: Arc<CompletionCounter>,
    files: Mutex<Files>,
    /// `None` for `PORTOLAN_COMPOSE_DIR`.
    directory: Option<PathBuf>,
    /// The segments that these files may name.
    trust: Trust,
}

impl Composer {
    /// Creates a composer without arrival counters. The first [`Composer::sync`] creates them.
    pub fn new() -> Composer {
        Composer::default()
    }

    pub fn with_directory(directory: impl Into<PathBuf>) -> Composer {
        Composer { directory: Some(directory.into()), ..Composer::default() }
    }

    /// Restricts the files of the composer to segments of the safe Rust interface.
    pub fn confined(self) -> Composer {
        Composer { trust: Trust::Elements, ..self }
    }

    fn directory<'a>(&'a self, engine: &'a Engine) -> &'a std::path::Path {
        self.directory.as_deref().unwrap_or(engine.config.compose_dir.as_ref())
    }

    /// Stores a composition. Each rank stores its own. Fails with `Address` if an address lies in
    /// no segment, or in a segment that a file may not name; `State` if a segment of the
    /// composition was freed; `Argument` if the number is negative or the file cannot be written;
    /// and `Memory`. On failure, the file keeps its contents.
    pub fn store(&self, engine: &Engine, number: i32, composition: &Composition) -> Result<()> {
        composition.check_live(engine)?;
        let body = store::encode(engine, composition, self.trust)?;
        let place = file::place_of(engine);
        let record = file::encode(place, composition.kind(), &body)?;
        self.files.lock().store(self.directory(engine), number, place, &record)
    }

    /// Loads the next composition of a file. Each rank loads its own. Fails with `Argument` if
    /// there is no further composition, or if the file is damaged or belongs to another rank, job
    /// size or version. Fails with `Address` if the segments of this run differ from those of the
    /// run that stored it, or if the file may not name them. Fails with `Memory`.
    pub fn load(&self, engine: &Engine, number: i32) -> Result<Composition> {
        let place = file::place_of(engine);
        let record = self.files.lock().load(self.directory(engine), number, place)?;
        store::decode(engine, record.kind, &record.body, self.trust)
    }

    pub fn rewind(&self, number: i32) -> Result<()> {
        self.files.lock().rewind(number)
    }

    /// Creates the arrival counters now, instead of in the first [`Composer::sync`]. Collective.
    /// Fails with `Memory` on all ranks if the counters cannot be allocated.
    pub fn prepare(&self, engine: &Engine) -> Result<()> {
        if self.arrivals.get().is_none() {
            // A single thread of each rank makes this collective call, so the cell is still empty.
            let _ = self.arrivals.set(ArrivalCounters::new(engine)?);
            // Only memory outside segments needs active messages.
            if let Err(error) = engine.start_am() {
                log::warn!("compositions can access memory in segments only: {error:#}");
            }
        }
        Ok(())
    }

    /// Completes the performances of this rank, starts a new phase, and waits for all ranks. A
    /// performance counts only in the phase of its call. Collective. Fails as [`Composer::prepare`]
    /// does, and with the error of an earlier performance that was still reading local memory.
    pub fn sync(&self, engine: &Engine) -> Result<()> {
        engine.observed(
            || CallInfo::new(Call::Barrier),
            || {
                self.prepare(engine)?;
                let left = self.left(engine);
                engine.fence_all()?;
                if let Some(arrivals) = self.arrivals.get() {
                    arrivals.next_phase(engine)?;
                }
                left
            },
        )
    }

    fn arrivals(&self) -> Result<&ArrivalCounters> {
        self.arrivals.get().filter(|arrivals| arrivals.has_begun()).ok_or_else(|| {
            Error::new(
                ErrorKind::State,
                "no sync was called yet: all ranks must sync before they perform",
            )
        })
    }

    /// Waits until no performance reads local memory any more.
    fn left(&self, engine: &Engine) -> Result<()> {
        let counter = &self.leaving;
        let what = || format!("{} messages of performances to be sent", counter.outstanding());
        wait::until(engine, Cause::Handle, &what, || counter.check())
    }

    /// Performs a mapped composition. For ranks of the same node, the bytes are in place on return.
    /// For others, local bytes may be changed after the next [`Composer::wait_for`] or
    /// [`Composer::sync`]. Fails with `State` before the first sync, or if a segment of the mapped
    /// composition was freed; no byte has moved then. Fails with `Address` if a rank lacks memory
    /// at an address outside segments; then only the ranks that received all their bytes were
    /// notified.
    ///
    /// # Safety
    /// The local bytes must be valid for reads, and unchanged until they may be reused. Bytes at
    /// targets outside segments are overwritten, whatever they hold.
    #[inline]
    pub unsafe fn perform(&self, engine: &Engine, plan: &Plan) -> Result<()> {
        let arrivals = self.arrivals()?;
        plan.guard.check(engine)?;
        engine.observed(
            || CallInfo::new(Call::Perform),
            // SAFETY: the guard has checked that the segments still exist, and the caller keeps the
            // local bytes valid and unchanged.
            || unsafe { self.carry_out(engine, plan, arrivals) },
        )
    }

    /// # Safety
    /// The contract of [`Composer::perform`] applies, and the plan's segments must exist.
    unsafe fn carry_out(
        &self,
        engine: &Engine,
        plan: &Plan,
        arrivals: &ArrivalCounters,
    ) -> Result<()> {
        for (toward, far) in plan.towards.iter().filter_map(|t| Some((t, t.far.as_ref()?))) {
            engine.may_wait_for(toward.target, &far.elsewhere, Direction::Put)?;
            if !far.prepared.is_empty() && arrivals.is_near(toward.target) {
                engine.may_wait()?; // for the fence
            }
        }
        let mut started: Vec<(&Toward, Arc<CompletionCounter>, Result<bool>)> = Vec::new();
        for toward in plan.towards.iter().filter(|t| t.far.is_some()) {
            let counter = Arc::new(CompletionCounter::default());
            // SAFETY: the caller keeps the local bytes valid and unchanged until they may be
            // reused.
            let result = unsafe { self.start(engine, toward, arrivals, &counter) };
            started.push((toward, counter, result));
        }
        let mut whole = plan.towards.iter().try_for_each(|toward| {
            // SAFETY: the contract of this function applies.
            unsafe { self.copy_near(engine, toward, arrivals) }
        });
        for (toward, counter, result) in started {
            let what = || format!("a performance to memory of rank {}", toward.target);
            // After a failure too, because the started transfers read local memory.
            let awaited = Awaited::of(Cause::Handle, toward.target);
            let done = wait::until(engine, awaited, &what, || counter.check());
            let notified = result.and_then(|notifies| {
                done?;
                match notifies {
                    true => Ok(()),
                    false => self.notify_behind(engine, arrivals, toward.target),
                }
            });
            whole = whole.and(notified);
        }
        whole
    }

    /// Copies the bytes for a target that is mapped here, and notifies it if these are all.
    ///
    /// # Safety
    /// The contract of [`Composer::carry_out`] applies.
    #[inline]
    unsafe fn copy_near(
        &self,
        engine: &Engine,
        toward: &Toward,
        arrivals: &ArrivalCounters,
    ) -> Result<()> {
        if !toward.near.is_empty() {
            engine.order_before(toward.target, Path::Direct)?;
        }
        for near in &toward.near {
            // SAFETY: the caller ensures that the local bytes are valid. The remote bytes are in
            // bounds of a segment that exists and is mapped here, or belong to this rank; then the
            // caller ensures their validity too.
            unsafe { near.loops.copy(near.shift) };
        }
        if toward.far.is_none() {
            // If a rank's segments are mapped here, its counters nearly always are too.
            if arrivals.is_near(toward.target) {
                arrivals.notify_near(toward.target);
            } else {
                arrivals.notify_far(engine, toward.target, &self.leaving)?;
            }
        }
        Ok(())
    }

    /// Starts all transfers that do not use load and store. `counter` is done when the transfers to
    /// memory outside segments are complete at the target. Returns whether the last message notifies
    /// the target. It can do so only if all bytes for the target travel as messages.
    ///
    /// # Safety
    /// The contract of [`Composer::carry_out`] applies.
    unsafe fn start(
        &self,
        engine: &Engine,
        toward: &Toward,
        arrivals: &ArrivalCounters,
        counter: &Arc<CompletionCounter>,
    ) -> Result<bool> {
        let Some(far) = &toward.far else {
            return Ok(false);
        };
        let by_message = far.elsewhere.is_empty()
            && toward.near.is_empty()
            && far.prepared.iter().all(|puts| puts.path() == Path::Message);
        let word = match by_message {
            true => arrivals.word_behind_data(engine, toward.target)?,
            false => None,
        };
        let mut notifies = false;
        // SAFETY: the caller keeps the local bytes valid until the counters are done and the target
        // is fenced.
        unsafe {
            if !far.elsewhere.is_empty() {
                engine.start_anywhere(toward.target, &far.elsewhere, Direction::Put, counter)?;
            }
            for (i, puts) in far.prepared.iter().enumerate() {
                engine.order_before(toward.target, puts.path())?;
                let then = word.filter(|_| i + 1 == far.prepared.len());
                notifies = puts.start(engine, toward.target, &self.leaving, then)?;
            }
        }
        Ok(notifies)
    }

    /// Notifies a target, ordered after transfers that were not all stored directly.
    fn notify_behind(
        &self,
        engine: &Engine,
        arrivals: &ArrivalCounters,
        target: usize,
    ) -> Result<()> {
        if arrivals.is_near(target) {
            engine.fence(target)?;
            arrivals.notify_near(target);
            return Ok(());
        }
        arrivals.notify_far(engine, target, &self.leaving)
    }

    /// Waits until this rank's own performances no longer read its memory, and until `n`
    /// performances with bytes for this rank have arrived completely since the last sync. Fails
    /// with `State` before the first sync, and with the error of an earlier performance that was
    /// still reading local memory.
    pub fn wait_for(&self, engine: &Engine, n: u32) -> Result<()> {
        let arrivals = self.arrivals()?;
        engine.observed(
            || CallInfo::new(Call::NotifyWait),
            || {
                self.left(engine)?;
                arrivals.wait(engine, n)
            },
        )
    }

    /// Returns the number of performances that have arrived here since the last sync. Fails with
    /// `State` before the first sync.
    pub fn arrived(&self) -> Result<u32> {
        Ok(self.arrivals()?.arrived())
    }

    /// Collective.
    pub fn free(self, engine: &Engine) -> Result<()> {
        // The other ranks wait in the free, so an earlier error is returned after it.
        let left = self.left(engine);
        let freed = self.arrivals.into_inner().map_or(Ok(()), |arrivals| arrivals.free(engine));
        left.and(freed)
    }
}
