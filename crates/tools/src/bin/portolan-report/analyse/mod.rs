//! Analyses the events of a job in one pass and in bounded memory.
//!
//! Worker threads take rows of the timeline, which cover one or several ranks each, from a counter.
//! The results of a rank are merged into the whole under one lock when its file has been read.
//! Memory grows with the number of ranks, names and columns, not with the number of events.

pub mod answers;
pub mod arrivals;
pub mod calls;
pub mod chosen;
pub mod cores;
pub mod critical;
pub mod findings;
mod largest;
pub mod levels;
pub mod matrix;
pub mod objects;
pub mod patterns;
pub mod rates;
pub mod regions;
pub mod sites;
mod sums;

use crate::model::{Activity, RankState, STATES, TraceSpan};
use crate::read::{RankFile, StreamItem, Trace};
use answers::Answers;
use arrivals::{Arrivals, Visits};
use calls::CallsByPath;
use cores::{Cores, ProcessorUse};
use critical::{CriticalPath, LongWaits};
use largest::{ByLength, Largest};
use levels::{Grid, Levels, SpanNesting, TimelineRow};
use matrix::{Matrix, TransferTotals};
use objects::SharedObjects;
use patterns::Patterns;
use portolan_trace_format::format::Role;
use portolan_trace_format::kinds::{Cause, Served};
use rates::Rates;
use regions::{Open, ProgramRegions};
use sites::CallSites;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const WAITS: usize = 300;

/// Totals of one rank. Times are nanoseconds.
#[derive(Debug, Default)]
pub struct RankTotals {
    /// Time in each state, excluding nested spans.
    pub states: [u64; STATES],
    pub events: u64,
    pub calls: u64,
    pub bytes: u64,
    /// Number of requests served: in the rank's own calls, and by its other threads.
    pub served: [u64; 2],
    /// Longest time that a request waited before it was served.
    pub queued: u64,
    /// Total time that requests waited before they were served, and the number of these requests.
    pub delays: (u64, u64),
    pub has_thread: bool,
    /// Time that other ranks waited for this one.
    pub awaited: u64,
    /// Longest total time that one rank waited for this one, and that rank.
    pub awaited_most: (u64, u32),
    /// Longest single wait for this rank: length, waiting rank, start.
    pub awaited_longest: (u64, u32, u64),
    pub patterns: Box<Patterns>,
    /// Processor use, or zeroes if the trace does not contain it.
    pub used: ProcessorUse,
}

impl RankTotals {
    pub fn waiting(&self) -> u64 {
        RankState::all().filter(|s| s.waits()).map(|s| self.states[s as usize]).sum()
    }

    /// Returns the time in calls of the program, including waits.
    pub fn in_calls(&self) -> u64 {
        let own = RankState::all().filter(|s| *s != RankState::Beside);
        own.map(|s| self.states[s as usize]).sum()
    }

    pub fn serving(&self) -> u64 {
        self.states[RankState::Serving as usize] + self.states[RankState::Beside as usize]
    }
}

#[derive(Debug)]
pub struct Analysis {
    pub ranks: Vec<RankTotals>,
    pub levels: Levels,
    /// Time that others waited for the ranks of a row, by row and column.
    pub awaited: Vec<u64>,
    pub matrix: Matrix,
    pub calls: CallsByPath,
    pub sites: CallSites,
    pub objects: SharedObjects,
    pub arrivals: Arrivals,
    pub rates: Rates,
    pub critical: CriticalPath,
    pub regions: ProgramRegions,
    /// The longest events of each rank.
    pub longest: Largest<ByLength>,
    pub cores: Cores,
    pub answers: Vec<Answers>,
    pub faults: Vec<String>,
    waits: Largest<ByLength>,
    /// The longest waits by rank, for the critical path.
    long_waits: Vec<LongWaits>,
}

#[derive(Default)]
struct FileResults {
    totals: RankTotals,
    to: Vec<TransferTotals>,
    /// By peer: total time waited for it, longest wait, and start of that wait.
    awaited: HashMap<u32, (u64, u64, u64)>,
    objects: SharedObjects,
    visits: Visits,
    open: Open,
    longest: Largest<ByLength>,
    /// Limit on `longest`.
    keep: usize,
    nests: HashMap<u32, SpanNesting>,
    waits: Largest<ByLength>,
    long_waits: LongWaits,
    end: u64,
}

/// Results that a worker thread accumulates over all its files.
struct Worker {
    calls: CallsByPath,
    sites: CallSites,
    rates: Rates,
    /// Time that others waited for the ranks of a row, by (row, column).
    awaited: HashMap<(u32, u32), u64>,
}

impl FileResults {
    fn new(ranks: usize, keep: usize) -> FileResults {
        let to = vec![TransferTotals::default(); ranks];
        FileResults { to, keep, ..FileResults::default() }
    }

    fn take(&mut self, span: TraceSpan, row: &mut TimelineRow, worker: &mut Worker, grid: Grid) {
        let state = span.state();
        row.add(state, span.begin, span.end, 1);
        // The time of a nested span counts for its own state only.
        let nest = self.nests.entry(span.thread).or_default();
        let own = nest.take(&span, |begin, end| row.add(state, begin, end, -1));
        let totals = &mut self.totals;
        totals.states[state as usize] += own;
        totals.events += 1;
        worker.calls.take(&span, own);
        worker.sites.take(&span, own);
        worker.rates.take(&span);
        self.end = self.end.max(span.end);
        match span.what {
            Activity::Call(_) | Activity::Mpi(_) => totals.calls += 1,
            Activity::Served(kind) => {
                if kind != Served::Completion {
                    totals.served[usize::from(span.role != Role::Program)] += 1;
                }
                if let Some(queued) = span.queued {
                    totals.queued = totals.queued.max(queued);
                    totals.delays.0 += queued;
                    totals.delays.1 += 1;
                }
            }
            Activity::Wait(_) => {}
        }
        totals.has_thread |= span.role == Role::Progress;
        if span.moves() != 0
            && let Some(cell) = span.peer.and_then(|peer| self.to.get_mut(peer as usize))
        {
            cell.add(TransferTotals { bytes: span.bytes, calls: 1, ns: span.length() });
            totals.bytes += span.bytes;
        }
        match span.what {
            Activity::Wait(cause) => self.wait(&span, Some(cause), own, worker, grid),
            Activity::Mpi(_) => self.wait(&span, None, own, worker, grid),
            _ => {}
        }
        self.objects.take(&span);
        if span.role == Role::Program {
            self.totals.patterns.take(&span);
            let visit = self.visits.take(&span, own);
            self.long_waits.take(&span, visit, self.to.len());
        }
        self.longest.take(ByLength(span), self.keep);
    }

    /// `cause` is `None` for an MPI call.
    fn wait(
        &mut self,
        span: &TraceSpan,
        cause: Option<Cause>,
        own: u64,
        worker: &mut Worker,
        grid: Grid,
    ) {
        self.waits.take(ByLength(*span), WAITS);
        self.open.waits(span.thread, own);
        let Some(peer) = span.peer.filter(|peer| *peer != span.rank) else { return };
        if matches!(
            cause,
            None | Some(
                Cause::Barrier | Cause::Collective | Cause::Start | Cause::Notify | Cause::Lock
            )
        ) {
            return;
        }
        let (all, longest, begin) = self.awaited.entry(peer).or_default();
        *all += span.length();
        (*longest, *begin) = (*longest, *begin).max((span.length(), span.begin));
        let row = peer / grid.each as u32;
        grid.spread(span.begin, span.end, |column, time| {
            *worker.awaited.entry((row, column as u32)).or_default() += time;
        });
    }
}

impl Analysis {
    /// Analyses all files, with at most one thread per processor.
    pub fn of(trace: &Trace) -> Result<Analysis, String> {
        let grid = Grid::new(trace.ranks, trace.wall);
        let keep = chosen::longest_of_rank(trace.events(), trace.ranks);
        let whole = Mutex::new(Analysis {
            ranks: (0..trace.ranks).map(|_| RankTotals::default()).collect(),
            levels: Levels::new(grid),
            awaited: vec![0; grid.rows * grid.columns],
            matrix: Matrix::new(trace.ranks),
            calls: CallsByPath::default(),
            sites: CallSites::default(),
            objects: SharedObjects::default(),
            arrivals: Arrivals::default(),
            rates: Rates::new(trace.wall),
            critical: CriticalPath::default(),
            regions: ProgramRegions::default(),
            longest: Largest::default(),
            cores: Cores::of(trace),
            answers: Vec::new(),
            faults: Vec::new(),
            waits: Largest::default(),
            long_waits: (0..trace.ranks).map(|_| LongWaits::default()).collect(),
        });
        let next = AtomicUsize::new(0);
        let work = || -> Result<(), String> {
            let mut worker = Worker {
                calls: CallsByPath::default(),
                sites: CallSites::default(),
                rates: Rates::new(trace.wall),
                awaited: HashMap::new(),
            };
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= grid.rows {
                    break;
                }
                let ranks = number * grid.each..(number + 1) * grid.each;
                let files: Vec<&RankFile> =
                    trace.files.iter().filter(|f| ranks.contains(&(f.rank as usize))).collect();
                let mut row = TimelineRow::new(grid);
                for file in &files {
                    read(file, trace.ranks, keep, &mut row, &mut worker, grid, &whole)?;
                }
                whole.lock().expect("no thread panics").levels.put(number, &row, files.len());
            }
            let mut whole = whole.lock().expect("no thread panics");
            whole.calls.merge(worker.calls);
            whole.sites.merge(worker.sites);
            whole.rates.merge(&worker.rates);
            for ((row, column), time) in worker.awaited {
                if let Some(to) =
                    whole.awaited.get_mut(row as usize * grid.columns + column as usize)
                {
                    *to += time;
                }
            }
            Ok(())
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(grid.rows);
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            all.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
        })?;
        let mut whole = whole.into_inner().expect("no thread panics");
        let awaited = whole.ranks.iter().map(|of| (of.awaited, of.awaited_most.1));
        whole.answers = answers::of(trace, awaited)?;
        let mut unusable = whole.sites.resolve(trace);
        whole.faults.append(&mut unusable);
        let waits = std::mem::take(&mut whole.long_waits);
        whole.critical = CriticalPath::of(waits, &whole.arrivals);
        Ok(whole)
    }

    pub fn waits(&self) -> Vec<TraceSpan> {
        let mut all: Vec<TraceSpan> = self.waits.iter().map(|ByLength(span)| *span).collect();
        all.sort_by_key(|s| (Reverse(s.length()), s.rank, s.begin, s.thread, s.end, s.what));
        all
    }

    pub fn sum(&self, of: impl Fn(&RankTotals) -> u64) -> u64 {
        self.ranks.iter().map(of).sum()
    }
}

fn read(
    file: &RankFile,
    ranks: usize,
    keep: usize,
    row: &mut TimelineRow,
    worker: &mut Worker,
    grid: Grid,
    whole: &Mutex<Analysis>,
) -> Result<(), String> {
    let mut work = FileResults::new(ranks, keep);
    let faults = file.stream(
        |_| true,
        |item| {
            match item {
                StreamItem::Span(span) => work.take(span, row, worker, grid),
                StreamItem::Begin(time, thread, name) => work.open.begin(time, thread, name),
                StreamItem::End(time, thread) => work.open.end(time, thread),
                StreamItem::Mark(time, text) => work.open.mark(time, text),
            }
            if work.open.is_full() {
                let done = work.open.drain();
                whole.lock().expect("no thread panics").regions.take(file.rank, done);
            }
        },
    )?;
    work.open.close(work.end);
    work.totals.patterns.end();
    let mut whole = whole.lock().expect("no thread panics");
    whole.faults.extend(faults);
    whole.matrix.put(file.rank, &work.to);
    whole.objects.merge(file.rank, &work.objects);
    whole.arrivals.merge(file.rank, &work.visits);
    whole.regions.take(file.rank, work.open.drain());
    whole.regions.marks.extend(work.open.marks.drain(..).map(|(at, text)| (file.rank, at, text)));
    whole.longest.merge(work.longest, usize::MAX);
    whole.waits.merge(work.waits, WAITS);
    whole.long_waits[file.rank as usize] = work.long_waits;
    for (peer, (all, longest, begin)) in work.awaited {
        let Some(of) = whole.ranks.get_mut(peer as usize) else { continue };
        of.awaited += all;
        of.awaited_most = of.awaited_most.max((all, file.rank));
        of.awaited_longest = of.awaited_longest.max((longest, file.rank, begin));
    }
    let used = whole.cores.used[file.rank as usize].unwrap_or_default();
    let of = &mut whole.ranks[file.rank as usize];
    let totals = work.totals;
    *of = RankTotals {
        awaited: of.awaited,
        awaited_most: of.awaited_most,
        awaited_longest: of.awaited_longest,
        has_thread: totals.has_thread || file.meta.progress_thread > 0,
        used,
        ..totals
    };
    Ok(())
}
