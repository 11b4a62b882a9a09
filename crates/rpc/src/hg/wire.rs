//! The heads of requests and answers.
//!
//! A request is an unexpected message: a head, then the encoded input or, if it is too long for a
//! message, its memory handle. The token that identifies the call travels as the word of the
//! message, and also with the answer: a head, then the output or its memory handle. A request
//! without an input and its answer fit into one cell of the node's rings, even with a checksum.
//!
//! Request (lengths in bytes): magic (1), version (1), flags (1), checksum method (1), function
//! (4), second hash of its name (4), hash of these 12 bytes (4). The upper six bits of the flags
//! and the upper two bits of the method hold the number of the context that the call is for. The
//! next bit of the method says that the input has more data.
//!
//! Answer: magic (2), version (1), flags (1), status (4), token to release (8). All fields are
//! little-endian.

use crate::checksum::Method;
use crate::na::wire::number;

pub const REQUEST: usize = 16;
pub const ANSWER: usize = 16;

const VERSION: u8 = 4;
const REQUEST_MAGIC: u8 = 0x51;
const ANSWER_MAGIC: u16 = 0x4147;
const QUIET: u8 = 1;
const LONG: u8 = 2;
/// In the flags of an answer.
const MORE_OUTPUT: u8 = 4;
/// In the byte of the checksum method of a request.
const MORE_INPUT: u8 = 0x20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallRequest {
    pub id: u32,
    pub check: u32,
    pub method: Method,
    /// Identifies the call at its origin; travels beside the head.
    pub token: u64,
    /// The call is one-way. A long input is still answered, as soon as it was pulled.
    pub quiet: bool,
    /// A memory handle follows instead of the input.
    pub long: bool,
    /// The target acquires more data before it runs the call. A one-way call is answered then.
    pub more: bool,
    /// The number of the target's context that runs the call; 0 if the caller has not chosen one.
    pub context: u8,
    /// The number of the context that made the call; travels beside the head.
    pub origin_context: u8,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    Request(CallRequest),
    /// The head is undamaged, but its checksum method is unknown. The origin can be answered.
    Broken(CallRequest),
    Rubbish,
}

fn method_byte(method: Method) -> u8 {
    Method::ALL.iter().position(|&m| m == method).unwrap_or(0) as u8
}

/// Returns a quick hash of the head, which detects damage but not forgery.
fn mix(head: &[u8]) -> u32 {
    let mut hash = 0x9e37_79b9_7f4a_7c15u64;
    for part in [number(&head[..8]), number(&head[8..12])] {
        hash = (hash ^ part).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash ^= hash >> 32;
    }
    (hash ^ (hash >> 29)) as u32
}

impl CallRequest {
    /// Returns whether the origin waits for an answer: also for the end of a pull.
    pub fn is_answered(&self) -> bool {
        self.long || self.is_answered_by_call()
    }

    /// Returns whether the origin waits for an answer after its input has arrived: the output, or
    /// the end of the acquisition of more data.
    pub fn is_answered_by_call(&self) -> bool {
        !self.quiet || self.more
    }

    pub fn write(&self, to: &mut [u8]) {
        let flags = if self.quiet { QUIET } else { 0 } | if self.long { LONG } else { 0 };
        let more = if self.more { MORE_INPUT } else { 0 };
        let (flags, upper) = (flags | self.context << 2, self.context & 0xc0 | more);
        to[..4].copy_from_slice(&[REQUEST_MAGIC, VERSION, flags, method_byte(self.method) | upper]);
        to[4..8].copy_from_slice(&self.id.to_le_bytes());
        to[8..12].copy_from_slice(&self.check.to_le_bytes());
        let sum = mix(to);
        to[12..16].copy_from_slice(&sum.to_le_bytes());
    }

    pub fn parse(bytes: &[u8], token: u64) -> Parsed {
        let word = |at: usize| number(&bytes[at..at + 4]) as u32;
        if bytes.len() < REQUEST || word(12) != mix(bytes) || bytes[..2] != [REQUEST_MAGIC, VERSION]
        {
            return Parsed::Rubbish;
        }
        let method = Method::ALL.get(usize::from(bytes[3] & 0x1f)).copied();
        let request = CallRequest {
            id: word(4),
            check: word(8),
            method: method.unwrap_or(Method::None),
            token,
            quiet: bytes[2] & QUIET != 0,
            long: bytes[2] & LONG != 0,
            more: bytes[3] & MORE_INPUT != 0,
            context: bytes[2] >> 2 | bytes[3] & 0xc0,
            origin_context: 0,
        };
        if method.is_none() {
            return Parsed::Broken(request);
        }
        Parsed::Request(request)
    }
}

/// Returns the number of the context that a request is for, or `None` if it is not a request.
pub fn context_of(bytes: &[u8]) -> Option<u8> {
    match CallRequest::parse(bytes, 0) {
        Parsed::Request(request) => Some(request.context),
        Parsed::Broken(_) | Parsed::Rubbish => None,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    pub status: i32,
    /// A memory handle follows instead of the output.
    pub long: bool,
    /// The origin acquires more data, and then sends the release.
    pub more: bool,
    /// The token that releases a pulled output.
    pub release: u64,
}

impl Answer {
    pub fn write(&self, to: &mut [u8]) {
        to[..2].copy_from_slice(&ANSWER_MAGIC.to_le_bytes());
        to[2] = VERSION;
        to[3] = if self.long { LONG } else { 0 } | if self.more { MORE_OUTPUT } else { 0 };
        to[4..8].copy_from_slice(&self.status.to_le_bytes());
        to[8..16].copy_from_slice(&self.release.to_le_bytes());
    }

    pub fn parse(bytes: &[u8]) -> Option<Answer> {
        if bytes.len() < ANSWER
            || number(&bytes[..2]) != u64::from(ANSWER_MAGIC)
            || bytes[2] != VERSION
        {
            return None;
        }
        Some(Answer {
            status: number(&bytes[4..8]) as u32 as i32,
            long: bytes[3] & LONG != 0,
            more: bytes[3] & MORE_OUTPUT != 0,
            release: number(&bytes[8..16]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> (CallRequest, Vec<u8>) {
        let request = CallRequest {
            id: 77,
            check: 0xdead_beef,
            method: Method::Crc64,
            token: u64::MAX / 3,
            quiet: true,
            long: false,
            more: false,
            context: 0,
            origin_context: 0,
        };
        let mut bytes = vec![7; REQUEST + 5];
        request.write(&mut bytes);
        (request, bytes)
    }

    #[test]
    fn requests_come_back_and_damage_is_seen() {
        let (request, mut bytes) = sample();
        let token = request.token;
        assert_eq!(CallRequest::parse(&bytes, token), Parsed::Request(request));
        let other = CallRequest { token: 3, ..request };
        assert_eq!(CallRequest::parse(&bytes, 3), Parsed::Request(other));
        for context in [1, 63, 64, 200, 255] {
            let other = CallRequest { context, more: context % 2 == 1, ..request };
            other.write(&mut bytes);
            assert_eq!(CallRequest::parse(&bytes, token), Parsed::Request(other));
        }
        request.write(&mut bytes);
        bytes[3] = Method::ALL.len() as u8;
        let sum = mix(&bytes);
        bytes[12..16].copy_from_slice(&sum.to_le_bytes());
        let unknown = CallRequest { method: Method::None, ..request };
        assert_eq!(CallRequest::parse(&bytes, token), Parsed::Broken(unknown));
        request.write(&mut bytes);
        for at in 0..REQUEST {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                assert_eq!(
                    CallRequest::parse(&damaged, token),
                    Parsed::Rubbish,
                    "byte {at} bit {bit}"
                );
            }
            assert_eq!(CallRequest::parse(&bytes[..at], token), Parsed::Rubbish);
        }
    }

    #[test]
    fn answers_come_back() {
        let answer = Answer { status: -7, long: true, more: true, release: 99 };
        let mut bytes = [0; ANSWER];
        answer.write(&mut bytes);
        assert_eq!(Answer::parse(&bytes), Some(answer));
        assert_eq!(Answer::parse(&bytes[..15]), None);
        bytes[0] = 0;
        assert_eq!(Answer::parse(&bytes), None);
    }
}
