//! The events in a block of a trace.
//!
//! An event has as many bytes as it needs, mostly 8 to 14. The first byte has the type (low four bits) and what is
//! present (high four bits); then, as the type asks, single bytes and variable-length numbers (LEB128: seven bits a
//! byte, the least first).
//!
//! **Times.** An event's begin is written as the difference to the end of the event before it in the
//! block (to the header's `first_time` for the first), zigzag: calls are written when they end, so an
//! outer call begins before what it contains. A thread's events never overlap partly: of two, one
//! contains the other or ends before it.
//!
//! | type | bytes behind the first |
//! |---|---|
//! | 1 call | call, face × 16 + path, begin, duration, peer + 1, bytes, \[blocks\], \[segment + 1, offset\], \[weight\] |
//! | 2 wait | cause, begin, duration, peer + 1, \[segment + 1, offset\] |
//! | 3 served | kind, begin, duration, origin + 1, bytes, waited + 1 |
//! | 4 region begins | begin, string |
//! | 5 region ends | begin |
//! | 6 mark | begin, string |
//! | 7 string | number, length, UTF-8 |
//! | 8 segment | number, bytes, ranks, kind |
//! | 9 clock sample | begin, offset (zigzag), bound |
//! | 10 counter | begin, string, value |
//!
//! Peers, origins and owners are world ranks. Strings and segments are numbered by each rank for itself;
//! a definition may stand behind its first use, in a block of the writer's.

use super::format::Fault;
pub use super::kinds::{Call, Cause, Face, PathTaken, SegmentKind, Served};

/// A place that calls meet at: of the peer's part of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The segment's number; `None`: the offset is an address of the owner.
    pub segment: Option<u64>,
    /// Bytes from the begin of the owner's part, or the number of a mutex in its set.
    pub offset: u64,
}

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A call that has ended.
    Call {
        /// When it began.
        begin: u64,
        /// How long it took.
        duration: u64,
        /// What was called.
        call: Call,
        /// By which interface.
        face: Face,
        /// How the bytes travelled.
        path: PathTaken,
        /// The target, where it is one rank.
        peer: Option<u32>,
        /// Bytes that the call moved.
        bytes: u64,
        /// Blocks of a strided or vector shape; 1 is contiguous.
        blocks: u64,
        /// Where, for calls that others may meet: read-modify-writes, accumulates, mutexes.
        place: Option<Place>,
        /// So many calls of this kind this event stands for, where short calls are sampled; else 1.
        weight: u64,
    },
    /// A wait that has ended: inside a call, or alone.
    Wait {
        /// When it began.
        begin: u64,
        /// How long it took.
        duration: u64,
        /// What for.
        cause: Cause,
        /// For whom, where it is one rank.
        peer: Option<u32>,
        /// Where: a mutex.
        place: Option<Place>,
    },
    /// A request of another rank that was served, or a handler that ran.
    Served {
        /// When it began.
        begin: u64,
        /// How long it took.
        duration: u64,
        /// What was served.
        kind: Served,
        /// For whom.
        origin: Option<u32>,
        /// Bytes of the request.
        bytes: u64,
        /// How long the request had waited at this rank before, where that is known.
        waited: Option<u64>,
    },
    /// A region of the program begins; regions of a thread nest.
    RegionBegin {
        /// When.
        time: u64,
        /// Its name.
        string: u64,
    },
    /// The innermost region of the thread ends.
    RegionEnd {
        /// When.
        time: u64,
    },
    /// The program was here.
    Mark {
        /// When.
        time: u64,
        /// What it said.
        string: u64,
    },
    /// The text of a string's number.
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
        /// Bytes of this rank's part, or mutexes that it owns.
        bytes: u64,
        /// Ranks of its group.
        ranks: u64,
        /// What it is.
        kind: SegmentKind,
    },
    /// This rank's clock compared with that of rank 0: when this one showed `time`, that one showed
    /// `time + offset`, give or take `bound`.
    Clock {
        /// This rank's clock.
        time: u64,
        /// What is to be added to it.
        offset: i64,
        /// The error of the offset is at most this.
        bound: u64,
    },
    /// A counter of the statistics, at a time.
    Counter {
        /// When.
        time: u64,
        /// Its name.
        string: u64,
        /// Its value.
        value: u64,
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

const HAS_BLOCKS: u8 = 0x10;
const HAS_PLACE: u8 = 0x20;
const HAS_WEIGHT: u8 = 0x40;

/// An event is never longer, but for a string's text.
pub const MAX_EVENT: usize = 96;

/// Writes events into bytes, one behind the other.
///
/// Invariant: between calls of [`Encoder::put`] the bytes are whole events.
#[derive(Debug, Clone, Copy)]
pub struct Encoder {
    /// The end of the last event; the first time of the block at its begin.
    last: u64,
}

impl Encoder {
    /// For a block whose header has this `first_time`.
    #[inline]
    pub fn new(first_time: u64) -> Encoder {
        Encoder { last: first_time }
    }

    /// The end of the last event: what the next one's begin is relative to.
    #[inline]
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Writes an event to the head of `out`; how many bytes it has. Times must grow by their ends.
    ///
    /// # Panics
    /// Where `out` is too short: [`MAX_EVENT`] is enough, and the text of a string more.
    #[inline]
    pub fn put(&mut self, event: &Event<'_>, out: &mut [u8]) -> usize {
        let mut to = Out { bytes: out, at: 0 };
        match *event {
            Event::Call {
                begin,
                duration,
                call,
                face,
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
                to.byte((face as u8) << 4 | path as u8);
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

/// Small numbers of either sign become small ones.
#[inline]
fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

#[inline]
fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// The events of a payload. After an error there are no more.
#[derive(Debug, Clone)]
pub struct Events<'a> {
    bytes: &'a [u8],
    last: u64,
}

impl<'a> Events<'a> {
    /// Of a block with this `first_time`.
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
                let (face, path) = (Face::from_number(by >> 4)?, PathTaken::from_number(by & 0xf)?);
                let (begin, duration) = self.span()?;
                let (peer, bytes) = (self.rank()?, self.number()?);
                let blocks = if first & HAS_BLOCKS != 0 { self.number()? } else { 1 };
                let place = self.place(first)?;
                let weight = if first & HAS_WEIGHT != 0 { self.number()? } else { 1 };
                Event::Call {
                    begin,
                    duration,
                    call,
                    face,
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
