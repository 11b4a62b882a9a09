//! The encoder of events.

#[cfg(doc)]
use super::MAX_EVENT;
use super::{
    CALL, CLOCK, COUNTER, Delays, END, Event, HAS_BLOCKS, HAS_DELAYS, HAS_PLACE, HAS_SITE,
    HAS_WEIGHT, MARK, Place, REGION_BEGIN, REGION_END, SEGMENT, SERVED, SITE, STRING, USAGE, Usage,
    WAIT,
};

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

    /// Encodes an event at the start of `out` and returns its length. Events must come in the order
    /// of their ends.
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
                site,
            } => {
                let blocks_flag = if blocks != 1 { HAS_BLOCKS } else { 0 };
                let place_flag = if place.is_some() { HAS_PLACE } else { 0 };
                let weight_flag = if weight != 1 { HAS_WEIGHT } else { 0 };
                let site_flag = if site.is_some() { HAS_SITE } else { 0 };
                to.byte(CALL | blocks_flag | place_flag | weight_flag | site_flag);
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
                if let Some(site) = site {
                    to.number(site);
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
            Event::Site { site, caller, module, address } => {
                to.byte(SITE);
                to.number(site);
                to.number(caller.map_or(0, |caller| caller.saturating_add(1)));
                to.number(module);
                to.number(address);
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

#[inline]
fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}
