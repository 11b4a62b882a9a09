//! The heads of requests and answers.
//!
//! A request is an unexpected message: 16 bytes of head, then the encoded input, or,
//! where that is too long for a message, the bytes of a memory handle from which it is
//! pulled. The token that names the call travels as the word of the message. An answer
//! goes by the token of its request: 16 bytes of head, then the output, or a handle.
//! Whatever has been pulled is released by the token in the answer's head. A request
//! without an input, and its answer, are short enough for a cell of the node's rings, with
//! a checksum too.
//!
//! Request: magic (1), version (1), flags (1), checksum method (1), function (4), a second
//! hash of its name (4), a hash of these 12 bytes (4). The upper six bits of the flags and
//! the upper two of the method are the number of the context that the call is for. Answer: magic (2),
//! version (1), flags (1), status (4), token to release (8). All little-endian.

use crate::rpc::checksum::Method;
use crate::rpc::na::wire::number;

/// Bytes of a request's head.
pub const REQUEST: usize = 16;
/// Bytes of an answer's head.
pub const ANSWER: usize = 16;

const VERSION: u8 = 3;
const REQUEST_MAGIC: u8 = 0x51;
const ANSWER_MAGIC: u16 = 0x4147;
const QUIET: u8 = 1;
const LONG: u8 = 2;

/// The head of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The function.
    pub id: u32,
    /// A second hash of its name.
    pub check: u32,
    /// How the input is checked, and the output.
    pub method: Method,
    /// Names the call at its origin; travels beside the head.
    pub token: u64,
    /// No output is wanted. Where the input is long there is an answer all the same, as
    /// soon as it was pulled.
    pub quiet: bool,
    /// A memory handle follows, not the input.
    pub long: bool,
    /// Which context of the target is to run it; 0 where nobody has chosen.
    pub context: u8,
}

/// What one can tell of bytes that came as a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A request.
    Request(Request),
    /// Its head is whole, but asks for what nobody knows: the origin can be told.
    Broken(Request),
    /// Nothing at all.
    Rubbish,
}

fn method_byte(method: Method) -> u8 {
    Method::ALL.iter().position(|&m| m == method).unwrap_or(0) as u8
}

/// A quick hash of the head: damage is to be seen, not an attack.
fn mix(head: &[u8]) -> u32 {
    let mut hash = 0x9e37_79b9_7f4a_7c15u64;
    for part in [number(&head[..8]), number(&head[8..12])] {
        hash = (hash ^ part).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash ^= hash >> 32;
    }
    (hash ^ (hash >> 29)) as u32
}

impl Request {
    /// Whether the origin waits for an answer: for the output, or for its input to be pulled.
    pub fn is_answered(&self) -> bool {
        !self.quiet || self.long
    }

    /// Writes it to the first bytes.
    pub fn write(&self, to: &mut [u8]) {
        let flags = if self.quiet { QUIET } else { 0 } | if self.long { LONG } else { 0 };
        let (flags, upper) = (flags | self.context << 2, self.context & 0xc0);
        to[..4].copy_from_slice(&[REQUEST_MAGIC, VERSION, flags, method_byte(self.method) | upper]);
        to[4..8].copy_from_slice(&self.id.to_le_bytes());
        to[8..12].copy_from_slice(&self.check.to_le_bytes());
        let sum = mix(to);
        to[12..16].copy_from_slice(&sum.to_le_bytes());
    }

    /// Looks at what came, with its token.
    pub fn parse(bytes: &[u8], token: u64) -> Parsed {
        let word = |at: usize| number(&bytes[at..at + 4]) as u32;
        if bytes.len() < REQUEST || word(12) != mix(bytes) || bytes[..2] != [REQUEST_MAGIC, VERSION]
        {
            return Parsed::Rubbish;
        }
        let method = Method::ALL.get(usize::from(bytes[3] & 0x3f)).copied();
        let request = Request {
            id: word(4),
            check: word(8),
            method: method.unwrap_or(Method::None),
            token,
            quiet: bytes[2] & QUIET != 0,
            long: bytes[2] & LONG != 0,
            context: bytes[2] >> 2 | bytes[3] & 0xc0,
        };
        if method.is_none() {
            return Parsed::Broken(request);
        }
        Parsed::Request(request)
    }
}

/// The head of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// How the call ended.
    pub status: i32,
    /// A memory handle follows, not the output.
    pub long: bool,
    /// What to release when that is pulled.
    pub release: u64,
}

impl Answer {
    /// Writes it to the first bytes.
    pub fn write(&self, to: &mut [u8]) {
        to[..2].copy_from_slice(&ANSWER_MAGIC.to_le_bytes());
        to[2] = VERSION;
        to[3] = if self.long { LONG } else { 0 };
        to[4..8].copy_from_slice(&self.status.to_le_bytes());
        to[8..16].copy_from_slice(&self.release.to_le_bytes());
    }

    /// Looks at what came.
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
            release: number(&bytes[8..16]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> (Request, Vec<u8>) {
        let request = Request {
            id: 77,
            check: 0xdead_beef,
            method: Method::Crc64,
            token: u64::MAX / 3,
            quiet: true,
            long: false,
            context: 0,
        };
        let mut bytes = vec![7; REQUEST + 5];
        request.write(&mut bytes);
        (request, bytes)
    }

    #[test]
    fn requests_come_back_and_damage_is_seen() {
        let (request, mut bytes) = sample();
        let token = request.token;
        assert_eq!(Request::parse(&bytes, token), Parsed::Request(request));
        let other = Request { token: 3, ..request };
        assert_eq!(Request::parse(&bytes, 3), Parsed::Request(other));
        for context in [1, 63, 64, 200, 255] {
            let other = Request { context, ..request };
            other.write(&mut bytes);
            assert_eq!(Request::parse(&bytes, token), Parsed::Request(other));
        }
        request.write(&mut bytes);
        bytes[3] = Method::ALL.len() as u8;
        let sum = mix(&bytes);
        bytes[12..16].copy_from_slice(&sum.to_le_bytes());
        let unknown = Request { method: Method::None, ..request };
        assert_eq!(Request::parse(&bytes, token), Parsed::Broken(unknown));
        request.write(&mut bytes);
        for at in 0..REQUEST {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                assert_eq!(Request::parse(&damaged, token), Parsed::Rubbish, "byte {at} bit {bit}");
            }
            assert_eq!(Request::parse(&bytes[..at], token), Parsed::Rubbish);
        }
    }

    #[test]
    fn answers_come_back() {
        let answer = Answer { status: -7, long: true, release: 99 };
        let mut bytes = [0; ANSWER];
        answer.write(&mut bytes);
        assert_eq!(Answer::parse(&bytes), Some(answer));
        assert_eq!(Answer::parse(&bytes[..15]), None);
        bytes[0] = 0;
        assert_eq!(Answer::parse(&bytes), None);
    }
}
