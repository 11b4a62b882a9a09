//! The layout of a trace file: a header followed by blocks.
//!
//! Each rank writes one file, such as `DIR/rank-000007.ptrace`. The writer only appends, so a
//! reader can follow a running job. The file of a killed job may end anywhere; a complete file ends
//! with the event [`crate::event::Event::End`]. All numbers are little-endian.
//!
//! | part | bytes | contents |
//! |---|---|---|
//! | file header | 16 | magic `PTRACE\r\n`, version (u32), length of the metadata (u32) |
//! | metadata | variable | JSON, see [`crate::metadata`] |
//! | checksum | 4 | CRC-32/ISCSI of the metadata |
//! | block header | 64 | see [`BlockHeader`] |
//! | payload | variable | events, see [`crate::event`] |
//! | ... | | more blocks |
//!
//! **Invariant.** Each block can be decoded alone: its times are relative to its header, and no
//! event crosses its end. After a damaged block, a reader continues at the next [`BLOCK_MAGIC`]
//! ([`crate::read`]).
//!
//! Times are nanoseconds of the rank's monotonic clock, which all ranks of a host share. Clock
//! samples ([`crate::event::Event::Clock`]) relate the clocks of different hosts.

/// First bytes of a file. The line end exposes transfers in text mode.
pub const FILE_MAGIC: [u8; 8] = *b"PTRACE\r\n";
/// Version of the format that the encoder writes. Version 1 lacks the event `End`, so its files do
/// not show whether they are complete. Version 2 lacks the MPI calls of the program.
pub const VERSION: u32 = 3;
/// Oldest version that the decoder reads.
pub const OLDEST_VERSION: u32 = 1;
/// First bytes of each block.
pub const BLOCK_MAGIC: [u8; 8] = *b"\xF7PTBLK\r\n";
/// Bytes of the file header before the metadata.
pub const FILE_HEADER: usize = 16;
/// Bytes of a block header.
pub const BLOCK_HEADER: usize = 64;
/// Largest payload of a block in bytes.
pub const MAX_PAYLOAD: usize = 1 << 20;
/// Largest metadata in bytes.
pub const MAX_METADATA: usize = 1 << 20;

/// Returns the file name of a rank.
pub fn file_name(rank: usize) -> String {
    format!("rank-{rank:06}.ptrace")
}

/// Returns the rank that a file name belongs to.
pub fn rank_of(file_name: &str) -> Option<usize> {
    file_name.strip_prefix("rank-")?.strip_suffix(".ptrace")?.parse().ok()
}

/// The reason why bytes cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The file does not start with [`FILE_MAGIC`].
    NotATrace,
    /// The file has another version.
    Version(u32),
    /// The bytes end inside the header, the metadata or a payload.
    Truncated,
    /// The block does not start with [`BLOCK_MAGIC`].
    NoBlock,
    /// The named part has a wrong checksum.
    Checksum(&'static str),
    /// The named field has an invalid value.
    Value(&'static str),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fault::NotATrace => f.write_str("this is not a trace file"),
            Fault::Version(version) => {
                write!(
                    f,
                    "the format has version {version}, but this program reads versions \
                     {OLDEST_VERSION} to {VERSION}"
                )
            }
            Fault::Truncated => f.write_str("the data is truncated"),
            Fault::NoBlock => f.write_str("no block starts here"),
            Fault::Checksum(what) => write!(f, "the checksum of the {what} is wrong"),
            Fault::Value(what) => write!(f, "the {what} is invalid"),
        }
    }
}

impl std::error::Error for Fault {}

/// Appends the header and the metadata of a file to `out`.
pub fn encode_file_header(metadata: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(&FILE_MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&(metadata.len() as u32).to_le_bytes());
    out.extend_from_slice(metadata.as_bytes());
    out.extend_from_slice(&crc(metadata.as_bytes()).to_le_bytes());
}

/// The header of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileHeader<'a> {
    /// Version of the format, from [`OLDEST_VERSION`] to [`VERSION`].
    pub version: u32,
    /// The metadata, JSON.
    pub metadata: &'a str,
    /// Position of the first block.
    pub length: usize,
}

/// Decodes the header at the start of `bytes`.
///
/// # Errors
/// Returns [`Fault::Truncated`] if more bytes are needed, and other faults for an invalid header.
pub fn decode_file_header(bytes: &[u8]) -> Result<FileHeader<'_>, Fault> {
    if !bytes.starts_with(&FILE_MAGIC[..bytes.len().min(8)]) {
        return Err(Fault::NotATrace);
    }
    if bytes.len() < FILE_HEADER {
        return Err(Fault::Truncated);
    }
    let version = u32_at(bytes, 8);
    if !(OLDEST_VERSION..=VERSION).contains(&version) {
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
    Ok(FileHeader { version, metadata, length: end + 4 })
}

/// The thread that recorded the events of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Role {
    /// A thread of the program.
    Program = 0,
    /// The progress thread.
    Progress = 1,
    /// The completion thread.
    Completion = 2,
    /// The writer of the file, which adds definitions, clock samples and counters, unsorted.
    Writer = 3,
}

impl Role {
    /// All roles in the order of their numbers.
    pub const ALL: [Role; 4] = [Role::Program, Role::Progress, Role::Completion, Role::Writer];

    /// Returns the name for display.
    pub fn name(self) -> &'static str {
        ["program", "progress thread", "completion thread", "writer"][self as usize]
    }
}

/// The header of a block.
///
/// | offset | type | contents |
/// |---|---|---|
/// | 0 | 8 bytes | [`BLOCK_MAGIC`] |
/// | 8 | u32 | bytes of the payload |
/// | 12 | u32 | number of events |
/// | 16 | u32 | number of the thread in its process |
/// | 20 | u8 | [`Role`] of the thread, then three zero bytes |
/// | 24 | u64 | events that the thread has dropped since its previous block |
/// | 32 | u64 | base of the times in the payload: the end of the thread's previous event |
/// | 40 | u64 | latest end of an event |
/// | 48 | u32 | number of the block within the thread, from 0; a gap means a lost block |
/// | 52 | u32 | zero |
/// | 56 | u32 | CRC-32/ISCSI of the payload |
/// | 60 | u32 | CRC-32/ISCSI of the first 60 bytes |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockHeader {
    /// Bytes of the payload.
    pub payload_bytes: usize,
    /// Number of events.
    pub events: u32,
    /// Number of the thread in its process, from 0.
    pub thread: u32,
    /// Role of the thread.
    pub role: Role,
    /// Events that the thread has dropped since its previous block.
    pub dropped: u64,
    /// Base of the times in the payload. No event of the block ends before it, but a long event may
    /// begin before it.
    pub first_time: u64,
    /// Latest end of an event.
    pub last_time: u64,
    /// Number of the block within the thread.
    pub sequence: u32,
    /// Checksum of the payload.
    pub checksum: u32,
}

impl BlockHeader {
    /// Encodes the header, with the length and the checksum of `payload`.
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

    /// Decodes the header at the start of `bytes`.
    ///
    /// # Errors
    /// Returns `NoBlock` if the magic is missing, `Truncated` if more bytes are needed, and
    /// `Checksum` or `Value` if the header is damaged.
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

    /// Verifies the checksum of a payload.
    ///
    /// # Errors
    /// Returns `Truncated` if `payload` is too short, and `Checksum` if it does not match.
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

/// Computes the checksum of the format, CRC-32/ISCSI.
pub fn crc(bytes: &[u8]) -> u32 {
    // The algorithm has 32 bits.
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
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
    fn file_headers_round_trip_and_faults_are_detected() {
        let mut bytes = Vec::new();
        encode_file_header("{\"rank\":7}", &mut bytes);
        let header = FileHeader { version: VERSION, metadata: "{\"rank\":7}", length: bytes.len() };
        assert_eq!(decode_file_header(&bytes), Ok(header));
        let mut old = bytes.clone();
        old[8] = 1;
        assert_eq!(decode_file_header(&old), Ok(FileHeader { version: 1, ..header }));
        for cut in 0..bytes.len() {
            assert_eq!(decode_file_header(&bytes[..cut]), Err(Fault::Truncated), "{cut}");
        }
        let with = |at: usize| {
            let mut other = bytes.clone();
            other[at] ^= 8;
            decode_file_header(&other).map(|_| ())
        };
        assert_eq!(with(0), Err(Fault::NotATrace));
        assert_eq!(with(8), Err(Fault::Version(11)));
        assert_eq!(with(15), Err(Fault::Value("length of the metadata")));
        assert_eq!(with(18), Err(Fault::Checksum("metadata")));
    }

    #[test]
    fn file_names_contain_the_rank() {
        assert_eq!(file_name(7), "rank-000007.ptrace");
        assert_eq!(rank_of("rank-000007.ptrace"), Some(7));
        assert_eq!(rank_of(&file_name(1_234_567)), Some(1_234_567));
        assert!(rank_of("rank-7.txt").is_none() && rank_of("rank-x.ptrace").is_none());
    }

    #[test]
    fn block_headers_round_trip_and_faults_are_detected() {
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
