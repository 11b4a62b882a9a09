//! Exports all events as an OTF2 archive, using the OTF2 library if it is installed.
//!
//! A host becomes a node of the system tree, a rank a location group, and a thread a location.
//! Calls, waits, served requests and regions become OTF2 regions. Transfers become RMA operations
//! in one window of all ranks. Times are nanoseconds since the start of the job, already aligned.

mod ffi;

use super::ordered::{SpanOrRegion, ThreadStep, steps};
use crate::model::{Activity, MpiPeers, TraceSpan};
use crate::read::{RankFile, Trace};
use ffi::{Definitions, EventWriter, Otf2};
use portolan_trace_format::format::Role;
use portolan_trace_format::kinds::{Call, MpiCall, Served};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Location numbers reserved for the threads of a rank.
const THREADS: u64 = 1 << 16;

const ROLE_FUNCTION: u8 = 1;
const ROLE_CODE: u8 = 4;
const ROLE_BARRIER: u8 = 15;
const ROLE_COLLECTIVE: u8 = 26;
const ROLE_RMA: u8 = 29;
const ROLE_ARTIFICIAL: u8 = 31;
const PARADIGM_USER: u8 = 1;
/// OTF2 has no paradigm for ARMCI. SHMEM is one-sided as well.
const PARADIGM_SHMEM: u8 = 13;
const PARADIGM_MPI: u8 = 4;

const UNDEFINED: u32 = u32::MAX;
const THREAD: u8 = 1;
const PROCESS: u8 = 1;
/// A group of locations.
const COMM_LOCATIONS: u8 = 4;
/// A group of ranks. Its members are indexes into the group of locations.
const COMM_GROUP: u8 = 5;
const FETCH_AND_ADD: u8 = 5;
const ACCUMULATE: u8 = 0;
/// The window of all ranks.
const WINDOW: u32 = 0;

/// Writes the trace as an archive in a new directory.
pub fn write(trace: &Trace, directory: &Path) -> Result<(), String> {
    if directory.exists() {
        return Err(format!("{} exists already: OTF2 needs a new directory", directory.display()));
    }
    let otf2 = Otf2::load()?;
    let archive = otf2.create(directory, "traces")?;
    let mut regions = RegionNumbers::default();
    let mut counts: BTreeMap<u64, (u64, String)> = BTreeMap::new();
    for file in &trace.files {
        for (thread, role) in file.threads() {
            let location = location(file.rank, thread);
            let events = archive.events(location)?;
            thread_events(file, thread, &events, &mut regions)?;
            counts.insert(location, (events.end()?, format!("{} {thread}", role.name())));
        }
        // The group of ranks needs a location per rank, so a rank without events gets an empty one.
        let main = main_location(file);
        if let std::collections::btree_map::Entry::Vacant(place) = counts.entry(main) {
            let events = archive.events(main)?;
            place.insert((events.end()?, "program 0".into()));
        }
    }
    archive.local_definitions(counts.keys().copied())?;
    define(trace, &archive.definitions()?, &counts, &regions)?;
    archive.end()
}

fn location(rank: u32, thread: u32) -> u64 {
    u64::from(rank) * THREADS + u64::from(thread) % THREADS
}

fn main_location(file: &RankFile) -> u64 {
    let program = file.threads().into_iter().find(|(_, role)| *role == Role::Program);
    location(file.rank, program.map_or(0, |(thread, _)| thread))
}

/// Numbers of the program's own regions. They follow the numbers of [`Activity`].
#[derive(Default)]
struct RegionNumbers {
    own: HashMap<String, u32>,
}

impl RegionNumbers {
    fn number(&mut self, within: &SpanOrRegion) -> u32 {
        match within {
            SpanOrRegion::Span(span) => u32::from(span.what.number()),
            SpanOrRegion::Region(name) => {
                if let Some(number) = self.own.get(name) {
                    return *number;
                }
                let number = (Activity::all().count() + self.own.len()) as u32;
                self.own.insert(name.clone(), number);
                number
            }
        }
    }
}

fn thread_events(
    file: &RankFile,
    thread: u32,
    events: &EventWriter<'_>,
    regions: &mut RegionNumbers,
) -> Result<(), String> {
    let (mut matching, mut failed) = (0u64, Ok(()));
    let mut moving: Vec<u64> = Vec::new();
    steps(file, thread, |step| {
        if failed.is_err() {
            return;
        }
        failed = match step {
            ThreadStep::Enter(at, within) => {
                matching += 1;
                moving.push(matching);
                let number = regions.number(within);
                events.enter(None, at, number).and_then(|()| match within {
                    SpanOrRegion::Span(span) => begin_transfer(events, at, span, matching),
                    SpanOrRegion::Region(_) => Ok(()),
                })
            }
            ThreadStep::Leave(at, within) => {
                let id = moving.pop().unwrap_or(0);
                let done = match within {
                    SpanOrRegion::Span(span) if span.moves() != 0 => {
                        events.complete(None, at, WINDOW, id)
                    }
                    _ => Ok(()),
                };
                done.and_then(|()| events.leave(None, at, regions.number(within)))
            }
        };
    })?;
    failed
}

fn begin_transfer(
    events: &EventWriter<'_>,
    at: u64,
    span: &TraceSpan,
    id: u64,
) -> Result<(), String> {
    let Some(peer) = span.peer else { return Ok(()) };
    match (span.moves(), span.what) {
        (0, _) => Ok(()),
        (2, _) => events.get(None, at, WINDOW, peer, span.bytes, id),
        (_, Activity::Call(Call::Rmw | Call::Acc | Call::AccNb)) => {
            let is_rmw = span.what == Activity::Call(Call::Rmw) && span.bytes > 0;
            let (kind, back) = if is_rmw { (FETCH_AND_ADD, span.bytes) } else { (ACCUMULATE, 0) };
            events.atomic(None, at, WINDOW, peer, kind, span.bytes, back, id)
        }
        _ => events.put(None, at, WINDOW, peer, span.bytes, id),
    }
}

fn define(
    trace: &Trace,
    to: &Definitions<'_>,
    counts: &BTreeMap<u64, (u64, String)>,
    regions: &RegionNumbers,
) -> Result<(), String> {
    to.clock(1_000_000_000, 0, trace.wall + 1, trace.started)?;
    let empty = to.string("")?;
    let (machine, node) = (to.string("machine")?, to.string("node")?);
    let job = to.string("job")?;
    to.tree_node(0, job, machine, UNDEFINED)?;
    for (number, host) in trace.hosts.iter().enumerate() {
        let name = to.string(host)?;
        to.tree_node(number as u32 + 1, name, node, 0)?;
    }
    for file in &trace.files {
        let name = to.string(&format!("rank {}", file.rank))?;
        to.location_group(file.rank, name, PROCESS, file.host as u32 + 1, UNDEFINED)?;
    }
    for (location, (events, name)) in counts {
        let name = to.string(name)?;
        to.location(*location, name, THREAD, *events, (*location / THREADS) as u32)?;
    }
    let region = |number: u32, name: &str, role: u8, paradigm: u8| {
        let name = to.string(name)?;
        to.region(number, name, name, empty, role, paradigm, 0, empty, 0, 0)
    };
    for what in Activity::all() {
        let is_mpi = matches!(what, Activity::Mpi(_));
        let paradigm = if is_mpi { PARADIGM_MPI } else { PARADIGM_SHMEM };
        region(u32::from(what.number()), &what.name(), role(what), paradigm)?;
    }
    let mut own: Vec<(&u32, &String)> = regions.own.iter().map(|(name, n)| (n, name)).collect();
    own.sort();
    for (number, name) in own {
        region(*number, name, ROLE_CODE, PARADIGM_USER)?;
    }
    // A rank without a file lacks a location. The location of the first file takes its place, so
    // that the rank numbers stay the same.
    let mut of_rank: Vec<u64> = vec![trace.files.first().map_or(0, main_location); trace.ranks];
    for file in &trace.files {
        of_rank[file.rank as usize] = main_location(file);
    }
    let mut locations: Vec<u64> = of_rank.clone();
    locations.sort_unstable();
    locations.dedup();
    let places: Vec<u64> = of_rank
        .iter()
        .map(|location| locations.binary_search(location).expect("it is in the list") as u64)
        .collect();
    let name = to.string("ranks")?;
    to.group(0, empty, COMM_LOCATIONS, PARADIGM_SHMEM, &locations)?;
    to.group(1, name, COMM_GROUP, PARADIGM_SHMEM, &places)?;
    to.communicator(0, name, 1, UNDEFINED, 0)?;
    let window = to.string("segments")?;
    to.window(WINDOW, window, 0, 0)
}

fn role(what: Activity) -> u8 {
    match what {
        Activity::Call(Call::Barrier) | Activity::Mpi(MpiCall::Barrier) => ROLE_BARRIER,
        Activity::Call(Call::Reduce | Call::Broadcast | Call::Exchange) => ROLE_COLLECTIVE,
        Activity::Call(
            Call::Put | Call::PutNb | Call::Get | Call::GetNb | Call::Acc | Call::AccNb | Call::Rmw,
        ) => ROLE_RMA,
        Activity::Mpi(call) if MpiPeers::of(call).is_collective() => ROLE_COLLECTIVE,
        Activity::Wait(_) | Activity::Served(Served::Other) => ROLE_ARTIFICIAL,
        _ => ROLE_FUNCTION,
    }
}
