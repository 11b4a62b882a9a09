//! The encoder of events.

#[cfg(doc)]
use super::MAX_EVENT;
use super::{
    Delays, Event, HAS_BLOCKS, HAS_DELAYS, HAS_PLACE, HAS_SITE, Interface, PathTaken, Place, Usage,
};
use crate::kinds::Numbered;

/// The types of the events that have a fast path.
const CALL: u8 = 1;
const WAIT: u8 = 2;

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
                let gap = zigzag(begin.wrapping_sub(self.last) as i64);
                let to = known(peer.map(u64::from));
                let (number, segment, offset) = match place {
                    None => (site.unwrap_or(0), 0, 0),
                    Some(place) => (site.unwrap_or(0), known(place.segment), place.offset),
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
                let gap = zigzag(begin.wrapping_sub(self.last) as i64);
                let to = known(peer.map(u64::from));
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
        let mut to = Out { bytes: out, at: 0, last: self.last };
        to.event(event);
        self.last = to.last;
        to.at
    }
}

/// An event that is being encoded.
pub(super) struct Out<'a> {
    bytes: &'a mut [u8],
    at: usize,
    last: u64,
}

impl Out<'_> {
    #[inline]
    pub(super) fn byte(&mut self, byte: u8) {
        self.bytes[self.at] = byte;
        self.at += 1;
    }

    #[inline]
    pub(super) fn number(&mut self, mut value: u64) {
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

    pub(super) fn signed(&mut self, value: i64) {
        self.number(zigzag(value));
    }

    pub(super) fn kind(&mut self, kind: impl Numbered) {
        self.byte(kind.number());
    }

    /// The lower half of the same byte follows.
    pub(super) fn upper(&mut self, kind: impl Numbered) {
        self.byte(kind.number() << 4);
    }

    pub(super) fn lower(&mut self, kind: impl Numbered) {
        self.bytes[self.at - 1] |= kind.number();
    }

    pub(super) fn time(&mut self, time: u64) {
        self.signed(time.wrapping_sub(self.last) as i64);
        self.last = time;
    }

    pub(super) fn length(&mut self, duration: u64) {
        self.number(duration);
        self.last = self.last.wrapping_add(duration);
    }

    pub(super) fn known(&mut self, value: Option<u64>) {
        self.number(known(value));
    }

    pub(super) fn rank(&mut self, rank: Option<u32>) {
        self.known(rank.map(u64::from));
    }

    pub(super) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes[self.at..self.at + text.len()].copy_from_slice(text.as_bytes());
        self.at += text.len();
    }

    fn flag(&mut self, flag: u8) {
        self.bytes[0] |= flag;
    }

    pub(super) fn blocks(&mut self, blocks: u64) {
        if blocks != 1 {
            self.flag(HAS_BLOCKS);
            self.number(blocks);
        }
    }

    pub(super) fn place(&mut self, place: Option<Place>) {
        if let Some(Place { segment, offset }) = place {
            self.flag(HAS_PLACE);
            self.known(segment);
            self.number(offset);
        }
    }

    pub(super) fn site(&mut self, site: Option<u64>) {
        if let Some(site) = site {
            self.flag(HAS_SITE);
            self.number(site);
        }
    }

    pub(super) fn usage(&mut self, usage: Usage) {
        let Usage { user, system, voluntary, involuntary, threads, delays } = usage;
        for value in [user, system, voluntary, involuntary, threads] {
            self.number(value);
        }
        if let Some(Delays { main_cpu, main, others }) = delays {
            self.flag(HAS_DELAYS);
            for value in [main_cpu, main, others] {
                self.number(value);
            }
        }
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
fn known(value: Option<u64>) -> u64 {
    value.map_or(0, |value| value.saturating_add(1))
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
