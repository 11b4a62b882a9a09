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
//! The description of each variant of [`Event`] gives its type, and its fields in the order of their
//! bytes, each with its encoding:
//!
//! | encoding | bytes |
//! |---|---|
//! | `kind` | a byte: the number in an enumeration |
//! | `upper`, `lower` | the upper and the lower half of a byte |
//! | `time`, `length` | the begin; the duration |
//! | `number`, `signed` | a number; a zigzag-encoded number |
//! | `rank`, `known` | the value + 1, or 0 if there is none |
//! | `text` | its length and its UTF-8 |
//! | `blocks` | with the flag 0x10, a number |
//! | `place` | with the flag 0x20, the segment + 1 and the offset |
//! | `site` | with the flag 0x80, a number |
//! | `usage` | user, system, voluntary, involuntary, threads and, with the flag 0x10, processor time of the main thread, its delay, delay of the others |
//!
//! Peers, origins and owners are world ranks. Each rank numbers its strings and segments itself. A
//! definition may follow its first use, in a block of the writer. If a site has the address
//! [`SOURCE_LINE`], its string is a line of the program's source, not a module. Its caller, if
//! known, is the innermost return address of the call.

mod decode;
mod encode;

use crate::format::Fault;
pub use crate::kinds::{Call, Cause, Interface, MpiCall, PathTaken, SegmentKind, Served};
pub use decode::Events;
pub use encode::Encoder;
use encode::Out;

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

/// Defines the events, their encoder and their decoder. Each field names the method of `Out` and of
/// `Events` for its encoding.
macro_rules! events {
    ($($(#[$doc:meta])* $type:literal $name:ident {
        $($(#[$field_doc:meta])* $field:ident: $ty:ty = $by:ident,)+
    })+) => {
        /// An event of a trace.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Event<'a> {
            $(
                $(#[$doc])*
                ///
                #[doc = concat!("Type ", $type, ":" $(, " `", stringify!($by), "`")+, ".")]
                $name { $($(#[$field_doc])* $field: $ty,)+ },
            )+
        }

        impl Out<'_> {
            fn event(&mut self, event: &Event<'_>) {
                match *event {
                    $(Event::$name { $($field,)+ } => {
                        self.byte($type);
                        $(self.$by($field);)+
                    })+
                }
            }
        }

        impl<'a> Events<'a> {
            fn event(&mut self) -> Result<Event<'a>, Fault> {
                self.first = self.byte()?;
                let event = match self.first & 0xf {
                    $($type => {
                        $(let $field: $ty = self.$by()?;)+
                        Event::$name { $($field,)+ }
                    })+
                    _ => return Err(Fault::Value("event's type")),
                };
                if self.first >> 4 == 0 { Ok(event) } else { Err(Fault::Value("event's flags")) }
            }
        }
    };
}

events! {
    /// A completed call.
    1 Call {
        /// The call.
        call: Call = kind,
        /// The interface that was called.
        interface: Interface = upper,
        /// The path of the bytes.
        path: PathTaken = lower,
        /// When it began.
        begin: u64 = time,
        /// How long it took.
        duration: u64 = length,
        /// The target, if it is a single rank.
        peer: Option<u32> = rank,
        /// Bytes moved by the call.
        bytes: u64 = number,
        /// Number of blocks of a strided or vector transfer; 1 if contiguous.
        blocks: u64 = blocks,
        /// Location of a read-modify-write, an accumulate or a mutex, for which ranks may contend.
        place: Option<Place> = place,
        /// Number of the call site, if it is known.
        site: Option<u64> = site,
    }
    /// A completed wait, inside a call or alone.
    2 Wait {
        /// The reason.
        cause: Cause = kind,
        /// When it began.
        begin: u64 = time,
        /// How long it took.
        duration: u64 = length,
        /// The awaited rank, if it is a single one.
        peer: Option<u32> = rank,
        /// The awaited mutex.
        place: Option<Place> = place,
    }
    /// A request served for another rank, or a handler that ran.
    3 Served {
        /// The kind of work.
        kind: Served = kind,
        /// When it began.
        begin: u64 = time,
        /// How long it took.
        duration: u64 = length,
        /// The rank that asked for it.
        origin: Option<u32> = rank,
        /// Size of the request in bytes.
        bytes: u64 = number,
        /// Time that the request had waited on this rank, if known.
        waited: Option<u64> = known,
    }
    /// Start of a program region. Regions of a thread nest.
    4 RegionBegin {
        /// When.
        time: u64 = time,
        /// Its name.
        string: u64 = number,
    }
    /// End of the innermost region of the thread.
    5 RegionEnd {
        /// When.
        time: u64 = time,
    }
    /// A mark set by the program.
    6 Mark {
        /// When.
        time: u64 = time,
        /// Its text.
        string: u64 = number,
    }
    /// Definition of a string.
    7 String {
        /// The number.
        string: u64 = number,
        /// The text.
        text: &'a str = text,
    }
    /// A segment or a set of mutexes.
    8 Segment {
        /// Its number.
        segment: u64 = number,
        /// Bytes of this rank's part, or the number of its mutexes.
        bytes: u64 = number,
        /// Number of ranks in its group.
        ranks: u64 = number,
        /// Its kind.
        kind: SegmentKind = kind,
    }
    /// A clock sample: at `time` of this rank's clock, rank 0's showed `time + offset`.
    9 Clock {
        /// Time of this rank's clock.
        time: u64 = time,
        /// Difference to the clock of rank 0.
        offset: i64 = signed,
        /// Largest error of the offset.
        bound: u64 = number,
    }
    /// The value of a statistics counter.
    10 Counter {
        /// When.
        time: u64 = time,
        /// Its name.
        string: u64 = number,
        /// Its value.
        value: u64 = number,
    }
    /// The end of a complete file, in its last block.
    11 End {
        /// When the file was closed.
        time: u64 = time,
    }
    /// Processor use of the process, twice a second.
    12 Usage {
        /// When.
        time: u64 = time,
        /// The totals since the start of the process.
        usage: Usage = usage,
    }
    /// Definition of a call site: a return address in the program or in the library.
    13 Site {
        /// Its number.
        site: u64 = number,
        /// The site of the call to the function that contains this one.
        caller: Option<u64> = known,
        /// String that names the file of the module, or the source line.
        module: u64 = number,
        /// The return address, relative to the start of the loaded module, or [`SOURCE_LINE`].
        address: u64 = number,
    }
    /// A completed blocking MPI call of the program.
    14 Mpi {
        /// The call.
        call: MpiCall = kind,
        /// When it began.
        begin: u64 = time,
        /// How long it took.
        duration: u64 = length,
        /// The rank that a message comes from or goes to, or the root.
        peer: Option<u32> = rank,
        /// Bytes that this rank sends or receives.
        bytes: u64 = number,
        /// A number of the communicator's ranks, equal on all of them. 0 means all ranks of the
        /// job, or that the communicator is unknown.
        communicator: u64 = number,
        /// Number of the call site, if it is known.
        site: Option<u64> = site,
    }
}

// Flags in the first byte. Earlier versions wrote 0x40 in a call that represents several.
const HAS_BLOCKS: u8 = 0x10;
const HAS_DELAYS: u8 = 0x10;
const HAS_PLACE: u8 = 0x20;
const HAS_SITE: u8 = 0x80;

/// The address of a call site that is known by its source line, such as `heat.py:12 (step)`.
pub const SOURCE_LINE: u64 = u64::MAX;

/// Largest encoded event in bytes, not counting the text of a string.
pub const MAX_EVENT: usize = 96;
