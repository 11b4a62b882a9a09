//! The file of a rank's trace: a header, then blocks.
//!
//! One file a rank, `DIR/rank-000007.ptrace`. It is written in order and never changed, so a reader
//! may follow a job that runs, and the file of a job that was killed ends somewhere in a block. All
//! numbers are little-endian.
//!
//! | part | bytes | holds |
//! |---|---|---|
//! | file header | 16 | magic `PTRACE\r\n`, version (u32), length of the metadata (u32) |
//! | metadata | as told | JSON, see [`super::metadata`] |
//! | checksum | 4 | CRC-32/ISCSI of the metadata |
//! | block header | 64 | see [`BlockHeader`] |
//! | payload | as told | events, see [`super::event`] |
//! | block header | 64 | and so on |
//!
//! **Invariant.** A block is understood by itself: times in it are relative to its header, and no
//! event crosses its end. So a reader that meets a damaged block searches the next
//! [`BLOCK_MAGIC`] and goes on ([`super::read`]). Both checksums of a block are right, or it is damaged.
//!
//! Times are nanoseconds of the rank's monotonic clock. Ranks of one host share that clock; those of
//! others are aligned by the clock samples in the file ([`super::event::Event::Clock`]).

use crc_fast::{CrcAlgorithm, checksum};

/// At the head of a file. The line end shows a transfer that was made as text.
pub const FILE_MAGIC: [u8; 8] = *b"PTRACE\r\n";
/// The version that this module writes, and the only one that it reads.
pub const VERSION: u32 = 1;
/// At the head of each block.
pub const BLOCK_MAGIC: [u8; 8] = *b"\xF7PTBLK\r\n";
/// Bytes of the file header in front of the metadata.
pub const FILE_HEADER: usize = 16;
/// Bytes of a block header.
pub const BLOCK_HEADER: usize = 64;
/// The longest payload of a block.
pub const MAX_PAYLOAD: usize = 1 << 20;
/// The longest metadata.
pub const MAX_METADATA: usize = 1 << 20;

/// The name of a rank's file.
pub fn file_name(rank: usize) -> String {
    format!("rank-{rank:06}.ptrace")
}

/// The rank whose file has this name.
pub fn rank_of(file_name: &str) -> Option<usize> {
    file_name.strip_prefix("rank-")?.strip_suffix(".ptrace")?.parse().ok()
}

/// Why bytes are no trace, or no block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The file does not begin as a trace does.
    NotATrace,
    /// A trace of another version.
    Version(u32),
    /// The bytes end before the header, the metadata or the payload do.
    Truncated,
    /// What stands here is no block: the magic is missing.
    NoBlock,
    /// A checksum is wrong, of what is named.
    Checksum(&'static str),
    /// A value that cannot be, of what is named.
    Value(&'static str),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fault::NotATrace => f.write_str("it does not begin as a trace does"),
            Fault::Version(version) => {
                write!(f, "it has version {version} of the format, and {VERSION} is known")
            }
            Fault::Truncated => f.write_str("it ends too early"),
            Fault::NoBlock => f.write_str("there is no block"),
            Fault::Checksum(what) => write!(f, "the checksum of the {what} is wrong"),
            Fault::Value(what) => write!(f, "the {what} cannot be"),
        }
    }
}

impl std::error::Error for Fault {}

/// Appends header and metadata of a file.
pub fn encode_file_header(metadata: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(&FILE_MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&(metadata.len() as u32).to_le_bytes());
    out.extend_from_slice(metadata.as_bytes());
    out.extend_from_slice(&crc(metadata.as_bytes()).to_le_bytes());
}

/// The metadata at the head of `bytes`, and where the first block begins.
///
/// # Errors
/// `Truncated` where there are too few bytes, so that a reader of a stream may bring more.
pub fn decode_file_header(bytes: &[u8]) -> Result<(&str, usize), Fault> {
    if !bytes.starts_with(&FILE_MAGIC[..bytes.len().min(8)]) {
        return Err(Fault::NotATrace);
    }
    if bytes.len() < FILE_HEADER {
        return Err(Fault::Truncated);
    }
    let version = u32_at(bytes, 8);
    if version != VERSION {
        return Err(Fault::Version(version));
    }
    let length = u32_at(bytes, 12) as usize;
    if length > MAX_METADATA {
        return Err(Fault::Value("length of the metadata"));
    }
    let end = FILE_HEADER + length;
    if bytes.len() < end + 4 {
        return Err(Fault::Truncated);
    }
    let metadata = &bytes[FILE_HEADER..end];
    if crc(metadata) != u32_at(bytes, end) {
        return Err(Fault::Checksum("metadata"));
    }
    let metadata = std::str::from_utf8(metadata).map_err(|_| Fault::Value("metadata's text"))?;
    Ok((metadata, end + 4))
}

/// What the thread is whose events a block has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Role {
    /// A thread of the program.
    Program = 0,
    /// The progress thread.
    Progress = 1,
    /// The completion thread.
    Completion = 2,
    /// No thread: definitions, clock samples and counters, which the writer of the file adds. Their times are in
    /// no order.
    Writer = 3,
}

impl Role {
    /// All of them, by value.
    pub const ALL: [Role; 4] = [Role::Program, Role::Progress, Role::Completion, Role::Writer];

    /// For people.
    pub fn name(self) -> &'static str {
        ["program", "progress thread", "completion thread", "writer"][self as usize]
    }
}

/// The head of a block.
///
/// | at | type | holds |
/// |---|---|---|
/// | 0 | 8 bytes | [`BLOCK_MAGIC`] |
/// | 8 | u32 | bytes of the payload |
/// | 12 | u32 | events in it |
/// | 16 | u32 | the thread's number in its process |
/// | 20 | u8 | its [`Role`]; three zeros follow |
/// | 24 | u64 | events of the thread that were dropped since its block before this one |
/// | 32 | u64 | what times in the payload are relative to: where the thread's events before this block end |
/// | 40 | u64 | the latest end of an event |
/// | 48 | u32 | this block's number among those of the thread, from 0: a gap is a lost block |
/// | 52 | u32 | zero |
/// | 56 | u32 | CRC-32/ISCSI of the payload |
/// | 60 | u32 | CRC-32/ISCSI of the 60 bytes before |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockHeader {
    /// Bytes of the payload.
    pub payload_bytes: usize,
    /// Events in it.
    pub events: u32,
    /// The number of the thread in its process, from 0.
    pub thread: u32,
    /// What the thread is.
    pub role: Role,
    /// Events of the thread that were dropped since its block before this one.
    pub dropped: u64,
    /// The time that those of the payload are relative to: no event here ends before it, but a long one may begin
    /// before it.
    pub first_time: u64,
    /// The latest end of an event.
    pub last_time: u64,
    /// This block's number among those of the thread.
    pub sequence: u32,
    /// The payload's checksum.
    pub checksum: u32,
}

impl BlockHeader {
    /// The header's bytes, with the checksum of `payload`, whose length it tells.
    pub fn encode(&self, payload: &[u8]) -> [u8; BLOCK_HEADER] {
        debug_assert!(payload.len() <= MAX_PAYLOAD);
        let mut bytes = [0; BLOCK_HEADER];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &BLOCK_MAGIC);
        put(8, &(payload.len() as u32).to_le_bytes());
        put(12, &self.events.to_le_bytes());
        put(16, &self.thread.to_le_bytes());
        put(20, &[self.role as u8]);
        put(24, &self.dropped.to_le_bytes());
        put(32, &self.first_time.to_le_bytes());
        put(40, &self.last_time.to_le_bytes());
        put(48, &self.sequence.to_le_bytes());
        put(56, &crc(payload).to_le_bytes());
        let sum = crc(&bytes[..60]);
        bytes[60..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// The header at the head of `bytes`.
    ///
    /// # Errors
    /// `NoBlock` where another thing stands there, `Truncated` where bytes are missing, `Checksum` or
    /// `Value` where it is damaged.
    pub fn decode(bytes: &[u8]) -> Result<BlockHeader, Fault> {
        if !bytes.starts_with(&BLOCK_MAGIC[..bytes.len().min(8)]) {
            return Err(Fault::NoBlock);
        }
        if bytes.len() < BLOCK_HEADER {
            return Err(Fault::Truncated);
        }
        if crc(&bytes[..60]) != u32_at(bytes, 60) {
            return Err(Fault::Checksum("block's header"));
        }
        let payload_bytes = u32_at(bytes, 8) as usize;
        if payload_bytes > MAX_PAYLOAD {
            return Err(Fault::Value("length of the payload"));
        }
        let role = Role::ALL.get(bytes[20] as usize).ok_or(Fault::Value("thread's role"))?;
        Ok(BlockHeader {
            payload_bytes,
            events: u32_at(bytes, 12),
            thread: u32_at(bytes, 16),
            role: *role,
            dropped: u64_at(bytes, 24),
            first_time: u64_at(bytes, 32),
            last_time: u64_at(bytes, 40),
            sequence: u32_at(bytes, 48),
            checksum: u32_at(bytes, 56),
        })
    }

    /// # Errors
    /// `Checksum` where the payload is not that of this header.
    pub fn check(&self, payload: &[u8]) -> Result<(), Fault> {
        if payload.len() < self.payload_bytes {
            return Err(Fault::Truncated);
        }
        if crc(&payload[..self.payload_bytes]) != self.checksum {
            return Err(Fault::Checksum("block"));
        }
        Ok(())
    }
}

/// The checksum of the format.
pub fn crc(bytes: &[u8]) -> u32 {
    checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_header_comes_back_and_faults_are_seen() {
        let mut bytes = Vec::new();
        encode_file_header("{\"rank\":7}", &mut bytes);
        assert_eq!(decode_file_header(&bytes), Ok(("{\"rank\":7}", bytes.len())));
        for cut in 0..bytes.len() {
            assert_eq!(decode_file_header(&bytes[..cut]), Err(Fault::Truncated), "{cut}");
        }
        let with = |at: usize| {
            let mut other = bytes.clone();
            other[at] ^= 4;
            decode_file_header(&other).map(|_| ())
        };
        assert_eq!(with(0), Err(Fault::NotATrace));
        assert_eq!(with(8), Err(Fault::Version(5)));
        assert_eq!(with(15), Err(Fault::Value("length of the metadata")));
        assert_eq!(with(18), Err(Fault::Checksum("metadata")));
    }

    #[test]
    fn names_tell_ranks() {
        assert_eq!(file_name(7), "rank-000007.ptrace");
        assert_eq!(rank_of("rank-000007.ptrace"), Some(7));
        assert_eq!(rank_of(&file_name(1_234_567)), Some(1_234_567));
        assert!(rank_of("rank-7.txt").is_none() && rank_of("rank-x.ptrace").is_none());
    }

    #[test]
    fn a_block_header_comes_back_and_faults_are_seen() {
        let payload = [1, 2, 3];
        let header = BlockHeader {
            payload_bytes: 3,
            events: 9,
            thread: 2,
            role: Role::Completion,
            dropped: 1 << 40,
            first_time: 5,
            last_time: u64::MAX,
            sequence: 77,
            checksum: crc(&payload),
        };
        let bytes = header.encode(&payload);
        assert_eq!(BlockHeader::decode(&bytes), Ok(header));
        assert_eq!(header.check(&payload), Ok(()));
        assert_eq!(header.check(&payload[..2]), Err(Fault::Truncated));
        assert_eq!(header.check(&[1, 2, 4]), Err(Fault::Checksum("block")));
        assert_eq!(BlockHeader::decode(&bytes[..63]), Err(Fault::Truncated));
        for at in 0..BLOCK_HEADER {
            let mut other = bytes;
            other[at] ^= 1;
            let expected = if at < 8 { Fault::NoBlock } else { Fault::Checksum("block's header") };
            assert_eq!(BlockHeader::decode(&other), Err(expected), "{at}");
        }
    }
}
