//! Reads a trace's file as a stream, past damage.
//!
//! Memory is bounded by the longest block, whatever the length of the file. What is damaged is told, with its
//! place in the file, and what follows is found by the next block's magic.

use super::event::Events;
use super::format::{
    BLOCK_HEADER, BLOCK_MAGIC, BlockHeader, FILE_HEADER, Fault, MAX_METADATA, MAX_PAYLOAD,
    decode_file_header,
};
use std::io::{self, Read};

/// A whole block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Where it begins in the file.
    pub at: u64,
    /// Its head.
    pub header: BlockHeader,
    /// Its events, encoded.
    pub payload: Vec<u8>,
}

impl Block {
    /// Its events. An error can be only of an encoder: the checksum was right.
    pub fn events(&self) -> Events<'_> {
        Events::new(&self.payload, self.header.first_time)
    }
}

/// Bytes of a file that are no whole block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Where they begin in the file.
    pub at: u64,
    /// How many they are.
    pub bytes: u64,
    /// What is wrong. `Truncated` at the end of a file is what a killed job leaves.
    pub fault: Fault,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes at {} are lost: {}", self.bytes, self.at, self.fault)
    }
}

/// What stands next in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// A block.
    Block(Block),
    /// Something else. A later part may follow.
    Damage(Damage),
}

/// Reads one file.
#[derive(Debug)]
pub struct Reader<R> {
    from: R,
    /// Bytes that were read and not used: from `start` on.
    held: Vec<u8>,
    start: usize,
    /// Where `held[start]` stands in the file.
    at: u64,
    metadata: String,
    ended: bool,
}

/// Why a file cannot be read at all.
#[derive(Debug)]
pub enum OpenError {
    /// The system says.
    Io(io::Error),
    /// The head is not that of a trace.
    Fault(Fault),
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OpenError::Io(error) => error.fmt(f),
            OpenError::Fault(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> OpenError {
        OpenError::Io(error)
    }
}

impl<R: Read> Reader<R> {
    /// Reads the head. `from` needs no buffer of its own.
    ///
    /// # Errors
    /// Where it cannot be read, or is not the head of a trace.
    pub fn open(from: R) -> Result<Reader<R>, OpenError> {
        let mut reader = Reader {
            from,
            held: Vec::new(),
            start: 0,
            at: 0,
            metadata: String::new(),
            ended: false,
        };
        let mut want = FILE_HEADER;
        loop {
            reader.fill(want)?;
            match decode_file_header(reader.rest()) {
                Ok((metadata, length)) => {
                    reader.metadata = metadata.to_string();
                    reader.skip(length);
                    return Ok(reader);
                }
                Err(Fault::Truncated) if !reader.ended && want == FILE_HEADER => {
                    want = FILE_HEADER + MAX_METADATA + 4;
                }
                Err(fault) => return Err(OpenError::Fault(fault)),
            }
        }
    }

    /// What the file says of its rank: JSON of [`super::metadata::Metadata`].
    pub fn metadata(&self) -> &str {
        &self.metadata
    }

    /// What stands next; `None` at the end of the file.
    ///
    /// # Errors
    /// Those of `from`.
    pub fn next_part(&mut self) -> io::Result<Option<Part>> {
        self.fill(BLOCK_HEADER)?;
        if self.rest().is_empty() {
            return Ok(None);
        }
        let fault = match self.block()? {
            Ok(block) => return Ok(Some(Part::Block(block))),
            Err(fault) => fault,
        };
        let at = self.at;
        self.seek_magic()?;
        Ok(Some(Part::Damage(Damage { at, bytes: self.at - at, fault })))
    }

    /// The block that stands here; takes it only where it is whole.
    fn block(&mut self) -> io::Result<Result<Block, Fault>> {
        let header = match BlockHeader::decode(self.rest()) {
            Ok(header) => header,
            Err(fault) => return Ok(Err(fault)),
        };
        let whole = BLOCK_HEADER + header.payload_bytes;
        self.fill(whole)?;
        let payload = &self.rest()[BLOCK_HEADER..whole.min(self.rest().len())];
        if let Err(fault) = header.check(payload) {
            return Ok(Err(fault));
        }
        let block = Block { at: self.at, header, payload: payload.to_vec() };
        self.skip(whole);
        Ok(Ok(block))
    }

    /// Goes to the next magic behind the first byte here, or to the end of the file.
    fn seek_magic(&mut self) -> io::Result<()> {
        self.skip(1);
        loop {
            self.fill(MAX_PAYLOAD)?;
            let rest = self.rest();
            if let Some(found) = rest.windows(8).position(|bytes| bytes == BLOCK_MAGIC) {
                self.skip(found);
                return Ok(());
            }
            if self.ended {
                self.skip(rest.len());
                return Ok(());
            }
            self.skip(rest.len() - 7);
        }
    }

    fn rest(&self) -> &[u8] {
        &self.held[self.start..]
    }

    fn skip(&mut self, bytes: usize) {
        self.start += bytes;
        self.at += bytes as u64;
    }

    /// Reads until there are `want` bytes, or the file ends.
    fn fill(&mut self, want: usize) -> io::Result<()> {
        if self.rest().len() >= want || self.ended {
            return Ok(());
        }
        self.held.drain(..self.start);
        self.start = 0;
        let missing = want.max(64 << 10) - self.held.len();
        let read = (&mut self.from).take(missing as u64).read_to_end(&mut self.held)?;
        self.ended = read < missing;
        Ok(())
    }
}
