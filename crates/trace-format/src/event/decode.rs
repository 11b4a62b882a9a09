//! The decoder of events.

use super::{
    CALL, CLOCK, COUNTER, Call, Cause, Delays, END, Event, HAS_BLOCKS, HAS_DELAYS, HAS_PLACE,
    HAS_SITE, Interface, MARK, MPI, MpiCall, PathTaken, Place, REGION_BEGIN, REGION_END, SEGMENT,
    SERVED, SITE, STRING, SegmentKind, Served, USAGE, Usage, WAIT, WAS_SAMPLED,
};
use crate::format::Fault;

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
                if first & WAS_SAMPLED != 0 {
                    return Err(Fault::Value("flag of a sampled call"));
                }
                let site = if first & HAS_SITE != 0 { Some(self.number()?) } else { None };
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
            SITE => Event::Site {
                site: self.number()?,
                caller: self.number()?.checked_sub(1),
                module: self.number()?,
                address: self.number()?,
            },
            MPI => {
                let call = MpiCall::from_number(self.byte()?)?;
                let (begin, duration) = self.span()?;
                let (peer, bytes, communicator) = (self.rank()?, self.number()?, self.number()?);
                let site = if first & HAS_SITE != 0 { Some(self.number()?) } else { None };
                Event::Mpi { begin, duration, call, peer, bytes, communicator, site }
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
