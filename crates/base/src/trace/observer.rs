//! Records the calls, waits and served requests that the layers report. A call is recorded once, by
//! its outermost function. Waits inside a call, and requests and handlers' calls meanwhile, are
//! recorded separately. Without statistics and trace, only rare events are counted ([`Always`]),
//! and [`Recording`] is absent.

use super::call_info::{Always, Awaited, CallInfo, Settings};
use super::call_site;
use super::clock::Clock;
use super::counters::Sum;
use super::entered::{Entered, Serving};
use super::interface;
use super::log::ThreadLog;
use super::writer::{Definition, TraceWriter};
use crate::error::{Result, unless_forked};
use crate::thread::{PublicCall, fast_tls};
use parking_lot::Mutex;
use portolan_trace_format::event::{Event, SOURCE_LINE};
use portolan_trace_format::kinds::{Call, Cause, SegmentKind};
use std::collections::HashMap;
use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

const MOST_SITES: u64 = 1 << 14;

#[derive(Debug)]
pub(super) struct Recording {
    pub(super) clock: Clock,
    pub(super) settings: Settings,
    pub(super) logs: Mutex<Vec<Arc<ThreadLog>>>,
    pub(super) shortest: AtomicU64,
    strings: Mutex<HashMap<String, u64>>,
    /// By the caller's site and the return address, or what [`Recording::line`] has instead.
    sites: Mutex<HashMap<(Option<u64>, usize), u64>>,
    pub(super) definitions: Mutex<Vec<Definition>>,
    writer: Mutex<Option<TraceWriter>>,
    thread: OnceLock<std::thread::Thread>,
}

#[derive(Debug)]
pub struct Observer {
    id: u64,
    pub always: Always,
    running: Option<Arc<Recording>>,
    before: Mutex<Sum>,
}

fast_tls! {
    /// The id of the observer that the thread last reported to, and the address of its log there.
    static LAST: (u64, usize) = (0, 0);
}

impl Observer {
    pub fn new(settings: Settings) -> Observer {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let running = (settings.stats || settings.traces).then(|| {
            if settings.traces {
                interface::want();
            }
            Arc::new(Recording {
                clock: Clock::start(settings.counter, settings.shift),
                logs: Mutex::default(),
                shortest: AtomicU64::new(0),
                strings: Mutex::default(),
                sites: Mutex::default(),
                definitions: Mutex::default(),
                writer: Mutex::default(),
                thread: OnceLock::new(),
                settings,
            })
        });
        Observer {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            always: Always::default(),
            running,
            before: Mutex::default(),
        }
    }

    pub fn is_on(&self) -> bool {
        self.running.is_some()
    }

    pub fn settings(&self) -> Settings {
        self.running.as_ref().map(|running| running.settings.clone()).unwrap_or_default()
    }

    /// Name and time in nanoseconds.
    pub fn clock(&self) -> Option<(&'static str, u64)> {
        self.running.as_ref().map(|running| (running.clock.name(), running.clock.now()))
    }

    /// `metadata` becomes part of the file's header.
    pub fn write_to(&self, file: File, metadata: &str) {
        if let Some(running) = &self.running
            && let Some(writer) = TraceWriter::start(running, file, metadata)
        {
            let _ = running.thread.set(writer.thread());
            *running.writer.lock() = Some(writer);
        }
    }

    pub fn close(&self) {
        if let Some(running) = &self.running
            && let Some(writer) = running.writer.lock().take()
        {
            writer.stop();
        }
    }

    /// Statistics need not time each `short` call.
    #[inline]
    pub fn enter(&self, short: impl FnOnce() -> bool) -> Option<Entered<'_>> {
        let running = self.running.as_deref()?;
        let log = self.log(running);
        let depth = log.depth.get();
        log.depth.set(depth + 1);
        let timed = depth == 0 && (running.settings.traces || !short() || log.is_turn());
        let begun = if timed { running.clock.ticks() } else { 0 };
        Some(Entered { running, log, outer: depth == 0, timed, begun })
    }

    /// All of it counts as one wait for the other ranks.
    pub fn meet<R>(&self, call: Call, bytes: usize, body: impl FnOnce() -> Result<R>) -> Result<R> {
        unless_forked()?;
        let Some(running) = self.running.as_deref() else { return body() };
        let (entered, log) = (self.enter(|| false), self.log(running));
        let (begun, before) = (running.clock.ticks(), log.meeting.replace(true));
        let done = body();
        log.meeting.set(before);
        let cause = if call == Call::Barrier { Cause::Barrier } else { Cause::Collective };
        if !before {
            self.waited(Some(begun), cause.into(), None);
        }
        if let (Ok(_), Some(entered)) = (&done, entered) {
            entered.leave(&CallInfo::new(call).moves(bytes));
        }
        done
    }

    /// Start in ticks of a wait or a service, or `None` if nothing is recorded.
    #[inline]
    pub fn begin(&self) -> Option<u64> {
        self.running.as_deref().map(|running| running.clock.ticks())
    }

    /// Records the end of a wait. Without statistics and trace, a wait is counted only if it
    /// outlasts its first polls; `rested` is the time since then. A wait for a collective
    /// inside [`Observer::meet`] is part of the wait that `meet` records, and a wait inside an MPI
    /// call of the program is part of that call.
    pub fn waited(&self, begun: Option<u64>, awaited: Awaited, rested: Option<Duration>) {
        if let (Some(running), Some(begun)) = (self.running.as_deref(), begun) {
            let log = self.log(running);
            let part_of_another = match awaited.cause {
                Cause::Collective => log.meeting.get(),
                Cause::Mpi => log.depth.get() > 0,
                _ => false,
            };
            if part_of_another {
                return;
            }
            let ticks = running.clock.ticks().saturating_sub(begun);
            let peer = awaited.peer.map(|peer| peer as u32);
            log.counters.wait(awaited.cause, peer, ticks);
            running.record(log, begun, ticks, |begin, duration| Event::Wait {
                begin,
                duration,
                cause: awaited.cause,
                peer,
                place: awaited.place,
            });
        } else if let Some(rested) = rested {
            self.always.rested(awaited.cause, rested);
        }
    }

    /// Calls meanwhile belong to a handler and are recorded separately.
    pub fn serve(&self) -> Option<Serving<'_>> {
        let running = self.running.as_deref()?;
        let log = self.log(running);
        Some(Serving { running, log, depth: log.depth.replace(0), begun: running.clock.ticks() })
    }

    pub fn region_begins(&self, name: &str) {
        self.say(name, |time, string| Event::RegionBegin { time, string });
    }

    pub fn mark(&self, name: &str) {
        self.say(name, |time, string| Event::Mark { time, string });
    }

    fn say(&self, name: &str, event: impl FnOnce(u64, u64) -> Event<'static>) {
        if let Some(running) = self.running.as_deref().filter(|running| running.settings.traces) {
            let string = running.string(name);
            let event = event(running.clock.now(), string);
            running.put(self.log(running), &event);
        }
    }

    pub fn region_ends(&self) {
        if let Some(running) = self.running.as_deref().filter(|running| running.settings.traces) {
            running.put(self.log(running), &Event::RegionEnd { time: running.clock.now() });
        }
    }

    /// A new segment or set of mutexes with `bytes` bytes or mutexes on this rank.
    pub fn made(&self, segment: u64, bytes: u64, ranks: u64, kind: SegmentKind) {
        self.define(Event::Segment { segment, bytes, ranks, kind });
    }

    /// Rank 0's clock showed `time + offset` ns, up to `bound`, when this rank's showed `time`.
    pub fn compared(&self, time: u64, offset: i64, bound: u64) {
        self.define(Event::Clock { time, offset, bound });
    }

    pub fn counter(&self, name: &str, value: u64) {
        if let Some(running) = self.running.as_deref().filter(|running| running.settings.traces) {
            let (string, time) = (running.string(name), running.clock.now());
            self.define(Event::Counter { time, string, value });
        }
    }

    fn define(&self, definition: Event<'static>) {
        if let Some(running) = self.running.as_deref().filter(|running| running.settings.traces) {
            running.definitions.lock().push(Definition::Event(definition));
        }
    }

    /// Since the last [`Observer::reset`] or the start.
    pub fn sum(&self, of_all_time: bool) -> Sum {
        let before = if of_all_time { Sum::default() } else { self.before.lock().clone() };
        self.all().since(&before)
    }

    pub fn reset(&self) {
        let mut before = self.before.lock();
        *before = self.all();
    }

    fn all(&self) -> Sum {
        let mut sum = Sum::default();
        self.always.add_to(&mut sum);
        match &self.running {
            Some(running) => {
                running.clock.refine();
                for log in &*running.logs.lock() {
                    log.counters.add_to(&mut sum, |ticks| running.clock.length(ticks));
                }
            }
            None => sum.waits = self.always.rests(),
        }
        sum
    }

    pub fn dropped(&self) -> u64 {
        self.running
            .as_ref()
            .map_or(0, |running| running.logs.lock().iter().map(|log| log.dropped()).sum())
    }

    pub(super) fn own_log(&self) -> Option<&ThreadLog> {
        self.running.as_deref().map(|running| self.log(running))
    }

    #[inline]
    fn log<'a>(&self, running: &'a Recording) -> &'a ThreadLog {
        let (id, log) = LAST.get();
        if id == self.id {
            // SAFETY: the address was stored together with the id of this observer, and ids are
            // never reused. The observer keeps its logs until it is dropped.
            return unsafe { &*(log as *const ThreadLog) };
        }
        self.find_log(running)
    }

    #[cold]
    fn find_log<'a>(&self, running: &'a Recording) -> &'a ThreadLog {
        let thread = crate::thread::this_thread();
        let mut logs = running.logs.lock();
        let log = match logs.iter().find(|log| log.thread == thread) {
            Some(log) => Arc::as_ptr(log),
            None => {
                let now = running.clock.now();
                let (number, role) = (logs.len() as u32, crate::thread::role());
                let log = ThreadLog::new(number, role, now, running.settings.traces);
                logs.push(Arc::new(log));
                Arc::as_ptr(&logs[logs.len() - 1])
            }
        };
        LAST.set((self.id, log as usize));
        // SAFETY: the list holds the log and never shrinks while the observer lives.
        unsafe { &*log }
    }
}

impl Recording {
    /// Returns the number of a string, and defines a new string in the file.
    fn string(&self, text: &str) -> u64 {
        let mut strings = self.strings.lock();
        if let Some(&number) = strings.get(text) {
            return number;
        }
        let number = strings.len() as u64;
        strings.insert(text.into(), number);
        self.definitions.lock().push(Definition::String { string: number, text: text.into() });
        number
    }

    /// Returns the number of the call site with these return addresses, innermost first, and
    /// defines new sites in the file. A call of the Rust interface that has recorded its source line
    /// gets a site of its own for the line, whose caller is the innermost address. Returns `None` if
    /// there are too many sites or a module is unknown.
    #[cold]
    pub(super) fn site(&self, chain: &[usize]) -> Option<u64> {
        let mut caller = None;
        for &address in chain.iter().rev() {
            let mut sites = self.sites.lock();
            let number = sites.len() as u64;
            caller = match sites.get(&(caller, address)) {
                Some(&known) => Some(known),
                None if number < MOST_SITES => {
                    let module = call_site::module_of(address)?;
                    sites.insert((caller, address), number);
                    drop(sites);
                    let (address, module) = (module.offset, self.string(&module.file));
                    let site = Event::Site { site: number, caller, module, address };
                    self.definitions.lock().push(Definition::Event(site));
                    Some(number)
                }
                None => return None,
            };
        }
        match PublicCall::current() {
            Some((_, at)) => self.line(&format!("{}:{}", at.file(), at.line()), caller),
            None => caller,
        }
    }

    /// Like [`Recording::site`], for a source line. `caller` is the innermost return address, if
    /// known.
    #[cold]
    pub(super) fn line(&self, line: &str, caller: Option<u64>) -> Option<u64> {
        let module = self.string(line);
        let mut sites = self.sites.lock();
        // No return address has this key.
        let key = (caller, usize::MAX - module as usize);
        if let Some(&known) = sites.get(&key) {
            return Some(known);
        }
        let site = Some(sites.len() as u64).filter(|number| *number < MOST_SITES)?;
        sites.insert(key, site);
        drop(sites);
        let definition = Event::Site { site, caller, module, address: SOURCE_LINE };
        self.definitions.lock().push(Definition::Event(definition));
        Some(site)
    }

    #[inline(always)]
    pub(super) fn record(
        &self,
        log: &ThreadLog,
        begun: u64,
        ticks: u64,
        event: impl FnOnce(u64, u64) -> Event<'static>,
    ) {
        if self.settings.traces
            && let Some((begin, duration)) = self.span(log, begun, ticks)
        {
            self.put(log, &event(begin, duration));
        }
    }

    /// Returns begin and duration in nanoseconds, or drops the event if it is too short.
    #[inline(always)]
    pub(super) fn span(&self, log: &ThreadLog, begun: u64, ticks: u64) -> Option<(u64, u64)> {
        let (begin, duration) = self.clock.time(begun, ticks);
        if duration < self.shortest.load(Ordering::Relaxed) {
            log.drop_one();
            return None;
        }
        Some((begin, duration))
    }

    #[inline(always)]
    pub(super) fn put(&self, log: &ThreadLog, event: &Event<'_>) {
        if log.record(event)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }
}
