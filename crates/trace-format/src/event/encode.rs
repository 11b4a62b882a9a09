//! The encoder of events.

#[cfg(doc)]
use super::MAX_EVENT;
use super::{
    CALL, CLOCK, COUNTER, Delays, END, Event, HAS_BLOCKS, HAS_DELAYS, HAS_PLACE, HAS_SITE,
    Interface, MARK, MPI, PathTaken, Place, REGION_BEGIN, REGION_END, SEGMENT, SERVED, SITE,
    STRING, USAGE, Usage, WAIT,
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
    #[inline(always)]
    pub fn put(&mut self, event: &Event<'_>, out: &mut [u8]) -> usize {
        // The usual call and wait: numbers have fixed lengths, so that few stores suffice. Others
        // are copied, because then the compiler can keep the event of the caller in registers.
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
                site,
            } => {
                let (gap, to) = (zigzag(begin.wrapping_sub(self.last) as i64), rank(peer));
                let (number, segment, offset) = match place {
                    None => (site.unwrap_or(0), 0, 0),
                    Some(place) => (site.unwrap_or(0), segment(place), place.offset),
                };
                if (gap | duration | offset) >= 1 << 14
                    || segment >= 1 << 28
                    || (to | bytes | number) >= 1 << 7
                    || blocks != 1
                {
                    return self.put_any(&{ *event }, out);
                }
                let place_flag = if place.is_some() { HAS_PLACE } else { 0 };
                let site_flag = if site.is_some() { HAS_SITE } else { 0 };
                let (kind, taken) = (CALL | place_flag | site_flag, taken(interface, path));
                let (call, [gap, rest]) = (call as u8, two(gap));
                let (to, bytes) = (to as u8, bytes as u8);
                let mut at = if duration < 1 << 7 {
                    let time = duration as u8;
                    out[..8].copy_from_slice(&[kind, call, taken, gap, rest, time, to, bytes]);
                    8
                } else {
                    let [a, b] = two(duration);
                    out[..9].copy_from_slice(&[kind, call, taken, gap, rest, a, b, to, bytes]);
                    9
                };
                if place.is_some() {
                    let ([a, b], [c, d]) = (two(segment), two(segment >> 14));
                    let [e, f] = two(offset);
                    out[at..at + 6].copy_from_slice(&[a, b | 0x80, c, d, e, f]);
                    at += 6;
                }
                if site.is_some() {
                    out[at] = number as u8;
                    at += 1;
                }
                self.last = begin.wrapping_add(duration);
                at
            }
            Event::Wait { begin, duration, cause, peer, place } => {
                let (gap, to) = (zigzag(begin.wrapping_sub(self.last) as i64), rank(peer));
                if (gap | duration) >= 1 << 14 || to >= 1 << 7 || place.is_some() {
                    return self.put_any(&{ *event }, out);
                }
                let ([gap, rest], [a, b]) = (two(gap), two(duration));
                out[..7].copy_from_slice(&[WAIT, cause as u8, gap, rest, a, b, to as u8]);
                self.last = begin.wrapping_add(duration);
                7
            }
            _ => self.put_any(event, out),
        }
    }

    #[inline(never)]
    fn put_any(&mut self, event: &Event<'_>, out: &mut [u8]) -> usize {
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
                site,
            } => {
                let blocks_flag = if blocks != 1 { HAS_BLOCKS } else { 0 };
                let place_flag = if place.is_some() { HAS_PLACE } else { 0 };
                let site_flag = if site.is_some() { HAS_SITE } else { 0 };
                to.byte(CALL | blocks_flag | place_flag | site_flag);
                to.byte(call as u8);
                to.byte(taken(interface, path));
                self.span(&mut to, begin, duration);
                to.rank(peer);
                to.number(bytes);
                if blocks != 1 {
                    to.number(blocks);
                }
                if let Some(place) = place {
                    to.place(place);
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
            Event::Mpi { begin, duration, call, peer, bytes, communicator, site } => {
                to.byte(MPI | if site.is_some() { HAS_SITE } else { 0 });
                to.byte(call as u8);
                self.span(&mut to, begin, duration);
                to.rank(peer);
                to.number(bytes);
                to.number(communicator);
                if let Some(site) = site {
                    to.number(site);
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
        if value < 0x4000 {
            self.bytes[self.at..self.at + 2].copy_from_slice(&two(value));
            self.at += 2;
            return;
        }
        while value >= 0x80 {
            self.byte(value as u8 | 0x80);
            value >>= 7;
        }
        self.byte(value as u8);
    }

    #[inline]
    fn rank(&mut self, rank: Option<u32>) {
        self.number(self::rank(rank));
    }

    #[inline]
    fn place(&mut self, place: Place) {
        self.number(segment(place));
        self.number(place.offset);
    }
}

#[inline]
fn taken(interface: Interface, path: PathTaken) -> u8 {
    (interface as u8) << 4 | path as u8
}

/// A number below 2^14 as two bytes, even if one would do.
#[inline]
fn two(number: u64) -> [u8; 2] {
    [number as u8 | 0x80, (number >> 7) as u8 & 0x7f]
}

/// Encodes `None` as zero.
#[inline]
fn segment(place: Place) -> u64 {
    place.segment.map_or(0, |segment| segment.saturating_add(1))
}

/// Encodes `None` as zero.
#[inline]
fn rank(rank: Option<u32>) -> u64 {
    rank.map_or(0, |rank| u64::from(rank) + 1)
}

#[inline]
fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Call, Cause, Events, MAX_EVENT};

    #[test]
    fn short_events_come_back_near_the_limits_of_their_encoding() {
        let near: [u64; 4] = [0, 1, 127, 128];
        let durations = [0, 127, 128, (1 << 14) - 1, 1 << 14];
        let gaps: [i64; 8] = [-8193, -8192, -1, 0, 63, 64, 8191, 8192];
        let segments = [0, 1, (1 << 14) - 1, 1 << 14, (1 << 28) - 2, (1 << 28) - 1];
        let offsets = [0, 127, 128, (1 << 14) - 1, 1 << 14];
        let place = |segment: u64, offset| Place { segment: segment.checked_sub(1), offset };
        let places = segments.iter().flat_map(|&s| offsets.map(|offset| Some(place(s, offset))));
        let places: Vec<_> = places.chain([None]).collect();
        let all = (0..64 * durations.len()).flat_map(|n| gaps.map(|gap| (n, gap)));
        for ((n, gap), &place) in all.flat_map(|of| places.iter().map(move |place| (of, place))) {
            let [bytes, peer, site] = [0, 2, 4].map(|shift| near[n >> shift & 3]);
            let duration = durations[n >> 6];
            let (first, call, interface) = (10_000u64, Call::Get, Interface::X10);
            let event = Event::Call {
                begin: first.wrapping_add_signed(gap),
                duration,
                call,
                interface,
                path: PathTaken::Ring,
                peer: peer.checked_sub(1).map(|peer| peer as u32),
                bytes,
                blocks: 1,
                place,
                site: site.checked_sub(1),
            };
            comes_back(event, first);
        }
        for ((gap, duration), peer) in gaps
            .iter()
            .flat_map(|&gap| durations.map(|duration| (gap, duration)))
            .flat_map(|of| near.map(|peer| (of, peer)))
        {
            let (begin, peer) = (10_000u64.wrapping_add_signed(gap), peer.checked_sub(1));
            let (peer, place) = (peer.map(|peer| peer as u32), None);
            comes_back(Event::Wait { begin, duration, cause: Cause::Lock, peer, place }, 10_000);
        }
    }

    fn comes_back(event: Event<'static>, first: u64) {
        let (mut out, mut encoder) = ([0; MAX_EVENT], Encoder::new(first));
        let length = encoder.put(&event, &mut out);
        let end = Event::End { time: encoder.last() };
        let all = length + encoder.put(&end, &mut out[length..]);
        let back: Result<Vec<_>, _> = Events::new(&out[..all], first).collect();
        assert_eq!(back, Ok(vec![event, end]));
    }
}
