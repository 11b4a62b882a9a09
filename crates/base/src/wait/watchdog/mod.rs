//! Reports on the state of a rank, written if a wait takes too long, and on request.
//!
//! A wait for the other ranks of a collective warns after 30 seconds, in one line that names the
//! missing ranks. A wait without progress for `PORTOLAN_WATCHDOG` seconds reports itself, again
//! after twice that time, and so on. A wait that has lasted ten times as long reports itself in
//! spite of progress. A wait without progress for `PORTOLAN_WATCHDOG_ABORT` seconds ends the job, and
//! so does one of `PORTOLAN_WATCHDOG_HOST` seconds if another host of the job is lost ([`hosts`]).
//!
//! `SIGUSR1` requests the same report at any time. A waiting thread writes it itself. If the rank
//! computes, the watchdog's thread writes it. A handler of the program is kept.
//!
//! An RPC class over a network other than MPI needs no engine, so it also sets the limits
//! ([`configure`]) and keeps the thread ([`Watchdog`]).
//!
//! **Cost.** A wait loads two words when it begins and stores two when it ends. Each handled
//! message stores two words, and the thread records the time when it then finds nothing more to do.

pub mod hosts;
mod signal;
mod stack;

use super::times::{ANSWER, ANSWER_LOOK, LAST_WORDS, WATCHDOG};
use hosts::Looks;

use crate::config::Config;
use crate::error::{Error, ErrorKind};
use crate::process::{self, message};
use crate::thread::blocked::{self, coarse_ms};
use crate::thread::{self, Role};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Milliseconds without progress after which a wait reports itself.
static PATIENCE: AtomicU64 = AtomicU64::new(NEVER);
/// Milliseconds until a collective warns, and without progress until the job ends.
static EARLY: AtomicU64 = AtomicU64::new(NEVER);
static FATAL: AtomicU64 = AtomicU64::new(NEVER);
/// Milliseconds without progress until the job ends if a host does not answer.
static HOST: AtomicU64 = AtomicU64::new(NEVER);
/// Some hundred years, in milliseconds.
const NEVER: u64 = 1 << 43;

/// A wait reports itself anyway when it has lasted this many times the patience.
const LONG: u32 = 10;

/// An event on this rank that counts as progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ProgressEvent {
    Waited = 1,
    Request,
    Answer,
    Left,
    Message,
}

/// The last event in the upper half, and its rank in the lower half. [`EVENTS`] counts the ends of
/// waits in its lower half, and all other events in its upper half.
static LAST: AtomicU64 = AtomicU64::new(0);
static EVENTS: AtomicU64 = AtomicU64::new(0);
/// The amount that any event other than the end of a wait adds to [`EVENTS`].
const HANDLED: u64 = 1 << 32;
/// [`EVENTS`] at the last time stamp, and that time in ms of the monotonic clock.
static TIMED: AtomicU64 = AtomicU64::new(0);
static LAST_AT: AtomicU64 = AtomicU64::new(0);

/// `rank` caused the event, or is `usize::MAX`. [`settle`] reads the time.
#[inline]
pub fn note(event: ProgressEvent, rank: usize) {
    let rank = u64::from(u32::try_from(rank).unwrap_or(u32::MAX));
    LAST.store((event as u64) << 32 | rank, Ordering::Relaxed);
    // Two threads that store at once may lose an increment; the number still changes.
    let more = if event == ProgressEvent::Waited { 1 } else { HANDLED };
    EVENTS.store(EVENTS.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

/// Changes with each event except the end of a wait.
pub fn handled() -> u32 {
    (EVENTS.load(Ordering::Relaxed) / HANDLED) as u32
}

/// Records the time of the last event, unless known, for a thread that finds nothing to do.
#[inline]
pub fn settle() {
    if EVENTS.load(Ordering::Relaxed) != TIMED.load(Ordering::Relaxed) {
        stamp();
    }
}

#[cold]
fn stamp() {
    TIMED.store(EVENTS.load(Ordering::Relaxed), Ordering::Relaxed);
    LAST_AT.store(coarse_ms(), Ordering::Relaxed);
}

fn last_progress() -> String {
    settle();
    let last = LAST.load(Ordering::Relaxed);
    let ago = coarse_ms().saturating_sub(LAST_AT.load(Ordering::Relaxed)) as f64 / 1000.0;
    let of = match last as u32 {
        u32::MAX => String::new(),
        rank => format!(" of rank {rank}"),
    };
    let what = match last >> 32 {
        0 => return "no progress yet".into(),
        e if e == ProgressEvent::Waited as u64 => "a wait ended".to_string(),
        e if e == ProgressEvent::Request as u64 => format!("a request{of} was handled"),
        e if e == ProgressEvent::Answer as u64 => "a reply arrived".into(),
        e if e == ProgressEvent::Left as u64 => "a message left".into(),
        _ => format!("an active message{of} arrived"),
    };
    format!("last progress {ago:.1} s ago: {what}")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportCause {
    /// A collective waits for longer than usual.
    Early,
    Stalled,
    /// The time without progress has reached the limit.
    Fatal,
    /// The time without progress has reached the limit for lost hosts, and there is one.
    Lost,
    /// The wait has lasted long, although there was progress.
    Slow,
    Asked,
}

#[derive(Debug)]
pub struct Standing<'a> {
    pub cause: ReportCause,
    /// The event that the call waits for.
    pub what: &'a str,
    /// Since the wait began.
    pub waited: Duration,
    /// Since the last progress.
    pub idle: Duration,
}

impl Standing<'_> {
    /// Writes the report. Ends the job if the cause is `Fatal` or `Lost`.
    pub fn report(&self, pending: &str) {
        let stack = stack::Stack::here();
        if self.cause == ReportCause::Early {
            let (call, what) = (stack.name(), self.what);
            log::warn!("{call} has waited {:.0} s for {what}", self.waited.as_secs_f64());
            return;
        }
        let during = match self.cause {
            ReportCause::Stalled | ReportCause::Fatal | ReportCause::Lost => {
                "no progress meanwhile"
            }
            ReportCause::Slow | ReportCause::Early => "other operations progressed meanwhile",
            ReportCause::Asked => "requested by SIGUSR1",
        };
        let text = format!(
            "{} has waited {:.1} s for {} ({during})\n    {}\n    pending: {pending}\n    \
             called by {}{}",
            stack.call,
            self.waited.as_secs_f64(),
            self.what,
            last_progress(),
            stack.place.as_ref().map(|place| format!("{place}, in ")).unwrap_or_default(),
            stack.callers
        );
        say(self.cause, &text);
        if matches!(self.cause, ReportCause::Fatal | ReportCause::Lost) {
            // Leave other ranks that hang the time to report themselves.
            std::thread::sleep(LAST_WORDS);
            say_last(self.cause, &stack.call, self.idle, self.what);
            process::end_job(ErrorKind::State.code());
        }
    }
}

fn say(cause: ReportCause, text: &str) {
    match cause {
        // A requested report does not depend on the log level.
        ReportCause::Asked => message::say(text),
        _ => log::error!("{text}"),
    }
}

/// Decides when reports of a wait are due.
#[derive(Debug)]
pub struct Watch {
    begun: Option<Instant>,
    answered: u32,
    patience: Duration,
    fatal: Duration,
    early: Duration,
    host: Duration,
    looks: Looks,
    warned: bool,
    reports: u32,
    slow_reports: u32,
}

impl Watch {
    #[inline]
    pub(crate) fn new() -> Watch {
        Watch {
            begun: None,
            answered: signal::answered(),
            patience: Duration::from_millis(PATIENCE.load(Ordering::Relaxed)),
            fatal: Duration::from_millis(FATAL.load(Ordering::Relaxed)),
            early: Duration::MAX,
            host: Duration::from_millis(HOST.load(Ordering::Relaxed)),
            looks: Looks::default(),
            warned: false,
            reports: 0,
            slow_reports: 0,
        }
    }

    /// For a wait that may last forever: reports only on request.
    pub fn on_request() -> Watch {
        let never = Duration::MAX;
        Watch { patience: never, fatal: never, host: never, ..Watch::new() }
    }

    /// Enables the early warning, for a wait for the other ranks of a collective.
    pub fn warns(mut self) -> Watch {
        self.early = Duration::from_millis(EARLY.load(Ordering::Relaxed));
        self
    }

    #[inline]
    pub(crate) fn progressed(&mut self) {
        self.reports = 0;
        self.looks = Looks::default();
    }

    /// Returns the cause of a due report and the time of the wait. `since`: the last progress.
    #[inline]
    pub fn check(&mut self, since: Instant, now: Instant) -> Option<(ReportCause, Duration)> {
        settle();
        let begun = *self.begun.get_or_insert(since);
        let waited = now - begun;
        if signal::asked() != self.answered {
            self.answered = signal::answer();
            return Some((ReportCause::Asked, waited));
        }
        if waited >= self.early && !self.warned {
            self.warned = true;
            return Some((ReportCause::Early, waited));
        }
        if waited < self.patience.min(self.fatal).min(self.host / 2) {
            return None;
        }
        self.grown_old(now - since, waited).map(|cause| (cause, waited))
    }

    #[cold]
    fn grown_old(&mut self, idle: Duration, waited: Duration) -> Option<ReportCause> {
        if idle >= self.fatal {
            return Some(ReportCause::Fatal);
        }
        if self.looks.find_lost(self.host, idle, hosts::look) {
            return Some(ReportCause::Lost);
        }
        let due = |reports: u32| self.patience * (1 << reports.min(16));
        if idle >= due(self.reports) {
            self.reports += 1;
            // The next report is due with or without progress until then.
            while waited >= due(self.slow_reports) * LONG {
                self.slow_reports += 1;
            }
            return Some(ReportCause::Stalled);
        }
        if idle < waited && waited >= due(self.slow_reports) * LONG {
            self.slow_reports += 1;
            return Some(ReportCause::Slow);
        }
        None
    }
}

/// The settings also hold for waits while the engine starts.
pub fn configure(config: &Config) {
    let ms = |time: Duration| match time.as_millis() as u64 {
        0 => NEVER,
        ms => ms.min(NEVER),
    };
    PATIENCE.store(ms(config.watchdog), Ordering::Relaxed);
    let early = if config.watchdog.is_zero() { Duration::ZERO } else { config.watchdog_warn };
    EARLY.store(ms(early), Ordering::Relaxed);
    FATAL.store(ms(config.watchdog_abort), Ordering::Relaxed);
    HOST.store(ms(config.watchdog_host), Ordering::Relaxed);
}

fn say_last(cause: ReportCause, call: &str, idle: Duration, what: &str) {
    let limit = Duration::from_millis(HOST.load(Ordering::Relaxed));
    let why = match (cause == ReportCause::Lost).then(|| hosts::look(limit)) {
        None => "as set by PORTOLAN_WATCHDOG_ABORT".into(),
        Some(None) => "because a host has not answered (PORTOLAN_WATCHDOG_HOST)".into(),
        Some(Some(lost)) => format!(
            "because the host {} of rank {} has not answered for {:.0} s (PORTOLAN_WATCHDOG_HOST): \
             its link is cut, or it is off",
            lost.address,
            lost.rank,
            lost.silent.as_secs_f64()
        ),
    };
    message::say(&format!(
        "{call}: no progress for {:.1} s while waiting for {what}; the {} is aborted, {why}",
        idle.as_secs_f64(),
        if process::has_job() { "job" } else { "process" }
    ));
}

/// The thread that reports for a process that computes, and for threads that block in MPI.
struct Thread {
    handle: JoinHandle<()>,
    users: usize,
    /// The value of [`process::forks`] in the process of the thread.
    forks: usize,
}

static THREAD: Mutex<Option<Thread>> = Mutex::new(None);

/// Keeps the thread of the watchdog, which an engine and the RPC classes without one share. A
/// forked child does not have its parent's thread, so its copy of this does nothing.
#[derive(Debug)]
pub struct Watchdog {
    forks: usize,
}

impl Watchdog {
    /// `None` if the watchdog is off or the thread cannot be started.
    pub fn start(config: &Config) -> Option<Watchdog> {
        let (patience, fatal) = (config.watchdog, config.watchdog_abort);
        if patience.is_zero() && fatal.is_zero() && config.watchdog_host.is_zero() {
            return None;
        }
        process::count_forks();
        let forks = process::forks();
        let mut shared = THREAD.lock();
        if let Some(running) = shared.as_mut().filter(|running| running.forks == forks) {
            running.users += 1;
            return Some(Watchdog { forks });
        }
        signal::open();
        if !patience.is_zero() {
            signal::install();
        }
        let builder = Builder::new().name("portolan-watch".into()).stack_size(256 << 10);
        match thread::spawn(builder, Role::Program, watch) {
            Ok(handle) => {
                // In a child, the earlier handle is of a thread that only the parent has.
                std::mem::forget(shared.replace(Thread { handle, users: 1, forks }));
                Some(Watchdog { forks })
            }
            Err(error) => {
                signal::close();
                let text = format!("cannot start the thread of the watchdog: {error}");
                log::warn!("{}", Error::new(ErrorKind::Memory, text));
                None
            }
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        if self.forks != process::forks() {
            return;
        }
        let mut thread = THREAD.lock();
        if let Some(running) = &mut *thread {
            running.users -= 1;
        }
        if let Some(last) = thread.take_if(|running| running.users == 0) {
            signal::close();
            let _ = last.handle.join();
        }
    }
}

fn watch() {
    let Watch { patience, fatal, host, .. } = Watch::new();
    let look_every = (patience.min(fatal).min(host) / 4).clamp(WATCHDOG.0, WATCHDOG.1);
    // The start of each call.
    let mut watched: Vec<(u64, Watch)> = Vec::new();
    while signal::wait(look_every) {
        settle();
        if signal::asked() != signal::answered() {
            answer();
        }
        let stuck = blocked::all();
        watched.retain(|(since, _)| stuck.iter().any(|call| call.since == *since));
        for call in stuck {
            let lasts = Duration::from_millis(coarse_ms().saturating_sub(call.since));
            let at = watched.iter().position(|(since, _)| *since == call.since);
            let at = at.unwrap_or_else(|| {
                watched.push((call.since, Watch::new()));
                watched.len() - 1
            });
            let Some(cause) = watched[at].1.grown_old(lasts, lasts) else { continue };
            say(ReportCause::Stalled, &describe(&blocked(&call, lasts)));
            if matches!(cause, ReportCause::Fatal | ReportCause::Lost) {
                std::thread::sleep(LAST_WORDS);
                say_last(cause, "a call", lasts, &call.what);
                abort_around_mpi();
            }
        }
    }
}

fn blocked(call: &blocked::Stuck, lasts: Duration) -> String {
    format!("a call has been {:.1} s in {}", lasts.as_secs_f64(), call.what)
}

fn describe(what: &str) -> String {
    format!("{what}\n    {}\n    pending: {}", last_progress(), pending())
}

/// Returns the pending operations of the engine, which are unknown while it starts or stops.
pub(super) fn pending() -> String {
    let unknown = || "unknown, because the runtime is not running".into();
    process::pending().unwrap_or_else(unknown)
}

/// Answers a signal if no waiting thread does.
fn answer() {
    let asked = signal::asked();
    let begun = Instant::now();
    while signal::answered() != asked {
        if begun.elapsed() >= ANSWER {
            signal::answer();
            let what = match blocked::all().first() {
                Some(call) => {
                    let lasts = coarse_ms().saturating_sub(call.since);
                    blocked(call, Duration::from_millis(lasts))
                }
                None => "is not waiting in a call of the library".into(),
            };
            say(ReportCause::Asked, &describe(&format!("{what} (requested by SIGUSR1)")));
            return;
        }
        std::thread::sleep(ANSWER_LOOK);
    }
}

/// Another thread may hold MPI's lock. Launchers notice an exit, if the abort hangs.
fn abort_around_mpi() -> ! {
    let code = ErrorKind::State.code();
    std::thread::spawn(move || process::end_job(code));
    std::thread::sleep(LAST_WORDS);
    // SAFETY: `_exit` may be called at any time, and runs no clean-up, which might wait.
    unsafe { libc::_exit(code) }
}

#[cfg(test)]
mod tests;
