//! Spans with their names and states, and the formatting of numbers, for the whole program.

use portolan_trace_format::event::{Event, Place};
use portolan_trace_format::format::Role;
use portolan_trace_format::kinds::{Call, Cause, MpiCall, PathTaken, Served};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Activity {
    Call(Call),
    /// A wait, usually inside a call.
    Wait(Cause),
    Served(Served),
    /// A blocking MPI call of the program.
    Mpi(MpiCall),
}

/// Which ranks an MPI call may wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MpiPeers {
    All,
    /// All but the root wait for the root.
    Root,
    /// The root waits for all.
    AtRoot,
    Source,
    Target,
    /// The call waits for operations that other calls have started, which are not recorded.
    Unknown,
}

impl MpiPeers {
    pub fn of(call: MpiCall) -> MpiPeers {
        match call {
            MpiCall::Bcast | MpiCall::Scatter | MpiCall::Scatterv => MpiPeers::Root,
            MpiCall::Reduce | MpiCall::Gather | MpiCall::Gatherv => MpiPeers::AtRoot,
            MpiCall::Recv | MpiCall::Sendrecv | MpiCall::SendrecvReplace | MpiCall::Probe => {
                MpiPeers::Source
            }
            MpiCall::Send | MpiCall::Ssend | MpiCall::Rsend => MpiPeers::Target,
            MpiCall::Wait
            | MpiCall::Waitall
            | MpiCall::Waitany
            | MpiCall::Waitsome
            | MpiCall::WinFence => MpiPeers::Unknown,
            _ => MpiPeers::All,
        }
    }

    pub fn is_collective(self) -> bool {
        matches!(self, MpiPeers::All | MpiPeers::Root | MpiPeers::AtRoot)
    }
}

impl Activity {
    /// Returns its index among all names, which the page uses.
    pub fn number(self) -> u8 {
        match self {
            Activity::Call(call) => call as u8,
            Activity::Wait(cause) => (Call::ALL.len() + cause as usize) as u8,
            Activity::Served(kind) => (Call::ALL.len() + Cause::ALL.len() + kind as usize) as u8,
            Activity::Mpi(call) => {
                (Call::ALL.len() + Cause::ALL.len() + Served::ALL.len() + call as usize) as u8
            }
        }
    }

    pub fn name(self) -> String {
        match self {
            Activity::Call(call) => call.name().into(),
            Activity::Wait(Cause::Other | Cause::Start) => "waits".into(),
            Activity::Wait(cause) => format!("waits: {}", cause.name()),
            Activity::Served(kind) => format!("serves: {}", kind.name()),
            Activity::Mpi(call) => call.name().into(),
        }
    }

    /// Returns the word before the rank that a name concerns, such as *from* for an answer.
    pub fn preposition(self) -> &'static str {
        match self {
            Activity::Call(Call::Get | Call::GetNb) => "from",
            Activity::Call(_) => "to",
            Activity::Served(_) => "for",
            Activity::Mpi(call) => match MpiPeers::of(call) {
                MpiPeers::Source => "from",
                MpiPeers::Target => "to",
                _ => "with root",
            },
            Activity::Wait(cause) => match cause {
                Cause::Answer | Cause::Credit | Cause::Notify | Cause::Message => "from",
                Cause::Fence | Cause::Ring | Cause::Handle => "to",
                Cause::Lock => "at",
                _ => "with",
            },
        }
    }

    /// Returns all activities in the order of their numbers.
    pub fn all() -> impl Iterator<Item = Activity> {
        let calls = Call::ALL.iter().map(|call| Activity::Call(*call));
        let waits = Cause::ALL.iter().map(|cause| Activity::Wait(*cause));
        let served = Served::ALL.iter().map(|kind| Activity::Served(*kind));
        calls.chain(waits).chain(served).chain(MpiCall::ALL.iter().map(|call| Activity::Mpi(*call)))
    }
}

/// How a rank spends its time. The timeline has a colour for each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum RankState {
    /// Puts, gets, accumulates, compositions.
    Transfer,
    /// Read-modify-writes and mutexes, excluding waits for a mutex.
    Atomic,
    /// Active messages, remote calls, bulk transfers.
    Message,
    /// Fences, collectives and other calls, excluding waits.
    Sync,
    /// A wait for the rank's own operations.
    WaitCompletion,
    /// A wait for a mutex.
    WaitLock,
    /// A wait for other ranks to arrive.
    WaitOthers,
    /// A wait for a target that is behind: no credit, or a full ring.
    WaitRoom,
    /// An MPI call of the program, which may wait.
    WaitMpi,
    /// Requests of other ranks, served in the rank's own calls.
    Serving,
    /// Work of the progress and completion threads, concurrent with the program.
    Beside,
}

pub const STATES: usize = 11;

/// The states, with their names and their colours in the timeline, which are from Okabe and Ito's
/// palette or greys.
const TABLE: [(RankState, &str, &str); STATES] = [
    (RankState::Transfer, "puts, gets, accumulates", "#0072b2"),
    (RankState::Atomic, "read-modify-writes, mutexes", "#56b4e9"),
    (RankState::Message, "messages, remote calls", "#009e73"),
    (RankState::Sync, "fences, collectives, others", "#5e6a7d"),
    (RankState::WaitCompletion, "waiting for own operations", "#f0e442"),
    (RankState::WaitLock, "waiting for a mutex", "#d55e00"),
    (RankState::WaitOthers, "waiting for other ranks to arrive", "#e69f00"),
    (RankState::WaitRoom, "waiting for buffer space at a target", "#cc79a7"),
    (RankState::WaitMpi, "waiting in MPI calls of the program", "#7b2d8b"),
    (RankState::Serving, "serving others", "#3d4148"),
    (RankState::Beside, "progress thread serves", "#a5aab2"),
];

impl RankState {
    /// Returns all states in the order of their numbers.
    pub fn all() -> impl Iterator<Item = RankState> + Clone {
        TABLE.iter().map(|(state, ..)| *state)
    }

    pub fn waits(self) -> bool {
        matches!(
            self,
            RankState::WaitCompletion
                | RankState::WaitLock
                | RankState::WaitOthers
                | RankState::WaitRoom
                | RankState::WaitMpi
        )
    }

    pub fn name(self) -> &'static str {
        TABLE[self as usize].1
    }

    pub fn colour(self) -> &'static str {
        TABLE[self as usize].2
    }
}

/// A time interval that a thread spent on one activity. Times are nanoseconds since the start of
/// the job, in the clock of rank 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceSpan {
    pub begin: u64,
    pub end: u64,
    pub rank: u32,
    pub thread: u32,
    pub role: Role,
    pub what: Activity,
    pub path: PathTaken,
    pub peer: Option<u32>,
    pub bytes: u64,
    /// Number of blocks of a strided or vector transfer; 1 if contiguous.
    pub blocks: u64,
    pub place: Option<Place>,
    /// Time that a served request waited before, in nanoseconds.
    pub queued: Option<u64>,
    /// Number of the place in the program that made the call.
    pub site: Option<u32>,
    /// The communicator of an MPI call, see [`Event::Mpi`].
    pub communicator: u64,
}

impl TraceSpan {
    /// Returns a span of a thread, without a peer or other details.
    pub fn new(
        what: Activity,
        (rank, thread, role): (u32, u32, Role),
        (begin, end): (u64, u64),
    ) -> TraceSpan {
        TraceSpan {
            begin,
            end,
            rank,
            thread,
            role,
            what,
            path: PathTaken::None,
            peer: None,
            bytes: 0,
            blocks: 1,
            place: None,
            queued: None,
            site: None,
            communicator: 0,
        }
    }

    /// Returns `None` for an event without a duration. `at` converts a time to the time of the job.
    pub fn of(
        event: &Event<'_>,
        thread: (u32, u32, Role),
        at: impl Fn(u64) -> u64,
    ) -> Option<TraceSpan> {
        let span = |begin: u64, duration: u64, what| {
            let from = at(begin);
            let end = at(begin.saturating_add(duration)).max(from);
            TraceSpan::new(what, thread, (from, end))
        };
        Some(match *event {
            Event::Call { begin, duration, call, path, peer, bytes, blocks, place, .. } => {
                TraceSpan {
                    path,
                    peer,
                    bytes,
                    blocks: blocks.max(1),
                    place,
                    ..span(begin, duration, Activity::Call(call))
                }
            }
            Event::Wait { begin, duration, cause, peer, place } => {
                TraceSpan { peer, place, ..span(begin, duration, Activity::Wait(cause)) }
            }
            Event::Served { begin, duration, kind, origin, bytes, waited } => TraceSpan {
                peer: origin,
                bytes,
                queued: waited,
                ..span(begin, duration, Activity::Served(kind))
            },
            Event::Mpi { begin, duration, call, peer, bytes, communicator, .. } => TraceSpan {
                peer,
                bytes,
                communicator,
                ..span(begin, duration, Activity::Mpi(call))
            },
            _ => return None,
        })
    }

    pub fn length(&self) -> u64 {
        self.end - self.begin
    }

    pub fn state(&self) -> RankState {
        if self.role != Role::Program {
            return RankState::Beside;
        }
        match self.what {
            Activity::Call(call) => match call {
                Call::Put
                | Call::PutNb
                | Call::Get
                | Call::GetNb
                | Call::Acc
                | Call::AccNb
                | Call::Notify
                | Call::Perform => RankState::Transfer,
                Call::Rmw | Call::Lock | Call::Unlock => RankState::Atomic,
                Call::Send | Call::Aggregate | Call::Rpc | Call::Bulk => RankState::Message,
                _ => RankState::Sync,
            },
            Activity::Wait(cause) => match cause {
                Cause::Lock => RankState::WaitLock,
                Cause::Barrier | Cause::Collective | Cause::Notify | Cause::Start => {
                    RankState::WaitOthers
                }
                Cause::Credit | Cause::Ring => RankState::WaitRoom,
                Cause::Mpi => RankState::WaitMpi,
                _ => RankState::WaitCompletion,
            },
            Activity::Served(_) => RankState::Serving,
            Activity::Mpi(_) => RankState::WaitMpi,
        }
    }

    /// Returns the direction of the bytes of a call: 1 to the peer, 2 from the peer, 0 neither.
    pub fn moves(&self) -> u8 {
        let Activity::Call(call) = self.what else { return 0 };
        if self.peer.is_none() {
            return 0;
        }
        match call {
            Call::Get | Call::GetNb => 2,
            Call::Put
            | Call::PutNb
            | Call::Acc
            | Call::AccNb
            | Call::Rmw
            | Call::Notify
            | Call::Send
            | Call::Aggregate
            | Call::Rpc
            | Call::Bulk
            | Call::Perform => 1,
            _ => 0,
        }
    }

    /// Returns whether MPI or the target's thread takes part. If not, the transfer is a plain copy.
    pub fn travels(&self) -> bool {
        matches!(self.path, PathTaken::Rma | PathTaken::Message | PathTaken::Ring)
    }
}

pub fn time(ns: f64) -> String {
    let (value, unit) = match ns.abs() {
        size if size >= 1e9 => (ns / 1e9, "s"),
        size if size >= 1e6 => (ns / 1e6, "ms"),
        size if size >= 1e3 => (ns / 1e3, "µs"),
        _ => return format!("{ns:.0} ns"),
    };
    format!("{} {unit}", three(value))
}

pub fn three(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 || size == 0.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Formats a number of bytes in a suitable binary unit.
pub fn bytes(n: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let unit = units.iter().enumerate().rev().find(|(k, _)| n >= 1024f64.powi(*k as i32));
    match unit {
        Some((k, unit)) if k > 0 => format!("{} {unit}", three(n / 1024f64.powi(k as i32))),
        _ => format!("{n:.0} B"),
    }
}

pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (k, digit) in digits.chars().enumerate() {
        if k > 0 && (digits.len() - k).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

pub fn percent(part: f64, whole: f64) -> String {
    if whole <= 0.0 { "0 %".into() } else { format!("{} %", three(100.0 * part / whole)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        assert_eq!(time(0.0), "0 ns");
        assert_eq!(time(1_234.0), "1.23 µs");
        assert_eq!(time(98_765_432_100.0), "98.8 s");
        assert_eq!(bytes(1023.0), "1023 B");
        assert_eq!(bytes(1536.0), "1.50 KiB");
        assert_eq!(bytes((1u64 << 40) as f64), "1.00 TiB");
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(percent(1.0, 0.0), "0 %");
        assert_eq!(percent(1.0, 8.0), "12.5 %");
    }

    #[test]
    fn names_have_their_numbers() {
        for (number, what) in Activity::all().enumerate() {
            assert_eq!(usize::from(what.number()), number);
        }
        for (number, state) in RankState::all().enumerate() {
            assert_eq!(state as usize, number);
        }
    }
}
