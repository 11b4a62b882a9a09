//! Checksums of the parameters of a call.
//!
//! Values are little-endian on the wire.
//!
//! | name | bytes | definition | value of the ASCII digits `123456789` |
//! |---|---|---|---|
//! | `crc16` | 2 | CRC-16/T10-DIF | `d0db` |
//! | `crc32c` | 4 | CRC-32/ISCSI | `e3069283` |
//! | `crc64` | 8 | CRC-64/XZ (ECMA-182) | `995dc9bbdf1939fa` |
//! | `adler32` | 4 | Adler-32 | `091e01de` |
//! | `none` | 0 | | |

use adler2::Adler32;
use crc_fast::{CrcAlgorithm, Digest};

/// A checksum algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Method {
    None,
    /// CRC-16/T10-DIF, two bytes.
    Crc16,
    /// CRC-32/ISCSI, four bytes.
    Crc32c,
    /// CRC-64/XZ, eight bytes.
    #[default]
    Crc64,
    Adler32,
}

impl Method {
    /// All methods, in the order of the table in the module documentation, [`Method::None`] last.
    pub const ALL: &[Method] =
        &[Method::Crc16, Method::Crc32c, Method::Crc64, Method::Adler32, Method::None];

    /// Returns the method with this name, ignoring ASCII case. `crc32` is an alias of `crc32c`.
    pub fn from_name(name: &str) -> Option<Method> {
        let known = Method::ALL.iter().copied().find(|m| m.name().eq_ignore_ascii_case(name));
        known.or_else(|| name.eq_ignore_ascii_case("crc32").then_some(Method::Crc32c))
    }

    pub fn name(self) -> &'static str {
        match self {
            Method::None => "none",
            Method::Crc16 => "crc16",
            Method::Crc32c => "crc32c",
            Method::Crc64 => "crc64",
            Method::Adler32 => "adler32",
        }
    }

    /// Returns the length of a value in bytes.
    pub fn size(self) -> usize {
        match self {
            Method::None => 0,
            Method::Crc16 => 2,
            Method::Crc32c | Method::Adler32 => 4,
            Method::Crc64 => 8,
        }
    }

    fn crc(self) -> Option<CrcAlgorithm> {
        match self {
            Method::Crc16 => Some(CrcAlgorithm::Crc16T10Dif),
            Method::Crc32c => Some(CrcAlgorithm::Crc32Iscsi),
            Method::Crc64 => Some(CrcAlgorithm::Crc64Xz),
            Method::Adler32 | Method::None => None,
        }
    }

    pub fn sum(self, bytes: &[u8]) -> u64 {
        let mut sum = Checksum::new(self);
        sum.update(bytes);
        sum.value()
    }
}

#[derive(Debug)]
enum SumState {
    None,
    Crc(CrcAlgorithm, Crc),
    Adler(Adler32),
}

/// The state of a CRC. A digest is large and slow to create, and parameters are usually summed in
/// one call, at their end. A digest is therefore created only when a second call follows.
#[derive(Debug)]
enum Crc {
    /// The CRC of the bytes of one call, or 0 if there was none. A CRC of 0 means that the register
    /// holds its initial value again, so both cases continue in the same way.
    Value(u64),
    Digest(Box<Digest>),
}

impl Crc {
    fn update(&mut self, algorithm: CrcAlgorithm, bytes: &[u8]) {
        match self {
            Crc::Value(0) => *self = Crc::Value(crc_fast::checksum(algorithm, bytes)),
            Crc::Value(value) => {
                // The CRC is the register, inverted by some algorithms.
                let inverted = match algorithm {
                    CrcAlgorithm::Crc32Iscsi => u64::from(u32::MAX),
                    CrcAlgorithm::Crc64Xz => u64::MAX,
                    _ => 0,
                };
                let mut digest = Digest::new_with_init_state(algorithm, *value ^ inverted);
                digest.update(bytes);
                *self = Crc::Digest(Box::new(digest));
            }
            Crc::Digest(digest) => digest.update(bytes),
        }
    }

    fn value(&self) -> u64 {
        match self {
            Crc::Value(value) => *value,
            Crc::Digest(digest) => digest.finalize(),
        }
    }
}

/// A checksum that accumulates.
#[derive(Debug)]
pub struct Checksum {
    method: Method,
    state: SumState,
}

impl Checksum {
    pub fn new(method: Method) -> Checksum {
        let state = match method.crc() {
            Some(algorithm) => SumState::Crc(algorithm, Crc::Value(0)),
            None if method == Method::Adler32 => SumState::Adler(Adler32::new()),
            None => SumState::None,
        };
        Checksum { method, state }
    }

    pub fn method(&self) -> Method {
        self.method
    }

    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.state {
            SumState::None => {}
            SumState::Crc(..) if bytes.is_empty() => {}
            SumState::Crc(algorithm, crc) => crc.update(*algorithm, bytes),
            SumState::Adler(sum) => sum.write_slice(bytes),
        }
    }

    pub fn reset(&mut self) {
        match &mut self.state {
            SumState::None => {}
            SumState::Crc(_, crc) => *crc = Crc::Value(0),
            SumState::Adler(sum) => *sum = Adler32::new(),
        }
    }

    /// Returns the checksum of the bytes so far, 0 for [`Method::None`]. More bytes may follow.
    pub fn value(&self) -> u64 {
        match &self.state {
            SumState::None => 0,
            SumState::Crc(_, crc) => crc.value(),
            SumState::Adler(sum) => u64::from(sum.checksum()),
        }
    }

    /// Returns the value in its wire format. Only the first [`Method::size`] bytes count.
    pub fn bytes(&self) -> [u8; 8] {
        self.value().to_le_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGITS: &[u8] = b"123456789";

    #[test]
    fn values_of_the_definitions() {
        assert_eq!(Method::Crc16.sum(DIGITS), 0xd0db);
        assert_eq!(Method::Crc32c.sum(DIGITS), 0xe306_9283);
        assert_eq!(Method::Crc64.sum(DIGITS), 0x995d_c9bb_df19_39fa);
        assert_eq!(Method::Adler32.sum(DIGITS), 0x091e_01de);
        assert_eq!(Method::None.sum(DIGITS), 0);
    }

    #[test]
    fn pieces_make_the_whole() {
        let bytes: Vec<u8> =
            (0..if cfg!(miri) { 500 } else { 5000u32 }).map(|i| (i * 31 % 251) as u8).collect();
        for &method in Method::ALL {
            let whole = method.sum(&bytes);
            let mut sum = Checksum::new(method);
            for round in 0..2 {
                for piece in bytes.chunks(1 + 37 * (round + 1)) {
                    sum.update(piece);
                    let _ = sum.value(); // reading the value changes nothing
                }
                assert_eq!(sum.value(), whole, "{}", method.name());
                sum.reset();
            }
            assert_eq!(sum.value(), method.sum(&[]));
        }
    }

    #[test]
    fn any_bit_matters() {
        let mut bytes = vec![0x5a_u8; 333];
        for method in Method::ALL.iter().copied().filter(|&m| m != Method::None) {
            let whole = method.sum(&bytes);
            for bit in 0..bytes.len() * 8 {
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert_ne!(method.sum(&bytes), whole, "{} bit {bit}", method.name());
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }

    #[test]
    fn nothing_has_the_value_of_its_definition() {
        for (method, algorithm) in [
            (Method::Crc16, CrcAlgorithm::Crc16T10Dif),
            (Method::Crc32c, CrcAlgorithm::Crc32Iscsi),
            (Method::Crc64, CrcAlgorithm::Crc64Xz),
        ] {
            assert_eq!(method.sum(&[]), crc_fast::checksum(algorithm, &[]), "{}", method.name());
        }
        assert_eq!(Method::Adler32.sum(&[]), 1);
    }

    #[test]
    fn names() {
        for &method in Method::ALL {
            assert_eq!(Method::from_name(method.name()), Some(method));
            assert_eq!(Method::from_name(&method.name().to_uppercase()), Some(method));
        }
        assert_eq!(Method::from_name("crc32"), Some(Method::Crc32c));
        for name in portolan_base::config::CHECKSUMS {
            assert!(Method::from_name(name).is_some(), "the table of variables knows {name}");
        }
        for name in ["", "crc", "crc64 ", "md5"] {
            assert_eq!(Method::from_name(name), None);
        }
    }
}
