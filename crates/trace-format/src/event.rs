//! The events in a block of a trace.
//!
//! Events have variable length; most take 8 to 14 bytes. The low four bits of the first byte hold
//! the type, and the high four bits say which optional fields are present. The fields follow as
//! single bytes or as LEB128 numbers.
//!
//! **Times.** The begin of an event is stored as the zigzag-encoded difference to the end of the
//! previous event in the block; for the first event it is the difference to `first_time` of the
//! header. Calls are recorded when they end, so an outer call begins before the calls it contains.
//! Two events of a thread are either nested or disjoint.
//!
//! | type | bytes after the first |
//! |---|---|
//! | 1 call | call, interface × 16 + path, begin, duration, peer + 1, bytes, \[blocks\], \[segment + 1, offset\], \[weight\] |
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
//!
//! Peers, origins and owners are world ranks. Each rank numbers its strings and segments itself. A
//! definition may follow its first use, in a block of the writer.

use crate::format::Fault;
pub use crate::kinds::{Call, Cause, Interface, PathTaken, SegmentKind, Served};

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
        /// Number of calls that the event represents: more than 1 if short calls are sampled.
        weight: u64,
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
    /// A clock sample: when this rank's clock showed `time`, the clock of rank 0 showed `time +
    /// offset`, with an error of at most `bound`.
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

const HAS_BLOCKS: u8 = 0x10;
const HAS_PLACE: u8 = 0x20;
const HAS_WEIGHT: u8 = 0x40;
/// Optional field of a usage event.
const HAS_DELAYS: u8 = 0x10;

/// Largest encoded event in bytes, not counting the text of a string.
pub const MAX_EVENT: usize = 96;

/// Encodes the events of a block.
#[derive(Debug, Clone, Copy)]
pub struct Encoder {
    /// End of the last event, or `first_time` of the block.
    last: u64,
}

impl Encoder {
    /// Starts a block whose header has this `first_time`.
    #[inline]
    pub fn new(first_time: u64) -> Encoder {
        Encoder { last: first_time }
    }

    /// Returns the end of the last event, which is the base of the next time.
    #[inline]
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Encodes an event at the start of `out` and returns its length. Events must be passed in the
    /// order of their ends.
    ///
    /// # Panics
    /// Panics if `out` is too short. [`MAX_EVENT`] bytes suffice, plus the text of a string.
    #[inline]
    pub fn put(&mut self, event: &Event<'_>, out: &mut [u8]) -> usize {
        let mut to = Out { bytes: out, at: 0 };
        match *event {
            Event::Call {
                begin,
                duration,
                call,
                interface,
                path,
                peer,
                bytes,
                blocks,
                place,
                weight,
            } => {
                let blocks_flag = if blocks != 1 { HAS_BLOCKS } else { 0 };
                let place_flag = if place.is_some() { HAS_PLACE } else { 0 };
                let weight_flag = if weight != 1 { HAS_WEIGHT } else { 0 };
                to.byte(CALL | blocks_flag | place_flag | weight_flag);
                to.byte(call as u8);
                to.byte((interface as u8) << 4 | path as u8);
                self.span(&mut to, begin, duration);
                to.rank(peer);
                to.number(bytes);
                if blocks != 1 {
                    to.number(blocks);
                }
                if let Some(place) = place {
                    to.place(place);
                }
                if weight != 1 {
                    to.number(weight);
                }
            }
            Event::Wait { begin, duration, cause, peer, place } => {
                to.byte(WAIT | if place.is_some() { HAS_PLACE } else { 0 });
                to.byte(cause as u8);
                self.span(&mut to, begin, duration);
                to.rank(peer);
                if let Some(place) = place {
                    to.place(place);
                }
            }
            Event::Served { begin, duration, kind, origin, bytes, waited } => {
                to.byte(SERVED);
                to.byte(kind as u8);
                self.span(&mut to, begin, duration);
                to.rank(origin);
                to.number(bytes);
                to.number(waited.map_or(0, |waited| waited.saturating_add(1)));
            }
            Event::RegionBegin { time, string } => {
                to.byte(REGION_BEGIN);
                self.time(&mut to, time);
                to.number(string);
            }
            Event::RegionEnd { time } => {
                to.byte(REGION_END);
                self.time(&mut to, time);
            }
            Event::Mark { time, string } => {
                to.byte(MARK);
                self.time(&mut to, time);
                to.number(string);
            }
            Event::String { string, text } => {
                to.byte(STRING);
                to.number(string);
                to.number(text.len() as u64);
                to.bytes[to.at..to.at + text.len()].copy_from_slice(text.as_bytes());
                to.at += text.len();
            }
            Event::Segment { segment, bytes, ranks, kind } => {
                to.byte(SEGMENT);
                to.number(segment);
                to.number(bytes);
                to.number(ranks);
                to.byte(kind as u8);
            }
            Event::Clock { time, offset, bound } => {
                to.byte(CLOCK);
                self.time(&mut to, time);
                to.number(zigzag(offset));
                to.number(bound);
            }
            Event::Counter { time, string, value } => {
                to.byte(COUNTER);
                self.time(&mut to, time);
                to.number(string);
                to.number(value);
            }
            Event::Usage { time, usage } => {
                to.byte(USAGE | if usage.delays.is_some() { HAS_DELAYS } else { 0 });
                self.time(&mut to, time);
                let Usage { user, system, voluntary, involuntary, threads, delays } = usage;
                for value in [user, system, voluntary, involuntary, threads] {
                    to.number(value);
                }
                if let Some(Delays { main_cpu, main, others }) = delays {
                    for value in [main_cpu, main, others] {
                        to.number(value);
                    }
                }
            }
            Event::End { time } => {
                to.byte(END);
                self.time(&mut to, time);
            }
        }
        to.at
    }

    #[inline]
    fn time(&mut self, to: &mut Out<'_>, time: u64) {
        to.number(zigzag(time.wrapping_sub(self.last) as i64));
        self.last = time;
    }

    #[inline]
    fn span(&mut self, to: &mut Out<'_>, begin: u64, duration: u64) {
        self.time(to, begin);
        to.number(duration);
        self.last = begin.wrapping_add(duration);
    }
}

struct Out<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl Out<'_> {
    #[inline]
    fn byte(&mut self, byte: u8) {
        self.bytes[self.at] = byte;
        self.at += 1;
    }

    #[inline]
    fn number(&mut self, mut value: u64) {
        if value < 0x80 {
            return self.byte(value as u8);
        }
        while value >= 0x80 {
            self.byte(value as u8 | 0x80);
            value >>= 7;
        }
        self.byte(value as u8);
    }

    #[inline]
    fn rank(&mut self, rank: Option<u32>) {
        self.number(rank.map_or(0, |rank| u64::from(rank) + 1));
    }

    #[inline]
    fn place(&mut self, place: Place) {
        self.number(place.segment.map_or(0, |segment| segment.saturating_add(1)));
        self.number(place.offset);
    }
}

/// Maps small numbers of either sign to small unsigned numbers.
#[inline]
fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

#[inline]
fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Decodes the events of a payload. The iterator ends after the first error.
#[derive(Debug, Clone)]
pub struct Events<'a> {
    bytes: &'a [u8],
    last: u64,
}

impl<'a> Events<'a> {
    /// Decodes a payload whose header has this `first_time`.
    pub fn new(payload: &'a [u8], first_time: u64) -> Events<'a> {
        Events { bytes: payload, last: first_time }
    }

    fn byte(&mut self) -> Result<u8, Fault> {
        let (&byte, rest) = self.bytes.split_first().ok_or(Fault::Truncated)?;
        self.bytes = rest;
        Ok(byte)
    }

    fn number(&mut self) -> Result<u64, Fault> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Fault::Value("number"))
    }

    fn rank(&mut self) -> Result<Option<u32>, Fault> {
        match self.number()? {
            0 => Ok(None),
            rank => u32::try_from(rank - 1).map(Some).map_err(|_| Fault::Value("rank")),
        }
    }

    fn place(&mut self, flags: u8) -> Result<Option<Place>, Fault> {
        if flags & HAS_PLACE == 0 {
            return Ok(None);
        }
        let segment = self.number()?.checked_sub(1);
        Ok(Some(Place { segment, offset: self.number()? }))
    }

    fn time(&mut self) -> Result<u64, Fault> {
        self.last = self.last.wrapping_add(unzigzag(self.number()?) as u64);
        Ok(self.last)
    }

    fn span(&mut self) -> Result<(u64, u64), Fault> {
        let begin = self.time()?;
        let duration = self.number()?;
        self.last = begin.wrapping_add(duration);
        Ok((begin, duration))
    }

    fn event(&mut self) -> Result<Event<'a>, Fault> {
        let first = self.byte()?;
        Ok(match first & 0xf {
            CALL => {
                let call = Call::from_number(self.byte()?)?;
                let by = self.byte()?;
                let (interface, path) =
                    (Interface::from_number(by >> 4)?, PathTaken::from_number(by & 0xf)?);
                let (begin, duration) = self.span()?;
                let (peer, bytes) = (self.rank()?, self.number()?);
                let blocks = if first & HAS_BLOCKS != 0 { self.number()? } else { 1 };
                let place = self.place(first)?;
                let weight = if first & HAS_WEIGHT != 0 { self.number()? } else { 1 };
                Event::Call {
                    begin,
                    duration,
                    call,
                    interface,
                    path,
                    peer,
                    bytes,
                    blocks,
                    place,
                    weight,
                }
            }
            WAIT => {
                let cause = Cause::from_number(self.byte()?)?;
                let (begin, duration) = self.span()?;
                Event::Wait {
                    begin,
                    duration,
                    cause,
                    peer: self.rank()?,
                    place: self.place(first)?,
                }
            }
            SERVED => {
                let kind = Served::from_number(self.byte()?)?;
                let (begin, duration) = self.span()?;
                let (origin, bytes) = (self.rank()?, self.number()?);
                let waited = self.number()?.checked_sub(1);
                Event::Served { begin, duration, kind, origin, bytes, waited }
            }
            REGION_BEGIN => Event::RegionBegin { time: self.time()?, string: self.number()? },
            REGION_END => Event::RegionEnd { time: self.time()? },
            MARK => Event::Mark { time: self.time()?, string: self.number()? },
            STRING => {
                let (string, length) = (self.number()?, self.number()?);
                let length = usize::try_from(length).map_err(|_| Fault::Truncated)?;
                let (text, rest) = self.bytes.split_at_checked(length).ok_or(Fault::Truncated)?;
                self.bytes = rest;
                let text = std::str::from_utf8(text).map_err(|_| Fault::Value("string"))?;
                Event::String { string, text }
            }
            SEGMENT => Event::Segment {
                segment: self.number()?,
                bytes: self.number()?,
                ranks: self.number()?,
                kind: SegmentKind::from_number(self.byte()?)?,
            },
            CLOCK => Event::Clock {
                time: self.time()?,
                offset: unzigzag(self.number()?),
                bound: self.number()?,
            },
            COUNTER => {
                Event::Counter { time: self.time()?, string: self.number()?, value: self.number()? }
            }
            USAGE => {
                let time = self.time()?;
                let mut usage = Usage {
                    user: self.number()?,
                    system: self.number()?,
                    voluntary: self.number()?,
                    involuntary: self.number()?,
                    threads: self.number()?,
                    delays: None,
                };
                if first & HAS_DELAYS != 0 {
                    usage.delays = Some(Delays {
                        main_cpu: self.number()?,
                        main: self.number()?,
                        others: self.number()?,
                    });
                }
                Event::Usage { time, usage }
            }
            END => Event::End { time: self.time()? },
            _ => return Err(Fault::Value("event's type")),
        })
    }
}

impl<'a> Iterator for Events<'a> {
    type Item = Result<Event<'a>, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.bytes.is_empty() {
            return None;
        }
        let event = self.event();
        if event.is_err() {
            self.bytes = &[];
        }
        Some(event)
    }
}
