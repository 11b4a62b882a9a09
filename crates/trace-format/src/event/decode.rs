//! The decoder of events.

use super::{Delays, Event, HAS_BLOCKS, HAS_DELAYS, HAS_PLACE, HAS_SITE, Place, Usage};
use crate::format::Fault;
use crate::kinds::Numbered;

/// Decodes the events of a payload. The iterator ends after the first error.
#[derive(Debug, Clone)]
pub struct Events<'a> {
    bytes: &'a [u8],
    last: u64,
    /// The first byte of the event, without the flags of the fields that were decoded.
    pub(super) first: u8,
}

impl<'a> Events<'a> {
    /// Decodes a payload whose header has this `first_time`.
    pub fn new(payload: &'a [u8], first_time: u64) -> Events<'a> {
        Events { bytes: payload, last: first_time, first: 0 }
    }

    pub(super) fn byte(&mut self) -> Result<u8, Fault> {
        let (&byte, rest) = self.bytes.split_first().ok_or(Fault::Truncated)?;
        self.bytes = rest;
        Ok(byte)
    }

    pub(super) fn number(&mut self) -> Result<u64, Fault> {
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

    pub(super) fn signed(&mut self) -> Result<i64, Fault> {
        let value = self.number()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    pub(super) fn kind<K: Numbered>(&mut self) -> Result<K, Fault> {
        K::from_number(self.byte()?)
    }

    /// The lower half of the same byte follows.
    pub(super) fn upper<K: Numbered>(&mut self) -> Result<K, Fault> {
        K::from_number(self.bytes.first().ok_or(Fault::Truncated)? >> 4)
    }

    pub(super) fn lower<K: Numbered>(&mut self) -> Result<K, Fault> {
        K::from_number(self.byte()? & 0xf)
    }

    pub(super) fn time(&mut self) -> Result<u64, Fault> {
        self.last = self.last.wrapping_add(self.signed()? as u64);
        Ok(self.last)
    }

    pub(super) fn length(&mut self) -> Result<u64, Fault> {
        let duration = self.number()?;
        self.last = self.last.wrapping_add(duration);
        Ok(duration)
    }

    pub(super) fn known(&mut self) -> Result<Option<u64>, Fault> {
        Ok(self.number()?.checked_sub(1))
    }

    pub(super) fn rank(&mut self) -> Result<Option<u32>, Fault> {
        let rank = self.known()?.map(u32::try_from).transpose();
        rank.map_err(|_| Fault::Value("rank"))
    }

    pub(super) fn text(&mut self) -> Result<&'a str, Fault> {
        let length = usize::try_from(self.number()?).map_err(|_| Fault::Truncated)?;
        let (text, rest) = self.bytes.split_at_checked(length).ok_or(Fault::Truncated)?;
        self.bytes = rest;
        std::str::from_utf8(text).map_err(|_| Fault::Value("string"))
    }

    fn has(&mut self, flag: u8) -> bool {
        let has = self.first & flag != 0;
        self.first &= !flag;
        has
    }

    pub(super) fn blocks(&mut self) -> Result<u64, Fault> {
        if self.has(HAS_BLOCKS) { self.number() } else { Ok(1) }
    }

    pub(super) fn place(&mut self) -> Result<Option<Place>, Fault> {
        if !self.has(HAS_PLACE) {
            return Ok(None);
        }
        Ok(Some(Place { segment: self.known()?, offset: self.number()? }))
    }

    pub(super) fn site(&mut self) -> Result<Option<u64>, Fault> {
        self.has(HAS_SITE).then(|| self.number()).transpose()
    }

    pub(super) fn usage(&mut self) -> Result<Usage, Fault> {
        let mut usage = Usage {
            user: self.number()?,
            system: self.number()?,
            voluntary: self.number()?,
            involuntary: self.number()?,
            threads: self.number()?,
            delays: None,
        };
        if self.has(HAS_DELAYS) {
            usage.delays = Some(Delays {
                main_cpu: self.number()?,
                main: self.number()?,
                others: self.number()?,
            });
        }
        Ok(usage)
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
