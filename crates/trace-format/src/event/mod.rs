//! The events in a block of a trace.
//!
//! Events have variable length; most take 8 to 14 bytes. The low four bits of the first byte hold
//! the type, and the high four bits say which optional fields are present. The fields follow as
//! single bytes or as LEB128 numbers.
//!
//! **Times.** The begin of an event is stored as the zigzag-encoded difference to the end of the
//! previous event in the block, or for the first event to `first_time` of the header. Calls are
//! recorded when they end, so an outer call begins before the calls it contains. Two events of a
//! thread are either nested or disjoint.
//!
//! | type | bytes after the first |
//! |---|---|
//! | 1 call | call, interface × 16 + path, begin, duration, peer + 1, bytes, \[blocks\], \[segment + 1, offset\], \[site\] |
//! | 2 wait | cause, begin, duration, peer + 1, \[segment + 1, offset\] |
//! | 3 served | kind, begin, duration, origin + 1, bytes, waited + 1 |
//! | 4 region begins | begin, string |
//! | 5 region ends | begin |
//! | 6 mark | begin, string |
//! | 7 string | number, length, UTF-8 |
//! | 8 segment | number, bytes, ranks, kind |
//! | 9 clock sample | begin, offset (zigzag), bound |
//! | 10 counter | begin, string, value |
//! | 11 end | begin |
//! | 12 usage | begin, user, system, voluntary, involuntary, threads, \[CPU of the main thread, its delay, delay of the others\] |
//! | 13 site | number, caller's site + 1, string of the module, address |
//! | 14 MPI call | call, begin, duration, peer + 1, bytes, communicator, \[site\] |
//!
//! Peers, origins and owners are world ranks. Each rank numbers its strings and segments itself. A
//! definition may follow its first use, in a block of the writer. If a site has the address
//! [`SOURCE_LINE`], its string is a line of the program's source, not a module.

mod decode;
mod encode;

pub use crate::kinds::{Call, Cause, Interface, MpiCall, PathTaken, SegmentKind, Served};
pub use decode::Events;
pub use encode::Encoder;

/// A location in the part of a segment that belongs to the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Number of the segment. If `None`, the offset is an address in the owner's memory.
    pub segment: Option<u64>,
    /// Bytes from the start of the owner's part, or the number of a mutex in its set.
    pub offset: u64,
}

/// Use of processors by a process since its start. Times are nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time in user mode.
    pub user: u64,
    /// Processor time in the kernel.
    pub system: u64,
    /// Number of times that a thread gave up its core, to sleep for example.
    pub voluntary: u64,
    /// Number of times that a thread that could have continued lost its core.
    pub involuntary: u64,
    /// Current number of threads.
    pub threads: u64,
    /// Delays by the scheduler, if the kernel counts them.
    pub delays: Option<Delays>,
}

/// Time that threads were ready to run and waited for a core, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Delays {
    /// Processor time of the main thread.
    pub main_cpu: u64,
    /// Delay of the main thread.
    pub main: u64,
    /// Delay of the other threads that still exist.
    pub others: u64,
}

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A completed call.
    Call {
        /// When it began.
        begin: u64,
        /// How long it took.
        duration: u64,
        /// The call.
        call: Call,
        /// The interface that was called.
        interface: Interface,
        /// The path of the bytes.
        path: PathTaken,
        /// The target, if it is a single rank.
        peer: Option<u32>,
        /// Bytes moved by the call.
        bytes: u64,
        /// Number of blocks of a strided or vector transfer; 1 if contiguous.
        blocks: u64,
        /// Location of a read-modify-write, an accumulate or a mutex, for which ranks may contend.
        place: Option<Place>,
        /// Number of the call site, if it is known.
        site: Option<u64>,
    },
    /// A completed wait, inside a call or alone.
    Wait {
        /// When it began.
        begin: u64,
        /// How long it took.
        duration: u64,
        /// The reason.
        cause: Cause,
        /// The awaited rank, if it is a single one.
        peer: Option<u32>,
        /// The awaited mutex.
        place: Option<Place>,
    },
    /// A request served for another rank, or a handler that ran.
    Served {
        /// When it began.
        begin: u64,
        /// How long it took.
        duration: u64,
        /// The kind of work.
        kind: Served,
        /// The rank that asked for it.
        origin: Option<u32>,
        /// Size of the request in bytes.
        bytes: u64,
        /// Time that the request had waited on this rank, if known.
        waited: Option<u64>,
    },
    /// A completed blocking MPI call of the program.
    Mpi {
        /// When it began.
        begin: u64,
        /// How long it took.
        duration: u64,
        /// The call.
        call: MpiCall,
        /// The rank that a message comes from or goes to, or the root.
        peer: Option<u32>,
        /// Bytes that this rank sends or receives.
        bytes: u64,
        /// A number of the communicator's ranks, equal on all of them. 0 means all ranks of the
        /// job, or that the communicator is unknown.
        communicator: u64,
        /// Number of the call site, if it is known.
        site: Option<u64>,
    },
    /// Start of a program region. Regions of a thread nest.
    RegionBegin {
        /// When.
        time: u64,
        /// Its name.
        string: u64,
    },
    /// End of the innermost region of the thread.
    RegionEnd {
        /// When.
        time: u64,
    },
    /// A mark set by the program.
    Mark {
        /// When.
        time: u64,
        /// Its text.
        string: u64,
    },
    /// Definition of a string.
    String {
        /// The number.
        string: u64,
        /// The text.
        text: &'a str,
    },
    /// Definition of a call site: a return address in the program or in the library.
    Site {
        /// Its number.
        site: u64,
        /// The site of the call to the function that contains this one.
        caller: Option<u64>,
        /// String that names the file of the module, or the source line.
        module: u64,
        /// The return address, relative to the start of the loaded module, or [`SOURCE_LINE`].
        address: u64,
    },
    /// A segment or a set of mutexes.
    Segment {
        /// Its number.
        segment: u64,
        /// Bytes of this rank's part, or the number of its mutexes.
        bytes: u64,
        /// Number of ranks in its group.
        ranks: u64,
        /// Its kind.
        kind: SegmentKind,
    },
    /// A clock sample: at `time` of this rank's clock, rank 0's showed `time + offset`.
    Clock {
        /// Time of this rank's clock.
        time: u64,
        /// Difference to the clock of rank 0.
        offset: i64,
        /// Largest error of the offset.
        bound: u64,
    },
    /// The value of a statistics counter.
    Counter {
        /// When.
        time: u64,
        /// Its name.
        string: u64,
        /// Its value.
        value: u64,
    },
    /// Processor use of the process, twice a second.
    Usage {
        /// When.
        time: u64,
        /// The totals since the start of the process.
        usage: Usage,
    },
    /// The end of a complete file, in its last block.
    End {
        /// When the file was closed.
        time: u64,
    },
}

const CALL: u8 = 1;
const WAIT: u8 = 2;
const SERVED: u8 = 3;
const REGION_BEGIN: u8 = 4;
const REGION_END: u8 = 5;
const MARK: u8 = 6;
const STRING: u8 = 7;
const SEGMENT: u8 = 8;
const CLOCK: u8 = 9;
const COUNTER: u8 = 10;
const END: u8 = 11;
const USAGE: u8 = 12;
const SITE: u8 = 13;
const MPI: u8 = 14;

const HAS_BLOCKS: u8 = 0x10;
const HAS_PLACE: u8 = 0x20;
/// Of a call that represents several. Only earlier versions wrote it, with their number.
const WAS_SAMPLED: u8 = 0x40;
const HAS_SITE: u8 = 0x80;
/// Of a usage event.
const HAS_DELAYS: u8 = 0x10;

/// The address of a call site that is known by its source line, such as `heat.py:12 (step)`.
pub const SOURCE_LINE: u64 = u64::MAX;

/// Largest encoded event in bytes, not counting the text of a string.
pub const MAX_EVENT: usize = 96;
